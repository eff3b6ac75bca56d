"""A stand-in for ``dufs``: a script that writes down what it is asked, and answers as badly as the path says."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from appended import whole_lines

if TYPE_CHECKING:
    from pathlib import Path

BIG = 24 * 1024 * 1024
"""Bytes of ``/xfer/big``."""

_SCRIPT = (
    f"#!{sys.executable}\nBIG = {BIG}\n"
    r"""
import json, os, signal, socket, sys, threading, time

def note(kind, **what):
    with open(sys.argv[0] + "." + kind, "a") as file:
        file.write(json.dumps(what) + "\n")

def option(name):
    return sys.argv[sys.argv.index(name) + 1]

mode = open(sys.argv[0] + ".mode").read()
note("runs", pid=os.getpid(), argv=sys.argv[1:], env={k: v for k, v in os.environ.items() if k.startswith(("DUFS_", "A2MCP_"))})
if mode == "dies":
    print("error: the argument '--port' was refused", file=sys.stderr, flush=True)
    sys.exit(2)
if mode == "tells":
    print("error: a bad rule: " + os.environ["DUFS_AUTH"], file=sys.stderr, flush=True)
    sys.exit(2)
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == "silent":
    signal.pause()

def plain(*headers, body=b"ok\n", status="200 OK", length=True):
    lines = ["HTTP/1.1 " + status, *headers]
    if length:
        lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body

ANSWERS = {
    "redirect": lambda: plain("Location: https://evil.example/x", status="302 Found", body=b""),
    "cr": lambda: plain("X-A: a\rSet-Cookie: evil=1"),
    "lf": lambda: plain("X-A: a\nSet-Cookie: evil=1"),
    "space-name": lambda: plain("X A: a"),
    "folded": lambda: plain("X-A: a\r\n b"),
    "hop": lambda: plain("Connection: close, X-A", "X-A: 1", "Keep-Alive: timeout=5", "X-B: 2", "Proxy-Authenticate: Basic",
                         "WWW-Authenticate: Basic realm=x", "WWW-Authenticate: Digest realm=x", "Set-Cookie: a=b", "ETag: \"1-2\""),
    "long": lambda: plain("Content-Length: 3", body=b"okay and more", length=False),
    "short": lambda: plain("Content-Length: 5000", body=b"x" * 10, length=False),
    "two-lengths": lambda: plain("Content-Length: 3", "Content-Length: 4", length=False),
    "both": lambda: plain("Content-Length: 3", "Transfer-Encoding: chunked", body=b"3\r\nok\n\r\n0\r\n\r\n", length=False),
    "gzip-coding": lambda: plain("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n", length=False),
    "chunked": lambda: plain("Transfer-Encoding: chunked", body=b"3;x=y\r\nabc\r\n4\r\ndefg\r\n0\r\nTrailer: x\r\n\r\n", length=False),
    "broken-chunks": lambda: plain("Transfer-Encoding: chunked", body=b"3\r\nabc\r\nzz\r\n", length=False),
    "cut-chunks": lambda: plain("Transfer-Encoding: chunked", body=b"3\r\nabc\r\n9\r\nde", length=False),
    "until-close": lambda: plain(body=b"all of it", length=False),
    "huge-head": lambda: plain(*("X-%d: %s" % (n, "y" * 1000) for n in range(4000))),
    "not-http": lambda: b"SSH-2.0-OpenSSH_9\r\n\r\n",
    "nothing": lambda: b"",
    "continue": lambda: b"HTTP/1.1 100 Continue\r\n\r\n" + plain(),
    "not-modified": lambda: plain("ETag: \"1-2\"", body=b"", status="304 Not Modified", length=False),
    "forbidden": lambda: plain(body=b"Forbidden", status="403 Forbidden"),
    "big": lambda: plain(body=b"b" * BIG),
}

def serve(conn):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = conn.recv(65536)
        if not piece:
            return
        data += piece
    head, body = data.split(b"\r\n\r\n", 1)
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = [line.split(": ", 1) for line in lines]
    length = int(dict((name.lower(), value) for name, value in headers).get("content-length", 0))
    what = target.split("?")[0].rsplit("/", 1)[1]
    if what == "early":
        conn.sendall(plain(body=b"Forbidden", status="403 Forbidden"))
        note("requests", method=method, target=target, headers=headers, body=len(body))
        conn.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        return
    while len(body) < length:
        piece = conn.recv(65536)
        if not piece:
            break
        body += piece
    note("requests", method=method, target=target, headers=headers, body=len(body))
    if what == "never":
        conn.recv(1)  # Until the other side goes.
        note("left", what=target)
        return
    if what == "exit":
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nxxxx")
        os._exit(1)
    answer = ANSWERS.get(what, plain)()
    if method == "HEAD":
        answer = answer.split(b"\r\n\r\n")[0] + b"\r\n\r\n"
    conn.sendall(answer)

def one(conn):
    with conn:
        try:
            serve(conn)
        except OSError as error:
            note("left", what=str(error))

listener = socket.create_server((option("--bind"), int(option("--port"))))
print("Listening on http://127.0.0.1:%s/xfer/" % option("--port"), flush=True)
while True:
    threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
"""
)


class FakeDufs:
    """The script, and what its runs have written down."""

    def __init__(self, folder: Path, mode: str = "good") -> None:
        self.path = folder / "dufs"
        self.path.write_text(_SCRIPT)
        self.path.chmod(0o755)
        self.mode(mode)

    def mode(self, mode: str) -> None:
        """How the next run starts: ``good``, ``dies``, ``silent`` or ``deaf``."""
        self.path.with_name("dufs.mode").write_text(mode)

    def notes(self, kind: str) -> list[dict[str, Any]]:
        """What was written down: ``runs``, ``requests`` or ``left``, oldest first."""
        return [json.loads(line) for line in whole_lines(self.path.with_name(f"dufs.{kind}"))]
