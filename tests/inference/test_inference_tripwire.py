"""The tripwire, in this very process: every way to a socket that Python's own libraries have."""

from __future__ import annotations

import asyncio
import http.client
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import httpx2
import pytest

from a2mcp.inference import severing, tripwire
from a2mcp.inference.destinations import Destinations, destinations, places_of
from a2mcp.inference.severing import located, sever
from a2mcp.inference.tripwire import SENTINEL, Tripped, Tripwire


@pytest.fixture
def listener():
    """Something that listens, and accepts only when it is asked to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def port(listener):
    return listener.getsockname()[1]


@pytest.fixture
def counted():
    return []


@pytest.fixture
def wire(counted):
    made = Tripwire(lambda: counted.append(1))
    yield made
    made.arm(None)


def bare(port):
    with socket.socket() as sock:
        sock.settimeout(5)
        sock.connect(("127.0.0.1", port))


def bare_by_errno(port):
    with socket.socket() as sock:
        sock.connect_ex(("127.0.0.1", port))


def bare_by_name(port):
    with socket.socket() as sock:
        sock.connect(("localhost", port))


def bare_v6(port):
    with socket.socket(socket.AF_INET6) as sock:
        sock.connect(("::ffff:127.0.0.1", port, 0, 0))


def datagram(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("127.0.0.1", port))


def datagram_in_parts(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"x"], [], 0, ("127.0.0.1", port))


def by_http_client(port):
    http.client.HTTPConnection("127.0.0.1", port, timeout=5).request("GET", "/")


def by_httpx2(port):
    httpx2.get(f"http://127.0.0.1:{port}/", timeout=5)


def by_httpx2_async(port):
    async def go():
        async with httpx2.AsyncClient() as client:
            await client.get(f"http://127.0.0.1:{port}/", timeout=5)

    asyncio.run(go())


def by_urllib(port):
    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)


def by_asyncio(port):
    asyncio.run(asyncio.open_connection("localhost", port))


def by_lookup(port):
    socket.getaddrinfo("127.0.0.1", port)


WAYS = [
    bare, bare_by_errno, bare_by_name, bare_v6, datagram, datagram_in_parts, by_http_client, by_httpx2,
    by_httpx2_async, by_urllib, by_asyncio, by_lookup,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_out_of_this_process_leads_to_a_guarded_place(way, wire, port, listener, counted):
    """Source: issue, item 4: every HTTP library and a raw socket in this process is covered."""
    wire.arm(destinations([f"http://127.0.0.1:{port}/v1"], []))
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each library has a word of its own for it
        way(port)
    assert SENTINEL in str(raised.value) or "All connection attempts failed" in str(raised.value)
    assert counted
    listener.settimeout(0.05)
    with pytest.raises(TimeoutError):
        listener.accept()


def test_a_name_is_not_even_looked_up(wire, counted):
    """Source: issue, item 4: name resolution."""
    wire.arm(destinations(["https://api.example.invalid/v1"], []))
    for look_up in (socket.gethostbyname, socket.gethostbyname_ex, lambda name: socket.getaddrinfo(name, 443)):
        with pytest.raises(Tripped, match=SENTINEL):
            look_up("API.example.invalid")
    assert len(counted) == 3


def test_a_bare_socket_that_is_given_a_name_is_not_connected(wire, counted):
    """Ours: such a name is looked up before anything is audited; what follows is not let through."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, 9)
    except OSError:
        pytest.skip("this machine's own name has no address")
    wire.arm(Destinations(hosts=frozenset({name.lower()})))
    with pytest.raises(Tripped), socket.socket() as sock:
        sock.connect((name, 9))
    assert len(counted) == 1


def test_every_other_place_is_reached_as_before(wire, listener, port, tmp_path, counted):
    """Source: seed: "非推理出口不拦是设计如此"."""
    wire.arm(destinations([f"http://127.0.0.1:{port + 1}/v1", "https://api.example.invalid"], []))
    bare(port)
    socket.getaddrinfo("localhost", port)
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(tmp_path / "s"))
        server.listen()
        client.connect(str(tmp_path / "s"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
        sock.sendmsg([b"x"])
    assert counted == []


def test_a_disarmed_wire_holds_nobody_back(wire, port, listener, counted):
    """Source: issue, item 4: `true` restores."""
    places = destinations([f"http://127.0.0.1:{port}/v1"], [])
    assert wire.arm(places) is None
    assert wire.arm(None) == places
    bare(port)
    assert counted == []


def test_one_hook_is_enough_for_a_process(port):
    """Ours: a hook cannot be removed, so there must not be one a takeover."""
    wires = [Tripwire(lambda: None) for _ in range(20)]
    for wire in wires:
        wire.arm(Destinations())
        wire.arm(None)
    assert len(tripwire._installed) == 1
    assert not tripwire._armed


def test_a_hook_that_is_kept_out_is_noticed():
    """Ours: the interpreter does not say so, and a wire that is not there must not count as armed."""
    script = """
import sys
from a2mcp.inference.destinations import Destinations
from a2mcp.inference.tripwire import Tripwire
def first(event, args):
    if event == "sys.addaudithook":
        raise RuntimeError("no")
sys.addaudithook(first)
wire = Tripwire(lambda: None)
try:
    wire.arm(Destinations())
except RuntimeError as error:
    sys.exit(0 if wire.guarded is None and "takes no audit hook" in str(error) else 3)
sys.exit(4)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=30).returncode == 0


def ask(connection):
    connection.request("GET", "/")
    return connection.getresponse()


def test_a_connection_that_was_open_before_is_cut(listener, port):
    """Ours: a library keeps connections, and a wire stops new ones only."""
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    kept.connect()
    other, _ = listener.accept()
    with socket.create_server(("127.0.0.1", 0)) as bystander, other:
        spared = socket.create_connection(bystander.getsockname())
        assert sever(destinations([f"http://127.0.0.1:{port}/v1"], [])) == 1
        assert other.recv(1) == b""
        spared.sendall(b"still here")
        spared.close()
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(kept)
    kept.close()


def test_a_name_is_cut_at_the_addresses_it_has_and_at_its_port_alone(monkeypatch):
    """Ours: a connection knows addresses, a provider has a name; and a caller may be where a provider is."""
    addresses = {"a.example": ["10.1.2.3", "::ffff:10.1.2.4"]}
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda name, port: [(0, 0, 0, "", (each, port)) for each in addresses.get(name, [])]
    )
    ends = places_of(["https://a.example/v1", "http://b.example", "https://c.example:8443", "http://10.0.0.1:8000"])
    monkeypatch.setattr(severing, "_connected", lambda: [(7, ("10.1.2.3", 443)), (8, ("127.0.0.1", 50_123))])

    found = located(ends, known=None)
    assert found == Destinations(places=frozenset({("10.1.2.3", 443), ("10.1.2.4", 443), ("10.0.0.1", 8000)}))
    assert not found.meant("10.0.0.1", 50_123)
    assert located(ends, known=destinations(["https://a.example"], [])).places == {("10.0.0.1", 8000)}


def test_a_name_is_not_looked_up_where_nothing_can_be_connected_to_it(monkeypatch):
    """Ours: a daemon that starts denied, or has no network, must not wait for a resolver."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("it was looked up"))
    assert not located(places_of(["https://a.example/v1"]), known=None)


def test_a_resolver_that_hangs_holds_nothing_up(monkeypatch):
    """Ours: the switch must be turned where there is no network, too."""
    released = threading.Event()
    monkeypatch.setattr(severing, "LOOKUP_S", 0.05)
    monkeypatch.setattr(severing, "_connected", lambda: [(7, ("10.1.2.3", 443))])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: iter(lambda: released.wait(20), True))
    began = time.monotonic()
    assert not located(places_of([f"https://host{n}.example/v1" for n in range(5)]), known=None)
    assert time.monotonic() - began < 5
    released.set()
