"""The host's own agent, from outside: a real daemon, a provider that counts, and a caller of the tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agents import KEY, OTHER, needs_agent
from asker import Asker
from harness import until
from sink_wires import USED, Hang, Say, Use, use
from standard_client import Standard

if TYPE_CHECKING:
    from agents import Agents
    from harness import Daemon

pytestmark = needs_agent


@pytest.mark.parametrize("model", ["openai/m", OTHER])
def test_a_run_reads_a_file_with_the_hosts_tools_and_answers(agents: Agents, tmp_path: Path, model: str) -> None:
    """Source: issue, "What it must show"."""
    note = tmp_path / "note.txt"
    note.write_text("The word is zebra.")
    agents.script(use("read", path=str(note)), Say("It is zebra."))
    result = agents.run("Which word is in the note?", model=model)

    assert not result["isError"]
    assert result["content"][0]["text"].startswith("It is zebra.\n[session a")
    assert agents.sink.count == 2
    assert {asked.key for asked in agents.sink.asked} == {KEY}
    assert "The word is zebra." in agents.sink.asked[1].said
    kinds = [entry["kind"] for entry in agents.entries(result["structuredContent"]["session"])]
    assert kinds == ["prompt", "call", "result", "said", "end"]


def test_the_agents_calls_are_on_record_as_anybodys(agents: Agents) -> None:
    """Source: issue, point 2: the same gate, executor and audit, as the client "agent"."""
    agents.script(use("bash", command="echo from-here"), Say("Done."))
    session = agents.run()["structuredContent"]["session"]

    calls = agents.records("bash", session)
    assert [(call["phase"], call["client"], call["sid"]) for call in calls] == [
        ("start", "agent", session),
        ("done", "agent", session),
    ]
    (turn,) = agents.records("agent", session)
    spent = {"requests": 2, "input_tokens": 2 * USED["input"], "output_tokens": 2 * USED["output"]}
    assert turn["args"] == {"action": "turn", "outcome": "done", **spent}


def test_the_agent_is_offered_the_hosts_tools_but_none_that_begins_agents(agents: Agents) -> None:
    """Ours: an agent that began others could do so without end."""
    agents.script(Say("Done."))
    agents.run()
    offered = agents.sink.asked[0].tools

    assert {"read", "bash", "jobs", "agent_answer"} <= set(offered)
    assert [name for name in offered if name.startswith("agent_")] == ["agent_answer"]


def test_without_a_model_no_agent_is_offered_and_with_one_it_is(without_model: Daemon) -> None:
    """Source: issue, point 2: tools offered to callers when a model is configured."""
    names = [tool["name"] for tool in Asker(without_model).result("tools/list")["tools"]]
    assert not [name for name in names if name.startswith("agent_")]
    error = Standard(without_model).call("agent_run", prompt="Go.").error
    assert "not exposed" in error["message"]


def test_a_run_that_is_not_waited_for_hands_back_a_session_to_wait_for(agents: Agents) -> None:
    """Source: issue, point 2: wait with a deadline hands back a handle."""
    hang = Hang()
    agents.script(hang, Say("At last."))
    handed = agents.run(wait=0)
    session = handed["structuredContent"]["session"]
    assert "still running" in handed["content"][0]["text"]
    assert not handed["isError"]
    assert agents.call("agent_wait", session=session, wait=1)["structuredContent"]["state"] == "running"
    assert agents.call("agent_list", running=True)["structuredContent"]["sessions"][0]["session"] == session

    hang.release()
    ended = agents.call("agent_wait", session=session)
    assert ended["structuredContent"]["state"] == "idle"


def test_a_session_goes_on_with_all_that_was_said(agents: Agents) -> None:
    """Source: issue, point 2: agent_continue."""
    agents.script(Say("Blue."), Say("I said blue."))
    session = agents.run("Name a colour.")["structuredContent"]["session"]
    assert agents.text("agent_continue", session=session, prompt="Which was it?").startswith("I said blue.")

    said = agents.sink.asked[1].said
    assert said.index("Name a colour.") < said.index("Blue.") < said.index("Which was it?")


def test_prompts_that_come_during_a_turn_wait_for_the_next(agents: Agents) -> None:
    """Ours: a turn is given all that waits for it at once."""
    hang = Hang()
    agents.script(hang, Say("Both."))
    session = agents.run("First.", wait=0)["structuredContent"]["session"]
    for prompt in ("Second.", "Third."):
        agents.call("agent_continue", session=session, prompt=prompt, wait=0)
    hang.release()

    assert agents.text("agent_wait", session=session).startswith("Both.")
    assert agents.sink.count == 2
    assert "Second." in agents.sink.asked[1].said
    assert "Third." in agents.sink.asked[1].said


def test_a_cancelled_turn_ends_what_runs_for_it(agents: Agents) -> None:
    """Source: issue, point 2: agent_cancel."""
    agents.script(use("bash", command="sleep 600"), Say("Never."))
    session = agents.run(wait=0)["structuredContent"]["session"]
    until(lambda: agents.records("bash", session), what="the command")

    agents.call("agent_cancel", session=session)

    until(lambda: [r for r in agents.records("bash", session) if r["phase"] == "done"], what="its end")
    facts = agents.call("agent_wait", session=session)["structuredContent"]
    assert (facts["state"], facts["outcome"]) == ("idle", "cancelled")
    assert agents.sink.count == 1
    assert agents.records("bash", session)[1]["ended"] == "cancelled"


def test_a_cancelled_session_goes_on_when_it_is_told_to(agents: Agents) -> None:
    """Ours: a tool that was cut off is no reason for a provider to refuse what comes after it."""
    agents.script(use("bash", command="sleep 600"), Say("Going on."))
    session = agents.run(wait=0)["structuredContent"]["session"]
    until(lambda: agents.records("bash", session), what="the command")
    agents.call("agent_cancel", session=session)

    assert agents.text("agent_continue", session=session, prompt="Go on.").startswith("Going on.")
    assert "interrupted" in agents.sink.asked[1].said


def answering(answer: str) -> Any:
    """Let the model answer the question that it finds in what it is told."""

    def step(asked: Any) -> Use:
        question = asked.said.rpartition("and the id ")[2].split()[0].strip(".;")
        return use("agent_answer", id=question, text=answer)

    return step


def test_a_question_is_answered_by_the_session_that_was_asked(agents: Agents) -> None:
    """Source: issue, point 2: agent_ask and agent_answer; the remote DSH's must-answer question."""
    agents.script(Say("Hello."), answering("Forty-two."), Say("Done."))
    session = agents.run()["structuredContent"]["session"]
    asked = agents.call("agent_ask", session=session, question="How many?")

    assert asked["structuredContent"]["answer"] == "Forty-two."
    refused = agents.call("agent_answer", id="qaaaaa", text="I am it.")
    assert refused["isError"]
    assert "Only the agent" in refused["content"][0]["text"]


def test_a_question_reaches_a_turn_that_is_under_way(agents: Agents) -> None:
    """Ours: whoever asks does not wait for the end of the turn."""
    hang = Hang(then=use("bash", command="true"))
    agents.script(hang, answering("Half."), Say("All done."))
    session = agents.run(wait=0)["structuredContent"]["session"]
    until(lambda: agents.sink.count == 1, what="the first request")
    answer = agents.later("agent_ask", session=session, question="How far?")
    until(lambda: any(e["kind"] == "question" for e in agents.entries(session)), what="the question")
    hang.release()

    assert answer.result()["structuredContent"]["answer"] == "Half."
    assert agents.text("agent_wait", session=session).startswith("All done.")


def test_a_question_that_is_forgotten_is_asked_once_more_and_then_given_up(agents: Agents) -> None:
    """Ours: whoever asked is not left waiting."""
    agents.script(Say("I prefer not to."))
    session = agents.run()["structuredContent"]["session"]
    asked = agents.call("agent_ask", session=session, question="How many?")

    assert asked["isError"]
    assert "did not answer" in asked["content"][0]["text"]
    assert agents.sink.count == 3
    assert "no answer yet" in agents.sink.asked[2].said
