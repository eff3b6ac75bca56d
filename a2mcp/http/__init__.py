"""REQUEST: the HTTP edge, and the only folder that knows Falcon and Waitress.

``server`` reads bytes and parks connections; ``guard`` refuses what must not be looked at; ``routes`` is the table of
paths and ``app`` serves it: ``bridge`` is the dialect on ``/``, ``standard`` the one on ``/mcp``, ``xfer`` (with
``uploads`` and ``relay``) what is shared, ``ui`` the operator's page, ``health`` and ``metrics`` what watchdogs ask.
``operator`` and ``control`` are the second app, ``events`` the stream beside it, both on Unix sockets. ``ports`` and
``facts`` are what all of them need from the living side.
"""
