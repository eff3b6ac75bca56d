"""Drives every installed client and writes what came of it: `python tests/clients/client_run.py [PAGE]`.

A page is only written when every client ran, so that none vanishes from it where it is not installed.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import client_cases as cases
from harness import Daemon, running

PAGE = """# Clients that were tried

Each of these connects with the bearer token, lists the tools and, where it can do so without a model, calls one. The
version is what client and daemon ended up with, read off the wire. `make clients ARGS=all` installs them, `make test`
drives those that are installed, and this writes the page:

```sh
.venv/bin/python tests/clients/client_run.py docs/reference/clients.md
```

Measured on {date} with a2mcp {version}.

| Client | `/mcp` | `/` | lists | calls |
| --- | --- | --- | --- | --- |
{rows}

- A dash means that it is not driven there: the client speaks a version that the bridge on `/` does not have, does not
  know the only one that it has (Gemini CLI), or reaches `/mcp` by itself (`a2mcp stdio`).
- Claude Code, Codex and Gemini call a tool only when a model asks for it. They were driven without one, by the commands
  that show the state of their servers.
"""


def main(page: list[str]) -> int:
    """Run them all; the exit code tells whether each did what it should."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "home") as daemon:
        rows = [row for case in cases.CASES if (row := _row(case, daemon, Path(folder)))]
        version = daemon.endpoint["version"]
    if page and len(rows) == len(cases.CASES):
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        Path(page[0]).write_text(PAGE.format(date=date, version=version, rows="\n".join(rows)), "utf-8")
    return 1 if any("FAILED" in row for row in rows) else 0


def _row(case: cases.Case, daemon: Daemon, folder: Path) -> str | None:
    if case.missing:
        print(f"{case.name}: not installed ({', '.join(case.missing)})", file=sys.stderr)
        return None
    wanted = (("/mcp", case.mcp), ("/", case.bridge))
    outcomes = [_drive(case, path, daemon, folder) if version else None for path, version in wanted]
    ran = [outcome for outcome in outcomes if outcome]
    listed = "yes" if all(outcome.listed for outcome in ran) else "FAILED"
    called = "yes" if all(outcome.called for outcome in ran) else "FAILED" if case.calls else "no"
    row = " | ".join([case.name, *(outcome.version if outcome else "-" for outcome in outcomes), listed, called])
    print(f"| {row} |", flush=True)
    return f"| {row} |"


def _drive(case: cases.Case, path: str, daemon: Daemon, folder: Path) -> cases.Outcome:
    own = Path(tempfile.mkdtemp(dir=folder))
    return cases.run(case, path, daemon, own)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
