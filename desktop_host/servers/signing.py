"""What a person does about signing in: in, out, and out of a sign-in that is under way."""

from __future__ import annotations

import asyncio
from abc import ABC

from desktop_host.core.auth import SignInState
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.servers import Http, ServerConfig, ServerState, ServerStatus, Sse
from desktop_host.servers.book import Book
from desktop_host.servers.loading import sdk
from desktop_host.servers.placeholders import expand_launch
from desktop_host.servers.pool import Pool
from desktop_host.servers.sign_in import wants_sign_in

REVOKE_S = 10.0
"""How long the removal of a server waits until its tokens are revoked."""


class Signing(ABC):
    """The part of `Servers` that signs in and out."""

    _book: Book
    _pool: Pool
    _held: set[str]

    async def login(self, name: str) -> ServerStatus:
        config = self._signable(name)
        self._held.discard(name)
        keeper = self._pool.keeper(config)
        if keeper.state is ServerState.READY and keeper.wiring.sign_in.state is not SignInState.NEEDED:
            return self._pool.status(config)
        await keeper.stop()
        await self._pool.start(keeper)
        return self._pool.status(config)

    async def cancel_login(self, name: str) -> None:
        self._pool.wiring(self._book.get(name)).sign_in.cancelled.set()

    async def end_sign_in(self, config: ServerConfig) -> bool:
        """Before a server is removed: stop it and revoke its tokens; False where nobody could be told of them.

        Takes `REVOKE_S` at most: removing must not depend on the network.
        """
        wiring = self._pool.wiring(config)
        if not wants_sign_in(config.launch):
            return True
        try:
            async with asyncio.timeout(REVOKE_S):
                launch, secrets = await expand_launch(config.launch, wiring.secrets, wiring.environ)
                wiring.redact.learn(secrets)
                assert isinstance(launch, (Http, Sse))
                record = await wiring.sign_in.load(launch.url)
                if not record.tokens:
                    return True
                await self._pool.stop(config.name)
                async with wiring.sign_in.turn():
                    oauth_end = await sdk("oauth_end")
                    told: bool = await oauth_end.revoke(await wiring.sign_in.load(launch.url), launch.auth)
                    return told
        except (HostError, TimeoutError):
            return False  # A vault that does not open, or a server that does not answer.

    async def logout(self, name: str) -> bool:
        config = self._signable(name)
        self._held.add(name)
        await self._pool.stop(name)
        wiring = self._pool.wiring(config)
        launch, secrets = await expand_launch(config.launch, wiring.secrets, wiring.environ)
        wiring.redact.learn(secrets)
        assert isinstance(launch, (Http, Sse))
        oauth_end = await sdk("oauth_end")
        async with wiring.sign_in.turn():
            record = await wiring.sign_in.load(launch.url)
            told: bool = await oauth_end.revoke(record, launch.auth)
            await wiring.sign_in.forget(record)
        return told

    def _signable(self, name: str) -> ServerConfig:
        config = self._book.get(name)
        if not wants_sign_in(config.launch):
            raise UserFault("usage", f"{name} is not signed in to", reason="no_sign_in", server=name)
        return config
