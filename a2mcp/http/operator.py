"""The operator's channel: a second small Falcon app, on a Unix socket.

Who may use it is decided by the file system alone: the socket is 0600 from birth in a folder that only this user can
change, so whoever connects is the user who runs the daemon. A remote caller with the token has none of this.
"""

from __future__ import annotations

import os
import socket
import sys
import traceback
from typing import TYPE_CHECKING, Any, TypeVar

import falcon
import msgspec

from a2mcp.config.paths import private_socket_folder
from a2mcp.errors import A2mcpError, CannotListen
from a2mcp.tunnel.providers import Wish

if TYPE_CHECKING:
    from a2mcp.config.paths import Home
    from a2mcp.http.ports import OperatorPort

T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The operator's word on a waiting call."""

    id: str
    approve: bool
    reason: str = ""


class Obtain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The program that is to be there."""

    program: str


def make_operator_app(port: OperatorPort) -> falcon.App[falcon.Request, falcon.Response]:
    """Build the app: the whole route table of the channel."""
    app = falcon.App()
    app.add_route("/status", _Status(port))
    app.add_route("/token", _Token(port))
    app.add_route("/token/rotate", _Rotate(port))
    app.add_route("/approvals", _Approvals(port))
    app.add_route("/jobs", _Jobs(port))
    app.add_route("/tunnel", _Tunnel(port))
    app.add_route("/programs", _Programs(port))
    app.add_route("/stop", _Stop(port))
    app.set_error_serializer(_serialize)
    app.add_error_handler(A2mcpError, _known_fault)
    app.add_error_handler(Exception, _unknown_fault)
    return app


def bind_operator_socket(home: Home) -> socket.socket:
    """Bind the channel's socket, 0600 from birth. Call it under the instance's lock and before any thread starts.

    A socket that a killed daemon left there is removed: the lock says that nobody serves it.

    Raises:
        CannotListen: something that is not a socket is in the way, or the folder takes none.
        UnusableFile: the short folder for a long home is not ours.
    """
    if home.socket.parent != home.root:
        private_socket_folder(home.socket.parent)
    if home.socket.exists() and not home.socket.is_socket():
        raise CannotListen(f"{home.socket} is not a socket.", hint="Remove it and start again.")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The umask belongs to the process: that is why no thread may run yet.
    before = os.umask(0o177)
    try:
        home.socket.unlink(missing_ok=True)
        listener.bind(os.fspath(home.socket))
    except OSError as error:
        listener.close()
        raise CannotListen(f"The operator's socket {home.socket} cannot be made: {error.strerror}.") from error
    finally:
        os.umask(before)
    return listener


class _Resource:
    def __init__(self, port: OperatorPort) -> None:
        self._port = port


class _Status(_Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        _reply(response, self._port.status())


class _Token(_Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        _reply(response, {"token": self._port.token()})


class _Rotate(_Resource):
    def on_post(self, _request: falcon.Request, response: falcon.Response) -> None:
        _reply(response, {"token": self._port.rotate()})


class _Approvals(_Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        _reply(response, self._port.approvals())

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        answer = _body(request, Answer, "answer")
        if not self._port.answer(answer.id, approve=answer.approve, reason=answer.reason):
            raise falcon.HTTPNotFound(description=f"No call waits for approval under '{answer.id}'.")
        _reply(response, {"id": answer.id, "approved": answer.approve})


class _Jobs(_Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        _reply(response, self._port.jobs())


class _Tunnel(_Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        _reply(response, self._port.tunnel())

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        response.status = falcon.HTTP_202
        _reply(response, self._port.open_tunnel(_body(request, Wish, "tunnel")))

    def on_delete(self, _request: falcon.Request, response: falcon.Response) -> None:
        response.status = falcon.HTTP_202
        _reply(response, self._port.close_tunnel())


class _Programs(_Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        _reply(response, self._port.programs())

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        wanted = _body(request, Obtain, "program")
        if not self._port.obtain(wanted.program):
            raise falcon.HTTPNotFound(description=f"No program is called '{wanted.program[:80]}'.")
        response.status = falcon.HTTP_202
        _reply(response, {"program": wanted.program})


class _Stop(_Resource):
    def on_post(self, _request: falcon.Request, response: falcon.Response) -> None:
        self._port.stop()
        response.status = falcon.HTTP_202
        _reply(response, {"stopping": True})


def _body(request: falcon.Request, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(request.bounded_stream.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise falcon.HTTPBadRequest(description=f"The {what} is not valid: {error}.") from error


def _reply(response: falcon.Response, value: Any) -> None:
    response.content_type = falcon.MEDIA_JSON
    response.data = msgspec.json.encode(value)


def _error(response: falcon.Response, text: str, hint: str = "") -> None:
    _reply(response, {"error": {"text": text, "hint": hint}})


def _serialize(_request: falcon.Request, response: falcon.Response, error: falcon.HTTPError) -> None:
    _error(response, error.description or error.title or str(error.status))


def _known_fault(
    _request: falcon.Request, response: falcon.Response, error: A2mcpError, _params: dict[str, Any]
) -> None:
    response.status = falcon.code_to_http_status(error.status)
    _error(response, error.text, error.hint)


def _unknown_fault(
    _request: falcon.Request, response: falcon.Response, error: Exception, _params: dict[str, Any]
) -> None:
    traceback.print_exception(error, file=sys.stderr)
    response.status = falcon.HTTP_500
    _error(response, "internal error", "The daemon's log has the cause.")
