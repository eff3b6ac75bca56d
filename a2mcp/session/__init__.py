"""WHERE: the sessions of the bridge dialect. ``table`` knows which exist; one actor owns it."""
