"""What the agent does, and what tools ask of models, passes the gate as anybody's call does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from agents import SAMPLING, TOOL, hosting, needs_agent
from harness import until
from sink_wires import Say, use
from standard_client import fixture_argv
from watchers import approvals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agents import Agents

pytestmark = needs_agent


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """One daemon that asks before anything is written, and before a model is asked for a tool."""
    rules = {"agent_run": "allow", TOOL: "allow", SAMPLING: "prompt"}
    settings = {"approval": {"mode": "write", "tools": rules}}
    with hosting(tmp_path_factory.mktemp("home"), settings=settings, argv=fixture_argv()) as agents:
        yield agents


@pytest.fixture
def agents(agents: Agents) -> Agents:
    """The daemon, with a provider that knows the capital."""
    agents.script(Say("Paris"))
    return agents


def test_a_call_of_the_agent_waits_for_the_operator(agents: Agents, tmp_path: Path) -> None:
    """Source: issue, point 2: the same gate; the operator's word decides, and the model is told it."""
    agents.script(use("write", path=str(tmp_path / "new.txt"), content="x"), Say("Tried."))
    session = agents.run(wait=0)["structuredContent"]["session"]
    (waiting,) = until(lambda: approvals(agents.daemon), what="an approval", seconds=60)
    assert (waiting["tool"], waiting["client"], waiting["session_id"]) == ("write", "agent", session)
    assert not (tmp_path / "new.txt").exists()
    assert agents.sink.count == 1

    agents.daemon.cli("deny", waiting["id"], "--reason", "not there")
    agents.call("agent_wait", session=session)

    assert "not there" in agents.sink.asked[1].said
    assert not (tmp_path / "new.txt").exists()


def test_a_question_to_a_model_waits_for_the_operator(agents: Agents) -> None:
    """Source: issue, point 2: the same gate."""
    answer = agents.pool.submit(agents.caller(can={}).call, TOOL)
    (waiting,) = until(lambda: approvals(agents.daemon), what="an approval")
    assert (waiting["tool"], agents.sink.count) == (SAMPLING, 0)

    agents.daemon.cli("approve", waiting["id"])

    assert answer.result(30)["content"][0]["text"] == "The model says: Paris"


def test_a_rule_denies_what_tools_ask_of_models(tmp_path: Path) -> None:
    """Source: issue, point 2: the same gate."""
    rules = {"approval": {"tools": {SAMPLING: "deny"}}}
    with hosting(tmp_path, settings=rules, argv=fixture_argv()) as agents:
        result = agents.caller(can={}).call(TOOL)

        assert result["isError"]
        assert "settings deny" in result["content"][0]["text"]
        assert agents.sink.connections == 0
