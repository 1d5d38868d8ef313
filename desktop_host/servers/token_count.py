"""What the definitions of a server's tools cost a model, counted once for each list."""

from __future__ import annotations

from desktop_host.core.tools import ToolSpec


class TokenCount:
    """Sums `ToolSpec.tokens`, which serialises each definition, and remembers the newest sum."""

    def __init__(self) -> None:
        self._tools: tuple[ToolSpec, ...] = ()
        self._sum = 0

    def __call__(self, tools: tuple[ToolSpec, ...]) -> int:
        """The tokens of `tools` in each request."""
        if tools is not self._tools:
            self._tools, self._sum = tools, sum(t.tokens for t in tools)
        return self._sum
