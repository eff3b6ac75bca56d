"""The page of the settings: names, defaults and limits from the schema, and what each one is for from here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.config.schema import field_names, settings_from
from a2mcp.errors import SettingsError
from a2mcp.reference.markdown import code, head, table

if TYPE_CHECKING:
    from a2mcp.config.schema import Settings
    from a2mcp.types import JsonObject

_INTRODUCTION: Final = """
The file `a2mcp.json` holds one JSON object. The first start makes it, with mode 0600 and a fresh token. The page
[Files](files.md) says where it lies.

- A field that is present but wrong stops the start (exit code 2) and is named; only a `token` that is no string counts
  as missing. A field that nobody knows is ignored with a warning.
- Every field may be left out. A missing `token` is made and kept; a missing `port` is chosen and kept.
- Edits count from the next start. Only the token changes while the daemon runs, with `a2mcp rotate`.
- The file must belong to the user who runs the daemon. It must not be a symbolic link. Other users must not be able to
  write to it.
"""

_PURPOSE: Final = {
    "port": "The TCP port. Without it the first start chooses a free one and writes it here, so that clients find the "
    "daemon again. `0` means another free port at every start. A port that is taken is replaced for this run, with a "
    "warning.",
    "host": "The address to listen on. Anything but a loopback address makes the daemon reachable from other machines "
    "and draws a warning.",
    "token": "The bearer token. One that you typed is never replaced; a missing one is made from 32 random bytes.",
    "host_llm": "Whether the host may ask a model when it starts: see [What is "
    "denied](../explanation/host-inference.md). Callers turn it with `POST /host-llm`; that is never written here.",
    "allowed_hosts": "Names, beside the loopback ones and `host`, under which a request may come (its `Host` and "
    "`Origin`). Ports are not compared.",
    "cwd": "Where relative paths of tools start. Without it: the folder the daemon was started in.",
    "drain_s": "How long calls in flight may go on after a request to stop.",
    "one_processor": "Keep the daemon's own threads on one processor, which makes calls faster: one thread wakes the "
    "next. What the daemon starts has every processor. Linux only.",
    "agent.wake": "Whether the end of a job begins a turn of the agent's Main session. Each costs requests: see "
    "[The agent](../how-to/agent.md).",
    "agent.running": "Turns of the agent that go on at one time. One more is refused.",
    "agent.steps": "Requests to a model in one turn. A turn that wants one more ends there.",
    "agent.retries": "How often a request is made again that failed for the moment (429, 5xx, no connection).",
    "agent.budget_tokens": "Tokens, of both kinds together, that the agent may use on one day (UTC); then none is made "
    "until the next. `null` for no limit.",
    "agent.budget_requests": "The same for requests, for providers that count no tokens.",
    "agent.kept_bytes": "What all transcripts may take on disk. Over it, the sessions that have been still for longest "
    "are forgotten, and the oldest of what `main` was told.",
    "approval.mode": "What is asked about when a tool has no rule: nothing (`yolo`), what changes or executes "
    "(`write`), everything (`always-ask`).",
    "approval.tools": "A rule by tool name: `allow`, `deny` or `prompt`. It wins over the mode.",
    "approval.ask_caller": "Ask the caller's own user instead of the operator, where the client can be asked: see "
    "[Approvals](../how-to/approvals.md). The caller is not the operator, so this protects from mistakes, not from "
    "the caller.",
    "approval.timeout_s": "How long a call waits for the operator before it is refused; `null` for as long as its "
    "caller does.",
    "audit.sync": "Wait until each group of audit records is on the disk itself (`fdatasync`).",
    "audit.bytes": "The size of the log with its older generation. At half of it the log becomes the older one, and "
    "what was the older one is gone.",
    "limits.in_flight": "Calls that run or wait at one time, and calls that wait for approval. One more is "
    "answered 503. Never more than seven of eight connections, so that others still get in.",
    "limits.in_flight_each": "Those of one session of the bridge, or of one client of `/mcp` by the name it gives "
    "(all that give none are one). One more is answered 503. `null` is half of all.",
    "limits.connections": "Open connections. When all are taken, those on which nobody waits for anything are closed, "
    "least recently used first; while there are none, the next one waits. Lowered, with a warning, to what the limit "
    "on open files allows.",
    "limits.unauthenticated": "Connections on which nobody has shown the token yet, and at most half of all. One more "
    "closes the oldest of them.",
    "limits.sessions": "Sessions of the bridge. One more ends the one that was not seen for longest.",
    "limits.body_bytes": "The largest request body. A larger one is answered 413.",
    "limits.mcp_body_bytes": "The same for requests to `/mcp`.",
    "limits.output_bytes": "Text of one result; more is cut in the middle.",
    "limits.jobs": "Commands that run at one time, those with a call that waits for them included. One more is not "
    "started, and its result says so.",
    "limits.job_bytes": "Output kept on disk for one command; more is dropped, and the result says so.",
    "limits.kept_jobs": "Ended jobs that are kept; the oldest go first.",
    "limits.kept_bytes": "Output kept on disk for all commands. The oldest ended jobs go first, but the newest stays; "
    "when those that run have all of it, more is dropped, and their results say so.",
    "observe.events": "Events that are kept for `a2mcp observe` and the page: see [Watch](../how-to/observe.md).",
    "observe.metrics": "Whether [`/metrics`](metrics.md) answers.",
    "observe.notify": "Whether a call that waits raises a notice on the desktop (`notify-send`): `on`, `off`, or "
    "`auto` for only where there is a session.",
    "observe.traces": "Whether each call is told to OpenTelemetry. Needs `a2mcp[otel]`; where spans go is set by the "
    "variables `OTEL_…`.",
    "tools.preset": "Which tools are offered: `minimal` (read, bash, jobs), `coding` (those, and write, edit, glob, "
    "grep) or `full` (all there are; today the same as `coding`). Tools of other hosts are not touched.",
    "tools.off": "Tools of the preset that are not offered. Without `read`, files cannot be read as resources either.",
    "xfer.server": "Who serves a share: the daemon itself (`embedded`), the program `dufs`, or `auto`: dufs where "
    "`xfer.dufs` is a path, else the daemon.",
    "xfer.overwrite": "Whether an upload may replace a file that is not empty. Embedded server only.",
    "xfer.zip": "Whether a shared folder can be downloaded as one archive (`?zip`). Embedded server only.",
    "xfer.hash": "Whether the SHA-256 of a shared file can be asked for (`?hash`). Embedded server only.",
    "xfer.stall_s": "How long a transfer may stand still before it is dropped.",
    "xfer.upload_bytes": "The largest file that can be uploaded. A larger one is answered 413.",
    "xfer.dufs": "Name or path of the file server `dufs`. With a slash: a path, used as it is, and nothing is fetched "
    "in its stead. Without: looked for on the daemon's `PATH`, then among what `a2mcp obtain` fetched.",
    "xfer.cloudflared": "Name or path of the tunnel's program. The same rules; see `a2mcp tunnel`.",
}

_UNSET: Final = {
    "port": "chosen once, then kept",
    "token": "made on the first start",
    "cwd": "the folder of the start",
}
_PROBES: Final[dict[str, object]] = {
    "token": "short",
    "host": "http://x",
    "cwd": "relative",
    "tools.off": ["x"],
    "approval.timeout_s": 0,
    "limits.in_flight_each": 0,
    "agent.budget_tokens": -1,
    "agent.budget_requests": -1,
}
"""Wrong values whose refusal tells the most; for every other field ``null`` does."""

_STAND_IN: Final = "x" * 43
_EXAMPLE: Final[JsonObject] = {
    "port": 4801,
    "host": "127.0.0.1",
    "allowed_hosts": ["build.example.org"],
    "approval": {"mode": "write", "tools": {"bash": "prompt", "write": "allow"}},
    "audit": {"sync": True},
    "drain_s": 10,
    "limits": {"in_flight": 2000},
    "tools": {"preset": "coding", "off": ["write"]},
}


def page() -> str:
    """Write the page."""
    settings, _ = settings_from({"token": _STAND_IN})
    rows = ((code(name), _default(settings, name), _rule(name), _PURPOSE[name]) for name in field_names())
    settings_from({**_EXAMPLE, "token": _STAND_IN})
    return (
        head("Settings", "a2mcp/config/schema.py and a2mcp/reference/settings.py")
        + _INTRODUCTION
        + "\n"
        + table(("field", "default", "rule", "meaning"), rows)
        + '\nA dotted name is a field of an object: `approval.mode` is `{"approval": {"mode": …}}`. For example:\n\n'
        + f"```json\n{json.dumps(_EXAMPLE, indent=2)}\n```\n"
    )


def _default(settings: Settings, name: str) -> str:
    if name in _UNSET:
        return _UNSET[name]
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return code(json.dumps(msgspec.to_builtins(value))) + _size(name, value)


def _size(name: str, value: object) -> str:
    if not name.endswith("_bytes") or not isinstance(value, int):
        return ""
    kib = value // 1024
    return f" ({kib // 1024} MiB)" if kib >= 1024 else f" ({kib} KiB)"


def _rule(name: str) -> str:
    """Ask the schema itself: the words with which it refuses a wrong value."""
    section, _, inner = name.rpartition(".")
    wrong: Any = {inner: _PROBES.get(name)}
    try:
        settings_from({"token": _STAND_IN, **({section: wrong} if section else wrong)})
    except SettingsError as error:
        return error.text.removeprefix(f"field '{name}' ")
    raise AssertionError(f"the schema takes a wrong value for '{name}'")
