"""How a turn of an agent uses a tool, and where the tool's answer goes."""

from __future__ import annotations

import asyncio

import pytest
from living import Clock

from a2mcp.inference.admission import Admission
from a2mcp.inference.ledger import Budget, Ledger
from a2mcp.inference.registry import Registry
from a2mcp.protocol.response import Response
from a2mcp.types import SessionId
from actors.hands import Hands

ANSWER = Response(200, b'{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"done"}]}}')


@pytest.fixture
def exchanges():
    return []


@pytest.fixture
def hands(exchanges):
    clock = Clock()
    admission = Admission(Registry(clock), Ledger(clock, Budget()))

    def call_tool(exchange, _tool, _arguments):
        exchanges.append(exchange)

    return Hands(SessionId("main"), None, admission, call_tool, lambda: 0, lambda _step: None)


def test_the_answer_of_a_tool_comes_back_into_the_turn(hands, exchanges):
    """Ours: whatever thread completes the call."""

    async def turn():
        using = asyncio.ensure_future(hands.use("read", b"{}"))
        await asyncio.sleep(0)
        await asyncio.to_thread(exchanges[0].reply.complete, ANSWER)
        return await using

    assert asyncio.run(turn()).text == "done"


def test_a_tool_that_ends_after_its_turn_and_the_loop_have_disturbs_nobody(hands, exchanges):
    """Ours: a read that hangs ends long after its turn was cancelled, and is completed on the thread of the log."""
    cancelled = []

    async def turn():
        using = asyncio.ensure_future(hands.use("read", b"{}"))
        await asyncio.sleep(0)
        exchanges[0].reply.when_gone(lambda: cancelled.append("read"))
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using

    asyncio.run(turn())
    assert cancelled == ["read"]
    assert exchanges[0].reply.complete(ANSWER)
