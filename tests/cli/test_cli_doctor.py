"""doctor: what is wrong, and how to mend it."""

import json
import os
import resource
import socket

import pytest

from a2mcp.cli.checks import machine
from a2mcp.config import instance, load


def findings(run, name):
    """Run doctor; returns the findings of one name as (verdict, fact, mend)."""
    done = run("doctor", "--json")
    found = [(one["verdict"], one["fact"], one["mend"]) for one in json.loads(done.output) if one["name"] == name]
    assert done.exit_code == int('"FAIL"' in done.output)
    return found


def test_a_fresh_machine_is_healthy(run, home):
    """Issue §9: doctor."""
    home.root.rmdir()
    done = run("doctor")
    assert done.exit_code == 0
    assert "FAIL" not in done.output
    assert "the first start makes it" in done.output
    assert not home.root.exists()


def test_wrong_settings_fail_with_their_field(run, home):
    """Issue §9: settings valid."""
    home.config.write_text('{"port": "80"}')
    home.config.chmod(0o600)
    ((verdict, fact, _),) = findings(run, "settings")
    assert verdict == "FAIL"
    assert "field 'port' must be an integer" in fact


def test_unwise_settings_are_warned_about(run, home):
    """Ours: what serve prints once, doctor can repeat."""
    home.config.write_text('{"host": "0.0.0.0", "prot": 1}')
    home.config.chmod(0o644)
    verdicts = findings(run, "settings")
    assert [verdict for verdict, _, _ in verdicts] == ["warn"] * 3
    assert home.config.stat().st_mode & 0o777 == 0o644


def test_wrong_places_are_a_finding_too(run, monkeypatch):
    """Row C05."""
    monkeypatch.setenv("A2MCP_CONFIG", "relative.json")
    ((verdict, fact, _),) = findings(run, "places")
    assert (verdict, "A2MCP_CONFIG" in fact) == ("FAIL", True)


def test_a_home_that_others_can_write_to_is_warned_about(run, home):
    """Issue §9: modes."""
    home.root.chmod(0o777)
    ((verdict, _, mend),) = findings(run, "home")
    assert (verdict, mend) == ("warn", f"chmod 700 {home.root}")


def test_a_home_that_is_no_folder_fails(run, home):
    """Issue §9: modes."""
    home.root.rmdir()
    home.root.write_text("")
    assert findings(run, "home")[0][0] == "FAIL"


@pytest.mark.parametrize("place", ["/proc/nowhere/a2mcp.log", "/dev/null"])
def test_an_audit_log_that_cannot_be_written_fails(run, monkeypatch, place):
    """Issue §9: audit writable."""
    monkeypatch.setenv("A2MCP_AUDIT", place)
    ((verdict, fact, mend),) = findings(run, "audit")
    assert verdict == "FAIL"
    assert "no record" in fact
    assert "A2MCP_AUDIT" in mend


def test_an_audit_log_that_is_there_is_fine(run, home):
    """Issue §9: audit writable."""
    home.audit.touch()
    assert findings(run, "audit")[0][0] == "ok"


def test_a_running_daemon_is_found(run, home, served):
    """Issue §9: daemon reachable."""
    held = instance.claim(home)
    ((verdict, fact, _),) = findings(run, "daemon")
    assert (verdict, fact) == ("ok", f"serves http://127.0.0.1:8123/ (pid {os.getpid()})")
    assert findings(run, "endpoint")[0][0] == "warn"
    held.release()
    assert served.answers == []


@pytest.mark.usefixtures("served")
def test_another_port_than_that_of_the_settings_is_said(run, home):
    """Ours: clients look for the daemon where the settings put it."""
    held = instance.claim(home)
    for port, verdicts in ((8123, []), (8124, ["warn"])):
        home.config.write_text(json.dumps({"port": port}))
        home.config.chmod(0o600)
        found = findings(run, "port")
        assert [verdict for verdict, _, _ in found] == verdicts
    held.release()
    assert "the settings say port 8124, and the daemon serves 8123" in found[0][1]


def test_each_warning_comes_with_what_mends_it(run, home):
    """Ours: a mode is mended by chmod, not by an editor."""
    home.config.write_text(json.dumps({"host": "0.0.0.0", "prot": 1}))
    home.config.chmod(0o644)
    mends = [mend for _, _, mend in findings(run, "settings")]
    assert any(mend == f"chmod 600 {home.config}" for mend in mends)
    assert any("set 'host' to 127.0.0.1" in mend for mend in mends)
    assert any(mend == f"Edit {home.config}." for mend in mends)
    home.config.write_text("no JSON")
    assert findings(run, "settings")[0][1].count(str(home.config)) == 1


def test_a_daemon_that_holds_the_lock_and_is_silent_fails(run, home):
    """Issue §9: daemon reachable."""
    held = instance.claim(home)
    ((verdict, fact, mend),) = findings(run, "daemon")
    held.release()
    assert verdict == "FAIL"
    assert "does not answer" in fact
    assert "daemon.log" in mend


def test_failures_of_the_log_are_a_fault(run, home, served, monkeypatch):
    """Seed, "Troubleshooting": no audit records, and no call failed."""
    import fake_daemon
    import msgspec

    from a2mcp.http.ports import AuditFacts

    monkeypatch.setattr(
        fake_daemon, "STATUS", msgspec.structs.replace(fake_daemon.STATUS, audit=AuditFacts(written=1, failures=7))
    )
    held = instance.claim(home)
    assert ("FAIL", "7 records could not be written") in [found[:2] for found in findings(run, "audit")]
    held.release()
    assert served.answers == []


def test_what_a_killed_daemon_left_is_said(run, home):
    """Issue §9: stale endpoint."""
    home.endpoint.write_text("{}")
    ((verdict, fact, _),) = findings(run, "endpoint")
    assert (verdict, "was killed" in fact) == ("warn", True)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_taken_port_is_said(run, home, host):
    """Issue §9: port busy."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as other:
        try:
            other.bind((host, 0))
        except OSError:
            pytest.skip("this machine has no such address")
        other.listen()
        port = other.getsockname()[1]
        home.config.write_text(json.dumps({"port": port, "host": host}))
        home.config.chmod(0o600)
        ((verdict, fact, _),) = findings(run, "port")
        assert (verdict, f"port {port} is taken" in fact) == ("warn", True)
    assert findings(run, "port") == []


def test_a_socket_in_a_short_place_is_said(run, tmp_path, monkeypatch):
    """Issue §9: socket path length."""
    monkeypatch.setenv("A2MCP_HOME", str(tmp_path / ("d" * 120)))
    assert "too long for a socket" in findings(run, "socket")[0][1]


def test_too_few_open_files_are_said_with_the_number_that_is_needed(run, home, monkeypatch):
    """Issue §9: RLIMIT_NOFILE."""
    home.config.write_text('{"limits": {"connections": 500, "jobs": 10}}')
    home.config.chmod(0o600)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    ((verdict, fact, mend),) = findings(run, "files")
    assert (verdict, fact) == ("warn", f"256 open files are allowed, {500 + 256 + 60} may be needed")
    assert "ulimit -Hn 816" in mend
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    assert findings(run, "files")[0][0] == "ok"


def test_missing_programs_are_said(run, monkeypatch):
    """Issue §9: rg present, bash present."""
    monkeypatch.setattr(machine.shutil, "which", lambda *_, **__: None)
    assert findings(run, "bash")[0][0] == "FAIL"
    assert findings(run, "ripgrep")[0][0] == "warn"


def test_models_that_nothing_can_ask_are_said(run, home, monkeypatch):
    """Issue on the host's agent, point 1: says what to install."""
    assert findings(run, "agent") == []
    home.models.write_text("providers: {}")
    monkeypatch.setattr(machine, "installed", lambda: False)
    ((verdict, _, mend),) = findings(run, "agent")
    assert (verdict, "a2mcp[agent]" in mend) == ("warn", True)
    monkeypatch.setattr(machine, "installed", lambda: True)
    assert findings(run, "agent")[0][0] == "ok"


def test_doctor_changes_nothing(run, home):
    """Ours: it only looks."""
    home.config.write_text('{"host": "localhost"}')
    home.config.chmod(0o644)
    before = home.config.read_bytes()
    run("doctor")
    assert sorted(entry.name for entry in home.root.iterdir()) == ["a2mcp.json"]
    assert home.config.read_bytes() == before
    assert load.inspect(home.config) is not None
