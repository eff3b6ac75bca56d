"""After each test of this folder no actor and no thread of ours is left."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pykka
import pytest

from actors.kit import halt

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _nobody_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for ref in pykka.ActorRegistry.get_all():
        actor = ref._actor_weakref()
        assert actor is None or halt(actor, timeout=5), ref
        pykka.ActorRegistry.unregister(ref)
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(5)
    assert not [thread.name for thread in left if thread.is_alive()]
