"""Downloads against a real server on loopback: the three gates, going on, and what a redirect may do."""

import threading
import time

import pytest
from asset_server import PROGRAM
from harness import until

from a2mcp.errors import CannotObtain
from a2mcp.obtain.download import Download, Gates, _next

QUICK = Gates(size=1 << 20, idle_s=0.3, total_s=20.0)
"""For silence; a busy machine can be silent for so long, too."""
PATIENT = Gates(size=1 << 20, idle_s=20.0, total_s=20.0)


@pytest.fixture
def part(tmp_path):
    return tmp_path / "x.part"


def fetch(url, part, gates=PATIENT):
    """Run one download; returns it and everything it told."""
    told = []
    download = Download(url, part, gates, lambda done, total: told.append((done, total)))
    download.run()
    return download, told


def test_the_bytes_arrive_and_how_many_is_told(assets, part):
    """Issue 4 §4."""
    download, told = fetch(f"{assets.url}/asset", part)

    assert part.read_bytes() == PROGRAM
    assert told[0] == (0, len(PROGRAM))
    assert told[-1] == (len(PROGRAM), len(PROGRAM))
    assert len(told) > 2
    assert not download.resumed


def test_a_size_that_is_not_announced_is_not_needed(assets, part):
    """Ours."""
    assets.behave(announce=None)
    _, told = fetch(f"{assets.url}/asset", part)

    assert part.read_bytes() == PROGRAM
    assert told[-1] == (len(PROGRAM), None)


def test_a_server_that_stalls_is_given_up_and_what_came_is_kept(assets, part):
    """Seed, xfer: 30 s without a byte, counted anew with each byte, reported as such and not as a slow one."""
    assets.behave(stall_after=1000)
    began = time.monotonic()
    with pytest.raises(CannotObtain, match=r"No byte of .* came for 0\.3 s"):
        fetch(f"{assets.url}/asset", part, QUICK)

    assert time.monotonic() - began < 10
    assert part.read_bytes() == PROGRAM[:1000]


def test_a_server_that_accepts_and_says_nothing_is_given_up(assets, part):
    """Seed, xfer: the window is open before the request is sent."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(CannotObtain, match="No byte"):
        fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/asset", part, QUICK)
    assert not part.exists()


def test_a_slow_one_that_goes_on_arriving_may_take_all_the_time_and_no_more(assets, part):
    """Seed, xfer: no wall clock over all but the last gate."""
    assets.behave(drip=0.02)
    began = time.monotonic()
    with pytest.raises(CannotObtain, match=r"not complete after 2\.5 s"):
        fetch(f"{assets.url}/asset", part, Gates(idle_s=1.5, total_s=2.5))

    assert 2.4 < time.monotonic() - began < 10
    assert part.stat().st_size > 10


def test_a_head_that_drips_ends_at_the_last_gate(part):
    """Ours: a byte of a header is a byte, so the window alone would wait for ever."""
    import socket

    stop = threading.Event()

    def drip(server):
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
            while not stop.wait(0.02):
                connection.sendall(b"a")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        try:
            with pytest.raises(CannotObtain, match=r"not complete after 1\.5 s"):
                fetch(f"http://127.0.0.1:{server.getsockname()[1]}/asset", part, Gates(idle_s=1.0, total_s=1.5))
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize("announce", [-1, None])
def test_a_file_over_the_size_gate_is_refused_and_not_kept(assets, part, announce):
    """Seed, xfer: 64 MB; also where the server does not say how large it is."""
    assets.behave(announce=announce)
    with pytest.raises(CannotObtain, match="larger than 1000 bytes"):
        fetch(f"{assets.url}/asset", part, Gates(size=1000))
    assert not part.exists()


def test_a_transfer_that_breaks_off_goes_on_where_it_was(assets, part):
    """Issue 4 §4: resumed."""
    assets.behave(stop_after=5000)
    with pytest.raises(CannotObtain, match="could not be fetched"):
        fetch(f"{assets.url}/asset", part)
    assert part.read_bytes() == PROGRAM[:5000]

    assets.behave(stop_after=None)
    download, told = fetch(f"{assets.url}/asset", part)
    assert part.read_bytes() == PROGRAM
    assert download.resumed
    assert assets.asked[-1]["range"] == "bytes=5000-"
    assert told[0] == (5000, len(PROGRAM))


def test_a_server_without_ranges_begins_anew(assets, part):
    """Ours: 200 to a Range is the whole."""
    part.write_bytes(b"old" * 100)
    assets.behave(ranges=False)
    download, _ = fetch(f"{assets.url}/asset", part)
    assert part.read_bytes() == PROGRAM
    assert not download.resumed


def test_a_part_that_is_past_the_end_is_fetched_anew(assets, part):
    """Ours: 416 to a Range."""
    part.write_bytes(PROGRAM + b"more")
    fetch(f"{assets.url}/asset", part)
    assert part.read_bytes() == PROGRAM


@pytest.mark.parametrize("status", [404, 403, 500, 204])
def test_an_answer_without_the_file_is_named(assets, part, status):
    """Ours."""
    assets.behave(status=status, data=b"")
    with pytest.raises(CannotObtain, match=f"answered {status}"):
        fetch(f"{assets.url}/asset", part)
    assert not part.exists()


def test_redirects_are_followed_and_told_nothing(assets, part):
    """Brief: a redirect to another host is trusted with nothing; releases live behind one."""
    assets.behave(redirects={"/asset": f"{assets.url.replace('127.0.0.1', 'localhost')}/there", "/there": "here"})
    fetch(f"{assets.url}/asset", part)

    assert part.read_bytes() == PROGRAM
    assert [one["path"] for one in assets.asked] == ["/asset", "/there", "/here"]
    assert all(not {"authorization", "referer"} & one.keys() for one in assets.asked)
    assert all(
        "cookie" not in one for one in assets.asked if one["host"].startswith("localhost:") and one["path"] == "/there"
    )


def test_redirects_without_end_are_given_up(assets, part):
    """Ours."""
    assets.behave(redirects={"/asset": "/asset"})
    with pytest.raises(CannotObtain, match="more than 5 times"):
        fetch(f"{assets.url}/asset", part)
    assert len(assets.asked) == 6


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://user:pass@127.0.0.1/x"])
def test_a_redirect_out_of_the_web_is_not_followed(assets, part, target):
    """Brief: only http and https."""
    assets.behave(redirects={"/asset": target})
    with pytest.raises(CannotObtain, match=r"not followed|could not be fetched"):
        fetch(f"{assets.url}/asset", part)
    assert not part.exists()


def test_a_redirect_from_https_to_http_is_not_followed():
    """Ours: nobody on the way may change what https protected."""
    with pytest.raises(CannotObtain, match="not followed"):
        _next("https://a.example/x", "http://a.example/x")
    assert _next("https://a.example/x", "https://b.example/x") == "https://b.example/x"


def test_a_proxy_of_the_environment_is_not_used(assets, part, monkeypatch):
    """Brief: no proxy of the environment is trusted with anything."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    fetch(f"{assets.url}/asset", part)
    assert part.read_bytes() == PROGRAM


def test_nobody_there_is_said(part):
    """Ours."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(CannotObtain, match="could not be fetched"):
        fetch(f"http://127.0.0.1:{port}/asset", part)


@pytest.mark.parametrize("early", [True, False])
def test_a_download_is_cancelled_from_another_thread(assets, part, early):
    """Ours: a daemon that goes down waits for no download."""
    assets.behave(stall_after=100)
    told, said = [], []
    download = Download(f"{assets.url}/asset", part, Gates(), lambda done, _total: told.append(done))

    def run():
        with pytest.raises(CannotObtain) as caught:
            download.run()
        said.append(str(caught.value))

    thread = threading.Thread(target=run)
    if early:
        download.cancel()
    thread.start()
    if not early:
        until(lambda: told and told[-1], what="the first bytes")
        download.cancel()
    thread.join(5)
    assert said == [f"{assets.url}/asset was not fetched: it was cancelled."]
    download.cancel()


def test_a_disk_that_takes_nothing_is_said(assets, tmp_path):
    """Bad input: a full disk."""
    with pytest.raises(CannotObtain, match="cannot be written"):
        fetch(f"{assets.url}/asset", tmp_path / "no such folder" / "x.part")
