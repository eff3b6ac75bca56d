"""WHAT: the messages of MCP and what they mean, as values and bytes. Knows no HTTP and no actor."""
