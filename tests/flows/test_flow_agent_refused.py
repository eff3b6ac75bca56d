"""What a refused turn costs and leaves, and that what tools ask of models is refused as well."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from agents import hosting, needs_agent
from harness import until
from sink_wires import Say, use
from standard_client import fixture_argv

from a2mcp.inference.tripwire import SENTINEL

if TYPE_CHECKING:
    from agents import Agents

pytestmark = needs_agent


def switch(agents: Agents, *, enabled: bool) -> dict[str, object]:
    """Turn the switch, as a caller does."""
    answer = agents.daemon.client().post({"enabled": enabled}, "/host-llm")
    assert answer.status == 200, answer.body
    return dict(answer.json)


def threads(agents: Agents) -> int:
    """How many threads the daemon has."""
    return len(list(Path(f"/proc/{agents.daemon.process.pid}/task").iterdir()))


def test_a_denied_turn_is_refused_without_a_request_a_thread_or_a_key(tmp_path: Path) -> None:
    """Source: issue, point 4: one attempt, the sentinel, no credential command; "costs no thread and under 5 ms"."""
    key = f"!touch {tmp_path}/asked-for-the-key; echo k"
    with hosting(tmp_path / "home", key=key) as agents:
        denied = int(str(switch(agents, enabled=False)["denied"]))
        caller = agents.caller()
        first = caller.call("agent_run", prompt="Go.")
        before, times = threads(agents), []
        for _ in range(20):
            begun = time.monotonic()
            refused = caller.call("agent_run", prompt="Go.")
            times.append(time.monotonic() - begun)

        assert refused["isError"] == first["isError"] is True
        assert SENTINEL in refused["content"][0]["text"]
        assert refused["structuredContent"]["outcome"] == "refused"
        assert threads(agents) <= before
        assert min(times) < 0.005
        assert agents.sink.connections == 0
        assert not (tmp_path / "asked-for-the-key").exists()
        assert "pydantic_core" not in Path(f"/proc/{agents.daemon.process.pid}/maps").read_text()
        assert switch(agents, enabled=True)["denied"] == denied + 21


def test_a_denied_turn_is_a_turn_and_the_session_goes_on_afterwards(tmp_path: Path) -> None:
    """Source: seed, "what it gives up": the session keeps the error; restored, everything works as before."""
    with hosting(tmp_path, Say("Before."), Say("After.")) as agents:
        session = agents.run()["structuredContent"]["session"]
        switch(agents, enabled=False)
        assert agents.call("agent_continue", session=session, prompt="Now?")["isError"]
        switch(agents, enabled=True)

        assert agents.text("agent_continue", session=session, prompt="And now?").startswith("After.")
        assert agents.sink.count == 2
        ends = [entry["text"] for entry in agents.entries(session) if entry["kind"] == "end"]
        assert ends == ["done", f"refused: {SENTINEL}", "done"]


def test_a_turn_that_uses_a_tool_meanwhile_makes_no_further_request(tmp_path: Path) -> None:
    """Source: issue, point 4: each request is let through anew."""
    command = f"touch {tmp_path}/runs; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    with hosting(tmp_path / "home", use("bash", command=command), Say("Never.")) as agents:
        session = agents.run(wait=0)["structuredContent"]["session"]
        until((tmp_path / "runs").exists, what="the command")
        connections = agents.sink.connections
        switch(agents, enabled=False)
        (tmp_path / "go").touch()

        facts = agents.call("agent_wait", session=session)["structuredContent"]
        assert (facts["outcome"], facts["answer"]) == ("refused", SENTINEL)
        assert (agents.sink.count, agents.sink.connections) == (1, connections)


def test_what_a_tool_asks_of_a_model_is_refused_too(tmp_path: Path) -> None:
    """Source: issue, point 4: zero requests from sampling."""
    with hosting(tmp_path, Say("Paris"), argv=fixture_argv()) as agents:
        tool = "test_input_required_result_sampling"
        switch(agents, enabled=False)
        refused = agents.caller(can={}).call(tool)
        assert refused["isError"]
        assert SENTINEL in refused["content"][0]["text"]
        assert agents.sink.connections == 0

        switch(agents, enabled=True)
        assert agents.caller(can={}).call(tool)["content"][0]["text"] == "The model says: Paris"
