"""What happens to sessions of the agent when the daemon stops, is killed, loses an actor, or gets another model.

And how they are seen.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from agents import RUNNING, background, hosting, models, needs_agent, notices, switch
from asker import Asker
from harness import DEADLINE_S, running, until
from sink import serving
from sink_wires import USED, Hang, Say, use

from a2mcp.inference.tripwire import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents import Agents

pytestmark = needs_agent
WITH_TOOLS = [sys.executable, str(Path(__file__).parent / "serve_with_tools.py")]


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """One home, and a daemon that the tests stop, kill and start again as they like; it starts denied."""
    with hosting(tmp_path_factory.mktemp("home"), settings={"host_llm": "deny"}, argv=WITH_TOOLS) as started:
        yield started


@pytest.fixture
def mortal(hosted: Agents) -> Agents:
    """That daemon, allowed to ask, with a provider that has only this to say."""
    hosted.allow()
    return hosted


class Restart(NamedTuple):
    """What there was when a daemon was stopped, and what it did when it had started again, before it was allowed to ask."""

    code: int
    idle: str
    """A session at rest."""
    before: list[dict[str, Any]]
    """Its transcript."""
    waited: dict[str, Any]
    """The answer of who waited for the turn of another session."""
    after: list[dict[str, Any]]
    """The transcript of the session at rest."""
    maps: str
    """The libraries that the daemon had in its memory, with the transcript read."""
    denied: dict[str, Any]
    """The answer of who wanted a turn."""
    reached: tuple[int, int]
    """How many connections and requests of it reached the provider."""


@pytest.fixture(scope="module")
def restart(hosted: Agents) -> Restart:
    """Stop the daemon with one session at rest and one at work, and start it again."""
    hosted.script(Say("Blue."), Hang())
    switch(hosted, enabled=True)
    idle = hosted.run("Name a colour.")["structuredContent"]["session"]
    before = hosted.entries(idle)
    waiting = hosted.later("agent_run", prompt="Go.")
    until(lambda: hosted.sink.count == 2, what="the request")
    code = hosted.daemon.stop(seconds=10)
    waited = waiting.result(DEADLINE_S)
    connections, requests = hosted.sink.connections, hosted.sink.count
    hosted.daemon.start()

    after = hosted.entries(idle)
    maps = Path(f"/proc/{hosted.daemon.process.pid}/maps").read_text()
    denied = hosted.run()
    reached = hosted.sink.connections - connections, hosted.sink.count - requests
    return Restart(code, idle, before, waited, after, maps, denied, reached)


def facts(agents: Agents, session: str) -> dict[str, Any]:
    """How a session stands."""
    return dict(agents.call("agent_wait", session=session, wait=0)["structuredContent"])


def test_a_daemon_that_stops_ends_turns_and_answers_who_waits(restart: Restart, mortal: Agents) -> None:
    """Source: issue, point 2; ours: a turn does not hold the end up for drain_s."""
    assert restart.code == 0
    session = restart.waited["structuredContent"]["session"]
    assert restart.waited["isError"]
    assert "stopped before this turn" in restart.waited["content"][0]["text"]

    mortal.script(Say("Back."))
    assert facts(mortal, session)["outcome"] == "interrupted"
    assert mortal.text("agent_continue", session=session, prompt="Go on.").startswith("Back.")


def test_transcripts_outlive_the_daemon(restart: Restart, mortal: Agents) -> None:
    """Source: issue, point 2: durable, survive a restart."""
    assert "Name a colour." in str(restart.before)
    assert restart.after == restart.before
    assert "pydantic_core" not in restart.maps
    mortal.script(Say("I said blue."))
    mortal.call("agent_continue", session=restart.idle, prompt="Which?")
    assert "Name a colour." in mortal.sink.asked[0].said


def test_a_daemon_that_starts_denied_has_an_agent_that_is_refused(restart: Restart, mortal: Agents) -> None:
    """Source: seed: a session is made while deny is in place, and its models are denied, too."""
    assert (restart.denied["isError"], SENTINEL in restart.denied["content"][0]["text"]) == (True, True)
    assert restart.reached == (0, 0)
    assert not mortal.run()["isError"], "allowed again"


def test_a_turn_that_a_killed_daemon_left_is_interrupted(mortal: Agents) -> None:
    """Source: issue, point 2: survive a restart."""
    mortal.script(use("bash", command="sleep 600"), Say("Back."))
    session = mortal.run(wait=0)["structuredContent"]["session"]
    until(lambda: mortal.records("bash", session), what="the command")
    until(lambda: len(mortal.entries(session)) == 2, what="the call in the transcript")
    mortal.daemon.process.kill()
    mortal.daemon.process.wait()
    mortal.daemon.process.stdout.close()  # type: ignore[union-attr]
    mortal.daemon.start()
    switch(mortal, enabled=True)

    assert (facts(mortal, session)["state"], facts(mortal, session)["outcome"]) == ("idle", "interrupted")
    assert [entry["kind"] for entry in mortal.entries(session)] == ["prompt", "call", "end"]
    assert mortal.text("agent_continue", session=session, prompt="Go on.").startswith("Back.")
    assert "sleep 600" in mortal.sink.asked[1].said


def test_the_end_of_a_job_is_told_and_costs_nothing_unless_it_is_wanted(mortal: Agents) -> None:
    """Source: issue, point 3: told; default off."""
    connections, before = mortal.sink.connections, len(notices(mortal))
    job = background(mortal.caller(), "exit 3")
    until(lambda: len(notices(mortal)) > before, what="the notice")
    (told,) = notices(mortal)[before:]

    assert told.startswith(f"Job {job} (exit 3) has ended: ")
    assert "3" in told.rpartition(":")[2]
    assert mortal.sink.connections == connections
    mortal.call("agent_continue", session="main", prompt="What is new?")
    assert job in mortal.sink.asked[0].said
    mortal.call("agent_continue", session="main", prompt="And now?")
    assert mortal.sink.asked[1].said.count(job) == 1, "told once"


def test_the_keeper_of_sessions_is_replaced_and_nothing_is_lost(mortal: Agents) -> None:
    """Source: design: restarted, sessions stay."""
    hang = Hang()
    mortal.script(hang, Say("Second."))
    session = mortal.run(wait=0)["structuredContent"]["session"]
    until(lambda: mortal.sink.count == 1, what="the request")
    waiting = mortal.later("agent_wait", session=session)
    mortal.call("kill", actor="Agents")
    until(lambda: "Agents died" in mortal.daemon.stderr, what="its death")
    hang.release()

    assert waiting.result(DEADLINE_S)["content"][0]["text"].startswith("Released.")
    assert mortal.text("agent_continue", session=session, prompt="More.").startswith("Second.")


def test_many_sessions_run_at_once_and_one_more_is_refused(agents: Agents) -> None:
    """Source: issue, point 2: one actor per session; setting agent.running."""
    hang = Hang()
    agents.script(hang)
    sessions = [agents.run(wait=0)["structuredContent"]["session"] for _ in range(RUNNING)]
    refused = agents.run(wait=0)
    assert refused["isError"]
    assert "agent.running" in refused["content"][0]["text"]
    status = json.loads(agents.daemon.cli("status", "--json").stdout)["agent"]
    assert status["running"] == RUNNING
    hang.release()
    for session in sessions:
        assert agents.text("agent_wait", session=session).startswith("Released.")

    tasks = Path(f"/proc/{agents.daemon.process.pid}/task")
    names = lambda: [(task / "comm").read_text() for task in tasks.iterdir()]  # noqa: E731
    until(lambda: not any(name.startswith("Agent-") for name in names()), what="the end of their actors")


def test_a_long_wait_is_a_stream_with_the_steps(agents: Agents) -> None:
    """Source: issue, point 2: long waits stream."""
    agents.script(use("bash", command="echo one"), Say("Done."))
    messages = agents.caller().ask("tools/call", {"name": "agent_run", "arguments": {"prompt": "Go."}}, token="t")

    steps = [message["params"]["message"] for message in messages[:-1]]
    assert any(step.startswith("call bash:") for step in steps), steps
    assert any(step.startswith("said :") or "said" in step for step in steps), steps
    assert messages[-1]["result"]["content"][0]["text"].startswith("Done.")


def test_the_tools_come_and_go_with_the_model_and_who_listens_is_told(tmp_path: Path) -> None:
    """Source: issue, point 2: tools/list changes are announced."""
    with serving() as sink, running(tmp_path, settings={}) as daemon:
        caller = Asker(daemon, can={})
        wanted = {"notifications": {"toolsListChanged": True}}
        with caller.stream("subscriptions/listen", wanted) as listening:
            listening.next()
            assert "agent_run" not in str(Asker(daemon).result("tools/list"))
            (tmp_path / "models.yml").write_text(models(sink))
            (tmp_path / "models.yml").chmod(0o600)
            for enabled in (False, True):
                daemon.client().post({"enabled": enabled}, "/host-llm")

            assert listening.next()["method"] == "notifications/tools/list_changed"
            assert "agent_run" in str(Asker(daemon).result("tools/list"))
            assert not Asker(daemon).call("agent_run", prompt="Go.")["isError"]
            (tmp_path / "models.yml").unlink()
            daemon.client().post({"enabled": False}, "/host-llm")
            assert listening.next()["method"] == "notifications/tools/list_changed"


def test_sessions_are_resources(agents: Agents) -> None:
    """Source: issue, point 2: a2mcp://sessions and a2mcp://session/{id}."""
    agents.script(use("bash", command="true"), Say("Done."))
    session = agents.run("What is it?")["structuredContent"]["session"]
    caller = agents.caller()
    listed = [one for one in json.loads(caller.read("a2mcp://sessions")["text"])["agents"] if one["session"] == session]
    one = json.loads(caller.read(f"a2mcp://session/{session}")["text"])

    assert [(one["title"], one["outcome"]) for one in listed] == [("What is it?", "done")]
    assert (one["alive"], one["agent"]) == (False, listed[0])
    assert [entry["kind"] for entry in one["transcript"]] == ["prompt", "call", "result", "said", "end"]
    assert {record["tool"] for record in one["records"]} == {"bash", "agent"}
    assert caller.error("resources/read", uri="a2mcp://session/azzzzz")["data"]


def test_what_it_costs_is_in_the_metrics_and_the_status(agents: Agents) -> None:
    """Source: issue, point 6."""
    before = costs(agents)
    agents.script(use("bash", command="true"), Say("Done."))
    agents.run()
    after = costs(agents)
    today = agents.call("agent_status")["structuredContent"]["today"]
    tokens = today["inputTokens"] + today["outputTokens"]

    assert after["a2mcp_agent_turns_total"] == before["a2mcp_agent_turns_total"] + 1
    assert after["a2mcp_agent_requests_total"] == before["a2mcp_agent_requests_total"] + 2
    for direction, used in USED.items():
        name = f'a2mcp_agent_tokens_total{{direction="{direction}"}}'
        assert after[name] == before[name] + 2 * used
    assert f"today {today['requests']} requests, {tokens} tokens" in agents.daemon.cli("status").stdout


def costs(agents: Agents) -> dict[str, int]:
    """What the metrics say of the agent."""
    lines = agents.daemon.client().send("GET", "/metrics").body.decode().splitlines()
    named = (line.rsplit(" ", 1) for line in lines if line.startswith("a2mcp_agent_"))
    return {name: int(value) for name, value in named}


def test_a_transcript_is_read_in_windows_and_sessions_in_pages(agents: Agents) -> None:
    """Source: issue, point 2: agent_read (a window of the transcript), agent_list."""
    sessions = [agents.run(f"Page {number}")["structuredContent"]["session"] for number in range(3)]
    window = agents.call("agent_read", session=sessions[0], after=1, limit=1)["structuredContent"]
    assert ([entry["seq"] for entry in window["entries"]], window["next"]) == ([2], 2)
    last = agents.call("agent_read", session=sessions[0], after=-1)
    assert "this is the end" in last["content"][0]["text"]

    first = agents.call("agent_list", query="page", limit=2)["structuredContent"]
    second = agents.call("agent_list", query="page", limit=2, cursor=first["nextCursor"])["structuredContent"]
    listed = [one["session"] for page in (first, second) for one in page["sessions"]]
    assert listed == sessions[::-1]
    assert "nextCursor" not in second
    found = agents.call("agent_list", query="page 1")["structuredContent"]["sessions"]
    assert [one["session"] for one in found] == [sessions[1]]
    assert agents.call("agent_read", session="azzzzz")["isError"]
