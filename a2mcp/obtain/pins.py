"""What may be fetched: one row for each program and platform, with the hash that its bytes must have.

Two sources: ``pins.json`` beside this file, which is changed by a commit only, and the operator's own file in the
home, which wins. Nothing here asks a server for a version or a hash: a checksum from where the bytes come from proves
nothing.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from a2mcp import jsonfile
from a2mcp.errors import UnusableFile
from a2mcp.files import write_atomic

PROGRAMS: Final = ("dufs", "cloudflared")
ARCHIVES: Final = (".tar.gz", ".tgz", ".zip")
LARGEST_FILE: Final = 1 << 20

_SHIPPED: Final = Path(__file__).with_name("pins.json")
_SYSTEMS: Final = {"darwin": "macos", "win32": "windows"}
_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}
# PERF: compiled when a row is checked, not when a daemon starts.
_SHA256: Final = r"[0-9a-f]{64}"
_PLATFORM: Final = r"[a-z0-9]+-[a-z0-9_]+"
_VERSION: Final = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}"


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One build of one program, for one platform."""

    name: str
    version: str
    platform: str
    url: str
    sha256: str | None
    """Of the bytes behind ``url``, in lower case; None: nobody has verified one, so it is not fetched."""
    member: str = ""
    """The file inside the archive; empty when the bytes are the program itself."""

    @property
    def asset(self) -> str:
        """The last part of the address."""
        return PurePosixPath(urlsplit(self.url).path).name


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row as an operator writes it: what is left out is that of the shipped row of the same platform."""

    name: str
    sha256: str
    platform: str | None = None
    version: str | None = None
    url: str | None = None
    member: str | None = None


_FORMS: Any = Given | tuple[Given, ...]


def platform_key() -> str:
    """Name this machine as the table does: ``linux-x64``, ``macos-arm64``."""
    machine = os.uname().machine.lower()
    return f"{_SYSTEMS.get(sys.platform, sys.platform)}-{_MACHINES.get(machine, machine)}"


def shipped() -> tuple[Pin, ...]:
    """Read the table that comes with this release."""
    return msgspec.json.decode(_SHIPPED.read_bytes(), type=tuple[Pin, ...])


def pinned(file: Path) -> tuple[Pin, ...]:
    """Read the operator's own pins; none when there is no such file.

    Raises:
        UnusableFile: the file cannot be read, or is not what ``add`` writes.
    """
    try:
        pins = jsonfile.read(file, LARGEST_FILE, tuple[Pin, ...])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise UnusableFile(f"{file} cannot be read: {error}.", hint="Repair or remove it.") from error
    for pin in pins:
        _check(pin, str(file))
    return pins


def pin_for(name: str, platform: str, file: Path) -> Pin | None:
    """Find the row of a program: the operator's, else the shipped one, else None."""
    for pin in (*pinned(file), *shipped()):
        if (pin.name, pin.platform) == (name, platform):
            return pin
    return None


def add(file: Path, given: Path, *, platform: str) -> tuple[Pin, ...]:
    """Take the rows of an operator's file, one object or an array of them, into our own file. All of them or none.

    Returns:
        The rows as they count from now on.

    Raises:
        UnusableFile: a file cannot be read or written, or a row is not complete or not valid.
    """
    rows = _read_given(given)
    new = tuple(_completed(row, platform, str(given)) for row in rows)
    replaced = {(pin.name, pin.platform): pin for pin in (*pinned(file), *new)}
    try:
        write_atomic(file, msgspec.json.format(msgspec.json.encode(list(replaced.values()))) + b"\n", mode=0o600)
    except OSError as error:
        raise UnusableFile(f"{file} cannot be written: {error.strerror}.") from error
    return new


def _read_given(given: Path) -> tuple[Given, ...]:
    try:
        found: Given | tuple[Given, ...] = jsonfile.read(given, LARGEST_FILE, _FORMS)
    except OSError as error:
        raise UnusableFile(f"{given} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UnusableFile(
            f"{given} is not a pin: {error}.", hint='The least is {"name": "dufs", "sha256": "64 digits"}.'
        ) from error
    return (found,) if isinstance(found, Given) else found


def _completed(row: Given, platform: str, source: str) -> Pin:
    platform = row.platform or platform
    base = next((pin for pin in shipped() if (pin.name, pin.platform) == (row.name, platform)), None)
    if row.url is not None:
        version, url = row.version, row.url
        member = row.member if row.member is not None else row.name if url.endswith(ARCHIVES) else ""
    else:
        version, url, member = (base.version, base.url, base.member) if base else (None, "", "")
        if row.version not in (None, version) or row.member not in (None, member):
            raise UnusableFile(
                f"{source}: a row with another version or member than the shipped one needs its 'url' too."
            )
    if version is None:
        raise UnusableFile(f"{source}: the row of '{row.name}' for {platform} needs a 'url' and a 'version'.")
    pin = Pin(
        name=row.name, version=version, platform=platform, url=url, sha256=row.sha256.strip().lower(), member=member
    )
    _check(pin, source)
    return pin


def _check(pin: Pin, source: str) -> None:
    """Refuse a row that could not be used, or would be used for something else than it says."""
    problem = next((words for wrong, words in _problems(pin) if wrong), None)
    if problem is not None:
        raise UnusableFile(f"{source}: the row of '{pin.name}' for {pin.platform} {problem}.")


def _problems(pin: Pin) -> tuple[tuple[bool, str], ...]:
    archive = pin.asset.endswith(ARCHIVES)
    return (
        (pin.name not in PROGRAMS, f"must be of {' or '.join(PROGRAMS)}"),
        (not re.fullmatch(_PLATFORM, pin.platform), "must have a 'platform' such as linux-x64"),
        (not re.fullmatch(_VERSION, pin.version), "must have a 'version' of letters, digits, dots and dashes"),
        (not re.fullmatch(_SHA256, pin.sha256 or ""), "must have a 'sha256' of 64 hexadecimal digits"),
        (not is_web_address(pin.url), "must have a 'url' of http or https, without a user"),
        (bool(pin.member) != archive, f"must have a 'member' if, and only if, its url ends in {', '.join(ARCHIVES)}"),
        (".." in PurePosixPath(pin.member).parts or pin.member.startswith("/"), "must have a 'member' inside"),
    )


def is_web_address(url: str) -> bool:
    """Whether this is an address we would ask for bytes."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc and url.isprintable()
