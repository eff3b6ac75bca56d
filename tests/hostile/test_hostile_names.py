"""Names: which Host and Origin a request may carry, on every route, before anything else is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import wire
from harness import Daemon, running
from rows import row

if TYPE_CHECKING:
    from pathlib import Path


def _statuses(daemon: Daemon, *lines: str, path: str = "/", host: str = "127.0.0.1", method: str = "POST") -> list[int]:
    body = wire.INITIALIZE
    usual = [
        f"Authorization: Bearer {daemon.token}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        f"Host: {host}",
    ]
    return wire.statuses(daemon.raw(wire.head(f"{method} {path} HTTP/1.1", *usual, *lines) + body))


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil", "https://pages.example", "file://", "file:///x", "chrome-extension://abc", "http://127.0.0.1.evil.com",
     "http://localhost.evil.com", "http://evil.com#localhost", "http://evil.com/localhost", "http://localhost@evil.com",
     "http://evil@localhost", "ws://localhost", "localhost", "", "http://", "http://[::1", "http://127.1.evil", "*",
     "http://evil localhost", "http://\xe9vil", "http://2130706433", "http://0x7f000001"],
    ids=row("O03"),
)  # fmt: skip
def test_a_foreign_origin_is_403_even_with_the_token(shared_daemon: Daemon, origin: str) -> None:
    """Row O03; try-out 18: and no tool runs."""
    assert _statuses(shared_daemon, f"Origin: {origin}") == [403]


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:1",
        "http://127.0.0.1:8080",
        "https://localhost",
        "http://[::1]:3000",
        "HTTP://LOCALHOST:5",
        "http://127.8.9.10",
    ],
    ids=row("O03"),
)
def test_a_page_of_this_machine_may_ask(shared_daemon: Daemon, origin: str) -> None:
    """Row O03 and try-out 18: loopback names on any port, since SSH forwarding changes it."""
    assert _statuses(shared_daemon, f"Origin: {origin}") == [200]


@pytest.mark.parametrize(
    "host", ["localhost:9999", "[::1]:1", "127.0.0.1", "LOCALHOST", "localhost.", "127.0.0.1:", "[::1]", "127.5.5.5:80"],
    ids=row("O04"),
)  # fmt: skip
def test_our_own_names_are_accepted_on_any_port(shared_daemon: Daemon, host: str) -> None:
    """Row O04."""
    assert _statuses(shared_daemon, host=host) == [200]


@pytest.mark.parametrize(
    "host", ["evil.example", "rebind.example:80", "127.0.0.1.evil", "localhost@evil", "evil/localhost", "", "a b", "[::1", "::1", "0.0.0.0",
             "127.0.0.1:80:90", "localhost:x", "192.168.0.1", "127.0.0.1, evil", "xn--lcalhost-ox3b", "loca\xadlhost"],
    ids=row("O04"),
)  # fmt: skip
def test_a_foreign_host_is_403(shared_daemon: Daemon, host: str) -> None:
    """DESIGN §2; try-out 18: a rebound name is refused before the token is looked at."""
    assert _statuses(shared_daemon, host=host) == [403]


@pytest.mark.parametrize("path", ["/", "/a", "/xfer/a", "/host-llm"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_names_are_checked_on_every_route_and_first(shared_daemon: Daemon, path: str, method: str) -> None:
    """Issue, HTTP edge: Origin and Host on every route."""
    assert _statuses(shared_daemon, "Origin: https://evil.example", path=path, method=method) == [403]
    assert _statuses(shared_daemon, host="evil.example", path=path, method=method) == [403]


def test_the_host_of_the_target_counts_too(shared_daemon: Daemon) -> None:
    """Section 0 row 11: an absolute-form target names a host beside the Host header."""
    assert _statuses(shared_daemon, path="http://evil.example/") == [403]
    assert _statuses(shared_daemon, path="http://user@127.0.0.1/") == [403]
    assert _statuses(shared_daemon, path="http://127.0.0.1:99/x?y") == [200]
    assert _statuses(shared_daemon, path="http://127.0.0.1/", host="evil.example") == [403]
    assert _statuses(shared_daemon, path="https://localhost") == [200]


def test_none_two_or_joined_hosts_are_refused(shared_daemon: Daemon) -> None:
    """Section 0 row 11: none, two, two Origins."""
    without = wire.post(wire.INITIALIZE, shared_daemon.token).replace(b"Host: 127.0.0.1\r\n", b"")

    assert wire.statuses(shared_daemon.raw(without)) == [400]
    assert _statuses(shared_daemon, "Host: 127.0.0.1") == [400]
    assert _statuses(shared_daemon, "Origin: http://localhost", "Origin: https://evil.example") == [400]


def test_a_simple_cross_site_post_without_origin_is_401_and_does_nothing(shared_daemon: Daemon, tmp_path: Path) -> None:
    """Row O05: Sec-Fetch-Site cross-site, no-cors, text/plain: no token, no effect."""
    body = wire.call("write", path=str(tmp_path / "x"), content="x")
    lines = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Content-Type: text/plain"]

    assert wire.statuses(shared_daemon.raw(wire.post(body, None, *lines))) == [401]
    assert not (tmp_path / "x").exists()


def test_names_of_the_settings_are_ours(tmp_path: Path) -> None:
    """Issue, configuration: allowed_hosts; as Host and as Origin, in any case, nothing below or above them."""
    with running(tmp_path / "home", settings={"allowed_hosts": ["Box.Example", "10.0.0.7"]}) as daemon:
        assert _statuses(daemon, "Origin: https://box.example:444", host="BOX.example:80") == [200]
        assert _statuses(daemon, host="10.0.0.7") == [200]
        for host in ("a.box.example", "example", "box.example.evil", "10.0.0.77"):
            assert _statuses(daemon, host=host) == [403]
