"""``python -m benchmarks.versions COMMIT``: the code as it is here beside what it was at a commit, in one run.

Both daemons run at the same time and take turns under the same loads. What is lost has to have bought something.
"""

from __future__ import annotations

import compileall
import subprocess
import tarfile
import tempfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from benchmarks import loader
from benchmarks.bars import Medians
from benchmarks.catalog import HERE, Server, Workplace, checkout
from benchmarks.report import machine
from benchmarks.rounds import CLIENTS, FULL, QUICK, Rounds, operations
from benchmarks.servers import allow_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.rounds import Findings

_GAUGES: Final = ("startup ms", "memory idle MB", "memory after load MB")


@click.command()
@click.argument("commit")
@click.option("--quick", is_flag=True, help="One short round instead of three.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the page here, too.")
def main(*, commit: str, quick: bool, out: Path | None) -> None:
    """Measure both and print a page."""
    allow_files()
    with tempfile.TemporaryDirectory(prefix="a2mcp-benchmark-") as folder:
        work = Workplace(Path(folder))
        short = _git("rev-parse", "--short", f"{commit}^{{commit}}").decode().strip()
        before = checkout(work, _extracted(short, work.folder / "code"), "before", short)
        after = checkout(work, HERE.parent, "after", _git("describe", "--always", "--dirty").decode().strip())
        client = loader.best(work.folder)
        findings = Rounds([before, after], work, client, QUICK if quick else FULL, click.echo).run()
        page = _page(findings, before, after, client.name, [each.name for each in operations(work)])
    click.echo(page)
    if out is not None:
        out.write_text(page, encoding="utf-8")


def _git(*words: str) -> bytes:
    try:
        return subprocess.run(["git", *words], cwd=HERE.parent, stdout=subprocess.PIPE, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise click.ClickException(f"git {words[0]} failed: {error}") from error


def _extracted(commit: str, folder: Path) -> Path:
    """Write the code of a commit into a folder, compiled as ours is."""
    with tarfile.open(fileobj=BytesIO(_git("archive", commit))) as archive:
        archive.extractall(folder, filter="data")
    compileall.compile_dir(folder, quiet=2)
    return folder


def _kept(medians: Medians, operation: str, clients: int) -> float | None:
    before, after = (medians.figure(name, operation, clients) for name in ("before", "after"))
    return after / before if before and after is not None else None


def _page(findings: Findings, before: Server, after: Server, client: str, names: list[str]) -> str:
    medians = Medians(findings)
    lines = [
        f"# Before and after, {datetime.now(UTC).date().isoformat()}",
        "",
        f"{machine()}. Client: {client}, same machine. Written by `python -m benchmarks.versions {before.version}`:",
        f"before is {before.version}, after is {after.version}. Both ran at the same time and took turns. Medians of",
        f"{findings.rounds} round(s); calls a second, and p50 / p99 in µs.",
        "",
        "| operation | clients | before | after | after over before |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(line for name in names for line in _rows(medians, name)),
        "",
        "| | before | after |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {medians.gauge('before', name):.1f} | {medians.gauge('after', name):.1f} |" for name in _GAUGES),
    ]
    if findings.problems:
        lines += ["", "What went wrong:", "", *(f"- {problem}" for problem in findings.problems)]
    return "\n".join(lines) + "\n"


def _rows(medians: Medians, operation: str) -> Iterator[str]:
    for clients in CLIENTS:
        cells = [_cell(medians, name, operation, clients) for name in ("before", "after")]
        kept = _kept(medians, operation, clients)
        yield f"| {operation} | {clients} | {' | '.join(cells)} | {'' if kept is None else f'{kept:.2f}'} |"


def _cell(medians: Medians, name: str, operation: str, clients: int) -> str:
    rate, p50, p99 = (
        medians.figure(name, operation, clients, field) or 0 for field in ("calls_per_second", "p50", "p99")
    )
    return f"**{rate:,.0f}** {p50:,.0f} / {p99:,.0f}"


if __name__ == "__main__":
    main()
