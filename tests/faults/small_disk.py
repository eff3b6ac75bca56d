"""A disk of a few pages: a tmpfs in a mount namespace of its own, which the daemon lives in and the test looks into."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import ROOT, Daemon

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOT_THERE = "unshare and nsenter are not installed, or this machine lets us mount nothing"

_UNSHARE = ["unshare", "-rm"]
"""Root in a namespace of users of its own, who may mount; for nobody has to be root outside."""


@cache
def can_mount() -> bool:
    """Whether a file system can be mounted here."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    mount = [*_UNSHARE, "mount", "-t", "tmpfs", "none", "/tmp"]
    return subprocess.run(mount, check=False, capture_output=True).returncode == 0


class SmallDisk:
    """A mounted tmpfs.

    Args:
        folder: where it is mounted.
        pid: of a process that holds the namespace.
    """

    def __init__(self, folder: Path, pid: int) -> None:
        self.folder = folder
        self.seen = Path(f"/proc/{pid}/root{folder}")
        """The same folder as it is seen from here."""
        self.inside = ["nsenter", "-t", str(pid), "-U", "-m", "--preserve-credentials"]
        """The beginning of a command line that runs in there."""

    def fill(self, leave: int = 0) -> None:
        """Take all the room that is left, but for so many bytes."""
        with (self.seen / "ballast").open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(b"x" * 512)
        if leave:
            os.truncate(self.seen / "ballast", (self.seen / "ballast").stat().st_size - leave)

    def free(self) -> None:
        """Give the room back."""
        (self.seen / "ballast").unlink()


@contextlib.contextmanager
def small_disk(folder: Path, options: str) -> Iterator[SmallDisk]:
    """A tmpfs with these options for the length of a block."""
    folder.mkdir(mode=0o700)
    script = 'mount -t tmpfs -o "$1",mode=700 none "$2" && echo mounted && exec cat'
    with subprocess.Popen(
        [*_UNSHARE, "sh", "-c", script, "sh", options, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"mounted\n"
        yield SmallDisk(folder, holder.pid)
        holder.stdin.close()


class Inside(Daemon):
    """A daemon whose home is on a small disk; what it says goes elsewhere."""

    def __init__(self, disk: SmallDisk, said: Path, *, argv: Sequence[str] | None = None, **options: Any) -> None:
        usual = [sys.executable, "-m", "a2mcp", "serve"]
        super().__init__(disk.seen, argv=[*disk.inside, *(argv or usual)], **options)
        self._disk = disk
        self.stderr_path = said
        said.touch()

    def cli(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run an operator's command in there."""
        return subprocess.run(
            [*self._disk.inside, sys.executable, "-m", "a2mcp", *args], cwd=ROOT, env=self.environment, input=stdin,
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        """What the daemon and the command line see: the place as it is called in there."""
        return super().environment | {"A2MCP_HOME": str(self._disk.folder)}
