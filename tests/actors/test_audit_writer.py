"""The audit writer: groups, order, and that no call pays for what happens to the log."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from living import WAIT_S, Clock, Ear, Poison, Reply, call_of

from a2mcp.audit.journal import Journal
from a2mcp.protocol.response import Response
from a2mcp.tools.result import text
from actors import audit
from actors.audit import AuditWriter, Done
from actors.kit import launch
from actors.ref import Mailbox, Message, Ping, Ref

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Run(Message, frozen=True):
    number: int


class GatedJournal(Journal):
    """A journal whose appends are counted and can be held up."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, clock=Clock(), report=lambda _text: None)
        self.groups: list[int] = []
        self.entered = threading.Event()
        self.go = threading.Event()
        self.go.set()
        self.broken = False

    def append(self, lines: Sequence[bytes]) -> None:
        self.groups.append(len(lines))
        self.entered.set()
        assert self.go.wait(WAIT_S)
        if self.broken:
            raise ValueError("a fault of ours")
        super().append(lines)


class Desk:
    """A writer on a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "a2mcp.log"
        self.journal = GatedJournal(self.path)
        self.mailbox = AuditWriter.mailbox_for("AuditWriter")
        self.ref: Ref[audit.Command] = Ref(self.mailbox)
        self.launch()

    def launch(self) -> AuditWriter:
        self.actor = AuditWriter(self.mailbox, journal=self.journal, clock=Clock())
        launch(self.actor)
        return self.actor

    def settle(self) -> None:
        self.ref.ask(Ping(), timeout=WAIT_S)

    @property
    def phases(self) -> list[tuple[str, str]]:
        lines = [json.loads(line) for line in self.path.read_bytes().splitlines()]
        return [(line["phase"], line["id"]) for line in lines]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def test_a_call_is_recorded_before_it_runs_and_before_it_is_answered(desk: Desk) -> None:
    """Seed, "Audit log": start before the tool, done before the reply."""
    seen: list[tuple[str, list[tuple[str, str]]]] = []

    class Looking(Reply):
        def complete(self, response: Response) -> bool:
            seen.append(("reply", desk.phases))
            return super().complete(response)

    executor = Ear()
    call, reply = call_of("echo", reply=Looking())

    audit.begin(desk.ref, call, then=executor.ref, message=Run(1))
    executor.wait_for(Run)
    assert desk.phases == [("start", call.call_id)]
    assert audit.finish(desk.ref, call, text("ok"))

    assert reply.json["id"] == 1
    assert seen == [("reply", [("start", call.call_id), ("done", call.call_id)])]


def test_what_waits_is_written_in_one_go(desk: Desk) -> None:
    """Issue, "Audit": records get cheaper under load."""
    executor = Ear()
    desk.journal.go.clear()
    first, _ = call_of("echo")
    audit.begin(desk.ref, first, then=executor.ref, message=Run(0))
    assert desk.journal.entered.wait(WAIT_S)
    for number in range(1, 201):
        audit.begin(desk.ref, call_of("echo")[0], then=executor.ref, message=Run(number))
    desk.journal.go.set()

    assert [run.number for run in executor.wait_for(Run, 201)] == list(range(201))
    assert desk.journal.groups == [1, 200]
    assert len(desk.phases) == 201


def test_a_log_that_cannot_be_written_costs_no_call(desk: Desk) -> None:
    """Seed, "Audit log": a write failure never fails the call; and it is counted, and mends itself."""
    desk.path.mkdir()
    executor = Ear()
    call, reply = call_of("echo")
    audit.begin(desk.ref, call, then=executor.ref, message=Run(1))
    executor.wait_for(Run)
    audit.finish(desk.ref, call, text("done all the same"))

    assert reply.text == "done all the same"
    assert audit.counts(desk.ref).failures == 2
    desk.path.rmdir()
    audit.record(desk.ref, "share", None, {"path": "x"})
    assert audit.counts(desk.ref).written == 1


def test_a_journal_that_breaks_costs_no_call(desk: Desk) -> None:
    """Ours: not even a fault in the journal itself keeps a result back."""
    desk.journal.broken = True
    call, reply = call_of("echo")
    audit.finish(desk.ref, call, text("kept"))

    assert reply.text == "kept"
    assert desk.actor.alive()


def test_a_call_that_nobody_can_run_gets_its_done_and_an_answer(desk: Desk) -> None:
    """Issue, "Actors": a full mailbox refuses; who has a start gets a done."""
    full: Ref[Any] = Ref(Mailbox("Executor", 0))
    call, reply = call_of("echo")

    audit.begin(desk.ref, call, then=full, message=Run(1))

    assert reply.is_error
    assert "Executor is busy" in reply.text
    assert desk.phases == [("start", call.call_id), ("done", call.call_id)]


def test_a_call_is_ended_by_the_first_who_claims_it(desk: Desk) -> None:
    """U12: exactly one done or none, never two."""
    call, reply = call_of("echo")
    wins: list[bool] = []
    barrier = threading.Barrier(8)

    def end(number: int) -> None:
        barrier.wait(WAIT_S)
        wins.append(audit.finish(desk.ref, call, text(str(number))))

    threads = [threading.Thread(target=end, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    desk.settle()

    assert wins.count(True) == 1
    assert reply.times == 1
    assert len(desk.phases) == 1


def test_a_dying_writer_writes_nothing_twice_and_keeps_no_answer_back(desk: Desk) -> None:
    """U12: a writer that is killed in the middle of a group; its replacement goes on."""
    desk.journal.go.clear()
    audit.record(desk.ref, "share", None, {})
    assert desk.journal.entered.wait(WAIT_S)
    executor = Ear()
    (first, _), (second, reply) = call_of("echo"), call_of("echo")
    audit.begin(desk.ref, first, then=executor.ref, message=Run(1))
    desk.mailbox.put(Poison())
    audit.finish(desk.ref, second, text("behind the killer"))
    dying = desk.actor
    desk.journal.go.set()

    assert reply.text == "behind the killer"
    dying.thread.join(WAIT_S)
    assert not dying.alive()
    desk.launch()
    desk.settle()
    assert desk.phases[1:] == [("start", first.call_id), ("done", second.call_id)]
    assert [run.number for run in executor.heard()] == [1]


def test_who_settles_goes_on_when_what_was_recorded_is_in_the_log(desk: Desk) -> None:
    """Ours: what the operator did is in the log when that is answered; the disk decides when."""
    desk.journal.go.clear()
    audit.record(desk.ref, "operator", None, {"action": "cancel"})
    seen: list[int] = []

    def settle() -> None:
        audit.settle(desk.ref)
        seen.append(len(desk.phases))

    settling = threading.Thread(target=settle)
    settling.start()
    assert desk.journal.entered.wait(WAIT_S)
    assert settling.is_alive()
    desk.journal.go.set()
    settling.join(WAIT_S)

    assert seen == [1]


def test_a_response_is_sent_even_when_its_record_cannot_be_made(desk: Desk) -> None:
    """Seed, "Audit log": the log never fails a call."""
    call, reply = call_of("echo")
    broken = msgspec.structs.replace(call, summary=None)

    desk.ref.tell(Done(broken, is_error=False, response=Response(200, b'{"sent":true}')))

    assert reply.json == {"sent": True}


def test_a_reply_that_kills_the_writer_is_the_only_one_that_is_lost(desk: Desk) -> None:
    """B14: SystemExit out of whatever delivers a response."""

    class Deadly(Reply):
        def complete(self, response: Response) -> bool:
            raise SystemExit

    call, reply = call_of("echo")
    deadly, _ = call_of("echo", reply=Deadly())
    dying = desk.actor
    died = threading.Event()
    dying.on_death = lambda _cause: died.set()
    audit.finish(desk.ref, deadly, text("x"))
    assert died.wait(WAIT_S)
    desk.launch()
    audit.finish(desk.ref, call, text("y"))

    assert reply.text == "y"
