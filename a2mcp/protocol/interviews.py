"""The questions of tools to callers, in the two ways there are.

Where the dialect has retries, the call ends with what is asked, and the caller makes it again with the answers; nothing
is kept here. Where it has streams, the questions go out on the call's own stream, the client posts its answers, and the
call waits here, which costs no thread.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from a2mcp.errors import MissingCapability
from a2mcp.protocol import notices
from a2mcp.tools.result import SAMPLE, Encoded, Needs, Question, Refusal, Result, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.protocol.jsonrpc import Answer
    from a2mcp.protocol.statetoken import StateTokens
    from a2mcp.tools.call import Call
    from a2mcp.types import CallId, JsonObject

UNABLE = "a2mcp-unable"
"""Among a call's answers: its client has said that it asks no model."""
NO_SUCH_METHOD = (-32601, -32600)
"""How clients say that they do not know what was asked of them; a user who declines is another code."""
CANNOT_ASK = "This tool needs an answer from you, and your client cannot be asked."


class _Open(msgspec.Struct):
    """A call that waits for answers."""

    call: Call
    missing: dict[str, str]
    """Our id of each question that is out, with its key."""
    answers: dict[str, Any]
    needs: Needs


class Interviews:
    """The calls that wait for answers. Owned by one actor.

    Args:
        tokens: sign what a caller carries between two rounds.
        abandoned: is told a call whose client has left without an answer, on whatever thread. Nobody else ends it.
        stands_in: whether somebody else answers for a client that asks no model.
    """

    def __init__(
        self, tokens: StateTokens, abandoned: Callable[[Call], None], stands_in: Callable[[], bool] = lambda: False
    ) -> None:
        self._tokens = tokens
        self._abandoned = abandoned
        self._stands_in = stands_in
        self._open: dict[CallId, _Open] = {}
        self._by_question: dict[str, CallId] = {}

    def ask(self, call: Call, needs: Needs) -> Result | Encoded | Refusal | None:
        """Have questions asked.

        Returns:
            What the call ends with, or None when it waits.
        """
        dialect = call.exchange.dialect
        if dialect.asks_by_retry:
            return self._by_retry(call, needs)
        if not dialect.asks_by_stream or not self._by_stream(call, needs):
            return text(CANNOT_ASK, is_error=True)
        return None

    def answered(self, answer: Answer) -> tuple[Call, Result | None] | None:
        """Take an answer.

        Returns:
            The call that can go on, with what ends it where the client cannot answer; None while more is missing, or
            when nobody asked.
        """
        question_id = _text_of(answer.id)
        call_id = self._by_question.pop(question_id, None)
        waiting = self._open.get(call_id) if call_id is not None else None
        if waiting is None or call_id is None:
            return None
        key = waiting.missing.pop(question_id)
        if answer.error and not waiting.needs.questions[key].optional:
            self.forget(call_id)
            if waiting.needs.questions[key].method == SAMPLE and _unknown(answer.error) and self._stands_in():
                return with_answers(waiting.call, {**waiting.answers, UNABLE: True}, waiting.needs.state), None
            said = bytes(answer.error)[:200].decode(errors="replace")
            return waiting.call, text(f"{CANNOT_ASK} It said: {said}", is_error=True)
        waiting.answers[key] = None if answer.error else msgspec.json.decode(answer.result)
        if waiting.missing:
            return None
        self.forget(call_id)
        # From here on a client that leaves does not cancel: in these revisions that is no wish of anybody's.
        waiting.call.exchange.reply.when_gone(lambda: None)
        return with_answers(waiting.call, waiting.answers, waiting.needs.state), None

    def forget(self, call_id: CallId) -> None:
        """Let go of a call that has ended otherwise."""
        waiting = self._open.pop(call_id, None)
        for question_id in waiting.missing if waiting is not None else ():
            self._by_question.pop(question_id, None)

    def _by_retry(self, call: Call, needs: Needs) -> Encoded | Refusal:
        caller = call.exchange.caller
        for question in needs.questions.values():
            if not question.capability.keys() <= (caller.capabilities or {}).keys():
                return Refusal(MissingCapability("the client cannot be asked for this", question.capability))
        token = self._tokens.make(call.method, target_of(call.tool, call.arguments), caller.answers, needs.state)
        return Encoded(input_required(needs.questions, token), sealed=False)

    def _by_stream(self, call: Call, needs: Needs) -> bool:
        if not call.exchange.reply.begin_stream():
            return False
        missing = {f"a2mcp-{uuid.uuid4()}": key for key in needs.questions}
        self._open[call.call_id] = _Open(call, missing, dict(call.exchange.caller.answers), needs)
        for question_id, key in missing.items():
            self._by_question[question_id] = call.call_id
            question = needs.questions[key]
            call.exchange.reply.send(notices.request(question_id, question.method, question.params))
        call.exchange.reply.when_gone(lambda: self._abandoned(call))
        return True


def target_of(name: str, arguments: bytes | msgspec.Raw) -> bytes:
    """What a state token is bound to: the name and the arguments, in whatever spelling the client repeats them."""
    # What cannot be read stays the exact bytes; the tool says what is wrong with it.
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        arguments = msgspec.json.encode(msgspec.json.decode(arguments or b"{}"), order="deterministic")
    return name.encode("utf-8", "backslashreplace") + b"\0" + bytes(arguments)


def input_required(questions: dict[str, Question], token: str) -> bytes:
    """Write the result that wants the call again, with answers."""
    requests = {key: {"method": question.method, "params": question.params} for key, question in questions.items()}
    return msgspec.json.encode({"resultType": "input_required", "inputRequests": requests, "requestState": token})


def with_answers(call: Call, answers: JsonObject, state: str | None) -> Call:
    """Make the same call with what was answered, and with what its tool wanted kept."""
    caller = replace(call.exchange.caller, answers=answers, state=state)
    return replace(call, exchange=replace(call.exchange, caller=caller))


def _unknown(error: msgspec.Raw) -> bool:
    try:
        code = msgspec.json.decode(error).get("code")
    except (msgspec.DecodeError, AttributeError):
        return False
    return code in NO_SUCH_METHOD


def _text_of(raw: msgspec.Raw) -> str:
    try:
        return str(msgspec.json.decode(raw))
    except msgspec.DecodeError:
        return ""
