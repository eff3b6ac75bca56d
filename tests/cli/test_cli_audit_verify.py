"""audit --verify: what is told of a log that is whole, of one that is not, and of what only the daemon can know."""

import json

import msgspec
import pytest
from fake_daemon import STATUS

from a2mcp.audit import chain
from a2mcp.audit.journal import Journal, last_link
from a2mcp.audit.record import start_line
from a2mcp.clock import SystemClock
from a2mcp.http.ports import AuditFacts


def line(n):
    return start_line("2026-10-16T04:35:23.000Z", f"call-{n}", "s1", "bash", b"{}")


@pytest.fixture
def log(home):
    """A log of six records."""
    journal = Journal(home.audit, clock=SystemClock())
    journal.append([line(n) for n in range(6)])
    journal.close()
    return home.audit


@pytest.fixture
def daemon(served, log, monkeypatch):
    """A daemon that has written this log, or says so."""

    def says(last=None, digest=None):
        link = last_link(log)
        facts = AuditFacts(
            written=6, failures=0, last=link.seq if last is None else last, hash=digest or link.hash.decode()
        )
        monkeypatch.setattr(served, "status", lambda: msgspec.structs.replace(STATUS, audit=facts))

    says()
    return says


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def test_a_whole_log_is_said_to_be_and_what_stands_for_it(run, log):
    """Issue, item 8: plainly, what is proved and what is not."""
    done = run("audit", "--verify")
    digest = last_link(log).hash.decode()
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "The log is whole: 6 records, 1 to 6, follow one another.",
        f"last record  6, hash {digest}",
        "daemon       no daemon runs: what was cut off at the end cannot be told",
        "",
        "Who may write the files can write them anew, hashes and all. Only a hash that was kept elsewhere shows that: note the",
        "last one, and ask for it later with --expect.",
    ]


def test_the_first_line_that_is_not_as_it_was_comes_first(run, log):
    """Issue, item 8: file and line number; exit code 1."""
    log.write_bytes(log.read_bytes().replace(b"call-2", b"call-7"))
    done = run("audit", "--verify")
    assert done.exit_code == 1
    assert done.output.startswith("a2mcp.log:3: altered. Record 3 does not fit its hash. Or a2mcp.log:2 was, ")
    assert done.output.splitlines()[1] == "Up to there 2 records, 1 to 2, follow one another."


def test_json_says_the_same(run, log):
    """Issue, item 8: --json."""
    told = json.loads(run("audit", "--verify", "--json").output)
    assert told == {
        "ok": True,
        "daemon": "not running",
        "expected": None,
        "report": {
            "files": ["a2mcp.log"], "lines": 6, "records": 6, "first": 1, "last": 6,
            "hash": last_link(log).hash.decode(), "unchained": 0, "lost": 0, "torn": [], "fault": None,
        },
    }  # fmt: skip
    lines = lines_of(log)
    log.write_bytes(b"".join(lines[:2] + lines[3:]) + b"to")
    done = run("audit", "--verify", "--json")
    told = json.loads(done.output)
    assert (done.exit_code, told["ok"], told["daemon"]) == (1, False, "not asked")
    assert told["report"]["fault"] == {
        "file": "a2mcp.log", "line": 3, "kind": "removed", "text": "Record 3 is not there, and stood before this line.",
    }  # fmt: skip


def test_what_is_odd_and_no_fault_is_named(run, home, log):
    """Issue, item 8: records of older versions, torn lines, records that were lost."""
    lines = lines_of(log)
    log.write_bytes(line(90) + b"".join(lines[:3]) + b'{"ts":"2026')
    journal = Journal(home.audit, clock=SystemClock())
    journal._given = journal.last.seq + 2
    journal.append([line(9)])
    journal.close()
    done = run("audit", "--verify")
    assert done.exit_code == 0
    assert done.output.splitlines()[3:6] == [
        "no hash      1 records, of a version that made none: nothing can be said of them",
        "lost         2 records, which could not be written at their time",
        "torn         a2mcp.log:5, by a crash, or it is being written now",
    ]


@pytest.mark.usefixtures("home")
def test_no_log_is_no_fault(run):
    """Ours: a daemon that was never called has none."""
    done = run("audit", "--verify")
    assert (done.exit_code, done.output.splitlines()[0]) == (0, "The log is whole: no record has a hash.")


# --- what is noted elsewhere -----------------------------------------------------------------------------------------


def test_a_hash_that_was_noted_is_found_again_or_missed(run, log):
    """Ours: the only thing that shows a log which was written anew."""
    noted = chain.read(lines_of(log)[2][:-1]).hash.decode()
    assert run("audit", "--verify", "--expect", noted).exit_code == 0
    log.unlink()
    forger = Journal(log, clock=SystemClock())
    forger.append([line(n + 50) for n in range(6)])
    forger.close()
    assert run("audit", "--verify").exit_code == 0
    done = run("audit", "--verify", "--expect", noted)
    assert done.exit_code == 1
    assert done.output.startswith("The expected record is not there: ")
    assert json.loads(run("audit", "--verify", "--expect", noted, "--json").output)["expected"] is False


# --- what the daemon knows -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("daemon")
def test_a_log_that_ends_where_the_daemon_has_written_agrees(run):
    """Issue, item 8: the last hash, on the operator's channel."""
    done = run("audit", "--verify")
    assert done.exit_code == 0
    assert "daemon       the running daemon has written so far: nothing is missing at the end" in done.output


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("keep", [5, 1, 0])
def test_a_tail_that_is_cut_off_is_missed_while_the_daemon_runs(run, log, keep):
    """Issue, item 8."""
    log.write_bytes(b"".join(lines_of(log)[:keep]))
    done = run("audit", "--verify")
    assert done.exit_code == 1
    text = f"The daemon has written up to record 6, and the last one here is {keep}."
    assert done.output.splitlines()[0] == f"a2mcp.log:{keep + 1}: removed. {text}"


@pytest.mark.usefixtures("daemon")
def test_a_log_that_is_gone_is_missed_while_the_daemon_runs(run, log):
    """Issue, item 8."""
    log.unlink()
    done = run("audit", "--verify")
    assert (done.exit_code, done.output.splitlines()[0].startswith("a2mcp.log:1: removed. ")) == (1, True)


@pytest.mark.usefixtures("daemon")
def test_a_log_that_is_written_anew_is_known_while_the_daemon_runs(run, log):
    """Issue, item 8: hashes and all."""
    log.unlink()
    forger = Journal(log, clock=SystemClock())
    forger.append([line(n + 50) for n in range(6)])
    forger.close()
    done = run("audit", "--verify", "--json")
    told = json.loads(done.output)
    assert (done.exit_code, told["daemon"], told["report"]["fault"]["kind"]) == (1, "disagrees", "altered")


@pytest.mark.usefixtures("daemon")
def test_records_that_the_daemon_has_not_written_are_known_while_it_runs(run, log):
    """Issue, item 8: inserted at the end, with hashes that fit."""
    forger = Journal(log, clock=SystemClock())
    forger.append([line(9)])
    forger.close()
    done = run("audit", "--verify")
    text = "a2mcp.log:7: inserted. The daemon has written up to record 6 only."
    assert (done.exit_code, done.output.splitlines()[0]) == (1, text)


def test_a_log_that_was_rotated_away_meanwhile_is_looked_at_again(run, served, log, daemon, monkeypatch):
    """Ours: two rotations between the question and the look."""
    daemon()
    asked, answers = [], served.status()
    journal = Journal(log, clock=SystemClock(), limit=900)

    def status():
        asked.append(1)
        if len(asked) == 1:
            return answers
        link = last_link(log)
        facts = AuditFacts(written=6, failures=0, last=link.seq, hash=link.hash.decode())
        return msgspec.structs.replace(STATUS, audit=facts)

    monkeypatch.setattr(served, "status", status)
    journal.append([line(n) for n in range(12)])
    journal.close()
    done = run("audit", "--verify")
    assert (done.exit_code, len(asked)) == (0, 4)


@pytest.mark.usefixtures("log", "served")
def test_a_daemon_of_an_older_version_says_nothing_of_it(run):
    """Ours: after an upgrade of what is installed, before a restart of what runs."""
    assert json.loads(run("audit", "--verify", "--json").output)["daemon"] == "not running"


# --- files -----------------------------------------------------------------------------------------------------------


def test_copies_are_verified_wherever_they_lie(run, log, tmp_path):
    """Ours: a log is best verified where its writer cannot write."""
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(b"".join(lines_of(log)[2:4]))
    rest = tmp_path / "rest.jsonl"
    rest.write_bytes(b"".join(lines_of(log)[4:]))
    done = run("audit", "--verify", str(copy), str(rest))
    assert (done.exit_code, "4 records, 3 to 6, follow one another" in done.output) == (0, True)
    assert run("audit", "--verify", str(rest), str(copy)).exit_code == 1
    missing = run("audit", "--verify", str(tmp_path / "none"))
    assert (missing.exit_code, f"a2mcp: {tmp_path}/none cannot be read" in missing.stderr) == (2, True)


def test_a_link_in_place_of_the_log_is_named(run, log):
    """Issue, item 8: exit code 2, as for every file that cannot be used."""
    log.rename(log.with_name("elsewhere"))
    log.symlink_to(log.with_name("elsewhere"))
    done = run("audit", "--verify")
    assert (done.exit_code, done.stderr) == (2, f"a2mcp: {log} cannot be read: it is a symbolic link.\n")


@pytest.mark.parametrize(
    ("audit", "why"), [("/dev/null/a2mcp.log", "Not a directory"), ("/dev/full", "not a regular file")]
)
def test_a_log_that_cannot_be_read_is_named(run, monkeypatch, audit, why):
    """Issue, item 8: exit code 2."""
    monkeypatch.setenv("A2MCP_AUDIT", audit)
    done = run("audit", "--verify")
    assert (done.exit_code, done.stderr) == (2, f"a2mcp: {audit} cannot be read: {why}.\n")


@pytest.mark.parametrize(
    "args",
    [("--verify", "--tool", "bash"), ("--verify", "--follow"), ("--expect", "00"), ("some.log",)],
)
@pytest.mark.usefixtures("home")
def test_what_does_not_go_together_is_refused(run, args):
    """Ours: an option that would be ignored is a wrong usage."""
    done = run("audit", *args)
    assert (done.exit_code, "--verify" in done.stderr) == (2, True)
