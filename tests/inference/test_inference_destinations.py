"""Which places are the same one, however they are written."""

from __future__ import annotations

import pytest

from a2mcp.inference.destinations import Destinations, destinations, proxies_for


def guarded(*urls: str, proxies: tuple[str, ...] = ()) -> Destinations:
    return destinations(urls, proxies)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("api.example.com", 443),
        ("API.Example.COM", 80),
        ("api.example.com.", None),
        (b"api.example.com", "https"),
        (bytearray(b"api.example.com"), 1),
        ("ａｐｉ.example.com", 443),  # noqa: RUF001 - the resolver folds it, so must we
    ],
)
def test_a_providers_host_is_meant_with_every_port_and_in_every_spelling(host, port):
    """Source: seed: "URL 主机匹配快照里任一 baseUrl 的请求一律拒绝"."""
    assert guarded("https://api.example.com/v1").meant(host, port)


@pytest.mark.parametrize(
    "host", ["example.com", "xapi.example.com", "api.example.com.evil", "127.0.0.1", "", None, 5, ("a", 1), b"\xff"]
)
def test_another_host_is_not_meant(host):
    """Ours: what is not inference goes out."""
    assert not guarded("https://api.example.com/v1").meant(host, 443)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "LOCALHOST.", "api.localhost", "127.0.0.2", "127.1", "2130706433", "0x7f.1",
        "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "[::1]"[1:-1], b"127.0.0.1", "::1%lo",
    ],
)  # fmt: skip
@pytest.mark.parametrize("url", ["http://127.0.0.1:11434/v1", "http://localhost:11434", "http://[::1]:11434/v1"])
def test_a_provider_on_this_machine_is_meant_by_its_port_alone(host, url):
    """Source: issue, item 4: loopback is never a key unless a provider really lives there, and then only its port."""
    local = guarded(url)
    assert local.meant(host, 11434)
    assert local.meant(host, "11434")
    assert local.meant(host, b"11434")
    assert not local.meant(host, 11435)
    assert not local.meant(host, None)


def test_a_provider_elsewhere_says_nothing_of_this_machine():
    """Source: issue, item 4."""
    assert not guarded("https://api.example.com:8443/v1").meant("127.0.0.1", 8443)


@pytest.mark.parametrize("host", ["192.168.1.5", "::ffff:192.168.1.5", "192.168.261"])
def test_an_address_of_the_network_is_meant_in_every_form(host):
    """Ours."""
    assert guarded("http://192.168.1.5:8000/v1").meant(host, 22)


def test_ports_that_are_not_written_are_those_of_the_scheme():
    """Ours."""
    assert guarded("http://localhost/v1").meant("127.0.0.1", 80)
    assert guarded("https://localhost/v1").meant("127.0.0.1", 443)


def test_a_proxy_is_meant_by_its_port_where_it_would_carry_the_request(monkeypatch):
    """Ours: through a proxy nobody looks the provider up, nor connects to it."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "near.example")
    urls = ["https://api.example.com/v1", "https://near.example/v1", "http://plain.example/v1"]

    assert proxies_for(urls) == ["http://proxy.example:3128"]
    held = destinations(urls, proxies_for(urls))
    assert held.meant("proxy.example", 3128)
    assert not held.meant("proxy.example", 80)

    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.setenv("ALL_PROXY", "127.0.0.1:7890")
    assert destinations(urls, proxies_for(urls)).meant("localhost", 7890)


def test_what_is_guarded_can_be_counted_and_its_names_told():
    """Source: seed: the line says how many keys there are."""
    held = guarded("https://api.example.com", "https://api.example.com/v2", "http://10.0.0.1", "http://localhost:1")
    assert len(held) == 3
