"""A daemon with tools that only tests want: they hang, exit, come and go, and kill actors.

Run as a script in the place of ``a2mcp serve``.
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from a2mcp.config.paths import home_from_environment
from a2mcp.tools.registry import LocalHost
from a2mcp.tools.result import PENDING, text
from a2mcp.tools.spec import Lane, Tier, Tool, ToolSpec
from actors import audit
from actors.daemon import Daemon, More

if TYPE_CHECKING:
    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome


class Nothing(msgspec.Struct):
    pass


class Say(msgspec.Struct):
    text: str = ""


class Name(msgspec.Struct):
    name: str


class Kill(msgspec.Struct):
    actor: str
    times: int = 1


class Poison:
    """Something in a mailbox that ends whoever reads it."""

    reply_to = None

    @property
    def message(self) -> object:
        raise SystemExit


class TestHost(LocalHost):
    name = "tests"


HOST = TestHost()
DAEMON: list[Daemon] = []


def tool(name: str, params: Any, run: Any, lane: Lane = Lane.INLINE) -> Tool[Any]:
    spec = ToolSpec(name=name, title=name, description=name, input_schema={"type": "object"}, tier=Tier.READ, lane=lane)
    return Tool(spec=spec, params=params, run=run)


def echo(params: Say, _context: Context) -> Outcome:
    return text(params.text)


def hang(_params: Nothing, _context: Context) -> Outcome:
    return PENDING


def leave(params: Name, _context: Context) -> Outcome:
    raise getattr(builtins, params.name)("on purpose")


def register(params: Name, _context: Context) -> Outcome:
    HOST.register(tool(params.name, Say, echo))
    return text("registered")


def drop(params: Name, _context: Context) -> Outcome:
    HOST.drop(params.name)
    return text("dropped")


def kill(params: Kill, _context: Context) -> Outcome:
    running = DAEMON[0]._system.supervisor
    mailbox = running.mailbox if params.actor == "Supervisor" else running._children[params.actor].mailbox
    for _ in range(params.times):
        mailbox.put(Poison())
    return text("poisoned")


def counts(_params: Nothing, _context: Context) -> Outcome:
    return text(msgspec.json.encode(audit.counts(DAEMON[0]._system.refs.audit)).decode())


for each in (
    tool("echo", Say, echo),
    tool("hang", Nothing, hang),
    tool("exit", Name, leave),
    tool("exit-in-worker", Name, leave, Lane.WORKER),
    tool("register", Name, register),
    tool("drop", Name, drop),
    tool("kill", Kill, kill),
    tool("counts", Nothing, counts, Lane.WORKER),
):
    HOST.register(each)

if __name__ == "__main__":
    DAEMON.append(Daemon.start(home_from_environment(os.environ), More(hosts=(HOST,))))
    sys.exit(DAEMON[0].run())
