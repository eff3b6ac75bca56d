"""Changes a client's settings file and takes the change back.

A file is read, changed in its text, and replaced as a whole where it really is: a link stays a link, a mode stays a
mode. What was there before is kept beside it, in a backup whose name holds the date and a fingerprint of what was
written. As long as the file still has that fingerprint, taking back means to put the very bytes back; after somebody
else changed it too, only the server is taken out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from glob import escape as glob_escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from a2mcp.connect import jsonedit, tomledit
from a2mcp.connect.clients import INPUT, Format
from a2mcp.connect.errors import BrokenFile
from a2mcp.errors import ChangedMeanwhile
from a2mcp.files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2mcp.connect.clients import Client, Server

_ABSENT: Final = ".absent"
"""Marks the backup of a file that was not there."""
_LARGEST: Final = 64 * 1024 * 1024


class Settings:
    """The settings file of one client, as it was when it was read.

    Raises:
        BrokenFile: it cannot be read, or is not what its kind says.
    """

    def __init__(self, client: Client, path: Path) -> None:
        self.path = path
        self._client = client
        self._real = Path(os.path.realpath(path))
        with self._named():
            self.before = _bytes(self._real)
            self.text = (self.before or b"").decode()
            self._get("")

    @property
    def is_private(self) -> bool:
        """Whether nobody else can read the file."""
        return self.before is None or not self._real.stat().st_mode & 0o077

    def entry(self, name: str) -> Any:
        """Return what the file says of a server; None when it says nothing."""
        return self._get(name)

    def with_server(self, server: Server) -> str:
        """Return the text with the server in it."""
        with self._named():
            entry = self._client.entry(server)
            if self._client.format is Format.TOML:
                return tomledit.put(self.text, (self._client.holder, server.name), entry)
            text = jsonedit.put(self.text, (self._client.holder, server.name), entry)
            return _with_input(text) if f"${{input:{INPUT}}}" in str(entry) else text

    def without(self, name: str) -> str:
        """Return the text without the server."""
        with self._named():
            if self._client.format is Format.TOML:
                return tomledit.drop(self.text, (self._client.holder, name))
            text = jsonedit.drop(self.text, (self._client.holder, name))
            return _without_input(text)

    def write(self, text: str, *, private: bool = False, update: bool = False) -> Path | None:
        """Replace the file and keep what was there.

        Args:
            text: all of the new content.
            private: it holds a token, so nobody else may read it.
            update: as of ``keep``.

        Returns:
            The backup; None when there was no file.

        Raises:
            ChangedMeanwhile: somebody else wrote the file since it was read.
            OSError: it could not be written; it is as it was.
        """
        self._real.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        kept = self.keep(data, update=update)
        try:
            write_atomic(self._real, data, mode=0o600 if private else None, check=self._unchanged)
        except BaseException:
            # An update's backup is the only way back to the original; it stays, if under a name that leads nowhere.
            if not update:
                kept.unlink(missing_ok=True)
            raise
        return None if kept.name.endswith(_ABSENT) else kept

    def keep(self, after: bytes, *, update: bool = False) -> Path:
        """Keep what was read, under a name that says what takes its place.

        Args:
            after: what takes its place.
            update: what was read holds the server already, so what counts is still what was there before that.

        Returns:
            The backup; an empty mark where there was no file.
        """
        before = b"" if self.before is None else self.before
        ending = _ABSENT if self.before is None else ""
        earlier = self._backup_of(before) if update else None
        if earlier is not None:
            return earlier.rename(_renamed(earlier, after))
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        backup = self._real.with_name(f"{self._real.name}.a2mcp-{stamp}-{_fingerprint(after)}{ending}")
        mode = 0o600 if self.before is None else self._real.stat().st_mode & 0o777
        write_atomic(backup, before, mode=mode)
        return backup

    def restore(self, name: str) -> bool:
        """Put back the bytes from before the server was added, if nobody else changed the file since.

        Returns:
            Whether that was possible.
        """
        backup = self._backup_of(self.before or b"")
        if backup is None:
            return False
        if backup.name.endswith(_ABSENT):
            self._unchanged()
            self._real.unlink()
        else:
            original = backup.read_bytes()
            with contextlib.suppress(BrokenFile, UnicodeDecodeError):
                if _get(self._client, original.decode(), name) is not None:
                    return False
            write_atomic(self._real, original, mode=backup.stat().st_mode & 0o777, check=self._unchanged)
        backup.unlink()
        return True

    def forget_absence(self) -> None:
        """Remove the marks that say that there was no file: somebody else has made it theirs since."""
        for mark in self._real.parent.glob(f"{glob_escape(self._real.name)}.a2mcp-*{_ABSENT}"):
            mark.unlink()

    def _backup_of(self, content: bytes) -> Path | None:
        """Find the newest backup that was made when ``content`` was written."""
        found = self._real.parent.glob(f"{glob_escape(self._real.name)}.a2mcp-*-{_fingerprint(content)}*")
        return max(found, default=None)

    def _unchanged(self) -> None:
        if _bytes(self._real) != self.before:
            raise ChangedMeanwhile(f"{self.path} was changed meanwhile.", hint="Nothing was written. Run it again.")

    def _get(self, name: str) -> Any:
        return _get(self._client, self.text, name)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except BrokenFile as error:
            hint = "It was left as it was. Repair it, or add the server yourself: `a2mcp connect json` prints it."
            raise BrokenFile(f"{self.path} is not understood: {error.text}.", hint=hint) from error
        except UnicodeDecodeError as error:
            raise BrokenFile(f"{self.path} is no UTF-8 text.", hint="It was left as it was.") from error
        except OSError as error:
            raise BrokenFile(f"{self.path} cannot be read: {error.strerror}.") from error


def _get(client: Client, text: str, name: str) -> Any:
    read: Callable[[str, tuple[str, str]], Any] = tomledit.get if client.format is Format.TOML else jsonedit.get
    return read(text, (client.holder, name))


def _bytes(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    if len(data) > _LARGEST:
        raise BrokenFile("larger than any settings file")
    return data


def _with_input(text: str) -> str:
    declared = jsonedit.get(text, ("inputs",))
    if isinstance(declared, list) and any(map(_is_ours, declared)):
        return text
    wanted = {"type": "promptString", "id": INPUT, "description": "Token of a2mcp", "password": True}
    return jsonedit.append(text, ("inputs",), wanted)


def _without_input(text: str) -> str:
    """Take out the question for the token once no server refers to it."""
    if not isinstance(jsonedit.get(text, ("inputs",)), list) or f"${{input:{INPUT}}}" in text:
        return text
    return jsonedit.discard(text, ("inputs",), _is_ours)


def _is_ours(declared: Any) -> bool:
    return isinstance(declared, dict) and declared.get("id") == INPUT


def _fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _renamed(backup: Path, after: bytes) -> Path:
    stem, _, rest = backup.name.rpartition("-")
    return backup.with_name(f"{stem}-{_fingerprint(after)}{_ABSENT if rest.endswith(_ABSENT) else ''}")
