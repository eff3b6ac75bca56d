#!/usr/bin/env python3
"""Call a tool of an MCP server over HTTP. One file, standard library only, Python 3.8 or later.

    export A2MCP_URL=http://127.0.0.1:8080/mcp A2MCP_TOKEN=...
    python3 mcp_call.py read path=/etc/hostname limit=5
    python3 mcp_call.py bash --json '{"command": "uname -a"}'

A value is read as the tool's schema says: numbers, booleans, lists and objects as JSON, everything else as it stands.
A repeated key makes a list, and ``key:=JSON`` takes JSON whatever the schema says. The result's text goes to standard
output, its images go to files, and what the server says meanwhile goes to standard error.

Exit codes: 0 done, 1 the result could not be written, 2 wrong usage, 6 the tool failed, 7 refused, 8 unreachable,
9 timed out. After 8 and 9 the tool may have run all the same: nothing is sent a second time, except what the server
turned away because it no longer knew the session.

Owns the talking. Knows no tool, and nothing of the product that it comes with: it may be copied to any machine.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import contextlib
import http.client
import json
import mimetypes
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Json = dict[str, Any]
    Progress = Callable[[Json], object]

VERSION = "2025-11-25"
TOOL_FAILED, REFUSED, UNREACHABLE, TIMED_OUT = 6, 7, 8, 9

_TAKEN, _NOT_FOUND = (200, 202, 204), 404
_PIECE = 1 << 16
_CANCEL_S = 2.0
"""Seconds that telling the server of a call given up may take."""


class CallError(Exception):
    """No result came; ``exit_code`` says in which way."""

    exit_code = 1


class Usage(CallError):
    """What was asked for cannot be sent."""

    exit_code = 2


class Refused(CallError):
    """The server answered, and the answer is no."""

    exit_code = REFUSED


class Unreachable(CallError):
    """Nothing answers, or it stopped in the middle."""

    exit_code = UNREACHABLE


class TimedOut(CallError):
    """The time was up before the answer came."""

    exit_code = TIMED_OUT


class UnknownSession(Refused):
    """The session is gone. The message was not looked at, so sending it again is safe."""


class Client:
    """One server. A handshake is made when it is needed, and again when the server forgot the session.

    Every method raises a ``CallError``.

    Args:
        url: the whole address, with its path.
        token: the bearer token; empty for none.
        timeout: seconds for one call, from the first byte sent to the last received.
    """

    def __init__(self, url: str, token: str = "", timeout: float = 60.0) -> None:
        self._address = _Address(url)
        self._token = token
        self._timeout = timeout
        self._deadline = 0.0
        self._headers: dict[str, str] = {}
        self._ready = False
        self._last_id = 0

    def call(self, tool: str, arguments: Json, progress: Progress | None = None) -> Json:
        """Call a tool and return its result, which may say ``isError``.

        Args:
            tool: its name.
            arguments: as its schema wants them.
            progress: given the parameters of each notification that comes before the result.
        """
        params: Json = {"name": tool, "arguments": arguments}
        if progress is not None:
            params["_meta"] = {"progressToken": "call"}
        return self._ask("tools/call", params, progress)

    def tools(self) -> list[Json]:
        """List every tool, following the pages."""
        found: list[Json] = []
        seen: set[str | None] = set()
        cursor = None
        while cursor not in seen:
            seen.add(cursor)
            page = self._ask("tools/list", {"cursor": cursor} if cursor else {})
            listed = page.get("tools")
            if not isinstance(listed, list):
                raise Refused("the server's list of tools is not understood")
            found += [one for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)]
            cursor = page.get("nextCursor")
        return found

    def close(self) -> None:
        """End the session, if there is one. A server that is gone is no error."""
        if "mcp-session-id" in self._headers:
            self._deadline = time.monotonic() + _CANCEL_S
            with contextlib.suppress(CallError), self._exchange("DELETE", None):
                pass
        self._ready = False
        self._headers = {}

    def _ask(self, method: str, params: Json, progress: Progress | None = None) -> Json:
        self._deadline = time.monotonic() + self._timeout
        for last_try in (False, True):
            fresh = not self._ready
            if fresh:
                self._shake_hands()
            try:
                return self._request(method, params, progress)
            except UnknownSession:
                # A session that was made a moment ago and is gone already will not be there the next time either.
                if last_try or fresh:
                    raise
                self._ready = False
        raise AssertionError("the second try returns or raises")

    def _shake_hands(self) -> None:
        self._headers = {}
        ours = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "mcp_call", "version": "1"}}
        session: dict[str, str] = {}
        result = self._request("initialize", ours, None, session)
        # Only where one was issued: a server without sessions has no use for the header.
        self._headers = dict(session)
        version = result.get("protocolVersion")
        if isinstance(version, str):
            self._headers["MCP-Protocol-Version"] = version
        self._tell("notifications/initialized", {})
        self._ready = True

    def _request(
        self, method: str, params: Json, progress: Progress | None, session: dict[str, str] | None = None
    ) -> Json:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        try:
            with self._exchange("POST", message) as reply:
                issued = reply.header("mcp-session-id")
                if session is not None and issued:
                    session["mcp-session-id"] = issued
                return _result(reply.messages(), self._last_id, progress)
        except TimedOut:
            if method == "tools/call":
                self._cancel(self._last_id)
            raise

    def _tell(self, method: str, params: Json) -> None:
        with self._exchange("POST", {"jsonrpc": "2.0", "method": method, "params": params}):
            pass

    def _cancel(self, call: int) -> None:
        """Say that nobody waits any more; a server that does not listen is left alone."""
        self._deadline = time.monotonic() + _CANCEL_S
        with contextlib.suppress(CallError):
            self._tell("notifications/cancelled", {"requestId": call, "reason": "timed out"})

    @contextlib.contextmanager
    def _exchange(self, verb: str, message: Json | None) -> Iterator[_Reply]:
        """Send one request on a connection of its own and give its reply, already known not to be a refusal."""
        headers = dict(self._headers, Accept="application/json, text/event-stream")
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        body = None
        if message is not None:
            headers["Content-Type"] = "application/json"
            body = _encode(message)
        with self._watched():
            connection = self._address.connect(self._left())
            try:
                connection.request(verb, self._address.path, body, headers)
                # Kept: the connection lets go of its socket when the server says that it will close it.
                sock = connection.sock
                sock.settimeout(self._left())
                reply = _Reply(connection.getresponse(), lambda: sock.settimeout(self._left()))
                reply.refuse(in_session="mcp-session-id" in self._headers)
                yield reply
            finally:
                connection.close()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Give every failure of the network its name."""
        try:
            yield
        except socket.timeout as error:  # noqa: UP041 - until Python 3.10 it is no TimeoutError
            raise TimedOut(f"no answer from {self._address.url} within {self._timeout:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(f"nothing answers at {self._address.url}: {reason}") from error

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("the time is up")  # noqa: UP041 - as above
        return left


class _Address:
    """A server's URL, taken apart once."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError as error:
            raise Usage(f"{url!r} is no URL: {error}") from error
        if parts.scheme not in ("http", "https") or not self._host:
            raise Usage(f"{url!r} is no http:// or https:// URL")
        # A redirect is never followed and a password in the URL never sent: the token goes to this address alone.
        if parts.username is not None:
            raise Usage("the URL must not hold a user name or a password")
        self._encrypted = parts.scheme == "https"
        self.path = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        self.url = url

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """Make a connection that is opened by its first use."""
        kind = http.client.HTTPSConnection if self._encrypted else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=timeout)


class _Reply:
    """One HTTP response. ``arm`` sets the socket's time-out to what is left before each wait."""

    def __init__(self, response: http.client.HTTPResponse, arm: Callable[[], None]) -> None:
        self._response = response
        self._arm = arm

    def header(self, name: str) -> str:
        """Return a header's value, or an empty string."""
        return self._response.getheader(name) or ""

    def refuse(self, *, in_session: bool) -> None:
        """Raise ``Refused`` unless the status says that the message was taken."""
        status = self._response.status
        if status in _TAKEN:
            return
        said = _error_text(self._read())
        text = f"HTTP {status}: {said}" if said else f"HTTP {status}"
        raise (UnknownSession if status == _NOT_FOUND and in_session else Refused)(text)

    def messages(self) -> Iterator[Json]:
        """Read the JSON-RPC messages of either form: one JSON body, or a stream of events."""
        if self.header("content-type").split(";")[0].strip().lower() == "text/event-stream":
            for data in _events(self._lines()):
                yield _decode(data)
        else:
            yield _decode(self._read())

    def _read(self) -> bytes:
        pieces: list[bytes] = []
        while True:
            self._arm()
            piece = self._response.read1(_PIECE)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)

    def _lines(self) -> Iterator[bytes]:
        while True:
            self._arm()
            line = self._response.readline()
            if not line:
                return
            yield line.rstrip(b"\r\n")


def _events(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join the data of each event; comments and other fields are skipped."""
    data: list[bytes] = []
    for line in lines:
        name, _, value = line.partition(b":")
        if not line and data:
            yield b"\n".join(data)
            data = []
        elif name == b"data":
            data.append(value[1:] if value.startswith(b" ") else value)


def _result(messages: Iterable[Json], wanted: int, progress: Progress | None) -> Json:
    for message in messages:
        if message.get("id") == wanted and "method" not in message:
            return _success(message)
        params = message.get("params")
        if progress is not None and message.get("method") == "notifications/progress" and isinstance(params, dict):
            progress(params)
    raise Unreachable("the answer ended before the result")


def _success(message: Json) -> Json:
    error = message.get("error")
    if isinstance(error, dict):
        raise Refused("{} (code {})".format(error.get("message"), error.get("code")))
    result = message.get("result")
    if not isinstance(result, dict):
        raise Refused("the server's answer is not understood")
    return result


def _encode(message: Json) -> bytes:
    try:
        return json.dumps(message, allow_nan=False).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        raise Usage(f"the arguments cannot be sent as JSON: {error}") from error


def _decode(data: bytes) -> Json:
    try:
        message = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refused("the server's answer is no JSON") from error
    if not isinstance(message, dict):
        raise Refused("the server's answer is no JSON-RPC message")
    return message


def _error_text(body: bytes) -> str:
    with contextlib.suppress(Refused):
        error = _decode(body).get("error")
        if isinstance(error, dict):
            return str(error.get("message"))
    return ""


# --- arguments: key=value as the tool's schema says --------------------------------------------------------------


def parse_pairs(pairs: Sequence[str], schema: Json) -> Json:
    """Read ``key=value`` and ``key:=JSON`` by a tool's input schema.

    Raises:
        Usage: a pair without a sign, or a value that is not what the schema asks for.
    """
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    collected: dict[str, list[tuple[str, bool]]] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.rstrip(":"):
            raise Usage(f"{pair!r} is not key=value")
        collected.setdefault(key.rstrip(":"), []).append((value, key.endswith(":")))
    return {key: _argument(key, values, known.get(key)) for key, values in collected.items()}


def _argument(key: str, values: list[tuple[str, bool]], schema: Any) -> Any:
    schema = schema if isinstance(schema, dict) else {}
    is_list = "array" in _types(schema)
    if len(values) > 1 or (is_list and not values[0][1] and not values[0][0].lstrip().startswith("[")):
        if not is_list and schema:
            raise Usage(f"argument {key!r} is given more than once and takes one value")
        return [_value(key, value, schema.get("items"), as_json=as_json) for value, as_json in values]
    return _value(key, values[0][0], schema, as_json=values[0][1])


def _value(key: str, text: str, schema: Any, *, as_json: bool) -> Any:
    kinds = _types(schema if isinstance(schema, dict) else {})
    if not as_json and (not kinds or "string" in kinds):
        return text
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Usage(f"argument {key!r} takes {_named(kinds)}, not {text!r}") from error


def _named(kinds: Any) -> str:
    """Name types as a sentence does: an integer or a boolean."""
    words = (kind if kind == "null" else f"{'an' if kind[0] in 'aio' else 'a'} {kind}" for kind in map(str, kinds))
    return " or ".join(words) or "JSON"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _types(schema: Json) -> list[str]:
    kinds = schema.get("type")
    return [kinds] if isinstance(kinds, str) else [kind for kind in kinds or () if isinstance(kind, str)]


def parse_object(text: str) -> Json:
    """Read a JSON object of arguments.

    Raises:
        Usage: it is none.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Usage(f"the arguments are no JSON: {error}") from error
    if not isinstance(value, dict):
        raise Usage("the arguments must be a JSON object")
    return value


def find_tool(tools: Sequence[Json], name: str) -> Json:
    """Return a tool's entry in the list.

    Raises:
        Refused: there is none of that name.
    """
    for tool in tools:
        if tool["name"] == name:
            return tool
    names = ", ".join(str(tool["name"]) for tool in tools)
    raise Refused(f"there is no tool {name!r}; there are: {names}")


# --- results: text to a stream, images to files ------------------------------------------------------------------


def show_result(result: Json, tool: str, folder: Path, write: Callable[[str], object]) -> None:
    """Write a result's text, and its images and sounds to new files whose names are written instead.

    Raises:
        OSError: a file or the stream cannot be written.
    """
    blocks = result.get("content")
    shown = [_shown(block, tool, folder) for block in blocks or () if isinstance(block, dict)]
    if not shown and "structuredContent" in result:
        shown = [json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)]
    for text in shown:
        write(text if text.endswith("\n") else text + "\n")


def _shown(block: Json, tool: str, folder: Path) -> str:
    resource = block.get("resource")
    if isinstance(resource, dict):
        block = dict(resource, data=resource.get("blob"))
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if isinstance(block.get("data"), str):
        return f"[{_save(block, tool, folder)}]"
    return "[%s]" % (block.get("uri") or block.get("type"))


def _save(block: Json, tool: str, folder: Path) -> str:
    try:
        data = base64.b64decode(block["data"], validate=True)
    except (binascii.Error, ValueError):
        return "data that is no base64"
    kind = str(block.get("mimeType") or "application/octet-stream").split(";")[0]
    safe = "".join(letter if letter.isalnum() else "_" for letter in tool) or "result"
    folder.mkdir(parents=True, exist_ok=True)
    ending = mimetypes.guess_extension(kind) or ".bin"
    number = 1
    while True:
        path = folder / f"{safe}-{number}{ending}"
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            number += 1
        else:
            return str(path)


def progress_line(params: Json) -> str:
    """Write one progress notification on one line, without what a terminal would obey."""
    done, total, said = params.get("progress"), params.get("total"), params.get("message")
    share = f"progress {done} of {total}" if total is not None else f"progress {done}"
    line = f"{said} ({share})" if said else share
    return "".join(letter if letter.isprintable() else " " for letter in line)


# --- the command -------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcp_call.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tool", nargs="?", help="its name; without one, the tools are listed")
    parser.add_argument("pairs", nargs="*", metavar="key=value", help="its arguments; - reads JSON from standard input")
    parser.add_argument("--json", metavar="OBJECT", help="its arguments as one JSON object; - reads standard input")
    parser.add_argument("--url", default=os.environ.get("A2MCP_URL"), help="the server; else A2MCP_URL is used")
    parser.add_argument("--token-file", type=Path, help="the bearer token; else A2MCP_TOKEN is used")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one call (60)")
    parser.add_argument("--images", type=Path, default=Path(), metavar="DIR", help="where images go (here)")
    return parser


def read_token(path: Path | None, environ: Mapping[str, str]) -> str:
    """Read the token. Never from the command line, where every user of the machine could see it.

    Raises:
        Usage: the file cannot be read, or holds no token.
    """
    try:
        token = environ.get("A2MCP_TOKEN", "") if path is None else path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Usage(f"the token cannot be read: {error}") from error
    token = token.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise Usage("the token is no bearer token")
    return token


def arguments_for(client: Client, tool: str, pairs: Sequence[str], document: str | None) -> Json:
    """Bring together what was typed; the server is asked for the schema only where a pair needs it."""
    documents = ([] if document is None else [document]) + [pair for pair in pairs if pair == "-"]
    if len(documents) > 1:
        raise Usage("the arguments' JSON is given twice")
    pairs = [pair for pair in pairs if pair != "-"]
    arguments = parse_object(sys.stdin.read() if documents[0] == "-" else documents[0]) if documents else {}
    if pairs:
        schema = find_tool(client.tools(), tool).get("inputSchema")
        arguments.update(parse_pairs(pairs, schema if isinstance(schema, dict) else {}))
    return arguments


def _run(asked: argparse.Namespace) -> int:
    if not asked.url:
        raise Usage("which server? Give --url or set A2MCP_URL")
    client = Client(asked.url, read_token(asked.token_file, os.environ), asked.timeout)
    try:
        if asked.tool is None:
            for tool in client.tools():
                sys.stdout.write("{}\t{}\n".format(tool["name"], str(tool.get("description", "")).split("\n")[0]))
            return 0
        arguments = arguments_for(client, asked.tool, asked.pairs, asked.json)
        result = client.call(asked.tool, arguments, lambda params: _say(progress_line(params)))
        show_result(result, asked.tool, asked.images, sys.stdout.write)
        return TOOL_FAILED if result.get("isError") is True else 0
    finally:
        client.close()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def main() -> int:
    """Run the command; returns its exit code."""
    # A pipe with another encoding must not lose a result that is already here.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return _run(_parser().parse_intermixed_args())
    except CallError as error:
        _say(f"mcp_call: {error}")
        return error.exit_code
    except OSError as error:
        _say(f"mcp_call: the result cannot be written: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
