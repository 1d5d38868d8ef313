"""The models of a profile: opened by REF, listed for picking, checked, closed.

A vendor's SDK is imported only when one of its models is first asked.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from desktop_host.core.admin import SecretStore, SettingsStore
from desktop_host.core.budgets import Answers, Likeness
from desktop_host.core.diagnosis import Reach
from desktop_host.core.errors import HostError
from desktop_host.core.messages import user
from desktop_host.core.models import ModelEntry, ModelProgress, ModelRequest, Purpose, Quote
from desktop_host.core.ports import ChatModel, Clock
from desktop_host.core.routes import Considered, Needs, find
from desktop_host.core.settings import Endpoint, Network
from desktop_host.core.settings_costs import Cache
from desktop_host.core.telemetry import UNTRACED, Tracing
from desktop_host.providers import known, listing, reach
from desktop_host.providers.cache import Cached
from desktop_host.providers.clients import Connection
from desktop_host.providers.keys import Keys
from desktop_host.providers.listing import Row
from desktop_host.providers.pricing import Priced
from desktop_host.providers.quotes import Quotes
from desktop_host.providers.refs import ANTHROPIC_URL, OPENAI_URL, Local, Remote, Script, parse, remote
from desktop_host.providers.retry import Retrying
from desktop_host.providers.route_facts import RouteFacts
from desktop_host.providers.router import Past, Routed
from desktop_host.providers.traced import Traced
from desktop_host.providers.traits import read_traits

if TYPE_CHECKING:
    from desktop_host.providers.local import LocalModels
    from desktop_host.providers.wiremodel import WireModel

CHECK_TOKENS = 64
_UNREACHABLE = frozenset({"network", "tls", "proxy", "connect_timeout", "overloaded"})
_REFUSED = frozenset({"auth", "permission"})
_Place = tuple[str, str, str, Network]


class Models:
    """Implements `core.admin.ModelAdmin` over vendors, endpoints, the embedded models and scripts."""

    def __init__(
        self,
        settings: SettingsStore,
        secrets: SecretStore,
        clock: Clock,
        *,
        local: LocalModels,
        scripted: Callable[[Path], ChatModel],
        environ: Mapping[str, str] | None = None,
        discover: Sequence[tuple[str, int]] = listing.DISCOVERED,
        answers: Answers | None = None,
        tracing: Tracing = UNTRACED,
        likeness: Likeness | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            settings: endpoints, certificates and proxy of the profile.
            secrets: the vault with the keys.
            clock: what the pauses between tries are measured by.
            local: the embedded models.
            scripted: makes the model of a `script:` REF.
            environ: where vendors' keys are looked for last; None: this process's own.
            discover: `(name, port)` of servers to look for on this machine.
            answers: where answers are kept that may serve again; None: nowhere.
            tracing: where requests are told of.
            likeness: compares questions by meaning, for answers that may serve again.
        """
        self._settings = settings
        self._keys = Keys(secrets, os.environ if environ is None else environ)
        self._clock = clock
        self._local = local
        self._scripted = scripted
        self._discover = tuple(discover)
        self._connections: dict[_Place, Connection] = {}
        self._adapters: dict[tuple[_Place, str], WireModel] = {}
        self._lists: dict[tuple[str, str], list[Row]] = {}
        self._found: list[ModelEntry] = []
        self._answers, self._tracing, self._likeness = answers, tracing, likeness
        self._past = Past()
        self._traits = read_traits()
        self._quotes = Quotes(self.entries, lambda: settings.current().prices, scripted)
        self._facts = RouteFacts(settings, self._quotes, self._usable, self._past.health, clock)

    async def open(self, ref: str) -> ChatModel:
        routes = self._settings.current().routes
        route = find(routes, ref)
        if route is None:
            parse(ref, (r.name for r in routes))
            model = await self._single(ref)
        else:
            model = Routed(route, self._single, self._facts.look, self._past, self._clock)
        if self._answers is None or ref.startswith("script:"):
            return model
        return Cached(model, ref, self._answers, self._cache_rules, self._clock, self._likeness)

    def _cache_rules(self) -> Cache:
        return self._settings.current().cache

    async def window(self, ref: str) -> int | None:
        return await self._facts.window(ref)

    async def quote(self, ref: str, request: ModelRequest, input_tokens: int) -> Quote | None:
        return await self._facts.quote(ref, request, input_tokens)

    async def explain(self, name: str, needs: Needs) -> tuple[Considered, ...]:
        return await self._facts.explain(name, needs)

    async def _single(self, ref: str) -> ChatModel:
        """One model, tried again where that may help, and told of to a collector."""
        named = parse(ref)
        return Traced(await self._trying(named), named, self._tracing)

    async def _trying(self, named: Remote | Local | Script) -> ChatModel:
        if isinstance(named, Remote):
            adapter = await self._adapter(named)
            own = self._settings.current
            return Retrying(Priced(adapter, named.model, named.base_url, lambda: own().prices), self._clock)
        return await self._own(named)

    async def _usable(self, ref: str) -> str | None:
        """Why a model cannot be asked now; None where it can. Asks no network."""
        named = parse(ref)
        if isinstance(named, Remote):
            return None if await self._keys.has(named) else "no_key"
        if isinstance(named, Local):
            own = await asyncio.to_thread(self._local.entries)
            found = next((e for e in own if e.ref == ref), own[0] if own and named.name is None else None)
            return "no_weights" if found is None else found.reason
        return None

    async def check(self, ref: str) -> None:
        named = parse(ref)
        model = await self._adapter(named) if isinstance(named, Remote) else await self._own(named)
        request = ModelRequest((user("Answer with OK."),), max_tokens=CHECK_TOKENS, purpose=Purpose.CLASSIFICATION)
        async with aclosing(model.stream(request)) as events:
            async for _event in events:
                pass

    async def reach(self) -> tuple[Reach, ...]:
        return await reach.look(self._settings.current(), self._keys, self._connection)

    async def entries(self, *, refresh: bool = False) -> tuple[ModelEntry, ...]:
        settings = self._settings.current()
        endpoints = settings.endpoints
        groups: list[Sequence[ModelEntry]] = await asyncio.gather(
            self._vendor("anthropic", ANTHROPIC_URL, "anthropic", known.ANTHROPIC, refresh),
            self._vendor("responses", OPENAI_URL, "openai", known.OPENAI, refresh),
            *(self._endpoint(endpoint, refresh) for endpoint in endpoints),
        )
        if refresh:
            looked = await asyncio.gather(*(self._look(name, port, endpoints) for name, port in self._discover))
            self._found = [entry for entries in looked for entry in entries]
        own = await asyncio.to_thread(self._local.entries)
        said, traits = settings.traits, self._traits
        every = (*own, *(entry for group in groups for entry in group), *self._found)
        return tuple(traits.dressed(entry, said) for entry in every)

    def kin(self) -> tuple[tuple[str, ...], ...]:
        return self._traits.kin

    async def fetch(self, name: str, progress: Callable[[ModelProgress], None]) -> None:
        await self._local.fetch(name, progress)

    async def remove(self, name: str) -> None:
        await self._local.remove(name)

    async def close(self) -> None:
        connections, self._connections = list(self._connections.values()), {}
        self._adapters.clear()
        await asyncio.gather(*(connection.close() for connection in connections), self._local.close())

    async def _own(self, named: Local | Script) -> ChatModel:
        if isinstance(named, Script):
            return self._scripted(named.path)
        return await self._local.open(named.name)

    async def _adapter(self, named: Remote) -> WireModel:
        """The adapter of a model; what it learned of the model stays as long as address and key do."""
        connection, place = self._connection(named, await self._keys.need(named))
        known_adapter = self._adapters.get((place, named.model))
        if known_adapter is None:
            known_adapter = _adapter_class(named.wire)(connection, named.model)
            self._adapters[(place, named.model)] = known_adapter
        return known_adapter

    def _connection(self, named: Remote, key: str) -> tuple[Connection, _Place]:
        network = self._settings.current().network
        place = (named.wire, named.base_url, key, network)
        connection = self._connections.get(place)
        if connection is None:
            connection = Connection(named.wire, named.base_url, key, named.provider, network)
            self._connections[place] = connection
        return connection, place

    async def _vendor(
        self, wire: str, base_url: str, vendor: str, builtin: Sequence[tuple[str, str, int | None]], refresh: bool
    ) -> Sequence[ModelEntry]:
        named = Remote(wire, base_url, "", (vendor,))
        ready = await self._keys.has(named)
        reason = None if ready else "no_key"
        if refresh and ready:
            reason = await self._refresh(named) or reason
        rows = self._lists.get((wire, base_url)) or [Row(*row) for row in builtin]
        return listing.entries(rows, f"{vendor}/", vendor, ready=reason is None, reason=reason)

    async def _endpoint(self, endpoint: Endpoint, refresh: bool) -> Sequence[ModelEntry]:
        prefix = f"{endpoint.wire}:{endpoint.base_url}#"
        typed = [Row(model, model) for model in endpoint.models]
        try:
            named = remote(endpoint.wire, endpoint.base_url, "-")
        except HostError:
            return listing.entries(
                typed or [Row("", endpoint.name)], prefix, endpoint.name, ready=False, reason="unreachable"
            )
        ready = await self._keys.has(named)
        reason = None if ready else "no_key"
        if refresh and ready:
            reason = await self._refresh(named)
        listed = self._lists.get((named.wire, named.base_url), [])
        names = {row.model for row in listed}
        rows = [*(row for row in typed if row.model not in names), *listed]
        if not rows:
            rows, reason = [Row("", endpoint.name)], reason or "unreachable"
        return listing.entries(rows, prefix, endpoint.name, ready=reason is None, reason=reason)

    async def _refresh(self, named: Remote) -> str | None:
        """Ask an address for its models; returns why it cannot be used, if so. A list it lacks is no reason."""
        try:
            key = await self._keys.need(named)
            connection, _ = self._connection(named, key)
            path = "/v1/models?limit=1000" if named.wire.startswith("anthropic") else "/models"
            rows = listing.rows(await connection.get(path, listing.LIST_S), named.base_url)
        except HostError as fault:
            if fault.code in _REFUSED:
                return "no_key"
            return "unreachable" if fault.code in _UNREACHABLE else None
        if rows:
            self._lists[(named.wire, named.base_url)] = await listing.with_windows(rows, named.base_url)
        return None

    async def _look(self, name: str, port: int, endpoints: Sequence[Endpoint]) -> Sequence[ModelEntry]:
        """The models of a server that may run on this machine, unless it is configured already."""
        base_url = f"http://127.0.0.1:{port}/v1"
        if any(listing.same_place(endpoint.base_url, base_url) for endpoint in endpoints):
            return ()
        try:
            async with asyncio.timeout(listing.DISCOVER_S):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await writer.wait_closed()
        except (OSError, TimeoutError):
            return ()
        named = remote("compat", base_url, "-")
        await self._refresh(named)
        rows = self._lists.get((named.wire, named.base_url), [])
        return listing.entries(rows, f"compat:{base_url}#", name, ready=True)


def _adapter_class(wire: str) -> type[WireModel]:
    if wire.startswith("anthropic"):
        from desktop_host.providers.anthropic import AnthropicModel

        return AnthropicModel
    if wire == "responses":
        from desktop_host.providers.responses import ResponsesModel

        return ResponsesModel
    from desktop_host.providers.chat import ChatCompletionsModel

    return ChatCompletionsModel
