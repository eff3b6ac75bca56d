"""What the file system refuses, as a status and a sentence. Knows no path: it is the caller's, who has it."""

from __future__ import annotations

import errno
from typing import Final

from a2mcp.errors import FileRefusal

_MISSING: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EXDEV, errno.ELOOP, errno.ENAMETOOLONG, errno.EAGAIN, errno.EINVAL}
    | {errno.ENXIO, errno.ENODEV, errno.ESHUTDOWN}
)
"""Nothing that we would show is there. A link that leads out of the share looks like a name that does not exist."""
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.EISDIR, errno.ETXTBSY})
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def refusal_of(error: OSError) -> FileRefusal:
    """The answer for a fault while something is looked at or made."""
    number = error.errno or 0
    if number in _MISSING:
        return FileRefusal(404, "Not Found")
    if number in _FORBIDDEN:
        return FileRefusal(403, f"Forbidden: {error.strerror}")
    if number in _FULL:
        return FileRefusal(507, "Insufficient Storage: no space is left where the file would be")
    if number in _SHORT:
        return FileRefusal(503, "Service Unavailable: the daemon has too much open", headers=(("Retry-After", "1"),))
    if number == errno.EFBIG:
        return FileRefusal(413, "Content Too Large: the file system takes no file of this size")
    return FileRefusal(500, f"Internal Server Error: {error.strerror or 'the file system failed'}")
