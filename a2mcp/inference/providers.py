"""What speaks each wire format: the models of the agent's library, made for one request with what it takes.

With ``turn``, ``sample`` and ``attempts`` all that knows that library; needs the extra ``a2mcp[agent]``. Nothing
here retries: whoever asks decides that, because each attempt must pass the switch again.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from a2mcp.inference.importing import importing

with importing("pydantic_ai"):
    import httpx2
    import pydantic_ai

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from a2mcp.inference.keys import Credentials
    from a2mcp.inference.rows import ModelRow

CONNECT_S: Final = 10.0
SILENCE_S: Final = 300.0
"""How long a provider may say nothing: models think before they speak."""
NO_KEY: Final = "none"
"""Sent where the file names no key: else the libraries would look for another provider's in the environment."""

pydantic_ai.BANNER_ENABLED = False

client: ContextVar[httpx2.AsyncClient] = ContextVar("client")
"""The connections of whoever asks; set by ``connections``."""


@cache
def _trusted() -> ssl.SSLContext:
    """Whom we believe to be who they say. PERF: reading the certificates takes 25 ms; no turn but the first does."""
    return httpx2.create_ssl_context()


@asynccontextmanager
async def connections() -> AsyncIterator[None]:
    """Hold the connections of whoever asks inside the block, and close them after it."""
    timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
    # SECURITY: a key goes to the provider that it was given for, and nowhere that its answer points to.
    async with httpx2.AsyncClient(verify=_trusted(), follow_redirects=False, timeout=timeout) as opened:
        client.set(opened)
        yield


def openai_completions(row: ModelRow, credentials: Credentials) -> Any:
    """Speak OpenAI's chat completions, which most other servers take, too."""
    with importing("pydantic_ai.models.openai"):
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - each format is loaded when it is needed

    return _marked(OpenAIChatModel(row.id, provider=_openai(row, credentials), settings=_settings(row)), credentials)


def openai_responses(row: ModelRow, credentials: Credentials) -> Any:
    """Speak OpenAI's responses."""
    with importing("pydantic_ai.models.openai"):
        from pydantic_ai.models.openai import OpenAIResponsesModel  # noqa: PLC0415 - as above

    return _marked(
        OpenAIResponsesModel(row.id, provider=_openai(row, credentials), settings=_settings(row)), credentials
    )


def anthropic_messages(row: ModelRow, credentials: Credentials) -> Any:
    """Speak Anthropic's messages."""
    with importing("pydantic_ai.models.anthropic"):
        from anthropic import AsyncAnthropic  # noqa: PLC0415 - as above
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    speaker = AsyncAnthropic(
        # Its paths begin with the version, which others write into the address.
        base_url=row.base_url.rstrip("/").removesuffix("/v1"),
        api_key=credentials.key or NO_KEY,
        default_headers=credentials.headers,
        max_retries=0,
        http_client=client.get(),
    )
    provider = AnthropicProvider(anthropic_client=speaker)
    return _marked(AnthropicModel(row.id, provider=provider, settings=_settings(row)), credentials)


def _openai(row: ModelRow, credentials: Credentials) -> Any:
    from openai import AsyncOpenAI  # noqa: PLC0415 - as above
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    speaker = AsyncOpenAI(
        base_url=row.base_url,
        api_key=credentials.key or NO_KEY,
        default_headers=credentials.headers,
        max_retries=0,
        http_client=client.get(),
    )
    return OpenAIProvider(openai_client=speaker)


def _settings(row: ModelRow) -> Any:
    return None if row.max_tokens is None else {"max_tokens": row.max_tokens}


def _marked(model: Any, credentials: Credentials) -> Any:
    """Note on a model what must not come out of it, whatever its provider says."""
    model.secrets = tuple(secret for secret in (credentials.key, *credentials.headers.values()) if secret)
    return model
