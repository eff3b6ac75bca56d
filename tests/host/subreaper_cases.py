"""What happens in a process that is given orphans, one case each; run as a script with the name of a case.

Such a process is nobody that a test may be: whoever runs tests has other children, and must not be given more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from a2mcp.host import descendants, marks, process, procfs
from a2mcp.host.command import Command
from a2mcp.host.identity import identities
from a2mcp.host.process import spawn
from a2mcp.host.subreaper import Subreaper

HERE = Path.cwd()


def until(condition):
    deadline = time.monotonic() + 20
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never became so"
        time.sleep(0.005)
    return value


def begun() -> Subreaper:
    descendants.begin(HERE)
    subreaper = descendants.here()
    assert isinstance(subreaper, Subreaper)
    return subreaper


def over(child):
    until(lambda: child.status() is not None)
    return child


def shell(subreaper, text):
    child = spawn(Command(text=text, cwd=HERE), started=time.monotonic())
    subreaper.began(child)
    return child


def let_go(subreaper, child):
    subreaper.over(child)
    child.reap()
    child.close()


def nothing_remains_of_most_commands():
    subreaper = begun()
    child = over(shell(subreaper, "true"))
    assert not subreaper.remains(child)
    assert subreaper.members(child) == []
    assert not subreaper.tend()
    let_go(subreaper, child)


def who_got_away_is_known_and_buried():
    subreaper = begun()
    child = over(shell(subreaper, "(setsid bash -c 'sleep 0.4 & sleep 0.4; true' &) >/dev/null 2>&1"))
    assert subreaper.remains(child)
    assert until(lambda: {one.name for one in subreaper.members(child)} >= {"bash", "sleep"})
    until(lambda: not subreaper.remains(child))
    assert not subreaper.tend()
    let_go(subreaper, child)
    assert procfs.descendants(os.getpid()) == []


def who_clears_its_environment_is_known_all_the_same():
    subreaper = begun()
    other = shell(subreaper, "exec sleep 60")
    child = over(shell(subreaper, "setsid -f env -i sleep 60 >/dev/null 2>&1"))
    assert subreaper.remains(child)
    assert [one.name for one in subreaper.members(child)] in (["sleep"], ["env"], ["setsid"])
    assert subreaper.end_all(5.0) == []
    until(lambda: not subreaper.remains(child))
    for each in (child, over(other)):
        let_go(subreaper, each)


def who_sets_our_limit_is_told_by_its_session():
    subreaper = begun()
    child = over(
        shell(
            subreaper,
            "bash -c 'ulimit -R 200000; touch up; exec sleep 60' >/dev/null 2>&1 & until [ -e up ]; do :; done",
        )
    )
    assert subreaper.remains(child)
    (hidden,) = subreaper.members(child)
    assert marks.of(hidden.pid) is None
    subreaper.end_all(5.0)
    until(lambda: not subreaper.remains(child))
    let_go(subreaper, child)


def who_does_both_is_nobodys_and_ends_with_us():
    subreaper = begun()
    child = over(
        shell(
            subreaper,
            "setsid -f bash -c 'ulimit -R 200000; touch up; exec sleep 60' >/dev/null 2>&1; until [ -e up ]; do :; done",
        )
    )
    assert not subreaper.remains(child)
    assert subreaper.members(child) == []
    assert len(identities(procfs.descendants(os.getpid()))) == 1
    assert subreaper.end_all(5.0) == []
    for _ in range(100):
        subreaper.tend()
    assert procfs.descendants(os.getpid()) == [child.pid]  # Its zombie is buried in the end.
    let_go(subreaper, child)


def a_daemon_that_a_command_started_marks_its_own():
    outer = marks.fresh()
    with marks.wearing(outer):
        subreaper = begun()
        assert marks.of(os.getpid()) == outer
        child = over(shell(subreaper, "setsid sleep 60 >/dev/null 2>&1 &"))
        assert subreaper.remains(child)
        (one,) = subreaper.members(child)
        assert marks.of(one.pid) == child.mark
        assert not marks.is_of(outer, child.mark)
        assert subreaper.end_all(5.0) == []
        let_go(subreaper, child)


def nobody_is_started_any_more_once_the_end_has_come():
    begun()
    refused, started = [], []

    def start():
        while not refused:
            try:
                started.append(process.launch(["sleep", "60"]))
            except OSError as error:
                refused.append(error.errno)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: len(started) > 20)
    descendants.end_all(20.0)
    assert identities(procfs.descendants(os.getpid())) == []
    for thread in threads:
        thread.join()
    assert {child.wait() for child in started} == {-9}
    assert set(refused) == {errno.ECANCELED}


def where_nothing_can_be_marked_groups_are_looked_at():
    resource.setrlimit(resource.RLIMIT_RTTIME, (200_000, 200_000))
    descendants.begin(HERE)
    assert type(descendants.here()) is descendants.ProcessGroups
    child = over(spawn(Command(text="sleep 60 >/dev/null 2>&1 &", cwd=HERE), started=time.monotonic()))
    assert descendants.here().remains(child)
    (one,) = descendants.here().members(child)
    one.send(signal.SIGKILL)
    until(lambda: not descendants.here().remains(child))
    child.close()


def the_exit_code_of_somebody_elses_child_is_theirs():
    subreaper = begun()
    started = []
    thread = threading.Thread(target=lambda: started.append(subprocess.Popen(["sh", "-c", "sleep 0.2; exit 7"])))
    thread.start()
    thread.join()
    until(lambda: procfs.look(started[0].pid).state == "Z")
    for _ in range(5):
        assert subreaper.tend()
    assert started[0].wait() == 7


def what_was_there_before_is_spared():
    before = subprocess.Popen(["sleep", "60"])
    time.sleep(2 / os.sysconf("SC_CLK_TCK"))  # The kernel tells moments by ticks.
    subreaper = begun()
    after = subprocess.Popen(["setsid", "sleep", "60"])
    assert subreaper.end_all(5.0) == []
    assert after.wait() == -9
    assert before.poll() is None
    before.kill()
    before.wait()


def many_orphans_do_not_get_lost():
    subreaper = begun()
    child = over(shell(subreaper, "for i in $(seq 900); do sleep 60 >/dev/null 2>&1 & done"))
    assert subreaper.remains(child)
    assert len(subreaper.members(child)) == 900
    assert subreaper.end_all(20.0) == []
    until(lambda: not subreaper.remains(child))
    let_go(subreaper, child)


if __name__ == "__main__":
    with contextlib.suppress(FileNotFoundError):
        Path("up").unlink()
    globals()[sys.argv[1]]()
