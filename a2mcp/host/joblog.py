"""The folder of one home's jobs on disk: what ran, how it stands, and its output.

One folder per job: ``meta.json``, ``stdout``, ``stderr``; folders 0700, files 0600. Owns reading them back honestly
after a restart and throwing the oldest away. Does not know how a command is run.
"""

from __future__ import annotations

import enum
import os
import re
import secrets
import shutil
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from a2mcp import jsonfile
from a2mcp.errors import ToolError
from a2mcp.files import write_atomic
from a2mcp.host.identity import Identity
from a2mcp.types import JobId

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

Stream = Literal["stdout", "stderr"]

_META: Final = "meta.json"
_LARGEST_META: Final = 16 << 20
_ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"
_ID: Final = re.compile(f"j[{_ALPHABET}]{{8}}")
_TRIES: Final = 8
MOST_SURVIVORS: Final = 16
"""How many of those who outlived a command are written down."""


class State(enum.StrEnum):
    """How a command stands."""

    RUNNING = "running"
    BACKGROUND = "background"
    """It ended, but something it started still runs."""
    ENDED = "ended"
    ORPHAN = "orphan"
    """Something of it still runs, but the daemon that ran it is gone, and with it the end of its output."""
    LOST = "lost"
    """The daemon that ran it is gone, and so is the command; nobody saw how it ended."""

    @property
    def live(self) -> bool:
        """Whether a daemon looks after it, or did when this was written."""
        return self in (State.RUNNING, State.BACKGROUND)


class Ending(enum.StrEnum):
    """Why the daemon ended a command."""

    TIMEOUT = "timeout"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    ABANDONED = "abandoned"
    """Looking after it broke."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """How one command stands; what ``meta.json`` holds."""

    id: JobId | None
    """``None`` for a command that nobody can ask about later: its result says it all."""
    command: str
    cwd: str
    pid: int
    identity: Identity | None = None
    started_at: str
    duration_s: float
    state: State
    exit_code: int | None = None
    """As a shell reports it: 128 plus the number for a signal."""
    signal: str | None = None
    ending: Ending | None = None
    output_bytes: int = 0
    """Output kept, of both streams."""
    dropped: int = 0
    """Bytes of output that nothing keeps."""
    group_remains: bool = False
    """A process of the command outlived it, and nobody looks after that one."""
    mark: int = 0
    """What the command and all it started bear."""
    survivors: tuple[Identity, ...] = ()
    """Who outlived the command, as last seen."""

    @property
    def processes(self) -> tuple[Identity, ...]:
        """Who runs, or ran, for the command, as far as it was written down."""
        leader = () if self.identity is None else (self.identity,)
        # A process has another name once it runs another program.
        return tuple({(one.pid, one.started, one.boot): one for one in (*leader, *self.survivors)}.values())

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that run for the command, as far as they are known."""
        if self.state in (State.BACKGROUND, State.ORPHAN):
            return tuple(one.pid for one in self.survivors) or (self.pid,)
        return (self.pid,) if self.state is State.RUNNING else ()

    @property
    def background_remains(self) -> bool:
        """Whether something that the command started outlived it."""
        return self.state is State.BACKGROUND or self.group_remains


class Page(msgspec.Struct, frozen=True):
    """A part of the output of a job."""

    data: bytes
    offset: int
    size: int
    """Bytes of the whole file, now."""


class JobLog:
    """The jobs folder.

    Args:
        folder: made when the first job needs it.
        keep: how many ended jobs stay.
        keep_bytes: how much output stays, that of live jobs included.
        saved: is given each record that is written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep: int,
        keep_bytes: int,
        saved: Callable[[Record], None] = lambda _record: None,
    ) -> None:
        self.folder = folder
        self._saved = saved
        self._keep = keep
        self._keep_bytes = keep_bytes
        self._unwritten: dict[JobId, Record] = {}
        """What the disk had no room for, the latest ``keep``: how a command ended is not forgotten with it."""

    def create(self) -> JobId:
        """Name a new job and make its folder. Without one (disk full) the job still runs, with what fits in memory."""
        for _ in range(_TRIES):
            job = JobId("j" + "".join(secrets.choice(_ALPHABET) for _ in range(8)))
            if self._make_folder(job):
                return job
        raise FileExistsError("no free job name")

    def _make_folder(self, job: JobId) -> bool:
        """Make the folder of a job where one can be made; False when another job has this name."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:  # Also what is there and no folder, which says "exists" like a name that is taken.
            return True
        try:
            (self.folder / job).mkdir(mode=0o700)
        except FileExistsError:
            return False
        except OSError:
            pass
        return True

    def open_output(self, job: JobId, stream: Stream) -> int | None:
        """Make the file of one stream and return its descriptor, or ``None`` when it cannot be made."""
        try:
            return os.open(self.folder / job / stream, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            return None

    def save(self, record: Record) -> None:
        """Write how a job stands. What cannot be written is remembered until this daemon ends."""
        if record.id is None:
            return
        self._unwritten.pop(record.id, None)
        # NOTE: not synced: a power cut ends the command as well, and waiting for the disk would hold up the others.
        try:
            write_atomic(self.folder / record.id / _META, msgspec.json.encode(record), mode=0o600, sync=False)
        except OSError:
            self._unwritten[record.id] = record
            while len(self._unwritten) > self._keep:
                del self._unwritten[next(iter(self._unwritten))]
        self._saved(record)

    def load(self, job: str) -> Record | None:
        """Read how a job stood last; ``None`` when there is no such job."""
        if _ID.fullmatch(job) is None:
            return None
        if (unwritten := self._unwritten.get(JobId(job))) is not None:
            return unwritten
        try:
            return self._honest(self._stored(job))
        except (OSError, ValueError):
            return None

    def _stored(self, job: str) -> Record:
        return jsonfile.read(self.folder / job / _META, _LARGEST_META, Record)

    def all(self) -> list[Record]:
        """Read how every job stands, oldest first, as if none were looked after by this daemon."""
        records = (self.load(name) for name in {*self._names(), *self._unwritten})
        return sorted((record for record in records if record), key=lambda record: record.started_at)

    def read(self, job: JobId, stream: Stream, offset: int, limit: int) -> Page:
        """Read up to ``limit`` bytes of a stream; a negative offset counts from its end.

        Raises:
            ToolError: the output is gone.
        """
        try:
            with (self.folder / job / stream).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                start = min(offset, size) if offset >= 0 else max(0, size + offset)
                file.seek(start)
                return Page(file.read(limit), start, size)
        except FileNotFoundError:
            return Page(b"", 0, 0)
        except OSError as cause:
            raise unreadable(job, cause) from cause

    def size(self, job: JobId, stream: Stream) -> int:
        """Bytes kept of a stream."""
        try:
            return (self.folder / job / stream).stat().st_size
        except OSError:
            return 0

    def prune(self, live: Collection[JobId], live_bytes: int = 0) -> None:
        """Throw ended jobs away, oldest first, until what stays is within both bounds; the newest of them stays."""
        records = [record for record in self.all() if record.id not in live]
        self._sweep({*live, *(record.id for record in records if record.id)})
        kept, kept_bytes = 0, live_bytes
        for record in reversed(records):
            if record.id is None:
                continue
            kept_bytes += self.size(record.id, "stdout") + self.size(record.id, "stderr")
            if record.state is State.ORPHAN:
                continue
            kept += 1
            if kept > self._keep or (kept_bytes > self._keep_bytes and kept > 1):
                shutil.rmtree(self.folder / record.id, ignore_errors=True)

    def _sweep(self, known: Collection[str]) -> None:
        """Throw away what a crash left before there was a record of it."""
        for name in self._names():
            if name not in known and not self._may_be_read_later(name):
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _may_be_read_later(self, job: str) -> bool:
        """Whether there is a record that the system does not give us now, for want of a descriptor, say."""
        try:
            self._stored(job)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        except OSError:
            pass
        return True

    def _names(self) -> list[str]:
        try:
            return [entry.name for entry in self.folder.iterdir() if _ID.fullmatch(entry.name)]
        except OSError:
            return []

    def _honest(self, record: Record) -> Record:
        """Correct what was written while a daemon looked after the job and is read when none does."""
        if record.id is None or not (record.state.live or record.state is State.ORPHAN):
            return record
        # What ended before its daemon did is known; only nobody saw the end of what it left.
        gone = State.LOST if record.exit_code is None else State.ENDED
        living = tuple(one for one in record.processes if one.alive())
        return msgspec.structs.replace(
            record,
            state=State.ORPHAN if living else gone,
            survivors=living,
            output_bytes=self.size(record.id, "stdout") + self.size(record.id, "stderr"),
        )


def unreadable(job: JobId, cause: OSError) -> ToolError:
    """Make the error for output that the disk does not give back."""
    return ToolError(f"The output of job {job} cannot be read: {cause.strerror}.", hint="The disk may be failing.")
