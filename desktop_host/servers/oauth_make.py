"""From a server's configured sign-in to the grant that does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.client.auth.extensions.client_credentials import SignedJWTParameters
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from desktop_host.core.auth import ClientCredentials, EnterpriseManaged, OAuth
from desktop_host.core.errors import UserFault
from desktop_host.core.servers import Http, Sse
from desktop_host.servers.oauth_enterprise import EnterpriseGrant, enterprise_grant
from desktop_host.servers.oauth_grants import (
    CodeGrant,
    JwtGrant,
    Remembering,
    SecretGrant,
    Send,
    without_issuer_warning,
)
from desktop_host.servers.oauth_store import Store
from desktop_host.servers.oauth_web import merged
from desktop_host.servers.sign_in import SignIn


class Browser:
    """The way to the person's browser; `visit` is set while somebody may be asked."""

    def __init__(self) -> None:
        self.visit: Callable[[str], Awaitable[dict[str, str]]] | None = None
        self.endpoint: Callable[[], str] = lambda: ""
        """The authorization endpoint as the metadata names it."""
        self._url = ""

    async def go(self, url: str) -> None:
        """The SDK's redirect handler."""
        endpoint = self.endpoint()
        self._url = merged(endpoint, url) if "?" in endpoint or "#" in endpoint else url

    async def back(self) -> AuthorizationCodeResult:
        """The SDK's callback handler."""
        assert self.visit is not None
        came = await self.visit(self._url)
        return AuthorizationCodeResult(code=came["code"], state=came.get("state"), iss=came.get("iss"))


def make_grant(launch: Http | Sse, sign_in: SignIn, browser: Browser, send: Send) -> Remembering | EnterpriseGrant:
    """A fresh grant for one connection.

    Raises:
        UserFault: `bad_config`, a client metadata address that is none.
    """
    auth, url = launch.auth, launch.url
    match auth:
        case OAuth():
            return _code(auth, url, sign_in, browser)
        case ClientCredentials():
            return _credentials(auth, url, sign_in)
        case EnterpriseManaged():
            return enterprise_grant(auth, url, sign_in, send)
    raise AssertionError("a server without a sign-in has no grant")


def _code(auth: OAuth, url: str, sign_in: SignIn, browser: Browser) -> CodeGrant:
    document = auth.client_metadata_url or sign_in.defaults().client_metadata_url
    if document and not is_valid_client_metadata_url(document):
        raise UserFault(
            "bad_config",
            f"{document!r} is no address of a client metadata document: https and a path are needed",
            reason="bad_client_metadata_url", server=sign_in.name,
        )  # fmt: skip
    own = None
    if auth.client_id:
        method: Any = "client_secret_basic" if auth.client_secret else "none"
        own = OAuthClientInformationFull(
            client_id=auth.client_id,
            client_secret=auth.client_secret or None,
            redirect_uris=None,
            token_endpoint_auth_method=method,
        )
    store = Store(sign_in, url, own)
    metadata = OAuthClientMetadata(
        client_name="Desktop Host",
        redirect_uris=[AnyUrl("http://127.0.0.1/callback")],
        application_type="native",
        software_id="desktop-host",
    )
    grant = CodeGrant(url, metadata, store, browser.go, browser.back, client_metadata_url=document or None)
    grant.scopes, grant.issuer, grant.pkce_unlisted = auth.scopes, auth.issuer, auth.pkce_unlisted
    grant.keep_in(store)

    def endpoint() -> str:
        found = grant.context.oauth_metadata
        return str(found.authorization_endpoint) if found else ""

    browser.endpoint = endpoint
    return grant


def _credentials(auth: ClientCredentials, url: str, sign_in: SignIn) -> SecretGrant | JwtGrant:
    store, scope, issuer = Store(sign_in, url, own=True), " ".join(auth.scopes) or None, auth.issuer or None
    grant: SecretGrant | JwtGrant
    if auth.private_key:
        signing = SignedJWTParameters(
            issuer=auth.client_id, subject=auth.client_id,
            signing_key=auth.private_key, signing_algorithm=auth.algorithm,
        )  # fmt: skip
        grant = without_issuer_warning(
            JwtGrant, url, store, auth.client_id, signing.create_assertion_provider(), scope=scope, issuer=issuer
        )
    else:
        grant = without_issuer_warning(
            SecretGrant, url, store, auth.client_id, auth.client_secret, scope=scope, issuer=issuer
        )
    grant.scopes = auth.scopes
    grant.keep_in(store)
    return grant
