"""What a person can pick, and how it is opened, checked and closed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from desktop_host.core.errors import ModelFault, UserFault
from desktop_host.core.models import ModelEntry
from desktop_host.core.settings import Endpoint, Settings
from desktop_host.providers import listing
from desktop_host.providers.catalog import Models
from desktop_host.providers.known import claude, is_chat, reasons
from tests.contract.chat_model_contract import asked, collect, end_of
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.model_server import ModelServer, Reply, answer, page
from tests.fakes.remote import models, ref_of, sent
from tests.fakes.wires import WIRES, Say, reply


def of(entries: tuple[ModelEntry, ...], source: str) -> list[ModelEntry]:
    return [entry for entry in entries if entry.source == source]


def with_endpoint(wire: str, base_url: str, *names: str) -> Settings:
    return replace(Settings(), endpoints=(Endpoint("Mine", wire, base_url, names),))


async def test_without_keys_the_vendors_are_listed_with_the_reason():
    async with models() as catalog:
        entries = await catalog.entries()
    for vendor in ("anthropic", "openai"):
        found = of(entries, vendor)
        assert found
        assert all(not e.ready and e.reason == "no_key" and e.ref.startswith(f"{vendor}/") for e in found)
    assert of(entries, "local")[0].reason == "no_weights"


async def test_with_a_key_the_vendors_are_ready():
    async with models(secrets={"anthropic": "k"}, environ={"OPENAI_API_KEY": "k"}) as catalog:
        entries = await catalog.entries()
    assert all(entry.ready and entry.reason is None for entry in (*of(entries, "anthropic"), *of(entries, "openai")))


async def test_a_locked_vault_leaves_the_list_whole():
    async with models(secrets={"anthropic": "k"}) as catalog:
        vault = catalog._keys._secrets
        assert isinstance(vault, MemoryVault)
        vault.fault = "vault_locked"
        assert of(await catalog.entries(), "anthropic")[0].reason == "no_key"


async def test_an_endpoints_list_joins_the_names_typed_by_hand():
    async with ModelServer() as server:
        rows = {"data": [{"id": "big", "context_length": 32_000}, {"id": "small", "meta": {"n_ctx_train": 4096}}]}
        server.gets["/v1/models"] = answer(rows)
        settings = with_endpoint("compat", f"{server.url}/v1", "mine", "big")
        async with models(settings=settings, discover=()) as catalog:
            before = of(await catalog.entries(), "Mine")
            after = of(await catalog.entries(refresh=True), "Mine")
            again = of(await catalog.entries(), "Mine")
    assert [e.ref for e in before] == [f"compat:{server.url}/v1#mine", f"compat:{server.url}/v1#big"]
    assert [(e.title, e.context_window, e.note is None) for e in after] == [
        ("mine", 128_000, False),
        ("big", 32_000, True),
        ("small", 4096, True),
    ]
    assert again == after


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (answer({"error": "nope"}, 404), None),
        (page(), None),
        (answer({"data": None}), None),
        (answer({"error": {"message": "no"}}, 401), "no_key"),
        (answer({}, 503), "unreachable"),
    ],
    ids=["404", "html", "null", "401", "503"],
)
async def test_a_list_that_fails_keeps_the_names_typed_by_hand(given, reason):
    async with ModelServer() as server:
        server.gets["/v1/models"] = given
        async with models(settings=with_endpoint("compat", f"{server.url}/v1", "mine"), discover=()) as catalog:
            found = of(await catalog.entries(refresh=True), "Mine")
    assert [(e.title, e.ready, e.reason) for e in found] == [("mine", reason is None, reason)]


async def test_an_endpoint_that_nobody_answers_at_is_shown_with_the_reason():
    async with ModelServer() as server:
        url = f"{server.url}/v1"
    settings = replace(Settings(), endpoints=(Endpoint("Gone", "compat", url), Endpoint("Bad", "compat", "nonsense")))
    async with models(settings=settings, discover=()) as catalog:
        entries = await catalog.entries(refresh=True)
    assert [(e.source, e.ready, e.reason) for e in (*of(entries, "Gone"), *of(entries, "Bad"))] == [
        ("Gone", False, "unreachable"),
        ("Bad", False, "unreachable"),
    ]


@pytest.mark.parametrize("wire", ["anthropic", "anthropic-compat"])
async def test_anthropic_lists_are_read_with_their_windows(wire):
    async with ModelServer() as server:
        server.gets["/v1/models"] = answer(
            {
                "data": [
                    {
                        "id": "claude-x",
                        "display_name": "Claude X",
                        "max_input_tokens": 1_000_000,
                        "lifecycle": "active",
                    },
                    {"id": "claude-old", "lifecycle": "retired"},
                ]
            }
        )
        async with models(settings=with_endpoint(wire, server.url), discover=()) as catalog:
            found = of(await catalog.entries(refresh=True), "Mine")
        assert server.seen[0].path.startswith("/v1/models")
    assert [(e.title, e.context_window) for e in found] == [("Claude X", 1_000_000)]
    assert found[0].ref == f"{wire}:{server.url}#claude-x"


async def test_servers_on_this_machine_are_found_unless_configured():
    async with ModelServer() as server:
        server.gets["/v1/models"] = answer({"object": "list", "data": [{"id": "qwen3:0.6b", "object": "model"}]})
        async with models(discover=(("Ollama", server.port), ("LM Studio", 9))) as catalog:
            assert of(await catalog.entries(), "Ollama") == []
            found = of(await catalog.entries(refresh=True), "Ollama")
            assert of(await catalog.entries(), "Ollama") == found
        settings = with_endpoint("compat", f"http://localhost:{server.port}/v1")
        async with models(settings=settings, discover=(("Ollama", server.port),)) as catalog:
            assert of(await catalog.entries(refresh=True), "Ollama") == []
    assert [(e.ref, e.ready) for e in found] == [(f"compat:http://127.0.0.1:{server.port}/v1#qwen3:0.6b", True)]


async def test_another_program_on_a_known_port_is_no_model():
    async with ModelServer() as server:
        server.gets["/v1/models"] = page()
        async with models(discover=(("llama-server", server.port),)) as catalog:
            assert of(await catalog.entries(refresh=True), "llama-server") == []


def test_lists_of_openai_hold_models_to_talk_to():
    rows = [
        {"id": i} for i in ("gpt-5.6-sol", "gpt-4o-audio-preview", "text-embedding-3", "whisper-1", "o3", "gpt-image-1")
    ]
    found = listing.rows({"data": rows}, "https://api.openai.com/v1")
    assert [row.model for row in found] == ["gpt-5.6-sol", "o3"]


@pytest.mark.parametrize(
    "answered", [None, [], {}, {"data": None}, {"data": "x"}, "text", {"data": [1, None, {"id": 3}]}]
)
def test_an_unknown_shape_of_list_gives_no_rows(answered):
    assert listing.rows(answered, "http://x/v1") == []


def test_ollamas_own_shape_of_list_is_read():
    assert [r.model for r in listing.rows({"models": [{"name": "a"}, {"model": "b"}]}, "http://x")] == ["a", "b"]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_check_sends_one_tiny_request(wire):
    async with ModelServer() as server, models() as catalog:
        server.script(reply(wire, Say("OK")))
        await catalog.check(ref_of(wire, server))
        body = sent(server)
        assert len(server.posts) == 1
    assert min(v for k, v in body.items() if k.startswith("max_")) <= 64


async def test_a_check_does_not_wait_for_better_times():
    async with ModelServer() as server, models() as catalog:
        server.script(answer({"error": {"message": "slow"}}, 429, ("retry-after", "30")))
        with pytest.raises(ModelFault) as caught:
            await catalog.check(ref_of("compat", server))
    assert (caught.value.code, caught.value.retry_after_s) == ("rate_limited", 30)


async def test_what_was_learned_of_a_model_outlives_opening_it_anew():
    refusal = answer({"error": {"message": "Unrecognized request argument supplied: stream_options"}}, 400)
    async with ModelServer() as server, models() as catalog:
        server.script(refusal, reply("compat", Say("a")), reply("compat", Say("b")), reply("compat", Say("c")))
        await collect(await catalog.open(ref_of("compat", server)), asked())
        await collect(await catalog.open(ref_of("compat", server)), asked())
        assert len(server.posts) == 3
        await collect(await catalog.open(ref_of("compat", server, "another")), asked())
        assert "stream_options" in sent(server)


async def test_a_new_key_is_used_at_once():
    async with ModelServer() as server:
        url = f"{server.url}/v1"
        async with models(secrets={url: "old-key"}) as catalog:
            server.script(reply("compat", Say("a")), reply("compat", Say("b")))
            await collect(await catalog.open(ref_of("compat", server)), asked())
            vault = catalog._keys._secrets
            assert isinstance(vault, MemoryVault)
            await vault.put(url, "new-key")
            await collect(await catalog.open(ref_of("compat", server)), asked())
        assert [p.headers["authorization"] for p in server.posts] == ["Bearer old-key", "Bearer new-key"]


async def test_local_and_script_refs_go_to_their_own():
    async with models() as catalog:
        with pytest.raises(UserFault, match="no local model"):
            await catalog.open("local/nothing")
        with pytest.raises(UserFault, match=r"a\.json"):
            await catalog.open("script:a.json")


async def test_stopping_closes_the_socket_so_that_the_vendor_stops_too():
    stuck = reply("compat", Say("word " * 50))
    async with ModelServer() as server, models() as catalog:
        server.script(Reply(stuck.chunks[:-3], hold=True))
        model = await catalog.open(ref_of("compat", server))
        begun = asyncio.Event()

        async def read() -> None:
            async for _event in model.stream(asked()):
                begun.set()

        task = asyncio.create_task(read())
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.closed.wait(), 5)


async def test_twenty_streams_at_once_do_not_mix():
    async with ModelServer() as server, models() as catalog:
        server.script(*(reply("compat", Say(f"answer {n} ")) for n in range(20)))
        model = await catalog.open(ref_of("compat", server))
        done = await asyncio.gather(*(collect(model, asked(f"q{n}")) for n in range(20)))
    assert {end_of(events).message.text for events in done} == {f"answer {n} " for n in range(20)}


def test_catalogue_has_the_shape_of_its_port():
    from desktop_host.core.admin import ModelAdmin

    for name in ("open", "entries", "fetch", "remove", "check", "close"):
        assert callable(getattr(Models, name))
        assert hasattr(ModelAdmin, name)


@pytest.mark.parametrize(
    ("model", "adaptive", "binding", "forced"),
    [
        ("claude-opus-5-5", True, True, False),
        ("claude-fable-5-2", True, True, False),
        ("claude-fable-5", True, False, True),
        ("claude-haiku-5-5", True, True, True),
        ("claude-sonnet-5", True, False, True),
        ("claude-opus-4-6", True, False, True),
        ("claude-haiku-4-5-20251001", False, False, True),
        ("anthropic/claude-opus-4.8", True, False, True),
    ],
)
def test_families_of_claude_take_different_things(model, adaptive, binding, forced):
    family = claude(model)
    assert family is not None
    assert (family.adaptive, family.binding, family.forced_tools) == (adaptive, binding, forced)


def test_other_names_are_no_known_family():
    assert claude("qwen3-max") is None
    assert [reasons(m) for m in ("gpt-5.6-sol", "o4-mini", "gpt-4o", "gpt-5-chat-latest", "qwen3")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert not is_chat("text-embedding-3-small")
