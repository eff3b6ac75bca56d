"""The sessions: the one that owns the table, so that a session is found, refreshed or evicted in one step."""

from __future__ import annotations

from typing import ClassVar, assert_never

from a2mcp.errors import A2mcpError, UnknownSession
from a2mcp.observe.event import SESSION, as_args
from a2mcp.protocol import jsonrpc
from a2mcp.protocol.exchange import Exchange
from a2mcp.protocol.response import Response
from a2mcp.session.table import SessionTable
from a2mcp.tools.call import Call
from a2mcp.types import SessionId
from actors import audit, executor, inference
from actors.events import News, no_news
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref


class Open(Message, frozen=True):
    """Open a session and answer with this result."""

    exchange: Exchange
    encoded: bytes

    def failed(self, error: A2mcpError) -> None:
        """Answer with the error."""
        self.exchange.fail(error)


class End(Message, frozen=True):
    """End the exchange's session and answer 204, whether it was alive or not."""

    exchange: Exchange

    def failed(self, error: A2mcpError) -> None:
        """Answer with the error."""
        self.exchange.fail(error)


class Answer(Message, frozen=True):
    """Answer with this response if the exchange's session is alive."""

    exchange: Exchange
    response: Response

    def failed(self, error: A2mcpError) -> None:
        """Answer with the error."""
        self.exchange.fail(error)


class Admit(Message, frozen=True):
    """Let a call go on if its session is alive."""

    call: Call

    def failed(self, error: A2mcpError) -> None:
        """Answer with the error."""
        self.call.exchange.fail(error)


class Switch(Message, frozen=True):
    """Have the switch of inference turned, in the name of the exchange's session if that is alive."""

    exchange: Exchange
    enabled: bool
    then: Ref[inference.Command]

    def failed(self, error: A2mcpError) -> None:
        """Answer with the error."""
        self.exchange.fail(error)


class Close(Ask[bool], frozen=True):
    """End a session because the operator says so; whether there was one."""

    session_id: SessionId


class GetCount(Ask[int], frozen=True):
    """Ask how many sessions are alive."""


class GetList(Ask[list[tuple[SessionId, float]]], frozen=True):
    """Ask which sessions are alive, and for how many seconds each was not seen."""


Command = Open | End | Answer | Admit | Switch | Close | GetCount | GetList


class Sessions(Actor[Command]):
    """Owns the session table; touches no disk."""

    MAILBOX: ClassVar[int] = 65_536
    BATCH: ClassVar[int] = 64

    def __init__(
        self,
        mailbox: Mailbox,
        *,
        table: SessionTable,
        audit_writer: Ref[audit.Command],
        run_calls: Ref[executor.Command],
        news: News = no_news,
    ) -> None:
        super().__init__(mailbox)
        self._table = table
        self._audit = audit_writer
        self._executor = run_calls
        self._news = news

    def receive(self, message: Command) -> int | list[tuple[SessionId, float]] | None:  # noqa: C901  # One arm a message.
        """Look the session up, then answer or hand on."""
        match message:
            case Open(exchange=exchange, encoded=encoded):
                self._open(exchange, encoded)
            case End(exchange=exchange):
                if exchange.session_id is not None:
                    self._close(exchange.session_id)
                exchange.reply.complete(Response(204))
            case Answer(exchange=exchange, response=response):
                if self._alive(exchange):
                    exchange.reply.complete(response)
            case Admit(call=call):
                if self._alive(call.exchange):
                    audit.begin(self._audit, call, then=self._executor, message=executor.Execute(call, self._audit))
            case Switch(exchange=exchange, enabled=enabled, then=then):
                inference.switch(then, exchange, self._ours(exchange.session_id), enabled=enabled)
            case Close(session_id=session_id):
                return self._close(session_id, by="operator")
            case GetCount():
                return len(self._table)
            case GetList():
                return self._table.list()
            case _:
                assert_never(message)
        return None

    def _open(self, exchange: Exchange, encoded: bytes) -> None:
        session_id = self._table.open()
        self._news(SESSION, status="opened", session=session_id, client=exchange.caller.client)
        body = jsonrpc.result(exchange.request_id, encoded)
        exchange.reply.complete(Response(200, body, (("mcp-session-id", session_id),)))

    def _close(self, session_id: SessionId, *, by: str | None = None) -> bool:
        if session_id not in self._table:
            return False
        self._table.close(session_id)
        self._news(SESSION, status="ended", session=session_id, args=as_args(by=by))
        return True

    def _ours(self, session_id: SessionId | None) -> SessionId | None:
        """The id of a session that is alive, and so was issued here; None for any other."""
        return session_id if session_id is not None and self._table.touch(session_id) else None

    def _alive(self, exchange: Exchange) -> bool:
        if exchange.session_id is not None and self._table.touch(exchange.session_id):
            return True
        exchange.fail(UnknownSession("unknown session"))
        return False


def close(sessions: Ref[Command], session_id: SessionId) -> bool:
    """End a session; False when there is none."""
    return sessions.ask(Close(session_id), timeout=5)


def count(sessions: Ref[Command]) -> int:
    """Ask how many sessions are alive."""
    return sessions.ask(GetCount(), timeout=5)


def alive(sessions: Ref[Command]) -> list[tuple[SessionId, float]]:
    """Ask which sessions are alive, and for how many seconds each was not seen."""
    return sessions.ask(GetList(), timeout=5)
