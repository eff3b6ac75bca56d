"""REQUEST: the HTTP edge, and the only folder that knows Falcon and Waitress.

``server`` reads bytes and parks connections; ``guard`` refuses what must not be looked at; ``routes`` is the table of
paths and ``app`` serves it; ``bridge`` is the dialect on ``/``; ``operator`` is the second app, on a Unix socket;
``ports`` is what both need from the living side.
"""
