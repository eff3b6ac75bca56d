"""What a file that is not text is, by its first bytes. Knows the kinds people meet; the rest is ``data``."""

from __future__ import annotations

from typing import Final

_SIGNATURES: Final = (
    (b"\xff\xfe", "UTF-16 text that is broken or too large to show"),
    (b"\xfe\xff", "UTF-16 text that is broken or too large to show"),
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"\0\0\1\0", "ICO image"),
    (b"BM", "BMP image"),
    (b"\x7fELF", "ELF executable or library"),
    (b"MZ", "Windows executable or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O executable or library"),
    (b"\xca\xfe\xba\xbe", "Java class or universal Mach-O"),
    (b"\0asm", "WebAssembly module"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (also docx, xlsx, jar, whl)"),
    (b"PK\x05\x06", "empty ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", "RAR archive"),
    (b"!<arch>\n", "static library or Debian package"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"OggS", "Ogg audio or video"),
    (b"fLaC", "FLAC audio"),
    (b"ID3", "MP3 audio"),
    (b"\x1aE\xdf\xa3", "Matroska or WebM video"),
    (b"wOF2", "WOFF2 font"),
    (b"\0\1\0\0\0", "TrueType font"),
    (b"OTTO", "OpenType font"),
)
_RIFF: Final = {b"WEBP": "WebP image", b"WAVE": "WAV audio", b"AVI ": "AVI video"}
UNKNOWN: Final = "data"
"""The kind of bytes that no signature fits."""
HEAD_BYTES: Final = 512
"""As many first bytes as ``describe`` looks at."""


def describe(head: bytes) -> str:
    """Name the kind of a file from its first ``HEAD_BYTES`` bytes."""
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], "RIFF data")
    if head[4:8] == b"ftyp":
        return "AVIF or HEIC image" if head[8:12] in {b"avif", b"heic", b"mif1"} else "MP4 or QuickTime video"
    if head[257:262] == b"ustar":
        return "tar archive"
    return UNKNOWN


def is_picture(kind: str) -> bool:
    """Say whether ``describe`` found a picture."""
    return kind.endswith("image")
