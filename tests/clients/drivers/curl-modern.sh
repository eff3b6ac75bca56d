#!/bin/sh
# curl, in 2026-07-28: no handshake, everything with each request.
set -eu
META='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
ask() {
    method=$1 params=$2
    shift 2
    curl --silent --show-error --fail-with-body "$URL" --header "Authorization: Bearer $TOKEN" \
        --header 'Content-Type: application/json' --header 'Accept: application/json, text/event-stream' \
        --header 'MCP-Protocol-Version: 2026-07-28' --header "Mcp-Method: $method" "$@" \
        --data "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$method\",\"params\":{$params$META}}"
}
ask server/discover ''
ask tools/list ''
ask tools/call "\"name\":\"bash\",\"arguments\":{\"command\":\"$COMMAND\"}," --header 'Mcp-Name: bash'
