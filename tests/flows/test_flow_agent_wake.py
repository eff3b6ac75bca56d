"""The Main session hears of jobs that end, and begins a turn for them only where the operator wants that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents import background, needs_agent, notices
from harness import until
from sink_wires import Hang, Say

if TYPE_CHECKING:
    from agents import Agents
    from harness import Daemon

pytestmark = needs_agent


def test_the_end_of_a_job_begins_a_turn_where_it_is_wanted(agents: Agents) -> None:
    """Source: issue, point 3: with a model and agent.wake."""
    agents.script(Say("I saw it."))
    job = background(agents.caller(), "true")
    until(lambda: agents.sink.count, what="the request")

    assert job in agents.sink.asked[0].said
    assert agents.text("agent_wait", session="main").startswith("I saw it.")
    assert agents.sink.count == 1


def test_jobs_that_end_during_a_turn_are_told_together(agents: Agents) -> None:
    """Ours: ten jobs that end at once are no ten turns."""
    hang, told = Hang(), len(notices(agents))
    agents.script(hang, Say("All seen."))
    caller = agents.caller()
    background(caller, "true")
    until(lambda: agents.sink.count, what="the first turn")
    jobs = [background(caller, "true") for _ in range(10)]
    until(lambda: len(notices(agents)) == told + 11, what="the notices")
    hang.release()
    agents.call("agent_wait", session="main")

    assert agents.sink.count == 2
    assert all(job in agents.sink.asked[1].said for job in jobs)


def test_a_command_that_its_caller_waits_for_is_no_news(agents: Agents) -> None:
    """Ours: only what runs in the background ends unseen."""
    told = len(notices(agents))
    agents.caller().call("bash", command="true")
    job = background(agents.caller(), "true")
    until(lambda: len(notices(agents)) > told, what="the notice")

    assert [job in notice for notice in notices(agents)[told:]] == [True]
    until(lambda: agents.sink.count, what="the turn that it begins")


def test_without_a_model_nobody_is_told_and_nothing_is_kept(without_model: Daemon) -> None:
    """Ours: a daemon without an agent does not pay for one."""
    client = without_model.session()
    job = client.call("bash", command="true", wait=0).text.split()[1].strip(".,:")
    until(lambda: "exit code 0" in client.call("jobs", action="list").text, what=f"the end of {job}")

    assert not (without_model.home / "agents.db").exists()
