"""The fence around a share: what a path, a link or a swap can reach, by the kernel's way and by our own."""

# ruff: noqa: PTH104, PTH109, PTH123, PTH208, PT011, BLE001, PT017, SIM105 - system calls and what they raise are the subject

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from a2mcp.errors import FileRefusal
from a2mcp.xfer import target
from a2mcp.xfer.root import Root, RootClosed

SECRET = b"SECRET-outside"


@pytest.fixture(params=[True, False], ids=["kernel", "walk"])
def root(request, tmp_path):
    """A share beside something secret, with links in, out and around."""
    inside = tmp_path / "share"
    (inside / "sub" / "deep").mkdir(parents=True)
    (inside / "a.txt").write_bytes(b"inside")
    (inside / "sub" / "b.txt").write_bytes(b"inside")
    (tmp_path / "share_evil").mkdir()
    (tmp_path / "share_evil" / "s.txt").write_bytes(SECRET)
    (tmp_path / "secret.txt").write_bytes(SECRET)
    links = {
        "in": "sub/b.txt",
        "in-absolute": str(inside / "sub" / "b.txt"),
        "in-folder": "sub",
        "in-up": "sub/deep/../b.txt",
        "out": "../secret.txt",
        "out-absolute": str(tmp_path / "secret.txt"),
        "out-folder": "..",
        "out-and-in": "../share/a.txt",
        "sibling": str(tmp_path / "share_evil"),
        "sub/up": "../../secret.txt",
        "sub/root": "..",
        "round": "round",
        "two": "in-folder/root/out",
        "proc": "/proc/self/root/etc/passwd",
    }
    for name, goal in links.items():
        (inside / name).symlink_to(goal)
    made = Root(str(inside), kernel=request.param)
    yield made
    made.close()


def read(root: Root, *parts: str) -> bytes:
    fd, _ = root.open_file(parts)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "parts",
    [
        ("a.txt",),
        ("in",),
        ("in-absolute",),
        ("in-folder", "b.txt"),
        ("in-up",),
        ("sub", "root", "a.txt"),
        ("sub", "b.txt"),
    ],
)
def test_links_that_stay_inside_work(root, parts):
    """Row X06; issue, "Confinement"."""
    assert read(root, *parts) == b"inside"
    assert root.status(parts).st_size == 6


@pytest.mark.parametrize(
    "parts",
    [
        ("out",),
        ("out-absolute",),
        ("out-folder", "secret.txt"),
        ("out-and-in",),
        ("sibling", "s.txt"),
        ("sub", "up"),
        ("round",),
        ("two",),
        ("proc",),
        ("in-folder", "up"),
    ],
)
def test_links_that_lead_out_reach_nothing(root, parts):
    """Rows X05 and X06: neither by content nor by status."""
    with pytest.raises(OSError):
        root.open_file(parts)
    with pytest.raises(OSError):
        root.status(parts)
    with pytest.raises(OSError):
        root.open_folder(parts)


def test_nothing_is_made_behind_a_link_that_leads_out(root, tmp_path):
    """Row F03: a new name below a link to elsewhere."""
    for parts in (("out-folder", "new"), ("sibling", "new", "er"), ("sub", "up", "new")):
        with pytest.raises(OSError):
            root.make_folders(parts)
    assert sorted(os.listdir(tmp_path)) == ["secret.txt", "share", "share_evil"]
    assert os.listdir(tmp_path / "share_evil") == ["s.txt"]


def test_folders_are_made_as_deep_as_asked(root, tmp_path):
    """Issue: PUT creates parents."""
    os.close(root.make_folders(("x", "y", "z")))
    os.close(root.make_folders(("in-folder", "made")))
    assert (tmp_path / "share/x/y/z").is_dir()
    assert (tmp_path / "share/sub/made").is_dir()


def test_what_is_no_file_is_refused_before_it_is_opened(root, tmp_path):
    """Issue, "Bad input": FIFOs, sockets, devices."""
    os.mkfifo(tmp_path / "share/fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.getcwd()
        os.chdir(tmp_path / "share")
        try:
            listener.bind("sock")
        finally:
            os.chdir(before)
        for name in ("fifo", "sock"):
            with pytest.raises(OSError, match="not a regular file"):
                root.open_file((name,))
    with pytest.raises(IsADirectoryError):
        root.open_file(("sub",))


def test_a_closed_root_lets_nobody_in_and_loses_no_descriptor(root):
    """Ours: the number of a closed handle may soon be another folder's."""
    before = len(os.listdir("/proc/self/fd"))
    root.close()
    root.close()
    assert len(os.listdir("/proc/self/fd")) == before - 1
    for ask in (root.status, root.open_folder, root.open_file):
        with pytest.raises(RootClosed):
            ask(("a.txt",))


def test_a_root_that_is_closed_while_used_keeps_its_handle_until_then(tmp_path):
    """Ours: as above, with threads."""
    (tmp_path / "a").write_bytes(b"a")
    faults: list[BaseException] = []
    for _ in range(50):
        root = Root(str(tmp_path))
        start = threading.Barrier(4)

        def use(root=root, start=start):
            start.wait()
            try:
                for _ in range(50):
                    root.status(("a",))
            except RootClosed:
                pass
            except BaseException as fault:
                faults.append(fault)

        threads = [threading.Thread(target=use) for _ in range(3)]
        for thread in threads:
            thread.start()
        start.wait()
        root.close()
        for thread in threads:
            thread.join()
    assert faults == []


# --- any path ---------------------------------------------------------------------------------------------------------

TRICKS = (
    "..", ".", "%2e%2e", "%2E.", "..%2f", "%2f", "%5c..", "..\\", "%00", "%c0%ae%c0%ae", "%c0%af", "%e0%80%ae",
    "%252e%252e", "%u002e", "\u00e9", "%ff", "%0a", "%0d%0a", "~", "out", "out-folder", "sibling", "sub", "up",
    "root", "in", "a.txt", "share_evil", "s.txt", "secret.txt", "proc", "", " ", "etc", "passwd", "...", "..;", "%",
    "%2", "%zz", "a" * 300,
)  # fmt: skip
PATHS = 20_000


def a_piece(chance: random.Random) -> str:
    """What may stand between two slashes."""
    kind = chance.randrange(3)
    if kind == 0:
        return chance.choice(TRICKS)
    if kind == 1:
        return chance.choice(TRICKS) + chance.choice(TRICKS)
    return "".join(chr(chance.randint(1, 255)) for _ in range(chance.randint(0, 8)))


def a_path(chance: random.Random) -> str:
    """A path below the share, most of it tricks."""
    return "/xfer/" + "/".join(a_piece(chance) for _ in range(chance.randint(0, 8)))


@pytest.fixture(scope="module")
def fenced(tmp_path_factory):
    """One share for thousands of paths, with both ways in."""
    base = tmp_path_factory.mktemp("fenced")
    inside = base / "share"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.txt").write_bytes(b"inside")
    (base / "secret.txt").write_bytes(SECRET)
    (base / "share_evil").mkdir()
    (base / "share_evil" / "s.txt").write_bytes(SECRET)
    for name, goal in {
        "out": "../secret.txt",
        "out-folder": "..",
        "sibling": str(base / "share_evil"),
        "in": "a.txt",
        "sub/up": "../..",
        "sub/root": "..",
        "proc": "/proc/self/root",
    }.items():
        (inside / name).symlink_to(goal)
    roots = [Root(str(inside)), Root(str(inside), kernel=False)]
    yield roots
    for root in roots:
        root.close()


def test_no_path_leaves_the_root(fenced):
    """Issue, "What it must show": 5,000 random paths and more, each by both ways; what is read is always from inside."""
    seed = random.randrange(1 << 32)
    chance, found = random.Random(seed), Counter()
    for number in range(PATHS):
        path = a_path(chance)
        try:
            found[reached(fenced, path)] += 1
        except Exception as error:
            error.add_note(f"path {number} of seed {seed}: {path!r}")
            raise
    assert found[b"inside"], f"some lead to a file; seed {seed}"


def reached(fenced: list[Root], path: str) -> bytes:
    """What a path leads to, by either way; nothing where there is none."""
    try:
        parts, _ = target.split(path)
    except FileRefusal as refusal:
        assert refusal.answer == 400
        return b""
    assert not {"", ".", ".."} & set(parts)
    found = []
    for root in fenced:
        try:
            found.append(read(root, *parts))
        except OSError:
            found.append(b"")
    assert found[0] == found[1] in (b"", b"inside")
    return found[0]


# --- a race -----------------------------------------------------------------------------------------------------------


class Swapper:
    """Turns a folder of the share into a link to the secret one and back, as fast as it can."""

    def __init__(self, base: Path) -> None:
        self._spot = base / "share" / "x"
        self._aside = base / "aside"
        self._link = base / "link"
        self._spot.mkdir()
        (self._spot / "f").write_bytes(b"inside")
        (base / "elsewhere").mkdir()
        (base / "elsewhere" / "f").write_bytes(SECRET)
        self._link.symlink_to(base / "elsewhere")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.is_set():
            os.rename(self._spot, self._aside)
            os.rename(self._link, self._spot)
            os.rename(self._spot, self._link)
            os.rename(self._aside, self._spot)


def naive(base: Path) -> bytes:
    """The check that many servers make: resolve, compare, then open the same name."""
    share = os.path.realpath(base / "share")
    if not os.path.realpath(base / "share/x/f").startswith(share + "/"):
        return b""
    with open(base / "share/x/f", "rb") as file:
        return file.read()


@pytest.mark.slow
def test_swapping_links_leaks_nothing_where_a_naive_check_does(tmp_path):
    """Issue, "What it must show"; security table §0 row 18: the same race against three ways to open."""
    (tmp_path / "share").mkdir()
    roots = [Root(str(tmp_path / "share")), Root(str(tmp_path / "share"), kernel=False)]
    got: dict[str, set[bytes]] = {"naive": set(), "ours": set()}
    inside = 0
    with Swapper(tmp_path):
        end = time.monotonic() + 3
        while time.monotonic() < end or (SECRET not in got["naive"] and time.monotonic() < end + 20):
            for root in roots:
                try:
                    got["ours"].add(read(root, "x", "f"))
                    inside += 1
                except OSError:
                    pass
            try:
                got["naive"].add(naive(tmp_path))
            except OSError:
                pass
    assert got["ours"] == {b"inside"}
    assert inside > 100
    assert SECRET in got["naive"]
    for root in roots:
        root.close()
