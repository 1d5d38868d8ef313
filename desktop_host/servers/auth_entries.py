"""How the sign-in of a server is written in its entry, below `desktopHost.auth`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from desktop_host.core.auth import AUTOMATIC, Auth, ClientCredentials, EnterpriseManaged, NoAuth, OAuth

if TYPE_CHECKING:
    from desktop_host.servers.entries import _Entry

KINDS: dict[str, type[Any]] = {
    "none": NoAuth,
    "oauth": OAuth,
    "clientCredentials": ClientCredentials,
    "enterprise": EnterpriseManaged,
}
KEY = "desktopHost.auth"
_URLS = ("client_metadata_url", "issuer", "idp_token_endpoint")


def auth_to_json(auth: Auth) -> dict[str, Any] | None:
    """The object for an entry; None for what every server gets anyway."""
    if auth == AUTOMATIC:
        return None
    out: dict[str, Any] = {"type": next(word for word, kind in KINDS.items() if isinstance(auth, kind))}
    for f in fields(auth):
        value = getattr(auth, f.name)
        if value != f.default:
            out[_camel(f.name)] = list(value) if isinstance(value, tuple) else value
    return out


def auth_from_json(at: _Entry, value: Any) -> Auth:
    """Read `desktopHost.auth`.

    Raises:
        UserFault: `bad_config` with the key.
    """
    if value is None:
        return AUTOMATIC
    data = at.mapping({"type": value} if isinstance(value, str) else value, KEY)
    word = at.text(data.get("type"), f"{KEY}.type") or "oauth"
    if word not in KINDS:
        raise at.none_of(f"{KEY}.type", ", ".join(KINDS))
    made: Auth = KINDS[word](**_values(at, KINDS[word], data))
    return made


def _values(at: _Entry, kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    names = {_camel(f.name): f for f in fields(kind)}
    for key in data:
        if key != "type" and key not in names:
            raise at.fault("unknown_key", f"{KEY}.{key}", f"is not known here; known: {', '.join(names)}")
    out: dict[str, Any] = {}
    for key, f in names.items():
        place = f"{KEY}.{key}"
        if f.name == "scopes":
            out[f.name] = at.texts(data.get(key), place)
        elif f.name == "redirect_port":
            out[f.name] = int(at.number(data.get(key), 0, place))
            if out[f.name] > 65_535:
                raise at.fault("bad_port", place, "a port is at most 65535")
        elif f.name == "pkce_unlisted":
            out[f.name] = at.flag(data.get(key), False, place)
        else:
            text = at.text(data.get(key), place) or ""
            if f.name in _URLS and text and "${" not in text and urlsplit(text).scheme not in ("http", "https"):
                raise at.fault("bad_url", place, "the address must begin with http:// or https://")
            if not text and f.default is MISSING:
                raise at.fault("missing", place, "is missing")
            out[f.name] = text or f.default
    if kind is ClientCredentials and not (out["client_secret"] or out["private_key"]):
        raise at.fault("missing", f"{KEY}.clientSecret", "a clientSecret or a privateKey is missing")
    return out


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
