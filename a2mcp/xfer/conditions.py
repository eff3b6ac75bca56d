"""Whether what a client has is still what there is: validators and the conditional headers (RFC 9110 §13)."""

from __future__ import annotations

from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    Header = Callable[[str], str | None]
    """Looks a header up, by its name in upper case."""


LATEST_S: Final = 253_402_300_799
"""The last second of the year 9999: a file may be younger, a date in a header or on a page may not."""


class Validators(msgspec.Struct, frozen=True):
    """What tells one content of a file from another."""

    etag: str
    modified: int
    """Seconds; the precision of HTTP dates."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that tell them."""
        return (("ETag", self.etag), ("Last-Modified", formatdate(self.modified, usegmt=True)))


def validators(found: os.stat_result) -> Validators:
    """Make the validators of a file: when it was changed to the nanosecond, and its size."""
    return Validators(f'"{found.st_mtime_ns:x}-{found.st_size:x}"', max(0, min(int(found.st_mtime), LATEST_S)))


def verdict(header: Header, now: Validators) -> int:
    """The status that the conditions ask for: 200 to go on, 304 or 412. In the order of §13.2.2."""
    if (match := header("IF-MATCH")) is not None:
        if not _names(match, now.etag, weak=False):
            return 412
    elif (unmodified := _date(header("IF-UNMODIFIED-SINCE"))) is not None and now.modified > unmodified:
        return 412
    if (none := header("IF-NONE-MATCH")) is not None:
        return 304 if _names(none, now.etag, weak=True) else 200
    since = _date(header("IF-MODIFIED-SINCE"))
    return 304 if since is not None and now.modified <= since else 200


def range_counts(header: Header, now: Validators) -> bool:
    """Whether ``If-Range`` lets a range be answered with one; without it the whole file is (§13.1.5)."""
    condition = header("IF-RANGE")
    if condition is None:
        return True
    if condition.lstrip().startswith(('"', "W/")):
        return condition.strip() == now.etag
    return _date(condition) == now.modified


def _names(header: str, etag: str, *, weak: bool) -> bool:
    if header.strip() == "*":
        return True
    tags = (tag.strip() for tag in header.split(","))
    return any((tag.removeprefix("W/") if weak else tag) == etag for tag in tags)


def _date(value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return int(parsedate_to_datetime(value).timestamp())
    except (ValueError, TypeError, OverflowError):
        return None
