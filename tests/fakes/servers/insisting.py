"""A server of the modern era, of the standard library alone, whose tool asks the person again and again."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
ASK = {"method": "elicitation/create", "params": {"mode": "form", "message": "Again?", "requestedSchema": SCHEMA}}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "server/discover":
            return {
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "insisting", "version": "1"}, "resultType": "complete",
                "ttlMs": 0, "cacheScope": "private",
            }  # fmt: skip
        case "tools/list":
            tools = [{"name": "insist", "inputSchema": {"type": "object"}}]
            return {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        case "tools/call":
            seen = int(params.get("requestState") or 0)
            return {"resultType": "input_required", "inputRequests": {"u": ASK}, "requestState": str(seen + 1)}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if message.get("id") is None:
        continue
    made = result(message["method"], message.get("params") or {})
    body = {"result": made} if made else {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
