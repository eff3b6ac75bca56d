"""Uploads over a real socket: whole or not at all, whatever breaks on the way."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from edge import TOKEN
from files_edge import files_edge, leftovers, until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    """A share, and something beside it."""
    (tmp_path / "shared" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def served(folder):
    """The share, served with the default settings."""
    with files_edge(folder) as made:
        yield made


def head(path: str, length: int, *more: str, method: str = "PUT") -> bytes:
    lines = [
        f"{method} /xfer/{path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {TOKEN}",
        f"Content-Length: {length}",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# --- what is taken ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["a.bin", "sub/a.bin", "x/y/z/a.bin", "dots...", ".hidden", "-rf", "%C3%A9%20%22", "%FF", "a'b;$(c)", "n" * 255],
)
def test_a_file_is_there_with_its_parents(served, folder, path):
    """As dufs does, §6.3: 201, missing folders are made; trailing dots are names like others here."""
    data = os.urandom(300_000)
    answer = served.ask("PUT", path, content=data)
    assert (answer.status_code, answer.content) == (201, b"")
    got = served.get(path)
    assert got.content == data
    assert got.headers["etag"] == answer.headers["etag"]
    assert leftovers(folder) == []


def test_a_new_file_has_the_mode_that_the_umask_leaves(served, folder):
    """Ours: as any program would make it."""
    served.ask("PUT", "a", content=b"x")
    umask = os.umask(0)
    os.umask(umask)
    assert (folder / "a").stat().st_mode & 0o777 == 0o666 & ~umask


def test_an_empty_file_and_a_chunked_body_are_taken(served, folder):
    """Row X10: chunked."""
    assert served.ask("PUT", "empty").status_code == 201
    assert (folder / "empty").read_bytes() == b""
    pieces = [os.urandom(50_000) for _ in range(40)]
    assert served.ask("PUT", "chunked", content=iter(pieces)).status_code == 201
    assert (folder / "chunked").read_bytes() == b"".join(pieces)


def test_more_than_the_old_limit_is_taken_and_the_set_limit_is_exact(folder):
    """Row X10: 128 MiB + 1 is a matter of the setting; one byte over it is 413, announced or counted."""
    with files_edge(folder, body_bytes=200_000) as served:
        assert served.ask("PUT", "fits", content=b"x" * 200_000).status_code == 201
        assert served.ask("PUT", "announced", content=b"x" * 200_001).status_code == 413
        assert served.ask("PUT", "counted", content=iter([b"x" * 100_000] * 3)).status_code == 413
        until(lambda: everything(folder) == ["fits", "sub"], "nothing is left of the others")


def test_connections_are_used_again_after_uploads(served):
    """Ours: an upload is a request like any other."""
    with served.connect() as sock:
        for n in range(5):
            sock.sendall(head(f"n{n}", 3) + b"abc")
            assert sock.recv(4096).startswith(b"HTTP/1.1 201 ")


# --- what is not overwritten ------------------------------------------------------------------------------------------


def test_a_file_that_is_not_empty_is_not_overwritten(served, folder):
    """Issue: never, unless xfer.overwrite is set; an empty one may be filled."""
    (folder / "full").write_bytes(b"old")
    (folder / "empty").write_bytes(b"")
    for body in (b"new", b""):
        assert served.ask("PUT", "full", content=body).status_code == 403
    assert (folder / "full").read_bytes() == b"old"
    assert served.ask("PUT", "empty", content=b"new").status_code == 201
    assert (folder / "empty").read_bytes() == b"new"
    assert leftovers(folder) == []


def test_overwriting_where_it_is_set_replaces_at_once(folder):
    """Issue: xfer.overwrite."""
    (folder / "full").write_bytes(b"old")
    with files_edge(folder, overwrite=True) as served, (folder / "full").open("rb") as reader:
        assert served.ask("PUT", "full", content=b"new").status_code == 201
        assert reader.read() == b"old"
    assert (folder / "full").read_bytes() == b"new"


@pytest.mark.parametrize("exists", [False, True])
def test_uploads_of_one_name_do_not_mix(served, folder, exists):
    """Row X10: the same name twice in parallel; also where an empty file has it already."""
    if exists:
        (folder / "same").touch()
    bodies = [bytes([n]) * 400_000 for n in range(1, 9)]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda body: served.ask("PUT", "same", content=body).status_code, bodies))
    assert sorted(statuses) == [201] + [403] * 7
    assert (folder / "same").read_bytes() == bodies[statuses.index(201)]
    assert leftovers(folder) == []


@pytest.mark.parametrize("name", ["link", "link/new", "dangling", "up/evil"])
def test_nothing_is_written_through_a_link_that_leads_out(served, folder, name):
    """Rows X05 and F03."""
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "dangling").symlink_to(folder.parent / "outside" / "born")
    (folder / "up").symlink_to("..")
    assert served.ask("PUT", name, content=b"evil").status_code in (403, 404)
    assert everything(folder.parent / "outside") == []
    assert not (folder.parent / "evil").exists()


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/xfer/a%0Ab", 400),
        ("/xfer/..", 400),
        ("/xfer/%2e%2e/a", 400),
        ("/xfer/..%2fa", 400),
        ("/xfer/a%00", 400),
        ("/xfer/%7f", 400),
        ("/xfer/.a2mcp-0011.tmp", 400),
        ("/xfer/" + "n" * 256, 400),
        ("/xfer/sub", 403),
        ("/xfer/sub/", 403),
        ("/xfer/", 403),
        ("/xfer/file/below", 409),
        ("/xfer/" + "d/" * 3000 + "f", 404),
    ],
)
def test_a_name_that_is_none_is_refused(served, folder, target, status):
    """Row X10: `..` and newlines; issue, "Bad input"."""
    (folder / "file").write_bytes(b"x")
    before = everything(folder.parent)
    got, answer = served.raw(target, "PUT", b"body")
    assert got == status
    assert b"Content-Type: text/plain" in answer
    assert everything(folder.parent) == before


# --- what breaks off --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["reset", "close"])
def test_an_upload_that_breaks_off_leaves_nothing(served, folder, how):
    """Row X10: interrupted at half; the folders it would have made are not made either."""
    with served.connect() as sock:
        sock.sendall(head("new/dir/half", 2_000_000) + b"x" * 1_000_000)
        until(lambda: leftovers(folder), "the upload has begun")
        assert everything(folder / "sub") == []
        assert not (folder / "new").exists()
        if how == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(lambda: everything(folder) == ["sub"], "nothing is left")
    assert served.ask("PUT", "new/dir/half", content=b"whole").status_code == 201


def test_an_upload_that_stalls_is_dropped(folder):
    """Issue: xfer.stall_s, upwards."""
    with files_edge(folder, stall_s=0.3) as served, served.connect() as sock:
        sock.sendall(head("half", 2_000_000) + b"x" * 1_000_000)
        assert sock.recv(4096).startswith(b"HTTP/1.1 408 ")
        until(lambda: everything(folder) == ["sub"], "nothing is left")


def test_a_share_that_is_closed_ends_an_upload(served, folder):
    """Brief for shares: closing ends transfers."""
    with served.connect() as sock:
        sock.sendall(head("half", 2_000_000) + b"x" * 1_000_000)
        until(lambda: leftovers(folder), "the upload has begun")
        served.shares.share.close()
        assert sock.recv(4096).startswith(b"HTTP/1.1 404 ")
    until(lambda: everything(folder) == ["sub"], "nothing is left")


def test_unfinished_uploads_are_not_shown(served, folder):
    """Ours."""
    with served.connect() as sock:
        sock.sendall(head("half", 2_000_000) + b"x" * 1_000_000)
        until(lambda: leftovers(folder), "the upload has begun")
        name = leftovers(folder)[0]
        assert served.get("?simple").text == "sub/\n"
        assert [path["name"] for path in served.get("?json").json()["paths"]] == ["sub"]
        assert served.get(name).status_code == 404


# --- going on ---------------------------------------------------------------------------------------------------------


def test_patch_goes_on_where_the_file_ends(served, folder):
    """As dufs does, §6.3: X-Update-Range, 204."""
    (folder / "part").write_bytes(b"0123")
    for value, body in [("append", b"45"), ("bytes=6-", b"67"), ("bytes=8-9", b"89")]:
        answer = served.ask("PATCH", "part", content=body, headers={"X-Update-Range": value})
        assert answer.status_code == 204
    assert (folder / "part").read_bytes() == b"0123456789"


@pytest.mark.parametrize(
    ("path", "value", "status"),
    [
        ("part", None, 405),
        ("part", "bytes=2-", 403),
        ("part", "bytes=5-", 400),
        ("part", "lines=1-", 400),
        ("part", "bytes=-1", 400),
        ("nope", "append", 404),
        ("sub", "append", 403),
        ("out", "append", 404),
        ("part", "bytes=" + "9" * 40 + "-", 400),
    ],
)
def test_patch_refuses_what_is_no_going_on(served, folder, path, value, status):
    """As dufs does, §6.3; a link that leads out is not there."""
    (folder / "part").write_bytes(b"0123")
    (folder.parent / "outside" / "f").write_bytes(b"0")
    (folder / "out").symlink_to(folder.parent / "outside" / "f")
    answer = served.ask("PATCH", path, content=b"x", headers={"X-Update-Range": value} if value else {})
    assert answer.status_code == status
    assert (folder / "part").read_bytes() == b"0123"
    assert (folder.parent / "outside" / "f").read_bytes() == b"0"


def test_a_patch_that_breaks_off_can_be_gone_on_with(served, folder):
    """Issue: PATCH resumes; and two at once are told apart."""
    (folder / "part").write_bytes(b"0")
    with served.connect() as sock:
        sock.sendall(head("part", 100, "X-Update-Range: append", method="PATCH") + b"1" * 10)
        until(lambda: (folder / "part").stat().st_size == 11, "the first bytes are there")
        answer = served.ask("PATCH", "part", content=b"2", headers={"X-Update-Range": "append"})
        assert answer.status_code == 409
    until(
        lambda: served.ask("PATCH", "part", content=b"2", headers={"X-Update-Range": "append"}).status_code == 204,
        "free again",
    )
    assert (folder / "part").read_bytes() == b"0" + b"1" * 10 + b"2"


# --- curl -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl_uploads_downloads_and_resumes(served, folder, tmp_path):
    """Issue, "What it must show": -T, -O and -C -."""
    data = os.urandom(3_000_000)
    local, got = tmp_path / "local.bin", tmp_path / "got.bin"
    local.write_bytes(data)

    def curl(*args: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["curl", "-sS", "-f", "-m", "20", "-H", f"Authorization: Bearer {TOKEN}", *map(str, args)],
            check=False,
            capture_output=True,
        )

    assert curl("-T", local, served.url + "up/file.bin").returncode == 0
    assert (folder / "up/file.bin").read_bytes() == data
    assert curl("-T", local, served.url + "up/file.bin").returncode == 22
    got.write_bytes(data[:1_000_000])
    assert curl("-C", "-", "-o", got, served.url + "up/file.bin").returncode == 0
    assert got.read_bytes() == data


# --- disks ------------------------------------------------------------------------------------------------------------

FULL = """
import os, pathlib, subprocess, sys
sys.path[:0] = {paths!r}
from files_edge import files_edge, leftovers
where = pathlib.Path({where!r})
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(where)], check=True)
with files_edge(where) as served:
    assert served.ask("PUT", "fits", content=b"x" * 1_000_000).status_code == 201
    announced = served.ask("PUT", "announced", content=b"x" * 8_000_000)
    assert (announced.status_code, "no space" in announced.text) == (507, True), announced
    counted = served.ask("PUT", "a/counted", content=iter([b"x" * 100_000] * 80))
    assert counted.status_code == 507, counted
    patched = served.ask("PATCH", "fits", content=b"y" * 8_000_000, headers={{"X-Update-Range": "append"}})
    assert patched.status_code == 507, patched
    assert served.get("fits").content == b"x" * 1_000_000
    assert served.ask("PUT", "after", content=b"x" * 1_000_000).status_code == 201
assert sorted(os.listdir(where)) == ["after", "fits"], os.listdir(where)
print("as it should be")
"""


def can_mount() -> bool:
    return (
        bool(shutil.which("unshare"))
        and subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_mount(), reason="this machine lets us mount nothing")
def test_a_full_disk_is_told_and_leaves_nothing_half_written(tmp_path):
    """Issue, "Bad input"; row X10: ENOSPC. A tmpfs of 4 MiB in a mount namespace of its own."""
    (tmp_path / "small").mkdir()
    script = FULL.format(paths=[str(ROOT / "tests"), str(ROOT)], where=str(tmp_path / "small"))
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "as it should be\n", done.stderr


def test_a_slow_disk_holds_up_the_upload_and_nothing_else(folder, monkeypatch):
    """Ours: writing waits, the loop does not; what is unwritten has a bound."""
    from a2mcp.http import uploads
    from a2mcp.xfer import upload

    gate = threading.Event()
    sizes: list[int] = []
    write = upload._write_all

    def slow(fd, data, at=None):
        sizes.append(len(data))
        gate.wait(10)
        write(fd, data, at)

    monkeypatch.setattr(upload, "_write_all", slow)
    data = os.urandom(12 << 20)
    with files_edge(folder) as served, ThreadPoolExecutor(1) as pool:
        pending = pool.submit(served.ask, "PUT", "slow", content=data)
        until(lambda: sizes, "the first write waits")
        began = time.monotonic()
        assert served.client.get("/xfer/?simple").text == "sub/\n"
        assert time.monotonic() - began < 5
        assert not pending.done()
        gate.set()
        assert pending.result(20).status_code == 201
    assert max(sizes) <= uploads.FULL + (128 << 10)
    assert (folder / "slow").read_bytes() == data


def test_a_fault_of_ours_is_answered_too(folder, monkeypatch, caplog):
    """Ours: whatever breaks in a worker, the client hears of it and nothing is left."""
    from a2mcp.xfer import service, upload

    def broken(*_):
        raise RuntimeError("secret /etc/passwd")

    monkeypatch.setitem(service._METHODS, "GET", broken)
    monkeypatch.setattr(upload.New, "keep", broken)
    with files_edge(folder) as served:
        assert served.get("x").status_code == 500
        answer = served.ask("PUT", "x", content=b"x")
        assert answer.status_code == 500
        assert "secret" not in answer.text
    assert everything(folder) == ["sub"]
    assert "internal error" in caplog.text
