"""endpoint.json: the address of the running daemon."""

import json
import os
import stat
from pathlib import Path

import pytest

from a2mcp.config import endpoint
from a2mcp.config.endpoint import Endpoint
from a2mcp.errors import UnusableFile

SERVING = Endpoint(
    url="http://127.0.0.1:8123/mcp",
    bridge_url="http://127.0.0.1:8123/",
    token="t" * 43,
    pid=4711,
    version="0.1.0",
    started_at="2026-10-16T04:35:23.000Z",
)


@pytest.fixture
def path(tmp_path):
    """Name the file."""
    return tmp_path / "endpoint.json"


def test_the_file_has_the_documented_members_and_is_private(path):
    """Issue §8: url, bridge_url, token, pid, version, started_at; 0600."""
    before = os.umask(0)
    try:
        endpoint.publish(path, SERVING)
    finally:
        os.umask(before)
    assert json.loads(path.read_text()) == {
        "url": "http://127.0.0.1:8123/mcp", "bridge_url": "http://127.0.0.1:8123/", "token": "t" * 43, "pid": 4711,
        "version": "0.1.0", "started_at": "2026-10-16T04:35:23.000Z",
    }  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert endpoint.read(path) == SERVING


def test_a_link_in_its_place_is_replaced_and_not_followed(path, tmp_path):
    """Ours: a token must not go where somebody points."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    endpoint.publish(path, SERVING)
    assert victim.read_text() == "precious"
    assert not path.is_symlink()


def test_it_is_withdrawn_by_the_process_it_names_only(path):
    """Issue §8: removed at exit."""
    endpoint.publish(path, SERVING)
    endpoint.withdraw(path, pid=1)
    assert path.exists()
    endpoint.withdraw(path, pid=4711)
    endpoint.withdraw(path, pid=4711)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"url": 5}'])
def test_what_is_no_endpoint_reads_as_none(path, content):
    """Ours: a file that anybody may have put there ends no command."""
    assert endpoint.read(path) is None
    path.write_bytes(content)
    assert endpoint.read(path) is None


def test_a_folder_that_is_gone_is_a_clear_error(tmp_path):
    """Ours."""
    with pytest.raises(UnusableFile, match="cannot be written"):
        endpoint.publish(tmp_path / "gone" / "endpoint.json", SERVING)


def test_its_token_is_never_printed():
    """Ours: a log line may hold any value's repr."""
    assert "ttt" not in repr(SERVING)


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "http://127.0.0.1:80"), ("::1", "http://[::1]:80"), ("box", "http://box:80")]
)
def test_an_address_has_the_brackets_that_ipv6_needs(host, url):
    """RFC 3986 §3.2.2."""
    assert endpoint.address(host, 80) == url


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero")
def test_a_device_in_its_place_is_no_endpoint(tmp_path):
    """Ours: reading it whole would never end."""
    (tmp_path / "endpoint.json").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")

    assert endpoint.read(tmp_path / "endpoint.json") is None
    assert endpoint.read(tmp_path / "pipe") is None
