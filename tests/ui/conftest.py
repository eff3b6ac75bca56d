"""What the tests of the operator's page share with those of the flows: calls that go on beside the test."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "flows"))
