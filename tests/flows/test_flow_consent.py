"""`approval.ask_caller`: the caller's own user is asked, and the operator where the caller cannot be."""

from __future__ import annotations

import pytest
from asker import Asker
from harness import running, until
from inflight import Later
from watchers import approvals, decide

ASKED = {"approval": {"tools": {"bash": "prompt"}, "ask_caller": True}}
KEY = "a2mcp-approval"
CALL = {"name": "bash", "arguments": {"command": "echo ran"}}


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """A daemon that asks callers about commands, shared by this module."""
    with running(tmp_path_factory.mktemp("asking") / "home", settings=ASKED) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A daemon that asks about everything, and nobody but the operator."""
    settings = {"approval": {"mode": "always-ask"}}
    with running(tmp_path_factory.mktemp("strict") / "home", settings=settings) as daemon:
        yield daemon


def waiting(daemon):
    return until(lambda: approvals(daemon), what="a call that waits")


def decisions(daemon, approval):
    """What the operator has said about a call."""
    said = [record["args"] for record in daemon.audit() if record["tool"] == "operator"]
    return [args["action"] for args in said if args["id"] == approval]


def modern(daemon):
    return Asker(daemon, can={"elicitation": {}})


def answered(action, state):
    return CALL | {"inputResponses": {KEY: {"action": action}}, "requestState": state}


def test_a_modern_caller_is_asked_and_its_yes_runs_the_call(asking):
    """Issue §5: by a retry with the answer, and the operator is not bothered."""
    client = modern(asking)

    first = client.result("tools/call", **CALL)
    question = first["inputRequests"][KEY]
    second = client.result("tools/call", **answered("accept", first["requestState"]))

    assert first["resultType"] == "input_required"
    assert question["method"] == "elicitation/create"
    assert "bash" in question["params"]["message"]
    assert '"echo ran"' in question["params"]["message"]
    assert second["content"][0]["text"].startswith("ran\n")


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_its_no_ends_the_call(asking, action):
    """Issue §5: declined is isError."""
    client = modern(asking)
    state = client.result("tools/call", **CALL)["requestState"]

    result = client.result("tools/call", **answered(action, state))

    assert result["isError"] is True
    assert "did not allow" in result["content"][0]["text"]


def test_a_yes_to_a_question_that_was_not_asked_counts_for_nothing(asking):
    """Ours: nor one about other arguments."""
    client = modern(asking)
    unasked = client.result("tools/call", **CALL, inputResponses={KEY: {"action": "accept"}})
    other = answered("accept", unasked["requestState"]) | {"arguments": {"command": "echo other"}}

    assert unasked["resultType"] == "input_required"
    assert "requestState" in client.error("tools/call", **other)["message"]


@pytest.mark.parametrize(("action", "is_error"), [("accept", False), ("decline", True)])
def test_a_legacy_caller_is_asked_on_the_stream(asking, action, is_error):
    """Issue §5: by a server request on the call's own stream, answered by a POST."""
    client = Asker(asking)
    with client.stream("tools/call", CALL) as stream:
        client.reply(stream.next()["id"], {"result": {"action": action, "content": {}}})

        assert stream.next()["result"]["isError"] is is_error


def test_a_caller_that_has_nobody_to_ask_leaves_it_to_the_operator(asking):
    """Issue §5: a client that cannot be asked falls back to the gate."""
    client = Asker(asking)
    with client.stream("tools/call", CALL) as stream:
        client.reply(stream.next()["id"], {"error": {"code": -32601, "message": "method not found"}})
        (shown,) = waiting(asking)

        decide(asking, shown["id"], approve=True)
        assert stream.next()["result"]["isError"] is False


@pytest.mark.parametrize("kind", ["bridge", "old", "plain", "modern without elicitation"])
def test_a_call_that_cannot_be_asked_about_waits_for_the_operator(asking, kind):
    """Issue §5: the bridge, revisions without questions, clients without streams or without the capability."""
    ask = {
        "bridge": lambda: asking.session().call("bash", command="echo ran").result,
        "old": lambda: Asker(asking, version="2025-03-26").result("tools/call", **CALL),
        "plain": lambda: Asker(asking, Accept="application/json").result("tools/call", **CALL),
        "modern without elicitation": lambda: Asker(asking, can={}).result("tools/call", **CALL),
    }[kind]
    call = Later(ask)
    (shown,) = waiting(asking)

    decide(asking, shown["id"], approve=False)
    assert "The operator denied" in call.result()["content"][0]["text"]
    assert decisions(asking, shown["id"]) == ["deny"]


def test_a_read_that_the_operator_denies_is_an_error(strict):
    """Ours: a result of `resources/read` cannot say no."""
    call = Later(lambda: Asker(strict).error("resources/read", uri="a2mcp://status"))
    (shown,) = waiting(strict)
    decide(strict, shown["id"], approve=False)
    assert (call.result()["code"], "denied" in call.result()["message"]) == (-32000, True)


def test_nobody_but_the_operator_is_asked_by_default(strict):
    """Issue §5: off by default, because the caller is not the operator."""
    call = Later(lambda: modern(strict).result("tools/call", **CALL))
    (shown,) = waiting(strict)
    decide(strict, shown["id"], approve=True)
    assert call.result()["isError"] is False
    assert decisions(strict, shown["id"]) == ["approve"]
