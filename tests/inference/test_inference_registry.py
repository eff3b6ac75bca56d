"""The registry: sources that own what they offer, and slots."""

from __future__ import annotations

import pytest

from a2mcp.clock import SystemClock
from a2mcp.errors import CannotInfer, UnusableFile
from a2mcp.inference.apis import Api
from a2mcp.inference.loader import Loader
from a2mcp.inference.registry import Offer, Registry
from a2mcp.inference.rows import PLACEHOLDER, Catalogue, Key, ModelRow


def row(ref: str, api: str = "fake", **more) -> ModelRow:
    provider, _, name = ref.partition("/")
    return ModelRow(provider=provider, id=name, name=name, api=api, base_url=f"https://{provider}.example/v1", **more)


FAKE = Api("fake", lambda row, credentials: (row.ref, credentials.key))


class Files:
    """The operator's file, as often as it changes."""

    def __init__(self, *contents: Catalogue | Exception | None) -> None:
        self.contents = list(contents)

    def read(self, apis):
        found = self.contents.pop(0) if self.contents else None
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def registry():
    return Registry(SystemClock())


def test_a_provider_is_its_last_sources_and_then_the_earlier_ones_again(registry):
    """Ours, where the seed's host forgets: "提供商名字的所有权抢不回来"."""
    first, second = row("p/a", max_tokens=1), row("p/b", max_tokens=2)
    registry.claim("one", Offer((first, row("q/x"))))
    before = registry.holdings
    registry.claim("two", Offer((second,)))
    assert registry.find("p/a") is None
    assert registry.find("p/b") == second
    assert registry.find("q/x") is not None

    registry.claim("two", None)
    assert registry.find("p/a") == first
    assert registry.holdings == before
    assert list(registry.holdings.offers) == list(before.offers)


def test_a_source_that_offers_anew_keeps_its_place(registry):
    """Ours: an edited file must not come before what was put over it."""
    registry.claim("file", Offer((row("p/a"),)))
    registry.claim("over", Offer((row("p/a", max_tokens=9),)))
    registry.claim("file", Offer((row("p/a"), row("p/b"), row("q/c"))))

    assert registry.find("p/a").max_tokens == 9
    assert registry.find("p/b") is None
    assert registry.find("q/c") is not None


def test_a_chosen_model_that_is_gone_is_no_choice(registry):
    """Ours: a slot names a model; who offers it may go."""
    registry.claim("one", Offer((row("p/a"),)))
    assert registry.choose("p/a") is None
    assert registry.chosen().ref == "p/a"
    registry.claim("one", None)
    assert registry.chosen() is None


def test_a_model_is_spoken_to_by_its_api_with_its_key(registry):
    """Source: issue, item 1."""
    registry.claim("one", Offer((row("p/a", key=Key("literal", "k")),), (FAKE,)))
    assert registry.speak(registry.find("p/a")) == ("p/a", "k")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (row("p/a", api="gone"), "Nobody speaks 'gone', the API of the model p/a"),
        (row("p/a", transport="native"), "Nobody speaks 'native', the transport of the model p/a"),
    ],
)
def test_a_model_that_nobody_speaks_to_is_a_clear_error(registry, wanted, words):
    """Ours: who offered the API may be gone by then."""
    registry.claim("one", Offer((wanted,), (FAKE,)))
    with pytest.raises(CannotInfer, match=words):
        registry.speak(wanted)


def test_the_placeholder_fills_an_empty_slot_and_is_filled_in_again(registry):
    """Source: seed, "占位模型": a row that is there is only chosen, one that was pruned is registered again."""
    loader = Loader(registry, Files(Catalogue()))
    assert loader.refresh() == ()
    assert registry.chosen() == PLACEHOLDER

    registry.choose(None)
    loader.refresh()
    assert registry.chosen() == PLACEHOLDER
    registry.claim("a2mcp-auto-model", None)
    loader.refresh()
    assert registry.chosen() == PLACEHOLDER


def test_the_placeholder_is_never_put_over_a_chosen_model(registry):
    """Source: seed, "占位模型": 只填空槽."""
    registry.claim("other", Offer((row("p/a"),)))
    registry.choose("p/a")
    Loader(registry, Files(Catalogue())).refresh()

    assert registry.chosen().ref == "p/a"
    assert registry.find("a2mcp/offline") is None


def test_the_file_replaces_the_placeholder_and_its_default_the_choice(registry):
    """Ours: whoever writes the file while the daemon runs wants it to be used."""
    rows = (row("p/a"), row("p/b"))
    loader = Loader(registry, Files(Catalogue(), Catalogue(rows, "p/a"), Catalogue(rows, "p/b")))
    chosen = []
    for _ in range(3):
        loader.refresh()
        chosen.append(registry.chosen().ref)
    assert chosen == ["a2mcp/offline", "p/a", "p/b"]


def test_what_was_chosen_otherwise_stays_when_the_file_changes_elsewhere(registry):
    """Ours: a choice of the running daemon is not undone by an edit of something else."""
    rows = (row("p/a"), row("p/b"))
    loader = Loader(registry, Files(Catalogue(rows, "p/a"), Catalogue((*rows, row("q/c")), "p/a")))
    loader.refresh()
    registry.choose("p/b")
    loader.refresh()
    assert registry.chosen().ref == "p/b"
    assert registry.find("q/c") is not None


def test_a_file_that_became_wrong_leaves_the_models_that_are_known(registry):
    """Ours: a daemon that runs goes on with what it has."""
    loader = Loader(registry, Files(Catalogue((row("p/a"),), "p/a"), UnusableFile("line 1")))
    loader.refresh()
    before = registry.holdings
    with pytest.raises(UnusableFile):
        loader.refresh()
    assert registry.holdings == before


def test_a_wrong_file_at_first_still_leaves_a_model_in_the_slot(registry):
    """Ours: the slot is never empty after a look."""
    with pytest.raises(UnusableFile):
        Loader(registry, Files(UnusableFile("line 1"))).refresh()
    assert registry.chosen() == PLACEHOLDER
