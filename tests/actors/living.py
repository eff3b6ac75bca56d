"""Fakes for tests of actors: a clock to turn, replies to wait for, actors that only remember, calls of nothing."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from a2mcp.audit.record import summarise
from a2mcp.protocol.exchange import Exchange
from a2mcp.tools.call import Call
from a2mcp.types import SessionId, new_call_id
from actors.kit import Actor, launch
from actors.ref import Mailbox, Message, Ping, Ref

if TYPE_CHECKING:
    from a2mcp.protocol.response import Response

WAIT_S = 10.0


class Clock:
    """Stands still until a test turns it."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


class Reply:
    """Keeps the first response and lets a test wait for it."""

    def __init__(self) -> None:
        self._there = threading.Event()
        self._first: Response | None = None
        self.times = 0

    def begin_stream(self) -> bool:
        return False

    def send(self, message: bytes) -> bool:
        return False

    def tend(self, now: float) -> None:
        pass

    def when_gone(self, tell: object) -> None:
        pass

    def complete(self, response: Response) -> bool:
        self.times += 1
        if self._first is None:
            self._first = response
        self._there.set()
        return self.times == 1

    @property
    def response(self) -> Response:
        assert self._there.wait(WAIT_S), "no response"
        assert self._first is not None
        return self._first

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.response.body)

    @property
    def text(self) -> str:
        return str(self.json["result"]["content"][0]["text"])

    @property
    def is_error(self) -> bool:
        return bool(self.json["result"]["isError"])

    @property
    def done(self) -> bool:
        return self._there.is_set()


class Poison:
    """Something in a mailbox that kills whoever reads it, whatever actor that is."""

    def __init__(self, cause: type[BaseException] = SystemExit) -> None:
        self._cause = cause
        self.reply_to = None

    @property
    def message(self) -> object:
        raise self._cause


class Recorder(Actor[Any]):
    """Remembers what it is told."""

    MAILBOX: ClassVar[int] = 10_000

    def __init__(self, mailbox: Mailbox, told: list[Any], changed: threading.Condition) -> None:
        super().__init__(mailbox)
        self._told = told
        self._changed = changed

    def receive(self, message: Any) -> None:
        with self._changed:
            self._told.append(message)
            self._changed.notify_all()


class Ear:
    """A running recorder, and what it has heard."""

    def __init__(self, name: str = "Recorder") -> None:
        self._told: list[Any] = []
        self._changed = threading.Condition()
        self.ref: Ref[Any] = launch(Recorder(Recorder.mailbox_for(name), self._told, self._changed))

    def wait_for(self, kind: type[Message], count: int = 1) -> list[Any]:
        """Those of a kind, as soon as there are so many."""

        def heard() -> list[Any]:
            return [message for message in self._told if isinstance(message, kind)]

        with self._changed:
            assert self._changed.wait_for(lambda: len(heard()) >= count, WAIT_S), self._told
        return heard()

    def heard(self) -> list[Any]:
        """Whatever was sent until now; what still lies in the mailbox is read first."""
        self.ref.ask(Ping(), timeout=WAIT_S)
        return self._told


def exchange(session: str | None = "s", request_id: bytes = b"1", reply: Reply | None = None) -> tuple[Exchange, Reply]:
    """An exchange and the place where its answer goes."""
    reply = reply or Reply()
    return Exchange(reply, request_id, None if session is None else SessionId(session)), reply


def call_of(
    tool: str, arguments: bytes = b"{}", session: str | None = "s", reply: Reply | None = None
) -> tuple[Call, Reply]:
    """A call of a tool and the place where its answer goes."""
    asked, reply = exchange(session, reply=reply)
    raw = msgspec.Raw(arguments)
    return Call(new_call_id(), asked, tool, raw, summarise(raw)), reply
