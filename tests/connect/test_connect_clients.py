"""Each client's real-shaped file is given a server and gets its old bytes back; what is odd about it survives."""

import hashlib
import json
import tomllib

import pytest

from a2mcp.connect import clients, connection
from a2mcp.connect.clients import CLIENTS, Server
from a2mcp.connect.connection import Done
from a2mcp.connect.errors import BrokenFile, ClientFailed
from a2mcp.errors import ChangedMeanwhile

URL = "http://127.0.0.1:8123/mcp"
TOKEN = "t" * 43
SERVER = Server(name="a2mcp", url=URL)
INLINE = Server(name="a2mcp", url=URL, token=TOKEN)
PROGRAM = Server(name="a2mcp", command=("/opt/a2mcp", "stdio"), environment={"A2MCP_HOME": "/h"})

FILES = {
    "claude-code": '{\n  "numStartups": 12,\n  "mcpServers": {\n    "web": {\n      "type": "http",\n      "url": "https://example.com/mcp"\n    }\n  },\n  "projects": {"/home/me": {"history": ["é \\ud83d"]}}\n}',
    "claude-desktop": '{"mcpServers":{"files":{"command":"npx","args":["-y","files","/tmp"]}},"globalShortcut":""}\n',
    "codex": 'model = "gpt"  # the usual\n\n[mcp_servers.files]\ncommand = "npx"\n\n[projects."/home/me"]\ntrust_level = "trusted"\n',
    "cursor": '{\r\n\t// of the team\r\n\t"mcpServers": {\r\n\t\t"files": { "command": "npx" }, // old\r\n\t},\r\n}\r\n',
    "vscode": '{\n\t"servers": {\n\t\t"gh": {\n\t\t\t"url": "https://example.com/",\n\t\t\t"headers": { "A": "${input:gh}" }\n\t\t}\n\t},\n\t"inputs": [\n\t\t{ "id": "gh", "type": "promptString" },\n\t]\n}\n',
    "gemini": '{\n  "theme": "Dracula", /* dark */\n  "mcpServers": {}\n}\n',
    "opencode": '// mine\n{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {\n    "x": { "type": "local", "command": ["x"] }\n  }\n}\n',
    "omp": '{"mcpServers": {"host": {"type": "http", "url": "http://127.0.0.1:1/"}}}',
}
HTTP = [name for name, client in CLIENTS.items() if client.http]


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    """No client of the machine that runs the tests is used."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def settings(user):
    """Write a client's file; returns where it is."""

    def write(name, text=None, mode=0o644):
        path = CLIENTS[name].file(user)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((FILES[name] if text is None else text).encode())
        path.chmod(mode)
        return path

    return write


def shown(path, name):
    """What the client reads there."""
    from a2mcp.connect import jsonc

    text = path.read_text()
    found = tomllib.loads(text) if name == "codex" else jsonc.parse(text).value
    return found[CLIENTS[name].holder]


def kept(path):
    """The backups beside a file."""
    return sorted(path.parent.glob(f"{path.name}.a2mcp-*"))


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("server", [SERVER, INLINE, PROGRAM], ids=["reference", "inline", "program"])
def test_a_client_knows_the_server_and_then_has_its_old_file(name, server, settings):
    """Issue §9: connect, idempotent, dated backup, disconnect restores byte-identical; K32."""
    if not CLIENTS[name].http:
        server = PROGRAM
    path = settings(name)
    before, client = path.read_bytes(), CLIENTS[name]
    report = connection.connect(client, path, server)
    assert report.done is Done.ADDED
    assert report.backup.read_bytes() == before
    others = shown(path, name)
    assert others.pop("a2mcp") == client.entry(server)
    assert (TOKEN in path.read_text()) is (server.token is not None)
    after = path.read_bytes()
    assert connection.connect(client, path, server).done is Done.UNCHANGED
    assert path.read_bytes() == after
    assert len(kept(path)) == 1
    assert connection.disconnect(client, path, "a2mcp").done is Done.RESTORED
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o644
    assert kept(path) == []
    assert connection.disconnect(client, path, "a2mcp").done is Done.ABSENT


@pytest.mark.parametrize("name", CLIENTS)
def test_a_file_that_was_not_there_is_gone_again(name, user):
    """Issue §9: a client that was never started."""
    path, client = CLIENTS[name].file(user), CLIENTS[name]
    server = SERVER if client.http else PROGRAM
    report = connection.connect(client, path, server)
    assert (report.done, report.backup) == (Done.ADDED, None)
    assert shown(path, name) == {"a2mcp": client.entry(server)}
    moved = Server(name="a2mcp", command=("/elsewhere/a2mcp", "stdio"))
    assert connection.connect(client, path, moved).backup is None
    assert connection.disconnect(client, path, "a2mcp").done is Done.RESTORED
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("name", CLIENTS)
def test_after_somebody_else_changed_the_file_only_the_server_goes(name, settings):
    """Issue §9: disconnect; what others wrote since is theirs."""
    path, client = settings(name), CLIENTS[name]
    connection.connect(client, path, PROGRAM)
    text = path.read_bytes().decode()
    added = "# later\n" if name == "codex" else " "
    path.write_bytes((text + added).encode())
    report = connection.disconnect(client, path, "a2mcp")
    assert report.done is Done.REMOVED
    assert report.backup.read_bytes() == (text + added).encode()
    assert path.read_bytes().decode() == FILES[name] + added


def test_a_file_that_others_took_over_since_stays_and_no_mark_is_left(user):
    """Ours: it was not there before us, but it holds somebody else's settings now."""
    path, client = CLIENTS["claude-code"].file(user), CLIENTS["claude-code"]
    connection.connect(client, path, SERVER)
    path.write_text(path.read_text().replace("{", '{"numStartups": 1,', 1))
    report = connection.disconnect(client, path, "a2mcp")
    assert report.done is Done.REMOVED
    assert json.loads(path.read_text()) == {"numStartups": 1, "mcpServers": {}}
    assert kept(path) == [report.backup]


def test_another_address_replaces_the_old_one_and_the_way_back_stays(settings):
    """Ours: the port changed; disconnect still restores."""
    path, client = settings("cursor"), CLIENTS["cursor"]
    before = path.read_bytes()
    connection.connect(client, path, SERVER)
    moved = Server(name="a2mcp", url="http://127.0.0.1:9/mcp")
    assert connection.connect(client, path, moved).done is Done.REPLACED
    assert shown(path, "cursor")["a2mcp"]["url"] == moved.url
    assert [backup.read_bytes() for backup in kept(path)] == [before]
    assert connection.disconnect(client, path, "a2mcp").done is Done.RESTORED
    assert path.read_bytes() == before


def test_a_backup_that_knows_the_server_is_no_way_back(settings):
    """Ours: somebody else's change, then another address; the old bytes are gone for good, the server must go."""
    path, client = settings("gemini"), CLIENTS["gemini"]
    connection.connect(client, path, SERVER)
    path.write_text(path.read_text() + "\n")
    connection.connect(client, path, Server(name="a2mcp", url="http://127.0.0.1:9/mcp"))
    assert connection.disconnect(client, path, "a2mcp").done is Done.REMOVED
    assert shown(path, "gemini") == {}


def test_a_cycle_after_a_removal_restores_again(settings):
    """Ours: the backup of a removal is of another kind than that of a connection."""
    path, client = settings("omp"), CLIENTS["omp"]
    connection.connect(client, path, SERVER)
    path.write_text(path.read_text() + "\n")
    connection.disconnect(client, path, "a2mcp")
    before = path.read_bytes()
    connection.connect(client, path, SERVER)
    assert connection.disconnect(client, path, "a2mcp").done is Done.RESTORED
    assert path.read_bytes() == before


def test_a_link_and_a_mode_stay(user, settings, tmp_path):
    """Issue §9; try-out 12: dotfiles are links, and a mode is somebody's decision."""
    path = settings("cursor", mode=0o640)
    real = tmp_path / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    path.rename(real)
    path.symlink_to(real)
    before = real.read_bytes()
    connection.connect(CLIENTS["cursor"], path, SERVER)
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert b"a2mcp" in real.read_bytes()
    assert [backup.parent for backup in kept(real)] == [real.parent]
    connection.disconnect(CLIENTS["cursor"], path, "a2mcp")
    assert path.is_symlink()
    assert real.read_bytes() == before


def test_a_token_in_the_file_makes_it_private_and_taking_it_out_gives_the_mode_back(settings):
    """Issue §9: the token goes into the file, which then must be 0600."""
    path = settings("cursor", mode=0o664)
    connection.connect(CLIENTS["cursor"], path, INLINE)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    connection.connect(CLIENTS["cursor"], path, INLINE)
    assert path.stat().st_mode & 0o777 == 0o600
    connection.disconnect(CLIENTS["cursor"], path, "a2mcp")
    assert path.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("content", [b'{"mcpServers": {', b"\xff\xfe{}", b"= 1", b"[1]\n["], ids=repr)
def test_a_broken_file_is_reported_and_left_alone(name, content, settings):
    """Issue §9; K32."""
    path = settings(name)
    path.write_bytes(content)
    for attempt in (
        lambda: connection.connect(CLIENTS[name], path, PROGRAM),
        lambda: connection.disconnect(CLIENTS[name], path, "a2mcp"),
    ):
        with pytest.raises(BrokenFile) as caught:
            attempt()
        assert str(path) in caught.value.text
        assert "left as it was" in caught.value.hint
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_dry_run_changes_nothing_and_shows_no_token_and_nobody_elses_lines(settings):
    """Issue §9: --dry-run."""
    path = settings("cursor")
    before = path.read_bytes()
    report = connection.connect(CLIENTS["cursor"], path, INLINE, dry=True)
    assert "+\t\t" in report.diff
    assert TOKEN not in report.diff
    assert "files" not in report.diff
    assert path.read_bytes() == before
    assert kept(path) == []
    connection.connect(CLIENTS["cursor"], path, SERVER)
    after = path.read_bytes()
    assert connection.disconnect(CLIENTS["cursor"], path, "a2mcp", dry=True).done is Done.REMOVED
    assert path.read_bytes() == after


def test_a_file_that_changes_meanwhile_is_not_written_over(settings, monkeypatch):
    """Ours: a running client writes its file too."""
    from a2mcp.connect.settings import Settings

    path = settings("claude-code")
    read = Settings(CLIENTS["claude-code"], path)
    path.write_text("{}")
    with pytest.raises(ChangedMeanwhile):
        read.write(read.with_server(SERVER))
    assert path.read_text() == "{}"
    assert kept(path) == []


def test_vs_code_asks_for_the_token_as_long_as_a_server_needs_it(settings):
    """Issue §9: vscode inputs."""
    path, client = settings("vscode"), CLIENTS["vscode"]
    connection.connect(client, path, SERVER)
    connection.connect(client, path, Server(name="other", url=URL))
    from a2mcp.connect import jsonc

    ids = lambda: [one["id"] for one in jsonc.parse(path.read_text()).value["inputs"]]  # noqa: E731
    assert ids() == ["gh", clients.INPUT]
    path.write_text(path.read_text() + "\n")
    connection.disconnect(client, path, "a2mcp")
    assert ids() == ["gh", clients.INPUT]
    connection.disconnect(client, path, "other")
    path.write_text(path.read_text() + "\n")
    assert "a2mcp" not in shown(path, "vscode")


@pytest.mark.parametrize("name", HTTP)
def test_no_client_gets_the_token_unless_it_was_asked_for(name):
    """Issue §9: token by environment reference where the client supports one."""
    entry = json.dumps(CLIENTS[name].entry(SERVER))
    assert "A2MCP_TOKEN" in entry or clients.INPUT in entry
    assert TOKEN in json.dumps(CLIENTS[name].entry(INLINE))
    assert TOKEN not in repr(INLINE)


def test_places_follow_the_environment(tmp_path):
    """Issue §9: HOME, XDG_CONFIG_HOME, APPDATA; each system has its own."""
    home = str(tmp_path)
    files = lambda environ, platform: {n: str(c.file(clients.place(environ, platform))) for n, c in CLIENTS.items()}  # noqa: E731
    linux = files({"HOME": home, "XDG_CONFIG_HOME": f"{home}/x"}, "linux")
    assert linux["vscode"] == f"{home}/x/Code/User/mcp.json"
    assert linux["opencode"] == f"{home}/x/opencode/opencode.json"
    assert linux["claude-code"] == f"{home}/.claude.json"
    assert linux["omp"] == f"{home}/.omp/agent/mcp.json"
    mac = files({"HOME": home, "XDG_CONFIG_HOME": f"{home}/x"}, "darwin")
    assert mac["claude-desktop"] == f"{home}/Library/Application Support/Claude/claude_desktop_config.json"
    windows = files({"USERPROFILE": home, "APPDATA": f"{home}/A"}, "win32")
    assert windows["claude-desktop"] == f"{home}/A/Claude/claude_desktop_config.json"
    own = files({"HOME": home, "CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d", "OPENCODE_CONFIG": "/o.json"}, "linux")
    assert (own["codex"], own["claude-code"], own["opencode"]) == ("/c/config.toml", "/d/.claude.json", "/o.json")
    (tmp_path / "x/opencode").mkdir(parents=True)
    (tmp_path / "x/opencode/opencode.jsonc").write_text("{}")
    assert files({"HOME": home, "XDG_CONFIG_HOME": f"{home}/x"}, "linux")["opencode"].endswith(".jsonc")


# --- the clients' own commands -----------------------------------------------------------------------------------

OWN = """#!{python}
import json, os, sys
path = os.environ["CLIENT_FILE"]
print(*sys.argv[1:])
with open(os.environ["CLIENT_LOG"], "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if os.environ.get("CLIENT_FAILS"):
    sys.exit("cannot do that")
settings = json.load(open(path)) if os.path.exists(path) else {{}}
servers = settings.setdefault("mcpServers", {{}})
if "add" in sys.argv:
    servers["a2mcp"] = {{"url": "http://127.0.0.1:8123/mcp", "type": "http", "headers": {{"Authorization": "Bearer ${{A2MCP_TOKEN}}"}}}}
else:
    del servers["a2mcp"]
json.dump(settings, open(path, "w"))
"""


@pytest.fixture(params=["claude", "gemini"])
def own(request, tmp_path, monkeypatch, settings):
    """Install a client's own command, which writes its file in its own way."""
    import sys

    program = tmp_path / "bin" / request.param
    program.parent.mkdir()
    program.write_text(OWN.format(python=sys.executable))
    program.chmod(0o755)
    name = {"claude": "claude-code", "gemini": "gemini"}[request.param]
    path = settings(name, '{"mcpServers": {}, "x":  1}\n')
    monkeypatch.setenv("CLIENT_FILE", str(path))
    monkeypatch.setenv("CLIENT_LOG", str(tmp_path / "log"))
    return CLIENTS[name], path, tmp_path / "log"


def test_the_client_s_own_command_is_used_where_it_is_installed(own):
    """Issue §9: the client's own CLI where it has one; disconnect restores byte-identical all the same."""
    client, path, log = own
    before = path.read_bytes()
    report = connection.connect(client, path, SERVER, dry=True)
    assert report.command
    assert path.read_bytes() == before
    report = connection.connect(client, path, SERVER)
    assert report.command[1:3] == ("mcp", "add")
    assert report.backup.read_bytes() == before
    assert connection.connect(client, path, SERVER).done is Done.UNCHANGED
    assert len(log.read_text().splitlines()) == 1
    assert TOKEN not in log.read_text()
    assert connection.disconnect(client, path, "a2mcp").done is Done.RESTORED
    assert path.read_bytes() == before


def test_a_file_that_the_client_s_own_command_makes_is_gone_again(own):
    """Issue §9: byte-identical is no file where there was none."""
    client, path, _ = own
    path.unlink()
    report = connection.connect(client, path, SERVER)
    assert (report.done, report.backup) == (Done.ADDED, None)
    assert connection.disconnect(client, path, "a2mcp").done is Done.RESTORED
    assert list(path.parent.glob(f"{path.name}*")) == []


def test_the_client_s_own_command_removes_from_a_file_that_changed_since(own):
    """Issue §9: as above."""
    client, path, _ = own
    connection.connect(client, path, SERVER)
    path.write_text(path.read_text() + "\n")
    report = connection.disconnect(client, path, "a2mcp")
    assert report.command[1:3] == ("mcp", "remove")
    assert json.loads(path.read_text()) == {"mcpServers": {}, "x": 1}


def test_a_token_and_a_program_go_into_the_file_and_never_onto_a_command_line(own):
    """K28: no token in an argument, which every user of the machine can read."""
    client, path, log = own
    connection.connect(client, path, INLINE)
    connection.disconnect(client, path, "a2mcp")
    connection.connect(client, path, PROGRAM)
    assert not log.exists()


def test_a_client_s_command_that_fails_is_named_with_what_it_said(own, monkeypatch):
    """Issue §9: and the way round it."""
    client, path, _ = own
    before = path.read_bytes()
    monkeypatch.setenv("CLIENT_FAILS", "1")
    with pytest.raises(ClientFailed, match="cannot do that") as caught:
        connection.connect(client, path, SERVER)
    assert "--no-cli" in caught.value.hint
    assert path.read_bytes() == before
    assert kept(path) == []
    assert connection.connect(client, path, SERVER, own=False).done is Done.ADDED


def test_a_backup_s_name_tells_when_and_for_what(settings):
    """Issue §9: a dated backup."""
    path = settings("omp")
    backup = connection.connect(CLIENTS["omp"], path, SERVER).backup
    stamp, fingerprint = backup.name.removeprefix("mcp.json.a2mcp-").split("-")
    assert len(stamp) == len("20261130T140000Z")
    assert fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()[:16]
