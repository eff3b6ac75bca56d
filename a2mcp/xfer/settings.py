"""The setting ``xfer``: how files are shared, and which programs of others may help.

Owns the values and their defaults. What a file may say instead is checked by ``a2mcp/config``.
"""

from __future__ import annotations

import msgspec


class XferSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The setting ``xfer``."""

    server: str = "auto"
    """``embedded``, ``dufs``, or ``auto``: dufs where ``dufs`` is a path, else embedded."""
    overwrite: bool = False
    """Whether an upload may replace a file that is not empty."""
    zip: bool = False
    """Whether a folder can be downloaded as one archive."""
    hash: bool = False
    """Whether the SHA-256 of a file can be asked for."""
    stall_s: float = 60.0
    """How long a transfer may stand still."""
    upload_bytes: int = 64 * 1024**3
    """Of one uploaded file."""
    dufs: str = "dufs"
    """Name or path of the file server that may serve instead of us."""
    cloudflared: str = "cloudflared"
    """Name or path of the tunnel's program."""

    @property
    def uses_dufs(self) -> bool:
        """Whether another program serves the files. A separator makes the setting ``dufs`` a path."""
        return self.server == "dufs" or (self.server == "auto" and ("/" in self.dufs or "\\" in self.dufs))
