"""Files as resources: the content itself, by the rules of the tool that reads files."""

from __future__ import annotations

import base64
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2mcp.errors import NoSuchResource, ToolError
from a2mcp.host.paths import as_url
from a2mcp.library import filespace
from a2mcp.tools.context import Context, Limits


@pytest.fixture
def context(tmp_path):
    return Context(ticket=None, cwd=tmp_path, home=tmp_path, limits=Limits(), jobs=None, clock=None)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.binary(max_size=400))
def test_no_byte_is_lost(context, data):
    """Ours: text where it is text, else base64 of exactly what is there."""
    path = context.cwd / "f"
    path.write_bytes(data)

    found = filespace.read(as_url(path), context)

    assert (found.text is None) != (found.blob is None)
    if found.blob is not None:
        assert base64.b64decode(found.blob) == data
    elif data.isascii():
        assert found.text == data.decode()


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(name=st.binary(min_size=1, max_size=40).filter(lambda name: b"/" not in name and b"\0" not in name))
def test_any_name_can_be_addressed(context, name):
    """Ours: names are bytes."""
    if name in (b".", b".."):
        return
    path = context.cwd / os.fsdecode(name)
    path.write_bytes(b"x")

    assert filespace.read(as_url(path), context).text == "x"


def test_a_file_of_exactly_the_most_is_read_and_one_byte_more_is_refused(context):
    """Ours: bounded, and never a part that passes for the whole."""
    path = context.cwd / "f"
    path.write_bytes(b"a" * filespace.MOST)
    assert len(filespace.read(as_url(path), context).text) == filespace.MOST

    path.write_bytes(b"a" * (filespace.MOST + 1))
    with pytest.raises(ToolError, match="larger than") as caught:
        filespace.read(as_url(path), context)
    assert "read" in caught.value.hint


def test_what_is_no_file_is_refused_without_waiting(context):
    """Issue §6: FIFO, /proc, devices."""
    os.mkfifo(context.cwd / "pipe")
    (context.cwd / "endless").symlink_to("/dev/zero")

    def refused(name):
        with pytest.raises(ToolError):
            filespace.read(as_url(context.cwd / name), context)

    for name in ("pipe", "endless"):
        done = threading.Thread(target=refused, args=(name,), daemon=True)
        done.start()
        done.join(10)
        assert not done.is_alive()


@pytest.mark.parametrize("uri", ["file:///nowhere", "file:///etc/passwd/x"])
def test_what_is_not_there_is_no_resource(context, uri):
    """Reference §2.5."""
    with pytest.raises(NoSuchResource):
        filespace.read(uri, context)


@pytest.mark.parametrize("uri", ["file://other.example/x", "file:///%00", "file:///%2", "file:/"])
def test_odd_addresses_are_refused_or_read_and_never_break(context, uri):
    """Ours: a caller's mistake is told."""
    try:
        filespace.read(uri, context)
    except ToolError as error:
        assert str(error)  # noqa: PT017  # One of the two is as good.


def test_a_large_folder_is_listed_in_part_and_says_so(context):
    """Ours."""
    folder = context.cwd / "many"
    folder.mkdir()
    for number in range(filespace.ENTRIES + 5):
        (folder / f"{number:05}").touch()

    found = filespace.read(as_url(folder), context)

    assert found.mime_type == "inode/directory"
    assert found.text.splitlines()[-1].startswith("… 5 more")


def test_the_shelf_leaves_other_addresses_to_others():
    """Ours: other hosts may have resources, too."""
    from a2mcp.library.resources import Resources, Views

    views = Views(
        status=dict,
        sessions=list,
        agents=list,
        agent=lambda _session, _count: None,
        job=lambda _: None,
        audit=Path(),
        secret=lambda: "s",
    )
    assert Resources(views, files=True).read("other://x", None) is None
    assert Resources(views, files=False).read("file:///etc/passwd", None) is None
