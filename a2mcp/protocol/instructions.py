"""What a model is told about this server when a client connects."""

from typing import Final

INSTRUCTIONS: Final = """\
These tools run for real on the machine that serves them: files, commands and paths are that machine's, not yours. \
Paths may be absolute, start with ~, or be relative to the server's working directory. Read a tool's schema before \
calling it. A command still running after its `wait` is handed back as a job; follow it with `jobs`. Some calls may \
wait for the operator's approval, so give every call a timeout. What one command can say, do not split over several.\
"""
