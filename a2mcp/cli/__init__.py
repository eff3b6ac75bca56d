"""The operator's side: one verb per file.

``main`` is the group and the one place where errors become exit codes; ``client`` talks to the daemon over its Unix
socket; ``show`` prints. A verb's module is imported when the verb is used. Nothing here knows an actor.
"""
