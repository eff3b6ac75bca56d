"""The tunnel's states without a process or a thread: every order of events leaves it whole."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import booleans

from a2mcp.clock import SystemClock
from a2mcp.errors import Busy, CannotTunnel
from a2mcp.tunnel.passage import Passage, Sign, TunnelFacts
from a2mcp.tunnel.providers import Wish

HOST = "calm-river.trycloudflare.com"
PROGRAM = Path("/opt/cloudflared")


class World:
    """Remembers what was done to it."""

    def __init__(self):
        self.wanted, self.opened, self.records, self.names = [], [], [], []
        self.closed = 0
        self.busy = False

    def obtain(self, program, attempt):
        if self.busy:
            raise Busy("busy")
        self.wanted.append((program, attempt))

    def open(self, program, launch, attempt):
        self.opened.append((program, launch, attempt))

    def close(self):
        self.closed += 1

    def record(self, args, attempt):
        self.records.append(args)

    def answer_to(self, hostname):
        self.names.append(hostname)


class Tunnel(Passage):
    """A passage with its world and its sign at hand."""

    def __init__(self):
        self.world, self.sign = World(), Sign()
        super().__init__(origin="http://127.0.0.1:4801", world=self.world, sign=self.sign, clock=SystemClock())


@pytest.fixture
def tunnel():
    return Tunnel()


def opened(tunnel, attempt=1):
    tunnel.start(Wish())
    tunnel.obtained(attempt, PROGRAM)
    tunnel.named(attempt, HOST, 77)
    tunnel.recorded(attempt)
    return tunnel


def test_it_is_open_once_it_is_recorded_and_its_name_is_ours_from_then_on(tunnel):
    """Issue 4 §3; nothing happens before its record."""
    assert tunnel.start(Wish()).state == "obtaining"
    assert tunnel.world.wanted == [("cloudflared", 1)]
    tunnel.obtained(1, PROGRAM)
    assert tunnel.facts.state == "opening"
    tunnel.named(1, HOST, 77)
    assert tunnel.world.records == [{"action": "start", "url": f"https://{HOST}", "port": 4801}]
    assert (tunnel.facts.state, tunnel.sign.url, tunnel.world.names) == ("opening", None, [])
    tunnel.recorded(1)
    assert (tunnel.facts.state, tunnel.sign.url, tunnel.world.names) == ("open", f"https://{HOST}", [HOST])
    assert (tunnel.facts.pid, tunnel.facts.provider) == (77, "cloudflared")


@pytest.mark.parametrize("state", ["obtaining", "opening", "open"])
def test_a_second_start_changes_nothing(tunnel, state):
    """Seed, tunnel: reports the open one again; two at once are one child."""
    tunnel.start(Wish())
    if state != "obtaining":
        tunnel.obtained(1, PROGRAM)
    if state == "open":
        tunnel.named(1, HOST, 77)
        tunnel.recorded(1)
    before = tunnel.facts
    assert tunnel.start(Wish()) == before
    assert before.state == state
    assert len(tunnel.world.wanted) == 1
    assert len(tunnel.world.opened) <= 1


def test_its_name_is_not_ours_from_the_moment_it_is_to_close(tunnel):
    """O06: after stop."""
    opened(tunnel)
    assert tunnel.stop().state == "closing"
    assert tunnel.world.names == [HOST, None]
    assert (tunnel.sign.url, tunnel.world.closed) == (None, 1)
    with pytest.raises(CannotTunnel, match="being closed"):
        tunnel.start(Wish())
    tunnel.ended(1, "")
    assert tunnel.facts.state == "closing", "not before it is recorded"
    tunnel.recorded(1)
    assert tunnel.facts == TunnelFacts()
    assert tunnel.world.records[1:] == [{"action": "stop", "url": f"https://{HOST}", "port": 4801}]


def test_one_that_ends_by_itself_is_recorded_with_its_reason(tunnel):
    """Ours: a lost tunnel must not look like a closed one."""
    opened(tunnel)
    tunnel.ended(1, "cloudflared ended by itself")
    assert tunnel.world.names[-1] is None
    tunnel.recorded(1)
    assert tunnel.facts == TunnelFacts(error="cloudflared ended by itself")
    assert tunnel.world.records[-1] == {
        "action": "stop", "url": f"https://{HOST}", "port": 4801, "error": "cloudflared ended by itself",
    }  # fmt: skip


@pytest.mark.parametrize("step", ["program", "name"])
def test_one_that_could_not_be_opened_is_recorded_once(tunnel, step):
    """D09: audited once, with `error`."""
    tunnel.start(Wish())
    if step == "program":
        tunnel.not_obtained(1, "no program")
    else:
        tunnel.obtained(1, PROGRAM)
        tunnel.ended(1, "no program")
        tunnel.ended(1, "again")
    tunnel.recorded(1)
    assert tunnel.facts == TunnelFacts(error="no program")
    assert tunnel.world.records == [{"action": "start", "port": 4801, "error": "no program"}]


def test_a_stop_before_it_is_open_is_an_opening_that_failed(tunnel):
    """Ours: there is no stop of what was never open."""
    tunnel.start(Wish())
    tunnel.stop()
    tunnel.recorded(1)
    assert tunnel.facts.error == "stopped before it was open"
    tunnel.obtained(1, PROGRAM)
    assert tunnel.world.opened == []

    tunnel.start(Wish())
    tunnel.obtained(2, PROGRAM)
    tunnel.stop()
    tunnel.named(2, HOST, 7)
    tunnel.ended(2, "")
    tunnel.recorded(2)
    assert [record["action"] for record in tunnel.world.records] == ["start", "start"]
    assert HOST not in tunnel.world.names


def test_a_stop_between_the_name_and_its_record_leaves_both_records(tunnel):
    """Ours: the record of the start is on its way and cannot be called back."""
    tunnel.start(Wish())
    tunnel.obtained(1, PROGRAM)
    tunnel.named(1, HOST, 7)
    tunnel.stop()
    tunnel.ended(1, "")
    tunnel.recorded(1)
    assert tunnel.facts.state == "closing"
    tunnel.recorded(1)
    assert tunnel.facts.state == "closed"
    assert [record["action"] for record in tunnel.world.records] == ["start", "stop"]
    assert HOST not in tunnel.world.names


def test_a_wrong_wish_and_a_busy_fetcher_leave_it_closed(tunnel):
    """Bad input."""
    with pytest.raises(CannotTunnel):
        tunnel.start(Wish(provider="x"))
    tunnel.world.busy = True
    with pytest.raises(Busy):
        tunnel.start(Wish())
    assert tunnel.facts == TunnelFacts()
    assert tunnel.stop() == TunnelFacts()
    tunnel.leave()
    assert tunnel.world.records == []


def test_the_daemons_end_is_recorded(tunnel):
    """Issue 4 §3: closed with the daemon."""
    opened(tunnel)
    tunnel.stop()
    tunnel.leave()
    assert tunnel.world.records[-1]["action"] == "stop"


class AnyOrder(RuleBasedStateMachine):
    """Events in any order, also late ones of earlier attempts."""

    def __init__(self):
        super().__init__()
        self.tunnel = Tunnel()
        self.world = self.tunnel.world

    @rule()
    def start(self):
        try:
            self.tunnel.start(Wish())
        except CannotTunnel:
            assert self.tunnel.facts.state == "closing"

    @rule()
    def stop(self):
        self.tunnel.stop()

    @rule(late=booleans())
    def obtained(self, late):
        self.tunnel.obtained(len(self.world.wanted) - late, PROGRAM)

    @rule(late=booleans())
    def named(self, late):
        self.tunnel.named(len(self.world.wanted) - late, HOST, 7)

    @precondition(lambda self: self.world.opened and self.world.opened[-1][2] == len(self.world.wanted))
    @rule()
    def ended(self):
        self.tunnel.ended(len(self.world.wanted), "")

    @precondition(lambda self: self.tunnel._unrecorded)
    @rule()
    def recorded(self):
        self.tunnel.recorded(len(self.world.wanted))

    @invariant()
    def the_name_is_ours_exactly_while_it_is_open(self):
        allowed = bool(self.world.names) and self.world.names[-1] is not None
        assert allowed == (self.tunnel.facts.state == "open") == (self.tunnel.sign.url is not None)

    @invariant()
    def every_attempt_has_its_records(self):
        stops = [record for record in self.world.records if record["action"] == "stop"]
        starts = [record for record in self.world.records if record["action"] == "start"]
        assert len(starts) <= len(self.world.wanted)
        assert len(stops) <= len([record for record in starts if "error" not in record])
        if self.tunnel.facts.state == "closed":
            assert len(starts) == len(self.world.wanted)
            assert len(stops) == len([record for record in starts if "error" not in record])


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=30)
