"""A valid request, mutated: whatever comes of it, no fault of ours, and nothing happens without the token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import wire
from harness import Daemon, running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = [
    b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Host: evil", b"Connection: close", b"Expect: 100-continue", b" folded",
    b"Authorization: Bearer x", b"mcp-session-id: x", b"Origin: null", b"", b"\x00", b"X" * 9000, b"Upgrade: h2c", b"GET / HTTP/1.1",
]  # fmt: skip
BYTES = st.sampled_from(
    [b"\r", b"\n", b"\0", b" ", b"\t", b":", b"\xff", b"\xe9", b"{", b'"', b"0", b"\r\n", b"\r\n\r\n"]
)


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon that has to live through it all."""
    with running(tmp_path_factory.mktemp("fuzz") / "home") as daemon:
        yield daemon


@st.composite
def mutations(draw: st.DrawFn) -> list[tuple[str, float, bytes]]:
    """Some changes: what kind, where (a share of the length), with what."""
    change = st.tuples(
        st.sampled_from(["insert", "replace", "delete", "line", "cut", "twice"]),
        st.floats(0, 1),
        BYTES | st.binary(max_size=3),
    )
    return draw(st.lists(change, min_size=1, max_size=4))


def _mutated(data: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    for kind, where, what in changes:
        at = int(where * len(data))
        if kind == "line":
            rows = data.split(b"\r\n")
            rows.insert(int(where * len(rows)), LINES[(at + len(what)) % len(LINES)])
            data = b"\r\n".join(rows)
        elif kind == "cut":
            data = data[:at]
        elif kind == "twice":
            data += data[at:]
        else:
            data = data[:at] + (b"" if kind == "delete" else what) + data[at + (kind != "insert") :]
    return data


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    changes=mutations(), authorized=st.booleans(), request=st.sampled_from(["initialize", "call", "chunked", "delete"])
)
def test_a_mutated_request_is_no_fault_and_no_way_in(
    victim: Daemon, changes: list[tuple[str, float, bytes]], authorized: bool, request: str
) -> None:
    """Row H13: never 5xx but 501, never a change of state without the token; alive afterwards."""
    token = victim.token if authorized else None
    target = victim.home / "written"
    body = wire.call("write", path=str(target), content="x")
    whole = {
        "initialize": wire.post(wire.INITIALIZE, token),
        "call": wire.post(body, token, session="x"),
        "chunked": wire.post(b"", token, "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
        + wire.chunked(body),
        "delete": wire.head(
            "DELETE / HTTP/1.1", "Host: 127.0.0.1", "mcp-session-id: x", f"Authorization: Bearer {token}"
        ),
    }[request]

    said = victim.raw(_mutated(whole, changes), seconds=2.0, half_close=True)

    for answer in wire.split_answers(said.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")):
        assert answer.status < 500 or answer.status == 501, said
        assert authorized or answer.status >= 400, said
        assert not answer.body or answer.json["jsonrpc"] == "2.0"
    assert not target.exists()
    assert victim.process.poll() is None
    assert not [record for record in victim.audit() if record["tool"] == "write"]
