"""Questions to the person at the terminal, and their answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import urlsplit

from desktop_host.cli.forms import fill
from desktop_host.cli.output import visible
from desktop_host.cli.render import block_text
from desktop_host.core.asks import (
    DAILY_USD,
    Allow,
    Answer,
    ApproveTool,
    Ask,
    DailyCap,
    Dismiss,
    Edited,
    Filled,
    FillForm,
    OpenUrl,
    Refuse,
    ReviewReply,
    ReviewSampling,
    SamplingCost,
)
from desktop_host.core.exchange import RunningCall
from desktop_host.core.permissions import Life, Scope
from desktop_host.core.values import thaw
from desktop_host.i18n import tr

Type: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Asks for a line; None at the end of input."""
Say: TypeAlias = Callable[[str], None]
_GO_ON: dict[str, Answer] = {"y": Allow(), "s": Refuse(stop=True)}


async def decide(ask: Ask, say: Say, type_: Type) -> Answer:
    """Show all of an ask and return the person's answer. The end of input dismisses it."""
    match ask:
        case ApproveTool():
            return await _tool(ask, say, type_)
        case FillForm():
            say(visible(f"? {ask.server}: {ask.message}"))
            _calls(ask.server, ask.calls, say)
            if _enough(ask.round, say) and await _pick(tr("cli.ask.go_on"), _GO_ON, say, type_) == Refuse(stop=True):
                return Refuse(stop=True)
            values = await fill(ask.schema, say, type_)
            return Refuse() if values is None else Filled(values, whole=True)
        case OpenUrl():
            ours = ask.purpose in ("sign_in", "more_access")
            signing = tr(f"cli.ask.{ask.purpose}", server=ask.server) if ours else ""
            say("? " + (signing or visible(f"{ask.server}: {ask.message}")))
            _calls(ask.server, ask.calls, say)
            say(tr("cli.ask.url", url=visible(ask.url), host=visible(_host(ask.url))))
            answers: dict[str, Answer] = {"y": Allow(), "n": Refuse()}
            question = "cli.ask.url_opened" if ask.opened else "cli.ask.url_choice"
            if _enough(ask.round, say):
                answers["s"] = Refuse(stop=True)
            return await _pick(tr(question), answers, say, type_)
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
    if ask.advice is not None:
        say("  " + tr(f"chat.ask.advice.{ask.advice.verdict}", model=ask.advice.model, why=visible(ask.advice.text)))
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
    say(tr("cli.ask.sampling", server=ask.server, model=visible(ask.model), tokens=request.max_tokens))
    _calls(ask.server, ask.calls, say)
    if ask.cost is not None:
        usd = tr("cli.ask.price_unknown") if ask.cost.estimate_usd is None else f"${ask.cost.estimate_usd:.4f}"
        say("  " + tr("cli.ask.cost", usd=usd, spent=ask.cost.spent_tokens, of=ask.cost.daily_tokens,
                      today=f"${ask.cost.spent_usd:.4f}"))  # fmt: skip
    if ask.choice is not None and ask.choice.reason in ("hint", "kin", "priorities"):
        say("  " + tr(f"cli.ask.why.{ask.choice.reason}", hint=visible(ask.choice.hint)))
    if request.tools:
        say("  " + tr("cli.ask.own_tools", names=visible(", ".join(t.name for t in request.tools))))
    if request.system:
        say("  " + tr("cli.ask.system", text=visible(request.system)))
    for message in request.messages:
        text = "\n".join(block_text(block) for block in message.blocks)
        say(f"  {tr(f'cli.role.{message.role.value}')}: {visible(text)}")
    model = await _model(ask, say, type_)
    answer = await _review(say, type_, always=True)
    if isinstance(answer, Allow) and answer.daily is not None:
        answer = Allow(daily=await _cap(ask, say, type_))
    return replace(answer, model=model) if isinstance(answer, (Allow, Edited)) else answer


async def _cap(ask: ReviewSampling, say: Say, type_: Type) -> DailyCap | None:
    """What the server may use in a day without asking; None where the person gave no sums after all."""
    cost = ask.cost or SamplingCost()
    tokens = await _sum(tr("cli.ask.cap_tokens"), cost.daily_tokens or 50_000, say, type_)
    usd = await _sum(tr("cli.ask.cap_usd"), cost.daily_usd or DAILY_USD, say, type_)
    return None if tokens is None or usd is None else DailyCap(int(tokens), usd)


async def _sum(question: str, usual: float, say: Say, type_: Type) -> float | None:
    while (line := await type_(f"{question} [{usual:g}] ")) is not None:
        try:
            value = float(line) if line.strip() else usual
        except ValueError:
            value = 0.0
        if 0 < value < float("inf"):
            return value
        say(tr("cli.form.number"))
    return None


async def _model(ask: ReviewSampling, say: Say, type_: Type) -> str | None:
    """Another of the models that could answer, where there are several and the person names one."""
    offered = ask.choice.candidates if ask.choice else ()
    if len(offered) < 2:
        return None
    for number, one in enumerate(offered, 1):
        usd = tr("cli.ask.price_unknown") if one.cost_usd is None else f"${one.cost_usd:.4f}"
        say(f"  {number}. {visible(one.ref)} ({usd})")
    while (line := await type_(tr("cli.ask.model_choice", model=visible(ask.model)) + " ")) is not None:
        if not line.strip():
            return None
        if line.strip().isdigit() and 0 < int(line) <= len(offered):
            return offered[int(line) - 1].ref
        say(tr("cli.ask.again", letters=f"1-{len(offered)}"))
    return None


def _calls(server: str, calls: tuple[RunningCall, ...], say: Say) -> None:
    """During which call it asks; of several, that nothing tells which."""
    if len(calls) > 1:
        say("  " + tr("cli.ask.during_several"))
    for call in calls:
        arguments = json.dumps(thaw(call.arguments), ensure_ascii=False)
        name = f"{server}.{call.name}" if call.kind == "tool" else call.name
        say("  " + tr("cli.ask.during", call=visible(f"{name} {arguments}")))


def _enough(count: int, say: Say) -> bool:
    """Whether the server asked before during this call; says so."""
    if count > 1:
        say("  " + tr("cli.ask.round", n=count))
    return count > 1


async def _review(say: Say, type_: Type, *, always: bool = False) -> Answer:
    answers: dict[str, Answer] = {"y": Allow(), "e": Edited(""), "n": Refuse()}
    if always:
        answers["a"] = Allow(daily=DailyCap(1, DAILY_USD))
    picked = await _pick(tr("cli.ask.sampling_choice" if always else "cli.ask.review_choice"), answers, say, type_)
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
