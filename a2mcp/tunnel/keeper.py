"""Holds the program of a tunnel: starts it, reads what it says, ends it, and tells what became of it.

One thread, which is the only one that touches the process; everybody else talks to it through a pipe. So no signal can
hit a number that belongs to somebody else by now, and the output is read for as long as the program lives: one that is
not read would stop at a full pipe.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.host.process import exit_descriptor, inherited, launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock
    from a2mcp.tunnel.providers import Launch

NAME_S: Final = 30.0
"""Until the program has named the host."""
TERM_S: Final = 2.0
"""Between asking it to end and killing it."""

_SETTINGS: Final = (b"TUNNEL_", b"DUFS_")
"""What begins so would set the programs otherwise than we do."""
_LONGEST_LINE: Final = 1 << 16
_PIECE: Final = 1 << 16
_SAID: Final = 200
_LEASH: Final = Path(__file__).with_name("leash.py")


class Named(msgspec.Struct, frozen=True):
    """The tunnel is up under this name."""

    hostname: str
    pid: int


class Ended(msgspec.Struct, frozen=True):
    """The program is gone, or was never there; told exactly once and last."""

    reason: str


class Limits(msgspec.Struct, frozen=True):
    """How long the program may take."""

    name_s: float = NAME_S
    term_s: float = TERM_S


class Keeper:
    """One run of one program.

    Args:
        program: what to run.
        launch: with which arguments and environment.
        tell: told ``Named`` at most once, and ``Ended`` once; runs in the keeper's thread.
        clock: for the limits.
        limits: how long it may take.
    """

    def __init__(
        self,
        program: Path,
        launch: Launch,
        *,
        tell: Callable[[Named | Ended], None],
        clock: Clock,
        limits: Limits | None = None,
    ) -> None:
        self._program = program
        self._launch = launch
        self._tell = tell
        self._clock = clock
        self._limits = limits or Limits()
        self._reader, self._writer = os.pipe()
        self._pipe = threading.Lock()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="TunnelKeeper", daemon=True)
        self._named = False
        self._stopping = False
        self._reason = ""
        self._rest = b""
        self._said: deque[str] = deque(maxlen=3)
        self._deadline: float | None = None

    def start(self) -> None:
        """Start the program and look after it from now on."""
        self._thread.start()

    def stop(self, *, at_once: bool = False) -> None:
        """Have the program ended: asked to, and killed when it does not; or killed ``at_once``. Returns at once."""
        with self._pipe:
            if not self._over:
                os.write(self._writer, b"k" if at_once else b"t")

    def wait(self, seconds: float) -> bool:
        """Wait until everything has been told; whether it was in time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # --- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        reason = f"{self._program.name} could not be looked after."
        try:
            reason = self._keep()
        finally:
            with self._pipe:
                self._over = True
                os.close(self._writer)
                os.close(self._reader)
            self._tell(Ended(reason))

    def _keep(self) -> str:
        """Run the program to its end; the reason of the end."""
        try:
            child = self._spawn()
        except OSError as error:
            return f"{self._program} could not be started: {error.strerror}."
        with child:
            try:
                self._watch(child)
            finally:
                # The unreaped leader keeps the number of the group ours, also for what it left behind.
                _signal(child, signal.SIGKILL)
            while self._read(child):
                pass
        return self._reason or self._how_it_ended(child.returncode)

    def _spawn(self) -> subprocess.Popen[bytes]:
        argv = [os.fspath(self._program), *self._launch.arguments]
        if sys.platform == "linux":
            argv = [sys.executable, "-I", "-S", os.fspath(_LEASH), str(os.getpid()), *argv]
        kept = {name: value for name, value in inherited().items() if not name.startswith(_SETTINGS)}
        child = launch(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=kept | {os.fsencode(name): os.fsencode(value) for name, value in self._launch.environment.items()},
        )
        os.set_blocking(_output(child), False)
        return child

    def _watch(self, child: subprocess.Popen[bytes]) -> None:
        """Look after the program until it has ended."""
        self._deadline = self._clock.monotonic() + self._limits.name_s
        gone = exit_descriptor(child)
        with selectors.DefaultSelector() as selector, os.fdopen(gone, "rb", buffering=0):
            for descriptor in (_output(child), gone, self._reader):
                selector.register(descriptor, selectors.EVENT_READ)
            ready: set[int] = set()
            while gone not in ready:
                ready = {key.fd for key, _ in selector.select(self._time_left())}
                if _output(child) in ready and self._read(child) == b"":
                    selector.unregister(_output(child))
                if self._reader in ready:
                    self._obey(child, os.read(self._reader, 64))
                elif self._time_left() == 0:
                    self._too_late(child)

    def _time_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - self._clock.monotonic())

    def _obey(self, child: subprocess.Popen[bytes], words: bytes) -> None:
        if b"k" in words:
            self._deadline = None
            _signal(child, signal.SIGKILL)
        elif not self._stopping:
            self._ask_to_end(child)
        self._stopping = True

    def _too_late(self, child: subprocess.Popen[bytes]) -> None:
        if self._stopping:
            self._deadline = None
            _signal(child, signal.SIGKILL)
            return
        self._stopping = True
        self._reason = f"{self._program.name} named no host within {self._limits.name_s:g} s.{self._quoted()}"
        self._ask_to_end(child)

    def _ask_to_end(self, child: subprocess.Popen[bytes]) -> None:
        self._deadline = self._clock.monotonic() + self._limits.term_s
        _signal(child, signal.SIGTERM)

    # --- what it says ---------------------------------------------------------------------------------------------

    def _read(self, child: subprocess.Popen[bytes]) -> bytes | None:
        """Read some of what there is: None when it is nothing now, no bytes at the end of the output."""
        try:
            piece = os.read(_output(child), _PIECE)
        except BlockingIOError:
            return None
        *lines, rest = (self._rest + piece).split(b"\n")
        if not piece:
            lines, rest = [rest], b""
        self._rest = rest[-_LONGEST_LINE:]
        for line in lines:
            self._hear(line.decode("utf-8", "replace").strip(), child.pid)
        return piece

    def _hear(self, line: str, pid: int) -> None:
        if not line:
            return
        self._said.append(line[:_SAID])
        if self._named or self._stopping:
            return
        if (hostname := self._launch.hostname_in(line)) is not None:
            self._named = True
            self._deadline = None
            self._tell(Named(hostname, pid))

    def _how_it_ended(self, status: int) -> str:
        if self._stopping:
            return ""
        how = f"exit code {status}" if status >= 0 else f"signal {-status}"
        when = "by itself" if self._named else "before it named a host"
        return f"{self._program.name} ended {when} ({how}).{self._quoted()}"

    def _quoted(self) -> str:
        said = " / ".join(self._said)
        readable = "".join(c if c.isprintable() else "?" for c in said)
        return f" It said: {readable}" if readable else ""


def _output(child: subprocess.Popen[bytes]) -> int:
    if child.stdout is None:
        raise AssertionError("started without a pipe")
    return child.stdout.fileno()


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
