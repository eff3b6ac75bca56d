"""The one way to this daemon from elsewhere: a public host name that the operator opens, and nobody else.

``passage`` knows when it is open, ``keeper`` holds the program that keeps it so, ``providers`` what to run and where
the name is in what it prints. Knows no actors; the living side is ``actors/tunnel.py``.
"""
