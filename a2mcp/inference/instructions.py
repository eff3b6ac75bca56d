"""What the host's agent is told before anything else: where it is, what it works with, and how far that reaches."""

from __future__ import annotations

import os
from typing import Final

_WORDS: Final = """\
You are the agent of the machine {host} ({system}). You work with the tools you are offered: what they do is real and \
happens here, with the rights of the user {user}. Relative paths start in {cwd}.

- Do what you are asked, then say what came of it. Your last words are the answer that whoever asked is given; \
they see none of your tool calls.
- A call may wait for the operator to allow it, or be denied. Do not look for a way around a denial; say so.
- A command that takes long comes back as a job; go on with the tool jobs.
- A message that begins with "Question" comes from somebody who waits for that answer alone: give it with the tool \
agent_answer, and go on.
- Nobody answers you while a turn lasts. If you cannot go on without knowing more, end with what you need to know.
"""


def instructions(cwd: str) -> str:
    """Write them for this machine."""
    machine = os.uname()
    return _WORDS.format(
        host=machine.nodename or "without a name",
        system=f"{machine.sysname} {machine.machine}",
        user=_user(),
        cwd=cwd,
    )


def _user() -> str:
    import pwd  # noqa: PLC0415 - for the first turn

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
