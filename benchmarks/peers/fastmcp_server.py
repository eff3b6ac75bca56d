"""Peer: FastMCP, JSON replies, no token and no log. Arguments: PORT FILE."""

import logging
import sys
from pathlib import Path

import uvicorn
from fastmcp import FastMCP

logging.disable(logging.WARNING)
port, small = int(sys.argv[1]), Path(sys.argv[2])
server = FastMCP("peer")


@server.tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
def read(path: str) -> str:  # noqa: ARG001 - the benchmark's file is the only one this server reads
    """Give the file's text."""
    return small.read_text(encoding="utf-8")


app = server.http_app(path="/mcp", json_response=True)
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
