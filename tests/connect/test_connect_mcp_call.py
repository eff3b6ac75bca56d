"""The client in one file: run as a program against a real daemon, and against a server that says anything."""

import ast
import base64
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import Reply, result, stream

from a2mcp.connect import mcp_call
from a2mcp.connect.mcp_call import Client, Refused, TimedOut, Unreachable, Usage, parse_pairs, show_result

SOURCE = Path(mcp_call.__file__)
ROOT = SOURCE.parents[2]
PNG = base64.b64encode(b"\x89PNG-not-really").decode()


def run(*args, url="", token="", stdin=None, cwd=None):
    """Run the file as it runs on another machine: alone, with any Python."""
    environment = {"A2MCP_URL": url, "A2MCP_TOKEN": token, "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-I", str(SOURCE), *args], env=environment, input=stdin, cwd=cwd,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


EACH = """
import json, os, sys

source, cases, ends = sys.argv[1], json.loads(sys.argv[2]), []
program = compile(open(source).read(), source, "exec")
exec(program, {"__name__": "imported"})
for args, url, token, said in cases:
    for name, text in zip("012", (said, "", "")):
        with open(name, "w") as file:
            file.write(text)
    if not (pid := os.fork()):
        for name in "012":
            os.dup2(os.open(name, os.O_RDWR), int(name))
        os.environ.update(A2MCP_URL=url, A2MCP_TOKEN=token)
        sys.argv = [source, *args]
        exec(program, {"__name__": "__main__"})
        sys.exit()
    ends.append((os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), open("1").read(), open("2").read()))
print(json.dumps(ends))
"""
"""Runs the file once for each case, in a process that need not start Python first; prints the codes and what was said."""


def run_each(cases, folder):
    """Run the file for each list of arguments, address, token and input; the exit codes and both outputs."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", EACH, str(SOURCE), json.dumps(cases)], env={"PATH": os.environ["PATH"]}, cwd=folder,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- what the file is --------------------------------------------------------------------------------------------


def test_the_documentation_has_the_same_file():
    """Issue §10: docs/how-to/mcp_call.py; it cannot drift."""
    assert (ROOT / "docs/how-to/mcp_call.py").read_bytes() == SOURCE.read_bytes()


def test_it_is_python_3_8_and_needs_no_package():
    """Issue §10: one file, standard library only, Python 3.8 or later."""
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names
    # What Python 3.8 has not: its names, and types of the library in brackets outside of annotations.
    assert not {"removeprefix", "removesuffix"} & {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}


# --- against the daemon ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/mcp"])
def test_it_calls_a_tool_of_the_daemon(shared_daemon, tmp_path, path):
    """Issue §10: tested against `/` and `/mcp`; text goes to standard output."""
    url = f"http://127.0.0.1:{shared_daemon.port}{path}"
    (tmp_path / "f").write_text("a\nb\nc\n")
    done = run("read", f"path={tmp_path}/f", "limit=1", "offset=2", url=url, token=shared_daemon.token)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2\tb" in done.stdout
    assert "3\tc" not in done.stdout
    done = run("bash", "-", url=url, token=shared_daemon.token, stdin='{"command": "echo é; exit 3"}')
    assert done.returncode == 6
    assert "é" in done.stdout


@pytest.mark.parametrize("path", ["/", "/mcp"])
def test_each_way_to_fail_has_its_exit_code(shared_daemon, path):
    """Issue §10: tool error, refused, unreachable, timeout apart."""
    url, token = f"http://127.0.0.1:{shared_daemon.port}{path}", shared_daemon.token
    assert run("read", "path=/nowhere", url=url, token=token).returncode == 6
    refused = run("read", "--json", "{}", url=url, token="x" * 40)
    assert (refused.returncode, refused.stdout) == (7, "")
    assert "HTTP 401" in refused.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = run("read", "--json", "{}", url=f"http://127.0.0.1:{free.getsockname()[1]}/", token=token)
    assert closed.returncode == 8
    slow = run("bash", "--json", '{"command": "sleep 20"}', "--timeout", "0.5", url=url, token=token)
    assert slow.returncode == 9
    assert "Traceback" not in refused.stderr + closed.stderr + slow.stderr


def test_a_session_that_the_daemon_forgot_is_made_again(shared_daemon):
    """Seed: 404 means to shake hands again."""
    client = Client(f"http://127.0.0.1:{shared_daemon.port}/", shared_daemon.token)
    client.tools()
    client._headers["mcp-session-id"] = "11111111-2222-3333-4444-555555555555"
    assert client.call("bash", {"command": "true"})["isError"] is False
    client.close()


def test_without_a_tool_it_lists_them(shared_daemon):
    """Ours: one wants to know what there is."""
    done = run(url=f"http://127.0.0.1:{shared_daemon.port}/", token=shared_daemon.token)
    assert done.returncode == 0
    assert {"read", "bash"} <= {line.split("\t")[0] for line in done.stdout.splitlines()}


MISUSED = [
    ["read", "path"], ["read", "=x"], ["read", "limit=many"], ["read", "--json", "[1]"], ["read", "--json", "{"],
    ["read", "-", "-"], ["read", "path=a", "path=b"], ["read", "--timeout", "soon"], ["read", "--token-file", "/nowhere"],
]  # fmt: skip


@pytest.fixture(scope="module")
def misused(shared_daemon, tmp_path_factory):
    """How it ends with each wrong usage."""
    url = f"http://127.0.0.1:{shared_daemon.port}/"
    cases = [(args, url, shared_daemon.token, "{}") for args in MISUSED]
    return run_each(cases, tmp_path_factory.mktemp("misused"))


@pytest.mark.parametrize("args", MISUSED, ids=" ".join)
def test_wrong_usage_ends_with_2(misused, args):
    """Issue §10: exit codes."""
    code, out, err = misused[MISUSED.index(args)]
    assert (code, out) == (2, "")
    assert "Traceback" not in err


NO_ADDRESSES = ["", "nonsense", "ftp://x/", "http://", "http://u:p@x/", "http://x:99999/", "http://[x/"]


@pytest.fixture(scope="module")
def sent_nowhere(tmp_path_factory):
    """How it ends with each address that is none."""
    return run_each([(["read"], url, "", "") for url in NO_ADDRESSES], tmp_path_factory.mktemp("nowhere"))


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_an_address_that_is_none_ends_with_2(sent_nowhere, url):
    """Issue §10: exit codes; a token is sent to no address that was not meant."""
    assert sent_nowhere[NO_ADDRESSES.index(url)][0] == 2


# --- against a server that says anything -------------------------------------------------------------------------


def progress(value, message):
    return {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progress": value, "total": 3, "message": message},
    }


def answered(message, text="done"):
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}


def test_a_streamed_answer_is_read_with_its_progress(scripted):
    """Issue §4 and §10: both reply forms; comments and other events are skipped."""
    scripted.answers["tools/call"] = lambda message: stream(
        b": keep-alive\r\n\r\n", progress(1, "one\x1b[2K"), {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, progress(2, "two"),
        b"event: message\nid: 5\ndata: " + json.dumps(answered(message)).replace(", ", ",\ndata: ").encode() + b"\n\n",
    )  # fmt: skip
    done = run("t", "--json", "{}", url=scripted.url)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == "one [2K (progress 1 of 3)\ntwo (progress 2 of 3)\n"
    call = scripted.seen[2][0]
    assert call["params"]["_meta"] == {"progressToken": "call"}


def test_a_server_without_sessions_is_sent_no_session(scripted):
    """Issue §2: sessions are never issued on /mcp; the header is sent only where one was."""
    client = Client(scripted.url, "secret")
    client.call("t", {})
    client.close()
    assert scripted.methods == ["initialize", "notifications/initialized", "tools/call"]
    for _, headers in scripted.seen:
        names = {name.lower(): value for name, value in headers.items()}
        assert "mcp-session-id" not in names
        assert names["authorization"] == "Bearer secret"
        assert names["accept"] == "application/json, text/event-stream"
    assert scripted.seen[2][1]["MCP-Protocol-Version"] == "2025-11-25"


def test_a_session_is_sent_with_everything_and_ended(scripted):
    """Seed, "Sessions": the header, and DELETE at the end."""
    scripted.answers["initialize"] = lambda message: Reply(
        pieces=result(message, {"protocolVersion": "2025-06-18"}).pieces, mcp_session_id="s-1"
    )
    with_session = Client(scripted.url)
    with_session.call("t", {})
    with_session.close()
    assert scripted.methods == ["initialize", "notifications/initialized", "tools/call", "DELETE"]
    assert {headers.get("mcp-session-id") for _, headers in scripted.seen[1:]} == {"s-1"}
    assert scripted.seen[2][1]["MCP-Protocol-Version"] == "2025-06-18"


def test_a_session_that_is_never_known_ends_in_a_refusal(scripted):
    """Ours: one new handshake, not for ever."""
    scripted.answers["initialize"] = lambda message: Reply(pieces=result(message, {}).pieces, mcp_session_id="s-1")
    scripted.answers["tools/call"] = lambda message: Reply(404)
    client = Client(scripted.url)
    with pytest.raises(Refused, match="HTTP 404"):
        client.call("t", {})
    assert scripted.methods.count("tools/call") == 1
    scripted.answers["tools/call"] = lambda message: Reply(404) if len(scripted.seen) < 7 else result(message, {})
    client.call("t", {})


def test_pages_of_tools_are_followed_and_a_circle_is_left(scripted):
    """Issue §2: pagination with opaque cursors."""
    pages = {None: ("a", "2"), "2": ("b", "3"), "3": ("c", "2")}

    def listed(message):
        name, following = pages[message["params"].get("cursor")]
        return result(message, {"tools": [{"name": name}, "junk", {"name": 5}], "nextCursor": following})

    scripted.answers["tools/list"] = listed
    assert [tool["name"] for tool in Client(scripted.url).tools()] == ["a", "b", "c"]


def test_a_call_given_up_is_cancelled(scripted):
    """Ours: nobody waits for it any more, so the server may stop it."""
    scripted.answers["tools/call"] = lambda message: (scripted.released.wait(20), stream())[1]
    with pytest.raises(TimedOut):
        Client(scripted.url, timeout=0.3).call("t", {})
    assert scripted.methods[-1] == "notifications/cancelled"
    assert scripted.seen[-1][0]["params"]["requestId"] == 2


def test_a_stream_that_drips_is_ended_by_the_time(scripted):
    """Ours: every byte would start a time-out of the socket anew."""
    pause = threading.Event()

    def drip():
        for _ in range(2000):
            yield b": keep-alive\n\n"
            pause.wait(0.01)

    scripted.answers["tools/call"] = lambda message: Reply(pieces=drip(), kind="text/event-stream")
    with pytest.raises(TimedOut):
        Client(scripted.url, timeout=0.3).call("t", {})
    scripted.answers["tools/call"] = lambda message: Reply(pieces=(b" " for _ in drip()))
    with pytest.raises(TimedOut):
        Client(scripted.url, timeout=0.3).call("t", {})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda m: Reply(pieces=[b"not json"]), Refused),
        (lambda m: Reply(pieces=[b"[]"]), Refused),
        (lambda m: Reply(pieces=[b'{"x": ' + b"[" * 100000]), Refused),
        (lambda m: Reply(pieces=[b'{"id": 2, "x": ' + b"9" * 5000 + b"}"]), Refused),
        (lambda m: Reply(pieces=[json.dumps({"id": m["id"], "result": []}).encode()]), Refused),
        (lambda m: Reply(pieces=[json.dumps({"id": m["id"], "error": {"code": -32602, "message": "no"}}).encode()]), Refused),
        (lambda m: Reply(307, location="http://elsewhere.example/"), Refused),
        (lambda m: Reply(503, pieces=[b'{"error": {"code": -32000, "message": "busy"}}']), Refused),
        (lambda m: stream(), Unreachable),
        (lambda m: stream({"jsonrpc": "2.0", "id": 77, "result": {}}), Unreachable),
        (lambda m: stream(b"data: \xff\n\n"), Refused),
    ],
)  # fmt: skip
def test_an_odd_answer_is_a_named_error(scripted, answer, error):
    """Issue §10: refused and unreachable apart; never a traceback."""
    scripted.answers["tools/call"] = answer
    with pytest.raises(error):
        Client(scripted.url).call("t", {})


def test_images_go_to_new_files_and_their_names_are_printed(scripted, tmp_path):
    """Issue §10: writes images to files; never over one that is there."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a_b-1.png").write_bytes(b"mine")
    blocks = [
        {"type": "text", "text": "before"}, {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "audio", "data": PNG, "mimeType": "x/../../y"}, {"type": "image", "data": "%%"},
        {"type": "resource", "resource": {"uri": "x:y", "text": "inner"}}, {"type": "resource_link", "uri": "x:z"}, 7,
        {"type": "odd"},
    ]  # fmt: skip
    scripted.answers["tools/call"] = lambda message: result(message, {"content": blocks})
    done = run("a/b", "--images", "out", url=scripted.url, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "before", "[out/a_b-2.png]", "[out/a_b-1.bin]", "[data that is no base64]", "inner", "[x:z]", "[odd]",
    ]  # fmt: skip
    assert (tmp_path / "out" / "a_b-2.png").read_bytes() == b"\x89PNG-not-really"
    assert (tmp_path / "out" / "a_b-1.png").read_bytes() == b"mine"
    (tmp_path / "flat").write_text("")
    assert run("t", "--images", "flat", url=scripted.url, cwd=tmp_path).returncode == 1


def test_a_result_without_blocks_shows_its_structure(tmp_path):
    """K25: no text would be nothing shown."""
    shown = []
    show_result({"structuredContent": {"a": 1}}, "t", tmp_path, shown.append)
    assert json.loads("".join(shown)) == {"a": 1}


# --- arguments ---------------------------------------------------------------------------------------------------

SCHEMA = {
    "properties": {
        "text": {"type": "string"}, "n": {"type": "integer"}, "on": {"type": "boolean"}, "any": {},
        "list": {"type": "array", "items": {"type": "string"}}, "numbers": {"type": "array", "items": {"type": "number"}},
        "object": {"type": "object"}, "maybe": {"type": ["string", "null"]}, "odd": True,
    }
}  # fmt: skip


@pytest.mark.parametrize(
    ("pairs", "arguments"),
    [
        (["text=5", "n=5"], {"text": "5", "n": 5}),
        (["text=a=b", "on=false"], {"text": "a=b", "on": False}),
        (["text="], {"text": ""}),
        (["list=a"], {"list": ["a"]}),
        (["list=a", "list=[b"], {"list": ["a", "[b"]}),
        (['list=["a", "b"]'], {"list": ["a", "b"]}),
        (["numbers=1", "numbers=2.5"], {"numbers": [1, 2.5]}),
        (['object={"a": 1}', "maybe=null"], {"object": {"a": 1}, "maybe": "null"}),
        (["maybe:=null", "text:=[1]", "list:=[]"], {"maybe": None, "text": [1], "list": []}),
        (["unknown=5", "any=5", "odd=5"], {"unknown": "5", "any": "5", "odd": "5"}),
        (["unknown=5", "unknown=6"], {"unknown": ["5", "6"]}),
    ],
)
def test_values_are_read_as_the_schema_says(pairs, arguments):
    """Issue §10: key=value typing by the tool's schema."""
    assert parse_pairs(pairs, SCHEMA) == arguments


@pytest.mark.parametrize("pair", ["n=x", "n=", "n=NaN", "on=yes", "object={", "text:=x", "numbers=a", "n", "=", ":=1"])
def test_a_value_that_is_none_of_its_type_is_refused_by_name(pair):
    """Issue §10, try-out 22: no silent default."""
    with pytest.raises(Usage) as caught:
        parse_pairs([pair], SCHEMA)
    assert pair.split("=")[0].rstrip(":") in str(caught.value)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"]]), st.text(alphabet='a5[]{}",.=: \\', max_size=8)))
def test_any_pair_is_read_or_refused(values):
    """Ours: and a string is taken as it stands."""
    try:
        read = parse_pairs([f"{key}={value}" for key, value in values.items()], SCHEMA)
    except Usage:
        return
    assert read.keys() == values.keys()
    assert read.get("text", "") == values.get("text", "")
