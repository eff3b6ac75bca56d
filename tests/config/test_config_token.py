"""The bearer token: how it is made and which typed ones are refused."""

import secrets
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.config import token
from a2mcp.errors import SettingsError


def test_a_made_token_has_43_characters_and_passes_its_own_check():
    """Seed, "Configuration": generateToken emits 43 characters."""
    made = token.generate()
    assert len(made) == 43
    assert token.check(made) == made
    assert token.generate() != made


def test_no_made_token_begins_like_an_option(monkeypatch):
    """Ours: commands that take it as the value of an option, such as other people's clients, refuse one that does."""
    made = iter(["-" + "x" * 42, "--" + "y" * 41, "z-" + "z" * 41])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: next(made) if size == 32 else None)
    assert token.generate() == "z-" + "z" * 41


def test_a_token_of_32_characters_is_taken_as_it_is():
    """Row A08: the floor is 32."""
    assert token.check("x" * 32) == "x" * 32


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("x" * 31, "field 'token' must be at least 32 characters"),
        ("", "field 'token' must be at least 32 characters"),
        ("x" * 31 + " " + "y", "field 'token' must not contain white space"),
        ("x" * 40 + "\n", "field 'token' must not contain white space"),
        ("x" * 40 + "\u00a0", "field 'token' must not contain white space"),
        ("x" * 40 + "é", "field 'token' must be printable ASCII"),
        ("x" * 40 + "\x00", "field 'token' must be printable ASCII"),
        ("x" * 40 + "\ud800", "field 'token' must be printable ASCII"),
    ],
)
def test_a_typed_token_that_cannot_serve_is_refused_in_the_words_of_the_seed(typed, text):
    """Row A08 and seed, "Troubleshooting"."""
    with pytest.raises(SettingsError) as caught:
        token.check(typed)
    assert caught.value.text == text


@given(st.text(min_size=1))
def test_no_refusal_repeats_the_token(typed):
    """Ours: an error travels to logs and terminals."""
    secret = typed + "Ω-secret-Ω"
    with pytest.raises(SettingsError) as caught:
        token.check(secret)
    assert "secret-Ω" not in str(caught.value)


@given(st.text(alphabet=string.ascii_letters + string.digits + string.punctuation, min_size=32))
def test_every_printable_token_that_is_long_enough_is_kept_unchanged(typed):
    """Row A08: a typed token is never replaced."""
    assert token.check(typed) == typed


def test_the_prefix_shows_six_characters():
    """Issue §9: the start-up line."""
    assert token.prefix("abcdefghij") == "abcdef…"
