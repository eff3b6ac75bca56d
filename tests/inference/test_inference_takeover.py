"""The takeover: three layers armed or none, and everything given back as it was."""

from __future__ import annotations

import copy
import socket
import threading
import time

import pytest
from offers import KEYED, NATIVE, model, models

from a2mcp.errors import CannotDeny, InferenceDenied
from a2mcp.inference.registry import Offer
from a2mcp.inference.takeover import DENY, NOISE, Takeover
from a2mcp.inference.tripwire import SENTINEL, Tripped

ARMING = ["plan", "models", "noise", "tripwire", "connections"]
RESTORING = ["tripwire", "noise", "models", "end"]


class Broken(Exception):
    """What a step may raise."""


class Steps:
    """Counts the steps, and breaks at one of them."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.breaks_at: int | None = None

    def __call__(self, name: str) -> None:
        self.taken.append(name)
        if len(self.taken) - 1 == self.breaks_at:
            raise Broken(name)

    def begin(self, breaks_at: int | None = None) -> None:
        self.taken, self.breaks_at = [], breaks_at


class Bench:
    """A takeover with all that it touches."""

    def __init__(self, *rows) -> None:
        self.models = models(*rows)
        self.registry, self.overrides = self.models.registry, self.models.overrides
        self.refused = 0
        self.steps = Steps()
        self.takeover = Takeover(self.registry, self.overrides, self._refuse, self.steps)

    def _refuse(self) -> None:
        self.refused += 1

    def state(self):
        """All that a takeover may change, deeply, in its order."""
        held = self.registry.holdings
        return copy.deepcopy(
            (
                [(source, offer.rows, [api.name for api in offer.apis]) for source, offer in held.offers.items()],
                held.slots,
                self.registry.rows(),
                list(self.registry.apis()),
                self.registry.chosen(),
                dict(self.overrides._now),
                self.takeover.guarded,
            )
        )


@pytest.fixture
def bench():
    made = Bench(KEYED, model("local/small", base_url="http://127.0.0.1:9/v1"), model("cloud/second"))
    yield made
    made.steps.begin()
    made.takeover.restore()


def test_arming_denies_every_model_and_restoring_gives_them_back(bench):
    """Source: issue, "What it must show": deep comparison of the registry before and after."""
    before = bench.state()
    plan = bench.takeover.arm()
    assert str(plan) == "2 provider(s) denied (cloud, local), 2 tripwire key(s)"
    assert {row.ref for row in bench.registry.rows()} == {"cloud/large", "local/small", "cloud/second"}
    for row in (*bench.registry.rows(), bench.registry.chosen(), bench.registry.find("cloud/large")):
        assert (row.api, row.key.kind, row.headers, row.waits) == (DENY, "none", {}, False)
    assert bench.state() != before

    bench.takeover.restore()
    assert bench.state() == before
    assert bench.registry.speak(bench.registry.find("local/small")) == ("local/small", None)


def test_a_denied_model_refuses_at_once_and_asks_no_program_for_a_key(bench, tmp_path, monkeypatch):
    """Source: seed: one attempt, the sentinel, and "不去解析凭据"."""
    monkeypatch.chdir(tmp_path)
    bench.takeover.arm()
    with pytest.raises(InferenceDenied, match=SENTINEL):
        bench.registry.speak(bench.registry.chosen())
    assert bench.refused == 1
    assert list(tmp_path.iterdir()) == []


def test_a_denied_turn_costs_no_thread_and_less_than_five_milliseconds(bench):
    """Source: issue, "What it must show"."""
    bench.takeover.arm()
    before = threading.active_count()
    took = []
    for _ in range(200):
        began = time.perf_counter()
        with pytest.raises(InferenceDenied):
            bench.registry.speak(bench.registry.chosen())
        took.append(time.perf_counter() - began)
    assert threading.active_count() == before
    assert sorted(took)[len(took) // 2] < 0.005


def test_the_noise_is_held_down_meanwhile(bench):
    """Source: issue, item 4: wake-ups and retries are off while armed."""
    assert bench.overrides.read("agent.wake", True) is True
    bench.takeover.arm()
    assert {
        name: bench.overrides.read(name, otherwise) for name, otherwise in (("agent.wake", True), ("agent.retries", 3))
    } == NOISE
    assert bench.overrides.read("something.else", 7) == 7
    bench.takeover.restore()
    assert bench.overrides.read("agent.retries", 3) == 3


@pytest.mark.parametrize("ready", [False, True], ids=["allowed before", "denied before"])
@pytest.mark.parametrize("step", range(len(ARMING)), ids=ARMING)
def test_whatever_breaks_while_arming_leaves_everything_as_it_was(bench, step, ready):
    """Source: issue, "What it must show": a fault at every step of arming."""
    if ready:
        bench.takeover.arm()
        bench.registry.claim("later", Offer((model("new/one"),)))
    before = bench.state()
    bench.steps.begin(step)
    with pytest.raises(Broken, match=ARMING[step]):
        bench.takeover.arm()
    assert bench.steps.taken == ARMING[: step + 1]
    assert bench.state() == before

    bench.steps.begin()
    bench.takeover.arm()
    assert bench.steps.taken == ARMING
    assert all(row.api == DENY for row in bench.registry.rows())


@pytest.mark.parametrize("step", range(len(RESTORING)), ids=RESTORING)
def test_whatever_breaks_while_restoring_leaves_it_armed_as_it_was(bench, step):
    """Source: issue, "What it must show": a fault at every step of restoring."""
    allowed = bench.state()
    bench.takeover.arm()
    before = bench.state()
    bench.steps.begin(step)
    with pytest.raises(Broken, match=RESTORING[step]):
        bench.takeover.restore()
    assert bench.steps.taken == RESTORING[: step + 1]
    assert bench.state() == before
    with pytest.raises(Tripped), socket.socket() as sock:
        sock.connect(("127.0.0.1", 9))

    bench.steps.begin()
    bench.takeover.restore()
    assert bench.state() == allowed


def test_restoring_what_is_not_armed_does_nothing(bench):
    """Source: seed: 重复的 {"enabled": true} 不报错."""
    before = bench.state()
    bench.takeover.restore()
    assert bench.steps.taken == []
    assert bench.state() == before


@pytest.mark.parametrize("beyond", [model("far/x", transport="native"), model("far/x", api="native")])
def test_a_provider_that_is_out_of_reach_keeps_everything_from_being_armed(beyond):
    """Source: seed, "拒绝情形": before anything is changed."""
    bench = Bench(model("near/y"), beyond)
    before = bench.state()
    with pytest.raises(CannotDeny, match="far would be reached past everything that denies"):
        bench.takeover.arm()
    assert bench.steps.taken == ["plan"]
    assert bench.state() == before
    assert NATIVE.bypasses


def test_a_provider_whose_api_is_gone_keeps_nothing_from_being_armed():
    """Ours: whom nobody can ask needs no denying."""
    bench = Bench(model("near/y", api="gone"))
    bench.takeover.arm()
    assert bench.registry.chosen().api == DENY
    bench.takeover.restore()


def test_what_came_while_it_was_armed_stays_after_restoring(bench):
    """Source: seed: what the operator changed meanwhile is theirs."""
    bench.takeover.arm()
    bench.registry.claim("later", Offer((model("new/one"),)))
    bench.registry.choose("new/one")
    bench.takeover.restore()
    assert bench.registry.chosen().ref == "new/one"
    assert bench.registry.find("cloud/large") == KEYED


def test_a_provider_that_came_while_it_was_armed_is_free_until_the_next_arming(bench):
    """Source: seed, "它放弃了什么": 运行中新加的 provider 不在 deny 里."""
    bench.takeover.arm()
    bench.registry.claim("later", Offer((model("new/one"), model("cloud/third"))))
    assert bench.registry.speak(bench.registry.find("new/one")) == ("new/one", None)
    assert bench.registry.find("cloud/third") is None

    bench.takeover.arm()
    with pytest.raises(InferenceDenied):
        bench.registry.speak(bench.registry.find("new/one"))
