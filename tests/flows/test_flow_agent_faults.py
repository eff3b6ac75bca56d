"""What an agent makes of bad providers, bad models, bad keys and bad prompts: every turn ends, with words."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from agents import BAD_KEYS, KEY, OTHER, RETRIES, STEPS, hosting, needs_agent
from harness import until
from sink import serving
from sink_wires import Cut, Garbage, Refuse, Say, Use, use

if TYPE_CHECKING:
    from agents import Agents
    from sink_wires import Step

pytestmark = needs_agent
FAST = (("retry-after", "0"),)


@pytest.mark.parametrize("model", ["openai/m", OTHER])
@pytest.mark.parametrize(
    ("step", "requests", "said"),
    [
        (Garbage(), 1, "could not be asked"),
        (Cut(), 1, "could not be asked"),
        (Refuse(400), 1, "refused with 400"),
        (Refuse(401), 1, "refused with 401"),
        (Refuse(429, FAST), 1 + RETRIES, "refused with 429"),
        (Refuse(500, FAST), 1 + RETRIES, "refused with 500"),
    ],
    ids=["garbage", "closes early", "400", "401", "429", "500"],
)
def test_a_bad_provider_ends_the_turn_with_what_it_said(
    agents: Agents, model: str, step: Step, requests: int, said: str
) -> None:
    """Source: issue, "Bad input"; only what may go better the next time is tried again."""
    agents.script(step)
    result = agents.run(model=model)

    assert result["isError"]
    assert said in result["content"][0]["text"]
    assert result["structuredContent"]["outcome"] == "failed"
    assert result["structuredContent"]["turn"]["requests"] == agents.sink.count == requests
    agents.script(Say("Better now."))
    assert agents.text("agent_continue", session=result["structuredContent"]["session"], prompt="Again.").startswith(
        "Better now."
    )


@pytest.mark.parametrize("model", ["openai/m", OTHER])
def test_a_request_that_fails_for_the_moment_is_made_again(agents: Agents, model: str) -> None:
    """Source: issue, "Bad input": answers 429; setting agent.retries."""
    agents.script(Refuse(429, FAST), Say("Now it went."))

    assert agents.run(model=model)["content"][0]["text"].startswith("Now it went.")
    assert agents.sink.count == 2


@pytest.mark.parametrize("model", ["openai/m", OTHER])
@pytest.mark.parametrize(
    ("used", "told"),
    [
        (use("no_such_tool", a=1), "no_such_tool"),
        (Use((("read", "{not json"),)), "no JSON"),
        (Use((("read", "[1]"),)), "one JSON object"),
        (use("read", path=7), "Argument 'path'"),
        (use("read"), "path"),
        (use("read", path="/no/such/file"), "/no/such/file"),
    ],
    ids=["no such tool", "no json", "no object", "wrong type", "missing", "cannot be done"],
)
def test_a_model_that_calls_tools_wrongly_is_told_so_and_goes_on(
    agents: Agents, model: str, used: Use, told: str
) -> None:
    """Source: issue, "Bad input": tools that do not exist, or with bad arguments."""
    agents.script(used, Say("I see."))

    result = agents.run(model=model)

    assert result["content"][0]["text"].startswith("I see.")
    assert told in agents.sink.asked[1].said
    entries = agents.entries(result["structuredContent"]["session"])
    assert [(entry["kind"], entry.get("isError", False)) for entry in entries][1:3] == [
        ("call", False),
        ("result", True),
    ]


@pytest.mark.parametrize("model", ["openai/m", OTHER])
@pytest.mark.parametrize("step", [Say("half \ud83d of it"), use("bash", command="echo '\udc00'")], ids=["said", "used"])
def test_half_a_character_is_shown_and_breaks_nothing(agents: Agents, model: str, step: Step) -> None:
    """Source: report: models write surrogates that have no partner."""
    agents.script(step, Say("Whole."))
    session = agents.run(model=model)["structuredContent"]["session"]

    assert agents.text("agent_continue", session=session, prompt="Go on.", wait=60).startswith("Whole.")
    assert "\\ud" in json.dumps(agents.entries(session))


def test_an_answer_without_end_is_not_read_to_its_end(agents: Agents) -> None:
    """STYLE 12: every buffer has a chosen size."""
    agents.script(Say("x" * 1_200_000))
    result = agents.run()

    assert result["isError"]
    assert "longer than" in result["content"][0]["text"]


@pytest.mark.parametrize("model", ["openai/m", OTHER])
def test_a_provider_that_points_elsewhere_is_not_followed(agents: Agents, model: str) -> None:
    """Ours: a key goes to the provider that it was given for, and nowhere else."""
    with serving(Say("Give me your key.")) as elsewhere:
        agents.script(Refuse(307, (("location", f"{elsewhere.url}/chat/completions"),)))

        assert agents.run(model=model)["isError"]
        assert elsewhere.connections == 0


def test_a_model_that_loops_for_ever_is_stopped(agents: Agents) -> None:
    """Source: issue, "Bad input": loops for ever (turn limit)."""
    agents.script(use("bash", command="true"))

    result = agents.run()

    assert result["isError"]
    assert result["structuredContent"]["outcome"] == "limit"
    assert "agent.steps" in result["content"][0]["text"]
    assert agents.sink.count == STEPS


def test_a_prompt_of_two_megabytes_reaches_the_model_and_holds_nobody_up(agents: Agents) -> None:
    """Source: issue, "Bad input": prompt of 2 MB."""
    agents.run()  # The library is loaded.
    prompt = "all work and no play " * 100_000
    agents.script(Say("Long."))
    running = agents.later("agent_run", prompt=prompt)
    caller, slowest = agents.caller(), 0.0
    while not running.done():
        begun = time.monotonic()
        caller.result("tools/list")
        slowest = max(slowest, time.monotonic() - begun)

    assert running.result()["content"][0]["text"].startswith("Long.")
    assert prompt in agents.sink.asked[0].said
    assert slowest < 5.0
    titles = [session["title"] for session in agents.call("agent_list", limit=1)["structuredContent"]["sessions"]]
    assert len(titles[0]) <= 80


def test_a_provider_that_repeats_the_key_does_not_give_it_away(agents: Agents) -> None:
    """Ours: no secret comes out anywhere."""
    agents.script(Refuse(401, (("x-echo", "1"),)))

    result = agents.run()

    assert KEY in agents.sink.echoed
    everywhere = json.dumps(result) + agents.daemon.stderr + json.dumps(agents.daemon.audit())
    assert KEY not in everywhere
    assert KEY not in json.dumps(agents.entries(result["structuredContent"]["session"]))


@pytest.mark.parametrize("provider", BAD_KEYS)
def test_a_key_that_cannot_be_read_ends_the_turn_before_any_request(agents: Agents, provider: str) -> None:
    """Source: issue, "Bad input": key command that prints two lines."""
    before = agents.sink.connections
    result = agents.run(model=f"{provider}/m")

    assert result["isError"]
    assert BAD_KEYS[provider][1] in result["content"][0]["text"]
    assert agents.sink.connections == before


def test_a_budget_ends_a_turn_that_is_under_way_and_refuses_further_ones_after_a_restart(tmp_path: Path) -> None:
    """Source: issue, point 6: a budget setting that refuses further turns; ours: one turn may be many requests."""
    settings = {"agent": {"budget_requests": 3, "budget_tokens": 10_000}}
    with hosting(tmp_path, use("bash", command="true"), settings=settings) as agents:
        under_way = agents.run()
        assert under_way["structuredContent"]["outcome"] == "refused"
        assert agents.sink.count == 3
        for again in (False, True):
            if again:
                agents.daemon.start()
            refused = agents.run()
            assert refused["isError"]
            assert "agent.budget_requests" in refused["content"][0]["text"]
            assert refused["structuredContent"]["outcome"] == "refused"
            assert agents.sink.count == 3
            assert "agent.budget_requests" in agents.text("agent_status")
            agents.daemon.stop()

        settings["agent"] = {"budget_tokens": 400}
        (tmp_path / "a2mcp.json").write_text(json.dumps(settings))
        agents.daemon.start()
        agents.script(Say("One more."))
        assert not agents.run()["isError"], "321 tokens are spent"
        assert "agent.budget_tokens" in agents.run()["content"][0]["text"]
        assert "agent.budget_tokens" in agents.text("agent_status")


def test_without_the_extra_nothing_is_offered_and_the_log_says_what_to_install(tmp_path: Path) -> None:
    """Source: issue, point 1: without the extra the daemon runs as before and says what to install."""
    hidden = "import sys; sys.modules['pydantic_ai'] = None; from a2mcp.__main__ import main; sys.argv[1:] = ['serve']; main()"
    with hosting(tmp_path, argv=[sys.executable, "-c", hidden]) as agents:
        names = [tool["name"] for tool in agents.caller().result("tools/list")["tools"]]

        assert "read" in names
        assert not [name for name in names if name.startswith("agent_")]
        until(lambda: "a2mcp[agent]" in agents.daemon.stderr, what="what to install")


def test_transcripts_that_cannot_be_written_refuse_the_run(tmp_path: Path) -> None:
    """Ours: what is not kept is not begun."""
    (tmp_path / "home" / "agents.db").mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    with hosting(tmp_path / "home") as agents:
        result = agents.run()

        assert result["isError"]
        assert "cannot be kept" in result["content"][0]["text"]
        assert agents.sink.connections == 0
        agents.daemon.alive()


def test_a_file_that_holds_no_transcripts_is_set_aside(tmp_path: Path) -> None:
    """Ours: it is not ours to delete."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "agents.db").write_bytes(b"no database at all " * 1000)
    with hosting(home, settings={"host_llm": "deny"}) as agents:
        session = agents.run("Kept all the same.")["structuredContent"]["session"]
        assert [entry["kind"] for entry in agents.entries(session)] == ["prompt", "end"]
        assert (home / "agents.db.unreadable").read_bytes().startswith(b"no database")
