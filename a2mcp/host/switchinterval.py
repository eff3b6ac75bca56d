"""How long a thread that computes keeps the others from running.

Python gives the interpreter to another thread after 5 ms. That is right for calls, whose threads wait for something
before it is over. A thread that computes for long makes the loop wait those 5 ms several times for one request, so
while one does, turns are shorter. Shorter ones at all times would cost a call one more switch between threads:
measured, a quarter of its time.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORT_S: Final = 0.001

_lock = threading.Lock()
_computing = 0
_usual_s = sys.getswitchinterval()


@contextlib.contextmanager
def short() -> Iterator[None]:
    """Shorten the turns of all threads for the length of a block."""
    change(1)
    try:
        yield
    finally:
        change(-1)


def change(step: int) -> None:
    """Count one more who computes, or one less, where a block would not do."""
    global _computing  # noqa: PLW0603  # It mirrors a property of the interpreter, of which there is one, too.
    with _lock:
        _computing += step
        sys.setswitchinterval(SHORT_S if _computing else _usual_s)
