"""The tunnel from the outside: a real daemon, the operator's commands, and a stand-in that prints what cloudflared prints."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from appended import whole_lines
from asset_server import PROGRAM, serving, sha256
from harness import running, until
from processes import alive
from stand_in import NAME, cloudflared
from watchers import operator

from a2mcp.obtain import pins

URL = f"https://{NAME}"
OURS = "build.example.org"
NO_DUFS = "dufs-of-this-test"
"""Found nowhere, so it is fetched."""


@contextlib.contextmanager
def tunnelled(folder, behaviour="good"):
    """A daemon whose cloudflared is a stand-in."""
    xfer = {"cloudflared": str(cloudflared(folder, behaviour)), "dufs": NO_DUFS}
    with running(folder / "home", settings={"xfer": xfer, "allowed_hosts": [OURS]}) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One for the tests that leave it running."""
    with tunnelled(tmp_path_factory.mktemp("shared")) as started:
        yield started


@pytest.fixture
def daemon(shared):
    """The same with a stand-in that behaves and has not run yet; the tunnel is closed after the test."""
    for path in shared.home.parent.glob("cloudflared.*"):
        path.unlink()
    behaves(shared, "good")
    yield shared
    operator(shared, "DELETE", "/tunnel")
    closed(shared)


@pytest.fixture
def recorded(daemon):
    """Asks what was recorded since the test began."""
    before = len(daemon.audit())
    return lambda tool="tunnel": records(daemon, tool, since=before)


def behaves(daemon, behaviour, name=NAME):
    """Have the next run of its cloudflared be of another kind."""
    cloudflared(daemon.home.parent, behaviour, name)


def facts(daemon):
    return operator(daemon, "GET", "/tunnel")[1]


def opened(daemon):
    operator(daemon, "POST", "/tunnel", {})
    return until(lambda: (now := facts(daemon))["state"] == "open" and now, what="the tunnel")


def closed(daemon):
    return until(lambda: (now := facts(daemon))["state"] == "closed" and now, what="the end of the tunnel")


def status_under(daemon, name):
    """What a request that came under this name is answered."""
    client = daemon.client()
    try:
        return client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, Host=name).status
    finally:
        client.close()


def records(daemon, tool="tunnel", *, since=0):
    found = [record for record in daemon.audit()[since:] if record["tool"] == tool]
    assert all(record["sid"] is None and record["phase"] == "done" for record in found)
    return [record["args"] for record in found]


def runs(daemon):
    return [json.loads(line) for line in whole_lines(daemon.home.parent / "cloudflared.runs")]


def pinned(daemon, assets, data):
    """Have dufs fetched from there, and only as these bytes; the row of the table."""
    row = {"name": "dufs", "sha256": sha256(data), "url": f"{assets.url}/dufs-test", "version": "9"}
    given = daemon.home.parent / "pin.json"
    given.write_text(json.dumps(row))
    pins.add(daemon.home / "pins.json", given, platform=pins.platform_key())
    return row


def test_the_operator_opens_it_looks_at_it_and_closes_it(daemon, recorded):
    """Issue 4 §3: start, status, stop; X health line."""
    started = daemon.cli("tunnel")
    assert (started.returncode, started.stdout) == (0, f"{URL}\n"), started
    assert runs(daemon)[0]["argv"] == ["tunnel", "--url", f"http://127.0.0.1:{daemon.port}"]
    assert URL in daemon.cli("status").stdout
    assert json.loads(daemon.cli("tunnel", "status", "--json").stdout)["url"] == URL
    assert recorded() == [{"action": "start", "url": URL, "port": daemon.port}]

    stopped = daemon.cli("tunnel", "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "The tunnel is closed.\n")
    assert not alive(runs(daemon)[0]["pid"])
    assert recorded()[1:] == [{"action": "stop", "url": URL, "port": daemon.port}]
    assert daemon.token not in (daemon.home / "a2mcp.log").read_text()
    assert daemon.cli("tunnel", "stop").returncode == 0


def test_its_name_is_ours_only_while_it_is_open(daemon):
    """O06: before open 403, while open ok, after stop 403, the old name after another open 403."""
    assert status_under(daemon, NAME) == 403
    opened(daemon)
    assert status_under(daemon, NAME) == 200
    assert (
        daemon.client().post({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, Origin=URL, Host=NAME).status == 200
    )
    assert status_under(daemon, "other.trycloudflare.com") == 403
    assert daemon.client(token=None).send("POST", "/", b"{}", Host=NAME).status == 401
    operator(daemon, "DELETE", "/tunnel")
    assert status_under(daemon, NAME) == 403
    closed(daemon)

    behaves(daemon, "good", "another-name.trycloudflare.com")
    assert opened(daemon)["url"] == "https://another-name.trycloudflare.com"
    assert status_under(daemon, "another-name.trycloudflare.com") == 200
    assert status_under(daemon, NAME) == 403


def test_names_of_the_settings_stay_ours_whatever_the_tunnel_does(daemon):
    """Ours."""
    opened(daemon)
    assert status_under(daemon, OURS) == 200
    operator(daemon, "DELETE", "/tunnel")
    closed(daemon)
    assert status_under(daemon, OURS) == 200


def test_many_starts_at_once_make_one_child(daemon, recorded):
    """Seed, tunnel: merged while it opens, reported again once it is open."""
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(operator(daemon, "POST", "/tunnel", {}))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: facts(daemon)["state"] == "open", what="the tunnel")
    assert {code for code, _ in seen} == {202}
    assert operator(daemon, "POST", "/tunnel", {})[1]["url"] == URL
    assert len(runs(daemon)) == 1
    assert len(recorded()) == 1


def test_a_remote_caller_has_no_way_to_it(daemon):
    """Seed, tunnel: not on the wire at all."""
    session = daemon.session()
    assert not [tool for tool in session.ask("tools/list").result["tools"] if "tunnel" in tool["name"]]
    assert session.post({}, "/tunnel").status == 400, "just another path of the bridge"
    assert facts(daemon)["state"] == "closed"


def test_one_that_fails_says_why_and_is_recorded_once(daemon, recorded):
    """D09: exits; audited once, with the words of the program."""
    behaves(daemon, "dies")
    failed = daemon.cli("tunnel")
    assert failed.returncode == 1
    assert "exit code 3" in failed.stderr
    (record,) = recorded()
    assert (record["action"], record["port"]) == ("start", daemon.port)
    assert "failed to request quick Tunnel" in record["error"]
    assert "exit code 3" in daemon.cli("status").stdout
    daemon.alive()


def test_one_that_is_lost_is_no_longer_ours(daemon, recorded):
    """Ours: the name may be somebody else's tomorrow."""
    behaves(daemon, "ends when told")
    opened(daemon)
    (daemon.home.parent / "cloudflared.end").touch()
    assert "ended by itself" in closed(daemon)["error"]
    assert status_under(daemon, NAME) == 403
    assert [record["action"] for record in recorded()] == ["start", "stop"]
    assert "ended by itself" in recorded()[1]["error"]


def test_a_program_that_is_not_there_is_named_and_not_fetched(daemon, recorded):
    """Seed, tunnel: a path is used as it is."""
    (daemon.home.parent / "cloudflared").unlink()
    failed = daemon.cli("tunnel")
    assert failed.returncode == 1
    assert "no such file" in failed.stderr
    assert "no such file" in recorded()[0]["error"]
    assert recorded("xfer") == []


@pytest.mark.parametrize("behaviour", ["good", "deaf", "silent"])
def test_it_is_closed_with_the_daemon(tmp_path, behaviour):
    """Seed, tunnel: no public name outlives the daemon; TERM, 2 s, KILL."""
    with tunnelled(tmp_path, behaviour) as daemon:
        operator(daemon, "POST", "/tunnel", {})
        until(lambda: runs(daemon), what="the program")
        if behaviour != "silent":
            until(lambda: facts(daemon)["state"] == "open", what="the tunnel")
        assert daemon.stop() == 0
        assert not alive(runs(daemon)[0]["pid"])
        last = records(daemon)[-1]
        if behaviour == "silent":
            assert last == {"action": "start", "port": daemon.port, "error": "stopped before it was open"}
        else:
            assert [record["action"] for record in records(daemon)] == ["start", "stop"]
        assert "internal error" not in daemon.stderr


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux ties the child's life to the daemon's")
def test_it_does_not_outlive_a_daemon_that_is_killed(tmp_path):
    """Seed, tunnel: the public name never lives longer than who opened it; SIGKILL leaves nobody to close it."""
    with tunnelled(tmp_path) as daemon:
        pid = opened(daemon)["pid"]
        os.kill(daemon.process.pid, signal.SIGKILL)
        until(lambda: not alive(pid), what="the end of the program")


def test_a_second_signal_does_not_wait_for_it(tmp_path):
    """Ours: the second signal ends the daemon within a second, and the tunnel with it."""
    with tunnelled(tmp_path, "deaf") as daemon:
        pid = opened(daemon)["pid"]
        session = daemon.session()
        thread = threading.Thread(target=hang, args=(session,))
        thread.start()
        until(lambda: operator(daemon, "GET", "/status")[1]["calls_in_flight"], what="the call")
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: refuses_connections(daemon), what="the drain")
        assert daemon.stop(signal.SIGTERM, seconds=5) == 1
        until(lambda: not alive(pid), what="the end of the program")
        thread.join(10)


def refuses_connections(daemon):
    try:
        socket.create_connection(("127.0.0.1", daemon.port), timeout=1).close()
    except OSError:
        return True
    return False


def hang(session):
    with contextlib.suppress(OSError, http.client.HTTPException):
        session.call("bash", command="sleep 60")


def test_a_named_tunnel_takes_its_token_from_a_file(daemon, tmp_path):
    """Issue 4 §3: `--provider`, token by file, never argv."""
    token = "named-tunnel-token-" + "x" * 30
    (tmp_path / "token").write_text(token + "\n")
    behaves(daemon, "named")
    options = ("--provider", "cloudflared-named", "--hostname", "tools.example.org")
    missing = daemon.cli("tunnel", "start", *options)
    assert missing.returncode == 1
    assert "TUNNEL_TOKEN" in missing.stderr
    started = daemon.cli("tunnel", "start", *options, "--token-file", str(tmp_path / "token"))
    assert started.stdout == "https://tools.example.org\n", started
    assert status_under(daemon, "tools.example.org") == 200
    (run,) = runs(daemon)
    assert run["argv"] == ["tunnel", "run"]
    assert run["env"]["TUNNEL_TOKEN"] == token
    assert token not in (daemon.home / "a2mcp.log").read_text() + daemon.stderr + json.dumps(facts(daemon))


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/tunnel", {"provider": "x"}, 409), ("POST", "/tunnel", {"url": "x"}, 400), ("POST", "/tunnel", [], 400),
        ("POST", "/programs", {"program": "sh"}, 404), ("POST", "/programs", {}, 400), ("PUT", "/tunnel", {}, 405),
    ],
)  # fmt: skip
def test_what_the_channel_does_not_take_is_said(daemon, method, path, body, code):
    """Bad input."""
    answered, document = operator(daemon, method, path, body)
    assert answered == code
    assert document["error"]["text"]
    assert facts(daemon)["state"] == "closed"


def test_a_tunnel_whose_program_is_fetched_first(tmp_path, monkeypatch):
    """Seed, tunnel: obtained like the file server; the install is on record before the program runs."""
    folders = [folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, "cloudflared").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    program = cloudflared(tmp_path, "good").read_bytes()
    with serving() as assets, running(tmp_path / "home") as daemon:
        assets.data = program
        row = {
            "name": "cloudflared",
            "sha256": sha256(program),
            "url": f"{assets.url}/cloudflared-test",
            "version": "1.2.3",
        }
        (tmp_path / "pin.json").write_text(json.dumps(row))
        assert "pinned cloudflared 1.2.3" in daemon.cli("obtain", "--pin", str(tmp_path / "pin.json")).stdout

        started = daemon.cli("tunnel")
        assert started.stdout == f"{URL}\n", started
        actions = [(record["tool"], record["args"]["action"]) for record in daemon.audit()]
        assert actions == [("xfer", "install"), ("tunnel", "start")]
        (install,) = records(daemon, "xfer")
        assert install["sha256"] == row["sha256"]
        assert install["path"] == str(daemon.home / "bin" / "cloudflared")
        listed = json.loads(daemon.cli("obtain", "--json").stdout)
        assert [(one["name"], one["state"], one["version"]) for one in listed if one["name"] == "cloudflared"] == [
            ("cloudflared", "installed", "1.2.3")
        ]


def test_a_fetch_that_fails_is_recorded_and_said(daemon, recorded):
    """X14: isError on the caller's side, an install record with asset and hash, nothing installed."""
    with serving() as assets:
        assets.data = PROGRAM
        row = pinned(daemon, assets, b"other")
        failed = daemon.cli("obtain", "dufs")
        assert failed.returncode == 1
        assert "wrong hash" in failed.stderr
        (record,) = recorded("xfer")
        assert (record["action"], record["asset"], record["sha256"]) == ("install", "dufs-test", row["sha256"])
        assert "wrong hash" in record["error"]
        assert not (daemon.home / "bin" / "dufs").exists()


def test_a_daemon_that_goes_down_waits_for_no_download(tmp_path):
    """Ours; and `status` has the bytes meanwhile."""
    with serving() as assets, tunnelled(tmp_path) as daemon:
        assets.behave(stall_after=1000)
        pinned(daemon, assets, PROGRAM)
        operator(daemon, "POST", "/programs", {"program": "dufs"})
        seen = until(
            lambda: (now := operator(daemon, "GET", "/status")[1]["downloading"]) and now["bytes"] and now, what="bytes"
        )
        assert (seen["name"], seen["bytes"], seen["total"]) == ("dufs", 1000, len(PROGRAM))
        assert f"dufs: 1000 of {len(PROGRAM)} bytes" in daemon.cli("status").stdout
        assert daemon.stop(seconds=4) == 0
        assert "cancelled" in records(daemon, "xfer")[0]["error"]
        assert "did not stop" not in daemon.stderr
