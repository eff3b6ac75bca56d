#!/bin/sh
# Gemini CLI without a login: it connects. NODE PROGRAM.
set -eu
export GEMINI_CLI_TRUST_WORKSPACE=true
"$1" "$2" mcp add --transport http --header "Authorization: Bearer $TOKEN" -s user a2mcp "$URL"
"$1" "$2" mcp list
