"""A server that tells its key everywhere, and what is on disk after a long session with it."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

from tests.flows.test_cli_contract import SERVERS, Program

KEY = "sk-planted/server=key+0123456789"
HEADER = "Bearer planted-header-9876543210"
VENDOR = "sk-ant-planted-vendor-5555"
ENVIRONMENT = "sk-planted-environment-7777"


def holders(folder: Path, *secrets: str) -> list[str]:
    """Files below a folder, those inside archives too, that hold one of the secrets."""
    found = []
    for path in folder.rglob("*"):
        if not path.is_file() or path.name == "passphrase":
            continue
        contents = [path.read_bytes()]
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                contents += [archive.read(name) for name in archive.namelist()]
        for secret in secrets:
            forms = (secret.encode(), json.dumps(secret)[1:-1].encode())
            if any(form in content for form in forms for content in contents):
                found.append(f"{path.relative_to(folder)}: {secret[:12]}…")
    return found


def test_a_long_session_with_a_server_that_tells_its_key_leaves_no_secret_on_disk_nor_in_what_is_printed(
    tmp_path: Path,
) -> None:
    """Hazards O136, O137."""
    program = Program(tmp_path)
    program.environment["ANTHROPIC_API_KEY"] = ENVIRONMENT
    printed: list[str] = []

    def run(*argv: str, stdin: str | None = None) -> str:
        _code, out, err = program(*argv, stdin=stdin.encode() if stdin else None)
        assert "Traceback" not in err, err
        printed.append(out + err)
        return out

    leaky = [sys.executable, str(SERVERS / "leaky.py")]
    run("secrets", "set", "anthropic", stdin=f"{VENDOR}\n")
    run("servers", "add", "leaky", "--env", "API_KEY=-", "--", *leaky, stdin=f"{KEY}\n")
    run("servers", "add", "web", "http://127.0.0.1:9/mcp", "--header", "Authorization=-", stdin=f"{HEADER}\n")

    def call(tool: str) -> dict[str, object]:
        return {"call": {"tool": f"leaky.{tool}", "arguments": {}}}

    replies = [
        [call("env"), call("big"), call("refuses")], [{"text": "so ${last_result}"}],
        [call("asks")], [call("size")], [{"text": "and ${last_result}"}],
        [call("dies")], [{"text": "gone"}],
    ]  # fmt: skip
    model = program.script(*replies)
    answers = tmp_path / "answers.json"
    answers.write_text('[{"kind":"elicitation","action":"accept","content":{"a":"x"}}]')
    words = ["chat", "--json", "--model", model, "--allow", "leaky.*", "--answers", str(answers)]
    out = run(*words, "--prompt", "one", "--prompt", "two", "--prompt", "three", "--log-level", "DEBUG")
    settled = [e for e in map(json.loads, out.splitlines()) if e["type"] == "tool_settled"]
    assert len(settled) == 6
    assert [e["content"][0]["text"] for e in settled if "characters" in str(e["content"])] == [f"{len(KEY)} characters"]
    run("chat", "--model", "anthropic:http://127.0.0.1:9#claude-x", "hello")  # A key that goes nowhere.
    for argv in (
        ["servers", "test", "leaky", "--json"], ["servers", "test", "web", "--json"], ["servers", "logs", "leaky"],
        ["servers", "trace", "leaky"], ["servers", "export"], ["tools", "list", "leaky"], ["doctor", "--json"],
        ["resources", "read", "leaky", "leaky://a"], ["prompts", "list", "leaky", "--json"],
        ["tools", "call", "leaky", "env"], ["profiles", "export", "default"], ["doctor", "--report", "report.zip"],
    ):  # fmt: skip
        run(*argv)
    session = json.loads(run("sessions", "list", "--json").splitlines()[0])["session"]
    run("sessions", "show", session)
    (tmp_path / "session.json").write_text(run("sessions", "export", session))
    assert holders(tmp_path, KEY, HEADER.split()[1], VENDOR, ENVIRONMENT) == []
    for text in printed:
        assert not [s for s in (KEY, HEADER.split()[1], VENDOR, ENVIRONMENT) if s in text], text[:2000]
