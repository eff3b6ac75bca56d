"""Credentials: found out when a request is made, by rules that never show them."""

from __future__ import annotations

import time

import pytest

from a2mcp.errors import CannotInfer
from a2mcp.inference import keycommand
from a2mcp.inference.keys import KEPT_S, Credentials, Keys, key_from
from a2mcp.inference.rows import PLACEHOLDER, Key, ModelRow


class Turned:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


def row(key=None, **headers) -> ModelRow:
    return ModelRow(
        provider="p", id="m", name="m", api="openai-completions", base_url="http://x", key=key or Key(),
        headers={name: key_from(text) for name, text in headers.items()},
    )  # fmt: skip


@pytest.fixture
def clock():
    return Turned()


@pytest.fixture
def keys(clock):
    return Keys(clock)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("sk-abc", "literal", "sk-abc"),
        ("not-a-real-key", "literal", "not-a-real-key"),
        ("$HOME", "environment", "HOME"),
        ("${My_Key}", "environment", "My_Key"),
        ("OPENAI_API_KEY", "environment", "OPENAI_API_KEY"),
        ("NOUNDERSCORE", "literal", "NOUNDERSCORE"),
        ("$", "literal", "$"),
        ("! pass show x", "command", "pass show x"),
    ],
)
def test_how_a_key_is_written_says_where_it_comes_from(text, kind, value):
    """Source: issue, item 1: literal, environment or `!command`."""
    assert key_from(text) == Key(kind, value)


def test_no_key_shows_in_a_text_about_it():
    """Source: common rule: secrets appear nowhere."""
    assert "sk-abc" not in f"{row(Key('literal', 'sk-abc'))!r} {Credentials('sk-abc', {'x': 'sk-abc'})!r}"


def test_each_kind_gives_its_value_when_it_is_asked_for(keys, monkeypatch):
    """Source: issue, item 1."""
    monkeypatch.setenv("SOME_KEY", "from-environment")
    assert keys.of(row()).key is None
    assert keys.of(PLACEHOLDER).key == "not-a-real-key"
    assert keys.of(row(Key("environment", "SOME_KEY"))).key == "from-environment"
    assert keys.of(row(Key("command", "echo from-program"), X="!echo header")) == Credentials(
        "from-program", {"X": "header"}
    )


def test_a_variable_that_is_not_set_is_named(keys, monkeypatch):
    """Ours: a daemon that a service manager starts has another environment than a shell."""
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(CannotInfer, match="the variable NO_SUCH_KEY is not set"):
        keys.of(row(Key("environment", "NO_SUCH_KEY")))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo one; echo two", "printed 2 lines"),
        ("true", "printed nothing"),
        ("echo", "printed 1 lines"),
        ("echo secret; exit 3", "ended with exit code 3"),
        ("no-such-program-here", "ended with exit code 127"),
        ("printf '\\303\\244'", "printed something that is not plain text"),
        ("yes secret", "printed more than 16384 bytes"),
    ],
)
def test_a_program_that_prints_no_key_is_a_clear_error_without_what_it_printed(keys, command, words):
    """Source: issue, "Bad input": a key command that prints two lines."""
    with pytest.raises(CannotInfer, match=words) as raised:
        keys.of(row(Key("command", command)))
    assert "secret" not in str(raised.value).replace(command, "")


@pytest.mark.parametrize("command", ["sleep 60", "echo key; sleep 60", "sleep 60 & echo key", "exec >&-; sleep 60"])
def test_a_program_that_hangs_is_ended_with_what_it_started(keys, command, monkeypatch, tmp_path):
    """Source: issue, "Bad input": a key command that hangs."""
    monkeypatch.setattr(keycommand, "LIMIT_S", 0.3)
    began = time.monotonic()
    with pytest.raises(CannotInfer, match="did not end within"):
        keys.of(row(Key("command", command)))
    assert time.monotonic() - began < 10


def test_what_a_program_printed_is_used_for_a_while_and_forgotten_on_demand(keys, clock, tmp_path):
    """Ours: a keyring must not be asked at every request, nor a token be used when it has expired."""
    asked = row(Key("command", f"echo x >> {tmp_path}/runs; wc -l < {tmp_path}/runs"))

    assert [keys.of(asked).key for _ in range(3)] == ["1", "1", "1"]
    clock.at += KEPT_S
    assert keys.of(asked).key == "2"
    keys.forget()
    assert keys.of(asked).key == "3"


def test_a_program_gets_nothing_of_the_daemons_own(keys, monkeypatch):
    """Source: common rule: children inherit nothing."""
    monkeypatch.setenv("A2MCP_HOME", "/nowhere")
    assert keys.of(row(Key("command", "env | grep -c A2MCP_ || true"))).key == "0"
