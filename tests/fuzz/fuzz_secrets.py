"""A secret in a call's arguments, whatever lies around it: it is in no line of the log.

An input decides in which context the secret stands, how deep, and what is beside it.
"""

from __future__ import annotations

import json
from typing import Any

from a2mcp.audit.record import start_line
from a2mcp.masking import mask
from a2mcp.types import CallId

SECRET = "Zq8xW2nR5vT7kP3mL9sD1fG6"
TOKENS = (
    f"sk-{SECRET}", f"ghp_{SECRET}", f"github_pat_{SECRET}", f"glpat-{SECRET}", f"xoxb-{SECRET}", f"npm_{SECRET}{SECRET}",
    f"pypi-{SECRET}", f"hf_{SECRET}", f"AIza{SECRET}{SECRET}", f"ya29.{SECRET}", f"eyJ{SECRET}.{SECRET}.{SECRET}", f"sk_live_{SECRET}",
)  # fmt: skip
TEXTS = (
    f"Authorization: Bearer {SECRET}", f"authorization: Basic {SECRET}", f"bearer {SECRET}", f"PGPASSWORD={SECRET}", f"token: '{SECRET} x'",
    f'"client_secret": "{SECRET} x"', f'\\"api_key\\":\\"{SECRET}\\"', f"--password {SECRET}", f"--token={SECRET}", f"curl -u me:{SECRET}",
    f"https://me:{SECRET}@host/", f"Cookie: a={SECRET}; b={SECRET}", f"?access_token={SECRET}&x=1", f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n",
    *TOKENS,
)  # fmt: skip
NAMES = (
    "password",
    "Token",
    "API_KEY",
    "client-secret",
    "x-api-key",
    "Authorization",
    "cookie",
    "dbPass",
    "GIT_AUTH",
    "passphrase",
)
_JUNK = "abcXYZ019_/.,;<>[]{}()|&\n\té\u2028 -+*%#!?~"
"""No quote, no colon and no equals sign: an open quote or a name before a secret changes what is its value."""


def check(data: bytes) -> None:
    """Fail unless the secret is masked."""
    feed = iter(data)
    plant = _by_name(feed) if next(feed, 0) % 2 else _in_text(feed)
    arguments = _wrapped(plant, feed)
    raw = json.dumps(arguments, ensure_ascii=bool(next(feed, 0) % 2)).encode()
    for tool in ("bash", plant if isinstance(plant, str) else "read"):
        line = start_line(
            "2026-10-16T04:35:23.000Z", CallId("c"), None, tool, raw, client=plant if isinstance(plant, str) else None
        ).decode()
        assert SECRET not in line, line


def _by_name(feed: Any) -> dict[str, Any]:
    name = NAMES[next(feed, 0) % len(NAMES)]
    value: Any = (SECRET, [SECRET], {"x": SECRET}, SECRET * 9)[next(feed, 0) % 4]
    return {_junk(feed, 20) + name: value, "other": _junk(feed, 200)}


def _in_text(feed: Any) -> str:
    text = TEXTS[next(feed, 0) % len(TEXTS)]
    whole = f"{_junk(feed, 60)} {text}"
    assert SECRET not in mask(whole), whole
    return whole


def _wrapped(value: Any, feed: Any) -> Any:
    for _ in range(next(feed, 0) % 40):
        kind = next(feed, 0) % 3
        value = [value] if kind == 0 else {"k": value} if kind == 1 else [_junk(feed, 5), value]
    return value if isinstance(value, dict) else {"a": value}


def _junk(feed: Any, longest: int) -> str:
    return "".join(_JUNK[next(feed, 0) % len(_JUNK)] for _ in range(next(feed, 0) % longest))
