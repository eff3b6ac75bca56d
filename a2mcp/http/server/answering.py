"""What a parked response sees of its connection: one request of one channel. Knows no bytes and no deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2mcp.http.server.channel import Channel
    from a2mcp.http.server.parser import RequestParser
    from a2mcp.protocol.response import Response


class Answering:
    """One request of one channel: the ``Connection`` of its parked response."""

    __slots__ = ("_channel", "_request")

    def __init__(self, channel: Channel, request: RequestParser) -> None:
        self._channel = channel
        self._request = request

    def deliver(self, response: Response) -> None:
        """Send a whole response."""
        self._channel.deliver(self._request, response)

    def open_stream(self) -> None:
        """Send the head of an event stream."""
        self._channel.open_stream(self._request)

    def push(self, data: bytes) -> None:
        """Send a piece of the stream."""
        self._channel.push(self._request, data)

    def end_stream(self) -> None:
        """End the stream, and turn to the next request."""
        self._channel.end_stream(self._request)

    def unsent(self) -> int:
        """How many bytes wait for the peer to take them."""
        return self._channel.outbox.size

    # --- a response that is passed on from elsewhere, by a thread of its own ----------------------------------------

    @property
    def version(self) -> str:
        """The version of HTTP that the client speaks, ``1.0`` or ``1.1``."""
        return str(self._request.version)

    @property
    def closes(self) -> bool:
        """Whether the connection ends with this response."""
        return self._channel.closes_after(self._request)

    def relay(self, data: bytes) -> bool:
        """Send a piece as it is, once there is room; False when the client has gone. Blocks."""
        return self._channel.relay(data)

    def end_relay(self, data: bytes, *, close: bool) -> None:
        """Send the last piece."""
        self._channel.end_relay(self._request, data, close=close)

    def abandon(self) -> None:
        """Close the connection, so that the client sees that the response is not whole."""
        self._channel.abandon()
