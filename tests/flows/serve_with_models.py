"""A daemon with tools that reach out from inside its process, and one that asks its models as the agent does.

Run as a script in the place of ``a2mcp serve``.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import msgspec

from a2mcp.config.paths import home_from_environment
from a2mcp.inference import registry
from a2mcp.inference.apis import Api
from a2mcp.inference.registry import Offer
from a2mcp.inference.rows import ModelRow
from a2mcp.tools.registry import LocalHost
from a2mcp.tools.result import text
from a2mcp.tools.spec import Lane, Tier, Tool, ToolSpec
from actors import inference
from actors.daemon import Daemon, More

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.inference.keys import Credentials
    from a2mcp.inference.models import Models
    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome

KEPT: list[http.client.HTTPConnection] = []
DAEMON: list[Daemon] = []


class Place(msgspec.Struct):
    port: int
    way: str = ""


class Ref(msgspec.Struct):
    ref: str = ""


class Nothing(msgspec.Struct):
    pass


def models() -> Models:
    return DAEMON[0]._system.models


# --- ways out of this process --------------------------------------------------------------------------------------


def by_http_client(port: int) -> object:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("POST", "/v1/http.client")
    return connection.getresponse().read()


def by_httpx2(port: int) -> object:
    import httpx2

    return httpx2.post(f"http://127.0.0.1:{port}/v1/httpx2", timeout=5).content


def by_httpx2_async(port: int) -> object:
    import httpx2

    async def go() -> bytes:
        async with httpx2.AsyncClient(timeout=5) as client:
            return (await client.post(f"http://localhost:{port}/v1/httpx2-async")).content

    return asyncio.run(go())


def by_aiohttp(port: int) -> object:
    import aiohttp

    async def go() -> bytes:
        async with aiohttp.ClientSession() as session, session.post(f"http://127.0.0.1:{port}/v1/aiohttp") as answer:
            return await answer.read()

    return asyncio.run(go())


def by_urllib(port: int) -> object:
    return urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/urllib", b"", timeout=5).read()


def by_socket(port: int) -> object:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(b"POST /v1/socket HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
        return sock.recv(65536)


WAYS: dict[str, Callable[[int], object]] = {
    "http.client": by_http_client,
    "httpx2": by_httpx2,
    "httpx2-async": by_httpx2_async,
    "aiohttp": by_aiohttp,
    "urllib": by_urllib,
    "socket": by_socket,
}


def reach(params: Place, _context: Context) -> Outcome:
    WAYS[params.way](params.port)
    return text("reached")


def keep(params: Place, _context: Context) -> Outcome:
    """Use a connection that stays open between calls."""
    if not KEPT:
        KEPT.append(http.client.HTTPConnection("127.0.0.1", params.port, timeout=5))
    KEPT[0].auto_open = not KEPT[0].sock
    KEPT[0].request("POST", "/v1/kept")
    return text(KEPT[0].getresponse().read().decode())


# --- what the agent does -------------------------------------------------------------------------------------------


def speak(row: ModelRow, credentials: Credentials) -> Callable[[], object]:
    port = int(row.base_url.rsplit(":", 1)[1].split("/")[0])
    return lambda: (by_http_client(port), credentials.key)


STALE: list[ModelRow] = []


def turn(params: Ref, _context: Context) -> Outcome:
    """One request to a model: to the chosen one, to one by its name, or to the row that was taken before."""
    known = models().registry
    row = STALE[0] if params.ref == "stale" else known.find(params.ref) if params.ref else known.chosen()
    assert row is not None
    known.speak(row)()
    return text("answered")


def take(_params: Nothing, _context: Context) -> Outcome:
    row = models().registry.chosen()
    assert row is not None
    STALE[:] = [row]
    return text("taken")


def add(params: Place, _context: Context) -> Outcome:
    row = ModelRow(provider="added", id="m", name="m", api="plain", base_url=f"http://127.0.0.1:{params.port}/v1")
    models().registry.claim("added", Offer((row,)))
    return text("added")


def rebuild(_params: Nothing, _context: Context) -> Outcome:
    inference.rebuilt(DAEMON[0]._system.refs.inference)
    return text("rebuilt")


AUDITED: list[str] = []


def audited(_params: Nothing, _context: Context) -> Outcome:
    """How many audited events there were since the first call of this."""
    if not AUDITED:
        sys.addaudithook(lambda event, _args: AUDITED.append(event))
        AUDITED.append("first")
    return text(str(len(AUDITED)))


def tool(name: str, params: Any, run: Any) -> Tool[Any]:
    schema = {"type": "object"}
    spec = ToolSpec(name=name, title=name, description=name, input_schema=schema, tier=Tier.READ, lane=Lane.WORKER)
    return Tool(spec=spec, params=params, run=run)


class TestHost(LocalHost):
    name = "tests"


HOST = TestHost()
for each in (
    tool("reach", Place, reach),
    tool("keep", Place, keep),
    tool("turn", Ref, turn),
    tool("take", Nothing, take),
    tool("add", Place, add),
    tool("rebuild", Nothing, rebuild),
    tool("audited", Nothing, audited),
):
    HOST.register(each)

if __name__ == "__main__":
    # Among the built-in ones, so that models.yml may name it.
    registry.BUILTIN = (*registry.BUILTIN, Api("plain", speak))  # type: ignore[misc]
    DAEMON.append(Daemon.start(home_from_environment(os.environ), More(hosts=(HOST,))))
    sys.exit(DAEMON[0].run())
