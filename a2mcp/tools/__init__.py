"""DO IT: the tools. One tool is one file with its parameters, its spec and its ``run``.

``spec`` says what a tool is, ``result`` what it returns, ``context`` what it may reach, ``arguments`` how a caller's
JSON becomes parameters, ``registry`` which tools are offered, ``builtin`` lists ours, ``call`` is one of them running.
"""
