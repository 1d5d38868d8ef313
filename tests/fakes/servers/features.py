"""A stdio server of the standard library for what servers offer beside tools. `features.py [--tools N] [--dir DIR]`.

Modes for its start: `--dead` (ends at once), `--hang` (never answers), `--slow S` (answers after S seconds),
`--loop` (ends as soon as its tools were listed).
"""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from typing import Any

FLAGS = dict(zip(sys.argv[1:], [*sys.argv[2:], ""], strict=False))
LOCK = threading.Lock()
OBJECT = {"type": "object"}
ICON = {"src": "data:image/png;base64,iVBORw0K", "mimeType": "image/png", "sizes": ["16x16"]}
state: dict[str, Any] = {"level": "warning", "asked": {}, "roots": []}


def send(message: dict[str, Any]) -> None:
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    listed = [
        {"name": n, "inputSchema": OBJECT, "icons": [ICON, {"src": "file:///etc/passwd"}, {"src": "http://x/i.png"}]}
        for n in ("log", "touch", "roots", "ask_and_cancel", "ask_twice")
    ]
    about = "Does one of many things with the records of a department. " * 2
    return listed + [
        {"name": f"tool_{n}", "description": about, "inputSchema": OBJECT} for n in range(int(FLAGS.get("--tools", 0)))
    ]


def ask(key: str) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    send({"id": key, "method": "elicitation/create", "params": {"message": f"{key}?", "requestedSchema": schema}})


def call(number: Any, params: dict[str, Any]) -> None:
    said = "done"
    match params["name"]:
        case "log":
            for level in ("debug", "info", "error"):
                order = ["debug", "info", "notice", "warning", "error"]
                if order.index(level) >= order.index(state["level"]):
                    body = {"level": level, "logger": "feat", "data": f"a line of {level}"}
                    send({"method": "notifications/message", "params": body})
            said = state["level"]
        case "touch":
            send({"method": "notifications/resources/updated", "params": {"uri": "feat://a"}})
        case "roots":
            said = json.dumps(state["roots"])
        case "ask_and_cancel":
            ask("first")
            time.sleep(0.5)
            send({"method": "notifications/cancelled", "params": {"requestId": "first"}})
        case "ask_twice":
            state["asked"]["one"] = number
            ask("one")
            return
        case other:
            said = other
    send({"id": number, "result": {"content": [{"type": "text", "text": said}]}})


def answered(number: Any, message: dict[str, Any]) -> None:
    if number == "roots":
        state["roots"] = [r["uri"] for r in message["result"]["roots"]]
    elif number == "one":
        state["asked"]["two"] = state["asked"].pop("one")
        ask("two")
    elif number == "two":
        text = json.dumps(message.get("result") or message.get("error"))
        send({"id": state["asked"].pop("two"), "result": {"content": [{"type": "text", "text": text}]}})


def serve(message: dict[str, Any]) -> None:
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    match method:
        case None:
            answered(number, message)
        case "initialize":
            time.sleep(float(FLAGS.get("--slow") or 0))
            capabilities = {
                "tools": {}, "resources": {"subscribe": True}, "prompts": {}, "completions": {}, "logging": {},
            }  # fmt: skip
            info = {"name": "features", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
            send({"id": number, "result": result})
        case "notifications/initialized" | "notifications/roots/list_changed":
            send({"id": "roots", "method": "roots/list"})
        case "tools/list":
            send({"id": number, "result": {"tools": tools()}})
            if "--loop" in FLAGS:
                sys.exit(3)
        case "tools/call":
            call(number, params)
        case "logging/setLevel":
            state["level"] = params["level"]
            send({"id": number, "result": {}})
        case "completion/complete":
            given, context = params["argument"], (params.get("context") or {}).get("arguments") or {}
            every = [f"{context.get('land', '')}{city}" for city in ("berlin", "bern", "paris")]
            fitting = [c for c in every if given["value"] in c]
            send({"id": number, "result": {"completion": {"values": fitting, "total": 3, "hasMore": False}}})
        case "resources/list":
            send({"id": number, "result": {"resources": [{"uri": "feat://a", "name": "a", "icons": [ICON]}]}})
        case "resources/templates/list":
            listed = [{"uriTemplate": "feat://{city}/{?day}", "name": "city"}]
            send({"id": number, "result": {"resourceTemplates": listed}})
        case "resources/read":
            uri = params["uri"]
            held: dict[str, Any] = {"text": f"text of {uri}", "mimeType": "text/plain"}
            if uri == "feat://big":
                held = {"blob": base64.b64encode(b"\x89PNG" + b"x" * 5_000_000).decode(), "mimeType": "image/png"}
            send({"id": number, "result": {"contents": [{"uri": uri, **held}]}})
        case "resources/subscribe" | "resources/unsubscribe":
            send({"id": number, "result": {}})
        case "prompts/list":
            send({"id": number, "result": {"prompts": [{"name": "travel", "arguments": [{"name": "city"}]}]}})
        case _ if number is not None:
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    if "--dead" in FLAGS:
        sys.exit("this server is dead")
    for line in sys.stdin:
        if "--hang" in FLAGS:
            continue
        if '"tools/call"' in line:
            threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()
        else:
            serve(json.loads(line))
