"""A daemon without tools: the real lock, socket and operator app before a port that only remembers.

Run as a program it serves the home of its environment until it is asked to stop; ``Fake`` is also used in threads.
"""

import os
import sys
import threading
from pathlib import Path

import msgspec

import a2mcp
from a2mcp.errors import A2mcpError, CannotDeny, ToolError, UnusableFile
from a2mcp.http.facts import (
    Answered,
    CallFacts,
    Finding,
    HostLlmFacts,
    Invitation,
    JobFacts,
    JobOutput,
    SessionFacts,
    WaitingApproval,
)
from a2mcp.http.ports import AuditFacts, Status
from a2mcp.observe.event import Event
from a2mcp.obtain.programs import ProgramFacts
from a2mcp.policy.grants import Grant
from a2mcp.tunnel.passage import TunnelFacts

ROOT = Path(a2mcp.__file__).parents[1]
"""What must be on the path of a process that imports us."""

STATUS = Status(
    url="http://127.0.0.1:8123/mcp", bridge_url="http://127.0.0.1:8123/", pid=os.getpid(), version="0.1.0",
    started_at="2026-10-16T04:35:23.000Z", uptime_s=3723.5, token_prefix="tttttt…", sessions=3, calls_in_flight=2,
    approvals_waiting=1, jobs_running=4, audit=AuditFacts(written=10, failures=0),
)  # fmt: skip
WAITING = WaitingApproval(
    id="k7f3a", call_id="c-1", tool="bash", args='{"command":"rm -rf \u202ex\x1b[2K [red]"}', session_id=None, waiting_s=65.0
)  # fmt: skip
JOB = JobFacts(
    id="j1", command="make all\nnow", state="running", pid=77, started_at="2026-10-16T04:35:23.000Z", exit_code=None,
    output_bytes=12,
)  # fmt: skip


GRANT = Grant(id="gk7f3a", tool="bash", since="2026-10-16T04:35:23.000Z", until="2026-10-16T05:35:23.000Z")
CALL = CallFacts(
    call_id="c1", tool="bash", args=msgspec.Raw(b'{"command":"sleep 9"}'), client="omp", session_id="s1",
    elapsed_s=4.2, waiting=False,
)  # fmt: skip
EVENTS = (
    Event(sequence=1, ts="2026-10-16T04:35:23.000Z", kind="call.start", tool="bash", status="running", call="c1",
          session="s1", client="omp", args=msgspec.Raw(b'{"command":"ls"}')),
    Event(sequence=2, ts="2026-10-16T04:35:23.100Z", kind="call.done", tool="bash", status="ok", call="c1",
          session="s1", client="omp", seconds=0.1, args=msgspec.Raw(b'{"command":"ls"}')),
)  # fmt: skip


class NotWaiting(A2mcpError):
    """As the daemon's own."""

    status = 404


class Fake:
    """An ``OperatorPort`` that remembers what it was asked."""

    def __init__(self):
        self.current = "t" * 43
        self.answers = []
        self.words = []
        self.asked = []
        self.ended = []
        self.in_flight = (CALL,)
        self.waiting = (WAITING,)
        self.running = (JOB,)
        self.stopped = threading.Event()
        self.fault = None
        self.tunnels = [TunnelFacts()]
        self.inference = HostLlmFacts(denied=2, model="local/qwen3")
        self.wishes = []
        self.found = [(ProgramFacts(name="dufs", setting="dufs", state="missing", version="0.46.0"),)]
        self.wanted = []

    def status(self):
        if self.fault:
            raise self.fault
        return STATUS

    def token(self):
        return self.current

    def rotate(self):
        self.current = "n" * 43
        return self.current

    def approvals(self):
        return self.waiting

    def answer(self, approval_id, word):
        self.answers.append((approval_id, word.approve, word.reason))
        self.words.append(word)
        if not any(one.id == approval_id for one in self.waiting):
            raise NotWaiting(f"No call waits for approval under '{approval_id}'.")
        return Answered(id=approval_id, approved=word.approve, grant=None if word.scope == "once" else GRANT)

    def grants(self):
        return (GRANT,)

    def revoke(self, grant_id):
        return GRANT if grant_id == GRANT.id else None

    def events(self, asked):
        self.asked.append(asked)
        return EVENTS[-asked.limit :] if asked.limit else ()

    def calls(self):
        return self.in_flight

    def cancel_call(self, call_id):
        self.ended.append(call_id)
        return call_id == CALL.call_id

    def sessions(self):
        return (SessionFacts(id="s1", idle_s=3.0, calls=1),)

    def end_session(self, session_id):
        self.ended.append(session_id)
        return session_id == "s1"

    def stop_job(self, job_id):
        self.ended.append(job_id)
        if job_id != JOB.id:
            raise ToolError(f"There is no job '{job_id}'.")

    def job_output(self, job_id, stream, offset):
        return JobOutput(id=job_id, stream=stream, text="a line\n", offset=offset, next=offset + 7, size=7)

    def search(self, wanted):
        self.asked.append(wanted)
        return ()

    def jobs(self):
        return self.running

    def host_llm(self):
        return self.inference

    def switch_host_llm(self, *, enabled):
        if not enabled and self.inference.degraded:
            raise CannotDeny("inference cannot be denied: far.", hint="Change it.")
        self.inference = msgspec.structs.replace(self.inference, enabled=enabled)
        return self.inference

    def tunnel(self):
        return self.tunnels.pop(0) if len(self.tunnels) > 1 else self.tunnels[0]

    def open_tunnel(self, wish):
        self.wishes.append(wish)
        return self.tunnel()

    def close_tunnel(self):
        self.wishes.append(None)
        return self.tunnel()

    def programs(self):
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]

    def obtain(self, program):
        self.wanted.append(program)
        return program in ("dufs", "cloudflared")

    def share(self):
        return None

    def stop_share(self):
        return False

    def stop_transfer(self, transfer):
        return False

    def doctor(self):
        return (Finding(name="home", verdict="ok", fact="it is there"),)

    def invite(self):
        return Invitation(url="http://127.0.0.1:8123/ui/#code", valid_s=120.0)

    def stop(self):
        self.stopped.set()


class Channel:
    """The operator's app on its socket, in a thread."""

    def __init__(self, home, port):
        from waitress.server import create_server

        from a2mcp.http.operator import bind_operator_socket, make_operator_app

        self.map = {}
        self.socket = bind_operator_socket(home)
        self.server = create_server(
            make_operator_app(port), map=self.map, sockets=[self.socket], threads=2, clear_untrusted_proxy_headers=True
        )
        self.thread = threading.Thread(target=self._run)
        self.ending = threading.Event()
        self.thread.start()

    def _run(self):
        from waitress import wasyncore

        while not self.ending.is_set():
            wasyncore.loop(timeout=0.05, map=self.map, count=1)

    def close(self):
        self.ending.set()
        self.thread.join()
        self.server.task_dispatcher.shutdown()
        self.server.close()
        wasyncore_close(self.map)


def wasyncore_close(sockets):
    """Close what is left open."""
    for one in list(sockets.values()):
        one.close()


def main():
    """Serve until asked to stop; with ``A2MCP_FAKE=die`` end at once, as a daemon with wrong settings does."""
    from a2mcp.config.instance import claim
    from a2mcp.config.paths import home_from_environment

    home = home_from_environment(os.environ)
    if os.environ.get("A2MCP_FAKE") == "die":
        sys.stderr.write("a2mcp: There is no such luck.\n")
        return UnusableFile.exit_code
    if os.environ.get("A2MCP_FAKE") == "warn":
        sys.stderr.write("[a2mcp] warning: port 1 is taken\x1b[1m\n")
        sys.stderr.flush()
    held = claim(home)
    port = Fake()
    channel = Channel(home, port)
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    port.stopped.wait()
    if os.environ.get("A2MCP_FAKE") == "linger":
        threading.Event().wait(float(os.environ["A2MCP_FAKE_S"]))
    channel.close()
    home.socket.unlink()
    held.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
