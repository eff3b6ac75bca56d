"""A table is put into a TOML file and taken out again, and nothing else in the text changes."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.connect import tomledit
from a2mcp.connect.errors import BrokenFile

PATH = ("mcp_servers", "a2mcp")
ENTRY = {"url": "http://127.0.0.1:1/mcp", "bearer_token_env_var": "A2MCP_TOKEN"}

CODEX = """# mine
model = "gpt" # the usual

[mcp_servers.files]
command = "npx"
args = ["-y",
  "files", # last
]

[mcp_servers.files.env]
KEY = "v"

# trusted
[projects."/home/me/work"]
trust_level = "trusted"
"""


def test_a_table_joins_the_others_and_leaves_no_trace():
    """Issue §9: a merge that keeps comments and order; disconnect restores."""
    text = tomledit.put(CODEX, PATH, ENTRY)
    assert text.startswith(CODEX)
    assert tomllib.loads(text)["mcp_servers"] == tomllib.loads(CODEX)["mcp_servers"] | {"a2mcp": ENTRY}
    assert tomledit.get(text, PATH) == ENTRY
    assert tomledit.put(text, PATH, ENTRY) == text
    assert tomledit.drop(text, PATH) == CODEX


def test_a_table_in_the_middle_is_replaced_and_removed_where_it_is():
    """Ours: the client's own command may have put it there, with tables of its own inside."""
    text = CODEX.replace(
        "# trusted",
        '[mcp_servers.a2mcp] # was here\nurl = "old"\n[mcp_servers.a2mcp.http_headers]\nA = "b"\n\n# trusted',
    )
    changed = tomledit.put(text, PATH, ENTRY)
    assert changed.index("a2mcp") < changed.index("# trusted")
    assert tomledit.get(changed, PATH) == ENTRY
    assert tomllib.loads(tomledit.drop(text, PATH)) == tomllib.loads(CODEX)
    assert "# trusted\n[projects" in tomledit.drop(text, PATH)


def test_a_token_in_the_file_is_a_header():
    """Reference: `headers` is ignored, it is `http_headers`."""
    text = tomledit.put("", PATH, {"url": "u", "http_headers": {"Authorization": 'Bearer "x'}})
    assert tomllib.loads(text)["mcp_servers"]["a2mcp"]["http_headers"] == {"Authorization": 'Bearer "x'}


def test_line_ends_and_a_missing_last_one_are_met():
    """Ours: Windows, and editors that end no file."""
    text = tomledit.put('a = 1\r\nb = "x"', PATH, ENTRY)
    assert text.count("\r\n") == text.count("\n")
    assert tomllib.loads(text)["b"] == "x"


@pytest.mark.parametrize(
    "text",
    [
        "a = ", "[x", 'mcp_servers = "x"', 'mcp_servers = { a = { url = "x" } }', "[[mcp_servers]]\nurl = 1",
        'mcp_servers.a2mcp.url = "x"',
        '[mcp_servers]\na2mcp = { url = "x" }',
        'x = """\n[mcp_servers.a2mcp]\n"""\n[mcp_servers]\na2mcp.url = "x"\n',
    ],
)  # fmt: skip
def test_a_file_that_leaves_no_safe_place_is_refused(text):
    """Issue §9: a broken file is reported and left alone."""
    with pytest.raises(BrokenFile):
        tomledit.put(text, PATH, ENTRY)


def test_a_table_that_is_none_of_its_own_is_not_taken_out():
    """Issue §9: rather a refusal than a wrong file."""
    with pytest.raises(BrokenFile, match="not written as a table"):
        tomledit.drop('[mcp_servers]\na2mcp = { url = "x" }\n', PATH)
    assert tomledit.drop("a = 1\n", PATH) == "a = 1\n"


LINES = st.sampled_from(
    ["# c", "", "a = 1", 'b = "x # y"', "[t]", '[mcp_servers."x y"]', "[mcp_servers.z]", "[[l]]", 's = """', '"""', "[mcp_servers]", "[mcp_servers.z.env]"]
)  # fmt: skip


@given(st.lists(LINES, max_size=8).map("\n".join))
def test_any_file_gains_the_table_and_loses_it_again_or_is_refused(text):
    """Issue §9, as a property."""
    try:
        before = tomllib.loads(text)
        there = tomledit.put(text, PATH, ENTRY)
    except (tomllib.TOMLDecodeError, BrokenFile):
        return
    assert tomllib.loads(there) == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "a2mcp": ENTRY}}
    assert tomllib.loads(tomledit.drop(there, PATH)) == before
