"""How many may be connected: strangers among themselves, a full house, and a machine without descriptors."""

from __future__ import annotations

import resource
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import wire
from edge import SESSION, TOKEN, edge
from harness import Daemon, running, until

from a2mcp.http.server import channel as channels

if TYPE_CHECKING:
    from collections.abc import Iterator


def _hold(request_id: int) -> bytes:
    return wire.post(wire.message("tools/call", request_id, {"name": "hold"}), TOKEN, session=SESSION)


def _now(request_id: int) -> bytes:
    return wire.post(wire.message("tools/call", request_id, {"name": "now"}), TOKEN, session=SESSION)


def _idle_share(pid: int, *, seconds: float = 0.6) -> float:
    """The share of one processor that a process leaves alone over a while."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    threading.Event().wait(seconds)
    after = process.cpu_times()
    return 1 - (after.user + after.system - before.user - before.system) / seconds


# --- strangers ----------------------------------------------------------------------------------------------------


GUARDED = {"limits": {"unauthenticated": 5}}
"""Room for five strangers."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with room for five strangers, for those that count nothing."""
    with running(tmp_path_factory.mktemp("guarded") / "home", settings=GUARDED) as daemon:
        yield daemon
        daemon.alive()


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with room for five strangers that has seen none."""
    with running(tmp_path / "home", settings=GUARDED) as daemon:
        yield daemon
        daemon.alive()


def test_the_oldest_stranger_gives_way_to_the_next(guarded: Daemon) -> None:
    """Issue 5, section 6: a budget of their own; whoever has the token shows it at once, so the oldest has none."""
    strangers = [wire.Line(guarded.port) for _ in range(7)]

    assert [line.ended() for line in strangers[:2]] == [True, True]
    for line in strangers[2:]:
        line.send(wire.post(wire.INITIALIZE, guarded.token))
        assert line.answer().status == 200
    for line in strangers:
        line.socket.close()


def test_whoever_has_shown_the_token_is_not_one_of_them(counted: Daemon) -> None:
    """Issue 5, section 6: strangers cannot use up the connections of callers, whatever they send."""
    callers = [wire.Line(counted.port) for _ in range(5)]
    for line in callers:
        line.send(wire.post(wire.INITIALIZE, counted.token))
        assert line.answer().status == 200
    heads = (b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST / HTTP/1.1\r\nX:")
    strangers = [wire.Line(counted.port) for _ in range(40)]
    for number, line in enumerate(strangers):
        line.socket.setblocking(False)
        try:
            line.send(heads[number % len(heads)])
        except ConnectionError:
            assert number < len(strangers) - 5
    late = counted.session(timeout=1.0)

    for line in callers:
        line.send(wire.post(wire.INITIALIZE, counted.token))
        assert line.answer().status == 200
    assert late.ask("ping").result == {}
    counts = late.send("GET", "/metrics").body.decode().splitlines()
    # The late one was the sixth stranger for a moment.
    assert {"a2mcp_connections 10", "a2mcp_connections_unauthenticated 4"} <= set(counts)
    assert "a2mcp_connections_sent_away_total 36" in counts
    for line in (*callers, *strangers):
        line.socket.close()
    assert counted.stderr.splitlines() == [
        "[a2mcp] warning: too many connections have not shown the token; the oldest of them are closed"
    ]


def test_a_flood_of_strangers_keeps_nobody_out(tmp_path: Path) -> None:
    """P4: new callers get in, and are answered within a second each, while strangers come as fast as they can."""
    over = threading.Event()
    with running(tmp_path / "home", settings={"limits": {"unauthenticated": 300}}) as daemon:

        def flood() -> None:
            lines: list[wire.Line] = []
            while not over.is_set():
                lines.append(wire.Line(daemon.port))
                if len(lines) > 400:
                    lines.pop(0).socket.close()
            for line in lines:
                line.socket.close()

        flooding = threading.Thread(target=flood)
        flooding.start()
        try:
            until(lambda: "too many connections have not shown the token" in daemon.stderr, what="they are too many")
            for _ in range(20):
                daemon.alive()
        finally:
            over.set()
            flooding.join(10)
        daemon.alive()
        assert daemon.stderr.count("\n") == 1


def test_who_is_answered_without_the_token_is_left_alone() -> None:
    """Ours: the operator's page has streams, and no token; whoever is being answered was let in by other means."""
    with edge(strangers=2) as served, wire.Line(served.port) as caller:
        caller.send(_hold(1))
        served.front.wait_for(b"1")
        (mine,) = served.server.active_channels.values()
        served.server.connections.came(mine)  # As if it had not been the token that let it in.
        with wire.Line(served.port) as first, wire.Line(served.port) as second:
            assert first.ended()
            served.front.release(b"1")
            assert caller.answer().status == 200
            second.send(_now(2))
            assert second.answer().status == 200


def test_nobody_can_send_a_large_body_without_the_token(guarded: Daemon) -> None:
    """P1: where anybody is let in, too, a body is not read beyond what the operator's page may send."""
    for path in ("/healthz", "/readyz", "/metrics", "/ui/"):
        (answer,) = wire.split_answers(
            guarded.raw(wire.head(f"GET {path} HTTP/1.1", "Host: localhost", "Content-Length: 65537"))
        )
        assert answer.status == 413, path


# --- a full house ---------------------------------------------------------------------------------------------------


def test_when_all_connections_are_taken_the_ones_nobody_uses_give_way(tmp_path: Path) -> None:
    """Issue 5, P4: kept connections of one client keep no other out; those that were used least go first."""
    with running(tmp_path / "home", settings={"limits": {"connections": 16}}) as daemon:
        lines = []
        for _ in range(15):
            lines.append(wire.Line(daemon.port))
            lines[-1].send(wire.post(wire.INITIALIZE, daemon.token))
            assert lines[-1].answer().status == 200
        lines[0].send(wire.post(wire.INITIALIZE, daemon.token))
        assert lines[0].answer().status == 200

        for _ in range(4):
            line = wire.Line(daemon.port, seconds=2)
            line.send(wire.post(wire.INITIALIZE, daemon.token))
            assert line.answer().status == 200
            lines.append(line)

        assert [line.ended() for line in lines[1:3]] == [True, True]
        lines[0].send(wire.post(wire.INITIALIZE, daemon.token))
        assert lines[0].answer().status == 200
        for line in lines:
            line.socket.close()


def test_a_transfer_that_stands_still_gives_way_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5, P4: nobody waits for a body that does not come, nor for an answer that is not read."""
    monkeypatch.setattr(channels, "STALLED_S", 0.2)
    with edge(connections=3) as served, wire.Line(served.port) as writer, wire.Line(served.port) as reader:
        served.front.catalog = lambda: b'"' + b"x" * 30_000_000 + b'"'  # type: ignore[method-assign]
        writer.send(wire.post(b"x" * 1000, TOKEN, session=SESSION)[:-500])
        reader.send(wire.post(wire.message("tools/list"), TOKEN, session=SESSION))
        for _ in range(2):
            with wire.Line(served.port) as late:
                late.send(_hold(1))
                served.front.wait_for(b"1")
                with wire.Line(served.port) as next_one:
                    next_one.send(_now(2))
                    assert next_one.answer().status == 200
                served.front.release(b"1")
                assert late.answer().status == 200

        assert writer.ended()


def test_while_all_connections_are_in_use_the_next_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 2, HTTP edge: accepting pauses without spinning, and goes on as soon as there is room."""
    with edge(connections=2) as served:
        lines = [wire.Line(served.port) for _ in range(2)]
        for number, line in enumerate(lines):
            line.send(_hold(number))
            served.front.wait_for(b"%d" % number)
        late = wire.Line(served.port)
        late.send(_now(9))
        turns: list[float] = []
        wait = served.server._poller.wait
        monkeypatch.setattr(served.server._poller, "wait", lambda seconds: (turns.append(seconds), wait(seconds))[1])

        assert late.silent(0.8)
        assert len(turns) < 20
        lines[0].socket.close()
        assert late.answer().json["id"] == 9
        served.front.release(b"1")
        assert lines[1].answer().json["id"] == 1
        for line in (late, lines[1]):
            line.socket.close()


# --- no descriptors -------------------------------------------------------------------------------------------------


def test_without_descriptors_accepting_pauses_and_recovers(tmp_path: Path) -> None:
    """Section 0 row 9, row Z06: EMFILE neither spins nor floods the log, and those who are connected are served."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("prlimit is Linux's")
    with running(tmp_path / "home") as daemon:
        pid = daemon.process.pid
        client = daemon.session()
        highest = max(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir())
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 3, limits[1]))

        lines = [wire.Line(daemon.port) for _ in range(12)]
        lines[-1].send(wire.post(wire.INITIALIZE, daemon.token))
        until(lambda: "cannot accept connections for now" in daemon.stderr, what="the pause is told")

        # Longer than two pauses: the second and third of them say nothing.
        assert _idle_share(pid, seconds=2.2) > 0.7
        assert client.ask("ping").result == {}
        assert daemon.stderr.count("cannot accept connections") == 1
        assert daemon.stderr.count("\n") <= 5
        for line in lines[:6]:
            line.socket.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        assert lines[-1].answer().status == 200
        for line in lines[6:]:
            line.socket.close()
        daemon.alive()
