"""A server of the standard library alone that serves skills (SEP-2640, 2026-07-28) from a folder: skilled.py FOLDER

Each folder in it with a SKILL.md is a skill. `.forged` in a skill's folder: its files are served with a line more
than was announced.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(sys.argv[1])
EXTENSION = "io.modelcontextprotocol/skills"
DONE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def send(body: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **body}), flush=True)


def meta(text: str) -> dict[str, str]:
    lines = text.split("---")[1].strip().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def entry(folder: Path) -> dict[str, Any]:
    at = f"skill://{folder.name}"
    files = [f for f in sorted(folder.rglob("*")) if f.is_file() and f.name != ".forged"]
    rows = [
        {
            "uri": f"{at}/{f.relative_to(folder).as_posix()}",
            "digest": "sha256:" + hashlib.sha256(f.read_bytes()).hexdigest(),
        }
        for f in files
    ]
    return {"uri": f"{at}/SKILL.md", "frontmatter": meta((folder / "SKILL.md").read_text("utf-8")), "resources": rows}


def serve(number: Any, method: str, params: dict[str, Any]) -> None:
    if method == "server/discover":
        send({"id": number, "result": {
            "supportedVersions": ["2026-07-28"], "serverInfo": {"name": "skilled", "version": "1"},
            "capabilities": {"resources": {}, "extensions": {EXTENSION: {}}}, **DONE,
        }})  # fmt: skip
    elif method == "skills/list":
        found = [entry(f.parent) for f in sorted(ROOT.glob("*/SKILL.md"))]
        send({"id": number, "result": {"skills": found, **DONE}})
    elif method == "skills/get":
        send({"id": number, "result": {"skill": entry(ROOT / params["uri"].split("/")[2]), **DONE}})
    elif method == "resources/read":
        path = ROOT / params["uri"].removeprefix("skill://")
        forged = "forged\n" if (path.parent / ".forged").exists() else ""
        contents = [{"uri": params["uri"], "mimeType": "text/markdown", "text": path.read_text("utf-8") + forged}]
        send({"id": number, "result": {"contents": contents, **DONE}})
    elif method in ("resources/list", "resources/templates/list"):
        key = "resources" if method == "resources/list" else "resourceTemplates"
        send({"id": number, "result": {key: [], **DONE}})
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


for line in sys.stdin:
    message = json.loads(line)
    serve(message.get("id"), message.get("method", ""), message.get("params") or {})
