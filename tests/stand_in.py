"""A stand-in for ``cloudflared``: a script that prints what it prints, and misbehaves as it is told."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = "calm-river-xyz.trycloudflare.com"

_HEAD = f"""#!{sys.executable}
import json, os, signal, sys, time
def say(line):
    print(line, file=sys.stderr, flush=True)
def box(name):
    say("INF +----------------------------------------+")
    say("INF |  Your quick Tunnel has been created!   |")
    say("INF |  https://" + name + "                  |")
    say("INF +----------------------------------------+")
def stay():
    signal.pause()
with open(sys.argv[0] + ".runs", "a") as file:
    kept = {{name: value for name, value in os.environ.items() if name.startswith(("TUNNEL_", "A2MCP_", "NO_"))}}
    file.write(json.dumps({{"pid": os.getpid(), "argv": sys.argv[1:], "env": kept}}) + "\\n")
say("INF Requesting new quick Tunnel on trycloudflare.com...")
"""

BEHAVIOURS = {
    "good": "box({name!r}); stay()",
    "silent": "stay()",
    "dies": "say('ERR failed to request quick Tunnel: Post \"https://api.trycloudflare.com/tunnel\"'); sys.exit(3)",
    "two names": "box({name!r}); box('second-name.trycloudflare.com'); stay()",
    "junk": "sys.stderr.buffer.write(bytes(range(256)) * 2000 + b'\\n'); say('https://x.trycloudflare.com.evil.example'); stay()",
    "junk, then good": "sys.stderr.buffer.write(b'x' * 300000); say(''); box({name!r}); stay()",
    "deaf": "signal.signal(signal.SIGTERM, signal.SIG_IGN); box({name!r})\nwhile True: time.sleep(60)",
    "deaf and silent": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)",
    "talks": "box({name!r})\nwhile True: say('INF ' + 'x' * 1000)",
    "leaves a child": "box({name!r})\nif os.fork(): stay()\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)",
    "ends when told": "box({name!r})\nwhile not os.path.exists(sys.argv[0] + '.end'): time.sleep(0.01)",
    "named": "say('INF Registered tunnel connection connIndex=0'); stay()",
}


def cloudflared(folder: Path, behaviour: str, name: str = NAME) -> Path:
    """Write the script; each run of it leaves a line in the file of the same name with ``.runs``."""
    path = folder / "cloudflared"
    path.write_text(_HEAD + BEHAVIOURS[behaviour].replace("{name!r}", repr(name)) + "\n")
    path.chmod(0o755)
    return path
