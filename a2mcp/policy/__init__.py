"""MAY IT: whether a call may run, and the calls that wait for the operator's word.

``approval.py`` decides, ``waiting.py`` is the table of those that wait. Neither knows actors, sessions or HTTP.
"""
