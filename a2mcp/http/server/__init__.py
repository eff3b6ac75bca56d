"""Waitress, with its connections parked: what turns a socket into requests and answers back into bytes.

Waitress reads and frames; these files replace, through its class attributes and overridable methods, what its thread
pool and ``select`` loop cannot give: no thread waits for a call (``parked``, ``channel``), readiness comes from epoll
and nothing is scanned (``poller``, ``server``), callers come before strangers (``precedence``), what is ambiguous is
refused (``parser``), an equal block of headers is parsed once (``heads``), and a response leaves in one send
(``responses``). The hooks are not documented by Waitress, so ``setup.cfg`` pins its release and ``tests/http`` covers
each of them.
"""
