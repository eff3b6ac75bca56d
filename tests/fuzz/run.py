"""Runs the fuzz targets with atheris, one after another, and says what came of it: ``make fuzz``.

    make fuzz                                 # every target for a minute
    make fuzz ARGS="--seconds 600 request"    # one of them for ten

Inputs that reach something new are kept from run to run in ``.fuzz/``, beside the repository's own. One that fails is put into
``tests/corpus/<target>/`` as ``found-…``: it stays there and is replayed by ``make test``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

import targets

ROOT = Path(__file__).resolve().parent.parent.parent
GATHERED = ROOT / ".fuzz"
LONGEST_INPUT = 2048
SLOWEST_INPUT_S = 5
MB = 2048
INSTRUMENTED = ["a2mcp", "waitress.parser", "waitress.receiver", "waitress.utilities"]


def main() -> int:
    """Run what the command line asks for; 1 when something was found."""
    asked = _asked()
    if asked.one:
        return _fuzz(asked.targets[0], asked.rest)
    _say(f"{'target':14} {'executions':>10} {'per second':>10} {'coverage':>8}  found")
    return max([_in_a_process(name, asked.seconds, asked.found) for name in asked.targets or targets.NAMES])


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz our own parsers.")
    parser.add_argument("targets", nargs="*", metavar="target", help=", ".join(targets.NAMES))
    parser.add_argument("--seconds", type=int, default=60, help="for each target [default: 60]")
    parser.add_argument("--found", type=Path, default=targets.CORPUS, help="where inputs that fail are put")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked, asked.rest = parser.parse_known_args()
    if unknown := [name for name in asked.targets if name not in targets.NAMES]:
        parser.error(f"no target {unknown[0]}; there are {', '.join(targets.NAMES)}")
    return asked


def _fuzz(name: str, options: list[str]) -> int:
    """Fuzz in this process, which libFuzzer ends."""
    import atheris

    atheris.enabled_hooks.add("str")
    with atheris.instrument_imports(include=INSTRUMENTED):
        check = targets.check(name)
    atheris.Setup([sys.argv[0], *options], check)
    atheris.Fuzz()
    return 0


def _in_a_process(name: str, seconds: int, found: Path) -> int:
    """Fuzz one target for a while in a process of its own and print a line; 1 when something was found."""
    gathered = GATHERED / name
    gathered.mkdir(parents=True, exist_ok=True)
    (found / name).mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}", f"-max_len={LONGEST_INPUT}", f"-timeout={SLOWEST_INPUT_S}", f"-rss_limit_mb={MB}",
        f"-artifact_prefix={found / name}/found-", "-print_final_stats=1",
    ]  # fmt: skip
    began = time.monotonic()
    argv = [sys.executable, __file__, "--one", name, *options, str(gathered), str(targets.CORPUS / name)]
    run = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    _say(_line(name, run, time.monotonic() - began))
    if run.returncode:
        sys.stderr.write(run.stderr[-6000:])
    return int(run.returncode != 0)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _line(name: str, run: subprocess.CompletedProcess[str], took: float) -> str:
    executions = _last(r"number_of_executed_units: (\d+)", run.stderr) or _last(r"^#(\d+)", run.stderr)
    coverage = _last(r"cov: (\d+)", run.stderr)
    artifact = re.search(r"Test unit written to (\S+)", run.stderr)
    outcome = "nothing" if not run.returncode else Path(artifact[1]).name if artifact else f"exit code {run.returncode}"
    return f"{name:14} {executions:>10} {executions / took:>10.0f} {coverage:>8}  {outcome}"


def _last(pattern: str, text: str) -> int:
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else 0


if __name__ == "__main__":
    sys.exit(main())
