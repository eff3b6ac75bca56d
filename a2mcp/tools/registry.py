"""Which tools there are: hosts offer them, the registry lists them and finds them by name.

Owns the catalogue and the one text for every name that is not in it. Knows no tool, no actor and no approval.

Readers take no lock: every change builds a new immutable snapshot and puts it in the place of the old one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from a2mcp.errors import NotExposed
from a2mcp.tools.arguments import decode
from a2mcp.tools.spec import Tier, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome
    from a2mcp.tools.spec import AnyTool

_ECHO: Final = 100
_ENCODER: Final = msgspec.json.Encoder()


class Host(Protocol):
    """Somebody who has tools: this process, or later another one."""

    @property
    def name(self) -> str:
        """A name for the operator; no two hosts share one."""
        ...

    def list(self) -> Sequence[ToolSpec]:
        """What is offered now."""
        ...

    def call(self, name: str, raw_arguments: bytes | msgspec.Raw | None, context: Context) -> Outcome:
        """Run a tool.

        Raises:
            ToolError: the caller can mend it.
        """
        ...

    def state(self) -> str:
        """How the host is, in a word or two for the operator."""
        ...

    def attach(self, announce: Callable[[Sequence[ToolSpec]], None]) -> None:
        """Remember whom to tell about every later change; the registry calls it once.

        Telling raises ``ValueError`` when a name is taken; the host must not offer the change then.
        """
        ...


class LocalHost:
    """The tools of this process."""

    name = "local"

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        self._changing = threading.Lock()
        self._announce: Callable[[Sequence[ToolSpec]], None] = lambda _: None
        for tool in tools:
            self.register(tool)

    def list(self) -> Sequence[ToolSpec]:
        """What is offered now, in the order of registration."""
        return [tool.spec for tool in self._tools.values()]

    def call(self, name: str, raw_arguments: bytes | msgspec.Raw | None, context: Context) -> Outcome:
        """Decode the arguments and run the tool."""
        tool = self._tools.get(name)
        if tool is None:
            raise not_exposed(name)
        return tool.run(decode(tool.params, raw_arguments), context)

    def state(self) -> str:
        """How many tools there are."""
        return f"{len(self._tools)} tools"

    def attach(self, announce: Callable[[Sequence[ToolSpec]], None]) -> None:
        """Remember whom to tell about every later change."""
        self._announce = announce

    def register(self, tool: AnyTool) -> None:
        """Offer one more tool.

        Raises:
            ValueError: the name is taken, here or by another host.
        """
        with self._changing:
            if tool.spec.name in self._tools:
                raise ValueError(f"tool '{tool.spec.name}' is registered already")
            self._replace(self._tools | {tool.spec.name: tool})

    def drop(self, name: str) -> None:
        """Offer a tool no longer; calls that run go on.

        Raises:
            KeyError: there is none of that name.
        """
        with self._changing:
            tools = dict(self._tools)
            del tools[name]
            self._replace(tools)

    def _replace(self, tools: dict[str, AnyTool]) -> None:
        # Announced first, since it may be refused. A call that comes between the two lines is answered as one a moment
        # earlier or later would have been.
        self._announce([tool.spec for tool in tools.values()])
        self._tools = tools


class Entry(msgspec.Struct, frozen=True):
    """A tool and where it runs."""

    host: Host
    spec: ToolSpec


class _Snapshot(msgspec.Struct, frozen=True):
    version: int
    entries: dict[str, Entry]
    catalog: bytes
    listed: tuple[msgspec.Raw, ...]


class Registry:
    """The tools of all hosts, by name.

    Raises:
        ValueError: two hosts have the same name, or offer a tool of the same name.
    """

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._changing = threading.Lock()
        self._offers: dict[str, tuple[Host, Sequence[ToolSpec]]] = {}
        self._now = _Snapshot(0, {}, b"[]", ())
        self._tell: Callable[[], None] = lambda: None
        for host in hosts:
            self.add(host)

    def add(self, host: Host) -> None:
        """Take in one more host, with all its tools.

        Raises:
            ValueError: its name, or the name of one of its tools, is taken; nothing is changed then.
        """
        if host.name in self._offers:
            raise ValueError(f"host '{host.name}' is registered already")
        self._offer(host, host.list())
        host.attach(lambda specs: self._offer(host, specs))

    @property
    def catalog_version(self) -> int:
        """Grows whenever the catalogue changes."""
        return self._now.version

    def catalog(self) -> bytes:
        """The JSON array that ``tools/list`` of the bridge answers with, encoded once per change."""
        return self._now.catalog

    def listed(self) -> tuple[msgspec.Raw, ...]:
        """Every tool with all that newer dialects show of it, encoded once per change."""
        return self._now.listed

    def attach(self, tell: Callable[[], None]) -> None:
        """Remember whom to tell that the catalogue has changed."""
        self._tell = tell

    def specs(self) -> Sequence[ToolSpec]:
        """Every tool, in the order of the catalogue."""
        return [entry.spec for entry in self._now.entries.values()]

    def hosts(self) -> Sequence[Host]:
        """Every host, in the order it came."""
        return [host for host, _ in list(self._offers.values())]

    def find(self, name: str) -> Entry | None:
        """Look a tool up by its exact name; there are no aliases."""
        return self._now.entries.get(name)

    def require(self, name: str) -> Entry:
        """Look a tool up by its exact name.

        Raises:
            NotExposed: there is none.
        """
        entry = self._now.entries.get(name)
        if entry is None:
            raise not_exposed(name)
        return entry

    def _offer(self, host: Host, specs: Sequence[ToolSpec]) -> None:
        with self._changing:
            offers = self._offers | {host.name: (host, specs)}
            entries = _merged(offers.values())
            catalog = _ENCODER.encode([_listed(entry.spec) for entry in entries.values()])
            listed = tuple(msgspec.Raw(_ENCODER.encode(_fully_listed(entry.spec))) for entry in entries.values())
            self._offers = offers
            self._now = _Snapshot(self._now.version + 1, entries, catalog, listed)
        self._tell()


def not_exposed(name: str) -> NotExposed:
    """Make the one error for every name that is not in the catalogue; what it echoes is short and prints."""
    shown = name[:_ECHO].encode("unicode_escape").decode("ascii")
    return NotExposed(shown if len(shown) <= _ECHO else f"{shown[:_ECHO]}…")


def _merged(offers: Iterable[tuple[Host, Sequence[ToolSpec]]]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for host, specs in offers:
        for spec in specs:
            if spec.name in entries:
                owner = entries[spec.name].host.name
                raise ValueError(f"tool '{spec.name}' of host '{host.name}' is already offered by host '{owner}'")
            entries[spec.name] = Entry(host, spec)
    return entries


def _listed(spec: ToolSpec) -> dict[str, Any]:
    """Write a tool as ``tools/list`` shows it: what the seed names, then what newer clients know to use."""
    return {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": spec.input_schema,
        "title": spec.title,
        "annotations": {
            "title": spec.title,
            "readOnlyHint": spec.tier is Tier.READ,
            "destructiveHint": spec.tier is not Tier.READ,
            "idempotentHint": spec.idempotent,
            "openWorldHint": spec.open_world,
        },
    }


def _fully_listed(spec: ToolSpec) -> dict[str, Any]:
    """Write a tool with what only newer dialects know."""
    more = {} if spec.output_schema is None else {"outputSchema": spec.output_schema}
    return _listed(spec) | more
