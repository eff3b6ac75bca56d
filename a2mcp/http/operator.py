"""The operator's channel: a second small Falcon app, on a Unix socket.

Who may use it is decided by the file system alone: the socket is 0600 from birth in a folder that only this user can
change, so whoever connects is the user who runs the daemon. A remote caller with the token has none of this.
"""

from __future__ import annotations

import os
import socket
import sys
import traceback
from typing import TYPE_CHECKING, Any

import falcon
import msgspec

from a2mcp.config.paths import private_socket_folder
from a2mcp.errors import A2mcpError, CannotListen, remedy
from a2mcp.http import control
from a2mcp.http.host_llm import Asked
from a2mcp.http.resource import Resource, body, reply
from a2mcp.tunnel.providers import Wish

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.config.paths import Home
    from a2mcp.http.ports import OperatorPort


class Obtain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The program that is to be there."""

    program: str


def make_operator_app(port: OperatorPort) -> falcon.App[falcon.Request, falcon.Response]:
    """Build the app: the whole route table of the channel."""
    app = falcon.App()
    app.add_route("/status", _Status(port))
    app.add_route("/token", _Token(port))
    app.add_route("/token/rotate", _Rotate(port))
    for path, resource in control.ROUTES.items():
        app.add_route(path, resource(port))
    app.add_route("/tunnel", _Tunnel(port))
    app.add_route("/host-llm", _HostLlm(port))
    app.add_route("/programs", _Programs(port))
    app.add_route("/doctor", _Doctor(port))
    app.add_route("/page", _Page(port))
    app.add_route("/stop", _Stop(port))
    app.set_error_serializer(_serialize)
    app.add_error_handler(A2mcpError, _known_fault)
    app.add_error_handler(Exception, _unknown_fault)
    return app


def bind_operator_socket(home: Home, path: Path | None = None) -> socket.socket:
    """Bind a socket of the operator's, 0600 from birth. Call it under the instance's lock and before any thread starts.

    A socket that a killed daemon left there is removed: the lock says that nobody serves it.

    Args:
        home: whose socket it is.
        path: ``home.events_socket`` for the other of the two; ``home.socket`` where it is None.

    Raises:
        CannotListen: something that is not a socket is in the way, or the folder takes none.
        UnusableFile: the short folder for a long home is not ours.
    """
    path = path or home.socket
    if path.parent != home.root:
        private_socket_folder(path.parent)
    # The umask belongs to the process: that is why no thread may run yet.
    before = os.umask(0o177)
    try:
        if path.exists() and not path.is_socket():
            raise CannotListen(f"{path} is not a socket.", hint="Remove it and start again.")
        path.unlink(missing_ok=True)
        return _listener(path)
    except OSError as error:
        text = f"The operator's socket {path} cannot be made: {error.strerror}."
        raise CannotListen(text, hint=remedy(error)) from error
    finally:
        os.umask(before)


def _listener(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(os.fspath(path))
    except OSError:
        listener.close()
        raise
    return listener


class _Status(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.status())


class _Token(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, {"token": self._port.token()})


class _Rotate(Resource):
    def on_post(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, {"token": self._port.rotate()})


class _Tunnel(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.tunnel())

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        response.status = falcon.HTTP_202
        reply(response, self._port.open_tunnel(body(request, Wish, "tunnel")))

    def on_delete(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.status = falcon.HTTP_202
        reply(response, self._port.close_tunnel())


class _HostLlm(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.host_llm())

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        asked = body(request, Asked, "switch")
        reply(response, self._port.switch_host_llm(enabled=asked.enabled))


class _Programs(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.programs())

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        wanted = body(request, Obtain, "program")
        if not self._port.obtain(wanted.program):
            raise falcon.HTTPNotFound(description=f"No program is called '{wanted.program[:80]}'.")
        response.status = falcon.HTTP_202
        reply(response, {"program": wanted.program})


class _Doctor(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.doctor())


class _Page(Resource):
    def on_post(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.invite())


class _Stop(Resource):
    def on_post(self, _request: falcon.Request, response: falcon.Response) -> None:
        self._port.stop()
        response.status = falcon.HTTP_202
        reply(response, {"stopping": True})


def _error(response: falcon.Response, text: str, hint: str = "") -> None:
    reply(response, {"error": {"text": text, "hint": hint}})


def _serialize(_request: falcon.Request, response: falcon.Response, error: falcon.HTTPError) -> None:
    _error(response, error.description or error.title or str(error.status))


def _known_fault(
    _request: falcon.Request, response: falcon.Response, error: A2mcpError, _params: dict[str, Any]
) -> None:
    # What a caller gets as the result of a tool, with 200, is a refusal here.
    response.status = falcon.code_to_http_status(max(error.status, 400))
    _error(response, error.text, error.hint)


def _unknown_fault(
    _request: falcon.Request, response: falcon.Response, error: Exception, _params: dict[str, Any]
) -> None:
    traceback.print_exception(error, file=sys.stderr)
    response.status = falcon.HTTP_500
    _error(response, "internal error", "The daemon's log has the cause.")
