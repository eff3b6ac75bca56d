"""Connections as a peer experiences them: kept, pipelined, half closed, left, slow, and very many."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import struct
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import wire
from edge import SESSION, TOKEN, Edge, edge
from harness import Daemon, until

from a2mcp.http.server import channel as channels

if TYPE_CHECKING:
    from collections.abc import Iterator


DRIP_S = 0.01
"""Between two bytes of who drips; without a pause the test would need a processor for itself."""


@pytest.fixture(autouse=True)
def _alive_afterwards(shared_daemon: Daemon) -> Iterator[None]:
    yield
    shared_daemon.alive()
    assert "Traceback" not in shared_daemon.stderr
    assert "uncaptured" not in shared_daemon.stderr


def _hold(request_id: int) -> bytes:
    return wire.post(wire.message("tools/call", request_id, {"name": "hold"}), TOKEN, session=SESSION)


def _now(request_id: int, **arguments: str) -> bytes:
    call = {"name": "now", "arguments": arguments}
    return wire.post(wire.message("tools/call", request_id, call), TOKEN, session=SESSION)


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


# --- kept and pipelined -----------------------------------------------------------------------------------------


def test_a_connection_is_kept_for_the_next_request(shared_daemon: Daemon) -> None:
    """Issue, HTTP edge: keep-alive, on errors that come from the app too."""
    session = shared_daemon.session().session
    bodies = [wire.message("ping"), b"{", b"[]", wire.message("nothing"), wire.call("no-such"), wire.message("ping")]

    with wire.Line(shared_daemon.port) as line:
        for body in bodies * 5:
            line.send(wire.post(body, shared_daemon.token, session=session))
            assert "connection" not in line.answer().headers

        line.send(wire.post(bodies[0], shared_daemon.token, "Connection: close", session=session))
        assert line.answer().headers["connection"] == "close"
        assert line.ended()


def test_slow_and_fast_calls_on_one_connection_are_answered_in_order() -> None:
    """Issue, HTTP edge: pipelining order; the second is not even started before the first is answered."""
    with edge() as served, wire.Line(served.port) as line:
        line.send(_hold(1) + _now(2) + _now(3) + _hold(4) + _now(5))
        served.front.wait_for(b"1")
        assert line.silent(0.05)
        assert served.front.called == [(b"1", 0)]

        assert served.front.release(b"1") is True
        assert [answer.json["id"] for answer in line.answers(3)] == [1, 2, 3]
        served.front.wait_for(b"4")
        served.front.release(b"4")
        assert [answer.json["id"] for answer in line.answers(2)] == [4, 5]


def test_the_order_holds_however_the_bytes_are_cut() -> None:
    """Issue, HTTP edge: slow and fast calls mixed, split at every byte."""
    data = _hold(1) + _now(2)
    with edge() as served, wire.Line(served.port) as line:
        for cut in range(1, len(data)):
            wire.dribble(line.socket, [data[:cut], data[cut:]], 0.0005)
            served.front.wait_for(b"1")
            served.front.release(b"1")
            assert [answer.json["id"] for answer in line.answers(2)] == [1, 2], cut


def test_a_response_and_the_next_request_may_cross(shared_daemon: Daemon) -> None:
    """Issue, HTTP edge: the next-request race; many rapid windows on many connections, none lost, none out of order."""
    session = shared_daemon.session().session
    failures: list[str] = []

    def hurry(width: int) -> None:
        with wire.Line(shared_daemon.port) as line:
            for start in range(0, 300, width):
                ids = list(range(start, start + width))
                line.send(
                    b"".join(wire.post(wire.message("ping", n), shared_daemon.token, session=session) for n in ids)
                )
                got = [answer.json["id"] for answer in line.answers(width)]
                if got != ids:
                    failures.append(f"{got} != {ids}")

    threads = [threading.Thread(target=hurry, args=(width,)) for width in (1, 1, 2, 3, 4, 5, 6, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


def test_a_queue_behind_a_slow_call_is_bounded_and_then_served() -> None:
    """Ours: what a client may queue behind a call that hangs is a few requests; the rest stays in its socket."""
    with edge() as served, wire.Line(served.port, seconds=20) as line:
        line.send(_hold(0))
        served.front.wait_for(b"0")
        # Six megabytes: more than both sockets hold.
        queue = b"".join(_now(n, text="x" * 3000) for n in range(1, 2001))
        sender = threading.Thread(target=line.send, args=(queue,))
        sender.start()
        (held,) = served.server.active_channels.values()
        until(lambda: not held.readable(), what="reading stops")
        queued = len(held.requests)
        served.front.release(b"0")
        ids = [answer.json["id"] for answer in line.answers(2001)]
        sender.join(10)

    assert queued <= channels.LOOKAHEAD + 1
    assert ids == list(range(2001))


def test_a_peer_that_does_not_read_piles_nothing_up() -> None:
    """Section 0 row 8, and ours: what it has asked for already is not even started before it takes the answer before."""
    with edge() as served, wire.Line(served.port, seconds=20) as line:
        served.front.catalog = lambda: b'"' + b"x" * 8_000_000 + b'"'  # type: ignore[method-assign]
        line.send(wire.post(wire.message("tools/list", 0), TOKEN, session=SESSION) + b"".join(map(_now, range(1, 301))))
        (mine,) = until(lambda: list(served.server.active_channels.values()), what="the connection is there")
        until(lambda: mine._held, what="the next one is held back")

        assert served.front.called == []
        assert len(mine.requests) <= channels.LOOKAHEAD + 1
        assert [answer.json["id"] for answer in line.answers(301)] == list(range(301))


def test_an_answered_request_is_let_go_of_at_once() -> None:
    """Ours: nothing of it waits for the collector of cycles, which would keep hundreds of answers in memory."""
    gc.disable()
    try:
        with edge() as served, wire.Line(served.port) as line:
            line.send(_hold(1))
            served.front.wait_for(b"1")
            (mine,) = served.server.active_channels.values()
            request = weakref.ref(mine.requests[0])
            served.front.release(b"1")
            assert line.answer().status == 200
            until(lambda: request() is None, what="it is gone", seconds=2)
    finally:
        gc.enable()


# --- half closed and left -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_a_client_that_ends_its_side_gets_its_answers(shared_daemon: Daemon, count: int) -> None:
    """Issue, HTTP edge: half-close, as ``nc -N`` does; the connection ends right after the last answer."""
    session = shared_daemon.session().session
    began = time.monotonic()

    said = shared_daemon.raw(
        wire.post(wire.call("bash", command="echo hi"), shared_daemon.token, session=session) * count, half_close=True
    )

    assert [answer.result["isError"] for answer in wire.split_answers(said)] == [False] * count
    assert time.monotonic() - began < 1.5


def test_half_a_request_and_then_the_end_is_just_an_end(shared_daemon: Daemon) -> None:
    """Bad input: half-sent requests, at every length."""
    data = wire.post(wire.INITIALIZE, shared_daemon.token)

    for cut in range(0, len(data), 7):
        assert shared_daemon.raw(data[:cut], half_close=True) == b""


@pytest.mark.parametrize("leave", [socket.socket.close, _reset], ids=["close", "reset"])
def test_leaving_frees_the_socket_and_not_the_call(shared_daemon: Daemon, tmp_path: Path, leave: object) -> None:
    """Row B13: the client goes, its socket is freed within about 3 s, the command runs to its end, done is written."""
    assert callable(leave)
    session = shared_daemon.session().session
    gate = tmp_path / "gate"
    before = _sockets(shared_daemon)
    command = f"touch {gate}.on; until [ -e {gate} ]; do sleep 0.02; done; touch {gate}.end"
    line = wire.Line(shared_daemon.port)
    line.send(wire.post(wire.call("bash", command=command), shared_daemon.token, session=session))
    until(gate.with_suffix(".on").exists, what="the command runs")

    leave(line.socket)
    until(lambda: _sockets(shared_daemon) <= before, what="the socket is freed", seconds=4)
    gate.touch()

    until(gate.with_suffix(".end").exists, what="the command ends")
    until(lambda: [r["phase"] for r in shared_daemon.audit() if r["sid"] == session] == ["start", "done"], what="done")


def _sockets(daemon: Daemon) -> int:
    links = []
    for descriptor in Path(f"/proc/{daemon.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(descriptor.readlink().name)
    return sum(link.startswith("socket:") for link in links)


def test_an_answer_for_a_peer_that_has_gone_is_dropped_quietly(caplog: pytest.LogCaptureFixture) -> None:
    """Issue, HTTP edge: disconnects while parked; completing later harms nobody, and says that it was the first."""
    with edge() as served:
        for leave in (socket.socket.close, _reset):
            line = wire.Line(served.port)
            line.send(_hold(1))
            served.front.wait_for(b"1")
            leave(line.socket)
            until(lambda: not served.connections, what="the connection ends", seconds=5)
            assert served.front.release(b"1") is True

        with wire.Line(served.port) as line:
            line.send(_now(2))
            assert line.answer().json["id"] == 2

    assert caplog.records == []


def test_an_answer_that_races_with_the_peer_leaving_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Issue, HTTP edge: completion on another thread while the loop closes."""
    with edge() as served:
        for number in range(150):
            line = wire.Line(served.port)
            line.send(_hold(number) + _now(number))
            served.front.wait_for(b"%d" % number)
            closing = threading.Thread(target=_reset, args=(line.socket,))
            closing.start()
            served.front.release(b"%d" % number)
            closing.join()
        until(lambda: not served.connections, what="all end", seconds=6)

    assert caplog.records == []


# --- slow ---------------------------------------------------------------------------------------------------------


def test_a_head_that_drips_is_cut_by_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row H09: the deadline is on the whole head, not on each byte; the client is told 408."""
    monkeypatch.setattr(channels, "HEADER_DEADLINE_S", 1.0)
    with edge() as served, wire.Line(served.port) as line:
        began = time.monotonic()
        stop = threading.Event()

        def drip() -> None:
            line.send(b"POST / HTTP/1.1\r\n")
            while not stop.wait(0.1):
                with contextlib.suppress(OSError):
                    line.send(b"X: y\r\n")

        dripping = threading.Thread(target=drip)
        dripping.start()
        answer = line.answer()
        stop.set()
        dripping.join()

    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert answer.error["message"] == "the request came too slowly"
    assert 0.9 < time.monotonic() - began < 4


def test_a_body_that_drips_is_cut_and_a_slow_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row H09: a minimum rate after a time of grace."""
    monkeypatch.setattr(channels, "BODY_GRACE_S", 1.0)
    body = wire.message("tools/call", 1, {"name": "now", "arguments": "x" * 20_000})
    whole = wire.post(body, TOKEN, session=SESSION)
    with edge() as served, wire.Line(served.port) as slow, wire.Line(served.port) as dripping:
        dripping.send(whole[:-2000])
        dripping.send(b"x")
        sent = 2000
        slow.send(whole[:sent])
        pause = threading.Event()
        while sent < len(whole):
            pause.wait(0.2)
            slow.send(whole[sent : sent + 1500])
            sent += 1500
        assert slow.answer().status == 200

        monkeypatch.setattr(channels, "BODY_BYTES_PER_S", 1 << 20)
        assert dripping.answer().status == 408


def test_many_drippers_leave_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row H09: limit-10 drippers; a good client pings in under a second throughout; the drippers are cut."""
    monkeypatch.setattr(channels, "HEADER_DEADLINE_S", 1.0)
    with edge(connections=60) as served:
        dripping = [wire.Line(served.port) for _ in range(50)]
        for line in dripping:
            line.send(b"POST / HTTP/1.1\r\n")
        waits = []
        with wire.Line(served.port) as good:
            until(lambda: served.connections == 51, what="all are there")
            deadline = time.monotonic() + 10
            while served.connections > 1 and time.monotonic() < deadline:
                for line in dripping:
                    with contextlib.suppress(OSError):
                        line.send(b"X")
                began = time.monotonic()
                good.send(_now(1))
                assert good.answer().status == 200
                waits.append(time.monotonic() - began)
                time.sleep(DRIP_S)
        for line in dripping:
            line.socket.close()

    assert max(waits) < 1.0
    assert time.monotonic() < deadline, "the drippers were never cut"


def test_idle_connections_are_closed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a connection nobody uses is given back; one that waits for its answer is not idle."""
    monkeypatch.setattr(channels, "IDLE_S", 0.2)
    with edge() as served, wire.Line(served.port) as idle, wire.Line(served.port) as waiting:
        waiting.send(_hold(1))
        served.front.wait_for(b"1")
        assert idle.ended()
        assert waiting.silent(1.2)
        served.front.release(b"1")
        assert waiting.answer().status == 200


def test_time_spent_waiting_for_an_answer_is_not_held_against_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: while the queue is full the peer is not read from, so its deadline starts when it is again."""
    monkeypatch.setattr(channels, "HEADER_DEADLINE_S", 1.5)
    with edge() as served, wire.Line(served.port) as line:
        line.send(_hold(1) + _now(2)[:-20])
        served.front.wait_for(b"1")
        assert line.silent(1.8)
        served.front.release(b"1")
        assert line.answer().json["id"] == 1
        assert line.silent(0.2)
        line.send(_now(2)[-20:])
        assert line.answer().json["id"] == 2


def test_a_response_larger_than_every_buffer_arrives_whole() -> None:
    """Ours: what the socket does not take at once is sent when it can be; the queue goes on afterwards."""
    catalog = b"[" + b'"x",' * 4_000_000 + b"0]"
    with edge() as served, wire.Line(served.port, seconds=30) as line:
        served.front.catalog = lambda: catalog  # type: ignore[method-assign]
        line.send(wire.post(wire.message("tools/list"), TOKEN, session=SESSION) + _now(2))
        (mine,) = until(lambda: list(served.server.active_channels.values()), what="the connection is there")
        until(lambda: mine.outbox.size, what="some is left over")
        first, second = line.answers(2)

    assert len(first.body) == len(catalog) + len(b'{"jsonrpc":"2.0","id":1,"result":{"tools":}}')
    assert second.json["id"] == 2


def test_a_peer_that_never_reads_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours, after section 0 row 8: a stalled response holds memory, so it has an end."""
    monkeypatch.setattr(channels, "SEND_STALL_S", 0.5)
    with edge() as served, wire.Line(served.port) as line:
        served.front.catalog = lambda: b'"' + b"x" * 30_000_000 + b'"'  # type: ignore[method-assign]
        line.send(wire.post(wire.message("tools/list"), TOKEN, session=SESSION))
        until(lambda: served.connections, what="the connection is there")
        until(lambda: not served.connections, what="it is cut", seconds=8)


# --- many ---------------------------------------------------------------------------------------------------------


def test_urgent_data_does_not_spin_the_loop(shared_daemon: Daemon) -> None:
    """Ours: a byte sent out of band, by anybody, stays ready for ever to those who watch for it."""
    with wire.Line(shared_daemon.port) as line:
        line.socket.send(b"!", socket.MSG_OOB)
        line.send(wire.post(wire.INITIALIZE, shared_daemon.token))
        assert line.answer().status == 200
        line.socket.send(b"!", socket.MSG_OOB)

        assert shared_daemon.busy_share(seconds=0.6) < 0.3
        line.send(wire.post(wire.INITIALIZE, shared_daemon.token))
        assert line.answer().status == 200


def test_crowds_that_come_and_go_leave_nothing(shared_daemon: Daemon) -> None:
    """Section 3, "alive": descriptors and memory back where they were."""
    before = shared_daemon.descriptors
    for round_ in range(300):
        line = wire.Line(shared_daemon.port)
        if round_ % 3:
            line.send(wire.post(wire.INITIALIZE, shared_daemon.token)[: 1 if round_ % 3 == 1 else None])
        if round_ % 2:
            _reset(line.socket)
        line.socket.close()

    until(lambda: shared_daemon.descriptors <= before + 3, what="descriptors given back")


def test_a_draining_server_refuses_new_connections_and_finishes_what_it_has() -> None:
    """Issue, HTTP edge: the listener closes at once, what is in flight finishes and is told that it is the last."""
    with edge() as served, wire.Line(served.port) as waiting, wire.Line(served.port) as idle:
        waiting.send(_hold(1) + _now(2))
        served.front.wait_for(b"1")
        served.server._on_tick = served.server.drain
        served.server.wake()
        assert idle.ended()
        with pytest.raises(ConnectionRefusedError):
            wire.Line(served.port)
        assert not served.server.quiet
        served.front.release(b"1")
        answer = waiting.answer()
        assert (answer.json["id"], answer.headers["connection"]) == (1, "close")
        assert waiting.ended()
        until(lambda: served.server.quiet, what="quiet")


def test_the_edge_of_these_tests_is_the_edge_of_the_daemon(shared_daemon: Daemon) -> None:
    """Ours: the helper answers as the daemon does, save for sessions."""
    with edge() as served:
        seen = [_shape(served.port, TOKEN), _shape(shared_daemon.port, shared_daemon.token)]

    assert isinstance(served, Edge)
    assert seen[0] == seen[1]


def _shape(port: int, token: str) -> tuple[int, list[str], object]:
    with wire.Line(port) as line:
        line.send(wire.post(wire.INITIALIZE, token))
        answer = line.answer()
    return answer.status, sorted(answer.headers), json.loads(answer.body)


def test_a_stream_nobody_reads_is_cut_although_something_is_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: only bytes that go out prove that the peer reads; what is queued for it does not."""
    monkeypatch.setattr(channels, "SEND_STALL_S", 1.0)
    monkeypatch.setattr(channels, "STREAM_BYTES", 1 << 40)
    with edge() as served, wire.Line(served.port) as line:
        line.send(_hold(1))
        served.front.wait_for(b"1")
        (mine,) = served.server.active_channels.values()
        mine.open_stream(mine.requests[0])
        mine.push(mine.requests[0], b"x" * 30_000_000)
        deadline = time.monotonic() + 10
        pause = threading.Event()
        while served.connections and time.monotonic() < deadline:
            with contextlib.suppress(IndexError):
                mine.push(mine.requests[0], b"x")
            pause.wait(0.05)

    assert time.monotonic() < deadline, "it was never cut"


def test_a_refusal_waits_for_its_turn_and_is_the_last() -> None:
    """Row H05: [slow call][bad request][good call]: two answers in order, and the third is never looked at."""
    bad = wire.post(b"", TOKEN, "Content-Length: 0")
    with edge() as served, wire.Line(served.port) as line:
        line.send(_hold(1) + bad + _now(3))
        served.front.wait_for(b"1")
        assert line.silent(0.1)
        served.front.release(b"1")
        first, second = line.answers(2)

        assert (first.json["id"], second.status) == (1, 400)
        assert line.ended()
        assert served.front.called == [(b"1", 0)]
