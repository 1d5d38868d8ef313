"""Sign-ins that a hostile or broken server leads astray: what is sent where, and what the person is told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from desktop_host.core.auth import ClientCredentials, EnterpriseManaged, OAuth, SignInState
from desktop_host.core.servers import Http, ServerConfig, ServerState, ServerStatus
from desktop_host.servers import oauth_web
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.servers.signed import Signed
from tests.fakes.servers.stage import Stage, stage, text, until
from tests.live.oauth_kit import LIMITS, Person, at, login, record

pytestmark = pytest.mark.live
PREFIX = "remedy.server.sign_in."


@pytest.fixture
def signed() -> Iterator[Signed]:
    with Signed() as made:
        yield made


async def refused(s: Stage, reason: str) -> ServerStatus:
    """A sign-in that must fail for this reason, and leave no token."""
    status = await s.servers.login("web")
    assert status.error is not None
    assert (status.state, status.error.remedy) == (ServerState.NEEDS_AUTH, PREFIX + reason), status.error
    assert not json.loads(s.vault._secrets.get("oauth/web", "{}")).get("tokens")
    return status


@pytest.mark.parametrize(
    ("back", "advertised"),
    [({"iss": "https://other.example"}, None), ({"iss": "https://other.example"}, True), ({}, True)],
)
async def test_an_answer_of_another_authorization_server_is_not_taken(
    tmp_path: Path, signed: Signed, back: dict[str, str], advertised: bool | None
) -> None:
    """RFC 9207: the mix-up attack. The code is not spent."""
    signed.back, signed.metadata = back, {"authorization_response_iss_parameter_supported": advertised}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, "flow")
    assert not signed.paths("/token")


async def test_the_right_issuer_in_the_answer_is_taken(tmp_path: Path, signed: Signed) -> None:
    signed.back = {"iss": signed.issuer}
    signed.metadata = {"authorization_response_iss_parameter_supported": True}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await login(s)


async def test_metadata_that_names_another_issuer_is_not_used(tmp_path: Path, signed: Signed) -> None:
    """RFC 8414, 3.3."""
    signed.metadata = {"issuer": "https://bank.example"}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, "flow")
        assert s.reviewer.asked == []
    assert not signed.paths("/register")


async def test_metadata_for_another_resource_is_not_used(tmp_path: Path, signed: Signed) -> None:
    """RFC 9728, 3.3: a server must not have a token made for somebody else."""
    signed.resource = {"resource": "https://bank.example/mcp"}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, "flow")
        assert s.reviewer.asked == []


@pytest.mark.parametrize("scheme", ["file:///etc/passwd", "javascript:alert(1)", "ms-settings:x", "data:text/html,x"])
async def test_what_is_no_web_address_is_never_opened(tmp_path: Path, signed: Signed, scheme: str) -> None:
    signed.metadata = {"authorization_endpoint": scheme}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, "flow")
        assert s.reviewer.asked == []


@pytest.mark.parametrize(
    ("endpoint", "address", "reason"),
    [
        ("authorization_endpoint", "http://login.example/authorize", "insecure"),
        ("authorization_endpoint", "https://accounts.bank.example@evil.example/authorize", "bad_address"),
        ("authorization_endpoint", "https://169.254.169.254/authorize", "inner_address"),
        ("token_endpoint", "http://login.example/token", "insecure"),
        ("token_endpoint", "https://169.254.169.254/latest/api/token", "inner_address"),
        ("registration_endpoint", "http://login.example/register", "insecure"),
    ],
)
async def test_endpoints_in_the_clear_or_inside_the_network_are_not_used(
    tmp_path: Path, signed: Signed, endpoint: str, address: str, reason: str
) -> None:
    signed.metadata = {endpoint: address}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, reason)
        assert endpoint == "token_endpoint" or s.reviewer.asked == []


@pytest.mark.parametrize(
    ("address", "reason"),
    [("http://169.254.169.254/latest/meta-data", "insecure"), ("https://169.254.169.254/", "inner_address")],
)
async def test_a_refusal_cannot_make_the_host_read_addresses_inside_the_network(
    tmp_path: Path, signed: Signed, address: str, reason: str
) -> None:
    """Server-side request forgery through `resource_metadata`."""
    signed.challenge = address
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, reason)
        assert {r.origin for r in signed.seen} == {"mcp"}


async def test_an_authorization_server_that_redirects_is_not_followed(tmp_path: Path, signed: Signed) -> None:
    """Neither with the code nor with a secret: a redirect of the token endpoint ends the sign-in."""
    with Signed() as thief:
        signed.moves = f"{thief.issuer}/token"
        async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
            await refused(s, "flow")
        assert thief.seen == []


async def test_an_endpoint_keeps_its_own_query_but_cannot_choose_the_state(tmp_path: Path, signed: Signed) -> None:
    """RFC 6749, 3.1."""
    signed.metadata = {"authorization_endpoint": f"{signed.issuer}/authorize?p=policy-1&state=chosen&code_challenge=x"}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await login(s)
        asked = parse_qs(urlsplit(s.reviewer.asked[0][1].url).query)
        assert asked["p"] == ["policy-1"]
        assert len(asked["state"]) == 1 and asked["state"] != ["chosen"] and asked["code_challenge"] != ["x"]


@pytest.mark.parametrize("methods", [None, ["plain"]])
async def test_nobody_signs_in_where_pkce_is_not_offered(
    tmp_path: Path, signed: Signed, methods: list[str] | None
) -> None:
    """MCP 2025-11-25, authorization code protection."""
    signed.metadata = {"code_challenge_methods_supported": methods}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, "no_pkce")
        assert s.reviewer.asked == []
    async with stage(tmp_path / "b", at(signed, OAuth(pkce_unlisted=True)), reviewer=Person(), start=False) as s:
        if methods is None:
            await login(s)
        else:
            await refused(s, "no_pkce")


async def test_metadata_of_any_size_is_not_read_into_memory(tmp_path: Path, signed: Signed) -> None:
    signed.padding = 3 * 2**20
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, "too_large")


async def test_an_authorization_server_that_does_not_answer_is_named_in_bounded_time(
    tmp_path: Path, signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth_web, "WEB_S", 0.5)
    signed.hangs = signed.well_known
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        began = time.monotonic()
        status = await s.servers.login("web")
        assert time.monotonic() - began < 8
        assert status.error is not None and "127.0.0.1 could not be reached for the sign-in" in status.error.message
        signed.gate.set()


@pytest.mark.parametrize("given", [{"access_token": "a\r\nX-Evil: 1"}, {"access_token": "é"}, {"expires_in": 10**400}])
async def test_a_token_that_no_header_can_hold_is_refused(tmp_path: Path, signed: Signed, given: Any) -> None:
    signed.given = given
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await refused(s, "flow")


async def test_a_token_that_is_expired_at_birth_is_used_until_the_server_refuses_it(
    tmp_path: Path, signed: Signed
) -> None:
    signed.given = {"expires_in": 0}
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        await login(s)
        assert text(await s.call("web", "echo", m="hi")) == "hi"
        assert len(person.asked) == 1 and not signed.paths("/token", grant_type="refresh_token")


async def test_a_client_that_is_forgotten_at_once_is_not_registered_again_and_again(
    tmp_path: Path, signed: Signed
) -> None:
    """`invalid_client` leads to one new registration, and never to a second question in one sign-in."""
    vault, person = MemoryVault(), Person()
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
    signed.forget_clients()
    signed.expire()
    signed.forgetful = True
    async with stage(tmp_path, at(signed), reviewer=person, vault=vault, start=False) as s:
        await refused(s, "client_forgotten")
    assert len(signed.paths("/register")) == 2
    assert len(person.asked) == 1


async def test_after_a_sign_in_that_never_came_back_the_client_is_registered_anew(
    tmp_path: Path, signed: Signed
) -> None:
    """The browser may have shown that the client is unknown, which nobody tells the host."""
    vault = MemoryVault()
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
    kept = record(vault)  # As after a sign-out elsewhere: the tokens are gone, the registration is not.
    vault._secrets["oauth/web"] = json.dumps({**kept, "tokens": None})
    signed.forget_clients()
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person, vault=vault, start=False) as s:
        going = asyncio.create_task(s.servers.login("web"))
        await until(lambda: person.asked)
        await until(lambda: signed.paths("/authorize")[1:])
        await s.servers.cancel_login("web")
        await going
        await login(s)
    assert len(signed.paths("/register")) == 2


async def test_a_server_without_https_is_never_sent_a_token(tmp_path: Path) -> None:
    """RFC 6750, 5.3. The name stands for another machine; the request is answered on this one."""
    with Signed() as signed:
        port = urlsplit(signed.url).port
        config = ServerConfig("web", Http(f"http://0.0.0.0:{port}/mcp"), timeouts=LIMITS)
        async with stage(tmp_path, config, reviewer=Person(), start=False) as s:
            await refused(s, "insecure")
            assert s.reviewer.asked == []
        assert {r.origin for r in signed.seen} == {"mcp"}
        assert not [r for r in signed.seen if "authorization" in r.headers]


async def test_a_persons_own_client_is_shown_to_its_authorization_server_only(tmp_path: Path, signed: Signed) -> None:
    signed.secret = "s3cret-s3cret"
    vault = MemoryVault({"k": "s3cret-s3cret"})
    auth = OAuth("known", "${keyring:k}")
    async with stage(tmp_path, at(signed, auth), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
    signed.expire()
    signed.refresh.clear()
    with Signed() as thief:
        signed.resource = {"authorization_servers": [thief.issuer]}
        async with stage(tmp_path, at(signed, auth), reviewer=Person(), vault=vault, start=False) as s:
            await refused(s, "issuer_changed")
            assert s.reviewer.asked == []
        named = OAuth("known", "${keyring:k}", issuer=signed.issuer)
        fresh = MemoryVault({"k": "s3cret-s3cret"})
        async with stage(tmp_path / "b", at(signed, named), reviewer=Person(), vault=fresh, start=False) as s:
            await refused(s, "issuer_changed")
        assert thief.seen == []


async def test_wrong_credentials_are_tried_once(tmp_path: Path, signed: Signed) -> None:
    """More would lock the account."""
    signed.secret = "right-right"
    auth = ClientCredentials("known", "${keyring:s}")
    async with stage(tmp_path, at(signed, auth), vault=MemoryVault({"s": "wrong-wrong"})) as s:
        await refused(s, "client_refused")
        assert len(signed.paths("/token")) == 2, "at the start of the host, and at the login"


async def test_an_error_that_comes_back_cannot_paint_the_screen(tmp_path: Path, signed: Signed) -> None:
    signed.back = {"error": "access_denied", "error_description": "\x1b[2J\x07gone\r\n" + "x" * 900}
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        status = await refused(s, "denied")
        assert status.error is not None
        assert status.error.message.isprintable() and len(status.error.message) < 300


# ---- the other ways in


@pytest.mark.parametrize("place", ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"])
@pytest.mark.parametrize(
    "about", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]
)
async def test_metadata_is_found_where_the_specifications_put_it(
    tmp_path: Path, signed: Signed, place: str, about: str
) -> None:
    """RFC 9728 by path and at the root, without a hint in the refusal; RFC 8414, and OpenID Connect Discovery."""
    signed.challenge, signed.well_known, signed.about_at = "", place, about
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await login(s)


async def test_a_signed_assertion_signs_in_and_out(tmp_path: Path, signed: Signed, keys: tuple[str, str]) -> None:
    private, signed.key = keys
    vault = MemoryVault({"pem": private})
    auth = ClientCredentials("robot", private_key="${keyring:pem}", scopes=("read",), issuer=signed.issuer)
    async with stage(tmp_path, at(signed, auth), vault=vault) as s:
        assert text(await s.call("web", "echo", m="hi")) == "hi"
        signed.expire()
        assert text(await s.call("web", "echo", m="again")) == "again"
        token = record(vault)["tokens"]["access_token"]
        assert await s.servers.logout("web") is True
        assert signed.revoked == [token]
        assert "client_assertion" in signed.paths("/revoke")[0].form


async def test_the_organisation_vouches_and_signing_out_revokes(tmp_path: Path, signed: Signed) -> None:
    signed.secret = "robot-robot"
    vault = MemoryVault({"me": "who-i-am", "s": "robot-robot"})
    auth = EnterpriseManaged(
        "known", "${keyring:s}", signed.issuer, f"{signed.issuer}/token", "desk", "${keyring:me}", ("read",)
    )
    async with stage(tmp_path, at(signed, auth), vault=vault) as s:
        assert text(await s.call("web", "echo", m="hi")) == "hi"
        signed.expire()
        assert text(await s.call("web", "echo", m="again")) == "again"
        assert s.servers.status("web").sign_in is SignInState.SIGNED_IN and s.reviewer.asked == []
        token = record(vault)["tokens"]["access_token"]
        assert await s.servers.logout("web") is True
        assert signed.revoked == [token]


@pytest.mark.parametrize(("secrets", "reason"), [(("wrong", "robot-robot"), "idp_refused"),
                                                 (("who-i-am", "wrong-wrong"), "client_refused")])  # fmt: skip
async def test_an_organisation_that_does_not_vouch_is_told_apart_from_a_wrong_secret(
    tmp_path: Path, signed: Signed, secrets: tuple[str, str], reason: str
) -> None:
    signed.secret = "robot-robot"
    vault = MemoryVault({"me": secrets[0], "s": secrets[1]})
    auth = EnterpriseManaged("known", "${keyring:s}", signed.issuer, f"{signed.issuer}/token", "desk", "${keyring:me}")
    async with stage(tmp_path, at(signed, auth), vault=vault) as s:
        await refused(s, reason)


@pytest.fixture(scope="module")
def keys() -> tuple[str, str]:
    """A pair for ES256, private first."""
    from cryptography.hazmat.primitives import serialization as s11n
    from cryptography.hazmat.primitives.asymmetric import ec

    made = ec.generate_private_key(ec.SECP256R1())
    private = made.private_bytes(s11n.Encoding.PEM, s11n.PrivateFormat.PKCS8, s11n.NoEncryption())
    public = made.public_key().public_bytes(s11n.Encoding.PEM, s11n.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
