"""The bearer token: made here, and judged here when somebody typed it. Knows nothing of files or requests."""

from __future__ import annotations

from typing import Final

from a2mcp.errors import SettingsError

SHORTEST: Final = 32
"""Characters. Below what ``generate`` makes (43): it catches a placeholder, not a secret copied from elsewhere."""

_HINT: Final = "Put a real secret there, or delete the field and one is made and kept for you."


def generate() -> str:
    """Make a token of 32 random bytes: 43 characters that need no quoting, and are no option, anywhere."""
    import secrets  # noqa: PLC0415 - needed on the first start and by rotate only

    while (token := secrets.token_urlsafe(32)).startswith("-"):
        pass
    return token


def check(token: str) -> str:
    """Return a typed token unchanged when it is fit to be one.

    The text of an error never holds the token or a part of it.

    Raises:
        SettingsError: it is too short, or could not travel in a header.
    """
    if len(token) < SHORTEST:
        raise SettingsError("token", f"must be at least {SHORTEST} characters", hint=_HINT)
    if any(character.isspace() for character in token):
        raise SettingsError("token", "must not contain white space", hint=_HINT)
    if not (token.isascii() and token.isprintable()):
        raise SettingsError("token", "must be printable ASCII", hint=_HINT)
    return token


def prefix(token: str) -> str:
    """Shorten a token to what may be shown: its first six characters."""
    return f"{token[:6]}…"
