"""The process as the system sees it: where it listens, and what becomes of it without memory or beside a fork bomb."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import Daemon, running, until

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTENS = "0A"
ROOM = 48 << 20
"""Bytes of address space that are left to a daemon."""
STRANGER = 61_917
"""A user of nobody else's, for whom alone the number of processes is limited."""


def _listening(pid: int) -> set[str]:
    """The addresses on which a process accepts connections, from the kernel's own tables."""
    mine = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    found = set()
    for table, size in (("tcp", 4), ("tcp6", 16)):
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == LISTENS and f"socket:[{fields[9]}]" in mine:
                address = bytes.fromhex(fields[1].split(":")[0])
                words = struct.pack(f"={size // 4}I", *struct.unpack(f">{size // 4}I", address))
                found.add(socket.inet_ntop(socket.AF_INET if size == 4 else socket.AF_INET6, words))
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the kernel's table of sockets")
def test_it_listens_on_loopback_alone(victim: Daemon) -> None:
    """Row D01: nothing else is bound, also while something is shared."""
    client = victim.session()
    client.call("xfer_share", path=str(victim.home))
    assert _listening(victim.process.pid) == {"127.0.0.1"}
    client.call("xfer_stop")


@pytest.fixture
def cramped(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that can have little more memory than it has."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("prlimit is Linux's")
    with running(tmp_path / "home") as daemon:
        daemon.session().call("read", path="/")
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
        size = int(status.split("VmSize:")[1].split()[0]) * 1024
        resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (size + ROOM, resource.RLIM_INFINITY))
        yield daemon


def test_what_there_is_no_memory_for_costs_its_own_request(cramped: Daemon) -> None:
    """Row Z08: an error, in whichever thread it comes up; everybody else is served, and so is the next one."""
    client, other = cramped.session(), cramped.session()
    for size in (30, 60, 100):
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"x" * (size << 20) + b'"}'
        answer = client.post(body)
        assert answer.status in (200, 500), answer.body
        assert other.ask("ping").result == {}
    written = client.post(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"w","content":"'
                          + b"y" * (20 << 20) + b'"}}}')  # fmt: skip
    assert written.status in (200, 500), written.body

    assert "root" in other.call("read", path="/etc/passwd").text
    assert "hi" in other.call("bash", command="echo hi").text
    cramped.alive()
    assert cramped.stop() == 0


@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None, reason="limits another user's processes, as root"
)
def test_a_fork_bomb_ends_with_its_call(tmp_path: Path) -> None:
    """Row B04: in a limit of its own, which is the operator's to set; the call ends at its timeout, and nobody is left."""
    bomb = "ulimit -u 40; b() { b | b & }; b; sleep 60"
    command = f"exec setpriv --reuid={STRANGER} --regid={STRANGER} --clear-groups bash -c {bomb!r}"
    with running(tmp_path / "home") as daemon:
        answer = daemon.session().call("bash", command=command, timeout=1)

        assert answer.result["isError"] is True, answer.text
        daemon.alive()
        until(lambda: not _processes_of(STRANGER), what="all of them are gone")
        assert daemon.stop() == 0


def _processes_of(uid: int) -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and _owner(entry) == uid]


def _owner(entry: Path) -> int | None:
    try:
        return entry.stat().st_uid
    except OSError:
        return None
