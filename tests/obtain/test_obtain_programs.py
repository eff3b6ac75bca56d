"""Where a program is found, and what an install may and may not do: end to end against a server on loopback."""

import json
import stat

import msgspec
import pytest
from asset_server import PROGRAM, sha256, tar_of, zip_of

from a2mcp.clock import SystemClock
from a2mcp.errors import CannotObtain, UnusableFile
from a2mcp.obtain import installs
from a2mcp.obtain.download import Gates
from a2mcp.obtain.pins import Pin
from a2mcp.obtain.programs import Programs

QUICK = Gates(size=1 << 20, idle_s=0.3, total_s=20.0)
"""For silence; a busy machine can be silent for so long, too."""
BRIEF = Gates(size=1 << 20, idle_s=20.0, total_s=1.0)
PATIENT = Gates(size=1 << 20, idle_s=20.0, total_s=20.0)


@pytest.fixture(autouse=True)
def empty_path(tmp_path, monkeypatch):
    """No program is on the PATH unless a test puts it there."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def programs(places, *, dufs="dufs", cloudflared="cloudflared", gates=PATIENT, **more):
    settings = {"dufs": dufs, "cloudflared": cloudflared}
    return Programs(settings, places, SystemClock(), gates=gates, platform="linux-x64", **more)


def pin(places, assets, *, asset="dufs.tar.gz", data=None, hashed=None, member="dufs", version="0.46.0"):
    """Have the server hand out an asset, and pin it."""
    data = tar_of(("dufs", PROGRAM)) if data is None else data
    assets.data = data
    row = Pin(
        name="dufs", version=version, platform="linux-x64", url=f"{assets.url}/{asset}", member=member,
        sha256=sha256(data if hashed is None else hashed),
    )  # fmt: skip
    places.pins.write_bytes(msgspec.json.encode([row]))
    return row


def names(folder):
    return [path.name for path in folder.iterdir()]


def executable(path, text="#!/bin/sh\n"):
    path.write_text(text)
    path.chmod(0o755)
    return path


# --- finding -----------------------------------------------------------------------------------------------------


def test_a_path_in_the_settings_is_used_as_it_is(places, tmp_path, empty_path):
    """Seed, xfer: with a separator the setting is a path."""
    mine = executable(tmp_path / "mine")
    executable(empty_path / "dufs")
    found = programs(places, dufs=str(mine)).obtain("dufs")
    assert (found.path, found.source) == (mine, "configured")


def test_a_path_in_the_settings_that_is_not_there_is_not_made_up_for(places, assets, tmp_path, empty_path):
    """Seed, xfer: that is how a machine says that nothing may be downloaded."""
    pin(places, assets)
    executable(empty_path / "dufs")
    with pytest.raises(CannotObtain, match=r"'xfer\.dufs' is .*/none, and there is no such file") as caught:
        programs(places, dufs=str(tmp_path / "none")).obtain("dufs")
    assert caught.value.data is None
    assert assets.asked == []


def test_a_path_that_cannot_be_executed_is_said(places, tmp_path):
    """Bad input."""
    (tmp_path / "text").write_text("x")
    with pytest.raises(CannotObtain, match="cannot be executed"):
        programs(places, dufs=str(tmp_path / "text")).obtain("dufs")
    with pytest.raises(CannotObtain, match="no such file"):
        programs(places, dufs=str(tmp_path)).obtain("dufs")


def test_a_tilde_in_the_path_is_the_home(places, tmp_path, monkeypatch):
    """Ours."""
    monkeypatch.setenv("HOME", str(tmp_path))
    mine = executable(tmp_path / "mine")
    assert programs(places, dufs="~/mine").obtain("dufs").path == mine


def test_a_name_is_looked_for_on_the_path_first(places, assets, empty_path):
    """Seed, xfer: PATH, our install, a download."""
    pin(places, assets)
    programs(places).obtain("dufs")
    theirs = executable(empty_path / "dufs")
    found = programs(places).obtain("dufs")
    assert (found.path, found.source) == (theirs, "path")


def test_what_was_installed_before_is_used_again(places, assets):
    """Seed, xfer."""
    pin(places, assets)
    first = programs(places).obtain("dufs")
    asked = len(assets.asked)
    again = programs(places).obtain("dufs")
    assert (again.path, again.source, again.version, again.pin) == (first.path, "installed", "0.46.0", None)
    assert len(assets.asked) == asked


def test_a_new_pin_replaces_our_older_install(places, assets):
    """Ours: an upgrade is a change of the table."""
    pin(places, assets)
    programs(places).obtain("dufs")
    pin(places, assets, data=tar_of(("dufs", b"newer")), version="0.47.0")
    found = programs(places).obtain("dufs")
    assert found.version == "0.47.0"
    assert found.path.read_bytes() == b"newer"


# --- fetching ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asset", "data", "member"),
    [("dufs.tar.gz", tar_of(("dufs", PROGRAM)), "dufs"), ("dufs.zip", zip_of(("d/dufs", PROGRAM)), "d/dufs"), ("dufs-linux", PROGRAM, "")],
)  # fmt: skip
def test_a_pinned_program_is_fetched_and_put_in_place(places, assets, asset, data, member):
    """Issue 4 §4: right."""
    row = pin(places, assets, asset=asset, data=data, member=member)
    found = programs(places).obtain("dufs")

    assert found.path == places.folder / "dufs"
    assert found.path.read_bytes() == PROGRAM
    assert stat.S_IMODE(found.path.stat().st_mode) == 0o755
    assert stat.S_IMODE(places.folder.stat().st_mode) == 0o700
    assert names(places.folder) == ["dufs"]
    assert found.pin == row
    (record,) = json.loads(places.record.read_text())
    assert record["sha256"] == sha256(PROGRAM)
    assert (record["version"], record["url"], record["path"]) == (row.version, row.url, str(found.path))
    assert stat.S_IMODE(places.record.stat().st_mode) == 0o600


def test_a_row_without_a_hash_is_not_fetched_and_names_the_ways(places, assets):
    """Issue 4 §4: no invented hash; PATH, configured path, --pin."""
    with pytest.raises(CannotObtain) as caught:
        programs(places).obtain("dufs")
    for way in ("nobody has verified a hash", "a2mcp obtain --pin FILE", "PATH", "'xfer.dufs'"):
        assert way in str(caught.value)
    assert caught.value.data == {
        "program": "dufs", "version": "0.46.0", "asset": "dufs-v0.46.0-x86_64-unknown-linux-musl.tar.gz", "sha256": None,
    }  # fmt: skip
    assert not places.folder.exists()


def test_a_platform_without_a_row_is_named(places):
    """Seed, xfer: no build is made up."""
    with pytest.raises(CannotObtain, match="none is known for plan9-x64"):
        Programs({"dufs": "dufs"}, places, SystemClock(), platform="plan9-x64").obtain("dufs")


def test_wrong_bytes_are_not_unpacked_and_not_kept(places, assets):
    """Seed, xfer and X14: wrong hash."""
    row = pin(places, assets, hashed=b"other")
    with pytest.raises(
        CannotObtain, match=f"wrong hash: expected sha256 {row.sha256}, received {sha256(assets.data)}"
    ) as caught:
        programs(places).obtain("dufs")
    assert caught.value.data["asset"] == "dufs.tar.gz"
    assert "'xfer.dufs'" in caught.value.hint
    assert names(places.folder) == []
    assert not places.record.exists()
    assert len(assets.asked) == 1


@pytest.mark.parametrize(
    ("how", "gates", "text"),
    [
        ({"stall_after": 50}, QUICK, "No byte"), ({"drip": 0.02}, BRIEF, "not complete after"),
        ({"announce": 1 << 21}, PATIENT, "larger than"), ({"stop_after": 50}, PATIENT, "could not be fetched"),
        ({"status": 404}, PATIENT, "answered 404"),
    ],
)  # fmt: skip
def test_a_download_that_fails_installs_nothing_and_names_the_ways(places, assets, how, gates, text):
    """X14: slow, stalled, oversize, truncated."""
    pin(places, assets)
    assets.behave(**how)
    with pytest.raises(CannotObtain, match=text) as caught:
        programs(places, gates=gates).obtain("dufs")
    assert "PATH" in caught.value.hint
    assert not (places.folder / "dufs").exists()
    assert not places.record.exists()


def test_a_download_that_broke_off_goes_on_at_the_next_try(places, assets):
    """Issue 4 §4: resumed."""
    pin(places, assets, asset="dufs-linux", data=PROGRAM, member="")
    assets.behave(stop_after=3000)
    with pytest.raises(CannotObtain):
        programs(places).obtain("dufs")
    assets.behave(stop_after=None)
    assert programs(places).obtain("dufs").path.read_bytes() == PROGRAM
    assert assets.asked[-1]["range"] == "bytes=3000-"
    assert names(places.folder) == ["dufs"]


def test_a_part_that_does_not_fit_is_fetched_anew_once(places, assets):
    """Ours: what an earlier attempt left may be anything."""
    row = pin(places, assets, asset="dufs-linux", data=PROGRAM, member="")
    places.folder.mkdir()
    (places.folder / f"{row.sha256[:32]}.part").write_bytes(b"not the beginning")
    assert programs(places).obtain("dufs").path.read_bytes() == PROGRAM
    assert [one.get("range") for one in assets.asked] == ["bytes=17-", None]


def test_an_archive_with_a_way_out_installs_nothing(places, assets, tmp_path):
    """X14: zip-slip."""
    pin(places, assets, data=tar_of(("../../evil", b"x"), ("dufs", PROGRAM)))
    with pytest.raises(CannotObtain, match="leads out of it"):
        programs(places).obtain("dufs")
    assert names(places.folder) == []
    assert not (tmp_path.parent / "evil").exists()


def test_a_file_that_is_not_ours_is_left_alone_and_its_hash_is_said(places, assets):
    """Seed, xfer and X14."""
    pin(places, assets)
    places.folder.mkdir()
    (places.folder / "dufs").write_bytes(b"somebody's")
    with pytest.raises(CannotObtain, match=rf"not ours \(sha256 {sha256(b'somebody' + bytes([39]) + b's')}\)"):
        programs(places).obtain("dufs")
    assert (places.folder / "dufs").read_bytes() == b"somebody's"


def test_an_install_of_ours_that_was_changed_is_somebody_elses(places, assets):
    """Ours: it is neither run nor replaced."""
    pin(places, assets)
    path = programs(places).obtain("dufs").path
    path.write_bytes(b"changed")
    with pytest.raises(CannotObtain, match="not ours"):
        programs(places).obtain("dufs")
    assert path.read_bytes() == b"changed"


def test_an_install_that_is_gone_is_fetched_again(places, assets):
    """Ours."""
    pin(places, assets)
    path = programs(places).obtain("dufs").path
    path.unlink()
    assert programs(places).obtain("dufs").path.read_bytes() == PROGRAM


def test_the_very_bytes_without_a_record_are_taken_over(places, assets):
    """Ours: a crash between the program and its record must not block for ever."""
    pin(places, assets)
    programs(places).obtain("dufs")
    places.record.unlink()
    assert programs(places).obtain("dufs").source == "installed"
    assert "dufs" in installs.read(places.record)


def test_a_record_that_cannot_be_read_is_not_guessed_at(places, assets):
    """Ours: it says which files may be replaced."""
    pin(places, assets)
    places.record.write_text("{")
    with pytest.raises(UnusableFile, match="Repair or remove"):
        programs(places).obtain("dufs")


def test_a_folder_that_cannot_be_made_is_said(places, assets):
    """Bad input."""
    pin(places, assets)
    places.folder.write_text("in the way")
    with pytest.raises(CannotObtain, match="could not be installed"):
        programs(places).obtain("dufs")


# --- what is said meanwhile --------------------------------------------------------------------------------------


def test_the_facts_follow_a_program_from_missing_to_installed(places, assets):
    """Issue 4 §4: bytes in `status`."""
    seen = []
    ours = programs(places)
    assert [(one.name, one.state, one.pinned) for one in ours.facts()] == [
        ("dufs", "missing", False),
        ("cloudflared", "missing", False),
    ]
    pin(places, assets)
    assert ours.facts()[0].pinned

    tell = ours._tell
    ours._tell = lambda name, **what: (tell(name, **what), seen.append(ours.facts()[0]))
    ours.obtain("dufs")
    downloading = [one for one in seen if one.state == "downloading"]
    assert downloading[0].bytes == 0
    assert (downloading[-1].bytes, downloading[-1].total) == (len(assets.data), len(assets.data))
    facts = ours.facts()[0]
    assert (facts.state, facts.version, facts.path) == ("installed", "0.46.0", str(places.folder / "dufs"))
    assert ours.downloading() is None


def test_the_facts_keep_why_it_failed_until_the_next_try(places, assets):
    """Ours."""
    pin(places, assets, hashed=b"other")
    ours = programs(places, cloudflared="/none/x")
    with pytest.raises(CannotObtain):
        ours.obtain("dufs")
    dufs, cloudflared = ours.facts()
    assert dufs.state == "failed"
    assert "wrong hash" in dufs.error
    assert "no such file" in cloudflared.error
    pin(places, assets)
    ours.obtain("dufs")
    assert ours.facts()[0].error is None


def test_nothing_is_fetched_after_a_cancel(places, assets):
    """Ours: the daemon goes down."""
    pin(places, assets)
    ours = programs(places)
    ours.cancel()
    with pytest.raises(CannotObtain, match="cancelled"):
        ours.obtain("dufs")
    assert assets.asked == []
