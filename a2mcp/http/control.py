"""The part of the operator's channel that shows what happens and stops it: calls, jobs, the share, the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import falcon
import msgspec

from a2mcp.http.facts import EventsAsked, Search
from a2mcp.http.resource import Resource, body, query, reply
from a2mcp.policy.grants import Scope, Word

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_GRANT_S: Final = 366 * 24 * 3600.0


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The operator's word on a waiting call."""

    id: str
    approve: bool
    reason: str = ""
    scope: Scope = Scope.ONCE
    for_s: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_GRANT_S)] | None = None

    @property
    def word(self) -> Word:
        """The same without the name of the call."""
        return Word(approve=self.approve, reason=self.reason, scope=self.scope, for_s=self.for_s)


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be ended or revoked."""

    id: str


class OutputAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of a command's output is wanted."""

    id: str
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: int = 0
    """A negative one counts from the end."""


class _Approvals(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.approvals())

    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        answer = body(request, Answer, "answer")
        reply(response, self._port.answer(answer.id, answer.word))


class _Grants(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.grants())


class _Revoke(Resource):
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        named = body(request, Named, "grant")
        revoked = self._port.revoke(named.id)
        if revoked is None:
            raise _nothing("Nothing is granted under", named)
        reply(response, revoked)


class _Events(Resource):
    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.events(query(request, EventsAsked)))


class _Calls(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.calls())


class _Cancel(Resource):
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        named = body(request, Named, "call")
        if not self._port.cancel_call(named.id):
            raise _nothing("No call in flight has the id", named)
        _begun(response, named)


class _Sessions(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.sessions())


class _EndSession(Resource):
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        named = body(request, Named, "session")
        if not self._port.end_session(named.id):
            raise _nothing("No session has the id", named)
        reply(response, named)


class _Audit(Resource):
    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.search(query(request, Search)))


class _Jobs(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.jobs())


class _JobOutput(Resource):
    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        asked = query(request, OutputAsked)
        reply(response, self._port.job_output(asked.id, asked.stream, asked.offset))


class _StopJob(Resource):
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        named = body(request, Named, "job")
        self._port.stop_job(named.id)
        _begun(response, named)


class _Share(Resource):
    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, self._port.share())

    def on_delete(self, _request: falcon.Request, response: falcon.Response) -> None:
        reply(response, {"stopped": self._port.stop_share()})


class _StopTransfer(Resource):
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        named = body(request, Named, "transfer")
        if not self._port.stop_transfer(named.id):
            raise _nothing("Nothing is being moved under the id", named)
        _begun(response, named)


ROUTES: Final[Mapping[str, type[Resource]]] = {
    "/approvals": _Approvals,
    "/grants": _Grants,
    "/grants/revoke": _Revoke,
    "/events": _Events,
    "/calls": _Calls,
    "/calls/cancel": _Cancel,
    "/sessions": _Sessions,
    "/sessions/end": _EndSession,
    "/audit": _Audit,
    "/jobs": _Jobs,
    "/jobs/output": _JobOutput,
    "/jobs/stop": _StopJob,
    "/share": _Share,
    "/share/stop": _StopTransfer,
}


def _nothing(what: str, named: Named) -> falcon.HTTPNotFound:
    return falcon.HTTPNotFound(description=f"{what} '{named.id[:80]}'.")


def _begun(response: falcon.Response, named: Named) -> None:
    response.status = falcon.HTTP_202
    reply(response, named)
