"""doctor on machines that are set up badly: real files, real limits, real disks, and what it says to do about each."""

import datetime as dt
import http.server
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time

import fake_daemon
import msgspec
import pytest
from fake_daemon import ROOT

import a2mcp
from a2mcp.audit.journal import Journal
from a2mcp.audit.record import start_line
from a2mcp.cli.checks import machine, room
from a2mcp.clock import SystemClock
from a2mcp.config import instance
from a2mcp.tunnel.passage import TunnelFacts

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def findings_in(output, name):
    return [(one["verdict"], one["fact"], one["mend"]) for one in json.loads(output) if one["name"] == name]


@pytest.fixture
def doctor(run):
    """Run doctor in this process; gives the findings of one name."""

    def call(name):
        done = run("doctor", "--json")
        assert done.exit_code == int('"FAIL"' in done.output)
        return findings_in(done.output, name)

    return call


def doctor_after(home, *before, argv=("bash", "-c")):
    """What doctor prints in a shell of its own, after other commands."""
    command = f'{sys.executable} -c "from a2mcp.cli.main import cli; cli(obj={{}})" doctor --json'
    done = subprocess.run(
        [*argv, "; ".join([*before, command])], cwd=home.parent, capture_output=True, text=True, check=False, timeout=60,
        env={"PATH": os.environ["PATH"], "A2MCP_HOME": str(home), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == int('"FAIL"' in done.stdout), done.stderr
    return done.stdout


@pytest.fixture
def limited(home):
    """Run doctor in a shell of its own, after other commands; gives the findings of one name."""

    def call(name, *before, **how):
        return findings_in(doctor_after(home.root, *before, **how), name)

    return call


@pytest.fixture(scope="module")
def unlimited(tmp_path_factory):
    """What doctor prints in a shell of its own, after nothing."""
    home = tmp_path_factory.mktemp("unlimited") / "home"
    home.mkdir(mode=0o700)
    return doctor_after(home)


@pytest.fixture
def status(home, served, monkeypatch):
    """Say what the daemon says of itself."""
    held = instance.claim(home)

    def say(**changes):
        monkeypatch.setattr(fake_daemon, "STATUS", msgspec.structs.replace(fake_daemon.STATUS, **changes))

    yield say
    held.release()
    assert served.answers == []


# --- modes and owners


@pytest.mark.parametrize("name", ["a2mcp.log", "endpoint.json", "grants.json", "events.db", "daemon.log", "models.yml"])
def test_a_file_that_others_can_read_is_warned_about(doctor, home, name):
    """Issue, section 7: modes."""
    path = home.root / name
    path.write_text("")
    path.chmod(0o640)
    ((verdict, fact, mend),) = doctor("modes")
    assert (verdict, fact) == ("warn", f"{path} is open to other users (mode 0640)")
    assert mend.startswith(f"chmod 600 {path}")
    assert ("a2mcp rotate" in mend) == (name == "endpoint.json")
    path.chmod(0o600)
    assert doctor("modes") == [("ok", "1 files are yours alone", "")]


def test_a_folder_of_ours_is_to_be_private_too(doctor, home):
    """Issue, section 7: modes."""
    (home.root / "jobs").mkdir(mode=0o755)
    (home.root / "bin").mkdir(mode=0o755)
    assert [mend for _, _, mend in doctor("modes")] == [f"chmod 700 {home.root / 'jobs'}", ""]
    (home.root / "bin").chmod(0o777)
    assert f"chmod 700 {home.root / 'bin'}" in [mend for _, _, mend in doctor("modes")]


@needs_root
def test_a_file_of_somebody_else_fails(doctor, home):
    """Issue, section 7: owners."""
    home.grants.write_text("")
    os.chown(home.grants, 65534, 65534)
    ((verdict, fact, mend),) = doctor("modes")
    assert (verdict, fact) == ("FAIL", f"{home.grants} belongs to another user (uid 65534)")
    assert "move" in mend


def test_a_link_where_a_file_should_be_is_warned_about(doctor, home, tmp_path):
    """Row C08: the daemon writes through no link."""
    (tmp_path / "victim").write_text("")
    (home.root / "installs.json").symlink_to(tmp_path / "victim")
    ((verdict, fact, _),) = doctor("modes")
    assert (verdict, "is a link" in fact) == ("warn", True)


def test_a_home_that_others_can_exchange_is_warned_about(doctor, home):
    """Issue, section 7: a private folder in a public one is not private for long."""
    parent = home.root.parent
    before = parent.stat().st_mode
    parent.chmod(0o777)
    ((verdict, fact, mend),) = doctor("home")
    parent.chmod(before)
    assert verdict == "warn"
    assert f"{parent} is theirs to write to" in fact
    assert f"chmod go-w {parent}" in mend


def test_a_log_that_was_touched_fails(doctor, home):
    """Issue, section 8: tamper-evidence, as doctor sees it."""
    assert doctor("chain") == []
    journal = Journal(home.audit, clock=SystemClock())
    at = "2026-10-16T04:35:23.000Z"
    journal.append([start_line(at, f"call-{number}", "s1", "bash", b"{}") for number in range(5)])
    journal.close()
    ((verdict, fact, _),) = doctor("chain")
    assert (verdict, fact) == ("ok", "5 records follow one another")
    lines = home.audit.read_bytes().splitlines(keepends=True)
    home.audit.write_bytes(b"".join(lines[:2] + lines[3:]))
    ((verdict, fact, mend),) = doctor("chain")
    assert verdict == "FAIL"
    assert fact.startswith("a2mcp.log:3: ")
    assert "audit --verify" in mend


# --- the daemon


class Words(http.server.BaseHTTPRequestHandler):
    """Answers everything with one status."""

    code = 200

    def do_GET(self):
        self.send_response(self.code)
        self.end_headers()

    def log_message(self, *_args):
        pass


@pytest.fixture
def listener():
    server = http.server.HTTPServer(("127.0.0.1", 0), Words)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_port_that_does_not_answer_fails(doctor, status, listener, monkeypatch):
    """Issue, section 7: reachability, as a caller sees it; the operator's channel alone says nothing of the port."""
    status(bridge_url=listener)
    assert doctor("reach") == [("ok", f"{listener} answers", "")]
    monkeypatch.setattr(Words, "code", 503)
    ((verdict, fact, mend),) = doctor("reach")
    assert (verdict, "HTTP 503" in fact) == ("FAIL", True)
    assert f"kill -USR1 {os.getpid()}" in mend
    status(bridge_url="http://127.0.0.1:1/")
    assert doctor("reach")[0][0] == "FAIL"


def test_who_else_can_reach_it_is_said(doctor, status, home):
    """Issue, section 7: exposure by the bound address and by the tunnel."""
    status()
    assert doctor("exposure") == [("ok", "only this machine reaches it (127.0.0.1, no tunnel)", "")]
    status(bridge_url="http://0.0.0.0:8123/")
    ((verdict, fact, mend),) = doctor("exposure")
    assert (verdict, "it listens on 0.0.0.0" in fact, "SSH" in mend) == ("warn", True, True)
    opened = TunnelFacts(state="open", url="https://x.trycloudflare.com", since="2026-10-16T04:35:23.000Z")
    status(bridge_url="http://127.0.0.1:8123/", tunnel=opened)
    home.config.write_text(json.dumps({"token": "t" * 43}))
    home.config.chmod(0o600)
    ((verdict, fact, mend),) = doctor("exposure")
    assert "the internet reaches it at https://x.trycloudflare.com" in fact
    assert fact.endswith("and nothing asks before a tool runs")
    assert "a2mcp tunnel stop" in mend
    home.config.write_text(json.dumps({"token": "t" * 43, "approval": {"mode": "always-ask"}}))
    assert "nothing asks" not in doctor("exposure")[0][1]


def test_another_version_and_what_was_left_are_said(doctor, status):
    """Ours: a daemon that was not started again after an upgrade; orphans."""
    status(version=a2mcp.__version__, orphans=2)
    assert doctor("version") == []
    ((verdict, fact, mend),) = doctor("orphans")
    assert (verdict, fact) == ("warn", "2 command(s) of a daemon that was killed still run")
    assert "a2mcp jobs --stop ID" in mend
    status(version="0.0.1", orphans=0)
    ((verdict, fact, _),) = doctor("version")
    assert verdict == "warn"
    assert "version 0.0.1" in fact
    assert doctor("orphans") == []


# --- the machine


def test_a_clock_that_cannot_be_right_fails(doctor, home, monkeypatch):
    """Issue, section 7: clock; row D08."""
    ((verdict, fact, _),) = doctor("clock")
    assert verdict == "ok"
    assert dt.datetime.fromisoformat(fact).tzinfo is dt.UTC
    home.audit.write_text("")
    os.utime(home.audit, (time.time() + 3600, time.time() + 3600))
    ((verdict, fact, _),) = doctor("clock")
    assert verdict == "warn"
    assert "3,600 s in the future" in fact or "3,599 s in the future" in fact
    monkeypatch.setattr(machine.time, "time", lambda: 86_400.0)
    ((verdict, fact, mend),) = doctor("clock")
    assert (verdict, "1970-01-02" in fact, "set-ntp" in mend) == ("FAIL", True, True)


def test_root_is_warned_about(doctor, monkeypatch):
    """Ours: the token is a shell, and whose shell matters."""
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    ((verdict, fact, _),) = doctor("user")
    assert (verdict, "as root" in fact) == ("warn", True)


def test_few_open_files_are_warned_about(limited):
    """Issue, section 7: RLIMIT_NOFILE against connections."""
    ((verdict, fact, mend),) = limited("files", "ulimit -n 300")
    assert verdict == "warn"
    assert fact.startswith("300 open files are allowed, ")
    assert "limits.connections" in mend


def test_the_limits_of_a_running_daemon_are_its_own(doctor, status):
    """Ours: those of the shell that asks say nothing of a service."""
    child = subprocess.Popen(
        ["bash", "-c", "ulimit -n 300; echo on; read -r _"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout.readline() == b"on\n"
    status(pid=child.pid)
    ((_, fact, _),) = doctor("files")
    child.communicate()
    assert fact.startswith("300 open files are allowed, ")


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("ulimit -f 2048", "a file may have 2 MiB"),
        ("ulimit -v 500000", "the limit of address space is 488 MiB"),
        ("ulimit -d 500000", "the limit of data size is 488 MiB"),
    ],
)
def test_limits_that_cut_off_are_warned_about(limited, unlimited, limit, said):
    """Issue, section 7: limits."""
    ((verdict, fact, mend),) = limited("sizes", limit)
    assert verdict == "warn"
    assert said in fact
    assert "ulimit" in mend
    assert findings_in(unlimited, "sizes") == []


def test_few_processes_are_warned_about(doctor, monkeypatch):
    """Issue, section 7: limits; root has none."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (900, before[1]))
    try:
        monkeypatch.setattr(room.os, "geteuid", lambda: 0)
        assert doctor("processes") == []
        monkeypatch.setattr(room.os, "geteuid", lambda: 1000)
        ((verdict, fact, mend),) = doctor("processes")
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, before)
    assert verdict == "warn"
    assert fact.startswith("900 processes of yours are allowed, ")
    assert "limits.jobs" in mend


def test_a_system_that_shows_no_stragglers_is_warned_about(limited, unlimited):
    """P6: named where it cannot be kept."""
    ((verdict, fact, _),) = limited("descendants", "ulimit -R 200000")
    assert (verdict, "outlives the daemon" in fact) == ("warn", True)
    assert findings_in(unlimited, "descendants")[0][0] == "ok"


@needs_root
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize(
    ("options", "after", "verdict", "said"),
    [
        ("size=8m", "true", "FAIL", "has 8 MiB left: calls may leave no record"),
        ("size=64m", "true", "warn", "has 64 MiB left, and the output of commands may take"),
        ("size=2g,nr_inodes=20", "true", "warn", "takes only 1"),
        ("size=2g,nr_inodes=20", "touch $(seq -f {}/%g 40) 2>/dev/null", "FAIL", "takes only 0 more files"),
        ("size=2g", "mount -o remount,ro {}", "FAIL", "is read-only"),
        ("size=2g", "true", "ok", "MiB left on the disk of"),
    ],
)
def test_a_disk_without_room_is_said(limited, home, options, after, verdict, said):  # noqa: PLR0917
    """Issue, section 7: disk; a real one, in a namespace of its own."""
    argv = ("unshare", "-m", "bash", "-c")
    if subprocess.run([*argv, f"mount -t tmpfs none {home.root}"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    mount = f"mount -t tmpfs -o mode=0700,{options} none {home.root}"
    found = limited("disk", mount, after.format(home.root), argv=argv)
    assert (found[0][0], said in found[0][1]) == (verdict, True), found
    assert bool(found[0][2]) == (verdict != "ok")
