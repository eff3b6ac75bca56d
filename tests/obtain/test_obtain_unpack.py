"""What is taken out of an archive, and which archives are not touched."""

import tarfile

import pytest
from asset_server import PROGRAM, tar_of, zip_of
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.obtain.unpack import MOST_MEMBERS, BadArchive, _require_inside, program_in


@pytest.fixture
def taken(tmp_path):
    """Write bytes as an asset and take the program out."""

    def take(data, asset="x.tar.gz", member="prog", **more):
        file = tmp_path / "part"
        file.write_bytes(data)
        before = sorted(tmp_path.rglob("*"))
        try:
            return program_in(file, asset, member, **more)
        finally:
            assert sorted(tmp_path.rglob("*")) == before, "nothing is written"

    return take


@pytest.mark.parametrize("name", ["prog", "./prog"])
def test_the_program_is_taken_out_of_a_tar(taken, name):
    """Issue 4 §4."""
    assert taken(tar_of(("README", b"x"), (name, PROGRAM))) == PROGRAM


def test_the_program_is_taken_out_of_a_zip(taken):
    """Seed, xfer: the Windows build is a zip."""
    assert taken(zip_of(("prog", PROGRAM), ("x/y", b"x")), "x.zip") == PROGRAM


def test_bytes_that_are_no_archive_are_the_program(taken):
    """Seed, xfer: cloudflared for Linux is the bare file."""
    assert taken(PROGRAM, "cloudflared-linux-amd64", "") == PROGRAM


@pytest.mark.parametrize("name", ["../prog", "/etc/prog", "a/../../prog", "..\\prog", "C:\\prog", "a/.."])
@pytest.mark.parametrize("make", ["tar", "zip"])
def test_an_archive_with_a_way_out_is_refused_as_a_whole(taken, make, name):
    """X14: zip-slip."""
    build, asset = (tar_of, "x.tgz") if make == "tar" else (zip_of, "x.zip")
    with pytest.raises(BadArchive, match="leads out"):
        taken(build((name, b"evil"), ("prog", PROGRAM)), asset)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_member_that_is_no_file_is_refused(taken, kind):
    """Issue 4 §4: a symbolic link under the program's name would be another file's bytes."""
    entry = tarfile.TarInfo("prog")
    entry.type = kind
    entry.linkname = "/etc/passwd"
    with pytest.raises(BadArchive, match="something else"):
        taken(tar_of(("prog", entry)))


def test_a_link_in_a_zip_is_refused(taken):
    """Issue 4 §4."""
    with pytest.raises(BadArchive, match="something else"):
        taken(zip_of(("prog", b"/etc/passwd"), mode=0o120777), "x.zip")


@pytest.mark.parametrize(("asset", "build"), [("x.tar.gz", tar_of), ("x.zip", zip_of)])
def test_an_archive_without_the_program_is_refused(taken, asset, build):
    """Ours."""
    with pytest.raises(BadArchive, match="has no 'prog'"):
        taken(build(("other", b"x")), asset)


@pytest.mark.parametrize(("asset", "build"), [("x.tar.gz", tar_of), ("x.zip", zip_of)])
@pytest.mark.parametrize("cut", [0, 1, 30, 200])
def test_half_an_archive_is_refused(taken, asset, build, cut):
    """Bad input."""
    with pytest.raises(BadArchive):
        taken(build(("prog", PROGRAM * 2))[:cut], asset)


@pytest.mark.parametrize(("asset", "build"), [("x.tar.gz", tar_of), ("x.zip", zip_of)])
def test_a_program_that_unfolds_without_end_is_refused(taken, asset, build):
    """Ours: a few bytes may become gigabytes."""
    with pytest.raises(BadArchive, match="more than 100000 bytes"):
        taken(build(("prog", bytes(5_000_000))), asset, largest=100_000)


def test_an_archive_with_too_many_members_is_refused(taken):
    """Ours."""
    with pytest.raises(BadArchive, match="members"):
        taken(zip_of(*((f"f{number}", b"") for number in range(MOST_MEMBERS)), ("prog", PROGRAM)), "x.zip")


@given(st.text(alphabet="ab./\\:\0", max_size=12))
def test_no_name_that_passes_leads_out(tmp_path_factory, name):
    """Ours, with hypothesis: what passes stays below any folder."""
    root = tmp_path_factory.getbasetemp() / "root"
    try:
        _require_inside(name)
    except BadArchive:
        return
    import os

    joined = os.path.normpath(root / name.replace("\\", "/"))
    assert joined == str(root) or joined.startswith(f"{root}/")


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(tmp_path_factory, data):
    """Ours, with hypothesis: any bytes are a bad archive, not an accident."""
    file = tmp_path_factory.getbasetemp() / "any"
    for asset, magic in (("x.tar.gz", b"\x1f\x8b\x08"), ("x.zip", b"PK\x03\x04")):
        file.write_bytes(magic + data)
        with pytest.raises(BadArchive):
            program_in(file, asset, "prog")
