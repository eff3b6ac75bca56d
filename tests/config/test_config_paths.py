"""Where files live, and which folders are trusted."""

import os
import stat
from pathlib import Path

import pytest

from a2mcp.config import paths
from a2mcp.config.paths import home_from_environment, private_folder, private_socket_folder, trusted_parent
from a2mcp.errors import SettingsError, UnusableFile


def mode(path):
    """Return the permission bits of a path."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask():
    """Let nothing be hidden by the umask."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_one_variable_puts_everything_into_one_folder(tmp_path):
    """Issue §8: A2MCP_HOME."""
    home = home_from_environment({"A2MCP_HOME": str(tmp_path)})
    assert home.root == tmp_path
    assert (home.config, home.audit, home.endpoint) == (
        tmp_path / "a2mcp.json", tmp_path / "a2mcp.log", tmp_path / "endpoint.json",
    )  # fmt: skip
    assert (home.jobs, home.installs, home.lock) == (tmp_path / "jobs", tmp_path / "installs.json", tmp_path / "lock")


def test_three_variables_move_one_file_each(tmp_path):
    """Seed, "Configuration": A2MCP_CONFIG, A2MCP_AUDIT, A2MCP_INSTALLS."""
    home = home_from_environment(
        {
            "A2MCP_HOME": str(tmp_path),
            "A2MCP_CONFIG": "/c/x.json",
            "A2MCP_AUDIT": "/a/x.log",
            "A2MCP_INSTALLS": "/i/x.json",
        }
    )
    assert [str(home.config), str(home.audit), str(home.installs)] == ["/c/x.json", "/a/x.log", "/i/x.json"]
    assert home.endpoint == tmp_path / "endpoint.json"


def test_without_a_variable_the_platform_says_where(monkeypatch, tmp_path):
    """Issue §8: platformdirs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    home = home_from_environment({"A2MCP_HOME": ""})
    assert home.config.name == "a2mcp.json"
    assert home.config.is_relative_to(tmp_path)
    assert home.root.is_relative_to(tmp_path)
    assert home.audit.parent == home.root


def test_an_unset_home_variable_is_survived_or_named(monkeypatch):
    """Row C05: unset HOME."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    try:
        assert home_from_environment({}).root.is_absolute()
    except SettingsError as error:
        assert error.field == "HOME"  # noqa: PT017 - depends on whether this user has a passwd entry


def test_a_user_without_any_home_gets_a_clear_error(monkeypatch):
    """Row C05: neither HOME nor a passwd entry."""
    monkeypatch.setattr(paths.os.path, "expanduser", lambda path: path)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match=r"field 'HOME' must say where this user's files live"):
        home_from_environment({})


@pytest.mark.parametrize("name", ["A2MCP_HOME", "A2MCP_CONFIG", "A2MCP_AUDIT", "A2MCP_INSTALLS"])
def test_a_relative_or_undecodable_place_is_refused_by_the_name_of_its_variable(name, tmp_path):
    """Row C05: relative, non-UTF-8."""
    base = {"A2MCP_HOME": str(tmp_path)}
    with pytest.raises(SettingsError, match=f"field '{name}' must be an absolute path, not 'some/where'"):
        home_from_environment({**base, name: "some/where"})
    with pytest.raises(SettingsError, match=f"field '{name}' must be valid UTF-8"):
        home_from_environment({**base, name: os.fsdecode(b"/x\xff")})


def test_a_tilde_is_expanded(monkeypatch, tmp_path):
    """Row C05: a unit file has no shell that would."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_from_environment({"A2MCP_HOME": "~/here"}).root == tmp_path / "here"


def test_a_home_behind_a_link_is_the_folder_itself(tmp_path):
    """Ours: two names of one home must not be two homes."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert home_from_environment({"A2MCP_HOME": str(tmp_path / "link")}).root == tmp_path / "real"


def test_a_socket_whose_path_is_too_long_gets_a_short_private_place_named_by_the_home(tmp_path):
    """Issue §8: a Unix socket's path has about 100 bytes."""
    long = tmp_path / ("d" * 100)
    first = home_from_environment({"A2MCP_HOME": str(long)})
    again = home_from_environment({"A2MCP_HOME": str(long), "XDG_RUNTIME_DIR": "/elsewhere"})
    other = home_from_environment({"A2MCP_HOME": f"{long}x"})
    assert len(os.fsencode(first.socket)) <= paths.LONGEST_SOCKET_PATH
    assert first.socket == again.socket != other.socket
    assert first.socket.parent != first.root


def test_a_socket_whose_path_fits_is_in_the_home():
    """Issue §8: everything in one folder."""
    assert home_from_environment({"A2MCP_HOME": "/h"}).socket == Path("/h/operator.sock")


@pytest.mark.usefixtures("open_umask")
def test_a_new_folder_and_its_parents_are_private_whatever_the_umask(tmp_path):
    """Row U10: 0700, never a wider moment."""
    assert private_folder(tmp_path / "a" / "b") == []
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700


def test_a_folder_of_ours_that_was_open_is_closed_with_a_warning(tmp_path):
    """Row C04: tighten with a warning."""
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "a2mcp.json").touch()
    (warning,) = private_folder(folder)
    assert mode(folder) == 0o700
    assert "mode 0777" in warning
    assert private_folder(folder) == []


def test_a_folder_with_other_things_in_it_only_loses_what_lets_others_write(tmp_path):
    """Ours: A2MCP_HOME may name a folder that others read on purpose."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "public_html").mkdir()
    folder.chmod(0o775)
    assert "no longer can" in private_folder(folder)[0]
    assert mode(folder) == 0o755
    assert "can be read by other users" in private_folder(folder)[0]
    assert mode(folder) == 0o755


def test_a_shared_folder_is_refused_and_keeps_its_mode(tmp_path):
    """Ours: A2MCP_HOME=/tmp as root must not close /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    with pytest.raises(UnusableFile, match="shared by all users"):
        private_folder(folder)
    assert mode(folder) == 0o1777


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    """Row C04: owned by another uid."""
    monkeypatch.setattr(paths.os, "geteuid", lambda: 4_000_001)
    with pytest.raises(UnusableFile, match="belongs to another user"):
        private_folder(tmp_path)
    with pytest.raises(UnusableFile, match="not a private folder of this user"):
        private_socket_folder(tmp_path)


@pytest.mark.parametrize("place", ["/proc/nowhere/home", "/dev/null/home", "/dev/null"])
def test_a_place_where_nothing_can_be_made_is_a_clear_error(place):
    """Row C05: read-only home."""
    with pytest.raises(UnusableFile, match=r"cannot be used|belongs to another|not a folder"):
        private_folder(Path(place))
    with pytest.raises(UnusableFile, match=r"cannot be used|not a folder"):
        trusted_parent(Path(place))


def test_the_parent_of_the_settings_may_not_be_writable_by_others(tmp_path):
    """Row C04: parent 0777."""
    tmp_path.chmod(0o777)
    (warning,) = trusted_parent(tmp_path)
    assert mode(tmp_path) == 0o755
    assert "mode 0777" in warning
    assert trusted_parent(tmp_path) == []


def test_a_sticky_parent_will_do(tmp_path):
    """Ours: A2MCP_CONFIG=/tmp/x.json cannot be exchanged by others."""
    tmp_path.chmod(0o1777)
    assert trusted_parent(tmp_path) == []


def test_a_socket_folder_that_somebody_prepared_is_refused(tmp_path):
    """Ours: /tmp is where anybody can be first."""
    private_socket_folder(tmp_path / "s")
    assert mode(tmp_path / "s") == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "s")
    (tmp_path / "open").mkdir(mode=0o755)
    for name in ("link", "open"):
        with pytest.raises(UnusableFile, match="not a private folder"):
            private_socket_folder(tmp_path / name)
    with pytest.raises(UnusableFile, match="cannot be made"):
        private_socket_folder(tmp_path / "no" / "parent")
