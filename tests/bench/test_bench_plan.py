"""What may be measured, and the bytes that are sent."""

import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.bench import plan as plans
from a2mcp.bench.errors import BadPlan
from a2mcp.bench.messages import FIRST_ID, check_token, header_value, make
from a2mcp.bench.plan import Era, Plan, Step, one_tool, order, read_mix, resolve
from a2mcp.bench.replies import head_of

LOCAL = "http://127.0.0.1:9/mcp?x=1"


def a_plan(**changes):
    return Plan(**{"address": resolve(LOCAL), "steps": (), **changes})


def sent(template, ident=FIRST_ID):
    head, _, body = template.render(ident).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines), body


def test_an_address_of_another_machine_is_refused():
    """Issue: refuses a non-loopback address without --yes-remote."""
    with pytest.raises(BadPlan, match="not this machine"):
        resolve("http://192.0.2.1/mcp")
    assert resolve("http://192.0.2.1/mcp", allow_remote=True).ip == "192.0.2.1"


def test_a_name_is_refused_when_any_of_its_addresses_is_elsewhere(monkeypatch):
    """Ours: a name with two addresses must not slip through by its first one."""
    answers = [(2, 1, 6, "", ("127.0.0.1", 80)), (2, 1, 6, "", ("192.0.2.1", 80))]
    monkeypatch.setattr(plans.socket, "getaddrinfo", lambda *_, **__: answers)
    with pytest.raises(BadPlan, match=r"192\.0\.2\.1"):
        resolve("http://two.example/mcp")


def test_a_name_without_an_address_is_refused(monkeypatch):
    """Ours: wrong usage, not a traceback."""

    def unknown(*_, **__):
        raise socket.gaierror("unknown")

    monkeypatch.setattr(plans.socket, "getaddrinfo", unknown)
    with pytest.raises(BadPlan, match="has no address"):
        resolve("http://nowhere.invalid/")


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:80",
        "https://127.0.0.1/",
        "http://",
        "http://127.0.0.1:99999/",
        "http://u:p@127.0.0.1/",
        "http://[::1/",
    ],
)
def test_what_is_no_plain_http_url_is_refused(url):
    """Ours: wrong usage is found before the first byte is sent."""
    with pytest.raises(BadPlan):
        resolve(url)


def test_a_line_break_in_the_path_never_reaches_the_request():
    """Ours: no header injection through the URL."""
    assert resolve("http://127.0.0.1/a\r\nx:y").target.isprintable()
    with pytest.raises(BadPlan):
        resolve("http://127.0.0.1/a b")


def test_a_legacy_call_carries_session_version_and_token():
    """MCP 2025-11-25, transports."""
    plan = a_plan(token="t-1")
    first, headers, body = sent(make(plan, one_tool("echo", '{"text":"é"}')[0], "s-1"), 1_000_000_007)
    assert first == "POST /mcp?x=1 HTTP/1.1"
    assert headers["mcp-session-id"] == "s-1"
    assert headers["mcp-protocol-version"] == "2025-11-25"
    assert headers["authorization"] == "Bearer t-1"
    assert headers["host"] == "127.0.0.1:9"
    assert int(headers["content-length"]) == len(body)
    assert json.loads(body) == {
        "jsonrpc": "2.0",
        "id": 1_000_000_007,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "é"}},
    }


def test_initialize_carries_no_session():
    """MCP 2025-11-25, lifecycle."""
    _, headers, body = sent(make(a_plan(), Step(method="initialize"), "s-1"))
    assert "mcp-session-id" not in headers
    assert json.loads(body)["params"]["protocolVersion"] == "2025-11-25"


def test_a_modern_call_mirrors_its_message_in_the_headers():
    """MCP 2026-07-28, transports: version, method and name."""
    template = make(a_plan(era=Era.MODERN), Step(tool="wörld"), None)
    _, headers, body = sent(template)
    meta = json.loads(body)["params"]["_meta"]
    assert headers["mcp-protocol-version"] == meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "=?base64?d8O2cmxk?="
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}


def test_a_notification_has_no_id():
    """JSON-RPC 2.0."""
    template = make(a_plan(), Step(method="notifications/initialized"), None)
    assert not template.expects_reply
    assert "id" not in json.loads(sent(template)[2])


@given(st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), max_size=12))
def test_a_mirrored_value_is_always_a_legal_header(value):
    """MCP 2026-07-28: base64 for all that HTTP does not take as it is."""
    written = header_value(value)
    assert written.isascii()
    assert written == written.strip()
    assert written == value or written.startswith("=?base64?")


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_a_mix_keeps_its_shares_exactly(weights):
    """Issue: a mix from a file."""
    sequence = order(tuple(Step(weight=weight, method="ping") for weight in weights))
    assert [sequence.count(index) for index in range(len(weights))] == weights


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "cannot be used"),
        ("[]", "is empty"),
        ('[{"weight": 1}]', "Entry 0"),
        ('[{"tool": "a", "method": "b"}]', "Entry 0"),
        ('[{"tool": "a"}, {"tool": "b", "weight": 0}]', "Entry 1"),
        ('[{"tool": "a", "wieght": 2}]', "wieght"),
        ('[{"tool": 5}]', r"\$\[0\]\.tool"),
    ],
)
def test_a_mix_that_is_wrong_is_refused_with_the_place(tmp_path, text, said):
    """Ours: a clear error for bad input."""
    path = tmp_path / "mix.json"
    path.write_text(text)
    with pytest.raises(BadPlan, match=said):
        read_mix(path)


def test_arguments_must_be_an_object():
    """Ours: a clear error for bad input."""
    with pytest.raises(BadPlan, match="not a JSON object"):
        one_tool("echo", "[1]")


@pytest.mark.parametrize("token", ["", " \n", "a b", "é", "a\r\nx: y"])
def test_a_token_that_cannot_stand_in_a_header_is_refused(token):
    """Ours: no header injection through the token file."""
    with pytest.raises(BadPlan):
        check_token(token)
    assert check_token(" abc\n") == "abc"


def test_a_header_block_is_parsed_once():
    """Ours: the same bytes give the same object."""
    block = b"HTTP/1.1 200 OK\r\nX: once"
    assert head_of(block) is head_of(bytes(bytearray(block)))
