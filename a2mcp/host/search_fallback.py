"""The searcher for machines without ripgrep: slow, but it always ends. Runs as a child process of its own.

Prints what ``rg --json`` and ``rg --files --null`` print. Owns Python's regular expressions, which can run for ever:
one file is given up after ``FILE_SECONDS``, and the parent kills the child when the time for the whole search is over.
A caller's pattern is compiled here and nowhere else.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import signal
import sys
from collections import deque
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import msgspec

from a2mcp.host.globs import Globs
from a2mcp.host.search_query import Files, Lines
from a2mcp.host.search_walk import complain, walk

FILE_SECONDS: Final = 2.0
"""Time for one file."""
_SNIFFED: Final = 8192
_BOOT: Final = "import sys; sys.path.insert(0, sys.argv[1]); from a2mcp.host import search_fallback as s; s.main()"
"""``-I`` keeps the working directory, which is the caller's tree, off the import path, and ``-m`` needs it there."""


def argv(query: Lines | Files) -> list[str]:
    """Write the command that answers a query; it must run in the folder of the query's tree."""
    package = Path(__file__).resolve().parents[2]
    # A file's name may be no UTF-8, so it cannot travel as JSON; the folder is where the child runs.
    plain = msgspec.structs.replace(query, tree=msgspec.structs.replace(query.tree, folder=Path(), name=""))
    encoded = msgspec.json.encode(plain, enc_hook=str).decode()
    return [sys.executable, "-I", "-c", _BOOT, str(package), type(query).__name__, query.tree.name, encoded]


def main() -> None:
    """Answer the query on the command line. An end without a summary means that the pattern is wrong."""
    _, _, kind, name, encoded = sys.argv
    signal.signal(signal.SIGALRM, _give_up)
    if kind == "Files":
        _print_files(msgspec.json.decode(encoded, type=Files, dec_hook=_path))
    else:
        _print_lines(msgspec.json.decode(encoded, type=Lines, dec_hook=_path), name)
    sys.stdout.flush()


def _path(kind: type, value: Any) -> Any:
    return Path.cwd() if kind is Path else value


def _give_up(*_: object) -> NoReturn:
    raise TimeoutError(f"given up after {FILE_SECONDS:g} s: this pattern takes too long on this file")


def _print_files(query: Files) -> None:
    for path in walk(query.tree):
        sys.stdout.buffer.write(os.fsencode(f"./{path}\0"))


def _print_lines(query: Lines, name: str) -> None:
    source = re.escape(query.pattern) if query.literal else query.pattern
    try:
        wanted = re.compile(source, 0 if query.case else re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(f"regex parse error:\nerror: {error}\n")
        sys.exit(2)
    globs = Globs(query.glob) if query.glob else None
    searched = 0
    for path in [name] if name else walk(query.tree):
        if globs is None or globs.matches(path):
            searched += _search(path, wanted, query)
    _emit("summary", stats={"searches": searched})


def _search(path: str, wanted: re.Pattern[str], query: Lines) -> bool:
    """Print the hits of one file; say on stderr why there are none, if they could not be looked for."""
    signal.setitimer(signal.ITIMER_REAL, FILE_SECONDS)
    try:
        with Path(path).open("rb") as file:
            charset = _charset(file.read(_SNIFFED))
            file.seek(0)
            if charset is not None:
                _File(path, query).search(wanted, file, charset)
    except (OSError, RecursionError, MemoryError) as error:
        complain(path, error if isinstance(error, OSError) else type(error).__name__)
        return False
    else:
        return charset is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _charset(head: bytes) -> str | None:
    """Say how to decode a file that begins like this, or ``None`` for what is no text."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return None if b"\0" in head else "utf-8-sig"


class _File:
    """One file being searched: prints hits with the lines around them."""

    def __init__(self, path: str, query: Lines) -> None:
        self._path = path
        self._query = query
        self._before: deque[dict[str, Any]] = deque(maxlen=query.context)
        self._begun = False
        self._owed = 0
        """Lines of context that are still to follow the last hit."""

    def search(self, wanted: re.Pattern[str], file: IO[bytes], charset: str) -> None:
        hits = offset = 0
        with io.TextIOWrapper(file, encoding=charset, errors="surrogateescape", newline="\n") as text:
            for number, line in enumerate(text, 1):
                raw = line.encode(errors="surrogateescape")
                found = wanted.search(line.rstrip("\r\n"))
                self._line(_message(raw, number, offset, _byte(line, found)), hit=found is not None)
                offset += len(raw)
                hits += found is not None
                if hits > self._query.limit:
                    break

    def _line(self, message: dict[str, Any], *, hit: bool) -> None:
        if hit:
            self._begin()
            while self._before:
                self._tell("context", self._before.popleft())
            self._tell("match", message)
            self._owed = self._query.context
        elif self._owed:
            self._owed -= 1
            self._tell("context", message)
        else:
            self._before.append(message)

    def _begin(self) -> None:
        """Name the file before its first hit; a file without hits is not named at all."""
        if not self._begun:
            self._tell("begin", {})
            self._begun = True

    def _tell(self, kind: str, message: dict[str, Any]) -> None:
        _emit(kind, path={"bytes": os.fsencode(self._path)}, **message)


def _message(raw: bytes, number: int, offset: int, start: int | None) -> dict[str, Any]:
    spans = [] if start is None else [{"start": start}]
    return {"lines": {"bytes": raw}, "line_number": number, "absolute_offset": offset, "submatches": spans}


def _byte(line: str, found: re.Match[str] | None) -> int | None:
    return len(line[: found.start()].encode(errors="surrogateescape")) if found else None


def _emit(kind: str, **data: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode({"type": kind, "data": data}) + b"\n")
