"""A server of the standard library whose one tool only runs as a task (2025-11-25), and forgets its tasks when it dies.

tasked.py FILE: every start of the tool is noted in the file. `modern` after it: in the revision 2026-07-28, where
the tool still says so of itself as its older version did, and a task ends at once.
"""

import json
import sys

MODERN = "modern" in sys.argv
RUNNING: set[str] = set()


def answer(number, **more):
    print(json.dumps({"jsonrpc": "2.0", "id": number, **more}), flush=True)


for line in sys.stdin:
    m = json.loads(line)
    method, number, p = m.get("method"), m.get("id"), m.get("params") or {}
    if number is None:
        continue
    status = {"taskId": p.get("taskId", "t1"), "status": "working", "ttl": None, "pollInterval": 200,
              "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z"}  # fmt: skip
    if MODERN and method == "server/discover":
        known = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
        answer(number, result={
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": known,
            "ttlMs": 0, "cacheScope": "private",
        })  # fmt: skip
    elif MODERN and method == "tools/call":
        del status["pollInterval"]
        answer(number, result={"resultType": "task", **status, "ttlMs": None, "pollIntervalMs": 200})
    elif MODERN and method == "tasks/get":
        done = {"content": [{"type": "text", "text": "paid"}], "isError": False}
        answer(number, result={"resultType": "complete", **status, "status": "completed", "result": done})
    elif method == "initialize":
        tasks = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        answer(number, result={
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": tasks},
            "serverInfo": {"name": "tasked", "version": "1"},
        })  # fmt: skip
    elif method == "tools/list":
        tool = {"name": "pay", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
        answer(number, result={"tools": [tool]})
    elif method == "tools/call":
        with open(sys.argv[1], "a") as file:
            file.write("paid\n")
        RUNNING.add("t1")
        answer(number, result={"task": status})
    elif method in ("tasks/get", "tasks/result") and p.get("taskId") not in RUNNING:
        answer(number, error={"code": -32602, "message": "Task not found"})
    elif method == "tasks/get":
        answer(number, result=status)
    elif method != "tasks/result":  # That one is answered when the task has ended, which it never does.
        answer(number, error={"code": -32601, "message": "no such method"})
