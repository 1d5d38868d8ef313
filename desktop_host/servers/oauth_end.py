"""Signing out: tokens are revoked where the authorization server offers it (RFC 7009)."""

from __future__ import annotations

import base64
from urllib.parse import quote

import httpx2
from mcp.client.auth.extensions.client_credentials import SignedJWTParameters

from desktop_host.core.auth import Auth, ClientCredentials
from desktop_host.core.errors import HostError
from desktop_host.servers.oauth_web import web_for
from desktop_host.servers.sign_in import Record


async def revoke(record: Record, auth: Auth) -> bool:
    """Tell the authorization server that the tokens are over; whether it took note of all of them.

    Never fails: signing out on this machine must not depend on the network.
    """
    endpoint = (record.metadata or {}).get("revocation_endpoint")
    tokens = record.tokens or {}
    # The refresh token first: many servers end the access tokens with it.
    held = [(kind, tokens[kind]) for kind in ("refresh_token", "access_token") if isinstance(tokens.get(kind), str)]
    if not isinstance(endpoint, str) or not held:
        return False
    web = web_for(record.url, auth)
    try:
        asks = [await _request(endpoint, kind, token, record, auth) for kind, token in held]
        answers = [(await web.send(ask)).status_code for ask in asks]
    except (HostError, ValueError, TypeError):  # The last two: a key that signs nothing any more.
        return False
    return all(status == 200 for status in answers)


async def _request(endpoint: str, kind: str, token: str, record: Record, auth: Auth) -> httpx2.Request:
    """The client shows itself as at the token endpoint (RFC 7009, 2.1)."""
    client, metadata = record.client or {}, record.metadata or {}
    name = str(getattr(auth, "client_id", "") or client.get("client_id", ""))
    secret = str(getattr(auth, "client_secret", "") or client.get("client_secret") or "")
    taken = metadata.get("revocation_endpoint_auth_methods_supported") or metadata.get(
        "token_endpoint_auth_methods_supported"
    )
    form = {"token": token, "token_type_hint": kind}
    headers = {}
    if isinstance(auth, ClientCredentials) and auth.private_key:
        signing = SignedJWTParameters(
            issuer=auth.client_id, subject=auth.client_id,
            signing_key=auth.private_key, signing_algorithm=auth.algorithm,
        )  # fmt: skip
        form |= {
            "client_assertion": await signing.create_assertion_provider()(str(metadata.get("issuer", ""))),
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        }
    elif not secret:
        form["client_id"] = name
    elif client.get("token_endpoint_auth_method") == "client_secret_post" or (
        taken and "client_secret_basic" not in taken and "client_secret_post" in taken
    ):
        form |= {"client_id": name, "client_secret": secret}
    else:
        pair = f"{quote(name, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return httpx2.Request("POST", endpoint, data=form, headers=headers)
