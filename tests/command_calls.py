"""Calls of ``bash`` and ``jobs`` without actors: the loop runs in the test's own thread."""

import itertools
import time
from pathlib import Path

import msgspec

from a2mcp.clock import SystemClock
from a2mcp.errors import ToolError
from a2mcp.host.jobbook import JobBook
from a2mcp.host.joblog import JobLog
from a2mcp.host.jobroom import JobRoom
from a2mcp.host.run import Watcher
from a2mcp.host.runs import Runs
from a2mcp.tools import arguments, bash, jobs
from a2mcp.tools.commandtext import command_result
from a2mcp.tools.context import SILENT, Context, Limits
from a2mcp.tools.result import PENDING, text
from a2mcp.types import CallId

DEADLINE_S = 30.0


def _progress_of(tell):
    return (lambda written, line: tell.progress(written, None, line)) if tell.wants_progress else None


class Ticket:
    """One call and, later, its result."""

    session_id = None
    _numbers = itertools.count()

    def __init__(self):
        self.call_id = CallId(f"call-{next(self._numbers)}")
        self.result = None


class Shell:
    """A daemon's running commands, as far as tools see them. Is its own ``JobsPort``."""

    def __init__(self, home: Path, *, limits: Limits | None = None, descendants=None):
        self.home = home
        self.cwd = home.parent
        self.limits = limits or Limits()
        self.clock = SystemClock()
        self.log = JobLog(home / "jobs", keep=self.limits.kept_jobs, keep_bytes=self.limits.kept_bytes)
        self.runs = Runs(
            clock=self.clock,
            log=self.log,
            room=JobRoom(running=self.limits.jobs, job_bytes=self.limits.job_bytes, kept_bytes=self.limits.kept_bytes),
            output_bytes=self.limits.output_bytes,
            descendants=descendants,
        )
        self.book = JobBook(self.runs)

    # --- the port

    def take_place(self):
        self.runs.room.take()

    def give_place_back(self):
        self.runs.room.give_back()

    def start(self, ticket, child, tell=SILENT):
        def answer(report):
            ticket.result = command_result(report, output_bytes=self.limits.output_bytes)

        self.runs.start(child, Watcher(ticket.call_id, answer, owner=True, progress=_progress_of(tell)))
        return PENDING

    def serve(self, ticket, params, tell=SILENT):
        def finish(result):
            ticket.result = result

        jobs.answer(
            params, self.book, ticket.call_id, finish,
            output_bytes=self.limits.output_bytes, progress=_progress_of(tell),
        )  # fmt: skip
        return PENDING

    # --- what tests call

    def begin(self, tool, /, *, tell=SILENT, **args):
        """Make a call and return its ticket at once."""
        ticket = Ticket()
        context = Context(
            ticket=ticket, cwd=self.cwd, home=self.home, limits=self.limits, jobs=self, clock=self.clock, tell=tell
        )
        try:
            outcome = tool.run(arguments.decode(tool.params, msgspec.json.encode(args)), context)
        except ToolError as error:
            outcome = text(str(error), is_error=True)
        if outcome is not PENDING:
            ticket.result = outcome
        return ticket

    def bash(self, command, **args):
        """Run a command and wait for its result."""
        return self.result_of(self.begin(bash.TOOL, command=command, **args))

    def jobs(self, action, **args):
        """Make a jobs call and wait for its result."""
        return self.result_of(self.begin(jobs.TOOL, action=action, **args))

    def result_of(self, ticket):
        self.until(lambda: ticket.result is not None)
        return ticket.result

    def until(self, condition):
        """Drive the loop until something is so."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, "it never became so"
            self.runs.loop.turn(0.05)

    def until_output(self, job, wanted):
        """Drive the loop until a job has printed something."""
        self.until(lambda: wanted in self.jobs("output", id=job).structured["text"])

    def close(self):
        self.runs.close()


def text_of(result):
    """Return the text of a result; a link may follow it."""
    block = result.content[0]
    return block.text
