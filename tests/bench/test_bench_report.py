"""What ``make bench`` writes: three files that say the same, and nothing about whose machine it was."""

import json
import platform
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from a2mcp.bench.plan import Plan, Step, resolve
from benchmarks import catalog, report
from benchmarks.bars import Medians, judge
from benchmarks.catalog import HELLO, OURS, NotInstallable, Server, Workplace, gather
from benchmarks.loader import PythonLoader, Sample
from benchmarks.rounds import CLIENTS, Figure, Findings, Gauge


def a_sample(rate, **changes):
    figures = {"p50": 100, "p90": 150, "p99": 200, "max": 300, "calls": 9, "errors": 0, "client_cpu_share": 0.1}
    return Sample(calls_per_second=rate, **{**figures, **changes})


def a_run():
    findings = Findings(rounds=3)
    for number, ours in enumerate((900, 1000, 5000), start=1):
        for clients in CLIENTS:
            for server, rate in ((OURS, ours), (HELLO, 1000), ("mcp (PyPI)", 250)):
                figure = Figure(server=server, operation="echo", clients=clients, round=number, sample=a_sample(rate))
                findings.figures.append(figure)
        findings.gauges.append(Gauge(server=OURS, name="memory idle MB", round=number, value=30.0 + number))
    return findings


def a_server(name, folder):
    return Server(name=name, version="1", port=9, command=(), cwd=folder)


def test_a_report_is_a_page_a_chart_and_facts(tmp_path):
    """Issue: a table and a chart (SVG) with date and machine."""
    servers = [a_server(name, tmp_path) for name in (OURS, HELLO, "mcp (PyPI)")]
    whole = report.Report(
        date="2026-01-02",
        quick=False,
        machine=report.machine(),
        client="load.c",
        servers={server.name: server.version for server in servers},
        skipped={"fastmcp": "pip: no network"},
        findings=a_run(),
    )
    page = report.write(whole, servers, tmp_path / "out")
    text = page.read_text()
    assert page.name == "results-2026-01-02.md"
    times = "\N{MULTIPLICATION SIGN}"
    assert f"| echo, 16 clients, over waitress hello | 1.00{times} | 0.8{times} | 1.2{times} | pass |" in text
    assert "fastmcp was skipped: pip: no network" in text
    assert "2026-01-02" in text
    assert ET.parse(page.with_suffix(".svg")).getroot().tag.endswith("svg")
    facts = json.loads(page.with_suffix(".json").read_bytes())
    assert len(facts["findings"]["figures"]) == 27
    assert {bar["verdict"] for bar in facts["bars"]} == {"pass", "stretch", "not measured"}


def test_nothing_says_whose_machine_it_was():
    """Ours: results are published."""
    said = report.machine()
    assert platform.node() not in said
    assert str(Path.home()) not in said
    assert "cores" in said
    assert platform.python_version() in said


def test_figures_are_medians_over_the_rounds():
    """Issue: measured in one run, medians."""
    medians = Medians(a_run())
    assert medians.figure(OURS, "echo", 16) == 1000
    assert medians.figure(OURS, "bash true", 16) is None
    values = {bar.what: bar.value for bar in judge(medians)}
    assert values["echo, 16 clients, over mcp (PyPI)"] == 4.0
    assert values["echo, 64 clients, p99 over p50"] == 2.0
    assert values["memory, idle"] == 32.0
    assert values["echo, 16 clients, over fastmcp"] is None


def test_a_peer_that_cannot_be_installed_is_left_out_by_name(tmp_path, monkeypatch):
    """Issue: a peer that cannot be installed is skipped by name."""

    def missing(_):
        raise NotInstallable("npm: not found")

    makers = {"good": lambda work: a_server("good", work.folder), "bad": missing}
    monkeypatch.setattr(catalog, "MAKERS", makers)
    servers, skipped = gather(Workplace(tmp_path))
    assert [server.name for server in servers] == ["good"]
    assert skipped == {"bad": "npm: not found"}


def test_without_a_compiler_the_python_client_measures(serve):
    """Issue: built on the Python client where there is no other."""
    plan = Plan(address=resolve(serve().url), steps=(Step(tool="echo"),), clients=2, seconds=0.2, warmup=0.0)
    sample = PythonLoader().put(plan, "anything")
    assert sample.calls > 0
    assert sample.errors == 0


@pytest.mark.parametrize(
    "name", ["mcp_sdk.py", "fastmcp_server.py", "waitress_hello.py", "ts_sdk.mjs", "bun_estimate.mjs"]
)
def test_every_peer_is_there_and_says_what_it_is(name):
    """Issue: the peers."""
    assert "Peer: " in (catalog.HERE / "peers" / name).read_text().splitlines()[0]
