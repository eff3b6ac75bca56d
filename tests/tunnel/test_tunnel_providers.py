"""What is run for a tunnel, and how its name is found in what the program prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.errors import CannotTunnel
from a2mcp.tunnel.providers import Wish, provider_of

ORIGIN = "http://127.0.0.1:4801"
TOKEN = "eyJhIjoi" + "x" * 40


def launch(**wish):
    asked = Wish(**wish)
    return provider_of(asked).launch(asked, ORIGIN)


def test_a_quick_tunnel_is_told_our_address_and_nothing_else():
    """Issue 4 §3: `cloudflared tunnel --url http://127.0.0.1:<port>`."""
    assert provider_of(Wish()).program == "cloudflared"
    assert launch().arguments == ("tunnel", "--url", ORIGIN)


@pytest.mark.parametrize(
    "line",
    [
        "2026-10-16T04:35:23Z INF |  https://calm-river-xyz.trycloudflare.com                               |",
        "https://calm-river-xyz.trycloudflare.com", "INF https://calm-river-xyz.trycloudflare.com/ is up",
        "|\thttps://calm-river-xyz.trycloudflare.com|",
    ],
)  # fmt: skip
def test_the_name_is_found_in_what_cloudflared_prints(line):
    """Issue 4 §3: takes the hostname from its output."""
    assert launch().hostname_in(line) == "calm-river-xyz.trycloudflare.com"


@pytest.mark.parametrize(
    "line",
    [
        "", "INF Requesting new quick Tunnel on trycloudflare.com...", "http://calm-river.trycloudflare.com",
        'ERR failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": dial tcp',
        "failed: https://api.trycloudflare.com/tunnel", "https://a.trycloudflare.com.evil.example ",
        "https://evil.example/.trycloudflare.com", "https://a.b.trycloudflare.com", "https://user@a.trycloudflare.com",
        "xhttps://a.trycloudflare.com", "https://A.trycloudflare.com", "https://a.trycloudflare.com:8443",
        "https://a.trycloudflare.com@evil.example", "https://-.evil.trycloudflare.com", "https://.trycloudflare.com",
    ],
)  # fmt: skip
def test_what_only_looks_like_the_name_is_none(line):
    """D09: a URL with junk. A wrong name would be allowed in the Host check."""
    assert launch().hostname_in(line) is None


@given(st.text(max_size=80))
def test_no_line_gives_a_name_outside_of_the_providers(line):
    """Ours, with hypothesis."""
    name = launch().hostname_in(f"https://{line}.trycloudflare.com {line}")
    assert name is None or name.endswith(".trycloudflare.com")
    assert name is None or name.count(".") == 2


def test_a_named_tunnel_gets_its_token_in_the_environment_only():
    """Issue 4 §3: never argv."""
    ready = launch(provider="cloudflared-named", hostname="Tools.Example.org.", token=TOKEN)
    assert ready.arguments == ("tunnel", "run")
    assert ready.environment["TUNNEL_TOKEN"] == TOKEN
    assert ready.hostname_in("INF Registered tunnel connection connIndex=0") == "tools.example.org"
    assert ready.hostname_in("INF Starting tunnel") is None


def test_no_token_is_shown_by_what_carries_it():
    """Ours: a traceback prints values."""
    wish = Wish(provider="cloudflared-named", hostname="a.example", token=TOKEN)
    assert TOKEN not in repr(wish) + str(wish) + repr(
        launch(provider="cloudflared-named", hostname="a.example", token=TOKEN)
    )


@pytest.mark.parametrize(
    ("wish", "hint"),
    [
        ({"provider": "carrier-pigeon"}, "There are cloudflared"), ({"hostname": "a.example"}, "cloudflared-named"),
        ({"token": TOKEN}, "cloudflared-named"), ({"provider": "cloudflared-named", "token": TOKEN}, "--hostname"),
        ({"provider": "cloudflared-named", "token": TOKEN, "hostname": "a b"}, "--hostname"),
        ({"provider": "cloudflared-named", "token": TOKEN, "hostname": "localhost"}, "--hostname"),
        ({"provider": "cloudflared-named", "token": TOKEN, "hostname": "a." * 127 + "org"}, "--hostname"),
        ({"provider": "cloudflared-named", "hostname": "a.example"}, "--token-file"),
        ({"provider": "cloudflared-named", "hostname": "a.example", "token": "short"}, "--token-file"),
        ({"provider": "cloudflared-named", "hostname": "a.example", "token": "two lines\n" * 9}, "--token-file"),
    ],
)  # fmt: skip
def test_a_wish_that_is_not_complete_says_what_is_missing(wish, hint):
    """Bad input."""
    with pytest.raises(CannotTunnel) as caught:
        launch(**wish)
    assert hint in caught.value.hint
