"""A tool's result before the model gets it: a part selected, images dropped, text cut."""

from __future__ import annotations

import asyncio
import importlib
import json
from dataclasses import replace
from typing import Any

from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import ContentBlock, EmbeddedResource, Image, Outcome, Text
from desktop_host.core.toolkit import PostRule
from desktop_host.core.values import canonical, freeze, thaw
from desktop_host.engine.conversation import cut


async def check(rule: PostRule) -> None:
    """See that a rule can be used.

    Raises:
        UserFault: `bad_settings`, its JMESPath does not compile.
    """
    if not rule.select:
        return
    jmespath = await asyncio.to_thread(importlib.import_module, "jmespath")
    try:
        jmespath.compile(rule.select)
    except jmespath.exceptions.JMESPathError as error:
        raise UserFault(
            "bad_settings", f"{rule.select!r} is no JMESPath: {error}", key="select", value=rule.select,
            reason="bad_jmespath", detail=str(error).splitlines()[0],
        ) from error  # fmt: skip


async def processed(outcome: ToolOutcome, rule: PostRule) -> ToolOutcome:
    """The outcome after the rule. A rule that does not fit the result loses nothing: the whole goes on, with a note.

    Failures are left as they are: what went wrong must be read.
    """
    if outcome.outcome is not Outcome.OK:
        return outcome
    if rule.drop_images and any(isinstance(b, Image) for b in outcome.content):
        kept = tuple(b for b in outcome.content if not isinstance(b, Image))
        dropped = len(outcome.content) - len(kept)
        outcome = replace(outcome, content=(*kept, Text(f"[{dropped} image(s) left out by a rule of the person's]")))
    if rule.select:
        outcome = await _selected(outcome, rule.select)
    if rule.max_chars:
        outcome = replace(outcome, content=_shortened(outcome.content, rule.max_chars))
    return outcome


async def _selected(outcome: ToolOutcome, expression: str) -> ToolOutcome:
    jmespath = await asyncio.to_thread(importlib.import_module, "jmespath")
    value = thaw(outcome.structured) if outcome.structured is not None else _json_of(outcome.content)
    if value is None:
        return _noted(outcome, "the result is no JSON")
    try:
        found = await asyncio.to_thread(jmespath.search, expression, value)
    except jmespath.exceptions.JMESPathError as error:
        return _noted(outcome, str(error).splitlines()[0])
    if found is None:
        return _noted(outcome, f"{expression!r} selects nothing of it")
    frozen = freeze(found)
    text = found if isinstance(found, str) else canonical(frozen)
    others = tuple(b for b in outcome.content if not isinstance(b, Text))
    structured = frozen if outcome.structured is not None else None
    return replace(outcome, content=(Text(text), *others), structured=structured)


def _json_of(content: tuple[ContentBlock, ...]) -> Any:
    text = "".join(b.text for b in content if isinstance(b, Text)).strip()
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _noted(outcome: ToolOutcome, why: str) -> ToolOutcome:
    note = Text(f"[the person's rule for this tool was not used: {why}]")
    return replace(outcome, content=(*outcome.content, note))


def _shortened(content: tuple[ContentBlock, ...], limit: int) -> tuple[ContentBlock, ...]:
    left = limit
    out: list[ContentBlock] = []
    for block in content:
        match block:
            case Text(text=text):
                out.append(replace(block, text=cut(text, max(left, 0))) if left > 0 else Text(_gone(text)))
                left -= len(text)
            case EmbeddedResource(text=str(text)):
                out.append(replace(block, text=cut(text, max(left, 0)) if left > 0 else _gone(text)))
                left -= len(text)
            case _:
                out.append(block)
    return tuple(out)


def _gone(text: str) -> str:
    return f"[{len(text):,} characters left out by a rule of the person's]"
