"""Gives the tests of the stdio bridge their fixtures."""

from stdio_client import lines, program, server

__all__ = ["lines", "program", "server"]
