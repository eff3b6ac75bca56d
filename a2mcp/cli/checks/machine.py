"""What is around the daemon: the clock, the user, what the kernel lets it see, and the programs it needs."""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from a2mcp.audit.journal import previous
from a2mcp.cli.checks.finding import Finding, Verdict
from a2mcp.host import descendants
from a2mcp.inference.admission import LIBRARY, installed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.cli.checks.finding import Seen

EARLIEST: Final = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""Before this version: no right clock shows such a time."""
_AHEAD_S: Final = 60.0


def clock(seen: Seen) -> Iterator[Finding]:
    """Can the time be right?"""
    now = time.time()
    shown = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    if now < EARLIEST:
        fact = f"the clock says {shown}, which is before this version was made"
        yield Finding("clock", Verdict.FAIL, fact, "Set it, and have it kept: `timedatectl set-ntp true`.")
        return
    home = seen.home
    for path in (home.audit, previous(home.audit), home.endpoint, home.config):
        try:
            changed = path.stat().st_mtime
        except OSError:
            continue
        if changed > now + _AHEAD_S:
            fact = f"{path} was written {changed - now:,.0f} s in the future: the clock went back"
            mend = "Set the clock; times in the log before and after that cannot be compared."
            yield Finding("clock", Verdict.WARN, fact, mend)
            return
    yield Finding("clock", Verdict.OK, shown)


def user(_seen: Seen) -> Iterator[Finding]:
    """Whose rights does a caller get?"""
    if os.geteuid() == 0:
        mend = "Run it as a user, in a container or in a virtual machine that may lose everything it can reach."
        yield Finding("user", Verdict.WARN, "root runs it: the token is a shell as root", mend)


def stragglers(_seen: Seen) -> Iterator[Finding]:
    """Is everybody seen whom a command leaves behind?"""
    if (lacking := descendants.lacking()) is None:
        yield Finding("descendants", Verdict.OK, "whatever a command starts is seen, and ends with the daemon")
    else:
        fact = f"what leaves the process group of its command outlives the daemon: {lacking}"
        yield Finding(
            "descendants", Verdict.WARN, fact, "End such processes yourself; security.md in docs/explanation says more."
        )


def programs(_seen: Seen) -> Iterator[Finding]:
    """Is there a shell, and a searcher?"""
    if path := shutil.which("bash"):
        yield Finding("bash", Verdict.OK, path)
    else:
        yield Finding("bash", Verdict.FAIL, "there is no bash on PATH", "Install bash: the tool of that name needs it.")
    if path := shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts")):
        yield Finding("ripgrep", Verdict.OK, path)
    else:
        fact = "there is no rg: glob and grep use a slower search of our own"
        yield Finding("ripgrep", Verdict.WARN, fact, "Install ripgrep.")


def agent(seen: Seen) -> Iterator[Finding]:
    """Can the models be asked that the operator has named?"""
    if not seen.home.models.exists():
        return
    if installed():
        yield Finding("agent", Verdict.OK, f"{seen.home.models.name} names models, and {LIBRARY} can ask them")
    else:
        fact = f"{seen.home.models.name} names models, but {LIBRARY}, which asks them, is not installed"
        yield Finding("agent", Verdict.WARN, fact, "Install the extra 'a2mcp[agent]'.")
