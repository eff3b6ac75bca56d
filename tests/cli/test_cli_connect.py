"""``a2mcp connect``, ``disconnect`` and ``install-service`` as a person uses them, in a home of a test."""

import json
import plistlib
import tomllib
from pathlib import Path

import pytest

from a2mcp.cli.connect import NAMES
from a2mcp.connect.clients import CLIENTS


@pytest.fixture
def person(tmp_path, monkeypatch, home):
    """A person with a home of their own and no client's command."""
    folder = tmp_path / "person"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in (
        "XDG_CONFIG_HOME",
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "GEMINI_CLI_HOME",
        "OPENCODE_CONFIG",
        "PI_CODING_AGENT_DIR",
        "A2MCP_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)
    return folder


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_help_names_every_client():
    """Issue §9: the clients; the help must not import their table."""
    assert list(CLIENTS) == list(NAMES)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("name", NAMES)
def test_a_client_is_connected_and_disconnected(run, person, name):
    """Issue §9: one command each way, and how to restart the client."""
    assert "would change" in run("connect", name, "--dry-run").output
    assert files(person) == {}
    done = run("connect", name)
    assert done.exit_code == 0
    assert CLIENTS[name].restart in done.output
    assert "already" in run("connect", name).output
    assert done.output.count("knows a2mcp now") == 1
    gone = run("disconnect", name)
    assert (gone.exit_code, "has forgotten a2mcp" in gone.output) == (0, True)
    assert files(person) == {}
    assert "does not know" in run("disconnect", name).output


@pytest.mark.usefixtures("served")
def test_the_address_is_the_daemon_s_and_the_token_a_reference(run, person):
    """Issue §9: codex bearer_token_env_var; the shell line that makes it work is printed."""
    done = run("connect", "codex")
    table = tomllib.loads((person / ".codex/config.toml").read_text())["mcp_servers"]["a2mcp"]
    assert table == {"url": "http://127.0.0.1:8123/mcp", "bearer_token_env_var": "A2MCP_TOKEN"}
    assert 'export A2MCP_TOKEN="$(a2mcp token)"' in done.output
    run("connect", "omp")
    assert json.loads((person / ".omp/agent/mcp.json").read_text())["mcpServers"]["a2mcp"]["url"].endswith(":8123/")


@pytest.mark.usefixtures("served")
def test_a_token_in_the_file_is_said_and_never_shown(run, person):
    """Issue §9: 0600, and said so."""
    assert "t" * 43 not in run("connect", "cursor", "--inline-token", "--dry-run").output
    done = run("connect", "cursor", "--inline-token")
    assert "0600" in done.output
    assert "t" * 43 not in done.output
    path = person / ".cursor/mcp.json"
    assert "t" * 43 in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_program_needs_no_daemon_and_no_token(run, person, home):
    """Issue §8: `a2mcp stdio` starts one and finds any port."""
    assert run("connect", "claude-desktop").exit_code == 0
    assert run("connect", "gemini", "--stdio").exit_code == 0
    entry = json.loads((person / ".gemini/settings.json").read_text())["mcpServers"]["a2mcp"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-1] == "stdio"
    assert entry["env"] == {"A2MCP_HOME": str(home.root)}
    assert run("connect", "cursor").exit_code == 5


def test_another_server_is_connected_by_its_address(run, person, tmp_path):
    """Issue §9: a forwarded port is somebody else's daemon."""
    secret = tmp_path / "token"
    secret.write_text("s" * 40)
    done = run(
        "connect",
        "cursor",
        "--url",
        "http://127.0.0.1:9/mcp",
        "--inline-token",
        "--token-file",
        str(secret),
        "--name",
        "far",
    )
    assert done.exit_code == 0
    assert "s" * 40 in (person / ".cursor/mcp.json").read_text()
    assert run("disconnect", "cursor", "--name", "far").exit_code == 0


@pytest.mark.parametrize(
    "args",
    [["nothing"], ["cursor", "--name", "a b"], ["cursor", "--stdio", "--inline-token"], ["cursor", "--stdio", "--url", "http://x/"],
     ["claude-desktop", "--url", "http://x/"], ["cursor", "--token-file", "/dev/null"]],
    ids=" ".join,
)  # fmt: skip
def test_what_contradicts_itself_ends_with_2(run, person, args):
    """Ours: found before anything is touched."""
    assert run("connect", *args).exit_code == 2
    assert files(person) == {}


@pytest.mark.usefixtures("served")
def test_json_prints_what_any_other_client_needs(run, person):
    """Issue §9: `json` prints a snippet; notes go elsewhere, so that it can be piped."""
    done = run("connect", "json", "--name", "here")
    assert json.loads(done.stdout)["mcpServers"]["here"]["url"] == "http://127.0.0.1:8123/mcp"
    assert "A2MCP_TOKEN" in done.stderr
    assert json.loads(run("connect", "json", "--stdio").stdout)["mcpServers"]["a2mcp"]["args"][-1] == "stdio"


@pytest.mark.usefixtures("served")
def test_a_broken_file_is_one_error_and_left_alone(run, person):
    """Issue §9."""
    (person / ".cursor").mkdir()
    (person / ".cursor/mcp.json").write_text('{"mcpServers": {')
    done = run("connect", "cursor")
    assert done.exit_code == 1
    assert "line 1, column 17: expected a key" in done.stderr
    assert files(person) == {".cursor/mcp.json": b'{"mcpServers": {'}


@pytest.mark.usefixtures("served")
def test_a_port_that_changes_is_warned_about(run, person, home):
    """Ours: settings with port 0 mean another address after every start."""
    home.config.write_text(json.dumps({"token": "t" * 43, "port": 0}))
    home.config.chmod(0o600)
    assert "use --stdio" in run("connect", "cursor").output
    assert "use --stdio" not in run("connect", "gemini", "--stdio").output


# --- the service -------------------------------------------------------------------------------------------------


@pytest.fixture
def manager(person, tmp_path, monkeypatch):
    """A service manager that only notes what it is asked."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\ntest ! -e {tmp_path}/fails || {{ echo "no bus" >&2; exit 1; }}\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path


def test_a_service_is_installed_and_removed(run, person, manager):
    """Issue §9: install-service, --uninstall."""
    unit = person / ".config/systemd/user/a2mcp.service"
    done = run("install-service")
    assert done.exit_code == 0, done.output
    assert "Restart=on-failure" in unit.read_text()
    assert (manager / "asked").read_text().splitlines() == ["--user daemon-reload", "--user enable --now a2mcp.service"]
    assert "enable-linger" in done.output
    assert run("install-service").exit_code == 0
    assert (manager / "asked").read_text().splitlines()[2] == "--user disable --now a2mcp.service"
    assert run("install-service", "--uninstall").exit_code == 0
    assert not unit.exists()
    assert (manager / "asked").read_text().splitlines()[-2:] == [
        "--user disable --now a2mcp.service",
        "--user daemon-reload",
    ]
    assert "There is no service" in run("install-service", "--uninstall").output


def test_printing_a_service_touches_nothing(run, person, manager, monkeypatch):
    """Issue §9: for who keeps such files elsewhere."""
    assert run("install-service", "--print").output.startswith("[Unit]\n")
    monkeypatch.setattr("sys.platform", "darwin")
    assert plistlib.loads(run("install-service", "--print").output.encode())["RunAtLoad"] is True
    assert files(person) == {}
    assert not (manager / "asked").exists()


def test_a_manager_that_refuses_is_named_with_what_it_said(run, person, manager):
    """Ours: no session bus is the usual reason."""
    (manager / "fails").touch()
    done = run("install-service")
    assert done.exit_code == 1
    assert "`systemctl --user daemon-reload` failed: no bus" in done.stderr


@pytest.mark.usefixtures("served")
def test_a_service_beside_a_running_daemon_is_refused(run, person, manager):
    """Ours: its own daemon would end at once, because one serves the home."""
    done = run("install-service")
    assert done.exit_code == 1
    assert "a2mcp stop" in done.stderr
