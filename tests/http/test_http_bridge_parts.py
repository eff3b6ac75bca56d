"""The bridge's resource by itself: what it makes of a refusal by the front."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

from a2mcp.errors import Busy, RequestError, Stopping
from a2mcp.http.bridge import Bridge


@pytest.mark.parametrize("refusal", [Busy("full"), Stopping("going down")])
@pytest.mark.parametrize("method", ["initialize", "tools/call", "ping", "notifications/x", "nothing"])
def test_a_refusal_names_the_request_that_it_refuses(refusal: RequestError, method: str) -> None:
    """JSON-RPC 2.0 §5: the id of the request, where it could be read."""

    def refuse(*_args: Any) -> None:
        raise refusal

    front: Any = SimpleNamespace(open_session=refuse, call=refuse, answer=refuse)
    body = b'{"jsonrpc":"2.0","id":"seven","method":"%b","params":{"name":"read"}}' % method.encode()
    request: Any = SimpleNamespace(
        method="POST", env={"wsgi.input": BytesIO(body)}, get_header=lambda _name: "a-session"
    )

    with pytest.raises(type(refusal)) as raised:
        Bridge(front)(request, SimpleNamespace())  # type: ignore[arg-type]

    assert raised.value.request_id == b'"seven"'
