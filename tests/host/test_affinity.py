"""The daemon's threads stay on one processor, and what it starts does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import Daemon

needs_two = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="one processor, or not Linux"
)


def processors(status: str) -> str:
    return next(line.split(":")[1].strip() for line in status.splitlines() if line.startswith("Cpus_allowed_list"))


@needs_two
def test_every_thread_of_the_daemon_is_on_one_processor_and_a_command_has_all(daemon: Daemon) -> None:
    """Ours: waking a thread on another processor is what a call costs; a build that a caller starts needs them all."""
    client = daemon.session()
    client.call("read", path="/etc/hostname")
    ours = processors(Path("/proc/self/status").read_text())

    command = client.call("bash", command="cat /proc/self/status").text
    tasks = [(task / "status").read_text() for task in Path(f"/proc/{daemon.process.pid}/task").iterdir()]
    on_the_path = [status for status in tasks if "Events" not in status.splitlines()[0]]

    assert processors(command) == ours
    assert {processors(status) for status in on_the_path} <= {str(max(os.sched_getaffinity(0))), ours}
    assert sum(processors(status) == ours for status in tasks) <= 1, "only what keeps the events may be elsewhere"


@needs_two
def test_the_operator_can_let_it_run_everywhere(tmp_path: Path) -> None:
    """Ours: a setting, because another machine may measure otherwise."""
    daemon = Daemon(tmp_path / "home", settings={"one_processor": False}).start()
    try:
        ours = processors(Path("/proc/self/status").read_text())
        assert processors(Path(f"/proc/{daemon.process.pid}/status").read_text()) == ours
    finally:
        daemon.kill()
