"""How one line of the log follows from the one before it.

Owns the number and the hash that a line ends with. Knows neither files nor what a record says: it is given lines, each
a JSON object and a line break.

    {…,"seq":8,"hash":"H"}              H is of the text of the hash before, then of the line up to ``,"hash"``
    {…,"seq":8,"prev":"P","hash":"H"}   the same, where the line before is in another file or may be torn; H is of P
                                        and of the line up to ``,"prev"``

There is no key, because whoever could write the log could read it. So the chain shows what was changed by somebody who
did not write all that follows anew, and who does that is found out by a hash that was kept elsewhere.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

_BYTES: Final = 20
# 128 bits would do against who must meet a given hash, but who sends two records that have the same one may choose
# both; 256 would cost a tenth of what the log has room for.
HEX: Final = 2 * _BYTES
"""Characters of a hash."""
_PREV: Final = b',"prev":"%b"'
PREV_BYTES: Final = len(_PREV % (b"0" * HEX))
"""What it takes to name the hash before."""
_SEQ: Final = b',"seq":'
_AFTER_HASH: Final = len(b'"}\n')
_HASH_BYTES: Final = len(b',"hash":"') + HEX + _AFTER_HASH
_END: Final = re.compile(rb',"seq":([1-9][0-9]{0,17})(?:,"prev":"([0-9a-f]{40})")?,"hash":"([0-9a-f]{40})"\}\Z')
_LONGEST_END: Final = 160

# PERF: copying an empty state takes a third less than making one.
_empty = blake2b(digest_size=_BYTES).copy
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Link(msgspec.Struct, frozen=True):
    """Which line is meant: its number, and the hash that the next one builds on."""

    seq: int
    hash: bytes


START: Final = Link(0, b"0" * HEX)
"""What the first line of all follows."""


class Chained(msgspec.Struct, frozen=True):
    """What a line says of its place."""

    seq: int
    prev: bytes | None
    hash: bytes
    body: bytes
    """The part of the line that the hash is of."""

    @property
    def link(self) -> Link:
        """What the next line builds on."""
        return Link(self.seq, self.hash)

    def numbered(self, seq: int) -> "Chained":
        """The same line with another number."""
        return msgspec.structs.replace(self, seq=seq, body=b"%b%d" % (self.body.rstrip(b"0123456789"), seq))

    def follows(self, before: bytes) -> bool:
        """Whether it has the hash of a line that follows the one with this hash."""
        return _hash(before, self.body) == self.hash


def join(lines: Sequence[bytes], before: Link) -> list[bytes]:
    """Number lines on from ``before`` and chain them to its hash."""
    seq, last = before.seq, before.hash
    joined = []
    for line in lines:
        seq += 1
        # PERF: written out here, because it is done for each record: a call would cost a tenth more.
        body = b'%b,"seq":%d' % (line[:-2], seq)
        state = _empty()
        state.update(last + body)
        last = state.hexdigest().encode()
        joined.append(b'%b,"hash":"%b"}\n' % (body, last))
    return joined


def link_of(line: bytes) -> Link:
    """What the line after one that ``join`` has made builds on."""
    return Link(int(line[line.rindex(_SEQ) + len(_SEQ) : -_HASH_BYTES]), line[-HEX - _AFTER_HASH : -_AFTER_HASH])


def naming(line: bytes, prev: bytes) -> bytes:
    """Have a line that ``join`` has made name the hash before it."""
    return line[:-_HASH_BYTES] + _PREV % prev + line[-_HASH_BYTES:]


def read(line: bytes) -> Chained | None:
    """Read what a line, without its break, says of its place; None when that is nothing, or it is not whole.

    The hash is not looked into.
    """
    end = _end_of(line)
    if end is None or not _is_object(line):
        return None
    seq, prev, digest = end.groups()
    return Chained(int(seq), prev, digest, line[: end.start(2) - len(b',"prev":"') if prev else end.end(1)])


def is_whole(line: bytes) -> bool:
    """Whether a line has the end that each has, or is a JSON object: what is left of a torn one has and is neither."""
    return _end_of(line) is not None or _is_object(line)


def _end_of(line: bytes) -> re.Match[bytes] | None:
    return _END.search(line, max(0, len(line) - _LONGEST_END))


def _is_object(line: bytes) -> bool:
    try:
        _object(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _hash(before: bytes, body: bytes) -> bytes:
    state = _empty()
    state.update(before + body)
    return state.hexdigest().encode()
