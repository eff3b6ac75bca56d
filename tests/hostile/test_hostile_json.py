"""Bodies that are hostile, odd or merely unusual JSON, over the wire: each has a defined answer, then ping works."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from rows import row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness import Client, Daemon


@pytest.fixture
def client(shared_daemon: Daemon) -> Client:
    """A client with a session."""
    return shared_daemon.session()


def _ping(request_id: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % request_id


@pytest.mark.parametrize(
    "request_id",
    [b"0", b"7", b"-7", b"-0", b"1" * 400, b"%d" % 2**70, b"%d" % -(2**63), b'""', b'"7"', b'"a b"', b"null",
     b'"\\u00e9\\ud83d\\ude00\\n\\/"', '"é😀"'.encode(), b'"' + b"x" * 1000 + b'"', b'"</script>"', b'"\\u0000"'],
    ids=row("J02"),
)  # fmt: skip
def test_an_id_comes_back_byte_for_byte(client: Client, request_id: bytes) -> None:
    """Row J02: never rounded, never re-spelled."""
    answer = client.post(_ping(request_id))

    assert answer.body == b'{"jsonrpc":"2.0","id":%b,"result":{}}' % request_id
    json.loads(answer.body)


@pytest.mark.parametrize(
    "request_id",
    [b"1" * 5000, b"1.0", b"1.5", b"1e999", b"1e3", b"true", b"false", b"{}", b"[]", b"[1]", b'{"a":1}',
     b'"' + b"x" * 1_000_000 + b'"', b"-1.0"],
    ids=row("J02"),
)  # fmt: skip
def test_an_id_that_is_none_is_refused(client: Client, request_id: bytes) -> None:
    """Row J02: 400, never 500; try-out 17: 1.5 gives -32600."""
    answer = client.post(_ping(request_id))

    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32600, None)


@pytest.mark.parametrize(
    "request_id",
    [b"01", b"+1", b"0x1", b"1_0", b".5", b"1.", b"-", b"'a'", b'"\\x41"', b'"\x01"', b"NaN", b"-Infinity"],
    ids=row("J04"),
)
def test_an_id_that_is_no_json_is_a_parse_error(client: Client, request_id: bytes) -> None:
    """Rows J02 and J04."""
    answer = client.post(_ping(request_id))

    assert (answer.status, answer.error["code"]) == (400, -32700)


def test_of_repeated_members_the_last_counts_and_is_what_the_log_shows(
    shared_daemon: Daemon, client: Client, tmp_path: Path
) -> None:
    """Row J03 and try-out 08 (d): one rule for method, id, name and arguments; the audit shows what ran."""
    (tmp_path / "first").write_text("first")
    (tmp_path / "last").write_text("last")

    answer = client.post(
        b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/call",'
        b'"params":{"name":"bash","name":"read","arguments":{"path":"%b/first","path":"%b/last"}}}'
        % (bytes(tmp_path), bytes(tmp_path))
    )

    mine = [record for record in shared_daemon.audit() if record["sid"] == client.session]
    assert answer.json["id"] == 2
    if answer.result["isError"]:
        assert "path" in answer.text
    else:
        assert "last" in answer.text
    assert [(record["tool"], record["args"]) for record in mine] == [("read", {"path": f"{tmp_path}/last"})] * 2


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', b'{"jsonrpc":"2.0","id":1,"method":"ping","x":Infinity}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","x":-Infinity}', b'{"jsonrpc":"2.0","id":1,"method":"ping"/**/}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}//x', b'{"jsonrpc":"2.0","id":1,"method":"ping",}', b"{'jsonrpc':'2.0'}",
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
        '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le"), '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-32"),
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\x00', b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"\xed\xa0\x80"}', b'{"jsonrpc":"2.0","id":1,"method":"p\xc3"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\t"}', b'{jsonrpc:"2.0"}', b"\x00", b"{" * 100_000, b"[" * 100_000,
        b'{"a":' * 50_000, b'{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}',
    ],
    ids=row("J04"),
)  # fmt: skip
def test_what_only_looks_like_json_is_a_parse_error(client: Client, body: bytes) -> None:
    """Row J04: NaN, comments, commas, quotes, BOM, UTF-16/32, bad UTF-8, two texts, depth."""
    answer = client.post(body)

    assert (answer.status, answer.error["code"]) == (400, -32700)


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"[]", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b'"x"', -32600), (b"5", -32600),
     (b"null", -32600), (b"{}", -32600), (b"", -32700), (b" \r\n\t", -32700)],
    ids=row("J07"),
)  # fmt: skip
def test_other_top_levels_are_refused_as_the_table_says(client: Client, body: bytes, code: int) -> None:
    """Row J07: batch, string, number, null, empty, white space; try-out 17."""
    answer = client.post(body)

    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, code, None)


@pytest.mark.parametrize(
    "version", [b"2", b"2.0", b'"2.00"', b'"2"', b'"1.0"', b"null", b'"\\u0032.0x"'], ids=row("J09")
)
def test_the_version_must_be_the_string(client: Client, version: bytes) -> None:
    """Row J09."""
    answer = client.post(b'{"jsonrpc":%b,"id":1,"method":"ping"}' % version)

    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32600, 1)


@pytest.mark.parametrize(
    "params", [b"[]", b'"x"', b"5", b"true", b'{"name":5}', b'{"name":null}', b'{"name":["bash"]}'], ids=row("J09")
)
def test_params_of_a_call_that_cannot_be_are_invalid_params(client: Client, params: bytes) -> None:
    """Row J09: -32600 or -32602; ours: -32602, and nothing is run."""
    answer = client.post(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params)

    assert answer.error["code"] == -32602


@pytest.mark.parametrize("spelt", ["Method", "METHOD", "methoď", "method ", "\\u004dethod"], ids=row("J12"))
def test_member_names_are_matched_exactly(client: Client, spelt: str) -> None:
    """Row J12: no case folding, no look-alikes."""
    answer = client.post(f'{{"jsonrpc":"2.0","id":1,"{spelt}":"ping"}}'.encode())

    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert client.post(b'{"Jsonrpc":"2.0","id":1,"method":"ping"}').error["code"] == -32600
    assert client.post('{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"bash"}}'.encode()).result[
        "isError"
    ]


def test_escaped_names_are_the_names(client: Client) -> None:
    r"""Row J12, the good half: ``"\u006dethod"`` is ``"method"`` in JSON."""
    assert client.post(b'{"\\u006asonrpc":"2.0","id":1,"\\u006dethod":"\\u0070ing"}').result == {}


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("proto", lambda: b'{"__proto__":{"a":1},"constructor":{"prototype":1},"jsonrpc":"2.0","id":1,"method":"ping"}'),
        ("10 MB key", lambda: b'{"jsonrpc":"2.0","id":1,"method":"ping","' + b"k" * 10_000_000 + b'":1}'),
        ("10 MB method", lambda: b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 10_000_000 + b'"}'),
        ("1e6 keys", lambda: b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{' + b",".join(b'"%d":0' % n for n in range(1_000_000)) + b"}}"),
        ("1e6 top keys", lambda: b'{"jsonrpc":"2.0","id":1,"method":"ping",' + b",".join(b'"%d":0' % n for n in range(1_000_000)) + b"}"),
        ("1e6 items and no shape", lambda: b'{"id":1,"x":[' + b"{}," * 1_000_000 + b"{}]}"),
        ("half characters", lambda: b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"\\ud83d" * 1_000_000 + b'"}'),
    ],
    ids=lambda value: f"J10 {value}" if isinstance(value, str) else "",
)  # fmt: skip
def test_size_costs_time_in_proportion(
    shared_daemon: Daemon, client: Client, name: str, make: Callable[[], bytes]
) -> None:
    """Row J10: bounded, under 2 s per megabyte, and others are served meanwhile."""
    body = make()
    before = shared_daemon.rss_mb
    began = time.monotonic()

    answer = client.post(body)

    assert answer.status in (200, 400, 413), name
    assert time.monotonic() - began < 2 * max(1.0, len(body) / 1e6)
    assert shared_daemon.rss_mb < before + 20 * len(body) / 1e6 + 50


def test_the_time_a_big_body_takes_is_not_others(shared_daemon: Daemon, client: Client) -> None:
    """Row J10: while megabytes are decoded, ping is answered."""
    other = shared_daemon.session()
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[' + b'"%b",' % (b"a" * 100) * 240_000 + b"0]}"
    client._connection.request(
        "POST", "/", body, {"Authorization": f"Bearer {shared_daemon.token}", "mcp-session-id": str(client.session)}
    )

    waits = []
    for _ in range(20):
        began = time.monotonic()
        assert other.ask("ping").result == {}
        waits.append(time.monotonic() - began)

    assert client._connection.getresponse().read() == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert max(waits) < 1.0


def test_a_response_object_posted_is_an_invalid_request(client: Client) -> None:
    """Row J11: this server asks nothing, so it takes no answers."""
    answer = client.post({"jsonrpc": "2.0", "id": 1, "result": {}})

    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32600, 1)


# --- try-out 08, poisonous JSON ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [b'{"\\ud83d":1,"command":"true"}', b'{"command":"x\\udc00y"}', b'{"command":"\\udc00\\ud83d"}']
)
def test_half_a_character_is_answered_by_name(client: Client, arguments: bytes) -> None:
    """Try-out 08 (a): invalid params or isError, naming it in escaped form."""
    answer = client.post(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":%b}}' % arguments
    )

    said = answer.text if "result" in answer.json else answer.error["message"]
    assert answer.json.get("error", {}).get("code", -32602) == -32602
    assert "\\ud" in said


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (b'{"path":"/etc/hostname","limit":NaN}', {-32700}),
        (b'{"path":"/etc/hostname","limit":' + b"9" * 6000 + b"}", {-32700, -32602, "isError"}),
        (b'{"path":"/etc/hostname","limit":-' + b"9" * 6000 + b"}", {-32700, -32602, "isError"}),
        (b'{"path":' + b"[" * 5000 + b"]" * 5000 + b"}", {-32700, -32602, "isError"}),
        (b'{"path":"/etc/hostname","limit":1e999}', {-32700, -32602, "isError"}),
        (b'{"path":"/etc/host\\u0000name"}', {"isError"}),
    ],
    ids=["b NaN", "c 6000 digits", "c -6000 digits", "e 5000 arrays", "1e999", "NUL"],
)
def test_poisonous_arguments_have_a_defined_answer(client: Client, arguments: bytes, allowed: set[object]) -> None:
    """Try-out 08 (b), (c), (e): never a 500, and the log stays JSON."""
    answer = client.post(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":%b}}' % arguments
    )

    outcome = answer.error["code"] if "error" in answer.json else "isError" if answer.result["isError"] else "ran"
    assert outcome in allowed


def test_bytes_that_are_no_text_come_back_visibly_replaced(shared_daemon: Daemon, client: Client) -> None:
    """Try-out 08 (f): a result in valid JSON with the bad bytes shown."""
    answer = client.call("bash", command=r"printf 'ok\xff\xfe\n'")

    assert "ok\ufffd\ufffd" in answer.text
    answer.body.decode("utf-8", "strict")
    assert [record["phase"] for record in shared_daemon.audit() if record["sid"] == client.session] == ["start", "done"]


def test_a_giant_tool_name_is_not_exposed_and_bounded_in_the_log(shared_daemon: Daemon, client: Client) -> None:
    """Bad input: giant tool names; issue, audit: the tool name is bounded too."""
    answer = client.call("n" * 1_000_000)

    mine = [record for record in shared_daemon.audit() if record["sid"] == client.session]
    assert "not exposed" in answer.text
    assert len(answer.body) < 2000
    assert [len(json.dumps(record)) < 2000 for record in mine] == [True, True]
