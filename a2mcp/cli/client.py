"""The operator's channel as the command line uses it: HTTP over the daemon's Unix socket, with the stock client."""

from __future__ import annotations

import http.client
import os
import socket
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import msgspec

from a2mcp.errors import A2mcpError, NoDaemon
from a2mcp.http.facts import Answered, CallFacts, HostLlmFacts, Invitation, JobFacts, WaitingApproval
from a2mcp.http.ports import Status
from a2mcp.observe.event import Event, Wanted
from a2mcp.obtain.programs import ProgramFacts
from a2mcp.policy.grants import Grant, Word
from a2mcp.tunnel.passage import TunnelFacts

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.config.paths import Home

T = TypeVar("T")


class _Fault(msgspec.Struct):
    text: str
    hint: str = ""


class _Refusal(msgspec.Struct):
    error: _Fault


class _Token(msgspec.Struct):
    token: str


class OperatorClient:
    """One daemon, asked over its socket. Each question is a connection of its own.

    Every method raises ``NoDaemon`` when none runs for the home, and ``A2mcpError`` when it refuses or stays silent.

    Args:
        home: whose daemon.
        timeout: seconds to wait for one answer.
    """

    def __init__(self, home: Home, *, timeout: float = 10.0) -> None:
        self._home = home
        self._timeout = timeout

    def status(self) -> Status:
        """Ask how the daemon is doing."""
        return self._ask("GET", "/status", Status)

    def token(self) -> str:
        """Ask for the token in force."""
        return self._ask("GET", "/token", _Token).token

    def rotate(self) -> str:
        """Have a new token made; the old one is dead when this returns."""
        return self._ask("POST", "/token/rotate", _Token).token

    def approvals(self) -> tuple[WaitingApproval, ...]:
        """List the calls that wait for the operator."""
        return self._ask("GET", "/approvals", tuple[WaitingApproval, ...])

    def answer(self, approval_id: str, word: Word) -> Answered:
        """Decide about a waiting call."""
        return self._ask("POST", "/approvals", Answered, {"id": approval_id, **msgspec.to_builtins(word)})

    def grants(self) -> tuple[Grant, ...]:
        """List what is allowed beyond one call."""
        return self._ask("GET", "/grants", tuple[Grant, ...])

    def revoke(self, grant_id: str) -> Grant:
        """Have a tool asked about again."""
        return self._ask("POST", "/grants/revoke", Grant, {"id": grant_id})

    def events(self, wanted: Wanted, *, limit: int, after: int | None = None) -> tuple[Event, ...]:
        """Ask for kept events: the last ones, or those after a number."""
        chosen = {"after": after, "limit": limit, **msgspec.to_builtins(wanted)}
        return self._ask("GET", f"/events?{query_of(chosen)}", tuple[Event, ...])

    def calls(self) -> tuple[CallFacts, ...]:
        """List the calls in flight."""
        return self._ask("GET", "/calls", tuple[CallFacts, ...])

    def cancel(self, call_id: str) -> None:
        """End a call in flight."""
        self._ask("POST", "/calls/cancel", dict[str, Any], {"id": call_id})

    def stop_job(self, job_id: str) -> None:
        """Begin to end a command."""
        self._ask("POST", "/jobs/stop", dict[str, Any], {"id": job_id})

    def jobs(self) -> tuple[JobFacts, ...]:
        """List the commands that outlived their calls."""
        return self._ask("GET", "/jobs", tuple[JobFacts, ...])

    def tunnel(self) -> TunnelFacts:
        """Ask how the tunnel is doing."""
        return self._ask("GET", "/tunnel", TunnelFacts)

    def open_tunnel(self, wish: dict[str, str]) -> TunnelFacts:
        """Have the tunnel opened; it may still be closed when this returns."""
        return self._ask("POST", "/tunnel", TunnelFacts, wish)

    def close_tunnel(self) -> TunnelFacts:
        """Have the tunnel closed; its program may still run when this returns."""
        return self._ask("DELETE", "/tunnel", TunnelFacts)

    def host_llm(self) -> HostLlmFacts:
        """Ask whether the host may ask models."""
        return self._ask("GET", "/host-llm", HostLlmFacts)

    def switch_host_llm(self, *, enabled: bool) -> HostLlmFacts:
        """Let the host ask models, or deny it."""
        return self._ask("POST", "/host-llm", HostLlmFacts, {"enabled": enabled})

    def programs(self) -> tuple[ProgramFacts, ...]:
        """Ask where the programs of others are."""
        return self._ask("GET", "/programs", tuple[ProgramFacts, ...])

    def obtain(self, program: str) -> None:
        """Have a program found or fetched; how it goes on is in ``programs``."""
        self._ask("POST", "/programs", dict[str, Any], {"program": program})

    def invite(self) -> Invitation:
        """Ask for a link to the operator's page."""
        return self._ask("POST", "/page", Invitation)

    def stop(self) -> None:
        """Ask the daemon to drain and exit; it is still there when this returns."""
        self._ask("POST", "/stop", dict[str, Any])

    def _ask(self, method: str, path: str, kind: type[T], body: object = None) -> T:
        status, raw = self._exchange(method, path, b"" if body is None else msgspec.json.encode(body))
        try:
            if status < http.client.BAD_REQUEST:
                return msgspec.json.decode(raw, type=kind)
            fault = msgspec.json.decode(raw, type=_Refusal).error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise A2mcpError(
                f"The daemon gave an answer that is not understood (HTTP {status}).",
                hint="Is it another version? Stop it and start it again.",
            ) from error
        raise A2mcpError(fault.text, hint=fault.hint)

    def _exchange(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        connection = UnixConnection(self._home.socket, self._timeout)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read()
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NoDaemon(f"No daemon runs for {self._home.root}.", hint="Start one with `a2mcp start`.") from error
        except (OSError, http.client.HTTPException) as error:
            raise A2mcpError(
                f"The daemon does not answer on {self._home.socket}: {str(error) or type(error).__name__}.",
                hint="`a2mcp doctor` looks for the reason.",
            ) from error
        finally:
            connection.close()


def query_of(facts: dict[str, Any]) -> str:
    """Write a query; what is None is left out."""
    return urlencode({name: value for name, value in facts.items() if value is not None})


class UnixConnection(http.client.HTTPConnection):
    """A connection to a socket that must be ours."""

    def __init__(self, path: Path, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect, unless the socket belongs to another user."""
        # SECURITY: a socket in a shared folder could be somebody else's, who would like to be asked for decisions.
        if self._path.stat().st_uid != os.geteuid():
            raise PermissionError("the socket belongs to another user")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))
