"""REFs: how a model is named by a person, a setting or the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from desktop_host.core.errors import UserFault
from desktop_host.providers.clients import vendor_of

ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
WIRES = ("anthropic", "responses", "compat", "anthropic-compat")
FORMS = (
    "anthropic/<model>, openai/<model>, anthropic:<base-url>#<model>, responses:<base-url>#<model>, "
    "compat:<base-url>#<model>, anthropic-compat:<base-url>#<model>, local, local/<name>, script:<file.json>"
)


@dataclass(frozen=True, slots=True)
class Remote:
    """A model at an address."""

    wire: str
    base_url: str
    model: str
    secrets: tuple[str, ...]
    """Names in the vault under which its key may be, in order."""

    @property
    def vendor(self) -> str | None:
        """The vendor whose own host this is, or None."""
        return vendor_of(self.base_url)

    @property
    def provider(self) -> str:
        """Name of the place for people."""
        known = {"anthropic": "Anthropic", "openai": "OpenAI"}
        return known.get(self.vendor or "") or urlsplit(self.base_url).netloc


@dataclass(frozen=True, slots=True)
class Local:
    """The embedded model; `name` None is the default one."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Script:
    """A scripted model."""

    path: Path


def parse(ref: str, routes: Iterable[str] = ()) -> Remote | Local | Script:
    """What a REF names; `routes` are the names of routes that it could have been.

    Raises:
        UserFault: `usage`, it has none of the known forms.
    """
    given = ref.strip()
    if given == "local":
        return Local(None)
    head, slash, rest = given.partition("/")
    if slash and rest.strip() and head == "local":
        return Local(rest)
    if slash and rest.strip() and head == "anthropic":
        return Remote("anthropic", ANTHROPIC_URL, rest, ("anthropic",))
    if slash and rest.strip() and head == "openai":
        return Remote("responses", OPENAI_URL, rest, ("openai",))
    wire, colon, place = given.partition(":")
    if colon and wire == "script" and place:
        return Script(Path(place))
    if colon and wire in WIRES:
        base, hash_, model = place.partition("#")
        if not hash_ or not model.strip():
            raise UserFault(
                "usage", f"{ref!r} names no model: end it with #<model>", reason="ref_without_model", ref=ref
            )  # fmt: skip
        return remote(wire, base, model)
    names = ", ".join(routes)
    raise UserFault(
        "usage", f"{ref!r} names no model; forms: {FORMS}, or a route's name{names and f' ({names})'}",
        reason="bad_ref", ref=ref, forms=FORMS, routes=names,
    )  # fmt: skip


def remote(wire: str, base_url: str, model: str) -> Remote:
    """A model at an address as typed.

    An address on OpenAI's own host goes by Responses, whatever was typed: its models refuse tools with
    reasoning on Chat Completions.

    Raises:
        UserFault: `usage`, the address cannot be one.
    """
    typed = base_url.strip()
    base = normalised(wire, typed)
    vendor = vendor_of(base)
    if vendor == "openai" and wire == "compat":
        wire = "responses"
    names = dict.fromkeys((typed, typed.rstrip("/"), base, *((vendor,) if vendor else ())))
    return Remote(wire, base, model.strip(), tuple(name for name in names if name))


def normalised(wire: str, base_url: str) -> str:
    """An address as the adapters want it: Anthropic's without `/v1`, the others' with a path.

    Raises:
        UserFault: `usage`, the address cannot be one.
    """
    try:
        parts = urlsplit(base_url.strip())
        _ = parts.port
    except ValueError as error:
        raise _bad_address(base_url, "unreadable", str(error)) from None
    if parts.scheme not in ("http", "https"):
        raise _bad_address(base_url, "scheme", "it must begin with http:// or https://")
    if not parts.hostname:
        raise _bad_address(base_url, "host", "it names no host")
    if parts.username is not None or parts.password is not None:
        raise _bad_address(base_url, "key", "a key does not belong into an address; set it as a secret")
    if parts.query or parts.fragment:
        raise _bad_address(base_url, "query", "it must not hold ? or #")
    path = parts.path.rstrip("/")
    if wire.startswith("anthropic"):
        path = path.removesuffix("/messages").removesuffix("/v1")
    else:
        for tail in ("/chat/completions", "/responses", "/models"):
            path = path.removesuffix(tail)
        path = path or "/v1"
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, "", ""))


def _bad_address(base_url: str, what: str, detail: str) -> UserFault:
    shown = base_url.split("@")[-1]
    return UserFault(
        "usage", f"{shown!r} is no address of a model: {detail}", reason=f"model_address_{what}", address=shown,
        detail=detail,
    )  # fmt: skip
