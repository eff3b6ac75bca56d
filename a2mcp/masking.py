"""What of a text is a secret that must not be written down: by its name, by its shape, or because it is our own.

Owns the names and the shapes. Does not know where a text goes. A value is replaced only as far as no shell would act on
it, so that nobody can hide a command by calling it a password.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from re import Match

MASK: Final = "<secret>"

_WORDS: Final = (
    "password|passwd|passphrase|passcode|secret|token|credential|cookie|bearer|authorization"
    "|(?:api|access|private|signing|encryption)[-_ ]?key"
)
_ENDS: Final = "pwd|pass|auth"
"""These make a name that of a secret only where they end it."""
_NAME: Final = re.compile(rf"(?:(?:{_WORDS})|(?:{_ENDS})\d*\Z)(?!.*(?:file|path)\Z)", re.IGNORECASE | re.DOTALL)
_NAME_OF_NUMBER: Final = re.compile(rf"(?:{_WORDS}|{_ENDS})\d*\Z", re.IGNORECASE)
"""``max_tokens`` and ``token_count`` have numbers that are to be read."""

_BARE: Final = r"""(?:[^\s"'`$;|&()<>,{}\[\]\\]|\$(?!\())++"""
"""A value without quotes. PERF: never tried shorter, and whatever follows it is optional: nothing is read twice."""
_VALUE: Final = rf"""(?:(\\?")(?:[^"`$\\\n]|\$(?!\())+|(\\?')[^'\\\n]+|{_BARE})"""
"""A value in quotes of either kind, escaped or not, or without. It ends before what a shell would run."""
_SCHEME: Final = r"(?:(?:basic|bearer|digest|token)[ \t]+)?+"

_NAMED: Final = rf"(?:{_WORDS})[\w-]{{0,32}}(?<!file)(?<!path)"

_VALUES: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        # Cookie: a=…; b=…
        rf"""(cookie\d?["']?:[ \t]{{0,4}})()(){_BARE}(?:;[ \t]?[\w-]{{1,64}}={_BARE})*""",
        # token=…, "api_key": "…", Authorization: Bearer …
        rf"""((?:{_NAMED}|(?:{_ENDS})\d*)\\?["']?[ \t]{{0,4}}[:=][ \t]{{0,4}}{_SCHEME}){_VALUE}""",
        # --password …
        rf"""((?<![\w-])--?[\w-]{{0,32}}?{_NAMED}[ \t]{{1,4}})(?!-){_VALUE}""",
        # curl -u user:…
        rf"""((?<![\w-])(?:-u|--(?:proxy-)?user)[ =]{{0,2}}["']?[^\s:"']{{1,64}}:)()(){_BARE}""",
        # https://user:…@host
        r"""(://[^\s/:@"']{0,64}:)()()[^\s/@"']{1,256}(?=@)""",
        r"""(\bbearer[ \t]+)()()[\w.~+/=-]{8,}""",
    )
)
_TOKENS: Final = re.compile(
    r"(?<![\w-])(?:"
    r"[sr]k[-_][\w-]{16,}|gh[oprsu]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}|AIza[\w-]{30,}|ya29\.[\w-]{16,}"
    r"|npm_\w{30,}|pypi-[\w-]{16,}|hf_\w{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
    r")",
    re.ASCII,
)
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,32}PRIVATE KEY-----|\Z)", re.DOTALL
)

_HINT: Final = (
    r"k(?:e[ny]|ie|[-_])|p(?:ass|wd|m_|ypi-)|cre[dt]|uth|bea"
    r"|gh[oprsu]_|github_pat_|glpat-|x(?:ox|app-)|za|y(?:j|a29)|f_|-u|@"
)
"""What every name and every shape has, in lower case. PERF: each begins with a letter that is rare in a text, so that
most of it is only skipped; it takes half the time of looking for the whole words."""
_hint: Final = re.compile(_HINT).search
_hint_in_bytes: Final = re.compile(_HINT.encode()).search
_BACKSLASH: Final = b"\\"[0]

_own: tuple[str, ...] = ()
_own_bytes: tuple[bytes, ...] = ()
_KEPT: Final = 4


def learn(secret: str) -> None:
    """Have a secret of this process masked wherever it stands; the last few that were learned are."""
    # There is one process to keep the secrets of, and a line of a log has no other way to know them.
    global _own, _own_bytes  # noqa: PLW0603
    _own = (*(known for known in _own if known != secret), secret)[-_KEPT:]
    _own_bytes = tuple(known.encode() for known in _own)


def mask(text: str) -> str:
    """Replace every secret in a text; what is masked already stays as it is."""
    for own in _own:
        if own in text:
            text = text.replace(own, MASK)
    if _hint(text.lower()) is None:
        return text
    text = _PRIVATE_KEY.sub(MASK, text)
    for pattern in _VALUES:
        text = pattern.sub(_masked, text)
    return _TOKENS.sub(MASK, text)


def may_hold_secret(raw: bytes) -> bool:
    """Whether JSON must be looked into before it is written down; False for what surely needs no masking.

    An escape can hide a letter of a name, so whatever has one is looked into.
    """
    if _BACKSLASH in raw or _hint_in_bytes(raw.lower()) is not None:
        return True
    return any(own in raw for own in _own_bytes)


@lru_cache(maxsize=1024)
def names_secret(name: str, *, number: bool = False) -> bool:
    """Whether what has this name is a secret, or is one if it is a number."""
    return (_NAME_OF_NUMBER if number else _NAME).search(name) is not None


def _masked(match: Match[str]) -> str:
    return f"{match[1]}{match[2] or match[3] or ''}{MASK}"
