"""The operator's page under ``/ui/``: its files, the way in, and what the page asks and does.

The files are the same for everybody and say nothing of this daemon. All else needs a visit (``auth/visit.py``), which
begins with a code from the operator's channel; the bearer token opens nothing here. What the page asks is answered by
the app of that channel, in a worker, as far as ``OPEN`` goes; events are told by the events actor without a thread.
"""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.auth.visit import VISIT_S
from a2mcp.errors import Forbidden, MethodNotAllowed, NotFound, Stopping, Unauthorized
from a2mcp.http.events import asked
from a2mcp.http.server.parked import Parked
from a2mcp.http.server.workers import Workers
from a2mcp.protocol.response import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from a2mcp.auth.visit import Visits
    from a2mcp.http.events import Asked
    from a2mcp.observe.watching import Outlet

PREFIX: Final = "/ui/"
API: Final = "/ui/api"
KEY_HEADER: Final = "X-A2MCP-Page"
"""Carries the key of the visit. A foreign page cannot set it without asking first, which is never granted."""
CODE_BYTES: Final = 200

OPEN: Final = frozenset(
    {
        ("GET", "/status"),
        ("GET", "/token"),
        ("GET", "/approvals"),
        ("POST", "/approvals"),
        ("GET", "/grants"),
        ("POST", "/grants/revoke"),
        ("GET", "/calls"),
        ("POST", "/calls/cancel"),
        ("GET", "/sessions"),
        ("POST", "/sessions/end"),
        ("GET", "/audit"),
        ("GET", "/jobs"),
        ("GET", "/jobs/output"),
        ("POST", "/jobs/stop"),
        ("GET", "/share"),
        ("DELETE", "/share"),
        ("POST", "/share/stop"),
        ("GET", "/tunnel"),
        ("POST", "/tunnel"),
        ("DELETE", "/tunnel"),
        ("GET", "/host-llm"),
        ("POST", "/host-llm"),
        ("GET", "/doctor"),
    }
)
"""What of the operator's channel the page may use. It makes no codes, no tokens, and does not stop the daemon."""

FOLDER: Final = Path(__file__).parents[1] / "ui"
KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILE: Final = re.compile(r"[a-z]+\.(?:html|css|js|svg)")

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
"""On every response but the stream of events, which no browser shows."""


class _Stream(Parked):
    """A page that is told events; says when it has left."""

    __slots__ = ("_left",)

    def __init__(self, left: Callable[[_Stream], object]) -> None:
        super().__init__(streams=True)
        self._left = left

    def gone(self) -> None:
        """The page has left."""
        super().gone()
        self._left(self)


class Ui:
    """The resource on ``/ui``.

    Args:
        visits: who is let in.
        app: the operator's channel.
        watch: is given an outlet and what to tell it.
    """

    def __init__(self, visits: Visits, app: Callable[..., Any], watch: Callable[[Outlet, Asked], None]) -> None:
        self._visits = visits
        self._app = app
        self._watch = watch
        self._workers = Workers("Page", threads=4, waiting=256)
        self._streams: dict[_Stream, tuple[str, str]] = {}
        """The pages that are told events, and whose visit each belongs to. The loop's own."""
        self._closed = False

    def __call__(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Leave a parked response, and have it completed where waiting is allowed."""
        path = req.env["PATH_INFO"]
        if path in {"/ui", "/ui/enter", "/ui/leave"} or path.startswith(API + "/"):
            _require_own_page(req)
        if path == "/ui":
            _send(resp, Response(308, headers=(*HEADERS, ("Location", PREFIX))))
        elif path == "/ui/enter":
            self._enter(req, resp)
        elif path == "/ui/leave":
            self._leave(req, resp)
        elif path.startswith(API + "/"):
            self._api(req, resp, path.removeprefix(API))
        else:
            self._file(req, resp, path.removeprefix(PREFIX))

    def close(self) -> None:
        """Let every page go: a daemon that drains would wait for them. Called in the loop."""
        self._closed = True
        for stream in tuple(self._streams):
            self._end(stream)

    def tend(self) -> None:
        """Let the pages go whose visit is over: a stream knows no end of its own. Called in the loop, once a second."""
        for stream, visit in tuple(self._streams.items()):
            if not self._visits.knows(*visit):
                self._end(stream)

    def _end(self, stream: _Stream) -> None:
        self._streams.pop(stream, None)
        stream.complete(Response(200))

    # --- the way in and out ---------------------------------------------------------------------------------------

    def _enter(self, req: falcon.Request, resp: falcon.Response) -> None:
        _require_method(req, "POST")
        visit = self._visits.enter(req.bounded_stream.read(CODE_BYTES).decode("ascii", "replace"))
        if visit is None:
            raise Forbidden("this link was used before, or is too old.", hint="Get another with `a2mcp ui`.")
        cookie = _cookie(req, visit.cookie, int(VISIT_S))
        body = msgspec.json.encode({"key": visit.key})
        _send(resp, Response(200, body, headers=(*HEADERS, ("Set-Cookie", cookie))))

    def _leave(self, req: falcon.Request, resp: falcon.Response) -> None:
        _require_method(req, "POST")
        visit = _shown(req)
        self._visits.leave(*visit)
        for stream in [stream for stream, whose in self._streams.items() if whose == visit]:
            self._end(stream)
        _send(resp, Response(204, headers=(*HEADERS, ("Set-Cookie", _cookie(req, "", 0)))))

    # --- what the page asks ---------------------------------------------------------------------------------------

    def _api(self, req: falcon.Request, resp: falcon.Response, path: str) -> None:
        if not self._visits.knows(*_shown(req)):
            raise Unauthorized("no visit of this page goes on.", hint="Begin one with `a2mcp ui`.")
        if path == "/events":
            _require_method(req, "GET")
            resp.stream = self._events(req)
            return
        if (req.method, path) not in OPEN:
            raise NotFound("nothing is served on this path")
        parked = Parked()
        resp.stream = parked
        environ = _environ(req, path)
        self._workers.answer(parked, lambda: _ask(self._app, environ))

    def _events(self, req: falcon.Request) -> Parked:
        wanted = asked(req.query_string, req.get_header("Last-Event-ID"))
        if self._closed:
            raise Stopping("the daemon is stopping.")
        stream = _Stream(lambda left: self._streams.pop(left, None))
        self._watch(stream, wanted)
        self._streams[stream] = _shown(req)
        return stream

    def _file(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        _require_method(req, "GET")
        name = name or "index.html"
        if not _FILE.fullmatch(name):
            raise NotFound("nothing is served on this path")
        parked = Parked()
        resp.stream = parked
        self._workers.answer(parked, lambda: _load(name))


def _require_own_page(req: falcon.Request) -> None:
    """Refuse what a page of another origin asks, whatever else it brings.

    Raises:
        Forbidden: the browser says that it comes from elsewhere.
    """
    origin = req.get_header("Origin")
    site = req.get_header("Sec-Fetch-Site")
    ours = origin is None or origin == f"{req.scheme}://{req.get_header('Host')}"
    if not ours or site not in {None, "none", "same-origin"}:
        raise Forbidden("forbidden: this is for the operator's own page.")
    if req.method != "GET" and origin is None:
        raise Forbidden("forbidden: a write needs an Origin.")


def _require_method(req: falcon.Request, method: str) -> None:
    if req.method != method:
        raise MethodNotAllowed("method not allowed")


def _cookie_name(req: falcon.Request) -> str:
    # Cookies know no ports: two daemons would overwrite each other's.
    port = (req.get_header("Host") or "").rpartition(":")[2]
    return f"a2mcp_page_{port}" if port.isascii() and port.isdigit() else "a2mcp_page"


def _cookie(req: falcon.Request, value: str, age_s: int) -> str:
    return f"{_cookie_name(req)}={value}; Path={PREFIX}; Max-Age={age_s}; HttpOnly; SameSite=Strict"


def _shown(req: falcon.Request) -> tuple[str, str]:
    """Both halves of a visit, as far as they are there."""
    return req.cookies.get(_cookie_name(req), ""), req.get_header(KEY_HEADER) or ""


def _send(resp: falcon.Response, response: Response) -> None:
    parked = Parked()
    parked.complete(response)
    resp.stream = parked


def _load(name: str) -> Response:
    try:
        body = (FOLDER / name).read_bytes()
    except FileNotFoundError:
        raise NotFound("nothing is served on this path") from None
    return Response(200, body, headers=HEADERS, content_type=KINDS[Path(name).suffix])


def _environ(req: falcon.Request, path: str) -> dict[str, Any]:
    body = req.bounded_stream.read()
    kept = {name: value for name, value in req.env.items() if not name.startswith("HTTP_")}
    return kept | {"PATH_INFO": path, "CONTENT_LENGTH": str(len(body)), "wsgi.input": BytesIO(body)}


def _ask(app: Callable[..., Any], environ: dict[str, Any]) -> Response:
    """Have the operator's channel answer."""
    said: list[str] = []
    body = b"".join(app(environ, lambda status, _headers, _error=None: said.append(status)))
    return Response(int(said[0].split()[0]), body, headers=HEADERS)
