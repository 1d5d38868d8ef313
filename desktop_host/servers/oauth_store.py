"""The SDK's token storage over the vault's record of one server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import BaseModel, ValidationError

from desktop_host.core.auth import SignInState
from desktop_host.core.errors import HostError, KnownFault, PeerFault
from desktop_host.servers.sign_in import Record, SignIn

_Model = TypeVar("_Model", bound=BaseModel)


class Store:
    """The SDK's token storage over the vault's record."""

    def __init__(
        self, sign_in: SignIn, url: str, own_client: OAuthClientInformationFull | None = None, *, own: bool = False
    ) -> None:
        self.sign_in, self.url = sign_in, url
        self.record = Record(url)
        self._own = own_client
        self.own = own or own_client is not None
        """Whether the client is the person's: it is never registered anew."""
        self.found: OAuthMetadata | None = None
        """Of the authorization server, where there is no context that holds it."""
        self.context: OAuthContext | None = None
        self.expiry: Callable[[], float | None] = lambda: None

    async def load(self) -> Record:
        """Read the vault."""
        self.record = await self.sign_in.load(self.url)
        return self.record

    async def get_tokens(self) -> OAuthToken | None:
        return read_model(OAuthToken, self.record.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.context
        if not all(_presentable(t) for t in (tokens.access_token, tokens.refresh_token or "-")):
            raise PeerFault("auth", "the server gave a token that no header can hold", reason="flow")
        if context is not None and tokens.expires_in is not None and tokens.expires_in <= 0:
            context.token_expiry_time = None  # Expired at birth: the server will say when it really is.
        metadata = context.oauth_metadata if context else self.found
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
        return read_model(OAuthClientInformationFull, self.record.client)

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
        if self.own:
            raise KnownFault("auth", "the server does not take the client id or its secret", reason="client_refused")
        self.record = replace(self.record, client=None, tokens=None, expires_at=None)
        await self.sign_in.save(self.record)

    async def drop_unproved_client(self) -> None:
        """Nobody came back from the browser: perhaps it showed that the client is unknown. The next try registers."""
        if self.record.client and not self.record.tokens:
            with contextlib.suppress(HostError):
                await self.drop_client()


def _presentable(token: str) -> bool:
    """RFC 6749, A.12: visible ASCII."""
    return bool(token) and all(" " <= sign <= "~" for sign in token)


def _dumped(model: BaseModel | None) -> dict[str, Any] | None:
    return model.model_dump(mode="json", exclude_none=True) if model is not None else None


def read_model(kind: type[_Model], data: dict[str, Any] | None) -> _Model | None:
    """What the vault holds of one, if it can still be read."""
    try:
        return kind.model_validate(data) if data else None
    except ValidationError:
        return None
