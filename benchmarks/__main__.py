"""``python -m benchmarks``: measure everything and write it down.

Exit code 1 when a bar is missed or was not measured.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click

from benchmarks import loader, report
from benchmarks.bars import Medians, judge
from benchmarks.catalog import HERE, MAKERS, Workplace, gather
from benchmarks.rounds import FULL, QUICK, Rounds
from benchmarks.servers import DidNotStart, allow_files


@click.command()
@click.option("--quick", is_flag=True, help="One short round of about two minutes instead of three of about ten.")
@click.option("--only", multiple=True, type=click.Choice(list(MAKERS)), help="Measure these servers only.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=HERE.parent / "docs" / "benchmarks")
def main(*, quick: bool, only: tuple[str, ...], out: Path) -> None:
    """Start a2mcp and its peers, put the same load on each in turn, and write table, JSON and chart."""
    # The servers have sessions of their own: they must be ended by us, also when we are.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    allow_files()
    with tempfile.TemporaryDirectory(prefix="a2mcp-benchmark-") as folder:
        work = Workplace(Path(folder))
        servers, skipped = gather(work)
        servers = [server for server in servers if not only or server.name in only]
        for name, why in skipped.items():
            click.echo(f"skipped {name}: {why}")
        client = loader.best(work.folder)
        try:
            findings = Rounds(servers, work, client, QUICK if quick else FULL, click.echo).run()
        except DidNotStart as error:
            raise click.ClickException(str(error)) from error
    result = report.Report(
        date=datetime.now(UTC).date().isoformat(),
        quick=quick,
        machine=report.machine(),
        client=client.name,
        servers={server.name: server.version for server in servers},
        skipped=skipped,
        findings=findings,
    )
    page = report.write(result, servers, out)
    bars = judge(Medians(findings))
    click.echo(report.bars_table(bars))
    click.echo(f"written: {page}")
    sys.exit(0 if all(bar.verdict in {"pass", "stretch"} for bar in bars) else 1)


main()
