"""What a profile gives to its servers beside their own entries: variables and headers, so that it is a tenant.

Both are lines of text, kept in the profile's settings. A variable goes to all local servers of the profile, or to
those that are named before it; a header goes to one origin and to no other address. What is secret stands in the
profile's vault and is named here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from desktop_host.core.errors import UserFault
from desktop_host.core.settings_fields import flag, lines
from desktop_host.core.tools import ALIAS

_SECRET_NAME = re.compile(
    r"(?i)(api|access|auth|private|secret|signing|client|account|encryption|service|license|webhook)[-_]?key"
    r"|token(?![a-z])|secret|passw(or)?d|passphrase|credential|authorization|cookie|(^|[-_])(key|pwd|pat|auth)$"
)
_VARIABLE = re.compile(r"(?:(?P<servers>[a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)\s*:\s*)?(?P<name>[A-Za-z_]\w*)=(?P<value>.*)")
_HEADER = re.compile(r"(?P<origin>\S+)\s+(?P<name>[\w!#$%&'*+.^`|~-]+)\s*:\s*(?P<value>.*)", re.ASCII)
_TRANSPORTS_OWN = re.compile(
    r"(?i)accept(-encoding)?|connection|content-(length|type)|host|last-event-id|te|trailer|transfer-encoding|upgrade"
    r"|mcp-(method|name|protocol-version|session-id)"
)
"""Headers that the transport sets; another value would break it."""
ENV_FORM = "lines of NAME=VALUE or server,server: NAME=VALUE"
HEADERS_FORM = "lines of https://host Name: VALUE"
_DEFAULT_PORTS = {"http": 80, "https": 443}


def looks_secret(name: str) -> bool:
    """Whether a variable or header of this name usually holds a secret."""
    return bool(_SECRET_NAME.search(name))


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a profile."""

    name: str
    value: str
    """May hold `${keyring:NAME}` and `${VAR}`."""
    servers: tuple[str, ...] = ()
    """Aliases of those that get it; empty: all local servers."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header of a profile."""

    origin: str
    """As `origin_of` gives it."""
    name: str
    value: str
    """May hold `${keyring:NAME}` and `${VAR}`."""


def variables(text: str) -> tuple[Variable, ...]:
    """The variables that a setting says; `#` begins a comment.

    Raises:
        UserFault: `bad_settings` with `line` and what is wanted.
    """
    out = []
    for number, line in _meant(text):
        found = _VARIABLE.fullmatch(line)
        if found is None:
            raise _bad("servers.env", number, "bad_variable", ENV_FORM)
        name, value = found["name"], found["value"].strip()
        servers = tuple(s.strip() for s in (found["servers"] or "").split(",") if s.strip())
        if any(not ALIAS.fullmatch(s) for s in servers):
            raise _bad("servers.env", number, "bad_variable", ENV_FORM)
        _check_secret("servers.env", number, name, value)
        if not servers and (looks_secret(name) or "${keyring:" in value):
            raise _bad("servers.env", number, "secret_for_all", f"server: {name}=…", name)
        out.append(Variable(name, value, servers))
    return tuple(out)


def headers(text: str) -> tuple[Header, ...]:
    """The headers that a setting says; `#` begins a comment.

    Raises:
        UserFault: `bad_settings` with `line` and what is wanted.
    """
    out = []
    for number, line in _meant(text):
        found = _HEADER.fullmatch(line)
        origin = origin_of(found["origin"]) if found else ""
        if found is None or not origin or urlsplit(found["origin"]).path not in ("", "/"):
            raise _bad("servers.headers", number, "bad_header", HEADERS_FORM)
        name, value = found["name"], found["value"].strip()
        if _TRANSPORTS_OWN.fullmatch(name):
            raise _bad("servers.headers", number, "header_taken", "another header", name)
        _check_secret("servers.headers", number, name, value)
        out.append(Header(origin, name, value))
    return tuple(out)


def origin_of(url: str) -> str:
    """`scheme://host:port` in lower case; empty for what is no http address, or one that holds a name and password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        return ""
    return f"{scheme}://{parts.hostname}:{port or _DEFAULT_PORTS[scheme]}"


@dataclass(frozen=True, slots=True)
class ServerValues:
    """The settings of this page's kind."""

    autostart: bool = flag(True)
    """Start the enabled servers when a window opens; otherwise the first message that needs them does."""
    env: str = lines("", variables)
    """Variables for the local servers; see `variables`."""
    headers: str = lines("", headers)
    """Headers for remote servers; see `headers`."""

    def variables_for(self, server: str) -> dict[str, str]:
        """What a local server gets; a line that names it goes before one for all."""
        found = [v for v in variables(self.env) if not v.servers or server in v.servers]
        return {v.name: v.value for v in sorted(found, key=lambda v: bool(v.servers))}

    def headers_for(self, url: str) -> dict[str, str]:
        """What a request to an address gets."""
        origin = origin_of(url)
        return {h.name: h.value for h in headers(self.headers) if origin and h.origin == origin}


def _meant(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()


def _check_secret(key: str, number: int, name: str, value: str) -> None:
    if looks_secret(name) and value and "${" not in value:
        raise _bad(key, number, "plain_secret", "${keyring:NAME}", name)


_SAYS = {
    "bad_variable": "this is no variable",
    "bad_header": "this is no header of an address",
    "header_taken": "the connection itself sets {name}",
    "plain_secret": "the value of {name} is secret and belongs into the vault",
    "secret_for_all": "{name} is secret and would go to every server",
}


def _bad(key: str, number: int, reason: str, wanted: str, name: str = "") -> UserFault:
    said = _SAYS[reason].format(name=name)
    return UserFault(
        "bad_settings", f"{key}, line {number}: {said}", key=key, line=number, wanted=wanted, name=name, reason=reason
    )
