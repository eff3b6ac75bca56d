"""REQUEST: the HTTP edge, and the only folder that knows Falcon and Waitress.

``server`` reads bytes and parks connections; ``guard`` refuses what must not be looked at; ``app`` is the route table;
``bridge`` is the dialect on ``/``; ``operator`` is the second app, on a Unix socket; ``ports`` is what both need from the
living side.
"""
