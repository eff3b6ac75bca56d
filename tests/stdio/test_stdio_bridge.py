"""The stdio bridge before a server that answers as a test tells it: both forms, questions, cancellations, breakdowns."""

from __future__ import annotations

import json
import threading

import pytest
from harness import until
from scripted_server import Reply, result
from stdio_client import call, handshake, modern, request

from a2mcp.stdio import bridge as bridges


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Nothing is waited for that a test does not bring."""
    monkeypatch.setattr(bridges, "STOPPING_S", 0.3)
    monkeypatch.setattr(bridges, "DRAIN_S", 1.0)


def answered(message, text="done"):
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}


def event(piece):
    return piece if isinstance(piece, bytes) else b"data: " + json.dumps(piece).encode() + b"\n\n"


def cancelled(number):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number, "reason": "no"}}


def test_notices_and_questions_come_before_the_answer_and_the_reply_goes_back(lines, server):
    """Issue §8: forwards progress, log messages and server requests; posts the client's responses."""
    replied = threading.Event()
    notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
    question = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"message": "really?"}}

    def ask(message):
        def pieces():
            yield notice
            yield b": keep-alive\n\n"
            yield question
            replied.wait(10)
            yield answered(message)

        return Reply(pieces=map(event, pieces()), kind="text/event-stream")

    server.answers["tools/call"] = ask
    assert lines.ask(call("t", 5)) == notice
    assert lines.read() == question
    reply = {"jsonrpc": "2.0", "id": "q1", "result": {"action": "accept"}}
    lines.send(reply)
    until(lambda: reply in [m for m, _ in server.seen], what="the client's response")
    replied.set()
    assert lines.read()["id"] == 5


def test_an_id_comes_back_as_it_was_and_differs_on_the_wire(lines, server):
    """Ours: two clients of one user count from 1; a cancellation must not meet the other one's call."""
    for number in (1, "1", 'a"é', 12345678901234567890):
        assert lines.ask(call("t", number))["id"] == number
    ids = [message["id"] for message, _ in server.seen]
    assert len(set(ids)) == 4
    assert not set(ids) & {1, "1"}
    lines.ask(modern("tools/call", 7, name="t"))
    assert server.seen[-1][0]["id"] == 7


def test_a_cancellation_closes_the_connection_and_is_passed_on_by_the_id_of_the_wire(lines, server):
    """Issue §8: aborts its own request on `notifications/cancelled` and forwards it."""
    server.answers["tools/call"] = lambda _: Reply(pieces=(b"" for _ in iter(lambda: server.released.wait(20), True)))
    lines.send(call("t", 3))
    until(lambda: server.seen, what="the call")
    lines.send(cancelled(3))
    until(lambda: "notifications/cancelled" in server.methods, what="the cancellation")

    sent = {message["method"]: message for message, _ in server.seen}
    assert sent["notifications/cancelled"]["params"] == {"requestId": sent["tools/call"]["id"], "reason": "no"}
    assert lines.ask(request("ping", 4))["id"] == 4


def test_a_modern_cancellation_is_the_closed_connection_alone(lines, server):
    """Reference §2.5: the version has no notifications over HTTP, and its ids are not ours to make unique."""
    server.answers["tools/call"] = lambda _: Reply(pieces=(b"" for _ in iter(lambda: server.released.wait(20), True)))
    lines.send(modern("tools/call", 3, name="t"))
    until(lambda: server.seen, what="the call")
    lines.send(cancelled(3))
    assert lines.ask(request("ping", 4))["id"] == 4
    assert "notifications/cancelled" not in server.methods


@pytest.mark.parametrize("number", [99, "3", None, [], {}])
def test_a_cancellation_of_nothing_is_nobodys(lines, server, number):
    """Spec, cancellation: an unknown id is ignored."""
    lines.send(cancelled(number), b'{"jsonrpc":"2.0","method":"notifications/cancelled"}\n')
    assert lines.ask(request("ping", 3))["id"] == 3
    assert server.methods == ["ping"]


def test_what_is_said_after_the_handshake_is_said_in_its_version(lines, server):
    """Issue §8: after initialize the negotiated version is sent, also when nobody waited for the answer."""
    lines.send(handshake("2024-11-05"), {"jsonrpc": "2.0", "method": "notifications/initialized"}, request("ping", 1))
    assert [lines.read()["id"], lines.read()["id"]] == [0, 1]
    assert "mcp-protocol-version" not in server.sent("initialize")[0]
    for method in ("notifications/initialized", "ping"):
        assert server.sent(method)[0]["mcp-protocol-version"] == "2025-11-25"
        assert server.sent(method)[0]["authorization"] == "Bearer " + "t" * 40


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(502, [b"<html>"], "text/html"), "502"),
        (Reply(503), "503"),
        (Reply(200), "broke off"),
        (Reply(202), "broke off"),
        (Reply(200, [b"{"]), "not understood"),
        (Reply(200, [b"[]"]), "not understood"),
        (Reply(200, [b'data: {"jsonrpc":"2.0","method":"n"}\n\n'], "text/event-stream"), "broke off"),
        (Reply(401, [b"{}"]), "another token"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_that_is_none_is_an_error_of_the_bridge(lines, server, reply, said):
    """Issue §8: -32000 when nothing answers; a request is never left without an answer."""
    server.answers["tools/call"] = lambda _: Reply(reply.status, list(reply.pieces), reply.headers["Content-Type"])
    answer = lines.ask(call("t", "id"))
    while "method" in answer:
        answer = lines.read()
    assert (answer["id"], answer["error"]["code"]) == ("id", -32000)
    assert said in answer["error"]["message"]


def test_an_error_of_the_server_comes_with_the_clients_id_whatever_the_status(lines, server):
    """Issue §8: what the daemon refuses before it reads the id still finds who asked."""
    body = b'{"jsonrpc":"2.0","id":null,\n"error":{"code":-32022,"message":"no","data":{"supported":[]}}}'
    server.answers["tools/call"] = lambda _: Reply(400, [body])
    error = {"code": -32022, "message": "no", "data": {"supported": []}}
    assert lines.ask(call("t", 6)) == {"jsonrpc": "2.0", "id": 6, "error": error}


def test_a_token_that_changed_between_two_looks_is_looked_up_again(lines, server):
    """Ours: a request that was turned away for its token was not looked at, so sending it again is safe."""
    replies = iter([Reply(401, [b"{}"])])
    server.answers["tools/call"] = lambda message: next(replies, None) or result(message, {})
    assert lines.ask(call("t"))["result"] == {}
    assert server.methods == ["tools/call"] * 2


def test_requests_wait_for_their_answers_side_by_side(lines, server):
    """Issue §8: a slow call holds up nothing."""
    server.answers["tools/call"] = lambda m: (server.released.wait(20), result(m, {}))[1]
    lines.send(*(call("t", number) for number in range(5)))
    assert lines.ask(request("ping", "quick"))["id"] == "quick"
    server.released.set()
    assert {message["id"] for message in lines.end()} == set(range(5))


def test_more_requests_than_are_carried_are_refused_by_their_id(lines, server, monkeypatch):
    """STYLE 12: every buffer has a chosen size."""
    monkeypatch.setattr(bridges, "MOST_IN_FLIGHT", 2)
    server.answers["tools/call"] = lambda m: (server.released.wait(20), result(m, {}))[1]
    lines.send(call("t", 1), call("t", 2))
    refused = lines.ask(call("t", 3))
    assert (refused["id"], refused["error"]["code"]) == (3, -32000)
    server.released.set()
    assert {message["id"] for message in lines.end()} == {1, 2}


def test_the_end_does_not_wait_for_ever_and_cancels_what_is_left(lines, server):
    """Issue §8: EOF ends it after in-flight replies, bounded; nobody waits for the rest, so it is cancelled."""
    server.answers["tools/call"] = lambda m: (server.released.wait(20), result(m, {}))[1]
    server.answers["subscriptions/listen"] = server.answers["tools/call"]
    lines.send(call("t", 1), modern("subscriptions/listen", 2))
    assert lines.ask(modern("server/discover", 3))["id"] == 3
    lines.end()
    assert server.methods.count("notifications/cancelled") == 1


def test_a_notification_that_is_not_taken_is_reported_and_not_answered(lines, server):
    """Ours: a notification has no answer; whoever looks after the bridge is told."""
    server.answers["notifications/odd"] = lambda _: Reply(400, [b'{"error":"odd"}'])
    lines.send({"jsonrpc": "2.0", "method": "notifications/odd"})
    assert lines.ask(request("ping", 1))["id"] == 1
    assert ["odd" in text for text in lines.said] == [True]
