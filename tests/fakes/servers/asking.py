"""A server of the standard library alone that asks the host's model with tools of its own, in the era it is told.

`legacy`: requests are pushed while a call is open (2025-11-25). `modern`: a call answers `input_required` and is sent
again with the answers (2026-07-28). What came back is the tool's result, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

MODERN = "modern" in sys.argv
WEATHER = {"name": "get_weather", "description": "The weather.",
           "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}  # fmt: skip
ODD = {"name": "get.weather/now", "inputSchema": {"type": "object"}}
USER = {"role": "user", "content": {"type": "text", "text": "Weather in Oslo?"}}
USE = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "w1", "name": "get_weather", "input": {"city": "Oslo"}}],
}
RESULT = {"role": "user", "content": [
    {"type": "tool_result", "toolUseId": "w1", "content": [{"type": "text", "text": "rain"}]}]}  # fmt: skip
AUDIO = {"role": "user", "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}}
REQUESTS: dict[str, dict[str, Any]] = {
    "with-tools": {"messages": [USER], "maxTokens": 100, "tools": [WEATHER, ODD], "toolChoice": {"mode": "required"}},
    "with-result": {"messages": [USER, USE, RESULT], "maxTokens": 100, "tools": [WEATHER]},
    "unbalanced": {"messages": [USER, USE], "maxTokens": 100, "tools": [WEATHER]},
    "twice-named": {"messages": [USER], "maxTokens": 100, "tools": [WEATHER, WEATHER]},
    "audio": {"messages": [AUDIO], "maxTokens": 100},
    "everything": {
        "messages": [USER], "maxTokens": 100, "systemPrompt": "Be brief.", "temperature": 0.25,
        "stopSequences": ["END", "\n\n"], "includeContext": "allServers", "metadata": {"secret": "vendor"},
        "modelPreferences": {"hints": [{"name": "nothing"}, {"name": "haiku"}], "costPriority": 0.1,
                             "speedPriority": 0.9, "intelligencePriority": 0.3},
    },
}  # fmt: skip
PAGE = {"mode": "url", "message": "Pay first", "url": "https://pay.example/42", "elicitationId": "e42"}
open_calls: dict[str, Any] = {}
seen: dict[str, Any] = {"capabilities": {}, "pays": 0}


def send(body: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **body}), flush=True)


def finished(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}], **({"resultType": "complete"} if MODERN else {})}


def call(number: Any, params: dict[str, Any]) -> None:
    name = params["name"]
    if name == "capabilities":
        if MODERN:
            seen["capabilities"] = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities")
        send({"id": number, "result": finished(seen["capabilities"])})
    elif name == "pay":  # Wants the page twice; then says itself that the person is done there.
        seen["pays"] += 1
        if seen["pays"] > 2 and "insist" not in sys.argv:
            send({"id": number, "result": finished("paid")})
            return
        send({"id": number, "error": {"code": -32042, "message": "pay first", "data": {"elicitations": [PAGE]}}})
    elif name == "done":
        send({"method": "notifications/elicitation/complete", "params": {"elicitationId": "e42"}})
        send({"id": number, "result": finished("told")})
    elif MODERN:
        answers = params.get("inputResponses")
        asked = {"q": {"method": "sampling/createMessage", "params": REQUESTS[name]}}
        again = {"resultType": "input_required", "inputRequests": asked, "requestState": "x"}
        send({"id": number, "result": finished(answers["q"]) if answers else again})
    else:
        key = f"ask-{len(open_calls)}"
        open_calls[key] = number
        send({"id": key, "method": "sampling/createMessage", "params": REQUESTS[name]})


def serve(message: dict[str, Any]) -> None:
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None:
        answer = message.get("result") or message.get("error")
        send({"id": open_calls[number], "result": finished(answer)})
    elif method == "initialize":
        seen["capabilities"] = params["capabilities"]
        about = {"serverInfo": {"name": "asking", "version": "1"}, "capabilities": {"tools": {}}}
        send({"id": number, "result": {"protocolVersion": "2025-11-25", **about}})
    elif method == "server/discover" and MODERN:
        send({"id": number, "result": {
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
            "serverInfo": {"name": "asking", "version": "1"}, "ttlMs": 0, "cacheScope": "private",
        }})  # fmt: skip
    elif method == "tools/list":
        tools = [{"name": n, "inputSchema": {"type": "object"}} for n in (*REQUESTS, "capabilities", "pay", "done")]
        extra = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if MODERN else {}
        send({"id": number, "result": {"tools": tools, **extra}})
    elif method == "tools/call":
        call(number, params)
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


for line in sys.stdin:
    serve(json.loads(line))
