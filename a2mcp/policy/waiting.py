"""The calls that wait for the operator: added, listed, answered once, overdue, forgotten.

Owns the table and its ids. Does not decide, and does not know what is done with an answered call: it keeps it as the
caller's own object and gives it back. Not thread-safe, one actor owns it.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import msgspec

from a2mcp.errors import Busy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from a2mcp.clock import Clock
    from a2mcp.types import CallId, SessionId

T = TypeVar("T")

_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without the letters and digits that are taken for one another when typed."""
_LETTERS: Final = 5

MOST_SHOWN: Final = 16 * 1024
"""Bytes of arguments that the operator is shown."""
REMEMBERED: Final = 256
"""Answers that are remembered, for the second of two operators who answer the same call."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A call as the operator sees it."""

    id: str
    """What the operator types, for example ``k7f3a``."""
    call_id: CallId
    tool: str
    args: str
    """The arguments as they came: the operator judges by them, so nothing short of ``MOST_SHOWN`` is folded away."""
    session_id: SessionId | None
    since: datetime
    client: str | None = None
    """What the caller says it is."""


def shown_arguments(raw: bytes) -> str:
    """Write a call's arguments for the operator, cut where they are longer than anybody reads."""
    text = raw[:MOST_SHOWN].decode("utf-8", "replace")
    left = len(raw) - MOST_SHOWN
    return text if left <= 0 else f"{text}… ({left} more bytes)"


class _Waiter(NamedTuple, Generic[T]):
    request: Request
    held: T
    at: float
    """When it came, in the time that never jumps."""


def random_id() -> str:
    """Make an id that an operator can type.

    Random rather than counted, so that an answer to a list from before a restart hits nothing instead of another call.
    """
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LETTERS))


class Waiting(Generic[T]):
    """The table of calls that wait, oldest first.

    Args:
        cap: how many may wait; one more is refused.
        clock: for the time since when.
        new_id: makes the ids; one that is in use is not taken.
    """

    def __init__(self, cap: int, clock: Clock, new_id: Callable[[], str] = random_id) -> None:
        self._cap = cap
        self._clock = clock
        self._new_id = new_id
        self._waiters: dict[str, _Waiter[T]] = {}
        self._answers: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiters)

    def add(  # noqa: PLR0913  # One argument for each thing that the operator is shown.
        self,
        held: T,
        *,
        call_id: CallId,
        tool: str,
        args: str,
        session_id: SessionId | None,
        client: str | None = None,
    ) -> Request:
        """Let a call wait.

        Raises:
            Busy: ``cap`` calls wait already.
        """
        if len(self._waiters) >= self._cap:
            raise Busy(
                f"{self._cap} calls already wait for approval.", hint="Try again once the operator has answered."
            )
        request = Request(
            id=self._free_id(),
            call_id=call_id,
            tool=tool,
            args=args,
            session_id=session_id,
            since=self._clock.now(),
            client=client,
        )
        self._waiters[request.id] = _Waiter(request, held, self._clock.monotonic())
        return request

    def list(self) -> Sequence[Request]:
        """Every call that waits, oldest first."""
        return [waiter.request for waiter in self._waiters.values()]

    def find(self, request_id: str) -> Request | None:
        """Look at a call that waits."""
        waiter = self._waiters.get(request_id)
        return None if waiter is None else waiter.request

    def held(self, request_id: str) -> T | None:
        """Look at the caller's own object; None when the call does not wait."""
        waiter = self._waiters.get(request_id)
        return None if waiter is None else waiter.held

    def answer(self, request_id: str, word: str = "answered") -> T | None:
        """Take a call out to act on it; None when it never waited, was answered, or was forgotten."""
        waiter = self._waiters.pop(request_id, None)
        if waiter is None:
            return None
        self._answers[request_id] = word
        if len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)
        return waiter.held

    def earlier(self, request_id: str) -> str | None:
        """What was said about a call that does not wait any more; None when that is not known."""
        return self._answers.get(request_id)

    def overdue(self, timeout_s: float) -> Sequence[Request]:
        """The calls that have waited for so long."""
        latest = self._clock.monotonic() - timeout_s
        return [waiter.request for waiter in self._waiters.values() if waiter.at <= latest]

    def forget(self, call_id: CallId) -> T | None:
        """Take a call out because nobody wants it any more; None when it does not wait."""
        for request_id, waiter in self._waiters.items():
            if waiter.request.call_id == call_id:
                return self.answer(request_id, "withdrawn")
        return None

    def _free_id(self) -> str:
        while (candidate := self._new_id()) in self._waiters:
            pass
        return candidate
