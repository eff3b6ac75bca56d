"""The verbs of watching and granting, against a real socket with a port that only remembers."""

import json
import threading
import time

import msgspec
import pytest
from fake_daemon import CALL, EVENTS, GRANT

from a2mcp.cli import observe as verb
from a2mcp.cli import show
from a2mcp.cli.client import query_of
from a2mcp.errors import NoDaemon
from a2mcp.http.events import EventServer
from a2mcp.http.operator import bind_operator_socket
from a2mcp.observe.event import Wanted, as_sse, encode
from a2mcp.policy.grants import Scope


def test_an_approval_reaches_as_far_as_it_says(run, served):
    """Issue 6, item 4: `approve ID --session|--always [--for 1h]`."""
    said = run("approve", "k7f3a", "--always", "--for", "90s").output
    run("approve", "k7f3a", "--session")

    assert said == "approved k7f3a, and bash for everybody until 2026-10-16T05:35:23.000Z (gk7f3a)\n"
    assert [(word.scope, word.for_s) for word in served.words] == [(Scope.ALWAYS, 90.0), (Scope.SESSION, None)]


@pytest.mark.parametrize(
    "wrong", [["--session", "--always"], ["--for", "1h"], ["--always", "--for", "1"], ["--always", "--for", "0s"],
              ["--always", "--for", "-1h"], ["--always", "--for", "1w"]]
)  # fmt: skip
@pytest.mark.usefixtures("home")
def test_an_approval_that_makes_no_sense_is_wrong_usage(run, wrong):
    """Issue §9: 2 wrong usage."""
    assert run("approve", "k7f3a", *wrong).exit_code == 2


@pytest.mark.usefixtures("served")
def test_grants_are_listed_and_revoked(run):
    """Issue 6, item 4: `approvals --granted`, `approvals --revoke ID`."""
    lines = run("approvals", "--granted").output.splitlines()
    assert lines == [
        "ID\tTOOL\tFOR\tSINCE\tUNTIL",
        "gk7f3a\tbash\teverybody\t2026-10-16T04:35:23.000Z\t2026-10-16T05:35:23.000Z",
    ]
    assert json.loads(run("approvals", "--granted", "--json").output)[0]["id"] == GRANT.id
    assert run("approvals", "--revoke", "gk7f3a").output == "revoked gk7f3a: bash is asked about again\n"
    refused = run("approvals", "--revoke", "g99999")
    assert refused.exit_code == 1
    assert "Nothing is granted" in refused.stderr


def test_top_lists_and_ends_calls(run, served):
    """Issue 6, item 3: `a2mcp top`."""
    lines = run("top").output.splitlines()
    assert lines[1] == 'c1\tbash\trunning\t4 s\tomp\ts1\t{"command":"sleep 9"}'
    assert json.loads(run("top", "--json").output)[0]["call_id"] == CALL.call_id
    assert run("top", "--cancel", "c1").output == "cancelled c1\n"
    assert run("top", "--cancel", "c9").exit_code == 1
    assert served.ended == ["c1", "c9"]
    served.in_flight = ()
    assert run("top").output == "No call is in flight.\n"


def test_a_call_is_ended_by_the_beginning_of_its_id(run, served):
    """Ours: a terminal shows no more of it."""
    served.in_flight = tuple(msgspec.structs.replace(CALL, call_id=one) for one in ("ab1", "ab2", "c1"))
    assert run("top", "--cancel", "c").exit_code == 0
    assert run("top", "--cancel", "ab").exit_code == 2
    assert served.ended == ["c1"]


@pytest.mark.parametrize(("option", "known"), [("--kind", "approval"), ("--status", "cancelled")])
def test_what_no_event_can_be_is_wrong_usage(run, option, known):
    """Ours: it would be waited for in vain."""
    done = run("observe", option, "nosuch")
    assert done.exit_code == 2
    assert known in done.stderr


def test_observe_prints_what_was(run, served):
    """Issue 6, item 3: `observe --no-follow`, text and `--json` lines."""
    lines = run("observe", "--no-follow", "--tool", "bash", "--history", "2").output.splitlines()
    assert lines == [
        '04:35:23.000  running    bash  {"command":"ls"}  omp  s1',
        "04:35:23.100  ok         bash  100.0 ms  omp  s1",
    ]
    assert run("observe", "--no-follow", "--json").output.encode().splitlines() == [encode(one) for one in EVENTS]
    assert run("observe", "--no-follow", "--history", "0").output == ""
    assert (served.asked[0].tool, served.asked[0].limit) == ("bash", 2)


def test_observe_without_a_daemon_says_so(run, home):
    """Issue §9: 5 no daemon runs."""
    assert run("observe").exit_code == NoDaemon.exit_code
    assert run("top").exit_code == NoDaemon.exit_code
    assert home.root.exists()


class Told:
    """The living side of the socket of events."""

    def __init__(self):
        self.asked = []
        self.outlets = []
        self.came = threading.Event()

    def watch(self, outlet, asked):
        self.asked.append(asked)
        self.outlets.append(outlet)
        outlet.emit(b": watching\n\n" + b"".join(as_sse(one.sequence, encode(one)) for one in EVENTS))
        self.came.set()


def test_observe_goes_on_where_it_was_when_the_daemon_comes_back(home, monkeypatch):
    """Issue 6, item 3: live after; nothing twice."""
    monkeypatch.setattr(verb, "AGAIN_S", 0.01)
    monkeypatch.setattr(show, "current_home", lambda: home)
    told, seen = Told(), []
    server = EventServer(bind_operator_socket(home, home.events_socket), told.watch)
    server.start()

    def write(event):
        seen.append(event.sequence)
        if len(seen) == 2:
            server.stop()
        if len(seen) == 4:
            raise KeyboardInterrupt

    def restart():
        deadline = time.monotonic() + 10
        while len(seen) < 2 and time.monotonic() < deadline:
            told.came.wait(0.01)
        again.append(EventServer(bind_operator_socket(home, home.events_socket), told.watch))
        again[0].start()

    again = []
    starter = threading.Thread(target=restart)
    starter.start()
    with pytest.raises(KeyboardInterrupt):
        verb._follow(Wanted(kind="call"), 5, write)
    starter.join(10)
    again[0].stop()

    assert seen == [1, 2, 1, 2]
    assert [(one.after, one.history, one.kind) for one in told.asked] == [(None, 5, "call"), (2, 0, "call")]


def test_a_query_leaves_out_what_is_not_asked():
    """Ours: None is not the word "None"."""
    assert query_of(msgspec.to_builtins(Wanted(tool="a b&c"))) == "tool=a+b%26c"
