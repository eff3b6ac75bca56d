"""The loop that drives all clients of a run in one thread, and counts what they met.

Owns time: warm-up, the measured window, think time, time-outs, and the few seconds after the end in which calls that
are under way may still arrive, so that the slowest of them are not left out of the percentiles.
"""

from __future__ import annotations

import heapq
import itertools
import select
import time
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.bench.client import Client, kind_of
from a2mcp.bench.histogram import Histogram
from a2mcp.bench.messages import FIRST_ID
from a2mcp.bench.plan import order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.bench.messages import Template
    from a2mcp.bench.plan import Plan

_IN: Final = select.POLLIN
_OUT: Final = select.POLLOUT
_TICK: Final = 0.1
"""Seconds between two looks at time-outs and two reports of progress."""
_BACKOFF: Final = 0.05
"""Seconds a client waits after a lost connection: a dead server must not be hammered."""
_DRAIN: Final = 2.0
"""Seconds after the end in which replies still count as latencies."""


class Progress(msgspec.Struct, frozen=True):
    """How far a run is; ``share`` goes from 0 to 1."""

    share: float
    warming_up: bool
    calls: int
    errors: int
    seconds: float


class Tally(msgspec.Struct):
    """What a run counted. ``by_step`` has one histogram for each step of the mix, of good replies only."""

    by_step: list[Histogram]
    errors: dict[str, int] = msgspec.field(default_factory=dict)
    in_window: int = 0
    """Good replies that came before the end, those that the rate is made of."""
    failed: int = 0
    unfinished: int = 0
    seconds: float = 0.0
    cpu_share: float = 0.0
    """Of one core, by this thread."""
    gave_up: bool = False
    """So many connections were lost in a row that going on was pointless."""


def _poller() -> tuple[select.epoll | select.poll, Callable[[float], list[tuple[int, int]]]]:
    """The fastest way this system has to wait, and how to wait some seconds with it.

    NOTE: ``selectors`` would do, at twice the cost per event.
    """
    if hasattr(select, "epoll"):
        fast = select.epoll()
        return fast, fast.poll
    plain = select.poll()
    return plain, lambda seconds: plain.poll(seconds * 1000)


class Load:
    """One run. Use it once: ``run`` sends, waits and counts until the plan is fulfilled."""

    def __init__(self, plan: Plan, templates: Sequence[Template], progress: Callable[[Progress], None]) -> None:
        self._plan = plan
        self._templates = templates
        self._progress = progress
        self._tally = Tally([Histogram() for _ in templates])
        self._step_of = {id(template): index for index, template in enumerate(templates)}
        self._sequence = itertools.cycle(order(plan.steps))
        self._idents = itertools.count(FIRST_ID)
        self._clients = [Client(plan.address) for _ in range(plan.clients)]
        self._by_fd: dict[int, Client] = {}
        self._waiting: list[tuple[float, int, Client]] = []
        self._ties = itertools.count()
        self._think = plan.think_ms / 1000
        self._left = plan.calls
        self._streak = 0
        self._start = self._end = self._tick_at = 0.0
        self._last_done = 0.0
        self._cpu_start: tuple[float, float] | None = None
        self._poll, self._wait = _poller()

    def run(self) -> Tally:
        """Run until the plan is fulfilled, or Ctrl-C: then what was measured so far is the result."""
        begun = time.perf_counter()
        self._start = begun + self._plan.warmup
        self._end = self._start + self._plan.seconds if self._plan.calls is None else float("inf")
        try:
            for client in self._clients:
                self._open(client)
            self._loop()
        except KeyboardInterrupt:
            pass
        finally:
            self._settle(time.perf_counter())
        return self._tally

    def _loop(self) -> None:
        while True:
            for fd, mask in self._wait(self._patience(time.perf_counter())):
                self._on_event(self._by_fd[fd], mask)
            now = time.perf_counter()
            while self._waiting and self._waiting[0][0] <= now:
                self._resume(heapq.heappop(self._waiting)[2])
            if now >= self._tick_at and self._tick(now):
                return

    def _patience(self, now: float) -> float:
        until = min(self._tick_at, self._waiting[0][0]) if self._waiting else self._tick_at
        return max(0.0, until - now)

    def _on_event(self, client: Client, mask: int) -> None:
        try:
            if client.wants_write:
                client.on_writable()
                if client.template is None:
                    self._ask(client)
                self._watch(client)
            if mask & ~_OUT:
                whole, error = client.on_readable()
                if whole:
                    self._complete(client, error)
        except OSError as error:
            self._lost(client, kind_of(error))

    def _complete(self, client: Client, error: str | None) -> None:
        self._last_done = now = time.perf_counter()
        self._streak = 0
        counts = client.sent_at >= self._start
        if counts and error is not None:
            self._count(error)
        elif counts:
            self._tally.by_step[self._step_of[id(client.template)]].record(int((now - client.sent_at) * 1e6))
        # A call that was sent while warming up and comes back now was served now: without it, slow calls would have a
        # rate that is too low. Where calls are counted, only those count that were sent for it.
        if error is None and (counts or self._left is None):
            self._tally.in_window += self._start <= now <= self._end
        client.template = None
        if client.closing:
            self._drop(client)
        if self._think:
            self._later(client, now + self._think)
        else:
            self._resume(client)

    def _resume(self, client: Client) -> None:
        if client.socket is None:
            self._open(client)
            return
        try:
            self._ask(client)
            if client.wants_write:
                self._watch(client)
        except OSError as error:
            self._lost(client, kind_of(error))

    def _ask(self, client: Client) -> None:
        """Send the next request, if there is one more to send; else the client rests."""
        now = time.perf_counter()
        if now >= self._start and not self._take_one(now):
            return
        client.ask(self._templates[next(self._sequence)], next(self._idents), now)

    def _take_one(self, now: float) -> bool:
        if now >= self._end or self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
        return True

    def _open(self, client: Client) -> None:
        try:
            client.sent_at = time.perf_counter()
            descriptor = client.open().fileno()
            self._by_fd[descriptor] = client
            self._poll.register(descriptor, _IN | _OUT)
        except OSError as error:
            self._lost(client, kind_of(error))

    def _watch(self, client: Client) -> None:
        if client.socket is not None:
            self._poll.modify(client.socket.fileno(), _IN | _OUT if client.wants_write else _IN)

    def _drop(self, client: Client) -> None:
        if client.socket is not None:
            descriptor = client.socket.fileno()
            if self._by_fd.pop(descriptor, None) is not None:
                self._poll.unregister(descriptor)
        client.close()

    def _lost(self, client: Client, kind: str) -> None:
        """A connection is gone. It is an error unless nothing was asked on it: servers may close idle ones."""
        never_asked = client.template is None
        idle = client.connected and never_asked
        self._drop(client)
        if not idle:
            self._streak += 1
            now = time.perf_counter()
            # An attempt that never came to a request uses up a call too: else a dead server would be asked for ever.
            if client.sent_at >= self._start and (not never_asked or self._take_one(now)):
                self._count(kind)
        self._later(client, time.perf_counter() + _BACKOFF)

    def _later(self, client: Client, due: float) -> None:
        heapq.heappush(self._waiting, (due, next(self._ties), client))

    def _count(self, kind: str) -> None:
        self._tally.errors[kind] = self._tally.errors.get(kind, 0) + 1
        self._tally.failed += 1

    def _tick(self, now: float) -> bool:
        """Look at everything that depends on time. Returns True when the run is over."""
        self._tick_at = now + _TICK
        if self._cpu_start is None and now >= self._start:
            self._cpu_start = time.thread_time(), now
        for client in self._clients:
            if client.socket is not None and self._is_late(client, now):
                self._lost(client, "timeout")
        self._progress(self._snapshot(now))
        self._tally.gave_up = self._streak > max(100, 10 * len(self._clients))
        return self._tally.gave_up or self._is_over(now)

    def _is_late(self, client: Client, now: float) -> bool:
        busy = client.template is not None or not client.connected
        return busy and now - client.sent_at > self._plan.timeout

    def _is_over(self, now: float) -> bool:
        if self._left != 0 and now < self._end:
            return False
        if not any(client.template is not None for client in self._clients):
            return True
        return self._plan.calls is None and now >= self._end + _DRAIN

    def _snapshot(self, now: float) -> Progress:
        done, plan = self._tally.in_window + self._tally.failed, self._plan
        passed = max(0.0, now - self._start)
        share = done / plan.calls if plan.calls else passed / plan.seconds
        return Progress(min(1.0, share), now < self._start, done, self._tally.failed, passed)

    def _settle(self, now: float) -> None:
        """Close everything, and write down how long it took."""
        tally = self._tally
        tally.unfinished = sum(client.template is not None for client in self._clients)
        ended = self._last_done if self._left == 0 else min(now, self._end)
        tally.seconds = max(0.0, ended - self._start)
        if self._cpu_start is not None and now > self._cpu_start[1]:
            tally.cpu_share = (time.thread_time() - self._cpu_start[0]) / (now - self._cpu_start[1])
        for client in self._clients:
            self._drop(client)
        if isinstance(self._poll, select.epoll):
            self._poll.close()
