"""The promise of ``/host-llm`` at its other end: a provider that counts what reaches it, from inside a real daemon."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import Daemon, running, until

from a2mcp.inference.tripwire import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVE = str(Path(__file__).parent / "serve_with_models.py")
WAYS = ["http.client", "httpx2", "httpx2-async", "aiohttp", "urllib", "socket"]


class Sink:
    """A provider that answers everything and remembers each connection and each request."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.connections = 0
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                sink.connections += 1
                super().setup()

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                sink.requests.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def counted(self) -> tuple[int, int]:
        return self.connections, len(self.requests)


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.close()


def put(home: Path, *ports: int, key: str = "") -> None:
    lines = ["providers:"]
    for number, port in enumerate(ports):
        lines += [f"  p{number}:", "    api: plain", f"    baseUrl: http://127.0.0.1:{port}/v1"]
        lines += [f'    apiKey: "{key}"'] if key else []
        lines += ["    models: [{id: m}]"]
    (home / "models.yml").write_text("\n".join(lines) + "\n")
    (home / "models.yml").chmod(0o600)


def put_watched(folder: Path, sink: Sink) -> None:
    """The one provider, with a key that leaves a trace where it is read."""
    put(folder / "home", sink.port, key=f"!touch {folder}/ran; echo key")


@contextmanager
def hosted(folder: Path, sink: Sink) -> Iterator[Daemon]:
    (folder / "home").mkdir(mode=0o700)
    put_watched(folder, sink)
    with running(folder / "home", argv=[sys.executable, SERVE]) as daemon:
        yield daemon


@pytest.fixture
def host(tmp_path: Path, sink: Sink) -> Iterator[Daemon]:
    with hosted(tmp_path, sink) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Sink]]:
    """A daemon and its provider for the tests that change no more than the switch and the file."""
    sink = Sink()
    with hosted(tmp_path_factory.mktemp("shared"), sink) as daemon:
        yield daemon, sink
    sink.close()


@pytest.fixture
def shared(started: tuple[Daemon, Sink]) -> tuple[Daemon, Sink]:
    """The same, with that provider only, and allowed to ask. The file is read when it is denied."""
    host, sink = started
    put_watched(host.home.parent, sink)
    for enabled in (False, True):
        switch(host, enabled=enabled)
    return started


def switch(daemon: Daemon, *, enabled: bool) -> dict:
    answer = daemon.client().post({"enabled": enabled}, "/host-llm")
    assert answer.status == 200, answer.body
    return answer.json


def outcome(answer) -> tuple[bool, str]:
    return answer.result["isError"], answer.text


@pytest.mark.parametrize("way", WAYS)
def test_no_library_inside_the_process_reaches_a_denied_provider(shared, other, way):
    """Source: issue, "What it must show": zero requests from httpx2, http.client, aiohttp, raw socket."""
    if way == "aiohttp":
        pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    host, sink = shared
    client = host.session()
    assert outcome(client.call("reach", port=sink.port, way=way)) == (False, "reached")
    before = sink.counted()

    denied = switch(host, enabled=False)["denied"]
    failed, said = outcome(client.call("reach", port=sink.port, way=way))
    assert failed
    assert SENTINEL in said or "All connection attempts failed" in said
    assert sink.counted() == before
    assert outcome(client.call("reach", port=other.port, way=way)) == (False, "reached")

    assert switch(host, enabled=True)["denied"] > denied
    assert outcome(client.call("reach", port=sink.port, way=way)) == (False, "reached")
    assert sink.counted() == (before[0] + 1, before[1] + 1)


def test_a_model_is_asked_again_as_before_after_it_was_denied(shared):
    """Source: issue, "What it must show": restored, everything works as before."""
    host, sink = shared
    client, ran = host.session(), host.home.parent / "ran"
    assert outcome(client.call("turn")) == (False, "answered")
    assert ran.exists()
    ran.unlink()
    before = sink.counted()

    denied = switch(host, enabled=False)["denied"]
    for ref in ("", "p0/m"):
        assert outcome(client.call("turn", ref=ref)) == (True, SENTINEL)
    assert sink.counted() == before
    assert not ran.exists()
    assert switch(host, enabled=False)["denied"] == denied + 2

    switch(host, enabled=True)
    assert outcome(client.call("turn")) == (False, "answered")
    assert ran.exists()
    ran.unlink()


def test_a_row_that_was_taken_before_meets_the_tripwire(shared):
    """Source: seed: 接管期间宿主把模型行换回真行也没用, 它落在绊线上."""
    host, sink = shared
    client, before = host.session(), sink.counted()
    client.call("take")
    switch(host, enabled=False)
    failed, said = outcome(client.call("turn", ref="stale"))
    assert failed
    assert SENTINEL in said
    assert sink.counted() == before


def test_a_connection_from_before_carries_no_request_any_more(shared):
    """Ours: a library that keeps connections needs no new one."""
    host, sink = shared
    client, (connections, requests) = host.session(), sink.counted()
    assert outcome(client.call("keep", port=sink.port)) == (False, "ok")
    assert outcome(client.call("keep", port=sink.port)) == (False, "ok")
    assert sink.counted() == (connections + 1, requests + 2)

    switch(host, enabled=False)
    assert outcome(client.call("keep", port=sink.port))[0]
    assert sink.counted() == (connections + 1, requests + 2)


def test_the_daemon_itself_is_reached_as_ever_while_models_on_this_machine_are_denied(shared):
    """Source: issue, item 4: loopback is never a key, and a provider's port only."""
    host, _ = shared
    switch(host, enabled=False)
    host.alive()
    assert outcome(host.session().call("reach", port=host.port, way="http.client")) == (False, "reached")
    assert host.cli("status").returncode == 0


def test_the_hook_that_stays_costs_a_call_less_than_a_hundredth(shared):
    """Source: issue, "What it must show": with the switch off, the hook costs a tool call under 1 %.

    By counting: how many events a call has, times what each costs with a hook that is disarmed, in the call's own time.
    """
    host, _ = shared
    client = host.session()
    read = partial(client.call, "read", path=str(host.home / "models.yml"))
    took = []
    for _ in range(100):
        began = time.perf_counter()
        read()
        took.append(time.perf_counter() - began)
    first = int(client.call("audited").text)
    for _ in range(50):
        read()
    events = (int(client.call("audited").text) - first) / 50
    assert 1 <= events < 20

    script = (
        "import sys, timeit\nfrom a2mcp.inference import tripwire\n"
        "best = lambda: min(timeit.repeat('audit(\"a.b\")', 'from sys import audit', number=20000, repeat=9)) / 20000\n"
        "bare = best()\ntripwire._install()\nprint(best() - bare)"
    )
    each = float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    assert each * events < 0.01 * sorted(took)[len(took) // 2]


# --- what stays outside the promise, as docs/explanation/host-inference.md says ------------------------------------


def test_a_command_is_another_process_and_reaches_the_provider(shared):
    """Source: seed, "它放弃了什么": bash 里的 curl 在别处, 绊线到不了."""
    host, sink = shared
    before = len(sink.requests)
    switch(host, enabled=False)
    line = f"exec 3<>/dev/tcp/127.0.0.1/{sink.port}; printf 'POST /v1/bash HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    assert host.session().call("bash", command=line).result["isError"] is False
    assert sink.requests[before:] == ["/v1/bash"]


def test_a_program_that_prints_a_key_and_runs_already_goes_on(tmp_path, sink):
    """Source: issue, "What it must show": `!command` stays outside."""
    (tmp_path / "home").mkdir(mode=0o700)
    started, go = tmp_path / "started", tmp_path / "go"
    line = (
        f"touch {started}; until test -e {go}; do sleep 0.05; done; "
        f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{sink.port}; printf \\\"POST /v1/key HTTP/1.0\\\\r\\\\n\\\\r\\\\n\\\" >&3; cat <&3 >&2'; echo key"
    )
    put(tmp_path / "home", sink.port, key=f"!{line}")
    with running(tmp_path / "home", argv=[sys.executable, SERVE]) as daemon:
        answers = []
        client = daemon.session()
        call = threading.Thread(target=lambda: answers.append(outcome(client.call("turn"))))
        call.start()
        until(started.exists, what="the program runs")
        switch(daemon, enabled=False)
        go.touch()
        call.join(20)
        assert answers[0][0]
        assert SENTINEL in answers[0][1]
        assert sink.requests == ["/v1/key"]


def test_a_provider_that_is_added_meanwhile_is_free_until_the_next_arming(host, sink, other):
    """Source: seed: 运行中新加的 provider 不在 deny 里, until true→false."""
    client = host.session()
    switch(host, enabled=False)
    client.call("add", port=other.port)
    assert outcome(client.call("turn", ref="added/m")) == (False, "answered")
    assert outcome(client.call("reach", port=other.port, way="socket")) == (False, "reached")
    before = other.counted()

    switch(host, enabled=True)
    switch(host, enabled=False)
    assert outcome(client.call("turn", ref="added/m")) == (True, SENTINEL)
    assert outcome(client.call("reach", port=other.port, way="socket"))[0]
    assert other.counted() == before


def test_a_provider_that_is_written_into_the_file_is_denied_from_the_agents_next_session_on(shared, other):
    """Source: seed: 会话重建之后也装."""
    host, sink = shared
    client, said = host.session(), len(host.stderr)
    switch(host, enabled=False)
    put(host.home, sink.port, other.port)
    assert outcome(client.call("reach", port=other.port, way="socket")) == (False, "reached")
    before = other.counted()

    client.call("rebuild")
    until(lambda: "takeover armed: 2 provider(s) denied (p0, p1)" in host.stderr[said:], what="it is armed anew")
    assert outcome(client.call("reach", port=other.port, way="socket"))[0]
    assert outcome(client.call("turn", ref="p1/m")) == (True, SENTINEL)
    assert other.counted() == before


def test_a_session_of_the_agent_that_cannot_be_denied_leaves_the_old_wire(shared):
    """Source: seed, "降级状态"; row L05: refused re-arm while on: degraded, tripwire still on, recorded."""
    host, sink = shared
    client, before, said, recorded = host.session(), sink.counted(), len(host.stderr), len(host.audit())
    switch(host, enabled=False)
    put(host.home, sink.port)
    with (host.home / "models.yml").open("a") as file:
        file.write("  far: {api: plain, baseUrl: 'https://far.invalid', transport: native, models: [{id: x}]}\n")
    client.call("rebuild")
    until(lambda: "far would be reached past everything that denies" in host.stderr[said:], what="it is refused")

    assert outcome(client.call("reach", port=sink.port, way="socket"))[0]
    assert outcome(client.call("turn", ref="p0/m")) == (True, SENTINEL)
    assert sink.counted() == before
    assert "deny (tripwire only)" in host.cli("host-llm").stdout
    (refused,) = [one for one in host.audit()[recorded:] if one["tool"] == "host_llm" and "error" in one["args"]]
    assert (refused["sid"], refused["args"]["enabled"]) == (None, False)
