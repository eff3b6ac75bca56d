"""``a2mcp call`` and ``a2mcp tools`` against a daemon, and against what is none."""

import json
import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "connect"))

from scripted_server import Scripted, result, stream


@pytest.fixture
def scripted():
    """A server on loopback that answers as it is told."""
    server = Scripted()
    yield server
    server.close()


@pytest.fixture
def here(shared_daemon, monkeypatch, run):
    """Run the command in this process, for the daemon that these tests share; the exit code and both outputs."""
    for name in ("A2MCP_CONFIG", "A2MCP_AUDIT", "A2MCP_INSTALLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("A2MCP_HOME", str(shared_daemon.home))
    monkeypatch.chdir(shared_daemon.home)
    return run


def test_a_call_prints_the_text_of_the_result(shared_daemon, tmp_path):
    """Issue §10: against the local daemon, without an address or a token."""
    (tmp_path / "f").write_text("a\nb\n")
    done = shared_daemon.cli("call", "read", f"path={tmp_path}/f", "limit=1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1\ta" in done.stdout
    assert "2\tb" not in done.stdout


@pytest.mark.parametrize("args", [["-"], ["--json", "-"]])
def test_arguments_come_from_standard_input(shared_daemon, args):
    """Issue §10: `-` for standard input."""
    done = shared_daemon.cli("call", "bash", *args, stdin='{"command": "echo from-stdin"}')
    assert "from-stdin" in done.stdout
    assert done.returncode == 0


def test_the_exit_codes_tell_the_failures_apart(shared_daemon, here):
    """Issue §10: tool error, refused, unreachable, timeout."""
    assert shared_daemon.cli("call", "read", "path=/nowhere").returncode == 6
    refused = shared_daemon.cli("call", "nothing", "a=b")
    assert refused.returncode == 7
    assert "there is no tool 'nothing'" in refused.stderr.lower()
    assert "`a2mcp tools`" in refused.stderr
    assert "`a2mcp tools`" in here("call", "nothing").stderr
    slow = shared_daemon.cli("call", "bash", "command=sleep 20", "--timeout", "0.5")
    assert slow.returncode == 9
    assert slow.stderr.startswith("a2mcp: No answer from ")
    wrong = shared_daemon.cli("call", "read", "limit=many")
    assert (wrong.returncode, "takes an integer" in wrong.stderr) == (2, True)
    assert here("call").exit_code == 2
    assert here("call", "read", "--token-file", "endpoint.json").exit_code == 2


def test_another_server_is_reached_by_its_address_and_a_token_file(shared_daemon, here, tmp_path):
    """Issue §10: `--url/--token-file` for another; K28: no token on the command line."""
    url = f"http://127.0.0.1:{shared_daemon.port}/"
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(shared_daemon.token + "\n")
    bad.write_text("x" * 40)
    done = shared_daemon.cli("call", "bash", "command=echo there", "--url", url, "--token-file", str(good))
    assert (done.returncode, "there" in done.stdout) == (0, True)
    assert here("call", "bash", "--url", url, "--token-file", str(bad)).exit_code == 7
    bad.write_text("a b")
    assert here("call", "bash", "--url", url, "--token-file", str(bad)).exit_code == 2
    assert here("call", "bash", "--url", "nonsense").exit_code == 2
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = shared_daemon.cli("call", "bash", "--url", f"http://127.0.0.1:{free.getsockname()[1]}/")
    assert gone.returncode == 8


def test_without_a_daemon_the_code_is_5(run, home):
    """Issue §10: no daemon is known before anything is sent."""
    assert run("call", "read", "path=x").exit_code == 5
    assert run("tools").exit_code == 5


def test_progress_is_streamed_to_standard_error(run, scripted, home):
    """Issue §10: streams progress."""

    def answer(message):
        yield_ = {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progress": 1, "message": "half\x1b[1m"},
        }
        return stream(
            yield_, {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "all"}]}}
        )

    scripted.answers["tools/call"] = answer
    done = run("call", "t", "--url", scripted.url)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "all\n", "half [1m (progress 1)\n")


def test_images_are_written_where_they_shall_go(run, scripted, home, tmp_path):
    """Issue §10: --images DIR."""
    block = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    scripted.answers["tools/call"] = lambda message: result(message, {"content": [block]})
    done = run("call", "t", "--url", scripted.url, "--images", str(tmp_path / "out"))
    assert done.output == f"[{tmp_path}/out/t-1.png]\n"
    assert (tmp_path / "out/t-1.png").read_bytes() == b"\x89PNG"
    raw = run("call", "t", "--url", scripted.url, "--raw")
    assert json.loads(raw.output) == {"content": [block]}


def test_the_client_in_one_file_can_be_piped_away(run):
    """Issue §10: --print-client."""
    from a2mcp.connect import mcp_call

    assert run("call", "--print-client").stdout == Path(mcp_call.__file__).read_text()


def test_tools_are_listed_and_one_is_described(shared_daemon, here):
    """Issue §10: lists tools and shows a schema readably."""
    lines = shared_daemon.cli("tools").stdout.splitlines()
    assert lines[0] == "NAME\tWHAT IT DOES"
    assert {"read", "bash"} <= {line.split("\t")[0] for line in lines}
    shown = here("tools", "read").stdout
    assert "ARGUMENT\tTYPE\tNEEDED\tDEFAULT\tMEANING" in shown
    assert "\npath\tstring\tyes\t" in shown
    assert here("tools", "nothing").exit_code == 7
    assert json.loads(here("tools", "read", "--json").stdout)["name"] == "read"
    assert len(json.loads(here("tools", "--json").stdout)) == len(lines) - 1


def test_a_schema_of_any_shape_is_shown(run, scripted, home):
    """Ours: other servers have other schemas."""
    schema = {
        "properties": {
            "how": {"enum": ["a", "b"], "default": "a"}, "edits": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}},
            "odd": True, "text\x1b": {"type": "string", "description": "two\nlines"},
        },
        "required": ["how"],
    }  # fmt: skip
    tools = [{"name": "t", "title": "T", "inputSchema": schema}, {"name": "bare"}]
    scripted.answers["tools/list"] = lambda message: result(message, {"tools": tools})
    shown = run("tools", "t", "--url", scripted.url).output
    assert 'how\ta | b\tyes\t"a"\t' in shown
    assert "edits\tlist of object\tno\t-\t" in shown
    assert "edits[].x\tstring | null\tno\t-\t" in shown
    assert "odd\tany\tno\t-\t" in shown
    assert "text\\x1b\tstring\tno\t-\ttwo lines" in shown
    assert "takes no arguments" in run("tools", "bare", "--url", scripted.url).output
