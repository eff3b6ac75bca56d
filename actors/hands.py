"""The hands of one turn: asks models and uses the host's tools, in the loop of the turns.

A tool is used as a remote caller uses it: through the front, so with the same admission, records, gate and executor.
The answer comes from whatever thread completes the call and is brought back into the loop. No thread waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from binascii import a2b_base64
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import A2mcpError
from a2mcp.inference.ledger import Spent
from a2mcp.inference.runner import Handed, Step
from a2mcp.masking import MASK, mask
from a2mcp.protocol.caller import Caller
from a2mcp.protocol.exchange import Exchange
from a2mcp.protocol.localreply import LocalReply
from a2mcp.protocol.versions.agent import AGENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.inference.admission import Admission
    from a2mcp.inference.runner import Item
    from a2mcp.protocol.response import Response
    from a2mcp.types import SessionId

    CallTool = Callable[[Exchange, str, msgspec.Raw], None]

CLIENT: Final = "agent"
"""What the agent calls itself in records."""


class Hands:
    """What a turn works with.

    Args:
        session: whose turn it is.
        model: which model is asked; None for the chosen one.
        admission: lets each request through, or does not.
        call_tool: makes a call, as the edge makes those of remote callers.
        retries: how often a failed request is tried again, as of now.
        told: is given each step.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - one argument for each thing that a turn can reach
        self,
        session: SessionId,
        model: str | None,
        admission: Admission,
        call_tool: CallTool,
        retries: Callable[[], int],
        told: Callable[[Step], None],
    ) -> None:
        self._session = session
        self._model = model
        self._admission = admission
        self._call_tool = call_tool
        self._told = told
        self._asked = 0
        self._sees = False
        self._speaker: Any = None
        self.heard: deque[Item] = deque()
        self.retries = retries

    async def model(self) -> Any:
        """Make what asks the model, for one attempt, and count that."""
        row = self._admission.check(self._model)
        speak = self._admission.registry.speak
        # A program that prints a key may take its time; the other turns must not wait for it.
        found = await asyncio.to_thread(speak, row) if row.waits else speak(row)
        self._admission.ledger.count(Spent(requests=1))
        self._asked += 1
        self._sees, self._speaker = "image" in row.input, found
        return found

    async def use(self, tool: str, arguments: bytes) -> Handed:
        """Use a tool of the host."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Response] = loop.create_future()
        reply = LocalReply(partial(_bring, loop, answered))
        exchange = Exchange(reply, b"0", self._session, AGENT, Caller(client=CLIENT))
        try:
            self._call_tool(exchange, tool, msgspec.Raw(arguments))
        except A2mcpError as error:
            return _refused(str(error))
        try:
            return _handed(await answered, sees=self._sees)
        except asyncio.CancelledError:
            reply.leave()
            raise

    def report(self, step: Step) -> None:
        """Pass on a step, with what it cost."""
        asked, self._asked = self._asked, 0
        self._admission.ledger.count(step.spent)
        self._told(msgspec.structs.replace(step, spent=step.spent + Spent(requests=asked)))

    def denied(self) -> bool:
        """Whether the host may ask no model now."""
        return self._admission.denied()

    def clean(self, text: str) -> str:
        """Leave the credentials out of what a provider said: some repeat the key that they refuse."""
        for secret in getattr(self._speaker, "secrets", ()):
            text = text.replace(secret, MASK)
        return mask(text)

    def hear(self) -> Sequence[Item]:
        """Take what was told since the last time."""
        # Others may be adding to it: it is emptied one by one and never walked through.
        heard = []
        while self.heard:
            heard.append(self.heard.popleft())
        return heard


def _bring(loop: asyncio.AbstractEventLoop, answered: asyncio.Future[Response], response: Response) -> None:
    """Bring a response into the loop, from whatever thread."""
    # A tool may end long after its turn was cancelled; the loop has closed by then, and nobody waits.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_set, answered, response)


def _set(answered: asyncio.Future[Response], response: Response) -> None:
    if not answered.done():
        answered.set_result(response)


class _Block(msgspec.Struct, frozen=True):
    type: str
    text: str = ""
    data: str = ""
    mime_type: str = msgspec.field(name="mimeType", default="")


class _Result(msgspec.Struct, frozen=True):
    content: tuple[_Block, ...] = ()
    is_error: bool = msgspec.field(name="isError", default=False)


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Body(msgspec.Struct, frozen=True):
    result: _Result | None = None
    error: _Error | None = None


def _handed(response: Response, *, sees: bool) -> Handed:
    body = msgspec.json.decode(response.body, type=_Body)
    if body.result is None:
        return _refused(body.error.message if body.error is not None else "The call was not answered.")
    texts = [block.text for block in body.result.content if block.type == "text"]
    images = [block for block in body.result.content if block.type == "image"]
    if images and not sees:
        texts.append(f"[{len(images)} images, which this model cannot see]")
        images = []
    pictures = tuple((a2b_base64(block.data), block.mime_type) for block in images)
    return Handed(text="\n".join(texts), images=pictures, is_error=body.result.is_error)


def _refused(why: str) -> Handed:
    return Handed(text=why, is_error=True)
