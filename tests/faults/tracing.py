"""Faults made by the kernel's side: ``strace`` fails, or kills at, the n-th call of one kind that one thread makes.

Nothing in the product knows of it. First a run is only watched, which says what calls there are: n is found, not fixed.
Then one of them is made to fail in a run like the first. A run whose fault did not come, because threads raced another
way, says so.
"""

from __future__ import annotations

import contextlib
import enum
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONG = os.environ.get("A2MCP_TEST_LONG") == "1"
"""Every n, and not only some: ``make soak`` sets it."""

NOT_THERE = "strace is not installed, or may not attach to a process here"

_CALL = re.compile(r"(?:(?P<thread>\d+) +)?(?P<name>[a-z_0-9]+)\((?P<rest>.*)")
_THREAD = re.compile(r"(\d+) ")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPENED = re.compile(r"\d+<([^>]*)>")

_NO_DISK = ("/proc/", "/dev/")
"""Where there is nothing that could be full or broken."""

MAKERS = {"socket", "pipe2", "epoll_create1", "accept4", "pidfd_open", "memfd_create", "eventfd2", "dup"}
"""What gives a descriptor and touches no file."""
DISK = {
    "read": ("EIO",),
    "pread64": ("EIO",),
    "write": ("EIO", "ENOSPC"),
    "pwrite64": ("EIO", "ENOSPC"),
    "splice": ("EIO", "ENOSPC"),
    "getdents64": ("EIO",),
    "newfstatat": ("EIO",),
    "fstat": ("EIO",),
    "fsync": ("EIO", "ENOSPC"),
    "fdatasync": ("EIO", "ENOSPC"),
    "ftruncate": ("EIO", "ENOSPC"),
    "fallocate": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC"),
    "unlink": ("EIO",),
    "unlinkat": ("EIO",),
    "mkdir": ("EIO", "ENOSPC"),
    "fchmod": ("EIO",),
    "chmod": ("EIO",),
    "readlink": ("EIO",),
    "flock": ("EIO",),
}
THREADS = {"clone3", "clone", "vfork", "fork"}
WATCHED = sorted({*MAKERS, *DISK, *THREADS, "openat", "openat2", "fcntl", "epoll_ctl", "bind", "lseek"})


@cache
def can_trace() -> bool:
    """Whether ``strace`` is here and may attach to a process that is not its child."""
    if shutil.which("strace") is None:
        return False
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as victim:
        tracer = subprocess.Popen(["strace", "-o", "/dev/null", "-p", str(victim.pid)], stderr=subprocess.PIPE)
        assert tracer.stderr is not None
        attached = b"attached" in tracer.stderr.readline()
        tracer.terminate()
        tracer.communicate()
    return attached


class Point(NamedTuple):
    """One call that can be made to fail: the n-th of its name in its thread."""

    thread: int
    """Which thread, counted in the order of their numbers."""
    name: str
    n: int
    subject: str
    """The file it is about, or what kind of descriptor."""
    rest: str
    """Its arguments, as far as they were written down."""

    @property
    def faults(self) -> tuple[str, ...]:
        """The errors, of those the issue names, that a machine could give here."""
        if self.subject.startswith(_NO_DISK):
            return ("EMFILE",) if self.name == "openat" else ()
        if self.name in ("openat", "openat2"):
            return ("EIO", "EMFILE", *(("ENOSPC",) if "O_CREAT" in self.rest else ()))
        if self.name in MAKERS or (self.name == "fcntl" and "F_DUPFD" in self.rest):
            return ("EMFILE",)
        if self.name in THREADS:
            return ("EAGAIN",)
        if (self.name == "epoll_ctl" and "_ADD" in self.rest) or (self.name == "bind" and "AF_UNIX" in self.rest):
            return ("ENOSPC",)
        return DISK.get(self.name, ()) if self.subject.startswith("/") else ()

    def inject(self, fault: str) -> list[str]:
        """The options that make it fail; ``KILL`` is the signal, anything else an error."""
        how = "signal=KILL" if fault == "KILL" else f"error={fault}"
        return ["-e", f"trace={self.name}", "-e", f"inject={self.name}:{how}:when={self.n}"]

    def __str__(self) -> str:
        return f"{self.name} {self.n} ({self.subject})"


def points(log: Path, threads: Sequence[int] = ()) -> list[Point]:
    """Read what a watched run did, in order.

    Args:
        log: what strace wrote.
        threads: their numbers; without any, those in the log.
    """
    calls = [match for line in log.read_text(errors="replace").splitlines() if (match := _CALL.match(line))]
    if not threads:
        threads = sorted({int(call["thread"] or 0) for call in calls})
    seen: dict[tuple[int, str], int] = {}
    found = []
    for call in calls:
        thread, name = int(call["thread"] or threads[0]), call["name"]
        n = seen[thread, name] = seen.get((thread, name), 0) + 1
        if thread in threads:
            found.append(Point(threads.index(thread), name, n, _subject(call["rest"]), call["rest"]))
    return found


def _subject(rest: str) -> str:
    named = next((text for text in _QUOTED.findall(rest) if text), "")
    opened = _OPENED.match(rest)
    return opened[1] if opened else named


def few_of_each(found: Sequence[Point], folder: str, most: int) -> list[Point]:
    """Leave out what goes on and on: of the files in one folder, the first calls of each name."""
    seen: Counter[tuple[int, str]] = Counter()
    kept = []
    for point in found:
        if point.subject.startswith(folder):
            seen[point.thread, point.name] += 1
            if seen[point.thread, point.name] > most:
                continue
        kept.append(point)
    return kept


def some(found: Sequence[Point], most: int) -> list[Point]:
    """All of them in the long form; else at most so many, spread evenly."""
    if LONG or len(found) <= most:
        return list(found)
    return [found[index * len(found) // most] for index in range(most)]


def break_all(cases: Sequence[tuple[Point, str]], break_at: Callable[[Point, str], str]) -> dict[str, int]:
    """Try every case; how often each outcome came. Fails with all the cases that broke a promise."""
    became: Counter[str] = Counter()
    broken, missed = [], []
    for point, fault in cases:
        try:
            outcome = break_at(point, fault)
        except Exception as cause:  # noqa: BLE001  # One broken promise must not hide the others.
            broken.append(f"{fault} at {point}: {cause}")
            continue
        became[outcome] += 1
        if outcome in (Came.NOT.value, Came.ELSEWHERE.value):
            missed.append(f"{fault} at {point}")
    assert not broken, "\n\n".join([f"{len(broken)} of {len(cases)} faults broke a promise:", *broken])
    assert len(missed) <= max(1, len(cases) // 4), missed
    return dict(became)


class Came(enum.Enum):
    """Whether a fault came where it was meant to."""

    AS_MEANT = "as meant"
    NOT = "not reached"
    ELSEWHERE = "elsewhere"
    """The n-th call was another one this time, and one that no machine lets fail so, such as a write to a pipe."""


def came(log: Path, point: Point, fault: str) -> Came:
    """Read from a trace whether a fault came."""
    text = log.read_text(errors="replace")
    if fault == "KILL":
        return Came.AS_MEANT if "killed by SIGKILL" in text else Came.NOT
    hits = list(_injected(text))
    if not hits:
        return Came.NOT
    plausible = [point._replace(subject=_subject(rest), rest=rest).faults for rest in hits]
    return Came.AS_MEANT if all(fault in faults for faults in plausible) else Came.ELSEWHERE


def _injected(text: str) -> Iterator[str]:
    """The arguments of the calls that were made to fail; one that another thread interrupted stands in two lines."""
    begun: dict[str | None, str] = {}
    for line in text.splitlines():
        if call := _CALL.match(line):
            begun[call["thread"]] = call["rest"]
        if "INJECTED" in line:
            thread = _THREAD.match(line)
            yield begun[thread[1] if thread else None]


def command(log: Path, options: Sequence[str], argv: Sequence[str]) -> list[str]:
    """A command line that runs ``argv`` under strace, as the process that is started and not as its child."""
    # Where the kernel chooses the calls to stop at, a signal that is to be injected is lost.
    faster = [] if any("signal=" in option for option in options) else ["--seccomp-bpf"]
    # The order of a set's members decides in which order modules are looked for.
    return ["strace", "-D", "-f", *faster, "-y", "-o", str(log), *options, "-E", "PYTHONHASHSEED=0", *argv]


def finished(log: Path) -> None:
    """Wait until strace has written what it saw of a command that has ended."""
    until(lambda: "+++" in log.read_text(errors="replace")[-200:], what="the end of the trace")


def threads_of(pid: int) -> list[int]:
    """The threads of a process, the first of them first."""
    return sorted(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())


@contextlib.contextmanager
def attached(log: Path, threads: Sequence[int], options: Sequence[str]) -> Iterator[None]:
    """Trace these threads of a running process, and none that they start, for the length of a block."""
    log.unlink(missing_ok=True)
    targets = [f"-p{thread}" for thread in threads]
    _settle(threads, "quiet before it begins")
    with (
        log.with_suffix(".stderr").open("wb") as stderr,
        subprocess.Popen(["strace", "-y", "-o", str(log), *options, *targets], stderr=stderr) as tracer,
    ):
        try:
            until(
                lambda: all(_tracer_of(thread) in {tracer.pid, None} for thread in threads), what="strace is attached"
            )
            yield
            # A call that strace lets go of half way would not be made at all.
            _settle(threads, "the end of what is done")
        finally:
            with contextlib.suppress(ProcessLookupError):
                tracer.send_signal(signal.SIGINT)
            tracer.wait(20)


def _settle(threads: Sequence[int], what: str) -> None:
    until(lambda: all(_sleeps(thread) for thread in threads for _ in range(3)), what=what)


def _sleeps(thread: int) -> bool:
    """Whether a thread waits for something, or has ended; looked at again and again, one that works is caught at it."""
    time.sleep(0.002)
    try:
        return Path(f"/proc/{thread}/stat").read_bytes().rpartition(b") ")[2][:1] in b"SZX"
    except OSError:
        return True


def _tracer_of(thread: int) -> int | None:
    try:
        status = Path(f"/proc/{thread}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None  # What it did by itself met the fault, and was its end, while strace was still attaching.
    return int(status.split("TracerPid:")[1].split()[0])
