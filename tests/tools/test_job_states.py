"""Jobs against a model: however they are fed, left, waited for, stopped, cancelled and outlived, all is told once and truly.

The processes are real. Each step waits for what it must bring about, so that the model knows how every job stands.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from command_calls import Shell, text_of
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant
from states import Machine, among, explore, step

from a2mcp.host.joblog import Ending
from a2mcp.host.runs import Runs
from a2mcp.tools import bash, jobs
from a2mcp.tools.context import Limits

if TYPE_CHECKING:
    import subprocess

MOST = 6
"""Commands that may run at one time."""
LISTENS = """\
echo begun
while IFS=' ' read -r word rest; do
    case $word in
        say) echo "$rest" ;;
        leave) sleep 61 & exit "$rest" ;;
        exit) exit "$rest" ;;
    esac
done
"""
SLEEPS = "echo begun; exec sleep 61"
TERM = 143
WORDS = st.text("abcé", min_size=1, max_size=8)
AT_TIMES = st.sampled_from([False, False, True])
CODES = st.sampled_from([0, 1, 77])


class Job(msgspec.Struct, eq=False):
    """What the model says of one job."""

    id: str
    listens: bool
    state: str = "running"
    exit_code: int | None = None
    signal: str | None = None
    ending: Ending | None = None
    said: str = "begun\n"
    waiting: list[Any] = msgspec.field(default_factory=list)

    @property
    def live(self) -> bool:
        """Whether a daemon looks after it."""
        return self.state in ("running", "background")

    def ends(self, exit_code: int | None, *, signal: str | None = None, ending: Ending | None = None) -> None:
        self.state, self.exit_code, self.signal, self.ending = "ended", exit_code, signal, ending


class Jobs(Machine):
    """The model knows the state, the exit code, the output and the watchers of each job, also after a restart."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="jobs-"))
        self.jobs: list[Job] = []
        self.calls: list[Any] = []
        self.left: list[subprocess.Popen[bytes]] = []
        self.shell = self.new_shell()

    def new_shell(self) -> Shell:
        return Shell(self.folder / "home", limits=Limits(jobs=MOST))

    def busy(self) -> int:
        return sum(job.live for job in self.jobs) + len(self.calls)

    def answered(self, job: Job) -> None:
        """Take the answers of those who waited for the end of a job."""
        for ticket in job.waiting:
            found = self.shell.result_of(ticket).structured
            assert (found["state"], found["exitCode"], found["signal"]) == ("ended", job.exit_code, job.signal)
        job.waiting.clear()

    def until_state(self, job: Job, state: str) -> None:
        self.shell.until(lambda: self.shell.book.record(job.id).state == state)

    # --- what can happen ------------------------------------------------------------------------------------------

    @step(into="jobs", weight=4, listens=st.sampled_from([True, True, False]))
    def starts(self, listens: bool) -> Job | None:
        given = {"command": LISTENS, "stdin": ""} if listens else {"command": SLEEPS}
        result = self.shell.bash(**given, wait=0)
        if self.busy() == MOST:
            assert f"{MOST} commands run already" in text_of(result)
            return None
        job = Job(result.structured["jobId"], listens)
        self.shell.until_output(job.id, "begun\n")
        return job

    @step(word=WORDS, code=CODES)
    def runs_to_its_end(self, word: str, code: int) -> None:
        """A command that ends in time is no job."""
        result = self.shell.bash(f"echo '{word}'; exit {code}")
        if self.busy() == MOST:
            assert f"{MOST} commands run already" in text_of(result)
        else:
            found = result.structured
            assert (found["stdout"], found["exitCode"], found.get("jobId")) == (word + "\n", code, None)
            assert result.is_error == (code != 0)

    @step(into="calls")
    def runs_in_its_call(self) -> Any:
        if self.busy() == MOST:
            return None
        return self.shell.begin(bash.TOOL, command=SLEEPS, wait=3600)

    @step(call=among("calls"))
    def is_cancelled(self, call: Any) -> None:
        self.calls.remove(call)
        self.shell.runs.cancel(call.call_id)
        found = self.shell.result_of(call).structured
        assert (found["state"], found["signal"]) == ("ended", "SIGTERM")

    @step(weight=3, job=among("jobs"), word=WORDS)
    def is_told(self, job: Job, word: str) -> None:
        result = self.shell.jobs("write", id=job.id, input=f"say {word}\n")
        if job.state == "running" and job.listens:
            job.said += word + "\n"
            self.shell.until(lambda: self.shell.jobs("output", id=job.id).structured["text"] == job.said)
        elif job.state != "background":  # What is left does not listen, and there may be room in the pipe.
            assert result.is_error
            assert "takes no input" in text_of(result)

    @step(job=among("jobs"), code=CODES, by_word=st.booleans())
    def ends_by_itself(self, job: Job, code: int, by_word: bool) -> None:
        if job.state != "running" or not job.listens:
            return
        assert not self.shell.jobs("write", id=job.id, input=f"exit {code}\n" if by_word else "").is_error
        self.until_state(job, "ended")
        job.ends(code if by_word else 0)
        self.answered(job)

    @step(job=among("jobs"), code=CODES)
    def leaves_a_process(self, job: Job, code: int) -> None:
        if job.state != "running" or not job.listens:
            return
        assert not self.shell.jobs("write", id=job.id, input=f"leave {code}\n").is_error
        self.until_state(job, "background")
        job.state, job.exit_code = "background", code
        for ticket in job.waiting:
            assert self.shell.result_of(ticket).structured["state"] == "background"
        job.waiting.clear()

    @step(weight=2, job=among("jobs"))
    def is_waited_for(self, job: Job) -> None:
        ticket = self.shell.begin(jobs.TOOL, action="wait", id=job.id, timeout=3600)
        if job.live:
            assert ticket.result is None
            job.waiting.append(ticket)
        else:
            assert ticket.result.structured["state"] == job.state

    @step(job=among("jobs"))
    def is_looked_at_in_vain(self, job: Job) -> None:
        """Whoever waits only so long, and whoever withdraws, is told how it stands; the job goes on."""
        hasty = self.shell.begin(jobs.TOOL, action="wait", id=job.id, timeout=0)
        assert self.shell.result_of(hasty).structured["state"] == job.state
        if job.waiting:
            withdrawn = job.waiting.pop()
            self.shell.runs.cancel(withdrawn.call_id)
            assert self.shell.result_of(withdrawn).structured["state"] == job.state

    @step(weight=2, job=among("jobs"))
    def is_stopped(self, job: Job) -> None:
        result = self.shell.jobs("stop", id=job.id)
        assert not result.is_error
        if job.state == "running":
            job.ends(TERM, signal="SIGTERM", ending=Ending.STOPPED)
        elif job.state in ("background", "orphan"):
            job.ends(job.exit_code, ending=Ending.STOPPED)
        assert result.structured["state"] == job.state
        self.answered(job)

    @step(now=AT_TIMES)
    def the_daemon_ends(self, now: bool) -> None:
        if not now:
            return
        self.shell.runs.stop_all(grace_s=5)
        self.shell.until(lambda: self.shell.runs.running() == 0)
        for call in self.calls:
            assert self.shell.result_of(call).structured["signal"] == "SIGTERM"
        self.calls.clear()
        for job in self.jobs:
            if job.state == "running":
                job.ends(TERM, signal="SIGTERM", ending=Ending.SHUTDOWN)
            elif job.state == "background":
                job.ends(job.exit_code, ending=Ending.SHUTDOWN)
            self.answered(job)
        self.shell.close()
        self.shell = self.new_shell()

    @step(weight=2, now=AT_TIMES)
    def the_daemon_is_killed(self, now: bool) -> None:
        """What it held is closed by the system; what listened reads the end of its input, and what sleeps goes on."""
        if not now:
            return
        for call in list(self.calls):
            self.is_cancelled(call)
        for job in self.jobs:
            if job.live:
                self.lose(self.shell.runs, job)
        self.shell = self.new_shell()

    def lose(self, runs: Runs, job: Job) -> None:
        popen = runs.jobs[job.id].child.popen  # type: ignore[index]
        for stream in (popen.stdin, popen.stdout, popen.stderr):
            if stream is not None:
                stream.close()
        if job.state == "running" and job.listens:
            popen.wait()
            job.state = "lost"
        else:
            job.state = "orphan"
            self.left.append(popen)
        job.waiting.clear()

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def each_job_stands_as_the_model_says(self) -> None:
        if not hasattr(self, "shell"):
            return
        listed = {facts["id"]: facts for facts in self.shell.jobs("list").structured["jobs"]}
        assert listed.keys() == {job.id for job in self.jobs}
        for job in self.jobs:
            facts = listed[job.id]
            assert (facts["state"], facts["exitCode"], facts["signal"]) == (job.state, job.exit_code, job.signal)
            assert self.shell.book.record(job.id).ending == job.ending  # type: ignore[arg-type]
            assert self.shell.jobs("output", id=job.id).structured["text"] == job.said

    @invariant()
    def nobody_is_told_too_early(self) -> None:
        if hasattr(self, "shell"):
            assert self.shell.runs.running() == self.busy()
            assert all(call.result is None for call in self.calls)
            assert all(ticket.result is None for job in self.jobs for ticket in job.waiting)

    def teardown(self) -> None:
        if not hasattr(self, "shell"):
            return
        for job in self.jobs:
            if job.live or job.state == "orphan":
                self.is_stopped(job)
        self.shell.close()
        for popen in self.left:
            popen.wait(10)
        shutil.rmtree(self.folder)


def test_jobs_follow_their_model() -> None:
    """Issue 5, item 4: input, background, watchers, cancelling, stopping, the end of the daemon and its being killed."""
    explore(Jobs, sequences=20, steps=25)
