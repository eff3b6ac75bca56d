"""The tools ``xfer_share``, ``xfer_status`` and ``xfer_stop``: their words, and what each of them answers.

They are the daemon's own and no host's: they come last in the catalogue, and the approval mode does not hold them. Each
only checks and passes the call on; the answers are made where the share is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from a2mcp.clock import iso
from a2mcp.errors import ToolError
from a2mcp.host.paths import resolve, written
from a2mcp.tools.registry import LocalHost
from a2mcp.tools.result import Result, text
from a2mcp.tools.schema import spec_for
from a2mcp.tools.spec import Lane, Tier, Tool, ToolSpec
from a2mcp.xfer.owner import ROUTE

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.tools.context import Context, XferPort
    from a2mcp.tools.result import Outcome
    from a2mcp.tools.spec import AnyTool
    from a2mcp.types import JsonObject
    from a2mcp.xfer.owner import Standing

LONGEST_S: Final = 30 * 24 * 3600
NO_PATH: Final = "xfer_share needs a 'path' — the file or directory to serve"
NO_PUBLIC: Final = (
    "no public address — `/a2mcp tunnel` is closed; use an SSH port forward to the bridge port, "
    "or ask the operator to run `/a2mcp tunnel`"
)
NO_UPLOAD: Final = "nothing can be uploaded — one file is served, not a directory"

_SHARE: Final = """\
Serve one file or directory over HTTP under /xfer/ of this server, behind the same bearer token, until it expires: for \
files that are too large for a tool result. The answer has ready-made curl lines for download and upload. One share at \
a time: another one closes the first.\
"""
_STATUS: Final = "Tell what xfer_share serves now, where, and until when."
_STOP: Final = "Close what xfer_share serves. It is no error when nothing is shared."


class ShareParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to serve, and for how long."""

    path: Annotated[str | None, Meta(description="The file or directory to serve.")] = None
    ttl: Annotated[int, Meta(ge=1, le=LONGEST_S, description="Seconds until it is closed by itself.")] = msgspec.field(
        default=3600, name="ttlSeconds"
    )


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing."""


def share(params: ShareParams, context: Context) -> Outcome:
    """Open the path and pass it on."""
    if not params.path:
        raise ToolError(NO_PATH)
    return _port(context).share(context.ticket, resolve(params.path, context.cwd), params.ttl, context.cancelled)


def status(_params: NoParams, context: Context) -> Outcome:
    """Pass the call on."""
    return _port(context).status(context.ticket)


def stop(_params: NoParams, context: Context) -> Outcome:
    """Pass the call on."""
    return _port(context).stop(context.ticket)


def _port(context: Context) -> XferPort:
    if context.xfer is None:
        raise ToolError("Files cannot be shared here.")
    return context.xfer


# --- answers -----------------------------------------------------------------------------------------------------


def shared(standing: Standing, origin: str, public: str | None, *, replaced: bool) -> Result:
    """Answer ``xfer_share``.

    Args:
        standing: the share.
        origin: our own address.
        public: our address from elsewhere, while there is one.
        replaced: whether another share was closed for it.
    """
    facts = _facts(standing, origin, public)
    return _answer(
        {
            **{name: facts[name] for name in ("url", "publicUrl", "route", "path", "port")},
            "replaced": replaced,
            **{name: facts[name] for name in ("startedAt", "expiresAt")},
            "usage": _usage(standing, origin, public),
            "installed": {"dufs": None if standing.server is None else standing.server.installed},
        }
    )


def serving(standing: Standing | None, origin: str, public: str | None) -> Result:
    """Answer ``xfer_status``."""
    if standing is None:
        return _answer({"serving": False})
    facts = _facts(standing, origin, public)
    names = ("path", "port", "url", "publicUrl", "route", "startedAt", "expiresAt")
    return _answer({"serving": True, **{name: facts[name] for name in names}})


def stopped(path: Path | None) -> Result:
    """Answer ``xfer_stop``."""
    if path is None:
        return _answer({"stopped": False, "note": "nothing was shared"})
    return _answer({"stopped": True, "path": written(path)})


def _facts(standing: Standing, origin: str, public: str | None) -> JsonObject:
    return {
        "url": origin + ROUTE,
        "publicUrl": None if public is None else public + ROUTE,
        "route": ROUTE,
        "path": written(standing.share.path),
        "port": standing.port,
        "startedAt": iso(standing.opened.started),
        "expiresAt": iso(standing.opened.expires),
    }


def _usage(standing: Standing, origin: str, public: str | None) -> JsonObject:
    """Write lines that work in a shell once the token, and the name where there are many, are put in."""
    name = _name_in_url(standing.share.path) if standing.share.is_file else "<name>"
    curl = "curl -H 'Authorization: Bearer <TOKEN>'"
    return {
        "download": f"{curl} -O {origin}{ROUTE}{name}",
        "upload": NO_UPLOAD if standing.share.is_file else f"{curl} -T <local> {origin}{ROUTE}{name}",
        "public": NO_PUBLIC if public is None else f"{curl} -O {public}{ROUTE}{name}",
    }


def _name_in_url(path: Path) -> str:
    from urllib.parse import quote_from_bytes  # noqa: PLC0415  # For a single file only.

    return quote_from_bytes(os.fsencode(path.name), safe="")


def _answer(facts: JsonObject) -> Result:
    return text(msgspec.json.encode(facts).decode(), structured=facts)


# --- the catalogue -----------------------------------------------------------------------------------------------


class BridgeHost(LocalHost):
    """Offers the tools of the daemon itself."""

    name = "bridge"

    def __init__(self) -> None:
        super().__init__(TOOLS)


def _share_spec() -> ToolSpec:
    spec = spec_for(ShareParams, name="xfer_share", title="Share files over HTTP", description=_SHARE, tier=Tier.WRITE)
    # Optional for the decoder only, so that leaving it out gets our own words.
    return replace(spec, past_mode=True, input_schema={**spec.input_schema, "required": ["path"]})


def _plain_spec(name: str, title: str, words: str, tier: Tier) -> ToolSpec:
    spec = spec_for(NoParams, name=name, title=title, description=words, tier=tier, lane=Lane.INLINE, idempotent=True)
    return replace(spec, past_mode=True)


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(_share_spec(), ShareParams, share),
    Tool(_plain_spec("xfer_status", "Show the share", _STATUS, Tier.READ), NoParams, status),
    Tool(_plain_spec("xfer_stop", "Close the share", _STOP, Tier.WRITE), NoParams, stop),
)
