"""audit: the log of calls, for people."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from fake_daemon import ROOT

from a2mcp.audit.record import done_line, start_line

ARGS = b'{"command":"ls"}'


@pytest.fixture
def log(home):
    """Write a log of three calls: one that went well, one that failed, one that never ended."""
    lines = [
        start_line("2026-10-16T04:35:23.000Z", "a", "s1", "bash", ARGS),
        done_line("2026-10-16T04:35:24.250Z", "a", "s1", "bash", ARGS, is_error=False),
        start_line("2026-10-16T04:36:00.000Z", "b", None, "read", b"{}", client="Cursor"),
        start_line("2026-10-16T04:36:01.000Z", "c", "s2", "bash", '{"command":"\u202e"}'.encode()),
        done_line(
            "2026-10-16T04:36:02.000Z", "b", None, "read", b"{}", is_error=True, client="Cursor", ended="cancelled"
        ),
    ]
    home.audit.write_bytes(b"".join(lines))
    return home.audit


@pytest.mark.usefixtures("log")
def test_the_calls_are_paired_and_the_unfinished_ones_come_last(run):
    """Issue §7: pairing by id, with the calls that never ended."""
    assert run("audit").output.splitlines() == [
        "TIME\tTOOL\tOUTCOME\tTOOK\tSESSION\tCLIENT\tARGUMENTS",
        '2026-10-16T04:35:23.000Z\tbash\tok\t1.250 s\ts1\t-\t{"command":"ls"}',
        "2026-10-16T04:36:00.000Z\tread\tcancelled\t2.000 s\t-\tCursor\t{}",
        '2026-10-16T04:36:01.000Z\tbash\tunfinished\t-\ts2\t-\t{"command":"\\u202e"}',
    ]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], "abc"), (["--tool", "bash"], "ac"), (["--session", "s1"], "a"), (["--phase", "start"], "c"),
        (["--session", "s"], "ac"), (["--phase", "done"], "ab"), (["--unfinished"], "c"), (["--last", "1"], "c"), (["--last", "0"], "abc"),
        (["--tool", "nothing"], ""),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("log")
def test_calls_are_filtered(run, options, ids):
    """Issue §7: filter by tool, session, phase; --json."""
    found = json.loads(run("audit", "--json", *options).output)
    assert "".join(call["id"] for call in found) == ids


@pytest.mark.usefixtures("log")
def test_json_has_what_the_records_say(run):
    """Issue §7: --json."""
    assert json.loads(run("audit", "--json").output)[0] == {
        "id": "a", "session": "s1", "client": None, "tool": "bash", "started": "2026-10-16T04:35:23.000Z",
        "ended": "2026-10-16T04:35:24.250Z", "seconds": 1.25, "outcome": "ok", "args": {"command": "ls"},
    }  # fmt: skip


@pytest.mark.usefixtures("home")
def test_no_log_is_no_error(run):
    """Ours: a daemon that was never called has none."""
    done = run("audit")
    assert (done.exit_code, done.output) == (0, "No call is on record.\n")


@pytest.mark.usefixtures("log")
def test_nothing_found_is_a_sentence(run, home):
    """Ours: a lone line of headings looks like a fault."""
    assert run("audit", "--tool", "nosuch").output == "No such call is on record.\n"
    home.audit.write_bytes(done_line("2026-10-16T04:35:24.250Z", "a", "s1", "bash", ARGS, is_error=False))
    assert run("audit", "--unfinished").output == "Every call on record has ended.\n"


def test_a_log_that_cannot_be_read_is_named(run, monkeypatch):
    """Ours."""
    monkeypatch.setenv("A2MCP_AUDIT", "/dev/null/a2mcp.log")
    done = run("audit")
    assert done.exit_code == 2
    assert "/dev/null/a2mcp.log cannot be read" in done.stderr


def test_follow_and_unfinished_exclude_each_other(run):
    """Ours."""
    assert run("audit", "--follow", "--unfinished").exit_code == 2


@pytest.mark.parametrize("as_json", [False, True])
def test_follow_prints_what_is_written_until_it_is_interrupted(home, log, as_json):
    """Issue §7: follow; through a rotation."""
    program = "from a2mcp.cli.main import cli; cli(obj={}, prog_name='a2mcp')"
    following = subprocess.Popen(
        [sys.executable, "-c", program, "audit", "-f", "--tool", "bash", *(["--json"] if as_json else [])],
        env={**os.environ, "A2MCP_HOME": str(home.root), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
    )  # fmt: skip
    # Until it follows, what is written may count as old: so the line is written again until one comes out.
    lines = []
    reader = threading.Thread(target=lambda: lines.append(following.stdout.readline()))
    reader.start()
    while reader.is_alive():
        with log.open("ab") as file:
            file.write(start_line("2026-10-16T04:37:00.000Z", "d", "s1", "bash", ARGS))
            file.write(start_line("2026-10-16T04:37:00.000Z", "e", "s1", "read", ARGS))
        reader.join(0.05)
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=30)
    assert (following.returncode, err) == (0, "")
    if as_json:
        assert json.loads(lines[0])["id"] == "d"
    else:
        assert lines[0] == '2026-10-16T04:37:00.000Z\tstart\tbash\t-\ts1\t-\t{"command":"ls"}\n'
