"""What a2mcp costs beside others: one run starts all servers, puts the same load on each in turn, and writes the table.

``python -m benchmarks [--quick]``, or ``make bench``. ``catalog`` says which servers there are and how they are
installed, ``servers`` starts and stops them, ``loader`` puts load on one, ``crowd`` holds a thousand hanging calls,
``watchers`` looks on, ``rounds`` is what is measured in which order, ``bars`` what must come out, ``report`` writes it
down. ``daemon`` is our own server with two tools more. ``load.c`` is the client, ``peers/`` the other servers.
"""
