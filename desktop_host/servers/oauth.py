"""Signing in to a remote server, below MCP: a transport that adds the token and gets one where it is wanted.

The SDK's provider would hold a lock until each answer has begun, so that one slow call blocks all others
(python-sdk issue 3209), and a cancelled flow would spoil the lock for good (issue 3382). Here a request is sent
without any lock while its token is good; only getting a token has a turn; each connection has its own provider.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, extract_scope_from_www_auth

from desktop_host.core.auth import SignInState
from desktop_host.core.errors import HostError, KnownFault
from desktop_host.core.servers import Http, Sse
from desktop_host.servers.consent import Consent
from desktop_host.servers.http import HTTP_FAILED, HttpFacts, is_home, whole
from desktop_host.servers.loopback import Loopback
from desktop_host.servers.oauth_grants import ClientRefused, CodeGrant, RefreshRefused
from desktop_host.servers.oauth_make import Browser, make_grant
from desktop_host.servers.oauth_web import is_secure, refuse_insecure, understood, web_for
from desktop_host.servers.sign_in import SignIn
from desktop_host.servers.wiring import Floor, Wiring

# It logs whole answers of token endpoints and the state of a sign-in; what failed is told by our faults.
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)

NOT_SIGNED_IN = -32012
"""JSON-RPC code of a request that was not sent, or not taken, for want of a token."""


class Signed(httpx2.AsyncBaseTransport):
    """Wraps the transport of one connection."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        launch: Http | Sse,
        wiring: Wiring,
        floor: Floor,
        facts: HttpFacts,
        lost: Callable[[], None],
    ) -> None:
        self._inner, self._home, self._facts, self._lost = inner, httpx2.URL(launch.url), facts, lost
        self._sign_in: SignIn = wiring.sign_in
        self._consent = Consent(wiring.sign_in, wiring.reviewer, floor)
        self._floor = floor
        self._browser, self._redact = Browser(), wiring.redact
        self._web = web_for(launch.url, launch.auth)
        self._grant = make_grant(launch, wiring.sign_in, self._browser, self._web.send)
        self._auth = launch.auth
        self._loading = asyncio.Lock()
        self._loaded = False
        self._refused: HostError | None = None
        """Why no token could be had: the same answer for the rest of this connection, without asking again."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send with a token, if there is one; get one if the server wants one and we can."""
        if not is_home(self._home, request.url):
            return await self._inner.handle_async_request(request)
        if not is_secure(str(request.url)):
            return await self._in_the_clear(request)
        try:
            await self._load()
            if request.method != "DELETE":
                await self._renew()
        except HostError as fault:
            return self._told(fault)
        sent = self._bear(request)
        response = await self._inner.handle_async_request(request)
        if request.method == "DELETE" or not _challenged(response):
            return response
        response = await whole(response)
        response.request = request
        if self._refused is not None and response.status_code == 401:
            return self._told(self._refused)
        try:
            await self._obtain(request, response, sent)
        except HostError as fault:
            with contextlib.suppress(HostError):
                await self._grant.reload()  # Of a flow that failed half-way nothing stays.
            if response.status_code == 403:
                return response  # The token is good, only not for this; the server's own words stand.
            await self._refuse(fault, sent)
            return self._told(fault)
        self._bear(request)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    # ---- inside
    async def _in_the_clear(self, request: httpx2.Request) -> httpx2.Response:
        """A server without https gets no token: anybody on the way could take it."""
        response = await self._inner.handle_async_request(request)
        if request.method == "DELETE" or not _challenged(response):
            return response
        await response.aclose()
        try:
            refuse_insecure(str(request.url))
        except KnownFault as fault:
            await self._refuse(fault, None)
            return self._told(fault)
        return response

    async def _load(self) -> None:
        async with self._loading:
            if self._loaded:
                return
            self._loaded = True
            try:
                with self._floor.asking():
                    await self._grant.reload()
            except KnownFault as fault:
                self._refused = fault  # Told only if the server wants a token at all.

    def _bear(self, request: httpx2.Request) -> str | None:
        token = self._grant.bearer()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        else:
            request.headers.pop("Authorization", None)
        return token

    async def _renew(self) -> None:
        """Refresh an expired token before it is tried."""
        grant = self._grant
        if grant.bearer() is not None or not grant.can_refresh():
            return
        async with self._sign_in.turn():
            await grant.reload()
            if grant.bearer() is not None or not grant.can_refresh():
                return  # Another connection, or another process, was faster.
            try:
                with understood(self._redact):
                    await grant.refresh(self._web.send)
            except RefreshRefused:
                pass  # The server will say what it wants.
            except ClientRefused:
                await grant.store.drop_client()
                await grant.reload()

    async def _obtain(self, request: httpx2.Request, refusal: httpx2.Response, sent: str | None) -> None:
        """Get a token that the server may take, after it answered 401, or 403 for want of scope.

        Raises:
            HostError: there is none to be had.
        """
        grant, step_up = self._grant, refusal.status_code == 403
        async with self._sign_in.turn():
            await grant.reload()
            if grant.bearer() not in (None, sent) and not (step_up and self._lacks(refusal)):
                return
            if isinstance(grant, CodeGrant):
                grant.may_refresh = not step_up
            for _ in range(3):
                known = grant.store.record.client
                try:
                    return await self._flow(request, refusal)
                except RefreshRefused:
                    if isinstance(grant, CodeGrant):
                        grant.may_refresh = False
                except ClientRefused:
                    fresh = grant.store.record.client != known
                    await grant.store.drop_client()
                    if fresh:  # A registration of just now: another one would fare no better.
                        raise KnownFault(
                            "auth", "the server does not take the client that it has just registered",
                            reason="client_forgotten",
                        ) from None  # fmt: skip
                await grant.reload()
            raise KnownFault("auth", "the server takes neither what we had nor what it just gave", reason="flow")

    def _lacks(self, refusal: httpx2.Response) -> bool:
        wanted = set((extract_scope_from_www_auth(refusal) or "").split())
        held = set(str((self._grant.store.record.tokens or {}).get("scope", "")).split())
        return not wanted or not wanted <= held

    async def _flow(self, request: httpx2.Request, refusal: httpx2.Response) -> None:
        """Drive the SDK's flow up to the point where it would send the request again.

        Raises:
            RefreshRefused, ClientRefused: as they say.
            HostError: the sign-in failed.
        """
        grant = self._grant
        if not isinstance(grant, CodeGrant):
            return await self._driven(request, refusal)
        ask = self._consent.possible
        if not ask and not (grant.may_refresh and grant.can_refresh()):
            raise KnownFault("auth", f"{self._sign_in.name} wants you to sign in", reason="sign_in_needed")
        loopback = Loopback()
        try:
            with self._floor.asking():  # A vault may ask for its passphrase.
                await self._open(loopback, grant, ask)
            more = "more_access" if refusal.status_code == 403 else "sign_in"
            self._browser.visit = lambda url: self._visit(url, loopback, more) if ask else _nobody(self._sign_in.name)
            await self._driven(request, refusal)
        except KnownFault as fault:
            if fault.params.get("reason") in ("cancelled", "sign_in_timeout"):
                await grant.store.drop_unproved_client()
            raise
        finally:
            self._browser.visit = None
            await loopback.close()

    async def _visit(self, url: str, loopback: Loopback, purpose: str) -> dict[str, str]:
        await self._web.allow(url)
        return await self._consent.visit(url, loopback, purpose)

    async def _open(self, loopback: Loopback, grant: CodeGrant, ask: bool) -> None:
        """Listen where the client is registered to come back to; else register it anew."""
        fixed = getattr(self._auth, "redirect_port", 0) or self._sign_in.defaults().redirect_port
        kept = grant.store.record.port
        if ask:
            try:
                await loopback.open(fixed or kept)
            except KnownFault:
                if fixed or not kept:
                    raise
                await loopback.open(0)
        grant.come_back_to(loopback.uri if ask else f"http://127.0.0.1:{kept or fixed}/callback")
        if ask and loopback.port != kept:
            record = replace(grant.store.record, port=loopback.port)
            if record.client and loopback.uri not in (record.client.get("redirect_uris") or ()):
                record = replace(record, client=None)
            grant.store.record = record
            await self._sign_in.save(record)
            await grant.reload()

    async def _driven(self, request: httpx2.Request, refusal: httpx2.Response) -> None:
        flow = self._grant.async_auth_flow(request)
        answered = False
        try:
            with understood(self._redact):
                outgoing = await flow.__anext__()
                while True:
                    if outgoing is not request:
                        response = await self._web.send(outgoing)
                        await self._grant.look_at(outgoing, response)
                    elif not answered:
                        answered, response = True, refusal
                    else:
                        return
                    outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _refuse(self, fault: HostError, sent: str | None) -> None:
        if fault.code == "auth":
            self._refused = fault
            self._sign_in.become(SignInState.NEEDED)
            if sent is not None:  # Else we were never in, and connecting anew would change nothing.
                with contextlib.suppress(HostError):
                    await self._grant.store.drop_tokens()
                self._lost()
            return
        if fault.code != "network":
            self._refused = fault  # A vault that was refused its passphrase does not ask again at once.
        if self._sign_in.state is SignInState.SIGNING_IN:
            self._sign_in.become(SignInState.NEEDED)

    def _told(self, fault: HostError) -> httpx2.Response:
        self._facts.fault = fault
        status, code = (503, HTTP_FAILED) if fault.code == "network" else (401, NOT_SIGNED_IN)
        error = {"code": code, "message": fault.message}
        return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error})


async def _nobody(name: str) -> dict[str, str]:
    raise KnownFault("auth", f"{name} wants you to sign in", reason="sign_in_needed")


def _challenged(response: httpx2.Response) -> bool:
    return response.status_code == 401 or (
        response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
    )
