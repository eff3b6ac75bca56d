"""Programs of others that we use, found or fetched: ``dufs`` and ``cloudflared``.

``programs`` says where one is and fetches it when it is nowhere; ``pins`` is what may be fetched, ``download`` how,
``unpack`` what is taken out of it, ``installs`` the record of what was put where. Knows no actors and no tools.
"""
