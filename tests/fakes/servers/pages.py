"""A stdlib MCP server whose tool has a page (MCP Apps), and a tool for that page alone."""

import json
import sys

PAGE = """<!doctype html><title>x</title><style>
body { margin: 0; font: 14px/1.4 var(--font-sans, sans-serif); color: var(--color-text-primary, black); }
h1 { height: 40px; margin: 0; font-size: 17px; } button { display: block; width: 220px; height: 36px; margin: 4px 0;
color: var(--color-text-primary); background: var(--color-background-secondary);
border: 1px solid var(--color-border-secondary); border-radius: var(--border-radius-md); font: inherit; }
pre { white-space: pre-wrap; color: var(--color-text-secondary); } </style><h1>Clock</h1>
<button id=wind>Wind the clock</button><button id=tell>Tell the model</button><button id=say>Say it for me</button>
<button id=link>Read about clocks</button><pre id=log></pre><script>
let id = 0; const wait = {};
const say = (m) => parent.postMessage({jsonrpc: "2.0", ...m}, "*");
const ask = (method, params) => new Promise((ok) => { wait[++id] = ok; say({id, method, params}); });
const log = (t) => { document.getElementById("log").textContent += t + "\\n"; size(); };
const size = () => say({method: "ui/notifications/size-changed",
  params: {width: 300, height: document.documentElement.offsetHeight}});
const look = (c) => { for (const [k, v] of Object.entries((c.styles || {}).variables || {}))
  document.documentElement.style.setProperty(k, v); };
window.addEventListener("message", (e) => { const m = e.data;
  if (m.id && wait[m.id]) wait[m.id](m);
  if (m.method === "ui/notifications/host-context-changed") look(m.params);
  if (m.method === "ui/notifications/tool-input") log("input " + JSON.stringify(m.params.arguments));
  if (m.method === "ui/notifications/tool-result") log("result " + m.params.content[0].text);
  if (m.method === "ui/resource-teardown") say({id: m.id, result: {}}); });
const on = (name, method, params) => document.getElementById(name).onclick = async () => {
  const m = await ask(method, params); log(name + (m.error ? ": " + m.error.message : " is done")); };
on("wind", "tools/call", {name: "wind", arguments: {turns: 3}});
on("tell", "ui/update-model-context", {content: [{type: "text", text: "The clock was wound three times."}]});
on("say", "ui/message", {role: "user", content: {type: "text", text: "Is the clock right?"}});
on("link", "ui/open-link", {url: "https://example.com/clocks?from=page"});
ask("ui/initialize", {protocolVersion: "2026-01-26", appInfo: {name: "clock", version: "1"}, appCapabilities: {}})
  .then((m) => { look(m.result.hostContext); say({method: "ui/notifications/initialized", params: {}}); size(); });
</script>"""
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
