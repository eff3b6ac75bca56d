"""One daemon per home."""

import fcntl
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from a2mcp.config import endpoint, instance
from a2mcp.config.endpoint import Endpoint
from a2mcp.config.paths import home_from_environment
from a2mcp.errors import AlreadyServing, UnusableFile

ROOT = Path(instance.__file__).parents[2]
HOLD = """
import os, sys
from a2mcp.config.instance import claim
from a2mcp.config.paths import home_from_environment
held = claim(home_from_environment(os.environ))
if sys.argv[1:]:
    import subprocess
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    print(child.pid, flush=True)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path):
    """Name a home that is not there yet."""
    return home_from_environment({"A2MCP_HOME": str(tmp_path / "home")})


@pytest.fixture
def hold(home):
    """Start processes that hold the home."""
    started = []

    def start(*args):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, *args],
            env={**os.environ, "PYTHONPATH": str(ROOT), "A2MCP_HOME": str(home.root)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        lines = []
        while not lines or lines[-1] != "held":
            lines.append(process.stdout.readline().strip())
        return process, lines[:-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_first_claim_holds_and_a_second_is_refused_with_the_address_of_the_first(home):
    """Issue §8: a second start says who serves and exits with its own code."""
    held = instance.claim(home)
    endpoint.publish(
        home.endpoint,
        Endpoint(
            url="http://127.0.0.1:5/mcp", bridge_url="http://127.0.0.1:5/", token="s" * 43, pid=77, version="1",
            started_at="2026-10-16T04:35:23.000Z",
        ),
    )  # fmt: skip
    with pytest.raises(AlreadyServing) as caught:
        instance.claim(home)
    assert "http://127.0.0.1:5/ (pid 77, since 2026-10-16T04:35:23.000Z)" in caught.value.text
    assert "sss" not in str(caught.value)
    assert caught.value.exit_code == 3
    assert instance.is_served(home)
    held.release()
    assert not instance.is_served(home)
    instance.claim(home).release()


def test_the_wait_for_a_held_lock_is_bounded(home, hold):
    """Row C07: bounded wait."""
    hold()
    began = time.monotonic()
    with pytest.raises(AlreadyServing):
        instance.claim(home)
    assert time.monotonic() - began < 5


def test_the_home_and_the_lock_are_private(home):
    """Row U10: 0600 files, 0700 folders."""
    before = os.umask(0)
    try:
        held = instance.claim(home)
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.lock.stat().st_mode) == 0o600
    held.release()


def test_a_killed_holder_frees_the_home_at_once(home, hold):
    """Row C07: the lock is the kernel's, not a pid's."""
    process, _ = hold()
    assert instance.is_served(home)
    process.kill()
    process.wait()
    instance.claim(home).release()


def test_a_command_that_outlives_a_killed_daemon_does_not_hold_the_home(home, hold):
    """Row C09: the descriptor is not inherited."""
    process, (child,) = hold("with a child")
    try:
        process.kill()
        process.wait()
        os.kill(int(child), 0)
        instance.claim(home).release()
    finally:
        os.kill(int(child), 9)


@pytest.mark.parametrize(
    "content", ["", "1\n", f"{os.getpid()}\n", "garbage\x00"], ids=["empty", "init", "own", "garbage"]
)
def test_what_a_stale_lock_file_says_does_not_matter(home, content):
    """Row C07: refuses by flock, not by the text of a pid."""
    home.root.mkdir(mode=0o700)
    home.lock.write_text(content)
    assert not instance.is_served(home)
    instance.claim(home).release()


def test_a_lock_held_by_any_other_program_is_respected(home):
    """Row C07: from another live program."""
    home.root.mkdir(mode=0o700)
    with home.lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(AlreadyServing, match="Another daemon serves"):
            instance.claim(home)
        assert instance.is_served(home)
    instance.claim(home).release()


@pytest.mark.parametrize("dangling", [False, True])
def test_a_lock_that_is_a_link_is_refused_and_the_victim_unchanged(home, tmp_path, dangling):
    """Row C08."""
    home.root.mkdir(mode=0o700)
    victim = tmp_path / "victim.txt"
    if not dangling:
        victim.write_text("precious")
    home.lock.symlink_to(victim)
    with pytest.raises(UnusableFile, match="is not a regular file"):
        instance.claim(home)
    assert victim.exists() is not dangling
    if not dangling:
        assert victim.read_text() == "precious"


def test_a_lock_that_is_a_folder_or_a_fifo_is_refused_at_once(home):
    """Ours: a start never hangs."""
    home.root.mkdir(mode=0o700)
    os.mkfifo(home.lock)
    with pytest.raises(UnusableFile, match="is not a regular file"):
        instance.claim(home)
    home.lock.unlink()
    home.lock.mkdir()
    with pytest.raises(UnusableFile, match="is not a regular file"):
        instance.claim(home)


def test_a_home_that_was_open_is_closed_and_said_so(home):
    """Row C04: tighten with a warning."""
    home.root.mkdir()
    home.root.chmod(0o755)
    held = instance.claim(home)
    assert "0700 now" in held.warnings[0]
    held.release()


def test_what_a_killed_daemon_left_is_swept_but_not_what_others_are_writing(tmp_path):
    """Row C02: no temporary file is left after the next start."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    home = home_from_environment(
        {"A2MCP_HOME": str(tmp_path / "home"), "A2MCP_CONFIG": str(elsewhere / "settings.json")}
    )
    home.root.mkdir(mode=0o700)
    ours, fresh, old = home.root / ".a2mcp-1.tmp", elsewhere / ".a2mcp-2.tmp", elsewhere / ".a2mcp-3.tmp"
    for left in (ours, fresh, old):
        left.touch()
    os.utime(old, (1, 1))
    instance.claim(home).release()
    assert (ours.exists(), fresh.exists(), old.exists()) == (False, True, False)
