"""What the product knows: values, rules and machine facilities.

Nothing in this package starts an actor. The folders follow the path of a call:

``http`` request · ``auth`` who · ``protocol`` what · ``session`` where · ``policy`` may it · ``tools`` do it
(``host`` is the machinery behind them) · ``audit`` remember. ``config`` and ``cli`` stand beside that path.
"""

__version__ = "0.1.0"
