"""Models that nobody has, and what stands in for their file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2mcp.clock import SystemClock
from a2mcp.inference.apis import Api
from a2mcp.inference.models import Models
from a2mcp.inference.registry import Offer
from a2mcp.inference.rows import Catalogue, Key, ModelRow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from a2mcp.inference.keys import Credentials


def model(ref: str, api: str = "fake", **more: Any) -> ModelRow:
    """A model by its name."""
    provider, _, name = ref.partition("/")
    more.setdefault("base_url", f"https://{provider}.example/v1")
    return ModelRow(provider=provider, id=name, name=name, api=api, **more)


def _speak(row: ModelRow, credentials: Credentials) -> tuple[str, str | None]:
    return row.ref, credentials.key


FAKE = Api("fake", _speak)
NATIVE = Api("native", _speak, bypasses=True)


class File:
    """The operator's file: each content is read once; None is a file that has not changed."""

    def __init__(self, *contents: Catalogue | Exception | None) -> None:
        self.contents = list(contents)

    def read(self, _apis: Collection[str]) -> Catalogue | None:
        found = self.contents.pop(0) if self.contents else None
        if isinstance(found, Exception):
            raise found
        return found


def models(*rows: ModelRow, file: File | None = None, warn: Callable[[str], object] = lambda _: None) -> Models:
    """Models with these rows from the file, the first chosen, and APIs that answer with what they were asked."""
    file = file or File()
    file.contents.insert(0, Catalogue(rows, rows[0].ref if rows else None))
    made = Models.of(file, SystemClock(), warn)
    made.registry.claim("tests", Offer(apis=(FAKE, NATIVE)))
    made.loader.refresh()
    return made


KEYED = model("cloud/large", key=Key("command", "touch ran"), headers={"X": Key("literal", "y")})
