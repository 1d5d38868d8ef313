"""The contract of the command line, kept by the real program: processes, files, servers, exit codes, JSON."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

SERVERS = Path(__file__).parents[1] / "fakes" / "servers"
SMALL = [sys.executable, str(SERVERS / "small.py")]


class Program:
    """The program with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        (folder / "passphrase").write_text("correct horse battery staple\n")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "SHELL": "/bin/sh",
            "DBUS_SESSION_BUS_ADDRESS": "/dev/null",
            "DESKTOP_HOST_PASSPHRASE_FILE": str(folder / "passphrase"),
        }

    def start(self, *argv: str, **more: Any) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "desktop_host", "--home", str(self.home), *argv]
        settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen(words, cwd=self.folder, env=self.environment, **settings)

    def __call__(self, *argv: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        process = self.start(*argv, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=90)
        return process.returncode, out.decode("utf-8"), err.decode("utf-8")

    def json(self, *argv: str, stdin: bytes | None = None) -> tuple[int, list[dict[str, Any]]]:
        code, out, err = self("--json", *argv, stdin=stdin)
        assert "Traceback" not in err, err
        return code, [json.loads(line) for line in out.splitlines()]

    def script(self, *replies: list[dict[str, Any]], name: str = "script.json") -> str:
        (self.folder / name).write_text(json.dumps(replies))
        return f"script:{name}"

    def config(self, **servers: list[str]) -> str:
        entries = {name: {"command": words[0], "args": words[1:]} for name, words in servers.items()}
        (self.folder / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
        return "mcp.json"


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    """A program whose profile has the small server and one that cannot start."""
    made = Program(tmp_path_factory.mktemp("stocked"))
    code, (row,) = made.json("servers", "add", "small", "--", *SMALL, str(made.folder))
    assert code == 0
    assert row == {"name": "small", "state": "stopped", "enabled": True, "transport": "stdio", "era": None, "tools": 0,
                   "error": None}  # fmt: skip
    made("servers", "add", "broken", "--", sys.executable, "/no/such/server.py")
    return made


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


def until(found: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def by_type(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {event["type"]: event for event in events}


# ---- chat


def test_a_turn_with_a_tool_is_told_as_the_contract_says(program):
    model = program.script(
        [{"thinking": "hm"}, {"text": "I ask."}, call("small.echo", text="grüße")],
        [{"expect": {"last_result_contains": "grüße"}}, {"text": "It said ${last_result}"}],
    )
    config = program.config(small=SMALL)
    code, events = program.json("chat", "go", "--model", model, "--mcp-config", config, "--allow", "small.*")
    assert code == 0, events
    assert [e["seq"] for e in events] == sorted({e["seq"] for e in events})
    assert all({"seq", "t", "session", "turn", "type"} <= e.keys() for e in events)
    kept = [
        "session_opened", "user_said", "turn_started", "skills_chosen", "tool_requested", "tool_started",
        "tool_settled", "turn_ended",
    ]  # fmt: skip
    assert [e["type"] for e in events if e["type"] in kept] == kept
    first = by_type(reversed(events))
    assert first["session_opened"].keys() >= {"model", "title"}
    assert (first["user_said"]["text"], first["user_said"]["attachments"]) == ("go", [])
    assert first["thinking_delta"]["text"] == "hm"
    requested, settled = first["tool_requested"], first["tool_settled"]
    assert (requested["server"], requested["tool"], requested["wire_name"]) == ("small", "echo", "small__echo")
    assert (requested["arguments"], requested["verdict"]) == ({"text": "grüße"}, "allow")
    assert settled["call_id"] == requested["call_id"]
    assert (settled["outcome"], settled["content"]) == ("ok", [{"type": "text", "text": "grüße"}])
    assert settled.keys() >= {"structured", "duration_ms"}
    ended = first["turn_ended"]
    assert (ended["status"], ended["stop"], ended["text"], ended["error"]) == ("done", "end", "It said grüße", None)
    assert first["usage_recorded"].keys() >= {
        "model", "purpose", "input", "output", "cache_read", "cache_write", "reasoning", "cost_usd",
    }  # fmt: skip
    deltas = [e["text"] for e in events if e["type"] == "token_delta"]
    assert "".join(deltas) == "I ask.It said grüße"
    assert {e["state"] for e in events if e["type"] == "state_changed"} >= {"running", "waiting_tool", "idle"}
    assert {e["state"] for e in events if e["type"] == "server_changed"} >= {"starting"}


def test_a_script_goes_on_from_run_to_run_and_ends(program):
    model = program.script([{"text": "one"}], [{"text": "two"}])
    _, events = program.json("chat", "a", "--model", model)
    session = events[0]["session"]
    code, out, _ = program("chat", "b", "--session", session)
    assert (code, out) == (0, "two\n")
    code, events = program.json("chat", "c", "--session", session)
    assert (code, events[-1]["code"], events[-1]["type"]) == (1, "script_exhausted", "error")


@pytest.mark.parametrize(
    ("reply", "words", "code", "error"),
    [
        ([{"error": {"code": "rate_limited"}}], [], 5, "rate_limited"),
        ([{"error": {"code": "context_overflow"}}], [], 1, "context_overflow"),
        ([{"expect": {"last_result_contains": "never"}}, {"text": "x"}], [], 1, "script_expectation"),
        ([{"delay_ms": 5000}, {"text": "x"}], ["--timeout", "0.3"], 1, "turn_timeout"),
    ],
)
def test_failures_exit_by_their_code(program, reply, words, code, error):
    got, events = program.json(
        "chat", "a", "--model", program.script(reply, [{"text": "sorry: ${last_result}"}]), "--no-servers", *words
    )
    assert (got, events[-1]["type"], events[-1]["code"]) == (code, "error", error)
    assert events[-1].keys() == {"type", "code", "message", "remedy", "params"}
    ended = by_type(events)["turn_ended"]
    assert (ended["status"], ended["error"]["code"]) == ("failed", error)


def test_budgets_end_a_turn_with_exit_4(program):
    steps = [[{"text": f"{n}"}, call("small.echo", text="x"), {"usage": {"input": 900, "output": 200, "cost_usd": 0.2}}]
             for n in range(3)]  # fmt: skip
    common = ["--model", program.script(*steps), "--mcp-config", program.config(small=SMALL), "--allow", "*"]
    for words in (["--token-budget", "1000"], ["--budget", "0.1"]):
        code, events = program.json("chat", "a", *common, *words)
        assert (code, events[-1]["code"]) == (4, "budget_spent"), words
        assert by_type(events)["turn_ended"]["stop"] == "budget"
    code, events = program.json("chat", "a", *common, "--max-steps", "2")
    assert (code, events[-1]["code"], by_type(events)["turn_ended"]["stop"]) == (1, "max_steps", "max_steps")


def test_what_is_not_allowed_is_refused_with_exit_3_and_what_is_denied_is_not(program):
    model = program.script([call("small.echo", text="x")], [{"text": "so be it"}])
    common = ["--model", model, "--mcp-config", program.config(small=SMALL)]
    code, events = program.json("chat", "a", *common)
    assert code == 3
    assert by_type(events)["turn_ended"]["status"] == "done"
    assert by_type(events)["tool_requested"]["verdict"] == "ask"
    assert by_type(events)["ask_raised"]["kind"] == "tool"
    assert (by_type(events)["ask_settled"]["action"], by_type(events)["ask_settled"]["by"]) == ("refuse", "policy")
    assert by_type(events)["tool_settled"]["outcome"] == "denied"
    code, events = program.json("chat", "a", *common, "--deny", "small.*", "--allow", "*")
    assert (code, by_type(events)["tool_requested"]["verdict"]) == (0, "deny")


def test_answers_fill_forms_and_let_servers_ask_the_model(program):
    (program.folder / "answers.json").write_text(
        '[{"kind":"elicitation","action":"accept","content":{"name":"Ada"}},'
        '{"kind":"sampling","action":"accept","edit":null},{"kind":"tool","action":"allow"}]'
    )
    (program.folder / "object.json").write_text(json.dumps({
        "replies": [[call("small.ask")], [call("small.sample")], [call("small.echo", text="x")],
                    [{"text": "${last_result}"}]],
        "sampling": [[{"text": "hi there"}]],
    }))  # fmt: skip
    common = ["--model", "script:object.json", "--mcp-config", program.config(small=SMALL)]
    words = ["--allow", "small.ask", "--allow", "small.sample", "--answers", "answers.json"]
    code, events = program.json("chat", "a", *common, *words)
    results = [e["content"][0]["text"] for e in events if e["type"] == "tool_settled"]
    assert code == 0, events
    assert json.loads(results[0]) == {"action": "accept", "content": {"name": "Ada"}}
    assert json.loads(results[1])["content"]["text"] == "hi there"
    assert results[2] == "x"
    kinds = [e["kind"] for e in events if e["type"] == "ask_raised"]
    assert [kind for kind in kinds if kind != "sampling_reply"] == ["elicitation", "sampling", "tool"]
    assert [u["purpose"] for u in events if u["type"] == "usage_recorded"].count("sampling") == 1
    code, events = program.json("chat", "a", *common, "--allow", "*")
    assert code == 3
    assert "decline" in next(e["content"][0]["text"] for e in events if e["type"] == "tool_settled")


def test_stop_reaches_the_server_and_the_turn_goes_on_later(program):
    """Hazards E61, J101: the call is cancelled on the wire, its late effect does not come, the chat stays usable."""
    model = program.script([{"text": "wait"}, call("small.slow")], [{"text": "going on"}], [{"text": "hello again"}])
    config = program.config(small=[*SMALL, str(program.folder)])
    process = program.start("chat", "a", "--model", model, "--mcp-config", config, "--allow", "small.*", "--json")
    until((program.folder / "started").exists)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert time.monotonic() - begun < 10
    events = [json.loads(line) for line in out.splitlines()]
    assert by_type(events)["turn_ended"]["status"] == "interrupted"
    assert by_type(events)["tool_settled"]["outcome"] == "cancelled"
    pid = int((program.folder / "started").read_text())
    until(lambda: not Path(f"/proc/{pid}").exists())
    assert not (program.folder / "late").exists()
    session = events[0]["session"]
    code, events = program.json("sessions", "resume", session)
    assert (code, by_type(events)["turn_ended"]["text"]) == (0, "going on")
    assert by_type(events)["turn_started"]["resumed"] is True
    assert program("chat", "hi", "--session", session)[:2] == (0, "hello again\n")
    code, objects = program.json("sessions", "resume", session)
    assert (code, objects[-1]["code"]) == (2, "usage")


def test_a_killed_program_leaves_a_chat_that_can_go_on(program):
    """Hazards D38, J101: no orphan stays for long, the open call is told as unknown, nothing runs twice."""
    model = program.script([call("small.slow")], [{"text": "afterwards"}])
    config = program.config(small=[*SMALL, str(program.folder)])
    process = program.start("chat", "a", "--model", model, "--mcp-config", config, "--allow", "small.*", "--json")
    until((program.folder / "started").exists)
    process.kill()
    out, _ = process.communicate(timeout=30)
    session = json.loads(out.splitlines()[0])["session"]
    code, rows = program.json("sessions", "list")
    assert (code, [row["session"] for row in rows]) == (0, [session])
    code, events = program.json("sessions", "show", session)
    assert by_type(events)["tool_settled"]["outcome"] == "unknown"
    assert by_type(events)["turn_ended"]["status"] == "interrupted"
    code, events = program.json("sessions", "resume", session)
    assert (code, by_type(events)["turn_ended"]["text"]) == (0, "afterwards")
    assert "tool_started" not in by_type(events)
    pid = int((program.folder / "started").read_text())
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_prompts_stream_from_standard_input_as_they_come(program):
    model = program.script([{"text": "one"}], [{"text": "two"}])
    process = program.start("chat", "-", "--model", model, "--no-servers", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"first\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"one\n"
    out, err = process.communicate(b"second\n", timeout=60)
    assert (process.returncode, out.decode().strip()) == (0, "two"), err


def test_a_reader_that_leaves_ends_the_program_quietly(program):
    model = program.script([{"text": "word " * 4000}])
    process = program.start("chat", "a", "--model", model, "--no-servers")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(timeout=30) == 1
    assert process.stderr.read() == b""
    process.stderr.close()


def test_output_is_utf8_whatever_the_locale(program):
    program.environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, out, _ = program("chat", "x", "--model", program.script([{"text": "Grüße 你好 🎉"}]), "--no-servers")
    assert (code, out) == (0, "Grüße 你好 🎉\n")


@pytest.mark.skipif(sys.platform == "win32", reason="closes file descriptors by a POSIX shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_is_the_null_device(program, closed):
    words = [sys.executable, "-m", "desktop_host", "--home", str(program.home), "chat", "x", "--no-servers",
             "--model", program.script([{"text": "ok"}])]  # fmt: skip
    done = subprocess.run(["/bin/sh", "-c", f"exec {closed}; exec {shlex.join(words)}"], cwd=program.folder,
                          env=program.environment, capture_output=True, timeout=120)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    code, sessions = program.json("sessions", "list")
    assert code == 0 and sessions[0]["messages"] == 2


def test_a_bad_configuration_names_file_line_and_column(program):
    """Hazards A4, A8."""
    (program.folder / "bad.json").write_text('{"mcpServers": {\n  "a": {"command": }\n}}')
    code, objects = program.json("chat", "x", "--mcp-config", "bad.json", "--model", program.script([]))
    assert (code, objects[-1]["code"]) == (2, "bad_config")
    assert objects[-1]["params"]["line"] == 2
    assert objects[-1]["params"]["file"].endswith("bad.json")
    code, objects = program.json("chat", "x", "--mcp-config", "none.json")
    assert (code, objects[-1]["code"]) == (2, "not_found")


@pytest.mark.parametrize(
    ("given", "reason"), [(b"", "no_prompt"), (b"\n \n", "no_prompt"), (b"a\xff\n", "stdin_not_utf8")]
)
def test_prompts_that_are_none_or_no_text_are_wrong_use(program, given, reason):
    code, objects = program.json("chat", "-", "--no-servers", "--model", program.script(), stdin=given)
    assert (code, objects[-1]["code"], objects[-1]["params"]["reason"]) == (2, "usage", reason)


def test_a_secret_that_is_no_text_is_refused_not_changed(program):
    code, objects = program.json("secrets", "set", "a", stdin=b"k\xff\xfe\n")
    assert (code, objects[0]["params"]["reason"]) == (2, "stdin_not_utf8")
    assert program.json("secrets", "list") == (0, [])


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_that_keep_coming_until_the_end_leave_the_exit_code(program, number):
    model = program.script([{"text": "word " * 40}, {"delay_ms": 60_000}])
    process = program.start("chat", "a", "--no-servers", "--model", model, "--json",
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))  # fmt: skip
    assert process.stdout is not None
    while b"token_delta" not in process.stdout.readline():
        pass
    while process.poll() is None:
        process.send_signal(number)
        time.sleep(0.02)
    _, err = process.communicate()
    assert process.returncode == 130 and b"Traceback" not in err


def test_a_configuration_that_lists_no_servers_is_a_run_without_any(program):
    model = program.script([{"text": "alone"}])
    for text, expected in (('{"mcpServers": {}}', 0), ("{}", 2)):
        (program.folder / "few.json").write_text(text)
        assert program.json("chat", "x", "--mcp-config", "few.json", "--model", model)[0] == expected


@pytest.mark.parametrize(
    ("ref", "said", "chinese"),
    [
        ("", "--model", "--model"), ("anthropic/", "anthropic/<model>", "不是任何模型的名称"),
        ("no-route", "a route", "不是任何模型的名称"),
        ("compat:http://127.0.0.1:1/v1", "#<model>", "未指明模型"), ("compat:ftp://x#m", "http://", "应以 http://"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_named_is_wrong_use_told_in_both_languages(program, ref, said, chinese):
    code, objects = program.json("chat", "x", "--model", ref, "--no-servers")
    assert (code, objects[-1]["code"]) == (2, "usage") and said in objects[-1]["message"]
    code, out, err = program("chat", "x", "--model", ref, "--no-servers", "--lang", "zh_CN")
    assert (code, out) == (2, "") and chinese in err and "names no model" not in err


# ---- servers, tools, resources, prompts


def test_a_server_is_tested_with_all_figures(stocked):
    code, (test,) = stocked.json("servers", "test", "small")
    assert code == 0
    assert (test["ok"], test["era"], test["server"]) == (True, "2025-06-18", {"name": "small", "version": "1.2"})
    assert (test["tools"], test["resources"], test["prompts"], test["error"]) == (9, 3, 1, None)
    assert test["connect_ms"] > 0
    assert test.keys() == {"name", "ok", "era", "server", "capabilities", "tools", "resources", "prompts",
                           "connect_ms", "list_ms", "error"}  # fmt: skip


def test_a_server_that_cannot_start_says_why(stocked):
    """Hazard B31."""
    code, (test,) = stocked.json("servers", "test", "broken")
    assert (code, test["ok"]) == (5, False)
    error = test["error"]
    assert error.keys() >= {"code", "message", "remedy", "command", "path", "exit_code", "stderr"}
    assert (error["code"], error["exit_code"]) == ("server_failed", 2)
    assert error["command"][-1] == "/no/such/server.py"
    assert "/no/such/server.py" in error["stderr"][-1]
    assert error["remedy"]
    code, out, err = stocked("servers", "test", "broken", "--lang", "zh_CN")
    assert (code, out) == (5, "")
    assert "退出码" in err


def test_one_broken_server_hides_no_others_tools(stocked):
    """Hazard B26."""
    code, out, err = stocked("tools", "list", "--json")
    tools = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert "broken" in err
    assert {tool["server"] for tool in tools} == {"small"}
    (echo,) = (tool for tool in tools if tool["tool"] == "echo")
    assert echo == {"server": "small", "tool": "echo", "title": "Echo", "description": "Says it again",
                    "wire_name": "small__echo", "enabled": True, "group": None, "tokens": echo["tokens"],
                    "problem": None}  # fmt: skip
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["wire_name"]) for tool in tools)
    assert stocked.json("tools", "list", "broken")[0] == 5


def test_tools_are_called_by_hand(stocked):
    code, (result,) = stocked.json("tools", "call", "small", "echo", "--args", '{"text":"hé"}')
    assert (code, result["outcome"], result["content"]) == (0, "ok", [{"type": "text", "text": "hé"}])
    assert result.keys() == {"outcome", "content", "structured", "duration_ms"}
    code, (result,) = stocked.json("tools", "call", "small", "picture")
    assert (result["content"][0]["type"], result["structured"]) == ("image", {"width": 1})
    assert stocked("tools", "call", "small", "steps")[:2] == (0, "both steps\n")
    assert stocked("tools", "call", "small", "a.dotted/name", "--args", "-", stdin=b'{"text":"x"}')[:2] == (0, "x\n")
    code, (result,) = stocked.json("tools", "call", "small", "fail")
    assert (code, result["outcome"], result["content"][0]["text"]) == (1, "error", "it went wrong")
    code, out, _ = stocked("tools", "call", "small", "ask", "--json")
    assert code == 3
    assert "decline" in json.loads(out.splitlines()[0])["content"][0]["text"]


@pytest.mark.parametrize(
    ("argv", "code", "error"),
    [
        (["tools", "call", "small", "nope"], 2, "not_found"),
        (["tools", "call", "nope", "echo"], 2, "not_found"),
        (["tools", "call", "small", "echo", "--args", "[1]"], 2, "usage"),
        (["tools", "call", "small", "echo", "--args", "{"], 2, "usage"),
        (["servers", "test", "nope"], 2, "not_found"),
        (["servers", "start", "broken"], 5, "server_failed"),
        (["servers", "add", "small", "--", "x"], 2, "bad_config"),
        (["servers", "add", "Bad Name", "--", "x"], 2, "bad_config"),
        (["servers", "add", "n"], 2, "usage"),
        (["servers", "add", "n", "not-a-url"], 2, "usage"),
        (["servers", "add", "n", "http://h/mcp", "--env", "A=1"], 2, "usage"),
        (["resources", "list", "nope"], 2, "not_found"),
        (["prompts", "get", "small", "greet", "--args", "x"], 2, "usage"),
        (["models", "get", "no-such-model"], 2, "not_found"),
        (["secrets", "delete", "nope"], 2, "not_found"),
        (["profiles", "delete", "nope"], 2, "not_found"),
        (["settings", "set", "general.theme", "pink"], 2, "bad_settings"),
        (["servers", "login", "small"], 2, "usage"),
    ],
)
def test_mistakes_are_one_object_that_names_a_remedy(stocked, argv, code, error):
    got, objects = stocked.json(*argv)
    assert (got, len(objects)) == (code, 1), objects
    assert objects[0].keys() == {"type", "code", "message", "remedy", "params"}
    assert (objects[0]["type"], objects[0]["code"]) == ("error", error)
    assert objects[0]["remedy"]
    assert objects[0]["message"]


def test_arguments_that_do_not_fit_are_wrong_use_on_standard_error_and_are_not_sent(stocked):
    wrong = ("tools", "call", "small", "echo", "--args", '{"text": 5}')
    code, out, err = stocked(*wrong)
    assert (code, out) == (2, "")
    for part in ("small.echo", "$.text", "not of type 'string'", "Nothing was sent", '"type": "string"'):
        assert part in err, part
    code, (told,) = stocked.json(*wrong)
    assert (code, told["type"], told["code"]) == (2, "error", "usage")
    assert told["params"]["field"] == "$.text" and told["params"]["tool"] == "small.echo"
    assert json.loads(told["params"]["form"])["required"] == ["text"]


def test_a_tool_that_a_model_made_up_is_told_as_such_and_not_as_denied(program):
    reply = [{"call": {"tool": "small.ecko", "arguments": {}}}]
    script = program.script(reply, [{"text": "sorry: ${last_result}"}])
    code, out, err = program("chat", "--model", script, "--no-skills", "hi")
    assert code == 0, err
    assert "there is no such tool" in err and "denied" not in err and "reports an error" not in err
    assert "no tool named" in out


def test_resources_are_listed_read_and_watched(stocked):
    code, rows = stocked.json("resources", "list", "small")
    assert code == 0
    assert [(row["uri"], row["template"]) for row in rows] == [
        ("note://one", False), ("note://bytes", False), ("note://{name}", True),
    ]  # fmt: skip
    assert stocked("resources", "read", "small", "note://one")[:2] == (0, "the note\n")
    process = stocked.start("resources", "read", "small", "note://bytes")
    assert process.communicate(timeout=60)[0] == b"\0\1\2"
    code, (result,) = stocked.json("resources", "read", "small", "note://one")
    assert result["content"][0]["resource"]["text"] == "the note"
    code, rows = stocked.json("resources", "watch", "small", "note://one", "--count", "2", "--timeout", "30")
    assert (code, [row["uri"] for row in rows]) == (0, ["note://one"] * 2)
    code, rows = stocked.json("resources", "watch", "small", "note://one", "--count", "99", "--timeout", "0.5")
    assert (code, rows[-1]["code"]) == (1, "tool_timed_out")


def test_prompts_are_listed_and_filled(stocked):
    code, (row,) = stocked.json("prompts", "list", "small")
    assert (code, row["name"], row["arguments"][0]["required"]) == (0, "greet", True)
    code, (message,) = stocked.json("prompts", "get", "small", "greet", "--args", '{"who":"Ada"}')
    assert (code, message) == (0, {"role": "user", "content": [{"type": "text", "text": "Greet Ada"}]})


def test_logs_and_traces_are_there_afterwards(stocked):
    stocked.json("servers", "test", "small")
    code, lines = stocked.json("servers", "logs", "small")
    assert code == 0
    assert any(line["text"] == "small server starts" and line["source"] == "stderr" for line in lines)
    code, frames = stocked.json("servers", "trace", "small")
    assert code == 0
    first = next(frame["message"]["method"] for frame in frames if frame["direction"] == "out")
    assert first in ("initialize", "server/discover")


def test_servers_are_switched_exported_imported_and_removed(program):
    program.json("servers", "add", "web", "http://127.0.0.1:9/sse", "--header", "X-A=b")
    program.json("servers", "add", "cmd", "--cwd", ".", "--protocol", "legacy", "--env", "A=1", "--", "npx", "-y", "",
                 "a b")  # fmt: skip
    code, rows = program.json("servers", "list")
    assert [(row["name"], row["transport"]) for row in rows] == [("web", "sse"), ("cmd", "stdio")]
    code, (row,) = program.json("servers", "disable", "cmd")
    assert (row["state"], row["enabled"]) == ("disabled", False)
    assert program.json("servers", "enable", "cmd")[1][0]["enabled"] is True
    code, (exported,) = program.json("servers", "export")
    entry = exported["mcpServers"]["cmd"]
    assert (entry["command"], entry["args"], entry["env"]) == ("npx", ["-y", "", "a b"], {"A": "1"})
    assert program.json("servers", "remove", "cmd") == (0, [{"name": "cmd", "removed": True}])
    text = b'\xef\xbb\xbf{"mcpServers": {"new": {"command": "x", "args": ["y"]}, /* note */ }}'
    code, rows = program.json("servers", "import", "-", stdin=text)
    assert (code, [row["name"] for row in rows]) == (0, ["new"])
    assert [row["name"] for row in program.json("servers", "list")[1]] == ["web", "new"]


def test_secrets_come_by_standard_input_and_go_nowhere(program):
    """Hazards O136, O137."""
    words = ["servers", "add", "s", "--env", "TOKEN=-", "--env", "OTHER=-", "--", *SMALL]
    code, out, err = program(*words, stdin=b"hunter2-hunter2\nsecond-secret\n")
    assert code == 0, err
    code, (result,) = program.json("tools", "call", "s", "secret")
    assert result["content"][0]["text"] == "15 characters"
    assert program("secrets", "set", "anthropic", stdin=b"sk-ant-0123456789\n")[0] == 0
    code, rows = program.json("secrets", "list")
    assert sorted(row["name"] for row in rows) == ["anthropic", "s/OTHER", "s/TOKEN"]
    assert all(row == {"name": row["name"], "set": True} for row in rows)
    code, (exported,) = program.json("servers", "export")
    assert exported["mcpServers"]["s"]["env"] == {"TOKEN": "${keyring:s/TOKEN}", "OTHER": "${keyring:s/OTHER}"}
    code, (status,) = program.json("secrets", "status")
    assert (code, status["ok"]) == (0, True)
    for path in program.home.rglob("*"):
        if path.is_file():
            assert b"hunter2-hunter2" not in path.read_bytes(), path
            assert b"sk-ant-0123456789" not in path.read_bytes(), path
    assert "hunter2" not in out + err
    assert program("secrets", "delete", "anthropic")[0] == 0
    code, objects = program.json("secrets", "set", "x", stdin=b"\n")
    assert (code, objects[0]["code"]) == (2, "usage")


def test_without_a_store_secrets_fail_and_name_the_remedy(program):
    """Hazard O134."""
    del program.environment["DESKTOP_HOST_PASSPHRASE_FILE"]
    code, objects = program.json("secrets", "set", "x", stdin=b"value\n")
    assert (code, objects[0]["code"]) == (5, "vault_unavailable")
    assert objects[0]["remedy"]
    code, (status,) = program.json("secrets", "status")
    assert (code, status["ok"]) == (5, False)


# ---- the rest


def test_profiles_do_not_see_each_other(program):
    program.json("chat", "a", "--model", program.script([{"text": "one"}]), "--no-servers")
    assert program.json("sessions", "list", "--profile", "work") == (0, [])
    assert [row["name"] for row in program.json("profiles", "list")[1]] == ["default", "work"]
    assert program("profiles", "create", "third")[0] == 0
    assert program("profiles", "delete", "work")[0] == 0
    assert [row["name"] for row in program.json("profiles", "list")[1]] == ["default", "third"]
    assert (program.home / "profiles" / "default" / "host.db").is_file()
    assert sorted(p.name for p in program.folder.iterdir()) == ["home", "passphrase", "script.json"]


def test_doctor_tells_and_reports_a_profile_that_cannot_be_opened(program):
    program("settings", "get", "general.theme")
    folder = program.home / "profiles" / "default"
    (folder / "settings.toml").write_text('[network]\nproxy = "http://u:hidden-value@p:1"\n[broken\n')
    report = program.folder / "report.zip"
    code, (row,) = program.json("doctor", "--report", str(report))
    assert (code, row["check"], row["ok"]) == (1, "profile", False) and row["remedy"]
    with zipfile.ZipFile(report) as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert "bad_settings" in texts["checks.json"] and "[broken" in texts["settings.toml"]
    assert "hidden-value" not in "".join(texts.values())


def test_settings_usage_models_and_doctor_have_their_shapes(program):
    assert program.json("settings", "set", "tools.max_steps", "7") == (0, [{"key": "tools.max_steps", "value": 7}])
    assert program("settings", "get", "tools.max_steps")[:2] == (0, "7\n")
    assert "max_steps = 7" in (program.home / "profiles" / "default" / "settings.toml").read_text()
    code, checks = program.json("doctor")
    assert code == (0 if all(check["ok"] for check in checks) else 1)
    assert checks
    assert all(check.keys() == {"check", "ok", "detail", "remedy"} for check in checks)
    report = program.folder / "report.zip"
    assert program.json("doctor", "--report", str(report))[0] == code
    with zipfile.ZipFile(report) as bundle:
        assert {"about.json", "checks.json", "settings.toml", "logs/host.log"} <= set(bundle.namelist())
    _, chinese, _ = program("doctor", "--lang", "zh_CN")
    assert "磁盘空间: 剩余" in chinese
    code, refused = program.json("doctor", "--report", str(program.folder / "gone" / "report.zip"))
    assert (code, refused[-1]["code"]) == (1, "database_error")
    code, models = program.json("models", "list")
    assert code == 0
    assert any(model["ref"].startswith("local") for model in models)
    assert not any(model["ref"].startswith("script") for model in models)
    model = program.script([{"text": "one"}, {"usage": {"input": 11, "output": 3, "cost_usd": 0.5}}])
    program("chat", "x", "--model", model, "--no-servers")
    for by in ("day", "model", "session", "server"):
        code, rows = program.json("usage", "--by", by)
        assert code == 0, by
        assert rows or by == "server", by


def test_an_interrupt_while_the_program_starts_ends_it_quietly(program):
    for wait in (0.0, 0.1, 0.25):
        process = program.start("tools", "list")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)  # somewhere between the start of Python and the first line of a verb
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        # Else Python itself was not up yet.
        if re.search(rb'File "[^"]*desktop_host', err) or process.returncode in (0, 130):
            assert (process.returncode in (0, 130), b"Traceback" in err) == (True, False), err


def test_values_of_the_settings_file_that_are_not_used_are_told_and_kept(program):
    program("settings", "set", "tools.max_steps", "7")
    file = program.home / "profiles" / "default" / "settings.toml"
    file.write_text(file.read_text() + '[general]\ntheme = "pink"\n')
    code, out, err = program("settings", "get", "tools.max_steps")
    assert (code, out) == (0, "7\n")
    assert "general.theme" in err
    assert 'theme = "pink"' in file.read_text()


def test_a_broken_settings_file_is_named_and_left_alone(program):
    program("settings", "get")
    file = program.home / "profiles" / "default" / "settings.toml"
    file.write_text("[general]\ntheme = \n")
    code, objects = program.json("settings", "get")
    assert (code, objects[-1]["code"]) == (2, "bad_settings")
    assert "settings.toml" in json.dumps(objects[-1])
    assert file.read_text() == "[general]\ntheme = \n"


def test_the_bundled_knowledge_server_is_reached(program):
    (program.folder / "docs").mkdir()
    (program.folder / "docs" / "sky.md").write_text("# Sky\n\nThe sky is blue by day.\n")
    assert program("knowledge", "index", "docs")[0] == 0
    code, hits = program.json("knowledge", "search", "sky blue")
    assert (code, hits[0]["path"]) == (0, "sky.md")
    code, objects = program.json("knowledge", "index", "nowhere")
    assert (code, objects[0]["code"]) == (2, "not_found")
    assert program("servers", "add", "kb", "--", sys.executable, "-m", "desktop_host", "knowledge", "serve", "--folder",
                   str(program.folder / "docs"))[0] == 0  # fmt: skip
    code, (result,) = program.json("tools", "call", "kb", "search_knowledge", "--args", '{"query":"blue"}')
    assert code == 0
    assert "blue" in json.dumps(result["content"])


def test_wrong_words_exit_2_without_a_trace(program):
    for argv in (["sesions"], ["sessions"], ["chat"], ["chat", "x", "--nope"], ["--lang", "fr", "usage"]):
        code, out, err = program(*argv)
        assert (code, out) == (2, ""), argv
        assert err.startswith("desktop-host: "), argv
        assert "Traceback" not in err
    assert not program.home.exists() or not any(program.home.rglob("host.db"))
    code, out, _ = program("--help")
    assert code == 0
    assert "servers add" in out
