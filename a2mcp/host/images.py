"""Pictures small enough to send to a model: at most 1568 pixels on the longer side and under 1 MB once in base64.

Does not know files or tools: bytes in, bytes out. The imaging library is loaded by the first picture.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL.Image import Image

SIDE: Final = 1568
"""Pixels on the longer side beyond which models scale down themselves."""
BYTES: Final = 740_000
"""Bytes of a picture whose base64 form stays under 1 MB."""
_PIXELS: Final = 40_000_000
"""Pixels we are willing to decode; at four bytes each they bound the memory of one call."""
_AS_IS: Final = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_QUALITIES: Final = (85, 70, 50)


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture ready to be sent."""

    data: bytes
    mime_type: str
    note: str
    """What was done to it, for example ``PNG, 4000x3000, scaled to 1568x1176``."""


class NoPicture(Exception):
    """The bytes cannot be shown as a picture; the text says why."""


def prepare(data: bytes) -> Picture:
    """Make a picture small enough, leaving it as it is when it already is.

    Raises:
        NoPicture: it cannot be decoded, or is too large to try.
    """
    from PIL import Image as Images  # noqa: PLC0415 - heavy, and few calls see a picture

    # The library's own guard warns through a process-wide filter; ours below refuses before any pixel is decoded.
    Images.MAX_IMAGE_PIXELS = None
    try:
        with Images.open(io.BytesIO(data)) as image:
            return _prepared(image, data)
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, IndexError, KeyError) as error:
        raise NoPicture(f"it cannot be decoded ({type(error).__name__})") from error


def _prepared(image: Image, data: bytes) -> Picture:
    width, height = image.size
    kind = image.format or "picture"
    said = f"{kind}, {width}x{height}"
    if getattr(image, "n_frames", 1) > 1:
        said += ", first of several frames"
    if max(width, height) <= SIDE and len(data) <= BYTES and kind in _AS_IS:
        image.load()
        return Picture(data=data, mime_type=_AS_IS[kind], note=said)
    # A JPEG can be decoded at an eighth to a half of its size, which is cheaper than scaling all of it.
    image.draft("RGB", (SIDE, SIDE))
    if image.size[0] * image.size[1] > _PIXELS:
        raise NoPicture(f"{width}x{height} pixels are more than are decoded here")
    return _scaled(image, said)


def _scaled(image: Image, said: str) -> Picture:
    from PIL import ImageOps  # noqa: PLC0415 - as above

    # Colours by number cannot be scaled smoothly.
    colours: Image = image.convert("RGBA") if image.mode in {"P", "PA"} else image
    colours.thumbnail((SIDE, SIDE))
    upright = ImageOps.exif_transpose(colours)
    side = SIDE
    while True:
        for mime_type, encoded in _encodings(upright):
            if len(encoded) <= BYTES:
                width, height = upright.size
                return Picture(data=encoded, mime_type=mime_type, note=f"{said}, sent as {width}x{height}")
        side = side * 3 // 4
        upright.thumbnail((side, side))


def _encodings(image: Image) -> Iterator[tuple[str, bytes]]:
    """Forms to send, best first: lossless where that may matter, then smaller and smaller."""
    if image.mode in {"1", "L", "LA", "RGBA", "I;16"}:
        yield "image/png", _saved(image, "PNG", optimize=True)
    flat = _flattened(image)
    for quality in _QUALITIES:
        yield "image/jpeg", _saved(flat, "JPEG", quality=quality)


def _flattened(image: Image) -> Image:
    """The picture on white, as JPEG has no transparency."""
    if not image.has_transparency_data:
        return image.convert("RGB")
    from PIL import Image as Images  # noqa: PLC0415 - as above

    layer = image.convert("RGBA")
    ground = Images.new("RGBA", layer.size, "white")
    return Images.alpha_composite(ground, layer).convert("RGB")


def _saved(image: Image, kind: str, **options: int) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()
