"""What a client does to the others, as loops that go on until they are stopped: run as a script, in a process of its own.

``python attacks.py NAME`` reads what it needs to know as one line of JSON, says ``under way`` once it is, and ends when
its standard input does. Nothing here cares about answers: an attacker does not.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import socket
import struct
import sys
import threading
import time
from itertools import count, cycle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RST = struct.pack("ii", 1, 0)
TARGET: dict[str, Any] = {}
"""The daemon's ``port`` and ``token``, a ``session`` there, and where what ``ping.py`` made is on the disk (``ground``)."""


def head(first: str, *lines: str, token: bool = True) -> bytes:
    usual = ["Host: 127.0.0.1", f"mcp-session-id: {TARGET['session']}"]
    if token:
        usual.append(f"Authorization: Bearer {TARGET['token']}")
    return "\r\n".join([f"{first} HTTP/1.1", *usual, *lines, "", ""]).encode()


def post(body: bytes, path: str = "/", *, token: bool = True) -> bytes:
    return head(f"POST {path}", f"Content-Length: {len(body)}", token=token) + body


def path(name: str) -> str:
    return f"{TARGET['ground']}/{name}"


def call(tool: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def connect(*, blocking: bool = True) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", TARGET["port"]), timeout=10)
    sock.setblocking(blocking)
    return sock


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
    sock.close()


def crowd(size: int) -> list[socket.socket]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return [connect(blocking=False) for _ in range(size)]


# --- connections --------------------------------------------------------------------------------------------------


def come_and_reset() -> Iterator[None]:
    """Z05: connect and reset, as fast as it goes."""
    while True:
        reset(connect())
        yield


def come_and_go() -> Iterator[None]:
    """Z05: connect, say half a word, and leave."""
    for word in cycle((b"", b"P", b"POST / HTTP/1.1\r\nHo")):
        sock = connect()
        sock.send(word)
        sock.close()
        yield


def sit_there() -> Iterator[None]:
    """Z05: 1,100 connections that say nothing."""
    there = crowd(1100)
    while there:
        time.sleep(0.05)
        yield


def talk_rubbish() -> Iterator[None]:
    """H12 and H13: what is no HTTP, without end."""
    rubbish = os.urandom(4096)
    for word in cycle((rubbish, b"\x16\x03\x01" + rubbish, head("GET /x", "X: " + "y" * 33_000), b"\r\n" * 2000)):
        yield from once(word)


def guess_tokens() -> Iterator[None]:
    """A09: one wrong token after the other."""
    while True:
        yield from once(head("POST /", "Content-Length: 2", "Authorization: Bearer wrong", token=False) + b"{}")


def once(request: bytes) -> Iterator[None]:
    with connect() as sock, contextlib.suppress(OSError):
        sock.sendall(request)
        sock.recv(4096)
    yield


# --- slow ---------------------------------------------------------------------------------------------------------


def drip(first: bytes, drop: bytes) -> Iterator[None]:
    dripping = crowd(200)
    for sock in dripping:
        sock.send(first)
    while True:
        for number, sock in enumerate(dripping):
            try:
                sock.send(drop)
            except OSError:
                dripping[number] = connect(blocking=False)
                dripping[number].send(first)
        time.sleep(0.02)
        yield


def drip_heads() -> Iterator[None]:
    """H09: 200 heads that come by the byte."""
    yield from drip(b"POST / HTTP/1.1\r\nX-", b"y")


def drip_bodies() -> Iterator[None]:
    """H09: 200 bodies that come by the byte."""
    yield from drip(head("POST /", "Content-Length: 1000000"), b" ")


def never_read() -> Iterator[None]:
    """Section 0 row 8: 64 downloads of a large file that nobody reads."""
    there = crowd(64)
    for sock in there:
        sock.send(head("GET /xfer/large"))
    while there:
        time.sleep(0.05)
        yield


# --- much ---------------------------------------------------------------------------------------------------------


def promise_much(size: int = 100 << 20) -> Iterator[None]:
    """H08: 100 MB promised without a token, and sent whatever the answer."""
    piece = b"x" * (1 << 18)
    while True:
        with connect() as sock, contextlib.suppress(OSError):
            sock.sendall(head("POST /", f"Content-Length: {size}", token=False))
            for _ in range(size // len(piece)):
                sock.sendall(piece)
                yield
        yield


def keep(requests: list[bytes], connections: int) -> Iterator[None]:
    """Have each of so many connections send these again and again, and throw away what comes back."""
    with selectors.DefaultSelector() as selector:
        for sock in crowd(connections):
            selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE, [cycle(requests), b""])
        while True:
            for key, events in selector.select(1.0):
                try:
                    go_on(key.fileobj, key.data, events)
                except BlockingIOError:
                    continue
                except OSError:
                    again = connect(blocking=False)
                    selector.unregister(key.fileobj)
                    selector.register(again, selectors.EVENT_READ | selectors.EVENT_WRITE, [key.data[0], b""])
            yield


def go_on(sock: Any, state: list[Any], events: int) -> None:
    if events & selectors.EVENT_READ and not sock.recv(1 << 20):
        raise ConnectionResetError
    if events & selectors.EVENT_WRITE:
        unsent = state[1] or memoryview(next(state[0]))
        state[1] = unsent[sock.send(unsent) :]


def pipeline() -> Iterator[None]:
    """H06: 16 connections that never wait for an answer before they ask again."""
    ping = post(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    yield from keep([ping * 500], 16)


def post_large() -> Iterator[None]:
    """J10: bodies of 64 MB, four at a time."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"' + b"x" * (64 << 20) + b'"}'
    yield from keep([post(body)], 4)


def post_dense() -> Iterator[None]:
    """J10: arguments of many millions of values, four at a time."""
    arguments = b'{"path":[' + b"{}," * (10 << 20) + b"{}]}"
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":' + arguments + b"}}"
    yield from keep([post(body)], 4)


def write_heads() -> Iterator[None]:
    """H04: heads of thousands of lines, without a token, on 64 connections."""
    yield from keep([head("POST /", *["a:b"] * 6000, token=False)], 64)


def cut_small() -> Iterator[None]:
    """H03: bodies in chunks of one byte, eight at a time."""
    body = b"1\r\n \r\n" * 1_000_000
    yield from keep([head("POST /", "Transfer-Encoding: chunked") + body], 8)


def ask_openly() -> Iterator[None]:
    """A01: what needs no token, on 16 connections that never wait."""
    paths = ("/metrics", "/healthz", "/ui/", "/readyz", "/ui/app.js")
    yield from keep([head(f"GET {path}", token=False) for path in paths], 16)


def listen() -> Iterator[None]:
    """S04 and U12: 300 streams of changes that nobody reads, while something changes."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    wanted = {"_meta": meta, "notifications": {"toolsListChanged": True}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": wanted}).encode()
    lines = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen", "Accept: text/event-stream")
    there = crowd(300)
    for sock in there:
        sock.send(head("POST /mcp", f"Content-Length: {len(body)}", *lines) + body)
    changes = [post(call(tool, {"name": "comes-and-goes"})) for tool in ("register", "drop")]
    yield from keep(changes, 1)


def open_sessions() -> Iterator[None]:
    """S03: one session after the other, on eight connections."""
    yield from keep([post(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}') * 8], 8)


def list_tools() -> Iterator[None]:
    """The largest answer to the smallest question, never waited for."""
    yield from keep([post(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', "/mcp") * 8], 16)


# --- calls --------------------------------------------------------------------------------------------------------


def hang() -> Iterator[None]:
    """Section 0 row 3: 1,000 calls that never end."""
    there = crowd(1000)
    for sock in there:
        sock.send(post(call("hang", {})))
    while there:
        time.sleep(0.05)
        yield


def work() -> Iterator[None]:
    """Z04: 128 calls at a time of tools that compute: what is nearest to a text that is not there, and in what encoding."""
    wrong = {"oldText": "line 77 of many that were alike\n" * 30, "newText": ""}
    edit = call("edit", {"path": path("lines"), "edits": [wrong]})
    read = call("read", {"path": path("odd")})
    listed = call("glob", {"pattern": "**/*7*", "path": path("share")})
    yield from keep([post(edit), post(read), post(listed)], 128)


# --- files --------------------------------------------------------------------------------------------------------


def many_ranges() -> Iterator[None]:
    """X11: many pieces of a large file."""
    ranges = ",".join(f"{start}-{start}" for start in range(0, 6400, 100))
    yield from keep([head("GET /xfer/large", f"Range: bytes={ranges}")] * 2, 16)


def find_properties() -> Iterator[None]:
    """X12: PROPFIND of a folder of thousands."""
    yield from keep([head("PROPFIND /xfer/many/", "Depth: 1")], 16)


def list_folders() -> Iterator[None]:
    """X13: pages of a folder of thousands."""
    where = "GET /xfer/many/"
    yield from keep([head(where), head(where + "?json"), head(where + "?sort=mtime")], 16)


def upload_halves() -> Iterator[None]:
    """X10: uploads that are broken off."""
    piece = os.urandom(1 << 18)
    for number in count():
        with contextlib.suppress(OSError):
            sock = connect()
            sock.sendall(head(f"PUT /xfer/half-{number}", f"Content-Length: {32 << 20}"))
            for _ in range(60):
                sock.sendall(piece)
                yield
            reset(sock)


def main(name: str) -> None:
    attack: Callable[[], Iterator[None]] = globals()[name]
    TARGET.update(json.loads(sys.stdin.readline()))
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    steps = attack()
    next(steps)
    print("under way", flush=True)  # noqa: T201  # What the test waits for.
    for _ in steps:
        pass


if __name__ == "__main__":
    main(sys.argv[1])
