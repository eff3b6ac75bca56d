"""Sharing files through a real daemon: the tools, their usage lines with a real curl, the records, and dufs behind it."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from asset_server import serving as assets_served
from asset_server import sha256
from fake_dufs import BIG, FakeDufs
from harness import running, until
from processes import alive

CURL = shutil.which("curl")
needs_curl = pytest.mark.skipif(CURL is None, reason="pastes the lines into a shell with curl")


def share(client, path, **arguments):
    """Share a path; what the tool answers."""
    answer = client.call("xfer_share", path=str(path), **arguments)
    assert answer.result["isError"] is False, answer.text
    assert json.loads(answer.text) == answer.result["structuredContent"]
    return answer.result["structuredContent"]


def pasted(line, daemon, folder, **more):
    """Run a usage line as a person would: with the token, and the names, put in."""
    for placeholder, value in {"<TOKEN>": daemon.token, **more}.items():
        line = line.replace(placeholder, value)
    done = subprocess.run(
        ["bash", "-c", line + " --fail-with-body -sS"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, (line, done.stdout, done.stderr)


def records(daemon):
    return [record for record in daemon.audit() if record["tool"] == "xfer"]


# --- the tools and their lines -----------------------------------------------------------------------------------


def test_the_catalogue_ends_with_the_daemons_own_tools(shared_daemon):
    """Seed, "tools/list"."""
    names = [tool["name"] for tool in shared_daemon.session().ask("tools/list").result["tools"]]
    assert names[-3:] == ["xfer_share", "xfer_status", "xfer_stop"]


@needs_curl
def test_the_lines_for_a_folder_work_when_pasted(shared_daemon, tmp_path):
    """Issue: `usage` lines really work when pasted with the token."""
    shared, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    for folder in (shared, elsewhere):
        folder.mkdir()
    (shared / "out.bin").write_bytes(os.urandom(300_000))
    (elsewhere / "in.bin").write_bytes(os.urandom(300_000))
    usage = share(shared_daemon.session(), shared)["usage"]
    assert shared_daemon.token not in json.dumps(usage)

    pasted(usage["download"], shared_daemon, elsewhere, **{"<name>": "out.bin"})
    pasted(usage["upload"], shared_daemon, elsewhere, **{"<name>": "in.bin", "<local>": "in.bin"})

    assert (elsewhere / "out.bin").read_bytes() == (shared / "out.bin").read_bytes()
    assert (shared / "in.bin").read_bytes() == (elsewhere / "in.bin").read_bytes()


@needs_curl
def test_the_line_for_a_file_works_when_pasted(shared_daemon, tmp_path):
    """Issue: also with a name that a shell would take apart; only the token is to be put in."""
    name = "a b;$(id) ä'.txt"
    (tmp_path / name).write_text("what is shared")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    usage = share(shared_daemon.session(), tmp_path / name)["usage"]
    pasted(usage["download"], shared_daemon, elsewhere)
    (written,) = elsewhere.iterdir()
    assert written.read_text() == "what is shared"


def test_the_route_is_there_exactly_as_long_as_the_share(shared_daemon, tmp_path):
    """Seed: 404 after it is closed; the token is asked for first."""
    (tmp_path / "f").write_text("f")
    client = shared_daemon.session()
    client.call("xfer_stop")
    assert client.send("GET", "/xfer/f").status == 404
    share(client, tmp_path)
    assert client.send("GET", "/xfer/f").body == b"f"
    assert shared_daemon.client(token="wrong" * 9).send("GET", "/xfer/f").status == 401
    assert client.call("xfer_stop").result["structuredContent"] == {"stopped": True, "path": str(tmp_path)}
    assert client.send("GET", "/xfer/f").status == 404


def test_a_share_expires_by_itself(shared_daemon, tmp_path):
    """Seed: TTL; its record comes without anybody asking."""
    client = shared_daemon.session()
    share(client, tmp_path, ttlSeconds=1)
    until(lambda: client.send("GET", "/xfer/").status == 404, what="the end of the share")
    until(lambda: records(shared_daemon)[-1]["args"].get("why") == "ttl expired", what="its record")
    assert records(shared_daemon)[-1]["sid"] is None
    assert client.call("xfer_status").text == '{"serving":false}'


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "xfer_share needs a 'path' — the file or directory to serve"),
        ({"path": "/no/such"}, "cannot serve /no/such: No such file or directory"),
        ({"path": "/dev/null"}, "cannot serve /dev/null: "),
        ({"path": "/x", "ttlSeconds": 0}, "Argument 'ttlSeconds': expected an integer >= 1"),
    ],
)
def test_what_cannot_be_shared_is_an_error_of_the_tool(shared_daemon, arguments, text):
    """Seed: status 200, `isError: true`, the reason as text."""
    answer = shared_daemon.session().call("xfer_share", **arguments)
    assert answer.result["isError"] is True
    assert answer.text.startswith(text)


def test_things_that_are_no_files_are_refused_at_once(shared_daemon, tmp_path):
    """Issue, "Bad input": FIFOs, sockets, links that lead nowhere or in a circle; none of them may hang the call."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        client = shared_daemon.session(timeout=5)
        for name in ("fifo", "socket", "nowhere", "circle"):
            answer = client.call("xfer_share", path=str(tmp_path / name))
            assert answer.text.startswith(f"cannot serve {tmp_path / name}: "), answer.text


def test_every_action_is_on_record_before_its_answer(tmp_path):
    """Seed: share, replacement, stop and the end of the bridge; path, port, TTL and route, no contents."""
    with running(tmp_path / "home") as daemon:
        client = daemon.session()
        share(client, tmp_path, ttlSeconds=60)
        assert records(daemon)[-1]["args"] == {
            "action": "share", "path": str(tmp_path), "port": daemon.port, "route": "/xfer/", "ttlSeconds": 60,
        }  # fmt: skip
        assert share(client, tmp_path)["replaced"] is True
        client.call("xfer_stop")
        share(client, tmp_path)
        assert daemon.stop() == 0
        told = [(record["args"]["action"], record["args"].get("why")) for record in records(daemon)]
        assert told == [
            ("share", None), ("close", "replaced"), ("share", None), ("stop", None), ("share", None),
            ("close", "bridge stopped"),
        ]  # fmt: skip
        assert all(record["phase"] == "done" and "isError" not in record for record in records(daemon))
        assert [record["sid"] for record in records(daemon)] == [client.session] * 5 + [None]


def test_no_mode_of_approval_holds_a_share_but_its_own_rule_does(tmp_path):
    """Seed: not past the gate; ours: unless the operator wrote a rule for the name."""
    settings = {"approval": {"mode": "always-ask", "tools": {"xfer_stop": "deny"}}}
    with running(tmp_path / "home", settings=settings) as daemon:
        client = daemon.session(timeout=5)
        share(client, tmp_path)
        assert client.call("xfer_stop").text.startswith("The operator's settings deny the tool 'xfer_stop'.")
        assert client.call("xfer_status").result["structuredContent"]["serving"] is True


# --- dufs --------------------------------------------------------------------------------------------------------


class Behind:
    """A daemon in front of a stand-in for dufs."""

    def __init__(self, daemon, fake, folder):
        self.daemon = daemon
        self.fake = fake
        self.folder = folder

    def get(self, what, method="GET", body=None, **headers):
        return self.daemon.client(timeout=10).send(method, f"/xfer/{what}", body, **headers)

    def share(self):
        return share(self.daemon.session(), self.folder)


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dufs")
    fake = FakeDufs(folder)
    with running(folder / "home", settings={"xfer": {"dufs": str(fake.path), "stall_s": 2}}) as daemon:
        behind = Behind(daemon, fake, folder)
        behind.share()
        yield behind
        daemon.alive()
        assert "Traceback" not in daemon.stderr


@pytest.fixture
def reopened(behind):
    """For a test that closes the share of all the others."""
    yield
    behind.share()


def test_a_path_as_setting_has_dufs_serve(behind):
    """Issue: `xfer.dufs` set to a path; seed: `port` is its own."""
    status = behind.daemon.session().call("xfer_status").result["structuredContent"]
    assert status["port"] != behind.daemon.port
    assert str(status["port"]) in behind.fake.notes("runs")[-1]["argv"]
    assert behind.get("ok?json").body == b"ok\n"
    request = behind.fake.notes("requests")[-1]
    assert request["target"] == "/xfer/ok?json"
    assert behind.daemon.token not in json.dumps(request)


def test_the_path_goes_through_to_the_letter(behind):
    """Seed: verbatim behind the prefix."""
    for path in ("a%2Fb/%2e%2e/x%20y", "%ff?q=%00&r", "//x"):
        behind.get(path)
        assert behind.fake.notes("requests")[-1]["target"] == f"/xfer/{path}"


def test_redirects_and_refusals_arrive_as_they_are(behind):
    """Row X04; seed: the caller decides about a 3xx."""
    redirect = behind.get("redirect")
    assert (redirect.status, redirect.headers["location"]) == (302, "https://evil.example/x")
    assert (behind.get("forbidden", "DELETE").status, behind.get("forbidden").body) == (403, b"Forbidden")


def test_no_header_of_the_connection_behind_arrives(behind):
    """Row X04: `Connection: close, X-A`; seed: no `www-authenticate`."""
    answer = behind.get("hop")
    assert answer.headers["x-b"] == "2"
    assert not {"x-a", "keep-alive", "connection", "www-authenticate", "proxy-authenticate"} & answer.headers.keys()


@pytest.mark.parametrize("what", ["cr", "lf", "folded", "two-lengths", "both", "huge-head", "not-http", "nothing"])
def test_what_is_no_response_is_502_and_names_no_port(behind, what):
    """Row X04; seed: the port goes to the host's stderr only."""
    answer = behind.get(what)
    assert answer.status == 502
    assert "set-cookie" not in answer.headers
    port = str(behind.daemon.session().call("xfer_status").result["structuredContent"]["port"])
    assert port not in answer.body.decode()
    assert f"file server on port {port}" in behind.daemon.stderr


@pytest.mark.parametrize("what", ["short", "cut-chunks", "broken-chunks"])
def test_a_response_that_breaks_off_is_seen_to_be_cut(behind, what):
    """Row X04: the client sees a truncated transfer as an error."""
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        behind.get(what)


@pytest.mark.parametrize(("what", "body"), [("long", b"oka"), ("chunked", b"abcdefg"), ("until-close", b"all of it")])
def test_every_kind_of_body_arrives_and_the_connection_goes_on(behind, what, body):
    """Ours: one connection, several answers."""
    client = behind.daemon.client()
    for _ in range(3):
        assert client.send("GET", f"/xfer/{what}").body == body
    assert client.initialize().ask("ping").result == {}


def test_a_client_of_http_1_0_gets_a_body_of_unknown_length(behind):
    """Ours: it knows no chunks; the end of the connection is the end of the body."""
    head = f"GET /xfer/chunked HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {behind.daemon.token}\r\n\r\n"
    answer = behind.daemon.raw(head.encode())
    assert answer.endswith(b"\r\n\r\nabcdefg")
    assert b"chunked" not in answer.lower()


def test_head_has_the_length_and_no_body(behind):
    """Ours."""
    answer = behind.get("big", "HEAD")
    assert (answer.headers["content-length"], answer.body) == (str(BIG), b"")


def test_an_upload_goes_through(behind):
    """Issue: both ways."""
    for size in (0, 10, 3_000_000):
        assert behind.get("up", "PUT", b"x" * size).status == 200
        request = behind.fake.notes("requests")[-1]
        assert (request["method"], request["body"]) == ("PUT", size)


def test_silence_ends_and_frees_its_place(behind):
    """Row X04: never answers; more of them than may be at one time."""
    began = time.monotonic()
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(behind.get("never").status)) for _ in range(40)]
    for thread in threads:
        thread.start()
    pings = behind.daemon.session()
    slowest = 0.0
    for _ in range(20):
        asked = time.monotonic()
        pings.ask("ping")
        slowest = max(slowest, time.monotonic() - asked)
    for thread in threads:
        thread.join(20)
    assert set(statuses) == {502, 503}
    assert statuses.count(502) == 32
    assert slowest < 1.0
    assert time.monotonic() - began < 15
    assert behind.get("ok").status == 200


def test_a_client_that_leaves_frees_its_place(behind):
    """Row X04: the slot is freed; the program behind is told at once."""
    target = "/xfer/never?left"
    head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {behind.daemon.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", behind.daemon.port)) as sock:
        sock.sendall(head.encode())
        until(lambda: behind.fake.notes("requests")[-1]["target"] == target, what="the request")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        began = time.monotonic()
    until(lambda: {"what": target} in behind.fake.notes("left"), what="the end of the exchange")
    assert time.monotonic() - began < 1.5


def test_a_client_that_leaves_its_upload_behind_frees_its_place(behind):
    """Row X10: half of it never reaches the program behind; what did is ended."""
    head = f"PUT /xfer/never?{{}} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {behind.daemon.token}\r\n"
    for sent, target in ((500_000, "half"), (1_000_000, "whole")):
        with socket.create_connection(("127.0.0.1", behind.daemon.port)) as sock:
            sock.sendall(head.format(target).encode() + b"Content-Length: 1000000\r\n\r\n" + b"x" * sent)
            if target == "whole":
                until(lambda: behind.fake.notes("requests")[-1]["target"].endswith("?whole"), what="the upload")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(lambda: {"what": "/xfer/never?whole"} in behind.fake.notes("left"), what="the end of the exchange")
    assert not [request for request in behind.fake.notes("requests") if request["target"].endswith("?half")]


def test_a_slow_reader_holds_neither_memory_nor_anybody_else(behind):
    """Issue: streaming without holding the loop; a response waits for room instead of piling up."""
    behind.get("ok")
    memory = behind.daemon.rss_mb
    head = f"GET /xfer/big HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {behind.daemon.token}\r\n\r\n".encode()
    readers = [socket.create_connection(("127.0.0.1", behind.daemon.port)) for _ in range(4)]
    try:
        for reader in readers:
            reader.sendall(head)
            reader.recv(1)
        assert behind.get("big").body == b"b" * BIG
        assert behind.daemon.rss_mb < memory + 30
        received = 0
        while b"\r\n\r\n" not in (data := readers[0].recv(65536)):
            pass
        received = len(data.split(b"\r\n\r\n", 1)[1])
        while received < BIG:
            received += len(readers[0].recv(1 << 20))
        assert received == BIG
    finally:
        for reader in readers:
            reader.close()


def test_dufs_that_is_gone_is_502_and_a_closed_share_404(behind, reopened):
    """Seed: 502 while the share is up and dufs is not; 404 once it is closed."""
    told = behind.daemon.stderr.count("file server has ended")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        behind.get("exit")
    assert behind.get("ok").status == 502
    until(lambda: behind.daemon.stderr.count("file server has ended") > told, what="the report")
    client = behind.daemon.session()
    assert client.call("xfer_stop").result["structuredContent"]["stopped"] is True
    assert client.send("GET", "/xfer/ok").status == 404


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_file_server_outlives_the_daemon(tmp_path, number):
    """Seed, row D03: closed with the daemon; tied to its life where it is killed."""
    fake = FakeDufs(tmp_path)
    with running(tmp_path / "home", settings={"xfer": {"dufs": str(fake.path)}}) as daemon:
        share(daemon.session(), tmp_path)
        pid = fake.notes("runs")[0]["pid"]
        daemon.stop(number)
        until(lambda: not alive(pid), what="the end of the file server")


def test_a_dufs_that_is_configured_and_missing_is_an_error_and_nothing_is_fetched(tmp_path):
    """Row X14; seed: a path is used as it is, and not downloaded in its stead."""
    missing = tmp_path / "bin" / "dufs"
    with running(tmp_path / "home", settings={"xfer": {"dufs": str(missing)}}) as daemon:
        answer = daemon.session().call("xfer_share", path=str(tmp_path))
        assert answer.result["isError"] is True
        assert str(missing) in answer.text
        assert not missing.exists()
        assert not (tmp_path / "home" / "installs.json").exists()


@pytest.fixture(scope="module")
def asked_for(tmp_path_factory):
    """A daemon that is to serve with dufs, the server it could come from, and the folder that is first on its PATH."""
    home, on_path = tmp_path_factory.mktemp("asked") / "home", tmp_path_factory.mktemp("path")
    argv = ["env", f"PATH={on_path}{os.pathsep}{os.defpath}", sys.executable, "-m", "a2mcp", "serve"]
    with assets_served() as assets, running(home, settings={"xfer": {"server": "dufs"}}, argv=argv) as daemon:
        yield daemon, assets, on_path
        daemon.alive()


@pytest.fixture
def unpinned(asked_for):
    """That daemon with no dufs on the PATH and no pin, and what is on record from now on."""
    daemon, _, on_path = asked_for
    programs = daemon.home / "bin"
    programs.mkdir(mode=0o700, exist_ok=True)
    before = len(records(daemon))
    yield daemon, lambda: records(daemon)[before:]
    daemon.session().call("xfer_stop")
    for path in (*on_path.iterdir(), *programs.iterdir(), daemon.home / "pins.json", daemon.home / "installs.json"):
        path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def pinned(asked_for, tmp_path_factory):
    """A program to fetch, and the operator's pin of it as the daemon keeps it."""
    daemon, assets, _ = asked_for
    folder = tmp_path_factory.mktemp("pin")
    data = FakeDufs(folder).path.read_bytes()
    pin = {"name": "dufs", "version": "9.9.9", "url": f"{assets.url}/dufs-9", "sha256": sha256(data)}
    (folder / "pin.json").write_text(json.dumps(pin))
    done = daemon.cli("obtain", "--pin", str(folder / "pin.json"))
    assert done.returncode == 0, done.stderr
    return data, (daemon.home / "pins.json").rename(folder / "pins.json")


@pytest.fixture
def fetching(asked_for, pinned, unpinned):
    """The same, but it has to fetch dufs, by the operator's pin."""
    (_, assets, _), (daemon, recorded) = asked_for, unpinned
    assets.data, pins = pinned
    shutil.copy2(pins, daemon.home)
    (daemon.home / "bin" / "dufs.mode").write_text("good")
    return assets, daemon, daemon.home / "bin" / "dufs", recorded


def test_a_dufs_that_nobody_has_pinned_is_an_error_with_the_ways_out(unpinned, tmp_path):
    """Row X14: not on the PATH and no verified hash: said, and on record as an install that failed."""
    daemon, recorded = unpinned
    answer = daemon.session().call("xfer_share", path=str(tmp_path))
    assert answer.result["isError"] is True
    assert "xfer.dufs" in answer.text
    (install,) = recorded()
    assert install["args"]["action"] == "install"


def test_dufs_on_the_path_serves_when_it_is_asked_for(asked_for, unpinned, tmp_path):
    """Issue: `xfer.server: "dufs"`."""
    (_, _, on_path), (daemon, _) = asked_for, unpinned
    fake = FakeDufs(on_path)
    told = share(daemon.session(), tmp_path)
    assert daemon.client().send("GET", "/xfer/ok").body == b"ok\n"
    assert shlex.join(fake.notes("runs")[0]["argv"]).endswith(str(tmp_path))
    assert told["port"] != daemon.port


def test_dufs_is_fetched_by_its_hash_and_told(fetching, tmp_path):
    """Seed: fetched, checked, on record before it runs, and named in the answer; the second time it is there."""
    _, daemon, installed, recorded = fetching
    client = daemon.session()
    told = share(client, tmp_path)
    assert told["installed"]["dufs"]["version"] == "9.9.9"
    assert [record["args"]["action"] for record in recorded()] == ["install", "share"]
    assert installed.stat().st_mode & 0o777 == 0o755
    assert daemon.client().send("GET", "/xfer/ok").body == b"ok\n"
    assert share(client, tmp_path)["installed"] == {"dufs": None}


def refused_install(fetching, path, *words):
    """Share, and see it refused with these words and an install that failed on record."""
    _, daemon, _, recorded = fetching
    answer = daemon.session().call("xfer_share", path=str(path))
    assert answer.result["isError"] is True
    assert [word for word in words if word not in answer.text] == []
    (install,) = recorded()
    assert install["args"]["action"] == "install"
    assert install["args"]["error"]
    assert install["args"]["asset"] == "dufs-9"


def test_a_wrong_hash_installs_nothing(fetching, tmp_path):
    """Row X14."""
    assets, daemon, installed, _ = fetching
    assets.data += b"# evil"
    refused_install(fetching, tmp_path, "xfer.dufs")
    assert not installed.exists()
    daemon.alive()


def test_a_file_that_is_not_ours_is_not_overwritten(fetching, tmp_path):
    """Row X14: it is left alone, and its hash is told."""
    _, _, installed, _ = fetching
    installed.write_text("somebody's own")
    refused_install(fetching, tmp_path, sha256(b"somebody's own"))
    assert installed.read_text() == "somebody's own"
