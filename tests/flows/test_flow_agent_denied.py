"""The host's own agent while its inference is denied: it reaches no provider, by none of the ways it has to ask one.

And what a refused turn costs and leaves.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agents import OTHER, hosting, needs_agent, switch
from harness import until
from sink_wires import Hang, Say, use

from a2mcp.inference.tripwire import SENTINEL

if TYPE_CHECKING:
    from agents import Agents

pytestmark = needs_agent


def counted(agents: Agents) -> tuple[int, int]:
    return agents.sink.connections, agents.sink.count


def main(agents: Agents) -> dict[str, Any]:
    """The Main session."""
    return dict(agents.call("agent_read", session="main")["structuredContent"]["session"])


def end_a_job(agents: Agents, word: str) -> None:
    """Have a command outlive its call and end, and wait until the Main session has been told so."""
    agents.daemon.session().call("bash", command=f"sleep 0.2; echo {word}", wait=0)
    until(lambda: any(word in str(entry) for entry in agents.entries("main")), what="the Main session is told")


@pytest.mark.parametrize("model", ["openai/m", OTHER])
def test_a_denied_run_is_refused_once_and_reaches_nobody(agents: Agents, model: str) -> None:
    """Source: issue, "What it must show": armed, zero requests from the agent; seed: one attempt, no retry."""
    assert not agents.run(model=model)["isError"]
    before = counted(agents)

    denied = switch(agents, enabled=False)["denied"]
    result = agents.run(model=model)
    assert result["isError"]
    assert SENTINEL in result["content"][0]["text"]
    assert counted(agents) == before
    assert switch(agents, enabled=False)["denied"] == denied + 1

    switch(agents, enabled=True)
    assert not agents.run(model=model)["isError"]
    assert agents.sink.count == before[1] + 1


def test_a_turn_that_is_under_way_asks_nobody_any_more(agents: Agents) -> None:
    """Ours: the switch is turned for what runs, too: the next request of a turn is refused, and an open answer cut."""
    hang = Hang(use("glob", pattern="*"))
    agents.script(hang, Say("Never said."))
    answer = agents.later("agent_run", prompt="Go.")
    until(lambda: agents.sink.count == 1, what="the first request is under way")

    switch(agents, enabled=False)
    hang.release()
    result = answer.result(60)
    assert result["isError"]
    assert agents.sink.count == 1
    assert "Never said." not in result["content"][0]["text"]


def test_a_job_that_ends_wakes_nobody_while_it_is_denied(agents: Agents) -> None:
    """Source: issue, item 4: the noise layer turns off wake-ups; restored, they are back."""
    before, turns = counted(agents), main(agents)["turns"]
    denied = switch(agents, enabled=False)["denied"]
    end_a_job(agents, "denied-job")
    assert (main(agents)["state"], main(agents)["turns"]) == ("idle", turns)
    assert counted(agents) == before
    assert switch(agents, enabled=False)["denied"] == denied

    switch(agents, enabled=True)
    end_a_job(agents, "allowed-job")
    until(lambda: agents.sink.count, what="the Main session is woken")


def test_a_denied_turn_is_a_turn_and_the_session_goes_on_afterwards(agents: Agents) -> None:
    """Source: seed, "what it gives up": the session keeps the error; restored, everything works as before."""
    agents.script(Say("Before."), Say("After."))
    session = agents.run()["structuredContent"]["session"]
    switch(agents, enabled=False)
    assert agents.call("agent_continue", session=session, prompt="Now?")["isError"]
    switch(agents, enabled=True)

    assert agents.text("agent_continue", session=session, prompt="And now?").startswith("After.")
    assert agents.sink.count == 2
    ends = [entry["text"] for entry in agents.entries(session) if entry["kind"] == "end"]
    assert ends == ["done", f"refused: {SENTINEL}", "done"]


def test_a_turn_that_uses_a_tool_meanwhile_makes_no_further_request(agents: Agents, tmp_path: Path) -> None:
    """Source: issue, point 4: each request is let through anew."""
    command = f"touch {tmp_path}/runs; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    agents.script(use("bash", command=command), Say("Never."))
    session = agents.run(wait=0)["structuredContent"]["session"]
    until((tmp_path / "runs").exists, what="the command")
    before = counted(agents)
    switch(agents, enabled=False)
    (tmp_path / "go").touch()

    facts = agents.call("agent_wait", session=session)["structuredContent"]
    assert (facts["outcome"], facts["answer"]) == ("refused", SENTINEL)
    assert counted(agents) == before
    assert agents.sink.count == 1


def threads(agents: Agents) -> int:
    """How many threads the daemon has."""
    return len(list(Path(f"/proc/{agents.daemon.process.pid}/task").iterdir()))


def processor_s(agents: Agents) -> float:
    """How long the daemon has had a processor so far: its own clock, whose number is that of ``clock_getcpuclockid``."""
    return time.clock_gettime(~agents.daemon.process.pid << 3 | 2)


def test_a_denied_turn_is_refused_without_a_request_a_thread_or_a_key(tmp_path: Path) -> None:
    """Source: issue, point 4: one attempt, the sentinel, no credential command; "costs no thread and under 5 ms"."""
    key = f"!touch {tmp_path}/asked-for-the-key; echo k"
    with hosting(tmp_path / "home", key=key) as agents:
        denied = switch(agents, enabled=False)["denied"]
        caller = agents.caller()
        first = caller.call("agent_run", prompt="Go.")
        before, spent, waits = threads(agents), [], []
        for _ in range(20):
            begun, had = time.monotonic(), processor_s(agents)
            refused = caller.call("agent_run", prompt="Go.")
            spent.append(processor_s(agents) - had)
            waits.append(time.monotonic() - begun)

        assert refused["isError"] == first["isError"] is True
        assert SENTINEL in refused["content"][0]["text"]
        assert refused["structuredContent"]["outcome"] == "refused"
        assert threads(agents) <= before
        # Of the processor's time: others on the machine make it wait for that. By itself it waits for nothing.
        assert min(spent) < 0.005
        assert min(waits) < 0.05
        assert agents.sink.connections == 0
        assert not (tmp_path / "asked-for-the-key").exists()
        assert "pydantic_core" not in Path(f"/proc/{agents.daemon.process.pid}/maps").read_text()
        assert switch(agents, enabled=True)["denied"] == denied + 21
