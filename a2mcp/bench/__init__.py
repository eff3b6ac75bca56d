"""``a2mcp bench``: load on any MCP server over Streamable HTTP, and what it answered.

``plan`` says what to send and where to; ``messages`` makes the bytes; ``replies`` reads what comes back; ``client`` is
one connection and ``load`` the loop that drives them all; ``histogram`` keeps latencies in bounded memory; ``result``,
``terminal`` and ``chart`` show them. Knows nothing of the daemon: a server of ours is measured like anybody's.
"""
