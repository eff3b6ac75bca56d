"""Promise P7: planted secrets are sent every way there is, and looked for in everything that is written, answered or shown."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import Daemon, running, until
from inflight import Later, started
from standard_client import Standard, legacy, modern
from stragglers import carrying
from watchers import approvals

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "Planted0Token" + "x7Qm2" * 6
WRONG = "Planted0Wrong" + "y8Rn3" * 6
KEY = "Planted0Provider" + "z9So4" * 6
NAMED = "Planted0Named-w0Tp5"
SHAPED = "ghp_Planted0Shaped" + "v1Uq6" * 5

MODELS = f"providers:\n  p:\n    api: openai-completions\n    baseUrl: http://127.0.0.1:9\n    apiKey: {KEY}\n    models: [{{id: m}}]\n"
SETTINGS = {"token": TOKEN, "drain_s": 0.5, "approval": {"tools": {"write": "prompt"}}}

LEAKY = f"curl -s -H 'Authorization: Bearer {NAMED}' -u me:{NAMED} http://me:{NAMED}@127.0.0.1:9/ --password {NAMED} {SHAPED}"
"""A command line as people write it; nothing listens there."""

VERBS = """
import json, sys
from a2mcp.__main__ import main
for sys.argv[1:] in json.load(sys.stdin):
    try:
        main()
    except SystemExit as end:
        print(end.code if isinstance(end.code, str) else "", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        print(end="\\f", file=stream, flush=True)
"""
"""Many verbs, one after the other: nearly all that one costs is its process. After what each has said comes a form feed."""


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A daemon with a token and a provider's key that are known, and a mark on all it starts."""
    monkeypatch.setenv("PLANTED_MARK", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "models.yml").write_text(MODELS)
    (home / "models.yml").chmod(0o600)
    with running(home, settings=SETTINGS) as started_daemon:
        yield started_daemon


class Heard:
    """Everything that came back, from callers' ways in and from the operator's."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.replies: list[str] = []
        self.shown: list[str] = []

    def reply(self, answer: Any) -> Any:
        self.replies.append(f"{answer.headers} {answer.body!r}")
        return answer

    def raw(self, data: bytes) -> None:
        self.replies.append(repr(self.daemon.raw(data, seconds=1.0, half_close=True)))

    def cli(self, *verbs: list[str]) -> list[str]:
        """Run the verbs in one process; what each of them has said."""
        daemon = self.daemon
        done = subprocess.run(
            [sys.executable, "-c", VERBS], cwd=daemon.home, env=daemon.environment, input=json.dumps(verbs),
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        self.shown += [done.stdout, done.stderr]
        said = done.stdout.split("\f")[:-1]
        assert len(said) == len(verbs)
        return said


def strangers(heard: Heard) -> None:
    """Secrets from somebody without the token, in every place where one could stand."""
    port, ping = heard.daemon.port, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(ping)}\r\n"
    for line in (
        f"Authorization: Bearer {WRONG}",
        f"Authorization: Basic {TOKEN}",
        f"Authorization: Bearer {TOKEN}x",
        f"Cookie: token={TOKEN}",
        f"X-Api-Key: {TOKEN}",
        f"mcp-session-id: {TOKEN}",
        f"Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {WRONG}",
        f"Bad{TOKEN} Header: {WRONG}",
    ):
        heard.raw(f"{head}{line}\r\n\r\n".encode() + ping)
    heard.raw(f"GET /?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    heard.raw(f"{TOKEN} / HTTP/1.1\r\nHost: {WRONG}\r\n\r\n".encode())
    for path in ("/healthz", "/readyz", "/metrics", "/ui/", f"/xfer/{TOKEN}", f"/{TOKEN}"):
        heard.reply(heard.daemon.client(token=None).send("GET", path))


def callers(heard: Heard) -> None:
    """Secrets from somebody with the token: as argument, name, path, command, client and broken JSON."""
    client = heard.daemon.client()
    who = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": f"token={NAMED} {SHAPED}", "version": TOKEN},
    }
    client.session = heard.reply(client.ask("initialize", who)).headers["mcp-session-id"]
    tools = [tool["name"] for tool in heard.reply(client.ask("tools/list")).result["tools"]]
    for tool in tools:
        if tool != "write":
            heard.reply(client.call(tool, password=NAMED, api_key={"deep": SHAPED}, path=f"/nowhere/{SHAPED}"))
    for command in (f"true {LEAKY}", f"false {LEAKY}"):
        heard.reply(client.call("bash", command=command, env={"API_KEY": NAMED}))
    heard.reply(client.call("bash", command=f": {LEAKY}; exec sleep 79", timeout=0.3))
    heard.reply(client.call("bash", command=f": {LEAKY}; setsid sleep 79 >/dev/null 2>&1 &"))
    heard.reply(client.call("bash", command=f": {LEAKY}; exec sleep 79", wait=0))
    heard.reply(client.call("read", path=f"/nowhere/{SHAPED}"))
    heard.reply(client.call(f"no such {SHAPED}", token=NAMED))
    heard.reply(client.ask(f"no/{SHAPED}", {"token": NAMED}))
    heard.reply(client.post(f'{{"jsonrpc":"2.0","id":1,"method":"{TOKEN}'.encode()))
    heard.reply(client.ask("tools/call", {"name": "bash", "arguments": f"token={NAMED}"}))
    for message, headers in (
        legacy("tools/call", {"name": "bash", "arguments": {"command": f"true {LEAKY}"}}),
        modern("tools/call", {"name": "read", "arguments": {"path": f"/nowhere/{SHAPED}", "token": NAMED}}),
    ):
        standard = Standard(heard.daemon)
        heard.reply(standard.send(message, headers))
        standard.close()


def operators(heard: Heard) -> None:
    """What the operator is shown, while a call waits and after the token was changed."""
    waiting = heard.daemon.session()
    call = Later(lambda: waiting.call("write", path="never", content="x"))
    (held,) = until(lambda: approvals(heard.daemon), what="a call that waits")
    verbs = (
        ["status"],
        ["jobs"],
        ["audit"],
        ["observe", "--history", "200", "--no-follow"],
        ["doctor"],
        ["host-llm"],
        ["approvals"],
    )
    said = heard.cli(*(verb + more for verb in verbs for more in ([], ["--json"])), ["deny", held["id"]])
    assert all(said)
    assert "write" in said[-3]
    assert [waits["id"] for waits in json.loads(said[-2])] == [held["id"]]
    assert call.result().result["isError"] is True


def files(home: Path) -> dict[str, bytes]:
    """Every file of the home, but for those whose purpose is to hold a secret."""
    keepers = {"a2mcp.json", "endpoint.json", "models.yml"}
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and path.name not in keepers
    }


def processes(marker: str) -> dict[str, bytes]:
    """Arguments and environment of the daemon and whoever it started."""
    found = {}
    for pid in carrying(marker):
        with contextlib.suppress(OSError):
            for what in ("cmdline", "environ"):
                found[f"{pid} {what}"] = Path(f"/proc/{pid}/{what}").read_bytes()
    return found


def holding(places: dict[str, bytes], *secrets: str) -> list[tuple[str, str]]:
    return [(name, secret) for name, data in places.items() for secret in secrets if secret.encode() in data]


@pytest.mark.timeout(240)
def test_planted_secrets_are_found_nowhere(daemon: Daemon, tmp_path: Path) -> None:
    """Issue 5, P7: zero hits in every file, reply, list of processes and environment, also after a kill and a new start."""
    heard = Heard(daemon)
    ours = (TOKEN, WRONG, KEY)
    strangers(heard)
    callers(heard)
    operators(heard)
    assert holding(processes(str(tmp_path)), *ours) == []
    busy = daemon.session()
    Later(lambda: busy.call("bash", command=f": {LEAKY}; exec sleep 79"))
    until(lambda: '"tool":"bash"' in (daemon.home / "a2mcp.log").read_text().splitlines()[-1], what="its start")
    daemon.process.kill()
    daemon.process.wait(10)

    with running(daemon.home) as second:
        heard.daemon = second
        until(lambda: "was killed left" in second.stderr, what="what was left")
        rotated = second.cli("rotate").stdout.strip()
        assert len(rotated) > 30
        heard.daemon.token = rotated
        heard.reply(second.client(token=TOKEN).ask("ping"))
        callers(heard)
        operators(heard)
        assert holding(processes(str(tmp_path)), *ours, rotated) == []
        (jobs,) = heard.cli(["jobs", "--json"])
        heard.cli(*(["jobs", "--stop", job["id"]] for job in json.loads(jobs)))
        assert second.stop() == 0

    everything = files(daemon.home)
    assert {"a2mcp.log", "events.db", "stderr.txt"} <= everything.keys()
    assert any(re.fullmatch(r"jobs/j\w+/meta.json", name) for name in everything)
    assert holding(everything, *ours, rotated, NAMED, SHAPED) == []
    shown = {f"shown {number}": text.encode() for number, text in enumerate(heard.shown)}
    assert holding(shown, *ours, rotated, NAMED, SHAPED) == []
    replies = {f"reply {number}": text.encode() for number, text in enumerate(heard.replies)}
    assert holding(replies, *ours, rotated) == []
    assert len(started(daemon, "bash")) > 10
