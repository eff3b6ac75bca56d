"""Peer: the smallest WSGI app on Waitress with four threads: what HTTP costs before MCP. Arguments: PORT."""

import sys

import waitress

BODY = b'{"jsonrpc":"2.0","id":1000000000,"result":{"content":[{"type":"text","text":"hello from the benchmark"}]}}'
HEADERS = [("content-type", "application/json"), ("content-length", str(len(BODY)))]


def app(environ, start_response):  # noqa: ANN001, ANN201, ARG001 - WSGI's own shape
    """Answer everything with the same body."""
    start_response("200 OK", HEADERS)
    return [BODY]


waitress.serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=4, connection_limit=4096)
