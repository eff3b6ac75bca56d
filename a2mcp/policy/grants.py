"""What the operator has allowed beyond one call: a tool for a session, or a tool always, for a time or until revoked.

Owns the grants, their expiry and their file. Does not decide who is asked and never widens a rule: a tool that the
settings deny stays denied. Grants for a session live as long as the daemon, as sessions do; the others are kept.
"""

from __future__ import annotations

import contextlib
import enum
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp import files, jsonfile
from a2mcp.clock import iso
from a2mcp.errors import Busy, InvalidParams, UnusableFile
from a2mcp.policy.waiting import random_id
from a2mcp.types import SessionId

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.clock import Clock

MOST: Final = 1000
"""Grants at one time."""
_LARGEST: Final = 1 << 20

logger = logging.getLogger("a2mcp.policy")


class Scope(enum.StrEnum):
    """How far an approval reaches."""

    ONCE = "once"
    SESSION = "session"
    """Further calls of the tool in the same session."""
    ALWAYS = "always"
    """Further calls of the tool by anybody."""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator says about a waiting call."""

    approve: bool
    reason: str = ""
    scope: Scope = Scope.ONCE
    for_s: float | None = None
    """How long an approval beyond this call holds."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that is not asked about any more."""

    id: str
    """What revokes it."""
    tool: str
    session_id: SessionId | None = None
    """Only in this session; None for everybody."""
    since: str
    until: str | None = None
    """None: until it is revoked."""


class _Kept(msgspec.Struct, frozen=True):
    grants: tuple[Grant, ...] = ()


class _Held(msgspec.Struct, frozen=True):
    grant: Grant
    ends: datetime | None
    deadline: float
    """The same in the time that never jumps: a wall clock that is set back prolongs nothing."""


class Grants:
    """The grants in force. Changed by one owner; read from any thread, because each change makes a new table.

    Args:
        path: where those that outlive the daemon are kept.
        clock: for their expiry.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._unread = False
        """Whether the file holds what could not be read, and may be read another time."""
        self._table: tuple[_Held, ...] = self._read()

    def covers(self, tool: str, session_id: SessionId | None) -> bool:
        """Whether this call need not be asked about."""
        return any(_covers(held.grant, tool, session_id) for held in self._table if self._in_force(held))

    def list(self) -> tuple[Grant, ...]:
        """Those in force, oldest first."""
        return tuple(held.grant for held in self._table if self._in_force(held))

    def add(self, tool: str, *, session_id: SessionId | None = None, for_s: float | None = None) -> Grant:
        """Allow a tool, in one session or for everybody, for some seconds or until it is revoked.

        Raises:
            Busy: there are too many.
            UnusableFile: it cannot be kept; then it is not in force either.
        """
        current = tuple(held for held in self._table if self._in_force(held))
        if len(current) >= MOST:
            raise Busy(f"{MOST} grants are in force.", hint="Revoke some: `a2mcp approvals --granted` lists them.")
        now = self._clock.now()
        until = None if for_s is None else iso(now + timedelta(seconds=for_s))
        grant = Grant(id=self._free_id(), tool=tool, session_id=session_id, since=iso(now), until=until)
        self._replace((*current, self._held(grant)))
        return grant

    def revoke(self, grant_id: str) -> Grant | None:
        """Have a tool asked about again; None when there is no such grant.

        Raises:
            UnusableFile: the file cannot be written. The grant is out of force all the same, until a restart.
        """
        found = next((held for held in self._table if held.grant.id == grant_id and self._in_force(held)), None)
        if found is None:
            return None
        remaining = tuple(held for held in self._table if held is not found)
        self._table = remaining
        self._keep(remaining)
        return found.grant

    def _replace(self, table: tuple[_Held, ...]) -> None:
        self._keep(table)
        self._table = table

    def _in_force(self, held: _Held) -> bool:
        return held.ends is None or (self._clock.monotonic() < held.deadline and self._clock.now() < held.ends)

    def _held(self, grant: Grant) -> _Held:
        if grant.until is None:
            return _Held(grant, None, float("inf"))
        ends = datetime.fromisoformat(grant.until)
        return _Held(grant, ends, self._clock.monotonic() + (ends - self._clock.now()).total_seconds())

    def _free_id(self) -> str:
        taken = {held.grant.id for held in self._table}
        while (candidate := f"g{random_id()}") in taken:
            pass
        return candidate

    def _read(self) -> tuple[_Held, ...]:
        """Read the file; one that cannot be read grants nothing, because a wrong guess would run something."""
        try:
            kept = jsonfile.read(self._path, _LARGEST, _Kept)
            return tuple(self._held(grant) for grant in kept.grants if grant.session_id is None)
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError) as cause:
            logger.warning("[a2mcp] warning: %s cannot be read, so nothing is granted: %s", self._path, cause)
            self._unread = True
            return ()

    def _keep(self, table: tuple[_Held, ...]) -> None:
        lasting = tuple(held.grant for held in table if held.grant.session_id is None)
        if not lasting and not self._path.exists():
            return
        try:
            data = msgspec.json.format(msgspec.json.encode(_Kept(lasting)), indent=2)
            self._set_aside()
            files.write_atomic(self._path, data + b"\n", mode=0o600)
        except OSError as cause:
            raise UnusableFile(
                f"{self._path} cannot be written: {cause.strerror or cause}.", hint="Approve the one call instead."
            ) from cause

    def _set_aside(self) -> None:
        """Move a file that could not be read out of the way: what it grants is the operator's to throw away."""
        if self._unread:
            with contextlib.suppress(FileNotFoundError):
                self._path.replace(self._path.with_name(self._path.name + ".unreadable"))
            self._unread = False


def no_session() -> InvalidParams:
    """Make the error for a call that has no session to be allowed in."""
    return InvalidParams("This call has no session.", hint="Approve it once, or always with --for.")


def _covers(grant: Grant, tool: str, session_id: SessionId | None) -> bool:
    return grant.tool == tool and grant.session_id in (None, session_id)
