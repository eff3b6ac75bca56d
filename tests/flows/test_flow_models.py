"""models.yml from outside: what a daemon makes of it when it starts."""

from __future__ import annotations

import subprocess

from harness import Daemon, running

BROKEN = "providers:\n  p:\n    api: gopher\n    baseUrl: http://x\n    models: [{id: x}]\n"


def test_a_wrong_file_stops_the_start_with_its_line(tmp_path):
    """Source: issue, "Bad input": broken YAML (named line), unknown provider API."""
    daemon = Daemon(tmp_path / "home", settings={})
    (tmp_path / "home" / "models.yml").write_text(BROKEN)
    ended = subprocess.run(
        daemon._argv, env=daemon.environment, capture_output=True, text=True, check=False, timeout=20
    )

    assert ended.returncode == 2
    assert "models.yml, line 5: a model of 'p' has the api 'gopher', which nobody speaks." in ended.stderr


def test_a_daemon_with_models_warns_of_what_it_does_not_know_and_serves(tmp_path):
    """Ours: an unknown field is no reason not to start."""
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "models.yml").write_text(BROKEN.replace("gopher", "openai-completions") + "x: 1\n")
    with running(tmp_path / "home") as daemon:
        daemon.alive()
        assert "models.yml, line 6: unknown field 'x' of the file is ignored." in daemon.stderr
