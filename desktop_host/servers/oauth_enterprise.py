"""Enterprise-managed authorization: the organisation's identity provider vouches for the person (SEP-990)."""

from __future__ import annotations

import time

import httpx2
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthMetadata
from pydantic import ValidationError

from desktop_host.core.auth import EnterpriseManaged
from desktop_host.core.errors import KnownFault
from desktop_host.servers.oauth_grants import RefreshRefused, Send, refuse_client
from desktop_host.servers.oauth_store import Store
from desktop_host.servers.sign_in import SignIn

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


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

    async def look_at(self, request: httpx2.Request, response: httpx2.Response) -> None:
        """Keep the metadata, which tells where tokens are revoked; a client that is not taken is told as such."""
        if request.method != "GET":
            await refuse_client(response)
        elif response.status_code == 200:
            try:
                self.store.found = OAuthMetadata.model_validate_json(await response.aread())
            except ValidationError:
                self.store.found = None  # The SDK says what is wrong with it.


def enterprise_grant(auth: EnterpriseManaged, url: str, sign_in: SignIn, send: Send) -> EnterpriseGrant:
    """A fresh grant for one connection."""

    async def vouched(audience: str, resource: str) -> str:
        """RFC 8693: the identity token for an assertion that the server's authorization server takes."""
        form = {
            "grant_type": _EXCHANGE,
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "subject_token": auth.idp_token,
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "audience": audience,
            "resource": resource,
            "client_id": auth.idp_client_id,
        }
        response = await send(httpx2.Request("POST", auth.idp_token_endpoint, data=form))
        if response.status_code == 200:
            body = response.json()
            if isinstance(body, dict) and isinstance(made := body.get("access_token"), str):
                return made
        raise KnownFault(
            "auth", f"{response.url.host}, the identity provider, answered {response.status_code}",
            reason="idp_refused", host=response.url.host, status=response.status_code,
        )  # fmt: skip

    store = Store(sign_in, url, own=True)
    grant = EnterpriseGrant(
        url, store, auth.client_id, auth.client_secret, auth.issuer, vouched,
        scope=" ".join(auth.scopes) or None, token_endpoint_auth_method="client_secret_basic",
    )  # fmt: skip
    grant.keep_in(store)
    return grant
