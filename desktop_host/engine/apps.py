"""What a page of a server may do in a conversation: be read, and call its own server's tools behind the gate."""

from __future__ import annotations

import base64
import uuid

from desktop_host.core.apps import CALLS, LARGEST, MIME, AppPage, for_app, page_of, policy
from desktop_host.core.errors import PeerFault, UserFault
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome, Text, ToolCall
from desktop_host.core.permissions import Effect
from desktop_host.core.server_ports import ServerReach
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict
from desktop_host.engine.parts import Parts
from desktop_host.engine.sessions import Sessions

_REFUSED = "The person did not allow this call."


class Apps:
    """The pages of a host's servers."""

    def __init__(self, servers: ServerReach, parts: Parts, sessions: Sessions) -> None:
        self._servers, self._parts, self._sessions = servers, parts, sessions

    async def offered(self, server: str, tool: str) -> bool:
        """Whether a tool has a page."""
        spec = self._spec(server, tool)
        return spec is not None and page_of(spec) is not None

    async def page(self, server: str, tool: str) -> AppPage | None:
        """The page of a tool, read from its server; None where it has none.

        Raises:
            UserFault: `not_found`.
            PeerFault: `protocol_error`, what the server gives is no page of this kind.
        """
        spec = self._spec(server, tool)
        uri = page_of(spec) if spec is not None else None
        if uri is None:
            return None
        outcome = await self._servers.read_resource(server, uri)
        raw = outcome.raw.get("contents") if isinstance(outcome.raw, FrozenDict) else None
        for one in raw if isinstance(raw, tuple) else ():
            kind = str(one.get("mimeType")).replace(" ", "").lower() if isinstance(one, FrozenDict) else ""
            if kind == MIME and isinstance(html := _text(one), str) and len(html) <= LARGEST:
                rules, origins = policy(one.get("_meta"))
                return AppPage(server, tool, uri, html, rules, origins)
        raise PeerFault("protocol_error", f"{uri} of {server} is no page that can be shown", server=server)

    async def call(self, session: str, server: str, tool: str, arguments: FrozenDict) -> ToolOutcome:
        """A page calls a tool of its own server: the same rules hold as for the model, the same person is asked.

        Raises:
            UserFault: `not_found`, the tool is not there, or not for pages; `session_busy`.
        """
        spec = self._spec(server, tool)
        if spec is None or not spec.enabled or not for_app(spec):
            raise UserFault("not_found", f"{server} offers its pages no tool {tool!r}", kind="tool", name=tool)
        context = (await self._sessions.actor(session)).context
        call = ToolCall(f"{CALLS}{uuid.uuid4().hex[:12]}", spec.wire_name, arguments)
        gate = self._parts.gate
        verdict = await gate.decide(spec, call, context.rules)
        if verdict.effect is Effect.ASK:
            verdict, rule = await gate.ask(session, spec, call, lambda: context.rules)
            if rule is not None:
                await context.add_rule(rule)
            await gate.recheck()
        if verdict.effect is not Effect.ALLOW:
            return ToolOutcome(Outcome.DENIED, (Text(_REFUSED),))
        return await self._parts.tools.call(session, call.id, spec, arguments, verdict, lambda _progress: None)

    def _spec(self, server: str, tool: str) -> ToolSpec | None:
        return next((t for t in self._servers.tools(server) if t.name == tool), None)


def _text(one: FrozenDict) -> str | None:
    """The text of a resource, given plain or as base64."""
    if isinstance(text := one.get("text"), str):
        return text
    try:
        return base64.b64decode(str(one.get("blob") or ""), validate=True).decode() or None
    except ValueError:
        return None
