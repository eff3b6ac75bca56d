"""A daemon whose agent asks a counting provider, and the calls of the agent's tools."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from asker import Asker
from harness import running, until
from sink import serving
from sink_wires import ANTHROPIC, OPENAI, Say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness import Daemon
    from sink import Asked, Sink
    from sink_wires import Step

needs_agent = pytest.mark.skipif(find_spec("pydantic_ai") is None, reason="needs the extra 'a2mcp[agent]'")

KEY = "sk-test-0123456789abcdef"


OTHER = "anthropic/m"
"""The model that is not the default, in the other wire format."""


TOOL = "test_input_required_result_sampling"
"""Of the conformance suite: it asks a model for a capital."""
SAMPLING = "sampling/createMessage"
"""What that is in the log, and in the rules of approval."""
STEPS, RETRIES, RUNNING = 5, 3, 3
EAGER = {"agent": {"wake": True, "steps": STEPS, "retries": RETRIES, "running": RUNNING}}
"""Of the daemon that most tests share: its agent is woken by jobs that end, tries again what fails, and has its limits near."""
BAD_KEYS = {
    "two-lines": ("!echo one; echo two", "2 lines"),
    "fails": ("!exit 3", "exit code 3"),
    "no-variable": ("$NO_SUCH_VARIABLE_HERE", "not set"),
}
"""Providers of that daemon whose keys cannot be read, and what is said of it."""


def models(sink: Sink, *, key: str = KEY, keys: dict[str, str] | None = None) -> str:
    """The operator's file: the one provider, in both of its formats.

    Args:
        sink: the provider.
        key: what it takes.
        keys: further names for it, each with a key of its own.
    """
    row = {"baseUrl": sink.url, "models": [{"id": "m", "input": ["text", "image"]}]}
    providers = {"openai": {"api": OPENAI, "apiKey": key, **row}, "anthropic": {"api": ANTHROPIC, "apiKey": key, **row}}
    more = {name: {"api": OPENAI, "apiKey": other, **row} for name, other in (keys or {}).items()}
    return json.dumps({"providers": providers | more})


class Agents:
    """A daemon, its provider, and a caller of the agent's tools."""

    def __init__(self, daemon: Daemon, sink: Sink) -> None:
        self.daemon = daemon
        self.sink = sink
        self.pool = ThreadPoolExecutor()

    def settle(self) -> None:
        """Wait until no turn goes on: what it asks would be answered by the next test's script."""
        until(lambda: not self.call("agent_status")["structuredContent"]["running"], what="the end of every turn")

    def script(self, *steps: Step | Callable[[Asked], Step]) -> None:
        """Have the provider answer so from now on, and forget what it was asked. A daemon that a test stopped is started."""
        if self.daemon.process.poll() is not None:
            self.daemon.start()
        self.settle()
        self.sink.asked.clear()
        self.sink.then(*steps)

    def allow(self) -> None:
        """Let it ask, with a provider that has only this to say."""
        self.script(Say("Done."))
        switch(self, enabled=True)

    def caller(self, **options: Any) -> Asker:
        """A legacy client."""
        return Asker(self.daemon, **options)

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call one of the tools, on a connection of its own that ends with it."""
        with contextlib.closing(self.caller()) as caller:
            return dict(caller.call(tool, **arguments))

    def run(self, prompt: str = "Go.", **arguments: Any) -> dict[str, Any]:
        """Give a task and wait for the answer."""
        return self.call("agent_run", prompt=prompt, **arguments)

    def text(self, tool: str, /, **arguments: Any) -> str:
        """Call one of the tools; the text of its answer."""
        return str(self.call(tool, **arguments)["content"][0]["text"])

    def later(self, tool: str, /, **arguments: Any) -> Future[dict[str, Any]]:
        """Call one of the tools, without waiting for its answer."""
        return self.pool.submit(self.call, tool, **arguments)

    def close(self) -> None:
        """Wait for what was called."""
        self.pool.shutdown(cancel_futures=True)

    def records(self, tool: str, session: str) -> list[dict[str, Any]]:
        """What the audit log has of a tool in a session."""
        return [record for record in self.daemon.audit() if (record["tool"], record["sid"]) == (tool, session)]

    def records_of(self, tool: str) -> list[dict[str, Any]]:
        """What the audit log has of a tool."""
        return [record for record in self.daemon.audit() if record["tool"] == tool]

    def entries(self, session: str) -> list[dict[str, Any]]:
        """The whole transcript of a session."""
        return list(self.call("agent_read", session=session, after=0, limit=500)["structuredContent"]["entries"])


@contextlib.contextmanager
def hosting(
    home: Path,
    *script: Step | Callable[[Asked], Step],
    key: str = KEY,
    keys: dict[str, str] | None = None,
    settings: dict[str, Any] | None = None,
    argv: list[str] | None = None,
) -> Iterator[Agents]:
    """A daemon with an agent for the length of a block."""
    with serving(*script) as sink:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "models.yml").write_text(models(sink, key=key, keys=keys))
        (home / "models.yml").chmod(0o600)
        with running(home, settings=settings or {}, argv=argv) as daemon:
            agents = Agents(daemon, sink)
            yield agents
            agents.close()


def background(caller: Asker, command: str) -> str:
    """Start a job; its id."""
    return str(caller.call("bash", command=command, wait=0)["structuredContent"]["jobId"])


def notices(agents: Agents) -> list[str]:
    """What the Main session was told."""
    return [entry["text"] for entry in agents.entries("main") if entry["kind"] == "notice"]


def switch(agents: Agents, *, enabled: bool) -> dict[str, Any]:
    """Turn the switch of the host's models, as a caller does."""
    answer = agents.daemon.client().post({"enabled": enabled}, "/host-llm")
    assert answer.status == 200, answer.body
    return dict(answer.json)
