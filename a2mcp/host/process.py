"""Starting a shell: environment, standard streams, process group; and what can be done to the child afterwards.

Knows nothing of calls, jobs or time limits. ``spawn`` may be called from any thread; a ``Child`` belongs to one.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import BadArgument, ToolError
from a2mcp.host import affinity, marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import StrPath

    from a2mcp.host.command import Command

QUIET: Final = {
    "TERM": "dumb",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "AWS_PAGER": "",
}
"""Nobody sits at a terminal: programs that would page or prompt must not."""

_DROPPED: Final = frozenset({b"BASH_ENV", b"ENV"})
"""Start-up files that even ``--norc`` bash reads: a command must not depend on who started the daemon."""


_DISCARD_S: Final = 1.0
"""What a killed process may take to go."""
_starting = threading.Lock()
_refuses = False
_CAN_PEEK: Final = hasattr(os, "waitid")
"""Whether the end of a child can be seen without giving its number back."""


class Child:
    """A started command. Its number stays reserved, and so its group safe to signal, until ``reap``.

    Args:
        popen: the process, with unbuffered pipes.
        command: what it runs.
        mark: what it and all it starts bear.
        started: the monotonic moment of the start.
    """

    __slots__ = ("_status", "command", "exit_descriptor", "mark", "pid", "popen", "reaped", "started")

    def __init__(self, popen: subprocess.Popen[bytes], command: Command, mark: int, started: float) -> None:
        self.popen = popen
        self.pid = popen.pid
        self.command = command
        self.mark = mark
        self.started = started
        self.reaped = False
        self._status: int | None = None
        self.exit_descriptor = exit_descriptor(popen)
        """Readable once the process has ended."""

    def status(self) -> int | None:
        """Exit code, or the negative signal number, or ``None`` while it runs. Does not reap where the system can."""
        if self._status is None:
            self._status = _peek(self.popen)
            self.reaped = self.popen.returncode is not None
        return self._status

    def signal(self, *numbers: int) -> None:
        """Signal the whole group; nothing happens once the child is reaped.

        SECURITY: the unreaped leader keeps the number ours; without it the group could be somebody else's by now.
        """
        if self.reaped:
            return
        for number in numbers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def reap(self) -> None:
        """Let the ended leader go. Waits for it, so call it after the exit was seen."""
        if self.popen.poll() is None:
            self.popen.wait()
        self.reaped = True

    def left_something_running(self) -> bool:
        """Whether the group outlived its leader. Ask right after ``reap``, while nobody can have got its number."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def close(self) -> None:
        """Close our ends of the pipes."""
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self.exit_descriptor >= 0:
            os.close(self.exit_descriptor)
            self.exit_descriptor = -1

    def discard(self) -> None:
        """Kill the group and let everything go: for a child that nobody looks after.

        One that became another user's, or hangs in the kernel, is not waited for.
        """
        self.signal(signal.SIGKILL)
        self.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(_DISCARD_S)
            self.reaped = True


def spawn(command: Command, *, started: float) -> Child:
    """Start a command in a session of its own, with pipes on standard output and error.

    Raises:
        ToolError: the command could not be started; the text says why and what to do.
    """
    stdin = _stdin_for(command)
    mark = marks.fresh()
    try:
        popen = launch(
            [_bash(), "--noprofile", "--norc", "-c", "--", command.text],
            mark=mark,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=environment(command.env),
        )
    except (OSError, ValueError) as error:
        raise _explained(error, command) from error
    finally:
        if not isinstance(stdin, int):
            stdin.close()
    for stream in (popen.stdin, popen.stdout, popen.stderr):
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
    try:
        return Child(popen, _without_what_was_delivered(command), mark, started)
    except OSError as error:
        popen.kill()
        popen.communicate()
        raise _explained(error, command) from error


def launch(argv: Sequence[StrPath], *, mark: int | None = None, **options: Any) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, marked, on every processor: the one way in which the daemon starts any.

    Args:
        argv: the program and its arguments.
        mark: of the command it runs for; by default that of the daemon's own helpers.
        options: of ``Popen``. No ``preexec_fn``, ``user`` or ``group``: each switches vfork off, and a fork of a large
            daemon takes 20 ms.

    Raises:
        OSError: it could not be started, or the daemon starts nothing any more.
        ValueError: an argument that no program can be given.
    """
    # PERF: one start waits for the other, as it would for the interpreter anyway.
    with _starting:
        if _refuses:
            raise OSError(errno.ECANCELED, "the daemon is stopping")
        with affinity.everywhere(), marks.wearing(marks.helper() if mark is None else mark):
            popen: subprocess.Popen[bytes] = subprocess.Popen(argv, bufsize=0, start_new_session=True, **options)
    return popen


def refuse() -> None:
    """Start nothing any more. Once this has returned, nobody is on the way either."""
    global _refuses  # noqa: PLW0603  # It is about the process, of which there is one.
    with _starting:
        _refuses = True


def environment(extra: dict[str, str]) -> dict[bytes, bytes]:
    """Build the environment of a command: what every child gets, then ``extra``."""
    return inherited() | {os.fsencode(name): os.fsencode(value) for name, value in extra.items()}


@functools.cache
def inherited() -> dict[bytes, bytes]:
    """Give what every child gets: the daemon's environment without what is the daemon's own, and quiet.

    PERF: made once, as bytes; the daemon's own environment does not change.
    """
    kept = {k: v for k, v in os.environb.items() if not k.startswith(b"A2MCP_") and k not in _DROPPED}
    return kept | {name.encode(): value.encode() for name, value in QUIET.items()}


@functools.cache
def _bash() -> str:
    return shutil.which("bash") or "/bin/bash"


def _stdin_for(command: Command) -> int | IO[bytes]:
    if command.stdin is None:
        return subprocess.DEVNULL
    if command.keeps_stdin:
        return subprocess.PIPE
    # NOTE: a file instead of a pipe: any size is delivered, then end-of-file, and nothing here can block on a
    # command that does not read.
    file = _anonymous_file()
    file.write(command.stdin)
    file.seek(0)
    return file


def _without_what_was_delivered(command: Command) -> Command:
    """Let go of standard input once the child has it: a job may run for days."""
    if command.stdin is None or command.keeps_stdin:
        return command
    return msgspec.structs.replace(command, stdin=None)


def _anonymous_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stdin"), "w+b")
    return tempfile.TemporaryFile()


def exit_descriptor(popen: subprocess.Popen[bytes]) -> int:
    """Make a descriptor that is readable once the process has ended; the process is not reaped by that."""
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(popen.pid)
    reader, writer = os.pipe()
    threading.Thread(target=_close_at_exit, args=(popen, writer), name=f"exit-{popen.pid}", daemon=True).start()
    return reader


def _close_at_exit(popen: subprocess.Popen[bytes], writer: int) -> None:
    """Wait for the end where there is no descriptor for it; the reader sees end-of-file."""
    if _CAN_PEEK:
        os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)
    else:
        popen.wait()
    os.close(writer)


def _peek(popen: subprocess.Popen[bytes]) -> int | None:
    if not _CAN_PEEK:
        return popen.poll()
    done = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if done is None:
        return None
    return done.si_status if done.si_code == os.CLD_EXITED else -done.si_status


def _explained(error: OSError | ValueError, command: Command) -> ToolError:
    if isinstance(error, ValueError):
        return BadArgument("command", "text without NUL characters", str(error))
    if error.filename == str(command.cwd) or error.filename == command.cwd:
        return ToolError(
            f"The working directory {command.cwd} cannot be used: {error.strerror}.",
            hint="Give an existing, readable directory as 'cwd'.",
        )
    text, hint = _REASONS.get(error.errno or 0, (f"{error.strerror}.", ""))
    return ToolError(f"The command could not be started: {text}", hint=hint)


_REASONS: Final = {
    errno.E2BIG: (
        "the command text and environment are longer than the system takes.",
        "Write the script to a file with the write tool and run that file, or pass data through 'stdin'.",
    ),
    errno.EAGAIN: ("the system has no room for another process now.", "Try again when other commands have ended."),
    errno.ENOMEM: ("the system is out of memory.", "Try again when other commands have ended."),
    errno.EMFILE: ("the daemon has too many files open.", "Try again when other commands have ended."),
    errno.ENFILE: ("the system has too many files open.", "Try again when other commands have ended."),
    errno.ECANCELED: ("the daemon is stopping.", "Try again when it runs again."),
    errno.ENOENT: ("bash was not found on this machine.", "Install bash; the tool runs nothing else."),
}
