"""How a server's sign-in is written in its entry."""

from __future__ import annotations

from typing import Any

import pytest

from desktop_host.core.auth import AUTOMATIC, Auth, ClientCredentials, EnterpriseManaged, NoAuth, OAuth
from desktop_host.core.errors import UserFault
from desktop_host.core.servers import Http, ServerConfig, Sse
from desktop_host.servers.entries import from_json, to_json
from desktop_host.servers.hiding import hide
from desktop_host.servers.placeholders import expand_launch
from tests.fakes.memory_vault import MemoryVault

URL = "https://mcp.example/mcp"
ALL: list[Auth] = [
    NoAuth(),
    OAuth("app", "${keyring:web/client_secret}", ("read", "write"), 33418, "https://me.example/client.json"),
    ClientCredentials("robot", private_key="${keyring:web/key}", algorithm="RS256", issuer="https://as.example"),
    ClientCredentials("robot", "${keyring:web/secret}", scopes=("a",)),
    EnterpriseManaged("c", "${keyring:s}", "https://as.example", "https://idp.example/token", "host", "${keyring:t}"),
]


@pytest.mark.parametrize("auth", ALL, ids=lambda a: type(a).__name__)
def test_a_sign_in_is_read_back_as_it_was_written(auth: Auth) -> None:
    for config in (ServerConfig("web", Http(URL, auth=auth)), ServerConfig("web", Sse(URL, auth=auth))):
        assert from_json("web", to_json(config)) == config


def test_an_entry_of_old_signs_in_when_the_server_asks_and_writes_nothing_new() -> None:
    config = from_json("web", {"url": URL})
    assert isinstance(config.launch, Http)
    assert config.launch.auth == AUTOMATIC
    assert to_json(config) == {"type": "http", "url": URL}


@pytest.mark.parametrize(
    ("auth", "key"),
    [
        ("password", "desktopHost.auth.type"),
        ({"type": "oauth", "clientid": "x"}, "desktopHost.auth.clientid"),
        ({"type": "oauth", "redirectPort": 70_000}, "desktopHost.auth.redirectPort"),
        ({"type": "oauth", "clientMetadataUrl": "me.example"}, "desktopHost.auth.clientMetadataUrl"),
        ({"type": "clientCredentials"}, "desktopHost.auth.clientId"),
        ({"type": "clientCredentials", "clientId": "x"}, "desktopHost.auth.clientSecret"),
        ({"type": "enterprise", "clientId": "x", "clientSecret": "y"}, "desktopHost.auth.issuer"),
        ([], "desktopHost.auth"),
    ],
)
def test_a_sign_in_that_cannot_work_is_refused_with_its_key(auth: Any, key: str) -> None:
    with pytest.raises(UserFault) as caught:
        from_json("web", {"url": URL, "desktopHost": {"auth": auth}})
    assert (caught.value.code, caught.value.params["key"]) == ("bad_config", key)


def test_a_plain_client_secret_goes_to_the_vault() -> None:
    config, hidden = hide(ServerConfig("web", Http(URL, auth=OAuth("app", "s3cr3t-s3cr3t"))))
    assert isinstance(config.launch, Http)
    assert config.launch.auth == OAuth("app", "${keyring:web/client_secret}")
    assert hidden.secrets == {"web/client_secret": "s3cr3t-s3cr3t"}


async def test_secrets_of_a_sign_in_are_filled_in_and_known_for_redaction() -> None:
    vault = MemoryVault({"s": "s3cr3t-s3cr3t"})
    launch, secrets = await expand_launch(Http(URL, auth=OAuth("app", "${keyring:s}")), vault, {})
    assert isinstance(launch, Http)
    assert launch.auth == OAuth("app", "s3cr3t-s3cr3t")
    assert secrets == {"s3cr3t-s3cr3t"}
