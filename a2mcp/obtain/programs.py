"""Where a program of others is: the operator's path, the PATH, our own install, and at last a pinned download.

Knows the order and the rules: a path that the operator gave is used as it is, and nothing is fetched in its stead;
bytes without the pinned hash are never unpacked; a file that we did not put there is never replaced. One thread
obtains; what ``facts`` says may be read from any.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from a2mcp.clock import iso
from a2mcp.errors import A2mcpError, CannotObtain
from a2mcp.files import write_atomic
from a2mcp.obtain import installs, pins
from a2mcp.obtain.installs import Install

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2mcp.clock import Clock
    from a2mcp.obtain.download import Download, Gates
    from a2mcp.obtain.pins import Pin
    from a2mcp.types import JsonObject

Source = Literal["configured", "path", "installed"]
State = Source | Literal["missing", "wanted", "downloading", "failed"]

EXECUTABLE: Final = 0o755


class Found(msgspec.Struct, frozen=True):
    """A program that can be run."""

    path: Path
    source: Source
    version: str | None = None
    """Of one that we installed."""
    pin: Pin | None = None
    """What was fetched for it just now."""


class ProgramFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One program, as ``a2mcp obtain`` shows it."""

    name: str
    setting: str
    state: State
    path: str | None = None
    version: str | None = None
    """Of what we installed, or would."""
    pinned: bool = False
    """Whether it may be fetched here: somebody has verified a hash for this platform."""
    bytes: int = 0
    """What a download has so far."""
    total: int | None = None
    error: str | None = None
    """Why the last attempt failed."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The files and folders of ours that are involved."""

    folder: Path
    """Where programs are put."""
    record: Path
    pins: Path


class Programs:
    """The programs of one daemon.

    Args:
        settings: for each program its name or path, as configured.
        places: where things lie.
        clock: for the moment of an install.
        gates: limits of a download; None for the usual ones.
        platform: which rows of the table count; None for this machine's.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        places: Places,
        clock: Clock,
        *,
        gates: Gates | None = None,
        platform: str | None = None,
    ) -> None:
        self._settings = settings
        self._places = places
        self._clock = clock
        self._gates = gates
        self._platform = platform or pins.platform_key()
        self._download: Download | None = None
        self._cancelled = False
        self._news: dict[str, ProgramFacts] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The programs there are."""
        return tuple(self._settings)

    def want(self, name: str) -> None:
        """Show that it is about to be obtained. Whoever asks for that calls this first, then sees how it goes on."""
        self._tell(name, state="wanted")

    def obtain(self, name: str) -> Found:
        """Find a program, or fetch it. Takes as long as the gates allow.

        Raises:
            CannotObtain: neither worked. Its ``data`` names what was to be fetched, where something was.
        """
        self.want(name)
        try:
            found = self._find(name, installs.intact) or self._fetched(name)
        except A2mcpError as error:
            self._tell(name, state="failed", error=str(error))
            raise
        self._news.pop(name, None)
        return found

    def cancel(self) -> None:
        """End a download that runs, and let no other begin: the daemon goes down."""
        self._cancelled = True
        if (download := self._download) is not None:
            download.cancel()

    def facts(self) -> tuple[ProgramFacts, ...]:
        """Say of each program where it is, or how far its download is. Nothing is fetched."""
        return tuple(self._news.get(name) or self._look(name) for name in self._settings)

    def downloading(self) -> ProgramFacts | None:
        """The download that runs now."""
        return next((news for news in list(self._news.values()) if news.state == "downloading"), None)

    # --- finding --------------------------------------------------------------------------------------------------

    def _find(self, name: str, usable: Callable[[Install], bool]) -> Found | None:
        setting = self._settings[name]
        if "/" in setting or "\\" in setting:
            return Found(_configured(name, setting), "configured")
        if (path := shutil.which(setting)) is not None:
            return Found(Path(path), "path")
        install = installs.read(self._places.record).get(name)
        if install is not None and self._still_right(install) and usable(install):
            return Found(Path(install.path), "installed", install.version)
        return None

    def _still_right(self, install: Install) -> bool:
        """Whether no other version of it has been pinned since."""
        pin = self._pin(install.name)
        return pin is None or pin.sha256 is None or pin.version == install.version

    def _pin(self, name: str) -> Pin | None:
        return pins.pin_for(name, self._platform, self._places.pins)

    def _look(self, name: str) -> ProgramFacts:
        facts = ProgramFacts(name=name, setting=self._settings[name], state="missing")
        try:
            pin = self._pin(name)
            # PERF: somebody who watches a download asks ten times a second; nothing is hashed for that.
            found = self._find(name, _is_there)
        except A2mcpError as error:
            return msgspec.structs.replace(facts, error=str(error))
        version = pin.version if pin else None
        pinned = pin is not None and pin.sha256 is not None
        if found is None:
            return msgspec.structs.replace(facts, version=version, pinned=pinned)
        return msgspec.structs.replace(
            facts, state=found.source, path=str(found.path), version=found.version, pinned=pinned
        )

    def _tell(
        self, name: str, *, state: State, error: str | None = None, done: int = 0, total: int | None = None
    ) -> None:
        self._news[name] = ProgramFacts(
            name=name, setting=self._settings[name], state=state, error=error, bytes=done, total=total
        )

    # --- fetching -------------------------------------------------------------------------------------------------

    def _fetched(self, name: str) -> Found:
        pin = self._pin(name)
        if pin is None:
            raise CannotObtain(f"'{name}' was not found, and none is known for {self._platform}.", hint=escapes(name))
        try:
            path = self._install(pin, _required_hash(pin, self._platform))
        except (A2mcpError, OSError) as cause:
            text = cause.text if isinstance(cause, A2mcpError) else f"'{name}' could not be installed: {cause}."
            error = CannotObtain(text, hint=escapes(name))
            error.data = described(pin)
            raise error from cause
        return Found(path, "installed", pin.version, pin)

    def _install(self, pin: Pin, sha256: str) -> Path:
        from a2mcp.obtain.unpack import BadArchive, program_in  # noqa: PLC0415  # For an install only.

        self._places.folder.mkdir(mode=0o700, exist_ok=True)
        # Named by the hash: bytes that an earlier attempt left are of these very bytes.
        part = self._places.folder / f"{sha256[:32]}.part"
        self._bring(pin, sha256, part)
        try:
            return self._put(pin, program_in(part, pin.asset, pin.member))
        except BadArchive as error:
            raise CannotObtain(f"{pin.asset} {error}. Nothing was installed.") from error
        finally:
            part.unlink(missing_ok=True)

    def _bring(self, pin: Pin, sha256: str, part: Path) -> None:
        """Download until the part is whole and has the hash; one that was continued gets a second try, from zero."""
        while True:
            resumed = self._transfer(pin, part)
            found = installs.hash_of(part)
            if found == sha256:
                return
            part.unlink(missing_ok=True)
            if not resumed:
                raise CannotObtain(
                    f"{pin.asset} has the wrong hash: expected sha256 {sha256}, received {found}. "
                    "Nothing was unpacked or installed."
                )

    def _transfer(self, pin: Pin, part: Path) -> bool:
        from a2mcp.obtain.download import Download, Gates  # noqa: PLC0415  # For an install only.

        def tell(done: int, total: int | None) -> None:
            self._tell(pin.name, state="downloading", done=done, total=total)

        tell(0, None)
        self._download = Download(pin.url, part, self._gates or Gates(), tell)
        # After it is there to be cancelled: a cancel of before must not be lost.
        if self._cancelled:
            self._download.cancel()
        try:
            self._download.run()
            return self._download.resumed
        finally:
            self._download = None

    def _put(self, pin: Pin, program: bytes) -> Path:
        path = self._places.folder / pin.name
        sha256 = hashlib.sha256(program).hexdigest()
        record = installs.read(self._places.record)
        there = installs.hash_of(path)
        ours = record[pin.name].sha256 if pin.name in record and record[pin.name].path == str(path) else None
        # The very bytes are welcome whoever put them there: a crash may have come before the record.
        if there not in (None, ours, sha256):
            raise CannotObtain(f"{path} is in the way and not ours (sha256 {there}). It is left alone.")
        write_atomic(path, program, mode=EXECUTABLE)
        record[pin.name] = Install(
            name=pin.name,
            version=pin.version,
            path=str(path),
            sha256=sha256,
            url=pin.url,
            installed_at=iso(self._clock.now()),
        )
        installs.write(self._places.record, record)
        return path


def described(pin: Pin) -> JsonObject:
    """Say in a record what was fetched, or was to be."""
    return {"program": pin.name, "version": pin.version, "asset": pin.asset, "sha256": pin.sha256}


def escapes(name: str) -> str:
    """Say how to have the program without a download."""
    return f"Put {name} on the PATH of the daemon, or write its absolute path into the setting 'xfer.{name}'."


def _configured(name: str, setting: str) -> Path:
    path = Path(os.path.abspath(os.path.expanduser(setting)))  # noqa: PTH100, PTH111  # Neither raises.
    if not path.is_file():
        raise CannotObtain(f"'xfer.{name}' is {path}, and there is no such file.", hint="A path is used as it is.")
    if not os.access(path, os.X_OK):
        raise CannotObtain(f"'xfer.{name}' is {path}, which cannot be executed.", hint=f"Try `chmod +x {path}`.")
    return path


def _is_there(install: Install) -> bool:
    return Path(install.path).is_file()


def _required_hash(pin: Pin, platform: str) -> str:
    if pin.sha256 is None:
        raise CannotObtain(
            f"'{pin.name}' was not found, and nobody has verified a hash of {pin.asset} {pin.version} for {platform}, "
            "so it is not fetched. `a2mcp obtain --pin FILE` adds one that you verified."
        )
    return pin.sha256
