"""The service's files say what the managers need, whatever stands in a path."""

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from a2mcp.connect import service

COMMAND = ("/opt/my python/bin/python", "-P", "-m", "a2mcp", "serve")
ENVIRONMENT = {"PATH": "/usr/bin:/opt/100%/bin", "A2MCP_HOME": '/h "x"', "SECRET": "no"}


def test_the_unit_restarts_within_limits_and_keeps_what_the_daemon_needs(tmp_path):
    """Issue §9: systemd user unit with restart limits."""
    unit = service.systemd(tmp_path, COMMAND, ENVIRONMENT, drain_s=30)
    lines = unit.text.splitlines()
    assert unit.path == tmp_path / "systemd/user/a2mcp.service"
    assert 'ExecStart="/opt/my python/bin/python" "-P" "-m" "a2mcp" "serve"' in lines
    assert 'Environment="PATH=/usr/bin:/opt/100%%/bin"' in lines
    assert 'Environment="A2MCP_HOME=/h \\"x\\""' in lines
    assert "SECRET" not in unit.text
    assert lines.index("StartLimitBurst=5") < lines.index("[Service]")
    assert "RestartPreventExitStatus=2 3 4" in lines
    assert "TimeoutStopSec=40" in lines
    assert unit.start[-1] == ("systemctl", "--user", "enable", "--now", "a2mcp.service")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path):
    """Ours: by its own judge."""
    unit = service.systemd(tmp_path, ("/bin/true",), ENVIRONMENT, drain_s=30)
    unit.path.parent.mkdir(parents=True)
    unit.path.write_text(unit.text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", unit.path], capture_output=True, text=True, check=False
    )
    assert unit.path.name not in done.stderr


def test_the_agent_is_a_property_list(tmp_path):
    """Issue §9: launchd plist."""
    agent = service.launchd(tmp_path, COMMAND, ENVIRONMENT, drain_s=30, log=Path("/h/daemon.log"))
    facts = plistlib.loads(agent.text.encode())
    assert agent.path == tmp_path / "Library/LaunchAgents/a2mcp.plist"
    assert facts["ProgramArguments"] == [*COMMAND]
    assert facts["EnvironmentVariables"] == {"PATH": ENVIRONMENT["PATH"], "A2MCP_HOME": ENVIRONMENT["A2MCP_HOME"]}
    assert facts["KeepAlive"] == {"SuccessfulExit": False}
    assert facts["ThrottleInterval"] >= 10
    assert agent.start == (("launchctl", "bootstrap", f"gui/{os.getuid()}", str(agent.path)),)
