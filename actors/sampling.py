"""How questions of tools to a model are answered by the host's own, where the caller has none.

Such a question becomes a call of its own: recorded, held at the gate and cancelled as any. Its answer goes to the tool
that asked, which the executor runs again. Owned by the executor; outlives it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from a2mcp.inference.admission import can_be_asked
from a2mcp.protocol.caller import Caller
from a2mcp.protocol.exchange import Exchange
from a2mcp.protocol.interviews import CANNOT_ASK, UNABLE, with_answers
from a2mcp.protocol.localreply import LocalReply
from a2mcp.protocol.versions.agent import AGENT
from a2mcp.tools.result import SAMPLE, Result, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.inference.registry import Registry
    from a2mcp.protocol.response import Response
    from a2mcp.tools.call import Call
    from a2mcp.tools.result import Needs, Question
    from a2mcp.types import CallId


class Sampling:
    """The calls that wait for a model of the host.

    Args:
        registry: knows whether there is a model.
        begin: makes the call that asks it, as the edge makes a caller's.
        answered: is told the response, on whatever thread; with the call that waits and the key of its question.
    """

    def __init__(
        self,
        registry: Registry,
        begin: Callable[[Exchange, msgspec.Raw], None],
        answered: Callable[[Call, Needs, str, Response], None],
    ) -> None:
        self._registry = registry
        self._begin = begin
        self._answered = answered
        self._open: dict[CallId, LocalReply] = {}

    def possible(self) -> bool:
        """Whether there is a model to ask, if it is allowed."""
        return can_be_asked(self._registry)

    def find(self, call: Call, needs: Needs) -> str | None:
        """The key of a question that the caller cannot have answered, and a model of the host could."""
        for key, question in needs.questions.items():
            if question.method == SAMPLE and _is_ours(call, question) and self.possible():
                return key
        return None

    def ask(self, call: Call, needs: Needs, key: str) -> None:
        """Have a question answered.

        Raises:
            RequestError: no more calls are let in.
        """
        reply = LocalReply(partial(self._answered, call, needs, key))
        caller = Caller(client=call.exchange.caller.client)
        self._open[call.call_id] = reply
        params = msgspec.Raw(msgspec.json.encode(needs.questions[key].params))
        self._begin(Exchange(reply, b"0", call.session_id, AGENT, caller), params)

    def resume(self, call: Call, needs: Needs, key: str, response: Response) -> Call | Result:
        """The call as its tool is run again, or what it ends with where there is no answer."""
        self._open.pop(call.call_id, None)
        answer = _answer(response)
        if isinstance(answer, str):
            return text(f"{CANNOT_ASK} {answer}", is_error=True)
        return with_answers(call, {**call.exchange.caller.answers, key: answer}, needs.state)

    def forget(self, call_id: CallId) -> None:
        """Let go of a call that has ended otherwise; what is asked for it is cancelled."""
        reply = self._open.pop(call_id, None)
        if reply is not None:
            reply.leave()


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Body(msgspec.Struct, frozen=True):
    result: dict[str, Any] | None = None
    error: _Error = _Error()


def _answer(response: Response) -> dict[str, Any] | str:
    """The answer, or why there is none."""
    body = msgspec.json.decode(response.body, type=_Body)
    return body.error.message if body.result is None else body.result


def _is_ours(call: Call, question: Question) -> bool:
    """Whether the caller cannot sample: it does not say that it can, it has said that it cannot, or cannot be asked."""
    dialect, caller = call.exchange.dialect, call.exchange.caller
    if dialect.asks_by_retry:
        return not question.capability.keys() <= (caller.capabilities or {}).keys()
    return not dialect.asks_by_stream or UNABLE in caller.answers
