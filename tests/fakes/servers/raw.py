"""Tiny stdlib-only MCP stdio server (handshake era) with misbehaviour switches: raw.py [flag ...]"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

F = set(sys.argv[1:])


def note(k, pid):
    if os.environ.get("RAW_PIDS"):
        with open(os.path.join(os.environ["RAW_PIDS"], k + ".pid"), "w") as f:
            f.write(str(pid))


def out(o):
    sys.stdout.write(json.dumps(o) + "\n")
    sys.stdout.flush()


if "slow" in F:
    time.sleep(15)
if "ignoreterm" in F:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in F:
    p = subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL)
    note("child", p.pid)
if "childsession" in F:
    p = subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL, start_new_session=True)
    note("child", p.pid)
note("server", os.getpid())
TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"m": {"type": "string"}}}},
    {"name": "big", "inputSchema": {"type": "object"}},
    {"name": "crash", "inputSchema": {"type": "object"}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "progress", "inputSchema": {"type": "object"}},
    {"name": "garbage", "inputSchema": {"type": "object"}},
    {"name": "latin1", "inputSchema": {"type": "object"}},
    {"name": "ask", "inputSchema": {"type": "object"}},
    {"name": "sample", "inputSchema": {"type": "object"}},
    {
        "name": "badstruct",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    },
    {
        "name": "nostruct",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    },
    {"name": "env", "inputSchema": {"type": "object"}},
]
if "unreadable" in F:
    TOOLS += [{"name": name, "inputSchema": {"type": "object"}} for name in ("half", "broken")]
if "badtool" in F:
    TOOLS.append({"name": "bad", "inputSchema": {}})
first = True
pend = {}


def txt(t, **k):
    return {"content": [{"type": "text", "text": t}], **k}


for line in sys.stdin:
    m = json.loads(line)
    meth = m.get("method")
    i = m.get("id")
    print(
        "GOT",
        meth or ("response" if "result" in m or "error" in m else "?"),
        json.dumps(m.get("params"))[:100] if meth == "notifications/cancelled" else "",
        file=sys.stderr,
        flush=True,
    )
    if first and meth != "initialize":
        if "strict" in F:
            print("expect initialize", file=sys.stderr)
            sys.exit(1)
        if "silent" in F:
            continue
        if i is not None:
            out({"jsonrpc": "2.0", "id": i, "error": {"code": -32601, "message": "Method not found"}})
        continue
    if meth == "initialize":
        first = False
        out(
            {
                "jsonrpc": "2.0",
                "id": i,
                "result": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "raw", "version": "1"},
                },
            }
        )
        if "die3" in F:
            threading.Timer(1, lambda: os._exit(3)).start()
    elif meth == "tools/list":
        res = {"tools": TOOLS}
        if "extra" in F:
            res = {"tools": [dict(t, foo="bar") for t in TOOLS], "junk": 1}
        out({"jsonrpc": "2.0", "id": i, "result": res})
    elif meth == "tools/call":
        n = m["params"]["name"]
        a = m["params"].get("arguments") or {}
        if n == "echo":
            r = txt(a.get("m", ""))
        elif n == "env":
            r = txt(json.dumps(sorted(os.environ)))
        elif n == "big":
            r = txt("x" * int(a["n"]))
        elif n == "crash":
            os._exit(7)
        elif n == "hang":
            continue
        elif n == "progress":
            tok = m["params"]["_meta"].get("progressToken")
            for k in range(10):
                time.sleep(0.3)
                out(
                    {
                        "jsonrpc": "2.0",
                        "method": "notifications/progress",
                        "params": {"progressToken": tok, "progress": k + 1, "total": 10, "message": f"s{k}"},
                    }
                )
            r = txt("done")
        elif n == "garbage":
            sys.stdout.write("hello debugging print\n")
            sys.stdout.flush()
            r = txt("after garbage")
        elif n == "half":
            r = txt("half \ud83d of a pair")
        elif n == "broken":
            sys.stdout.write('{"jsonrpc": "2.0", "id": ' + json.dumps(m["id"]) + ', "result": {"content": [}}\n')
            sys.stdout.flush()
            continue
        elif n == "latin1":
            sys.stdout.buffer.write(b"caf\xe9 latin-1 line\n")
            sys.stdout.buffer.flush()
            r = txt("after latin1")
        elif n == "ask":
            out(
                {
                    "jsonrpc": "2.0",
                    "id": "s1",
                    "method": "elicitation/create",
                    "params": {
                        "message": "name?",
                        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
                    },
                }
            )
            pend["s1"] = i
            continue
        elif n == "sample":
            out(
                {
                    "jsonrpc": "2.0",
                    "id": "s2",
                    "method": "sampling/createMessage",
                    "params": {
                        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
                        "maxTokens": 5,
                    },
                }
            )
            pend["s2"] = i
            continue
        elif n == "badstruct":
            r = txt("{}", structuredContent={"x": "no"})
        elif n == "nostruct":
            r = txt("only text")
        out({"jsonrpc": "2.0", "id": i, "result": r})
    elif meth is None and i in pend:
        out({"jsonrpc": "2.0", "id": pend.pop(i), "result": txt(json.dumps(m.get("result") or m.get("error")))})
    elif meth == "ping":
        out({"jsonrpc": "2.0", "id": i, "result": {}})
    elif i is not None:
        out({"jsonrpc": "2.0", "id": i, "error": {"code": -32601, "message": "Method not found"}})
print("STDIN EOF", file=sys.stderr, flush=True)
if "noexit" in F:
    time.sleep(600)
