"""The bash tool: what a command sees, how it ends, and what is said about it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_calls import Shell, Ticket, text_of
from processes import alive

from a2mcp.errors import Busy
from a2mcp.host import process
from a2mcp.host.command import Command
from a2mcp.host.descendants import NoProc
from a2mcp.host.jobroom import JobRoom
from a2mcp.tools import bash, jobs
from a2mcp.tools.context import Context, Limits

# For a command to have said its word in: on a machine that is busy with others a shell takes a while to begin.
SPOKEN_S = 2


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path / "home")
    yield shell
    shell.close()


def test_output_error_output_and_exit_code_are_told_apart(shell):
    """Issue §5: exit code, duration, stdout and stderr."""
    result = shell.bash("echo out; echo err >&2; exit 3")
    assert text_of(result).startswith("out\n[stderr]\nerr\nexit code 3 (")
    assert result.is_error
    data = result.structured
    assert (data["stdout"], data["stderr"], data["exitCode"], data["signal"]) == ("out\n", "err\n", 3, None)
    assert 0 <= data["durationMs"] < 10_000
    assert not data["timedOut"]
    assert not data["truncated"]
    assert "jobId" not in data


def test_a_command_that_succeeds_is_no_error_and_leaves_no_folder(shell):
    """Ours: a short command costs no file."""
    result = shell.bash("true")
    assert not result.is_error
    assert text_of(result).startswith("exit code 0 (")
    assert not shell.home.exists()


@pytest.mark.parametrize(("command", "word"), [("sleep 45 & echo up", "up\n"), ("setsid sleep 45 & echo up3", "up3\n")])
def test_a_child_that_keeps_the_pipe_does_not_hold_the_call(shell, command, word):
    """Try-out 03."""
    begun = time.monotonic()
    result = shell.bash(f"{command}; echo $! >&2")
    assert time.monotonic() - begun < 3
    assert result.structured["stdout"] == word
    assert result.structured["exitCode"] == 0
    assert result.structured["backgroundRemains"]
    assert "background process still runs" in text_of(result)
    assert f"it is job {result.structured['jobId']}" in text_of(result)
    assert shell.bash("echo next").structured["stdout"] == "next\n"
    os.kill(int(result.structured["stderr"]), signal.SIGKILL)


def test_a_child_that_let_go_of_the_pipe_is_mentioned_too(shell):
    """Try-out 03: the second command."""
    result = shell.bash("(sleep 45 >/dev/null 2>&1 & echo $! >&2); echo up2")
    pid = int(result.structured["stderr"])
    assert result.structured["stdout"] == "up2\n"
    assert result.structured["backgroundRemains"]
    assert f"background process still runs (pid {pid} sleep)" in text_of(result)
    job = result.structured["jobId"]
    assert shell.jobs("list").structured["jobs"][0]["processes"] == [pid]
    assert shell.jobs("stop", id=job).structured["state"] == "ended"
    assert not alive(pid)


def test_a_command_that_cannot_be_ended_holds_no_call(shell, monkeypatch):
    """P6, the limit: what became another user's may not be signalled; its call is told so, and its job goes on."""
    monkeypatch.setattr("a2mcp.host.runs.GRACE_S", 0.2)
    with monkeypatch.context() as patch:
        patch.setattr(process.Child, "signal", lambda *_: None)
        patch.setattr("a2mcp.host.identity.Identity.send", lambda *_: None)
        result = shell.bash("echo on; exec sleep 45", timeout=SPOKEN_S)
    assert result.is_error
    job, text = result.structured["jobId"], text_of(result)
    assert "The command timed out. The system did not let the daemon end it (pid " in text
    assert result.structured["stdout"] == "on\n"
    assert shell.jobs("list").structured["jobs"][0]["state"] == "running"
    os.kill(shell.book.record(job).pid, signal.SIGKILL)
    assert shell.jobs("wait", id=job).structured["state"] == "ended"


def test_a_command_that_is_being_ended_is_said_to_be(shell):
    """Ours: who looks during the grace is not told that it is over."""
    job = shell.bash("trap '' TERM; echo on; while :; do sleep 0.05; done", wait=0).structured["jobId"]
    shell.until_output(job, "on\n")
    stopping = shell.begin(jobs.TOOL, action="stop", id=job)
    assert "The command was to be stopped. It is being ended." in text_of(shell.jobs("output", id=job))
    assert "The command was stopped." in text_of(shell.result_of(stopping))


def test_closing_does_not_wait_for_what_cannot_be_ended(tmp_path, monkeypatch):
    """Ours: a daemon that goes is not held up by a command that hangs in the kernel."""
    monkeypatch.setattr(process, "_DISCARD_S", 0.1)
    child = process.spawn(Command(text="exec sleep 45", cwd=tmp_path), started=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(process.Child, "signal", lambda *_: None)
        child.discard()
    assert alive(child.pid)
    child.popen.kill()
    child.popen.wait()


def test_where_nobody_can_be_seen_the_group_is_mentioned_and_ended_with_its_shell(tmp_path):
    """Ours: a system without /proc; what cannot be looked after is named."""
    shell = Shell(tmp_path / "home", descendants=NoProc())
    result = shell.bash("(sleep 45 >/dev/null 2>&1 & echo $! >&2); echo $$")
    pid, group = result.structured["stderr"].strip(), result.structured["stdout"].strip()
    assert result.structured["state"] == "ended"
    assert result.structured["backgroundRemains"]
    said = f"A background process still runs (process group {group}); this system lets nobody look after it."
    assert said in text_of(result)
    assert alive(pid)
    os.kill(int(pid), signal.SIGKILL)

    command = "(trap '' TERM; exec >/dev/null 2>&1; while :; do sleep 0.05; done) & echo $!; wait"
    result = shell.bash(command, timeout=SPOKEN_S)
    assert result.structured["timedOut"]
    pid = int(result.structured["stdout"])
    shell.until(lambda: not alive(pid))
    assert not shell.bash("echo on").structured["backgroundRemains"]
    shell.close()


def test_what_outlives_the_shell_by_a_moment_gets_to_finish(shell, monkeypatch):
    """Ours: a process substitution ends after the shell, and its output belongs to the command."""
    monkeypatch.setattr("a2mcp.host.termination.LAST_WORDS_S", 1.0)
    result = shell.bash("echo through > >(sleep 0.01; cat)")
    assert result.structured["stdout"] == "through\n"
    assert not result.structured["backgroundRemains"]


def test_without_stdin_a_reader_sees_end_of_file(shell):
    """Try-out 05 and row B03."""
    assert shell.bash("cat; echo after-cat").structured["stdout"] == "after-cat\n"
    assert shell.bash("read -r a; echo got:[$a] rc:$?").structured["stdout"] == "got:[] rc:1\n"
    result = shell.bash(f"{sys.executable} -c 'input()'")
    assert result.structured["exitCode"] == 1
    assert "EOFError" in result.structured["stderr"]


def test_given_stdin_arrives_whole_and_ends(shell):
    """Try-out 05; ours: more than a pipe holds, to a command that reads it and to one that does not."""
    assert shell.bash("read -r a; echo got:[$a]", stdin="north\n").structured["stdout"] == "got:[north]\n"
    big = "x" * 300_000
    assert shell.bash("wc -c", stdin=big).structured["stdout"].strip() == "300000"
    assert shell.bash("true", stdin=big).structured["exitCode"] == 0
    assert shell.bash("cat", stdin="").structured["stdout"] == ""


def test_bad_bytes_are_shown_as_replaced(shell):
    """Try-out 08 (f)."""
    assert shell.bash(r"printf 'ok\xff\xfe\n'").structured["stdout"] == "ok��\n"


def test_control_sequences_are_gone(shell):
    """Issue §5: control sequences stripped; a progress bar shows its last state."""
    result = shell.bash(r"printf '\e[31mred\e[0m \e]0;title\a10%%\rred 99%%\n\ttab\n'")
    assert result.structured["stdout"] == "red 99%\n\ttab\n"


def test_a_child_gets_no_secret_and_no_pager(shell, monkeypatch):
    """Row C06, issue §5."""
    monkeypatch.setenv("A2MCP_TOKEN", "sekrit")
    monkeypatch.setenv("BASH_ENV", "/nonexistent/startup")
    monkeypatch.setenv("KEPT_HERE", "yes")
    process.inherited.cache_clear()
    result = shell.bash("env", env={"MINE": "a=b"})
    process.inherited.cache_clear()
    seen = dict(line.split("=", 1) for line in result.structured["stdout"].splitlines() if "=" in line)
    assert not [name for name in seen if name.startswith("A2MCP_")]
    assert "sekrit" not in result.structured["stdout"]
    assert "BASH_ENV" not in seen
    assert result.structured["stderr"] == ""
    wanted = {
        "TERM": "dumb",
        "GIT_TERMINAL_PROMPT": "0",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "MINE": "a=b",
        "KEPT_HERE": "yes",
    }
    assert wanted.items() <= seen.items()


def test_a_child_has_three_descriptors_and_no_terminal(shell):
    """Row B12: no socket, lock or pipe of the daemon. The fourth is the folder that ls reads."""
    assert shell.bash("ls /proc/self/fd").structured["stdout"].split() == ["0", "1", "2", "3"]
    assert shell.bash("tty; test -t 1 || echo none; : < /dev/tty").structured["stdout"] == "not a tty\nnone\n"


def test_a_child_leads_a_session_of_its_own(shell):
    """Row B05: what a command does to its group reaches nobody else."""
    result = shell.bash("echo $$; ps -o pid=,pgid=,sid= -p $$")
    mine, *ids = result.structured["stdout"].split()
    assert ids == [mine, mine, mine]
    assert shell.bash("kill -TERM 0; sleep 5").structured["signal"] == "SIGTERM"


HARMLESS = {
    *(signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT),
    *(signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH),
    signal.SIGQUIT,  # bash ignores it
    *(32, 33),  # the C library's own
}


@pytest.mark.parametrize("number", sorted(set(range(1, 65)) - HARMLESS))
def test_death_by_a_signal_is_named(shell, number):
    """Row B05: exits by each signal; the code is 128 and the number."""
    result = shell.bash(f"ulimit -c 0; kill -{number} $$; sleep 5")
    assert result.structured["exitCode"] == 128 + number
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"SIG{number}"
    assert result.structured["signal"] == name
    assert f"killed by {name}" in text_of(result)


def test_a_command_may_replace_itself_and_close_its_streams(shell):
    """Row B05: exec; closed descriptors."""
    assert shell.bash("exec echo replaced").structured["stdout"] == "replaced\n"
    result = shell.bash("exec >&- 2>&-; sleep 0.1; exit 4")
    assert result.structured["exitCode"] == 4


def test_a_timeout_ends_the_group_and_keeps_the_output(shell):
    """Issue §5."""
    result = shell.bash("sleep 60 & echo $!; echo before; wait", timeout=SPOKEN_S)
    pid, word = result.structured["stdout"].split()
    assert word == "before"
    assert result.is_error
    assert result.structured["timedOut"]
    assert result.structured["signal"] == "SIGTERM"
    assert "timed out" in text_of(result)
    shell.until(lambda: not alive(pid))


def test_a_command_that_ignores_term_is_killed_after_the_grace(shell, monkeypatch):
    """Issue §5: TERM, then KILL."""
    monkeypatch.setattr("a2mcp.host.runs.GRACE_S", 0.2)
    result = shell.bash("trap '' TERM; echo on; while :; do sleep 0.05; done", timeout=SPOKEN_S)
    assert result.structured["signal"] == "SIGKILL"
    assert result.structured["stdout"] == "on\n"


def test_children_that_ignore_term_do_not_survive_their_shell(shell, monkeypatch):
    """Ours: the shell dies of TERM, its quiet child ignores it; the KILL still reaches the group."""
    monkeypatch.setattr("a2mcp.host.runs.GRACE_S", 0.3)
    command = "(trap '' TERM; exec >/dev/null 2>&1; while :; do sleep 0.05; done) & echo $!; wait"
    result = shell.bash(command, timeout=SPOKEN_S)
    pid = int(result.structured["stdout"])
    shell.until(lambda: not alive(pid))
    assert result.structured["timedOut"]


def test_a_stopped_command_is_ended_too(shell):
    """Row B05: STOP."""
    result = shell.bash("kill -STOP $$", timeout=SPOKEN_S)
    assert result.structured["timedOut"]
    assert result.structured["signal"] == "SIGTERM"


def test_after_wait_the_command_goes_on_as_a_job(shell, tmp_path):
    """Issue §5: handed back with the output so far."""
    go = tmp_path / "go"
    result = shell.bash(f"echo first; until [ -e {go} ]; do sleep 0.02; done; echo second", wait=SPOKEN_S)
    job = result.structured["jobId"]
    assert not result.is_error
    assert result.structured["stdout"] == "first\n"
    assert result.structured["exitCode"] is None
    assert text_of(result).splitlines()[-1].startswith("still running after ")
    assert job in text_of(result)
    go.touch()
    ended = shell.jobs("wait", id=job)
    assert ended.structured["stdout"] == "first\nsecond\n"
    assert ended.structured["exitCode"] == 0


def test_wait_zero_is_a_job_at_once(shell):
    """Brief of the tool: wait 0."""
    result = shell.bash("echo done", wait=0)
    assert result.structured["state"] == "running"
    assert shell.jobs("wait", id=result.structured["jobId"]).structured["stdout"] == "done\n"


def test_a_cancelled_call_ends_its_command(shell):
    """Ours: cancel reaches a command before and after it has arrived."""
    ticket = shell.begin(bash.TOOL, command="sleep 60")
    shell.runs.cancel(ticket.call_id)
    result = shell.result_of(ticket)
    assert result.is_error
    assert "cancelled" in text_of(result)
    shell.runs.cancel(f"call-{int(ticket.call_id[5:]) + 1}")
    assert "cancelled" in text_of(shell.bash("sleep 60"))


def test_long_output_is_cut_in_the_middle_and_can_be_read(shell):
    """Issue §5: about 50 KiB; the gap says what reads it."""
    result = shell.bash("seq 1 100000")
    body = text_of(result)
    assert len(body) < 60_000
    assert body.startswith("1\n2\n")
    assert "\n100000\n" in body
    assert result.structured["truncated"]
    job = result.structured["jobId"]
    assert f'jobs {{"action": "output", "id": "{job}", "stream": "stdout", "offset": 25600}}' in body
    whole, offset = "", 0
    while offset < 588_895:
        page = shell.jobs("output", id=job, offset=offset).structured
        whole, offset = whole + page["text"], page["nextOffset"]
    assert whole == "".join(f"{n}\n" for n in range(1, 100_001))


def test_both_streams_share_the_room(shell):
    """Row B02: both streams interleaved."""
    result = shell.bash("for i in $(seq 1 9000); do echo out$i; echo err$i >&2; done")
    data = result.structured
    assert len(data["stdout"]) + len(data["stderr"]) < 60_000
    assert data["stderr"].startswith("err1\n")
    assert data["stderr"].endswith("err9000\n")
    assert data["stdout"].endswith("out9000\n")


def test_what_is_over_the_limit_on_disk_is_dropped_and_said_so(tmp_path):
    """Rows B02 and B10: exit code and the end of the output are kept."""
    shell = Shell(tmp_path / "home", limits=Limits(job_bytes=1_000_000))
    result = shell.bash("seq 1 1000000; exit 7")
    assert result.structured["exitCode"] == 7
    assert "\n1000000\n" in text_of(result)
    assert "were dropped" in text_of(result)
    assert (shell.home / "jobs" / result.structured["jobId"] / "stdout").stat().st_size == 1_000_000
    shell.close()


def test_output_that_nothing_keeps_is_not_offered_for_reading(tmp_path):
    """Ours: a disk that is full from the first byte on."""
    shell = Shell(tmp_path / "home", limits=Limits(job_bytes=0))
    said = text_of(shell.bash("seq 1 1000000"))
    assert "not shown here; nothing keeps it …]" in said
    assert "read it with" not in said
    assert shell.bash("echo first; exec sleep 45", wait=SPOKEN_S).structured["stdout"] == "first\n"
    shell.close()


def test_a_folder_that_cannot_be_made_costs_the_middle_of_the_output_only(tmp_path):
    """Ours: a home that is a file, as a full or read-only disk would be."""
    (tmp_path / "home").write_text("")
    shell = Shell(tmp_path / "home")
    result = shell.bash("seq 1 1000000; exit 7")
    assert result.structured["exitCode"] == 7
    assert text_of(result).startswith("1\n2\n")
    assert "\n1000000\n" in text_of(result)
    assert "were dropped" in text_of(result)
    shell.close()


FLOOD = """
import resource, sys
from pathlib import Path
sys.path[:0] = [{tools!r}, {root!r}]
from command_calls import Shell, text_of
shell = Shell(Path({home!r}))
shell.bash("seq 1 100000")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for command in ("head -c 400000000 /dev/zero; exit 5", "yes | head -c 400000000; exit 5"):
    result = shell.bash(command)
    assert result.structured["exitCode"] == 5, result
    assert result.structured["truncated"]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
shell.close()
"""


def test_400_mb_of_output_cost_little_memory(tmp_path):
    """Row B02, issue §5: under 150 MB; measured in a process of its own."""
    here = Path(__file__)
    script = FLOOD.format(tools=str(here.parents[1]), root=str(here.parents[2]), home=str(tmp_path / "home"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 * 1024


# --- what cannot be run


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"command": "a\0b"}, ("command", "NUL")),
        ({"command": "true", "env": {"A\0": "b"}}, ("env", "NUL")),
        ({"command": "true", "env": {"A": "b\0"}}, ("env.A", "NUL")),
        ({"command": "true", "env": {"A=B": "c"}}, ("env", "'='")),
        ({"command": "true", "env": {"": "c"}}, ("env", "empty")),
        ({"command": "true", "cwd": "no/such"}, ("no/such", "No such file")),
        ({"command": "true", "cwd": "a\0b"}, ("cwd", "NUL")),
        ({"command": ""}, ("command",)),
        ({"command": "cat", "wait": 0, "stdin": "x" * 2_000_000}, ("stdin", "wait=0")),
        ({"command": "true", "wait": -1}, ("wait",)),
        ({"command": "true", "timeout": 0}, ("timeout",)),
        ({"command": "true # " + "x" * 3_000_000}, ("longer than the system takes", "file")),
        ({"command": "true", "env": {"A": "x" * 3_000_000}}, ("longer than the system takes",)),
    ],
    ids=lambda value: "",
)
def test_what_cannot_be_run_is_explained(shell, args, words):
    """Row B07."""
    result = shell.result_of(shell.begin(bash.TOOL, **args))
    assert result.is_error
    for word in words:
        assert word in text_of(result)
    assert shell.bash("echo on").structured["stdout"] == "on\n"


def test_a_lone_surrogate_is_a_bad_argument(shell, tmp_path):
    """Try-out 08 (a), should one get this far."""
    context = Context(ticket=Ticket(), cwd=tmp_path, home=tmp_path, limits=Limits(), jobs=shell, clock=shell.clock)
    for args in ({"command": "\ud83d"}, {"command": "true", "stdin": "x\udc00y"}):
        with pytest.raises(Exception, match=r"lone surrogate \\ud"):
            bash.run(bash.BashParams(**args), context)


def test_a_working_directory_that_cannot_be_used_is_named(shell, tmp_path):
    """Row B07: a file, a deleted folder, and one that may not be entered."""
    (tmp_path / "file").write_text("")
    assert "file cannot be used: Not a directory" in text_of(shell.bash("pwd", cwd=str(tmp_path / "file")))
    (tmp_path / "gone").mkdir()
    assert shell.bash("rmdir $PWD; echo ok", cwd=str(tmp_path / "gone")).structured["stdout"] == "ok\n"
    assert "No such file" in text_of(shell.bash("pwd", cwd=str(tmp_path / "gone")))
    (tmp_path / "closed").mkdir(mode=0)
    if os.geteuid() != 0:
        assert "Permission denied" in text_of(shell.bash("pwd", cwd=str(tmp_path / "closed")))


def test_a_command_may_begin_with_a_dash(shell):
    """Ours: it is never taken for an option of bash."""
    result = shell.bash("-x; echo here")
    assert result.structured["stdout"] == "here\n"
    assert "command not found" in result.structured["stderr"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BlockingIOError(11, "Resource temporarily unavailable"), "no room for another process"),
        (OSError(12, "Cannot allocate memory"), "out of memory"),
        (OSError(24, "Too many open files"), "too many files open"),
        (FileNotFoundError(2, "No such file or directory", "bash"), "bash was not found"),
        (OSError(5, "Input/output error"), "Input/output error"),
    ],
)
def test_a_system_that_cannot_start_it_is_explained(shell, monkeypatch, error, words):
    """Row B11: EAGAIN and its descendants."""

    def refuse(*_args, **_kwargs):
        raise error

    monkeypatch.setattr(process.subprocess, "Popen", refuse)
    result = shell.bash("true")
    assert result.is_error
    assert words in text_of(result)
    monkeypatch.undo()
    assert shell.bash("echo on").structured["stdout"] == "on\n"


def test_a_command_that_nobody_takes_over_is_killed(shell, tmp_path):
    """Ours: the jobs actor's mailbox is full. Its place is free again."""
    taken = []
    room = JobRoom(running=1, job_bytes=0, kept_bytes=0)

    class Full:
        take_place, give_place_back = room.take, room.give_back

        def start(self, _ticket, child, _tell):
            taken.append(child)
            raise Busy("jobs is busy.")

    context = Context(ticket=Ticket(), cwd=tmp_path, home=tmp_path, limits=Limits(), jobs=Full(), clock=shell.clock)
    with pytest.raises(Busy):
        bash.run(bash.BashParams(command="sleep 60"), context)
    assert taken[0].popen.returncode == -signal.SIGKILL
    room.take()
