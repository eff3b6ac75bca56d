"""The operator's side of a real daemon: watching, stopping, granting; health and metrics."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from harness import Daemon, running, until
from inflight import Later
from prometheus_client.parser import text_string_to_metric_families
from standard_client import Standard, legacy
from watchers import Watching, decide, operator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One for the tests that end it and start it again."""
    with running(tmp_path_factory.mktemp("restarted") / "home") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def cautious(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("cautious") / "home", settings={"approval": {"mode": "write"}}) as daemon:
        yield daemon


@pytest.fixture
def asking(cautious: Daemon) -> Iterator[Daemon]:
    """The same, and nothing stays granted after the test."""
    yield cautious
    for grant in operator(cautious, "GET", "/grants")[1]:
        operator(cautious, "POST", "/grants/revoke", {"id": grant["id"]})


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One that forbids a tool, in spite of a grant, waits a second for the operator, and shows no metrics."""
    home = tmp_path_factory.mktemp("strict") / "home"
    home.mkdir(mode=0o700)
    (home / "grants.json").write_text('{"grants":[{"id":"g1","tool":"bash","since":"x"}]}')
    approval = {"mode": "write", "timeout_s": 1, "tools": {"bash": "deny"}}
    with running(home, settings={"approval": approval, "observe": {"metrics": False}}) as daemon:
        yield daemon


def waiting(daemon: Daemon, count: int = 1) -> list[dict[str, Any]]:
    def seen() -> tuple[Any] | None:
        shown = operator(daemon, "GET", "/approvals")[1]
        return (shown,) if len(shown) == count else None

    (shown,) = until(seen, what=f"{count} calls waiting")
    return shown


# --- watching -----------------------------------------------------------------------------------------------------


def test_a_call_is_seen_as_it_happens(shared_daemon: Daemon) -> None:
    """Issue 6, items 2 and 3: within 200 ms; replay, then live."""
    client = shared_daemon.session()
    ours = f"kind=call&session={client.session}"
    client.call("bash", command="echo before")
    until(lambda: len(operator(shared_daemon, "GET", f"/events?{ours}")[1]) == 2, what="the first call in the store")
    with Watching(shared_daemon, f"history=1&{ours}") as watching:
        assert watching.next()["kind"] == "call.done"
        began = time.monotonic()
        client.call("bash", command="echo now", timeout=5)
        start = watching.next()
        assert time.monotonic() - began < 1.0, "0.2 s, on a machine with nothing else to do"
        done = watching.until("call.done")

    assert (start["kind"], start["tool"], start["session"]) == ("call.start", "bash", client.session)
    assert start["args"]["command"] == "echo now"
    assert (done["status"], done["call"]) == ("ok", start["call"])
    assert done["sequence"] == start["sequence"] + 1


def test_a_thousand_calls_under_watch_are_all_in_the_store(shared_daemon: Daemon) -> None:
    """Issue 6: 20 watchers open during a 16-client load, and the store has every call."""
    watchers = [Watching(shared_daemon) for _ in range(20)]
    sessions: set[str | None] = set()

    def calls() -> None:
        client = shared_daemon.session()
        sessions.add(client.session)
        for _ in range(63):
            assert client.call("jobs", action="list").status == 200

    clients = [threading.Thread(target=calls) for _ in range(16)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(60)

    def stored() -> list[dict[str, Any]]:
        found = operator(shared_daemon, "GET", "/events?limit=10000&kind=call.done")[1]
        return [event for event in found if event["session"] in sessions]

    until(lambda: len(stored()) == 16 * 63, what="every call in the store")
    done = [record for record in shared_daemon.audit() if record["phase"] == "done" and record["tool"] == "jobs"]
    assert {record["id"] for record in done if record["sid"] in sessions} == {event["call"] for event in stored()}
    whole = operator(shared_daemon, "GET", "/events?limit=10000&after=0")[1]
    assert [event["sequence"] for event in whole] == list(range(1, len(whole) + 1)), "not one gap"
    for watcher in watchers:
        with watcher:
            assert watcher.next()["sequence"] >= 1
    shared_daemon.alive()


def test_a_watcher_that_comes_back_goes_on_where_it_was_and_so_do_the_numbers(restarted: Daemon) -> None:
    """Issue 6, item 2: reconnects and catches up by sequence; kill -9 leaves the store readable."""
    client = restarted.session()
    client.call("bash", command="true")
    with Watching(restarted, "history=100") as watching:
        seen = watching.until("call.done", session=client.session)["sequence"]
    restarted.session()
    until(lambda: len(operator(restarted, "GET", f"/events?after={seen}")[1]) == 1, what="an event that it missed")
    restarted.kill()
    restarted.start()
    restarted.session()
    with Watching(restarted, "tool=nothing", Last_Event_ID=str(seen)) as filtered:
        assert filtered.status == 200
    with Watching(restarted, Last_Event_ID=str(seen)) as watching:
        assert [watching.next()["sequence"] for _ in range(2)] == [seen + 1, seen + 2]


@pytest.mark.parametrize("query", ["after=x", "history=-1", "nonsense=1", "after=-3"])
def test_a_watcher_that_asks_nonsense_is_told(shared_daemon: Daemon, query: str) -> None:
    """Ours: a bad query is a clear error and no silent stream."""
    with Watching(shared_daemon, query) as refused:
        assert refused.status == 400


def test_the_command_line_watches_and_filters(shared_daemon: Daemon) -> None:
    """Issue 6, item 3: `observe --history --no-follow --json`, filters; `top`."""
    client = shared_daemon.session()
    client.call("write", path="a.txt", content="one\n")
    client.call("edit", path="a.txt", edits=[{"oldText": "one", "newText": "two"}])
    client.call("read", path="/no/such")
    ours = f"/events?kind=call.done&session={client.session}"
    until(lambda: len(operator(shared_daemon, "GET", ours)[1]) == 3, what="three calls")

    observe = ("observe", "--no-follow", "--session", str(client.session))
    lines = shared_daemon.cli(*observe, "--json", "--status", "error").stdout.splitlines()
    assert [json.loads(line)["tool"] for line in lines] == ["read"]
    text = shared_daemon.cli(*observe, "--path", "a.txt", "--kind", "call.done").stdout
    assert [line.split()[2] for line in text.splitlines()] == ["write", "edit"]
    assert "\x1b" not in text
    assert shared_daemon.cli("top", "--json").stdout.strip() == "[]"


def test_the_command_line_follows_through_a_restart(restarted: Daemon) -> None:
    """Issue 6, item 3: live after replay."""
    until(lambda: watched_by(restarted, 0), what="the end of those who watched before")
    watcher = subprocess.Popen(
        [sys.executable, "-u", "-m", "a2mcp", "observe", "--json", "--kind", "session"], cwd=restarted.home,
        env=restarted.environment | {"PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watcher.stdout is not None
    try:
        until(lambda: watched_by(restarted, 1), what="it watches")
        session = restarted.session().session
        # What it replays is of those who were here before.
        first = next(event for line in watcher.stdout if (event := json.loads(line)).get("session") == session)
        assert restarted.stop() == 0
        restarted.start()
        until(lambda: watched_by(restarted, 1), what="it watches again")
        session = restarted.session().session
        second = json.loads(watcher.stdout.readline())
    finally:
        watcher.send_signal(signal.SIGINT)
        code = watcher.wait(10)
        watcher.stdout.close()
    assert (first["status"], second["status"]) == ("opened", "opened")
    assert second["session"] == session
    assert second["sequence"] > first["sequence"]
    assert code == 0


def watched_by(daemon: Daemon, count: int) -> bool:
    return f"a2mcp_watchers {count}\n".encode() in get(daemon, "/metrics")[1]


# --- stopping -----------------------------------------------------------------------------------------------------


def test_the_operator_sees_and_ends_what_runs(shared_daemon: Daemon) -> None:
    """Issue 6, item 2: calls in flight and cancel, sessions and end one, jobs with output and stop."""
    others = sessions_of(shared_daemon)
    client = shared_daemon.session()
    slow = Later(lambda: client.call("bash", command="echo begun; sleep 60", wait=50))

    def running_call() -> Any:
        return next(iter(operator(shared_daemon, "GET", "/calls")[1]), None)

    call = until(running_call, what="the call in flight")
    assert (call["tool"], call["session_id"], call["waiting"]) == ("bash", client.session, False)
    assert shared_daemon.cli("top", "--cancel", call["call_id"]).returncode == 0
    assert "The operator stopped this call" in slow.result().text
    assert operator(shared_daemon, "POST", "/calls/cancel", {"id": call["call_id"]})[0] == 404

    client.call("bash", command="echo line; sleep 60", wait=0)
    (job,) = (one for one in operator(shared_daemon, "GET", "/jobs")[1] if one["state"] == "running")
    output = f"/jobs/output?id={job['id']}"
    until(lambda: operator(shared_daemon, "GET", output)[1]["text"] == "line\n", what="its output")
    assert operator(shared_daemon, "GET", f"{output}&offset=-2")[1]["text"] == "e\n"
    with Watching(shared_daemon, "kind=job") as watching:
        assert operator(shared_daemon, "POST", "/jobs/stop", {"id": job["id"]})[0] == 202
        ended = watching.until("job.ended")
    assert ended["args"]["output_bytes"] == 5
    assert "no job" in operator(shared_daemon, "POST", "/jobs/stop", {"id": "jnothing2"})[1]["error"]["text"]

    (session,) = sessions_of(shared_daemon) - others
    assert session == client.session
    assert operator(shared_daemon, "POST", "/sessions/end", {"id": session})[0] == 200
    assert operator(shared_daemon, "POST", "/sessions/end", {"id": session})[0] == 404
    assert client.ask("ping").status == 404

    found = operator(shared_daemon, "GET", "/audit?tool=operator")[1]
    assert [one["args"]["action"] for one in found] == ["cancel", "stop job", "end session"]
    (cancelled,) = operator(shared_daemon, "GET", "/audit?outcome=cancelled&text=BEGUN")[1]
    assert cancelled["id"] == call["call_id"]
    assert operator(shared_daemon, "GET", "/audit?nonsense=1")[0] == 400


def sessions_of(daemon: Daemon) -> set[str]:
    return {session["id"] for session in operator(daemon, "GET", "/sessions")[1]}


# --- approvals ----------------------------------------------------------------------------------------------------


def test_a_session_is_asked_once_and_a_restart_asks_again(asking: Daemon) -> None:
    """Issue 6, item 4: for this session; what is asked again after a restart."""
    client = asking.session()
    first = Later(lambda: client.call("bash", command="echo one"))
    (seen,) = waiting(asking)
    said = asking.cli("approve", seen["id"], "--session").stdout
    assert "bash in its session" in said
    assert "one" in first.result().text
    assert "two" in client.call("bash", command="echo two").text, "not asked again"

    other = asking.session()
    asked = Later(lambda: other.call("bash", command="echo three"))
    (seen,) = waiting(asking)
    assert asking.cli("approve", seen["id"], "--always", "--for", "1h").returncode == 0
    assert "three" in asked.result().text
    (session, always) = json.loads(asking.cli("approvals", "--granted", "--json").stdout)
    assert (session["session_id"], always["session_id"]) == (client.session, None)
    assert always["until"] is not None

    assert asking.stop() == 0
    asking.start()
    assert operator(asking, "GET", "/grants")[1] == [always]
    assert "four" in asking.session().call("bash", command="echo four").text
    assert "asked about again" in asking.cli("approvals", "--revoke", always["id"]).stdout
    fresh = asking.session()
    again = Later(lambda: fresh.call("bash", command="echo five"))
    (seen,) = waiting(asking)
    decide(asking, seen["id"], approve=False)
    assert again.result().result["isError"] is True


def test_a_deny_of_the_settings_is_above_every_grant(strict: Daemon) -> None:
    """Ours: a grant is an answer to a question, and here nobody asks."""
    assert "deny" in strict.session().call("bash", command="echo no").text


def test_a_caller_with_a_stream_is_told_that_it_waits_and_when_it_goes_on(asking: Daemon) -> None:
    """Issue 6, item 4: progress "waiting for the operator"; what progress says only rises."""
    params = {"name": "bash", "arguments": {"command": "echo ran"}, "_meta": {"progressToken": "p"}}
    message, headers = legacy("tools/call", params)
    with Standard(asking).stream(message, headers) as stream:
        told = stream.next()["params"]
        assert told == {"progressToken": "p", "progress": 0, "message": "Waiting for the operator to allow this call."}
        (seen,) = waiting(asking)
        assert operator(asking, "POST", "/approvals", {"id": seen["id"], "approve": True})[0] == 200
        rest = stream.rest()

    values = [0] + [one["params"]["progress"] for one in rest[:-1]]
    assert values == sorted(set(values))
    assert "allowed this call" in rest[0]["params"]["message"]
    assert "ran" in rest[-1]["result"]["content"][0]["text"]


def test_a_call_is_refused_when_nobody_answers_in_time(strict: Daemon) -> None:
    """Issue 6, item 4: a timeout setting."""
    answer = strict.session().call("write", path="never", content="x")
    assert answer.result["isError"] is True
    assert "did not answer within 1 s" in answer.text
    assert not (strict.home / "never").exists()


# --- health and metrics -------------------------------------------------------------------------------------------


def get(daemon: Daemon, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=10)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_token_and_tells_no_secret(shared_daemon: Daemon, path: str) -> None:
    """Issue 6, item 5."""
    status, body = get(shared_daemon, path)

    assert (status, json.loads(body)) == (200, {"status": "ok"})
    assert get(shared_daemon, path, Host="evil.example")[0] == 403
    assert get(shared_daemon, path, Origin="https://evil.example")[0] == 403
    assert shared_daemon.client(token=None).send("POST", path).status == 405


def test_metrics_are_for_this_machine_or_the_token(shared_daemon: Daemon) -> None:
    """Issue 6, item 5: loopback or bearer. SECURITY: a tunnel connects from loopback, too."""
    shared_daemon.session().call("bash", command="true")
    bearer = f"Bearer {shared_daemon.token}"
    for headers in ({"X_Forwarded_For": "203.0.113.9"}, {"Cf_Connecting_Ip": "203.0.113.9"}, {"Forwarded": "for=x"}):
        assert get(shared_daemon, "/metrics", **headers)[0] == 401
        assert get(shared_daemon, "/metrics", Authorization=bearer, **headers)[0] == 200
    assert get(shared_daemon, "/metrics", Host="evil.example")[0] == 403
    status, body = get(shared_daemon, "/metrics")

    found = {one.name: one for one in text_string_to_metric_families(body.decode())}
    assert status == 200
    assert found["a2mcp_audit_records"].samples[0].value >= 2
    assert {one.labels["tool"] for one in found["a2mcp_calls"].samples} >= {"bash"}
    assert {one.labels["actor"] for one in found["a2mcp_mailbox_depth"].samples} >= {"Events", "AuditWriter"}


def test_metrics_can_be_off_and_other_paths_still_need_the_token(strict: Daemon) -> None:
    """Issue 6, item 5: off by setting; deny by default."""
    assert get(strict, "/metrics")[0] == 404
    for path in ("/metrics/", "/metrics/x", "/healthz/", "/healthz%2f", "//healthz"):
        status, _ = get(strict, path)
        assert status in (401, 405), path
        assert strict.client(token=None).send("POST", path).status == 401


def test_a_full_disk_pauses_events_and_calls_go_on(tmp_path: Path) -> None:
    """Issue 6, bad input: the store's disk full."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "events.db").mkdir()
    with running(home) as daemon:
        assert "hi" in daemon.session().call("bash", command="echo hi").text
        until(lambda: "events are not kept" in daemon.stderr, what="the notice")
        with Watching(daemon, "kind=call") as watching:
            daemon.session().call("bash", command="echo still")
            assert watching.until("call.done")["status"] == "ok"
        daemon.alive()


def test_a_client_without_a_token_opens_no_events(shared_daemon: Daemon) -> None:
    """Issue 6: a remote caller with the token has nothing of the operator's."""
    for path in ("/events", "/calls", "/approvals"):
        assert shared_daemon.session().send("GET", path).status == 405
    assert oct((shared_daemon.home / "events.sock").stat().st_mode)[-3:] == "600"
    assert not os.access(shared_daemon.home / "events.sock", os.X_OK)
