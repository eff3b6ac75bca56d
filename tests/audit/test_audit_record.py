"""The lines of the audit log."""

import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2mcp.audit.record import MAX_ARGS, MAX_ERROR, Record, Summary, done_line, event_line, start_line, summarise

TS = "2026-10-16T04:35:23.000Z"
CALL = "7e1f6a52-8f0e-4b8e-9a53-0d9a3c1f5e11"
SID = "c2f0a7b4-5a8e-4b0d-8d0c-3f6f2a9b7d10"


def start(args, tool="read", sid=SID):
    return start_line(TS, CALL, sid, tool, args)


def only_line(line):
    """Parse a line as the strictest reader would."""
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    return json.loads(line.decode("utf-8"))


def test_a_start_line_has_the_members_of_the_contract_in_their_order():
    """Seed, audit: {ts,id,sid,phase:"start",tool,args}."""
    record = only_line(start(b'{"path":"/a"}'))
    assert list(record.items()) == [
        ("ts", TS),
        ("id", CALL),
        ("sid", SID),
        ("phase", "start"),
        ("tool", "read"),
        ("args", {"path": "/a"}),
    ]


@pytest.mark.parametrize("is_error", [True, False])
def test_a_done_line_says_how_the_call_ended(is_error):
    """Seed, audit: {ts,id,sid,phase:"done",tool,isError,args}."""
    record = only_line(done_line(TS, CALL, SID, "read", b"{}", is_error=is_error))
    assert list(record) == ["ts", "id", "sid", "phase", "tool", "isError", "args"]
    assert (record["phase"], record["isError"]) == ("done", is_error)


def test_an_event_is_one_done_line_that_may_have_no_session():
    """Seed, host inference and tunnel: phase done, sid null, args only what happened."""
    record = only_line(event_line(TS, CALL, None, "tunnel", {"action": "start", "error": "x" * 600, "path": "x" * 121}))
    assert "isError" not in record
    assert (record["phase"], record["sid"], record["tool"]) == ("done", None, "tunnel")
    assert record["args"]["action"] == "start"
    assert record["args"]["path"].startswith("<len:121,")
    assert record["args"]["error"] == "x" * MAX_ERROR, "the reason is said in its own words"


def test_a_call_without_a_session_has_a_null_one():
    """Issue 2 section 7: the standard dialect issues no session."""
    assert only_line(start(b"{}", sid=None))["sid"] is None


@pytest.mark.parametrize("tool", ["t" * 121, "é" * 100_000, "a\nb\x00", "\ud800", '"},"x":{"'])
def test_the_tool_name_is_bounded_and_cannot_break_the_line(tool):
    """Issue 2 section 7: the tool name is bounded too; it is the caller's text."""
    line = start(b"{}", tool=tool)
    assert len(line) < 1000
    assert len(only_line(line)["tool"]) <= 120


def test_short_plain_arguments_go_in_as_they_came():
    """Ours: what cannot need redacting is not decoded."""
    assert b'"args":{"b": 1, "a":[1.50,"x"]}' in start(msgspec.Raw(b'{"b": 1, "a":[1.50,"x"]}'))


@pytest.mark.parametrize(
    ("raw", "args"),
    [
        (b'{"password":"hunter2"}', {"password": "<secret>"}),
        (b'{"env":{"API_TOKEN":"hunter2"},"command":"x"}', {"env": {"API_TOKEN": "<secret>"}, "command": "x"}),
        (b'{"p\\u0061ssword":"hunter2"}', {"password": "<secret>"}),
        (b'{"command":"PGPASSWORD=hunter2 psql"}', {"command": "PGPASSWORD=<secret> psql"}),
        (b'{"a":"Bearer hunter2hunter2"', {"<unreadable>": '{"a":"Bearer <secret>"'}),
    ],
)
def test_no_secret_gets_into_a_line(raw, args):
    """Issue 5, P7: by its name or by its shape, also where the arguments would go in as they came."""
    assert only_line(start(raw))["args"] == args


def test_no_secret_gets_in_by_another_member():
    """Issue 5, P7: the name of the tool and of the client are the caller's text; an error may quote a program."""
    token = "ghp_" + "a1B2" * 9
    line = start_line(TS, CALL, SID, token, b"{}", client=f"agent {token}")
    event = event_line(
        TS, CALL, None, "tunnel", {"action": "start", "error": f"refused: Authorization: Bearer {token}"}
    )
    assert (only_line(line)["tool"], only_line(line)["client"]) == ("<secret>", "agent <secret>")
    assert only_line(event)["args"]["error"] == "refused: Authorization: Bearer <secret>"


@pytest.mark.parametrize(
    ("raw", "args"),
    [
        (b"", {}),
        (b'{\n\t"a":\r\n1}', {"a": 1}),
        ('{"a":"é"}'.encode(), {"a": "é"}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        (b'{"a":"\\ud800"}', {"a": "\ufffd" * 3}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"a":1e999,"b":"\xc3\xa9"}', {"a": None, "b": "é"}),
        (b'{"a":' + b"9" * 400 + b"}", {"a": "<int:1329 bits>"}),
        (b"null", None),
        (b"[1]", [1]),
        (b'{"a":', {"<unreadable>": '{"a":'}),
        (b"not json\nat all", {"<unreadable>": "not json\nat all"}),
    ],
)
def test_whatever_the_bytes_are_the_line_is_json(raw, args):
    """Tryout f and ours: line breaks, wrong UTF-8, half pairs, numbers out of range and no JSON at all."""
    assert only_line(start(raw))["args"] == args
    assert only_line(start(msgspec.Raw(raw)))["args"] == args


@pytest.mark.parametrize("depth", [32, 33, 34, 52, 60, 200, 5000])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_arguments_never_fail_a_record(depth, brackets):
    """Row U08: 32 levels are kept; deeper ones are named, not walked; a stack's worth is not decoded."""
    raw = brackets[0] * depth + b"1" + brackets[1] * depth
    line = start(raw)
    only_line(line)
    if depth <= 32:
        assert raw in line
    elif depth <= 200:
        assert b"<max-depth>" in line
    else:
        assert b"<unreadable>" in line


def test_arguments_over_a_kilobyte_keep_the_members_that_fit():
    """Seed, audit: the args summary is truncated to 1 KB; that it stays JSON is ours."""
    args = {"path": "/a/b", "lines": ["a line of a file"] * 90, "limit": 7, "<truncated>": "mine"}
    kept = only_line(start(json.dumps(args).encode()))["args"]
    assert kept["path"] == "/a/b"
    assert kept["limit"] == 7
    assert kept["lines"].startswith("<cut:")
    assert isinstance(kept["<truncated>"], int)
    assert kept["<truncated>"] > MAX_ARGS


@pytest.mark.parametrize("value", [["x" * 100] * 90, {f"key number {n}": "é" * 100 for n in range(300)}])
def test_a_summary_is_never_over_a_kilobyte(value):
    """Seed, audit: at most 1 KB, in bytes."""
    summary = bytes(summarise(json.dumps(value).encode()).args)
    assert len(summary) <= MAX_ARGS
    assert json.loads(summary)["<truncated>"] > MAX_ARGS


def test_a_summary_serves_both_lines_of_a_call():
    """Ours: a large body is redacted once."""
    summary = summarise(json.dumps({"content": "x" * 100_000}).encode())
    assert isinstance(summary, Summary)
    first, last = only_line(start(summary)), only_line(done_line(TS, CALL, SID, "write", summary, is_error=False))
    assert first["args"] == last["args"]
    assert first["args"]["content"].startswith("<len:100000,sha256:")


def test_a_record_reads_back_as_itself():
    """Ours: writer and reader share one struct."""
    record = msgspec.json.decode(start(b'{"a":1}'), type=Record)
    assert (record.id, record.phase, record.is_error, bytes(record.args)) == (CALL, "start", msgspec.UNSET, b'{"a":1}')


@given(st.binary(max_size=130) | st.text(alphabet='{}[]",:\\u0d8ae19 \n\t', max_size=130).map(str.encode))
@example(b'{"a":"\x7f"}')
@example(b"9" * 121)
@example(b'"' + b"x" * 119 + b'"')
@example(b'"' + b"x" * 120 + b'"')
@example(b'"' + b"\\n" * 60 + b'"')
def test_no_bytes_at_all_can_break_a_line(raw):
    """Ours: any bytes become one line of valid UTF-8 JSON with a bounded summary."""
    line = start(raw)
    only_line(line)
    assert len(line) < 2 * MAX_ARGS


@given(st.dictionaries(st.text(max_size=200), st.text(max_size=400) | st.lists(st.text(max_size=150)), max_size=40))
def test_any_arguments_are_summarised_within_bounds(args):
    """Ours: the bounds hold for any mixture of members."""
    summary = bytes(summarise(json.dumps(args).encode()).args)
    assert len(summary) <= MAX_ARGS
    json.loads(summary)


@given(name=st.text(min_size=1, max_size=200))
def test_a_client_is_named_within_bounds_and_cannot_break_the_line(name):
    """Issue §8: `client` is a claim of the caller's, so it is any text."""
    for line in (start_line(TS, CALL, None, "read", b"{}", client=name), done(client=name)):
        assert only_line(line)["client"] == name[:80]


def done(**more):
    return done_line(TS, CALL, None, "read", b"{}", is_error=True, **more)


def test_half_a_character_in_the_name_of_a_client_costs_no_record():
    """Ours: headers are bytes, and JSON can say half of a pair."""
    assert only_line(done(client="a\ud83d"))["client"] == "a?"


def test_a_call_that_did_not_end_by_itself_says_so_and_all_others_are_as_before():
    """Issue §3 and §8: additive members only."""
    assert list(only_line(done())) == ["ts", "id", "sid", "phase", "tool", "isError", "args"]
    assert list(only_line(done(client="c", ended="cancelled"))) == [
        "ts", "id", "sid", "phase", "tool", "client", "isError", "ended", "args",
    ]  # fmt: skip
