"""Files over HTTP: the one share behind ``/xfer/``, and what serves it. Knows neither HTTP libraries nor actors.

``share`` and ``root`` are what is served and the fence around it; ``service`` is what each method does with it,
``upload`` where a body goes, ``page`` what a person sees. ``owner`` is the one place that opens and closes a share;
``dufs`` and ``proxy`` serve it through another program.
"""
