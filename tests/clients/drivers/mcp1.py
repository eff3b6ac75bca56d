"""PyPI mcp 1.x: over HTTP, or with arguments over a program's pipes. Runs in that package's environment."""

import asyncio
import contextlib
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


def transport():
    if sys.argv[1:]:
        return stdio_client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ)))
    return streamablehttp_client(os.environ["URL"], headers={"Authorization": "Bearer " + os.environ["TOKEN"]})


async def main():
    async with contextlib.AsyncExitStack() as stack:
        reading, writing, *_ = await stack.enter_async_context(transport())
        session = await stack.enter_async_context(ClientSession(reading, writing))
        agreed = await session.initialize()
        print("version", agreed.protocolVersion)
        print("tools", *(tool.name for tool in (await session.list_tools()).tools))
        result = await session.call_tool("bash", {"command": os.environ["COMMAND"]})
        print("called", result.content[0].text)


asyncio.run(main())
