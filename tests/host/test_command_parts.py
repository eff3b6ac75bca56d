"""The parts that running commands are made of: captures, timers, the loop, standard input, identities."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from a2mcp.clock import SystemClock
from a2mcp.errors import ToolError
from a2mcp.host import descendants, identity, marks, orphans, process, procfs
from a2mcp.host.capture import HEAD_BYTES, Budget, Capture
from a2mcp.host.command import Command
from a2mcp.host.feeder import WAITING_BYTES, Feeder
from a2mcp.host.identity import Identity
from a2mcp.host.loop import Loop
from a2mcp.host.process import spawn
from a2mcp.host.timers import Timers


class TurnedClock(SystemClock):
    """A clock that tests turn."""

    def __init__(self):
        self.at = 1000.0

    def monotonic(self):
        return self.at


class Pipe:
    """A pipe and the capture that reads it."""

    def __init__(self, left=1 << 30, shared=None):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.budget = Budget(left, shared)
        self.capture = Capture(self.reader, self.budget)

    def say(self, data):
        assert os.write(self.writer, data) == len(data)
        self.capture.drain()

    def close(self):
        self.capture.close()
        os.close(self.reader)
        if self.writer >= 0:
            os.close(self.writer)


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close()


def until(condition):
    deadline = time.monotonic() + 10
    while not (value := condition()):
        assert time.monotonic() < deadline
    return value


def file_in(tmp_path, name="out"):
    return os.open(tmp_path / name, os.O_RDWR | os.O_CREAT)


# --- captures


def test_small_output_stays_in_memory(pipe):
    """Ours: no file for a short command."""
    pipe.say(b"one ")
    pipe.say(b"two")
    assert pipe.capture.excerpt(100).head == b"one two"
    assert not pipe.capture.outgrown
    assert not pipe.capture.ended
    os.close(pipe.writer)
    pipe.writer = -1
    assert pipe.capture.drain()


@pytest.mark.parametrize("splice", [True, False])
def test_what_outgrows_memory_goes_on_in_a_file(pipe, tmp_path, monkeypatch, splice):
    """Ours: nothing is lost at the change, with and without splice."""
    if not splice:
        monkeypatch.delattr(os, "splice")
    said = b""
    for n in range(4):
        piece = bytes([65 + n]) * 40_000
        said += piece
        pipe.say(piece)
        if pipe.capture.outgrown:
            pipe.capture.keep_in(file_in(tmp_path))
    assert (tmp_path / "out").read_bytes() == said
    excerpt = pipe.capture.excerpt(1000)
    assert (excerpt.head, excerpt.tail, excerpt.total) == (b"A" * 500, b"D" * 500, 160_000)
    assert pipe.capture.read(39_999, 2) == b"AB"


@pytest.mark.parametrize("splice", [True, False])
def test_what_was_dropped_once_leaves_no_hole_when_there_is_room_again(tmp_path, monkeypatch, splice):
    """Ours: another command gives its room back; the end that was shown was not the end."""
    if not splice:
        monkeypatch.delattr(os, "splice")
    shared = Budget(100)
    other = Budget(1000, shared)
    other.spend(95)
    pipe = Pipe(shared=shared)
    pipe.capture.keep_in(file_in(tmp_path))
    pipe.say(b"A" * 20)
    other.release()
    pipe.say(b"B" * 10)
    excerpt = pipe.capture.excerpt(8)
    assert (excerpt.head, excerpt.tail, excerpt.total, excerpt.dropped) == (b"AAAA", b"BBBB", 30, 25)
    assert pipe.capture.last(3) == b"BBB"
    assert (tmp_path / "out").read_bytes() == b"AAAAA"
    pipe.close()


def test_memory_waits_to_be_moved_before_it_grows(pipe):
    """Ours: the capture stops reading until it has a file."""
    pipe.say(b"x" * 60_000)
    pipe.say(b"x" * 60_000)
    assert pipe.capture.outgrown
    os.write(pipe.writer, b"more")
    pipe.capture.drain()
    assert pipe.capture.total <= HEAD_BYTES + 64 * 1024


def test_the_budget_is_shared_and_what_is_over_it_is_counted(tmp_path):
    """Issue §5: up to job_bytes, then dropped; the end is kept."""
    pipe = Pipe(left=10)
    pipe.say(b"12345678")
    pipe.capture.keep_in(file_in(tmp_path))
    pipe.say(b"9abcdef")
    pipe.say(b"gh")
    excerpt = pipe.capture.excerpt(8)
    assert (tmp_path / "out").read_bytes() == b"123456789a"
    assert (excerpt.head, excerpt.tail, excerpt.total, excerpt.dropped) == (b"1234", b"efgh", 17, 7)
    pipe.close()


def test_a_disk_that_is_full_costs_the_rest_of_the_output(pipe):
    """Ours: /dev/full refuses every write, and cannot be spliced to."""
    pipe.say(b"x" * 60_000)
    pipe.say(b"y" * 60_000)
    pipe.capture.keep_in(os.open("/dev/full", os.O_RDWR))
    pipe.say(b"the end")
    assert pipe.capture.dropped == 120_007
    assert pipe.capture.excerpt(1000).tail.endswith(b"ythe end")


def test_without_a_file_memory_stays_and_the_rest_is_counted(pipe):
    """Ours: no folder can be made."""
    pipe.say(b"head")
    pipe.capture.keep_in(None)
    pipe.say(b"rest")
    excerpt = pipe.capture.excerpt(1000)
    assert (excerpt.head, excerpt.tail, excerpt.dropped) == (b"head", b"rest", 4)


# --- timers and the loop


def test_timers_fire_in_order_and_only_when_due():
    """Ours: the clock seam decides."""
    clock, said = TurnedClock(), []
    timers = Timers(clock)
    assert timers.timeout() is None
    timers.after(2, lambda: said.append("second"))
    timers.after(1, lambda: said.append("first"))
    never = timers.after(1.5, lambda: said.append("never"))
    never.cancel()
    never.cancel()
    timers.fire()
    assert (said, timers.timeout()) == ([], 1)
    clock.at += 5
    timers.fire()
    assert said == ["first", "second"]
    assert timers.timeout() is None


def test_cancelled_timers_do_not_pile_up():
    """Ours: a thousand short commands leave no thousand deadlines."""
    timers = Timers(TurnedClock())
    kept = timers.after(100, lambda: None)
    for _ in range(1000):
        timers.after(50, lambda: None).cancel()
    assert len(timers._heap) < 200
    assert kept.call is not None
    assert timers.timeout() == 100


def test_a_step_that_fails_costs_only_its_own(caplog):
    """Ours: the loop is a rim."""
    loop, said = Loop(SystemClock()), []
    readers = []
    for step in (lambda: 1 // 0, lambda: said.append("other")):
        reader, writer = os.pipe()
        os.close(writer)
        readers.append(reader)
        loop.on_readable(reader, step, lambda: said.append("fault"))
    loop.turn(1)
    assert sorted(said) == ["fault", "other"]
    assert "could not be looked after" in caplog.text
    for reader in readers:
        loop.forget(reader)
        loop.forget(reader)
        os.close(reader)
    loop.close()


def test_what_an_earlier_step_has_closed_is_skipped():
    """Ours: two ready descriptors in one turn, the first step lets go of both."""
    loop, said = Loop(SystemClock()), []
    pipes = [os.pipe(), os.pipe()]

    def let_go():
        said.append("once")
        for reader, _ in pipes:
            loop.forget(reader)

    for reader, writer in pipes:
        os.write(writer, b"x")
        loop.on_readable(reader, let_go)
    loop.turn(1)
    assert said == ["once"]
    for ends in pipes:
        for end in ends:
            os.close(end)
    loop.close()


# --- standard input


def test_input_is_bounded_ordered_and_closed_at_the_end():
    """Ours."""
    loop = Loop(SystemClock())
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    feeder = Feeder(os.fdopen(writer, "wb", buffering=0))
    feeder.offer(b"a" * WAITING_BYTES)
    with pytest.raises(ToolError, match="has not read its input"):
        feeder.offer(b"b")
    feeder.pump(loop, lambda: None)
    feeder.offer(b"end")
    feeder.offer(b"")
    with pytest.raises(ToolError, match="is closed"):
        feeder.offer(b"late")
    read = b""
    while piece := os.read(reader, 1 << 20):
        read += piece
        loop.turn(0)
    assert read == b"a" * WAITING_BYTES + b"end"
    assert feeder.descriptor == -1
    os.close(reader)
    loop.close()


def test_input_that_nobody_can_read_any_more_is_let_go():
    """Ours: a broken pipe is no fault."""
    loop = Loop(SystemClock())
    reader, writer = os.pipe()
    feeder = Feeder(os.fdopen(writer, "wb", buffering=0))
    os.close(reader)
    feeder.offer(b"x")
    feeder.pump(loop, lambda: None)
    assert feeder.descriptor == -1
    loop.close()


# --- identities


def test_a_process_is_more_than_its_number():
    """Issue §5: pid and start time."""
    me = Identity.of(os.getpid())
    assert me is not None
    assert me.alive()
    assert not Identity(me.pid, me.started + 1, me.boot).alive()
    assert not Identity(me.pid, me.started, "another boot").alive()
    assert Identity.of(2**22 + 1) is None


def test_a_name_with_parentheses_does_not_confuse(tmp_path):
    """Ours: the second field of /proc/PID/stat may hold anything."""
    odd = tmp_path / "a) R 1 ("
    odd.symlink_to(sys.executable)
    child = subprocess.Popen([odd, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    seen = Identity.of(child.pid)
    assert seen is not None
    assert seen.alive()
    child.communicate(b"\n")
    assert not seen.alive()


def test_where_nothing_can_be_told_nothing_is_signalled(monkeypatch, tmp_path):
    """Ours: a system without /proc."""
    me = Identity.of(os.getpid())
    monkeypatch.setattr(procfs, "PROC", tmp_path / "none")
    procfs.boot_id.cache_clear()
    assert Identity.of(os.getpid()) is None
    assert not me.alive()
    assert identity.members(os.getpgrp()) == []
    assert procfs.boot_id() == ""
    assert procfs.descendants(os.getppid()) == []
    assert isinstance(descendants._settled(), descendants.NoProc)
    me.send(signal.SIGKILL)
    procfs.boot_id.cache_clear()


def test_a_stranger_with_the_same_number_gets_no_signal():
    """Row D07: told by the start time, while a descriptor holds whoever is looked at."""
    child = subprocess.Popen(["sleep", "60"])
    seen = Identity.of(child.pid)
    assert seen is not None
    Identity(seen.pid, seen.started - 1, seen.boot).send(signal.SIGKILL)
    assert child.poll() is None
    seen.send(signal.SIGKILL)
    assert child.wait(10) == -signal.SIGKILL
    seen.send(signal.SIGKILL)


def test_descendants_are_found_in_every_generation():
    """Ours: by the children of every thread, not by looking at everybody."""
    script = "(sleep 60 & sleep 60 & wait) & echo $!; read -r _"
    child = subprocess.Popen(
        ["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert int(child.stdout.readline()) in procfs.children(child.pid)
    found = until(lambda: len(found := procfs.descendants(child.pid)) == 3 and found)
    assert found[0] in procfs.children(child.pid)
    assert set(found) <= set(procfs.descendants(os.getpid()))
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


# --- marks


def test_a_mark_says_whose_a_process_is(tmp_path):
    """Ours: another for each command, on whoever it starts, in the middle of an exec and after death as well."""
    found = []
    for _ in range(2):
        child = spawn(Command(text="env -i setsid sleep 60 & wait", cwd=tmp_path), started=0.0)
        (inner,) = until(lambda child=child: list(procfs.children(child.pid)))
        until(lambda inner=inner: procfs.look(inner).name == "sleep")
        assert marks.of(inner) == marks.of(child.pid) == child.mark
        assert not marks.is_helper(child.mark)
        assert marks.is_of(marks.helper(), child.mark)
        found.append(child.mark)
        os.kill(inner, signal.SIGKILL)
        until(lambda child=child: child.status() is not None)
        assert marks.of(child.pid) == child.mark
        child.discard()
    assert len(set(found)) == 2
    assert marks.is_helper(marks.helper())


def test_who_is_started_while_orphans_are_looked_for_is_none(tmp_path, monkeypatch):
    """Ours: another thread starts commands, and searchers, which would be killed if they were taken for orphans."""
    begun = []
    listed = procfs.pids

    def starting():
        begun.append(process.launch(["sleep", "60"], mark=marks.home_of(tmp_path)))
        begun.append(process.launch(["sleep", "60"], mark=marks.home_of(tmp_path) + 7))
        return listed()

    monkeypatch.setattr(procfs, "pids", starting)
    assert orphans.search(tmp_path) == {}
    assert [marks.is_of(marks.home_of(tmp_path), marks.of(each.pid)) for each in begun] == [True, True]
    for each in begun:
        each.kill()
        each.wait()


def test_nobody_else_bears_a_mark(tmp_path):
    """Ours: not the daemon, nor what others start; a limit that somebody has set is no mark."""
    assert marks.of(os.getpid()) is None
    assert marks.of(2**22 + 1) is None
    helper = process.launch(["sleep", "60"])
    other = subprocess.Popen(["bash", "-c", "ulimit -S -R 200000; echo on; exec sleep 60"], stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"on\n"
    assert marks.of(helper.pid) == marks.helper()
    assert marks.of(other.pid) is None
    for each in (helper, other):
        each.kill()
        each.communicate()


@pytest.mark.skipif(os.geteuid() != 0, reason="root may become another user")
def test_the_mark_of_another_users_process_can_be_read():
    """Ours: what sudo started is known, though it cannot be signalled."""
    child = process.launch(["sleep", "60"])
    script = "import os, sys; sys.path[:0] = [sys.argv[2]]; from a2mcp.host import marks; os.setuid(65534); print(marks.of(int(sys.argv[1])))"
    seen = subprocess.run(
        [sys.executable, "-c", script, str(child.pid), str(Path(process.__file__).parents[2])],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    child.kill()
    child.wait()
    assert seen.stdout == f"{marks.helper()}\n", seen.stderr


def test_a_home_is_named_by_more_than_its_path(tmp_path):
    """Ours: a container may have the same path and show its processes to the machine around it."""
    home = tmp_path / "home"
    home.mkdir()
    before = marks.home_of(home)
    assert marks.home_of(home) == before
    home.rename(tmp_path / "elsewhere")
    home.mkdir()
    assert marks.home_of(home) != before


# --- children


def test_the_end_of_a_child_is_seen_without_a_process_descriptor(tmp_path, monkeypatch):
    """Ours: systems without pidfd, and those that cannot look without reaping either."""
    monkeypatch.delattr(os, "pidfd_open")
    for can_peek in (True, False):
        monkeypatch.setattr(process, "_CAN_PEEK", can_peek)
        child = spawn(Command(text="exit 9", cwd=tmp_path), started=0.0)
        assert os.read(child.exit_descriptor, 1) == b""
        assert child.status() == 9
        child.reap()
        child.close()


def test_without_memory_files_stdin_is_a_temporary_file(tmp_path, monkeypatch):
    """Ours: systems without memfd."""
    monkeypatch.delattr(os, "memfd_create")
    child = spawn(Command(text="cat", cwd=tmp_path, stdin=b"through"), started=0.0)
    child.popen.wait()
    assert os.read(child.popen.stdout.fileno(), 100) == b"through"
    child.discard()


def test_a_reaped_child_is_never_signalled(tmp_path, monkeypatch):
    """Issue §8: its number may be somebody else's."""
    child = spawn(Command(text="true", cwd=tmp_path), started=0.0)
    child.discard()
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("signalled"))
    child.signal(signal.SIGTERM)


def test_a_child_without_an_exit_descriptor_is_not_left_alone(tmp_path, monkeypatch):
    """Ours: out of descriptors right after the start."""

    def refuse(_pid):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with pytest.raises(ToolError, match="too many files open"):
        spawn(Command(text="sleep 67", cwd=tmp_path), started=0.0)


SPAWN = """
import sys
import time
from pathlib import Path
sys.path.insert(0, {root!r})
from a2mcp.errors import ToolError
from a2mcp.host.command import Command
from a2mcp.host.process import spawn
try:
    spawn(Command(text="true", cwd=Path("/")), started=0.0)
except ToolError as error:
    print(error)
"""


@pytest.mark.skipif(
    not any((Path(d) / "strace").exists() for d in os.get_exec_path()), reason="strace is not installed"
)
def test_a_system_without_room_for_a_process_is_explained():
    """Row B11: EAGAIN on every kind of fork, injected."""
    inject = ["strace", "-qq", "-o", "/dev/null"]
    for call in ("clone", "clone3", "fork", "vfork"):
        inject += ["-e", f"inject={call}:error=EAGAIN"]
    script = SPAWN.format(root=str(Path(__file__).parents[2]))
    done = subprocess.run([*inject, sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr or "PTRACE" in done.stderr:
        pytest.skip("strace may not trace here")
    assert "no room for another process" in done.stdout, done.stderr
