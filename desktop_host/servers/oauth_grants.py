"""The SDK's OAuth providers as the host needs them: they remember over restarts and refresh before they ask.

SDK 2.3 forgets the expiry and the authorization server over a restart (python-sdk issue 3250), and asks a person
again on every 401 although it holds a refresh token. Its private names used here hold for `mcp==2.3.0`.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider, PrivateKeyJWTOAuthProvider
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import AnyUrl, BaseModel, ValidationError

from desktop_host.core.auth import SignInState
from desktop_host.core.errors import KnownFault
from desktop_host.servers.sign_in import Record, SignIn

_Model = TypeVar("_Model", bound=BaseModel)
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

    def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The SDK's flow: yields the requests it wants sent, at last the one to be authenticated."""
        ...


class Store:
    """The SDK's token storage over the vault's record."""

    def __init__(self, sign_in: SignIn, url: str, own_client: OAuthClientInformationFull | None = None) -> None:
        self.sign_in, self.url = sign_in, url
        self.record = Record(url)
        self._own = own_client
        self.context: OAuthContext | None = None
        self.expiry: Callable[[], float | None] = lambda: None

    async def load(self) -> Record:
        """Read the vault."""
        self.record = await self.sign_in.load(self.url)
        return self.record

    async def get_tokens(self) -> OAuthToken | None:
        return _model(OAuthToken, self.record.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.context
        metadata = context.oauth_metadata if context else None
        self.record = replace(
            self.record,
            tokens=_dumped(tokens),
            expires_at=self.expiry(),
            metadata=_dumped(metadata),
            resource=_dumped(context.protected_resource_metadata) if context else None,
            issuer=str(metadata.issuer) if metadata else self.record.issuer,
        )
        await self.sign_in.save(self.record)
        self.sign_in.become(SignInState.SIGNED_IN)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._own is not None:
            return self._own.model_copy(update={"issuer": self.record.issuer or None})
        return _model(OAuthClientInformationFull, self.record.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.record = replace(self.record, client=_dumped(client_info))
        await self.sign_in.save(self.record)

    async def drop_tokens(self) -> None:
        """They are worth nothing any more."""
        self.record = replace(self.record, tokens=None, expires_at=None)
        await self.sign_in.save(self.record)

    async def drop_client(self) -> None:
        """The registration is gone, and with it all tokens.

        Raises:
            KnownFault: `auth`, `reason` `client_refused`: it is the person's own client.
        """
        if self._own is not None:
            raise KnownFault("auth", "the server does not take the client id or its secret", reason="client_refused")
        self.record = replace(self.record, client=None, tokens=None, expires_at=None)
        await self.sign_in.save(self.record)


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

    async def _initialize(self) -> None:
        await super()._initialize()
        context, record = self.context, self.store.record
        context.token_expiry_time = record.expires_at
        if record.issuer and getattr(self, "_issuer", "") is None:
            # Our own credentials go where they went before, and nowhere else.
            setattr(self, "_issuer", record.issuer)  # noqa: B010
        context.oauth_metadata = _model(OAuthMetadata, record.metadata) or context.oauth_metadata
        context.protected_resource_metadata = (
            _model(ProtectedResourceMetadata, record.resource) or context.protected_resource_metadata
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
        elif await _error_of(response) in ("invalid_client", "unauthorized_client"):
            raise ClientRefused
        else:
            await super()._handle_token_response(response)

    async def _refreshed(self, response: httpx2.Response) -> None:
        status = response.status_code
        if status == 429 or status >= 500:
            raise KnownFault(
                "network", f"{response.url.host} answered {status} to the refresh of a token", retryable=True
            )
        error = await _error_of(response)
        if error in ("invalid_client", "unauthorized_client"):
            raise ClientRefused
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

    def come_back_to(self, uri: str) -> None:
        """Where the browser comes back to."""
        self.context.client_metadata.redirect_uris = [AnyUrl(uri)]


class SecretGrant(Remembering, ClientCredentialsOAuthProvider):
    """The host signs in with a secret."""


class JwtGrant(Remembering, PrivateKeyJWTOAuthProvider):
    """The host signs in with a signed assertion."""


class EnterpriseGrant(IdentityAssertionOAuthProvider):
    """The organisation's identity provider vouches for the person."""

    interactive = False
    store: Store

    def keep_in(self, store: Store) -> None:
        """Bind to the store; call once, before use."""
        self.store = store
        store.expiry = lambda: self._expiry

    async def reload(self) -> None:
        await self.store.load()
        self._tokens = await self.store.get_tokens()
        self._expiry = self.store.record.expires_at
        self._initialized = True

    def bearer(self) -> str | None:
        good = self._tokens is not None and (self._expiry is None or time.time() <= self._expiry)
        return self._tokens.access_token if self._tokens is not None and good else None

    def can_refresh(self) -> bool:
        return False  # A new assertion does it, without a person.

    async def refresh(self, send: Send) -> None:
        raise RefreshRefused


def without_issuer_warning(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Make a provider; that the issuer is not configured is no news: the first one seen is kept to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args, **kwargs)


async def _error_of(response: httpx2.Response) -> str:
    """The `error` of a refusal (RFC 6749, 5.2)."""
    if response.status_code < 400:
        return ""
    try:
        body = json.loads(await response.aread())
    except ValueError:
        return ""
    return str(body.get("error", "")) if isinstance(body, dict) else ""


def _dumped(model: BaseModel | None) -> dict[str, Any] | None:
    return model.model_dump(mode="json", exclude_none=True) if model is not None else None


def _model(kind: type[_Model], data: dict[str, Any] | None) -> _Model | None:
    try:
        return kind.model_validate(data) if data else None
    except ValidationError:
        return None
