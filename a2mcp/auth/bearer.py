"""The bearer token: one secret, compared in constant time, replaceable while calls run.

Knows no HTTP beyond the header's value. Refusals go to stderr, first one and then every 50th, and never to the audit
log: whoever has no token must not be able to push real records out of a rolling window (seed, "Authentication").
"""

from __future__ import annotations

import contextlib
import hmac
import re
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

REPORT_EVERY: Final = 50

# NOTE: ASCII space and tab only. ``\s`` would take a no-break space for a separator.
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr][ \t]+(.+)")


def _to_stderr(line: str) -> None:
    # Nobody may be there to read it any more, which is no reason not to answer.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class Bearer:
    """Holds the token and counts refusals.

    Args:
        token: the secret; ASCII without white space.
        report: where the line about refusals goes.
    """

    def __init__(self, token: str, *, report: Callable[[str], None] = _to_stderr) -> None:
        self._token = token.encode()
        self._report = report
        self.refused = 0
        self.generation = 0
        """Rises with every new token, so that a remembered "allowed" is not older than the token."""

    def allows(self, authorization: str | None) -> bool:
        """Whether this ``Authorization`` value carries the token; counts it when not."""
        match = _BEARER.fullmatch(authorization) if authorization else None
        # SECURITY: bytes, because compare_digest raises on a str that is not ASCII, which would be a 500 for anybody.
        given = match[1].strip(" \t").encode("utf-8", "surrogateescape") if match else b""
        if hmac.compare_digest(given, self._token):
            return True
        self.refused += 1
        if self.refused % REPORT_EVERY == 1:
            self._report(f"[a2mcp] {self.refused} unauthorized attempt(s)")
        return False

    def replace(self, token: str) -> None:
        """Take a new token; the old one is dead from here on, calls already let in finish."""
        self._token = token.encode()
        self.generation += 1
