"""Which groups of tools were switched in each session, kept with it."""

from __future__ import annotations

from collections.abc import Mapping

from desktop_host.core.ports import History

GROUPS = "tool_groups"
"""Key of a session's state."""


class GroupSwitches:
    """Read when a session is first used, written at each switch."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known: dict[str, dict[str, bool]] = {}

    def of(self, session: str) -> dict[str, bool]:
        """Group to whether it was switched on; empty for a session that was not read."""
        return self._known.get(session, {})

    async def read(self, session: str) -> dict[str, bool]:
        """As `of`, read from the record if need be."""
        if session not in self._known:
            kept = await self._history.state(session, GROUPS)
            known = kept.items() if isinstance(kept, Mapping) else ()
            self._known[session] = {k: v for k, v in known if isinstance(v, bool)}
        return self._known[session]

    async def keep(self, session: str, switched: dict[str, bool]) -> None:
        """Keep these switches."""
        self._known[session] = switched
        await self._history.put_state(session, GROUPS, switched)

    def forget(self, session: str) -> None:
        """The session is closed."""
        self._known.pop(session, None)
