"""What lives: one actor a file, each a thin shell around one plain object of ``a2mcp``.

===========  ==========================================  =====================  =========  ====================
actor        owns                                        hands on to            mailbox    when it dies
===========  ==========================================  =====================  =========  ====================
Front        parked exchanges, admission                 Sessions               the socket the daemon ends
Sessions     the session table                           AuditWriter            65,536     restarted, sessions stay
Events       what was observed, and who watches                                 8,192      restarted, watchers stay
AuditWriter  the log files                               who the record says    131,072    restarted
Executor     running calls, the pool of workers          Worker, Gate           131,072    restarted, calls go on
Worker       one blocking tool at a time                 AuditWriter, Jobs      2          replaced by Executor
Jobs         running commands and their output           AuditWriter            65,536     restarted, commands go on
Gate         approvals waiting for the operator          Executor               65,536     restarted, they still wait
Fetcher      programs of others that are fetched         who asked              64         restarted
Tunnel       the one tunnel and its program              Fetcher, AuditWriter   1,024      restarted, it stays open
Xfer         the one share and what serves it            Fetcher, AuditWriter   1,024      restarted, it stays up
Inference    whether the host may ask a model            AuditWriter            1,024      restarted, it stays denied
Agents       sessions of agents, their transcripts       Agent, AuditWriter     65,536     restarted, sessions stay
Agent        one session while a turn of it goes on      Agents                 4,096      replaced by Agents
Supervisor   the order of start and stop, restarts                              1,024      the daemon ends
===========  ==========================================  =====================  =========  ====================

A call goes Front → Sessions → AuditWriter (start) → Executor → Worker → AuditWriter (done) → the connection, by
``tell`` alone: no thread waits for an answer. ``system.py`` puts them together, from what ``setup.py``
and ``makers.py`` make; ``daemon.py`` is the process around them; ``kit.py`` and ``ref.py`` are what they are made of.
"""
