"""The ``bash`` tool: runs a shell command. Owns its words and the check of its arguments.

The command is started here, in the caller's thread; everything after that is done behind ``context.jobs``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from a2mcp.errors import BadArgument
from a2mcp.host.command import DEFAULT_WAIT_S, Command
from a2mcp.host.feeder import WAITING_BYTES
from a2mcp.host.paths import resolve
from a2mcp.host.process import spawn
from a2mcp.tools.outputs import FLAG, MAYBE_NUMBER, MAYBE_TEXT, NUMBER, TEXT, members
from a2mcp.tools.schema import spec_for
from a2mcp.tools.spec import Tier, Tool

if TYPE_CHECKING:
    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome

_DESCRIPTION = """\
Run a command with bash on this machine. Returns stdout, then stderr under [stderr], then the exit code.

- There is no terminal: nothing prompts, pagers are off, and standard input is end-of-file unless `stdin` is given.
- Each call is a fresh shell: `cd` and variables do not carry over. Use `cwd` and `env`.
- A command that runs longer than `wait` seconds becomes a job; the result names it. Follow it with the jobs tool.
- What it leaves running in the background is a job, too, and ends with the daemon at the latest.
- `wait: 0` starts a job at once; given a `stdin` too (it may be empty), its input stays open for jobs action=write.
- Long output is cut in the middle; the result says how to read the rest.\
"""


class BashParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to run, and how long to wait for it."""

    command: Annotated[str, Meta(min_length=1, description="The command, or a script of several lines.")]
    cwd: Annotated[str, Meta(description="Folder to run in; default: the working directory.")] = "."
    env: Annotated[
        dict[str, str], Meta(description="Variables to set on top of the daemon's; secrets belong here.")
    ] = {}
    stdin: Annotated[str | None, Meta(description="Text for standard input, followed by end-of-file.")] = None
    wait: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds to wait for the end before the command becomes a job.")
    ] = DEFAULT_WAIT_S
    timeout: (
        Annotated[
            float, Meta(gt=0, le=1_000_000, description="Seconds after which the command and all it started are ended.")
        ]
        | None
    ) = None


def run(params: BashParams, context: Context) -> Outcome:
    """Start the command and hand it over."""
    command = _command(params, context)
    context.jobs.take_place()
    try:
        return _start(command, context)
    except BaseException:
        context.jobs.give_place_back()
        raise


def _start(command: Command, context: Context) -> Outcome:
    child = spawn(command, started=context.clock.monotonic())
    try:
        return context.jobs.start(context.ticket, child, context.tell)
    except BaseException:
        child.discard()
        raise


def _command(params: BashParams, context: Context) -> Command:
    _require_passable("command", params.command)
    for name, value in params.env.items():
        if not name or "=" in name:
            raise BadArgument("env", "names without '=' that are not empty", ascii(name))
        _require_passable("env", name)
        _require_passable(f"env.{name}", value)
    command = Command(
        text=params.command,
        cwd=resolve(params.cwd, context.cwd, field="cwd"),
        env=params.env,
        stdin=None if params.stdin is None else _encoded("stdin", params.stdin),
        wait_s=params.wait,
        timeout_s=params.timeout,
    )
    if command.keeps_stdin and len(command.stdin or b"") > WAITING_BYTES:
        received = f"{len(command.stdin or b'')} bytes"
        raise BadArgument("stdin", f"at most {WAITING_BYTES} bytes with wait=0", received, hint="Write the rest later.")
    return command


def _require_passable(field: str, value: str) -> None:
    """Refuse what no program can be given."""
    if "\0" in value:
        received = f"a NUL at character {value.index(chr(0))}"
        raise BadArgument(field, "text without NUL", received, hint="Use printf '\\\\0' inside the command.")
    try:
        os.fsencode(value)
    except UnicodeEncodeError as error:
        raise _surrogate(field, error) from None


def _encoded(field: str, value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise _surrogate(field, error) from None


def _surrogate(field: str, error: UnicodeEncodeError) -> BadArgument:
    code = ord(error.object[error.start])
    return BadArgument(field, "valid Unicode", f"the lone surrogate \\u{code:04x} at character {error.start}")


TOOL = Tool(
    spec=spec_for(
        BashParams,
        name="bash",
        title="Run a command",
        description=_DESCRIPTION,
        tier=Tier.EXECUTE,
        open_world=True,
        output_schema=members(
            "jobId",
            state=TEXT,
            exitCode=MAYBE_NUMBER,
            signal=MAYBE_TEXT,
            durationMs=NUMBER,
            stdout=TEXT,
            stderr=TEXT,
            timedOut=FLAG,
            truncated=FLAG,
            backgroundRemains=FLAG,
            jobId=TEXT,
        ),
    ),
    params=BashParams,
    run=run,
)
