"""Taking one program out of what was downloaded. Nothing is written: the caller puts the bytes where they belong.

The archive's hash was checked before. The names in it are checked all the same: an archive with one that leads out of a
folder is not what its publisher says it is.
"""

from __future__ import annotations

import stat
import zlib
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

T = TypeVar("T")

LARGEST: Final = 128 << 20
"""Bytes of a program."""
MOST_MEMBERS: Final = 10_000


class BadArchive(Exception):
    """What is wrong with the archive, as the end of a sentence that begins with its name."""


def program_in(file: Path, asset: str, member: str, *, largest: int = LARGEST) -> bytes:
    """Read a program out of a file named ``asset`` by its publisher: an archive's member, or the file itself.

    Raises:
        BadArchive: it is not there, is too large, or the archive is not to be trusted.
        OSError: the file cannot be read.
    """
    if not member:
        with file.open("rb") as stream:
            return _bounded(stream, largest)
    take = _from_zip if asset.endswith(".zip") else _from_tar
    return take(file, member, largest)


def _from_tar(file: Path, member: str, largest: int) -> bytes:
    import tarfile  # noqa: PLC0415  # For an install only.

    try:
        with tarfile.open(file, "r:gz") as archive:
            for entry in _few(archive):
                _require_inside(entry.name)
                if _same(entry.name, member):
                    stream = archive.extractfile(entry) if entry.isreg() else None
                    if stream is None:
                        raise BadArchive(f"has '{member}' as something else than a file")
                    return _bounded(stream, largest)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BadArchive(f"is no whole archive: {error}") from error
    raise BadArchive(f"has no '{member}'")


def _from_zip(file: Path, member: str, largest: int) -> bytes:
    import zipfile  # noqa: PLC0415  # As above.

    try:
        with zipfile.ZipFile(file) as archive:
            for entry in _few(archive.infolist()):
                _require_inside(entry.filename)
                if _same(entry.filename, member):
                    kind = stat.S_IFMT(entry.external_attr >> 16)
                    if entry.is_dir() or kind not in {0, stat.S_IFREG}:
                        raise BadArchive(f"has '{member}' as something else than a file")
                    with archive.open(entry) as stream:
                        return _bounded(stream, largest)
    # RuntimeError is what an encrypted member gives, NotImplementedError a method nobody here knows.
    except (zipfile.BadZipFile, EOFError, zlib.error, RuntimeError, NotImplementedError) as error:
        raise BadArchive(f"is no whole archive: {error}") from error
    raise BadArchive(f"has no '{member}'")


def _few(entries: Iterable[T]) -> Iterator[T]:
    for number, entry in enumerate(entries):
        if number >= MOST_MEMBERS:
            raise BadArchive(f"has more than {MOST_MEMBERS} members")
        yield entry


def _require_inside(name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name or "\0" in name:
        raise BadArchive(f"has a member that leads out of it: {name[:100]!a}")


def _same(name: str, member: str) -> bool:
    return PurePosixPath(name) == PurePosixPath(member)


def _bounded(stream: IO[bytes], largest: int) -> bytes:
    data = stream.read(largest + 1)
    if len(data) > largest:
        raise BadArchive(f"has a program of more than {largest} bytes")
    return data
