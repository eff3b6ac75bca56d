"""``POST /host-llm`` from outside: the order of the checks, the answers, the records, and what a restart does."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import Daemon, running, until

if TYPE_CHECKING:
    from collections.abc import Iterator

FINE = "providers:\n  p:\n    api: openai-completions\n    baseUrl: http://127.0.0.1:9/v1\n    models: [{id: x}]\n"
BEYOND = FINE.replace("    models", "    transport: native\n    models")
REASON = (
    "inference cannot be denied: p would be reached past everything that denies. "
    "Change 'transport' or 'api' of the provider in models.yml."
)


def put(home: Path, text: str) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "models.yml").write_text(text)
    (home / "models.yml").chmod(0o600)


def records(daemon: Daemon, before: int = 0) -> list[tuple[str | None, dict]]:
    """Those of the switch that came after so many."""
    return [(one["sid"], one["args"]) for one in daemon.audit() if one["tool"] == "host_llm"][before:]


def stands(enabled: bool, denied: int = 0, degraded: bool = False) -> dict:
    return {"enabled": enabled, "denied": denied, "degraded": degraded}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with a model."""
    home = tmp_path_factory.mktemp("models") / "home"
    put(home, FINE)
    with running(home) as daemon:
        yield daemon


@pytest.fixture
def with_models(started: Daemon) -> Daemon:
    """The same as it was when it started: allowed, and with the model that it had."""
    put(started.home, FINE)
    assert started.client().post({"enabled": True}, "/host-llm").json == stands(True)
    return started


@pytest.fixture(scope="module")
def denying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with a model that it may not ask from its start on, nor when a test begins."""
    home = tmp_path_factory.mktemp("denying") / "home"
    put(home, FINE)
    with running(home, settings={"host_llm": "deny"}) as daemon:
        until(lambda: "[a2mcp] takeover armed" in daemon.stderr, what="the takeover")
        yield daemon


def test_the_switch_is_turned_and_says_how_it_stands(with_models):
    """Source: seed, "宿主推理切换": 200 with {enabled, denied, degraded}; a repeated `true` is no error."""
    client = with_models.session()
    before, said = len(with_models.audit()), len(with_models.stderr)
    turns = (True, False, False, True, True)
    answers = [client.post({"enabled": enabled}, "/host-llm") for enabled in turns]

    assert [answer.status for answer in answers] == [200] * 5
    assert [answer.json for answer in answers] == [stands(enabled) for enabled in turns]
    assert answers[0].headers["content-type"] == "application/json"
    kept = with_models.audit()[before:]
    assert [(one["tool"], one["sid"], one["args"]) for one in kept] == [
        ("host_llm", client.session, {"enabled": enabled}) for enabled in turns
    ]
    assert {(one["phase"], "isError" in one) for one in kept} == {("done", False)}
    armed = "[a2mcp] takeover armed: 1 provider(s) denied (p), 1 tripwire key(s)"
    assert with_models.stderr[said:].count(armed) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"true", b"[true]", b"null", b"\xff", b"[" * 5000, {}, {"Enabled": True},
        *({"enabled": wrong} for wrong in ("true", "", 1, 0, 1.0, None, [], {}, [True])),
    ],
)  # fmt: skip
def test_a_body_that_says_nothing_is_refused_and_turns_nothing(with_models, body):
    """Source: seed: 400, body 不是 JSON, 或 enabled 不是布尔; row L01."""
    before = len(records(with_models))
    answer = with_models.client().post(body, "/host-llm")

    assert answer.status == 400
    assert answer.json == {"error": "the body must be a JSON object whose 'enabled' is true or false"}
    assert records(with_models, before) == []


def test_checks_come_in_the_order_of_the_seed(with_models):
    """Source: seed: 方法 → 鉴权 → body → 动作; row L01."""
    client, before = with_models.session(), len(records(with_models))
    for method in ("GET", "DELETE", "PUT", "PATCH"):
        assert client.send(method, "/host-llm", b"{", Authorization=None).status == 405
    refused = client.post(b"{", "/host-llm", Authorization=None)
    assert refused.status == 401
    assert refused.error == {"code": -32000, "message": "unauthorized"}
    assert client.post(b"{", "/host-llm", Authorization="Bearer " + "x" * 43).status == 401
    assert client.post(b" " * 70_000, "/host-llm").status == 413
    assert client.ask("ping").result == {}
    assert records(with_models, before) == []


def test_other_members_are_ignored(with_models):
    """Source: seed: two reasons for 400, and this is none of them."""
    before = len(records(with_models))
    assert with_models.client().post({"enabled": False, "until": "later"}, "/host-llm").json == stands(False)
    assert records(with_models, before) == [(None, {"enabled": False})]


def test_a_session_that_is_not_ours_is_recorded_as_none(with_models):
    """Source: seed: sid 只认桥自己签发过的会话, 外面来的头记 null; row L04."""
    ours, ended, before = with_models.session(), with_models.session(), len(records(with_models))
    ended.send("DELETE")
    for client, session in ((ours, ours.session), (ours, "forged"), (ended, ended.session), (ours, None)):
        client.session = session
        assert client.post({"enabled": True}, "/host-llm").status == 200
    assert [sid is not None for sid, _ in records(with_models, before)] == [True, False, False, False]


def test_turns_at_once_are_answered_one_by_one_and_recorded_once_each(with_models):
    """Source: issue, "What it must show"; row L04: 50 concurrent turns, with calls between them."""
    clients, before = [with_models.session() for _ in range(25)], len(records(with_models))
    start, faults, answers = threading.Barrier(25), [], []

    def turn(number: int) -> None:
        client = clients[number]
        start.wait(10)
        for enabled in (number % 2 == 0, number % 3 == 0):
            answer = client.post({"enabled": enabled}, "/host-llm")
            answers.append(answer.status)
            if answer.json != stands(enabled):
                faults.append((enabled, answer.json))
            if client.call("glob", pattern="a2mcp.json", path=str(with_models.home)).result["isError"]:
                faults.append("call")

    threads = [threading.Thread(target=turn, args=(number,)) for number in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert answers == [200] * 50
    found = records(with_models, before)
    assert sorted(sid for sid, _ in found) == sorted(client.session for client in clients for _ in range(2))
    assert sum(args["enabled"] for _, args in found) == 13 + 9
    last = clients[0].post({"enabled": True}, "/host-llm").json
    assert last == stands(True)


def test_a_provider_out_of_reach_refuses_the_turn_with_the_reason(with_models):
    """Source: seed, "拒绝情形": 500, `error` is the reason; nothing is changed, and it is on record."""
    client, before = with_models.session(), len(records(with_models))
    put(with_models.home, BEYOND)
    answer = client.post({"enabled": False}, "/host-llm")
    assert (answer.status, answer.json) == (500, {"error": REASON})
    assert client.post({"enabled": True}, "/host-llm").json == stands(True)
    assert records(with_models, before) == [
        (client.session, {"enabled": False, "error": REASON}),
        (client.session, {"enabled": True}),
    ]
    put(with_models.home, FINE)
    assert client.post({"enabled": False}, "/host-llm").json == stands(False)


def test_what_is_known_later_and_out_of_reach_makes_it_degraded(denying):
    """Source: seed, "降级状态": still on, only the tripwire holds; row L05."""
    client, before, said = denying.session(), len(records(denying)), len(denying.stderr)
    put(denying.home, BEYOND)
    assert client.post({"enabled": False}, "/host-llm").json == stands(False, degraded=True)
    put(denying.home, "providers: [\n")
    assert client.post({"enabled": False}, "/host-llm").json == stands(False, degraded=True)
    assert "the models are as they were: " in denying.stderr[said:]
    assert records(denying, before) == [(client.session, {"enabled": False, "error": REASON})] * 2
    put(denying.home, FINE + "# mended\n")
    assert client.post({"enabled": False}, "/host-llm").json == stands(False)
    assert client.post({"enabled": True}, "/host-llm").json == stands(True)
    assert client.post({"enabled": False}, "/host-llm").json == stands(False)


def test_the_setting_decides_the_start_and_nothing_of_the_switch_is_kept(denying):
    """Source: seed: 切换从不落盘, 重启回到操作员写下配置时的状态."""
    written = {path.name: path.read_bytes() for path in denying.home.glob("*.y*ml")}
    assert denying.client().post({"enabled": True}, "/host-llm").json == stands(True)
    assert json.loads((denying.home / "a2mcp.json").read_text())["host_llm"] == "deny"
    assert {path.name: path.read_bytes() for path in denying.home.glob("*.y*ml")} == written
    assert denying.stop() == 0
    before, said = len(records(denying)), len(denying.stderr)
    denying.start()
    until(lambda: "[a2mcp] takeover armed" in denying.stderr[said:], what="the takeover")
    assert records(denying, before) == []


def test_a_start_that_cannot_deny_says_so_and_serves(tmp_path):
    """Source: seed: refused at the start: recorded with sid null, on stderr, and the daemon tells the truth."""
    put(tmp_path / "home", BEYOND)
    with running(tmp_path / "home", settings={"host_llm": "deny"}) as daemon:
        until(lambda: f"[a2mcp] warning: {REASON}" in daemon.stderr, what="the warning")
        until(lambda: records(daemon), what="its record")
        assert records(daemon) == [(None, {"enabled": False, "error": REASON})]
        answer = daemon.client().post({"enabled": False}, "/host-llm")
        assert (answer.status, answer.json) == (500, {"error": REASON})
        assert daemon.client().post({"enabled": True}, "/host-llm").json == stands(True)


def test_status_the_command_line_and_metrics_show_the_switch_and_the_operator_turns_it(with_models):
    """Source: issue, item 5: `status`, the page and `a2mcp host-llm [on|off]` show and set it."""
    before = len(records(with_models))
    assert "host's model       p/x (allowed)" in with_models.cli("status").stdout
    assert with_models.cli("host-llm").stdout == "host_llm=allow denied=0 model=p/x\n"
    assert with_models.cli("host-llm", "off").stdout == "host_llm=deny denied=0 model=p/x\n"
    assert "host's model       p/x (denied)" in with_models.cli("status").stdout
    assert with_models.client().send("GET", "/metrics").body.count(b"\na2mcp_inference_allowed 0\n") == 1
    assert with_models.client().post({"enabled": True}, "/host-llm").json == stands(True)
    put(with_models.home, BEYOND)
    refused = with_models.cli("host-llm", "off")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (1, f"a2mcp: {REASON}")
    put(with_models.home, FINE + "# again\n")
    with_models.cli("host-llm", "off")
    put(with_models.home, BEYOND)
    assert with_models.cli("host-llm", "off").stdout == "host_llm=deny (tripwire only) denied=0 model=p/x\n"
    assert "(denied, tripwire only)" in with_models.cli("status").stdout
    assert [sid for sid, _ in records(with_models, before)] == [None] * 5


def test_a_switch_whose_actor_dies_stays_where_it_is_and_can_be_turned(tmp_path):
    """Ours, as for every actor: state outlives it."""
    put(tmp_path / "home", FINE)
    argv = [sys.executable, str(Path(__file__).parent / "serve_with_tools.py")]
    with running(tmp_path / "home", argv=argv) as daemon:
        client = daemon.session()
        assert client.post({"enabled": False}, "/host-llm").json == stands(False)
        client.call("kill", actor="Inference")
        until(lambda: "Inference" in daemon.stderr, what="the actor dies")
        assert daemon.cli("host-llm").stdout == "host_llm=deny denied=0 model=p/x\n"
        assert client.post({"enabled": True}, "/host-llm").json == stands(True)
