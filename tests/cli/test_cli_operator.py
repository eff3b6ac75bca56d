"""The operator's channel, asked with a plain HTTP client over its socket."""

import http.client
import json
import os
import socket
import stat
import subprocess

import pytest
from fake_daemon import STATUS, Channel

from a2mcp.config.paths import home_from_environment
from a2mcp.errors import Busy, CannotListen


def ask(home, method, path, body=None):
    """Send one request; returns the status and the decoded body."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(home.socket))
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        assert response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_every_route_answers_json(home, served):
    """Issue §9."""
    code, status = ask(home, "GET", "/status")
    assert code == 200
    assert status["audit"] == {"written": 10, "failures": 0, "last": 0, "hash": ""}
    assert {
        "url",
        "pid",
        "version",
        "uptime_s",
        "sessions",
        "calls_in_flight",
        "approvals_waiting",
        "jobs_running",
    } < set(status)
    assert ask(home, "GET", "/token") == (200, {"token": "t" * 43})
    assert ask(home, "POST", "/token/rotate") == (200, {"token": "n" * 43})
    assert ask(home, "GET", "/token") == (200, {"token": "n" * 43})
    assert ask(home, "GET", "/approvals")[1][0]["id"] == "k7f3a"
    assert ask(home, "GET", "/jobs")[1][0]["id"] == "j1"
    assert ask(home, "POST", "/approvals", b'{"id": "k7f3a", "approve": true}') == (
        200,
        {"id": "k7f3a", "approved": True, "grant": None, "also": 0},
    )
    assert ask(home, "POST", "/stop") == (202, {"stopping": True})
    assert served.stopped.is_set()
    assert served.answers == [("k7f3a", True, "")]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"approve": true}',
        b'{"id": "k7f3a"}',
        b'{"id": "k7f3a", "approve": 1}',
        b'{"id": "k7f3a", "approve": "yes"}',
        b'{"id": "k7f3a", "approve": true, "x": 1}',
        b'{"id": "k7f3a", "approve": true, "reason": "\xff"}',
    ],
)
def test_an_answer_that_is_not_understood_decides_nothing(home, served, body):
    """Ours: a wrong word must not become a yes."""
    code, answer = ask(home, "POST", "/approvals", body)
    assert code == 400
    assert answer["error"]["text"].startswith("The answer is not valid")
    assert served.answers == []


@pytest.mark.usefixtures("served")
def test_wrong_requests_get_json_errors(home):
    """Issue §9: JSON errors."""
    assert ask(home, "GET", "/nothing")[0] == 404
    assert ask(home, "DELETE", "/status")[0] == 405
    assert ask(home, "GET", "/stop")[0] == 405
    code, answer = ask(home, "POST", "/approvals", b'{"id": "zzzzz", "approve": false}')
    assert (code, answer["error"]["text"]) == (404, "No call waits for approval under 'zzzzz'.")


def test_a_fault_of_ours_keeps_its_text_and_any_other_is_not_shown(home, served, capsys):
    """Style rule 7: one tree of errors; the cause of the rest goes to stderr."""
    served.fault = Busy("The actor is busy.", hint="Try again.")
    assert ask(home, "GET", "/status") == (503, {"error": {"text": "The actor is busy.", "hint": "Try again."}})
    served.fault = RuntimeError("a secret")
    code, answer = ask(home, "GET", "/status")
    assert (code, answer["error"]["text"]) == (500, "internal error")
    assert "RuntimeError: a secret" in capsys.readouterr().err
    served.fault = None
    assert ask(home, "GET", "/status")[1]["sessions"] == STATUS.sessions


def test_the_socket_is_private_whatever_the_umask(home, port):
    """Issue §9: 0600 from birth."""
    before = os.umask(0)
    try:
        channel = Channel(home, port)
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.socket.lstat().st_mode) == 0o600
    channel.close()


def test_a_socket_that_a_killed_daemon_left_is_replaced(home, port):
    """Issue §2, "kill -9 under load": restart needs no hand."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(home.socket))
    channel = Channel(home, port)
    assert ask(home, "GET", "/status")[0] == 200
    channel.close()


def test_anything_else_in_the_place_of_the_socket_is_left_alone(home, port):
    """Ours: nothing is removed that is not a socket."""
    home.socket.write_text("precious")
    with pytest.raises(CannotListen, match="is not a socket") as caught:
        Channel(home, port)
    assert caught.value.exit_code == 4
    assert home.socket.read_text() == "precious"


def test_a_home_with_a_very_long_path_is_served_from_a_short_private_folder(tmp_path, port):
    """Issue §8: a Unix socket's path has about 100 bytes."""
    home = home_from_environment({"A2MCP_HOME": str(tmp_path / ("d" * 120))})
    channel = Channel(home, port)
    try:
        assert ask(home, "GET", "/status")[0] == 200
        assert stat.S_IMODE(home.socket.parent.stat().st_mode) == 0o700
    finally:
        channel.close()
        subprocess.run(["rm", "-r", str(home.socket.parent)], check=True)


def test_a_socket_that_cannot_be_made_is_a_clear_error_and_the_umask_is_as_before(home, port):
    """Issue §9: 4 cannot listen."""
    home.root.rmdir()
    before = os.umask(0o027)
    try:
        with pytest.raises(CannotListen, match="cannot be made: No such file"):
            Channel(home, port)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
