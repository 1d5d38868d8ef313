"""A stdlib MCP server whose tool has a page (MCP Apps), and a tool for that page alone."""

import json
import sys

PAGE = "<!doctype html><title>x</title><h1>Clock</h1>"
UI = {"ui": {"csp": {"connectDomains": ["https://api.example.com", "http://plain.example.com", "javascript:x"]}}}
TOOLS = [
    {"name": "clock", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://clock/face"}}},
    {"name": "wind", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}},
    {"name": "secret", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["model"]}}},
    {"name": "odd", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://clock/text"}}},
    {"name": "plain", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "https://x.example/"}}},
]

for line in sys.stdin:
    m = json.loads(line)
    number, method, params = m.get("id"), m.get("method"), m.get("params") or {}
    if number is None:
        continue
    if method == "initialize":
        result = {
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "pages", "version": "1"},
        }  # fmt: skip
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": f"{params['name']} ran"}], "structuredContent": {"hour": 9}}
    elif method == "resources/read":
        kind = "text/html;profile=mcp-app" if params["uri"] == "ui://clock/face" else "text/plain"
        result = {"contents": [{"uri": params["uri"], "mimeType": kind, "text": PAGE, "_meta": UI}]}
    elif method in ("resources/list", "resources/templates/list"):
        result = {"resources": [], "resourceTemplates": []}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
