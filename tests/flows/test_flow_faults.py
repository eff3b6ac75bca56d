"""Actors and tools that die while the daemon serves: replaced, answered for, and loud when it is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import Daemon, running, until
from inflight import WITH_TOOLS, Later, ended, started, unpaired
from watchers import operator

if TYPE_CHECKING:
    from collections.abc import Iterator

ACTORS = ["Sessions", "AuditWriter", "Executor", "Gate", "Jobs"]


@pytest.fixture
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose actors a tool can kill."""
    with running(tmp_path_factory.mktemp("frail") / "home", argv=WITH_TOOLS) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with odd tools for the tests that leave it as it was."""
    with running(tmp_path_factory.mktemp("odd") / "home", argv=WITH_TOOLS) as daemon:
        yield daemon


@pytest.mark.parametrize("tool", ["exit", "exit-in-worker"])
@pytest.mark.parametrize(
    "kind", ["SystemExit", "KeyboardInterrupt", "MemoryError", "RecursionError", "GeneratorExit", "OSError"]
)
def test_a_tool_may_raise_anything(odd: Daemon, tool: str, kind: str) -> None:
    """B14: isError, and all actors live on."""
    client = odd.session()
    answer = client.call(tool, name=kind)

    assert answer.result["isError"] is True
    assert kind in answer.text
    assert client.call("echo", text="on").text == "on"
    assert "is started again" not in odd.stderr


@pytest.mark.parametrize("actor", ACTORS)
def test_an_actor_that_dies_is_replaced_and_everything_goes_on(frail: Daemon, actor: str) -> None:
    """Issue, "Actors": a killed actor is replaced and the daemon goes on serving."""
    client, other = frail.session(), frail.session()
    running_call = Later(lambda: other.call("bash", command="until [ -e go ]; do sleep 0.02; done; echo done"))
    until(lambda: started(frail, "bash"), what="the start")

    assert client.call("kill", actor=actor).text == "poisoned"
    until(lambda: f"{actor} died and is started again" in frail.stderr, what="the replacement")

    frail.alive()
    for number in range(20):
        assert client.call("echo", text=str(number)).text == str(number)
    assert "new" in client.call("bash", command="echo new").text
    assert client.call("jobs", action="list").result["isError"] is False
    assert operator(frail, "GET", "/status")[1]["audit"]["failures"] == 0
    (frail.home / "go").touch()
    assert "done" in running_call.result().text
    assert frail.stop() == 0
    assert unpaired(frail.audit()) == set()


def test_actors_that_die_under_load_lose_no_call(frail: Daemon) -> None:
    """Issue, "Actors": every path must complete its exchange."""
    clients = [frail.session() for _ in range(8)]

    def work(index: int) -> list[str]:
        return [clients[index].call("echo", text=f"{index}/{number}").text for number in range(60)]

    calls = [Later(lambda index=index: work(index)) for index in range(8)]
    assassin = frail.session()
    for actor in ACTORS:
        assassin.call("kill", actor=actor)

    assert [call.result() for call in calls] == [[f"{i}/{n}" for n in range(60)] for i in range(8)]
    until(lambda: frail.stderr.count("is started again") == len(ACTORS), what="five replacements")
    assert len(ended(frail, "echo")) == 480
    assert frail.stop() == 0
    assert unpaired(frail.audit()) == set()


@pytest.mark.parametrize("actor", ["Sessions", "Jobs", "Supervisor"])
def test_too_many_deaths_are_a_loud_end(frail: Daemon, actor: str) -> None:
    """Issue, "Actors": restart with an intensity limit, then a loud exit."""
    client = frail.session()
    hanging = frail.session()
    waiting = Later(lambda: hanging.call("hang"))
    job = client.call("bash", command="while :; do sleep 0.1; done", wait=0.1)
    assert job.result["isError"] is False
    children = [fact["pid"] for fact in operator(frail, "GET", "/jobs")[1] if fact["state"] == "running"]
    assert children
    client.call("kill", actor=actor, times=6)

    assert frail.process.wait(15) == 1
    assert "the daemon ends" in frail.stderr
    assert actor in frail.stderr
    assert not (frail.home / "endpoint.json").exists()
    assert waiting.failed or waiting.result().result["isError"] is True
    for pid in children:
        until(lambda pid=pid: not _runs(pid), what="the end of the job")


def _runs(pid: int) -> bool:
    import psutil

    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_tools_come_and_go_while_it_runs(odd: Daemon) -> None:
    """Issue, "Tools": a tool that is registered or dropped at run time appears or disappears."""
    client, other = odd.session(), odd.session()

    def names() -> list[str]:
        return [tool["name"] for tool in other.ask("tools/list").result["tools"]]

    unknown = other.call("visitor", text="hello")
    assert "visitor" not in names()
    client.call("register", name="visitor")
    assert names().count("visitor") == 1
    assert other.call("visitor", text="hello").text == "hello"
    assert client.call("register", name="visitor").result["isError"] is True, "the name is taken"
    client.call("drop", name="visitor")
    assert "visitor" not in names()
    gone = other.call("visitor", text="hello")

    assert gone.result == unknown.result


@pytest.mark.parametrize(
    "name", ["nosuch", "Echo", "echo ", "xd://echo", "mcp__a2mcp__echo", "local/echo", "", "é" * 9]
)
def test_every_name_that_is_not_listed_gets_the_one_text(odd: Daemon, name: str) -> None:
    """Seed, "tools/call": not in the list, an alias, an address."""
    answer = odd.session().call(name, text="x")

    assert answer.status == 200
    assert answer.result["isError"] is True
    assert "is not exposed. Call tools/list for the names." in answer.text
