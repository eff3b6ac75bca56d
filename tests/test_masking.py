"""Secrets in a text: found by name and by shape, replaced and nothing else, in time that grows with the text."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2mcp import masking
from a2mcp.audit.redact import redact
from a2mcp.masking import MASK, mask, may_hold_secret

SECRET = "q7RmXw2LtZk9"
"""Has no shape of its own: only what stands beside it says that it is one."""


@pytest.fixture(autouse=True)
def _nothing_is_learned(monkeypatch):
    monkeypatch.setattr(masking, "_own", ())
    monkeypatch.setattr(masking, "_own_bytes", ())


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Password", "user_password", "db-passwd", "passphrase", "PGPASSWORD", "pwd", "pass", "smtpPass"),
        *("token", "apiToken", "GITHUB_TOKEN", "tokens", "x-a2mcp-token", "csrfToken2", "secret", "client_secret"),
        *("api_key", "apiKey", "api-key", "API key", "AWS_SECRET_ACCESS_KEY", "privateKey", "credentials"),
        *("Authorization", "proxy-authorization", "DUFS_AUTH", "basic_auth", "Cookie", "Set-Cookie", "bearer"),
    ],
)
def test_a_name_says_that_a_value_is_a_secret(name):
    """Issue 5, P7: values under such names are left out of what is written down."""
    assert redact({name: SECRET}) == {name: MASK}
    assert redact({"a": [{name: {"deeper": SECRET}}]}) == {"a": [{name: MASK}]}


@pytest.mark.parametrize(
    "name", ["path", "command", "author", "key", "keyword", "passing", "compass_x", "tokenFile", "cookie_path", "stdin"]
)
def test_other_names_say_nothing(name):
    """Ours: what is masked for nothing is missing from the log."""
    assert redact({name: SECRET}) == {name: SECRET}


def test_a_number_is_a_secret_only_where_its_name_ends_in_the_word():
    """Ours: a PIN is one, a limit is none; and neither "none" nor "yes" is."""
    given_ = {
        "password": 1234,
        "max_tokens": 4096,
        "token_count": 7,
        "use_token": True,
        "secret": None,
        "otp_token": 1.5,
    }
    assert redact(given_) == given_ | {"password": MASK, "otp_token": MASK}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("curl -H 'Authorization: Bearer @' x", "curl -H 'Authorization: Bearer <secret>' x"),
        ("authorization: Basic @", "authorization: Basic <secret>"),
        ("Authorization: @", "Authorization: <secret>"),
        ("the bearer @.", "the bearer <secret>"),
        ("PGPASSWORD=@ psql", "PGPASSWORD=<secret> psql"),
        ("export TOKEN='@ x' y", "export TOKEN='<secret>' y"),
        ('{"password": "@ x", "a": 1}', '{"password": "<secret>", "a": 1}'),
        ('-d "{\\"api_key\\": \\"@\\"}"', '-d "{\\"api_key\\": \\"<secret>\\"}"'),
        ("login --password @ --verbose", "login --password <secret> --verbose"),
        ("login --password=@ --verbose", "login --password=<secret> --verbose"),
        ("login --client-secret '@ x' y", "login --client-secret '<secret>' y"),
        ("?a=1&token=@&b=2", "?a=1&token=<secret>&b=2"),
        ("curl -u me:@ http://h/", "curl -u me:<secret> http://h/"),
        ("curl --user 'me:@' http://h/", "curl --user 'me:<secret>' http://h/"),
        ("git clone https://me:@@host/x", "git clone https://me:<secret>@host/x"),
        ("postgres://u:@@h:5432/db", "postgres://u:<secret>@h:5432/db"),
        ("Cookie: a=@; b=@", "Cookie: <secret>"),
        ("api key: @", "api key: <secret>"),
        ("pwd = @", "pwd = <secret>"),
    ],
)
def test_what_stands_beside_a_value_says_that_it_is_a_secret(text, masked):
    """Issue 5, P7: a token in a command line is not in the log."""
    assert mask(text.replace("@", SECRET, 1) if "@@" in text else text.replace("@", SECRET)) == masked


TOKENS = [
    *(
        "sk-" + "a1B2" * 8,
        "sk-ant-api03-" + "a1_B2-" * 5,
        "sk_live_" + "a1B2" * 6,
        "ghp_" + "a1B2" * 9,
        "gho_" + "a1B2" * 9,
    ),
    *("github_pat_" + "a1B2_" * 9, "glpat-" + "a1B2-" * 4, "xoxb-1234-" + "a1B2" * 4, "xapp-1-" + "a1B2" * 4),
    *("AIza" + "a1B2_" * 7, "ya29." + "a1B2-" * 5, "npm_" + "a1B2" * 9, "pypi-" + "a1B2-" * 6, "hf_" + "a1B2" * 8),
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "-----BEGIN OPENSSH PRIVATE KEY-----\na1B2c3\nd4\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\na1B2 cut off",
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_well_known_shape_is_a_secret_wherever_it_stands(token):
    """Issue 5, P7: tokens that everybody knows by their looks."""
    assert mask(f"echo {token}") == f"echo {MASK}"
    assert mask(f'x="{token}"').startswith(f'x="{MASK}')
    assert mask(token) == MASK


@pytest.mark.parametrize(
    "text",
    [
        *(
            "uname -s; pwd",
            "ls -la /home/me/project",
            "git status --short",
            "task-list-of-many-long-things",
            "a@b.example",
        ),
        *("http://127.0.0.1:4801/mcp", "head -c 10 tokens.txt", "cat /etc/passwd", "python -u main.py", "sk-learn"),
        *(
            "TOKEN=$(cat f) run",
            'export TOKEN="$(cat f)"',
            "PASSWORD=`cat f`",
            "--token-file /run/t",
            "tail -f key.log",
        ),
    ],
)
def test_what_is_no_secret_stays(text):
    """Ours: where a secret comes from may be read, and so may what only looks a bit like one."""
    assert mask(text) == text


def test_a_value_is_masked_to_its_end():
    """Ours: however long it is."""
    long = "aB3$x" * 20_000
    for text in (
        f"token={long} z",
        f'"token": "{long}" z',
        f"cookie: {long}; b={long} z",
        f"--password {long} z",
        f"sk-{'a' * 99_999} z",
    ):
        assert len(mask(text)) < 40, text[:20]
        assert mask(text).endswith(" z")


def test_no_command_can_be_hidden_behind_the_word():
    """Ours: the log is evidence; a value ends before what a shell would run."""
    for hidden in (
        "token=$(rm -rf x)",
        "password=a;rm -rf x",
        "secret='a'|rm -rf x",
        'token="a`rm -rf x`"',
        "pwd=a&rm -rf x",
    ):
        assert "rm -rf x" in mask(hidden), hidden


def test_what_the_process_learned_is_masked_wherever_it_stands():
    """Issue 5, P7: our own token has no shape; it is known."""
    masking.learn("first-" + SECRET)
    masking.learn("second-" + SECRET)

    assert mask(f"a first-{SECRET}, second-{SECRET}.") == f"a {MASK}, {MASK}."
    assert may_hold_secret(f'{{"x":"first-{SECRET}"}}'.encode())


def test_only_the_last_few_that_were_learned_are_remembered():
    """STYLE 12: whoever rotates every second does not make every line slower."""
    for number in range(10):
        masking.learn(f"{SECRET}-{number}-")

    assert mask(f"{SECRET}-9- {SECRET}-6- {SECRET}-5-") == f"{MASK} {MASK} {SECRET}-5-"


PIECES = st.lists(
    st.sampled_from(
        [
            *("password", "token=", "secret", ": ", "=", '"', "'", "\\", " ", "--", "-u ", "a:b", "://", "@", "Bearer ", "sk-"),
            *("ghp_", "x" * 20, "$(", ";", "cookie", "; a=b", "eyJ", ".", "api_key", "<secret>", "\n", "-----BEGIN PRIVATE KEY-----"),
        ]
    )
    | st.text(max_size=5),
    max_size=20,
).map("".join)  # fmt: skip


@given(PIECES)
@example("Authorization: Bearer <secret>")
def test_masking_twice_is_masking_once(text):
    """Ours: what was written down masked and is read and shown again does not change."""
    once = mask(text)
    assert mask(once) == once


@given(st.dictionaries(PIECES, PIECES | st.integers(1 - 2**63, 2**63 - 1) | st.none(), max_size=4))
@example({"password": ""})
def test_what_is_said_to_hold_no_secret_is_what_masking_leaves_alone(arguments):
    """Ours: the quick look that lets arguments into the log as they came may not miss one."""
    for ascii_only in (True, False):
        raw = json.dumps(arguments, ensure_ascii=ascii_only).encode()
        if raw.isascii() and len(raw) <= 120 and not may_hold_secret(raw):
            assert redact(msgspec.json.decode(raw)) == arguments


@pytest.mark.parametrize(
    "token", [*TOKENS, *(f"{name}={SECRET}" for name in ("token", "pwd", "api_key", "cookie", "auth"))]
)
def test_the_quick_look_sees_each_shape(token):
    """Ours: every shape and name has a hint."""
    assert may_hold_secret(token.encode())
    assert may_hold_secret(token.upper().encode())


@pytest.mark.parametrize("name", ["pass\\u0077ord", "tok\\u0065n"])
def test_an_escape_hides_no_name(name):
    """Ours: JSON can spell a letter in another way."""
    raw = f'{{"{name}":"{SECRET}"}}'.encode()
    assert may_hold_secret(raw)
    assert SECRET not in str(redact(msgspec.json.decode(raw)))


@pytest.mark.parametrize(
    "piece",
    [
        *("-", "token", "token=", "-a", "eyJ-", "-----BEGIN PRIVATE KEY-----", "://", ":", "-u ", "bearer ", 'token "'),
        *(
            "--token ",
            "sk-",
            "a@",
            "pass",
            "api_",
            "://a:",
            "cookie:",
            "cookie:a;b=",
            "password \\",
            "gh",
            "ghp_",
            "--",
        ),
    ],
)
def test_no_text_takes_long(piece):
    """Ours: whoever sends it must not stop the thread that writes; the first form took 15 s for one of these."""
    text = (piece * 64_000)[:64_000]
    began = time.process_time()
    mask(text)
    assert time.process_time() - began < 1
