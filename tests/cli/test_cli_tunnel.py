"""``a2mcp tunnel`` and ``a2mcp obtain`` against a channel that only remembers."""

import io
import json

import pytest

from a2mcp.cli import progress
from a2mcp.http.ports import ProgramFacts, TunnelFacts

URL = "https://calm-river.trycloudflare.com"
OPEN = TunnelFacts(state="open", url=URL, provider="cloudflared", pid=7, since="2026-10-16T04:35:23.000Z")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """The moment between two looks is not waited for."""
    monkeypatch.setattr(progress, "LOOK_S", 0)


def test_start_waits_until_it_is_open_and_prints_the_address_alone(run, served):
    """Ours: stdout is for a script, the rest for a person."""
    served.tunnels = [TunnelFacts(state="obtaining"), TunnelFacts(state="opening"), OPEN]
    result = run("tunnel")
    assert (result.exit_code, result.stdout) == (0, f"{URL}\n")
    assert "a2mcp tunnel stop" in result.stderr
    assert served.wishes[0].provider == "cloudflared"


def test_a_start_that_fails_is_an_error_with_its_reason(run, served):
    """Ours: and no control character of the program reaches the terminal."""
    served.tunnels = [TunnelFacts(state="opening"), TunnelFacts(error="it said \x1b[2J")]
    result = run("tunnel", "start", "--json")
    assert result.exit_code == 1
    assert "it said \\x1b[2J" in result.stderr
    assert json.loads(result.stdout)["state"] == "closed"


def test_stop_waits_until_it_is_closed(run, served):
    """Issue 4 §3."""
    served.tunnels = [TunnelFacts(state="closing"), TunnelFacts(state="closing"), TunnelFacts()]
    result = run("tunnel", "stop")
    assert (result.exit_code, result.stdout) == (0, "The tunnel is closed.\n")
    assert served.wishes == [None]


def test_status_waits_for_nothing(run, served):
    """Issue 4 §3."""
    served.tunnels = [TunnelFacts(state="opening")]
    assert run("tunnel", "status").stdout == "The tunnel is opening.\n"
    assert served.wishes == []


@pytest.mark.parametrize("source", ["file", "variable"])
def test_a_token_comes_from_a_file_or_the_environment(run, served, tmp_path, monkeypatch, source):
    """Issue 4 §3: never argv."""
    served.tunnels = [OPEN]
    more = []
    if source == "file":
        (tmp_path / "token").write_text(" secret-token\n")
        more = ["--token-file", str(tmp_path / "token")]
    monkeypatch.setenv("TUNNEL_TOKEN", "secret-token" if source == "variable" else "another")
    run("tunnel", "start", "--provider", "cloudflared-named", "--hostname", "a.example", *more)
    (wish,) = served.wishes
    assert (wish.provider, wish.hostname, wish.token) == ("cloudflared-named", "a.example", "secret-token")


def test_the_variable_is_for_a_named_tunnel_only(run, served, monkeypatch):
    """Ours: who has it set for something else gets a quick tunnel all the same."""
    monkeypatch.setenv("TUNNEL_TOKEN", "secret-token")
    served.tunnels = [OPEN]
    run("tunnel")
    assert served.wishes[0].token is None


def test_a_file_that_holds_no_token_is_said(run, served, tmp_path):
    """Bad input."""
    (tmp_path / "token").write_bytes(b"\xff")
    result = run("tunnel", "start", "--token-file", str(tmp_path / "token"))
    assert result.exit_code == 2
    assert "does not hold a token" in result.stderr


@pytest.mark.parametrize("arguments", [("tunnel",), ("tunnel", "stop"), ("obtain",), ("obtain", "dufs")])
def test_without_a_daemon_the_exit_code_says_so(run, home, arguments):
    """Ours."""
    assert run(*arguments).exit_code == 5


def test_obtain_lists_where_each_program_is(run, served):
    """Issue 4 §4."""
    served.found = [
        (
            ProgramFacts(name="dufs", setting="dufs", state="missing", version="0.46.0"),
            ProgramFacts(name="cloudflared", setting="cloudflared", state="path", path="/usr/bin/cloudflared"),
        )
    ]
    lines = run("obtain").stdout.splitlines()
    assert lines[1] == "dufs\tmissing\t0.46.0\t-\tno verified hash for this platform"
    assert lines[2] == "cloudflared\tpath\t-\t/usr/bin/cloudflared\t"


def test_obtain_waits_until_the_program_is_there(run, served):
    """Issue 4 §4."""
    states = ["wanted", "downloading", "downloading"]
    served.found = [(ProgramFacts(name="dufs", setting="dufs", state=state, bytes=5, total=10),) for state in states]
    served.found.append((ProgramFacts(name="dufs", setting="dufs", state="installed", path="/x/dufs", version="1"),))
    result = run("obtain", "dufs", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)[0]["path"] == "/x/dufs"
    assert served.wanted == ["dufs"]


def test_obtain_says_why_it_failed(run, served):
    """X14."""
    served.found = [(ProgramFacts(name="dufs", setting="dufs", state="failed", error="wrong hash"),)]
    result = run("obtain", "dufs")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "wrong hash" in result.stderr
    assert run("obtain", "sh").exit_code == 1


def test_a_pin_needs_no_daemon(run, home, tmp_path):
    """Issue 4 §4: `a2mcp obtain --pin FILE`."""
    (tmp_path / "pin.json").write_text(json.dumps({"name": "dufs", "sha256": "ab" * 32, "platform": "linux-x64"}))
    result = run("obtain", "--pin", str(tmp_path / "pin.json"))
    assert result.stdout.startswith(f"pinned dufs 0.46.0 for linux-x64: sha256 {'ab' * 32} of https://")
    assert json.loads(home.pins.read_text())[0]["sha256"] == "ab" * 32
    assert json.loads(run("obtain", "--pin", str(tmp_path / "pin.json"), "--json").stdout)[0]["name"] == "dufs"
    (tmp_path / "pin.json").write_text("{}")
    assert run("obtain", "--pin", str(tmp_path / "pin.json")).exit_code == 2


def test_a_person_sees_a_bar_and_a_pipe_sees_nothing(monkeypatch):
    """Issue 4 §4: a progress bar for a person."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    facts = ProgramFacts(name="dufs", setting="dufs", state="downloading", bytes=512_000, total=1_024_000)
    for terminal, drawn in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(progress.sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with progress.Watch() as watch:
            watch.show(None)
            watch.show(facts)
            watch.show(facts)
        assert ("fetching dufs" in terminal.getvalue()) == drawn
