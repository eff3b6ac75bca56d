"""The table of what may be fetched, and the rows that an operator adds."""

import json
import stat

import pytest

from a2mcp.errors import UnusableFile
from a2mcp.obtain import pins

HASH = "ab" * 32


def test_the_table_has_the_builds_that_the_seed_names():
    """Seed, xfer: two programs, five platforms, two versions."""
    rows = {(pin.name, pin.platform): pin for pin in pins.shipped()}
    platforms = ["linux-x64", "linux-arm64", "macos-x64", "macos-arm64", "windows-x64"]

    assert sorted(rows) == sorted((name, platform) for name in pins.PROGRAMS for platform in platforms)
    assert {pin.version for (name, _), pin in rows.items() if name == "dufs"} == {"0.46.0"}
    assert {pin.version for (name, _), pin in rows.items() if name == "cloudflared"} == {"2026.10.1"}
    assert "musl" in rows["dufs", "linux-x64"].url
    assert all(pin.version in pin.url and pin.url.startswith("https://github.com/") for pin in rows.values())
    assert all(bool(pin.member) == pin.asset.endswith(pins.ARCHIVES) for pin in rows.values())


def test_no_hash_is_invented():
    """Issue 4 §4: a row without a hash has none; a real one has 64 digits."""
    assert all(pin.sha256 is None or len(set(pin.sha256)) > 8 for pin in pins.shipped())


@pytest.mark.parametrize(
    ("system", "machine", "key"),
    [
        ("linux", "x86_64", "linux-x64"), ("linux", "aarch64", "linux-arm64"), ("darwin", "arm64", "macos-arm64"),
        ("darwin", "x86_64", "macos-x64"), ("linux", "riscv64", "linux-riscv64"),
    ],
)  # fmt: skip
def test_a_machine_is_named_as_in_the_table(monkeypatch, system, machine, key):
    """Ours."""
    monkeypatch.setattr(pins.sys, "platform", system)
    monkeypatch.setattr(pins.os, "uname", lambda: type("U", (), {"machine": machine}))
    assert pins.platform_key() == key


def add(tmp_path, *rows, platform="linux-x64"):
    given = tmp_path / "given.json"
    given.write_text(json.dumps(rows[0] if len(rows) == 1 else rows))
    return pins.add(tmp_path / "pins.json", given, platform=platform)


def test_a_hash_is_enough_for_a_row_that_is_shipped(tmp_path):
    """Issue 4 §4: `a2mcp obtain --pin FILE`."""
    (added,) = add(tmp_path, {"name": "dufs", "sha256": HASH.upper()})

    shipped = next(pin for pin in pins.shipped() if (pin.name, pin.platform) == ("dufs", "linux-x64"))
    assert (added.url, added.version, added.member, added.sha256) == (shipped.url, shipped.version, "dufs", HASH)
    assert pins.pin_for("dufs", "linux-x64", tmp_path / "pins.json") == added
    assert pins.pin_for("dufs", "linux-arm64", tmp_path / "pins.json").sha256 is None
    assert pins.pin_for("dufs", "plan9-x64", tmp_path / "pins.json") is None
    assert stat.S_IMODE((tmp_path / "pins.json").stat().st_mode) == 0o600


def test_a_full_row_may_be_of_another_version_and_place(tmp_path):
    """Ours: the operator decides what runs on the operator's machine."""
    row = {
        "name": "cloudflared",
        "sha256": HASH,
        "version": "2027.1.0",
        "url": "https://a.example/c.tgz",
        "platform": "macos-x64",
    }
    (added,) = add(tmp_path, row)
    assert (added.member, added.version, added.platform) == ("cloudflared", "2027.1.0", "macos-x64")


def test_a_later_row_replaces_the_one_before_and_leaves_others(tmp_path):
    """Ours."""
    add(tmp_path, {"name": "dufs", "sha256": HASH}, {"name": "cloudflared", "sha256": HASH})
    add(tmp_path, {"name": "dufs", "sha256": "cd" * 32})
    found = {pin.name: pin.sha256 for pin in pins.pinned(tmp_path / "pins.json")}
    assert found == {"dufs": "cd" * 32, "cloudflared": HASH}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"name": "dufs"}, "is not a pin"), ({"name": "dufs", "sha256": "12"}, "64 hexadecimal"),
        ({"name": "sh", "sha256": HASH, "url": "https://a.example/sh", "version": "1"}, "must be of dufs or"),
        ({"name": "dufs", "sha256": HASH, "hash": 1}, "is not a pin"), ({"name": "dufs", "sha256": HASH, "platform": "plan9-x64"}, "needs a 'url'"),
        ({"name": "dufs", "sha256": HASH, "version": "9"}, "needs its 'url'"),
        ({"name": "dufs", "sha256": HASH, "url": "ftp://a/x", "version": "1"}, "'url' of http"),
        ({"name": "dufs", "sha256": HASH, "url": "https://me@a/x", "version": "1"}, "'url' of http"),
        ({"name": "dufs", "sha256": HASH, "url": "file:///x", "version": "1"}, "'url' of http"),
        ({"name": "dufs", "sha256": HASH, "url": "https://a/x", "version": "../1"}, "'version'"),
        ({"name": "dufs", "sha256": HASH, "url": "https://a/x.zip", "version": "1", "member": "../x"}, "'member' inside"),
        ({"name": "dufs", "sha256": HASH, "url": "https://a/x", "version": "1", "member": "x"}, "'member' if"),
        ({"name": "dufs", "sha256": HASH, "platform": "Linux"}, "needs a 'url'"), ([], None), ("x", "is not a pin"), (7, "is not a pin"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_refused_and_nothing_is_kept(tmp_path, row, problem):
    """Bad input."""
    if problem is None:
        assert add(tmp_path, row) == ()
        return
    with pytest.raises(UnusableFile, match=problem):
        add(tmp_path, {"name": "cloudflared", "sha256": HASH}, row)
    assert not (tmp_path / "pins.json").exists()


def test_a_file_of_ours_that_is_broken_stops_what_depends_on_it(tmp_path):
    """Ours: a pin is never guessed at."""
    (tmp_path / "pins.json").write_text('[{"name": "dufs"')
    with pytest.raises(UnusableFile, match="Repair or remove"):
        pins.pin_for("dufs", "linux-x64", tmp_path / "pins.json")
    with pytest.raises(UnusableFile, match="cannot be read"):
        pins.add(tmp_path / "x", tmp_path, platform="linux-x64")
