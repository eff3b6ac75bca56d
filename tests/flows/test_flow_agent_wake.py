"""The Main session hears of jobs that end, and begins a turn for them only where the operator wants that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import hosting, needs_agent
from harness import running, until
from sink_wires import Hang, Say

if TYPE_CHECKING:
    from pathlib import Path

    from agents import Agents
    from asker import Asker

pytestmark = needs_agent
WAKE = {"agent": {"wake": True}}


def background(caller: Asker, command: str) -> str:
    """Start a job; its id."""
    return str(caller.call("bash", command=command, wait=0)["structuredContent"]["jobId"])


def notices(agents: Agents) -> list[str]:
    """What the Main session was told."""
    return [entry["text"] for entry in agents.entries("main") if entry["kind"] == "notice"]


def test_the_end_of_a_job_is_told_and_costs_nothing_unless_it_is_wanted(tmp_path: Path) -> None:
    """Source: issue, point 3: told; default off."""
    with hosting(tmp_path) as agents:
        job = background(agents.caller(), "exit 3")
        until(lambda: notices(agents), what="the notice")
        (told,) = notices(agents)

        assert told.startswith(f"Job {job} (exit 3) has ended: ")
        assert "3" in told.rpartition(":")[2]
        assert agents.sink.connections == 0
        agents.call("agent_continue", session="main", prompt="What is new?")
        assert job in agents.sink.asked[0].said
        agents.call("agent_continue", session="main", prompt="And now?")
        assert agents.sink.asked[1].said.count(job) == 1, "told once"


def test_the_end_of_a_job_begins_a_turn_where_it_is_wanted(tmp_path: Path) -> None:
    """Source: issue, point 3: with a model and agent.wake."""
    with hosting(tmp_path, Say("I saw it."), settings=WAKE) as agents:
        job = background(agents.caller(), "true")
        until(lambda: agents.sink.count, what="the request")

        assert job in agents.sink.asked[0].said
        assert agents.text("agent_wait", session="main").startswith("I saw it.")
        assert agents.sink.count == 1


def test_jobs_that_end_during_a_turn_are_told_together(tmp_path: Path) -> None:
    """Ours: ten jobs that end at once are no ten turns."""
    hang = Hang()
    with hosting(tmp_path, hang, Say("All seen."), settings=WAKE) as agents:
        caller = agents.caller()
        background(caller, "true")
        until(lambda: agents.sink.count, what="the first turn")
        jobs = [background(caller, "true") for _ in range(10)]
        until(lambda: len(notices(agents)) == 11, what="the notices")
        hang.release()
        agents.call("agent_wait", session="main")

        assert agents.sink.count == 2
        assert all(job in agents.sink.asked[1].said for job in jobs)


def test_a_command_that_its_caller_waits_for_is_no_news(tmp_path: Path) -> None:
    """Ours: only what runs in the background ends unseen."""
    with hosting(tmp_path, settings=WAKE) as agents:
        agents.caller().call("bash", command="true")
        job = background(agents.caller(), "true")
        until(lambda: notices(agents), what="the notice")

        assert [job in notice for notice in notices(agents)] == [True]


def test_without_a_model_nobody_is_told_and_nothing_is_kept(tmp_path: Path) -> None:
    """Ours: a daemon without an agent does not pay for one."""
    settings: dict[str, Any] = {**WAKE}
    with running(tmp_path, settings=settings) as daemon:
        answer = daemon.session().call("bash", command="true", wait=0)
        job = answer.text.split()[1].strip(".,:")
        until(lambda: "exit code 0" in daemon.session().call("jobs", action="list").text, what=f"the end of {job}")

        assert not (tmp_path / "agents.db").exists()
