"""Whole files on disk: replaced at once or not at all, never wider than they end up, never waited for."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from a2mcp import files


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """Let a test choose the umask and put the old one back."""
    old = os.umask(0o022)
    yield os.umask
    os.umask(old)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o666), (0o027, 0o640)])
def test_a_new_file_gets_what_the_umask_leaves(tmp_path, umask, mask, expected):
    """Issue 2, section 5: new files honour umask."""
    umask(mask)
    files.write_atomic(tmp_path / "new", b"x")
    assert mode(tmp_path / "new") == expected


def test_a_given_mode_is_the_mode_whatever_the_umask(tmp_path, umask):
    """Row U10: files the daemon makes under umask 000."""
    umask(0o000)
    files.write_atomic(tmp_path / "secret", b"x", mode=0o600)
    assert mode(tmp_path / "secret") == 0o600


def test_the_temporary_file_is_never_wider_than_the_file(tmp_path, umask):
    """Row U10: never a wider moment."""
    umask(0o000)
    seen = []

    def look():
        seen.extend(mode(path) for path in tmp_path.iterdir() if path.name.startswith(files.TEMP_PREFIX))

    files.write_atomic(tmp_path / "secret", b"x", mode=0o600, check=look)
    assert seen == [0o600]


def test_an_existing_file_keeps_mode_and_attributes(tmp_path):
    """Issue 2, section 5: mode kept."""
    path = tmp_path / "run.sh"
    path.write_bytes(b"old")
    path.chmod(0o751)
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes on this file system")
    files.write_atomic(path, b"new")
    assert (path.read_bytes(), mode(path), os.getxattr(path, "user.note")) == (b"new", 0o751, b"kept")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_an_existing_file_keeps_its_owner(tmp_path):
    """Issue 2, section 5 (ours): owner kept when possible."""
    path = tmp_path / "theirs"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    path.chmod(0o4755)
    files.write_atomic(path, b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, mode(path)) == (1234, 2345, 0o4755)


def test_a_link_is_replaced_and_its_target_left_alone(tmp_path):
    """Row C04: never write through a symlink."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "link").symlink_to(victim)
    files.write_atomic(tmp_path / "link", b"ours")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "link").is_symlink()


def test_a_failed_check_leaves_the_old_file_and_nothing_else(tmp_path):
    """Issue 2, section 5: no leftovers on any failure."""
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def refuse():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        files.write_atomic(path, b"new", check=refuse)
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["file"])


@pytest.mark.parametrize("step", ["write", "fsync", "fchmod"])
def test_an_error_at_any_step_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step):
    """Row C02: ENOSPC or EIO at any step."""
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space"):
        files.write_atomic(path, b"new")
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["file"])


def test_short_writes_are_gone_on_with(tmp_path, monkeypatch):
    """Row U04: a short write is not the end."""
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, bytes(data[:3])))
    files.write_atomic(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_a_name_of_255_bytes_can_be_written(tmp_path):
    """Row F06: names of 255 bytes."""
    path = tmp_path / ("n" * 255)
    files.write_atomic(path, b"x")
    assert path.read_bytes() == b"x"


def test_readers_see_the_old_bytes_or_the_new_ones(tmp_path):
    """Issue 2, section 5: atomic."""
    path = tmp_path / "file"
    sides = (b"a" * 50_000, b"b" * 70_000)
    path.write_bytes(sides[0])
    done = threading.Event()
    torn = []

    def watch():
        while not done.is_set():
            if (data := path.read_bytes()) not in sides:
                torn.append(len(data))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for turn in range(100):
        files.write_atomic(path, sides[turn % 2], sync=False)
    done.set()
    watcher.join()
    assert torn == []


@pytest.mark.parametrize("new", [b"", b"short", b"much longer than it was before"])
def test_overwriting_keeps_the_file_and_changes_the_content(tmp_path, new):
    """Issue 2, section 5: hard links kept."""
    path = tmp_path / "file"
    path.write_bytes(b"old content")
    with path.open("r+b") as file:
        files.overwrite(file.fileno(), new)
    assert path.read_bytes() == new


def test_overwriting_that_fails_puts_the_old_bytes_back(tmp_path, monkeypatch):
    """Row U04: EIO in the middle loses nothing."""
    path = tmp_path / "file"
    path.write_bytes(b"old content")
    whole = os.write
    calls = iter([5, None])

    def write(descriptor, data):
        match next(calls, 0):
            case 5:
                return whole(descriptor, bytes(data[:5]))
            case None:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return whole(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    with path.open("r+b") as file, pytest.raises(OSError, match="Input/output"):
        files.overwrite(file.fileno(), b"something else altogether")
    assert path.read_bytes() == b"old content"


def test_reading_is_bounded(tmp_path):
    """Row C03: a settings file of 100 MB is refused."""
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert files.read_bounded(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes") as caught:
        files.read_bounded(path, 4)
    assert caught.value.errno == errno.EFBIG


def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path):
    """Row C04: a FIFO must not block; devices and sockets neither."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name in ("fifo", "socket"):
            with pytest.raises(OSError, match=f"is a {name}, not a regular file|is a FIFO"):
                files.read_bounded(tmp_path / name, 10)
    with pytest.raises(OSError, match="character device"):
        files.read_bounded(Path("/dev/zero"), 10)
    with pytest.raises(IsADirectoryError):
        files.read_bounded(tmp_path, 10)
