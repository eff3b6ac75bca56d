"""Which models this host may ask, with what, and how that is taken away from it.

Owns providers and their models, the keys, the placeholder and the takeover. Knows no actor, no HTTP route and no file.
The loop that works with a model, and the wire formats, come from the extra ``a2mcp[agent]``.
"""
