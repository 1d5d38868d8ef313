"""Signing in to remote servers: a real MCP server and authorization server on this machine, a played person."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from desktop_host.core.auth import ClientCredentials, NoAuth, OAuth, SignInDefaults, SignInState
from desktop_host.core.errors import UserFault
from desktop_host.core.exchange import ElicitReply, Origin, UrlRequest
from desktop_host.core.messages import Outcome
from desktop_host.core.servers import Http, ServerScope, ServerState, Sse, Timeouts
from desktop_host.core.values import FrozenDict
from desktop_host.servers.supervisor import Servers
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.servers.signed import Signed
from tests.fakes.servers.stage import OpenReviewer, WallClock, stage, text, until
from tests.live.oauth_kit import Person, all_files, at, browse, login, record

pytestmark = pytest.mark.live


@pytest.fixture
def signed() -> Iterator[Signed]:
    with Signed() as made:
        yield made


async def test_a_person_signs_in_once_and_the_token_goes_to_the_server_only(
    tmp_path: Path, signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    """Hazard O136."""
    caplog.set_level(logging.DEBUG)
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        await login(s)
        assert text(await s.call("web", "echo", m="hi")) == "hi"
        assert [type(r) for _, r in person.asked] == [UrlRequest]
        assert person.asked[0][0] == Origin("web", None, None)
        asked = parse_qs(urlsplit(person.asked[0][1].url).query)
        assert asked["code_challenge_method"] == ["S256"]
        assert asked["resource"] == [signed.url]
        assert all("authorization" not in r.headers for r in signed.seen if r.origin == "as")
        frames, lines = json.dumps([f.message for f in s.servers.trace("web")]), str(s.servers.logs("web"))
        kept = await asyncio.to_thread(all_files, tmp_path)
        for token in signed.tokens():
            assert token in s.vault._secrets["oauth/web"]
            for place in (frames, lines, kept, caplog.text, str(s.events)):
                assert token not in place


async def test_without_a_person_nothing_is_asked_or_registered_and_the_state_says_so(
    tmp_path: Path, signed: Signed
) -> None:
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person) as s:
        status = s.servers.status("web")
        assert (status.state, status.sign_in) == (ServerState.NEEDS_AUTH, SignInState.NEEDED)
        assert status.error is not None
        assert (status.error.code, status.error.remedy) == ("auth", "remedy.server.sign_in.sign_in_needed")
        assert person.asked == [] and not signed.paths("/register")
        await login(s)
        assert s.servers.status("web").error is None


async def test_an_expired_token_is_refreshed_after_a_restart_without_a_person(tmp_path: Path, signed: Signed) -> None:
    """Hazards L121, L125."""
    vault, person = MemoryVault(), Person()
    signed.ttl_s = 1
    async with stage(tmp_path, at(signed), reviewer=person, vault=vault, start=False) as s:
        await login(s)
    assert record(vault)["expires_at"] <= time.time() + 1
    await until(lambda: time.time() > record(vault)["expires_at"])
    signed.ttl_s = 3600
    async with stage(tmp_path, at(signed), reviewer=person, vault=vault) as s:
        assert s.servers.status("web").state is ServerState.READY
        assert text(await s.call("web", "echo", m="again")) == "again"
    assert len(person.asked) == 1
    assert len(signed.paths("/token", grant_type="refresh_token", resource=signed.url)) == 1
    assert {r.origin for r in signed.paths("/token")} == {"as"}


@pytest.mark.parametrize("rotates", [True, False])
async def test_a_token_that_the_server_ends_early_is_refreshed_during_the_call(
    tmp_path: Path, signed: Signed, rotates: bool
) -> None:
    """Hazard L121."""
    signed.rotates = rotates
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        await login(s)
        for n in range(2):
            signed.expire()
            assert text(await s.call("web", "echo", m=str(n))) == str(n)
        assert len(person.asked) == 1
        assert len(signed.paths("/token", grant_type="refresh_token")) == 2


async def test_the_port_and_the_registration_are_kept_from_one_sign_in_to_the_next(
    tmp_path: Path, signed: Signed
) -> None:
    """Hazard L122."""
    vault = MemoryVault()
    for _ in range(2):
        async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
            await login(s)
        signed.expire()
        signed.refresh.clear()
    assert len(signed.paths("/register")) == 1
    assert len(signed.paths("/authorize")) == 2
    port = record(vault)["port"]
    assert record(vault)["client"]["redirect_uris"] == [f"http://127.0.0.1:{port}/callback"]


async def test_a_kept_port_that_is_taken_is_left_for_another_and_registered_anew(
    tmp_path: Path, signed: Signed
) -> None:
    """Hazard L125."""
    vault = MemoryVault()
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
    signed.expire()
    signed.refresh.clear()
    with socket.create_server(("127.0.0.1", record(vault)["port"])):
        async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
            await login(s)
    assert len(signed.paths("/register")) == 2


async def test_a_fixed_port_that_is_taken_is_named_before_the_browser_opens(tmp_path: Path, signed: Signed) -> None:
    """Hazard L125."""
    person = Person()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with stage(tmp_path, at(signed, OAuth(redirect_port=port)), reviewer=person, start=False) as s:
            status = await s.servers.login("web")
            assert status.state is ServerState.NEEDS_AUTH
            assert status.error is not None and str(port) in status.error.message
            assert status.error.remedy == "remedy.server.sign_in.port_taken"
            assert person.asked == []


async def test_the_port_of_the_settings_is_used_for_servers_that_name_none(tmp_path: Path, signed: Signed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    servers = Servers(
        tmp_path, MemoryVault(), Person(), lambda _e: None, WallClock(), extra=(at(signed),),
        sign_in=lambda: SignInDefaults(redirect_port=port),
    )  # fmt: skip
    await servers.open()
    try:
        assert (await servers.login("web")).state is ServerState.READY
    finally:
        await servers.close()
    assert json.loads(signed.paths("/register")[0].body)["redirect_uris"] == [f"http://127.0.0.1:{port}/callback"]


async def test_a_slow_call_does_not_hold_up_others(tmp_path: Path, signed: Signed) -> None:
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await login(s)
        slow = asyncio.create_task(s.call("web", "slow", call_id="c2"))
        await until(lambda: [r for r in signed.seen if '"slow"' in r.body])
        outcomes = await asyncio.wait_for(asyncio.gather(*(s.call("web", "echo", m=str(n)) for n in range(5))), 5)
        assert [text(o) for o in outcomes] == list("01234")
        assert not slow.done()
        signed.gate.set()
        assert text(await slow) == "slow"


async def test_a_connection_for_each_call_uses_the_kept_token(tmp_path: Path, signed: Signed) -> None:
    person = Person()
    async with stage(tmp_path, at(signed, scope=ServerScope.CALL), reviewer=person, start=False) as s:
        await login(s)
        signed.expire()
        assert [text(await s.call("web", "echo", m=m)) for m in "ab"] == ["a", "b"]
        assert len(person.asked) == 1


async def test_the_older_transport_is_signed_in_to_as_well(tmp_path: Path, signed: Signed) -> None:
    config = replace(at(signed), launch=Sse(signed.url.replace("/mcp", "/sse")))
    async with stage(tmp_path, config, reviewer=Person(), start=False) as s:
        await login(s)
        assert text(await s.call("web", "echo", m="old")) == "old"
        signed.expire()
        assert text(await s.call("web", "echo", m="and refreshed")) == "and refreshed"


async def test_a_rotating_refresh_token_is_used_once_by_many_connections_and_hosts(
    tmp_path: Path, signed: Signed
) -> None:
    """Hazard L124."""
    vault = MemoryVault()
    config = at(signed, scope=ServerScope.SESSION)
    async with (
        stage(tmp_path, config, reviewer=Person(), vault=vault, start=False) as one,
        stage(tmp_path, config, reviewer=Person(), vault=vault, start=False) as two,
    ):
        await login(one)
        for host in (one, two):
            for session in ("s1", "s2"):
                await host.servers.prepare(session, None, ())
        signed.expire()
        calls = [h.call("web", "echo", session=n, m=n) for h in (one, two) for n in ("s1", "s2")]
        assert [text(o) for o in await asyncio.gather(*calls)] == ["s1", "s2", "s1", "s2"]
    assert len(signed.paths("/token", grant_type="refresh_token")) == 1
    assert signed.reused == 0


async def test_a_client_that_the_server_forgot_is_registered_anew_once(tmp_path: Path, signed: Signed) -> None:
    vault = MemoryVault()
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
    signed.forget_clients()
    signed.expire()
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
    assert len(signed.paths("/register")) == 2
    assert record(vault)["client"]["client_id"] in signed.clients


async def test_a_call_that_needs_more_asks_for_more_and_keeps_what_there_was(tmp_path: Path, signed: Signed) -> None:
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        await login(s)
        assert text(await s.call("web", "admin", session="s1", call_id="c9")) == "admin"
        origin = person.asked[1][0]
        assert (origin.server, origin.session, origin.call_id) == ("web", "s1", "c9")
        assert [call.name for call in origin.calls] == ["admin"]
        assert set(parse_qs(urlsplit(person.asked[1][1].url).query)["scope"][0].split()) == {"read", "admin"}
        assert text(await s.call("web", "admin")) == "admin"
        assert len(person.asked) == 2


async def test_saying_no_to_more_costs_that_call_only(tmp_path: Path, signed: Signed) -> None:
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        await login(s)
        person.answer = ElicitReply("decline")
        assert (await s.call("web", "admin")).outcome is Outcome.ERROR
        assert text(await s.call("web", "echo", m="still")) == "still"
        assert s.servers.status("web").state is ServerState.READY


@pytest.mark.parametrize(("action", "reason"), [("decline", "declined"), ("cancel", "declined")])
async def test_saying_no_is_taken_for_an_answer(tmp_path: Path, signed: Signed, action: str, reason: str) -> None:
    person = Person(action)
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        status = await s.servers.login("web")
        assert (status.state, status.sign_in) == (ServerState.NEEDS_AUTH, SignInState.NEEDED)
        assert status.error is not None and status.error.remedy == f"remedy.server.sign_in.{reason}"
        assert len(person.asked) == 1


async def test_the_authorization_servers_no_is_told_in_its_words(tmp_path: Path, signed: Signed) -> None:
    signed.denies = True
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        status = await s.servers.login("web")
        assert status.error is not None
        assert "not you" in status.error.message
        assert status.error.remedy == "remedy.server.sign_in.denied"


async def test_a_sign_in_can_be_stopped_while_the_browser_is_open(tmp_path: Path, signed: Signed) -> None:
    person = OpenReviewer(ElicitReply("accept"))  # Accepts, and never comes back.
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        going = asyncio.create_task(s.servers.login("web"))
        await until(lambda: s.servers.status("web").sign_in is SignInState.SIGNING_IN)
        await s.servers.cancel_login("web")
        status = await asyncio.wait_for(going, 5)
        assert status.error is not None and status.error.remedy == "remedy.server.sign_in.cancelled"
        port = int(urlsplit(parse_qs(urlsplit(person.asked[0][1].url).query)["redirect_uri"][0]).port or 0)
        with pytest.raises(OSError, match=r"refused|Connect"):
            await asyncio.open_connection("127.0.0.1", port)


async def test_a_server_that_shows_only_its_tools_to_who_is_signed_in_is_not_stormed(
    tmp_path: Path, signed: Signed
) -> None:
    signed.greets = True
    config = at(signed, timeouts=Timeouts(connect_s=1, call_s=1, call_max_s=30))
    person = Person(slow_s=2)
    async with stage(tmp_path, config, reviewer=person) as s:
        assert s.servers.status("web").state is ServerState.NEEDS_AUTH
        count = len(signed.seen)
        await asyncio.sleep(0.3)
        assert len(signed.seen) == count <= 6 and person.asked == []
        await login(s)
        assert len(s.servers.tools("web")) == 3
        signed.expire()
        signed.refresh.clear()
        person.answer = ElicitReply("decline")
        assert (await s.call("web", "echo")).outcome is Outcome.ERROR
        await s.until_state("web", ServerState.NEEDS_AUTH)
        assert len(person.asked) == 2


async def test_a_slow_person_is_waited_for_beyond_the_time_limit_of_connecting(tmp_path: Path, signed: Signed) -> None:
    config = at(signed, timeouts=Timeouts(connect_s=1, call_s=1, call_max_s=30))
    async with stage(tmp_path, config, reviewer=Person(slow_s=2), start=False) as s:
        await login(s)
        signed.access.clear()
        signed.refresh.clear()
        assert text(await s.call("web", "echo", m="there")) == "there"


async def test_who_does_not_know_the_sign_in_is_not_heard(tmp_path: Path, signed: Signed) -> None:
    gate = asyncio.Event()
    person = Person()
    person.gate = gate
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        going = asyncio.create_task(s.servers.login("web"))
        await until(lambda: person.asked)
        back = parse_qs(urlsplit(person.asked[0][1].url).query)["redirect_uri"][0]
        for query in ("?code=stolen&state=wrong", "?error=access_denied", "", "?state=%00"):
            assert (await browse(back + query)).status_code == 400
        assert (await browse(back.replace("callback", "favicon.ico"))).status_code == 404
        gate.set()
        assert (await going).state is ServerState.READY


async def test_signing_out_revokes_and_deletes(tmp_path: Path, signed: Signed) -> None:
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await login(s)
        kept = record(s.vault)
        assert await s.servers.logout("web") is True
        assert signed.revoked == [kept["tokens"]["refresh_token"], kept["tokens"]["access_token"]]
        assert record(s.vault) == {**kept, "client": None, "tokens": None, "expires_at": None, "metadata": None,
                                   "resource": None, "issuer": ""}  # fmt: skip
        status = s.servers.status("web")
        assert (status.state, status.sign_in) == (ServerState.STOPPED, SignInState.NONE)


async def test_signing_out_works_where_the_server_cannot_be_told(tmp_path: Path, signed: Signed) -> None:
    signed.revokes = False
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await login(s)
        assert await s.servers.logout("web") is False
        assert record(s.vault)["tokens"] is None


async def test_a_removed_server_leaves_no_token_behind_here_nor_there(tmp_path: Path, signed: Signed) -> None:
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await login(s)
        kept = record(s.vault)["tokens"]
        assert await s.servers.remove("web") is True
        assert s.vault._secrets == {}
        assert signed.revoked == [kept["refresh_token"], kept["access_token"]]


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_server_is_removed_in_bounded_time_where_its_tokens_cannot_be_revoked(
    tmp_path: Path, signed: Signed, hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from desktop_host.servers import signing

    monkeypatch.setattr(signing, "REVOKE_S", 0.5)
    signed.revokes = False
    async with stage(tmp_path, at(signed), reviewer=Person(), start=False) as s:
        await login(s)
        silent = socket.create_server(("127.0.0.1", 0))  # Takes connections and never answers.
        if hangs:
            kept = record(s.vault)
            kept["metadata"]["revocation_endpoint"] = f"http://127.0.0.1:{silent.getsockname()[1]}/revoke"
            await s.vault.put("oauth/web", json.dumps(kept))
        began = time.monotonic()
        assert await s.servers.remove("web") is False
        assert time.monotonic() - began < 5
        assert s.vault._secrets == {}
        assert not s.servers.configs()
        silent.close()


async def test_the_host_asks_for_a_sign_in_as_such_and_a_servers_own_page_is_none(
    tmp_path: Path, signed: Signed
) -> None:
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        await login(s)
        [(_, request)] = person.asked
        assert (request.purpose, urlsplit(request.url).netloc) == ("sign_in", urlsplit(signed.issuer).netloc)


async def test_tokens_of_one_address_are_never_sent_to_another(tmp_path: Path, signed: Signed) -> None:
    """Hazard O136."""
    vault = MemoryVault()
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
    with Signed() as other:
        async with stage(tmp_path, at(other), reviewer=Person(), vault=vault) as s:
            assert s.servers.status("web").state is ServerState.NEEDS_AUTH
        assert other.seen and not [r for r in other.seen if "authorization" in r.headers]


async def test_a_client_metadata_document_takes_the_place_of_a_registration(tmp_path: Path, signed: Signed) -> None:
    signed.cimd = True
    mine = "https://me.example/client.json"
    async with stage(tmp_path, at(signed, OAuth(client_metadata_url=mine)), reviewer=Person(), start=False) as s:
        await login(s)
    assert not signed.paths("/register")
    assert {r.form["client_id"] for r in signed.paths("/token")} == {mine}


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_client_of_the_persons_own_shows_its_secret_as_the_server_wants(
    tmp_path: Path, signed: Signed, method: str
) -> None:
    signed.secret, signed.auth_methods = "s3cret-s3cret", (method,)
    vault = MemoryVault({"web/client_secret": "s3cret-s3cret"})
    auth = OAuth("known", "${keyring:web/client_secret}", scopes=("extra",))
    async with stage(tmp_path, at(signed, auth), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
        signed.expire()
        assert text(await s.call("web", "echo", m="hi")) == "hi"
        assert "extra" in parse_qs(urlsplit(s.reviewer.asked[0][1].url).query)["scope"][0].split()
    assert not signed.paths("/register")


async def test_a_wrong_secret_of_the_persons_own_is_named(tmp_path: Path, signed: Signed) -> None:
    signed.secret = "right-right"
    vault = MemoryVault({"s": "wrong-wrong"})
    async with stage(
        tmp_path, at(signed, OAuth("known", "${keyring:s}")), reviewer=Person(), vault=vault, start=False
    ) as s:
        status = await s.servers.login("web")
        assert status.error is not None and status.error.remedy == "remedy.server.sign_in.client_refused"
        assert "wrong-wrong" not in str(status) and not signed.paths("/register")


async def test_credentials_sign_in_without_a_person_and_keep_to_their_authorization_server(
    tmp_path: Path, signed: Signed
) -> None:
    signed.secret = "robot-robot"
    vault = MemoryVault({"s": "robot-robot"})
    auth = ClientCredentials("known", "${keyring:s}", scopes=("read",))
    async with stage(tmp_path, at(signed, auth), vault=vault) as s:
        assert text(await s.call("web", "echo", m="hi")) == "hi"
        signed.expire()
        assert text(await s.call("web", "echo", m="again")) == "again"
        assert s.reviewer.asked == []
    assert record(vault)["issuer"].rstrip("/") == signed.issuer


async def test_a_locked_vault_is_told_only_by_servers_that_want_a_token(tmp_path: Path, signed: Signed) -> None:
    vault = MemoryVault()
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
    vault.fault = "vault_locked"
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        status = await s.servers.start("web")
        assert status.error is not None
        assert (status.state, status.error.code) == (ServerState.FAILED, "vault_locked")


async def test_a_token_that_is_ended_for_good_shows_in_the_state(tmp_path: Path, signed: Signed) -> None:
    person = Person()
    async with stage(tmp_path, at(signed), reviewer=person, start=False) as s:
        await login(s)
        signed.expire()
        signed.refresh.clear()
        person.answer = ElicitReply("decline")
        outcome = await s.call("web", "echo")
        assert outcome.outcome is Outcome.ERROR
        assert "declined" in text(outcome)
        await s.until_state("web", ServerState.NEEDS_AUTH)
        assert len(person.asked) == 2


async def test_a_server_that_is_out_of_reach_for_the_refresh_keeps_the_refresh_token(
    tmp_path: Path, signed: Signed
) -> None:
    vault = MemoryVault()
    async with stage(tmp_path, at(signed), reviewer=Person(), vault=vault, start=False) as s:
        await login(s)
        signed.expire()
        signed.servers[0].shutdown()
        signed.servers[0].server_close()
        outcome = await s.call("web", "echo")
        assert outcome.outcome is Outcome.ERROR
        assert record(vault)["tokens"]["refresh_token"] in signed.refresh


async def test_headers_of_the_persons_own_or_no_sign_in_at_all_are_left_alone(tmp_path: Path, signed: Signed) -> None:
    token = signed.grant("read")["access_token"]
    mine = replace(at(signed), launch=Http(signed.url, FrozenDict({"authorization": f"Bearer {token}"})))
    async with stage(tmp_path, mine) as s:
        assert text(await s.call("web", "echo", m="hi")) == "hi"
        with pytest.raises(UserFault):
            await s.servers.login("web")
    async with stage(tmp_path, at(signed, NoAuth())) as s:
        error = s.servers.status("web").error
        assert error is not None and error.remedy == "remedy.server.auth"
    assert not signed.paths("/register")
