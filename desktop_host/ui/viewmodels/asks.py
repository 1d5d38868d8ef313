"""Questions to the person, prepared for showing: choices, facts about a URL, what changed in a definition."""

from __future__ import annotations

import difflib
import ipaddress
import json
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from desktop_host.core.asks import Allow, Answer, ApproveTool, Refuse
from desktop_host.core.permissions import Life, Scope
from desktop_host.core.tools import ToolHints
from desktop_host.core.values import thaw


@dataclass(frozen=True, slots=True)
class Choice:
    """One button of an approval."""

    key: str
    """Locale key of its text."""
    letter: str
    answer: Answer


def choices(ask: ApproveTool) -> tuple[Choice, ...]:
    """The five answers to a call, in the order of their keys 1 to 5. A yes holds for this definition only."""
    digest = ask.tool_digest or None
    return (
        Choice("chat.ask.once", "A", Allow(Life.ONCE, Scope.CALL, digest)),
        Choice("chat.ask.session", "S", Allow(Life.SESSION, Scope.TOOL, digest)),
        Choice("chat.ask.tool", "T", Allow(Life.PROFILE, Scope.TOOL, digest)),
        Choice("chat.ask.server", "V", Allow(Life.PROFILE, Scope.SERVER, digest)),
        Choice("chat.ask.deny", "D", Refuse()),
    )


def hint_keys(hints: ToolHints) -> tuple[tuple[str, str], ...]:
    """What a tool says of itself: `(locale key, tone)`; what it leaves open is not shown."""
    said: list[tuple[str, str]] = []
    if hints.read_only:
        said.append(("chat.hint.read_only", "success"))
    elif hints.read_only is False:
        said.append(("chat.hint.writes", "warning"))
    if hints.destructive and not hints.read_only:
        said.append(("chat.hint.destructive", "danger"))
    if hints.idempotent:
        said.append(("chat.hint.idempotent", "info"))
    if hints.open_world:
        said.append(("chat.hint.open_world", "info"))
    return tuple(said)


def diff(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """What changed between two texts: `(mark, line)` with mark `-`, `+` or a space."""
    old, new = before.splitlines(), after.splitlines()
    out: list[tuple[str, str]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            out += [(" ", line) for line in old[a:b]]
        else:
            out += [("-", line) for line in old[a:b]]
            out += [("+", line) for line in new[c:d]]
    return tuple(out)


def pretty(value: object) -> str:
    """JSON for reading: indented, nothing escaped that need not be."""
    return json.dumps(thaw(value), indent=2, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class UrlFacts:
    """What a person must know of a URL before it opens."""

    url: str
    before_host: str
    host: str
    """As written in the URL."""
    after_host: str
    readable_host: str
    """The host in its own script, where it is punycode."""
    warnings: tuple[str, ...] = ()
    """Locale keys."""
    scopes: tuple[str, ...] = ()
    """The rights that a sign-in asks for (RFC 6749, 3.3)."""

    @property
    def can_open(self) -> bool:
        """Only web addresses are opened."""
        return "chat.url.not_web" not in self.warnings


def url_facts(url: str) -> UrlFacts:
    """Take a URL apart for showing. Never raises: what cannot be read cannot be opened."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        userinfo = "@" in parts.netloc
    except ValueError:
        return UrlFacts(url, "", "", url, "", ("chat.url.not_web",))
    warnings: list[str] = []
    if parts.scheme not in ("http", "https") or not host:
        warnings.append("chat.url.not_web")
    loopback = host == "localhost" or _is_loopback(host)
    if parts.scheme == "http" and not loopback:
        warnings.append("chat.url.not_encrypted")
    if userinfo:
        warnings.append("chat.url.userinfo")
    readable = host
    if not host.isascii() or any(label.startswith("xn--") for label in host.split(".")):
        warnings.append("chat.url.punycode")
        readable = _readable(host)
    start = url.lower().find(host, len(parts.scheme) + 3 + (parts.netloc.rfind("@") + 1)) if host else 0
    start = max(start, 0)
    return UrlFacts(
        url,
        url[:start],
        url[start : start + len(host)],
        url[start + len(host) :],
        readable,
        tuple(warnings),
        tuple(parse_qs(parts.query).get("scope", [""])[0].split()),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _readable(host: str) -> str:
    labels = []
    for label in host.split("."):
        try:
            labels.append(label[4:].encode("ascii").decode("punycode") if label.startswith("xn--") else label)
        except UnicodeError:
            labels.append(label)
    return ".".join(labels)
