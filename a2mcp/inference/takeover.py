"""The takeover: takes from this host what it takes to ask a model, and gives it back as it was.

Three layers. Every model becomes a copy whose API refuses: one attempt, the sentinel, and no credential is asked for.
The tripwire keeps the whole process from the hosts of every provider, and what is connected to them is cut. And what
would make the host busy by itself is held down. A provider that neither of the first two reaches is a reason not to
begin: half a takeover is worse than none.

Each change has its undoing; whatever breaks on the way, everything is as it was before.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from msgspec.structs import replace

from a2mcp.errors import CannotDeny, InferenceDenied
from a2mcp.inference.apis import Api
from a2mcp.inference.destinations import Destinations, destinations, places_of, proxies_for
from a2mcp.inference.registry import Offer
from a2mcp.inference.rows import DENY, Key, ModelRow
from a2mcp.inference.severing import located, sever
from a2mcp.inference.tripwire import SENTINEL, Tripwire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2mcp.inference.keys import Credentials
    from a2mcp.inference.overrides import Overrides
    from a2mcp.inference.registry import Registry

SOURCE: Final = "a2mcp"
"""The takeover's own, apart from the placeholder's: what one gives up is not the other's."""
NOISE: Final[Mapping[str, object]] = {"agent.wake": False, "agent.retries": 0}
"""What is held down meanwhile: everything that makes the host ask a model without being asked to."""


class Plan(msgspec.Struct, frozen=True):
    """What a takeover will do."""

    rows: tuple[ModelRow, ...]
    """The copies."""
    guarded: Destinations
    ends: frozenset[tuple[str, int]]
    """Where connections to the providers lead."""

    def __str__(self) -> str:
        providers = sorted({row.provider for row in self.rows})
        return f"{len(providers)} provider(s) denied ({', '.join(providers)}), {len(self.guarded)} tripwire key(s)"


class Takeover:
    """One takeover, armed or not. Used by one thread.

    Args:
        registry: whose models are denied.
        overrides: where noise is held down.
        refused: is told of each request that was refused; on any thread.
        step: is told the name of each step before it is taken, and may raise. For tests.
    """

    def __init__(
        self,
        registry: Registry,
        overrides: Overrides,
        refused: Callable[[], object],
        step: Callable[[str], object] = lambda _name: None,
    ) -> None:
        self._registry = registry
        self._overrides = overrides
        self._refused = refused
        self._step = step
        self._wire = Tripwire(refused)
        self._api = Api(DENY, self._deny)

    @property
    def guarded(self) -> Destinations | None:
        """The places that are kept from; None while it is not armed."""
        return self._wire.guarded

    def arm(self) -> Plan:
        """Deny every model that is known now; done anew where it is armed already.

        Raises:
            CannotDeny: a provider cannot be denied. Nothing was changed.
            Exception: whatever broke on the way. Everything is as it was.
        """
        self._step("plan")
        plan = self._plan()
        offer = Offer(plan.rows, (self._api,), over_all=True)
        open_to = located(plan.ends, known=self.guarded)
        with ExitStack() as undo:
            self._take("models", lambda: self._registry.claim(SOURCE, offer), self._put_back, undo)
            self._take("noise", lambda: self._overrides.replace(NOISE), self._overrides.replace, undo)
            self._take("tripwire", lambda: self._wire.arm(plan.guarded), self._wire.arm, undo)
            self._step("connections")
            undo.pop_all()
        # Last, and not to be undone: nothing after it can break.
        sever(open_to)
        return plan

    def restore(self) -> None:
        """Give everything back; nothing to do where it is not armed.

        Raises:
            Exception: whatever broke on the way. It is armed as it was.
        """
        if self.guarded is None:
            return
        with ExitStack() as undo:
            self._take("tripwire", lambda: self._wire.arm(None), self._wire.arm, undo)
            self._take("noise", lambda: self._overrides.replace({}), self._overrides.replace, undo)
            self._take("models", lambda: self._registry.claim(SOURCE, None), self._put_back, undo)
            self._step("end")
            undo.pop_all()

    def _take(self, name: str, do: Callable[[], Any], put_back: Callable[[Any], object], undo: ExitStack) -> None:
        """Take a step, and know how to take it back."""
        self._step(name)
        undo.callback(put_back, do())

    def _plan(self) -> Plan:
        """Look at every model that would be seen without us.

        Raises:
            CannotDeny: one of them is beyond us.
        """
        held = self._registry.holdings.without(SOURCE)
        apis = held.apis()
        rows = tuple(held.rows().values())
        beyond = sorted({row.provider for row in rows if row.transport is not None or _bypasses(apis.get(row.api))})
        if beyond:
            raise CannotDeny(
                f"inference cannot be denied: {', '.join(beyond)} would be reached past everything that denies.",
                hint="Change 'transport' or 'api' of the provider in models.yml.",
            )
        urls = [row.base_url for row in rows]
        proxies = proxies_for(urls)
        copies = tuple(replace(row, api=DENY, key=Key(), headers={}) for row in rows)
        return Plan(copies, destinations(urls, proxies), places_of([*urls, *proxies]))

    def _put_back(self, before: Offer | None) -> None:
        self._registry.claim(SOURCE, before)

    def _deny(self, _row: ModelRow, _credentials: Credentials) -> NoReturn:
        self._refused()
        raise InferenceDenied(SENTINEL)


def _bypasses(api: Api | None) -> bool:
    return api is not None and api.bypasses
