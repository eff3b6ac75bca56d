"""The jobs tool: following, paging, feeding and stopping commands, and what is left of them after a restart."""

import errno
import os
import signal
import stat
from pathlib import Path

import msgspec
import pytest
from command_calls import Shell, text_of
from processes import alive

from a2mcp.clock import SystemClock
from a2mcp.host.command import Command
from a2mcp.host.joblog import Record, State
from a2mcp.host.process import spawn
from a2mcp.host.run import Watcher
from a2mcp.tools import bash, jobs
from a2mcp.tools.context import Limits
from a2mcp.types import CallId


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path / "home")
    yield shell
    shell.close()


def job_of(shell, command, **args):
    return shell.bash(command, wait=0, **args).structured["jobId"]


def ids(shell):
    return [facts["id"] for facts in shell.jobs("list").structured["jobs"]]


def zombies():
    """Return our ended children that nobody has reaped."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == os.getpid():
            found.append(entry)
    return found


def test_no_jobs_is_an_answer(shell):
    """Ours."""
    assert text_of(shell.jobs("list")) == "There are no jobs."


def test_how_a_job_ended_is_known_also_when_the_disk_was_full(shell):
    """Row B09 on a full disk: neither the folder nor the record of the job can be made."""
    shell.home.mkdir(exist_ok=True)
    (shell.home / "jobs").write_text("in the way")
    job = job_of(shell, "echo said; sleep 0.2; exit 7")

    waited = shell.jobs("wait", id=job, timeout=10).structured
    assert (waited["state"], waited["exitCode"]) == ("ended", 7)
    listed = shell.jobs("list").structured["jobs"]
    assert [(facts["id"], facts["state"], facts["exitCode"]) for facts in listed] == [(job, "ended", 7)]


def test_a_job_is_listed_while_it_runs_and_after(shell):
    """Row B09: list."""
    job = job_of(shell, "sleep 60 # the first\necho second line")
    (facts,) = shell.jobs("list").structured["jobs"]
    assert (facts["id"], facts["state"], facts["exitCode"]) == (job, "running", None)
    assert facts["command"] == "sleep 60 # the first …"
    assert job in text_of(shell.jobs("list"))
    shell.jobs("stop", id=job)
    (facts,) = shell.jobs("list").structured["jobs"]
    assert (facts["id"], facts["state"], facts["signal"]) == (job, "ended", "SIGTERM")
    assert zombies() == []


def test_output_is_paged_by_byte_offset(shell):
    """Row B09: output paging; a character is never split and never lost."""
    job = job_of(shell, "for i in 1 2 3 4 5 6 7; do printf 'aé€😀'; done; echo err >&2")
    shell.jobs("wait", id=job)
    whole, offset = "", 0
    while True:
        result = shell.jobs("output", id=job, offset=offset, limit=16)
        page = result.structured
        assert "�" not in page["text"]
        whole, offset = whole + page["text"], page["nextOffset"]
        if not page["more"]:
            break
        assert f"more at offset {offset}" in text_of(result)
    assert whole == "aé€😀" * 7
    assert "this is the end" in text_of(result)
    assert shell.jobs("output", id=job, stream="stderr").structured["text"] == "err\n"
    assert shell.jobs("output", id=job, offset=-4, limit=16).structured["text"] == "😀"
    assert shell.jobs("output", id=job, offset=10_000).structured["text"] == ""


def test_output_of_a_running_job_grows(shell):
    """Ours: the pages of a job that still writes."""
    job = job_of(shell, "echo one; read -r line; echo $line", stdin="")
    shell.until_output(job, "one\n")
    at = shell.jobs("output", id=job).structured["nextOffset"]
    assert at == 4
    shell.jobs("write", id=job, input="two\n")
    shell.jobs("wait", id=job)
    assert shell.jobs("output", id=job, offset=at).structured["text"] == "two\n"


def test_wait_gives_up_after_its_timeout_and_the_job_goes_on(shell):
    """Issue §5: wait."""
    job = job_of(shell, "echo so far; sleep 60")
    shell.until_output(job, "so far")
    result = shell.jobs("wait", id=job, timeout=0.05)
    assert not result.is_error
    assert result.structured["state"] == "running"
    assert result.structured["stdout"] == "so far\n"


def test_looking_at_a_job_that_failed_is_no_failure(shell):
    """Ours: the call did what it was asked for."""
    job = job_of(shell, "exit 3")
    result = shell.jobs("wait", id=job)
    assert not result.is_error
    assert result.structured["exitCode"] == 3
    assert shell.jobs("wait", id=job).structured["exitCode"] == 3
    assert shell.jobs("stop", id=job).structured["exitCode"] == 3


def test_stop_ends_the_group_and_everyone_who_waits_is_told(shell):
    """Row B09: kill; two watchers."""
    job = job_of(shell, "sleep 61 & echo $!; wait")
    shell.until_output(job, "\n")
    waiting = shell.begin(jobs.TOOL, action="wait", id=job)
    result = shell.jobs("stop", id=job)
    assert result.structured["signal"] == "SIGTERM"
    assert "was stopped" in text_of(result)
    assert shell.result_of(waiting).structured["signal"] == "SIGTERM"
    child = int(result.structured["stdout"])
    shell.until(lambda: not alive(child))
    assert zombies() == []


def test_a_job_that_ends_between_list_and_stop_is_not_signalled(shell, monkeypatch):
    """Row B09: finishing between list and kill; its number may be somebody else's."""
    job = job_of(shell, "true")
    shell.jobs("wait", id=job)
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("signalled"))
    assert shell.jobs("stop", id=job).structured["exitCode"] == 0


def test_a_background_process_that_the_system_does_not_let_us_watch_is_looked_at(shell, monkeypatch, caplog):
    """Ours: without a descriptor left the end of the job would never be seen, and its handle never closed."""
    watch, refused = shell.runs.loop.on_readable, []

    def on_readable(source, step, *fault):
        if step is not None and getattr(getattr(step, "func", None), "__name__", "") == "_one_is_gone":
            refused.append(source)
            raise OSError(errno.ENOSPC, "no room to watch")
        watch(source, step, *fault)

    monkeypatch.setattr(shell.runs.loop, "on_readable", on_readable)
    shell.bash("true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    job = shell.bash("sleep 1 >/dev/null 2>&1 &").structured["jobId"]
    shell.until(lambda: shell.jobs("list").structured["jobs"][0]["state"] == "ended")
    assert job is not None
    assert refused
    # Fewer, if the first command had not closed all of its own when they were counted.
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    assert "internal error" not in caplog.text


def test_a_background_process_is_a_job_that_can_be_stopped(shell):
    """Issue §5: what still runs is listed, its output is still read."""
    result = shell.bash("(sleep 0.3; echo later; exec sleep 60) & echo now")
    job = result.structured["jobId"]
    assert shell.jobs("list").structured["jobs"][0]["state"] == "background"
    shell.until_output(job, "later\n")
    ended = shell.jobs("stop", id=job)
    assert ended.structured["stdout"] == "now\nlater\n"
    assert ended.structured["exitCode"] == 0
    assert zombies() == []


def test_input_stays_open_until_it_is_closed(shell):
    """Issue §5: write."""
    job = job_of(shell, "cat; echo end", stdin="first\n")
    shell.until_output(job, "first\n")
    assert "6 bytes written" in text_of(shell.jobs("write", id=job, input="sécd\n"))
    shell.until_output(job, "sécd\n")
    assert "is closed" in text_of(shell.jobs("write", id=job, input=""))
    assert shell.jobs("wait", id=job).structured["stdout"] == "first\nsécd\nend\n"


def test_input_that_nobody_reads_is_bounded(shell):
    """Ours: every buffer has a size."""
    job = job_of(shell, "sleep 60", stdin="")
    shell.jobs("write", id=job, input="x" * 1_000_000)
    result = shell.jobs("write", id=job, input="x" * 1_000_000)
    assert result.is_error
    assert "has not read its input" in text_of(result)


def test_input_that_waits_is_delivered_when_there_is_room(shell):
    """Ours: more than a pipe holds, then end-of-file."""
    job = job_of(shell, "sleep 0.1; wc -c", stdin="")
    shell.jobs("write", id=job, input="x" * 1_000_000)
    shell.jobs("write", id=job, input="")
    assert shell.jobs("wait", id=job).structured["stdout"].strip() == "1000000"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"action": "stop"}, "'id'"),
        ({"action": "wait", "id": "jnothere22"}, "There is no job 'jnothere22'"),
        ({"action": "output", "id": "../../etc"}, "There is no job"),
        ({"action": "stop", "id": "\u202e"}, r"There is no job '\u202e'"),
        ({"action": "write", "id": "jnothere22"}, "'input'"),
        ({"action": "write", "id": "jnothere22", "input": "x"}, "There is no job"),
        ({"action": "dance"}, "'action'"),
    ],
)
def test_a_call_that_makes_no_sense_is_explained(shell, args, words):
    """Ours: clear errors."""
    result = shell.result_of(shell.begin(jobs.TOOL, **args))
    assert result.is_error
    assert words in text_of(result)


def test_a_job_without_open_input_says_how_to_get_one(shell):
    """Ours."""
    job = job_of(shell, "sleep 60")
    assert "wait=0" in text_of(shell.jobs("write", id=job, input="x"))
    shell.jobs("stop", id=job)
    assert "it is ended" in text_of(shell.jobs("write", id=job, input="x"))


def test_files_are_private(shell):
    """Issue §8: 0600 and 0700."""
    job = job_of(shell, "echo secret")
    shell.jobs("wait", id=job)
    folder = shell.home / "jobs"
    for path in (folder, folder / job):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    names = sorted(path.name for path in (folder / job).iterdir())
    assert names == ["meta.json", "stderr", "stdout"]
    for path in (folder / job).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


# --- after a restart


def abandoned(tmp_path, command):
    """Make what a killed daemon leaves: a command that runs on, and its folder. Returns its shell, job and child."""
    shell = Shell(tmp_path / "home")
    child = spawn(Command(text=command, cwd=tmp_path, wait_s=0), started=SystemClock().monotonic())
    ticket = shell.begin(bash.TOOL, command="sleep 60", wait=0)
    job = ticket.result.structured["jobId"]
    record = shell.book.record(job)
    shell.close()
    shell.log.save(
        msgspec.structs.replace(record, command=command, pid=child.pid, identity=type(record.identity).of(child.pid))
    )
    return Shell(tmp_path / "home"), job, child


def test_a_lost_job_is_said_to_be_lost(tmp_path):
    """Row B09: daemon killed and started again; nobody saw the end."""
    shell, job, child = abandoned(tmp_path, "sleep 62")
    child.discard()
    (facts,) = shell.jobs("list").structured["jobs"]
    assert (facts["id"], facts["state"], facts["exitCode"]) == (job, "lost", None)
    assert facts["status"] == "lost: the daemon that ran it ended"
    assert shell.jobs("wait", id=job).structured["state"] == "lost"
    assert shell.jobs("stop", id=job).structured["state"] == "lost"
    shell.close()


def test_an_orphan_is_said_to_run_and_can_be_stopped(tmp_path):
    """Row B09, issue §5: honest state; told by number and start time."""
    shell, job, child = abandoned(tmp_path, "sleep 63")
    (facts,) = shell.jobs("list").structured["jobs"]
    assert facts["status"] == f"still running as pid {child.pid} (orphan: the daemon that ran it ended)"
    result = shell.jobs("stop", id=job)
    assert result.structured["state"] == "ended"
    assert child.status() == -signal.SIGTERM
    child.reap()
    child.close()
    shell.close()


def test_an_orphan_that_ignores_term_is_killed(tmp_path, monkeypatch):
    """Ours: TERM, then KILL, as for a child of ours."""
    monkeypatch.setattr("a2mcp.host.jobbook.GRACE_S", 0.2)
    shell, job, child = abandoned(tmp_path, "trap '' TERM; while :; do sleep 0.05; done")
    shell.jobs("stop", id=job)
    assert child.status() in (-signal.SIGKILL, -signal.SIGTERM)
    child.discard()
    shell.close()


def test_a_stranger_with_the_same_number_is_never_signalled(tmp_path):
    """Issue §8: nothing is ever signalled that is not ours."""
    shell, job, child = abandoned(tmp_path, "sleep 64")
    meta = shell.home / "jobs" / job / "meta.json"
    record = msgspec.json.decode(meta.read_bytes(), type=Record)
    older = msgspec.structs.replace(record.identity, started=record.identity.started - 1)
    shell.log.save(msgspec.structs.replace(record, identity=older))
    assert shell.jobs("stop", id=job).structured["state"] == "lost"
    assert child.status() is None
    child.discard()
    shell.close()


def test_what_a_crash_left_half_made_is_no_job(tmp_path):
    """Ours: a folder without a record, a torn record, and a foreign folder."""
    folder = tmp_path / "home" / "jobs"
    for name in ("jaaaaaaaa", "jbbbbbbbb", "notes"):
        (folder / name).mkdir(parents=True)
    (folder / "jbbbbbbbb" / "meta.json").write_text('{"id": "jbbb')
    shell = Shell(tmp_path / "home")
    assert text_of(shell.jobs("list")) == "There are no jobs."
    shell.jobs("wait", id=job_of(shell, "true"))
    shell.until(lambda: not (folder / "jaaaaaaaa").exists())
    assert (folder / "notes").exists()
    shell.close()


# --- bounds


def test_the_oldest_ended_jobs_go_first(tmp_path):
    """Issue §5: bounded; what runs is never thrown away."""
    shell = Shell(tmp_path / "home", limits=Limits(kept_jobs=3))
    running = job_of(shell, "sleep 65")
    ended = []
    for number in range(5):  # One after the other: two that run at once end in any order.
        ended.append(job_of(shell, f"echo {number}"))
        shell.jobs("wait", id=ended[-1])
    shell.until(lambda: len(ids(shell)) == 4)
    assert ids(shell) == [running, *ended[-3:]]
    assert "There is no job" in text_of(shell.jobs("output", id=ended[0]))
    shell.close()


def test_the_bytes_of_ended_jobs_are_bounded(tmp_path):
    """Issue §5: the newest stays even when it alone is over the bound."""
    shell = Shell(tmp_path / "home", limits=Limits(kept_bytes=100_000))
    for _ in range(3):
        shell.bash("head -c 90000 /dev/zero")
    shell.until(lambda: len(ids(shell)) == 1)
    last = shell.bash("head -c 200000 /dev/zero").structured["jobId"]
    shell.until(lambda: ids(shell) == [last])
    shell.close()


def test_whoever_is_told_of_an_end_has_the_place_back(shell, tmp_path):
    """Ours: one command after the other is never one too many, however fast the next one is."""
    seen = []
    watcher = Watcher(CallId("c"), lambda _report: seen.append(shell.runs.running()), owner=True)
    shell.take_place()
    child = spawn(Command(text="true", cwd=tmp_path, wait_s=30), started=SystemClock().monotonic())
    shell.runs.start(child, watcher)
    shell.until(lambda: seen)
    assert seen == [0]


def on_disk(shell):
    """Bytes of output in the folder of the jobs."""
    return sum(path.stat().st_size for path in (shell.home / "jobs").glob("*/std*"))


def test_running_commands_share_what_there_is_on_disk(tmp_path):
    """Issue 5, section 6: the folder's total; what is over it is dropped and said so, and an end makes room again."""
    shell = Shell(tmp_path / "home", limits=Limits(kept_bytes=1_000_000))
    first = job_of(shell, "head -c 700000 /dev/zero; cat", stdin="")
    second = job_of(shell, "head -c 700000 /dev/zero; cat", stdin="")
    shell.until(lambda: sum(run.written for run in shell.runs.jobs.values()) == 1_400_000)
    assert on_disk(shell) == 1_000_000
    said = [text_of(shell.jobs("stop", id=job)) for job in (first, second)]
    assert sum("390.6 KiB of output were dropped: there was no room to keep them." in text for text in said) == 1

    third = shell.bash("head -c 900000 /dev/zero").structured
    shell.until(lambda: ids(shell) == [third["jobId"]])
    assert on_disk(shell) == 900_000
    shell.close()


def test_a_command_that_writes_much_pushes_old_output_out_while_it_runs(tmp_path):
    """Issue 5, section 6: oldest first, and not only when something ends."""
    shell = Shell(tmp_path / "home", limits=Limits(kept_bytes=1_000_000))
    oldest, newest = (shell.bash("head -c 300000 /dev/zero").structured["jobId"] for _ in range(2))
    running = job_of(shell, "cat; head -c 600000 /dev/zero; sleep 67", stdin="x")
    shell.until(lambda: set(ids(shell)) == {oldest, newest, running})
    shell.jobs("write", id=running, input="")
    shell.until(lambda: set(ids(shell)) == {newest, running})
    assert on_disk(shell) <= 1_000_000
    shell.close()


def test_what_an_earlier_daemon_left_is_brought_within_the_bounds(tmp_path):
    """Issue 5, section 6: a killed daemon prunes nothing, and the next may have other limits."""
    first = Shell(tmp_path / "home")
    made = [first.bash("head -c 100000 /dev/zero").structured["jobId"] for _ in range(4)]
    first.close()
    second = Shell(tmp_path / "home", limits=Limits(kept_jobs=2))
    second.until(lambda: ids(second) == made[-2:])
    second.close()


def test_twenty_commands_end_with_the_daemon(tmp_path):
    """Row B08: none is left, each call is answered, new ones end at once."""
    shell = Shell(tmp_path / "home", limits=Limits())
    tickets = [shell.begin(bash.TOOL, command="echo $$; sleep 66; true") for _ in range(20)]
    shell.runs.stop_all(5.0)
    late = shell.begin(bash.TOOL, command="sleep 66; true")
    shell.until(lambda: shell.runs.running() == 0)
    for ticket in (*tickets, late):
        assert ticket.result.is_error
        assert "daemon is stopping" in text_of(ticket.result)
        pid = ticket.result.structured["stdout"].strip()
        assert not pid or not Path(f"/proc/{pid}").exists()
    assert zombies() == []
    shell.close()


def test_stopping_with_no_grace_kills(tmp_path):
    """Issue §2: a second signal ends within a second."""
    shell = Shell(tmp_path / "home")
    ticket = shell.begin(bash.TOOL, command="trap '' TERM; echo on; while :; do sleep 0.1; done")
    shell.runs.stop_all(30.0)
    shell.runs.stop_all(0.0)
    shell.until(lambda: shell.runs.running() == 0)
    assert ticket.result.structured["signal"] in {"SIGKILL", "SIGTERM"}
    shell.close()


def test_states_that_are_live_are_the_two_that_a_daemon_looks_after():
    """Ours: everything else is never corrected when read back."""
    assert {state for state in State if state.live} == {State.RUNNING, State.BACKGROUND}
