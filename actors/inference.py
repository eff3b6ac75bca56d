"""The inference actor: the one that turns the switch, so that whatever happens at once happens in an order.

A thin shell: what the switch does is in ``a2mcp/inference/switch.py``. Each turn of it leaves one record, a refused one
with its reason, and is answered when the record is written. Nobody else writes to the registry's takeover.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, ClassVar, Final, assert_never

import msgspec

from a2mcp.config.models import ModelsFile
from a2mcp.errors import A2mcpError, CannotDeny
from a2mcp.inference.models import Models
from a2mcp.protocol.response import Response
from actors import audit
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock
    from a2mcp.config.paths import Home
    from a2mcp.inference.switch import SwitchFacts
    from a2mcp.inference.takeover import Plan
    from a2mcp.protocol.exchange import Exchange
    from a2mcp.types import SessionId

TOOL: Final = "host_llm"
"""Its name in the audit log."""
SWITCH_S: Final = 10.0

logger = logging.getLogger("a2mcp.inference")


class Switch(Message, frozen=True):
    """A caller turns the switch."""

    exchange: Exchange
    session_id: SessionId | None
    """Of a session that is alive, and so one of ours."""
    enabled: bool

    def failed(self, error: A2mcpError) -> None:
        """Answer with the error."""
        self.exchange.fail(error)


class SwitchForOperator(Ask["SwitchFacts"], frozen=True):
    """The operator turns the switch."""

    enabled: bool


class Begin(Ask[None], frozen=True):
    """The daemon starts denied."""


class Rebuilt(Message, frozen=True):
    """The agent has a new session."""


class Reply(Message, frozen=True):
    """Told by the audit writer: the record is written."""

    exchange: Exchange
    response: Response

    def failed(self, error: A2mcpError) -> None:
        """Answer with the error."""
        self.exchange.fail(error)


Command = Switch | SwitchForOperator | Begin | Rebuilt | Reply


class Inference(Actor[Command]):
    """Owns the switch.

    Args:
        mailbox: made by ``mailbox_for``.
        models: the switch, and what it switches. Outlives the actor: a restart changes nothing.
        me: the way here.
        audit_writer: records each turn.
        looked: is told after each look at the operator's file, which may have other models in it now.
    """

    MAILBOX: ClassVar[int] = 1024

    def __init__(
        self,
        mailbox: Mailbox,
        *,
        models: Models,
        me: Ref[Command],
        audit_writer: Ref[audit.Command],
        looked: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(mailbox)
        self._looked = looked
        self._switch = models.switch
        self._me = me
        self._audit = audit_writer

    def receive(self, message: Command) -> SwitchFacts | None:
        """Turn the switch, or answer whoever did."""
        match message:
            case Switch(exchange=exchange, session_id=session_id, enabled=enabled):
                self._answer(exchange, session_id, enabled=enabled)
            case SwitchForOperator(enabled=enabled):
                return self._for_operator(enabled=enabled)
            case Begin():
                self._by_itself(lambda: self._switch.set(enabled=False))
            case Rebuilt():
                self._by_itself(self._switch.rebuilt)
            case Reply(exchange=exchange, response=response):
                exchange.reply.complete(response)
            case _:
                assert_never(message)
        return None

    def _answer(self, exchange: Exchange, session_id: SessionId | None, *, enabled: bool) -> None:
        fault = self._attempt(lambda: self._switch.set(enabled=enabled))
        if fault is None or self._stands(fault):
            response = Response(200, msgspec.json.encode(self._switch.facts))
        else:
            response = Response(CannotDeny.status, msgspec.json.encode({"error": _reason(fault)}))
        self._record(session_id, fault, enabled=enabled, then=Reply(exchange, response))

    def _for_operator(self, *, enabled: bool) -> SwitchFacts:
        fault = self._attempt(lambda: self._switch.set(enabled=enabled))
        self._record(None, fault, enabled=enabled)
        if fault is None or self._stands(fault):
            return self._switch.facts
        raise CannotDeny(_reason(fault))

    def _by_itself(self, turn: Callable[[], Plan | None]) -> None:
        """Deny without being asked by anybody: what refuses that is told to the operator, and is on record."""
        fault = self._attempt(turn)
        if fault is not None:
            self._record(None, fault, enabled=False)

    def _attempt(self, turn: Callable[[], Plan | None]) -> Exception | None:
        """Turn the switch; what kept it from being turned, if anything did."""
        try:
            plan = turn()
        except A2mcpError as error:
            _warn(str(error))
            return error
        except Exception as error:  # The rim: whatever breaks is an answer and a record, and nothing has changed.
            logger.exception("[a2mcp] the switch of inference could not be turned")
            return error
        finally:
            self._looked()
        if plan is not None:
            sys.stderr.write(f"[a2mcp] takeover armed: {plan}\n")
        return None

    def _stands(self, fault: Exception) -> bool:
        """Whether the switch is where it was wanted all the same: what was denied is, and what came since cannot be."""
        return isinstance(fault, CannotDeny) and self._switch.facts.degraded

    def _record(
        self, session_id: SessionId | None, fault: Exception | None, *, enabled: bool, then: Message | None = None
    ) -> None:
        args = {"enabled": enabled} if fault is None else {"enabled": enabled, "error": _reason(fault)}
        audit.record(self._audit, TOOL, session_id, args, then=self._me if then else None, message=then)


def load_models(home: Home, clock: Clock) -> Models:
    """Make the registry of models and fill it.

    Raises:
        UnusableFile: the operator's file says something wrong.
    """
    models = Models.of(ModelsFile(home.models), clock, _warn)
    for warning in models.loader.refresh():
        _warn(warning)
    return models


def _reason(fault: Exception) -> str:
    return str(fault) or type(fault).__name__


def _warn(text: str) -> None:
    logger.warning("[a2mcp] warning: %s", text)


def switch(inference: Ref[Command], exchange: Exchange, session_id: SessionId | None, *, enabled: bool) -> None:
    """Turn the switch and answer the exchange, which is completed whatever happens."""
    message = Switch(exchange, session_id, enabled)
    try:
        inference.tell(message)
    except A2mcpError as error:
        message.failed(error)


def switch_for_operator(inference: Ref[Command], *, enabled: bool) -> SwitchFacts:
    """Turn the switch; how it stands then.

    Raises:
        CannotDeny: it was not turned.
    """
    return inference.ask(SwitchForOperator(enabled), timeout=SWITCH_S)


def begin(inference: Ref[Command]) -> None:
    """Deny before anybody is served. One that is refused is told and recorded; the daemon serves all the same."""
    inference.ask(Begin(), timeout=SWITCH_S)


def rebuilt(inference: Ref[Command]) -> None:
    """Tell that the agent has a new session: what is denied must be denied in it, too."""
    inference.insist(Rebuilt())
