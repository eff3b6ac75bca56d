"""What the person at the machine sees: events with a rising number, kept, filtered, counted, written.

Plain objects only; the actor that owns them is ``actors/events.py``.
"""
