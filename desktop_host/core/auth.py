"""How the host signs in to a remote server. Secret fields hold `${keyring:NAME}`, never the secret itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class SignInState(StrEnum):
    """Where signing in to a server stands."""

    NONE = "none"
    """Nothing is known of a need to."""
    SIGNED_IN = "signed_in"
    SIGNING_IN = "signing_in"
    """A person is in the browser, or is asked to go there."""
    NEEDED = "needed"
    """The server wants it, and no token of ours will do."""


@dataclass(frozen=True, slots=True)
class NoAuth:
    """Never: the configured headers are all there is."""


@dataclass(frozen=True, slots=True)
class OAuth:
    """A person signs in with the browser when the server asks for it (authorization code with PKCE).

    Without a client id the host presents its metadata document where it has one and the server takes it,
    else it registers itself.
    """

    client_id: str = ""
    """Of a client registered by hand."""
    client_secret: str = ""
    scopes: tuple[str, ...] = ()
    """Asked for beside those that the server names."""
    redirect_port: int = 0
    """Port on 127.0.0.1 that the browser comes back to; 0: the setting's, else any, kept once registered."""
    client_metadata_url: str = ""
    """Address of the client metadata document; empty: the setting's."""
    issuer: str = ""
    """The only authorization server that may see a client of the person's own; empty: the first one, from then on."""
    pkce_unlisted: bool = False
    """Go on where the authorization server does not say that it knows PKCE (some that do keep silent about it)."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The host signs in by itself with a secret (HTTP Basic) or, if `private_key` is set, with a signed JWT."""

    client_id: str
    client_secret: str = ""
    private_key: str = ""
    """PEM."""
    algorithm: str = "ES256"
    scopes: tuple[str, ...] = ()
    issuer: str = ""
    """The only authorization server that may be sent these credentials; empty: the first one seen, from then on."""


@dataclass(frozen=True, slots=True)
class EnterpriseManaged:
    """The organisation's identity provider vouches for the person (token exchange, then RFC 7523)."""

    client_id: str
    client_secret: str
    issuer: str
    """The server's authorization server: configured, never discovered."""
    idp_token_endpoint: str
    idp_client_id: str
    idp_token: str
    """The person's identity token."""
    scopes: tuple[str, ...] = ()


Auth: TypeAlias = NoAuth | OAuth | ClientCredentials | EnterpriseManaged

AUTOMATIC = OAuth()
"""What a remote server gets unless told otherwise."""
SECRET_FIELDS = ("client_secret", "private_key", "idp_token")
"""The fields of any of them that hold a secret."""


@dataclass(frozen=True, slots=True)
class SignInDefaults:
    """What holds for servers that say nothing themselves."""

    client_metadata_url: str = ""
    redirect_port: int = 0
