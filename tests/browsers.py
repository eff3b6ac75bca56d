"""The browser that tests drive: a Chromium of the system, by Playwright."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

CHROMIUM: Final = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None
)
"""The one that is made for being driven comes first: a page costs it half of the processor time. None: there is none."""


@contextmanager
def launched(playwright: Any) -> Iterator[Any]:
    """One without a window; closed at the end of the block."""
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    try:
        yield chromium
    finally:
        chromium.close()
