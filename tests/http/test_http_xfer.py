"""The route of files over a real socket: reading, ranges, listings, WebDAV, and what is refused."""

from __future__ import annotations

import contextlib
import email
import hashlib
import io
import os
import re
import socket
import struct
import zipfile
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from edge import TOKEN
from files_edge import files_edge, leftovers, until

from a2mcp.xfer.share import Share

DATA = bytes(range(256)) * 400


@pytest.fixture
def folder(tmp_path):
    """A share with a bit of everything."""
    shared = tmp_path / "shared"
    (shared / "sub" / "deep").mkdir(parents=True)
    (shared / "data.bin").write_bytes(DATA)
    (shared / "note.txt").write_text("grüße\n")
    (shared / "empty").write_bytes(b"")
    (shared / "page.html").write_text("<script>alert(1)</script>")
    (shared / "sub" / "b10.txt").write_text("b")
    (shared / "sub" / "b9.txt").write_text("bb")
    (tmp_path / "secret.txt").write_text("SECRET")
    (shared / "out").symlink_to(tmp_path / "secret.txt")
    (shared / "in").symlink_to("sub/b9.txt")
    return shared


@pytest.fixture
def served(folder):
    """The share, served with the default settings."""
    with files_edge(folder) as made:
        yield made


# --- whole files ------------------------------------------------------------------------------------------------------


def test_a_file_is_sent_with_what_a_client_needs_to_know(served):
    """As dufs does, §6.3: the headers of a file; row X13: no browser takes it for a page of ours."""
    answer = served.get("data.bin")
    assert answer.status_code == 200
    assert answer.content == DATA
    headers = answer.headers
    assert headers["content-type"] == "application/octet-stream"
    assert headers["accept-ranges"] == "bytes"
    assert headers["cache-control"] == "no-cache"
    assert headers["content-disposition"] == "inline; filename=\"data.bin\"; filename*=UTF-8''data.bin"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert re.fullmatch(r'"[0-9a-f]+-[0-9a-f]+"', headers["etag"])
    assert "last-modified" in headers


def test_head_says_what_get_would(served):
    """RFC 9110 §9.3.2; a range counts for GET only."""
    head = served.ask("HEAD", "data.bin", headers={"Range": "bytes=0-9"})
    got = served.get("data.bin")
    assert head.status_code == 200
    assert head.content == b""
    assert {**head.headers, "date": ""} == {**got.headers, "date": ""}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("note.txt", "text/plain; charset=utf-8"),
        ("page.html", "text/html; charset=utf-8"),
        ("sub/b9.txt", "text/plain; charset=utf-8"),
        ("data.bin", "application/octet-stream"),
        ("README", "text/plain; charset=utf-8"),
        ("old.txt", "text/plain"),
        ("archive.tar.gz", "application/octet-stream"),
        ("cut.txt", "text/plain; charset=utf-8"),
        ("p.png", "image/png"),
    ],
)
def test_the_type_is_guessed_from_the_name_and_else_from_the_content(served, folder, name, kind):
    """As dufs does, §6.3: a charset for text; ours: only one that is true."""
    (folder / "README").write_text("# hi")
    (folder / "old.txt").write_bytes(b"gr\xfc\xdfe")
    (folder / "cut.txt").write_bytes(b"a" * 4095 + "é".encode() + b"b")
    for other in ("archive.tar.gz", "p.png"):
        (folder / other).write_bytes(b"\0\1")
    assert served.get(name).headers["content-type"] == kind


def test_an_empty_file_and_a_link_that_stays_inside_are_files(served):
    """Row X06."""
    assert (served.get("empty").status_code, served.get("empty").content) == (200, b"")
    assert served.get("in").text == "bb"


@pytest.mark.parametrize(
    "path",
    [
        "nope",
        "sub/nope",
        "out",
        "data.bin/",
        "data.bin/x",
        "note.txt/..%20",
        ".a2mcp-0011.tmp",
        "x" * 300,
        "y/" * 2500 + "z",
    ],
)
def test_what_is_not_there_is_not_found(served, folder, path):
    """As dufs does, §6.2: a link that leaves the root is 404 too; ours: unfinished uploads are nobody's."""
    (folder / ".a2mcp-0011.tmp").write_text("half")
    answer = served.get(path)
    assert (answer.status_code, answer.text) == (404, "Not Found\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    "target",
    [
        "/xfer/../x",
        "/xfer/sub/..",
        "/xfer/%2e%2e/secret.txt",
        "/xfer/.%2E/a",
        "/xfer/./a",
        "/xfer//a",
        "/xfer/sub//b9.txt",
        "/xfer/a%00b",
        "/xfer/..%2fsecret.txt",
        "/xfer/sub%2fb9.txt",
        "/xfer/%",
        "/xfer/%4",
        "/xfer/%zz",
        "/xfer/sub/%2e",
    ],
)
def test_a_path_that_could_be_read_twice_is_refused(served, target):
    """As dufs does, §6.2: an odd component is 400; issue: no encoding trick."""
    status, answer = served.raw(target)
    assert status == 400
    assert b"Invalid Path" in answer


def test_names_that_are_no_utf8_can_be_listed_and_read(served, folder):
    """Ours: every name of the file system has an address."""
    name = b"caf\xe9 \\ \xff"
    (folder / os.fsdecode(name)).write_bytes(b"bytes")
    links = Links.of(served.get().text)
    address = next(link for link in links.hrefs if "caf" in link)
    assert address == "/xfer/caf%E9%20%5C%20%FF"
    assert served.raw(address)[1].endswith(b"bytes")
    answer = served.raw(address)[1]
    assert b"filename=\"caf_ _ _\"; filename*=UTF-8''caf%EF%BF%BD%20%5C%20%EF%BF%BD" in answer


def test_a_name_cannot_write_a_header(served, folder):
    """Security table §0 row 13."""
    (folder / 'a\r\nX-Evil: 1";').write_text("x")
    answer = served.get("a%0D%0AX-Evil:%201%22;")
    assert answer.status_code == 200
    assert "x-evil" not in answer.headers
    assert answer.headers["content-disposition"].startswith('inline; filename="a__X-Evil: 1_;"; ')


def test_what_would_hang_does_not(served, folder):
    """Issue, "Bad input": FIFOs, sockets."""
    os.mkfifo(folder / "fifo")
    assert served.get("fifo").status_code == 404
    assert served.ask("PUT", "fifo", content=b"x").status_code == 403
    assert "fifo" not in served.get("?simple").text + served.get("?json").text + served.get().text


def test_proc_can_be_shared_without_hanging(tmp_path):
    """Issue, "Bad input": /proc; magic links lead nowhere."""
    from pathlib import Path

    with files_edge(Path("/proc/self")) as served:
        assert served.get("cwd/").status_code == 404
        assert served.get("root/etc/passwd").status_code == 404
        assert served.get("exe").status_code == 404
        assert served.get("status").status_code == 200


# --- conditions -------------------------------------------------------------------------------------------------------


def test_conditions_are_honoured(served, folder):
    """As dufs does, §6.3; RFC 9110 §13.2.2: the order of precedence."""
    os.utime(folder / "note.txt", (1_700_000_000, 1_700_000_000))
    first = served.get("note.txt")
    etag, modified = first.headers["etag"], first.headers["last-modified"]
    earlier, later = formatdate(1_600_000_000, usegmt=True), formatdate(1_800_000_000, usegmt=True)
    for headers, status in [
        ({"If_None_Match": etag}, 304),
        ({"If_None_Match": f'"x", W/{etag}'}, 304),
        ({"If_None_Match": "*"}, 304),
        ({"If_None_Match": '"x"'}, 200),
        ({"If_None_Match": '"x"', "If_Modified_Since": modified}, 200),
        ({"If_Modified_Since": modified}, 304),
        ({"If_Modified_Since": later}, 304),
        ({"If_Modified_Since": earlier}, 200),
        ({"If_Modified_Since": "yesterday"}, 200),
        ({"If_Match": etag}, 200),
        ({"If_Match": '"x"'}, 412),
        ({"If_Match": "*"}, 200),
        ({"If_Match": f"W/{etag}"}, 412),
        ({"If_Unmodified_Since": earlier}, 412),
        ({"If_Unmodified_Since": modified}, 200),
        ({"If_Match": etag, "If_Unmodified_Since": earlier}, 200),
    ]:
        answer = served.get("note.txt", **headers)
        assert answer.status_code == status, headers
        assert answer.headers["etag"] == etag
        assert (answer.content == b"") == (status != 200)


# --- ranges -----------------------------------------------------------------------------------------------------------

SIZE = len(DATA)


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("0-0", 0, 1),
        ("-1", SIZE - 1, SIZE),
        ("5-", 5, SIZE),
        ("0-", 0, SIZE),
        ("10-19", 10, 20),
        (f"-{SIZE * 2}", 0, SIZE),
        (f"{SIZE - 1}-{SIZE * 9}", SIZE - 1, SIZE),
        ("1 - 2", 1, 3),
        ("1-2,2-4,5-6", 1, 7),
        ("99999999-,3-3", 3, 4),
    ],
)
def test_one_range_is_sent_alone(served, asked, start, end):
    """Row X11; RFC 9110 §14: an end beyond the file is the end of the file; ranges that touch are one."""
    answer = served.get("data.bin", Range=f"bytes={asked}")
    assert answer.status_code == 206
    assert answer.content == DATA[start:end]
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{SIZE}"


@pytest.mark.parametrize(
    "asked",
    [
        "5-2",
        f"{SIZE}-",
        "-0",
        "x",
        "-",
        "1-2-3",
        "0x1-2",
        "1-2,x",
        "",
        "٣-٤".encode(),
        "9" * 30 + "-",
    ],
)
def test_a_range_that_is_none_is_not_satisfied(served, asked):
    """Row X11; dufs §6.3: 416 with the size."""
    value = b"bytes=" + (asked if isinstance(asked, bytes) else asked.encode())
    answer = served.ask("GET", "data.bin", headers={"Range": value})
    assert (answer.status_code, answer.content) == (416, b"")
    assert answer.headers["content-range"] == f"bytes */{SIZE}"


def test_several_ranges_come_as_parts(served):
    """As dufs does, §6.3: multipart/byteranges, in the order asked for."""
    answer = served.get("data.bin", Range="bytes=500-599, 0-9,-7")
    assert answer.status_code == 206
    assert int(answer.headers["content-length"]) == len(answer.content)
    whole = b"Content-Type: " + answer.headers["content-type"].encode() + b"\r\n\r\n" + answer.content
    parts = email.message_from_bytes(whole).get_payload()
    assert [part["content-range"] for part in parts] == [
        f"bytes 500-599/{SIZE}",
        f"bytes 0-9/{SIZE}",
        f"bytes {SIZE - 7}-{SIZE - 1}/{SIZE}",
    ]
    bodies = answer.content.split(b"\r\n\r\n")[1:]
    assert [body.rsplit(b"\r\n--", 1)[0] for body in bodies] == [DATA[500:600], DATA[:10], DATA[-7:]]


@pytest.mark.parametrize(
    "asked",
    [
        "0-," * 999 + "0-",
        ",".join(["0-"] * 60),
        ",".join(f"{n}-" for n in range(64)),
        ",".join(f"{2 * n}-{2 * n}" for n in range(1000)),
        ",".join(f"{3000 * n}-{3000 * n + 2990}" for n in range(34)),
        ",".join(["-102400"] * 64),
    ],
)
def test_ranges_never_amount_to_more_than_twice_the_file(served, asked):
    """Row X11: amplification is bounded, however many there are."""
    answer = served.get("data.bin", Range=f"bytes={asked}")
    assert answer.status_code in (200, 206)
    assert len(answer.content) <= 2 * SIZE
    if answer.status_code == 200:
        assert answer.content == DATA


def test_another_unit_is_ignored(served):
    """RFC 9110 §14.2."""
    assert served.get("data.bin", Range="lines=1-2").status_code == 200


def test_if_range_sends_the_whole_file_once_it_has_changed(served):
    """Row X11: a stale If-Range; RFC 9110 §13.1.5."""
    now = served.get("data.bin").headers
    for condition, status in [
        (now["etag"], 206),
        ('"stale"', 200),
        (f"W/{now['etag']}", 200),
        (now["last-modified"], 206),
        (formatdate(1_600_000_000, usegmt=True), 200),
        ("nonsense", 200),
    ]:
        answer = served.get("data.bin", Range="bytes=1-2", If_Range=condition)
        assert answer.status_code == status, condition


# --- a folder ---------------------------------------------------------------------------------------------------------


class Links(HTMLParser):
    """The links of a page, and anything that could run."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.texts: list[str] = []
        self.scripts = 0
        self.handlers: list[str] = []

    @classmethod
    def of(cls, page: str) -> Links:
        made = cls()
        made.feed(page)
        return made

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.hrefs += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.texts.append(data)


def test_a_folder_is_a_page_whose_links_stay_on_the_route(served):
    """Issue, "The route": readable without JavaScript. Links that lead out of the share are not shown."""
    for path in ("", "sub", "sub/"):
        answer = served.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
    links = Links.of(served.get().text)
    assert [link for link in links.hrefs if link.startswith("/xfer/")] == [
        "/xfer/sub/",
        "/xfer/data.bin",
        "/xfer/empty",
        "/xfer/in",
        "/xfer/note.txt",
        "/xfer/page.html",
    ]
    links.feed(served.get("sub/deep").text)
    assert {"/xfer/", "/xfer/sub/"} <= set(links.hrefs)
    for link in links.hrefs:
        if link.startswith("/"):
            assert served.raw(link)[0] == 200
    assert served.client.get("/xfer").text == served.get().text


def test_the_page_lets_nothing_run_but_its_own_script(served):
    """Row X13: its policy names style and script by hash, and nothing from elsewhere."""
    import base64

    answer = served.get()
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        text = answer.text.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|unsafe", answer.text + policy)


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a\nb",
    "javascript:alert(1)",
    "' onmouseover='x",
    "&lt;",
    "#frag?q=1",
    "a%2fb",
    "\u202etxt.exe",
    "-rf",
    "%",
    "ü",
]


def test_hostile_names_are_shown_as_names(served, folder):
    """Row X13: `<script>`, quotes, newlines, javascript:."""
    for name in HOSTILE:
        (folder / name.replace("/", "_")).write_text(name)
    answer = served.get()
    links = Links.of(answer.text)
    assert links.scripts == 1
    assert links.handlers == []
    assert all(link.startswith(("/xfer/", "?", "data:,")) for link in links.hrefs)
    assert "\u202e" not in answer.text
    for link in links.hrefs:
        if link.startswith("/xfer/") and not link.endswith("/"):
            assert served.raw(link)[0] == 200, link


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("", "a10"),
        ("?sort=name&order=desc", "b"),
        ("?sort=size", "b"),
        ("?sort=size&order=desc", "a10"),
        ("?sort=mtime", "a9"),
        ("?sort=mtime&order=desc", "b"),
        ("?sort=nonsense", "a10"),
    ],
)
def test_a_listing_is_sorted_as_asked_folders_first(tmp_path, query, first):
    """As dufs does, §6.3: ?sort=name|mtime|size&order=desc; natural names."""
    for index, (name, size) in enumerate([("a9", 2), ("B", 1), ("a10", 3)]):
        (tmp_path / name).write_bytes(b"x" * size)
        os.utime(tmp_path / name, (1_700_000_000 + 10 * index,) * 2)
    os.utime(tmp_path / "B", (1_700_000_099,) * 2)
    (tmp_path / "zfolder").mkdir()
    with files_edge(tmp_path) as served:
        names = [path["name"].lower() for path in served.get("?json" + query.replace("?", "&")).json()["paths"]]
        shown = [text.lower() for text in Links.of(served.get(query).text).texts]
    assert names[0] == "zfolder"
    expected = {"a10": "a9" if query in ("", "?sort=nonsense") else "a10"}.get(first, first)
    assert names[1] == expected
    assert shown.index("zfolder/") < shown.index(expected)


def test_the_listing_as_json_has_the_shape_of_dufs(served):
    """As dufs does, §6.3: ?json of a folder and of a file."""
    document = served.get("sub/?json").json()
    paths = document.pop("paths")
    assert document == {
        "href": "/sub",
        "kind": "Index",
        "uri_prefix": "/xfer/",
        "allow_upload": True,
        "allow_delete": False,
        "allow_search": False,
        "allow_archive": False,
        "dir_exists": True,
        "auth": True,
        "user": None,
    }
    assert [(path["path_type"], path["name"], path["size"]) for path in paths] == [
        ("Dir", "deep", 0),
        ("File", "b9.txt", 2),
        ("File", "b10.txt", 1),
    ]
    kinds = {path["name"]: (path["path_type"], path["size"]) for path in served.get("?json").json()["paths"]}
    assert kinds["sub"] == ("Dir", 3)
    assert kinds["in"] == ("SymlinkFile", 2)
    one = served.get("note.txt?json").json()
    assert one.pop("mtime") > 1_600_000_000_000
    assert one == {"path_type": "File", "name": "note.txt", "size": 8}


def test_the_listing_as_lines(served):
    """As dufs does, §6.3: ?simple."""
    assert served.get("sub?simple").text == "b10.txt\nb9.txt\ndeep/\n"


def test_a_folder_that_is_missing_can_be_opened_to_upload_into(served):
    """As dufs does, §6.3: 200 with dir_exists false when the path ends in a slash, else 404."""
    assert served.get("new/").status_code == 200
    assert served.get("new/?json").json()["dir_exists"] is False
    assert served.get("new").status_code == 404


def test_hash_and_zip_are_off_unless_set(served):
    """As dufs does, §6.3: 403 and 404."""
    assert served.get("data.bin?hash").status_code == 403
    assert served.get("?zip").status_code == 404


def test_hash_and_zip_where_they_are_set(folder):
    """As dufs does, §6.3: the SHA-256 in hex; a zip of the folder, without what leads out."""
    with files_edge(folder, hash=True, zip=True) as served:
        assert served.get("data.bin?hash").text == hashlib.sha256(DATA).hexdigest()
        answer = served.get("?zip")
        assert answer.headers["content-disposition"].startswith('attachment; filename="shared.zip"')
        archive = zipfile.ZipFile(io.BytesIO(answer.content))
        assert sorted(archive.namelist()) == [
            "data.bin",
            "empty",
            "in",
            "note.txt",
            "page.html",
            "sub/b10.txt",
            "sub/b9.txt",
        ]
        assert archive.read("data.bin") == DATA
        assert served.get("?json").json()["allow_archive"] is True


# --- one file ---------------------------------------------------------------------------------------------------------


def test_a_shared_file_is_served_and_nothing_else(folder):
    """Row X02; dufs §6.3: /xfer, /xfer/ and /xfer/<name>. Writing is refused."""
    with files_edge(folder / "note.txt") as served:
        for target in ("/xfer", "/xfer/", "/xfer/note.txt"):
            status, answer = served.raw(target)
            assert status == 200
            assert answer.endswith("grüße\n".encode())
        for path in ("data.bin", "note.txt/", "NOTE.TXT", "sub/b9.txt", "note.txt/x", "?x/../data.bin"[3:], "out"):
            assert served.raw(f"/xfer/{path}")[0] in (400, 404), path
        assert served.raw("/xfer/note.txt/..")[0] == 400
        for method in ("PUT", "PATCH", "MKCOL", "COPY", "MOVE", "DELETE"):
            assert served.raw("/xfer/note.txt", method, b"x")[0] == 403
            assert served.raw("/xfer/other", method, b"x")[0] in (403, 404)
        assert served.get("?json").json()["name"] == "note.txt"
        (folder / "note.txt").unlink()
        (folder / "note.txt").symlink_to("data.bin")
        assert served.get("note.txt").status_code == 404
    assert (folder / "data.bin").read_bytes() == DATA


def test_a_file_that_is_shared_by_a_link_has_the_name_of_the_link(folder):
    """Ours: links are followed once, when it is shared."""
    with files_edge(folder / "in") as served:
        assert served.get("in").text == "bb"
        assert served.get("b9.txt").status_code == 404


# --- WebDAV and the other methods -------------------------------------------------------------------------------------


def test_propfind_describes_what_is_there(served):
    """As dufs does, §6.3: 207; hrefs have the prefix, and those of folders end in a slash."""

    def found(path, depth):
        answer = served.ask(
            "PROPFIND", path, headers={"Depth": depth} if depth else {}, content=b"<x/>" if depth == "0" else b""
        )
        assert answer.status_code == 207
        return {node.findtext("{DAV:}href"): node for node in ET.fromstring(answer.content)}

    assert list(found("sub", "0")) == ["/xfer/sub/"]
    inside = found("sub", None)
    assert list(inside) == ["/xfer/sub/", "/xfer/sub/deep/", "/xfer/sub/b9.txt", "/xfer/sub/b10.txt"]
    assert inside["/xfer/sub/deep/"].find(".//{DAV:}collection") is not None
    assert inside["/xfer/sub/b9.txt"].findtext(".//{DAV:}getcontentlength") == "2"
    assert list(found("note.txt", "1")) == ["/xfer/note.txt"]
    assert "/xfer/out" not in found("", "1")


@pytest.mark.parametrize(
    ("path", "depth", "status"),
    [("", "infinity", 400), ("", "2", 400), ("nope", "1", 404), ("out", "0", 404), ("note.txt/", "0", 404)],
)
def test_propfind_is_bounded(served, path, depth, status):
    """Row X12: PROPFIND infinity."""
    assert served.ask("PROPFIND", path, headers={"Depth": depth}).status_code == status


def test_a_name_that_xml_cannot_hold_does_not_break_the_answer(served, folder):
    """Row X13, for WebDAV."""
    for name in ("\x01\x0b", "<&>", os.fsdecode(b"\xff")):
        (folder / name).write_text("x")
    root = ET.fromstring(served.ask("PROPFIND").content)
    assert {"/xfer/%01%0B", "/xfer/%3C%26%3E", "/xfer/%FF"} <= {node.findtext("{DAV:}href") for node in root}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("DELETE", "note.txt", 403),
        ("DELETE", "", 403),
        ("MOVE", "note.txt", 403),
        ("MKCOL", "new", 201),
        ("MKCOL", "n/e/w", 201),
        ("MKCOL", "sub", 405),
        ("MKCOL", "note.txt", 405),
        ("MKCOL", "note.txt/x", 404),
        ("MKCOL", "out/x", 404),
        ("MKCOL", "a%0Ab", 400),
        ("POST", "note.txt", 405),
        ("LOCK", "note.txt", 200),
        ("LOCK", "sub", 403),
        ("LOCK", "nope", 404),
        ("UNLOCK", "note.txt", 204),
        ("PROPPATCH", "note.txt", 207),
        ("OPTIONS", "", 200),
        ("PATCH", "note.txt", 405),
        ("PUT", "sub", 403),
        ("PUT", "sub/", 403),
        ("PUT", "", 403),
    ],
)
def test_each_method_does_what_dufs_does_when_only_uploads_are_allowed(served, folder, method, path, status):
    """As dufs does, §6.3; row X12."""
    answer = served.ask(method, path, content=b"body" if method in ("PUT", "POST", "PATCH", "PROPPATCH") else b"")
    assert answer.status_code == status
    assert (folder / "note.txt").read_text() == "grüße\n"
    if status == 405:
        assert answer.headers["allow"]


def test_options_says_that_webdav_is_spoken(served):
    """Issue, "The route": OPTIONS with DAV."""
    answer = served.ask("OPTIONS")
    assert answer.headers["dav"] == "1, 2, 3"
    assert {"GET", "PUT", "PROPFIND", "MKCOL"} <= set(answer.headers["allow"].split(", "))


@pytest.mark.parametrize(
    ("where", "status"),
    [
        ("/xfer/copy.txt", 204),
        ("/xfer/new/copy.txt", 204),
        ("http://127.0.0.1/xfer/c", 204),
        ("/xfer/data.bin", 403),
        ("/xfer/sub", 403),
        ("/xfer/../secret.txt", 400),
        ("/xfer/%2e%2e/x", 400),
        ("/etc/passwd", 403),
        ("http://evil/xferx/a", 403),
        ("/xfer/out", 403),
        ("", 400),
        ("http://[", 400),
    ],
)
def test_a_copy_stays_inside_and_overwrites_nothing(served, folder, tmp_path, where, status):
    """Row X12: COPY with a Destination outside."""
    answer = served.ask("COPY", "note.txt", headers={"Destination": where})
    assert answer.status_code == status
    assert (tmp_path / "secret.txt").read_text() == "SECRET"
    assert (folder / "data.bin").read_bytes() == DATA
    if status == 204:
        assert (folder / where.split("/xfer/")[1]).read_text() == "grüße\n"
    assert leftovers(folder) == []


# --- before and after the share ---------------------------------------------------------------------------------------


def test_without_a_share_there_is_nothing(served):
    """Seed, xfer_*: after closing /xfer/ is 404; errors before the route are JSON-RPC."""
    served.shares.share.close()
    for method in ("GET", "PUT", "PROPFIND", "OPTIONS", "DELETE"):
        answer = served.ask(method, "note.txt", content=b"x" if method == "PUT" else b"")
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == -32000


def test_the_token_is_asked_for_before_the_body(served):
    """Row H08: a bad token and a large body that was promised; no 100 before the 401."""
    with served.connect() as sock:
        sock.sendall(
            b"PUT /xfer/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer no\r\nExpect: 100-continue\r\nContent-Length: 100000000\r\n\r\n"
        )
        answer = b"".join(iter(lambda: sock.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"WWW-Authenticate" not in answer


def test_a_share_that_is_closed_ends_what_is_being_read(tmp_path):
    """Brief for shares: closing ends transfers, of readers that read and of those that do not."""
    (tmp_path / "big").write_bytes(b"")
    os.truncate(tmp_path / "big", 1 << 30)
    with files_edge(tmp_path) as served, served.connect() as sock:
        sock.sendall(f"GET /xfer/big HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert sock.recv(1000)
        served.shares.share.close()
        until(lambda: served.running.connections == 0, "the connection is closed")
        got = 0
        with contextlib.suppress(ConnectionError):
            while piece := sock.recv(1 << 20):
                got += len(piece)
        assert got < 1 << 29


def test_a_reader_that_stalls_is_dropped_and_takes_nothing_with_it(tmp_path):
    """Issue, "The route": xfer.stall_s; security table §0 row 8: readers that never read."""
    (tmp_path / "big").write_bytes(b"")
    os.truncate(tmp_path / "big", 1 << 30)
    (tmp_path / "small").write_bytes(b"small")
    with files_edge(tmp_path, stall_s=0.3) as served:
        lazy = [served.connect() for _ in range(20)]
        for sock in lazy:
            sock.sendall(f"GET /xfer/big HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert served.get("small").text == "small"
        until(lambda: served.running.connections <= 1, "the readers are dropped")
        assert served.get("small").text == "small"
        for sock in lazy:
            sock.close()


def test_sixteen_downloads_at_once_are_all_whole(served):
    """Issue, "What it must show"."""
    with ThreadPoolExecutor(16) as pool:
        for answer in pool.map(lambda _: served.get("data.bin"), range(64)):
            assert answer.content == DATA


def test_no_descriptor_is_left_open(served):
    """Ours: by whatever way a request ends."""

    def settled() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # As many as there are names.

    served.get("data.bin")
    before = settled()
    for _ in range(5):
        served.get("data.bin", Range="bytes=0-1,5-6,9-10")
        served.get("data.bin", Range="bytes=0-," * 3)
        served.ask("HEAD", "data.bin")
        served.get("data.bin", Range="bytes=9-1")
        served.get("data.bin", If_None_Match="*")
        served.get("empty")
        served.get("sub?json")
        with served.connect() as sock:  # Leaves without reading.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(
                f"GET /xfer/data.bin HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
    # The first answer may have been there before its file was closed; whatever stays open does so five times.
    until(lambda: settled() <= before, "no more descriptors than before")


def test_a_share_of_a_missing_or_odd_path_says_why(tmp_path):
    """Seed, xfer_*: `cannot serve <path>: <reason>`."""
    from a2mcp.errors import ToolError

    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "round").symlink_to("round")
    for name, why in [
        ("nope", "No such file or directory"),
        ("fifo", "is a FIFO, not a file or a folder"),
        ("round", ""),
        ("x" * 300, "File name too long"),
    ]:
        with pytest.raises(ToolError, match=re.escape(f"cannot serve {tmp_path / name}: {why}")):
            Share.open(tmp_path / name)
