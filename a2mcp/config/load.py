"""``a2mcp.json``: reads it, distrusts it, and keeps what the daemon itself decides (a token, a port).

Owns the file and its form. What its fields may hold is ``schema``'s; that only one daemon writes it is ``instance``'s.

The file itself must not be a symbolic link: it holds the token, and it is replaced as a whole when the daemon keeps
something. ``A2MCP_CONFIG`` may point at a file anywhere instead. Fields that are not ours keep their values and order.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from a2mcp.config import own
from a2mcp.config import token as tokens
from a2mcp.config.paths import trusted_parent
from a2mcp.config.schema import Settings, settings_from
from a2mcp.errors import SettingsError, UnusableFile, remedy

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.types import JsonObject


class Loaded(msgspec.Struct, frozen=True):
    """Settings, and what the operator should be told about them."""

    settings: Settings
    warnings: tuple[str, ...]


def load(path: Path) -> Loaded:
    """Read the settings of a daemon that starts; make the file when it is missing, and the token when it has none.

    Call it under the instance's lock. Nothing is written before everything in the file has proved right.

    Raises:
        SettingsError: a field is wrong.
        UnusableFile: the file cannot be read, written or trusted.
    """
    warnings = trusted_parent(path.parent)
    document = _read(path, warnings, mend=True)
    kept = _with_token(document)
    settings, unwise = settings_from(kept)
    if kept != document:
        _write(path, kept)
    return Loaded(settings, (*warnings, *unwise))


def inspect(path: Path) -> Loaded | None:
    """Judge the settings and change nothing; None when there is no file yet.

    Raises:
        SettingsError: a field is wrong.
        UnusableFile: the file cannot be read or trusted.
    """
    warnings: list[str] = []
    document = _read(path, warnings, mend=False)
    if document is None:
        return None
    settings, unwise = settings_from(_with_token(document))
    return Loaded(settings, (*warnings, *unwise))


def keep_port(path: Path, port: int) -> None:
    """Write the port that was chosen into a file that names none, so that clients find the daemon there again.

    A port that somebody wrote meanwhile stays.

    Raises:
        UnusableFile: the file cannot be written; the daemon can go on, on this port for this once.
    """
    document = _read(path, [], mend=True) or {}
    if "port" not in document:
        _write(path, {"port": port, **document})


def replace_token(path: Path, token: str) -> None:
    """Keep a new token in the file, on the operator's word.

    Raises:
        UnusableFile: the file cannot be written; the old token must then stay in force.
    """
    document = _read(path, [], mend=True) or {}
    _write(path, {**document, "token": token})


def _with_token(document: JsonObject | None) -> JsonObject:
    """Add what is missing: a whole first file, or a token where there is none or something that is no string."""
    if document is None:
        return {"token": tokens.generate(), "host": "127.0.0.1", "host_llm": "allow"}
    if isinstance(document.get("token"), str):
        return document
    return {**document, "token": tokens.generate()}


# --- the bytes ---------------------------------------------------------------------------------------------------


def _read(path: Path, warnings: list[str], *, mend: bool) -> JsonObject | None:
    raw = own.read(path, warnings, mend=mend, elsewhere="set A2MCP_CONFIG to where it is", seen="Run `a2mcp rotate`")
    return None if raw is None else _decode(path, raw)


def _decode(path: Path, raw: bytes) -> JsonObject:
    try:
        # A byte order mark is what some editors put there; it says nothing wrong.
        document = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise UnusableFile(f"{path} is nested too deeply.", hint=own.ANEW) from None
    except ValueError as error:
        raise UnusableFile(f"{path} is not JSON: {error}.", hint=own.ANEW) from None
    if not isinstance(document, dict):
        raise UnusableFile(f"{path} must hold a JSON object.", hint='The smallest one is "{}".')
    return document


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SettingsError(twice[:80], "must appear once")
    return result


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _write(path: Path, document: JsonObject) -> None:
    from a2mcp.files import write_atomic  # noqa: PLC0415 - most starts write nothing

    try:
        data = _encode(document)
        write_atomic(path, data, mode=0o600)
    except RecursionError:
        raise UnusableFile(f"{path} is nested too deeply.", hint=own.ANEW) from None
    except OSError as error:
        hint = remedy(error, "The daemon keeps its token there; make it writable.")
        raise UnusableFile(f"{path} cannot be written: {error.strerror}.", hint=hint) from error


def _encode(document: JsonObject) -> bytes:
    try:
        return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # an escaped lone surrogate in a field of somebody else's
        return (json.dumps(document, indent=2) + "\n").encode()
