"""Fetching bytes over HTTP into a file, within three gates, going on where an earlier attempt ended.

Owns the transfer; what the bytes are worth is the caller's to judge by their hash, and that is why a redirect may lead
anywhere: it is told nothing but the range that is wanted. Proxies and credentials of the environment are not used.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from a2mcp.errors import CannotObtain
from a2mcp.obtain.pins import is_web_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx2

MIB: Final = 1 << 20
REDIRECTS: Final = 5

_OK: Final = 200
_PARTIAL: Final = 206
_PAST_THE_END: Final = 416


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """What a download may cost. A slow one that goes on arriving may use all of ``total_s``; a dead one may not."""

    size: int = 64 * MIB
    idle_s: float = 30.0
    """Without a byte, from before the request on."""
    total_s: float = 600.0


class Download:
    """One transfer, which blocks the thread that runs it and can be cancelled from any other.

    Args:
        url: where the bytes are.
        part: the file they go to; what it holds already is not fetched again.
        gates: the limits.
        tell: called with the bytes that are there and the size of all, where that is known.
    """

    def __init__(self, url: str, part: Path, gates: Gates, tell: Callable[[int, int | None], None]) -> None:
        self._url = url
        self._part = part
        self._gates = gates
        self._tell = tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        self.resumed = False
        """Whether the file holds bytes of an earlier attempt."""

    def run(self) -> None:
        """Fetch until the file is complete. What has come is kept when it is not, so that the next one goes on.

        Raises:
            CannotObtain: it is not complete; the text says why.
        """
        try:
            asyncio.run(self._within_the_gates())
        except asyncio.CancelledError:
            raise CannotObtain(f"{self._url} was not fetched: it was cancelled.") from None
        except TimeoutError:
            raise CannotObtain(
                f"{self._url} was not complete after {self._gates.total_s:g} s. What has come is kept for another try."
            ) from None
        except OSError as error:
            raise CannotObtain(f"{self._part} cannot be written: {error.strerror or error}.") from error

    def cancel(self) -> None:
        """End it, from another thread."""
        self._cancelled = True
        if self._loop is not None and self._task is not None:
            # The loop may have ended in this moment: then there is nothing to cancel.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)

    async def _within_the_gates(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._cancelled:
            raise asyncio.CancelledError
        async with asyncio.timeout(self._gates.total_s):
            await self._explained()

    async def _explained(self) -> None:
        import httpx2  # noqa: PLC0415  # 16 MB and 80 ms that only a download is worth.

        try:
            async with httpx2.AsyncClient(
                trust_env=False,
                timeout=self._gates.idle_s,
                headers={"Accept-Encoding": "identity", "User-Agent": "a2mcp"},
            ) as client:
                while not await self._once(client):
                    self._part.unlink(missing_ok=True)
        except httpx2.TimeoutException:
            raise CannotObtain(
                f"No byte of {self._url} came for {self._gates.idle_s:g} s. What has come is kept for another try."
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise CannotObtain(f"{self._url} could not be fetched: {str(error) or type(error).__name__}.") from error

    async def _once(self, client: httpx2.AsyncClient) -> bool:
        """Ask once, along the redirects; False when what is there is no beginning of it and must go first."""
        start = _size(self._part)
        wanted = {"Range": f"bytes={start}-"} if start else {}
        url = self._url
        for _ in range(REDIRECTS + 1):
            async with client.stream("GET", url, headers=wanted) as response:
                if response.has_redirect_location:
                    url = _next(url, str(response.url.join(response.headers["location"])))
                    continue
                if response.status_code == _PAST_THE_END and start:
                    return False
                await self._take(response, start)
                return True
        raise CannotObtain(f"{self._url} leads from one address to the next, more than {REDIRECTS} times.")

    async def _take(self, response: httpx2.Response, start: int) -> None:
        self.resumed = response.status_code == _PARTIAL and _begins_at(response, start)
        if not self.resumed and response.status_code != _OK:
            raise CannotObtain(f"{response.url} answered {response.status_code}.")
        done = start if self.resumed else 0
        length = response.headers.get("content-length", "")
        total = done + int(length) if length.isdecimal() else None
        self._require_small(total or 0)
        with self._part.open("ab" if self.resumed else "wb") as file:
            self._tell(done, total)
            async for piece in response.aiter_raw():
                done += len(piece)
                self._require_small(done)
                file.write(piece)
                self._tell(done, total)

    def _require_small(self, size: int) -> None:
        if size > self._gates.size:
            self._part.unlink(missing_ok=True)
            raise CannotObtain(f"{self._url} is larger than {self._gates.size} bytes.")


def _size(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _begins_at(response: httpx2.Response, start: int) -> bool:
    return str(response.headers.get("content-range", "")).startswith(f"bytes {start}-")


def _next(url: str, target: str) -> str:
    """Follow a redirect: to the web only, and never from https to what anybody on the way can read."""
    if not is_web_address(target) or (urlsplit(url).scheme, urlsplit(target).scheme) == ("https", "http"):
        raise CannotObtain(f"{url} leads to an address that is not followed.")
    return target
