#!/usr/bin/env bash
# All tests. Usage: packaging/test.sh BIN [PYTEST ARGUMENTS]
# Public MCP servers (npm, PyPI) are installed below .tools once; what cannot be had is skipped by name,
# except in CI (CI=true), where a missing part is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "$1" && pwd); shift
tools="$PWD/.tools"
mkdir -p "$tools"

if command -v npm >/dev/null && [ ! -x "$tools/node_modules/.bin/mcp-server-everything" ]; then
  npm install --silent --no-fund --no-audit --prefix "$tools" @modelcontextprotocol/server-everything@2026.8.31 \
    @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31 ||
    echo "the npm servers could not be installed" >&2
fi
# The official conformance suite needs Node 22; its own copy, whatever node is in PATH.
if command -v npm >/dev/null && [ ! -e "$tools/node_modules/.bin/conformance" ]; then
  npm install --silent --no-fund --no-audit --prefix "$tools" \
    @modelcontextprotocol/conformance@0.2.0-alpha.12 node@22 @modelcontextprotocol/inspector@0.15.0 ||
    echo "the conformance suite could not be installed" >&2
fi
if [ ! -x "$tools/python/bin/mcp-server-time" ]; then
  python3 -m venv "$tools/python" 2>/dev/null || "$bin/python" -m venv "$tools/python"
  "$tools/python/bin/pip" install --quiet --disable-pip-version-check \
    mcp-server-fetch==2026.10.24 mcp-server-git==2026.10.19 mcp-server-time==2026.10.19 ||
    echo "the PyPI servers could not be installed" >&2
fi
export DESKTOP_HOST_TEST_NODE_BIN="$tools/node_modules/.bin" DESKTOP_HOST_TEST_PYTHON_BIN="$tools/python/bin"
export DESKTOP_HOST_MODELS="${DESKTOP_HOST_MODELS:-$tools/models}"
if [ ! -d "$DESKTOP_HOST_MODELS" ] && [ -n "${CI:-}${DESKTOP_HOST_FULL:-}" ]; then
  "$bin/desktop-host" models get local
fi
export QT_QPA_PLATFORM="${QT_QPA_PLATFORM:-offscreen}"
if [ $# -gt 0 ]; then exec "$bin/python" -m pytest "$@"; fi

# Two lanes of like length side by side (the tests of real servers are shared out by name), then what measures time
# alone. Each prints its own summary; any failure fails the whole.
lane=$(mktemp)
trap 'rm -f "$lane"' EXIT
"$bin/python" -m pytest -q tests/unit tests/contract tests/architecture tests/live/test_[h-z]*.py >"$lane" 2>&1 &
first=$!
status=0
"$bin/python" -m pytest -q tests/conformance tests/flows tests/faults tests/live/test_[a-g]*.py || status=$?
wait "$first" || status=$?
cat "$lane"
"$bin/python" -m pytest -q tests/ui tests/bench || status=$?
exit "$status"
