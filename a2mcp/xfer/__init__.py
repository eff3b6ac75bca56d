"""Files over HTTP: the one share behind ``/xfer/``, and what serves it. Knows neither HTTP libraries nor actors.

``share`` and ``root`` are what is served and the fence around it; ``owner`` is the one place that opens and closes it;
``dufs`` and ``proxy`` serve it through another program.
"""
