"""The one share against a model: what is up, who closed it and why, served by us or by dufs, whatever comes in between.

No thread runs and no program: the actor is handed its messages one by one, and dufs is an object that says what it is told to.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant
from living import Clock
from states import Machine, among, explore, step

from a2mcp.errors import CannotObtain
from a2mcp.obtain.programs import Found
from a2mcp.types import CallId, SessionId
from a2mcp.xfer import dufs
from a2mcp.xfer.dufs import Down, Up
from a2mcp.xfer.owner import Owner, Stand, open_share
from a2mcp.xfer.proxy import Upstream
from a2mcp.xfer.settings import XferSettings
from actors import xfer
from actors.ref import Mailbox, Ref
from actors.xfer import Expire, Serve, Sharing, Status, StopForOperator, StopSharing, Told, Xfer

PORT, DUFS_PORT = 4801, 5005
SESSIONS = st.sampled_from(["s1", "s2", None]).map(lambda name: None if name is None else SessionId(name))


class Program:
    """In the place of ``Dufs``."""

    made: list[Program]

    def __init__(self, _found: Found, path: Path, *, tell: Any, clock: Any) -> None:
        self.path, self.tell, self.closed = path, tell, False
        self.upstream, self.installed = Upstream(DUFS_PORT, "Basic x"), None
        self.made.append(self)

    def start(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class Ticket:
    def __init__(self, number: int, session: Any) -> None:
        self.call_id, self.session_id = CallId(f"call-{number}"), session


class Asked:
    """A call that wants to share, as the model has it."""

    def __init__(self, ticket: Ticket, opened: Any) -> None:
        self.ticket, self.opened = ticket, opened
        self.cancelled, self.stands = False, "fetching"
        self.serve = Serve(ticket, opened, lambda: self.cancelled)  # type: ignore[arg-type]
        self.server: Program | None = None


class Shares(Machine):
    """The model: the one that is up, and the records that there must be."""

    @initialize(with_dufs=st.booleans())
    def begin(self, with_dufs: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.paths = [self.folder / name for name in ("a", "b")]
        for path in self.paths:
            path.mkdir()
        self.with_dufs, self.clock = with_dufs, Clock()
        self.records: list[tuple[Any, dict[str, Any]]] = []
        self.expected: list[tuple[Any, dict[str, Any]]] = []
        self.results: dict[str, bool] = {}
        self.second_answers = 0
        self.answered: dict[str, bool] = {}
        self.up: Asked | None = None
        self.asked: list[Asked] = []
        self.all: list[Asked] = []
        self.programs: list[Program] = []
        self.tickets = 0
        Program.made = self.programs
        self.fetcher, self.mailbox = Mailbox("Fetcher", 1000), Xfer.mailbox_for("Xfer")
        self.stand = Stand(self.clock, XferSettings(server="dufs" if with_dufs else "embedded"))
        self.sharing = Sharing(
            owner=Owner(self.stand, self.clock, port=PORT, record=lambda sid, args: self.records.append((sid, args))),
            stand=self.stand,
            origin="http://127.0.0.1:4801",
            public=lambda: None,
            clock=self.clock,
            finish=self.finish,
            me=Ref(self.mailbox),
            fetcher=Ref(self.fetcher),
        )
        self.restarts()

    def finish(self, ticket: Any, result: Any) -> None:
        self.second_answers += ticket.call_id in self.results
        self.results[ticket.call_id] = result.is_error

    def ticket(self, session: Any) -> Ticket:
        self.tickets += 1
        return Ticket(self.tickets, session)

    # --- the model ------------------------------------------------------------------------------------------------

    def ends(self, sid: Any, action: str, **more: Any) -> None:
        assert self.up is not None
        port = PORT if self.up.server is None else DUFS_PORT
        facts = {"action": action, "path": str(self.up.opened.share.path), "port": port, "route": "/xfer/"}
        self.expected.append((sid, facts | more))
        self.up.stands, self.up = "over", None

    def expires(self) -> None:
        if self.up is not None and self.clock.seconds >= self.up.opened.deadline:
            self.ends(None, "close", why="ttl expired")

    def is_up(self, asked: Asked) -> None:
        if asked.cancelled:
            asked.stands = "over"
            return
        self.expires()
        sid = asked.ticket.session_id
        if self.up is not None:
            self.ends(sid, "close", why="replaced")
        self.up, asked.stands = asked, "up"
        port = PORT if asked.server is None else DUFS_PORT
        facts = {"action": "share", "path": str(asked.opened.share.path), "port": port, "route": "/xfer/"}
        self.expected.append((sid, facts | {"ttlSeconds": asked.opened.ttl_s}))
        self.answered[asked.ticket.call_id] = False

    # --- what can happen ------------------------------------------------------------------------------------------

    @step(
        into="asked",
        weight=3,
        path=st.integers(0, 1),
        ttl_s=st.sampled_from([10, 100]),
        session=SESSIONS,
        gone=st.sampled_from([False] * 3 + [True]),
    )
    def is_asked_for(self, path: int, ttl_s: int, session: Any, gone: bool) -> Any:
        asked = Asked(self.ticket(session), open_share(self.paths[path], ttl_s, self.clock))
        asked.cancelled = gone
        self.all.append(asked)
        if not self.with_dufs:
            self.is_up(asked)
        self.actor.handle_one(asked.serve)
        return asked

    @step(weight=4, found=st.sampled_from([False] + [True] * 3))
    def the_program_is_fetched(self, found: bool) -> None:
        if self.fetcher.empty():
            return
        fetch = self.fetcher.get_nowait()
        told = fetch.message(Found(Path("/bin/dufs"), "configured") if found else CannotObtain("no dufs"))
        asked = next(each for each in self.all if each.serve is told.serve)
        self.actor.handle_one(told)
        if found:
            asked.server, asked.stands = self.programs[-1], "starting"
        else:
            asked.stands = "over"
            self.answered[asked.ticket.call_id] = True

    @step(weight=4, asked=among("asked"))
    def the_program_listens(self, asked: Asked) -> None:
        if asked.stands == "starting":
            self.is_up(asked)
            self.actor.handle_one(Told(asked.serve, Up()))

    @step(weight=2, asked=among("asked"))
    def the_program_ends(self, asked: Asked) -> None:
        """It tells so in any case: also after it was closed."""
        if asked.server is None:
            return
        if asked.stands == "starting":
            asked.stands = "over"
            asked.server.closed = True
            self.answered[asked.ticket.call_id] = True
        self.actor.handle_one(Told(asked.serve, Down("it ended")))

    @step(asked=among("asked"))
    def its_caller_leaves(self, asked: Asked) -> None:
        asked.cancelled = True

    @step(session=SESSIONS)
    def a_caller_stops_it(self, session: Any) -> None:
        self.expires()
        if self.up is not None:
            self.ends(session, "stop")
        ticket = self.ticket(session)
        self.actor.handle_one(StopSharing(ticket))  # type: ignore[arg-type]
        self.answered[ticket.call_id] = False

    @step()
    def the_operator_stops_it(self) -> None:
        self.expires()
        there = self.up is not None
        if there:
            self.ends(None, "stop")
        assert self.actor.receive(StopForOperator()) is there

    @step()
    def somebody_looks(self) -> None:
        ticket = self.ticket(None)
        self.actor.handle_one(Status(ticket))  # type: ignore[arg-type]
        self.answered[ticket.call_id] = False

    @step(seconds=st.sampled_from([1.0, 9.0, 10.0, 100.0]))
    def time_goes_on(self, seconds: float) -> None:
        self.clock.seconds += seconds

    @step()
    def it_is_tended(self) -> None:
        xfer.tend(Ref(self.mailbox), self.stand)
        assert self.mailbox.empty() is (self.up is None or self.clock.seconds < self.up.opened.deadline)
        while not self.mailbox.empty():
            message = self.mailbox.get_nowait()
            assert isinstance(message, Expire)
            self.expires()
            self.actor.handle_one(message)

    @step()
    def restarts(self) -> None:
        self.actor = Xfer(self.mailbox, sharing=self.sharing)

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def the_records_are_those_of_the_model(self) -> None:
        if hasattr(self, "actor"):
            assert self.records == self.expected

    @invariant()
    def it_is_seen_until_its_time_is_over(self) -> None:
        if hasattr(self, "actor"):
            alive = self.up is not None and self.clock.seconds < self.up.opened.deadline
            seen = self.stand.standing()
            assert (None if seen is None else seen.opened) is (self.up.opened if alive and self.up else None)
            assert self.stand.due() is (self.up is not None and not alive)

    @invariant()
    def what_is_over_is_closed_and_nothing_else(self) -> None:
        for asked in getattr(self, "all", ()):
            assert asked.opened.share.closed is (asked.stands == "over"), asked.stands
            if asked.server is not None:
                assert asked.server.closed is (asked.stands == "over")

    @invariant()
    def each_call_is_answered_as_the_model_says(self) -> None:
        if hasattr(self, "results"):
            assert self.results == self.answered
            assert self.second_answers == 0

    def teardown(self) -> None:
        if not hasattr(self, "actor"):
            return
        self.expires()
        if self.up is not None:
            self.ends(None, "close", why="bridge stopped")
        self.actor.on_stop()
        self.the_records_are_those_of_the_model()
        assert all(program.closed for program in self.programs)
        for asked in self.all:
            asked.opened.share.close()
        shutil.rmtree(self.folder)


def test_shares_follow_their_model(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Issue 5, item 4; row X09: exactly one record of each end, with one reason, and nothing left open or running."""
    caplog.set_level("CRITICAL")
    monkeypatch.setattr(dufs, "Dufs", Program)
    explore(Shares)
