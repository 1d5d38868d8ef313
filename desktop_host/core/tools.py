"""Tools as the model sees them: definitions, wire names, groups and digests."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from desktop_host.core.permissions import Effect
from desktop_host.core.values import EMPTY, FrozenDict, canonical

WIRE_LIMIT = 64
"""Longest tool name that every vendor takes (Anthropic allows 128; histories must be able to move)."""

_BAD = re.compile(r"[^a-zA-Z0-9_-]")
ALIAS = re.compile(r"[a-z0-9-]{1,32}")


@dataclass(frozen=True, slots=True)
class ToolHints:
    """What a tool says of itself (MCP ToolAnnotations). Untrusted unless its server is trusted."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool of one server, or of the host itself (alias `host`)."""

    server: str
    """Alias of the server: `[a-z0-9-]{1,32}`, no dots."""
    name: str
    """The tool's own name; may hold dots, slashes and spaces."""
    description: str = ""
    input_schema: FrozenDict = field(default=EMPTY)
    """The original schema: arguments are validated against it, whatever a vendor was sent."""
    output_schema: FrozenDict | None = None
    title: str | None = None
    hints: ToolHints = ToolHints()
    group: str | None = None
    enabled: bool = True
    problem: str | None = None
    """What had to be repaired or why the model cannot have it; shown, never hidden."""
    meta: FrozenDict | None = None
    icons: tuple[FrozenDict, ...] = ()
    """As they came: `{src, mimeType, sizes, theme}`; never sent to a model."""

    @property
    def full_name(self) -> str:
        """`server.tool`; the first dot splits."""
        return f"{self.server}.{self.name}"

    @property
    def wire_name(self) -> str:
        """The name sent to the model."""
        return wire_name(self.server, self.name)

    @property
    def display_name(self) -> str:
        """Title where there is one, else the name."""
        return self.title or self.name

    @property
    def digest(self) -> str:
        """Identity of the definition a grant was given for: name, texts, schemas and hints."""
        h = self.hints
        body = [
            self.name, self.title, self.description, self.input_schema, self.output_schema,
            [h.read_only, h.destructive, h.idempotent, h.open_world],
        ]  # fmt: skip
        return hashlib.sha256(canonical(body).encode()).hexdigest()

    @property
    def tokens(self) -> int:
        """Estimate of what the definition costs in each request (bytes of JSON / 2.5)."""
        size = len(canonical({"d": self.description, "s": self.input_schema, "n": self.wire_name}).encode())
        return -(-size * 2 // 5)


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """A named set of tools that is switched together."""

    name: str
    patterns: tuple[str, ...]
    enabled: bool = True
    default: Effect | None = None
    """What the gate says of its tools where no rule speaks."""
    description: str = ""
    """What the group is for; read by the model when it may switch groups."""
    notes: str = ""
    """What the model is told when it switches the group on."""


def wire_name(server: str, tool: str) -> str:
    """Return the name for the model: `alias__tool`, safe for every vendor, at most 64 characters.

    Depends on its two arguments alone, so it never changes with the order or number of servers. If a
    character had to be replaced or the name cut, eight hex digits of a hash keep it unique.
    """
    plain = f"{server}__{tool}"
    wire = _BAD.sub("_", plain)
    if not (wire[:1].isalpha()):
        wire = f"t_{wire}"
    if wire == plain and len(wire) <= WIRE_LIMIT and "__" not in server and tool:
        return wire
    mark = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
    return f"{wire[: WIRE_LIMIT - 9].rstrip('_-')}_{mark}"


def split_name(full_name: str) -> tuple[str, str]:
    """Split `alias.tool` at the first dot. An empty alias means that there was no dot."""
    server, dot, tool = full_name.partition(".")
    return (server, tool) if dot else ("", full_name)


def alias_for(title: str, taken: frozenset[str] = frozenset()) -> str:
    """A free server alias made from any title (`My Server` -> `my-server`, `-2` appended if taken)."""
    base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:32].strip("-") or "server"
    if base == "host":
        base = "host-server"
    alias, n = base, 2
    while alias in taken:
        alias = f"{base[: 31 - len(str(n))]}-{n}"
        n += 1
    return alias
