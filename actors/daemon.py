"""The daemon: everything that one process holds from its start to its end, in that order and in the reverse one.

It owns the home's lock, the listening socket, the operator's socket, the actors and the signals. It does no work.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import logging
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp import masking
from a2mcp.auth.bearer import Bearer
from a2mcp.auth.origin import AllowedHosts
from a2mcp.auth.visit import Visits
from a2mcp.clock import SystemClock
from a2mcp.config import endpoint as endpoints
from a2mcp.config import instance, load
from a2mcp.config import token as tokens
from a2mcp.host import affinity, arenas, descendants
from a2mcp.http.app import make_app
from a2mcp.http.events import EventServer
from a2mcp.http.guard import Guard
from a2mcp.http.operator import bind_operator_socket, make_operator_app
from a2mcp.http.server.server import Server
from a2mcp.http.server.unix import OperatorServer
from a2mcp.http.ui import Ui
from a2mcp.http.xfer import Files
from a2mcp.library.prompts import Facts, Prompts
from a2mcp.library.resources import Resources, Views
from a2mcp.library.shelf import Library
from a2mcp.stderr import Stderr, occupy_standard_descriptors
from a2mcp.tools.agents import AgentHost
from a2mcp.tools.builtin import builtin_tools
from a2mcp.tools.registry import LocalHost, Registry
from a2mcp.tools.xfer import BridgeHost
from actors import agentwiring, console, jobs, sessions
from actors import system as systems
from actors.doors import listen, measure, threads
from actors.inference import load_models
from actors.observing import Warnings
from actors.operator import Operator
from actors.setup import Setup

if TYPE_CHECKING:
    import socket

    from a2mcp.clock import Clock
    from a2mcp.config.paths import Home
    from a2mcp.config.schema import Settings
    from a2mcp.library.shelf import Shelf
    from a2mcp.tools.registry import Host

HURRY_S: Final = 0.8
"""After a second signal the process is gone within this."""
FILES_S: Final = 1.0
"""For removing what is left of uploads that the end of the server broke off."""
SETTLE_S: Final = 0.01
"""Between two looks at whether the last command has ended."""

logger = logging.getLogger("a2mcp")


class More(msgspec.Struct, frozen=True):
    """What else is offered, beside what every daemon has."""

    hosts: tuple[Host, ...] = ()
    shelves: tuple[Shelf, ...] = ()


class Daemon:
    """One serving process."""

    def __init__(
        self, home: Home, settings: Settings, lock: instance.Instance, sock: socket.socket, more: More
    ) -> None:
        self._home = home
        self._lock = lock
        self._clock: Clock = SystemClock()
        self._drain_s = settings.drain_s
        self._stop_asked = False
        self._deadline: float | None = None
        self._aborted = False
        self._exit_code = 0
        models = load_models(home, self._clock)  # First of all: what is wrong in the file ends the start.
        if settings.one_processor:
            affinity.pin()
        arenas.share()
        masking.learn(settings.token)
        descendants.begin(home.root)
        bearer = Bearer(settings.token)
        hosts = AllowedHosts(settings.host, settings.allowed_hosts)
        port = sock.getsockname()[1]
        origin = endpoints.address(endpoints.from_here(settings.host), port)
        # Before any thread: it sets the umask for a moment.
        operator_socket, events_socket = (
            bind_operator_socket(home, path) for path in (home.socket, home.events_socket)
        )
        registry = Registry((LocalHost(builtin_tools(settings.tools.names)), *more.hosts, AgentHost(), BridgeHost()))
        facts = Facts(tools=registry.specs, approval=settings.approval)
        resources = Resources(self._views(), files="read" in settings.tools.names)
        room = measure(settings)
        self._system = systems.start(
            Setup(
                home=home,
                settings=settings,
                registry=registry,
                library=Library((resources, Prompts(facts), *more.shelves)),
                clock=self._clock,
                models=models,
                hosts=hosts,
                origin=origin,
                room=room,
                give_up=self._give_up,
            )
        )
        base = endpoints.address(settings.host, port)
        visits = Visits(self._clock)
        self._operator = Operator(
            system=self._system,
            bearer=bearer,
            token=settings.token,
            home=home,
            base=base,
            origin=origin,
            visits=visits,
            clock=self._clock,
            stop=self.ask_to_stop,
        )
        operator_app = make_operator_app(self._operator)
        front, lookout = self._system.front, self._system.lookout
        self._page = Ui(visits, operator_app, lookout.watch)
        self._files = Files(self._system.stand)
        self._server = Server(
            make_app(front, self._files, switch=front, probe=lookout, metrics=settings.observe.metrics, ui=self._page),
            sock,
            guard=Guard(
                bearer,
                hosts,
                body_bytes=settings.limits.body_bytes,
                mcp_body_bytes=settings.limits.mcp_body_bytes,
                upload_bytes=settings.xfer.upload_bytes,
            ),
            connections=room.connections,
            sinks=self._files.sink,
            on_tick=self._tick,
        )
        self._operator_server = OperatorServer(operator_app, operator_socket)
        self._event_server = EventServer(events_socket, lookout.watch)
        self._warnings = Warnings(self._system.news)
        self._greeting = f"a2mcp listening on {base}/ (token {tokens.prefix(settings.token)})"

    @classmethod
    def start(cls, home: Home, more: More) -> Daemon:
        """Take the home, read the settings, bind the port and start the actors.

        Raises:
            A2mcpError: one of these cannot be done.
        """
        occupy_standard_descriptors()
        sys.stderr = Stderr()
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        lock = instance.claim(home)
        try:
            loaded = load.load(home.config)
            for warning in (*lock.warnings, *loaded.warnings):
                logger.warning("[a2mcp] warning: %s", warning)
            with threads():
                return cls(home, loaded.settings, lock, listen(home, loaded.settings), more)
        except BaseException:
            lock.release()
            raise

    def run(self) -> int:
        """Serve until told to stop, then go down in order; the exit code."""
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            self._operator.publish()
            with threads():
                self._operator_server.start()
                self._event_server.start()
            logging.getLogger("a2mcp").addHandler(self._warnings)
            console.say(self._greeting)
            # What is there now stays for good: the collector need not look at it again and again. PERF: not even once,
            # which takes a seventh of the start and finds a thousand objects.
            gc.freeze()
            gc.enable()
            self._server.run()
        finally:
            self._go_down()
        return self._exit_code

    def _views(self) -> Views:
        """What resources show. Looked up when asked, because the actors start after the library is put together."""
        return Views(
            status=lambda: self._operator.facts(),  # noqa: PLW0108  # There is no operator yet.
            sessions=lambda: sessions.alive(self._system.refs.sessions),
            agents=lambda: agentwiring.shown(self._system.refs),
            agent=lambda session, count: agentwiring.shown_closely(self._system.refs, session, count),
            job=lambda job: jobs.report(self._system.refs.jobs, job),
            audit=self._home.audit,
            secret=lambda: self._operator.token(),  # noqa: PLW0108  # As above.
        )

    def ask_to_stop(self) -> None:
        """Begin to drain. Called from any thread or signal handler."""
        self._stop_asked = True
        self._server.wake()

    # --- going down -----------------------------------------------------------------------------------------------

    def _on_signal(self, number: int, _frame: Any) -> None:
        # A terminal that closes may send SIGHUP twice, by itself and by its shell: that is nobody in a hurry.
        if self._stop_asked and number != signal.SIGHUP:
            self._hurry()
        self.ask_to_stop()

    def _hurry(self) -> None:
        """A second signal: end what runs, and the process even when something hangs."""
        self._end_at_once()
        timer = threading.Timer(HURRY_S, descendants.leave)
        timer.daemon = True  # Or the process would wait for it at its end.
        timer.start()

    def _give_up(self, reason: str) -> None:
        logger.critical("[a2mcp] %s: the daemon ends", reason)
        self._end_at_once()
        self.ask_to_stop()

    def _end_at_once(self) -> None:
        self._exit_code = 1
        self._drain_s = 0.0
        if self._deadline is not None:
            self._deadline = self._clock.monotonic()

    def _tick(self) -> None:
        """Called by the loop: once a second, and more often while it drains."""
        self._system.tick()
        self._page.tend()
        self._operator.tend()
        if not self._stop_asked:
            return
        now = self._clock.monotonic()
        if self._deadline is None:
            self._deadline = now + self._drain_s
            self._system.front.stop_admitting()
            self._system.stop_agents()
            self._page.close()
            self._server.drain()
            if self._drain_s and (waiting := self._system.front.unanswered):
                sys.stderr.write(f"[a2mcp] {console.wait_line(waiting, self._drain_s)}\n")
        if self._server.quiet and not self._system.front.unanswered:
            self._server.finish()
        elif now >= self._deadline:
            self._cut(now)

    def _cut(self, now: float) -> None:
        """End what is still running at the bound; at a second bound, go without its answers."""
        if self._aborted:
            self._server.finish()
            return
        self._aborted = True
        self._deadline = now + systems.KILL_AFTER_S
        self._system.abort()

    def _go_down(self) -> None:
        grace_s = 0.0 if self._exit_code else systems.KILL_AFTER_S
        with contextlib.ExitStack() as steps:
            # Taken from the end, and each of them whatever became of the ones before it.
            steps.callback(self._lock.release)
            steps.callback(self._home.socket.unlink, missing_ok=True)
            steps.callback(self._home.events_socket.unlink, missing_ok=True)
            steps.callback(endpoints.withdraw, self._home.endpoint, pid=os.getpid())
            steps.callback(self._event_server.stop)
            steps.callback(descendants.end_all)
            steps.callback(self._system.stop)
            steps.callback(self._let_commands_end, self._clock.monotonic() + grace_s)
            steps.callback(self._system.abort, grace_s=grace_s)
            steps.callback(self._system.close_tunnel, at_once=not grace_s)
            steps.callback(self._operator_server.stop)
            steps.callback(self._files.settle, FILES_S)

    def _let_commands_end(self, deadline: float) -> None:
        """Give commands their grace; a second signal takes it away, so that they are killed before the process goes."""
        while not self._exit_code and self._clock.monotonic() < deadline and self._system.commands_run():
            time.sleep(SETTLE_S)
