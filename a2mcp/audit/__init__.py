"""REMEMBER: the audit log, as plain objects without threads.

``record`` builds the lines, ``redact`` keeps payloads out of them, ``journal`` puts them on disk, ``query`` reads them
back. One actor owns the journal; nothing here knows it.
"""
