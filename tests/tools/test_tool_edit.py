"""The tool edit, as a caller sees it."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import threading
import time

import pytest
from file_calls import Files, body, everything
from hypothesis import given
from hypothesis import strategies as st

from a2mcp import files
from a2mcp.errors import BadArgument, ChangedMeanwhile, ToolError


@pytest.fixture
def tools(tmp_path):
    return Files(tmp_path)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def test_an_edit_changes_the_place_and_returns_a_diff(tools, tmp_path):
    """Issue 2, section 5: returns a unified diff."""
    (tmp_path / "f").write_text("one\ntwo\nthree\n")
    result = tools.edit("f", ("two", "2"), ("three\n", "3"))
    assert (tmp_path / "f").read_bytes() == b"one\n2\n3"
    assert body(result) == (
        f"Changed 2 places in {tmp_path}/f (utf-8), sha256 is now {sha(b'one-2-3'.replace(b'-', bytes([10])))}.\n"
        f"--- {tmp_path}/f\n+++ {tmp_path}/f\n"
        "@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+3\n\\ No newline at end of file"
    )
    assert result.structured["sha256"] == sha(b"one\n2\n3")


def written(path):
    """What changes when a file is written or replaced, and not when it is read."""
    now = path.stat()
    return now.st_ino, now.st_mode, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def test_a_dry_run_only_tells(tools, tmp_path):
    """Issue 2, section 5: dry_run."""
    (tmp_path / "f").write_text("a\n")
    before = written(tmp_path / "f")
    result = tools.edit("f", ("a", "b"), dry_run=True)
    assert "Would change 1 place" in body(result)
    assert "-a\n+b" in body(result)
    assert written(tmp_path / "f") == before


def test_all_edits_or_none(tools, tmp_path):
    """Issue 2, section 5: all edits or none."""
    (tmp_path / "f").write_text("a\nb\n")
    with pytest.raises(ToolError, match=r"edits\[1\]\.oldText is not in .*; nothing was changed"):
        tools.edit("f", ("a", "x"), ("zzz", "y"))
    assert (tmp_path / "f").read_text() == "a\nb\n"


def test_every_place_changes_when_asked(tools, tmp_path):
    """Issue 2, section 5: all."""
    (tmp_path / "f").write_text("a b a\n")
    tools.edit("f", {"oldText": "a", "newText": "c", "all": True})
    assert (tmp_path / "f").read_text() == "c b c\n"


def test_a_latin_1_neighbour_keeps_its_bytes(tools, tmp_path):
    """Try-out 09: bytes 9.. identical, EF BF BD must not appear."""
    data = b"rate = 7\n# co\xfbt: 3 \xa4, caf\xe9\n"
    (tmp_path / "taux.cfg").write_bytes(data)
    tools.edit("taux.cfg", ("rate = 7", "rate = 8"))
    assert (tmp_path / "taux.cfg").read_bytes() == b"rate = 8" + data[8:]


def test_a_character_the_charset_does_not_have_is_refused(tools, tmp_path):
    """Issue 2, section 5: clear error, file untouched."""
    data = b"caf\xe9 = 1\n"
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(BadArgument) as caught:
        tools.edit("f", ("caf", "Caf"), ("1", "→"))
    assert caught.value.field == "edits[1].newText"
    assert "cp1252" in str(caught.value)
    assert "'→' (U+2192)" in str(caught.value)
    assert (tmp_path / "f").read_bytes() == data


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-8"])
def test_marks_and_wide_charsets_survive(tools, tmp_path, charset):
    """Row F09: BOM, UTF-16."""
    (tmp_path / "f").write_bytes("\ufeffa é 😀\r\nb\r\n".encode(charset))
    tools.edit("f", ("a é", "ä\nx"))
    assert (tmp_path / "f").read_bytes() == "\ufeffä\r\nx 😀\r\nb\r\n".encode(charset)


pieces = st.lists(st.sampled_from(["a", "é", "😀", " ", "\n", "\r\n", "\t", "x" * 9]), max_size=25).map("".join)


@given(
    before=pieces,
    after=pieces,
    new=pieces,
    dress=st.sampled_from([("utf-8", ""), ("utf-8", "\ufeff"), ("utf-16-le", "\ufeff"), ("utf-16-be", "\ufeff")]),
)
def test_bytes_outside_the_hunk_are_identical(tmp_path_factory, before, after, new, dress):
    """Row F09: the property itself, at the level of the file."""
    charset, bom = dress
    folder = tmp_path_factory.getbasetemp()
    head, tail = (bom + before).encode(charset), after.encode(charset)
    (folder / "f").write_bytes(head + "MARK".encode(charset) + tail)
    Files(folder).edit("f", ("MARK", new))
    result = (folder / "f").read_bytes()
    assert result.startswith(head)
    assert result.endswith(tail)
    middle = result[len(head) : len(result) - len(tail)].decode(charset)
    assert middle.replace("\r\n", "\n") == new.replace("\r\n", "\n")


def test_modes_links_and_leftovers(tools, tmp_path):
    """Try-out 12: an edit through a link keeps the link, the mode and the folder clean."""
    (tmp_path / "real").mkdir()
    script = tmp_path / "real/run.sh"
    script.write_text("#!/bin/sh\necho old\n")
    script.chmod(0o755)
    (tmp_path / "run").symlink_to("real/run.sh")
    tools.edit("run", ("old", "new"))
    assert (tmp_path / "run").is_symlink()
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert subprocess.run([script], capture_output=True, check=True, timeout=20).stdout == b"new\n"
    assert everything(tmp_path) == {"real", "real/run.sh", "run"}


def test_hard_links_stay_together(tools, tmp_path):
    """Issue 2, section 5: hard links kept."""
    (tmp_path / "one").write_text("old\n")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    tools.edit("two", ("old", "a longer text"))
    assert (tmp_path / "one").read_text() == "a longer text\n"


def together(*calls):
    """Run the calls at the same moment; returns what each returned or raised."""
    barrier = threading.Barrier(len(calls))
    outcomes = [None] * len(calls)

    def run(index, call):
        barrier.wait()
        try:
            outcomes[index] = call()
        except ChangedMeanwhile as error:
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize("linked", [False, True])
def test_two_edits_at_once_both_land(tools, tmp_path, linked):
    """Try-out 01: 50 rounds; both words, or one explicit "changed meanwhile"; through one name or two."""
    for turn in range(50):
        path = tmp_path / f"list{turn}.txt"
        path.write_text("".join(f"{n}\n" for n in range(201, 301)))
        other = path
        if linked:
            other = tmp_path / f"other{turn}.txt"
            other.hardlink_to(path)
        outcomes = together(
            lambda path=path: tools.edit(path, ("240\n", "forty\n")),
            lambda other=other: tools.edit(other, ("280\n", "eighty\n")),
        )
        lines = path.read_text().split("\n")[:-1]
        assert len(lines) == 100
        for outcome, word in zip(outcomes, ("forty", "eighty"), strict=True):
            assert (word in lines) != isinstance(outcome, ChangedMeanwhile)


def test_two_edits_with_one_hash_have_one_winner(tools, tmp_path):
    """Row F08: one wins, the other gets a conflict; no lost update."""
    path = tmp_path / "f"
    path.write_text("a b\n")
    base = sha(b"a b\n")
    outcomes = together(
        lambda: tools.edit("f", ("a", "A"), base_sha256=base),
        lambda: tools.edit("f", ("b", "B"), base_sha256=base),
    )
    assert sum(isinstance(outcome, ChangedMeanwhile) for outcome in outcomes) == 1
    assert path.read_text() in {"A b\n", "a B\n"}


@pytest.mark.parametrize("change", ["content", "folder", "link", "gone", "replaced"])
def test_what_becomes_of_the_file_during_the_call_is_noticed(tools, tmp_path, monkeypatch, change):
    """Row F10: replaced by a folder or link between read and edit; isError, nothing else touched."""
    path = tmp_path / "f"
    path.write_text("old\n")
    (tmp_path / "victim").write_text("precious old\n")
    whole = files.write_atomic

    def late(target, data, **options):
        if change == "content":
            path.write_text("odd\n")
        else:
            path.unlink()
        if change == "folder":
            path.mkdir()
        if change == "link":
            path.symlink_to("victim")
        if change == "replaced":
            path.write_text("old\n")
        whole(target, data, **options)

    monkeypatch.setattr(files, "write_atomic", late)
    with pytest.raises(ChangedMeanwhile, match="changed meanwhile"):
        tools.edit("f", ("old", "new"))
    assert (tmp_path / "victim").read_text() == "precious old\n"
    assert everything(tmp_path) - {"f"} == {"victim"}
    assert not path.is_file() or "new" not in path.read_text()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x7fELF\0\1", "is binary, not text; nothing was changed"),
        (b"\xff\xfea", "is binary"),
    ],
)
def test_binary_files_are_not_edited(tools, tmp_path, data, said):
    """Row F09: binary gives a clear error."""
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(ToolError, match=said):
        tools.edit("f", ("a", "b"))
    assert (tmp_path / "f").read_bytes() == data


def test_a_file_of_100_mb_is_refused_at_once(tools, tmp_path):
    """Row F09: 100 MB."""
    (tmp_path / "f").touch()
    os.truncate(tmp_path / "f", 100 << 20)
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"too large to edit \(100\.0 MiB; at most 16\.0 MiB\).*sed"):
        tools.edit("f", ("a", "b"))
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (("", "x"), "edits[0].oldText"),
        (("a", "a"), "edits[0].newText"),
        (("\ud800", "x"), "edits[0].oldText"),
        (("a", "x\udc00"), "edits[0].newText"),
    ],
)
def test_an_edit_that_cannot_be_meant_is_refused_by_field(tools, tmp_path, edit, field):
    """Issue 2, section 5, and try-out 08 (a)."""
    (tmp_path / "f").write_text("a\n")
    with pytest.raises(BadArgument) as caught:
        tools.edit("f", edit)
    assert caught.value.field == field
    str(caught.value).encode()


@pytest.mark.parametrize(
    ("path", "said"), [("nothing", "ENOENT"), (".", "EISDIR"), ("fifo", "is a FIFO"), ("f/x", "ENOTDIR")]
)
def test_what_is_not_a_file_is_a_clear_error(tools, tmp_path, path, said):
    """Rows F01 and F10."""
    (tmp_path / "f").write_text("a\n")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ToolError, match=said):
        tools.edit(path, ("a", "b"))


def test_a_long_diff_is_cut(tmp_path):
    """Issue 2, section 5: sizes capped."""
    (tmp_path / "f").write_text("a\n" * 40_000)
    result = Files(tmp_path).edit("f", {"oldText": "a", "newText": "b", "all": True})
    assert len(body(result)) < 55_000
    assert (tmp_path / "f").read_text() == "b\n" * 40_000
