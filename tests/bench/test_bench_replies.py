"""Reading replies: framing as HTTP has it, in any number of pieces, and what counts as an error."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.bench.replies import MAX_BODY, Malformed, Reader, head_of, judge

ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":false}}'
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;note=x\r\n%b\r\n%x\r\n%b\r\n0\r\nTrailer: yes\r\n\r\n"
    % (ANSWER[:5], len(ANSWER) - 5, ANSWER[5:])
)
STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    b': hello\r\nid: 1\r\ndata:\r\n\r\nevent: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\r\n\r\n'
    b"data: " + ANSWER + b"\r\n\r\n"
)


def pieces(data, cuts):
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[left:right] for left, right in itertools.pairwise(places)]


@given(st.sampled_from([SIZED, CHUNKED, b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED]), st.lists(st.integers(0, 500)))
def test_a_reply_is_whole_with_its_last_byte_however_it_is_cut(raw, cuts):
    """RFC 9112 §6: Content-Length and chunked."""
    reader = Reader()
    *first, last = pieces(raw, cuts)
    assert [reader.feed(piece) for piece in first] == [None] * len(first)
    reply = reader.feed(last)
    assert reply is not None
    assert reply.body == ANSWER
    assert judge(reply, 7) is None
    assert reader.empty


@given(st.lists(st.integers(0, 500)))
def test_an_event_stream_that_ends_with_the_connection_is_read_to_its_answer(cuts):
    """MCP 2025-11-25, transports: a server may answer a POST with an event stream."""
    reader = Reader()
    for piece in pieces(STREAM, cuts):
        assert reader.feed(piece) is None
    reply = reader.finish()
    assert reply is not None
    assert reply.head.close
    assert judge(reply, 7) is None


def test_a_reply_that_is_cut_off_is_not_whole():
    """RFC 9112 §8: an incomplete message."""
    for raw in (SIZED[:-1], CHUNKED[:-3], b""):
        reader = Reader()
        assert reader.feed(raw) is None
        assert reader.finish() is None


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"5" * 5000,
        b"x" * 70_000,
    ],
)
def test_what_is_not_http_is_refused(raw):
    """Ours: bounded memory, whatever a server sends."""
    with pytest.raises(Malformed):
        Reader().feed(raw)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, {"id": 7, "result": {}}, None),
        (200, {"id": 7, "result": {"isError": True}}, "isError"),
        (200, {"id": 7, "error": {"code": -32601, "message": "x"}}, "rpc -32601"),
        (200, {"id": 8, "result": {}}, "wrong id"),
        (200, {"id": 7}, "not json-rpc"),
        (200, {"id": 7, "result": 5}, "not json-rpc"),
        (200, [], "not json-rpc"),
        (401, {"id": 7, "result": {}}, "http 401"),
        (503, {}, "http 503"),
    ],
)
def test_every_kind_of_failure_has_a_name(status, body, kind):
    """Issue: errors by kind."""
    raw = json.dumps(body).encode()
    reply = Reader().feed(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(raw), raw))
    assert reply is not None
    assert judge(reply, 7) == kind


def test_http_1_0_closes_unless_it_says_otherwise():
    """RFC 9112 §9.3."""
    assert head_of(b"HTTP/1.0 200 OK").close
    assert not head_of(b"HTTP/1.0 200 OK\r\nConnection: keep-alive").close
    assert not head_of(b"HTTP/1.1 200 OK").close
