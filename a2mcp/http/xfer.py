"""The route of files: what is shared, under ``/xfer``, by whichever server the share has.

Runs in the loop and touches no file: requests are answered, and bodies written, by a few workers of its own. Without a
share there is nothing on this path, and the refusal is that of any other empty path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from a2mcp.errors import NotFound
from a2mcp.http.relay import Relays
from a2mcp.http.routes import route_for
from a2mcp.http.server.parked import Parked
from a2mcp.http.server.workers import Workers
from a2mcp.http.uploads import Body, Ignored
from a2mcp.xfer.transfers import UPLOADS

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from a2mcp.http.guard import Head
    from a2mcp.http.server.sinks import Sink
    from a2mcp.protocol.response import Response
    from a2mcp.xfer.proxy import Upstream
    from a2mcp.xfer.request import Request
    from a2mcp.xfer.settings import XferSettings
    from a2mcp.xfer.share import Share
    from a2mcp.xfer.transfers import Transfers


class SharePort(Protocol):
    """What the route of files needs. Every method returns at once, on any thread."""

    def current(self) -> Share | None:
        """What is shared now. It may be closed a moment later; whatever uses it then ends."""
        ...

    def options(self) -> XferSettings:
        """How it is shared."""
        ...

    @property
    def transfers(self) -> Transfers:
        """What is being moved through it."""
        ...

    def upstream(self) -> Upstream | None:
        """Where requests are passed on to, when another program serves what is shared now."""
        ...


class Files:
    """The resource on ``/xfer``; ``sink`` is where its bodies go."""

    def __init__(self, shares: SharePort) -> None:
        self._shares = shares
        self._workers = Workers("Files")
        self._relays = Relays()

    def sink(self, head: Head) -> Sink | None:
        """Offer a place for a body that has been let in, before any of it is read.

        Raises:
            NotFound: nothing is shared.
            FileRefusal: what the request asks is not done.
        """
        if route_for(head.raw_path).name != "xfer" or self._shares.upstream() is not None:
            return None
        share = self._share()
        if head.command not in UPLOADS:
            return Ignored()
        asked = self._request(
            share, head.command, head.raw_path, "", lambda name: head.headers.get(name.replace("-", "_"))
        )
        return self._body(asked, head.content_length)

    def __call__(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Hand the request over, and leave a parked response."""
        method, req.method = req.method, "GET"  # Falcon throws the stream of a HEAD away, and with it the promise.
        upstream = self._shares.upstream()
        if upstream is not None:
            stall_s = self._shares.options().stall_s
            resp.stream = self._relays.start(req.env, upstream, self._shares.transfers, stall_s=stall_s)
            return
        share = self._share()
        parked = Parked()
        resp.stream = parked
        body = req.env["wsgi.input"]
        if isinstance(body, Body):
            body.finish(parked)
            return
        asked = self._request(share, method, req.env["PATH_INFO"], req.env["QUERY_STRING"], req.get_header)
        if method in UPLOADS:
            self._body(asked, 0).finish(parked)
            return
        self._workers.answer(parked, lambda: _answer(asked))

    def settle(self, seconds: float) -> None:
        """Wait until unfinished uploads are removed, but no longer than this. For the end of the process."""
        self._workers.settle(seconds)

    def _share(self) -> Share:
        share = self._shares.current()
        if share is None or share.closed:
            raise NotFound("nothing is served on this path")
        return share

    def _request(
        self, share: Share, method: str, raw_path: str, query: str, header: Callable[[str], str | None]
    ) -> Request:
        from a2mcp.xfer.request import request  # noqa: PLC0415 - for a share only

        options, transfers = self._shares.options(), self._shares.transfers
        return request(share, options, transfers, method, raw_path=raw_path, query=query, header=header)

    def _body(self, asked: Request, size: int) -> Body:
        from a2mcp.xfer.upload import incoming  # noqa: PLC0415 - for a share only

        return Body(incoming(asked, size), self._workers, asked, size)


def _answer(asked: Request) -> Response:
    from a2mcp.xfer.service import answer  # noqa: PLC0415 - much comes with it: for the first request, in a worker

    return answer(asked)
