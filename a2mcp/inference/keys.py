"""Credentials: found out when a request is made, and not before.

Owns the rules of the three kinds of keys. Tells nobody what a key is: no error and no text of a struct has any of it.
"""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import CannotInfer
from a2mcp.inference.rows import Key

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.inference.rows import ModelRow

KEPT_S: Final = 300.0
"""How long what it printed is used: short enough for tokens that last an hour."""

_VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_CAPITALS: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


class Credentials(msgspec.Struct, frozen=True):
    """What a request is made with."""

    key: str | None = None
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        # SECURITY: as of a key.
        return "Credentials(…)"


def key_from(text: str) -> Key:
    """Read how a key is written: ``!command``, ``$NAME`` or ``NAME_IN_CAPITALS`` of the environment, else itself."""
    if text.startswith("!"):
        return Key("command", text[1:].strip())
    if name := _VARIABLE.fullmatch(text):
        return Key("environment", name[1])
    return Key("environment" if _CAPITALS.fullmatch(text) else "literal", text)


class Keys:
    """Finds out credentials; remembers for a while what programs printed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._printed: dict[str, tuple[float, str]] = {}
        self._running = threading.Lock()

    def of(self, row: ModelRow) -> Credentials:
        """Find out what a request to this model takes. May wait for a program; see ``ModelRow.waits``.

        Raises:
            CannotInfer: there is no such variable, or the program did not print a key.
        """
        key = self._value(row.key, row.provider)
        return Credentials(key, {name: self._value(each, row.provider) or "" for name, each in row.headers.items()})

    def forget(self) -> None:
        """Have programs run anew: the file that names them has changed."""
        self._printed.clear()

    def _value(self, key: Key, provider: str) -> str | None:
        if key.kind == "literal":
            return key.value
        if key.kind == "environment":
            return _variable(key.value, provider)
        return self._from_command(key.value, provider) if key.kind == "command" else None

    def _from_command(self, command: str, provider: str) -> str:
        from a2mcp.inference import keycommand  # noqa: PLC0415 - for those who have one

        # One at a time: two requests must not unlock the same keyring twice.
        with self._running:
            until, value = self._printed.get(command, (0.0, ""))
            if self._clock.monotonic() >= until:
                value = keycommand.run(command, provider)
                self._printed[command] = (self._clock.monotonic() + KEPT_S, value)
            return value


def _variable(name: str, provider: str) -> str:
    if value := os.environ.get(name):
        return value
    raise CannotInfer(
        f"The key of provider '{provider}' cannot be read: the variable {name} is not set.",
        hint="Set it where the daemon is started.",
    )
