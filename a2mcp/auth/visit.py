"""Who may use the operator's page: a link that works once, and the visit that it begins.

Owns codes and visits for as long as the process lives; a restart forgets them all. Keeps nothing of them but digests,
and compares those in constant time. Does not know how either travels.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from a2mcp.clock import Clock

CODE_S: Final = 120.0
"""How long a link waits to be followed."""
CODES: Final = 16
"""Links that may wait; the oldest goes when there are more."""
VISIT_S: Final = 12 * 3600.0
"""How long a visit lasts."""
VISITS: Final = 64
"""Visits at a time; the oldest goes when there are more."""

_BYTES: Final = 32


class Visit(msgspec.Struct, frozen=True):
    """What a browser shows with every request from now on: both halves, or it is not let in.

    SECURITY: a browser sends the cookies of a host to every port of it. The key lies where only pages of our own port
    can read it, so that another server on this machine that is given the cookie has one half only.
    """

    cookie: str
    key: str


class _Kept(msgspec.Struct, frozen=True):
    digest: bytes
    until: float


class Visits:
    """The codes that wait and the visits that go on. Used by several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._codes: list[_Kept] = []
        self._visits: list[_Kept] = []

    def invite(self) -> str:
        """Make a code that begins one visit, soon."""
        code = _secret()
        with self._lock:
            _keep(self._codes, _digest(code), self._clock.monotonic() + CODE_S, CODES)
        return code

    def enter(self, code: str) -> Visit | None:
        """Begin a visit; None when the code was used before, is too old or is none."""
        with self._lock:
            found = self._find(self._codes, _digest(code))
            if found is None:
                return None
            self._codes.remove(found)
            visit = Visit(_secret(), _secret())
            _keep(self._visits, _of(visit.cookie, visit.key), self._clock.monotonic() + VISIT_S, VISITS)
        return visit

    def knows(self, cookie: str, key: str) -> bool:
        """Whether both belong to one visit that goes on."""
        with self._lock:
            return self._find(self._visits, _of(cookie, key)) is not None

    def leave(self, cookie: str, key: str) -> None:
        """End a visit."""
        with self._lock:
            found = self._find(self._visits, _of(cookie, key))
            if found is not None:
                self._visits.remove(found)

    def _find(self, kept: list[_Kept], digest: bytes) -> _Kept | None:
        now = self._clock.monotonic()
        kept[:] = [each for each in kept if each.until > now]
        # SECURITY: each of them is compared, whichever it is, so that time tells nothing.
        found = [each for each in kept if hmac.compare_digest(each.digest, digest)]
        return found[0] if found else None


def _secret() -> str:
    import secrets  # noqa: PLC0415 - for whoever opens the page

    return secrets.token_urlsafe(_BYTES)


def _keep(kept: list[_Kept], digest: bytes, until: float, most: int) -> None:
    kept.append(_Kept(digest, until))
    del kept[:-most]


def _of(cookie: str, key: str) -> bytes:
    return _digest(cookie) + _digest(key)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
