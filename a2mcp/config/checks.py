"""What a field of the settings may hold: each check returns the value or says what it must be."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from a2mcp.config import token as tokens
from a2mcp.errors import SettingsError
from a2mcp.policy.approval import Mode, Rule
from a2mcp.tools.presets import TOOLS, Preset

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.types import JsonObject

    Check = Callable[[str, Any], Any]
    """Takes a field's dotted name and what the file says; returns the value or raises ``SettingsError``."""


def token(_field: str, value: str) -> str:
    """A bearer token that is long and plain enough."""
    return tokens.check(value)


def integer(low: int, high: int) -> Check:
    """An integer within bounds."""

    def check(field: str, value: object) -> int:
        # bool is an int in Python and is not one in JSON.
        if type(value) is not int or not low <= value <= high:
            raise SettingsError(field, f"must be an integer from {low} to {high}")
        return value

    return check


def seconds(low: int, high: int) -> Check:
    """A number of seconds within bounds."""

    def check(field: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise SettingsError(field, f"must be a number of seconds from {low} to {high}")
        return float(value)

    return check


def boolean(field: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise SettingsError(field, "must be true or false")
    return value


def text(field: str, value: object) -> str:
    """A string that can be printed and is not empty."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise SettingsError(field, "must be a non-empty string")
    return value


def one_of(*words: str) -> Check:
    """One of these words."""

    def check(field: str, value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise SettingsError(field, "must be " + " or ".join(f"'{word}'" for word in words))
        return value

    return check


_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def host(field: str, value: object) -> str:
    """A host name or an address."""
    host = text(field, value)
    if not _HOST.fullmatch(host) and not _is_address(host):
        raise SettingsError(field, "must be a host name or an address, without scheme, port or brackets")
    return host


def _is_address(host: str) -> bool:
    import ipaddress  # noqa: PLC0415 - host names and IPv4 are judged without it

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def hosts(field: str, value: object) -> tuple[str, ...]:
    """An array of host names, in lower case."""
    if not isinstance(value, list):
        raise SettingsError(field, "must be an array of host names")
    return tuple(host(f"{field}[{index}]", item).lower() for index, item in enumerate(value))


def folder(field: str, value: object) -> Path:
    """The path of a folder that is there; a leading ``~`` is the home of the user."""
    folder = Path(text(field, value))
    if folder.parts[0] == "~":
        folder = Path.home().joinpath(*folder.parts[1:])
    # os.path answers False where a path is too long to be asked about; Path.is_dir raises.
    if not folder.is_absolute() or not os.path.isdir(folder):  # noqa: PTH112
        raise SettingsError(field, "must be the absolute path of a folder that exists")
    return folder


def object_(field: str, value: object) -> JsonObject:
    """An object."""
    if not isinstance(value, dict):
        raise SettingsError(field, "must be an object")
    return value


def mode(field: str, value: object) -> Mode:
    """A mode of approval."""
    return Mode(one_of(*Mode)(field, value))


def rules(field: str, value: object) -> dict[str, Rule]:
    """A rule by name of the tool."""
    rule = one_of(*Rule)
    return {text(field, name): Rule(rule(f"{field}.{name[:80]}", word)) for name, word in object_(field, value).items()}


def preset(field: str, value: object) -> Preset:
    """A preset of tools."""
    return Preset(one_of(*Preset)(field, value))


def tool_names(field: str, value: object) -> tuple[str, ...]:
    """An array of names of built-in tools."""
    if not isinstance(value, list):
        raise SettingsError(field, "must be an array of names of tools")
    name = one_of(*TOOLS[Preset.FULL])
    return tuple(name(f"{field}[{index}]", item) for index, item in enumerate(value))


def or_none(check: Check) -> Check:
    """What the check allows, or null."""
    return lambda field, value: None if value is None else check(field, value)
