"""Signing out: tokens are revoked where the authorization server offers it (RFC 7009)."""

from __future__ import annotations

import base64
from urllib.parse import quote

import httpx2

from desktop_host.core.auth import Auth
from desktop_host.core.errors import HostError
from desktop_host.servers.oauth import send
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
    try:
        answers = [(await send(_request(endpoint, kind, token, record, auth))).status_code for kind, token in held]
    except HostError:
        return False
    return all(status == 200 for status in answers)


def _request(endpoint: str, kind: str, token: str, record: Record, auth: Auth) -> httpx2.Request:
    client = record.client or {}
    name = str(getattr(auth, "client_id", "") or client.get("client_id", ""))
    secret = str(getattr(auth, "client_secret", "") or client.get("client_secret") or "")
    form = {"token": token, "token_type_hint": kind}
    headers = {}
    if not secret:
        form["client_id"] = name
    elif client.get("token_endpoint_auth_method") == "client_secret_post":
        form |= {"client_id": name, "client_secret": secret}
    else:
        pair = f"{quote(name, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return httpx2.Request("POST", endpoint, data=form, headers=headers)
