"""Which sessions exist.

Owns the ids, the cap and the idle time. Knows nothing of HTTP, and nothing of calls: closing or evicting a session does
not end what runs in it. Kept in memory only, so a restart forgets every session.
"""

import uuid
from collections import OrderedDict
from collections.abc import Callable

from a2mcp.clock import Clock
from a2mcp.types import SessionId

LIMIT = 64
IDLE_S = 24 * 3600.0


class SessionTable:
    """At most ``limit`` sessions, least recently seen first.

    A session that was not seen for ``idle_s`` seconds or longer is gone. All operations take constant time: the order
    of the entries is the order in which they were seen, so those to forget are always in front.

    Args:
        limit: how many sessions there can be.
        idle_s: after how many seconds without a message a session is forgotten.
        clock: measures the idle time; its wall clock is not used.
        forgotten: is told of each session that was not closed by anybody, and why it is no more.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        limit: int = LIMIT,
        idle_s: float = IDLE_S,
        forgotten: Callable[[SessionId, str], None] = lambda _session, _why: None,
    ) -> None:
        self._clock = clock
        self._limit = limit
        self._idle_s = idle_s
        self._forgotten = forgotten
        self._seen: OrderedDict[SessionId, float] = OrderedDict()

    def open(self) -> SessionId:
        """Make a session; when the table is full, the least recently seen one is forgotten for it."""
        now = self._forget_idle()
        while len(self._seen) >= self._limit:
            self._forget_first("to make room")
        session = SessionId(str(uuid.uuid4()))
        self._seen[session] = now
        return session

    def touch(self, session: str) -> bool:
        """Whether the session exists; if so, it has been seen now. The id is compared exactly as it was issued."""
        now = self._forget_idle()
        if session not in self._seen:
            return False
        known = SessionId(session)
        self._seen[known] = now
        self._seen.move_to_end(known)
        return True

    def close(self, session: str) -> None:
        """Forget a session; one that does not exist is as good as closed."""
        self._seen.pop(SessionId(session), None)

    def list(self) -> list[tuple[SessionId, float]]:
        """Every session with the seconds since it was seen, the least recently seen first."""
        now = self._forget_idle()
        return [(session, now - seen) for session, seen in self._seen.items()]

    @property
    def size(self) -> int:
        """How many sessions there are, those to forget included. May be asked from any thread."""
        return len(self._seen)

    def __contains__(self, session: object) -> bool:
        self._forget_idle()
        return session in self._seen

    def __len__(self) -> int:
        self._forget_idle()
        return len(self._seen)

    def _forget_idle(self) -> float:
        now = self._clock.monotonic()
        while self._seen and now - next(iter(self._seen.values())) >= self._idle_s:
            self._forget_first("idle")
        return now

    def _forget_first(self, why: str) -> None:
        session, _ = self._seen.popitem(last=False)
        self._forgotten(session, why)
