"""What the operator decided, and where it is kept.

``paths`` says where every file of a daemon lives, ``schema`` what the settings are, ``load`` reads, checks and keeps
``a2mcp.json``, ``token`` makes and judges bearer tokens, ``endpoint`` publishes the address of the running daemon, and
``instance`` holds the lock that makes it the only one. Nothing here listens, and nothing here starts an actor.
"""
