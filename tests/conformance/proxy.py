"""A loopback proxy that adds the bearer token: the official suite cannot send headers of its own.

One request a connection: the head gets the token and ``Connection: close``, everything else passes as it came, Host and
Origin too. When either side closes, so does the other: that is how a client cancels.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPLACED = re.compile(rb"^(authorization|connection)\s*:.*\r\n", re.IGNORECASE | re.MULTILINE)
LONGEST_HEAD = 1 << 17
PIECE = 1 << 16


class Proxy:
    """Forwards to a daemon on this machine."""

    def __init__(self, port: int, token: str) -> None:
        self._upstream = port
        self._added = f"Authorization: Bearer {token}\r\nConnection: close\r\n".encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            theirs, ours = await asyncio.open_connection("127.0.0.1", self._upstream)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
            return
        first, _, rest = head.partition(b"\r\n")
        ours.write(first + b"\r\n" + self._added + _REPLACED.sub(b"", rest))
        ways = [asyncio.create_task(_carry(reader, ours)), asyncio.create_task(_carry(theirs, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for each in (ours, writer):
            each.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()


@contextlib.contextmanager
def proxied(port: int, token: str) -> Iterator[int]:
    """Run a proxy for the length of a block; its port."""
    loop = asyncio.new_event_loop()
    made = asyncio.start_server(Proxy(port, token).serve, "127.0.0.1", 0, limit=LONGEST_HEAD)
    server = loop.run_until_complete(made)
    thread = threading.Thread(target=loop.run_forever, name="Proxy")
    thread.start()
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
