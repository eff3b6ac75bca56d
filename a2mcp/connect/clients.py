"""The clients: where each keeps its servers, how it writes one down, and how it refers to a token it must not store.

One table, ``CLIENTS``; everything that differs between two clients is a field of it. Changes no file.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOKEN_VARIABLE: Final = "A2MCP_TOKEN"  # noqa: S105 - the name of a variable
INPUT: Final = "a2mcp-token"
"""The id under which VS Code asks for the token and keeps it."""

Entry = dict[str, Any]


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """What a client shall connect to: an address, or with ``command`` a program that it starts."""

    name: str
    url: str = ""
    token: str | None = None
    """The token itself, for a file that shall hold it; None writes a reference."""
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}

    def __repr__(self) -> str:
        # SECURITY: the one that a struct writes by itself shows the token.
        return f"Server(name={self.name!r}, url={self.url!r})"


class Place(msgspec.Struct, frozen=True):
    """The folders of a user."""

    home: Path
    config: Path
    """Where programs keep their settings: ``XDG_CONFIG_HOME``, ``APPDATA``, or Application Support."""
    environ: dict[str, str]


class Format(enum.Enum):
    """How a client's file is written."""

    JSON = "json"
    TOML = "toml"


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One client. ``file`` finds its settings; ``http`` and ``stdio`` write a server as it wants it."""

    title: str
    file: Callable[[Place], Path]
    holder: str = "mcpServers"
    """The member of the file under which its servers are."""
    reference: str = f"${{{TOKEN_VARIABLE}}}"
    http: Callable[[Server, str], Entry] | None
    stdio: Callable[[Server], Entry]
    format: Format = Format.JSON
    add: Callable[[Server, str], list[str]] | None = None
    """Its own command that adds a server."""
    remove: Callable[[str], list[str]] | None = None
    """Its own command that removes one."""
    bridge: bool = False
    """It speaks the bridge dialect natively, with sessions."""
    token_note: str = (
        f'It reads the token from {TOKEN_VARIABLE}: export {TOKEN_VARIABLE}="$(a2mcp token)" before it starts.'
    )
    restart: str = "Restart it; running sessions keep the servers they started with."

    def entry(self, server: Server) -> Entry:
        """Write a server down as this client wants it."""
        if server.command or self.http is None:
            return self.stdio(server)
        return self.http(server, f"Bearer {self.reference if server.token is None else server.token}")


def place(environ: Mapping[str, str], platform: str) -> Place:
    """Find the user's folders; ``platform`` as ``sys.platform`` says it."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    usual = {"darwin": home / "Library/Application Support", "win32": home / "AppData/Roaming"}
    variable = {"darwin": "", "win32": "APPDATA"}.get(platform, "XDG_CONFIG_HOME")
    config = Path(environ.get(variable) or usual.get(platform, home / ".config"))
    return Place(home, config, dict(environ))


def says_the_same(entry: object, wanted: Entry) -> bool:
    """Tell whether an entry that a client wrote in its own way leads to the same place with the same credentials."""
    kinds = {"http", "remote", "local", "stdio"}
    return set(_leaves(wanted)) - kinds <= set(_leaves(entry))


def _leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value] if isinstance(value, str) else []


# --- how each writes a server ------------------------------------------------------------------------------------


def _typed(server: Server, bearer: str) -> Entry:
    return {"type": "http", "url": server.url, "headers": {"Authorization": bearer}}


def _plain(server: Server, bearer: str) -> Entry:
    return {"url": server.url, "headers": {"Authorization": bearer}}


def _gemini(server: Server, bearer: str) -> Entry:
    return {"httpUrl": server.url, "headers": {"Authorization": bearer}}


def _opencode(server: Server, bearer: str) -> Entry:
    # Without "oauth": false a refusal would make it look for an authorization server.
    entry = {"type": "remote", "url": server.url, "headers": {"Authorization": bearer}}
    return {**entry, "oauth": False, "enabled": True}


def _codex(server: Server, bearer: str) -> Entry:
    if server.token is None:
        return {"url": server.url, "bearer_token_env_var": TOKEN_VARIABLE}
    return {"url": server.url, "http_headers": {"Authorization": bearer}}


def _program(server: Server) -> Entry:
    entry: Entry = {"command": server.command[0], "args": [*server.command[1:]]}
    return {**entry, "env": server.environment} if server.environment else entry


def _typed_program(server: Server) -> Entry:
    return {"type": "stdio", **_program(server)}


def _opencode_program(server: Server) -> Entry:
    entry: Entry = {"type": "local", "command": [*server.command], "enabled": True}
    return {**entry, "environment": server.environment} if server.environment else entry


# --- the clients' own commands, which get a reference and never the token ---------------------------------------


def _claude_add(server: Server, bearer: str) -> list[str]:
    header = f"Authorization: {bearer}"
    return [
        "claude",
        "mcp",
        "add",
        "--transport",
        "http",
        "--scope",
        "user",
        server.name,
        server.url,
        "--header",
        header,
    ]


def _codex_add(server: Server, bearer: str) -> list[str]:
    del bearer
    return ["codex", "mcp", "add", server.name, "--url", server.url, "--bearer-token-env-var", TOKEN_VARIABLE]


def _gemini_add(server: Server, bearer: str) -> list[str]:
    header = f"Authorization: {bearer}"
    return ["gemini", "mcp", "add", "--transport", "http", "--header", header, "-s", "user", server.name, server.url]


def _opencode_file(where: Place) -> Path:
    folder = where.config / "opencode"
    if where.environ.get("OPENCODE_CONFIG"):
        return Path(where.environ["OPENCODE_CONFIG"])
    jsonc = folder / "opencode.jsonc"
    return jsonc if jsonc.exists() else folder / "opencode.json"


def _folder(where: Place, variable: str, usual: str) -> Path:
    return Path(where.environ.get(variable) or where.home / usual)


_FROM_A_MENU: Final = (
    f"It reads the token from {TOKEN_VARIABLE}. Started from a menu it does not see your shell's variables: "
    "then use --stdio, which needs no token, or --inline-token."
)
_ASKS: Final = "It asks for the token once and keeps it; `a2mcp token` prints it."

CLIENTS: Final = {
    "claude-code": Client(
        title="Claude Code",
        file=lambda where: _folder(where, "CLAUDE_CONFIG_DIR", "") / ".claude.json",
        http=_typed,
        stdio=_typed_program,
        add=_claude_add,
        remove=lambda name: ["claude", "mcp", "remove", "--scope", "user", name],
        restart="Start a new session; /mcp shows the servers.",
    ),
    "claude-desktop": Client(
        title="Claude Desktop",
        file=lambda where: where.config / "Claude" / "claude_desktop_config.json",
        http=None,
        stdio=_program,
        restart="Quit it completely and start it again. It may write its file when it quits: run this again if so.",
    ),
    "codex": Client(
        title="Codex",
        file=lambda where: _folder(where, "CODEX_HOME", ".codex") / "config.toml",
        holder="mcp_servers",
        http=_codex,
        stdio=_program,
        format=Format.TOML,
        add=_codex_add,
        remove=lambda name: ["codex", "mcp", "remove", name],
        restart="Start a new session; `codex mcp list` shows the servers.",
    ),
    "cursor": Client(
        title="Cursor",
        file=lambda where: where.home / ".cursor" / "mcp.json",
        reference=f"${{env:{TOKEN_VARIABLE}}}",
        http=_plain,
        stdio=_program,
        token_note=_FROM_A_MENU,
        restart="Restart Cursor; its settings show the servers under MCP.",
    ),
    "vscode": Client(
        title="VS Code",
        # Its `code --add-mcp` has no counterpart that removes or changes a server, so the file is edited.
        file=lambda where: where.config / "Code" / "User" / "mcp.json",
        holder="servers",
        reference=f"${{input:{INPUT}}}",
        http=_typed,
        stdio=_typed_program,
        token_note=_ASKS,
        restart="Run `MCP: List Servers` in its command palette and start the server there.",
    ),
    "gemini": Client(
        title="Gemini CLI",
        file=lambda where: _folder(where, "GEMINI_CLI_HOME", "") / ".gemini" / "settings.json",
        http=_gemini,
        stdio=_program,
        add=_gemini_add,
        remove=lambda name: ["gemini", "mcp", "remove", "-s", "user", name],
        restart="Start a new session; /mcp shows the servers. An untrusted folder shows them as disabled.",
    ),
    "opencode": Client(
        title="opencode",
        file=_opencode_file,
        holder="mcp",
        reference=f"{{env:{TOKEN_VARIABLE}}}",
        http=_opencode,
        stdio=_opencode_program,
    ),
    "omp": Client(
        title="omp",
        file=lambda where: _folder(where, "PI_CODING_AGENT_DIR", ".omp/agent") / "mcp.json",
        http=_typed,
        stdio=_program,
        bridge=True,
        restart="Start a new session.",
    ),
}
"""By the name that is typed."""
