"""A launch with what the profile gives its servers: variables for local ones, headers bound to an origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from desktop_host.core.admin import SecretStore
from desktop_host.core.server_values import ServerValues
from desktop_host.core.servers import Launch, ServerConfig, Stdio
from desktop_host.core.values import FrozenDict
from desktop_host.servers.placeholders import expand_launch


async def ready_launch(
    config: ServerConfig, values: ServerValues, secrets: SecretStore, environ: Mapping[str, str]
) -> tuple[Launch, frozenset[str]]:
    """A server's launch ready to be used, the profile's values included, and the secret values in it.

    The entry's own variables and headers go before the profile's. A header of the profile is looked for by the
    address as it is once its placeholders are filled, so it follows no server to another one.

    Raises:
        UserFault, KnownFault: as `expand_launch`.
    """
    launch = config.launch
    if isinstance(launch, Stdio):
        given = values.variables_for(config.name)
        return await expand_launch(replace(launch, env=FrozenDict({**given, **launch.env})), secrets, environ)
    done, hidden = await expand_launch(launch, secrets, environ)
    assert not isinstance(done, Stdio)
    own = {name.lower() for name in done.headers}
    more = {name: value for name, value in values.headers_for(done.url).items() if name.lower() not in own}
    if not more:
        return done, hidden
    filled, more_hidden = await expand_launch(replace(done, url="", headers=FrozenDict(more)), secrets, environ)
    assert not isinstance(filled, Stdio)
    return replace(done, headers=FrozenDict({**done.headers, **filled.headers})), hidden | more_hidden
