"""The operator's page in a real browser: what a person sees, does, and is kept safe from.

Needs Chromium and Playwright. Pictures go to ``docs/images`` when ``A2MCP_PICTURES`` is set, else to the test's folder.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from browsers import CHROMIUM, launched
from harness import ROOT, Daemon, lasting_port, running, until
from inflight import Later
from visitor import link_of
from watchers import approvals, decide, operator
from wire import Line, head

if TYPE_CHECKING:
    from collections.abc import Iterator

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

PAGE_BYTES = 120 * 1024
FIRST_PAINT_MS = 300
SEEN_S = 0.2
REFUSALS = "Failed to load resource"
"""What the browser says of each, and the page says better."""
HOSTILE = "echo '<img src=x onerror=document.title=1>' \u202egnp.exe\u2066 \x1b[2J \x00 \u200b"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that asks before it writes, shared by this module."""
    with running(tmp_path_factory.mktemp("page") / "home", settings={"approval": {"mode": "write"}}) as started:
        yield started


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that asks nothing."""
    with running(tmp_path_factory.mktemp("free") / "home") as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started, launched(started) as chromium:
        yield chromium


@contextmanager
def opened(browser: Any, daemon: Daemon, port: int | None = None, **options: Any) -> Iterator[Any]:
    """The page of a fresh visit; whatever breaks in it, or is refused by its policy, fails the test."""
    context = browser.new_context(**options)
    context.set_default_timeout(10_000)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda said: faults.append(said.text) if said.type == "error" and not said.text.startswith(REFUSALS) else None,
    )
    page.goto(link_of(daemon).replace(f":{daemon.port}/", f":{port or daemon.port}/"))
    page.wait_for_selector("#link.live")
    try:
        yield page
    finally:
        context.close()
    assert faults == []


def becomes(page: Any, condition: str) -> None:
    """Wait for a condition; Playwright's own way to do so needs ``eval``, which the page's policy refuses."""
    until(lambda: page.evaluate(condition), what=condition)


def shown(page: Any, selector: str) -> str:
    return str(page.locator(selector).inner_text())


class Way:
    """Another port that leads to the daemon, as SSH forwarding does, until it is cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def cut(self) -> None:
        self._is_cut = True
        for sock in list(self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._is_cut = False

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                if self._is_cut:
                    here.close()
                    continue
                there = socket.create_connection(("127.0.0.1", self._to))
                self._open |= {here, there}
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        source.close()


# --- the way in ----------------------------------------------------------------------------------------------------


def test_a_link_opens_the_page_once(browser, free):
    """Issue 6: connect by one-time link; the second use is refused."""
    link = link_of(free)
    for expected in ("#link.live", "#closed:not([hidden])"):
        context = browser.new_context()
        page = context.new_page()
        page.goto(link)
        page.wait_for_selector(expected)
        assert "#" not in page.url, "the code is out of the address"
        said = shown(page, "body")
        context.close()
    assert "used before" in said


def test_the_file_that_a_browser_is_given_leads_to_the_page(browser, free):
    """Issue 6.1: `a2mcp ui` opens the page, by way of a file that only this user can read."""
    subprocess.run(
        [sys.executable, "-m", "a2mcp", "ui"], cwd=free.home, env=free.environment | {"BROWSER": "true"},
        capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    context = browser.new_context()
    page = context.new_page()
    page.goto((free.home / "page.html").as_uri())
    page.wait_for_selector("#link.live")
    context.close()


def test_a_reload_goes_on_with_the_visit(browser, free):
    """Ours: the cookie and the key stay."""
    with opened(browser, free) as page:
        page.reload()
        page.wait_for_selector("#link.live")


def test_the_page_is_light_and_there_at_once(browser, free):
    """Issue 6: under 120 KB in all, first paint under 300 ms on loopback."""
    with opened(browser, free) as page:
        paints = []
        for _ in range(3):  # The best of them: other tests use the processors, too.
            page.reload()
            page.wait_for_selector("#link.live")
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        sizes = page.evaluate("performance.getEntriesByType('resource').map(e => [e.name, e.transferSize])")
        files = [size for name, size in sizes if "/api/" not in name]
        own = page.evaluate("performance.getEntriesByType('navigation')[0].transferSize")
        assert all(name.startswith(f"http://127.0.0.1:{free.port}/ui/") for name, _ in sizes)
        assert sum(files) + own < PAGE_BYTES
        assert min(paints) < FIRST_PAINT_MS


# --- what it shows and does ----------------------------------------------------------------------------------------


def test_a_call_appears_at_once_and_is_cancelled(browser, free):
    """Issue 6: see a call appear within 200 ms, cancel it."""
    session = free.session()
    with opened(browser, free) as page:
        page.evaluate(
            "new MutationObserver(() => { window.seen ??= Date.now(); })"
            ".observe(document.querySelector('#calls'), {childList: true})"
        )
        best = 9.0
        for _ in range(3):
            page.evaluate("window.seen = undefined")
            sent = time.time()
            call = Later(lambda: session.call("bash", command="sleep 60"))
            page.get_by_role("button", name="Cancel bash").click()
            best = min(best, page.evaluate("window.seen") / 1000 - sent)
            assert "The operator stopped this call." in call.result().text
            page.wait_for_selector("#calls li", state="detached")
        assert best < SEEN_S


def test_an_approved_call_runs_and_a_denied_one_gives_its_reason(browser, asking):
    """Issue 6: approve and deny a waiting call and see the caller's reply change."""
    session = asking.session()
    with opened(browser, asking) as page:
        allowed = Later(lambda: session.call("bash", command="echo it ran"))
        page.get_by_role("button", name="Approve once: bash").click()
        assert "it ran" in allowed.result().text
        page.wait_for_selector("#approvals li", state="detached")

        denied = Later(lambda: session.call("bash", command="echo it ran"))
        page.get_by_label("Reason, for the caller").fill("not today")
        page.get_by_role("button", name="Deny: bash").click()
        answer = denied.result()
        assert answer.result["isError"] is True
        assert "not today" in answer.text
        page.wait_for_selector("#approvals li", state="detached")


def test_a_grant_is_given_shown_and_revoked(browser, asking):
    """Issue 6.2: for this session; 6.4: a list to revoke."""
    session = asking.session()
    with opened(browser, asking) as page:
        first = Later(lambda: session.call("bash", command="echo one"))
        page.get_by_role("button", name="For this session: bash").click()
        assert "one" in first.result().text
        assert "two" in session.call("bash", command="echo two").text

        page.get_by_role("button", name="Revoke bash").click()
        page.wait_for_selector("#grants li", state="detached")


def test_the_keyboard_is_enough(browser, asking):
    """Issue 6.1: works with the keyboard."""
    session = asking.session()
    with opened(browser, asking) as page:
        call = Later(lambda: session.call("bash", command="echo by key"))
        page.wait_for_selector("#approvals li")
        page.evaluate("document.activeElement.blur()")
        for _ in range(20):
            page.keyboard.press("Tab")
            if "Approve once" in (page.evaluate("document.activeElement.getAttribute('aria-label')") or ""):
                break
        page.keyboard.press("Enter")
        assert "by key" in call.result().text
        page.wait_for_selector("#approvals li", state="detached")
        assert page.evaluate("document.activeElement.id") == "h-approvals", "the focus is not lost with the row"


def test_the_second_of_two_operators_is_told(browser, asking):
    """Issue 6, "Bad input": one wins, the other is told."""
    session = asking.session()
    with opened(browser, asking) as page:
        call = Later(lambda: session.call("bash", command="echo once"))
        page.wait_for_selector("#approvals li")
        # Held back, so that the page still shows what another answers.
        held = page.evaluate(
            "({key}) => fetch('api/approvals', {headers: {'X-A2MCP-Page': localStorage.getItem(key)}}).then(r => r.text())",
            {"key": "a2mcp-page"},
        )
        page.route(
            "**/ui/api/approvals",
            lambda route: route.fulfill(body=held) if route.request.method == "GET" else route.continue_(),
        )
        (waits,) = approvals(asking)
        decide(asking, waits["id"], approve=True)
        call.result()
        page.get_by_role("button", name="Deny: bash").click()
        becomes(page, "document.querySelector('#alarm').textContent.includes('before you answered')")
        page.unroute_all()
        page.wait_for_selector("#approvals li", state="detached")


def test_the_output_of_a_job_grows_and_the_job_is_stopped(browser, free):
    """Issue 6: watch a job's output grow; 6.2: stop."""
    go = free.home / "go"
    free.session().call(
        "bash", command=f"echo first; until [ -e {go} ]; do sleep 0.05; done; echo second; sleep 60", wait=0
    )
    with opened(browser, free) as page:
        page.locator("#jobs summary").click()
        becomes(page, "document.querySelector('#jobs [aria-label=Output]').textContent.includes('first')")
        go.touch()
        becomes(page, "document.querySelector('#jobs [aria-label=Output]').textContent.includes('\\nsecond')")
        page.get_by_role("button", name="Stop job").click()
        becomes(page, "document.querySelector('#jobs button').disabled")


def test_the_share_is_stopped(browser, free, tmp_path):
    """Issue 6: stop the share."""
    with opened(browser, free) as page:
        free.session().call("xfer_share", path=str(tmp_path))
        page.get_by_role("button", name="Stop sharing").click()
        page.wait_for_selector("#share li", state="detached")
    assert json.loads(free.session().call("xfer_status").text)["serving"] is False


def test_a_transfer_is_seen_to_move_and_is_stopped(browser, free, tmp_path):
    """Issue 6.2: the share with downloads running, progress and stop."""
    with (tmp_path / "<b>big.bin").open("wb") as file:
        file.truncate(64 << 20)
    with opened(browser, free) as page, Line(free.port) as wire:
        free.session().call("xfer_share", path=str(tmp_path))
        wire.send(head("GET /xfer/%3Cb%3Ebig.bin HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {free.token}"))
        page.wait_for_selector("#share progress")
        assert "<b>big.bin" in shown(page, "#share")
        assert page.evaluate("document.querySelector('#share progress').position") > 0
        assert "of 64.0 MiB" in shown(page, "#share")
        page.get_by_role("button", name="Stop the download").click()
        page.wait_for_selector("#share progress", state="detached")
        page.get_by_role("button", name="Stop sharing").click()
        page.wait_for_selector("#share li", state="detached")


def test_the_host_is_denied_its_models_and_allowed_them_again(browser, free):
    """Issue 7 §5: the page shows the switch and sets it, by mouse and by keyboard."""
    with opened(browser, free) as page:
        switch = page.get_by_role("switch", name="The host may ask models")
        becomes(page, "document.querySelector('#inference').innerText.includes('allowed')")
        switch.click()
        becomes(page, "document.querySelector('#inference').innerText.includes('denied')")
        assert switch.get_attribute("aria-checked") == "false"
        assert json.loads(free.cli("host-llm", "--json").stdout)["enabled"] is False
        free.cli("host-llm", "on")
        becomes(page, "document.querySelector('#inference-switch').getAttribute('aria-checked') === 'true'")
        switch.press("Space")
        becomes(page, "document.querySelector('#inference').innerText.includes('denied')")
        switch.press("Enter")
        becomes(page, "document.querySelector('#inference').innerText.includes('allowed')")
    turned = [one["args"]["enabled"] for one in free.audit() if one["tool"] == "host_llm"]
    assert turned == [False, True, False, True]


def test_a_session_is_ended_and_the_log_is_searched(browser, free):
    """Issue 6.2."""
    session = free.session()
    session.call("read", path="needle-in-the-log")
    with opened(browser, free) as page:
        page.get_by_role("button", name=f"End session {session.session[:8]}").click()
        until(lambda: session.ask("ping").status == 404, what="the session has ended")

        page.get_by_label("Text").fill("needle-in-the-log")
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("#audit li")
        assert "needle-in-the-log" in shown(page, "#audit")


def test_the_doctor_looks_again_when_asked(browser, free):
    """Issue 6.2: warnings of `doctor`."""
    with opened(browser, free) as page:
        assert "others can write" not in shown(page, "#doctor")
        free.home.chmod(0o777)
        page.get_by_role("button", name="Look again").click()
        becomes(page, "document.querySelector('#doctor').textContent.includes('others can write')")
        free.home.chmod(0o700)


def test_a_clock_that_jumps_changes_no_duration(browser, free):
    """Issue 6, "Bad input": clock jumps."""
    session = free.session()
    with opened(browser, free) as page:
        page.clock.set_fixed_time("2001-01-01T00:00:00Z")
        call = Later(lambda: session.call("bash", command="sleep 60"))
        page.wait_for_selector("#calls li")
        assert re.fullmatch(r"[0-9.]+ m?s", shown(page, "#calls [data-elapsed]"))
        page.get_by_role("button", name="Cancel bash").click()
        call.result()
        page.wait_for_selector("#calls li", state="detached")


def test_a_page_whose_daemon_went_away_says_so(browser, tmp_path):
    """Issue 6.1: a visit is bound to this daemon run."""
    settings = {"port": lasting_port()}
    with running(tmp_path / "home", settings=settings) as daemon, opened(browser, daemon) as page:
        daemon.stop()
        page.wait_for_selector("#link.off")
        port = daemon.port
        daemon.start()
        assert daemon.port == port, "a daemon keeps its port"
        page.wait_for_selector("#closed:not([hidden])")


def test_the_token_is_hidden_until_it_is_asked_for(browser, free):
    """Issue 6.2: token hidden until asked."""
    with opened(browser, free) as page:
        assert free.token not in page.content()
        page.get_by_role("button", name="Show token").click()
        becomes(page, f"document.querySelector('#token').textContent === '{free.token}'")
        page.get_by_role("button", name="Hide token").click()
        assert free.token not in page.content()


def test_events_go_on_after_a_break_without_a_gap(browser, free):
    """Issue 6.2: reconnects and catches up by sequence."""
    session = free.session()
    with Way(free.port) as way, opened(browser, free, port=way.port) as page:
        session.call("read", path="before-the-break")
        becomes(page, "document.querySelector('#last').textContent.includes('before-the-break')")
        way.cut()
        page.wait_for_selector("#link.off")
        for number in range(30):
            session.call("read", path=f"meanwhile-{number:02}")
        way.mend()
        page.wait_for_selector("#link.live")
        becomes(page, "document.querySelector('#last').textContent.includes('meanwhile-29')")
        text = page.locator("#last").text_content()
        assert [number for number in range(30) if f"meanwhile-{number:02}" not in text] == []


# --- what callers say ----------------------------------------------------------------------------------------------


def test_what_callers_say_is_shown_as_what_it_is(browser, asking):
    """Issue 6, "Bad input": HTML, control characters, right-to-left marks."""
    session = asking.session()
    with opened(browser, asking) as page:
        call = Later(lambda: session.call("bash", command=HOSTILE.replace("\0", "")))
        text = shown(page, "#approvals pre >> nth=0")
        assert "<img src=x onerror=document.title=1>" in text
        assert "«U+202E»gnp.exe«U+2066»" in text
        assert "«U+001B»[2J" in text
        assert "«U+200B»" in text
        assert page.locator("main img").count() == 0
        page.get_by_role("button", name="Deny: bash").click()
        call.result()
        session.ask("tools/call", {"name": "<script>alert(1)</script>\u202e", "arguments": {}})


def test_a_megabyte_of_text_does_not_stop_the_page(browser, asking):
    """Issue 6, "Bad input": 1 MB of text."""
    session = asking.session()
    with opened(browser, asking) as page:
        call = Later(lambda: session.call("write", path="large", content="<b>\u202e" * 200_000))
        page.get_by_role("button", name="Approve once: write").click()
        assert call.result().result["isError"] is False
        page.wait_for_selector("#approvals li", state="detached")
        assert page.evaluate("document.body.textContent.length") < 400_000


# --- a foreign page ------------------------------------------------------------------------------------------------

FOREIGN = """<!doctype html><title>foreign</title><iframe name="frame" src="{ui}/ui/"></iframe>
<form method="post" action="{ui}/ui/api/approvals" target="frame" enctype="text/plain">
<input name='{{"id":"{id}","approve":true,"reason":"' value='"}}'></form>"""

TRIES = """async ([ui, id]) => {
  const read = [];
  const tried = (path, init) => fetch(ui + path, init).then(r => r.text()).then(t => read.push(t)).catch(() => {});
  for (const mode of ["cors", "no-cors"]) {
    for (const path of ["/ui/", "/ui/app.js", "/ui/api/status", "/ui/api/token", "/ui/api/events?history=9"]) {
      await tried(path, { mode, credentials: "include" });
    }
    const body = JSON.stringify({ id, approve: true });
    await tried("/ui/api/approvals", { mode, method: "POST", credentials: "include", body });
  }
  await tried("/ui/api/approvals", {
    method: "POST", credentials: "include", headers: { "X-A2MCP-Page": "x" }, body: JSON.stringify({ id, approve: true }),
  });
  document.forms[0].submit();
  await new Promise(go => setTimeout(go, 300));
  let framed = "";
  try { framed = frames[0].document.body.textContent; } catch { framed = ""; }
  return read.filter(text => text.length).concat(framed.includes("Waiting") ? [framed] : []);
}"""


class _Foreign(BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "evil.test"])
def test_a_foreign_page_neither_reads_nor_does_anything(browser, asking, name):
    """Issue 6: another origin, another port of this machine, an iframe, a form post; with a visit in the same browser."""
    session = asking.session()
    call = Later(lambda: session.call("bash", command="echo no"))
    (waits,) = until(lambda: approvals(asking), what="a call waits")
    ui = f"http://127.0.0.1:{asking.port}"
    handler = type("Handler", (_Foreign,), {"body": FOREIGN.format(ui=ui, id=waits["id"]).encode()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        with opened(browser, asking) as page:
            port = server.server_address[1]
            foreign = page.context.new_page()
            foreign.route(
                "http://evil.test/**", lambda route: route.fulfill(body=handler.body.decode(), content_type="text/html")
            )
            foreign.goto(f"http://{name}:{port}/ui/" if name != "evil.test" else "http://evil.test/")
            assert foreign.evaluate(TRIES, [ui, waits["id"]]) == []
            assert not call.over, "the call still waits"
            page.get_by_role("button", name="Deny: bash").click()
            call.result()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_page_is_not_served_by_another_name(browser, asking):
    """Issue 6: another host name that leads here."""
    context = browser.new_context()
    page = context.new_page()
    answer = page.request.get(f"http://127.0.0.1:{asking.port}/ui/", headers={"Host": "rebound.example"})
    assert answer.status == 403
    context.close()


# --- how it looks, and how it reads --------------------------------------------------------------------------------


def _named(session: Any, tool: str, /, **arguments: Any) -> Any:
    """A call of a client that says who it is."""
    return session.ask("tools/call", {"name": tool, "arguments": arguments}, X_A2MCP_Client="claude-code")


@contextmanager
def busy(daemon: Daemon) -> Iterator[None]:
    """Something of everything."""
    session = daemon.session()
    (daemon.home / "README.md").write_text("# A project\n")
    with tempfile.TemporaryDirectory(prefix="handbook-") as shared:
        for command in ("make -j2 all || true", "git --version", "test -e nothing"):
            call = Later(lambda command=command: _named(session, "bash", command=command))
            _approve(daemon)
            call.result()
        for _ in range(12):
            _named(session, "read", path="README.md")
        job = Later(
            lambda: _named(session, "bash", command="for i in 1 2 3; do echo compiling $i; done; sleep 600", wait=0)
        )
        _approve(daemon)
        job.result()
        _named(session, "xfer_share", path=shared)
        flying = Later(lambda: _named(session, "bash", command="sleep 600 # a long test run", wait=600))
        _approve(daemon)
        waits = Later(lambda: _named(daemon.session(), "bash", command="rm -rf build &&\nmake dist", cwd=shared))
        until(lambda: approvals(daemon), what="a call waits")
        yield
        (asked,) = approvals(daemon)
        decide(daemon, asked["id"], approve=False)
        waits.result()
        for running_call in operator(daemon, "GET", "/calls")[1]:
            operator(daemon, "POST", "/calls/cancel", {"id": running_call["call_id"]})
        flying.result()


def _approve(daemon: Daemon) -> None:
    (asked,) = until(lambda: approvals(daemon), what="a call waits")
    decide(daemon, asked["id"], approve=True)


LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}, "device_scale_factor": 1},
}


def test_the_page_looks_right_and_reads_right(browser, tmp_path):
    """Issue 6: screenshots in light, dark and at 390 px; axe-core finds no serious fault."""
    pictures = ROOT / "docs" / "images" if os.environ.get("A2MCP_PICTURES") else tmp_path
    settings = {"approval": {"mode": "write"}, "port": 0}
    with running(tmp_path / "home", settings=settings) as daemon, busy(daemon):
        for name, look in LOOKS.items():
            with opened(browser, daemon, bypass_csp=True, **look) as page:
                page.wait_for_selector("#calls li")
                page.wait_for_selector("#approvals li")
                page.wait_for_selector("#jobs li")
                becomes(page, "document.querySelectorAll('#last li').length > 3")
                page.locator("#jobs summary").click()
                becomes(page, "document.querySelector('#jobs [aria-label=Output]').textContent.includes('3')")
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wide <= 0, f"{name}: nothing sticks out at the side"
                page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
                page.screenshot(path=pictures / f"operator-page-{name}.png", full_page=name != "dark")
                assert serious(page) == []


def serious(page: Any) -> list[str]:
    """What axe-core finds that keeps somebody out; nothing where it is not installed."""
    core = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    page.evaluate((Path(core.__file__).parent / "axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run()")
    return [
        f"{fault['id']}: {node['html']}" for fault in found["violations"]
        if fault["impact"] in {"serious", "critical"} for node in fault["nodes"]
    ]  # fmt: skip
