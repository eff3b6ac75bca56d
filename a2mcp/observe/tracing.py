"""Calls as OpenTelemetry spans, where the operator wants that and has installed ``a2mcp[otel]``.

Owns the names of the span and its attributes: the field's conventions for MCP. A span is made when its call has ended,
with the times that were measured, so tracing costs a call nothing. Nothing of OpenTelemetry is imported unless asked.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from a2mcp import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.observe.event import Event
    from a2mcp.tools.call import Call

    Trace = Callable[[Call, Event, int], None]

TOOLS_CALL: Final = "tools/call"

logger = logging.getLogger("a2mcp.observe")


def tracer(provider: Any = None) -> Trace | None:
    """Make what is given each call that has ended; None, with a warning, where OpenTelemetry is not installed.

    Args:
        provider: OpenTelemetry's; made from the variables ``OTEL_…`` where there is none.
    """
    try:
        return _tracer(provider or _provider())
    except ImportError:
        logger.warning(
            "[a2mcp] warning: 'observe.traces' is on and OpenTelemetry is not installed; `pip install 'a2mcp[otel]'`"
        )
        return None


def _provider() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - the extra
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    resource = Resource.create({"service.name": "a2mcp", "service.version": __version__})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _tracer(provider: Any) -> Trace:
    from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415 - as above
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    spans = provider.get_tracer("a2mcp", __version__)
    propagator = TraceContextTextMapPropagator()

    def trace(call: Call, event: Event, ended_ns: int) -> None:
        began_ns = ended_ns - int((event.seconds or 0.0) * 1e9)
        context = propagator.extract(call.exchange.caller.trace)
        name = f"{call.method} {event.tool}" if call.method == TOOLS_CALL else call.method
        span = spans.start_span(
            name, context=context, kind=SpanKind.SERVER, attributes=_attributes(call, event), start_time=began_ns
        )
        if event.status != "ok":
            span.set_status(Status(StatusCode.ERROR, event.status))
        span.end(ended_ns)

    return trace


def _attributes(call: Call, event: Event) -> dict[str, str]:
    found = {
        "mcp.method.name": call.method,
        "mcp.session.id": event.session,
        "mcp.protocol.version": call.exchange.dialect.version,
        "network.transport": "tcp",
        "a2mcp.call.id": event.call,
        "a2mcp.client": event.client,
        "error.type": None if event.status == "ok" else ("tool_error" if event.status == "error" else event.status),
    }
    if call.method == TOOLS_CALL:
        found |= {"gen_ai.tool.name": event.tool, "gen_ai.operation.name": "execute_tool"}
    return {name: value for name, value in found.items() if value is not None}
