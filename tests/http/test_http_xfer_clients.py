"""The route of files with somebody else's programs: a browser and a WebDAV client, where they are installed."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest
from browsers import CHROMIUM, launched
from edge import TOKEN
from files_edge import files_edge, until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.client

CADAVER = shutil.which("cadaver")


@pytest.fixture
def folder(tmp_path):
    """A share with a folder, files and a name that tries."""
    shared = tmp_path / "shared"
    (shared / "sub").mkdir(parents=True)
    (shared / "note.txt").write_text("a note")
    (shared / "data.bin").write_bytes(b"\0\1" * 5000)
    (shared / "<img src=x onerror=document.title=1>").write_text("x")
    return shared


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver, launched(driver) as started:
        yield started


@pytest.fixture
def page(browser, folder) -> Iterator[tuple[Any, Any]]:
    """The page of the share in a browser that sends the token and knows nothing yet, and the share."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with files_edge(folder) as served, contextlib.closing(browser.new_context(extra_http_headers=headers)) as context:
        opened = context.new_page()
        opened.said = []
        opened.on("console", lambda message: opened.said.append(message.text))
        opened.goto(served.url)
        yield opened, served


def test_a_browser_lists_uploads_and_downloads(page, folder, tmp_path):
    """Issue, "What it must show": by the page, under its own policy, without a word on the console."""
    opened, _ = page
    local = tmp_path / "up load é.bin"
    local.write_bytes(b"x" * 3_000_000)
    with opened.expect_navigation():
        opened.set_input_files("#files", [local])
    assert (folder / local.name).read_bytes() == local.read_bytes()
    assert "2.9 MiB" in opened.locator("tr", has_text=local.name).inner_text()
    with opened.expect_download() as download:
        opened.get_by_role("link", name="data.bin").click()
    assert download.value.suggested_filename == "data.bin"
    opened.get_by_role("link", name="note.txt").click()
    assert opened.inner_text("body") == "a note"
    assert opened.said == []


def test_a_browser_takes_dropped_files_and_says_what_is_refused(page, folder):
    """Issue, "The route": drag and drop; a refusal is shown in the server's words."""
    opened, _ = page
    drop = """name => {
        const held = new DataTransfer();
        held.items.add(new File(["dropped"], name));
        for (const kind of ["dragenter", "dragover", "drop"])
            window.dispatchEvent(new DragEvent(kind, {dataTransfer: held, cancelable: true}));
    }"""
    with opened.expect_navigation():
        opened.evaluate(drop, "dropped.txt")
    assert (folder / "dropped.txt").read_text() == "dropped"
    opened.evaluate(drop, "note.txt")
    assert "a file that is not empty has this name" in opened.locator(".failed").inner_text()
    assert (folder / "note.txt").read_text() == "a note"


def test_a_browser_is_driven_by_keys_and_runs_no_name(page):
    """Issue, "The route"; row X13."""
    opened, served = page
    focused = []
    for _ in range(12):
        opened.keyboard.press("Tab")
        focused.append(opened.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert focused[0] == "files"
    assert {"Name", "Size", "Modified (UTC)", "sub/", "note.txt"} <= set(focused)
    opened.get_by_role("link", name="Size").click()
    assert opened.locator("th[aria-sort=ascending]").inner_text() == "Size"
    assert opened.title() == "shared"
    opened.goto(served.url + "sub/")
    assert "This folder is empty." in opened.inner_text("main")


# --- WebDAV -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def with_token(port: int) -> Iterator[int]:
    """A port that passes on to another and adds the token to each request: for a client that cannot say it itself."""
    listener = socket.create_server(("127.0.0.1", 0))

    def up(client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            held = b""
            while data := client.recv(1 << 16):
                held += data
                # Each request of this client begins a segment, and its head fits in one.
                line, crlf, rest = held.partition(b"\r\n")
                if crlf and line.endswith(b"HTTP/1.1"):
                    held = line + crlf + f"Authorization: Bearer {TOKEN}\r\n".encode() + rest
                server.sendall(held)
                held = b""
            server.shutdown(socket.SHUT_WR)

    def down(client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError), client, server:
            while data := server.recv(1 << 16):
                client.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", port))
                for way in (up, down):
                    threading.Thread(target=way, args=(client, server), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.mark.skipif(CADAVER is None, reason="cadaver is not installed")
def test_a_webdav_client_lists_reads_and_uploads(folder, tmp_path):
    """Issue, "The route": cadaver."""
    (tmp_path / "local.txt").write_text("from here")
    commands = "ls\nget note.txt got.txt\nmkcol made\nput local.txt made/there.txt\ndelete note.txt\nls made\nquit\n"
    with files_edge(folder) as served, with_token(served.port) as port:
        done = subprocess.run(
            [str(CADAVER), f"http://127.0.0.1:{port}/xfer/"],
            input=commands,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        until((folder / "made/there.txt").exists, done.stdout + done.stderr)
    assert (folder / "made/there.txt").read_text() == "from here"
    assert (tmp_path / "got.txt").read_text() == "a note"
    assert (folder / "note.txt").exists()
    assert "403 Forbidden" in done.stdout
    for shown in ("data.bin", "Coll:", "there.txt"):
        assert shown in done.stdout
