"""Which tools there are, and what is said about the others."""

import json
import threading

import msgspec
import pytest

from a2mcp.errors import BadArgument, NotExposed
from a2mcp.tools.registry import LocalHost, Registry
from a2mcp.tools.result import text
from a2mcp.tools.schema import spec_for
from a2mcp.tools.spec import Tier, Tool


class EchoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    message: str = ""


def tool(name: str, tier: Tier = Tier.READ, **more) -> Tool:
    spec = spec_for(EchoParams, name=name, title=name.title(), description=f"Does {name}.", tier=tier, **more)
    return Tool(spec, EchoParams, lambda params, context: text(f"{name}:{params.message}:{context}"))


class Elsewhere(LocalHost):
    """A host that is not the first one."""

    name = "elsewhere"


def names(registry: Registry) -> list[str]:
    return [entry["name"] for entry in json.loads(registry.catalog())]


def test_the_catalogue_shows_what_the_seed_names_and_the_annotations():
    """Source: seed (tools/list: name, description, inputSchema); MCP specification (annotations)."""
    registry = Registry([LocalHost([tool("look", idempotent=True), tool("change", Tier.WRITE, open_world=True)])])
    look, change = json.loads(registry.catalog())
    assert look == {
        "name": "look",
        "description": "Does look.",
        "inputSchema": {
            "type": "object",
            "properties": {"message": {"type": "string", "default": ""}},
            "additionalProperties": False,
        },
        "title": "Look",
        "annotations": {
            "title": "Look",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    assert change["annotations"] == {
        "title": "Change",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }


def test_a_call_decodes_the_arguments_and_runs_the_tool():
    """Source: issue (Host protocol)."""
    entry = Registry([LocalHost([tool("echo")])]).require("echo")
    assert entry.host.call("echo", b'{"message": "hi"}', "here") == text("echo:hi:here")
    assert entry.host.call("echo", None, "here") == text("echo::here")
    with pytest.raises(BadArgument):
        entry.host.call("echo", b'{"message": 3}', "here")


def test_a_tool_appears_when_registered_and_disappears_when_dropped():
    """Source: issue (registered or dropped at run time)."""
    host = LocalHost([tool("one")])
    registry = Registry([host])
    seen = [(registry.catalog_version, names(registry))]
    host.register(tool("two"))
    seen.append((registry.catalog_version, names(registry)))
    assert registry.require("two").spec.name == "two"
    host.drop("one")
    seen.append((registry.catalog_version, names(registry)))
    assert seen == [(1, ["one"]), (2, ["one", "two"]), (3, ["two"])]
    assert registry.find("one") is None
    assert [spec.name for spec in registry.specs()] == ["two"]
    with pytest.raises(NotExposed):
        host.call("one", None, "here")


def test_the_catalogue_is_encoded_once_per_change():
    """Source: ours."""
    host = LocalHost([tool("one")])
    registry = Registry([host])
    first = registry.catalog()
    assert registry.catalog() is first
    host.register(tool("two"))
    assert registry.catalog() is not first


@pytest.mark.parametrize("name", ["", "bash", "READ", "xd://read", "read ", "mcp__a2mcp__read", "re\0ad"])
def test_a_name_that_is_not_in_the_catalogue_is_not_exposed(name):
    """Source: seed (tools/call, exit 2: aliases such as xd://bash, missing names)."""
    registry = Registry([LocalHost([tool("read")])])
    assert registry.find(name) is None
    with pytest.raises(NotExposed, match="not exposed"):
        registry.require(name)


def test_a_dropped_name_and_one_that_never_was_read_the_same():
    """Source: seed (one text, which does not tell which names exist)."""
    host = LocalHost([tool("read"), tool("gone")])
    registry = Registry([host])
    host.drop("gone")
    texts = []
    for name in ("gone", "never"):
        with pytest.raises(NotExposed) as caught:
            registry.require(name)
        texts.append(str(caught.value).replace(name, "NAME"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["x" * 10**6, "\x1b[31m\n\0", "\ud83d", "😀" * 200])
def test_an_absurd_name_is_echoed_short_and_escaped(name):
    """Source: issue (giant tool names), ours."""
    with pytest.raises(NotExposed) as caught:
        Registry([]).require(name)
    assert len(str(caught.value)) < 200
    assert str(caught.value).replace("…", "").isascii()
    assert str(caught.value).isprintable()


def test_the_tools_of_all_hosts_are_listed_together():
    """Source: issue (a registry other hosts can stand behind)."""
    here, there = LocalHost([tool("one")]), Elsewhere([tool("two")])
    registry = Registry([here, there])
    assert names(registry) == ["one", "two"]
    assert registry.require("two").host is there
    assert [(host.name, host.state()) for host in registry.hosts()] == [("local", "1 tools"), ("elsewhere", "1 tools")]


def test_a_name_that_is_taken_is_refused_and_nothing_changes():
    """Source: ours."""
    here, there = LocalHost([tool("one")]), Elsewhere([tool("two")])
    registry = Registry([here, there])
    with pytest.raises(ValueError, match="tool 'one' is registered already"):
        here.register(tool("one"))
    with pytest.raises(ValueError, match="tool 'two' of host 'elsewhere' is already offered by host 'local'"):
        here.register(tool("two"))
    assert [spec.name for spec in here.list()] == ["one"]
    assert (registry.catalog_version, names(registry)) == (2, ["one", "two"])
    here.register(tool("three"))
    assert names(registry) == ["one", "three", "two"]


def test_two_hosts_do_not_share_a_name():
    """Source: ours."""
    with pytest.raises(ValueError, match="host 'local' is registered already"):
        Registry([LocalHost(), LocalHost()])


def test_a_host_whose_tools_clash_is_not_taken_in():
    """Source: ours."""
    registry = Registry([LocalHost([tool("one")])])
    with pytest.raises(ValueError, match="already offered"):
        registry.add(Elsewhere([tool("one"), tool("two")]))
    assert [host.name for host in registry.hosts()] == ["local"]
    assert names(registry) == ["one"]


def test_dropping_what_is_not_there_is_an_error():
    """Source: ours."""
    with pytest.raises(KeyError):
        LocalHost().drop("none")


def test_changes_from_many_threads_all_arrive():
    """Source: ours."""
    here, there = LocalHost(), Elsewhere()
    registry = Registry([here, there])
    start = threading.Barrier(8)

    def add(number: int) -> None:
        start.wait()
        for step in range(10):
            (here if number % 2 else there).register(tool(f"t{number}_{step}"))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names(registry)) == sorted(f"t{number}_{step}" for number in range(8) for step in range(10))
    assert registry.catalog_version == 82
