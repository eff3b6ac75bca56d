"""The two wire formats of providers, written from what a test wants a model to do: whole and as streams of events."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENAI, ANTHROPIC = "openai-completions", "anthropic-messages"
PATHS = {"/v1/chat/completions": OPENAI, "/v1/messages": ANTHROPIC}
USED = {"input": 100, "output": 7}
"""Tokens that every answer says it took."""


class Say(NamedTuple):
    """The model says something and is done."""

    text: str


class Use(NamedTuple):
    """The model uses tools: each its name and its arguments, an object or the text of what should be one."""

    calls: tuple[tuple[str, Any], ...]


class Refuse(NamedTuple):
    """An HTTP error."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()


class Garbage(NamedTuple):
    """A stream of what is no event."""

    data: bytes = b'data: {"choices": [\n\ndata: \xff\xfe\n\nevent: message_start\ndata: nonsense\n\n'


class Cut(NamedTuple):
    """The beginning of an answer, and then the connection closes."""

    text: str = "The first half of"


class Hang:
    """The beginning of an answer, and the rest of it once the test says so; nothing if the client leaves."""

    def __init__(self, then: Say | Use | None = None) -> None:
        self.then = then or Say("Released.")
        self.released = threading.Event()

    def release(self) -> None:
        """Let it go on."""
        self.released.set()


Step = Say | Use | Refuse | Garbage | Cut | Hang


def use(tool: str, /, **arguments: Any) -> Use:
    """One tool, with proper arguments."""
    return Use(((tool, arguments),))


# --- as they go over the wire ----------------------------------------------------------------------------------------


def _calls(step: Use) -> list[tuple[str, str, str]]:
    """An id, a name and the text of the arguments for each tool that is used."""
    return [
        (f"call_{number}", name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(step.calls)
    ]


def _text(step: Step) -> str:
    return step.text if isinstance(step, Say | Cut) else "The beginning of"


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _openai(step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _text(step)}
    if isinstance(step, Use):
        function = [
            {"id": name_id, "type": "function", "function": {"name": name, "arguments": given}}
            for name_id, name, given in _calls(step)
        ]
        message |= {"content": None, "tool_calls": function}
    reason = "tool_calls" if isinstance(step, Use) else "stop"
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "sink",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": USED["input"], "completion_tokens": USED["output"], "total_tokens": 107},
    }  # fmt: skip


def _openai_stream(step: Step) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}] if delta or reason else []
        value = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "sink"}
        return b"data: " + json.dumps(value | {"choices": choices} | more).encode() + b"\n\n"

    yield chunk({"role": "assistant", "content": ""})
    if isinstance(step, Use):
        for index, (name_id, name, given) in enumerate(_calls(step)):
            first, second = _halves(given)
            whole = {"index": index, "id": name_id, "type": "function", "function": {"name": name, "arguments": first}}
            yield chunk({"tool_calls": [whole]})
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": second}}]})
    else:
        for half in _halves(_text(step)):
            yield chunk({"content": half})
    if isinstance(step, Cut):
        return
    yield chunk({}, "tool_calls" if isinstance(step, Use) else "stop")
    yield chunk({}, usage=_openai(step)["usage"])
    yield b"data: [DONE]\n\n"


def _anthropic(step: Step) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": _text(step)}]
    if isinstance(step, Use):
        content = [
            {"type": "tool_use", "id": name_id, "name": name, "input": json.loads(given)}
            for name_id, name, given in _calls(step)
        ]
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "sink", "content": content,
        "stop_reason": "tool_use" if isinstance(step, Use) else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": USED["input"], "output_tokens": USED["output"]},
    }  # fmt: skip


def _anthropic_stream(step: Step) -> Iterator[bytes]:
    def event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()

    begun = {"content": [], "stop_reason": None, "usage": {"input_tokens": USED["input"], "output_tokens": 1}}
    yield event("message_start", message=_anthropic(Say("")) | begun)
    if isinstance(step, Use):
        for index, (name_id, name, given) in enumerate(_calls(step)):
            yield event(
                "content_block_start",
                index=index,
                content_block={"type": "tool_use", "id": name_id, "name": name, "input": {}},
            )
            for half in _halves(given):
                yield event(
                    "content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": half}
                )
            yield event("content_block_stop", index=index)
    else:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for half in _halves(_text(step)):
            yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": half})
    if isinstance(step, Cut):
        return
    if not isinstance(step, Use):
        yield event("content_block_stop", index=0)
    reason = "tool_use" if isinstance(step, Use) else "end_turn"
    yield event(
        "message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": USED["output"]}
    )
    yield event("message_stop")


WHOLE = {OPENAI: _openai, ANTHROPIC: _anthropic}
STREAMED = {OPENAI: _openai_stream, ANTHROPIC: _anthropic_stream}
