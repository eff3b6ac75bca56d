"""What leaves the daemon for others: metrics, traces, notices on the desktop."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import msgspec
import pytest
from harness import until
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from a2mcp.audit.record import summarise
from a2mcp.http.facts import Gauges
from a2mcp.http.metrics import FAMILIES, exposition
from a2mcp.observe import desktop, tracing
from a2mcp.observe.event import Event
from a2mcp.observe.tally import Tally
from a2mcp.protocol.caller import Caller
from a2mcp.protocol.exchange import Exchange
from a2mcp.tools.call import Call
from a2mcp.types import CallId

PLAIN = dict.fromkeys(
    (
        "a2mcp_uptime_seconds", "a2mcp_calls_in_flight", "a2mcp_approvals_waiting", "a2mcp_sessions",
        "a2mcp_commands_running", "a2mcp_connections", "a2mcp_connections_unauthenticated", "a2mcp_connections_sent_away_total",
        "a2mcp_actor_restarts_total", "a2mcp_audit_records_total", "a2mcp_audit_failures_total",
        "a2mcp_events_not_kept_total", "a2mcp_watchers", "a2mcp_share_transfers", "a2mcp_inference_allowed", "a2mcp_inference_denied_total",
        "a2mcp_agents_running", "a2mcp_agent_turns_total", "a2mcp_agent_requests_total",
    ),
    3.0,
)  # fmt: skip


def done(tool: str = "bash", status: str = "ok", seconds: float | None = 0.02) -> Event:
    return Event(sequence=1, kind="call.done", tool=tool, status=status, seconds=seconds, call="c1")


def parsed(tally: Tally) -> dict:
    shared = {"download": 7, "upload": 0}
    gauges = Gauges(
        version='1"\\\n', mailboxes={"Gate": 2}, shared=shared, agent_tokens={"input": 5, "output": 7}, plain=PLAIN
    )
    return {one.name: one for one in text_string_to_metric_families(exposition(tally, gauges).decode())}


def test_every_metric_is_there_from_the_first_moment():
    """Issue 6, item 5."""
    assert set(parsed(Tally())) == {name.removesuffix("_total") for name in FAMILIES}


def test_calls_are_counted_by_tool_and_outcome_and_timed():
    """Issue 6, item 5: calls by tool and outcome, latency histograms."""
    tally = Tally()
    for seconds in (0.0005, 0.02, 0.02, 100.0):
        tally.count(done(seconds=seconds))
    tally.count(done(status="error", seconds=None))
    found = parsed(tally)

    calls = {(s.labels["tool"], s.labels["outcome"]): s.value for s in found["a2mcp_calls"].samples}
    assert calls == {("bash", "ok"): 4.0, ("bash", "error"): 1.0}
    samples = found["a2mcp_call_duration_seconds"].samples
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert (buckets["0.001"], buckets["0.025"], buckets["60"], buckets["+Inf"]) == (1.0, 3.0, 3.0, 4.0)
    assert [s.value for s in samples if s.name.endswith("_count")] == [4.0]
    assert found["a2mcp_mailbox_depth"].samples[0].labels == {"actor": "Gate"}
    ways = {s.labels["direction"]: s.value for s in found["a2mcp_share_bytes"].samples}
    assert ways == {"download": 7.0, "upload": 0.0}
    assert found["a2mcp_info"].samples[0].labels == {"version": '1"\\\n'}


# --- traces -------------------------------------------------------------------------------------------------------


def call(tool: str = "bash", method: str = "tools/call", trace: dict[str, str] | None = None) -> Call:
    exchange = Exchange(None, b"1", None)  # type: ignore[arg-type]  # Nobody answers it.
    asked = replace(exchange, caller=Caller(client="omp", trace=trace or {}))
    return Call(CallId("c1"), asked, tool, msgspec.Raw(b"{}"), summarise(b"{}"), method)


@pytest.fixture
def spans():
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace = tracing.tracer(provider)
    assert trace is not None
    return trace, exporter


def test_a_call_is_a_span_that_continues_its_callers_trace(spans):
    """Issue 6, item 5: span per call with the MCP conventions, context from `_meta`."""
    trace, exporter = spans
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    trace(call(trace={"traceparent": parent}), done(seconds=0.5), 2_000_000_000)
    trace(call(method="resources/read"), done(tool="resources/read", status="cancelled"), 3_000_000_000)
    first, second = exporter.get_finished_spans()

    assert (first.name, first.kind.name) == ("tools/call bash", "SERVER")
    assert first.end_time - first.start_time == 500_000_000
    assert f"{first.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert first.attributes["gen_ai.tool.name"] == "bash"
    assert first.attributes["mcp.method.name"] == "tools/call"
    assert first.status.is_ok
    assert (second.name, second.parent, second.attributes["error.type"]) == ("resources/read", None, "cancelled")


def test_without_the_extra_there_is_a_warning_and_no_tracing(monkeypatch, caplog):
    """Issue 6, item 5: an extra."""
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.trace", None)

    assert tracing.tracer(object()) is None
    assert "a2mcp[otel]" in caplog.text


# --- the desktop --------------------------------------------------------------------------------------------------


class Clock:
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(0, UTC)


def test_a_call_that_waits_raises_one_notice_at_a_time(tmp_path):
    """Issue 6, item 4: a desktop notice. SECURITY: no argument of a caller is an option or markup."""
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/said\n')
    program.chmod(0o755)
    found = desktop.program(str(tmp_path))
    assert found == str(program)
    clock = Clock()
    notices = desktop.Desktop(found, clock)
    waits = Event(kind="approval.waiting", tool="--help", client="<b>\x1b", args=msgspec.Raw(b'{"id":"k7f3a"}'))
    notices.notify(waits)
    notices.notify(waits)
    until(lambda: (tmp_path / "said").exists() and "k7f3a" in (tmp_path / "said").read_text(), what="a notice")

    said = (tmp_path / "said").read_text()
    assert said.splitlines()[:2] == ["--app-name=a2mcp", "--"]
    assert "&lt;b&gt;\ufffd" in said
    assert said.count("A call waits for you") == 1
    for process in notices._running:
        process.wait(10)


def test_a_program_that_cannot_be_started_is_no_fault(caplog):
    """Ours: a notice is a courtesy."""
    desktop.Desktop(os.devnull + "/none", Clock()).notify(Event(kind="approval.waiting", tool="bash"))

    assert "no notice on the desktop" in caplog.text
