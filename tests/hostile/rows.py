"""The ids of rows, in front of the ids of the tests that are tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_WIDTH = 20
"""Characters of its beginning and of its end."""


def row(name: str) -> Callable[[object], str]:
    """Name each value of a table after its row: for the ``ids`` of ``parametrize``."""

    def named(value: object) -> str:
        shown = value if isinstance(value, str) and value.isprintable() else repr(value)
        if len(shown) > 2 * _WIDTH + 2:
            shown = f"{shown[:_WIDTH]}..{shown[-_WIDTH:]}"
        return f"{name} {shown}".encode("ascii", "backslashreplace").decode()

    return named
