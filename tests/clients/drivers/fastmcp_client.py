"""PyPI fastmcp's client. Runs in that package's environment."""

import asyncio
import os

from fastmcp import Client


async def main():
    async with Client(os.environ["URL"], auth=os.environ["TOKEN"]) as client:
        print("tools", *(tool.name for tool in await client.list_tools()))
        result = await client.call_tool("bash", {"command": os.environ["COMMAND"]})
        print("called", result.content[0].text)


asyncio.run(main())
