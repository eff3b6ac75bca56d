"""WHO: whether a request may be looked at. ``bearer`` checks the token, ``origin`` the names it came for and from."""
