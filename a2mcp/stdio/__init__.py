"""The stdio bridge: a client that only starts local programs speaks through it to the daemon's ``/mcp``.

One JSON message a line on each side. ``pipes`` is the client's side and ``link`` the daemon's; ``finder`` knows which
daemon, ``headers`` what of a body is repeated, and ``bridge`` who waits for what. Starts no daemon by itself: the
command line gives it the means.
"""
