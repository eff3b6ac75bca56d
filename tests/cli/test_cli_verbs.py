"""The verbs, against a real socket with a port that only remembers."""

import json
import os
import pty
import select
import socket
import subprocess
import sys
import threading

import click
import fake_daemon
import msgspec
import pytest
from fake_daemon import ROOT, Fake

from a2mcp.cli import show
from a2mcp.cli.main import VERBS, cli
from a2mcp.clock import SystemClock, iso
from a2mcp.errors import AlreadyServing, CannotListen, SettingsError

ASKING = [
    ["status"], ["token"], ["rotate"], ["approvals"], ["approve", "x"], ["deny", "x"], ["jobs"], ["stop"],
]  # fmt: skip


@pytest.mark.usefixtures("served")
def test_status_says_the_address_first(run):
    """Issue §9: address, sessions, calls in flight, approvals, audit failures, uptime."""
    done = run("status")
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "a2mcp 0.1.0 on http://127.0.0.1:8123/ (token tttttt…)",
        "standard dialect   http://127.0.0.1:8123/mcp",
        f"running            pid {os.getpid()}, for 1 h 2 min, since 2026-10-16T04:35:23.000Z",
        "sessions           3",
        "calls in flight    2",
        "approvals waiting  1  (see `a2mcp approvals`)",
        "jobs running       4",
        "audit              10 written, 0 failures",
        "tunnel             closed",
        "host's model       none (allowed)",
    ]


def test_status_says_that_the_daemon_is_stopping(run, served, monkeypatch):
    """Ours: a daemon that drains looks like one that serves."""
    assert served.stopped.is_set() is False
    monkeypatch.setattr(fake_daemon, "STATUS", msgspec.structs.replace(fake_daemon.STATUS, stopping=True))
    assert "stopping           takes no more calls" in run("status").output
    assert json.loads(run("status", "--json").output)["stopping"] is True
    started = run("start")
    assert (started.exit_code, "is stopping" in started.stderr) == (3, True)


@pytest.mark.usefixtures("served")
def test_status_as_json_has_the_documented_members(run):
    """Issue §9: `status --json` has at least these."""
    facts = json.loads(run("status", "--json").output)
    assert (facts["url"], facts["version"], facts["uptime_s"]) == ("http://127.0.0.1:8123/mcp", "0.1.0", 3723.5)
    assert [facts[name] for name in ("sessions", "calls_in_flight", "approvals_waiting", "jobs_running")] == [
        3,
        2,
        1,
        4,
    ]
    assert facts["audit"] == {"written": 10, "failures": 0, "last": 0, "hash": ""}
    assert facts["pid"] == os.getpid()


@pytest.mark.usefixtures("served")
def test_token_prints_the_token_and_nothing_else(run):
    """Seed, "Commands": print the full token."""
    assert run("token").output == "t" * 43 + "\n"
    assert json.loads(run("token", "--json").output) == {"token": "t" * 43}


@pytest.mark.usefixtures("served")
def test_rotate_prints_the_new_token_on_stdout_alone(run):
    """Seed, "Commands": rotate; so that a script can keep it."""
    done = run("rotate")
    assert done.stdout == "n" * 43 + "\n"
    assert "old token no longer works" in done.stderr
    assert json.loads(run("rotate", "--json").output) == {"token": "n" * 43}


def test_approvals_are_listed_and_answered_by_id(run, served):
    """Issue §6: approvals, approve, deny."""
    lines = run("approvals").output.splitlines()
    assert lines[0] == "ID\tTOOL\tWAITING\tSESSION\tARGUMENTS"
    assert lines[1].startswith("k7f3a\tbash\t1 min 5 s\t-\t")
    assert run("approve", "k7f3a").output == "approved k7f3a\n"
    assert run("deny", "k7f3a", "--reason", "not today").output == "denied k7f3a\n"
    assert served.answers == [("k7f3a", True, ""), ("k7f3a", False, "not today")]
    assert json.loads(run("approvals", "--json").output)[0]["tool"] == "bash"
    served.waiting = ()
    assert run("approvals").output == "Nothing waits for approval.\n"


def test_an_id_that_does_not_wait_is_a_failure_however_it_looks(run, served):
    """Ours: an id is what an operator typed."""
    for wrong in ("zzzzz", "../stop", "a/b", "%2e", "ö"):
        done = run("approve", wrong)
        assert done.exit_code == 1
        assert "No call waits for approval under" in done.stderr
    assert not served.stopped.is_set()
    assert run("approve").exit_code == 2


def test_a_call_cannot_dress_up_as_another_one(run, served):
    """Ours: terminal control and direction characters of a caller are shown, never obeyed."""
    output = run("approvals").output
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert "rm -rf \\u202ex\\x1b[2K [red]" in output
    assert "make all\\nnow" in run("jobs").output
    served.running = ()
    assert run("jobs").output == "There are no jobs.\n"
    assert json.loads(run("jobs", "--json").output) == []


def on_terminal(home, *args, **environment):
    """Run the command on a pseudo-terminal; returns what it printed."""
    main, side = pty.openpty()
    program = "from a2mcp.cli.main import cli; cli(obj={}, prog_name='a2mcp')"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *args],
        env={**os.environ, "A2MCP_HOME": str(home.root), "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "200", **environment},
        stdin=subprocess.DEVNULL, stdout=side, stderr=side,
    )  # fmt: skip
    os.close(side)
    seen = b""
    while select.select([main], [], [], 30)[0]:
        try:
            piece = os.read(main, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    assert process.wait(30) == 0
    return seen.decode()


@pytest.mark.usefixtures("served")
def test_a_terminal_gets_a_table_and_no_color_is_honoured(home):
    """Issue §9: rich; ours: https://no-color.org."""
    coloured = on_terminal(home, "approvals")
    plain = on_terminal(home, "approvals", NO_COLOR="1", TERM="dumb")
    assert "k7f3a" in coloured
    assert "\x1b[1m" in coloured
    assert "\x1b" not in plain
    for seen in (coloured, plain):
        assert "\\u202ex\\x1b[2K [red]" in seen
        assert "\u202e" not in seen


def test_a_table_fits_a_terminal_and_keeps_what_it_is_about(home, served):
    """Ours: at 80 columns an id is its beginning, a column is one line, and the last one is told in full."""
    client, command = "c" * 79, "echo " + "long " * 30
    session = "0b51c6c2-6d1f-4f0a-9d3c-111111111111"
    served.in_flight = (
        msgspec.structs.replace(
            fake_daemon.CALL,
            call_id="5d5f8e4a-1d4b-4a57-8f43-222222222222",
            session_id=session,
            client=client,
            args=msgspec.Raw(msgspec.json.encode({"command": command})),
        ),
    )
    seen = on_terminal(home, "top", "--once", COLUMNS="80", NO_COLOR="1", TERM="dumb").splitlines()
    assert max(map(len, seen)) <= 80
    assert seen[1].startswith("5d5f8e4a  bash  running")
    assert client not in seen[1]
    assert "…" in seen[1]
    assert session[:8] in seen[1]
    assert session not in seen[1]
    assert sum(line.count("long") for line in seen) == 30


def test_a_time_is_the_hour_today_and_the_day_before(monkeypatch):
    """Ours: a terminal has no room for a whole stamp; what is piped is whole."""
    now = iso(SystemClock().now())
    assert show.moment(now) == now
    monkeypatch.setattr(show.sys.stdout, "isatty", lambda: True)
    assert show.moment("2026-10-16T04:35:23.000Z") == "2026-10-16"
    assert show.moment(now) in {now[11:19], now[:10]}  # The day may end meanwhile.


@pytest.mark.parametrize("args", ASKING, ids=lambda args: args[0])
def test_without_a_daemon_every_question_ends_with_5(home, run, args):
    """Issue §9: 5 no daemon runs."""
    done = run(*args)
    assert done.exit_code == 5
    assert done.stdout == ""
    assert f"No daemon runs for {home.root}." in done.stderr
    assert "a2mcp start" in done.stderr


def test_a_socket_without_its_daemon_counts_as_no_daemon(home, run):
    """Ours: what a kill leaves behind."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(home.socket))
    assert run("status").exit_code == 5


def test_a_socket_of_another_user_is_not_asked(run, served, monkeypatch):
    """Ours: a shared folder may hold somebody else's."""
    monkeypatch.setattr("a2mcp.cli.client.os.geteuid", lambda: 4_000_001)
    done = run("token")
    assert done.exit_code == 1
    assert "the socket belongs to another user" in done.stderr
    assert served.current not in done.output


def test_a_daemon_that_answers_nonsense_or_nothing_is_named(home, run):
    """Ours: any program may listen there."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(home.socket))
    listener.listen()
    replies = [
        b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\n\xff",
    ]  # fmt: skip

    def serve():
        for reply in replies:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

    thread = threading.Thread(target=serve)
    thread.start()
    outcomes = [run("status") for _ in replies]
    thread.join()
    listener.close()
    assert [done.exit_code for done in outcomes] == [1, 1, 1, 1]
    assert all("The daemon" in done.stderr for done in outcomes)
    assert "Traceback" not in "".join(done.output for done in outcomes)


def test_a_fault_of_the_daemon_is_passed_on(run, served):
    """Ours."""
    served.fault = SettingsError("x", "must be y", hint="Do z.")
    done = run("status")
    assert (done.exit_code, done.stderr) == (1, "a2mcp: field 'x' must be y\n       Do z.\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [(SettingsError("port", "must be an integer"), 2), (AlreadyServing("x"), 3), (CannotListen("x"), 4)],
)
def test_serve_runs_what_it_was_given_and_maps_errors_to_codes(home, run, error, code):
    """Issue §9: exit codes, in one place."""
    seen = []

    def fail(where):
        seen.append(where)
        raise error

    done = run("serve", serve=fail)
    assert done.exit_code == code
    assert seen == [home]
    assert done.stderr.startswith(f"a2mcp: {error.text}")
    assert run("serve", serve=lambda _: 0).exit_code == 0
    assert run("serve", serve=lambda _: 1).exit_code == 1


@pytest.mark.parametrize(
    "args", [["stat"], ["--nope"], ["status", "--nope"], ["status", "extra"], ["completion", "csh"]]
)
def test_wrong_usage_ends_with_2(run, args):
    """Issue §9: 2 wrong usage."""
    assert run(*args).exit_code == 2


def test_a_mistyped_verb_is_met_with_the_one_that_was_meant(run):
    """Ours."""
    assert "Did you mean 'status'?" in run("sttaus").stderr
    assert "No such command 'zzz'" in run("zzz").stderr


def test_wrong_places_end_with_2(shell):
    """Row C05: A2MCP_HOME relative, non-UTF-8."""
    for wrong in ("relative", os.fsdecode(b"/\xff")):
        done = shell("status", A2MCP_HOME=wrong)
        assert done.returncode == 2
        assert "field 'A2MCP_HOME' must be" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_exists_and_explains_itself(run, verb):
    """Issue §9: the verbs."""
    done = run(verb, "--help")
    assert done.exit_code == 0
    assert len(done.output.splitlines()) >= 4


def test_the_help_shows_every_verb_with_a_whole_sentence(run):
    """Ours: a first line that is cut off helps nobody."""
    output = run("--help").output
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        assert f"  {verb} " in output
        # What 80 columns have beside the names.
        assert not command.get_short_help_str(59).endswith("..."), verb


def test_version_is_the_package_s(run):
    """Issue §9."""
    import a2mcp

    assert run("version").output == run("--version").output == f"a2mcp {a2mcp.__version__}\n"
    assert json.loads(run("version", "--json").output)["version"] == a2mcp.__version__


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_completion_script_names_our_variable(run, name):
    """Issue §9: shell completion."""
    done = run("completion", name)
    assert done.exit_code == 0
    assert "_A2MCP_COMPLETE" in done.output


def test_bash_completes_a_verb(shell):
    """Issue §9: what the script asks the command for."""
    done = shell(_A2MCP_COMPLETE="bash_complete", COMP_WORDS="a2mcp sta", COMP_CWORD="1")
    assert done.stdout.splitlines() == ["plain,start", "plain,status"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.9, "59 s"), (61, "1 min 1 s"), (3723, "1 h 2 min"), (90000, "1 d 1 h")],
)
def test_a_duration_has_the_two_units_that_matter(seconds, text):
    """Ours."""
    assert show.duration(seconds) == text


def test_the_fake_has_every_method_of_the_port():
    """Ours: these tests must not outlive the interface they stand for."""
    from a2mcp.http.ports import OperatorPort

    assert {name for name in vars(OperatorPort) if not name.startswith("_")} <= set(dir(Fake))
