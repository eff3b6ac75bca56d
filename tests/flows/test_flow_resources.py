"""Resources, prompts and progress of a real daemon, as a client of the standard dialect meets them."""

from __future__ import annotations

import base64
import json
import os
import re

import pytest
from asker import Asker
from harness import running, until

TOKEN_SHOWN = "<token>"


@pytest.fixture(scope="module")
def asker(shared_daemon):
    return Asker(shared_daemon)


def test_every_resource_that_is_listed_can_be_read(asker):
    """Issue §6."""
    uris = [resource["uri"] for resource in asker.result("resources/list")["resources"]]

    assert uris == ["a2mcp://status", "a2mcp://sessions", "a2mcp://audit"]
    assert all(asker.read(uri)["text"] for uri in uris)


def test_status_says_how_the_daemon_is_and_nothing_of_the_token(asker, shared_daemon):
    """Issue §6; ours: never the token."""
    text = asker.read("a2mcp://status")["text"]
    status = json.loads(text)

    assert status["url"] == shared_daemon.endpoint["url"]
    assert status["calls_in_flight"] == 1
    assert "token_prefix" not in status
    assert shared_daemon.token not in text
    assert shared_daemon.token[:6] not in text


def test_a_session_is_listed_and_has_a_resource_of_its_own(asker, shared_daemon):
    """Issue §6: sessions and the template of one."""
    client = shared_daemon.session()
    client.call("glob", pattern="nothing-of-this-name")

    listed = json.loads(asker.read("a2mcp://sessions")["text"])["sessions"]
    one = json.loads(asker.read(f"a2mcp://session/{client.session}")["text"])

    assert client.session in [session["id"] for session in listed]
    assert one["alive"] is True
    assert {record["sid"] for record in one["records"]} == {client.session}
    client.send("DELETE")
    assert json.loads(asker.read(f"a2mcp://session/{client.session}")["text"])["alive"] is False


def test_the_audit_log_ends_with_the_read_itself(asker):
    """Issue §6: a tail; reading is recorded like a call."""
    contents = asker.read("a2mcp://audit")
    last = json.loads(contents["text"].splitlines()[-1])

    assert contents["mimeType"] == "application/x-ndjson"
    assert (last["tool"], last["phase"], last["args"]) == ("resources/read", "start", {"uri": "a2mcp://audit"})


def test_a_token_on_a_command_line_is_left_out(asker, shared_daemon):
    """Ours: never the token."""
    asker.call("bash", command=f"echo {shared_daemon.token}")
    job = asker.call("bash", command=f"echo {shared_daemon.token}; sleep 0.1", wait=0)["structuredContent"]["jobId"]
    asker.call("jobs", action="wait", id=job)

    text = asker.read("a2mcp://audit")["text"]
    assert "echo <secret>" in text, "it is masked in the record itself"
    assert shared_daemon.token not in text
    assert asker.read(f"a2mcp://jobs/{job}/output")["text"].startswith(TOKEN_SHOWN)


def test_a_job_comes_with_a_link_to_its_output(asker):
    """Issue §6: `a2mcp://jobs/{id}/output`, and links to it in results."""
    result = asker.call("bash", command="echo so far; read -r; echo the end", wait=0, stdin="")
    text, link = result["content"]

    assert link["type"] == "resource_link"
    assert link["uri"] == f"a2mcp://jobs/{result['structuredContent']['jobId']}/output"
    until(lambda: asker.read(link["uri"])["text"].startswith("so far\n"), what="output")
    assert "still running" in asker.read(link["uri"])["text"]
    asker.call("jobs", action="write", id=result["structuredContent"]["jobId"], input="\n")
    until(lambda: "the end\nexit code 0" in asker.read(link["uri"])["text"], what="the end")
    assert "action=wait" in text["text"]


def test_clients_that_know_no_links_get_none(shared_daemon):
    """Seed, "tools/call": the bridge has text and images; the text has named the job already."""
    content = shared_daemon.session().call("bash", command="sleep 5", wait=0).result["content"]
    older = Asker(shared_daemon, version="2025-03-26").call("bash", command="sleep 5", wait=0)["content"]

    assert [block["type"] for block in content] == ["text"]
    assert [block["type"] for block in older] == ["text"]


@pytest.mark.parametrize(
    "uri",
    [
        "a2mcp://nothing", "a2mcp://jobs/jnotthere2/output", "a2mcp://jobs/../../a2mcp.json/output", "a2mcp://session/0",
        "a2mcp://session/../x", "file:///nowhere/at/all", "http://example.org/", "a2mcp://", "",
    ],
)  # fmt: skip
def test_what_is_not_there_is_told_with_its_address(asker, shared_daemon, uri):
    """Reference §2.5: -32002 on legacy, -32602 with `data.uri` on modern."""
    for client, code in ((asker, -32002), (Asker(shared_daemon, can={}), -32602)):
        error = client.error("resources/read", uri=uri)
        assert (error["code"], error["data"]["uri"]) == (code, uri)


def test_the_beginning_of_a_session_is_no_session(asker, shared_daemon):
    """Ours: the filter of the audit log takes a beginning, the address does not."""
    client = shared_daemon.session()
    client.call("glob", pattern="nothing-of-this-name")
    uri = f"a2mcp://session/{client.session}"

    assert json.loads(asker.read(uri)["text"])["records"]
    for beginning in (uri[:-1], f"a2mcp://session/{client.session[:1]}"):
        assert asker.error("resources/read", uri=beginning)["code"] == -32002


def test_a_file_is_read_as_it_is(asker, tmp_path):
    """Issue §6: `file:///…`; text or blob."""
    text, blob = tmp_path / "tëxt file.txt", tmp_path / "a.png"
    text.write_text("one\ntwo\n", "utf-16")
    blob.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\1")

    assert asker.read(text.as_uri()) == {"uri": text.as_uri(), "mimeType": "text/plain", "text": "one\ntwo\n"}
    read = asker.read(blob.as_uri())
    assert (read["mimeType"], base64.b64decode(read["blob"])) == ("image/png", blob.read_bytes())
    assert "a.png" in asker.read(tmp_path.as_uri())["text"]


def test_a_file_that_cannot_be_read_is_refused_as_by_the_tool(asker, tmp_path):
    """Issue §6: the same rules as `read`; a pipe is not waited for and nothing is read without end."""
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.touch()
    os.truncate(large, 5 << 20)

    assert "pipe" in asker.error("resources/read", uri=pipe.as_uri())["message"]
    assert "larger than" in asker.error("resources/read", uri=large.as_uri())["message"]
    assert "device" in asker.error("resources/read", uri="file:///dev/zero")["message"]
    assert asker.read("file:///proc/self/status")["text"].startswith("Name:")


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A daemon that denies reading and takes small bodies on `/mcp`, for the tests that need one or the other."""
    settings = {"approval": {"tools": {"read": "deny"}}, "limits": {"mcp_body_bytes": 2048}}
    with running(tmp_path_factory.mktemp("strict") / "home", settings=settings) as daemon:
        yield daemon


def test_who_denies_the_tool_read_denies_files(strict, tmp_path):
    """Ours: no way around a rule or a switch."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    denied = Asker(strict)
    assert "deny" in denied.error("resources/read", uri=secret.as_uri())["message"]
    assert "deny" in denied.error("resources/read", uri=secret.as_uri().upper()[:5] + secret.as_uri()[5:])["message"]
    assert denied.read("a2mcp://status")
    with running(tmp_path / "off", settings={"tools": {"off": ["read"]}}) as daemon:
        client = Asker(daemon)
        assert client.error("resources/read", uri=secret.as_uri())["code"] == -32002
        assert "file" not in str(client.result("resources/templates/list"))
        assert "read" not in [tool["name"] for tool in client.result("tools/list")["tools"]]


def test_the_prompt_knows_this_host(asker, shared_daemon):
    """Issue §6: `remote-hands` with this host's facts filled in."""
    (spec,) = asker.result("prompts/list")["prompts"]
    text = asker.result("prompts/get", name=spec["name"], arguments={"server": "box"})["messages"][0]["content"]["text"]
    short = asker.result("prompts/get", name=spec["name"], arguments={"detail": "short"})["messages"][0]["content"]

    assert spec["name"] == "remote-hands"
    for fact in ('"box"', os.uname().nodename, os.uname().release, "bash", str(shared_daemon.home), "glob"):
        assert fact in text
    assert len(short["text"]) < len(text)
    assert shared_daemon.token[:6] not in text


@pytest.mark.parametrize(("argument", "value", "expected"), [("detail", "s", ["short"]), ("server", "a2", ["a2mcp"])])
def test_the_arguments_of_the_prompt_are_completed(asker, argument, value, expected):
    """Issue §6: with completion of its arguments."""
    ref = {"type": "ref/prompt", "name": "remote-hands"}
    found = asker.result("completion/complete", ref=ref, argument={"name": argument, "value": value})

    assert set(expected) <= set(found["completion"]["values"])


def test_a_wrong_argument_of_the_prompt_is_named(asker):
    """Ours."""
    assert "detail" in asker.error("prompts/get", name="remote-hands", arguments={"detail": "long"})["message"]


def test_the_templates_are_listed_and_complete_to_nothing(asker):
    """Issue §6: templates."""
    templates = [each["uriTemplate"] for each in asker.result("resources/templates/list")["resourceTemplates"]]
    ref = {"type": "ref/resource", "uri": templates[0]}

    assert templates == ["a2mcp://session/{id}", "a2mcp://jobs/{id}/output", "file:///{+path}"]
    completed = asker.result("completion/complete", ref=ref, argument={"name": "id", "value": ""})["completion"]
    assert completed["values"] == []


def progress_of(messages):
    return [message["params"] for message in messages if message.get("method") == "notifications/progress"]


@pytest.mark.parametrize("modern", [False, True])
def test_a_command_tells_how_far_it_is(shared_daemon, modern):
    """Issue §4: bytes and last line, at most once a second, only with a token."""
    client = Asker(shared_daemon, can={} if modern else None)
    script = "echo one; read -t 2.5 -r < <(sleep 5); printf 'two\\nthree'; read -t 2.5 -r < <(sleep 5); true"
    command = {"name": "bash", "arguments": {"command": script}}

    *told, answer = client.ask("tools/call", command, token="t")

    assert [(each["progress"], each["message"]) for each in progress_of(told)] == [(4, "one"), (13, "three")]
    assert {each["progressToken"] for each in progress_of(told)} == {"t"}
    assert answer["result"]["isError"] is False
    assert len(client.ask("tools/call", command)) == 1


def test_waiting_for_a_job_tells_how_far_it_is(shared_daemon):
    """Issue §4: progress of `jobs wait`."""
    client = Asker(shared_daemon)
    job = client.call("bash", command="echo begun; sleep 1.5", wait=0)["structuredContent"]["jobId"]

    *told, answer = client.ask("tools/call", {"name": "jobs", "arguments": {"action": "wait", "id": job}}, token=7)

    assert progress_of(told) == [{"progressToken": 7, "progress": 6, "message": "begun"}]
    assert "exit code 0" in answer["result"]["content"][0]["text"]


def test_the_body_of_a_request_to_mcp_has_a_limit_of_its_own(strict):
    """Issue §2 and settings: `limits.mcp_body_bytes`."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "x" * 3000}}).encode()
    assert strict.client().send("POST", "/mcp", body).status == 413
    assert strict.session().send("POST", "/", body).status == 200


def test_a_client_is_named_in_the_log(shared_daemon):
    """Issue §8: the header or the client's own name; on either path; nothing where there is neither."""
    looked_for = {"pattern": "who-is-named-in-the-log"}
    Asker(shared_daemon, x_a2mcp_client="tester " * 30).call("glob", **looked_for)
    Asker(shared_daemon, can={}).call("glob", **looked_for)
    Asker(shared_daemon).call("glob", **looked_for)
    bridge = shared_daemon.session()
    bridge.ask("tools/call", {"name": "glob", "arguments": looked_for}, X_A2MCP_Client="bridged")

    ids = [record["id"] for record in shared_daemon.audit() if record["args"] == looked_for]
    records = [record for record in shared_daemon.audit() if record["id"] in ids]
    done = [record for record in records if record["phase"] == "done"]
    assert [record.get("client") for record in done] == [("tester " * 30)[:80], "modern tests", None, "bridged"]
    assert [list(record) for record in records][-3:-2] == [
        ["ts", "id", "sid", "phase", "tool", "isError", "args", "seq", "hash"]
    ]
    assert "bridged" in shared_daemon.cli("audit").stdout


def test_a_call_that_was_cancelled_says_so_in_the_log(shared_daemon):
    """Issue §3: closing the stream cancels the call, and its `done` record says so."""
    client, command = Asker(shared_daemon, can={}), {"command": "echo given-up-by-its-client; sleep 60"}
    with client.stream("tools/call", {"name": "bash", "arguments": command}, token=1) as stream:
        stream.next()
    (started,) = [record for record in shared_daemon.audit() if record["args"] == command]

    def ends():
        return [r for r in shared_daemon.audit() if (r["phase"], r["id"]) == ("done", started["id"])]

    (done,) = until(ends, what="the end")
    assert (done["ended"], done["isError"]) == ("cancelled", True)
    (shown,) = [line for line in shared_daemon.cli("audit").stdout.splitlines() if "given-up-by-its-client" in line]
    assert "cancelled" in shown


def test_a_call_that_the_end_of_the_daemon_cut_says_so_in_the_log(tmp_path):
    """Issue §8: aborted at shutdown."""
    with running(tmp_path / "home", settings={"drain_s": 0}) as daemon:
        with Asker(daemon).stream(
            "tools/call", {"name": "bash", "arguments": {"command": "sleep 60"}}, token=1
        ) as stream:
            stream.next()
            daemon.stop()
        (done,) = [record for record in daemon.audit() if record["phase"] == "done"]

    assert (done["ended"], done["isError"]) == ("aborted", True)


def test_what_the_operator_does_is_recorded_without_the_token(strict):
    """Issue §8: rotate, approve, deny; never the token."""
    old, before = strict.token, len(strict.audit())
    strict.cli("rotate")
    strict.learn()
    (event,) = strict.audit()[before:]
    log = (strict.home / "a2mcp.log").read_text()
    line = log.splitlines()[before]

    told = (event["tool"], event["sid"], event["phase"], event["args"])
    assert told == ("operator", None, "done", {"action": "rotate"})
    assert "isError" not in event
    assert old not in log
    assert not re.search(r"[A-Za-z0-9_-]{43}", line)
