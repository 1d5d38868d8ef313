"""The person's part of signing in: asked through the `Reviewer`, waited for, and free to say no at any time."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

from desktop_host.core.auth import SignInState
from desktop_host.core.errors import KnownFault
from desktop_host.core.exchange import Origin, UrlRequest
from desktop_host.core.ports import Reviewer
from desktop_host.servers.loopback import Loopback
from desktop_host.servers.sign_in import SignIn
from desktop_host.servers.wiring import Floor

SIGN_IN_S = 600.0
"""How long a person may take in the browser."""


class Consent:
    """Asks the person who works with one connection."""

    def __init__(self, sign_in: SignIn, reviewer: Reviewer, floor: Floor) -> None:
        self._sign_in, self._reviewer, self._floor = sign_in, reviewer, floor

    @property
    def possible(self) -> bool:
        """Whether somebody waits for this server now: only then is a person asked."""
        return self._sign_in.welcome or bool(self._floor.calls)

    async def visit(self, url: str, loopback: Loopback, purpose: str = "sign_in") -> dict[str, str]:
        """Ask the person to open `url` and wait until the browser comes back; deadlines stand still meanwhile.

        `purpose`: as in `UrlRequest`.

        Raises:
            KnownFault: `auth` with `reason`: `declined`, `cancelled`, `denied`, `sign_in_timeout`.
        """
        loopback.expect(parse_qs(urlsplit(url).query).get("state", [""])[0])
        origin = self._floor.origin() or Origin(self._floor.server, self._floor.session)
        request = UrlRequest(f"Sign in to {self._floor.server} at {urlsplit(url).netloc}", url, purpose=purpose)
        self._sign_in.become(SignInState.SIGNING_IN)
        with self._floor.asking():
            asked = asyncio.ensure_future(self._reviewer.elicit(origin, request))
            back = asyncio.ensure_future(loopback.answer())
            stop = asyncio.ensure_future(self._sign_in.cancelled.wait())
            every: set[asyncio.Future[Any]] = {asked, back, stop}
            waiting = set(every)
            try:
                async with asyncio.timeout(SIGN_IN_S):
                    while True:
                        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                        if back in done:
                            return back.result()
                        if stop in done:
                            raise KnownFault("auth", "the sign-in was stopped", reason="cancelled")
                        if asked.result().action != "accept":
                            raise KnownFault("auth", "the sign-in was declined", reason="declined")
                        waiting.discard(asked)
            except TimeoutError:
                raise KnownFault(
                    "auth", f"nobody signed in within {SIGN_IN_S / 60:g} minutes", reason="sign_in_timeout"
                ) from None
            finally:
                for one in every:
                    one.cancel()
                await asyncio.wait(every)
                for one in every:
                    if not one.cancelled():
                        one.exception()  # Whichever came second is of no interest any more.
