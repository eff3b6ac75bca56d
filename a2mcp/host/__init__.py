"""The machine behind the tools: paths, text files, images, commands, search. Plain functions and values.

A module here knows one facility of the machine and nothing of MCP, sessions or actors; a tool puts the facilities
together and finds the words for the caller.
"""
