"""`a2mcp stdio` as a client starts it: a process, its pipes, and a real daemon that comes, goes and moves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket

import pytest
from harness import Daemon, lasting_port, until
from stdio_client import call, handshake, launch, modern, request


def text_of(message):
    return message["result"]["content"][0]["text"]


def calls(daemon, phase):
    return [record for record in daemon.audit() if record["phase"] == phase]


def begun(daemon, command):
    """The call of a command that no other test has, once it is on record that it began."""
    found = until(
        lambda: [call for call in calls(daemon, "start") if call["args"].get("command") == command],
        what="the call's beginning",
    )
    (started,) = found
    return started


def is_over(daemon, started):
    """Whether the end of a call is on record."""
    return any(done["id"] == started["id"] for done in calls(daemon, "done"))


@pytest.fixture
def empty_home(tmp_path):
    """A home without a daemon; one that a bridge starts there is stopped, whatever the test finds."""
    home = tmp_path / "home"
    yield home
    home.mkdir(exist_ok=True)
    assert Daemon(home).cli("stop").returncode == 0


def test_a_client_shakes_hands_lists_and_calls(shared_daemon, program):
    """Issue §8: one JSON message a line to the daemon's `/mcp` and back; nothing but protocol on stdout."""
    client = program(shared_daemon.home)

    assert client.ask(handshake("2025-06-18"))["result"]["protocolVersion"] == "2025-06-18"
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert "bash" in [tool["name"] for tool in client.ask(request("tools/list", 1))["result"]["tools"]]
    assert text_of(client.ask(call("bash", "two", command="echo hello"))).startswith("hello")
    assert client.end() == []
    assert client.process.wait(10) == 0
    assert client.process.stderr.read() == b""


def test_the_audit_names_the_client_that_the_bridge_speaks_for(shared_daemon, program):
    """Issue §8: `x-a2mcp-client` is for attribution."""
    client = program(shared_daemon.home)
    client.ask(handshake(name="an-editor"))
    client.ask(call("bash", command="echo attributed"))

    assert [r for r in calls(shared_daemon, "done") if r.get("client") == "an-editor"]


def test_a_modern_client_needs_no_handshake(shared_daemon, program):
    """Issue §3: per-request `_meta`; the bridge repeats it in headers, of any name."""
    client = program(shared_daemon.home)

    assert "2026-07-28" in client.ask(modern("server/discover"))["result"]["supportedVersions"]
    answer = client.ask(modern("tools/call", 2, name="bash", arguments={"command": "echo hello"}))
    assert answer["result"]["resultType"] == "complete"
    assert client.ask(modern("tools/call", 3, name="gibt·es nicht ", arguments={}))["error"]["code"] == -32602


def test_everything_at_once_and_the_end_still_brings_every_answer(shared_daemon, program):
    """Issue §8: EOF ends it after in-flight replies."""
    client = program(shared_daemon.home)
    client.send(handshake(), call("bash", 1, command="sleep 1; echo slow"), request("ping", 2))

    assert {message["id"] for message in client.end()} == {0, 1, 2}
    assert client.process.wait(10) == 0


def test_a_command_eats_no_byte_of_the_protocol(shared_daemon, program):
    """Try-out 05: over the stdio bridge no byte of the protocol is eaten."""
    client = program(shared_daemon.home)
    client.send(handshake(), call("bash", 1, command="cat; echo after-cat"), request("ping", 2), request("ping", 3))

    answers = {message["id"]: message for message in client.end()}
    assert set(answers) == {0, 1, 2, 3}
    assert text_of(answers[1]).startswith("after-cat")


def test_a_daemon_that_the_bridge_starts_eats_no_byte_of_the_protocol(empty_home, program):
    """Issue §8: starts the daemon if none runs. Try-out 05: the child does not read our input."""
    client = program(empty_home)
    client.send(handshake(), call("bash", 1, command="cat; echo up"), request("ping", 2))

    answers = {message["id"]: message for message in client.end()}
    assert set(answers) == {0, 1, 2}
    assert text_of(answers[1]).startswith("up")


def test_bridges_that_find_no_daemon_share_the_one_that_comes(empty_home, program):
    """Ours: an editor starts all its servers at once. Stopped once, it stays stopped: none that lost takes over."""
    clients = [program(empty_home) for _ in range(3)]
    for client in clients:
        client.send(handshake())

    assert ["result" in client.read() for client in clients] == [True] * 3


def test_without_a_daemon_each_request_is_answered_with_an_error(tmp_path, program):
    """Issue §8: `--no-start` to refuse; -32000 when nothing answers."""
    client = program(tmp_path / "home", "--no-start")

    for number in (1, "x"):
        answer = client.ask(request("ping", number))
        assert (answer["id"], answer["error"]["code"]) == (number, -32000)
        assert "a2mcp start" in answer["error"]["message"]
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert client.end() == []
    assert client.process.wait(10) == 0


def test_a_restart_on_another_port_is_invisible(tmp_path, program):
    """Issue §8: re-reads `endpoint.json` before each request."""
    daemon = Daemon(tmp_path / "home", settings={"port": 0}).start()
    try:
        client = program(daemon.home, "--no-start")
        client.ask(handshake())
        before = daemon.port
        daemon.stop()
        with contextlib.ExitStack() as stack:
            # Where somebody else has it already, that does as well.
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", before)))
            daemon.start()
        assert daemon.port != before
        assert text_of(client.ask(call("bash", command="echo again"))).startswith("again")
    finally:
        daemon.kill()


def test_a_request_during_a_restart_waits_for_the_daemon(tmp_path, program):
    """Issue §8: a restart is invisible, also to a request that comes in the middle of it."""
    daemon = Daemon(tmp_path / "home").start()
    try:
        client = program(daemon.home, "--no-start")
        client.ask(handshake())
        daemon.stop()
        client.send(request("ping", 1))
        daemon.start()
        assert client.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    finally:
        daemon.kill()


def test_the_token_is_not_sent_to_who_took_the_port_of_a_killed_daemon(tmp_path, program):
    """Ours: the endpoint file outlives a kill -9, and its port may be anybody's by then."""
    daemon = Daemon(tmp_path / "home", settings={"port": lasting_port()}).start()
    daemon.kill()
    assert (daemon.home / "endpoint.json").exists()
    with socket.create_server(("127.0.0.1", daemon.port)) as stranger:
        stranger.settimeout(0)
        assert program(daemon.home, "--no-start").ask(request("ping"))["error"]["code"] == -32000
        with pytest.raises(BlockingIOError):
            stranger.accept()


def test_a_rotated_token_is_used_at_once(shared_daemon, program):
    """Issue §8: the endpoint file is read before each request."""
    client = program(shared_daemon.home)
    client.ask(handshake())
    old = shared_daemon.token

    assert shared_daemon.cli("rotate").returncode == 0
    shared_daemon.learn()
    assert shared_daemon.token != old
    assert client.ask(request("ping", 1))["result"] == {}


def test_a_cancelled_call_ends_and_is_not_answered(shared_daemon, program):
    """Issue §8: aborts its own request on `notifications/cancelled`; §4: its `done` is recorded."""
    client = program(shared_daemon.home)
    client.ask(handshake())
    client.send(call("bash", 7, command="sleep 60.1"))
    started = begun(shared_daemon, "sleep 60.1")
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})

    until(lambda: is_over(shared_daemon, started), what="the call's end")
    assert client.ask(request("ping", 8))["id"] == 8
    assert client.end() == []


def test_a_cancellation_ends_the_call_of_the_client_that_sent_it(shared_daemon, program):
    """Ours: two editors of one user both count from 1; the daemon sees ids that differ."""
    first, second = program(shared_daemon.home), program(shared_daemon.home)
    for client, seconds in ((first, 60), (second, 2)):
        client.ask(handshake())
        client.send(call("bash", 1, command=f"sleep {seconds}; echo lived"))
    started = [begun(shared_daemon, f"sleep {seconds}; echo lived") for seconds in (60, 2)]
    first.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})

    until(lambda: is_over(shared_daemon, started[0]), what="the end of the first")
    assert text_of(second.read()).startswith("lived")
    assert first.end() == []


def test_closing_the_pipes_of_a_modern_call_cancels_it(shared_daemon, program):
    """Issue §3: client closing the stream cancels the call."""
    client = program(shared_daemon.home)
    client.send(modern("tools/call", 5, name="bash", arguments={"command": "sleep 60.2"}))
    started = begun(shared_daemon, "sleep 60.2")
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})

    until(lambda: is_over(shared_daemon, started), what="the call's end")


def test_a_bridge_that_is_ended_takes_its_calls_with_it(shared_daemon, program):
    """Ours: a client that is closed ends its servers; what they were doing for it ends too."""
    client = program(shared_daemon.home)
    client.ask(handshake())
    client.send(call("bash", 1, command="sleep 60.3"))
    started = begun(shared_daemon, "sleep 60.3")
    client.process.send_signal(signal.SIGTERM)

    assert client.process.wait(10) == 0
    until(lambda: is_over(shared_daemon, started), what="the call's end")


def test_a_bridge_whose_client_is_gone_ends(shared_daemon):
    """Ours: a client that crashed leaves no process behind, and no command that runs for it."""
    near, far = os.pipe()
    with launch(shared_daemon.home, stdout=far) as process:
        os.close(far)
        process.stdin.write(json.dumps(call("bash", 1, command="sleep 60.4")).encode() + b"\n")
        process.stdin.flush()
        started = begun(shared_daemon, "sleep 60.4")
        os.close(near)
        process.stdin.close()

        assert process.wait(10) == 0
    until(lambda: is_over(shared_daemon, started), what="the call's end")


def test_bad_lines_are_answered_and_the_next_one_works(shared_daemon, program):
    """Issue, "Bad input": invalid JSON is -32700, what is no message -32600; either end of a line, empty lines, UTF-8."""
    client = program(shared_daemon.home)

    for line, number, code in (
        (b"{no json\n", None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x\xff"}\n', None, -32700),
        (b"[]\n", None, -32600),
        (b'"x"\n', None, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', None, -32600),
        (b'{"jsonrpc":"2.0","id":4}\n', 4, -32600),
        (b'{"jsonrpc":"2.0","id":5,"method":"no/such"}\n', 5, -32601),
    ):
        answer = client.ask(line)
        assert (answer["id"], answer["error"]["code"]) == (number, code), line
    assert client.ask(b'\r\n\n  {"jsonrpc":"2.0","id":"\xc3\xa9","method":"ping"} \r\n')["id"] == "é"
    client.send(b'{"jsonrpc":"2.0","id":9,"method":"ping"}')
    assert [message["id"] for message in client.end()] == [9]


def test_large_messages_pass_and_too_large_ones_are_refused_by_their_id(shared_daemon, program, tmp_path):
    """Issue §8: lines of any size up to the body limit."""
    client = program(shared_daemon.home)
    content = "ä€\n" * 600_000

    message = call("write", 1, path=str(tmp_path / "large.txt"), content=content)
    client.send(json.dumps(message, ensure_ascii=False).encode() + b"\n")
    assert client.read()["result"]["isError"] is False
    assert (tmp_path / "large.txt").read_text("utf-8") == content
    refused = client.ask(call("write", 2, path=str(tmp_path / "larger.txt"), content="x" * (9 << 20)))
    assert (refused["id"], refused["error"]["code"]) == (2, -32700)
    assert client.ask(request("ping", 3))["result"] == {}


def test_progress_of_a_call_comes_before_its_result(shared_daemon, program):
    """Issue §8: reads both reply forms."""
    client = program(shared_daemon.home)
    message = call("bash", 1, command="for i in 1 2 3; do echo $i; sleep 1; done")
    message["params"]["_meta"] = {"progressToken": "p"}
    client.send(handshake(), message)
    messages = client.end()

    notices = [m for m in messages if m.get("method") == "notifications/progress"]
    assert notices
    assert {notice["params"]["progressToken"] for notice in notices} == {"p"}
    assert messages[-1]["id"] == 1


@pytest.mark.slow
def test_a_slow_call_brings_its_result(shared_daemon, program):
    """Issue, "What it must show": a slow call over a stream, through the stdio bridge too."""
    client = program(shared_daemon.home)
    client.send(handshake(), call("bash", 1, command="sleep 25; echo done", wait=60))
    client.read()
    client._into.close()

    slow = client._arrived.get(timeout=60)
    assert text_of(slow).startswith("done")
    assert client.process.wait(10) == 0


def test_a_listening_client_hears_of_changes_and_does_not_hold_the_end(shared_daemon, program):
    """Issue §3: `subscriptions/listen`; §8: EOF ends the bridge, a stream without an end does not keep it."""
    client = program(shared_daemon.home)
    heard = client.ask(modern("subscriptions/listen", 1, notifications={"toolsListChanged": True}))

    assert heard["method"] == "notifications/subscriptions/acknowledged"
    assert client.end() == []
    assert client.process.wait(10) == 0


def test_the_help_says_what_it_is_for(shared_daemon):
    """Issue §9 of the daemon: every verb is explained."""
    shown = shared_daemon.cli("stdio", "--help").stdout
    assert "--no-start" in shown
    assert json.dumps(-32000) in shown
