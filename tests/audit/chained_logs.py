"""Logs as a daemon leaves them, for the tests of what is found in them."""

from a2mcp.audit import verify
from a2mcp.audit.journal import Journal
from a2mcp.audit.record import start_line
from a2mcp.clock import SystemClock

OLD, NEW = "a2mcp.log.1", "a2mcp.log"


def line(n):
    return start_line("2026-10-16T04:35:23.000Z", f"call-{n}", "s1", "bash", b'{"command":"ls %d"}' % n)


def write(path, *groups, limit=4000):
    """What a daemon writes from its start to its end."""
    journal = Journal(path, clock=SystemClock(), limit=limit)
    for group in groups:
        journal.append([line(n) for n in group])
    journal.close()


def look(path, *wanted):
    with verify.opened_log(path) as files:
        return verify.verify(files, wanted)


def report_of(path):
    return look(path)[0]


def fault_of(path):
    fault = report_of(path).fault
    return fault and (fault.file, fault.line, fault.kind)


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)
