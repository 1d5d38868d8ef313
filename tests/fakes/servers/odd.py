"""A stdlib MCP server (handshake era) with oddities that real servers were seen with: odd.py [flag ...]"""

import hashlib
import json
import os
import sys
import threading
import time

F = set(sys.argv[1:])
HERE = os.environ.get("ODD_DIR", "")
lock = threading.Lock()


def out(o):
    with lock:
        sys.stdout.write(json.dumps(o) + "\n")
        sys.stdout.flush()


def mark(name, text=""):
    if HERE:
        with open(os.path.join(HERE, name), "a") as f:
            f.write(text + "\n")


mark("starts", str(os.getpid()))
if "exit0" in F:
    sys.exit(0)
if "fail" in F:
    print("Error: Cannot find module 'left-pad'", file=sys.stderr)
    print("hello from stdout", flush=True)
    sys.exit(4)
if "banner" in F:
    sys.stdout.write("🚀 Server started on stdio\nListening…\n")
    sys.stdout.flush()
if "jsonlog" in F:
    sys.stdout.write('{"level":"info","msg":"boot"}\n')
    sys.stdout.flush()
if "flood" in F:
    sys.stderr.write("noise " * 200_000 + "\n")
    sys.stderr.flush()
if "secret" in F:
    print("the key is", os.environ.get("API_KEY"), file=sys.stderr, flush=True)

S = {"type": "object"}
TOOLS = [
    {"name": n, "inputSchema": S}
    for n in ("slow_write", "kinds", "odd_result", "ask", "url", "secret", "roots", "late", "nothing", "quick", "error")
]
TOOLS += [
    {"name": f"t{i}", "inputSchema": S}
    for i in range(next((int(f[1:]) for f in F if f[:1] == "n" and f[1:].isdigit()), 0))
]
if "bad" in F:
    TOOLS += [
        {"name": "empty", "inputSchema": {}},
        {"name": "string", "inputSchema": {"type": "string"}, "description": None},
        {"name": "none"},
        {"name": "badout", "inputSchema": S, "outputSchema": {"properties": {"x": {"type": "integer"}}}},
        {"name": "listout", "inputSchema": S, "outputSchema": ["x"]},
        {"inputSchema": S},
        "not even an object",
        {"name": "task", "inputSchema": S, "execution": {"taskSupport": "required"}},
        {"name": "quick", "inputSchema": {"type": "object"}, "description": "a second one"},
        {"name": "anyof", "inputSchema": {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}},
        {
            "name": "remote",
            "inputSchema": {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/s.json"}}},
        },
    ]
waiting = {}
asked = 0
cancelled = set()


def text(t, **k):
    return {"content": [{"type": "text", "text": t}], **k}


def ask(i, method, params):
    global asked
    asked += 1
    waiting[f"q{asked}"] = i
    out({"jsonrpc": "2.0", "id": f"q{asked}", "method": method, "params": params})


def slow_write(i, seconds):
    end = time.time() + seconds
    while time.time() < end:
        if i in cancelled:
            return
        time.sleep(0.02)
    mark("written")
    out({"jsonrpc": "2.0", "id": i, "result": text("written")})


def call(i, name, a, params):
    if name == "slow_write":
        mark("begun")
        threading.Thread(target=slow_write, args=(i, a.get("s", 1)), daemon=True).start()
        return None
    if name == "kinds":
        png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        return {
            "content": [
                {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 0.5}},
                {"type": "image", "data": a.get("image", png), "mimeType": "image/png"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///x", "name": "x", "size": 3},
                {"type": "resource", "resource": {"uri": "a://b", "text": "", "blob": "AAAA"}},
                {"type": "hologram", "depth": 3},
                {"type": "image"},
            ]
        }
    if name == "odd_result":
        return {"content": "just a string", "structuredContent": [1, 2], "isError": None, "extra": 1}
    if name == "ask":
        ask(
            i,
            "elicitation/create",
            {"message": "name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}},
        )
        return None
    if name == "roots":
        ask(i, "roots/list", {})
        return None
    if name == "url":
        if not getattr(call, "asked", False):
            call.asked = True
            e = {"mode": "url", "message": "sign in", "url": "https://example.com/in", "elicitationId": "e1"}
            out(
                {
                    "jsonrpc": "2.0",
                    "id": i,
                    "error": {"code": -32042, "message": "sign in first", "data": {"elicitations": [e]}},
                }
            )
            return None
        return text("signed in")
    if name == "secret":
        key = os.environ.get("API_KEY", "none")
        return text(hashlib.sha256(key.encode()).hexdigest() if a.get("digest") else key)
    if name == "late":
        TOOLS.append({"name": f"added{len(TOOLS)}", "inputSchema": S})
        for _ in range(5):
            out({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("added")
    if name == "nothing":
        return {}
    if name == "error":
        return text("it went wrong", isError=True)
    if name == "quick":
        return text(f"quick from {os.getpid()}")
    return text(json.dumps(a))


for line in sys.stdin:
    m = json.loads(line)
    method, i, p = m.get("method"), m.get("id"), m.get("params") or {}
    if method == "initialize":
        mark("hello", json.dumps(p))
        caps = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}}
        out(
            {
                "jsonrpc": "2.0",
                "id": i,
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": caps,
                    "serverInfo": {"name": "odd", "version": "1", "title": "Odd"},
                    "instructions": "be odd",
                },
            }
        )
    elif method == "notifications/cancelled":
        cancelled.add(p.get("requestId"))
        mark("cancelled", json.dumps(p))
    elif method == "notifications/roots/list_changed":
        mark("roots_changed")
    elif method == "tools/list":
        mark("lists")
        at = int(p.get("cursor") or 0)
        page = TOOLS[at : at + 10] if "pages" in F else TOOLS
        r = {"tools": page}
        if "pages" in F and at + 10 < len(TOOLS):
            r["nextCursor"] = str(at + 10)
        if "nulls" in F:
            r["nextCursor"] = None
        out({"jsonrpc": "2.0", "id": i, "result": r})
    elif method == "resources/list":
        out(
            {
                "jsonrpc": "2.0",
                "id": i,
                "result": {
                    "resources": [{"uri": "odd://a", "name": "a", "mimeType": "text/plain"}, {"name": "broken"}]
                },
            }
        )
    elif method == "resources/templates/list":
        out({"jsonrpc": "2.0", "id": i, "error": {"code": -32601, "message": "no templates"}})
    elif method == "resources/read":
        if p["uri"] != "odd://a":
            out({"jsonrpc": "2.0", "id": i, "error": {"code": -32002, "message": "no such resource"}})
        else:
            out(
                {
                    "jsonrpc": "2.0",
                    "id": i,
                    "result": {"contents": [{"uri": "odd://a", "text": "aaa"}, {"uri": "odd://a/bin", "blob": "AAAA"}]},
                }
            )
    elif method == "resources/subscribe":
        out({"jsonrpc": "2.0", "id": i, "result": {}})
        for _ in range(2):
            out({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": p["uri"]}})
    elif method == "resources/unsubscribe":
        mark("unsubscribed")
        out({"jsonrpc": "2.0", "id": i, "result": {}})
    elif method == "prompts/list":
        out(
            {
                "jsonrpc": "2.0",
                "id": i,
                "result": {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]},
            }
        )
    elif method == "prompts/get":
        out(
            {
                "jsonrpc": "2.0",
                "id": i,
                "result": {
                    "messages": [
                        {
                            "role": "user",
                            "content": {"type": "text", "text": "hello " + (p.get("arguments") or {}).get("who", "?")},
                        }
                    ]
                },
            }
        )
    elif method == "logging/setLevel":
        out({"jsonrpc": "2.0", "id": i, "result": {}})
        out(
            {
                "jsonrpc": "2.0",
                "method": "notifications/message",
                "params": {"level": "warning", "logger": "odd", "data": {"a": 1}},
            }
        )
    elif method == "tools/call":
        r = call(i, p["name"], p.get("arguments") or {}, p)
        if r is not None:
            out({"jsonrpc": "2.0", "id": i, "result": r})
    elif method is None and i in waiting:
        out({"jsonrpc": "2.0", "id": waiting.pop(i), "result": text(json.dumps(m.get("result") or m.get("error")))})
    elif i is not None:
        out({"jsonrpc": "2.0", "id": i, "error": {"code": -32601, "message": "Method not found"}})
