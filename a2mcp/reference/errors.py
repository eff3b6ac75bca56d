"""The page of the errors: every class of the tree with what it is to a client and to a shell."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

from a2mcp import errors
from a2mcp.protocol import jsonrpc
from a2mcp.reference.markdown import code, head, table

if TYPE_CHECKING:
    from collections.abc import Iterator

_EDGE: Final = """
A body of an error is always `{"jsonrpc":"2.0","id":…,"error":{"code":…,"message":…}}`. The `id` is the caller's where
it could be read, else `null`. The message is one sentence and often a second that says what to do.

405 has an empty body. 503 carries `Retry-After: 1`. What is refused before the body is read (400 for what is no HTTP,
401, 403, 405, 408, 413, 431, 501) closes the connection.
"""

_METHODS: Final = """
Two more codes come with status 200, because the request itself was fine:

"""

_TOOLS: Final = """
A tool that cannot do what was asked is a success of the protocol: status 200 and a result with `isError: true`, whose
first text block is the message.
"""

_OPERATOR: Final = """
These end a command of the [command line](cli.md), or the start of a daemon. The exit codes are part of the contract.
"""


def page() -> str:
    """Write the page."""
    return (
        head("Errors", "a2mcp/errors.py")
        + "\n## A request that is refused\n"
        + _EDGE
        + "\n"
        + table(("error", "HTTP", "code", "when"), map(_refusal, _below(errors.RequestError)))
        + _METHODS
        + table(("code", "message", "when"), _METHOD_ERRORS)
        + "\n## A tool that says no\n"
        + _TOOLS
        + "\n"
        + table(("error", "when"), ((code(kind.__name__), _summary(kind)) for kind in _below(errors.ToolError)))
        + "\n## The operator's side\n"
        + _OPERATOR
        + "\n"
        + table(("error", "exit code", "when"), _operator_errors())
    )


_METHOD_ERRORS: Final = (
    (code(str(jsonrpc.METHOD_NOT_FOUND)), code("method not found"), "The dialect has no such method."),
    (code(str(jsonrpc.INVALID_PARAMS)), code("invalid params: …"), "`params` of `tools/call` without a string `name`."),
)


def by_exit_code() -> dict[int, list[str]]:
    """Name the errors that end a command, by their exit code."""
    found: dict[int, list[str]] = {}
    for kind in _every():
        if kind.exit_code != errors.A2mcpError.exit_code:
            found.setdefault(kind.exit_code, []).append(kind.__name__)
    return found


def _every() -> list[type[errors.A2mcpError]]:
    """Every class of the tree, in the order of the file."""
    found = vars(errors).values()
    return [kind for kind in found if inspect.isclass(kind) and issubclass(kind, errors.A2mcpError)]


def _below(base: type[errors.A2mcpError]) -> Iterator[type[errors.A2mcpError]]:
    for kind in _every():
        if issubclass(kind, base) or (base is errors.RequestError and kind is errors.Internal):
            yield kind


def _refusal(kind: type[errors.A2mcpError]) -> tuple[str, str, str, str]:
    return code(kind.__name__), str(kind.status), code(str(kind.code)), _summary(kind)


def _operator_errors() -> list[tuple[str, str, str]]:
    """Everything that is neither refused at the edge nor said by a tool."""
    elsewhere = (errors.RequestError, errors.ToolError, errors.Internal)
    return [
        (code(kind.__name__), str(kind.exit_code), _summary(kind))
        for kind in _every()
        if kind is not errors.A2mcpError and not issubclass(kind, elsewhere)
    ]


def _summary(kind: type[errors.A2mcpError]) -> str:
    return (inspect.getdoc(kind) or "").split("\n\n")[0]
