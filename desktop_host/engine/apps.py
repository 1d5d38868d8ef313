"""What a page of a server may do in a conversation: be read, and call its own server's tools behind the gate."""

from __future__ import annotations

import base64
import logging
import uuid

from desktop_host.core.apps import CALLS, LARGEST, MIME, AppPage, bordered, for_app, granted, page_of, policy
from desktop_host.core.errors import PeerFault, UserFault
from desktop_host.core.exchange import ToolOutcome
from desktop_host.core.messages import Outcome, Text, ToolCall
from desktop_host.core.server_ports import ServerReach
from desktop_host.core.session_events import PageSaid
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict, canonical
from desktop_host.engine.calls import Calls
from desktop_host.engine.page_notes import SAID
from desktop_host.engine.parts import Parts
from desktop_host.engine.sessions import Sessions

_log = logging.getLogger(__name__)
_REFUSED = "The person did not allow this call."


class Apps:
    """The pages of a host's servers."""

    def __init__(self, servers: ServerReach, parts: Parts, sessions: Sessions) -> None:
        self._servers, self._parts, self._sessions = servers, parts, sessions
        self._speak: set[tuple[str, str]] = set()

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
                meta = one.get("_meta")
                rules, origins = policy(meta)
                _log.info("the page %s of %s may load from %s", uri, server, ", ".join(origins) or "nowhere")
                return AppPage(server, tool, uri, html, rules, origins, bordered(meta), granted(meta), spec)
        raise PeerFault("protocol_error", f"{uri} of {server} is no page that can be shown", server=server)

    async def call(self, session: str, server: str, tool: str, arguments: FrozenDict, page: str = "") -> ToolOutcome:
        """A page calls a tool of its own server: the same rules hold as for the model, the same person is asked.

        The call stands in the conversation as one of the page's; the model hears of it with the next message, unless
        the tool is for pages alone.

        Args:
            session: the conversation in which the page stands.
            server: the page's server; no other can be called.
            tool: which of its tools.
            arguments: as the page gave them; what the person has fixed goes over them.
            page: the tool that the page belongs to.

        Raises:
            UserFault: `not_found`, the tool is not there, or not for pages; `session_busy`.
        """
        spec = self._spec(server, tool)
        if spec is None or not spec.enabled or not for_app(spec):
            raise UserFault("not_found", f"{server} offers its pages no tool {tool!r}", kind="tool", name=tool)
        context = (await self._sessions.actor(session)).context
        call = ToolCall(f"{CALLS}{uuid.uuid4().hex[:12]}", spec.wire_name, arguments)
        _log.info("a page of %s.%s calls %s", server, page, spec.full_name)
        context.page_calls += 1
        try:
            outcome = await Calls(context, self._parts).of_page(spec, call, f"{server}.{page}" if page else server)
        finally:
            context.page_calls -= 1
        if outcome.outcome is Outcome.DENIED:
            return ToolOutcome(Outcome.DENIED, (Text(_REFUSED),))
        return outcome

    async def told(self, session: str, said: PageSaid) -> None:
        """A page that the person lets speak has something for the model; it goes along with the next message.

        Raises:
            UserFault: `usage`, the person did not let it, or it is too long; `not_found`, `session_busy`.
        """
        if not self.speaks(session, said.server):
            raise UserFault("usage", f"pages of {said.server} may not tell the model anything", reason="not_let")
        size = len(said.text) + (len(canonical(said.structured)) if said.structured is not None else 0)
        if size > SAID:
            raise UserFault("usage", f"a page may tell the model {SAID} characters at most", reason="too_long")
        _log.info("a page of %s.%s tells the model %s characters", said.server, said.tool, size)
        await (await self._sessions.actor(session)).context.emit(said)

    def speaks(self, session: str, server: str) -> bool:
        """Whether the person lets the pages of a server tell the model of what is done in them, in this chat."""
        return (session, server) in self._speak

    def let_speak(self, session: str, server: str) -> None:
        """The person lets them, until the host ends."""
        self._speak.add((session, server))

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
