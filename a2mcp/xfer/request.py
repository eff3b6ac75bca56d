"""One request for files as a value, and where in the share it points."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from a2mcp.errors import FileRefusal
from a2mcp.xfer import target
from a2mcp.xfer.root import Parts
from a2mcp.xfer.settings import XferSettings
from a2mcp.xfer.share import Share
from a2mcp.xfer.transfers import Transfers


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request. What it asks about is ``parts``, below the root of the share."""

    share: Share
    options: XferSettings
    transfers: Transfers
    """Where it is noted what is moved."""
    method: str
    query: dict[str, str]
    header: Callable[[str], str | None]
    """Looks a header up, by its name in upper case."""
    parts: Parts
    folder: bool
    """Whether the path ended in a slash."""
    shown: Parts
    """The components as the caller sees them."""

    @property
    def links(self) -> bool:
        """Whether links are followed. A single file is that file alone, not what its name may lead to one day."""
        return not self.share.is_file


def request(  # noqa: PLR0913  # What it is made of; all but three have names at the call.
    share: Share,
    options: XferSettings,
    transfers: Transfers,
    method: str,
    *,
    raw_path: str,
    query: str,
    header: Callable[[str], str | None],
) -> Request:
    """Read a request.

    Raises:
        FileRefusal: its path is none, or is not what is shared.
    """
    parts, folder = target.split(raw_path)
    shown = parts
    if any(target.is_temporary(part) for part in parts) and method not in ("PUT", "PATCH", "MKCOL"):
        raise FileRefusal(404, "Not Found")
    if share.is_file:
        if parts and (folder or parts != (share.path.name,)):
            raise FileRefusal(404, "Not Found")
        parts, folder, shown = share.inner, False, (share.path.name,)
    return Request(
        share=share,
        options=options,
        transfers=transfers,
        method=method,
        query=target.query(query),
        header=header,
        parts=parts,
        folder=folder,
        shown=shown,
    )
