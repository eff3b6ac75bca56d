"""Text in files: which bytes are text, in which charset, with which line ends, and the way back to the same bytes.

The promise is that ``encode(decode(data)) == data`` whenever ``exact`` is set, so that a change to one line leaves
every other byte alone. Nothing is ever replaced by U+FFFD: what cannot be read is not text, what cannot be written is
an error.
"""

from __future__ import annotations

import codecs
from typing import Final

import msgspec

_BOMS: Final = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Charsets that contain ASCII and have no shift states: with those, unchanged characters keep their bytes.
_LEGACY: Final = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257"),
    *("iso8859_2", "iso8859_5", "iso8859_7", "iso8859_15", "koi8_r", "koi8_u", "cp850", "cp866", "mac_roman"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949", "euc_kr"),
)
_WESTERN: Final = "cp1252"
_SAMPLE = 64 * 1024
_CONTROLS: Final = bytes(code for code in range(32) if chr(code) not in "\t\n\r\f\b\x1a\x1b") + b"\x7f"


class Encoding(msgspec.Struct, frozen=True, kw_only=True):
    """How a text lies in its file."""

    charset: str
    """Python's name of the codec."""
    bom: bytes = b""
    """The mark in front, if there is one."""
    guessed: bool = False
    """The charset was detected from the bytes; nothing in the file says so."""
    exact: bool = True
    """Encoding the decoded text gives the same bytes again."""

    @property
    def label(self) -> str:
        """The charset in words, for example ``utf-8``, ``utf-16-le with BOM``, ``cp1252 (detected)``."""
        mark = " with BOM" if self.bom else ""
        return f"{self.charset}{mark}{' (detected)' if self.guessed else ''}"


class TextFile(msgspec.Struct, frozen=True):
    """The text of a file, line ends as they are, and how to write it back."""

    text: str
    encoding: Encoding


_UTF8: Final = Encoding(charset="utf-8")


def decode(data: bytes) -> TextFile | None:
    """Read bytes as text, or say None when they are not text."""
    for bom, charset in _BOMS:
        if data.startswith(bom):
            return _decode_marked(data, bom, charset)
    if b"\0" in data:
        return None
    try:
        return TextFile(data.decode(), _UTF8)
    except UnicodeDecodeError:
        return _decode_legacy(data)


def decode_part(data: bytes) -> TextFile | None:
    """Read a part of a file that may end inside a character; the broken character at the end is left out."""
    if data.startswith(codecs.BOM_UTF8):
        rest = decode_part(data[len(codecs.BOM_UTF8) :])
        return rest and TextFile(rest.text, Encoding(charset=rest.encoding.charset, bom=codecs.BOM_UTF8))
    if b"\0" in data:
        return None
    for cut in range(4):
        try:
            return TextFile(data[: len(data) - cut].decode(), _UTF8)
        except UnicodeDecodeError as error:
            if error.start < len(data) - 4:
                break
    return _decode_legacy(data)


def encode(text: str, encoding: Encoding) -> bytes:
    """Write text the way its file has it.

    Raises:
        UnicodeEncodeError: the charset has no such character.
    """
    return encoding.bom + text.encode(encoding.charset)


def can_encode(text: str, encoding: Encoding) -> bool:
    """Say whether the charset has these characters."""
    try:
        text.encode(encoding.charset)
    except UnicodeEncodeError:
        return False
    return True


def split_lines(text: str) -> list[str]:
    """The lines without their ends. A lone CR ends a line only in a file that has no LF at all."""
    if "\r" not in text:
        lines = text.split("\n")
    elif "\n" in text:
        lines = text.replace("\r\n", "\n").split("\n")
    else:
        lines = text.split("\r")
    if not lines[-1]:
        lines.pop()
    return lines


def line_ending(text: str) -> str:
    """Name the line ends: ``LF``, ``CRLF``, ``CR``, ``mixed (3 CRLF, 1 LF)``, or ``none``."""
    if "\r" not in text:
        return "LF" if "\n" in text else "none"
    if "\n" not in text:
        return "CR"
    pairs = text.count("\r\n")
    plain = text.count("\n") - pairs
    if not pairs:
        return "LF"
    return f"mixed ({pairs} CRLF, {plain} LF)" if plain else "CRLF"


def _decode_marked(data: bytes, bom: bytes, charset: str) -> TextFile | None:
    try:
        text = data[len(bom) :].decode(charset)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else TextFile(text, Encoding(charset=charset, bom=bom))


def _decode_legacy(data: bytes) -> TextFile | None:
    sample = _telling_part(data)
    if len(sample.translate(None, _CONTROLS)) < len(sample) * 0.99:
        return None
    for charset in _guesses(sample):
        try:
            text = data.decode(charset)
        except UnicodeDecodeError:
            continue
        exact = text.encode(charset, "replace") == data
        return TextFile(text, Encoding(charset=charset, guessed=True, exact=exact))
    return None


def _telling_part(data: bytes) -> bytes:
    """The lines that are not ASCII, up to a bound: only they tell charsets apart."""
    if len(data) <= _SAMPLE:
        return data
    parts: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            parts.append(line[:_SAMPLE])
            size += len(parts[-1])
            if size >= _SAMPLE:
                break
    return b"".join(parts)


def _guesses(sample: bytes) -> list[str]:
    """Charsets to try, likeliest first."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - heavy, and most files are UTF-8

    matches = list(from_bytes(sample, cp_isolation=list(_LEGACY), preemptive_behaviour=False))
    found = [match.encoding for match in matches]
    western = next((match for match in matches if _WESTERN in match.could_be_from_charset), None)
    # Short texts cannot tell the Windows code pages of Europe apart; the commonest wins unless the language speaks
    # against it.
    if western and matches[0].coherence - western.coherence <= 0.1 and matches[0].multi_byte_usage == 0:
        return [_WESTERN, *found]
    return found or [_WESTERN]
