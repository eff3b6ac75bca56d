"""Tools that ask a model: where their caller has none, one of the host's answers, as a call of its own."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from agents import SAMPLING, TOOL, needs_agent, switch
from asker import Asker
from harness import until
from sink_wires import USED, Hang, Refuse, Say

from a2mcp.inference.tripwire import SENTINEL

if TYPE_CHECKING:
    from agents import Agents

pytestmark = needs_agent


@pytest.fixture
def agents(agents: Agents) -> Agents:
    """The daemon, with a provider that knows the capital."""
    agents.script(Say("Paris"))
    return agents


def test_a_modern_caller_without_a_model_is_answered_by_the_hosts(agents: Agents) -> None:
    """Source: issue, point 2: sampling requests of callers' tools use the same models."""
    result = agents.caller(can={}).call(TOOL)

    assert result["content"][0]["text"] == "The model says: Paris"
    assert agents.sink.count == 1
    assert "capital of France" in agents.sink.asked[0].said


def test_a_caller_with_a_model_is_asked_itself(agents: Agents) -> None:
    """Source: issue, point 2: where the caller cannot sample itself."""
    result = agents.caller(can={"sampling": {}}).call(TOOL)

    assert result["resultType"] == "input_required"
    assert agents.sink.count == 0


def test_a_caller_of_the_bridge_is_answered_by_the_hosts(agents: Agents) -> None:
    """Ours: the bridge has no way to ask its callers."""
    answer = agents.daemon.session().call("test_sampling", prompt="Say Paris.")

    assert "Paris" in answer.text
    assert agents.sink.count == 1


@pytest.mark.parametrize(("code", "asked"), [(-32601, 1), (-32600, 1), (-1, 0)], ids=["unknown", "unsupported", "no"])
def test_a_legacy_caller_that_asks_no_model_is_answered_by_the_hosts(agents: Agents, code: int, asked: int) -> None:
    """Ours: only the client's answer tells that it cannot. One whose user says no is not gone around."""
    caller = Asker(agents.daemon)
    with caller.stream("tools/call", {"name": "test_sampling", "arguments": {"prompt": "Say Paris."}}) as stream:
        caller.reply(stream.next()["id"], {"error": {"code": code, "message": "I do not"}})
        result = stream.rest()[-1]["result"]

    assert result["isError"] == (not asked)
    assert agents.sink.count == asked


def test_what_a_tool_asks_is_on_record_and_costs(agents: Agents) -> None:
    """Source: issue, point 6: requests and tokens in all."""
    before = agents.call("agent_status")["structuredContent"]["total"]
    agents.caller(can={}).call(TOOL)
    after = agents.call("agent_status")["structuredContent"]["total"]

    assert after["requests"] == before["requests"] + 1
    assert after["inputTokens"] == before["inputTokens"] + USED["input"]
    records = [record for record in agents.daemon.audit() if record["tool"] == SAMPLING]
    assert [record["phase"] for record in records][-2:] == ["start", "done"]
    cost = agents.records_of("agent")[-1]["args"]
    tokens = {"input_tokens": USED["input"], "output_tokens": USED["output"]}
    assert cost == {"action": "sampling", "requests": 1, **tokens}


def test_a_provider_that_fails_is_the_tools_answer(agents: Agents) -> None:
    """Ours: the tool ends with the reason, and no question is left open."""
    agents.script(Refuse(500, (("retry-after", "0"),)))

    result = agents.caller(can={}).call(TOOL)

    assert result["isError"]
    assert "refused with 500" in result["content"][0]["text"]


def test_what_a_tool_asks_is_refused_while_the_host_asks_nobody(agents: Agents) -> None:
    """Source: issue, point 4: zero requests from sampling."""
    before = agents.sink.connections, agents.sink.count
    switch(agents, enabled=False)
    refused = agents.caller(can={}).call(TOOL)

    assert refused["isError"]
    assert SENTINEL in refused["content"][0]["text"]
    assert (agents.sink.connections, agents.sink.count) == before
    switch(agents, enabled=True)
    assert agents.caller(can={}).call(TOOL)["content"][0]["text"] == "The model says: Paris"


def test_a_caller_that_leaves_takes_its_question_along(agents: Agents) -> None:
    """Ours: nothing goes on that nobody waits for."""
    hang = Hang()
    agents.script(hang)
    leaver = Asker(agents.daemon, can={})
    leaving = agents.pool.submit(lambda: leaver.call(TOOL))
    until(lambda: agents.sink.count == 1, what="the request")
    leaver._client._connection.sock.shutdown(socket.SHUT_RDWR)

    until(lambda: agents.records_of(SAMPLING)[-1].get("ended") == "cancelled", what="its end")
    hang.release()
    assert leaving.exception(30) is not None
