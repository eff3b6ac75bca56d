#!/bin/sh
# Codex without a login: its app server connects, and tells the tools it was given.
set -eu
codex=$1
export A2MCP_TOKEN="$TOKEN"
"$codex" mcp add a2mcp --url "$URL" --bearer-token-env-var A2MCP_TOKEN
{
    printf '%s\n' '{"id":1,"method":"initialize","params":{"clientInfo":{"name":"t","version":"1"}}}' \
        '{"method":"initialized"}' '{"id":2,"method":"mcpServerStatus/list","params":{}}'
    sleep 8
} | "$codex" app-server
