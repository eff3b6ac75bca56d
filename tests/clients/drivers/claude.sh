#!/bin/sh
# Claude Code without a login: it connects and lists, and calls nothing without a model.
set -eu
claude=$1
export DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
"$claude" mcp add --transport http a2mcp "$URL" --header "Authorization: Bearer $TOKEN"
"$claude" mcp list
"$claude" mcp get a2mcp | grep -v Authorization
