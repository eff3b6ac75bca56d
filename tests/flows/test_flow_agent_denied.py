"""The host's own agent while its inference is denied: it reaches no provider, by none of the ways it has to ask one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from agents import OTHER, hosting, needs_agent
from harness import until
from sink_wires import Hang, Say, use

from a2mcp.inference.tripwire import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agents import Agents

pytestmark = needs_agent


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    """A daemon whose agent is woken by jobs that end, and tries again what fails."""
    with hosting(tmp_path / "home", settings={"agent": {"wake": True, "retries": 3}}) as started:
        yield started


def switch(agents: Agents, *, enabled: bool) -> dict[str, Any]:
    answer = agents.daemon.client().post({"enabled": enabled}, "/host-llm")
    assert answer.status == 200, answer.body
    return dict(answer.json)


def counted(agents: Agents) -> tuple[int, int]:
    return agents.sink.connections, agents.sink.count


def end_a_job(agents: Agents, word: str) -> dict[str, Any]:
    """Have a command outlive its call and end; the Main session once it has been told so."""
    agents.daemon.session().call("bash", command=f"sleep 0.2; echo {word}", wait=0)
    until(lambda: any(word in str(entry) for entry in agents.entries("main")), what="the Main session is told")
    return dict(agents.call("agent_read", session="main")["structuredContent"]["session"])


@pytest.mark.parametrize("model", ["openai/m", OTHER])
def test_a_denied_run_is_refused_once_and_reaches_nobody(agents: Agents, model: str) -> None:
    """Source: issue, "What it must show": armed, zero requests from the agent; seed: one attempt, no retry."""
    assert not agents.run(model=model)["isError"]
    before = counted(agents)

    switch(agents, enabled=False)
    result = agents.run(model=model)
    assert result["isError"]
    assert SENTINEL in result["content"][0]["text"]
    assert counted(agents) == before
    assert switch(agents, enabled=False)["denied"] == 1

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
    switch(agents, enabled=False)
    main = end_a_job(agents, "denied-job")
    assert (main["state"], main["turns"]) == ("idle", 0)
    assert counted(agents) == (0, 0)
    assert switch(agents, enabled=False)["denied"] == 0

    switch(agents, enabled=True)
    end_a_job(agents, "allowed-job")
    until(lambda: agents.sink.count, what="the Main session is woken")


def test_a_daemon_that_starts_denied_has_an_agent_that_is_refused(tmp_path: Path) -> None:
    """Source: seed: a session is made while deny is in place, and its models are denied, too."""
    with hosting(tmp_path / "home", settings={"host_llm": "deny"}) as agents:
        result = agents.run()
        assert (result["isError"], SENTINEL in result["content"][0]["text"]) == (True, True)
        assert counted(agents) == (0, 0)
        switch(agents, enabled=True)
        assert not agents.run()["isError"]
