"""Names that are ours: by spelling alone, without a look-up."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.auth.origin import AllowedHosts, host_name, is_loopback


@pytest.mark.parametrize(
    ("authority", "name"),
    [("localhost", "localhost"), ("LocalHost:80", "localhost"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("a.b.", "a.b"), ("a:", "a"),
     ("1.2.3.4:5", "1.2.3.4"), ("", None), (":80", None), ("a:b", None), ("a:1:2", None), ("u@a", None), ("a/b", None), ("a\\b", None),
     ("a b", None), ("[::1", None), ("::1", None), ("[a]", "a"), ("[]", None), (".", None), ("a\n", None), ("[::1]x", None)],
)  # fmt: skip
def test_the_host_of_an_authority(authority: str, name: str | None) -> None:
    """Row O04 and DESIGN §2: name, port not compared."""
    assert host_name(authority) == name


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("127.0.0.1", True), ("127.255.0.9", True), ("::1", True), ("0:0:0:0:0:0:0:1", True), ("localhost.evil", False),
     ("127.1", False), ("0.0.0.0", False), ("2130706433", False), ("0x7f.0.0.1", False), ("::", False), ("10.0.0.1", False), ("", False)],
)  # fmt: skip
def test_loopback_is_known_by_its_spelling(host: str, expected: bool) -> None:
    """Try-out 18; a name is never looked up, so that DNS cannot rebind it."""
    assert is_loopback(host) is expected


def test_nothing_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try-out 18."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("looked up"))
    hosts = AllowedHosts("127.0.0.1", ["box"])

    assert hosts.host("box:1") is True
    assert hosts.host("evil.example") is False
    assert hosts.origin("http://evil.example") is False


@given(st.text(max_size=60))
def test_no_value_raises_and_none_is_ours_by_chance(value: str) -> None:
    """Row O03, as a property."""
    hosts = AllowedHosts("127.0.0.1", ["box.example"])

    assert hosts.host(value + "evil.example") is False
    assert hosts.host("evil.example." + value) is False or value == ""
    assert hosts.origin("http://evil.example" + value) is False
    hosts.host(value)
    hosts.origin(value)


def test_the_list_can_be_replaced_and_says_so() -> None:
    """Row O06: a name that comes and goes; remembered verdicts are told apart by the generation."""
    hosts = AllowedHosts("127.0.0.1")
    before = hosts.generation

    hosts.replace("127.0.0.1", ["Calm-River.example"])
    assert hosts.host("calm-river.example") is True
    hosts.replace("127.0.0.1")

    assert hosts.host("calm-river.example") is False
    assert hosts.generation == before + 2
