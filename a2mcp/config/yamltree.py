"""YAML as a tree that knows its lines, so that whatever is wrong can be named where it stands.

Owns what is taken of YAML: plain values, sequences and mappings with different keys that are strings. No tags, so
nothing is built but what JSON has; and no more nodes than fit, however often an alias repeats them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "timestamp", "map", "seq", "merge")
)
MOST_NODES: Final = 100_000
DEEPEST: Final = 32


class Bad(Exception):
    """Something that is wrong in a line."""

    def __init__(self, line: int, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.line = line
        self.text = text
        self.hint = hint


class Node(msgspec.Struct, frozen=True):
    """One value, and the line in which it begins."""

    value: Any
    """A scalar, ``list[Node]``, or ``dict[str, Node]``."""
    line: int


def parse(raw: bytes) -> Node:
    """Read one document.

    Raises:
        Bad: it is not YAML, or more of it than is taken here.
    """
    import yaml  # noqa: PLC0415 - a daemon without such a file loads none of it

    try:
        root = yaml.compose(raw.decode("utf-8-sig"), Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise Bad(raw[: error.start].count(b"\n") + 1, "is not UTF-8") from None
    except yaml.reader.ReaderError as error:
        raise Bad(
            raw.decode("utf-8-sig")[: error.position].count("\n") + 1, "has a character that YAML forbids"
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Bad(mark.line + 1 if mark else 1, f"is not YAML: {error.problem or error.context}") from None
    except RecursionError:
        raise Bad(1, "is nested too deeply") from None
    return Node({}, 1) if root is None else _Copy(yaml).of(root, 0)


class _Copy:
    """Copies the library's nodes, and counts."""

    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._scalars = yaml.constructor.SafeConstructor()
        self._left = MOST_NODES

    def of(self, node: Any, depth: int) -> Node:
        line = node.start_mark.line + 1
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise Bad(line, "has more in it than is read" if self._left < 0 else "is nested too deeply")
        if node.tag not in _TAGS:
            raise Bad(line, f"has the tag '{node.tag[:80]}', which is not read")
        if isinstance(node, self._yaml.MappingNode):
            return Node(dict(self._members(node, depth)), line)
        if isinstance(node, self._yaml.SequenceNode):
            return Node([self.of(item, depth + 1) for item in node.value], line)
        return Node(self._scalar(node, line), line)

    def _members(self, mapping: Any, depth: int) -> Iterator[tuple[str, Node]]:
        seen: set[str] = set()
        for key, value in mapping.value:
            line = key.start_mark.line + 1
            if not isinstance(key, self._yaml.ScalarNode):
                raise Bad(line, "has a key that is no string")
            if key.value in seen:
                raise Bad(line, f"has '{key.value[:80]}' a second time")
            seen.add(key.value)
            yield key.value, self.of(value, depth + 1)

    def _scalar(self, node: Any, line: int) -> Any:
        try:
            return self._scalars.construct_object(node)
        except (self._yaml.YAMLError, ValueError, OverflowError):
            raise Bad(line, f"has a value that cannot be read: '{node.value[:80]}'") from None
