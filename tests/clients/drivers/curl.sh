#!/bin/sh
# curl, with a handshake: a session where the server issues one, and none where it does not.
set -eu
post() {
    curl --silent --show-error --fail-with-body "$URL" --header "Authorization: Bearer $TOKEN" \
        --header 'Content-Type: application/json' --header 'Accept: application/json' "$@"
}
head=$(mktemp)
trap 'rm -f "$head"' EXIT
post --dump-header "$head" --data \
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}'
session=$(sed -n 's/\r$//; s/^mcp-session-id: //Ip' "$head")
talk() {
    post --header "${session:+mcp-session-id: $session}" --header 'MCP-Protocol-Version: 2025-11-25' --data "$1"
}
talk '{"jsonrpc":"2.0","method":"notifications/initialized"}'
talk '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
talk "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"bash\",\"arguments\":{\"command\":\"$COMMAND\"}}}"
