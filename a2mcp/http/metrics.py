"""``/metrics``: the counts in the text form that Prometheus reads, written by hand because it is this short.

Labels are names of tools, outcomes and actors, and nothing that a caller chooses; see ``observe/tally.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from a2mcp.errors import NotFound
from a2mcp.http.server.parked import Parked
from a2mcp.observe.tally import BOUNDS_S
from a2mcp.protocol.response import Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import falcon

    from a2mcp.http.facts import Gauges
    from a2mcp.http.ports import Probe
    from a2mcp.observe.tally import Histogram, Tally

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

FAMILIES: Final = {
    "a2mcp_info": ("gauge", "Which version runs; always 1."),
    "a2mcp_uptime_seconds": ("gauge", "Seconds since the start."),
    "a2mcp_calls_total": ("counter", "Calls that have ended, by tool and outcome."),
    "a2mcp_call_duration_seconds": ("histogram", "How long calls took, by tool, waiting for approval included."),
    "a2mcp_calls_in_flight": ("gauge", "Calls that run or wait."),
    "a2mcp_approvals_waiting": ("gauge", "Calls that wait for the operator."),
    "a2mcp_sessions": ("gauge", "Sessions that are alive."),
    "a2mcp_commands_running": ("gauge", "Commands that run, those that became jobs included."),
    "a2mcp_connections": ("gauge", "Connections that are open."),
    "a2mcp_connections_unauthenticated": ("gauge", "Those on which nobody has shown the token."),
    "a2mcp_connections_sent_away_total": ("counter", "Those that had to go because there were too many of them."),
    "a2mcp_mailbox_depth": ("gauge", "Messages that wait, by actor."),
    "a2mcp_share_bytes_total": ("counter", "Bytes that went through the share, by direction."),
    "a2mcp_share_transfers": ("gauge", "Files that are being moved through the share."),
    "a2mcp_actor_restarts_total": ("counter", "Actors that died and were started again."),
    "a2mcp_audit_records_total": ("counter", "Records written."),
    "a2mcp_audit_failures_total": ("counter", "Records that could not be written."),
    "a2mcp_events_total": ("counter", "Events observed."),
    "a2mcp_events_lost_total": ("counter", "Events that came faster than they could be taken."),
    "a2mcp_events_not_kept_total": ("counter", "Events that the disk did not take."),
    "a2mcp_inference_allowed": ("gauge", "Whether the host may ask models: 1 or 0."),
    "a2mcp_inference_denied_total": ("counter", "Requests to models that were refused."),
    "a2mcp_agents_running": ("gauge", "Turns of the host's own agent that go on."),
    "a2mcp_agent_turns_total": ("counter", "Turns that have ended, refused ones included."),
    "a2mcp_agent_requests_total": ("counter", "Requests to models, failed ones included."),
    "a2mcp_agent_tokens_total": ("counter", "Tokens that models counted, by direction: input or output."),
    "a2mcp_watchers": ("gauge", "Who watches events."),
}
"""Every metric: its type and its meaning."""

Sample = tuple[str, Mapping[str, str], float]


class Metrics:
    """The resource on ``/metrics``.

    Args:
        probe: what knows the counts.
        on: whether there is such a page.
    """

    def __init__(self, probe: Probe, *, on: bool) -> None:
        self._probe = probe
        self._on = on

    def __call__(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Have the counts answered by who owns them."""
        if not self._on:
            raise NotFound("metrics are off", hint="The setting is 'observe.metrics'.")
        parked = Parked()
        resp.stream = parked
        self._probe.scrape(parked, _response)


def _response(tally: Tally, gauges: Gauges) -> Response:
    return Response(200, exposition(tally, gauges), content_type=CONTENT_TYPE)


def exposition(tally: Tally, gauges: Gauges) -> bytes:
    """Write every metric."""
    samples: dict[str, Iterable[Sample]] = {
        "a2mcp_info": [("", {"version": gauges.version}, 1)],
        "a2mcp_calls_total": [("", {"tool": t, "outcome": o}, n) for (t, o), n in sorted(tally.calls.items())],
        "a2mcp_call_duration_seconds": _histograms(tally.durations),
        "a2mcp_mailbox_depth": [("", {"actor": name}, depth) for name, depth in gauges.mailboxes.items()],
        "a2mcp_share_bytes_total": [("", {"direction": way}, count) for way, count in gauges.shared.items()],
        "a2mcp_agent_tokens_total": [
            ("", {"direction": direction}, count) for direction, count in gauges.agent_tokens.items()
        ],
        "a2mcp_events_total": [("", {}, tally.events)],
        "a2mcp_events_lost_total": [("", {}, tally.lost)],
    }
    samples |= {name: [("", {}, value)] for name, value in gauges.plain.items()}
    return "".join(_family(name, samples[name]) for name in FAMILIES).encode()


def _family(name: str, samples: Iterable[Sample]) -> str:
    kind, meaning = FAMILIES[name]
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{suffix}{_labels(labels)} {value:.10g}" for suffix, labels, value in samples]
    return "\n".join(lines) + "\n"


def _histograms(durations: Mapping[str, Histogram]) -> Iterator[Sample]:
    for tool, histogram in sorted(durations.items()):
        bounds = [f"{bound:g}" for bound in BOUNDS_S] + ["+Inf"]
        for bound, count in zip(bounds, accumulate(histogram.buckets), strict=True):
            yield "_bucket", {"tool": tool, "le": bound}, count
        yield "_sum", {"tool": tool}, histogram.total_s
        yield "_count", {"tool": tool}, sum(histogram.buckets)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
