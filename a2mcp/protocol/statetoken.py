"""``requestState``: what a caller carries for us between two rounds, signed so that it can only be what we gave.

It holds the answers of earlier rounds and the tool's own state, and is bound to the method, the arguments and a time.
Whoever changes any of these gets -32602.

SECURITY: the key is made of the bearer token, so whoever has that could sign, too. It keeps calls from being mixed up;
a caller could as well have given the answers that it would forge.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import InvalidParams
from a2mcp.types import JsonObject

if TYPE_CHECKING:
    from a2mcp.clock import Clock

VALID_S: Final = 600.0


class _State(msgspec.Struct, frozen=True):
    digest: str
    until: float
    answers: JsonObject
    state: str | None


class StateTokens:
    """Makes and reads the tokens.

    Args:
        secret: the bearer token the daemon started with, so that a restart does not end what was begun before it.
        clock: wall time, because it must hold across restarts.
    """

    def __init__(self, secret: str, clock: Clock) -> None:
        self._key = hmac.digest(secret.encode(), b"a2mcp requestState", "sha256")
        self._clock = clock

    def make(self, method: str, target: bytes, answers: JsonObject, state: str | None) -> str:
        """Sign the state of a call of this method with these parameters."""
        until = self._clock.now().timestamp() + VALID_S
        body = msgspec.json.encode(_State(_digest(method, target), until, answers, state))
        return base64.urlsafe_b64encode(hmac.digest(self._key, body, "sha256") + body).decode()

    def read(self, token: str, method: str, target: bytes) -> tuple[JsonObject, str | None]:
        """Return the earlier answers and the tool's own state.

        Raises:
            InvalidParams: it is not ours, too old, or was given for another call.
        """
        try:
            raw = base64.urlsafe_b64decode(token)
            # The decoder passes over what is no base64, so only the one spelling that we gave counts.
            if base64.urlsafe_b64encode(raw).decode() != token:
                raise _refused()
            signature, body = raw[:32], raw[32:]
            if not hmac.compare_digest(signature, hmac.digest(self._key, body, "sha256")):
                raise _refused()
            state = msgspec.json.decode(body, type=_State)
        except (ValueError, binascii.Error, msgspec.DecodeError) as cause:
            raise _refused() from cause
        if state.digest != _digest(method, target) or state.until < self._clock.now().timestamp():
            raise _refused()
        return state.answers, state.state


def _digest(method: str, target: bytes) -> str:
    return hashlib.sha256(method.encode() + b"\0" + target).hexdigest()


def _refused() -> InvalidParams:
    return InvalidParams("invalid params: requestState is not valid for this call", hint="Begin the call anew.")
