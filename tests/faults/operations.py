"""What a daemon is asked to do while a call of the system fails: write its log, change its token, run a job, share a file."""

from __future__ import annotations

import http.client
import os
from typing import TYPE_CHECKING, Any

import psutil
from harness import until
from inflight import Later

from a2mcp.errors import A2mcpError
from a2mcp.policy.grants import Scope, Word

if TYPE_CHECKING:
    from live import Live

SMALL_LOG = 64 * 1024
"""Bytes, of both generations; the least there can be."""
PADDING = {f"padding{number}": "x" * 100 for number in range(20)}
"""What makes a record so large that two dozen of them are a generation."""
LASTS_S = f"61.{os.getpid()}"
"""What the command of a job sleeps, which is how it is found among those of other tests."""
ASKS_FIRST = {"tools": {"glob": "prompt"}}
"""The settings of approval for ``allow_always``."""


def record_calls(live: Live) -> None:
    """Write enough records that the log rotates."""
    for number in range(14):
        assert live.ask("echo", text=f"call {number}", **PADDING)["content"][0]["text"] == f"call {number}"


def rotate_token(live: Live) -> None:
    """Have a new token made, or be told why not."""
    try:
        live.operator.rotate()
    except A2mcpError as error:
        if not error.hint:
            raise


def start_job(live: Live) -> None:
    """Run a command that becomes a job, and end it."""
    result = live.ask("bash", command=f"echo said; exec sleep {LASTS_S}", wait=0, stdin="given")
    if result["isError"]:
        require_words(result)
        return
    job = result["structuredContent"]["jobId"]
    assert live.ask("jobs", action="stop", id=job)["isError"] is False


def share(live: Live) -> None:
    """Share a file, fetch it, and stop."""
    result = live.ask("xfer_share", path=str(live.home / "shared.txt"))
    if result["isError"]:
        require_words(result)
        return
    try:
        answer = live.client_.send("GET", "/xfer/shared.txt")
        assert (answer.status, answer.body) == (200, b"shared") or answer.status in (500, 503), answer
    except http.client.IncompleteRead:
        # The head was sent when the disk failed: the client is told by the bytes that are missing.
        live.client_.close()
    assert live.ask("xfer_stop")["isError"] is False


def allow_always(live: Live) -> None:
    """Let a call that waits happen, and all others like it from now on, where they were not let before."""
    live.granted_ = None
    for grant in live.operator.grants():
        live.operator.revoke(grant.id)
    waiting = Later(lambda: live.session().call("glob", pattern="*.txt"))
    call = until(live.operator.approvals, what="a call that waits")[0]
    live.granted_ = live.operator.answer(call.id, Word(approve=True, scope=Scope.ALWAYS)).grant
    waiting.result()


def require_words(result: Any) -> None:
    """Fail unless a tool's refusal is a sentence for its caller."""
    said = result["content"][0]["text"]
    assert "internal error" not in said, said
    assert "The tool failed" not in said, said


def channel_threads(live: Live) -> tuple[int, ...]:
    """The threads that take turns in answering the operator."""
    touched = {point.thread for point in live.watch(rotate_token, times=4) if "a2mcp.json" in point.subject}
    live.use_token()
    return tuple(touched)


def sleepers() -> list[psutil.Process]:
    """The processes of commands that ``start_job`` has started and that still run."""
    return [process for process in psutil.process_iter(["cmdline"]) if LASTS_S in (process.info["cmdline"] or [])]
