"""The host's side of tools, prompts and resources: what a face does with them in a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property

from desktop_host.core.bundles import BundleAdmin
from desktop_host.core.errors import PeerFault, UserFault
from desktop_host.core.events import Attachment, UserSaid
from desktop_host.core.exchange import Progress, ToolOutcome
from desktop_host.core.install_links import InstallLinks
from desktop_host.core.messages import ContentBlock, Outcome, Role, Text, ToolCall, for_model
from desktop_host.core.permissions import Effect
from desktop_host.core.server_ports import ServerReach
from desktop_host.core.values import EMPTY, FrozenDict
from desktop_host.engine.apps import Apps
from desktop_host.engine.attach import resource_block, user_said
from desktop_host.engine.parts import Parts
from desktop_host.engine.repair import CONTINUE
from desktop_host.engine.sessions import Sessions
from desktop_host.engine.tickets import Ticket, UserInput
from desktop_host.engine.toolkit import Toolkit


class ToolSide:
    """A part of `Host`."""

    servers: ServerReach
    _parts: Parts
    _sessions: Sessions

    @property
    def toolkit(self) -> Toolkit:
        """Groups, fixed arguments, rules for results, plain functions as tools."""
        if self._parts.toolkit is None:
            raise RuntimeError("this host was put together without a toolkit")
        return self._parts.toolkit

    @property
    def bundles(self) -> BundleAdmin:
        """Bundles (`.mcpb`, `.dxt`) of the profile."""
        if self._parts.bundles is None:
            raise RuntimeError("this host was put together without bundles")
        return self._parts.bundles

    @property
    def install_links(self) -> InstallLinks:
        """Who opens `desktop-host://` links and bundles on this desktop."""
        if self._parts.links is None:
            raise RuntimeError("this host was put together without a desktop")
        return self._parts.links

    @cached_property
    def apps(self) -> Apps:
        """The pages that tools of servers have."""
        return Apps(self.servers, self._parts, self._sessions)

    async def call_by_hand(
        self, server: str, tool: str, arguments: FrozenDict, progress: Callable[[Progress], None] | None = None
    ) -> ToolOutcome:
        """Run a tool by hand: the person's own act, so nothing is asked; what a rule denies stays denied.

        Raises:
            UserFault: `not_found`, there is no such server.
        """
        spec = next((t for t in self.servers.tools(server) if t.name == tool), None)
        if spec is not None:
            verdict = await self._parts.gate.decide(spec, ToolCall("", spec.wire_name, arguments), ())
            # A default that denies is meant for models; a rule names this tool, and a check that failed denies.
            if verdict.effect is Effect.DENY and (verdict.rule is not None or verdict.reason == "gate_failed"):
                text = f"A rule of this profile denies {spec.full_name}, by hand too. Take the rule back to run it."
                return ToolOutcome(Outcome.DENIED, (Text(text),))
        return await self.servers.call_tool(server, tool, arguments, progress)

    async def resend(self, server: str, method: str, params: FrozenDict) -> FrozenDict:
        """Send a request of the wire again, as it was or changed; a call of a tool as any by hand.

        Raises:
            UserFault: `usage`, the method belongs to the connection itself, or a rule of the profile denies the call;
                `not_found`.
            PeerFault: `protocol_error`, the server refused it.
            KnownFault: the server cannot be used.
        """
        arguments = params.get("arguments", EMPTY)
        if method != "tools/call" or not isinstance(arguments, FrozenDict):
            return await self.servers.resend(server, method, params)
        outcome = await self.call_by_hand(server, str(params.get("name")), arguments)
        if outcome.outcome is Outcome.DENIED:
            name = f"{server}.{params.get('name')}"
            raise UserFault("usage", f"a rule of this profile denies {name}", reason="denied_by_rule", name=name)
        return outcome.raw if isinstance(outcome.raw, FrozenDict) else EMPTY

    async def switch_group(self, session: str, group: str, on: bool) -> None:
        """Switch a group of tools in a session; the model is told with its next turn.

        Raises:
            UserFault: `not_found`, there is no such group or session; `session_busy`, another process has it.
        """
        actor = await self._sessions.actor(session)
        await self.toolkit.switch(session, group, on)
        actor.context.apply_tools()

    async def use_prompt(
        self, session: str, server: str, prompt: str, arguments: FrozenDict = EMPTY, text: str = ""
    ) -> Ticket:
        """Fill a server's prompt and send its messages: the last of a user's as the person's, those before as they are.

        Args:
            session: where it is sent.
            server: alias of the server.
            prompt: name of the prompt.
            arguments: its arguments, texts by name.
            text: what the person adds.

        Raises:
            UserFault: `not_found`, there is no such prompt, or its arguments are refused; `session_busy`.
            PeerFault: the server gave no messages.
        """
        messages = await self.servers.get_prompt(server, prompt, arguments)
        if not messages:
            raise PeerFault("protocol_error", f"the prompt {prompt!r} of {server} has no messages", server=server)
        before = len(messages)
        while before and messages[before - 1].role is Role.USER:
            before -= 1
        last = messages[before:]
        blocks = tuple(block for message in last for block in for_model(message.blocks))
        said = "\n\n".join([*(b.text for b in blocks if isinstance(b, Text)), *([text] if text.strip() else [])])
        event = UserSaid(
            said or (f"/{prompt}" if last else CONTINUE),
            blocks=tuple(b for b in blocks if not isinstance(b, Text)),
            prelude=messages[:before],
            source=f"prompt:{server}.{prompt}",
        )
        return await (await self._sessions.actor(session)).submit(event)

    async def said(self, said: UserInput) -> UserSaid:
        """The event of a message with its files, and the resources it refers to as they are now.

        Raises:
            HostError: as `Host.submit`; a resource cannot be read.
        """
        read = await asyncio.gather(*(self._resource(server, uri) for server, uri in said.resources))
        attachments = tuple(a for a, _ in read)
        return user_said(said, attachments, tuple(b for _, blocks in read for b in blocks))

    async def _resource(self, server: str, uri: str) -> tuple[Attachment, tuple[ContentBlock, ...]]:
        outcome = await self.servers.read_resource(server, uri)
        blocks = tuple(resource_block(b) for b in for_model(outcome.content))
        mime = next((m for b in blocks if (m := getattr(b, "mime_type", None))), "") or ""
        size = sum(
            len(getattr(b, "text", None) or getattr(b, "data", None) or getattr(b, "blob", None) or "") for b in blocks
        )
        return Attachment(uri, mime, size), blocks
