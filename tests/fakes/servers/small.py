"""A small MCP stdio server of the standard library alone: tools, resources with updates, prompts. `small.py [DIR]`.

`slow` writes DIR/started at once and DIR/late after 20 s, unless it is cancelled or killed before.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

DIR = Path(sys.argv[1]) if len(sys.argv) > 1 else None
LOCK = threading.Lock()
OBJECT = {"type": "object"}
TOOLS = [
    {"name": "echo", "title": "Echo", "description": "Says it again",
     "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "picture", "inputSchema": OBJECT},
    {"name": "fail", "inputSchema": OBJECT},
    {"name": "steps", "inputSchema": OBJECT},
    {"name": "slow", "inputSchema": OBJECT},
    {"name": "ask", "inputSchema": OBJECT},
    {"name": "sample", "inputSchema": OBJECT},
    {"name": "secret", "inputSchema": OBJECT},
    {"name": "a.dotted/name", "inputSchema": OBJECT},
]  # fmt: skip
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
waiting: dict[str, Any] = {}
cancelled: set[Any] = set()


def send(message: dict[str, Any]) -> None:
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(number: Any, result: dict[str, Any]) -> None:
    send({"id": number, "result": result})


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def slow(number: Any) -> None:
    assert DIR is not None
    (DIR / "started").write_text(str(os.getpid()))
    for _ in range(200):
        if number in cancelled:
            (DIR / "cancelled").write_text("yes")
            return
        threading.Event().wait(0.1)
    (DIR / "late").write_text("too late")
    answer(number, text("done at last"))


def call(number: Any, params: dict[str, Any]) -> None:
    arguments = params.get("arguments") or {}
    match params["name"]:
        case "echo" | "a.dotted/name":
            answer(number, text(str(arguments.get("text", ""))))
        case "picture":
            block = {"type": "image", "data": base64.b64encode(b"\x89PNG").decode(), "mimeType": "image/png"}
            answer(number, {"content": [block], "structuredContent": {"width": 1}})
        case "fail":
            answer(number, text("it went wrong", isError=True))
        case "steps":
            token = (params.get("_meta") or {}).get("progressToken")
            for step in (1, 2):
                send(
                    {
                        "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"},
                    }
                )
            answer(number, text("both steps"))
        case "slow":
            threading.Thread(target=slow, args=(number,), daemon=True).start()
        case "ask":
            waiting["form"] = number
            send(
                {
                    "id": "form",
                    "method": "elicitation/create",
                    "params": {"message": "Your name?", "requestedSchema": FORM},
                }
            )
        case "sample":
            waiting["sample"] = number
            content = {"type": "text", "text": "say hi"}
            send(
                {
                    "id": "sample",
                    "method": "sampling/createMessage",
                    "params": {"messages": [{"role": "user", "content": content}], "maxTokens": 50},
                }
            )
        case "secret":
            answer(number, text(f"{len(os.environ.get('TOKEN', ''))} characters"))


def serve(message: dict[str, Any]) -> None:
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    match method:
        case None:
            if number in waiting:
                answer(waiting.pop(number), text(json.dumps(message.get("result") or message.get("error"))))
        case "initialize":
            capabilities = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}}
            answer(
                number,
                {
                    "protocolVersion": "2025-06-18",
                    "capabilities": capabilities,
                    "serverInfo": {"name": "small", "version": "1.2"},
                },
            )
        case "tools/list":
            answer(number, {"tools": TOOLS})
        case "tools/call":
            call(number, params)
        case "resources/list":
            answer(
                number,
                {
                    "resources": [
                        {"uri": "note://one", "name": "one", "mimeType": "text/plain"},
                        {"uri": "note://bytes", "name": "bytes"},
                    ]
                },
            )
        case "resources/templates/list":
            answer(number, {"resourceTemplates": [{"uriTemplate": "note://{name}", "name": "any"}]})
        case "resources/read":
            held = (
                {"text": "the note"}
                if params["uri"] == "note://one"
                else {"blob": base64.b64encode(b"\0\1\2").decode()}
            )
            answer(number, {"contents": [{"uri": params["uri"], **held}]})
        case "resources/subscribe":
            answer(number, {})
            for _ in range(3):
                send({"method": "notifications/resources/updated", "params": {"uri": params["uri"]}})
        case "prompts/list":
            answer(
                number,
                {
                    "prompts": [
                        {"name": "greet", "description": "Greets", "arguments": [{"name": "who", "required": True}]}
                    ]
                },
            )
        case "prompts/get":
            content = {"type": "text", "text": f"Greet {params['arguments']['who']}"}
            answer(number, {"messages": [{"role": "user", "content": content}]})
        case "notifications/cancelled":
            cancelled.add(params.get("requestId"))
        case "ping" | "resources/unsubscribe" | "logging/setLevel":
            answer(number, {})
        case _ if number is not None:
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    print("small server starts", file=sys.stderr, flush=True)
    for line in sys.stdin:
        serve(json.loads(line))
