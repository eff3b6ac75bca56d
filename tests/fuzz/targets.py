"""The fuzz targets by name, and their inputs that are kept."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "corpus"
NAMES = tuple(sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py")))


def check(name: str) -> Callable[[bytes], None]:
    """Give what fails on an input that shows a fault."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    found: Callable[[bytes], None] = importlib.import_module(f"fuzz_{name}").check
    return found


def kept(name: str) -> list[Path]:
    """The inputs of a target under version control: good seeds, and every one that once failed (``found-…``)."""
    return sorted(path for path in (CORPUS / name).iterdir() if path.is_file())
