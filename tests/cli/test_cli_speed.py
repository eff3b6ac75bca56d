"""The command line is quick to answer, because it imports what a verb needs and no more."""

import os
import subprocess
import sys

import pytest
from fake_daemon import ROOT

HEAVY = ("falcon", "waitress", "pykka", "rich", "psutil", "PIL", "filelock", "platformdirs", "asyncio", "ssl", "actors")


def imported(*args):
    """Run the command and return the names of the modules that it imported."""
    program = (
        "import sys\nfrom a2mcp.cli.main import cli\n"
        "try:\n    cli(sys.argv[1:], obj={}, prog_name='a2mcp')\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *args],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("args", [["--help"], ["version"], ["serve", "--help"]], ids=" ".join)
def test_help_and_version_import_nothing_heavy(args):
    """Issue §9: `a2mcp --help` under 300 ms."""
    assert imported(*args).isdisjoint(HEAVY)


@pytest.mark.parametrize(("args", "bar"), [(["--help"], 0.3), (["version"], 0.2)])
def test_help_and_version_are_quick(args, bar):
    """Issue §9; the best of several in processor time, because they wait for nothing and the machine has other work."""
    program = "from a2mcp.cli.main import cli; cli(obj={}, prog_name='a2mcp')"
    took = []
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", program, *args], env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        took.append(used.ru_utime + used.ru_stime)
    assert min(took) < bar
