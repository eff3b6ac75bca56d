"""REMEMBER: the audit log, as plain objects without threads.

``record`` builds the lines, ``redact`` keeps payloads out of them, ``chain`` ties each to the one before, ``journal``
puts them on disk, ``query`` reads them back, ``verify`` looks whether they are as they were. One actor owns the
journal; nothing here knows it.
"""
