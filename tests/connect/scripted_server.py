"""An HTTP server in a thread that answers each JSON-RPC method as a test tells it, and keeps what it was sent."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Reply:
    """What to answer: a status, headers, and pieces of a body, which may be a generator that waits."""

    def __init__(self, status=200, pieces=(), kind="application/json", **headers):
        self.status = status
        self.pieces = pieces
        self.headers = {"Content-Type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}


def result(message, value):
    """The plain form of a success."""
    return Reply(pieces=[json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}).encode()])


def stream(*events):
    """The streamed form: each event is a message, or bytes that are sent as they are."""
    pieces = (
        one if isinstance(one, bytes) else b"event: message\r\ndata: " + json.dumps(one).encode() + b"\r\n\r\n"
        for one in events
    )
    return Reply(pieces=pieces, kind="text/event-stream; charset=utf-8")


class Quiet(ThreadingHTTPServer):
    """A client that hangs up is part of a test, not an error to print."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Scripted:
    """``answers`` maps a method to a function of the message; what is not there is answered as a stateless server does."""

    def __init__(self):
        self.answers = {}
        self.seen = []
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append((message, dict(self.headers)))
                self.reply(outer.answer(message))

            def do_DELETE(self):
                outer.seen.append(({"method": "DELETE"}, dict(self.headers)))
                self.reply(Reply(204))

            def reply(self, reply):
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.status != 204:
                    self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                if reply.status == 204:
                    return
                try:
                    for piece in reply.pieces:
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, *args):
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"

    def answer(self, message):
        """Answer as a test said, or as a stateless server would."""
        method = message["method"]
        if method in self.answers:
            return self.answers[method](message)
        if method == "initialize":
            return result(message, {"protocolVersion": "2025-11-25", "capabilities": {}})
        if method.startswith("notifications/"):
            return Reply(202)
        return result(message, {})

    @property
    def methods(self):
        """The methods that came, in order."""
        return [message["method"] for message, _ in self.seen]

    def close(self):
        """Let go of every waiting answer and end."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
