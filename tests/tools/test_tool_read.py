"""The tool read, as a caller sees it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from file_calls import Files, body, header
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.errors import BadArgument, ToolError
from a2mcp.host import window
from a2mcp.tools import read


@pytest.fixture
def tools(tmp_path):
    return Files(tmp_path)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def image(size, kind="PNG", mode="RGB", **options):
    from PIL import Image

    out = io.BytesIO()
    Image.new(mode, size, "red").save(out, kind, **options)
    return out.getvalue()


def opened(block):
    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(block.data)))


def test_a_text_file_comes_with_numbers_and_a_header(tools, tmp_path):
    """Issue 2, section 5: path, sha256, charset, line ending, lines shown of total."""
    data = b"one\ntwo\n\nfour\n"
    (tmp_path / "a.txt").write_bytes(data)
    result = tools.read("a.txt")
    assert header(result) == f"[{tmp_path}/a.txt | sha256 {sha(data)} | utf-8 | LF | lines 1-4 of 4]"
    assert body(result).split("\n")[1:] == ["1\tone", "2\ttwo", "3\t", "4\tfour"]
    assert result.structured["totalLines"] == 4
    assert result.structured["sha256"] == sha(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "utf-8 | none | lines 0-0 of 0"),
        (b"a", "utf-8 | none, no line end at the end | lines 1-1 of 1"),
        (b"a\r\nb\r\n", "utf-8 | CRLF | lines 1-2 of 2"),
        (b"a\r\nb\n", "utf-8 | mixed (1 CRLF, 1 LF) | lines 1-2 of 2"),
        (b"\xef\xbb\xbfa\n", "utf-8 with BOM | LF"),
        ("é\n".encode("utf-16"), "utf-16-le with BOM | LF"),
        (b"rate = 7\n# co\xfbt: 3 \xa4, caf\xe9\n", "cp1252 (detected) | LF"),
    ],
)
def test_the_header_names_charset_and_line_ends(tools, tmp_path, data, said):
    """Issue 2, section 5, and try-out 09: readable text or the stated encoding."""
    (tmp_path / "f").write_bytes(data)
    assert said in header(tools.read("f"))


@pytest.mark.parametrize(
    ("arguments", "rows", "said"),
    [
        ({"offset": 3, "limit": 2}, ["3\tline 3", "4\tline 4"], "lines 3-4 of 9"),
        ({"offset": -2}, ["8\tline 8", "9\tline 9"], "lines 8-9 of 9"),
        ({"offset": -3, "limit": 1}, ["7\tline 7"], "lines 7-7 of 9"),
        ({"offset": -99, "limit": 1}, ["1\tline 1"], "lines 1-1 of 9"),
        ({"offset": 9, "limit": 50}, ["9\tline 9"], "lines 9-9 of 9"),
    ],
)
def test_offset_and_limit_choose_lines(tools, tmp_path, arguments, rows, said):
    """Issue 2, section 5: offset, limit, negative offset from the end."""
    (tmp_path / "f").write_text("".join(f"line {n}\n" for n in range(1, 10)))
    result = tools.read("f", **arguments)
    assert body(result).split("\n")[1:] == rows
    assert said in header(result)


def test_a_huge_limit_is_lowered_and_said_so(tools, tmp_path):
    """Try-out 22: clamped and said so."""
    (tmp_path / "f").write_text("a\n")
    assert "limit 9007199254740993 was lowered to 100000" in header(tools.read("f", limit=9007199254740993))


def test_lines_that_are_not_there_are_an_error(tools, tmp_path):
    """Issue 2, section 5 (ours): no silent default."""
    (tmp_path / "f").write_text("a\n")
    with pytest.raises(ToolError, match=r"offset 7 is past the end of .*, which has 1 lines"):
        tools.read("f", offset=7)
    with pytest.raises(BadArgument, match="'offset'"):
        tools.read("f", offset=0)


def test_much_text_is_cut_in_the_middle_and_says_how_to_go_on(tmp_path):
    """Issue 2, section 5: about 50 KiB, cut in the middle, with the call that reads what is missing."""
    tools = Files(tmp_path)
    (tmp_path / "f").write_text("".join(f"line {n}\n" for n in range(1, 20_001)))
    result = tools.read("f")
    text = body(result)
    assert 45_000 < len(text) < 55_000
    assert "1\tline 1\n" in text
    assert text.endswith("20000\tline 20000")
    start, count = int(text.split('"offset": ')[1].split(",")[0]), int(text.split('"limit": ')[1].split("}")[0])
    assert f"{start - 1}\tline {start - 1}\n[… {count} lines not shown here" in text
    assert f"\n{start + count}\tline {start + count}\n" in text
    assert f"lines 1-{start - 1} and {start + count}-20000 of 20000" in header(result)


def test_a_file_of_more_lines_than_bytes_are_shown_is_cut_as_well(tmp_path):
    """Ours: 60,000 lines came as none at all, under a header that said that they were all there."""
    tools = Files(tmp_path)
    (tmp_path / "f").write_text("x\n" * 60_000)
    result = tools.read("f")
    assert "\n1\tx\n2\tx\n" in body(result)
    assert body(result).endswith("\n60000\tx")
    assert " and " in header(result)


def test_a_long_line_is_cut_in_its_middle(tools, tmp_path):
    """Row F05: a line that is the whole file."""
    (tmp_path / "min.js").write_text("a" * 3_000_000 + "b\n")
    text = body(tools.read("min.js"))
    assert len(text) < 52_000
    assert "characters of this line not shown; bash: sed -n 1p" in text
    assert text.endswith("b")


def test_a_folder_is_listed(tools, tmp_path):
    """Issue 2, section 5: directory → listing; row F06: every name round-trips or is shown."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "link").symlink_to("a.txt")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / os.fsdecode(b"caf\xe9\n")).touch()
    result = tools.read(".")
    assert "| folder | entries 1-5 of 5]" in header(result)
    assert body(result).split("\n")[1:] == [
        "a.txt  5 bytes",
        f"caf\\xe9\\n  0 bytes  (file://{tmp_path}/caf%E9%0A)",
        "link -> a.txt",
        "pipe  (FIFO)",
        "sub/",
    ]
    assert "lines 0-0 of 0" in header(tools.read(f"file://{tmp_path}/caf%E9%0A"))


def test_entries_that_are_not_there_are_an_error(tools, tmp_path):
    """Ours: as for lines; an empty folder has none."""
    (tmp_path / "d").mkdir()
    assert "entries 0-0 of 0" in header(tools.read("d"))
    for name in "abc":
        (tmp_path / "d" / name).touch()
    for offset in (4, 10**19):
        with pytest.raises(ToolError, match=rf"offset {offset} is past the end of .*, which has 3 entries"):
            tools.read("d", offset=offset)


def test_lines_beyond_a_large_file_are_past_its_end(tools, tmp_path):
    """Ours: all of it was looked through, so there is nothing that sed would find."""
    (tmp_path / "f").write_text(("x" * 1023 + "\n") * (16 * 1024 + 2))
    with pytest.raises(ToolError, match="offset 16387 is past the end of"):
        tools.read("f", offset=16387)
    assert "x" * 500 in body(tools.read("f", offset=16386))


def test_a_large_folder_is_listed_in_parts(tools, tmp_path):
    """Row F12: bounded."""
    for n in range(700):
        (tmp_path / f"f{n:03}").touch()
    assert 'entries 1-500 of 700 | more: "offset": 501]' in header(tools.read(tmp_path))
    assert body(tools.read(tmp_path, offset=-1)).endswith("f699  0 bytes")


def test_home_addresses_and_relative_paths_work(tools, tmp_path, monkeypatch):
    """Issue 2, section 5: ~, file:// and relative paths."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a b").write_text("x\n")
    for path in ("~/a b", f"file://{tmp_path}/a%20b", "a b", "./nowhere/../a b", tmp_path / "a b"):
        if "nowhere" in str(path):
            with pytest.raises(ToolError, match="ENOENT"):
                tools.read(path)
        else:
            assert body(tools.read(path)).endswith("1\tx")


def test_pictures_are_sent_as_pictures(tools, tmp_path):
    """Issue 2, section 5: image → image block."""
    data = image((30, 20))
    (tmp_path / "p.png").write_bytes(data)
    note, picture = tools.read("p.png").content
    assert "image: PNG, 30x20" in note.text
    assert (base64.b64decode(picture.data), picture.mime_type) == (data, "image/png")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "GIF", "WEBP"])
def test_large_pictures_are_scaled_down(tools, tmp_path, kind):
    """Issue 2, section 5: downscaled to 1568 px."""
    (tmp_path / "p").write_bytes(image((3000, 1000), kind))
    note, picture = tools.read("p").content
    assert opened(picture).size == (1568, 523)
    assert "3000x1000, sent as 1568x523" in note.text


@pytest.mark.parametrize(("mode", "channels"), [("RGB", 3), ("RGBA", 4)])
def test_noisy_pictures_come_under_one_megabyte(tools, tmp_path, mode, channels):
    """Issue 2, section 5: under 1 MB."""
    from PIL import Image

    size = (1400, 1200)
    Image.frombytes(mode, size, os.urandom(size[0] * size[1] * channels)).save(tmp_path / "noise.png", compress_level=0)
    picture = tools.read("noise.png").content[1]
    assert len(picture.data) < 1_000_000
    opened(picture).load()


def test_a_picture_that_would_unfold_to_gigabytes_is_not_decoded(tools, tmp_path):
    """Issue 2, section 5 (ours): decompression-bomb guard."""
    (tmp_path / "bomb.png").write_bytes(image((8_000, 8_000), mode="1"))
    began = time.monotonic()
    result = tools.read("bomb.png")
    assert len(result.content) == 1
    assert "binary: PNG image" in body(result)
    assert "more than are decoded" in body(result)
    assert time.monotonic() - began < 2


def test_a_broken_picture_is_said_to_be_one(tools, tmp_path):
    """Issue 2, section 5 (ours): its kind and size."""
    (tmp_path / "p.png").write_bytes(image((300, 200))[:60])
    assert "binary: PNG image, 60 bytes (60 bytes); it cannot be decoded" in body(tools.read("p.png"))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x7fELF\0\0", "ELF executable or library"),
        (b"PK\x03\x04\0\0", "ZIP archive"),
        (b"\0\1\2", "data"),
        (b"\xff\xfea", "UTF-16 text that is broken"),
    ],
)
def test_other_binary_gives_kind_and_size(tools, tmp_path, data, kind):
    """Issue 2, section 5: other binary → its kind and size."""
    (tmp_path / "f").write_bytes(data)
    assert f"sha256 {sha(data)} | binary: {kind}" in body(tools.read("f"))


def test_what_is_not_a_file_is_refused_at_once(tools, tmp_path):
    """Issue 2, section 5: FIFOs and devices never hang or flood."""
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path in ("fifo", "socket", "/dev/zero", "/dev/tty", "/dev/stdin/"):
            with pytest.raises(ToolError, match="Cannot read"):
                tools.read(path)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc here")
def test_proc_neither_hangs_nor_floods(tools):
    """Issue 2, section 5: /proc, whose files say they are empty."""
    assert f"Pid:\t{os.getpid()}" in body(tools.read("/proc/self/status"))
    for path in ("/proc/self/mem", "/proc/self/pagemap", "/proc/self/clear_refs", "/proc/self/environ"):
        with contextlib.suppress(ToolError):
            assert len(body(tools.read(path))) < 60_000


def test_a_file_that_gives_more_than_its_size_is_cut(tools, tmp_path, monkeypatch):
    """Row F05: a growing file."""
    (tmp_path / "f").write_text("".join(f"{n}\n" for n in range(1000)))
    monkeypatch.setattr(read, "_WHOLE", 1 << 20)
    real = os.fstat

    def lies(descriptor):
        return os.stat_result((real(descriptor)[0], *[0] * 9))

    monkeypatch.setattr(os, "fstat", lies)
    monkeypatch.setattr(read, "_UNSIZED", 100)
    result = tools.read("f", offset=3, limit=2)
    assert body(result).endswith("\n3\t2\n4\t3")
    assert "sha256 not computed: size unknown" in header(result)


def test_a_file_cut_short_while_it_is_read_is_read_to_its_end(tools, tmp_path, monkeypatch):
    """Row F05: truncated while read."""
    path = tmp_path / "f"
    path.write_text("a\n" * 100_000)
    whole = os.read
    cut = threading.Event()

    def shrinking(descriptor, size):
        if not cut.is_set():
            cut.set()
            os.truncate(path, 4)
        return whole(descriptor, size)

    monkeypatch.setattr(os, "read", shrinking)
    assert "lines 1-2 of 2" in header(tools.read("f"))


@pytest.fixture
def sparse(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b"".join(b"line %d\n" % n for n in range(1, 1001)))
        file.truncate(2 << 30)
        file.seek(-len(b"\nlast but one\nlast\n"), os.SEEK_END)
        file.write(b"\nlast but one\nlast\n")
    return path


def test_two_gigabytes_take_under_a_second(tools, tmp_path, sparse):
    """Issue 2, section 5: 2 GB sparse file under 1 s, its lines found from both ends."""
    (tmp_path / "hole").touch()
    os.truncate(tmp_path / "hole", 2 << 30)
    began = time.monotonic()
    assert "binary: data, 2.0 GiB (2147483648 bytes)" in body(tools.read("hole"))
    assert time.monotonic() - began < 1
    began = time.monotonic()
    first = tools.read(sparse, offset=500, limit=2)
    last = tools.read(sparse, offset=-2)
    assert time.monotonic() - began < 1
    assert body(first).endswith("500\tline 500\n501\tline 501")
    assert body(last).endswith("-2\tlast but one\n-1\tlast")
    assert "sha256 not computed: 2.0 GiB are too many" in header(first)
    assert "of an unknown total" in header(first)


def test_a_line_beyond_what_is_looked_through_is_an_error_that_says_so(tools, sparse, monkeypatch):
    """Row F05: bounded memory and time."""
    monkeypatch.setattr(window, "SCANNED", 4 << 20)
    for offset in (5000, -500):
        with pytest.raises(ToolError, match=r"not among those looked through.*use bash"):
            tools.read(sparse, offset=offset)


def test_a_terabyte_costs_nothing(tools, tmp_path):
    """Row F05: 1 TB sparse file."""
    (tmp_path / "huge").touch()
    try:
        os.truncate(tmp_path / "huge", 1 << 40)
    except OSError:
        pytest.skip("the file system has no such sizes")
    assert "1.0 TiB" in body(tools.read("huge"))


def test_a_line_longer_than_the_window_is_admitted(tools, tmp_path):
    """Row F05: 5 GB line."""
    (tmp_path / "f").write_bytes(b"x" * (17 << 20))
    result = tools.read("f")
    assert "the line goes on after what was read" in header(result)
    assert len(body(result)) < 52_000


@given(
    lines=st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), min_size=1, max_size=60),
    final=st.booleans(),
    at=st.integers(1, 60),
)
def test_windows_begin_where_the_line_begins(tmp_path_factory, lines, final, at):
    """Issue 2, section 5: offsets by line within a bounded scan."""
    data = b"\n".join(lines) + (b"\n" if final else b"")
    lines = data.split(b"\n")[: -1 if data.endswith(b"\n") else None]
    if not data or at > len(lines):
        return
    path = tmp_path_factory.getbasetemp() / "window"
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        forward = window.from_line(descriptor, at, 1 << 20)
        backward = window.from_end(descriptor, at, len(data), 1 << 20)
    finally:
        os.close(descriptor)
    assert forward.data.split(b"\n")[0] == lines[at - 1]
    assert backward.data == data[len(data) - len(backward.data) :]
    assert backward.data.split(b"\n")[0] == lines[len(lines) - at]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nothing", "No such file or directory (ENOENT). List its folder with read"),
        ("file/x", "Not a directory (ENOTDIR)"),
        ("x" * 5000, "(ENAMETOOLONG)"),
        ("loop", "(ELOOP)"),
        ("caf\udce9", r"caf\xe9"),
        ("-n;$(touch owned)", "(ENOENT)"),
    ],
)
def test_what_cannot_be_read_is_a_clear_error(tools, tmp_path, path, said):
    """Rows F01, F06, F14."""
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ToolError) as caught:
        tools.read(path)
    assert said in str(caught.value)
    str(caught.value).encode()
    assert not (tmp_path / "owned").exists()


def test_plain_text_needs_no_heavy_module():
    """Issue 2 (ours): cold start and memory; heavy modules load with the first file that needs them."""
    code = (
        "import sys; from a2mcp.tools import read, write, edit;"
        "print(sorted({'PIL', 'charset_normalizer', 'difflib', 'subprocess', 'shlex'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.strip() == "[]"
