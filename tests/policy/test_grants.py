"""What the operator has allowed beyond one call: how far it reaches, when it ends, what a restart leaves of it."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta

import pytest

from a2mcp.errors import Busy, UnusableFile
from a2mcp.policy import grants as module
from a2mcp.policy.grants import Grants
from a2mcp.types import SessionId

HERE, THERE = SessionId("s1"), SessionId("s2")


class Clock:
    """Two clocks that can go apart."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.wall = datetime(2026, 10, 16, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return self.wall

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def grants(tmp_path, clock) -> Grants:
    return Grants(tmp_path / "grants.json", clock)


def test_a_session_is_allowed_a_tool_and_others_are_not(grants):
    """Issue 6, item 2: for this session."""
    grants.add("bash", session_id=HERE)

    assert grants.covers("bash", HERE)
    assert not grants.covers("bash", THERE)
    assert not grants.covers("bash", None)
    assert not grants.covers("write", HERE)


def test_a_tool_is_allowed_always_and_to_everybody(grants):
    """Issue 6, item 2: always for this tool."""
    grants.add("bash")

    assert grants.covers("bash", HERE)
    assert grants.covers("bash", None)
    assert not grants.covers("bash2", HERE)


def test_an_end_is_an_end(grants, clock):
    """Issue 6, item 4: expiry of an "always"."""
    grant = grants.add("bash", for_s=60)
    assert grant.until == "2026-10-16T00:01:00.000Z"
    clock.pass_by(59)
    assert grants.covers("bash", None)
    clock.pass_by(1)
    assert not grants.covers("bash", None)
    assert grants.list() == ()
    assert grants.revoke(grant.id) is None


@pytest.mark.parametrize("jump", [-3600, 3600])
def test_a_clock_that_jumps_prolongs_nothing(grants, clock, jump):
    """Issue 6, bad input: clock jumps."""
    grants.add("bash", for_s=60)
    clock.wall += timedelta(seconds=jump)
    clock.pass_by(61)

    assert not grants.covers("bash", None)


def test_what_was_revoked_is_asked_about_again(grants, tmp_path, clock):
    """Issue 6, item 4: a list to revoke."""
    kept, gone = grants.add("bash"), grants.add("write")
    assert grants.revoke("g99999") is None
    assert grants.revoke(gone.id) == gone

    assert grants.list() == (kept,)
    assert not grants.covers("write", None)
    assert Grants(tmp_path / "grants.json", clock).list() == (kept,)


def test_a_restart_keeps_what_is_for_everybody_and_asks_again_for_sessions(grants, tmp_path, clock):
    """Issue 6, item 4: what is asked again after a restart."""
    lasting = grants.add("bash", for_s=3600)
    grants.add("write", session_id=HERE)
    again = Grants(tmp_path / "grants.json", clock)

    assert again.list() == (lasting,)
    clock.pass_by(3600)
    assert again.list() == ()


def test_the_file_is_private_and_whole(grants, tmp_path):
    """STYLE 15."""
    before = os.umask(0)
    try:
        grants.add("bash")
    finally:
        os.umask(before)
    path = tmp_path / "grants.json"

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["grants"][0]["tool"] == "bash"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"grants":[{"tool":"bash"}]}', b"\xff",
                b'{"grants":[{"id":"g1","tool":"bash","since":"x","until":"tomorrow"}]}',
                b'{"grants":[{"id":"g1","tool":"bash","since":"x","until":"2026-10-16T00:00:00"}]}']
)  # fmt: skip
def test_a_file_that_cannot_be_read_grants_nothing(tmp_path, clock, content, caplog):
    """Ours: a wrong guess would run something."""
    (tmp_path / "grants.json").write_bytes(content)

    assert Grants(tmp_path / "grants.json", clock).list() == ()
    assert "nothing is granted" in caplog.text


def test_a_session_in_the_file_is_not_believed(tmp_path, clock):
    """Ours: sessions do not outlive the daemon, so one in the file is not ours."""
    text = '{"grants":[{"id":"g1","tool":"bash","since":"x","session_id":"s1"}]}'
    (tmp_path / "grants.json").write_text(text)

    assert Grants(tmp_path / "grants.json", clock).list() == ()


def test_a_grant_that_cannot_be_kept_is_none(tmp_path, clock):
    """Ours: what is said to hold holds."""
    grants = Grants(tmp_path / "no" / "grants.json", clock)
    with pytest.raises(UnusableFile, match="cannot be written"):
        grants.add("bash")
    assert not grants.covers("bash", None)
    grants.add("bash", session_id=HERE)
    assert grants.covers("bash", HERE), "which needs no file"


def test_there_is_a_bound(grants, monkeypatch):
    """STYLE 12."""
    monkeypatch.setattr(module, "MOST", 2)
    grants.add("a", session_id=HERE)
    grants.add("b", session_id=HERE)
    with pytest.raises(Busy, match="in force"):
        grants.add("c", session_id=HERE)
