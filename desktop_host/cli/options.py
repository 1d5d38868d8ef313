"""The options of `chat` and `sessions resume` to what the engine takes."""

from __future__ import annotations

import json
import mimetypes
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from desktop_host.cli.context import folder, read_bytes, read_text
from desktop_host.core.errors import UserFault
from desktop_host.core.permissions import Effect, Life, Rule
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.engine.host import InputFile

ORIGIN = "command-line"
ANSWERS: dict[str, frozenset[str]] = {
    "tool": frozenset({"allow", "deny"}),
    "elicitation": frozenset({"accept", "decline", "cancel"}),
    "url": frozenset({"accept", "decline", "cancel"}),
    "sampling": frozenset({"accept", "decline"}),
    "sampling_reply": frozenset({"accept", "decline"}),
}
"""Kinds of asks to the actions an answers file may give."""


def expanded(name: str | None) -> Path | None:
    """A path a person wrote, absolute."""
    return None if name is None else Path(name).expanduser().absolute()


def session_options(ns: Namespace, kept: SessionOptions | None = None) -> SessionOptions:
    """What the session runs with: what was `kept` with it, changed by what was said now.

    Raises:
        UserFault: `not_found`, a `--root` that is no folder; `usage`, options that contradict each other.
    """
    if ns.no_skills and ns.skill:
        raise UserFault("usage", "--skill and --no-skills exclude each other", reason="contradiction",
                        options="--skill, --no-skills")  # fmt: skip
    if ns.model is not None and not ns.model.strip():
        raise UserFault("usage", "--model is empty", reason="no_option_value", option="--model")
    rules = (
        *(Rule(Effect.ALLOW, glob, life=Life.SESSION, origin=ORIGIN) for glob in ns.allow),
        *(Rule(Effect.DENY, glob, life=Life.SESSION, origin=ORIGIN) for glob in ns.deny),
    )
    options = kept or SessionOptions()
    said: dict[str, Any] = {
        "model": None if ns.model is None else _lasting(ns.model),
        "system": ns.system,
        "servers": () if ns.no_servers else None,
        "roots": tuple(str(folder(root, "--root")) for root in ns.root) or None,
        "rules": tuple(dict.fromkeys((*options.rules, *rules))) if rules else None,
        "effort": ns.effort,
        "max_steps": ns.max_steps,
        "turn_timeout_s": ns.timeout,
        "skills": () if ns.no_skills else tuple(ns.skill) or None,
        "budget_usd": ns.budget,
        "token_budget": ns.token_budget,
    }
    return replace(options, **{name: value for name, value in said.items() if value is not None})


def check_prompts(ns: Namespace) -> None:
    """Refuse a `chat` that says nothing.

    Raises:
        UserFault: `usage`.
    """
    said = [*([] if ns.prompt_word is None else [ns.prompt_word]), *ns.prompt]
    if not said:
        raise UserFault("usage", "chat needs a PROMPT, --prompt TEXT, or - for standard input", reason="no_prompt")
    if any(not text.strip() for text in said):
        raise UserFault("usage", "a prompt is empty", reason="empty_prompt")
    if said.count("-") > 1:
        raise UserFault("usage", "standard input can be read once: one - is enough", reason="stdin_twice")


def _lasting(ref: str) -> str:
    """A script's REF with its whole path, so that the session goes on from any folder."""
    kind, colon, path = ref.partition(":")
    return f"script:{Path(path).expanduser().absolute()}" if colon and kind == "script" and path else ref


def attachments(names: list[str]) -> tuple[InputFile, ...]:
    """The files that go with a message. Blocking.

    Raises:
        HostError: one that cannot be read.
    """
    files = []
    for name in names:
        mime, encoding = mimetypes.guess_type(name)
        data = read_bytes(name)
        if mime is None or encoding is not None:
            mime = "application/octet-stream" if b"\0" in data[:8192] or encoding else "text/plain"
        files.append(InputFile(Path(name).name, mime, data))
    return tuple(files)


def read_answers(name: str) -> tuple[FrozenDict, ...]:
    """The answers of `--answers FILE`: a JSON list of `{kind, action, …}`, used in order by kind. Blocking.

    Raises:
        UserFault: `bad_config` with line and column, or with the entry that is wrong; `not_found`.
    """
    text = read_text(name).removeprefix("\ufeff")
    try:
        answers = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserFault(
            "bad_config", f"{name}: not JSON: {error.msg} (line {error.lineno}, column {error.colno})",
            reason="not_json", file=name, detail=error.msg, line=error.lineno, column=error.colno,
        ) from None  # fmt: skip
    if not isinstance(answers, list):
        raise UserFault("bad_config", f"{name}: a JSON list is wanted", reason="not_a_list", file=name)
    for number, answer in enumerate(answers, 1):
        problem = _problem(answer)
        if problem:
            raise UserFault("bad_config", f"{name}: answer {number}: {problem}", reason="bad_answer", file=name,
                            number=number, detail=problem)  # fmt: skip
    return tuple(freeze(answer) for answer in answers)


def _problem(answer: Any) -> str | None:
    """What is wrong with one answer."""
    if not isinstance(answer, dict):
        return "a JSON object is wanted"
    kind, action = answer.get("kind"), answer.get("action")
    if kind not in ANSWERS:
        return f"kind {kind!r} is none of {', '.join(ANSWERS)}"
    if action not in ANSWERS[kind]:
        return f"action {action!r} is none of {', '.join(sorted(ANSWERS[kind]))}"
    if kind == "elicitation" and action == "accept" and not isinstance(answer.get("content", {}), dict):
        return "content: a JSON object is wanted"
    edit = answer.get("edit")
    if kind.startswith("sampling") and edit is not None and not isinstance(edit, str):
        return "edit: text or null is wanted"
    return None
