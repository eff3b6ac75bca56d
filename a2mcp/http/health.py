"""Whether the daemon is alive and whether it takes calls, for those who watch over it; without a token or a secret.

``/healthz`` answers as long as the loop turns. ``/readyz`` says 503 while the daemon goes down or an actor is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import falcon

    from a2mcp.http.ports import Probe

OK = "ok"


class Health:
    """The resource on ``/healthz``."""

    def __call__(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Answer: that there is an answer is what it says."""
        _say(resp, OK)


class Ready:
    """The resource on ``/readyz``."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def __call__(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Answer 200, or 503 with the reason in a word."""
        reason = self._probe.not_ready()
        if reason is not None:
            resp.status = "503"
        _say(resp, reason or OK)


def _say(resp: falcon.Response, word: str) -> None:
    resp.media = {"status": word}
    resp.set_header("Cache-Control", "no-store")
