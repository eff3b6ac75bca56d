r"""A caller's path: how it is read, how it is shown, and what to say when the system refuses it.

``~`` and ``~/x`` are the home of the daemon's user; ``~name`` is an ordinary name. ``file://`` addresses are decoded. A
relative path starts at the host's working directory. ``..`` and links are left to the system, which alone knows where
they lead. Names are bytes: one that is not UTF-8 travels as surrogate escapes and is shown with ``\xNN``.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from a2mcp.errors import BadArgument, ToolError

_SHOWN = 400
_HINTS: Final = {
    errno.EACCES: "The daemon's user may not do this; check the permissions of the file and its folders.",
    errno.EPERM: "The system forbids it for this file; it may be immutable or belong to somebody else.",
    errno.EROFS: "The file system is mounted read-only.",
    errno.ENOSPC: "The disk is full; nothing was changed.",
    errno.EDQUOT: "The disk quota is used up; nothing was changed.",
    errno.ENAMETOOLONG: "A name may have 255 bytes and a path 4095.",
    errno.ENOTDIR: "A part of the path is a file, not a folder.",
    errno.ELOOP: "Its symbolic links lead in a circle.",
    errno.ENOENT: "List its folder with read to see the names that exist.",
}


def resolve(raw: str, cwd: Path, *, field: str = "path") -> Path:
    """Turn what a caller wrote into an absolute path. Touches no file.

    Args:
        raw: an absolute or relative path, ``~``, ``~/x``, or a ``file://`` address.
        cwd: where a relative path starts.
        field: the name of the argument, for the error.

    Raises:
        BadArgument: it is empty, has a NUL or a character no name can hold, or is an address of another machine.
    """
    if not raw:
        raise BadArgument(field, "a path", "an empty string")
    _require_encodable(raw, field)
    if raw[:5].lower() == "file:" and raw[5:6] == "/":
        raw = _from_url(raw, field)
    if "\0" in raw:
        raise BadArgument(field, "a path without NUL", f"'{show(raw)}'")
    if raw == "~" or raw.startswith("~/"):
        raw = _home(field) + raw[1:]
    return Path(cwd, raw)


def show(path: Path | str) -> str:
    """Write a path as one line of valid Unicode: bytes that are not UTF-8 and control characters are escaped."""
    text = str(path)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escape(char) for char in text)
    if len(text) > _SHOWN:
        text = f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 4 :]}"
    return text


def written(path: Path | str) -> str:
    """Write a path as JSON can hold it: as it is, and bytes that are not UTF-8 as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def as_url(path: Path) -> str:
    """Write a path as a ``file://`` address, the form in which any name can be passed back."""
    from urllib.parse import quote_from_bytes  # noqa: PLC0415 - only for names that need it

    return "file://" + quote_from_bytes(os.fsencode(path))


def refusal(action: str, path: Path, error: OSError) -> ToolError:
    """Say what the system refused (``Cannot read /x: Permission denied (EACCES).``) and what to do about it."""
    code = errno.errorcode.get(error.errno or 0, "")
    reason = error.strerror or type(error).__name__
    said = f"{reason} ({code})" if code else reason
    return ToolError(f"Cannot {action} {show(path)}: {said}.", hint=_HINTS.get(error.errno or 0, ""))


def _require_encodable(raw: str, field: str) -> None:
    try:
        os.fsencode(raw)
    except UnicodeEncodeError as error:
        received = f"the lone surrogate \\u{ord(raw[error.start]):04x} at character {error.start}"
        raise BadArgument(field, "a path that a file name can hold", received) from None


def _home(field: str) -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        raise BadArgument(field, "an absolute path", "'~', and the daemon's user has no home") from None


def _from_url(raw: str, field: str) -> str:
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - heavy, and few callers send addresses

    rest = raw[5:]
    if rest.startswith("//"):
        machine, slash, rest = rest[2:].partition("/")
        if machine.lower() not in {"", "localhost"} or not slash:
            raise BadArgument(field, "a file:// address of this machine", f"'{show(raw)}'", hint="Write file:///path.")
        rest = "/" + rest
    return os.fsdecode(unquote_to_bytes(os.fsencode(rest)))


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    if char in named:
        return named[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
