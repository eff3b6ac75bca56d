"""Tools that ask their caller: on modern by a result that wants the call again, on legacy on the call's own stream."""

from __future__ import annotations

import base64
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from harness import running, until
from standard_client import META, Standard, fixture_argv, legacy, modern

if TYPE_CHECKING:
    from harness import Answer, Daemon
    from standard_client import Stream

USER = {"elicitation": {}}
MODEL = {"sampling": {}}
ALL = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
ASK = "test_input_required_result_"
JANE = {"action": "accept", "content": {"name": "Jane"}}
PARIS = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}


def ask(mcp: Standard, tool: str, can: dict[str, Any], *, request_id: Any = 1, **params: Any) -> Answer:
    wanted = {"name": ASK + tool, "arguments": {}} | params
    return mcp.modern("tools/call", wanted, can=can, request_id=request_id)


def retry(mcp: Standard, tool: str, can: dict[str, Any], before: Answer, answers: Any, **params: Any) -> Answer:
    more = {"inputResponses": answers, "requestState": before.result["requestState"]} | params
    return ask(mcp, tool, can, request_id=2, **more)


# --- modern ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "question", "answer", "said"),
    [
        ("elicitation", ("user_name", "elicitation/create"), JANE, "Hello, Jane!"),
        ("sampling", ("capital_question", "sampling/createMessage"), PARIS, "The model says: Paris"),
        ("list_roots", ("client_roots", "roots/list"), {"roots": []}, "Your roots: []"),
        ("request_state", ("confirm", "elicitation/create"), {"action": "accept"}, "state-ok"),
    ],
)
def test_a_tool_asks_by_a_result_and_goes_on_with_the_answer(
    mcp: Standard, tool: str, question: tuple[str, str], answer: Any, said: str
) -> None:
    """Source: specification, multi-round-trip requests; the suite's input-required-result-basic-*."""
    key, method = question
    can = {method.partition("/")[0]: {}}
    first = ask(mcp, tool, can)

    assert first.result["resultType"] == "input_required"
    assert first.result["_meta"][META + "serverInfo"]["name"] == "a2mcp"
    assert not {"content", "ttlMs", "cacheScope"} & first.result.keys()
    assert first.result["inputRequests"][key]["method"] == method
    second = retry(mcp, tool, can, first, {key: answer})
    assert second.result["resultType"] == "complete"
    assert second.text == said


def test_several_things_are_asked_at_once_and_only_the_missing_again(mcp: Standard) -> None:
    """Source: specification: missing answers are asked for again; unknown keys are ignored."""
    first = ask(mcp, "multiple_inputs", ALL)
    assert first.result["inputRequests"].keys() == {"user_name", "greeting", "client_roots"}

    second = retry(mcp, "multiple_inputs", ALL, first, {"user_name": JANE, "greeting": PARIS, "more": 1})
    assert second.result["inputRequests"].keys() == {"client_roots"}

    third = retry(mcp, "multiple_inputs", ALL, second, {"client_roots": {"roots": []}})
    assert third.text == "Thank you for user_name, greeting, client_roots."


def test_answers_of_earlier_rounds_travel_in_the_state(mcp: Standard) -> None:
    """Source: the suite's input-required-result-multi-round."""
    first = ask(mcp, "multi_round", USER)
    second = retry(mcp, "multi_round", USER, first, {"step1": JANE})
    assert second.result["inputRequests"].keys() == {"step2"}
    assert second.result["requestState"] != first.result["requestState"]

    third = retry(mcp, "multi_round", USER, second, {"step2": {"action": "decline"}})
    assert third.text == 'action=accept, content={"name": "Jane"} action=decline, content=null'


@pytest.mark.parametrize(
    "answers", [None, {}, [], "x", {"user_name": 7}, {"user_name": {}}, {"user_name": {"action": "x"}}]
)
def test_what_is_no_answer_is_asked_for_again(mcp: Standard, answers: Any) -> None:
    """Source: the suite's -missing-input-response and -validate-input."""
    first = ask(mcp, "elicitation", USER)

    assert retry(mcp, "elicitation", USER, first, answers).result["inputRequests"].keys() == {"user_name"}


def test_only_what_the_client_declares_is_asked(mcp: Standard) -> None:
    """Source: error table, row 6; the suite's -capability-check and server-stateless."""
    for can, kind in (({}, "elicitation"), (MODEL, "elicitation")):
        refused = ask(mcp, "elicitation", can)
        assert (refused.status, refused.error["code"]) == (400, -32021)
        assert refused.error["data"] == {"requiredCapabilities": {kind: {}}}
    assert ask(mcp, "capabilities", MODEL).result["inputRequests"].keys() == {"capital_question"}
    assert ask(mcp, "capabilities", {}).text == "Asked 0."


def flipped(token: str) -> str:
    return token[:40] + ("A" if token[40] != "A" else "B") + token[41:]


@pytest.mark.parametrize(
    "tamper",
    [
        flipped,
        lambda token: token + "x",
        lambda token: token + "-tampered",
        lambda token: "!" + token,
        lambda token: token.rstrip("=") + "\n=",
        lambda token: token[:-6],
        lambda _: "",
        lambda _: "AAAA",
        lambda _: "é",
        lambda token: base64.urlsafe_b64encode(base64.urlsafe_b64decode(token)[32:]).decode(),
    ],
)
def test_a_state_that_is_not_ours_to_the_letter_is_refused(mcp: Standard, tamper: Any) -> None:
    """Source: specification, ``requestState``; with something appended it was taken once."""
    first = ask(mcp, "tampered_state", USER)
    params = {"requestState": tamper(first.result["requestState"])}
    answer = retry(mcp, "tampered_state", USER, first, {"confirm": JANE}, **params)

    assert (answer.status, answer.error["code"]) == (400, -32602)


def test_a_state_holds_for_one_tool_and_its_arguments_in_any_spelling(mcp: Standard) -> None:
    """Source: issue, section 3: bound to method and arguments; a client may write them anew."""
    call = {"name": "test_elicitation", "arguments": {"message": "who?"}}
    state = mcp.modern("tools/call", call, can=USER).result["requestState"]
    more = {"inputResponses": {"answer": JANE}, "requestState": state}
    body, headers = modern("tools/call", call | more, can=USER)
    respelled = json.dumps(body).replace('{"message": "who?"}', '{ "message"\t: "wh\\u006f?" }')

    assert "accept" in mcp.send(respelled.encode(), headers).text
    for other in (
        call | {"arguments": {"message": "what?"}},
        {"name": ASK + "elicitation", "arguments": {"message": "who?"}},
        {"name": ASK + "elicitation"},
    ):
        answer = mcp.modern("tools/call", other | more, can=USER)
        assert (answer.status, answer.error["code"]) == (400, -32602), other
    prompt = {"name": "test_input_required_result_prompt", "requestState": state}
    assert mcp.modern("prompts/get", prompt, can=USER).error["code"] == -32602


def test_a_state_outlives_a_restart_but_not_its_token(tmp_path: Any) -> None:
    """Source: issue, section 3: bound to the principal; a restart is invisible."""
    with running(tmp_path / "home", argv=fixture_argv()) as daemon:
        first = ask(Standard(daemon), "elicitation", USER)
        daemon.kill()
        daemon.start()
        assert retry(Standard(daemon), "elicitation", USER, first, {"user_name": JANE}).text == "Hello, Jane!"
        assert daemon.cli("rotate").returncode == 0
        daemon.kill()
        daemon.start()
        answer = retry(Standard(daemon), "elicitation", USER, first, {"user_name": JANE})
        assert answer.error["code"] == -32602


def test_a_prompt_asks_as_a_tool_does(mcp: Standard) -> None:
    """Source: the suite's input-required-result-non-tool-request; its result was sealed twice once."""
    wanted = {"name": "test_input_required_result_prompt"}
    first = mcp.modern("prompts/get", wanted, can=USER)
    assert first.body.count(b'"resultType"') == 1
    assert first.result["resultType"] == "input_required"

    answers = {"user_context": {"action": "accept", "content": {"context": "spring"}}}
    more = {"inputResponses": answers, "requestState": first.result["requestState"]}
    second = mcp.modern("prompts/get", wanted | more, can=USER)
    assert second.result["messages"][0]["content"]["text"] == "Context: spring"
    assert mcp.modern("prompts/get", wanted).error["code"] == -32021
    assert mcp.legacy("prompts/get", wanted).error["code"] == -32602


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "server/discover", "completion/complete"])
def test_no_other_method_asks(mcp: Standard, method: str) -> None:
    """Source: the suite's input-required-result-unsupported-methods."""
    params = {"ref": {"type": "ref/prompt", "name": "test_simple_prompt"}, "argument": {"name": "x", "value": ""}}

    assert mcp.modern(method, params, can=ALL).result["resultType"] == "complete"


# --- legacy ---------------------------------------------------------------------------------------------------------


def asking(mcp: Standard, tool: str, version: str | None = None, **arguments: Any) -> Stream:
    message, headers = legacy("tools/call", {"name": tool, "arguments": arguments})
    return mcp.stream(message, headers | {"MCP-Protocol-Version": version})


def reply(mcp: Standard, question: dict[str, Any], **said: Any) -> None:
    answer = mcp.send({"jsonrpc": "2.0", "id": question["id"], **said})
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("version", [None, "2025-06-18", "2025-11-25"])
def test_a_question_goes_out_on_the_stream_and_its_answer_is_posted(mcp: Standard, version: str | None) -> None:
    """Source: specification 2025-11-25, "elicitation", "sampling"."""
    with asking(mcp, "test_elicitation", version, message="who?") as stream:
        question = stream.next()
        assert (question["method"], question["params"]["message"]) == ("elicitation/create", "who?")
        reply(mcp, question, result={"action": "accept", "content": {"username": "jane"}})
        assert stream.rest()[-1]["result"]["content"][0]["text"] == (
            'User response: action=accept, content={"username": "jane"}'
        )
    with asking(mcp, "test_sampling", version, prompt="capital?") as stream:
        question = stream.next()
        assert question["method"] == "sampling/createMessage"
        assert question["params"]["maxTokens"] == 100
        reply(mcp, question, result=PARIS)
        assert stream.rest()[-1]["result"]["content"][0]["text"] == "LLM response: Paris"


def test_the_schemas_of_questions_arrive_as_they_were_written(mcp: Standard) -> None:
    """Source: the suite's elicitation-sep1034-defaults and -sep1330-enums."""
    with asking(mcp, "test_elicitation_sep1034_defaults") as stream:
        question = stream.next()
        properties = question["params"]["requestedSchema"]["properties"]
        assert [each["default"] for each in properties.values()] == ["John Doe", 30, 95.5, "active", True]
        reply(mcp, question, result={"action": "cancel"})
        assert "action=cancel" in stream.rest()[-1]["result"]["content"][0]["text"]
    with asking(mcp, "test_elicitation_sep1330_enums") as stream:
        properties = stream.next()["params"]["requestedSchema"]["properties"]
        assert [each["type"] for each in properties.values()] == ["string"] * 3 + ["array"] * 2
        assert properties["legacyEnum"]["enumNames"] == ["Option One", "Option Two", "Option Three"]


def test_two_that_ask_with_the_same_id_get_each_their_own_answer(mcp: Standard) -> None:
    """Source: ours; clients give every call the id 1."""
    with ExitStack() as stack:
        streams = [stack.enter_context(asking(mcp, "test_elicitation", message=name)) for name in ("a", "b")]
        questions = [stream.next() for stream in streams]
        for question in reversed(questions):
            said = {"action": "accept", "content": {"for": question["params"]["message"]}}
            reply(mcp, question, result=said)
        texts = [stream.rest()[-1]["result"]["content"][0]["text"] for stream in streams]

    assert ['"for": "a"' in texts[0], '"for": "b"' in texts[1]] == [True, True]


def test_a_client_that_cannot_answer_gets_a_readable_error(mcp: Standard) -> None:
    """Source: issue, section 5."""
    with asking(mcp, "test_elicitation", message="who?") as stream:
        reply(mcp, stream.next(), error={"code": -32601, "message": "no such method"})
        result = stream.rest()[-1]["result"]
    assert result["isError"] is True
    assert "no such method" in result["content"][0]["text"]

    call = {"name": "test_elicitation", "arguments": {"message": "who?"}}
    for headers in ({"Accept": "application/json"}, {"MCP-Protocol-Version": "2025-03-26"}):
        answer = mcp.legacy("tools/call", call, headers)
        assert answer.result["isError"] is True
        assert "cannot be asked" in answer.text


def test_an_answer_that_is_none_is_asked_for_again(mcp: Standard) -> None:
    """Source: ours."""
    with asking(mcp, "test_elicitation", message="who?") as stream:
        first = stream.next()
        reply(mcp, first, result={"action": "perhaps"})
        second = stream.next()
        reply(mcp, first, result={"action": "accept"})
        reply(mcp, second, result={"action": "decline"})
        assert "decline" in stream.rest()[-1]["result"]["content"][0]["text"]


def test_a_call_whose_client_leaves_without_an_answer_ends(fixture_daemon: Daemon, mcp: Standard) -> None:
    """Source: ours; nobody else would end it, and it stayed for ever once."""

    def ended() -> bool:
        return any(
            record["phase"] == "done" and "leaves nobody" in json.dumps(record) for record in fixture_daemon.audit()
        )

    with asking(mcp, "test_elicitation", message="leaves nobody") as stream:
        stream.next()
        assert not ended()

    until(ended, what="the call is recorded as ended")


def test_a_client_that_leaves_after_its_answer_cancels_nothing(fixture_daemon: Daemon, mcp: Standard) -> None:
    """Source: specification 2025-11-25: disconnecting is no cancellation."""
    with asking(mcp, "test_elicitation", message="answers and leaves") as stream:
        reply(mcp, stream.next(), result={"action": "accept"})

    def record() -> dict[str, Any] | None:
        found = (each for each in fixture_daemon.audit() if "answers and leaves" in json.dumps(each))
        return next((each for each in found if each["phase"] == "done"), None)

    assert until(record, what="the call is recorded as ended")["isError"] is False


def test_a_question_can_be_cancelled(mcp: Standard) -> None:
    """Source: specification 2025-11-25, "cancellation"."""
    message, headers = legacy("tools/call", {"name": "test_elicitation", "arguments": {"message": "x"}}, request_id="q")
    with mcp.stream(message, headers) as stream:
        question = stream.next()
        mcp.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}})
        assert stream.rest()[-1]["result"]["isError"] is True
    reply(mcp, question, result={"action": "accept"})
