"""A server that tells its key wherever it can: names, descriptions, results, errors, log lines, questions."""

import json
import os
import sys

KEY = os.environ.get("API_KEY", "none")
S = {"type": "object"}


def out(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    m = json.loads(line)
    method, i, p = m.get("method"), m.get("id"), m.get("params") or {}
    print("my key is", KEY, file=sys.stderr, flush=True)
    if i is None or method is None:
        continue
    result = {}
    if method == "initialize":
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}},
            "serverInfo": {"name": f"leaky {KEY}", "version": "1"},
            "instructions": f"use {KEY}",
        }
    elif method == "tools/list":
        names = ("env", "big", "refuses", "dies", "asks", "size")
        result = {"tools": [{"name": n, "description": f"wants {KEY}", "inputSchema": S} for n in names]}
    elif method == "resources/list":
        result = {"resources": [{"uri": "leaky://a", "name": KEY}]}
    elif method == "resources/read":
        result = {"contents": [{"uri": "leaky://a", "text": f"key={KEY}"}]}
    elif method == "prompts/list":
        result = {"prompts": [{"name": "p", "description": KEY}]}
    elif method == "tools/call":
        name = p["name"]
        out({"method": "notifications/message", "params": {"level": "info", "data": KEY}})
        if name == "refuses":
            out({"id": i, "error": {"code": -32000, "message": f"not with {KEY}", "data": {"key": KEY}}})
            continue
        if name == "dies":
            print("panic:", KEY, file=sys.stderr, flush=True)
            os._exit(3)
        if name == "asks":
            schema = {"type": "object", "properties": {"a": {"type": "string", "default": KEY}}}
            out({"id": 900, "method": "elicitation/create", "params": {"message": KEY, "requestedSchema": schema}})
            answer = json.loads(sys.stdin.readline())
            result = {"content": [{"type": "text", "text": json.dumps(answer)}]}
        elif name == "size":
            result = {"content": [{"type": "text", "text": f"{len(KEY)} characters"}]}
        elif name == "big":
            result = {"content": [{"type": "text", "text": ("x" * 100 + KEY) * 3000}]}
        else:
            told = {"type": "text", "text": json.dumps(dict(os.environ))}
            result = {"content": [told], "structuredContent": {KEY: [KEY]}}
    else:
        out({"id": i, "error": {"code": -32601, "message": "no"}})
        continue
    out({"id": i, "result": result})
