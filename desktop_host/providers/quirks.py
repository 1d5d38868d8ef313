"""What an address was found not to take, and how a refused request is put right and sent once more."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from desktop_host.core.errors import ModelFault
from desktop_host.core.models import ModelNotice
from desktop_host.core.values import FrozenDict
from desktop_host.providers.toolset import WireTools

TOOL_LIMIT = 128
"""How many tools OpenAI takes."""
_DROPPABLE = (
    "thinking.block_binding", "block_binding", "thinking.display", "output_config", "cache_control",
    "reasoning.encrypted_content", "reasoning.summary", "reasoning.effort", "reasoning_effort", "prompt_cache_key",
    "parallel_tool_calls", "stream_options", "temperature", "truncation", "tool_choice", "thinking", "reasoning",
    "include", "store", "strict", "stop_sequences", "stop", "max_completion_tokens", "max_output_tokens", "max_tokens",
)  # fmt: skip
"""Parameters that can be left out, longest first where one name holds another."""
_ALIAS = {
    "block_binding": "thinking.block_binding",
    "summary": "reasoning.summary",
    "reasoning.encrypted_content": "include",
}
_SAID = frozenset({"temperature", "stop", "stop_sequences", "reasoning_effort", "reasoning.effort", "output_config"})
"""Left out at the cost of something a person asked for."""
_LIMIT_OVER = re.compile(r"exceed context limit: (\d+) \+ (\d+) > (\d+)")
_LIMIT_MODEL = re.compile(r"max_(?:completion_|output_)?tokens[^0-9]*(\d+)\D+?(\d+)", re.I)

_FIXABLE = (400, 404, 413, 415, 422, 500)
_IMAGE = re.compile(r"\bimage(?:_url|_dimensions_too_large|s)?\b|vision|multimodal", re.I)
_UNSUPPORTED = re.compile(r"support|unknown variant|multimodal|vision|mmproj", re.I)
_NO_SYSTEM = re.compile(
    r"system role not supported|system role is not|does not support (?:the )?system|system messages? (?:is|are) not",
    re.I,
)
_DEMANDED = re.compile(r"passed back|missing|required|must (?:include|contain|be)", re.I)
_NO_TOOLS = re.compile(r"does not support (?:tools|function)|enable-auto-tool-choice|tool use is not supported", re.I)


@dataclass(slots=True)
class Quirks:
    """Learned of one model at one address; kept as long as the connection."""

    without: set[str] = field(default_factory=set)
    quarantined: set[str] = field(default_factory=set)
    reduced: bool = False
    tool_limit: int | None = None
    max_tokens: int | None = None
    no_images: bool = False
    no_tools: bool = False
    no_system: bool = False
    echo: str | None = None
    """Whether reasoning text goes back: `all`, `none`, or with calls alone (None)."""


@dataclass(slots=True)
class Draft:
    """What holds for one request alone."""

    max_tokens: int | None = None
    strip_thinking: bool = False
    no_images: bool = False
    tried: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Step:
    """A repair that was made."""

    key: str
    notice: ModelNotice | None = None


def notice(code: str, **params: Any) -> ModelNotice:
    """A notice with its parameters."""
    return ModelNotice(code, FrozenDict(params))


def repair(fault: ModelFault, quirks: Quirks, draft: Draft, tools: WireTools) -> Step | None:
    """Change what is sent so that this refusal should not come again; None where there is no way."""
    text = str(fault.params.get("detail", ""))
    param = str(fault.params.get("param", ""))
    if fault.params.get("status") in _FIXABLE:
        step = (
            _drop_images(text, quirks, draft, fault.code)
            or _drop_tools(text, quirks, tools, fault)
            or _fold_system(text, quirks)
        )
        if step is not None:
            return step
    match fault.code:
        case "unsupported_param":
            return _drop_param(text, param, quirks)
        case "bad_tool_schema":
            return _drop_tool(text, param, fault, quirks, tools)
        case "thinking_binding" | "bad_history":
            return _echo(text, quirks) or _strip(fault.code, draft)
        case "context_overflow":
            return _lower(text, draft)
        case "protocol_error" if fault.params.get("status") in (400, 422):
            return _lower_for_model(text, quirks) or _drop_param(text, param, quirks)
    return None


def apply(body: dict[str, Any], without: set[str]) -> None:
    """Take out of a body what an address does not take; `a.b` is `b` within `a`."""
    for name in without:
        outer, dot, inner = name.partition(".")
        if not dot:
            body.pop(outer, None)
        elif isinstance(body.get(outer), dict):
            body[outer].pop(inner, None)
            if not body[outer]:
                del body[outer]


def _drop_images(text: str, quirks: Quirks, draft: Draft, code: str) -> Step | None:
    """Images go if the model takes none, or if those in the conversation would have every request refused."""
    if draft.no_images or not (code == "too_large" or _IMAGE.search(text)):
        return None
    draft.no_images = True
    if _UNSUPPORTED.search(text):
        quirks.no_images = True
    return Step("images", notice("images_dropped", detail=text))


def _drop_tools(text: str, quirks: Quirks, tools: WireTools, fault: ModelFault) -> Step | None:
    if not tools.specs or not _NO_TOOLS.search(text):
        return None
    quirks.no_tools = True
    return Step("tools", notice("tools_unsupported", model=fault.params.get("model", ""), detail=text))


def _fold_system(text: str, quirks: Quirks) -> Step | None:
    """Some models' templates know no system message: its text goes before the first message then."""
    if quirks.no_system or not _NO_SYSTEM.search(text):
        return None
    quirks.no_system = True
    return Step("system")


def _drop_param(text: str, param: str, quirks: Quirks) -> Step | None:
    low = text.lower()
    for name in ([param] if param in _DROPPABLE else []) + [n for n in _DROPPABLE if n in low]:
        chosen = _ALIAS.get(name, name)
        if chosen in quirks.without:
            continue
        quirks.without.add(chosen)
        return Step(f"param:{chosen}", notice("param_dropped", param=chosen) if chosen in _SAID else None)
    return None


def _drop_tool(text: str, param: str, fault: ModelFault, quirks: Quirks, tools: WireTools) -> Step | None:
    if "array_above_max_length" in (fault.params.get("vendor_code"), text) or "array too long" in text.lower():
        if quirks.tool_limit is not None:
            return None
        quirks.tool_limit = TOOL_LIMIT
        return Step("tool_limit")
    spec = tools.culprit(text, param)
    if spec is not None:
        quirks.quarantined.add(spec.wire_name)
        return Step(
            f"tool:{spec.wire_name}",
            notice("tool_quarantined", server=spec.server, tool=spec.name, detail=text),
        )
    if not quirks.reduced and tools.specs:
        quirks.reduced = True
        return Step("reduced")
    return None


def _echo(text: str, quirks: Quirks) -> Step | None:
    """Some servers demand the reasoning of earlier turns, others refuse it."""
    if "reasoning_content" not in text or quirks.echo is not None:
        return None
    quirks.echo = "all" if _DEMANDED.search(text) else "none"
    return Step("echo")


def _strip(code: str, draft: Draft) -> Step | None:
    if draft.strip_thinking:
        return None
    draft.strip_thinking = True
    return Step("strip", notice("thinking_dropped") if code == "thinking_binding" else notice("history_repaired"))


def _lower(text: str, draft: Draft) -> Step | None:
    found = _LIMIT_OVER.search(text)
    if not found:
        return None
    used, _, limit = (int(n) for n in found.groups())
    room = limit - used
    if room < 256:
        return None
    draft.max_tokens = room
    return Step("max_tokens")


def _lower_for_model(text: str, quirks: Quirks) -> Step | None:
    found = _LIMIT_MODEL.search(text)
    if not found or quirks.max_tokens is not None:
        return None
    numbers = sorted(int(n) for n in found.groups())
    if numbers[0] < 16 or numbers[0] == numbers[1]:
        return None
    quirks.max_tokens = numbers[0]
    return Step("model_max_tokens")
