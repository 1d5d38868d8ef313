"""Pieces of work that may be told to a collector: turns, requests of models, calls of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeAlias

Value: TypeAlias = str | int | float | bool | Sequence[str]


class Span(Protocol):
    """A piece of work under way. Every method returns at once and raises nothing."""

    def put(self, **values: Value | None) -> None:
        """Attributes; a `__` in a name stands for a dot, and None is left out."""
        ...

    def content(self, **values: object) -> None:
        """Attributes with what was said: kept only where the person switched that on."""
        ...

    def event(self, name: str, **values: Value | None) -> None:
        """Something that happened within it."""
        ...

    def fail(self, code: str, message: str = "") -> None:
        """It failed with an error code."""
        ...

    def end(self) -> None:
        """It is over; a second time counts nothing."""
        ...


class Tracing(Protocol):
    """Where pieces of work are told of."""

    def begin(self, name: str, kind: str = "internal", **values: Value | None) -> Span:
        """Begin a piece of work within the one that this task is in.

        Args:
            name: of low cardinality, e.g. `chat claude-sonnet`.
            kind: `internal`, or `client` for a request to somebody else.
            values: as `Span.put` takes them.
        """
        ...

    def inside(self, span: Span) -> AbstractContextManager[object]:
        """Within the block, what this task and its children begin is part of `span`."""
        ...


class TelemetryState(Protocol):
    """What a check tells of it."""

    async def telemetry(self) -> Mapping[str, object]:
        """`{on, installed, endpoint, sent, lost, error}`."""
        ...


class _Nothing:
    """A span that nobody hears of."""

    def put(self, **values: Value | None) -> None: ...
    def content(self, **values: object) -> None: ...
    def event(self, name: str, **values: Value | None) -> None: ...
    def fail(self, code: str, message: str = "") -> None: ...
    def end(self) -> None: ...


class _Untraced:
    """Tells nobody."""

    def begin(self, name: str, kind: str = "internal", **values: Value | None) -> Span:
        return NOTHING

    def inside(self, span: Span) -> AbstractContextManager[object]:
        return nullcontext()


NOTHING: Span = _Nothing()
UNTRACED: Tracing = _Untraced()
