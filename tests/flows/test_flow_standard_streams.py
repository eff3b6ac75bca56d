"""Answers on ``/mcp`` that take time: streams, progress, cancellation, subscriptions."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from harness import running, until
from standard_client import BOTH_FORMS, META, Standard, fixture_argv, legacy, modern

if TYPE_CHECKING:
    from harness import Daemon

EITHER_ERA = pytest.mark.parametrize("ask", [legacy, modern])


def calling(ask: Any, tool: str, *, request_id: Any = 1, token: Any = None, **arguments: Any) -> Any:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if token is not None and ask is legacy:
        params["_meta"] = {"progressToken": token}
    more = {"progressToken": token} if token is not None and ask is modern else {}
    return ask("tools/call", params, request_id=request_id, **more)


def methods_of(messages: list[dict[str, Any]]) -> list[str]:
    return [message["method"] for message in messages if "method" in message]


def sleeper(path: Path) -> int:
    """The process that a command has written down."""
    return int(until(lambda: path.exists() and path.read_text().strip(), what="the command has started"))


# --- progress -------------------------------------------------------------------------------------------------------


@EITHER_ERA
@pytest.mark.parametrize("token", ["t 1", 7])
def test_progress_comes_on_a_stream_under_its_token(mcp: Standard, ask: Any, token: str | int) -> None:
    """Source: issue, section 4; the suite's tools-call-with-progress."""
    with mcp.stream(*calling(ask, "test_tool_with_progress", token=token)) as stream:
        messages = stream.rest()

    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["x-accel-buffering"] == "no"
    assert [message["params"]["progress"] for message in messages[:-1]] == [0, 50, 100]
    assert {message["params"]["progressToken"] for message in messages[:-1]} == {token}
    assert messages[-1]["result"]["content"][0]["text"] == "done"


@EITHER_ERA
def test_progress_only_rises(mcp: Standard, ask: Any) -> None:
    """Source: specification, "progress"; the tool reports 1 twice, then 0.5, then 2."""
    key = f"rise-{ask.__name__}"
    with mcp.stream(*calling(ask, "wait-at-gate", token="t", key=key)) as stream:
        first = stream.next()
        mcp.call("open-gate", key=key)
        messages = [first, *stream.rest()]

    assert [message["params"]["progress"] for message in messages[:-1]] == [1, 2]


@EITHER_ERA
def test_no_progress_without_a_token(mcp: Standard, ask: Any) -> None:
    """Source: specification, "progress"."""
    answer = mcp.send(*calling(ask, "test_tool_with_progress"))

    assert answer.headers["content-type"] == "application/json"
    assert answer.text == "done"


def test_a_client_that_takes_no_stream_gets_the_plain_answer(mcp: Standard) -> None:
    """Source: issue, "What it must show"."""
    message, headers = calling(modern, "test_tool_with_progress", token="t")
    answer = mcp.send(message, headers | {"Accept": "application/json"})

    assert answer.headers["content-type"] == "application/json"
    assert answer.text == "done"


def test_log_messages_come_as_the_era_has_them(mcp: Standard) -> None:
    """Source: specification, "logging": on modern only with a level, and only from that level on."""
    with mcp.stream(*calling(legacy, "test_tool_with_logging")) as stream:
        assert methods_of(stream.rest()) == ["notifications/message"] * 3
    call = {"name": "test_tool_with_logging"}
    for level, count in ((None, 0), ("debug", 3), ("info", 3), ("warning", 0)):
        more = {} if level is None else {META + "logLevel": level}
        with mcp.stream(*modern("tools/call", call, **more)) as stream:
            if count:
                assert methods_of(stream.rest()) == ["notifications/message"] * count
            else:
                assert stream.headers["content-type"] == "application/json"
    assert mcp.modern("tools/call", call, **{META + "logLevel": "loud"}).error["code"] == -32602
    assert mcp.legacy("logging/setLevel", {"level": "loud"}).error["code"] == -32602
    assert mcp.legacy("logging/setLevel", {"level": "info"}).result == {}


# --- slow answers ---------------------------------------------------------------------------------------------------


@EITHER_ERA
def test_a_slow_answer_becomes_a_stream_that_is_never_silent(mcp: Standard, ask: Any) -> None:
    """Source: issue, section 4."""
    key = f"slow-{ask.__name__}"
    with mcp.stream(*calling(ask, "wait-at-gate", key=key)) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        stream.comment()
        stream.comment()
        mcp.call("open-gate", key=key)
        messages = stream.rest()

    assert [message["result"]["content"][0]["text"] for message in messages] == [f"passed {key}"]


@EITHER_ERA
def test_a_slow_answer_to_a_client_that_takes_no_stream_stays_one_piece(mcp: Standard, ask: Any) -> None:
    """Source: issue, "What it must show"."""
    message, headers = calling(ask, "bash", command="sleep 1.5; echo late")
    answer = mcp.send(message, headers | {"Accept": "application/json"})

    assert "late" in answer.text
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.slow
def test_a_command_of_25_seconds_has_headers_in_11_and_at_least_one_comment(daemon: Daemon) -> None:
    """Source: issue, "What it must show"; the real numbers."""
    client = Standard(daemon, timeout=30)
    began = time.monotonic()
    with client.stream(*calling(modern, "bash", command="sleep 25; echo done", wait=60)) as stream:
        assert time.monotonic() - began < 11.5
        assert stream.headers["content-type"] == "text/event-stream"
        messages = stream.rest()

    assert stream.comments >= 1
    assert "done" in messages[-1]["result"]["content"][0]["text"]


# --- two at once ----------------------------------------------------------------------------------------------------


@EITHER_ERA
def test_the_same_id_in_flight_twice_gets_each_its_own_answer(mcp: Standard, ask: Any) -> None:
    """Source: issue, "What it must show"."""
    keys = [f"{ask.__name__}-a", f"{ask.__name__}-b"]
    with ExitStack() as stack:
        streams = [stack.enter_context(mcp.stream(*calling(ask, "wait-at-gate", token=1, key=key))) for key in keys]
        for key in reversed(keys):
            mcp.call("open-gate", key=key)
        said = [stream.rest()[-1] for stream in streams]

    assert [answer["id"] for answer in said] == [1, 1]
    assert [answer["result"]["content"][0]["text"] for answer in said] == [f"passed {key}" for key in keys]


# --- cancellation ---------------------------------------------------------------------------------------------------


def ends(daemon: Daemon, call: str) -> list[dict[str, Any]]:
    return [record for record in daemon.audit() if record["phase"] == "done" and call in json.dumps(record)]


def test_a_modern_client_that_closes_the_stream_cancels_and_the_command_ends(mcp: Standard, tmp_path: Path) -> None:
    """Source: try-out 16; specification, "cancellation"."""
    note = tmp_path / "pid"
    command = f"sleep 300 & echo $! > {note}; wait"
    with mcp.stream(*calling(modern, "bash", token="t", command=command, wait=60)):
        process = sleeper(note)
        assert psutil.pid_exists(process)

    until(lambda: not psutil.pid_exists(process), what="the command ends")
    until(lambda: ends(mcp.daemon, str(note)), what="its end is recorded")


def test_a_legacy_client_that_closes_the_stream_cancels_nothing(mcp: Standard, tmp_path: Path) -> None:
    """Source: specification 2025-11-25, "transports": disconnecting is no cancellation."""
    note = tmp_path / "ran"
    with mcp.stream(*calling(legacy, "bash", command=f"sleep 1.3; echo yes > {note}")):
        pass

    until(note.exists, what="the command goes on")


def test_a_legacy_client_cancels_by_a_notification(mcp: Standard, tmp_path: Path) -> None:
    """Source: specification 2025-11-25, "cancellation"."""
    note = tmp_path / "pid"
    command = f"sleep 300 & echo $! > {note}; wait"
    with mcp.stream(*calling(legacy, "bash", request_id="to cancel", command=command, wait=60)) as stream:
        process = sleeper(note)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "to cancel"}}
        assert mcp.send(cancel).status == 202
        answer = stream.rest()[-1]

    assert answer["result"]["isError"] is True
    until(lambda: not psutil.pid_exists(process), what="the command ends")


def test_a_cancellation_that_names_two_calls_or_a_modern_one_names_none(mcp: Standard) -> None:
    """Source: issue, section 4."""
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
    with ExitStack() as stack:
        asked = [
            calling(legacy, "wait-at-gate", request_id=77, token=1, key="one"),
            calling(legacy, "wait-at-gate", request_id=77, token=1, key="two"),
            calling(modern, "wait-at-gate", request_id=78, token=1, key="three"),
        ]
        streams = [stack.enter_context(mcp.stream(*each)) for each in asked]
        for request_id in (77, 78, "77", None):
            mcp.send(cancel | {"params": {"requestId": request_id}})
        for key in ("one", "two", "three"):
            mcp.call("open-gate", key=key)
        said = [stream.rest()[-1]["result"]["content"][0]["text"] for stream in streams]

    assert said == ["passed one", "passed two", "passed three"]


def test_a_cancellation_on_the_bridge_is_scoped_to_its_session(fixture_daemon: Daemon, tmp_path: Path) -> None:
    """Source: issue, section 4."""
    mine, other = fixture_daemon.session(), fixture_daemon.session()
    note = tmp_path / "pid"
    body = {
        "jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": {"name": "bash", "arguments": {"command": f"sleep 300 & echo $! > {note}; wait", "wait": 60}},
    }  # fmt: skip
    mine._connection.request(
        "POST", "/", json.dumps(body), {"Authorization": f"Bearer {mine.token}", "mcp-session-id": str(mine.session)}
    )
    process = sleeper(note)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    assert other.post(cancel).status == 202
    assert Standard(fixture_daemon).send(cancel).status == 202
    assert other.ask("ping").result == {}
    assert psutil.pid_exists(process)
    assert other.post(cancel, mcp_session_id=mine.session).status == 202

    assert json.loads(mine._connection.getresponse().read())["result"]["isError"] is True
    until(lambda: not psutil.pid_exists(process), what="the command ends")


# --- subscriptions --------------------------------------------------------------------------------------------------


def listening(request_id: Any = 1, **wanted: Any) -> Any:
    return modern("subscriptions/listen", {"notifications": wanted}, request_id=request_id)


def tagged(message: dict[str, Any]) -> Any:
    return message["params"]["_meta"][META + "subscriptionId"]


def test_listen_acknowledges_first_and_tags_and_filters_what_follows(mcp: Standard) -> None:
    """Source: specification, "subscriptions". The acknowledgement was lost once: it was faster than its connection."""
    uris = ["test://watched-resource", "test://other"]
    with (
        mcp.stream(*listening("tools", toolsListChanged=True)) as tools,
        mcp.stream(*listening(8, promptsListChanged=True, resourceSubscriptions=uris)) as prompts,
    ):
        first, second = tools.next(), prompts.next()
        for change in ("tool", "resource", "prompt"):
            mcp.call(f"test_trigger_{change}_change")
        changes = [prompts.next(), prompts.next()]
        told = tools.next()

    assert first["method"] == second["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"toolsListChanged": True}
    assert second["params"]["notifications"] == {"promptsListChanged": True, "resourceSubscriptions": sorted(uris)}
    assert methods_of(changes) == ["notifications/resources/updated", "notifications/prompts/list_changed"]
    assert changes[0]["params"]["uri"] == "test://watched-resource"
    assert told["method"] == "notifications/tools/list_changed"
    assert [tagged(each) for each in (first, told, *changes)] == ["tools", "tools", 8, 8]


def test_listen_grants_nothing_that_was_not_asked_for(mcp: Standard) -> None:
    """Source: specification, "subscriptions"."""
    with mcp.stream(*listening(toolsListChanged="yes", resourceSubscriptions="test://x", more=1)) as stream:
        assert stream.next()["params"]["notifications"] == {}
    assert mcp.modern("subscriptions/listen", {"notifications": []}).error["code"] == -32602
    assert mcp.legacy("subscriptions/listen", {"notifications": {}}).error["code"] == -32601


@pytest.mark.parametrize(("accept", "status"), [(None, 200), ("*/*", 200), ("application/json", 400)])
def test_listen_needs_a_client_that_takes_a_stream(mcp: Standard, accept: str | None, status: int) -> None:
    """Source: issue, section 2: a form it allows."""
    message, headers = listening(toolsListChanged=True)
    with mcp.stream(message, headers | {"Accept": accept}) as stream:
        assert stream.status == status


def test_a_silent_subscription_is_kept_alive(mcp: Standard) -> None:
    """Source: issue, section 4."""
    with mcp.stream(*listening(toolsListChanged=True)) as stream:
        stream.next()
        stream.comment()
        stream.comment()


def threads(daemon: Daemon) -> int:
    return psutil.Process(daemon.process.pid).num_threads()


def test_200_subscriptions_cost_no_thread_and_leave_nothing(tmp_path: Path) -> None:
    """Source: issue, section 4."""
    with running(tmp_path / "home", argv=fixture_argv()) as daemon, ExitStack() as stack:
        client = Standard(daemon)
        client.call("test_trigger_tool_change")
        before, files = threads(daemon), daemon.descriptors
        streams = [stack.enter_context(client.stream(*listening(n, toolsListChanged=True))) for n in range(200)]
        assert all(stream.next()["method"].endswith("acknowledged") for stream in streams)
        client.call("test_trigger_tool_change")

        assert [tagged(stream.next()) for stream in streams] == list(range(200))
        assert threads(daemon) == before
        for stream in streams:
            stream.close()
        until(lambda: daemon.descriptors < files + 20, what="the connections are let go of")


def test_a_daemon_that_goes_down_ends_each_subscription_with_its_result(tmp_path: Path) -> None:
    """Source: specification, "subscriptions"; try-out 24."""
    with running(tmp_path / "home", argv=fixture_argv()) as daemon:
        client = Standard(daemon)
        with client.stream(*listening("sub", toolsListChanged=True)) as stream:
            stream.next()
            daemon.process.send_signal(signal.SIGTERM)
            last = stream.rest()[-1]

        assert last["id"] == "sub"
        assert last["result"] == {"resultType": "complete", "_meta": {META + "subscriptionId": "sub"}}
        assert daemon.process.wait(10) == 0


# --- restarts -------------------------------------------------------------------------------------------------------


def test_a_restart_is_invisible_to_a_client_of_mcp(tmp_path: Path) -> None:
    """Source: issue, "What it must show": an old session id after kill -9 and restart is served."""
    with running(tmp_path / "home", argv=fixture_argv()) as daemon:
        old = {"Mcp-Session-Id": "from before", "MCP-Protocol-Version": "2025-11-25"}
        assert Standard(daemon).legacy("tools/list", headers=old).result["tools"]
        os.kill(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait(10)
        daemon.kill()
        daemon.start()

        assert Standard(daemon).legacy("tools/list", headers=old).result["tools"]
        assert Standard(daemon).call("echo", text="again").text == "again"


@pytest.mark.parametrize(("version", "more", "chunked"), [("1.0", [], False), ("1.1", ["Connection: close"], True)])
def test_a_stream_whose_connection_ends_with_it_says_so(
    fixture_daemon: Daemon, version: str, more: list[str], chunked: bool
) -> None:
    """Source: ours; a client of HTTP/1.0 knows no chunks."""
    message, headers = calling(modern, "test_tool_with_progress", token="t")
    sent = headers | {"Authorization": f"Bearer {fixture_daemon.token}", "Accept": BOTH_FORMS}
    body = json.dumps(message)
    lines = [f"{name}: {value}" for name, value in sent.items()]
    lines += ["Host: localhost", f"Content-Length: {len(body)}", *more]
    said = fixture_daemon.raw((f"POST /mcp HTTP/{version}\r\n" + "\r\n".join(lines) + "\r\n\r\n" + body).encode())
    first, _, stream = said.partition(b"\r\n\r\n")

    assert b"Connection: close" in first
    assert (b"chunked" in first) is chunked
    assert stream.count(b"data: ") == 4
