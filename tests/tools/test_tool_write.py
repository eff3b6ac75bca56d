"""The tool write, as a caller sees it."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from file_calls import Files, body, everything

from a2mcp import files
from a2mcp.errors import BadArgument, ChangedMeanwhile, ToolError


@pytest.fixture
def tools(tmp_path):
    return Files(tmp_path)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_made_with_its_folders(tools, tmp_path):
    """Issue 2, section 5: parents made; returns path, bytes, new sha256."""
    result = tools.write("a/b/c.txt", "é\r\n")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"\xc3\xa9\r\n"
    assert body(result) == f"Made {tmp_path}/a/b/c.txt: 4 bytes, sha256 {result.structured['sha256']}."
    assert result.structured == {
        "path": f"{tmp_path}/a/b/c.txt",
        "bytes": 4,
        "sha256": sha(b"\xc3\xa9\r\n"),
        "created": True,
    }
    assert everything(tmp_path) == {"a", "a/b", "a/b/c.txt"}


def test_a_rewritten_file_keeps_its_mode(tools, tmp_path):
    """Try-out 12: .env.local is still 0600."""
    path = tmp_path / ".env.local"
    path.write_text("KEY=1")
    path.chmod(0o600)
    assert body(tools.write(".env.local", "KEY=2")).startswith("Wrote ")
    assert (path.read_text(), mode(path)) == ("KEY=2", 0o600)


def test_links_are_followed_and_stay(tools, tmp_path):
    """Issue 2, section 5: symlink followed not replaced; row F03: also a dangling one and a linked folder."""
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "file").symlink_to("real/old")
    (tmp_path / "dangling").symlink_to("real/missing")
    (tmp_path / "real/old").write_text("old")
    for name, real in (("folder/new", "new"), ("file", "old"), ("dangling", "missing")):
        tools.write(name, "content")
        assert (tmp_path / "real" / real).read_text() == "content"
    assert all((tmp_path / name).is_symlink() for name in ("folder", "file", "dangling"))
    assert everything(tmp_path / "real") == {"new", "old", "missing"}


def test_hard_links_stay_together(tools, tmp_path):
    """Issue 2, section 5: hard links kept."""
    (tmp_path / "one").write_text("a longer old content")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    tools.write("two", "new")
    assert (tmp_path / "one").read_text() == "new"
    assert (tmp_path / "one").samefile(tmp_path / "two")
    assert everything(tmp_path) == {"one", "two"}


def test_a_failure_leaves_no_file_and_no_folder(tools, tmp_path, monkeypatch):
    """Issue 2, section 5: no leftovers on any failure."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="No space left on device \\(ENOSPC\\)\\. The disk is full"):
        tools.write("a/b/c.txt", "x")
    assert everything(tmp_path) == set()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_devices_and_pipes_are_not_written(tools, tmp_path):
    """Issue 2, section 5 (ours): only files are."""
    os.mkfifo(tmp_path / "fifo")
    for path in ("fifo", "/dev/full", "/dev/null"):
        with pytest.raises(ToolError, match="not a regular file"):
            tools.write(path, "x")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("folder", "Is a directory (EISDIR)"),
        ("folder/", "names a folder"),
        ("new/", "names a folder"),
        ("file/x/y", "(ENOTDIR)"),
        ("x" * 256, "(ENAMETOOLONG)"),
        ("y/" * 2500 + "z", "(ENAMETOOLONG)"),
        ("loop", "(ELOOP)"),
        ("a\0b", "NUL"),
        ("", "an empty string"),
    ],
)
def test_a_path_that_cannot_be_written_is_a_clear_error(tools, tmp_path, path, said):
    """Rows F01 and F06."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ToolError) as caught:
        tools.write(path, "x")
    assert said in str(caught.value)
    assert everything(tmp_path) == {"folder", "file", "loop"}
    assert (tmp_path / "file").read_text() == "old"


@pytest.mark.parametrize(
    "name", [b"\xff", b"new\nline", b"n" * 255, "😀".encode(), b"-rf", b"a;$(touch owned)", b"..."]
)
def test_any_name_can_be_written(tools, tmp_path, name):
    """Rows F06 and F14: round trip, no option or shell meaning."""
    tools.write(os.fsdecode(name), "x")
    assert [os.fsencode(path.name) for path in tmp_path.iterdir()] == [name]


def test_names_that_differ_in_composition_are_two_files(tools, tmp_path):
    """Row F06: NFC and NFD."""
    tools.write("caf\u00e9", "1")
    tools.write("cafe\u0301", "2")
    assert len(everything(tmp_path)) == 2


def test_a_lone_surrogate_is_named_in_escaped_form(tools, tmp_path):
    """Try-out 08 (a): naming the argument in escaped form."""
    with pytest.raises(BadArgument) as caught:
        tools.write("f", "x\udc00y")
    assert str(caught.value) == (
        "Argument 'content': expected valid Unicode, received the lone surrogate \\udc00 at character 1."
    )
    assert everything(tmp_path) == set()


def test_base_sha256_guards_against_another_content(tools, tmp_path):
    """Issue 2, section 5: base_sha256 mismatch says changed meanwhile; row F08: stale hash."""
    path = tmp_path / "f"
    path.write_text("mine")
    first = tools.write("f", "theirs", base_sha256=sha(b"mine").upper())
    with pytest.raises(ChangedMeanwhile, match=f"changed meanwhile: its sha256 is now {first.structured['sha256']}"):
        tools.write("f", "again", base_sha256=sha(b"mine"))
    assert path.read_text() == "theirs"
    with pytest.raises(ChangedMeanwhile, match="it does not exist now"):
        tools.write("gone/f", "x", base_sha256=sha(b"mine"))
    assert everything(tmp_path) == {"f"}


def test_a_change_between_the_look_and_the_rename_is_noticed(tools, tmp_path, monkeypatch):
    """Row F10: somebody else replaces the file during the call."""
    path = tmp_path / "f"
    path.write_text("old")
    whole = files.write_atomic

    def late(target, data, **options):
        path.write_text("alt")
        whole(target, data, **options)

    monkeypatch.setattr(files, "write_atomic", late)
    with pytest.raises(ChangedMeanwhile):
        tools.write("f", "new", base_sha256=sha(b"old"))
    assert path.read_text() == "alt"
    assert everything(tmp_path) == {"f"}


def run_as_nobody(tmp_path, code):
    """Run code of a caller without root's powers; returns what it printed."""
    program = (
        "import sys; from pathlib import Path; from file_calls import Files;"
        f"tools = Files(Path({str(tmp_path)!r}))\ntry:\n    {code}\nexcept Exception as error:\n    print(error)"
    )
    command = [sys.executable, "-c", program]
    if os.geteuid() == 0:
        tool = shutil.which("setpriv")
        if tool is None:
            pytest.skip("root, and no setpriv here to be somebody else")
        command = [tool, "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", *command]
        for path in (tmp_path, *tmp_path.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        if not all(parent.stat().st_mode & 0o001 for parent in tmp_path.parents):
            tmp_path.parent.chmod(0o711)
            tmp_path.parents[1].chmod(0o711)
    roots = os.pathsep.join(str(Path(__file__).parents[up]) for up in (2, 1))
    environment = {**os.environ, "PYTHONPATH": roots, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/", env=environment)
    if "Permission denied" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip("the checkout is not readable for others")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("call", ["tools.write('real/f', 'new')", "tools.edit('real/f', ('old', 'new'))"])
def test_a_read_only_folder_is_a_permission_error(tmp_path, call):
    """Try-out 12 and row F11: permission error, content intact, no temporary file."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/f").write_text("old")
    (tmp_path / "real").chmod(0o555)
    try:
        assert "Permission denied (EACCES)" in run_as_nobody(tmp_path, call)
    finally:
        (tmp_path / "real").chmod(0o755)
    assert everything(tmp_path) == {"real", "real/f"}
    assert (tmp_path / "real/f").read_text() == "old"


def test_a_read_only_file_is_not_replaced_behind_its_back(tmp_path):
    """Row F11 (ours): a rename would get around the mode."""
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o444)
    assert "Permission denied (EACCES)" in run_as_nobody(tmp_path, "tools.write('f', 'new')")
    assert (tmp_path / "f").read_text() == "old"


def test_an_immutable_file_is_an_error_with_its_reason(tools, tmp_path):
    """Row F11: immutable flag."""
    (tmp_path / "f").write_text("old")
    chattr = shutil.which("chattr")
    if chattr is None or subprocess.run([chattr, "+i", tmp_path / "f"], capture_output=True, check=False).returncode:
        pytest.skip("chattr +i does not work here")
    try:
        with pytest.raises(ToolError, match=r"\(EPERM\)|\(EACCES\)"):
            tools.write("f", "new")
    finally:
        subprocess.run([chattr, "-i", tmp_path / "f"], check=True)
    assert everything(tmp_path) == {"f"}
    assert (tmp_path / "f").read_text() == "old"


def test_a_program_that_runs_can_be_replaced(tools, tmp_path):
    """Row F11: ETXTBSY does not arise, because the running file is another one."""
    program = tmp_path / "sleep"
    shutil.copy(shutil.which("sleep"), program)
    running = subprocess.Popen([program, "60"])
    try:
        tools.write("sleep", "#!/bin/sh\nexit 3\n")
    finally:
        running.kill()
        running.wait()
    assert subprocess.run([program], check=False).returncode == 3


def test_a_mount_point_is_written_in_place(tools, tmp_path, monkeypatch):
    """Issue 2, section 5 (ours): a file that is a mount point, as in containers, refuses a rename."""
    path = tmp_path / "f"
    path.write_text("old")
    inode = path.stat().st_ino

    def busy(*_):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(Path, "rename", busy)
    tools.write("f", "new content")
    assert (path.read_text(), path.stat().st_ino) == ("new content", inode)
    assert everything(tmp_path) == {"f"}
