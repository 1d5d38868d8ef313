"""A server of the SDK with the extension `io.modelcontextprotocol/tasks`: longer.py [--http PORT] [--store FILE]

Tasks are kept in the file, so that they outlive the process, as a job queue does. What was asked of the server is
told by the tool `log`.
"""

import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParams

NAME = "io.modelcontextprotocol/tasks"
MODERN = frozenset({"2026-07-28"})
STORE = Path(sys.argv[sys.argv.index("--store") + 1]) if "--store" in sys.argv else None
memory: dict[str, Any] = {"tasks": {}, "log": []}


def state() -> dict[str, Any]:
    return json.loads(STORE.read_text()) if STORE and STORE.exists() else memory


def keep(now: dict[str, Any]) -> None:
    if STORE:
        draft = STORE.with_suffix(".draft")
        draft.write_text(json.dumps(now))
        draft.replace(STORE)


class Named(RequestParams):
    task_id: str


class Update(Named):
    input_responses: dict[str, Any]


FORM = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "sum up"}}], "maxTokens": 50},
}
ASKS: dict[str, dict[str, Any]] = {
    "greet": {"name": FORM},
    "sum_up": {"summary": SAMPLE},
    "both": {"name": FORM, "summary": SAMPLE},
    "nonsense": {"x": {"method": "no/such", "params": {}}},
    "changes_its_mind": {"name": FORM},
    "roots": {"where": {"method": "roots/list"}},
}


def task_of(task_id: str, now: dict[str, Any]) -> dict[str, Any]:
    task = now["tasks"].get(task_id)
    if task is None:
        raise MCPError(-32602, "Failed to retrieve task: Task not found")
    return dict(task)


def done(text: str, error: bool = False) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": text}], "isError": error, "structuredContent": {"said": text}}
    return {"status": "completed", "result": result}


def detail(task: dict[str, Any]) -> dict[str, Any]:
    """The part of a task that depends on its status."""
    tool, given, left = task["tool"], task["answers"], task["due"] - time.time()
    if task.get("cancelled"):
        return {"status": "cancelled"}
    asks = {k: v for k, v in ASKS.get(tool, {}).items() if k not in given}
    if tool == "asks_on":
        asks = {f"q{len(given)}": FORM}
    if tool == "changes_its_mind" and left < 0:
        return done("never mind")
    if asks:
        return {"status": "input_required", "inputRequests": asks}
    if tool in ASKS:
        return done(json.dumps(given, sort_keys=True))
    if left > 0:
        return {"status": "working", "statusMessage": f"{task['arguments'].get('what', tool)} is on its way"}
    if tool == "breaks":
        return {"status": "failed", "error": {"code": -32603, "message": "the quota is spent"}, "statusMessage": "no"}
    if tool == "gives_up":
        return {"status": "cancelled", "statusMessage": "the machine is switched off"}
    return done(f"done: {task['arguments'].get('what', tool)}", tool == "says_no")


class Tasks(Extension):
    identifier = NAME

    def methods(self) -> list[MethodBinding]:
        return [
            MethodBinding("tasks/get", Named, self.get, MODERN),
            MethodBinding("tasks/update", Update, self.update, MODERN),
            MethodBinding("tasks/cancel", Named, self.cancel, MODERN),
        ]

    def seen(self, ctx: Any, method: str, task_id: str) -> dict[str, Any]:
        now = state()
        headers = getattr(ctx.request, "headers", {}) or {}
        now["log"].append([method, headers.get("mcp-name") == task_id if headers else None])
        keep(now)
        return now

    async def get(self, ctx: Any, params: Named) -> dict[str, Any]:
        now = self.seen(ctx, "get", params.task_id)
        task = task_of(params.task_id, now)
        return {"resultType": "complete", **self.plain(params.task_id), **detail(task)}

    async def update(self, ctx: Any, params: Update) -> dict[str, Any]:
        now = self.seen(ctx, "update", params.task_id)
        task_of(params.task_id, now)
        now["tasks"][params.task_id]["answers"].update(params.input_responses)
        keep(now)
        return {"resultType": "complete"}

    async def cancel(self, ctx: Any, params: Named) -> dict[str, Any]:
        now = self.seen(ctx, "cancel", params.task_id)
        task_of(params.task_id, now)
        now["tasks"][params.task_id]["cancelled"] = True
        keep(now)
        return {"resultType": "complete"}

    def plain(self, task_id: str) -> dict[str, Any]:
        when = "2026-07-28T00:00:00Z"
        return {"taskId": task_id, "createdAt": when, "lastUpdatedAt": when, "ttlMs": None, "pollIntervalMs": 200}

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
        declared = (ctx.meta or {}).get("io.modelcontextprotocol/clientCapabilities", {}).get("extensions") or {}
        if params.name in ("log", "at_once") or NAME not in declared:
            return await call_next(ctx)
        task_id, now, given = uuid.uuid4().hex, state(), dict(params.arguments or {})
        due = time.time() + float(given.get("seconds", 0))
        now["tasks"][task_id] = {"tool": params.name, "arguments": given, "answers": {}, "due": due}
        now["log"].append(["call", None])
        keep(now)
        return {"resultType": "task", **self.plain(task_id), "status": "working", "statusMessage": "begun"}


mcp = MCPServer("longer", version="1", log_level="ERROR", extensions=[Tasks()])


@mcp.tool()
async def log() -> str:
    return json.dumps(state()["log"])


@mcp.tool()
async def at_once() -> str:
    return "now"


@mcp.tool()
async def die() -> str:
    os._exit(3)


def longer(name: str) -> None:
    async def run(seconds: float = 0, what: str = "") -> str:
        return "without a task"

    mcp.add_tool(run, name=name)


for each in ("work", "breaks", "gives_up", "says_no", "asks_on", *ASKS):
    longer(each)

if "--http" in sys.argv:
    mcp.run("streamable-http", host="127.0.0.1", port=int(sys.argv[sys.argv.index("--http") + 1]))
else:
    mcp.run("stdio")
