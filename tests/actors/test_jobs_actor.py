"""The jobs actor: commands looked after in its thread, calls completed from it."""

import os
import threading
import time

import pytest
from command_calls import Ticket, text_of

from a2mcp.clock import SystemClock
from a2mcp.tools import bash, jobs
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.result import PENDING
from actors.jobport import Port
from actors.jobs import Jobs, Serve, cancel, counts, records, runs_for, stop_all
from actors.kit import halt, launch
from actors.ref import Ref

DEADLINE_S = 20.0


class Desk:
    """A jobs actor and what came out of it."""

    def __init__(self, home):
        self.home = home
        self.clock = SystemClock()
        self.limits = Limits()
        self.runs = runs_for(home, self.clock, self.limits)
        self.mailbox = Jobs.mailbox_for("jobs")
        self.finished = {}
        self.changed = threading.Condition()
        self.actor = self.launched()
        self.ref = Ref(self.mailbox)

    def launched(self):
        actor = Jobs(self.mailbox, self.runs, self.finish)
        launch(actor)
        return actor

    def finish(self, ticket, result, *, ended=None):
        with self.changed:
            self.finished[ticket.call_id] = result
            self.changed.notify_all()

    def begin(self, tool, **args):
        ticket = Ticket()
        context = Context(
            ticket=ticket,
            cwd=self.home,
            home=self.home,
            limits=self.limits,
            jobs=Port(self.ref, self.runs.room),
            clock=self.clock,
        )
        assert tool.run(tool.params(**args), context) is PENDING
        return ticket

    def result_of(self, ticket):
        with self.changed:
            assert self.changed.wait_for(lambda: ticket.call_id in self.finished, DEADLINE_S)
            return self.finished[ticket.call_id]

    def until(self, condition):
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline
            counts(self.ref)


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    assert halt(desk.actor, timeout=5)
    assert desk.runs.running() == 0


def test_a_command_is_completed_by_the_actor(desk):
    """Ours: no thread waits for it."""
    before = threading.active_count()
    tickets = [desk.begin(bash.TOOL, command=f"echo {n}") for n in range(10)]
    assert threading.active_count() == before
    for n, ticket in enumerate(tickets):
        assert desk.result_of(ticket).structured["stdout"] == f"{n}\n"


def test_a_jobs_call_is_answered_and_a_bad_one_explained(desk):
    """Ours."""
    job = desk.result_of(desk.begin(bash.TOOL, command="echo on; sleep 60", wait=0)).structured["jobId"]
    assert counts(desk.ref).running == 1
    (record,) = records(desk.ref)
    assert (record.id, record.state) == (job, "running")
    stopped = desk.result_of(desk.begin(jobs.TOOL, action="stop", id=job))
    assert stopped.structured["signal"] == "SIGTERM"
    assert counts(desk.ref).running == 0
    refused = desk.result_of(desk.begin(jobs.TOOL, action="wait", id="jnothere22"))
    assert refused.is_error
    assert "There is no job" in text_of(refused)


def test_cancel_ends_the_command_of_a_call(desk):
    """Ours."""
    ticket = desk.begin(bash.TOOL, command="sleep 60")
    cancel(desk.ref, ticket.call_id)
    assert "cancelled" in text_of(desk.result_of(ticket))


def test_stop_all_answers_every_call(desk):
    """Row B08."""
    tickets = [desk.begin(bash.TOOL, command="sleep 60; true") for _ in range(20)]
    stop_all(desk.ref, grace_s=5.0)
    for ticket in tickets:
        assert "daemon is stopping" in text_of(desk.result_of(ticket))
    desk.until(lambda: counts(desk.ref).running == 0)


def test_a_handler_that_breaks_completes_its_call(desk, monkeypatch, caplog):
    """Ours: the rim; the actor goes on."""

    def break_(*_args, **_kwargs):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr("actors.jobs.tool.answer", break_)
        ticket = Ticket()
        desk.ref.tell(Serve(ticket, jobs.JobsParams(action="list")))
        assert text_of(desk.result_of(ticket)) == "internal error"
    assert desk.result_of(desk.begin(bash.TOOL, command="echo on")).structured["stdout"] == "on\n"


def test_a_command_that_cannot_be_looked_after_still_ends_its_call(desk, monkeypatch, caplog):
    """Ours: every path completes its exchange, also that of a fault in the loop."""

    def break_(*_args, **_kwargs):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr("a2mcp.host.capture.Capture.drain", break_)
        result = desk.result_of(desk.begin(bash.TOOL, command="echo on; exec sleep 60"))
    assert result.is_error
    assert "failed to look after the command" in text_of(result)
    assert counts(desk.ref).running == 0


def test_a_replacement_goes_on_with_the_commands(desk, monkeypatch, caplog):
    """Issue §4: a killed actor is replaced; what ran is still looked after."""
    reader = desk.begin(bash.TOOL, command="read -r line; echo got $line", wait=0, stdin="")
    job = desk.result_of(reader).structured["jobId"]

    def die(*_args, **_kwargs):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("actors.jobs.tool.answer", die)
        ticket = Ticket()
        desk.ref.tell(Serve(ticket, jobs.JobsParams(action="list")))
        assert text_of(desk.result_of(ticket)) == "internal error"
        desk.actor.thread.join(DEADLINE_S)
        assert not desk.actor.alive()
    desk.actor = desk.launched()
    desk.begin(jobs.TOOL, action="write", id=job, input="it\n")
    ended = desk.result_of(desk.begin(jobs.TOOL, action="wait", id=job))
    assert ended.structured["stdout"] == "got it\n"


def test_stopping_the_actor_kills_what_is_left(tmp_path):
    """Ours: no orphan when StopAll was not sent."""
    desk = Desk(tmp_path)
    job = desk.result_of(desk.begin(bash.TOOL, command="sleep 68", wait=0))
    pid = records(desk.ref)[0].pid
    assert job.structured["state"] == "running"
    assert halt(desk.actor, timeout=5)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
