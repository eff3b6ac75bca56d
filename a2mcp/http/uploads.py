"""The body of an upload on its way to the disk: taken by the loop piece by piece, written by the workers.

Two threads meet here and neither waits: the loop stops reading while more than ``FULL`` is unwritten, a worker writes
what there is and goes. So a slow client holds no worker, and a slow disk holds no loop.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from a2mcp.errors import FileRefusal, Internal, RequestError
from a2mcp.protocol.refusal import response_for
from a2mcp.xfer.faults import refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.http.server.parked import Parked
    from a2mcp.http.server.workers import Workers
    from a2mcp.protocol.response import Response
    from a2mcp.xfer.request import Request
    from a2mcp.xfer.upload import Incoming

FULL: Final = 2 << 20
"""Bytes taken and not yet written, at which no more is read."""
ROOM: Final = 1 << 20


class Body:
    """A ``Sink`` that writes into ``incoming``, and keeps it once the whole body is there.

    Args:
        incoming: where it goes. Used by one worker at a time.
        workers: who writes.
        asked: the request; when its share is closed, the upload ends.
        size: bytes that were announced, or 0.
    """

    def __init__(self, incoming: Incoming, workers: Workers, asked: Request, size: int) -> None:
        self._incoming = incoming
        self._workers = workers
        self._share = asked.share
        self._stall_s = asked.options.stall_s
        self._transfers = asked.transfers
        self._transfer = asked.transfers.begin("/".join(asked.shown), "upload", size or None)
        self._lock = threading.Lock()
        self._pieces: list[bytes] = []
        self._unwritten = 0
        self._size = 0
        self._begun = self._busy = self._closed = self._over = False
        self._fault: RequestError | None = None
        self._tell: Callable[[], None] | None = None
        self._parked: Parked | None = None
        self._work()

    # --- the loop's side ------------------------------------------------------------------------------------------

    @property
    def fault(self) -> RequestError | None:
        """What went wrong, as soon as it is known."""
        if self._fault is None and self._share.closed:
            self._fail(FileRefusal(404, "Not Found: the share is closed"))
        elif self._fault is None and self._transfer.stopped:
            self._fail(FileRefusal(403, "Forbidden: the operator has ended this upload"))
        return self._fault

    @property
    def full(self) -> bool:
        """Whether the disk is behind."""
        return self._unwritten > FULL

    def when_room(self, tell: Callable[[], None]) -> None:
        """Have it told, by a worker, when the disk has caught up; at once if it has."""
        with self._lock:
            self._tell = tell if self.full else None
            waits = self._tell is not None
        if not waits:
            tell()

    def overdue(self, still_s: float) -> bool:
        """Whether the share is closed, or the client has sent nothing for too long although there was room."""
        return self.fault is not None or (still_s > self._stall_s and not self.full)

    def append(self, data: bytes) -> None:
        """Take the next bytes."""
        with self._lock:
            self._size += len(data)
            self._transfer.moved += len(data)
            if self._fault is not None:
                return
            self._pieces.append(data)
            self._unwritten += len(data)
        self._work()

    def __len__(self) -> int:
        return self._size

    def getfile(self) -> Body:
        """Itself, to the app."""
        return self

    def close(self) -> None:
        """The request is over. What is not whole is thrown away."""
        with self._lock:
            self._closed = True
        self._work()

    def finish(self, parked: Parked) -> None:
        """The body is whole: keep it, and answer."""
        with self._lock:
            self._parked = parked
            over = self._over
        if over:
            parked.complete(response_for(self._fault or Internal()))
        else:
            self._work()

    # --- the workers' side ----------------------------------------------------------------------------------------

    def _work(self) -> None:
        with self._lock:
            if self._busy or self._over:
                return
            self._busy = True
        self._workers.do(self._run)

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except FileRefusal as refusal:
            self._end(refusal)
        except OSError as error:
            self._end(refusal_of(error))
        except BaseException:
            self._end(Internal())
            raise

    def _step(self) -> bool:
        """Do what is next; whether there was something."""
        with self._lock:
            data = b"".join(self._pieces)
            self._pieces.clear()
            whole = self._parked is not None
            if (self._closed and not whole) or self._fault is not None:
                data, ending = b"", True
            else:
                ending = whole and not data and self._begun
            if not (data or ending) and self._begun:
                self._busy = False
                return False
        if ending:
            self._end(self._fault)
            return False
        self._write(data)
        return True

    def _write(self, data: bytes) -> None:
        if not self._begun:
            self._incoming.begin()
            self._begun = True
        if data:
            self._incoming.write(data)
        self._give_room(len(data))

    def _give_room(self, written: int) -> None:
        with self._lock:
            self._unwritten -= written
            tell = self._tell if self._unwritten <= ROOM else None
            if tell is not None:
                self._tell = None
        if tell is not None:
            tell()

    def _end(self, fault: RequestError | Internal | None) -> None:
        """Keep what is whole, throw away what is not, and answer whoever waits."""
        parked = self._parked
        response: Response | None = None
        if fault is None and parked is not None:
            try:
                response = self._incoming.keep()
            except FileRefusal as refusal:
                fault = refusal
            except OSError as error:
                fault = refusal_of(error)
        self._incoming.discard()
        if fault is not None:
            response = response_for(fault)
            self._fail(fault if isinstance(fault, RequestError) else FileRefusal(500, fault.text))
        self._settle(response)

    def _settle(self, response: Response | None) -> None:
        self._transfers.end(self._transfer)
        with self._lock:
            self._over = True
            self._busy = False
            parked = self._parked
        if parked is not None and response is not None:
            parked.complete(response)

    def _fail(self, fault: RequestError) -> None:
        with self._lock:
            self._fault = fault
            self._pieces.clear()
            tell, self._tell = self._tell, None
            self._unwritten = 0
        if tell is not None:
            tell()


class Ignored:
    """A ``Sink`` for a body that says nothing to us: counted, and not kept."""

    full = False
    fault = None

    def __init__(self) -> None:
        self._size = 0

    def when_room(self, tell: Callable[[], None]) -> None:
        """There always is."""
        tell()

    def overdue(self, _still_s: float) -> bool:
        """The server's own deadlines will do."""
        return False

    def append(self, data: bytes) -> None:
        """Count it."""
        self._size += len(data)

    def __len__(self) -> int:
        return self._size

    def getfile(self) -> Ignored:
        """Itself."""
        return self

    def close(self) -> None:
        """There is nothing to close."""
