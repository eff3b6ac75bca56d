"""The xfer actor: one share, whatever comes at once; each end on record once, with one reason."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pykka
import pytest
from fake_dufs import FakeDufs
from harness import until
from living import WAIT_S, Clock, Poison

from a2mcp.errors import CannotObtain, ToolError
from a2mcp.obtain.pins import Pin
from a2mcp.obtain.programs import Found
from a2mcp.tools import xfer as tool
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.result import PENDING
from a2mcp.types import CallId, SessionId
from a2mcp.xfer.owner import Owner, Stand
from a2mcp.xfer.settings import XferSettings
from actors import xfer
from actors.fetcher import Fetch
from actors.kit import Actor, halt, launch
from actors.ref import Ping, Ref
from actors.xfer import Port, Sharing, Xfer

if TYPE_CHECKING:
    from a2mcp.tools.result import Result

ORIGIN = "http://127.0.0.1:4801"
PUBLIC = "https://calm-river-xyz.trycloudflare.com"


class Ticket:
    def __init__(self, number: int) -> None:
        self.call_id = CallId(f"call-{number}")
        self.session_id = SessionId("s")


class FindsDufs(Actor[Fetch]):
    """Says at once where dufs is, or that it is nowhere."""

    MAILBOX = 64

    def __init__(self, mailbox: Any, outcome: Any) -> None:
        super().__init__(mailbox)
        self.outcome = outcome

    def receive(self, message: Fetch) -> None:
        assert message.program == "dufs"
        message.then.insist(message.message(self.outcome))


class Home:
    """A running actor, and what came out of it."""

    def __init__(self, folder: Path, options: XferSettings | None = None, dufs: Any = None) -> None:
        self.folder = folder
        self.clock = Clock()
        self.records: list[dict[str, Any]] = []
        self.sids: list[Any] = []
        self.results: dict[str, Result] = {}
        self.changed = threading.Condition()
        self.public: str | None = None
        self.stand = Stand(self.clock, options or XferSettings())
        self.mailbox = Xfer.mailbox_for("Xfer")
        self.ref: Ref[Any] = Ref(self.mailbox)
        self.finder = FindsDufs(FindsDufs.mailbox_for("Fetcher"), dufs)
        self.fetcher = launch(self.finder)
        self.sharing = Sharing(
            owner=Owner(self.stand, self.clock, port=4801, record=self.record),
            stand=self.stand,
            origin=ORIGIN,
            public=lambda: self.public,
            clock=self.clock,
            finish=self.finish,
            me=self.ref,
            fetcher=self.fetcher,
        )
        self.port = Port(self.ref, self.clock)
        self.tickets = 0
        self.live()

    def live(self) -> None:
        self.actor = Xfer(self.mailbox, sharing=self.sharing)
        launch(self.actor)

    def close_what_came_too_late(self) -> None:
        """Close what was opened for a share behind the end of the actor: a process that ends does not."""
        while not self.mailbox.empty():
            message = self.mailbox.get_nowait()
            if isinstance(message, xfer.Serve):
                message.opened.share.close()

    def live_with(self, found: Found) -> None:
        """Go on with a fetcher that finds something else."""
        self.finder.outcome = found

    def record(self, sid: Any, args: dict[str, Any]) -> None:
        self.sids.append(sid)
        self.records.append(args)

    def finish(self, ticket: Any, result: Result) -> None:
        with self.changed:
            self.results[ticket.call_id] = result
            self.changed.notify_all()

    def begin(self, which: int, **arguments: Any) -> Ticket:
        """Call a tool by its place in the catalogue."""
        self.tickets += 1
        ticket = Ticket(self.tickets)
        context = Context(
            ticket=ticket, cwd=self.folder, home=self.folder, limits=Limits(), jobs=None, clock=self.clock, xfer=self.port,
            cancelled=arguments.pop("cancelled", lambda: False),
        )  # type: ignore[arg-type]  # fmt: skip
        chosen = tool.TOOLS[which]
        assert chosen.run(chosen.params(**arguments), context) is PENDING
        return ticket

    def result(self, ticket: Ticket) -> Any:
        with self.changed:
            assert self.changed.wait_for(lambda: ticket.call_id in self.results, WAIT_S)
        return self.results[ticket.call_id]

    def share(self, path: Any = ".", **arguments: Any) -> Any:
        return self.result(self.begin(0, path=str(path), **arguments)).structured

    def status(self) -> Any:
        return self.result(self.begin(1)).structured

    def stop(self) -> Any:
        return self.result(self.begin(2)).structured

    def settle(self) -> None:
        """Wait until everything that was told is handled."""
        self.ref.ask(Ping(), timeout=WAIT_S)

    def ends(self) -> list[Any]:
        """How each share ended, by the records."""
        return [
            (record["path"], record.get("why", "stop"))
            for record in self.records
            if record["action"] in {"close", "stop"}
        ]


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def test_a_share_is_described_shown_and_stopped(home):
    """Seed, "xfer_share", "xfer_status", "xfer_stop": the replies, member by member and in order."""
    told = home.share(ttl=60)
    assert list(told) == [
        "url", "publicUrl", "route", "path", "port", "replaced", "startedAt", "expiresAt", "usage", "installed",
    ]  # fmt: skip
    assert told["url"] == f"{ORIGIN}/xfer/"
    assert (told["publicUrl"], told["route"], told["port"], told["replaced"]) == (None, "/xfer/", 4801, False)
    assert (told["startedAt"], told["expiresAt"]) == ("1970-01-01T00:16:40.000Z", "1970-01-01T00:17:40.000Z")
    assert told["installed"] == {"dufs": None}
    assert told["path"] == str(home.folder)
    assert home.status() == {"serving": True, **{name: told[name] for name in (
        "path", "port", "url", "publicUrl", "route", "startedAt", "expiresAt",
    )}}  # fmt: skip
    assert home.stop() == {"stopped": True, "path": told["path"]}
    assert home.status() == {"serving": False}
    assert home.stop() == {"stopped": False, "note": "nothing was shared"}


def test_every_action_leaves_one_record_and_no_contents(home):
    """Seed: one audit record for each action, with path, port, TTL and route."""
    home.share(ttl=60)
    home.share(ttl=61)
    home.stop()
    home.stop()
    home.status()
    facts = {"path": str(home.folder), "port": 4801, "route": "/xfer/"}
    assert home.records == [
        {"action": "share", **facts, "ttlSeconds": 60},
        {"action": "close", **facts, "why": "replaced"},
        {"action": "share", **facts, "ttlSeconds": 61},
        {"action": "stop", **facts},
    ]
    assert home.sids == ["s"] * 4


def test_a_second_share_closes_the_first(home, tmp_path):
    """Seed: one share at a time."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("b")
    home.share("a")
    first = home.stand.current()
    assert home.share("b")["replaced"] is True
    assert first.closed
    assert home.stand.current().is_file
    assert home.status()["path"] == str(tmp_path / "b")


def test_a_share_is_over_at_its_time_and_closed_at_the_next_tick(home):
    """Seed: closes when its TTL is over; ours: never served a moment longer."""
    home.share(ttl=60)
    share = home.stand.current()
    home.clock.seconds += 59.9
    xfer.tend(home.ref, home.stand)
    assert home.status()["serving"]
    home.clock.seconds += 0.1
    assert home.stand.current() is None
    assert home.status() == {"serving": False}
    assert not share.closed
    xfer.tend(home.ref, home.stand)
    home.settle()
    assert share.closed
    assert home.ends() == [(str(home.folder), "ttl expired")]
    assert home.sids[-1] is None
    xfer.tend(home.ref, home.stand)
    home.settle()
    assert len(home.records) == 2


def test_what_comes_after_its_time_finds_it_expired(home):
    """Ours: one reason, and the right one, before the tick has come."""
    home.share(ttl=1)
    home.clock.seconds += 1
    assert home.share(ttl=1)["replaced"] is False
    home.clock.seconds += 1
    assert home.stop() == {"stopped": False, "note": "nothing was shared"}
    assert [why for _, why in home.ends()] == ["ttl expired"] * 2


def test_the_end_of_the_daemon_closes_it(home):
    """Seed: `why` is `bridge stopped`."""
    home.share()
    share = home.stand.current()
    assert halt(home.actor, timeout=5)
    assert share.closed
    assert home.ends() == [(str(home.folder), "bridge stopped")]
    assert home.sids[-1] is None
    assert home.stand.current() is None


def test_a_replacement_of_the_actor_leaves_the_share_up(home):
    """Ours: state outlives whoever looks after it."""
    home.share()
    home.mailbox.put(Poison())
    home.actor.thread.join(WAIT_S)
    home.live()
    assert home.status()["serving"]
    assert home.ends() == []


def test_the_public_address_is_read_at_the_moment_of_the_call(home):
    """Seed: the tunnel opens and closes while the share is up."""
    assert home.share()["usage"]["public"] == tool.NO_PUBLIC
    home.public = PUBLIC
    assert home.status()["publicUrl"] == f"{PUBLIC}/xfer/"
    told = home.share()
    assert told["publicUrl"] == f"{PUBLIC}/xfer/"
    assert told["usage"]["public"].endswith(f" -O {PUBLIC}/xfer/<name>")
    home.public = None
    assert home.status()["publicUrl"] is None


def test_what_cannot_be_served_leaves_the_share_that_is_up(home):
    """Issue, "Bad input": each a clear answer, the share still up."""
    home.share()
    with pytest.raises(ToolError, match=r"cannot serve .*/missing: No such file or directory"):
        home.begin(0, path="missing")
    assert home.status()["serving"]
    assert len(home.records) == 1


def test_a_cancelled_call_shares_nothing(home):
    """Ours: its caller would not know."""
    home.begin(0, path=".", cancelled=lambda: True)
    home.settle()
    assert home.stand.current() is None
    assert home.records == []


def test_a_step_that_breaks_completes_its_call(home, monkeypatch, caplog):
    """Ours: the rim; the actor goes on."""

    def broken(*_args, **_kwargs):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr("actors.xfer.tool.shared", broken)
        refused = home.result(home.begin(0, path="."))
    assert refused.is_error
    assert refused.content[0].text == "internal error"
    assert home.share()["url"]


@pytest.mark.parametrize(("which", "broken"), [(1, "serving"), (2, "stopped")])
def test_a_question_that_breaks_is_answered(home, monkeypatch, caplog, which, broken):
    """Ours: every path completes its call, also those that only look or close."""

    def breaks(*_args, **_kwargs):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(f"actors.xfer.tool.{broken}", breaks)
        refused = home.result(home.begin(which))
    assert refused.is_error
    assert refused.content[0].text == "internal error"


def test_everything_at_once_leaves_one_record_of_each_end(tmp_path):
    """Row X09: share, replace, stop, expiry and shutdown fired together, 500 times."""
    for _ in range(500):
        home = Home(tmp_path)
        home.share(ttl=5)
        barrier = threading.Barrier(5)

        def together(step: Any, barrier: Any = barrier) -> None:
            barrier.wait(WAIT_S)
            step()

        def expire(home: Home = home) -> None:
            home.clock.seconds += 5
            xfer.tend(home.ref, home.stand)

        steps = (
            lambda home=home: home.begin(0, path=".", ttl=5),
            lambda home=home: home.begin(0, path=".", ttl=5),
            lambda home=home: home.begin(2),
            expire,
            lambda home=home: halt(home.actor, timeout=5),
        )
        threads = [threading.Thread(target=together, args=(step,)) for step in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        shared = sum(record["action"] == "share" for record in home.records)
        assert len(home.ends()) == shared >= 1, home.records
        assert home.stand.current() is None
        # Ends and shares take turns: nothing was closed twice, and two were never up.
        kinds = [record["action"] == "share" for record in home.records]
        replaced = [record.get("why") == "replaced" for record in home.records]
        assert kinds.count(True) == kinds.count(False)
        assert all(kinds[index + 1] for index, was in enumerate(replaced) if was)
        halt_fetchers()
        home.close_what_came_too_late()


def halt_fetchers() -> None:
    """Stop the stand-in of the fetcher, so that five hundred of them are not left."""
    for ref in pykka.ActorRegistry.get_all():
        actor = ref._actor_weakref()
        if isinstance(actor, FindsDufs):
            assert halt(actor, timeout=5)
            pykka.ActorRegistry.unregister(ref)


# --- dufs --------------------------------------------------------------------------------------------------------


def with_dufs(folder: Path, mode: str = "good") -> tuple[Home, FakeDufs]:
    (folder / "bin").mkdir()
    fake = FakeDufs(folder / "bin", mode)
    return Home(folder, XferSettings(server="dufs"), Found(fake.path, "path")), fake


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_dufs_serves_the_share_and_ends_with_it(tmp_path):
    """Seed: `port` is the one dufs listens on; TERM, and its end is waited for."""
    home, fake = with_dufs(tmp_path)
    told = home.share()
    (run,) = fake.notes("runs")
    assert told["port"] == home.stand.upstream().port != 4801
    assert str(told["port"]) in run["argv"]
    assert home.stop()["stopped"]
    assert home.stand.upstream() is None
    assert gone(run["pid"])
    assert "DUFS_AUTH" in run["env"]
    assert run["env"]["DUFS_AUTH"].split("@")[0].split(":")[1] not in repr((told, home.records))


def test_the_dufs_of_a_replaced_share_ends(tmp_path):
    """Seed: expiry and replacement close the same way."""
    home, fake = with_dufs(tmp_path)
    home.share(ttl=5)
    assert home.share(ttl=5)["replaced"]
    first, second = fake.notes("runs")
    assert gone(first["pid"])
    home.clock.seconds += 5
    xfer.tend(home.ref, home.stand)
    home.settle()
    assert gone(second["pid"])
    assert [why for _, why in home.ends()] == ["replaced", "ttl expired"]
    auths = {run["env"]["DUFS_AUTH"] for run in (first, second)}
    assert len(auths) == 2


def test_the_end_of_the_daemon_ends_dufs(tmp_path):
    """Seed, row D03: no stale file server is left."""
    home, fake = with_dufs(tmp_path)
    home.share()
    assert halt(home.actor, timeout=5)
    assert gone(fake.notes("runs")[0]["pid"])


def test_a_dufs_that_is_not_up_yet_ends_with_the_daemon_too(tmp_path):
    """Ours."""
    home, fake = with_dufs(tmp_path, "silent")
    home.begin(0, path=".")
    until(lambda: fake.notes("runs"), what="the start")
    assert halt(home.actor, timeout=5)
    assert gone(fake.notes("runs")[0]["pid"])
    assert home.records == []


def test_a_dufs_that_does_not_start_is_quoted_and_leaves_the_share_that_is_up(tmp_path):
    """Seed, row X14: the child's own words, as an error."""
    home, fake = with_dufs(tmp_path)
    home.share()
    fake.mode("dies")
    refused = home.result(home.begin(0, path="."))
    assert refused.is_error
    assert refused.content[0].text == "error: the argument '--port' was refused"
    assert home.status()["serving"]
    assert len(home.records) == 1


def test_a_dufs_that_is_nowhere_is_an_error(tmp_path):
    """Row X14: missing, or fetched with a wrong hash: the words of whoever looked for it."""
    home = Home(
        tmp_path, XferSettings(server="dufs"), CannotObtain("'dufs' was not found.", hint="Put it on the PATH.")
    )
    refused = home.result(home.begin(0, path="."))
    assert refused.is_error
    assert refused.content[0].text == "'dufs' was not found. Put it on the PATH."
    assert home.status() == {"serving": False}


def test_a_dufs_that_was_fetched_for_it_is_told(tmp_path):
    """Seed: `installed`."""
    home, fake = with_dufs(tmp_path)
    assert home.share()["installed"] == {"dufs": None}
    pin = Pin(name="dufs", version="0.46.0", platform="linux-x64", url="https://x.example/dufs.tar.gz", sha256="ab")
    home.live_with(Found(fake.path, "installed", "0.46.0", pin))
    assert home.share()["installed"] == {
        "dufs": {"program": "dufs", "version": "0.46.0", "asset": "dufs.tar.gz", "sha256": "ab"}
    }


def test_a_dufs_that_ends_by_itself_is_reported_and_the_share_stays(tmp_path, caplog):
    """Seed: 502 until it is closed."""
    home, fake = with_dufs(tmp_path)
    home.share()
    os.kill(fake.notes("runs")[0]["pid"], signal.SIGKILL)
    until(lambda: "file server has ended" in caplog.text, what="the report")
    assert home.status()["serving"]
    assert home.stop()["stopped"]


def test_a_call_that_is_cancelled_while_dufs_starts_leaves_nothing(tmp_path):
    """Ours."""
    home, fake = with_dufs(tmp_path)
    home.begin(0, path=".", cancelled=lambda: True)
    until(lambda: fake.notes("runs") and gone(fake.notes("runs")[0]["pid"]), what="its end")
    assert home.records == []
