"""The header ``Authorization``: let in are the token behind the scheme and nothing else, whatever the bytes are."""

from __future__ import annotations

from a2mcp.auth.bearer import Bearer

TOKEN = "QzB0-_fuzzing-is-what-this-token-is-for_0000"


def check(data: bytes) -> None:
    """Fail unless a header with this value is judged as RFC 6750 has it, and counted when it is refused."""
    bearer = Bearer(TOKEN, report=lambda _line: None)
    allowed = bearer.allows(data.decode("latin-1"))  # As the server hands a header on.
    assert allowed is _is_the_token(data)
    assert bearer.refused == (not allowed)
    assert bearer.allows(f"Bearer {TOKEN}")


def _is_the_token(value: bytes) -> bool:
    scheme, rest = value[:6], value[6:]
    return scheme.lower() == b"bearer" and rest[:1] in (b" ", b"\t") and rest.strip(b" \t") == TOKEN.encode()
