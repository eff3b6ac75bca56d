"""What sets up the other side: MCP clients, service managers, and programs that are no MCP client.

``clients`` says where each client keeps its servers and how it writes one down; ``settings`` changes such a file and
takes the change back; ``jsonc`` and ``jsonedit`` (JSON with comments) and ``tomledit`` make the change in the text
itself, so that everything else in it stays as it was. ``service`` writes the units of systemd and launchd. ``mcp_call``
is the client in one file that may be copied to any machine. Nothing here knows the daemon.
"""
