"""The parts of the stdio bridge by themselves: lines, events, headers, and which daemon."""

from __future__ import annotations

import io
import json
import os
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdio_client import call, handshake, modern, request

from a2mcp.config.endpoint import Endpoint
from a2mcp.errors import A2mcpError, BodyTooLarge, NoDaemon
from a2mcp.protocol import jsonrpc
from a2mcp.protocol.eras import decoded
from a2mcp.stdio import finder as finders
from a2mcp.stdio.finder import Finder
from a2mcp.stdio.headers import Speech, encoded
from a2mcp.stdio.link import events
from a2mcp.stdio.pipes import Input, Output

ENDPOINT = Endpoint(url="http://127.0.0.1:1/mcp", bridge_url="", token="t", pid=1, version="", started_at="")


def message(document):
    return jsonrpc.decode(json.dumps(document).encode())


# --- lines -------------------------------------------------------------------------------------------------------


def test_lines_are_read_whatever_ends_them():
    """Issue §8: one JSON message a line."""
    source = Input(io.BytesIO(b'{"a":1}\r\n\n \r\n{"b":2}\n{"c":3}'))
    assert [source.read() for _ in range(4)] == [b'{"a":1}', b'{"b":2}', b'{"c":3}', None]


@pytest.mark.parametrize("length", [11, 12, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_line_that_is_too_long_is_skipped_to_its_end(length):
    """Ours: one bad message stays one bad message, and is not kept in memory."""
    source = Input(io.BytesIO(b"x" * length + b"\nnext\n"), longest=10)
    with pytest.raises(BodyTooLarge):
        source.read()
    assert source.read() == b"next"


def test_a_line_of_just_the_limit_is_taken():
    """Ours: a limit is inclusive."""
    source = Input(io.BytesIO(b"x" * 10 + b"\n" + b"y" * 10), longest=10)
    assert [source.read(), source.read()] == [b"x" * 10, b"y" * 10]


def test_what_is_written_is_one_line_and_an_absent_reader_is_noticed():
    """Issue §8: one message a line, however the server laid it out."""
    near, far = os.pipe()
    output = Output(far)
    output.write(b'{"a":\r\n 1}')
    assert os.read(near, 100) == b'{"a":   1}\n'
    assert not output.gone
    os.close(near)
    assert output.gone
    output.write(b"{}")
    assert output.gone
    os.close(far)


# --- events ------------------------------------------------------------------------------------------------------


def test_events_give_their_data_and_nothing_else():
    """Issue §4: comments keep a stream open and mean nothing."""
    stream = b': keep-alive\n\nevent: message\nid: 7\ndata: {"a":\ndata: 1}\n\nretry: 5\n\ndata:{}\r\n\r\ndata: cut'
    assert list(events(io.BytesIO(stream))) == [b'{"a":\n1}', b"{}"]


# --- headers -----------------------------------------------------------------------------------------------------


@given(st.text() | st.integers() | st.booleans())
def test_any_value_survives_the_form_of_a_header(value):
    """Reference §2.2: plain ASCII as it is, everything else in base64."""
    header = encoded(value)
    assert header.isascii()
    assert header.isprintable()
    assert decoded(f" {header}\t") == (value if isinstance(value, str) else json.dumps(value))


def test_a_version_is_sent_once_it_is_agreed_on():
    """Issue §8: after the handshake the negotiated version is remembered."""
    speech = Speech()
    opening = message(handshake("2025-06-18", "ed"))
    speech.introduced(opening)
    assert "MCP-Protocol-Version" not in speech.headers(opening)
    speech.learn(opening, msgspec.Raw(b'{"protocolVersion":"2025-06-18"}'))

    assert "MCP-Protocol-Version" not in speech.headers(opening)
    for later in (message(request("ping")), None):
        assert speech.headers(later)["MCP-Protocol-Version"] == "2025-06-18"
        assert speech.headers(later)["X-A2MCP-Client"] == "ed"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "é", 7, None])
def test_a_client_whose_name_is_no_header_goes_without(name):
    """Ours: what a client calls itself must not end in the headers of a request."""
    speech = Speech()
    speech.introduced(message(handshake(name=name)))
    assert "X-A2MCP-Client" not in speech.headers(message(request("ping")))


def test_a_modern_message_is_repeated_in_its_headers():
    """Issue §3: mirrored headers, in base64 where needed, and those a schema asks for."""
    speech = Speech()
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
            "absent": {"type": "string", "x-mcp-header": "Absent"},
        },
    }
    tools = {"tools": [{"name": "où", "inputSchema": schema}]}
    speech.learn(message(modern("tools/list")), msgspec.Raw(json.dumps(tools).encode()))
    headers = speech.headers(message(modern("tools/call", name="où", arguments={"region": "eu", "deep": {"on": True}})))

    assert headers["MCP-Protocol-Version"] == "2026-07-28"
    assert headers["Mcp-Method"] == "tools/call"
    assert headers["Mcp-Name"] == "=?base64?b8O5?="
    assert headers["Mcp-Param-Region"] == "eu"
    assert headers["Mcp-Param-On"] == "true"
    assert "Mcp-Param-Absent" not in headers
    assert "Mcp-Name" not in speech.headers(message(modern("tools/list")))
    assert speech.headers(message(modern("resources/read", uri="file:///a")))["Mcp-Name"] == "file:///a"


@pytest.mark.parametrize(
    "params", [None, [], 7, {"name": 7}, {"name": None}, {"name": "t", "arguments": 5}, {"name": "t", "arguments": {}}]
)
def test_odd_parameters_are_the_daemons_to_refuse(params):
    """Issue, "Bad input": the bridge passes on what it does not understand."""
    speech = Speech()
    schema = {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    tools = {"tools": [{"name": "t", "inputSchema": schema}]}
    speech.learn(message(modern("tools/list")), msgspec.Raw(json.dumps(tools).encode()))
    document = modern("tools/call")
    if isinstance(params, dict):
        document["params"] |= params
    else:
        document["params"] = params
    assert "Mcp-Param-A" not in speech.headers(message(document))


def test_what_is_learned_from_is_read_leniently():
    """Ours: an answer of another shape teaches nothing and breaks nothing."""
    speech = Speech()
    for raw in (b"{}", b"[]", b'{"tools":[{"name":1}]}', b'{"protocolVersion":1}'):
        for method in ("tools/list", "initialize"):
            speech.learn(message(request(method)), msgspec.Raw(raw))
    assert speech.headers(message(call("read"))) == speech.headers(None)


# --- which daemon ------------------------------------------------------------------------------------------------


class Home:
    """A home whose daemon comes and goes as a test says."""

    def __init__(self):
        self.served = False
        self.endpoint = None
        self.starts = 0

    def start(self):
        self.starts += 1
        self.served, self.endpoint = True, ENDPOINT

    def fail(self):
        self.starts += 1
        raise A2mcpError("it cannot")

    def finder(self, start=None):
        return Finder(lambda: self.endpoint, lambda: self.served, start)


@pytest.fixture
def hurried(monkeypatch):
    """Nothing is waited for that a test does not bring."""
    monkeypatch.setattr(finders, "RESTART_S", 0.2)
    monkeypatch.setattr(finders, "STARTING_S", 0.2)


def test_a_daemon_that_serves_is_found(hurried):
    """Issue §8: the endpoint file is read before each request."""
    home = Home()
    home.start()
    assert home.finder(home.start).find() is ENDPOINT
    assert home.starts == 1


def test_many_requests_at_once_start_one_daemon(hurried):
    """Ours: the requests of one client do not race for it."""
    home = Home()
    finder = home.finder(home.start)
    found = []
    threads = [threading.Thread(target=lambda: found.append(finder.find())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ENDPOINT] * 8
    assert home.starts == 1


def test_a_file_that_a_killed_daemon_left_is_not_believed(hurried):
    """Ours: its port may be anybody's, who would be sent the token."""
    home = Home()
    home.endpoint = ENDPOINT
    with pytest.raises(NoDaemon):
        home.finder().find()


def test_a_daemon_that_holds_the_home_and_does_not_say_where_is_not_replaced_in_silence(hurried):
    """Ours: what the start says is what the client is told."""
    home = Home()
    home.served = True
    with pytest.raises(A2mcpError, match="it cannot"):
        home.finder(home.fail).find()


def test_a_start_that_another_bridge_won_is_no_failure(hurried):
    """Ours: an editor starts all its servers at once."""
    home = Home()

    def lose():
        home.start()
        raise A2mcpError("another daemon serves this home")

    assert home.finder(lose).find() is ENDPOINT


def test_a_daemon_that_was_there_is_waited_for_before_another_is_started(hurried):
    """Issue §8: a restart is invisible; whoever runs the daemon brings it back."""
    home = Home()
    home.start()
    finder = home.finder(home.start)
    finder.find()
    home.served = False
    back = threading.Timer(0.05, lambda: setattr(home, "served", True))
    back.start()
    assert finder.find() is ENDPOINT
    back.join()
    assert home.starts == 1


def test_a_daemon_that_ends_as_soon_as_it_started_is_named(hurried):
    """Ours: nothing is waited for without end."""
    with pytest.raises(NoDaemon, match="gone"):
        Home().finder(lambda: None).find()
