"""A real process of each kind under its keeper: what is told, how soon, and that nothing of it is left."""

import json
import threading
import time
from pathlib import Path

import pytest
from harness import until
from processes import alive
from stand_in import NAME, cloudflared

from a2mcp.clock import SystemClock
from a2mcp.tunnel.keeper import Ended, Keeper, Limits, Named
from a2mcp.tunnel.providers import Wish, provider_of

ORIGIN = "http://127.0.0.1:4801"


class Kept:
    """A keeper and what it told."""

    def __init__(self, program, limits, wish):
        self.program = program
        self.events = []
        launch = provider_of(wish).launch(wish, ORIGIN)
        self.keeper = Keeper(program, launch, tell=self.events.append, clock=SystemClock(), limits=limits)
        self.keeper.start()

    @property
    def run(self):
        (line,) = Path(f"{self.program}.runs").read_text().splitlines()
        return json.loads(line)

    def named(self):
        until(lambda: self.events, what="the name")
        return self.events[0]

    def ended(self, seconds=10.0):
        assert self.keeper.wait(seconds)
        assert isinstance(self.events[-1], Ended)
        assert sum(isinstance(event, Ended) for event in self.events) == 1
        return self.events[-1].reason


def descriptors():
    """Those that are open now; the one that lists them is gone by then."""
    return {path.name for path in Path("/proc/self/fd").iterdir() if path.exists()}


@pytest.fixture
def keep(tmp_path):
    """Run a stand-in under a keeper."""
    kept = []

    def run(behaviour, limits=None, wish=None):
        program = behaviour if isinstance(behaviour, Path) else cloudflared(tmp_path, behaviour)
        kept.append(Kept(program, limits or Limits(name_s=20.0, term_s=1.0), wish or Wish()))
        return kept[-1]

    before = descriptors()
    yield run
    for one in kept:
        one.keeper.stop(at_once=True)
        assert one.keeper.wait(10)
    assert descriptors() <= before, "no descriptor is left"


def test_the_name_is_told_and_the_end_when_it_is_stopped(keep):
    """Issue 4 §3."""
    kept = keep("good")
    assert kept.named() == Named(NAME, kept.run["pid"])
    assert kept.run["argv"] == ["tunnel", "--url", ORIGIN]
    kept.keeper.stop()
    assert kept.ended() == ""
    assert not alive(kept.run["pid"])
    kept.keeper.stop()


def test_no_name_in_time_ends_it(keep):
    """D09: no URL within the limit; what it said is in the reason."""
    kept = keep("silent", Limits(name_s=0.5, term_s=1.0))
    reason = kept.ended()
    assert reason.startswith("cloudflared named no host within 0.5 s.")
    assert kept.events[:-1] == []
    assert not alive(kept.run["pid"])


def test_one_that_ends_at_once_says_how(keep):
    """D09: exits."""
    reason = keep("dies").ended()
    assert reason.startswith("cloudflared ended before it named a host (exit code 3). It said: ")
    assert "failed to request quick Tunnel" in reason


def test_of_two_names_the_first_counts(keep):
    """D09: prints 2 URLs."""
    kept = keep("two names")
    assert kept.named().hostname == NAME
    until(lambda: any("second-name" in line for line in kept.keeper._said), what="the second name")
    assert len(kept.events) == 1


@pytest.mark.parametrize("behaviour", ["junk"])
def test_junk_gives_no_name_and_no_escape_characters(keep, behaviour):
    """D09: URL with junk."""
    reason = keep(behaviour, Limits(name_s=0.7, term_s=1.0)).ended()
    assert "named no host" in reason
    assert reason.isprintable()
    assert len(reason) < 1000


def test_a_line_without_end_does_not_hide_the_name(keep):
    """Ours: what is kept of a line is bounded."""
    assert keep("junk, then good").named().hostname == NAME


@pytest.mark.parametrize(("behaviour", "name_s"), [("deaf", 20.0), ("deaf and silent", 0.5)])
def test_one_that_ignores_the_request_to_end_is_killed(keep, behaviour, name_s):
    """D09: ignores TERM; KILL after the grace."""
    kept = keep(behaviour, Limits(name_s=name_s, term_s=0.4))
    if behaviour == "deaf":
        kept.named()
        kept.keeper.stop()
    began = time.monotonic()
    kept.ended()
    assert time.monotonic() - began > 0.3
    assert not alive(kept.run["pid"])


def test_it_is_killed_at_once_when_that_is_asked(keep):
    """Ours: a second signal to the daemon."""
    kept = keep("deaf", Limits(name_s=20.0, term_s=60.0))
    kept.named()
    kept.keeper.stop()
    kept.keeper.stop(at_once=True)
    assert kept.ended(5.0) == ""


def test_what_it_says_is_read_for_as_long_as_it_lives(keep):
    """Ours: a full pipe would stop it."""
    kept = keep("talks")
    kept.named()
    io = Path(f"/proc/{kept.run['pid']}/io")
    until(lambda: int(io.read_text().split("wchar: ")[1].split()[0]) > 3_000_000, what="three million characters")
    kept.keeper.stop()
    assert kept.ended() == ""


def test_what_it_started_ends_with_it(keep):
    """Ours: a wrapper script is a program too."""
    kept = keep("leaves a child")
    group = kept.named().pid
    kept.keeper.stop()
    kept.ended()

    def members():
        stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
        return [s for s in (one.rpartition(")")[2].split() for one in stats) if s[2] == str(group) and s[0] != "Z"]

    until(lambda: not members(), what="the end of the group")


def test_one_that_ends_by_itself_later_says_so(keep):
    """Ours."""
    kept = keep("ends when told")
    kept.named()
    Path(f"{kept.program}.end").touch()
    assert kept.ended().startswith("cloudflared ended by itself (exit code 0).")


@pytest.mark.parametrize("kind", ["missing", "not executable", "no program"])
def test_one_that_cannot_be_started_says_why(keep, tmp_path, kind):
    """Bad input."""
    path = tmp_path / "cloudflared"
    if kind != "missing":
        path.write_bytes(b"\x00\x01")
        path.chmod(0o755 if kind == "no program" else 0o644)
    reason = keep(path).ended()
    assert "cannot be run: " in reason or "could not be started: " in reason


def test_its_environment_has_the_token_and_nothing_of_ours(keep, monkeypatch):
    """Issue 4 §3: never argv; and no variable of ours steers it."""
    from a2mcp.host import process

    monkeypatch.setenv("A2MCP_HOME", "/x")
    monkeypatch.setenv("TUNNEL_URL", "http://evil.example")
    process.inherited.cache_clear()
    token = "t" * 40
    try:
        kept = keep("named", wish=Wish(provider="cloudflared-named", hostname="tools.example.org", token=token))
        assert kept.named().hostname == "tools.example.org"
    finally:
        process.inherited.cache_clear()
    assert kept.run["argv"] == ["tunnel", "run"]
    assert kept.run["env"] == {"TUNNEL_TOKEN": token, "NO_AUTOUPDATE": "true"}
    assert token.encode() not in Path(f"/proc/{kept.run['pid']}/cmdline").read_bytes()


def test_a_stop_right_after_the_start_is_not_lost(keep):
    """Ours: whatever comes first."""
    for _ in range(5):
        kept = keep("good")
        Path(f"{kept.program}.runs").unlink(missing_ok=True)
        kept.keeper.stop()
        kept.ended()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_listener_that_breaks_still_hears_the_end(tmp_path):
    """Ours: an actor that waits for the end must get it."""
    ended = threading.Event()

    def tell(event):
        if isinstance(event, Ended):
            ended.set()
        else:
            raise SystemExit

    wish = Wish()
    launch = provider_of(wish).launch(wish, ORIGIN)
    keeper = Keeper(cloudflared(tmp_path, "good"), launch, tell=tell, clock=SystemClock())
    keeper.start()
    assert ended.wait(10)
    assert keeper.wait(10)
