"""start and stop, against a process that holds the real lock and serves the real socket."""

import json
import os
import subprocess
import sys
from pathlib import Path

import fake_daemon
import pytest
from fake_daemon import ROOT

from a2mcp.cli import background as module
from a2mcp.config import instance


@pytest.fixture
def background(home, monkeypatch, run):
    """Let ``start`` start the fake, and stop what was started."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(Path(fake_daemon.__file__).parent))))
    monkeypatch.setattr(module, "daemon_command", lambda: [sys.executable, fake_daemon.__file__])
    yield run
    if instance.is_served(home):
        run("stop", "--wait", "30")


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_start_prints_the_address_and_stop_waits_until_the_daemon_is_gone(background, home):
    """Issue §9: start/stop in the background."""
    started = background("start")
    assert started.output == "a2mcp listening on http://127.0.0.1:8123/ (token tttttt…)\n"
    assert started.exit_code == 0
    assert instance.is_served(home)
    assert home.daemon_log.read_text() == "serving\n"
    assert home.daemon_log.stat().st_mode & 0o777 == 0o600

    second = background("start")
    assert second.exit_code == 3
    assert "Another daemon serves" in second.stderr
    assert "http://127.0.0.1:8123/" in second.stderr

    stopped = background("stop")
    assert (stopped.exit_code, stopped.output) == (0, "a2mcp stopped\n")
    assert not instance.is_served(home)
    assert background("stop").exit_code == 5


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_start_as_json_prints_the_facts(background):
    """Issue §9: --json where it prints facts."""
    assert json.loads(background("start", "--json").output)["bridge_url"] == "http://127.0.0.1:8123/"


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_start_repeats_what_the_daemon_warned_of(background, home, monkeypatch):
    """Ours: nobody looks into daemon.log after a start that went well."""
    home.daemon_log.write_text("[a2mcp] warning: an earlier one\n")
    monkeypatch.setenv("A2MCP_FAKE", "warn")
    done = background("start")
    assert done.stderr == "[a2mcp] warning: port 1 is taken\\x1b[1m\n"
    assert done.stdout.startswith("a2mcp listening on ")


def test_a_daemon_that_dies_at_once_passes_on_its_code_and_its_last_words(background, home, monkeypatch):
    """Issue §9: exit codes; ours: the reason, not where to look for it."""
    home.daemon_log.write_text("words of an earlier one\n")
    monkeypatch.setenv("A2MCP_FAKE", "die")
    done = background("start")
    assert done.exit_code == 2
    assert "There is no such luck." in done.stderr
    assert "earlier" not in done.stderr


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_stop_says_so_when_the_daemon_goes_on_draining(background, monkeypatch):
    """Ours: a stop that did not end in time is no success."""
    monkeypatch.setenv("A2MCP_FAKE", "linger")
    monkeypatch.setenv("A2MCP_FAKE_S", "1.5")
    background("start")
    done = background("stop", "--wait", "0.1")
    assert done.exit_code == 1
    assert "still there" in done.stderr


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_daemon_that_does_not_come_up_in_time_is_named_with_its_log(background, home, monkeypatch):
    """Issue §9: waits up to 10 s."""
    command = [sys.executable, "-c", "import sys, select; select.select([], [], [], 2)"]
    monkeypatch.setattr(module, "daemon_command", lambda: command)
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    done = background("start")
    assert done.exit_code == 1
    assert str(home.daemon_log) in done.stderr


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_large_log_makes_room_and_one_older_is_kept(background, home):
    """Ours: what a daemon prints must not fill the disk over the years."""
    home.daemon_log.write_bytes(b"x" * (module.LARGEST_LOG + 1))
    background("start")
    assert home.daemon_log.read_text() == "serving\n"
    assert (home.root / "daemon.log.1").stat().st_size == module.LARGEST_LOG + 1


def test_a_log_that_is_a_link_is_not_written_through(background, home, tmp_path):
    """Ours: as for every file of the home."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    home.daemon_log.symlink_to(victim)
    done = background("start")
    assert done.exit_code == 2
    assert victim.read_text() == "precious"


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_the_daemon_itself_keeps_its_port_and_token_over_a_restart(home, monkeypatch, run):
    """Issue §8: a client's configuration survives restarts; §9: start, status, rotate, stop."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    first = run("start")
    assert first.exit_code == 0, first.output
    token = run("token").output
    assert run("stop").exit_code == 0
    assert not home.endpoint.exists()
    assert not home.socket.exists()

    assert run("start").output == first.output
    assert run("token").output == token
    assert json.loads(run("status", "--json").output)["bridge_url"] in first.output
    new = run("rotate").stdout
    assert new != token
    assert json.loads(home.config.read_text())["token"] == json.loads(home.endpoint.read_text())["token"] == new.strip()
    assert run("stop").exit_code == 0
    written = home.daemon_log.read_text()
    assert token.strip() not in written
    assert new.strip() not in written


def test_the_token_is_in_no_command_line():
    """Ours: every user of the machine reads those."""
    command = module.daemon_command()
    assert command[0] == sys.executable
    assert command[-3:] == ["-m", "a2mcp", "serve"]


def test_a_package_of_our_name_in_the_current_folder_is_not_run(tmp_path, monkeypatch):
    """Ours: `python -m` looks into the current folder first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a2mcp").mkdir()
    (tmp_path / "a2mcp" / "__init__.py").touch()
    (tmp_path / "a2mcp" / "__main__.py").write_text("print('evil')")
    done = subprocess.run(
        [*module.daemon_command()[:-1], "--help"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "evil" not in done.stdout
    monkeypatch.chdir(ROOT)
    assert "-P" not in module.daemon_command()
