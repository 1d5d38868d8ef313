"""What a server offers: tools, resources and prompts in one store whose last error is state, not an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import mcp_types as T
from mcp import Client, MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from desktop_host.core.servers import PromptSpec, ResourceSpec
from desktop_host.core.tools import ToolSpec
from desktop_host.servers import translate
from desktop_host.servers.tap import WHOLE, items
from desktop_host.servers.tool_tasks import supports
from desktop_host.servers.wiring import Deadline, Floor, Wiring

DEBOUNCE_S = 0.25
"""From the first `list_changed` to the fetch; what comes in between shares it."""
PAGES = 200
"""Pages of one list; a paginator that never ends must not hang us."""
KINDS = ("tools", "resources", "prompts")

_Spec = TypeVar("_Spec", ToolSpec, ResourceSpec, PromptSpec)


class Catalog:
    """The lists of one connection. A list that cannot be fetched keeps what it had and its `errors` entry says why."""

    def __init__(
        self, wiring: Wiring, floor: Floor, client: Client, changed: Callable[[tuple[str, ...]], None]
    ) -> None:
        self._wiring, self._floor, self._client, self._changed = wiring, floor, client, changed
        self.tools: tuple[ToolSpec, ...] = ()
        self.resources: tuple[ResourceSpec, ...] = ()
        self.prompts: tuple[PromptSpec, ...] = ()
        self.as_tasks: frozenset[str] = frozenset()
        """Names of the tools that only run as a task."""
        self.errors: dict[str, str] = {}
        """By kind: why the last fetch failed."""
        self._stale: set[str] = set()
        self._refresher: asyncio.Task[None] | None = None
        self._loaded: set[str] = set()

    def offers(self, kind: str) -> bool:
        """Whether the server declares a kind. One that declares nothing at all is asked for tools."""
        has = self._client.server_capabilities
        declared = {"tools": has.tools, "resources": has.resources, "prompts": has.prompts}
        return declared[kind] is not None or (kind == "tools" and not any(declared.values()))

    async def load(self, kinds: Iterable[str] = KINDS, *, tell: bool = True) -> None:
        """Fetch lists now, side by side; tells which of them are others than before."""
        wanted = [k for k in kinds if self.offers(k)]
        done = await asyncio.gather(*(self._load(k) for k in wanted))
        different = tuple(k for k, new in zip(wanted, done, strict=True) if new)
        if different and tell:
            self._changed(different)

    async def ensure(self, kind: str) -> None:
        """Fetch a list unless it has been fetched."""
        if kind not in self._loaded:
            await self.load((kind,))

    def refresh_soon(self, kind: str) -> None:
        """Fetch a list after the debounce. Also for kinds that were never declared: servers forget to."""
        self._stale.add(kind)
        if self._refresher is None or self._refresher.done():
            self._refresher = asyncio.create_task(self._refresh())

    async def close(self) -> None:
        """Stop fetching."""
        if self._refresher is not None:
            self._refresher.cancel()
            await asyncio.wait({self._refresher})

    async def _refresh(self) -> None:
        while self._stale:
            await self._wiring.clock.sleep(DEBOUNCE_S)
            kinds, self._stale = self._stale, set()
            await self.load(sorted(kinds))

    async def _load(self, kind: str) -> bool:
        before = getattr(self, kind)
        try:
            async with self._floor.within(Deadline.to_connect(self._wiring.config.timeouts)):
                found = await {"tools": self._tools, "resources": self._resources, "prompts": self._prompts}[kind]()
        except MCPError as error:
            if error.code != T.METHOD_NOT_FOUND:
                self._failed(kind, f"{error.message} ({error.code})")
                return False
            found = ()
        except TimeoutError:
            self._failed(kind, "no answer in time")
            return False
        except (ValidationError, RuntimeError) as error:
            self._failed(kind, str(error).splitlines()[0] if str(error) else type(error).__name__)
            return False
        self._loaded.add(kind)
        self.errors.pop(kind, None)
        setattr(self, kind, found)
        return bool(found != before)

    def _failed(self, kind: str, why: str) -> None:
        self.errors[kind] = self._wiring.redact(why)
        self._wiring.log.add("host", f"the list of {kind} could not be fetched: {why}", "warning")

    async def _tools(self) -> tuple[ToolSpec, ...]:
        name = self._wiring.config.name
        specs: dict[str, ToolSpec] = {}
        modern, as_tasks = self._client.protocol_version in MODERN_PROTOCOL_VERSIONS, set()
        # The era without handshake knows no `taskSupport`: there the server says with each answer what it is.
        tasks = modern or supports(self._client)
        async for page in self._pages(self._client.list_tools):
            # The SDK leaves out tools whose mirrored headers are invalid, as the specification wants.
            kept = {t.name for t in page.tools}
            whole = _whole(page)
            for raw in items(whole, "tools"):
                if not isinstance(raw.get("name"), str) or not raw["name"]:
                    self._wiring.log.add("host", f"a tool without a name was left out: {str(raw)[:200]}", "warning")
                elif raw["name"] in specs:
                    self._wiring.log.add("host", f"a second tool named {raw['name']!r} was left out", "warning")
                else:
                    specs[raw["name"]] = translate.tool_spec(name, raw, dropped=raw["name"] not in kept, tasks=tasks)
                    as_tasks |= {raw["name"]} if translate.needs_task(raw) and not modern else set()
        self.as_tasks = frozenset(as_tasks)
        return tuple(sorted(specs.values(), key=lambda s: s.name))

    async def _resources(self) -> tuple[ResourceSpec, ...]:
        found: list[ResourceSpec] = []
        async for page in self._pages(self._client.list_resources):
            found += self._specs(page, "resources", template=False)
        try:
            async for page in self._pages(self._client.list_resource_templates):
                found += self._specs(page, "resourceTemplates", template=True)
        except MCPError as error:
            if error.code != T.METHOD_NOT_FOUND:  # Many servers have resources but no templates.
                raise
        return tuple(found)

    def _specs(self, page: Any, field: str, template: bool) -> list[ResourceSpec]:
        name = self._wiring.config.name
        made = (translate.resource_spec(name, raw, template) for raw in items(_whole(page), field))
        return [spec for spec in made if spec is not None]

    async def _prompts(self) -> tuple[PromptSpec, ...]:
        found: list[PromptSpec] = []
        async for page in self._pages(self._client.list_prompts):
            made = (translate.prompt_spec(self._wiring.config.name, raw) for raw in items(_whole(page), "prompts"))
            found += [spec for spec in made if spec is not None]
        return tuple(found)

    async def _pages(self, verb: Callable[..., Any]) -> Any:
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(PAGES):
            page = await verb(cursor=cursor)
            yield page
            cursor = page.next_cursor
            if not cursor or cursor in seen:
                return
            seen.add(cursor)


def _whole(page: Any) -> dict[str, Any]:
    whole = (page.meta or {}).get(WHOLE)
    return whole if isinstance(whole, dict) else {}
