"""The front: what the edge hands a request to, and what hands it on.

It has no thread of its own: the server's loop calls it, so its mailbox is the socket. It never blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from a2mcp.audit.record import summarise
from a2mcp.errors import Busy, InvalidParams, MissingCapability
from a2mcp.library.desk import READ
from a2mcp.policy import consent
from a2mcp.protocol import interviews, jsonrpc, notices
from a2mcp.protocol.listeners import Listeners
from a2mcp.protocol.response import Response
from a2mcp.tools.asking import InputRequired
from a2mcp.tools.call import TOOLS_CALL, Call
from a2mcp.tools.result import SAMPLE, Encoded
from a2mcp.types import CallId, new_call_id
from actors import audit, executor, inference, sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.library.shelf import Library
    from a2mcp.protocol.exchange import Exchange
    from a2mcp.protocol.jsonrpc import Answer
    from a2mcp.protocol.statetoken import StateTokens
    from a2mcp.tools.context import Context
    from a2mcp.tools.registry import Registry
    from a2mcp.types import JsonObject
    from actors.admission import Admission
    from actors.ref import Message, Ref


class Ways(msgspec.Struct, frozen=True, kw_only=True):
    """To whom the front hands on, and what it looks things up in."""

    sessions: Ref[sessions.Command]
    audit: Ref[audit.Command]
    executor: Ref[executor.Command]
    inference: Ref[inference.Command]
    registry: Registry
    library: Library
    tokens: StateTokens
    context_for: Callable[[Call], Context]


class Front:
    """What both dialects call. Which of them a request speaks is in its exchange."""

    def __init__(self, admission: Admission, ways: Ways) -> None:
        self._admission = admission
        self._ways = ways
        self._listeners = Listeners()
        ways.registry.attach(lambda: self._listeners.changed(notices.TOOLS_CHANGED))
        ways.library.attach(self._listeners.changed)

    # --- sessions: the bridge -------------------------------------------------------------------------------------

    def open_session(self, exchange: Exchange, encoded: bytes) -> None:
        """Answer with this result and a new session."""
        self._hand_over(self._ways.sessions, sessions.Open(self._admission.let_in(exchange), encoded))

    def end_session(self, exchange: Exchange) -> None:
        """End the exchange's session and answer 204."""
        self._hand_over(self._ways.sessions, sessions.End(self._admission.let_in(exchange)))

    def answer(self, exchange: Exchange, response: Response) -> None:
        """Answer with this response if the exchange's session is alive."""
        self._hand_over(self._ways.sessions, sessions.Answer(self._admission.let_in(exchange), response))

    def switch_inference(self, exchange: Exchange, *, enabled: bool) -> None:
        """Allow this host to ask models, or deny it, and answer with how that stands."""
        self._hand_over(
            self._ways.sessions, sessions.Switch(self._admission.let_in(exchange), enabled, self._ways.inference)
        )

    # --- calls: both dialects -------------------------------------------------------------------------------------

    def call(self, exchange: Exchange, tool: str, arguments: msgspec.Raw) -> None:
        """Run a tool; in a dialect with sessions, if the exchange's is alive."""
        self._call(exchange, TOOLS_CALL, tool, arguments)

    def read(self, exchange: Exchange, uri: str) -> None:
        """Read a resource."""
        self._call(exchange, READ, READ, msgspec.Raw(msgspec.json.encode({"uri": uri})))

    def sample(self, exchange: Exchange, params: msgspec.Raw) -> None:
        """Ask a model of this host, for a tool whose caller has none."""
        self._call(exchange, SAMPLE, SAMPLE, params)

    def _call(self, exchange: Exchange, method: str, tool: str, arguments: msgspec.Raw) -> None:
        self._admission.check_room(exchange)
        summary = summarise(arguments)  # Before it is let in: what breaks here leaves nothing behind.
        admitted = self._admission.let_in(self._with_earlier_answers(exchange, method, tool, arguments))
        call = Call(new_call_id(), admitted, tool, arguments, summary, method)
        self._admission.note(call)
        if admitted.dialect.sessions:
            self._hand_over(self._ways.sessions, sessions.Admit(call))
            return
        if admitted.dialect.closing_cancels:
            admitted.reply.when_gone(lambda: executor.cancel(self._ways.executor, call))
        run = executor.Execute(call, self._ways.audit)
        self._hand_over(self._ways.audit, audit.Start(call, self._ways.executor, run))

    def _with_earlier_answers(self, exchange: Exchange, method: str, name: str, arguments: msgspec.Raw) -> Exchange:
        """Add what the caller answered in earlier rounds, which it carries for us."""
        caller = exchange.caller
        if caller.state is None:
            if consent.KEY not in caller.answers:
                return exchange
            # SECURITY: an answer to a question that we did not ask, or not about these arguments.
            return replace(exchange, caller=replace(caller, answers=consent.without(caller.answers)))
        target = interviews.target_of(name, arguments)
        answers, state = self._ways.tokens.read(caller.state, method, target)
        return replace(exchange, caller=replace(caller, answers={**answers, **caller.answers}, state=state))

    def cancel_requested(self, params: msgspec.Raw, session_id: str | None = None) -> None:
        """Cancel the call that ``notifications/cancelled`` names, if there is exactly one.

        Clients give every call the id 1, so an id that two calls have names neither.
        """
        try:
            wanted = bytes(msgspec.json.decode(params or b"{}", type=_Cancelled).requestId)
        except msgspec.DecodeError:
            return
        found = [
            call
            for call in self._admission.calls()
            if call.exchange.request_id == wanted
            and call.session_id == session_id
            and not call.exchange.dialect.closing_cancels
        ]
        if len(found) == 1:
            executor.cancel(self._ways.executor, found[0])

    def replied(self, answer: Answer) -> None:
        """Take a client's answer to a question of a tool."""
        executor.replied(self._ways.executor, answer)

    @staticmethod
    def _hand_over(ref: Ref[Any], message: Message) -> None:
        try:
            ref.tell(message)
        except Busy as error:
            message.failed(error)

    # --- what is known: answered in the loop ----------------------------------------------------------------------

    @property
    def library(self) -> Library:
        """The resources and prompts."""
        return self._ways.library

    def catalog(self) -> bytes:
        """The JSON array of the tools that are offered now, for the bridge."""
        return self._ways.registry.catalog()

    def tools(self) -> Sequence[msgspec.Raw]:
        """Every tool with all that newer dialects show of it."""
        return self._ways.registry.listed()

    def tool_schema(self, name: str) -> JsonObject:
        """The schema of a tool's arguments; an empty one where there is no such tool."""
        entry = self._ways.registry.find(name)
        return {} if entry is None else entry.spec.input_schema

    def prompt(self, exchange: Exchange, name: str, arguments: dict[str, str]) -> bytes | None:
        """Fill in a prompt, or answer the exchange with what must be asked first; the JSON of the result."""
        encoded = msgspec.Raw(msgspec.json.encode(arguments))
        asking = self._with_earlier_answers(exchange, "prompts/get", name, encoded)
        call = Call(CallId(""), asking, name, encoded, summarise(encoded), "prompts/get")
        try:
            return msgspec.json.encode(self._ways.library.prompt(name, arguments, self._ways.context_for(call)))
        except InputRequired as need:
            self._ask_for_prompt(call, need)
            return None

    def _ask_for_prompt(self, call: Call, need: InputRequired) -> None:
        if not call.exchange.dialect.asks_by_retry:
            raise InvalidParams("invalid params: this prompt needs answers that your client cannot be asked for")
        caller = call.exchange.caller
        for question in need.questions.values():
            if not question.capability.keys() <= (caller.capabilities or {}).keys():
                raise MissingCapability("the client cannot be asked for this", question.capability)
        target = interviews.target_of(call.tool, call.arguments)
        token = self._ways.tokens.make(call.method, target, caller.answers, need.state)
        asked = Encoded(interviews.input_required(need.questions, token), sealed=False)
        body = jsonrpc.result(call.exchange.request_id, call.exchange.dialect.written(asked))
        call.exchange.reply.complete(Response(200, body))

    def listen(self, exchange: Exchange, wanted: JsonObject) -> None:
        """Keep the exchange open and tell it what changes."""
        self._listeners.add(exchange, wanted)

    # --- what the system calls ------------------------------------------------------------------------------------

    @property
    def unanswered(self) -> int:
        """How many requests are not answered yet."""
        return len(self._admission)

    @property
    def stopping(self) -> bool:
        """Whether requests are refused because the daemon goes down."""
        return self._admission.stopping

    @property
    def calls_in_flight(self) -> int:
        """How many calls are not answered yet."""
        return len(self._admission.calls())

    def in_flight(self) -> list[tuple[Call, float]]:
        """The calls that are not answered yet, oldest first, each with its age in seconds."""
        return self._admission.aged_calls()

    @property
    def listening(self) -> int:
        """How many subscriptions are open."""
        return len(self._listeners)

    def stop_admitting(self) -> None:
        """Refuse what comes from now on and end the subscriptions; what is in flight goes on."""
        self._admission.stop()
        self._listeners.close()

    def tend(self, now: float) -> None:
        """Look after streams and after what got lost. Called once a second by the loop."""
        self._admission.tend()
        self._listeners.tend(now)


class _Cancelled(msgspec.Struct, frozen=True):
    requestId: msgspec.Raw  # noqa: N815  # The wire's name.
