"""PyPI mcp 2.x: MODE [PROGRAM ARGUMENT...]; over HTTP without a program. Runs in that package's environment."""

import asyncio
import contextlib
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def main():
    mode, *program = sys.argv[1:]
    async with contextlib.AsyncExitStack() as stack:
        if program:
            server = StdioServerParameters(command=program[0], args=program[1:], env=dict(os.environ))
        else:
            headers = {"Authorization": "Bearer " + os.environ["TOKEN"]}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
            server = streamable_http_client(os.environ["URL"], http_client=http)
        client = await stack.enter_async_context(Client(server, mode=mode))
        print("version", client.protocol_version)
        print("tools", *(tool.name for tool in (await client.list_tools()).tools))
        result = await client.call_tool("bash", {"command": os.environ["COMMAND"]})
        print("called", result.content[0].text)


asyncio.run(main())
