"""Files of the operator's that steer the daemon: read as bytes, and distrusted.

Owns the rules: no symbolic link, no file of somebody else's, none that every user can write to; one that others could
read is closed. Knows nothing of what the bytes say.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final, NoReturn

from a2mcp.errors import UnusableFile, remedy

if TYPE_CHECKING:
    from pathlib import Path

LARGEST: Final = 1024 * 1024
"""Bytes. A file of settings that is larger is something else."""
ANEW: Final = "Mend it, or delete it to start anew."
"""What to do with a file that is none."""


def read(path: Path, warnings: list[str], *, mend: bool, elsewhere: str, seen: str) -> bytes | None:
    """Read a file; None when there is none.

    Args:
        path: the file.
        warnings: is given what the operator should be told.
        mend: whether to close a file that others can read.
        elsewhere: what to do where the file itself lies elsewhere.
        seen: what to do when others may have read the file.

    Raises:
        UnusableFile: it cannot be read or trusted.
    """
    try:
        with open(path, "rb", opener=_open) as file:
            warnings.extend(_distrust(path, file.fileno(), mend=mend, seen=seen))
            raw = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        _refuse(path, error, elsewhere)
    if len(raw) > LARGEST:
        raise UnusableFile(f"{path} is larger than {LARGEST} bytes: it is not a file of settings.", hint=ANEW)
    return raw


def _open(path: str, flags: int) -> int:
    # SECURITY: no link is followed, and a FIFO does not hold up the start.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _refuse(path: Path, error: OSError, elsewhere: str) -> NoReturn:
    if path.is_symlink():
        raise UnusableFile(f"{path} is a symbolic link.", hint=f"Put the file itself there, or {elsewhere}.") from error
    raise UnusableFile(f"{path} cannot be read: {error.strerror}.", hint=remedy(error)) from error


def _distrust(path: Path, descriptor: int, *, mend: bool, seen: str) -> list[str]:
    """Refuse a file that others could have written; close one that others could read."""
    found = os.fstat(descriptor)
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode):
        raise UnusableFile(f"{path} is not a regular file.", hint=ANEW)
    if found.st_uid != os.geteuid():
        raise UnusableFile(f"{path} belongs to another user.", hint="The settings must be this user's own.")
    if mode & 0o002:
        raise UnusableFile(
            f"{path} can be written by every user (mode {mode:04o}).",
            hint="Look at what it says, then: chmod 600 the file.",
        )
    if not mode & 0o077:
        return []
    if mend:
        os.fchmod(descriptor, 0o600)
    state = "it is 0600 now" if mend else "the next start makes it 0600"
    return [f"{path} was open to other users (mode {mode:04o}); {state}. {seen} if they may have seen it."]
