"""The runner of one session: where its turns are begun, and from where they report.

Called by whoever owns the conversation: the keeper of all sessions while nothing goes on, its own actor while something
does. The first turn that is let through is what makes that actor.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from a2mcp.errors import MissingExtra, Stopping
from a2mcp.inference.admission import Admission
from a2mcp.inference.overrides import Overrides
from a2mcp.inference.runner import Ended, Step
from a2mcp.inference.transcript import Outcome
from a2mcp.tools.agents import NAMES, OWN
from a2mcp.tools.registry import Registry
from actors.agent import Stepped, TurnEnded
from actors.hands import Hands
from actors.turns import Run, Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.inference.runner import Item, Told
    from a2mcp.inference.transcripts import Happened
    from a2mcp.protocol.exchange import Exchange
    from a2mcp.types import SessionId
    from actors.hands import CallTool
    from actors.ref import Mailbox

CANCELLED = "The turn was cancelled."
_OTHERS = frozenset(NAMES) - OWN

logger = logging.getLogger("a2mcp.inference")


class Services(msgspec.Struct, kw_only=True):
    """What every turn of this daemon works with."""

    admission: Admission
    overrides: Overrides
    turns: Turns
    registry: Registry
    call_tool: CallTool
    sample: Callable[[Exchange, msgspec.Raw], None]
    """Asks a model for a tool, as a call of its own."""
    instructions: Callable[[], str]
    steps: int
    retries: int
    closing: bool = False
    """Whether no turn begins any more, because the daemon stops."""

    def retries_now(self) -> int:
        """How often a request that failed is tried again, as of now."""
        return self.overrides.read("agent.retries", self.retries)


class Keeper(msgspec.Struct, frozen=True):
    """How a session reaches who keeps it."""

    keep: Callable[[Happened], None]
    answer: Callable[[tuple[Told, ...]], None]
    launch: Callable[[], None]
    """Has the session's actor started.

    Raises:
        RuntimeError: the machine has no thread left.
    """


class TurnRunner:
    """Takes the turns of one session: a ``Runner``.

    Args:
        session: whose.
        model: which model it wants; None for the chosen one.
        history: the library's messages of its turns so far.
        services: what its turns work with.
        mailbox: of the session's actor, where steps and ends are left.
        here: how it is kept while the keeper owns the conversation.
        away: how it is kept while its own actor does.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - as above
        self,
        session: SessionId,
        model: str | None,
        history: list[bytes],
        services: Services,
        mailbox: Mailbox,
        here: Keeper,
        away: Keeper,
    ) -> None:
        self._session = session
        self._model = model
        self._history = history
        self._services = services
        self._mailbox = mailbox
        self._keeping = here
        self._away = away
        self._hands: Hands | None = None
        self._run: Run | None = None

    def admit(self) -> None:
        """Let a turn begin."""
        if self._services.closing:
            raise Stopping("The daemon is stopping.", hint="Continue the session later.")
        self._services.admission.check(self._model)

    def begin(self, prompt: str) -> None:
        """Have a model asked, in the loop of the turns."""
        launch, self._keeping = self._keeping.launch, self._away
        self._hands = Hands(
            self._session,
            self._model,
            self._services.admission,
            self._services.call_tool,
            self._services.retries_now,
            self._stepped,
        )
        try:
            launch()
            self._run = self._services.turns.begin(
                partial(self._work, prompt, tuple(self._history), self._hands),
                partial(self._ended, Ended(outcome=Outcome.CANCELLED, answer=CANCELLED)),
            )
        except RuntimeError as cause:
            logger.warning("[a2mcp] no thread for an agent's turn: %s", cause)
            self._ended(Ended(outcome=Outcome.FAILED, answer="The machine has no thread left for this turn."))

    def tell(self, item: Item) -> None:
        """Let the running turn read something."""
        if self._hands is not None:
            self._hands.heard.append(item)

    def stop(self) -> None:
        """Begin to end the running turn."""
        if self._run is not None:
            self._run.cancel()

    def keep(self, happened: Happened) -> None:
        """Keep what happened."""
        self._history.extend(happened.messages)
        self._keeping.keep(happened)

    def answer(self, told: tuple[Told, ...]) -> None:
        """Answer calls."""
        self._keeping.answer(told)

    def _stepped(self, step: Step) -> None:
        self._mailbox.put(Stepped(step))

    def _ended(self, ended: Ended) -> None:
        self._mailbox.put(TurnEnded(ended))

    async def _work(self, prompt: str, history: tuple[bytes, ...], hands: Hands) -> None:
        """Take a turn, in the loop; whatever becomes of it is told."""
        ended = Ended(outcome=Outcome.CANCELLED, answer=CANCELLED)
        try:
            from a2mcp.inference import providers, turn  # noqa: PLC0415 - a second and 50 MB, for the first turn

            work = turn.Work(
                prompt=prompt,
                history=history,
                instructions=self._services.instructions(),
                tools=tuple(spec for spec in self._services.registry.specs() if spec.name not in _OTHERS),
                steps=self._services.steps,
            )
            async with providers.connections():
                ended = await turn.take(work, hands)
        except ImportError as error:
            ended = Ended(outcome=Outcome.REFUSED, answer=str(MissingExtra(error)))
        finally:
            self._ended(ended)
