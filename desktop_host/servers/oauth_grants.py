"""The SDK's OAuth providers as the host needs them: they remember over restarts and refresh before they ask.

SDK 2.3 forgets the expiry and the authorization server over a restart (python-sdk issue 3250), and asks a person
again on every 401 although it holds a refresh token. Its private names used here hold for `mcp==2.3.0`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Protocol

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider, PrivateKeyJWTOAuthProvider
from mcp.client.auth.utils import issuers_match, union_scopes
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from pydantic import AnyUrl

from desktop_host.core.errors import KnownFault
from desktop_host.servers.oauth_store import Store, read_model

Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]


class RefreshRefused(Exception):
    """The refresh token is worth nothing any more."""


class ClientRefused(Exception):
    """The authorization server no longer knows our registration (`invalid_client`)."""


class Grant(Protocol):
    """One way to come by a token, for one connection."""

    interactive: bool
    """Whether a new token needs a person."""
    store: Store

    async def reload(self) -> None:
        """Take over what the vault holds now."""
        ...

    def bearer(self) -> str | None:
        """A token that is not known to be expired."""
        ...

    def can_refresh(self) -> bool: ...
    async def refresh(self, send: Send) -> None:
        """Get a new token for the refresh token.

        Raises:
            RefreshRefused, ClientRefused: a new sign-in is needed.
            KnownFault: `network`: it may work later.
        """
        ...

    async def look_at(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """See each exchange of the flow before the SDK does.

        Raises:
            ClientRefused: a new registration, or another secret, is needed.
        """
        ...

    def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The SDK's flow: yields the requests it wants sent, at last the one to be authenticated."""
        ...


class Remembering(OAuthClientProvider):
    """What all grants of the SDK's main provider share."""

    interactive = False
    store: Store
    may_refresh = True
    """Whether the flow may use the refresh token in place of a new sign-in."""
    scopes: tuple[str, ...] = ()
    _refreshing = False

    def keep_in(self, store: Store) -> None:
        """Bind to the store; call once, before use."""
        self.store = store
        store.context = self.context
        store.expiry = lambda: self.context.token_expiry_time

    async def reload(self) -> None:
        await self.store.load()
        await self._initialize()

    def bearer(self) -> str | None:
        tokens = self.context.current_tokens
        return tokens.access_token if tokens is not None and self.context.is_token_valid() else None

    def can_refresh(self) -> bool:
        return self.context.can_refresh_token()

    async def refresh(self, send: Send) -> None:
        self._match_client_auth()
        await self._refreshed(await send(await self._refresh_token()))

    async def look_at(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """What there is to see is seen where the SDK handles it."""

    async def _initialize(self) -> None:
        await super()._initialize()
        context, record = self.context, self.store.record
        context.token_expiry_time = record.expires_at
        if record.issuer and getattr(self, "_issuer", "") is None:
            # Our own credentials go where they went before, and nowhere else.
            setattr(self, "_issuer", record.issuer)  # noqa: B010
        context.oauth_metadata = read_model(OAuthMetadata, record.metadata) or context.oauth_metadata
        context.protected_resource_metadata = (
            read_model(ProtectedResourceMetadata, record.resource) or context.protected_resource_metadata
        )

    async def _perform_authorization(self) -> httpx2.Request:
        self._match_client_auth()
        self._refreshing = self.may_refresh and self.context.can_refresh_token()
        if self._refreshing:
            return await self._refresh_token()
        self.context.client_metadata.scope = union_scopes(self.context.client_metadata.scope, " ".join(self.scopes))
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        if self._refreshing:
            await self._refreshed(response)
        else:
            await refuse_client(response)
            await super()._handle_token_response(response)

    async def _refreshed(self, response: httpx2.Response) -> None:
        status = response.status_code
        if status == 429 or status >= 500:
            raise KnownFault(
                "network", f"{response.url.host} answered {status} to the refresh of a token", retryable=True
            )
        await refuse_client(response)
        if not await self._handle_refresh_response(response):
            await self.store.drop_tokens()
            raise RefreshRefused

    def _match_client_auth(self) -> None:
        """A client of the person's own: use the way to show its secret that the server takes."""
        client, metadata = self.context.client_info, self.context.oauth_metadata
        taken = metadata.token_endpoint_auth_methods_supported if metadata else None
        if client is None or not client.client_secret or not taken or client.token_endpoint_auth_method in taken:
            return
        if client.token_endpoint_auth_method == "client_secret_basic" and "client_secret_post" in taken:
            self.context.client_info = client.model_copy(update={"token_endpoint_auth_method": "client_secret_post"})


class CodeGrant(Remembering):
    """A person signs in with the browser."""

    interactive = True
    issuer = ""
    """The only authorization server that may see the person's own client; empty: the first one, from then on."""
    pkce_unlisted = False
    """Whether an authorization server may do without saying that it knows PKCE."""

    def _expected_issuer(self) -> str:
        """The SDK's; asked before anything is sent to the authorization server.

        Raises:
            KnownFault: `auth`, `reason` `issuer_changed`.
        """
        expected = super()._expected_issuer()
        bound = self.issuer or self.store.record.issuer
        if self.store.own and bound and not issuers_match(bound, expected):
            raise KnownFault(
                "auth", f"the server now names {expected} to sign in at; your client belongs to {bound}",
                reason="issuer_changed", issuer=expected, bound=bound,
            )  # fmt: skip
        return expected

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        metadata = self.context.oauth_metadata
        taken = metadata.code_challenge_methods_supported if metadata else ["S256"]
        # MCP 2025-11-25, authorization: a client must not go on where the list is missing.
        if "S256" not in (taken or ()) and not (taken is None and self.pkce_unlisted):
            raise KnownFault(
                "auth", f"{self._expected_issuer()} does not say that it protects sign-ins with PKCE (S256)",
                reason="no_pkce", issuer=self._expected_issuer(),
            )  # fmt: skip
        return await super()._perform_authorization_code_grant()

    def come_back_to(self, uri: str) -> None:
        """Where the browser comes back to."""
        self.context.client_metadata.redirect_uris = [AnyUrl(uri)]


class SecretGrant(Remembering, ClientCredentialsOAuthProvider):
    """The host signs in with a secret."""


class JwtGrant(Remembering, PrivateKeyJWTOAuthProvider):
    """The host signs in with a signed assertion."""


def without_issuer_warning(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Make a provider; that the issuer is not configured is no news: the first one seen is kept to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args, **kwargs)


async def refuse_client(response: httpx2.Response) -> None:
    """Raises: ClientRefused, the answer says that the client is not known or its secret is wrong."""
    if await _error_of(response) in ("invalid_client", "unauthorized_client"):
        raise ClientRefused


async def _error_of(response: httpx2.Response) -> str:
    """The `error` of a refusal (RFC 6749, 5.2)."""
    if response.status_code < 400:
        return ""
    try:
        body = json.loads(await response.aread())
    except (ValueError, RecursionError):
        return ""
    return str(body.get("error", "")) if isinstance(body, dict) else ""
