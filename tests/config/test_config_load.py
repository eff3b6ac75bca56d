"""a2mcp.json: read, distrusted, and kept."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from a2mcp import files
from a2mcp.config import load, own
from a2mcp.errors import SettingsError, UnusableFile

TOKEN = "t" * 43
ROOT = Path(load.__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    """Name a file of settings in a folder that is not there yet."""
    return tmp_path / "home" / "a2mcp.json"


def put(path, content, mode=0o600):
    """Write the file as an operator would."""
    path.parent.mkdir(exist_ok=True, mode=0o700)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    path.chmod(mode)


def mode(path):
    """Return the permission bits of a path."""
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_start_makes_a_private_file_with_a_token_that_the_second_finds(path):
    """Seed, "Configuration": generated on first start with mode 0600."""
    before = os.umask(0)
    try:
        first = load.load(path)
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700
    assert len(first.settings.token) == 43
    assert first.settings.port is None
    assert load.load(path) == first
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_token_is_made_and_kept_beside_everything_else(path):
    """Seed, "Configuration": regenerated and written back; issue §8: order and unknown fields stay."""
    put(path, {"zeta": {"b": 1, "a": "é"}, "host": "localhost", "port": 4})
    loaded = load.load(path)
    document = json.loads(path.read_text())
    assert list(document) == ["zeta", "host", "port", "token"]
    assert document["zeta"] == {"b": 1, "a": "é"}
    assert document["token"] == loaded.settings.token
    assert "é" in path.read_text()
    assert loaded.warnings == ("unknown field 'zeta' is ignored",)


@pytest.mark.parametrize("value", [5, None, True, [], {}, 1.5])
def test_a_token_that_is_no_string_is_made_anew_in_its_place(path, value):
    """Row A08: number, null, absent are regenerated."""
    put(path, {"token": value, "host": "localhost"})
    loaded = load.load(path)
    assert len(loaded.settings.token) == 43
    assert list(json.loads(path.read_text())) == ["token", "host"]


@pytest.mark.parametrize("typed", ["x" * 31, "x" * 31 + " y", "x" * 40 + "é"])
def test_a_typed_token_is_refused_and_never_replaced(path, typed):
    """Row A08: never replaces a typed token."""
    put(path, {"token": typed})
    before = path.read_bytes()
    with pytest.raises(SettingsError, match="field 'token' must"):
        load.load(path)
    assert path.read_bytes() == before


def test_nothing_is_written_while_any_field_is_wrong(path):
    """Seed, "Configuration": fail-closed."""
    put(path, {"port": "80"})
    before = path.read_bytes()
    with pytest.raises(SettingsError, match="field 'port' must be an integer"):
        load.load(path)
    assert path.read_bytes() == before


def test_a_chosen_port_is_kept_and_found_again(path):
    """Issue §8: a client's configuration survives restarts."""
    first = load.load(path).settings
    load.keep_port(path, 40123)
    again = load.load(path).settings
    assert (again.port, again.token) == (40123, first.token)
    assert next(iter(json.loads(path.read_text()))) == "port"
    assert mode(path) == 0o600


@pytest.mark.parametrize("port", [0, 81])
def test_a_port_that_is_written_is_not_replaced(path, port):
    """Issue §8: "port": 0 written by hand stays random."""
    put(path, {"token": TOKEN, "port": port, "mine": 1})
    before = path.read_bytes()
    load.keep_port(path, 40123)
    assert path.read_bytes() == before


def test_a_rotated_token_replaces_the_old_one_only(path):
    """Seed, "Commands": rotate."""
    put(path, {"mine": [1], "token": TOKEN, "port": 0})
    load.replace_token(path, "n" * 43)
    assert json.loads(path.read_text()) == {"mine": [1], "token": "n" * 43, "port": 0}
    assert list(json.loads(path.read_text())) == ["mine", "token", "port"]


def test_settings_that_were_deleted_meanwhile_are_made_again_with_what_is_kept(path):
    """Ours: the daemon goes on while its file is removed."""
    path.parent.mkdir()
    load.replace_token(path, TOKEN)
    load.keep_port(path, 7)
    assert json.loads(path.read_text()) == {"port": 7, "token": TOKEN}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe{\x00}\x00", "is not JSON"),
        (b'{"port": 1,}', "is not JSON"),
        (b'{"port": NaN}', "is not JSON: NaN is not a JSON number"),
        (b'{"drain_s": -Infinity}', "is not JSON"),
        (b"[]", "must hold a JSON object"),
        (b"null", "must hold a JSON object"),
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is nested too deeply"),
        (b'{"x": ' + b'{"a":' * 50_000, "is nested too deeply|is not JSON"),
        (b'{"x": ' + b"9" * 6000 + b"}", "is not JSON"),
        (b" " * (own.LARGEST + 1), "is larger than 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_settings_is_named_and_left_alone(path, content, words):
    """Row C03: depth bomb, not JSON, too large."""
    put(path, content)
    for read in (load.load, load.inspect):
        with pytest.raises(UnusableFile, match=words) as caught:
            read(path)
        assert str(path) in caught.value.text
    assert path.read_bytes() == content


def test_a_deep_unknown_field_is_no_traceback_when_the_file_must_be_rewritten(path):
    """Row C03: what can be read cannot always be written."""
    put(path, b'{"x": ' + b"[" * 900 + b"]" * 900 + b"}")
    before = path.read_bytes()
    try:
        load.load(path)
    except UnusableFile as error:
        assert "nested too deeply" in error.text  # noqa: PT017 - which of the two depends on the interpreter
        assert path.read_bytes() == before


def test_a_file_of_100_megabytes_is_refused_without_reading_it(path):
    """Row C03: 100 MB file."""
    put(path, b"{")
    os.truncate(path, 100 << 20)
    with pytest.raises(UnusableFile, match="is larger than"):
        load.load(path)


@pytest.mark.parametrize(("content", "field"), [(b'{"port": 1, "port": 2}', "port"), (b'{"a": {"q": 1, "q": 1}}', "q")])
def test_a_field_that_is_there_twice_is_refused(path, content, field):
    """Row C03: duplicate keys; which of two ports was meant cannot be known."""
    put(path, content)
    with pytest.raises(SettingsError, match=f"field '{field}' must appear once"):
        load.load(path)


def test_a_byte_order_mark_is_tolerated(path):
    """Row C03: BOM."""
    put(path, b"\xef\xbb\xbf" + json.dumps({"token": TOKEN}).encode())
    assert load.load(path).settings.token == TOKEN


def test_a_lone_surrogate_in_an_unknown_field_survives_a_rewrite(path):
    """Ours: fields of somebody else's keep their values."""
    put(path, b'{"token": "' + TOKEN.encode() + b'", "x": "\\ud83d"}')
    load.keep_port(path, 9)
    assert json.loads(path.read_text())["x"] == "\ud83d"


def test_a_symbolic_link_is_refused_and_its_target_untouched(path, tmp_path):
    """Row C04: never write through a symlink."""
    victim = tmp_path / "victim.json"
    put(victim, {"host": "localhost"})
    before = victim.read_bytes()
    path.parent.mkdir()
    path.symlink_to(victim)
    for act in (load.load, load.inspect, lambda where: load.keep_port(where, 5)):
        with pytest.raises(UnusableFile, match="is a symbolic link") as caught:
            act(path)
        assert "A2MCP_CONFIG" in caught.value.hint
    assert victim.read_bytes() == before
    assert path.is_symlink()


def test_a_dangling_link_is_not_a_missing_file(path, tmp_path):
    """Row C04: a new file must not appear where a link points."""
    path.parent.mkdir()
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UnusableFile, match="is a symbolic link"):
        load.load(path)
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_a_fifo_and_a_device_are_refused_at_once(path):
    """Row C04: dir, FIFO."""
    path.mkdir(parents=True)
    with pytest.raises(UnusableFile, match="cannot be read"):
        load.load(path)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(UnusableFile, match="is not a regular file"):
        load.load(path)
    with pytest.raises(UnusableFile, match=r"is not a regular file|belongs"):
        load.inspect(Path("/dev/null"))


@pytest.mark.parametrize("bits", [0o644, 0o640, 0o660])
def test_a_file_that_others_could_read_is_closed_with_a_warning(path, bits):
    """Row C04: 0644."""
    put(path, {"token": TOKEN}, bits)
    assert "the next start makes it 0600" in load.inspect(path).warnings[0]
    assert mode(path) == bits
    (warning,) = load.load(path).warnings
    assert f"mode {bits:04o}" in warning
    assert mode(path) == 0o600
    assert load.load(path).warnings == ()


def test_a_file_that_everybody_could_write_is_refused(path):
    """Row C04: 0666; what it says may be anybody's."""
    put(path, {"token": TOKEN}, 0o666)
    with pytest.raises(UnusableFile, match="can be written by every user"):
        load.load(path)
    assert mode(path) == 0o666


def test_a_file_of_another_user_is_refused(path, monkeypatch):
    """Row C04: owned by another uid."""
    put(path, {"token": TOKEN})
    monkeypatch.setattr(own.os, "geteuid", lambda: 4_000_001)
    with pytest.raises(UnusableFile, match="belongs to another user"):
        load.inspect(path)


def test_the_parent_is_tightened_and_said_so(path):
    """Row C04: parent 0777."""
    put(path, {"token": TOKEN})
    path.parent.chmod(0o777)
    assert "no longer can" in load.load(path).warnings[0]
    assert mode(path.parent) == 0o755


def test_looking_makes_nothing(path):
    """Ours: doctor only looks."""
    assert load.inspect(path) is None
    assert not path.parent.exists()
    put(path, {"host": "localhost"})
    before = path.read_bytes()
    assert len(load.inspect(path).settings.token) == 43
    assert path.read_bytes() == before


@pytest.mark.parametrize("step", ["write", "fsync", "fchmod", "open", "rename"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_will_not_leaves_the_old_file_and_no_leftover(path, monkeypatch, step, code):
    """Row C02: ENOSPC, EIO."""
    put(path, {"host": "localhost"})
    before = path.read_bytes()
    real = getattr(os, step)

    def fail(*args, **kwargs):
        if step != "open" or args[1] & os.O_CREAT:
            raise OSError(code, os.strerror(code))
        return real(*args, **kwargs)

    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(UnusableFile, match=f"cannot be written: {os.strerror(code)}"):
        load.load(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


DIE = """
import os, signal, sys
from pathlib import Path
from a2mcp.config import load, own
step, path, rotate = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "rotate"
if step.startswith("after-"):
    real = getattr(os, step[6:])
    def die(*args, **kwargs):
        real(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(os, step[6:], die)
else:
    setattr(os, step, lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL))
load.replace_token(path, "n" * 43) if rotate else load.load(path)
"""


@pytest.mark.parametrize("when", ["first", "rotate"])
@pytest.mark.parametrize("step", ["write", "fchmod", "fsync", "rename", "after-rename"])
def test_a_kill_at_any_step_leaves_the_old_or_the_new_file_whole_and_the_next_start_clean(path, step, when):
    """Row C02: kill -9 during the first write and during rotate."""
    from a2mcp.config.instance import claim
    from a2mcp.config.paths import home_from_environment

    if when == "rotate":
        put(path, {"token": TOKEN})
    command = [sys.executable, "-c", DIE, step, str(path), when]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert ended.returncode == -signal.SIGKILL

    instance = claim(home_from_environment({"A2MCP_HOME": str(path.parent)}))
    loaded = load.load(path)
    instance.release()
    assert loaded.warnings == ()
    assert len(loaded.settings.token) == 43
    if when == "rotate":
        assert loaded.settings.token == ("n" * 43 if step == "after-rename" else TOKEN)
    assert mode(path) == 0o600
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["a2mcp.json", "lock"]
