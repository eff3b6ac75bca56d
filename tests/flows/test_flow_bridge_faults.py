"""A fault of ours: a fixed text to the caller, the cause to stderr, and the next request is served."""

from __future__ import annotations

import logging

import pytest
import wire
from edge import SESSION, TOKEN, edge

INTERNAL = b'"error":{"code":-32603,"message":"internal error"}}'


@pytest.mark.parametrize(
    "fault",
    [
        RuntimeError("secret /etc/passwd"),
        RecursionError("deep"),
        MemoryError(),
        KeyError("x"),
        UnicodeError("y"),
        OSError(28, "full"),
    ],
    ids=lambda fault: type(fault).__name__,
)
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
def test_an_internal_fault_is_500_with_a_fixed_text(
    method: str, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Seed, "Table of errors" (错误码总表): 500 -32603, details on the host's stderr only; row H14."""
    with edge() as served, wire.Line(served.port) as line:
        served.front.fault = lambda: fault
        with caplog.at_level(logging.ERROR):
            line.send(wire.post(wire.message(method, 7, {"name": "fail"}), TOKEN, session=SESSION))
            broken = line.answer()
        line.send(wire.post(wire.message("ping"), TOKEN, session=SESSION))
        after = line.answer()

    assert broken.status == 500
    assert broken.body.endswith(INTERNAL)
    assert broken.headers["content-type"] == "application/json"
    assert after.result == {}
    assert [record.getMessage() for record in caplog.records] == ["[a2mcp] internal error:"]
    assert str(fault) not in broken.body.decode() or not str(fault)


def test_an_app_that_breaks_beyond_its_handlers_is_500_too(caplog: pytest.LogCaptureFixture) -> None:
    """Seed, "Order of processing" (请求处理顺序) 10: whatever is left over is 500."""

    def app(_environ: object, _start: object) -> list[bytes]:
        raise ZeroDivisionError("secret")

    with edge(app=app) as served, wire.Line(served.port) as line:
        line.send(wire.post(b"{}", TOKEN) * 2)
        answers = line.answers(2)

    assert [answer.status for answer in answers] == [500, 500]
    assert b"secret" not in answers[0].body
    assert len(caplog.records) == 2


def test_a_request_that_cannot_even_be_answered_ends_its_connection_only(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the loop's own rim; a daemon that served one broken request goes on serving."""
    from a2mcp.http.server import responses

    with edge() as served:
        with wire.Line(served.port) as line, monkeypatch.context() as patched:
            patched.setattr(responses, "encode", lambda *_, **__: 1 / 0)
            line.send(wire.post(wire.INITIALIZE, TOKEN))
            assert line.ended()
        with wire.Line(served.port) as line:
            line.send(wire.post(wire.INITIALIZE, TOKEN))
            assert line.answer().status == 200

    assert [record.getMessage() for record in caplog.records] == ["[a2mcp] internal error:"]
