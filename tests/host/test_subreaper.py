"""Who is given to a daemon when their parents die: each case in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT

SCRIPT = Path(__file__).with_name("subreaper_cases.py")
CASES = [line[4:-3] for line in SCRIPT.read_text().splitlines() if line.startswith("def ") and line.endswith("():")]

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="Linux only")


@pytest.mark.parametrize("case", CASES)
def test_those_who_lost_their_parents(tmp_path, case):
    """P6 and row B09: seen without looking at everybody, told whose they are, buried, and ended."""
    done = subprocess.run(
        [sys.executable, SCRIPT, case], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
