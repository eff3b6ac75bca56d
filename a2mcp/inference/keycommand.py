"""A program of the operator's that prints a key: run, bounded, and taken at its one line.

Owns the limits. What the program wrote to its standard error is shown to nobody: it may be part of a secret.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import IO, Final

from a2mcp.errors import CannotInfer
from a2mcp.host.process import inherited, launch

LIMIT_S: Final = 10.0
"""How long a program may take, to the end of what it prints and of itself."""
LARGEST: Final = 16 * 1024


def run(command: str, provider: str) -> str:
    """Run the command and return the one line that it prints. Waits up to ``LIMIT_S`` seconds.

    Raises:
        CannotInfer: it prints no line or more than one, hangs, or fails.
    """
    deadline = time.monotonic() + LIMIT_S
    program = launch(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=inherited(),
    )
    try:
        assert program.stdout is not None  # noqa: S101 - asked for above
        printed = _read(program.stdout, deadline)
        code = program.wait(max(0.0, deadline - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        raise _refusal(provider, f"did not end within {LIMIT_S:g} s") from None
    finally:
        _end(program)
    if len(printed) > LARGEST:
        raise _refusal(provider, f"printed more than {LARGEST} bytes")
    if code:
        raise _refusal(provider, f"ended with exit code {code}")
    return _one_line(printed, provider)


def _read(stream: IO[bytes], deadline: float) -> bytes:
    """Read to the end, or a little beyond the largest key: a program that never stops printing fills no memory."""
    pieces = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while len(pieces) <= LARGEST:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            piece = os.read(stream.fileno(), LARGEST)
            if not piece:
                return bytes(pieces)
            pieces += piece
    stream.close()
    return bytes(pieces)


def _end(program: subprocess.Popen[bytes]) -> None:
    """See it gone, and while its number is still ours, what it started with it."""
    if program.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    if program.stdout is not None:
        program.stdout.close()


def _one_line(printed: bytes, provider: str) -> str:
    try:
        lines = printed.decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise _refusal(provider, "printed something that is not plain text") from None
    if len(lines) != 1 or not lines[0].strip():
        raise _refusal(provider, f"printed {len(lines)} lines" if lines else "printed nothing")
    return lines[0].strip()


def _refusal(provider: str, what: str) -> CannotInfer:
    return CannotInfer(
        f"The key of provider '{provider}' cannot be read: its command {what}.",
        hint="It must print the key on one line; run it yourself to see.",
    )
