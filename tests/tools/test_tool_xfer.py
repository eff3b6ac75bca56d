"""The tools ``xfer_*``: what they ask for, what they refuse, and the words of their answers."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from a2mcp.clock import SystemClock
from a2mcp.errors import BadArgument, ToolError
from a2mcp.policy.approval import ApprovalSettings, Mode, Rule, decide
from a2mcp.tools import arguments, xfer
from a2mcp.tools.builtin import builtin_tools
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.registry import LocalHost, Registry
from a2mcp.tools.result import PENDING
from a2mcp.tools.spec import Tier
from a2mcp.xfer.owner import Opened, Standing
from a2mcp.xfer.share import Share

ORIGIN = "http://127.0.0.1:44347"
PUBLIC = "https://calm-river-xyz.trycloudflare.com"


class Port:
    """Remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def share(self, _ticket, path, ttl_s, _cancelled):
        self.asked.append((path, ttl_s))
        return PENDING

    def status(self, _ticket):
        self.asked.append("status")
        return PENDING

    def stop(self, _ticket):
        self.asked.append("stop")
        return PENDING


def call(name, raw, port, cwd=Path("/srv")):
    """Call a tool with the JSON of its arguments."""
    (tool,) = [tool for tool in xfer.TOOLS if tool.spec.name == name]
    context = Context(ticket=None, cwd=cwd, home=cwd, limits=Limits(), jobs=None, clock=SystemClock(), xfer=port)
    return tool.run(arguments.decode(tool.params, raw), context)


def standing(path, server_port=52137):
    started, expires = (datetime(2026, 10, 16, hour, 35, 23, tzinfo=UTC) for hour in (4, 5))
    return Standing(Opened(Share.open(path), started, expires, 0.0, 3600), None, server_port)


# --- the catalogue -----------------------------------------------------------------------------------------------


def test_they_come_last_and_are_exactly_three():
    """Seed: the catalogue is the host's, then these three names."""
    registry = Registry((LocalHost(builtin_tools()), xfer.BridgeHost()))
    names = [spec.name for spec in registry.specs()]
    assert names == [*(tool.spec.name for tool in builtin_tools()), "xfer_share", "xfer_status", "xfer_stop"]


def test_the_schema_asks_for_a_path():
    """Seed: `path` must be there; `ttlSeconds` is 3600 when it is not."""
    schema = xfer.TOOLS[0].spec.input_schema
    assert schema["required"] == ["path"]
    assert schema["properties"]["ttlSeconds"]["default"] == 3600
    assert [tool.spec.input_schema["properties"] for tool in xfer.TOOLS[1:]] == [{}, {}]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("tool", xfer.TOOLS, ids=lambda tool: tool.spec.name)
def test_no_mode_holds_them_but_a_rule_for_the_name_does(tool, mode):
    """Seed: not past the host's approval gate; ours: what the operator wrote about a name counts."""
    spec = tool.spec
    assert decide(ApprovalSettings(mode=mode), spec.name, spec.tier, past_mode=spec.past_mode) is Rule.ALLOW
    for rule in Rule:
        settings = ApprovalSettings(mode=mode, tools={spec.name: rule})
        assert decide(settings, spec.name, spec.tier, past_mode=spec.past_mode) is rule


def test_their_tiers_say_what_they_do():
    """Ours: only looking is reading."""
    assert [tool.spec.tier for tool in xfer.TOOLS] == [Tier.WRITE, Tier.READ, Tier.WRITE]


# --- arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b"{}", b'{"path":null}', b'{"path":""}', b"", b'{"ttlSeconds":60}'])
def test_a_missing_path_is_refused_in_the_words_of_the_seed(raw):
    """Seed: the text, to the letter."""
    with pytest.raises(ToolError) as caught:
        call("xfer_share", raw, Port())
    assert str(caught.value) == "xfer_share needs a 'path' — the file or directory to serve"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("x", "/srv/x"), (".", "/srv"), ("/a/b", "/a/b"), ("~/x", "{home}/x"), ("~", "{home}"), ("~root", "/srv/~root")],
)
def test_a_path_is_the_hosts(written, meant):
    """Seed: `~` is the host's home, a relative path starts at its working directory."""
    port = Port()
    assert call("xfer_share", json.dumps({"path": written}).encode(), port) is PENDING
    assert port.asked == [(Path(meant.format(home=Path.home())), 3600)]


@pytest.mark.parametrize(
    "ttl",
    ["0", "-1", "1.5", '"soon"', '""', "true", "[]", "{}", "1e400", "9" * 30, str(xfer.LONGEST_S + 1), "-0.0", '"1.5"'],
)
def test_a_ttl_that_is_no_span_of_time_is_named(ttl):
    """Issue, "Bad input": 0, negative, fractional, text, enormous."""
    with pytest.raises(BadArgument) as caught:
        call("xfer_share", f'{{"path":"/x","ttlSeconds":{ttl}}}'.encode(), Port())
    assert caught.value.field == "ttlSeconds"
    assert "integer" in caught.value.expected


@pytest.mark.parametrize(
    ("ttl", "seconds"), [("1", 1), ("60.0", 60), ('"60"', 60), ("null", 3600), (str(xfer.LONGEST_S), xfer.LONGEST_S)]
)
def test_a_ttl_that_is_certainly_meant_is_taken(ttl, seconds):
    """Ours: as every tool reads numbers."""
    port = Port()
    call("xfer_share", f'{{"path":"/x","ttlSeconds":{ttl}}}'.encode(), port)
    assert port.asked == [(Path("/x"), seconds)]


@pytest.mark.parametrize("name", ["xfer_status", "xfer_stop"])
def test_the_others_take_nothing(name):
    """Seed: no parameters."""
    port = Port()
    assert call(name, b"{}", port) is PENDING
    assert port.asked == [name.removeprefix("xfer_")]
    with pytest.raises(BadArgument):
        call(name, b'{"path":"/x"}', port)


def test_without_a_port_they_say_so():
    """Ours: a host of tools without the daemon around it."""
    with pytest.raises(ToolError, match="cannot be shared here"):
        call("xfer_status", b"{}", None)


# --- answers -----------------------------------------------------------------------------------------------------


def test_the_answer_is_that_of_the_seed(tmp_path):
    """Seed, "xfer_share": every member, in its order, as text and as structured content."""
    share = standing(tmp_path)
    answer = xfer.shared(share, ORIGIN, PUBLIC, replaced=False)
    curl = "curl -H 'Authorization: Bearer <TOKEN>'"
    expected = {
        "url": f"{ORIGIN}/xfer/",
        "publicUrl": f"{PUBLIC}/xfer/",
        "route": "/xfer/",
        "path": str(tmp_path),
        "port": 52137,
        "replaced": False,
        "startedAt": "2026-10-16T04:35:23.000Z",
        "expiresAt": "2026-10-16T05:35:23.000Z",
        "usage": {
            "download": f"{curl} -O {ORIGIN}/xfer/<name>",
            "upload": f"{curl} -T <local> {ORIGIN}/xfer/<name>",
            "public": f"{curl} -O {PUBLIC}/xfer/<name>",
        },
        "installed": {"dufs": None},
    }
    assert list(answer.structured.items()) == list(expected.items())
    assert json.loads(answer.content[0].text) == expected
    assert list(json.loads(answer.content[0].text)) == list(expected)
    assert not answer.is_error
    share.share.close()


def test_without_a_tunnel_the_line_names_the_two_ways(tmp_path):
    """Seed: the sentence, to the letter."""
    share = standing(tmp_path)
    told = xfer.shared(share, ORIGIN, None, replaced=True).structured
    assert told["publicUrl"] is None
    assert told["replaced"] is True
    assert told["usage"]["public"] == (
        "no public address — `/a2mcp tunnel` is closed; use an SSH port forward to the bridge port, or ask the operator "
        "to run `/a2mcp tunnel`"
    )
    share.share.close()


@pytest.mark.parametrize("name", ["a b.txt", "ä'\".iso", "$(id)", "-rf", "a;b", "%41", "x\n"])
def test_the_lines_for_one_file_name_it(tmp_path, name):
    """Issue: the lines work when pasted; ours: whatever the file is called, it stays one word."""
    (tmp_path / name).write_text("x")
    share = standing(tmp_path / name)
    usage = xfer.shared(share, ORIGIN, PUBLIC, replaced=False).structured["usage"]
    words = shlex.split(usage["download"])
    assert words[:4] == ["curl", "-H", "Authorization: Bearer <TOKEN>", "-O"]
    assert len(words) == 5
    assert words[4].isascii()
    assert usage["upload"] == xfer.NO_UPLOAD
    share.share.close()


def test_a_path_that_is_no_unicode_can_be_told(tmp_path):
    """Ours: names are bytes; the answer is JSON."""
    folder = Path(str(tmp_path) + "/caf\udce9")
    folder.mkdir()
    share = standing(folder)
    for answer in (xfer.shared(share, ORIGIN, None, replaced=False), xfer.serving(share, ORIGIN, None)):
        assert msgspec.json.decode(answer.content[0].text)["path"] == f"{tmp_path}/caf\\xe9"
    assert xfer.stopped(folder).structured == {"stopped": True, "path": f"{tmp_path}/caf\\xe9"}
    share.share.close()


def test_nothing_shared_is_no_error():
    """Seed, "xfer_status" and "xfer_stop"."""
    assert xfer.serving(None, ORIGIN, None).content[0].text == '{"serving":false}'
    answer = xfer.stopped(None)
    assert json.loads(answer.content[0].text) == {"stopped": False, "note": "nothing was shared"}
    assert not answer.is_error
