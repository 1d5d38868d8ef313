"""The verbs `tools`, `resources` and `prompts`: what servers offer, used by hand and without a model."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from desktop_host.cli.context import Run, Verb, json_object
from desktop_host.cli.render import block_text, clipped, progress_text
from desktop_host.cli.servers import running
from desktop_host.core.codec import block_to_mcp
from desktop_host.core.errors import HostError, KnownFault, UserFault, exit_code
from desktop_host.core.events import AskSettled
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.messages import EmbeddedResource, Message, Outcome
from desktop_host.core.servers import ServerState
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, thaw
from desktop_host.i18n import current, tr

REFUSED = ("refuse", "policy")


def tool_object(spec: ToolSpec) -> dict[str, Any]:
    """One line of `tools list --json`."""
    return {
        "server": spec.server, "tool": spec.name, "title": spec.title, "description": spec.description,
        "wire_name": spec.wire_name, "enabled": spec.enabled, "group": spec.group, "tokens": spec.tokens,
        "problem": spec.problem,
    }  # fmt: skip


def outcome_object(result: ToolOutcome) -> dict[str, Any]:
    """The object of `tools call --json`."""
    return {
        "outcome": result.outcome.value, "content": [block_to_mcp(block) for block in result.content],
        "structured": thaw(result.structured), "duration_ms": round(result.duration_ms, 1),
    }  # fmt: skip


async def _list(run: Run) -> int:
    """The tools of one server, or of all that are enabled; a server that fails hides no other's tools."""
    servers = run.host.servers
    if run.ns.server is not None:
        await running(run, run.ns.server)
        names = [run.ns.server]
    else:
        names = [config.name for config in servers.configs() if config.enabled]
        await asyncio.gather(*(_started(run, name) for name in names))
    rows = []
    for name in names:
        if servers.status(name).state is not ServerState.READY:
            continue
        for spec in map(run.host.toolkit.dressed, servers.tools(name)):
            run.out.item(tool_object(spec))
            mark = "" if spec.enabled and not spec.problem else f" [{_why(spec)}]"
            rows.append([spec.full_name, str(spec.tokens), clipped(spec.description or spec.display_name, 80) + mark])
    run.out.table(rows)
    return 0


def _why(spec: ToolSpec) -> str:
    """For people: what is the matter with a tool."""
    codes = (spec.problem or "").split()
    told = [tr(key) if current().has(key) else key for key in (f"tool.problem.{code}" for code in codes)]
    return " ".join(told) if codes else tr("cli.state.disabled")


async def _started(run: Run, name: str) -> None:
    try:
        await running(run, name)
    except HostError as error:
        run.out.note(tr("cli.servers.not_started", name=name, message=error.message))


async def _call(run: Run) -> int:
    ns = run.ns
    arguments = json_object(await run.stdin.whole() if ns.args == "-" else ns.args, "--args")
    await running(run, ns.server)
    _spec(run, ns.server, ns.tool)

    def progress(step: Progress) -> None:
        run.out.passing(progress_text(step.progress, step.total, step.message))

    async with _refusals(run) as refused:
        result = await run.host.call_by_hand(ns.server, ns.tool, arguments, progress)
    run.out.passed()
    _misfit(ns.server, ns.tool, result)
    _print(run, result)
    if refused:
        run.out.note(tr("remedy.decision_needed"))
        return exit_code("decision_needed")
    return 0 if result.outcome is Outcome.OK else 1


@contextlib.asynccontextmanager
async def _refusals(run: Run) -> AsyncIterator[list[str]]:
    """The asks of a server that nobody was there to answer while the context was open, by their ids."""
    refused: list[str] = []
    reader = run.host.subscribe(None, lossless=True)

    async def watch() -> None:
        async for batch in reader:
            refused.extend(
                stamped.event.ask_id
                for stamped in batch
                if isinstance(stamped.event, AskSettled) and (stamped.event.action, stamped.event.by) == REFUSED
            )

    watching = asyncio.create_task(watch())
    try:
        yield refused
    finally:
        reader.close()
        await watching


def _misfit(server: str, tool: str, result: ToolOutcome) -> None:
    """Arguments that the host did not send are wrong use, not an answer of the tool's.

    Raises:
        UserFault: `usage`, with the field, what is wrong and the form that is wanted.
    """
    raw = result.raw
    if isinstance(raw, FrozenDict) and raw.get("host_error") == "usage":
        faults, form = str(raw.get("faults")), str(raw.get("form") or "{}")
        raise UserFault(
            "usage", f"--args does not fit {server}.{tool}: {faults}", reason="bad_arguments",
            tool=f"{server}.{tool}", field=str(raw.get("field")), faults=faults, form=form,
        )  # fmt: skip


def _spec(run: Run, server: str, tool: str) -> ToolSpec:
    specs = run.host.servers.tools(server)
    for spec in specs:
        if spec.name == tool:
            return spec
    choices = ", ".join(spec.name for spec in specs)
    raise UserFault("not_found", f"the server {server} has no tool {tool!r}; it has: {choices}", reason="tool",
                    name=tool, server=server, choices=choices)  # fmt: skip


def _print(run: Run, result: ToolOutcome) -> None:
    if result.outcome is not Outcome.OK:
        run.out.note(tr(f"cli.outcome.{result.outcome.value}"))
    text = "\n".join(block_text(block) for block in result.content)
    run.out.item(outcome_object(result), text)


async def _resources(run: Run) -> int:
    await running(run, run.ns.server)
    rows = []
    for spec in await run.host.servers.resources(run.ns.server):
        run.out.item({
            "server": spec.server, "uri": spec.uri, "name": spec.name, "title": spec.title,
            "description": spec.description, "mime_type": spec.mime_type, "size": spec.size,
            "template": spec.template,
        })  # fmt: skip
        rows.append([spec.uri, spec.mime_type or "", clipped(spec.title or spec.name, 40),
                     clipped(spec.description or "", 60)])  # fmt: skip
    run.out.table(rows)
    return 0


async def _read(run: Run) -> int:
    """The contents of a resource; bytes go out as bytes where no terminal reads them."""
    await running(run, run.ns.server)
    result = await run.host.servers.read_resource(run.ns.server, run.ns.uri)
    blobs = [b for b in result.content if isinstance(b, EmbeddedResource) and b.blob is not None]
    if run.out.json or len(blobs) != len(result.content) or not blobs or run.out.out.isatty():
        _print(run, result)
    else:
        for block in blobs:
            run.out.out.buffer.write(base64.b64decode(block.blob or ""))
        run.out.out.flush()
    return 0 if result.outcome is Outcome.OK else 1


async def _watch(run: Run) -> int:
    """Tell each update of a resource, until `--count` of them came or `--timeout` seconds are over."""
    ns = run.ns
    await running(run, ns.server)
    seen = 0
    updates = run.host.servers.watch(ns.server, ns.uri)
    try:
        async with asyncio.timeout(ns.timeout):
            async for uri in updates:
                seen += 1
                run.out.item({"server": ns.server, "uri": uri, "count": seen}, uri)
                if ns.count is not None and seen >= ns.count:
                    return 0
    except TimeoutError:
        if ns.count is None:
            return 0
        raise KnownFault(
            "tool_timed_out", f"{seen} of {ns.count} updates of {ns.uri} came within {ns.timeout:g} s",
            reason="watch", server=ns.server, seen=seen, wanted=ns.count, uri=ns.uri, seconds=ns.timeout,
        ) from None  # fmt: skip
    finally:
        close = getattr(updates, "aclose", None)
        if close is not None:
            with contextlib.suppress(RuntimeError):
                await close()
    return 0


async def _prompts(run: Run) -> int:
    await running(run, run.ns.server)
    rows = []
    for spec in await run.host.servers.prompts(run.ns.server):
        run.out.item({
            "server": spec.server, "name": spec.name, "title": spec.title, "description": spec.description,
            "arguments": [
                {"name": a.name, "title": a.title, "description": a.description, "required": a.required}
                for a in spec.arguments
            ],
        })  # fmt: skip
        wanted = " ".join(a.name if a.required else f"[{a.name}]" for a in spec.arguments)
        rows.append([spec.name, wanted, clipped(spec.description or spec.title or "", 80)])
    run.out.table(rows)
    return 0


async def _prompt(run: Run) -> int:
    arguments = json_object(run.ns.args, "--args")
    await running(run, run.ns.server)
    messages: tuple[Message, ...] = await run.host.servers.get_prompt(run.ns.server, run.ns.name, arguments)
    for message in messages:
        text = "\n".join(block_text(block) for block in message.blocks)
        run.out.item(
            {"role": message.role.value, "content": [block_to_mcp(block) for block in message.blocks]},
            f"{tr(f'cli.role.{message.role.value}')}: {text}",
        )
    return 0


VERBS: dict[tuple[str, str | None], Verb] = {
    ("tools", "list"): _list,
    ("tools", "call"): _call,
    ("resources", "list"): _resources,
    ("resources", "read"): _read,
    ("resources", "watch"): _watch,
    ("prompts", "list"): _prompts,
    ("prompts", "get"): _prompt,
}
