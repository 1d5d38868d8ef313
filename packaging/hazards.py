"""Write `tests/hazards.md`: how other hosts broke in public, and which tests keep this one from it.

    python packaging/hazards.py [--check]

A test names its kinds in its docstring: `Hazards A1, C35.` The titles stand below.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "hazards.md"
NAMED = re.compile(r"Hazards?\s+((?:[A-P]\d+)(?:(?:,\s*|\s+and\s+|\s+)(?:[A-P]?\d+))*)")
WINDOWS = "Windows, not run"
SECTIONS = {
    "A": "Reading and writing configuration",
    "B": "Starting stdio servers",
    "C": "stdio framing",
    "D": "Process life, reconnect",
    "E": "Protocol",
    "F": "Tool names and counts",
    "G": "Tool schemas",
    "H": "Tool calls",
    "I": "Tool results",
    "J": "Conversation integrity",
    "K": "Approval and security",
    "L": "OAuth to remote servers",
    "M": "Elicitation",
    "N": "Bundles",
    "O": "Secrets",
    "P": "Skills",
}
KINDS: dict[str, str] = {
    "A1": "a byte order mark makes the file look empty, and it is rewritten",
    "A2": "a remote entry makes the file be rewritten",
    "A4": "a comment or a trailing comma wipes the file",
    "A5": "a second object pasted after the first",
    "A7": "`${VAR}` sent as it stands; a missing one is not named",
    "A8": "a cut file kills the whole app",
    "A10": "unset and empty lists are one value",
    "A11": "a change of a setting ends a running call",
    "A13": "several arguments in one string",
    "B14": "the shell's PATH is not that of a desktop app",
    "B16": WINDOWS,
    "B17": WINDOWS + " (spaces in paths: the POSIX side is tested)",
    "B19": "an empty argument is dropped",
    "B20": "a home folder with CJK and a space",
    "B22": "a command is replaced by another one silently",
    "B23": "a command is rewritten invisibly",
    "B25": "whatever listens on the expected port is killed",
    "B26": "one missing command empties the list of all servers",
    "B28": "parameters without descriptions",
    "B29": "an enabled server without a row and a reason",
    "B31": "a failed start without exit code, output, command and PATH",
    "B32": "a server that ends before the handshake",
    "B34": "no environment, no working folder, a process per call",
    "C35": "a banner on standard output",
    "C37": "an emoji as the first byte",
    "D38": "orphans after quit or crash",
    "D40": "a dead server is never noticed",
    "D41": "a call hangs when the server dies in it",
    "D43": "closing waits for a child that ignores the end of input",
    "D44": "no limit on the handshake",
    "D46": "lost until a person toggles it",
    "D47": "a storm of reconnects",
    "D49": "reading a list disconnects",
    "D50": "a silent stream is closed and its session lost",
    "D52": "a call that is never dispatched",
    "D53": "a crash loop makes the list unusable",
    "D55": "every server started twice",
    "E56": "the probe falls back for one error code only",
    "E58": "changed tools are ignored",
    "E59": "progress does not extend the time limit",
    "E61": "Stop does not reach the server",
    "D62": "Stop leaves the card running",
    "F64": "a name over 64 characters",
    "F65": "dots and slashes in names",
    "F67": "a space in a name",
    "F68": "two servers with one tool name",
    "F70": "more than 128 tools",
    "F71": "a description that is null",
    "G73": "a root anyOf bricks the chat",
    "G74": "one schema that is no object loses all tools",
    "G76": "an output schema without a type loses all tools",
    "G77": "an object schema without properties",
    "G79": "keywords that a vendor refuses",
    "G80": "nullable, const and lists of types",
    "G82": "nested schemas lose their parts",
    "H83": "a call without arguments arrives as an empty text",
    "H85": "a model's own tokens inside arguments",
    "H86": "a tool that does not exist",
    "H88": "parallel results out of order; one failure ends its siblings",
    "H89": "a server's error is not given to the model",
    "H91": "a call written as text",
    "I92": "a result without bounds",
    "I94": "an image sent twice",
    "I95": "a block cut as text",
    "I97": "an embedded resource shown as a pointer",
    "I98": "a resource link reduced or dropped",
    "I100": "images and audio become words",
    "J101": "a cut leaves a call without a result",
    "J103": "a shortened history cuts a pair",
    "J104": "approval breaks the order of messages",
    "J106": "an overload in mid-stream has no status",
    "J107": "a limit is not waited for, or silently",
    "J109": "hidden tokens of tool definitions",
    "K110": "arguments hidden in the approval",
    "K112": "one switch for everything",
    "K113": "a tool in no list runs unasked",
    "K115": "a link or snippet that runs a command",
    "K116": "environment and headers hidden before install",
    "K118": "a tool changed after it was allowed",
    "K119": "sampling without a person",
    "L121": "a refresh token that is never used",
    "L122": "a random port registers anew each time",
    "L124": "one rotating token, two users",
    "L125": "the expiry is not kept; the port is taken",
    "M127": "values checked on decline",
    "M128": "a default of true comes back false",
    "M130": "the URL error code is not handled",
    "N131": "versions of the manifest refused",
    "N133": "a runtime that is not on the PATH",
    "O134": "no secret store: keys cannot be kept",
    "O136": "keys in plain files",
    "O137": "keys in logs",
    "O139": "a store that is not used",
    "P140": "an unquoted colon loses the skill",
    "P142": "byte order mark and CRLF",
    "P143": "a nested last key",
    "P145": "no front matter looks like a broken reload",
    "P146": "linked folders are skipped",
    "P148": "archives of every shape",
    "P149": "a second install overwrites the first",
    "P151": "enabling by links",
    "P152": "no hot reload, or one that breaks the prompt cache",
}


def found() -> dict[str, list[str]]:
    """Kind to the tests that name it."""
    out: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not node.name.startswith("test_"):
                continue
            for match in NAMED.finditer(ast.get_docstring(node) or ""):
                section = ""
                for letter, number in re.findall(r"([A-P]?)(\d+)", match.group(1)):
                    section = letter or section
                    if section + number not in KINDS:
                        raise SystemExit(f"{path.name}::{node.name}: there is no hazard {section}{number}")
                    out[section + number].append(f"`{path.relative_to(ROOT / 'tests')}::{node.name}`")
    return out


def page() -> str:
    """The whole file."""
    tests = found()
    lines = [
        "# Hazards",
        "",
        "How other hosts broke in public, kind by kind, and the tests that keep this one from it.",
        "Written by `packaging/hazards.py` from the tests' docstrings.",
    ]
    for section, title in SECTIONS.items():
        lines += ["", f"## {section}. {title}", "", "| kind | what broke | tests |", "|---|---|---|"]
        for kind, what in KINDS.items():
            if kind[0] != section:
                continue
            named = tests.get(kind, [])
            shown = "<br>".join(dict.fromkeys(named)) or (WINDOWS if WINDOWS in what else "not tested yet")
            lines.append(f"| {kind} | {what} | {shown} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check."""
    text = page()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text("utf-8") != text:
            print("tests/hazards.md is stale: run packaging/hazards.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
