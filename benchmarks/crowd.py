"""A crowd of connections that want nothing: idle ones, and ones whose call never ends."""

from __future__ import annotations

import contextlib
import select
import socket
from typing import TYPE_CHECKING, Final

from a2mcp.bench.messages import FIRST_ID, make
from a2mcp.bench.plan import Step
from a2mcp.bench.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.bench.plan import Plan

HANGING: Final = 1000
IDLE: Final = 900
_PATIENCE_SECONDS: Final = 10.0


@contextlib.contextmanager
def hanging(plan: Plan, count: int = HANGING) -> Iterator[list[socket.socket]]:
    """Hold ``count`` calls of ``hang``, each on a connection of its own, until the block is left."""
    template = make(plan, Step(tool="hang"), open_session(plan))
    with _connections(plan, count) as crowd:
        for number, connection in enumerate(crowd):
            connection.sendall(template.render(FIRST_ID + number))
        yield crowd


@contextlib.contextmanager
def idle(plan: Plan, count: int = IDLE) -> Iterator[list[socket.socket]]:
    """Hold ``count`` connections that have been used once and are kept open, until the block is left."""
    template = make(plan, Step(method="ping"), open_session(plan))
    with _connections(plan, count) as crowd:
        for number, connection in enumerate(crowd):
            connection.sendall(template.render(FIRST_ID + number))
            connection.recv(65536)
        yield crowd


def disturbed(crowd: list[socket.socket]) -> int:
    """How many of them got an answer or were closed: none should."""
    poll = select.poll()
    for connection in crowd:
        poll.register(connection, select.POLLIN)
    return len(poll.poll(0))


@contextlib.contextmanager
def _connections(plan: Plan, count: int) -> Iterator[list[socket.socket]]:
    where = (plan.address.ip, plan.address.port)
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(where, timeout=_PATIENCE_SECONDS)) for _ in range(count)]
