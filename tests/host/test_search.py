"""Searching, by ripgrep and by the built-in searcher alike: the same questions get the same answers from both."""

import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

from a2mcp.errors import BadArgument, ToolError
from a2mcp.host import process, ripgrep
from a2mcp.host.search import find_files, find_lines
from a2mcp.host.search_child import End, SearchChild
from a2mcp.host.search_query import Files, Lines, Tree


@pytest.fixture
def tree(tmp_path):
    """Make a tree with hidden, ignored, linked, binary and strangely named files."""
    for name in ("top.py", "a/b/deep.py", "a/skip.log", ".hidden/x.py", "build/out.py", ".git/c.py", "-e", "$(id);.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one\nneedle Two\nthree\n")
    (tmp_path / ".gitignore").write_text("*.log\n/build/\n")
    (tmp_path / "a" / ".gitignore").write_text("!kept.log\n")
    (tmp_path / "a" / "kept.log").write_text("needle\n")
    (tmp_path / "binary").write_bytes(b"\0needle\n")
    (tmp_path / "a" / "loop").symlink_to("..")
    return tmp_path


def never():
    return False


def lines(folder, pattern, **options):
    tree = Tree(folder=folder, **{key: options.pop(key) for key in ("name", "hidden", "gitignore") if key in options})
    seconds = options.pop("seconds", 20.0)
    cancelled = options.pop("cancelled", never)
    return find_lines(Lines(tree=tree, pattern=pattern, **options), cancelled=cancelled, seconds=seconds)


def files(folder, pattern, **options):
    tree = Tree(folder=folder, **{key: options.pop(key) for key in ("hidden", "gitignore") if key in options})
    return find_files(Files(tree=tree, pattern=pattern, **options), cancelled=never)


def where(found):
    return {(line.path, line.number, line.column) for line in found.lines}


@pytest.fixture
def children():
    """Say which children have begun since and still run; earlier ones are daemons that other tests share."""
    before = set(psutil.Process().children())
    return lambda: [child for child in psutil.Process().children() if child not in before and child.is_running()]


def test_lines_are_found_with_number_and_column(searcher, tree):
    """Issue §5: grep. Ignored, binary and git's own files are left out; hidden ones are not; links are not followed."""
    expected = {"top.py", "a/b/deep.py", ".hidden/x.py", "-e", "$(id);.py"}
    found = lines(tree, "Two")
    assert where(found) == {(name, 2, 8) for name in expected}
    assert [line.path for line in found.lines] == sorted(expected)
    assert not found.truncated
    assert found.searched


def test_gitignore_is_obeyed_only_if_asked_for(searcher, tree):
    """Issue §5: grep's and glob's gitignore."""
    assert {line.path for line in lines(tree, "needle").lines} >= {"a/kept.log"}
    everything = {line.path for line in lines(tree, "needle", gitignore=False).lines}
    assert everything >= {"a/skip.log", "build/out.py", ".git/c.py"}
    assert "a/skip.log" in files(tree, "*.log", gitignore=False).paths
    assert files(tree, "*.log").paths == ("a/kept.log",)


def test_the_rules_of_the_repository_hold_in_its_folders(searcher, tree):
    """Ours: git reads the rules above the folder, up to the top of the repository and no further."""
    (tree / "a" / "sub").mkdir()
    (tree / "a" / "sub" / "x.log").touch()
    assert files(tree / "a" / "sub", "*.log").paths == ()
    nested = tree / "a" / "own"
    (nested / ".git").mkdir(parents=True)
    (nested / "x.log").touch()
    assert files(nested, "*.log").paths == ("x.log",)


def test_a_glob_says_which_files_are_searched(searcher, tree):
    """Issue §5: grep's glob; it never brings back what is ignored."""
    assert {line.path for line in lines(tree, "needle", glob="a/**/*.{py,log}").lines} == {"a/b/deep.py", "a/kept.log"}
    assert {line.path for line in lines(tree, "needle", glob="!*.py").lines} == {"-e", "a/kept.log"}
    assert "build/out.py" not in {line.path for line in lines(tree, "needle", glob="*.py").lines}


def test_hidden_files_are_listed_only_if_asked_for(searcher, tree):
    """Issue §5: glob's hidden."""
    assert ".hidden/x.py" in files(tree, "*.py").paths
    assert ".hidden/x.py" not in files(tree, "*.py", hidden=False).paths
    (tree / ".dot.py").touch()
    assert ".dot.py" not in files(tree, "*.py", hidden=False).paths


def test_files_come_newest_first(searcher, tmp_path):
    """Issue §5: glob."""
    for age, name in enumerate(["new", "middle", "old"]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    found = files(tmp_path, "*", limit=2)
    assert (found.paths, found.total) == (("new", "middle"), 3)


def test_a_pattern_may_be_plain_text_of_any_case(searcher, tmp_path):
    """Issue §5: grep's literal and case."""
    (tmp_path / "f").write_text("a.(B\nabb\n")
    assert where(lines(tmp_path, ".(b", literal=True, case=False)) == {("f", 1, 2)}
    assert lines(tmp_path, ".(b", literal=True).lines == ()


@pytest.mark.parametrize("pattern", ["--files", "-e", "--pre=touch x", "$(touch x);`touch x`"])
def test_a_pattern_is_never_an_option_or_a_command(searcher, tree, pattern):
    """Row F14."""
    (tree / "text").write_text(f"say {pattern}\n")
    assert where(lines(tree, pattern, literal=True)) == {("text", 1, 5)}
    assert files(tree, pattern).paths in {(), ("-e",)}
    assert not (tree / "x").exists()


@pytest.mark.parametrize("name", ["-e", "--help", "a b", "new\nline", "ü€", "$(id)"])
def test_a_file_of_any_name_can_be_searched(searcher, tmp_path, name):
    """Rows F06 and F14."""
    (tmp_path / name).write_text("needle\n")
    assert where(lines(tmp_path, "needle", name=name)) == {(name, 1, 1)}
    assert where(lines(tmp_path, "needle")) == {(name, 1, 1)}
    assert files(tmp_path, "*").paths == (name,)


def test_a_name_that_is_not_utf8_comes_back(searcher, tmp_path):
    """Row F06."""
    name = os.fsdecode(b"b\xff\xfe")
    (tmp_path / name).write_text("needle\n")
    assert where(lines(tmp_path, "needle", name=name)) == {(name, 1, 1)}
    assert files(tmp_path, "*").paths == (name,)


def test_bytes_that_are_no_text_are_shown_as_escapes(searcher, tmp_path):
    """Ours: what is wrong with a line is visible, and the column counts it once."""
    (tmp_path / "f").write_bytes(b"ok\n\xff\x1b[31mneedle\x07\r\n")
    (found,) = lines(tmp_path, "needle").lines
    assert (found.number, found.text) == (2, r"\xff\x1b[31mneedle\x07")
    assert found.column == 7


def test_utf16_is_text(searcher, tmp_path):
    """Ours."""
    (tmp_path / "f").write_text("one\nthe needle\n", encoding="utf-16")
    assert where(lines(tmp_path, "needle")) == {("f", 2, 5)}


def test_a_pattern_may_end_at_the_end_of_a_windows_line(searcher, tmp_path):
    """Ours."""
    (tmp_path / "f").write_bytes(b"one\r\ntwo\r\n")
    (found,) = lines(tmp_path, "^two$").lines
    assert (found.number, found.text) == (2, "two")
    assert where(lines(tmp_path, "(?=t)two$")) == {("f", 2, 1)}


def test_files_of_one_age_come_in_order_of_their_names(searcher, tmp_path):
    """Ours: the same question has the same answer."""
    for name in ("b", "a", "c"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1, 1))
    assert files(tmp_path, "*", limit=2).paths == ("a", "b")


def test_a_very_long_line_of_utf16_keeps_its_place(searcher, tmp_path):
    """Ours: where a line cannot be shown, that is said instead of showing something else."""
    (tmp_path / "f").write_text("one\n" + "x" * 2_000_000 + "needle\n", encoding="utf-16")
    (found,) = lines(tmp_path, "needle").lines
    assert (found.number, found.column) == (2, 2_000_001)
    assert found.text == "(a very long line of UTF-16, which is not shown)"


def test_context_is_shown_around_hits(searcher, tmp_path):
    """Issue §5: grep's context."""
    (tmp_path / "f").write_text("".join(f"{n}\n" for n in range(1, 30)))
    found = lines(tmp_path, "^(10|12|20)$", context=2)
    assert [line.number for line in found.lines] == [8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 21, 22]
    assert [line.number for line in found.lines if line.column] == [10, 12, 20]


def test_no_more_hits_than_asked_for(searcher, tmp_path, children):
    """Issue §5: grep's limit; a full answer says so only if there is more."""
    (tmp_path / "f").write_text("x\n" * 50)
    assert (len(lines(tmp_path, "x", limit=49).lines), lines(tmp_path, "x", limit=49).truncated) == (49, True)
    assert (len(lines(tmp_path, "x", limit=50).lines), lines(tmp_path, "x", limit=50).truncated) == (50, False)
    few = lines(tmp_path, "x", limit=50, room=170)
    assert few.truncated
    assert len(few.lines) == 10
    assert not children()


@pytest.mark.parametrize(
    "pattern", ["(", "a[", "x{2,1}", r"\p{nonsense}", "(?<=x+)x", "(?P<look-around>", "look-around("]
)
def test_a_bad_pattern_is_a_clear_error(searcher, tree, pattern):
    """Try-out 20 and issue §5: it names the argument and says what is wrong."""
    with pytest.raises(BadArgument, match=r"'pattern': expected a regular expression, received .*: .+ .+") as caught:
        lines(tree, pattern)
    assert caught.value.field == "pattern"
    assert "literal" in caught.value.hint


@pytest.mark.parametrize("pattern", ["(?=x)x(?<!y)", r"(x)\1"])
def test_lookarounds_and_back_references_work(searcher, tmp_path, pattern):
    """Try-out 20."""
    (tmp_path / "x.txt").write_text("y" + "x" * 40)
    assert where(lines(tmp_path, pattern)) == {("x.txt", 1, 2)}


def test_lookarounds_are_refused_by_name_without_pcre2(tmp_path, monkeypatch):
    """Try-out 20: a ripgrep that was built without it."""
    fake = tmp_path / "rg"
    fake.write_text(
        "#!/bin/sh\ncase \"$*\" in *--pcre2*) echo 'rg: PCRE2 is not available in this build of ripgrep' >&2;;\n"
        "*) printf 'rg: regex parse error:\\n    (?=x)\\nerror: look-around, including look-ahead, is not supported\\n' >&2;;\n"
        "esac\nexit 2\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr(ripgrep, "find", lambda: str(fake))
    with pytest.raises(BadArgument, match="without look-around and back-references") as caught:
        lines(tmp_path, "(?=x)x")
    assert "PCRE2" in caught.value.hint


def test_a_searcher_that_dies_is_an_error_or_cannot_start(tmp_path, monkeypatch):
    """Ours: nothing is lost silently."""
    monkeypatch.setattr(ripgrep, "find", lambda: "/bin/true")
    with pytest.raises(ToolError, match="without an answer"):
        lines(tmp_path, "x")
    monkeypatch.setattr(ripgrep, "find", lambda: str(tmp_path / "missing"))
    with pytest.raises(ToolError, match="could not be started"):
        lines(tmp_path, "x")


def test_a_pattern_that_never_ends_is_ended(searcher, tmp_path, children):
    """Try-out 20: under five seconds, without a match or with a note; the other files are searched."""
    (tmp_path / "a.txt").write_text("x" * 40)
    (tmp_path / "b.txt").write_text("xxy")
    begun = time.monotonic()
    found = lines(tmp_path, "(x+x+)+y")
    assert time.monotonic() - begun < 5
    assert where(found) == {("b.txt", 1, 1)}
    if searcher == "built-in":
        assert any("a.txt: given up after 2 s" in note for note in found.notes)
        assert any("ripgrep is not installed" in note for note in found.notes)
    assert not children()


def test_time_over_means_a_partial_answer_with_a_note(tmp_path, monkeypatch, children):
    """Ours: the deadline ends the child, whatever it is doing."""
    fake = tmp_path / "rg"
    fake.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 60; done\n")
    fake.chmod(0o755)
    monkeypatch.setattr(ripgrep, "find", lambda: str(fake))
    begun = time.monotonic()
    found = lines(tmp_path, "x", seconds=0.3)
    assert time.monotonic() - begun < 5
    assert found.lines == ()
    assert found.searched is None
    assert any("Stopped after 0.3 s" in note for note in found.notes)
    assert not children()


def test_a_search_that_nobody_waits_for_is_ended(tmp_path, monkeypatch, children):
    """Row F12: cancellable."""
    fake = tmp_path / "rg"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setattr(ripgrep, "find", lambda: str(fake))
    gone = threading.Event()
    gone.set()
    begun = time.monotonic()
    found = lines(tmp_path, "x", cancelled=gone.is_set)
    assert time.monotonic() - begun < 5
    assert any("cancelled" in note for note in found.notes)
    assert not children()


def test_complaints_are_counted_and_the_first_is_shown(tmp_path, monkeypatch):
    """Ours: what could not be read is said, on one line of printable text."""
    fake = tmp_path / "rg"
    fake.write_text(
        "#!/bin/sh\nprintf 'rg: ./a\\033: Permission denied (os error 13)\\nrg: ./b: Permission denied\\n' >&2\n"
        'echo \'{"data":{"stats":{"searches":3}},"type":"summary"}\'\nexit 2\n'
    )
    fake.chmod(0o755)
    monkeypatch.setattr(ripgrep, "find", lambda: str(fake))
    found = lines(tmp_path, "x")
    assert found.searched == 3
    assert found.notes == (r"2 paths could not be searched, first ./a\x1b: Permission denied (os error 13)",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_counted_not_fatal(searcher, tree):
    """Ours."""
    (tree / "a").chmod(0)
    try:
        found = lines(tree, "Two")
    finally:
        (tree / "a").chmod(0o755)
    assert ("top.py", 2, 8) in where(found)
    assert any("could not be searched" in note for note in found.notes)


def test_pipes_sockets_and_devices_are_passed_by(searcher, tmp_path, monkeypatch):
    """Ours: a pipe without a writer holds nobody."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        (tmp_path / "f").write_text("needle\n")
        assert where(lines(tmp_path, "needle")) == {("f", 1, 1)}


def test_a_folder_without_end_is_bounded(searcher):
    """Row F12: /proc."""
    begun = time.monotonic()
    found = find_files(Files(tree=Tree(folder=Path("/proc/self")), pattern="status"), cancelled=never, seconds=10)
    assert time.monotonic() - begun < 15
    assert "status" in found.paths


def test_the_child_gets_none_of_our_secrets(tmp_path, monkeypatch):
    """Row C06, and a configuration that would change what ripgrep does."""
    monkeypatch.setenv("A2MCP_TOKEN", "sekrit")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/x")
    process.inherited.cache_clear()
    with SearchChild(["/usr/bin/env"], tmp_path, seconds=10, cancelled=never) as child:
        output = b"".join(child.chunks())
    process.inherited.cache_clear()
    assert b"PATH=" in output
    assert b"A2MCP_" not in output
    assert b"sekrit" not in output
    assert b"RIPGREP" not in output


def test_a_child_that_floods_stderr_is_kept_short(tmp_path):
    """Ours: bounded memory."""
    script = "i=0; while [ $i -lt 20000 ]; do echo 'a complaint of some length' >&2; i=$((i+1)); done; echo done"
    with SearchChild(["/bin/sh", "-c", script], tmp_path, seconds=30, cancelled=never) as child:
        assert b"".join(child.chunks()) == b"done\n"
        assert child.end is End.DONE
    assert sum(map(len, child.complaints)) < 70_000


def test_the_built_in_searcher_imports_nothing_from_the_tree_it_searches(tmp_path, monkeypatch):
    """Ours: a module of the caller's, named like one of ours or Python's, is not run."""
    monkeypatch.setattr(ripgrep, "find", lambda: None)
    for name in ("base64.py", "msgspec.py", "sitecustomize.py"):
        (tmp_path / name).write_text("open('ran', 'w')\n# needle\n")
    (tmp_path / "a2mcp").mkdir()
    (tmp_path / "a2mcp" / "__init__.py").write_text("open('ran', 'w')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert len(lines(tmp_path, "needle").lines) == 3
    assert not (tmp_path / "ran").exists()


def test_ripgrep_is_the_systems_or_comes_with_us(tmp_path, monkeypatch):
    """Issue §5: system, else the wheel, else nothing."""
    ripgrep.find.cache_clear()
    (tmp_path / "rg").write_text("#!/bin/sh\n")
    (tmp_path / "rg").chmod(0o755)
    try:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert ripgrep.find() == str(tmp_path / "rg")
        ripgrep.find.cache_clear()
        monkeypatch.setenv("PATH", "/nowhere")
        ours = ripgrep.find()
        assert ours is None or subprocess.run([ours, "--version"], capture_output=True, check=True).stdout
        ripgrep.find.cache_clear()
        monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "none"))
        assert ripgrep.find() is None
    finally:
        ripgrep.find.cache_clear()
