"""How much a JSON text holds: counted without being decoded, in pieces that end anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.errors import BodyTooLarge
from a2mcp.protocol import bulk, jsonrpc

TEXTS = st.text(st.sampled_from('ab"\\,[{é\n'), max_size=6)
VALUES = st.recursive(
    st.none() | st.integers(0, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=25,
)


def held(value: Any) -> int:
    """Containers, and members behind the first of each."""
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(0, len(value) - 1) + sum(map(held, inner))


@given(value=VALUES, ascii_only=st.booleans(), piece=st.integers(1, 40))
def test_what_is_in_strings_does_not_count_wherever_the_text_is_cut(value: Any, ascii_only: bool, piece: int) -> None:
    """Ours: quotes and backslashes stand at every edge."""
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "_PIECE", piece)
        patch.setattr(bulk, "_FEWEST_BYTES", 0)
        for most in (held(value), held(value) - 1):
            patch.setattr(bulk, "MOST_MEMBERS", most)
            assert bulk.is_too_much(text) is (most < held(value))


@given(st.binary(max_size=60), st.integers(1, 7))
def test_utf8_is_checked_as_a_whole_however_it_is_cut(text: bytes, piece: int) -> None:
    """Ours: a character that is cut in two is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "_PIECE", piece)
        try:
            text.decode()
        except UnicodeDecodeError:
            with pytest.raises(UnicodeDecodeError):
                bulk.check_utf8(text)
        else:
            bulk.check_utf8(text)


def test_a_long_text_is_one_value_and_a_long_list_is_too_much() -> None:
    """P4: what takes seconds to decode is refused before."""
    start = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":'
    jsonrpc.decode(start + b'"' + b"[,{" * 1_000_000 + b'"}')
    jsonrpc.decode(start + b"[" + b"1," * (bulk.MOST_MEMBERS - 6) + b"1]}")

    for items in (b"1,", b"{},", b"[],", b'"",'):
        with pytest.raises(BodyTooLarge, match="250000 values"):
            jsonrpc.decode(start + b"[" + items * (bulk.MOST_MEMBERS + 1) + b"1]}")
