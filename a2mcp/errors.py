"""The one tree of errors.

Every error carries what each side needs: ``status`` (HTTP) and ``code`` (JSON-RPC) for a client, ``exit_code`` for a
shell, a text that is safe to show to the caller, and a hint that says what to do. ``a2mcp/protocol/refusal.py``
maps the tree to responses, ``a2mcp/cli`` to exit codes; nothing else maps errors.
"""

import errno
from typing import Any, ClassVar, Final


class A2mcpError(Exception):
    """Anything that went wrong in a way we have words for.

    Args:
        text: what happened, in one sentence that is safe to show to a caller.
        hint: what to do about it, or an empty string.
    """

    status: ClassVar[int] = 500
    code: int = -32603
    exit_code: ClassVar[int] = 1

    data: dict[str, Any] | None = None
    """What goes into ``error.data``, for a program that reads it."""

    def __init__(self, text: str, *, hint: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.text} {self.hint}".strip()


# --- the edge: a request that is refused before any tool is looked at --------------------------------------------


class RequestError(A2mcpError):
    """A request that is refused at the edge; answered as a JSON-RPC error body."""

    status = 400
    code = -32600

    request_id = b"null"
    """The JSON of the id to answer with, where one could be read."""

    headers: tuple[tuple[str, str], ...] = ()
    """HTTP headers that the answer carries."""


class ParseError(RequestError):
    """The body is not JSON."""

    code = -32700


class InvalidRequest(RequestError):
    """The body is JSON but not one JSON-RPC 2.0 message."""


class InvalidParams(RequestError):
    """A message whose ``params`` cannot be what the method takes."""

    code = -32602


class HeaderMismatch(RequestError):
    """A header that must repeat what the body says, and does not (2026-07-28)."""

    code = -32020


class MissingCapability(RequestError):
    """What was asked for needs something that the caller did not say it can do (2026-07-28).

    Args:
        text: what was asked for.
        required: the capabilities that are missing, as the client would declare them.
    """

    code = -32021

    def __init__(self, text: str, required: dict[str, Any]) -> None:
        super().__init__(text, hint="Declare the capability, or do without.")
        self.data = {"requiredCapabilities": required}


class UnsupportedVersion(RequestError):
    """A revision of MCP that is not spoken here."""

    code = -32022

    def __init__(self, requested: str, supported: list[str]) -> None:
        super().__init__(f"protocol version {requested!r} is not supported")
        self.data = {"supported": supported, "requested": requested}


class MethodNotFound(RequestError):
    """A method that does not exist in the dialect that was spoken."""

    status = 404
    code = -32601


class ResourceNotFound(RequestError):
    """A resource that is not there; its code is the dialect's."""

    def __init__(self, uri: str, code: int) -> None:
        super().__init__("resource not found")
        self.code = code
        self.data = {"uri": uri}


class RequestTimeout(RequestError):
    """The headers or the body came too slowly."""

    status = 408


class NotImplementedByServer(RequestError):
    """A transfer coding that nobody here speaks."""

    status = 501


class Unauthorized(RequestError):
    """No bearer token, or a wrong one."""

    status = 401
    code = -32000


class Forbidden(RequestError):
    """A foreign Origin or Host."""

    status = 403
    code = -32000


class NotFound(RequestError):
    """A reserved path on which nothing is served."""

    status = 404
    code = -32000


class MethodNotAllowed(RequestError):
    """An HTTP method that this path does not take; answered with an empty body."""

    status = 405
    code = -32000


class MissingSession(RequestError):
    """A message other than ``initialize`` without ``mcp-session-id``."""

    code = -32000


class UnknownSession(RequestError):
    """A session that does not exist, was evicted, or was idle too long."""

    status = 404
    code = -32000


class BodyTooLarge(RequestError):
    """More body than ``limits.body_bytes``, or more values in it than anybody has use for."""

    status = 413
    code = -32700


class HeadersTooLarge(RequestError):
    """More header than the parser takes."""

    status = 431


class Busy(RequestError):
    """A mailbox or a cap on what is in flight is full; trying again later is right."""

    status = 503
    code = -32000


class Stopping(RequestError):
    """The daemon is going down and takes no new work."""

    status = 503
    code = -32000


class FileRefusal(RequestError):
    """A request to the route of files that is refused; answered in plain text, as a file server does.

    Args:
        answer: the HTTP status.
        text: why.
    """

    def __init__(self, answer: int, text: str, *, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.answer = answer
        self.headers = headers


class Internal(A2mcpError):
    """A fault of ours. The text is fixed; the cause goes to stderr only."""

    def __init__(self) -> None:
        super().__init__("internal error")


# --- tools: a call that ends with ``isError: true`` ---------------------------------------------------------------


class ToolError(A2mcpError):
    """A tool could not do what was asked. Becomes a result with ``isError: true``, never an HTTP error."""

    status = 200


class BadArgument(ToolError):
    """An argument that is not what the tool's schema says.

    Args:
        field: the path of the argument, for example ``edits[0].oldText``.
        expected: what the schema asks for.
        received: what came, shortened.
        hint: what to do about it.
    """

    code = -32602

    def __init__(self, field: str, expected: str, received: str, *, hint: str = "") -> None:
        super().__init__(f"Argument '{field}': expected {expected}, received {received}.", hint=hint)
        self.field = field
        self.expected = expected
        self.received = received


class NotExposed(ToolError):
    """A name that is not in the catalogue. One text for all of them, so that it tells nothing about which exist."""

    code = -32602

    def __init__(self, name: str) -> None:
        super().__init__(f"Tool '{name}' is not exposed.", hint="Call tools/list for the names.")


class NoSuchResource(ToolError):
    """Nothing is at the address that ``resources/read`` was given."""

    def __init__(self, uri: str) -> None:
        super().__init__("resource not found")
        self.uri = uri


class CannotObtain(ToolError):
    """A program of others that is needed could be neither found nor fetched."""


class CannotInfer(ToolError):
    """A model cannot be asked: there is none, no key, or nobody who speaks its API."""


class MissingExtra(CannotInfer):
    """What asks models is not installed.

    Args:
        why: what is missing.
    """

    def __init__(self, why: object) -> None:
        super().__init__(f"Models cannot be asked: {why}.", hint="Install the extra 'a2mcp[agent]'.")


class InferenceDenied(CannotInfer):
    """This host may ask no model now. Final: trying again is refused as well."""


class BudgetSpent(CannotInfer):
    """As much as the budget allows was spent today.

    Args:
        what: how much of what.
        setting: the setting that allows no more.
    """

    def __init__(self, what: str, setting: str) -> None:
        super().__init__(
            f"The agents' budget for today is spent: {what}.",
            hint=f"It is the setting '{setting}'; a day is one of UTC.",
        )


class CannotKeep(ToolError):
    """What agents do cannot be written down, so nothing is begun."""


class ChangedMeanwhile(ToolError):
    """The file is not the one the caller has seen; reading it again and retrying is right."""


# --- the operator: settings, starting, the command line -----------------------------------------------------------


class SettingsError(A2mcpError):
    """A setting that is present but wrong. The daemon does not start.

    Args:
        field: the dotted name of the setting.
        problem: what is wrong with it, beginning with a verb ("must be …").
        hint: what to do about it.
    """

    exit_code = 2

    def __init__(self, field: str, problem: str, *, hint: str = "") -> None:
        super().__init__(f"field '{field}' {problem}", hint=hint)
        self.field = field


class UnusableFile(A2mcpError):
    """A file or folder of ours that cannot be read, written or trusted. The daemon does not start."""

    exit_code = 2


class AlreadyServing(A2mcpError):
    """Another daemon serves this home."""

    exit_code = 3


class CannotListen(A2mcpError):
    """No socket could be bound."""

    exit_code = 4


class CannotTunnel(A2mcpError):
    """The tunnel cannot be opened as it was asked for."""

    status = 409


class CannotDeny(A2mcpError):
    """Inference cannot be denied, because a provider is out of reach of everything that denies."""


class NoDaemon(A2mcpError):
    """No daemon runs for this home."""

    exit_code = 5


class SystemRefused(A2mcpError):
    """The system did not give a command, or the start, what it needs: a descriptor, a thread, memory, a file.

    Args:
        cause: how Python says it.
    """

    def __init__(self, cause: OSError | ImportError | MemoryError | RuntimeError) -> None:
        if isinstance(cause, OSError):
            where = f" ({cause.filename})" if cause.filename else ""
            super().__init__(f"The system refused: {cause.strerror or cause}{where}.", hint=remedy(cause))
        elif isinstance(cause, ImportError):
            super().__init__(f"A part of the program cannot be loaded: {cause}.", hint="Try again, or install it anew.")
        elif isinstance(cause, MemoryError):
            super().__init__("The system refused: out of memory.", hint="End other programs, or raise `ulimit -v`.")
        else:
            super().__init__(f"The system refused: {cause}.", hint="End other programs, or raise `ulimit -u`.")


_SHORTAGES: Final = {
    errno.EMFILE: "Raise the limit on open files with `ulimit -n`.",
    errno.ENFILE: "Other programs have too many files open; end some.",
    errno.ENOSPC: "Make room on the disk.",
    errno.EDQUOT: "Make room: the disk quota is used up.",
    errno.ENOMEM: "End other programs: the system is out of memory.",
    errno.ENOBUFS: "End other programs: the system is out of memory.",
    errno.EIO: "Look at the disk and at the system's log, then try again.",
}
_OBSTACLES: Final = {
    errno.EACCES: "Check the permissions of the file and its folders.",
    errno.EPERM: "Check who owns the file, and whether it is immutable.",
    errno.EROFS: "The file system is mounted read-only.",
}


def remedy(cause: OSError, otherwise: str = "") -> str:
    """Say what an operator can do about what the system refused.

    Args:
        cause: what it said.
        otherwise: what helps at this place, unless the machine is short of something.
    """
    code = cause.errno or 0
    return _SHORTAGES.get(code) or otherwise or _OBSTACLES.get(code, "Look at what is there, then try again.")
