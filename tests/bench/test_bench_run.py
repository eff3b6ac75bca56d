"""Whole runs against a small server: what is sent, what is counted, and when it ends."""

import json
import socket
from xml.etree import ElementTree as ET

import pytest
from bench_server import JSON, reply, result
from click.testing import CliRunner
from msgspec.structs import replace

from a2mcp.bench.errors import BadPlan, HandshakeFailed
from a2mcp.bench.plan import Era, Plan, Step, resolve
from a2mcp.bench.run import run
from a2mcp.cli.main import cli


def plan_for(url, **changes):
    defaults = {
        "address": resolve(url) if url else None,
        "steps": (Step(method="ping"),),
        "clients": 3,
        "calls": 60,
        "warmup": 0.0,
        "timeout": 5.0,
    }
    return Plan(**{**defaults, **changes})


def after_the_handshake(behave):
    """A behaviour that lets the handshake pass."""
    return lambda request: result(request) if request.message.get("method") != "ping" else behave(request)


def test_a_run_makes_exactly_the_calls_it_was_asked_for(serve):
    """Issue: --calls N; every client its own connection, every call its own id."""
    server = serve()
    measured = run(plan_for(server.url))
    pings = server.asked("ping")
    assert (measured.calls, measured.failed, measured.unfinished) == (60, 0, 0)
    assert len({ping.message["id"] for ping in pings}) == len(pings) == 60
    assert measured.calls_per_second > 0
    assert 0 < measured.latency_us.min <= measured.latency_us.p50 <= measured.latency_us.p99 <= measured.latency_us.max


def test_a_run_by_time_ends_when_the_time_is_up(serve):
    """Issue: --seconds S."""
    server = serve()
    measured = run(plan_for(server.url, calls=None, seconds=1.0, warmup=0.1))
    assert measured.seconds == 1.0
    assert 0 < measured.calls < len(server.asked("ping"))


def test_the_session_is_opened_used_and_ended(serve):
    """MCP 2025-11-25, sessions."""
    server = serve()
    assert run(plan_for(server.url, calls=5)).session
    assert [request.message.get("method") for request in server.requests[:2]] == [
        "initialize",
        "notifications/initialized",
    ]
    assert {ping.headers.get("mcp-session-id") for ping in server.asked("ping")} == {"s-1"}
    assert server.requests[-1].line.startswith("DELETE /mcp")
    assert server.requests[-1].headers["mcp-session-id"] == "s-1"


@pytest.mark.parametrize("changes", [{"session": False}, {"era": Era.MODERN}])
def test_without_a_session_nothing_but_the_calls_is_sent(serve, changes):
    """Issue: sessions or not, either era."""
    server = serve()
    assert not run(plan_for(server.url, calls=5, **changes)).session
    assert {request.message["method"] for request in server.requests} == {"ping"}
    assert all("mcp-session-id" not in request.headers for request in server.requests)


def test_a_name_with_two_addresses_is_tried_on_both(serve):
    """Ours: localhost is ::1 as well, where most servers do not listen."""
    address = resolve(serve().url)
    measured = run(plan_for("", calls=5, address=replace(address, ip="::1", other_ips=("127.0.0.1",))))
    assert (measured.calls, measured.failed) == (5, 0)


def test_a_server_that_closes_after_each_reply_is_measured_too(serve):
    """RFC 9112 §9.6."""

    def closing(request):
        return result(request).replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)

    measured = run(plan_for(serve(closing).url, calls=20))
    assert (measured.calls, measured.failed) == (20, 0)


def test_a_streamed_answer_counts_like_a_plain_one(serve):
    """MCP 2025-11-25, transports: text/event-stream replies."""

    def streaming(request):
        data = b"data: " + json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": {}}).encode() + b"\n\n"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)

    measured = run(plan_for(serve(after_the_handshake(streaming)).url, calls=20))
    assert (measured.calls, measured.failed) == (20, 0)


@pytest.mark.parametrize(
    ("behave", "kind"),
    [
        (lambda _: reply(b"", status="401 Unauthorized"), "http 401"),
        (lambda r: result(r, isError=True), "isError"),
        (lambda _: reply(b'{"jsonrpc":"2.0","id":1,"result":{}}', JSON), "wrong id"),
        (lambda _: reply(b"oops", JSON), "not json-rpc"),
        (lambda _: b"oops\r\n\r\n", "not http"),
        (lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nhalf", "closed"),
        (lambda _: None, "reset"),
    ],
)
def test_failures_are_counted_by_kind_and_are_in_no_latency(serve, behave, kind):
    """Issue: errors by kind."""
    server = serve(after_the_handshake(behave))
    measured = run(plan_for(server.url, calls=6))
    assert measured.errors == {kind: 6}
    assert (measured.calls, measured.failed, measured.latency_us.max) == (0, 6, 0)


def test_a_reply_that_does_not_come_is_a_timeout(serve):
    """Ours: a hung server ends no run late."""
    server = None

    def hang(request):
        server.closing.wait(5)
        return result(request)

    server = serve(after_the_handshake(hang))
    measured = run(plan_for(server.url, calls=3, timeout=0.2))
    assert measured.errors == {"timeout": 3}


def test_calls_that_are_never_answered_are_told_apart_at_the_end(serve):
    """Ours: nothing is lost silently."""
    server = None

    def hang(request):
        server.closing.wait(5)
        return result(request)

    server = serve(after_the_handshake(hang))
    measured = run(plan_for(server.url, calls=None, seconds=0.1))
    assert (measured.calls, measured.failed, measured.unfinished) == (0, 0, 3)


@pytest.mark.parametrize(("changes", "gave_up"), [({"calls": 50}, False), ({"calls": None, "seconds": 60.0}, True)])
def test_a_server_that_goes_away_ends_the_run(changes, gave_up):
    """Ours: bounded, even when nothing listens any more; an attempt uses up a call."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}/"
    measured = run(plan_for(url, session=False, clients=50, **changes))
    assert set(measured.errors) == {"refused"}
    assert measured.gave_up is gave_up
    assert gave_up or measured.errors["refused"] == 50
    assert measured.calls == 0


def test_think_time_is_kept_between_two_calls(serve):
    """Issue: think time."""
    measured = run(plan_for(serve().url, clients=1, calls=4, think_ms=60))
    assert measured.seconds >= 0.18


def test_a_mix_is_reported_step_by_step(serve):
    """Issue: a mix from a file."""
    steps = (Step(weight=3, tool="echo"), Step(method="tools/list"))
    measured = run(plan_for(serve().url, steps=steps, calls=40))
    assert [(step.label, step.calls) for step in measured.steps] == [("tools/call echo", 30), ("tools/list", 10)]


def test_a_refused_handshake_says_what_to_do(serve):
    """Ours: every failure has a hint."""
    server = serve(lambda _: reply(b"", status="401 Unauthorized"))
    with pytest.raises(HandshakeFailed, match="A2MCP_BENCH_TOKEN"):
        run(plan_for(server.url))


def test_too_many_clients_are_refused(serve):
    """Ours: bounded."""
    with pytest.raises(BadPlan, match="too many"):
        run(plan_for(serve().url, clients=20_000))


def test_the_command_prints_json_and_draws_a_well_formed_picture(serve, tmp_path):
    """Issue: --json, --svg."""
    picture = tmp_path / "latency.svg"
    arguments = [
        serve().url,
        "-c",
        "2",
        "--calls",
        "20",
        "--warmup",
        "0",
        "--tool",
        "echo",
        "--json",
        "--svg",
        str(picture),
    ]
    done = CliRunner().invoke(cli, ["bench", *arguments])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert set(facts) == {
        "url", "era", "session", "clients", "seconds", "calls", "calls_per_second", "failed", "errors", "unfinished",
        "gave_up", "latency_us", "steps", "client_cpu_share", "client_is_limit", "histogram",
    }  # fmt: skip
    assert set(facts["latency_us"]) == {"min", "mean", "p50", "p90", "p99", "p999", "max"}
    assert sum(bar["count"] for bar in facts["histogram"]) == facts["calls"] == 20
    assert ET.parse(picture).getroot().tag.endswith("svg")


def test_the_command_prints_figures_errors_and_bars(serve):
    """Issue: req/s, percentiles, errors by kind, a histogram in the terminal; exit code 1 when calls failed."""
    answers = iter(range(100))
    server = serve(after_the_handshake(lambda r: result(r, isError=next(answers) % 2 == 0)))
    done = CliRunner().invoke(cli, ["bench", server.url, "-c", "1", "--calls", "10", "--warmup", "0"])
    assert done.exit_code == 1
    for text in ("calls/s", "p50", "p99", "error: isError  5", "█"):
        assert text in done.stdout


def test_the_token_comes_from_a_file_or_the_environment(serve, tmp_path):
    """Issue: bearer from file or environment, never from the command line."""
    path = tmp_path / "token"
    path.write_text("from-file\n")
    for arguments, environment, expected in (
        (["--token-file", str(path)], {"A2MCP_BENCH_TOKEN": "from-env"}, "Bearer from-file"),
        ([], {"A2MCP_BENCH_TOKEN": "from-env"}, "Bearer from-env"),
    ):
        server = serve()
        done = CliRunner().invoke(
            cli, ["bench", server.url, "--calls", "3", "--warmup", "0", *arguments], env=environment
        )
        assert done.exit_code == 0, done.output
        assert {request.headers["authorization"] for request in server.requests} == {expected}


@pytest.mark.parametrize(
    "arguments",
    [
        ["http://192.0.2.1/"],
        ["http://127.0.0.1:9/", "--calls", "5", "--seconds", "5"],
        ["http://127.0.0.1:9/", "--tool", "a", "--method", "b"],
        ["http://127.0.0.1:9/", "--args", "{}"],
        ["http://127.0.0.1:9/", "--tool", "a", "--args", "["],
        ["http://127.0.0.1:9/", "-c", "0"],
        ["http://127.0.0.1:9/", "--token-file", "/nonexistent/token"],
    ],
)
def test_wrong_usage_exits_with_2(arguments):
    """Issue: exit code 2 for wrong usage."""
    done = CliRunner().invoke(cli, ["bench", *arguments])
    assert done.exit_code == 2
    assert done.stderr
