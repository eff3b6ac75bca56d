"""A daemon that has loaded what any request makes it load, so that a row is only blamed for what it leaves."""

from __future__ import annotations

import wire
from harness import Daemon, until

CALLS = (("read", {"path": "/"}), ("bash", {"command": "true"}), ("no-such", {}), ("read", {"path": 5}))
BODIES = (b"{", b"[]", b'{"a":' * 2000, b'{"jsonrpc":"2.0","method":"' + b"m" * 1_000_000 + b'"}')


def warmed(daemon: Daemon) -> Daemon:
    """Have it do a little of everything."""
    client = daemon.session()
    for tool, arguments in CALLS:
        client.call(tool, **arguments)
    for body in BODIES:
        client.post(body)
    daemon.raw(wire.head("GET / HTTP/1.1", "Host: 127.0.0.1"))
    until((daemon.home / "events.db-wal").exists, what="the store of events is open")
    return daemon
