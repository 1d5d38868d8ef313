"""Questions to the person at the terminal, and their answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import urlsplit

from desktop_host.cli.forms import fill
from desktop_host.cli.output import visible
from desktop_host.cli.render import block_text
from desktop_host.core.asks import (
    Allow,
    Answer,
    ApproveTool,
    Ask,
    Dismiss,
    Edited,
    Filled,
    FillForm,
    OpenUrl,
    Refuse,
    ReviewReply,
    ReviewSampling,
)
from desktop_host.core.permissions import Life, Scope
from desktop_host.core.values import thaw
from desktop_host.i18n import tr

Type: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Asks for a line; None at the end of input."""
Say: TypeAlias = Callable[[str], None]


async def decide(ask: Ask, say: Say, type_: Type) -> Answer:
    """Show all of an ask and return the person's answer. The end of input dismisses it."""
    match ask:
        case ApproveTool():
            return await _tool(ask, say, type_)
        case FillForm():
            say(visible(f"? {ask.server}: {ask.message}"))
            values = await fill(ask.schema, say, type_)
            return Refuse() if values is None else Filled(values)
        case OpenUrl():
            say(visible(f"? {ask.server}: {ask.message}"))
            say(tr("cli.ask.url", url=visible(ask.url), host=visible(_host(ask.url))))
            return await _pick(tr("cli.ask.url_choice"), {"y": Allow(), "n": Refuse()}, say, type_)
        case ReviewSampling():
            return await _sampling(ask, say, type_)
        case ReviewReply():
            say(tr("cli.ask.reply", server=ask.server, model=ask.model))
            say(visible("\n".join(block_text(block) for block in ask.blocks)))
            return await _review(say, type_)


async def _tool(ask: ApproveTool, say: Say, type_: Type) -> Answer:
    """Everything a decision needs: who, what it says of itself, and the arguments in full."""
    name = f"{ask.server}.{ask.tool}"
    say(tr("cli.ask.tool", name=visible(name), title=visible(ask.title)))
    if ask.description:
        say("  " + visible(ask.description).replace("\n", "\n  "))
    say("  " + tr("cli.ask.trusted" if ask.trusted else "cli.ask.untrusted", server=ask.server))
    if ask.hints.read_only:
        say("  " + tr("cli.ask.read_only"))
    elif ask.hints.destructive:
        say("  " + tr("cli.ask.destructive"))
    if ask.changed:
        say("  " + tr("cli.ask.changed", before=visible(ask.previous_description or "")))
    arguments = json.dumps(thaw(ask.arguments), ensure_ascii=False, indent=2)
    say("  " + visible(arguments).replace("\n", "\n  "))
    digest = ask.tool_digest or None
    return await _pick(
        tr("cli.ask.tool_choice"),
        {
            "y": Allow(Life.ONCE, Scope.CALL, digest),
            "s": Allow(Life.SESSION, Scope.TOOL, digest),
            "t": Allow(Life.PROFILE, Scope.TOOL, digest),
            "v": Allow(Life.PROFILE, Scope.SERVER, digest),
            "n": Refuse(),
        },
        say,
        type_,
    )


async def _sampling(ask: ReviewSampling, say: Say, type_: Type) -> Answer:
    request = ask.request
    say(tr("cli.ask.sampling", server=ask.server, model=ask.model, tokens=request.max_tokens))
    if request.system:
        say("  " + tr("cli.ask.system", text=visible(request.system)))
    for message in request.messages:
        text = "\n".join(block_text(block) for block in message.blocks)
        say(f"  {tr(f'cli.role.{message.role.value}')}: {visible(text)}")
    return await _review(say, type_)


async def _review(say: Say, type_: Type) -> Answer:
    picked = await _pick(tr("cli.ask.review_choice"), {"y": Allow(), "e": Edited(""), "n": Refuse()}, say, type_)
    if not isinstance(picked, Edited):
        return picked
    lines: list[str] = []
    say(tr("cli.ask.edit"))
    while (line := await type_("… ")) is not None and line != ".":
        lines.append(line)
    return Edited("\n".join(lines))


async def _pick(question: str, answers: dict[str, Answer], say: Say, type_: Type) -> Answer:
    """Ask until one of the letters comes; a mere Return decides nothing."""
    while True:
        line = await type_(question + " ")
        if line is None:
            return Dismiss()
        found = answers.get(line.strip().lower())
        if found is not None:
            return found
        say(tr("cli.ask.again", letters=" ".join(answers)))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "?"
    except ValueError:
        return "?"
