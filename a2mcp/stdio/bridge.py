"""Passes messages on: who waits for which answer, what a cancellation ends, and when the bridge itself ends.

Owns the requests in flight, each with a thread of its own and, in a legacy version, an id of ours on the wire: two
clients of one user both count from 1, and the daemon cannot tell whose call number 7 a cancellation means.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import A2mcpError, Busy, RequestError
from a2mcp.protocol import jsonrpc
from a2mcp.stdio import link
from a2mcp.stdio.headers import Speech, is_modern

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.protocol.jsonrpc import Message
    from a2mcp.stdio.finder import Finder
    from a2mcp.stdio.pipes import Input, Output

MOST_IN_FLIGHT: Final = 256
DRAIN_S: Final = 120.0
"""Seconds that requests in flight have after the client's last word."""

STOPPING_S: Final = 40.0
"""Seconds for which a daemon that lets nobody in may go on stopping, or changing its token."""

NOTICE_S: Final = 10.0
GOODBYE_S: Final = 2.0
_LOOK_S: Final = 0.1
_UNREACHABLE: Final = -32000

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Cancelled(msgspec.Struct):
    requestId: msgspec.Raw = msgspec.Raw()  # noqa: N815  # The wire's name.


class Request:
    """One request of the client, from its line to its answer."""

    def __init__(self, message: Message, line: bytes, wire_id: bytes) -> None:
        self.message = message
        self.leash = link.Leash()
        self.is_modern = is_modern(message)
        self.wire_id = message.request_id if self.is_modern else wire_id
        self.body = line if self.is_modern else _with_id(line, self.wire_id)

    @property
    def is_endless(self) -> bool:
        """Whether no answer is to be expected."""
        return self.message.method == "subscriptions/listen"


class Bridge:
    """One client and the daemon.

    Args:
        finder: knows where the daemon is.
        source: the client's messages.
        output: takes what the client is sent.
        say: takes a line for whoever looks after the bridge.
    """

    def __init__(self, finder: Finder, source: Input, output: Output, say: Callable[[str], object]) -> None:
        self._finder = finder
        self._input = source
        self._output = output
        self._say = say
        self._speech = Speech()
        self._requests: set[Request] = set()
        self._changed = threading.Condition()
        self._names = (b'"stdio-%d-%d"' % (os.getpid(), number) for number in itertools.count(1))

    def run(self) -> None:
        """Pass messages on until the client has nothing more to say and has its answers."""
        try:
            while not self._output.gone and self._next():
                pass
            self._drain()
        finally:
            self._leave()

    def _next(self) -> bool:
        try:
            line = self._input.read()
            if line is not None:
                self._take(line, jsonrpc.decode_any(line))
        except RequestError as error:
            self._output.write(jsonrpc.error_of(error.request_id, error))
            return True
        return line is not None

    def _take(self, line: bytes, message: Message | jsonrpc.Answer) -> None:
        if isinstance(message, jsonrpc.Answer):
            self._notify(line, None)
        elif not message.is_notification:
            self._accept(Request(message, line, next(self._names)))
        elif message.method == "notifications/cancelled":
            self._cancel(line, message)
        else:
            self._notify(line, message)

    # --- requests -----------------------------------------------------------------------------------------------

    def _accept(self, request: Request) -> None:
        with self._changed:
            if len(self._requests) >= MOST_IN_FLIGHT:
                busy = Busy(f"{MOST_IN_FLIGHT} requests are waiting for their answers.", hint="Try again later.")
                busy.request_id = request.message.request_id
                raise busy
            self._requests.add(request)
        if request.message.method == "initialize":
            # What follows is sent in the version that this settles, so it waits.
            self._speech.introduced(request.message)
            self._serve(request)
        else:
            threading.Thread(target=self._serve, args=(request,), daemon=True).start()

    def _serve(self, request: Request) -> None:
        try:
            self._answer(request)
        except link.Aborted:
            pass
        except A2mcpError as error:
            if not request.leash.aborted:
                self._output.write(jsonrpc.error(request.message.request_id, _UNREACHABLE, str(error)))
        finally:
            with self._changed:
                self._requests.discard(request)
                self._changed.notify_all()

    def _answer(self, request: Request) -> None:
        deadline = time.monotonic() + STOPPING_S
        while True:
            endpoint = self._finder.find()
            headers = self._speech.headers(request.message)
            try:
                for raw in link.post(endpoint, request.body, headers, request.leash):
                    if self._pass_on(request, raw):
                        return
            except link.NotTaken:
                request.leash.check()
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_LOOK_S)
            else:
                raise link.NoAnswer("The daemon's answer broke off.", hint="The tool may have run all the same.")

    def _pass_on(self, request: Request, raw: bytes) -> bool:
        """Send the client one message of a reply; True when it was the last, the answer itself."""
        try:
            members = _members.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise link.NoAnswer("The daemon's answer is not understood.", hint="Is it another version?") from error
        request.leash.check()
        if "method" in members:
            self._output.write(raw)
            return False
        if "result" in members:
            self._speech.learn(request.message, members["result"])
        members["id"] = msgspec.Raw(request.message.request_id)
        self._output.write(msgspec.json.encode(members))
        return True

    # --- what is not answered -----------------------------------------------------------------------------------

    def _cancel(self, line: bytes, message: Message) -> None:
        """End the one request that is meant; without exactly one there is nobody to tell."""
        wanted = _read_cancelled(message)
        with self._changed:
            meant = [request for request in self._requests if request.message.request_id == wanted]
        if len(meant) != 1 or meant[0].message.method == "initialize":
            return
        self._end(meant[0], line, message)

    def _end(self, request: Request, line: bytes, message: Message) -> None:
        request.leash.abort()
        # A modern version has no such message over HTTP: there, closing the connection says it all.
        if not request.is_modern:
            members = _members.decode(line)
            params = _members.decode(members["params"]) | {"requestId": msgspec.Raw(request.wire_id)}
            self._notify(msgspec.json.encode(members | {"params": params}), message)

    def _notify(self, body: bytes, message: Message | None, timeout: float = NOTICE_S) -> None:
        try:
            endpoint = self._finder.find()
            for raw in link.post(endpoint, body, self._speech.headers(message), link.Leash(), timeout):
                self._say(f"the daemon did not take a message: {raw.decode('utf-8', 'replace')}")
        except A2mcpError as error:
            self._say(f"a message was not delivered: {error}")

    # --- the end ------------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Wait for the answers that are still to come, as long as somebody reads them."""
        deadline = time.monotonic() + DRAIN_S
        with self._changed:
            while self._waited_for() and not self._output.gone and time.monotonic() < deadline:
                self._changed.wait(_LOOK_S)

    def _waited_for(self) -> bool:
        return any(not request.is_endless for request in self._requests)

    def _leave(self) -> None:
        """End what is still in flight, as a server would that is stopped together with its client."""
        deadline = time.monotonic() + GOODBYE_S
        with self._changed:
            left = list(self._requests)
        for request in left:
            request.leash.abort()
        for request in left:
            if not request.is_modern and time.monotonic() < deadline:
                body = _cancellation(request.wire_id)
                self._notify(body, jsonrpc.decode(body), GOODBYE_S)


def _with_id(line: bytes, wire_id: bytes) -> bytes:
    return msgspec.json.encode(_members.decode(line) | {"id": msgspec.Raw(wire_id)})


def _read_cancelled(message: Message) -> bytes:
    try:
        return bytes(msgspec.json.decode(message.params, type=_Cancelled).requestId)
    except msgspec.DecodeError:
        return b""


def _cancellation(wire_id: bytes) -> bytes:
    params: dict[str, Any] = {"requestId": msgspec.Raw(wire_id), "reason": "The client has gone."}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
