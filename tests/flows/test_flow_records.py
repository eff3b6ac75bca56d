"""What a client may rely on in the log: both lines are there when it has the answer, paired by an id of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import running, until
from inflight import WITH_TOOLS, Later, ended, started

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("sync", [False, True])
def test_both_lines_are_there_when_the_answer_is(tmp_path: Path, sync: bool) -> None:
    """U11: response received, log read immediately, always."""
    with running(tmp_path / "home", argv=WITH_TOOLS, settings={"audit": {"sync": sync}}) as daemon:
        clients = [daemon.session() for _ in range(3)]
        log = daemon.home / "a2mcp.log"
        wrong: list[str] = []

        def work(number: int) -> None:
            for turn in range(100):
                text = f"{number}-{turn}"
                clients[number].call("echo", text=text)
                if log.read_bytes().count(f'"{text}"'.encode()) != 2:
                    wrong.append(text)

        for worker in [Later(lambda number=number: work(number)) for number in range(3)]:
            worker.result()

        assert wrong == []


def test_a_call_ends_normally_when_its_session_is_evicted(tmp_path: Path) -> None:
    """S04: done carries its session; a later request gets 404. S07: and so when it is ended."""
    with running(tmp_path / "home", settings={"limits": {"sessions": 2}}) as daemon:
        evicted, deleted = daemon.session(), daemon.session()
        command = "until [ -e go ]; do sleep 0.02; done; echo through"
        calls = [Later(lambda client=client: client.call("bash", command=command)) for client in (evicted, deleted)]
        until(lambda: len(started(daemon, "bash")) == 2, what="two starts")
        other = daemon.client()
        other.session = deleted.session
        assert other.send("DELETE").status == 204
        for _ in range(3):
            daemon.session()
        (daemon.home / "go").touch()

        answers = [call.result() for call in calls]
        assert ["through" in answer.text for answer in answers] == [True, True]
        assert {record["sid"] for record in ended(daemon, "bash")} == {evicted.session, deleted.session}
        assert [record["isError"] for record in ended(daemon, "bash")] == [False, False]
        assert evicted.ask("ping").status == 404
        assert deleted.ask("ping").status == 404
