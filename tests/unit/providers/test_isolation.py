"""Nothing of the environment, and no key, goes where it does not belong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from desktop_host.core.errors import HostError, KnownFault, ModelFault, UserFault
from desktop_host.core.settings import Network, Settings
from desktop_host.providers.clients import Connection
from desktop_host.providers.keys import Keys
from desktop_host.providers.refs import Local, Remote, Script, parse
from tests.contract.chat_model_contract import asked, collect, end_of
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.model_server import ModelServer, Reply, answer
from tests.fakes.remote import models, ref_of
from tests.fakes.wires import WIRES, Say, reply

LEAKS = {
    "ANTHROPIC_API_KEY": "sk-ant-LEAK-aaaaaaaaaaaa", "OPENAI_API_KEY": "sk-LEAK-bbbbbbbbbbbbbb",
    "ANTHROPIC_AUTH_TOKEN": "LEAK-token", "OPENAI_ADMIN_KEY": "LEAK-admin", "OPENAI_ORG_ID": "LEAK-org",
    "OPENAI_PROJECT_ID": "LEAK-project", "ANTHROPIC_CUSTOM_HEADERS": "X-Company: LEAK-company\nx-api-key: LEAK-x",
    "OPENAI_CUSTOM_HEADERS": "X-Company: LEAK-company\nAuthorization: Bearer LEAK-auth",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/LEAK", "OPENAI_BASE_URL": "http://127.0.0.1:9/LEAK",
}  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("key", ["", "k-own-key-123"])
async def test_the_environment_reaches_no_configured_address(wire, key, monkeypatch):
    for name, value in LEAKS.items():
        monkeypatch.setenv(name, value)
    async with ModelServer() as server:
        ref = ref_of(wire, server)
        secrets = {parse(ref).base_url: key} if key else {}  # type: ignore[union-attr]
        async with models(
            secrets={**secrets, "anthropic": "sk-vault-1", "openai": "sk-vault-2"}, environ=LEAKS
        ) as catalog:
            server.script(reply(wire, Say("Hi.")))
            await collect(await catalog.open(ref), asked())
        head = str(server.posts[0].headers)
    assert "LEAK" not in head
    assert "vault" not in head
    assert ("k-own-key-123" in head) is bool(key)


async def test_the_vendors_own_host_may_use_the_environment_and_the_vault_comes_first():
    named = parse("anthropic/claude-opus-5-5")
    assert isinstance(named, Remote)
    assert await Keys(MemoryVault({}), LEAKS).find(named) == LEAKS["ANTHROPIC_API_KEY"]
    assert await Keys(MemoryVault({"anthropic": " sk-mine\n"}), LEAKS).find(named) == "sk-mine"
    own = parse("anthropic:https://api.anthropic.com#m")
    assert isinstance(own, Remote)
    assert await Keys(MemoryVault({}), LEAKS).find(own) == LEAKS["ANTHROPIC_API_KEY"]
    for elsewhere in ("compat:https://api.openai.com.evil.example/v1#m", "compat:http://api.openai.com/v1#m"):
        place = parse(elsewhere)
        assert isinstance(place, Remote)
        assert await Keys(MemoryVault({"openai": "sk-mine"}), LEAKS).find(place) is None


@pytest.mark.parametrize(
    "ref", ["anthropic/claude-opus-5-5", "openai/gpt-5.6-sol", "compat:https://models.example.com/v1#m"]
)
async def test_without_a_key_the_secret_that_is_wanted_is_named(ref):
    async with models() as catalog:
        with pytest.raises(KnownFault) as caught:
            await catalog.open(ref)
    assert (caught.value.code, caught.value.params["reason"]) == ("auth", "no_key")
    assert caught.value.params["secret"] in ("anthropic", "openai", "https://models.example.com/v1")


@pytest.mark.parametrize("key", ["sk-with space", "sk-\nnewline", "sk-ключ", "sk-\x00"])
async def test_a_key_that_cannot_be_one_is_refused_before_it_is_sent_and_not_shown(key):
    async with models(secrets={"anthropic": key}) as catalog:
        with pytest.raises(KnownFault) as caught:
            await catalog.open("anthropic/claude-opus-5-5")
    assert caught.value.params["reason"] == "bad_key"
    assert key not in str(caught.value.params) + caught.value.message


async def test_an_empty_key_is_no_key():
    async with models(secrets={"anthropic": "  \n"}) as catalog:
        with pytest.raises(KnownFault) as caught:
            await catalog.open("anthropic/claude-opus-5-5")
    assert caught.value.params["reason"] == "no_key"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_redirect_is_not_followed(wire):
    async with ModelServer() as server, ModelServer() as thief, models() as catalog:
        server.script(Reply(status=307, content_type=None, headers=(("location", thief.url + "/v1/messages"),)))
        with pytest.raises(ModelFault) as caught:
            await catalog.check(ref_of(wire, server))
        assert thief.seen == []
    assert caught.value.params["reason"] == "redirect"


async def test_a_rejected_key_is_not_repeated_in_the_fault():
    """Hazard O137: the first characters of keys in logs."""
    async with ModelServer() as server, models(secrets={server.url: "supersecretkey"}) as catalog:
        server.script(answer({"error": {"type": "authentication_error", "message": "bad key supersecretkey"}}, 401))
        with pytest.raises(ModelFault) as caught:
            await catalog.check(ref_of("anthropic", server))
    assert caught.value.code == "auth"
    assert "supersecretkey" not in f"{caught.value} {caught.value.params} {caught.value.__cause__}"


async def test_a_proxy_is_never_asked_for_an_address_on_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    settings = replace(Settings(), network=Network(proxy="http://127.0.0.1:9"))
    async with ModelServer() as server, models(settings=settings) as catalog:
        server.script(reply("compat", Say("Hi.")))
        assert end_of(await collect(await catalog.open(ref_of("compat", server)), asked())).message.text == "Hi."


async def test_a_proxy_of_the_settings_is_asked_for_other_addresses():
    async with ModelServer() as proxy:
        proxy.gets["http://models.invalid/v1/models"] = answer({"data": [{"id": "through-proxy"}]})
        network = Network(proxy=proxy.url)
        connection = Connection("compat", "http://models.invalid/v1", "k", "x", network)
        try:
            assert await connection.get("/models", 20) == {"data": [{"id": "through-proxy"}]}
        finally:
            await connection.close()


@pytest.mark.parametrize(
    ("network", "code", "reason"),
    [(Network(proxy="ftp://x:1"), "proxy", "bad_address"), (Network(ca_file="/nowhere/ca.pem"), "tls", "ca_file")],
)
async def test_broken_network_settings_are_named(network, code, reason):
    connection = Connection("compat", "https://models.example.com/v1", "k", "x", network)
    with pytest.raises(ModelFault) as caught:
        await connection.get("/models", 20)
    assert (caught.value.code, caught.value.params["reason"]) == (code, reason)


async def test_a_certificate_file_that_is_none_is_named(tmp_path):
    bad = tmp_path / "ca.pem"
    bad.write_text("not a certificate")
    connection = Connection("compat", "https://models.example.com/v1", "k", "x", Network(ca_file=str(bad)))
    with pytest.raises(ModelFault) as caught:
        await connection.get("/models", 20)
    assert (caught.value.code, caught.value.params["file"]) == ("tls", str(bad))


async def test_nobody_listening_is_a_network_fault_that_may_pass():
    async with ModelServer() as server:
        port = server.port
    async with models() as catalog:
        with pytest.raises(ModelFault) as caught:
            await catalog.check(f"compat:http://127.0.0.1:{port}/v1#m")
    assert (caught.value.code, caught.value.params["reason"]) == ("network", "refused")
    assert caught.value.params["host"] == f"127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("ref", "wire", "base", "model"),
    [
        ("anthropic/claude-opus-5-5", "anthropic", "https://api.anthropic.com", "claude-opus-5-5"),
        ("openai/gpt-5.6-sol", "responses", "https://api.openai.com/v1", "gpt-5.6-sol"),
        ("anthropic-compat:https://x.example/anthropic/v1/#m", "anthropic-compat", "https://x.example/anthropic", "m"),
        ("compat:http://localhost:11434#qwen3:0.6b", "compat", "http://localhost:11434/v1", "qwen3:0.6b"),
        ("compat:https://openrouter.ai/api/v1#a/b:free", "compat", "https://openrouter.ai/api/v1", "a/b:free"),
        ("compat:https://x.example/v1/chat/completions#m", "compat", "https://x.example/v1", "m"),
        ("compat:https://api.openai.com/v1#gpt-5.6-sol", "responses", "https://api.openai.com/v1", "gpt-5.6-sol"),
        ("compat:https://eu.api.openai.com/v1#gpt-5.6-sol", "responses", "https://eu.api.openai.com/v1", "gpt-5.6-sol"),
    ],
)  # fmt: skip
def test_refs_are_read(ref, wire, base, model):
    """Public bug LibreChat#14231: OpenAI's own host is reached by Responses, whatever was typed."""
    named = parse(ref)
    assert isinstance(named, Remote)
    assert (named.wire, named.base_url, named.model) == (wire, base, model)


def test_other_refs_are_read():
    assert parse("local") == Local(None)
    assert parse("local/qwen3:0.6b") == Local("qwen3:0.6b")
    script = parse("script:/tmp/a.json")
    assert isinstance(script, Script)
    assert script.path.name == "a.json"


@pytest.mark.parametrize(
    "ref",
    ["", "gpt-5", "anthropic/", "compat:http://x/v1", "compat:x#m", "compat:http://#m", "compat:ftp://x/v1#m",
     "compat:https://user:pw@x/v1#m", "nope:http://x#m", "script:", "compat:http://x:port/v1#m", "local/"],
)  # fmt: skip
def test_what_is_no_ref_is_refused_with_the_forms(ref):
    with pytest.raises(UserFault) as caught:
        parse(ref)
    assert caught.value.code == "usage"
    assert "pw" not in caught.value.message


def test_opening_the_catalogue_imports_no_vendor():
    code = (
        "import sys; import desktop_host.providers.catalog, desktop_host.providers.refs;"
        "bad = {'anthropic', 'openai', 'httpx2', 'mcp', 'genai_prices', 'keyring', 'jsonschema', 'pydantic'};"
        "print(sorted(bad & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_faults_are_host_errors():
    assert issubclass(ModelFault, HostError)
