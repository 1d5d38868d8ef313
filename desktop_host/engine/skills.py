"""Skills in a session: what a message wakes, what the model reads of them, and which of their tools it is shown."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from desktop_host.core.errors import HostError
from desktop_host.core.events import Notice, SkillsChosen
from desktop_host.core.skills import SkillPlan
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict

if TYPE_CHECKING:
    from desktop_host.engine.context import SessionContext

GROUP = "skills"
"""Group of the built-in tools that work with skills."""
_log = logging.getLogger(__name__)


async def choose(context: SessionContext, said: str) -> SkillPlan:
    """Choose the skills of one message and journal the choice; tell what a chosen one lacks.

    Raises:
        UserFault: `not_found`, a skill the session is limited to is not there.
    """
    source = context.parts.skills
    if source is None:
        await context.emit(SkillsChosen())
        return SkillPlan()
    plan = await source.plan(context.session, said, context.options.skills, context.options.roots)
    text = "\n\n".join(body for body in plan.bodies if body)
    await context.emit(SkillsChosen(plan.chosen, text, plan.suggested))
    for need in plan.needs:
        await context.emit(
            Notice("skill_needs", FrozenDict({"skill": need.skill, "kind": need.kind, "name": need.name}))
        )
    for folder in plan.untrusted:
        await context.emit(Notice("skill_project", FrozenDict({"folder": folder})))
    if plan.route and plan.route != context.model_ref:
        skill = plan.chosen[0].name
        await context.emit(Notice("skill_route", FrozenDict({"skill": skill, "route": plan.route})))
    return plan


async def catalogue(context: SessionContext) -> str:
    """The part of the system text about skills."""
    source = context.parts.skills
    if source is None or context.options.skills == () or not skilled(context):
        return ""
    window = await _window(context)
    return await source.catalogue(context.session, context.options.skills, context.options.roots, window)


def without_skills(context: SessionContext, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The tools that a session may be told of: those of skills only where it has skills."""
    if context.options.skills != () and skilled(context):
        return tools
    return tuple(t for t in tools if t.group != GROUP)


def skilled(context: SessionContext) -> bool:
    """Whether the model is told of skills at all.

    A small local model reads some 50 tokens a second: it gets a skill when one wakes, not the list of all.
    """
    return not context.model_ref.startswith("local") or context.conversation.skilled


async def _window(context: SessionContext) -> int | None:
    try:
        entries = await context.parts.models.entries()
    except HostError:
        _log.warning("the model's context is unknown", exc_info=True)
        return None
    return next((e.context_window for e in entries if e.ref == context.model_ref), None)
