"""Sessions that come and go: nothing stays of those that are over."""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING

from figures import Course, of
from harness import running

if TYPE_CHECKING:
    from pathlib import Path

    from figures import Figures
    from harness import Client

SESSIONS = of(400, 5_000)
SAMPLES = 20
LIMIT = 64
SLOPE_KB = 1.0
"""Of memory for a session that is over."""
WARM_KB = 1024
"""What a third of the short form may grow by all the same."""


def leave(client: Client, number: int) -> None:
    """End a session in one of the ways in which they end."""
    way = number % 4
    if way == 0:
        assert client.send("DELETE").status == 204
    elif way == 1:
        sock = client._connection.sock
        assert sock is not None
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def test_a_churn_of_sessions_leaves_nothing(tmp_path: Path, figures: Figures) -> None:
    """Issue 5, section 3: 5,000 sessions; row Z02: less than 1 KB each, 64 are kept."""
    (tmp_path / "f").write_text("f\n")
    with running(tmp_path / "home") as daemon:
        course = Course(daemon)
        for number in range(SESSIONS):
            client = daemon.session()
            assert client.call("read", path=str(tmp_path / "f")).result["isError"] is False
            leave(client, number)
            daemon._clients.remove(client)
            if number % (SESSIONS // SAMPLES) == 0:
                course.sample()
        status = json.loads(daemon.cli("status", "--json").stdout)
        daemon.alive()
        stderr = daemon.stderr

    third = SESSIONS // 3
    slope_kb = course.growth_mb() * 1024 / third
    course.note_in(figures)
    figures.note(sessions=SESSIONS, slope_KB_a_session=f"{slope_kb:.3f}")
    assert stderr == ""
    assert status["sessions"] <= LIMIT
    # A few sessions' worth is warming up in the short form.
    assert slope_kb < max(SLOPE_KB, WARM_KB / third)
    assert course.threads[-1] <= max(course.threads[: SAMPLES // 3]) + 2
    assert course.descriptors[-1] <= max(course.descriptors[: SAMPLES // 3]) + 3
