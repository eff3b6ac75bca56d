"""doctor beside a real daemon: well, exposed, hanging, killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import Daemon, running, until
from stand_in import NAME, cloudflared
from stragglers import having
from watchers import operator

if TYPE_CHECKING:
    from collections.abc import Iterator


def findings(daemon: Daemon, *names: str) -> list[tuple[str, str, str]]:
    """What doctor finds under these names, or all of it: name, verdict and fact."""
    done = daemon.cli("doctor", "--json")
    found = [(one["name"], one["verdict"], one["fact"]) for one in json.loads(done.stdout)]
    assert done.returncode == int(any(verdict == "FAIL" for _, verdict, _ in found)), done.stderr
    assert all(one["mend"] for one in json.loads(done.stdout) if one["verdict"] != "ok")
    return [one for one in found if not names or one[0] in names]


@pytest.fixture
def exposed(tmp_path: Path) -> Iterator[Daemon]:
    settings = {"host": "0.0.0.0", "xfer": {"cloudflared": str(cloudflared(tmp_path, "good"))}}
    with running(tmp_path / "home", settings=settings) as daemon:
        yield daemon


def test_a_daemon_that_is_well_fails_nothing(shared_daemon: Daemon) -> None:
    """Issue, section 7; the page asks the same and gets the same."""
    shared_daemon.session().call("bash", command="echo on")
    found = findings(shared_daemon)
    assert [one for one in found if one[1] == "FAIL"] == []
    assert {"modes", "chain", "daemon", "reach", "exposure", "disk", "files", "clock", "descendants"} <= {
        name for name, _, _ in found
    }
    facts = {name: fact for name, verdict, fact in found if verdict == "ok"}
    assert facts["exposure"] == "only this machine reaches it (127.0.0.1, no tunnel)"
    assert facts["chain"] == "2 records follow one another"
    assert "Traceback" not in shared_daemon.stderr


def test_an_exposed_daemon_is_said_to_be(exposed: Daemon) -> None:
    """Issue, section 7: the bound address and the tunnel, of the daemon that runs and not of the settings."""
    (exposed.home / "a2mcp.json").write_text(json.dumps({"token": exposed.token}))
    ((_, verdict, fact),) = findings(exposed, "exposure")
    assert (verdict, "it listens on 0.0.0.0" in fact) == ("warn", True)
    exposed.cli("tunnel")
    assert f"the internet reaches it at https://{NAME}" in findings(exposed, "exposure")[1][2]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="Linux sees who was left behind")
def test_a_killed_daemon_is_said_to_have_left_something(daemon: Daemon) -> None:
    """Issue, section 5: orphans of a killed daemon are found, before the next start and after it."""
    seconds = str(78_000_000 + os.getpid())
    daemon.session().call("bash", command=f"setsid env -i sleep {seconds} &")
    daemon.process.kill()
    daemon.process.wait(10)
    (pid,) = until(lambda: having("sleep", seconds), what="the one who was left")
    found = findings(daemon, "orphans", "endpoint")
    assert [one for one in found if one[0] == "orphans"] == [
        ("orphans", "warn", f"1 process(es) of a daemon that was killed still run: {pid}")
    ]
    assert next(verdict for name, verdict, _ in found if name == "endpoint") == "warn"
    with running(daemon.home) as second:
        until(lambda: operator(second, "GET", "/status")[1]["orphans"], what="the orphan")
        assert findings(second, "orphans") == [
            ("orphans", "warn", "1 command(s) of a daemon that was killed still run")
        ]
        (job,) = json.loads(second.cli("jobs", "--json").stdout)
        second.cli("jobs", "--stop", job["id"])
        assert findings(second, "orphans") == []
        assert having("sleep", seconds) == []


@pytest.fixture
def hanging(shared_daemon: Daemon) -> Iterator[Daemon]:
    """The daemon that others share, which does nothing until it is told to go on."""
    shared_daemon.process.send_signal(signal.SIGSTOP)
    yield shared_daemon
    shared_daemon.process.send_signal(signal.SIGCONT)


def test_a_daemon_that_hangs_is_said_to(hanging: Daemon) -> None:
    """Issue, section 7: reachability."""
    found = findings(hanging, "daemon", "reach")
    hanging.process.send_signal(signal.SIGCONT)
    assert [(name, verdict) for name, verdict, _ in found] == [("daemon", "FAIL")]
    assert "does not answer" in found[0][2]
    assert [verdict for _, verdict, _ in findings(hanging, "daemon", "reach")] == ["ok", "ok"]
