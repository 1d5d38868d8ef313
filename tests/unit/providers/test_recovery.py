"""A refused request is put right so that no conversation is lost to it; and the transport's own failures."""

from __future__ import annotations

import datetime
import json
import logging
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from desktop_host.core.errors import ModelFault
from desktop_host.core.messages import Image, Message, Role, Text, Thinking, ToolCall, ToolResult, user
from desktop_host.core.models import ModelNotice
from desktop_host.core.settings import Network, Settings
from tests.contract.chat_model_contract import ECHO, asked, collect, end_of
from tests.fakes.model_server import ModelServer, Reply, answer, sse
from tests.fakes.remote import models, ref_of, sent
from tests.fakes.wires import WIRES, Say, anthropic_events, reply

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def refusal(message: str, status: int = 400, **more: object) -> Reply:
    return answer({"type": "error", "error": {"message": message, "type": "invalid_request_error", **more}}, status)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "text",
    ["messages.2.content.0.image.source.base64: Could not process image",
     "messages.2: image dimensions exceed max allowed size: 8000 pixels"],
)  # fmt: skip
async def test_an_image_that_a_vendor_refuses_does_not_brick_the_chat(wire, text):
    """Public bug claude-code#58330: the image was in every later request too."""
    said = Message(Role.ASSISTANT, (ToolCall("a", "echo__say"),))
    request = asked("q", said, user(ToolResult("a", (Text("see"), Image(PNG, "image/png")))), tools=(ECHO,))
    async with ModelServer() as server, models() as catalog:
        server.script(refusal(text), *(reply(wire, Say("ok")) for _ in range(3)))
        model = await catalog.open(ref_of(wire, server))
        seen = await collect(model, request)
        await collect(model, request)
        await collect(model, replace(request, conversation="another"))
        held = [PNG in post.raw.decode() for post in server.posts]
    assert [e.code for e in seen if isinstance(e, ModelNotice)] == ["images_dropped"]
    assert held == [True, False, False, True]


@pytest.mark.parametrize(
    "text",
    ["registry.ollama.ai/library/gemma3:latest does not support tools",
     '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
)  # fmt: skip
async def test_a_model_without_tools_still_answers_and_says_so(text):
    async with ModelServer() as server, models() as catalog:
        server.script(answer({"error": text}, 400), reply("compat", Say("a")), reply("compat", Say("b")))
        model = await catalog.open(ref_of("compat", server))
        seen = await collect(model, asked(tools=(ECHO,)))
        await collect(model, asked(tools=(ECHO,)))
        assert ["tools" in sent(server, n) for n in range(3)] == [True, False, False]
    assert [e.code for e in seen if isinstance(e, ModelNotice)] == ["tools_unsupported"]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_turn_of_thinking_alone_is_not_sent_to_another_vendor(wire):
    """Public bug pydantic-ai#5869: thinking of one vendor shown to another."""
    history = (Message(Role.ASSISTANT, (Thinking("secret thought"),)), user("go on"))
    async with ModelServer() as server, models() as catalog:
        server.script(reply(wire, Say("ok")))
        await collect(await catalog.open(ref_of(wire, server)), asked("q", *history))
        body = sent(server)
    assert "secret thought" not in json.dumps(body)
    assert len(body.get("messages") or body["input"]) == 1


@pytest.mark.parametrize("wire", WIRES)
async def test_half_a_character_in_a_text_does_not_stop_the_chat(wire):
    async with ModelServer() as server, models() as catalog:
        server.script(reply(wire, Say("ok")))
        seen = await collect(await catalog.open(ref_of(wire, server)), asked("broken \ud83d emoji"))
        server.posts[0].raw.decode("utf-8")
    assert end_of(seen).message.text == "ok"


@pytest.mark.parametrize("wire", WIRES)
async def test_repairs_come_to_an_end(wire):
    async with ModelServer() as server, models() as catalog:
        server.script(*[refusal("tools.0.custom.input_schema: JSON schema is invalid")] * 30)
        model = await catalog.open(ref_of(wire, server))
        tools = tuple(replace(ECHO, name=f"t{n}") for n in range(30))
        with pytest.raises(ModelFault) as caught:
            await collect(model, asked(tools=tools))
        assert len(server.posts) == 9
    assert caught.value.code == "bad_tool_schema"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_conversation_that_no_longer_fits_is_told_and_not_retried(wire):
    async with ModelServer() as server, models() as catalog:
        server.script(refusal("prompt is too long: 210000 tokens > 200000 maximum"))
        with pytest.raises(ModelFault) as caught:
            await collect(await catalog.open(ref_of(wire, server)), asked())
        assert len(server.posts) == 1
    assert caught.value.code == "context_overflow"
    assert "210000" in caught.value.message


async def test_history_is_made_once_and_stays_the_same_bytes():
    """The prefix of a request is the request before it, byte for byte: vendors' caches and bound thinking need it."""
    async with ModelServer() as server, models() as catalog:
        server.script(*(reply("anthropic", Say(f"answer {n}", thinking="Hm.")) for n in range(3)))
        model = await catalog.open(ref_of("anthropic", server, "claude-opus-5-5"))
        history: list[Message] = [user("q")]
        for _ in range(3):
            said = end_of(
                await collect(model, replace(asked(tools=(ECHO,), system="S"), messages=tuple(history)))
            ).message
            history += [said, user("more")]
        bodies = [post.raw for post in server.posts]
    assert bodies[1].startswith(bodies[0][:-2])
    assert bodies[2].startswith(bodies[1][:-2])


def certificate(folder: Path, begins_days: int = -1) -> tuple[Path, ssl.SSLContext]:
    """A certificate that only its own file vouches for, and a server's context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=begins_days)).not_valid_after(now + datetime.timedelta(days=9))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem, secret = folder / "ca.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, secret)
    return pem, context


async def test_a_companys_own_certificate_is_refused_until_it_is_named_in_the_settings(tmp_path):
    pem, context = certificate(tmp_path)
    async with ModelServer(tls=context) as server:
        ref = f"compat:https://localhost:{server.port}/v1#m"
        async with models() as catalog:
            with pytest.raises(ModelFault) as caught:
                await catalog.check(ref)
        assert (caught.value.code, caught.value.params["reason"]) == ("tls", "certificate")
        settings = replace(Settings(), network=Network(ca_file=str(pem)))
        async with models(settings=settings) as catalog:
            server.script(reply("compat", Say("OK")))
            await catalog.check(ref)


async def test_requests_are_not_written_into_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    for wire in WIRES:
        async with ModelServer() as server, models(secrets={server.url: "the-secret-key"}) as catalog:
            server.script(reply(wire, Say("a private answer")))
            await collect(await catalog.open(ref_of(wire, server)), asked("a private question"))
    assert "private" not in caplog.text
    assert "the-secret-key" not in caplog.text


@pytest.mark.parametrize(
    ("text", "echoed"),
    [("Missing `reasoning_content` field in the assistant message", [True, True]),
     ("reasoning_content: Extra inputs are not permitted", [False, False])],
)  # fmt: skip
async def test_whether_reasoning_goes_back_is_learned_of_the_server(text, echoed):
    calls = (("c1", ECHO.wire_name, {"text": "x"}),)
    async with ModelServer() as server, models() as catalog:
        server.script(
            reply("compat", Say(thinking="I need it.", calls=calls)), reply("compat", Say("x.", thinking="Easy.")),
            refusal(text), reply("compat", Say("Bye.")),
        )  # fmt: skip
        model = await catalog.open(ref_of("compat", server))
        first = end_of(await collect(model, asked(tools=(ECHO,)))).message
        results = user(ToolResult("c1", (Text("x"),)))
        second = end_of(await collect(model, asked("hello", first, results, tools=(ECHO,)))).message
        await collect(model, asked("hello", first, results, second, user("bye"), tools=(ECHO,)))
        messages = sent(server)["messages"]
    assert ["reasoning_content" in m for m in messages if m["role"] == "assistant"] == echoed


async def test_a_paused_turn_goes_on_from_its_own_blocks():
    """`pause_turn`: the assistant's content goes back unchanged and is continued."""
    server_block = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}}
    paused = anthropic_events(Say(thinking="Hm.", stop="pause_turn"))
    paused[-2:-2] = [
        {"type": "content_block_start", "index": 1, "content_block": server_block},
        {"type": "content_block_stop", "index": 1},
    ]
    async with ModelServer() as server, models() as catalog:
        server.script(sse(paused), reply("anthropic", Say("Found.", thinking="So.")), reply("anthropic", Say("Bye.")))
        model = await catalog.open(ref_of("anthropic", server, "claude-opus-5-5"))
        first = end_of(await collect(model, asked())).message
        second = end_of(await collect(model, asked("hello", first))).message
        await collect(model, asked("hello", first, second, user("bye")))
        bodies = [sent(server, n)["messages"] for n in range(3)]
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "sig=="}
    assert bodies[1][1:] == [{"role": "assistant", "content": [thought, server_block]}]
    assert [m["role"] for m in bodies[2]] == ["user", "assistant", "assistant", "user"]
    assert bodies[2][1]["content"] == [thought, server_block]
    assert bodies[2][2]["content"][0]["thinking"] == "So."


async def test_odd_ids_of_a_gateway_match_on_both_sides():
    said = (("functions.say:0", ECHO.wire_name, {"text": "x"}),)
    async with ModelServer() as server, models() as catalog:
        server.script(reply("anthropic", Say(calls=said)), reply("anthropic", Say("ok")))
        model = await catalog.open(ref_of("anthropic", server))
        first = end_of(await collect(model, asked(tools=(ECHO,)))).message
        assert first.calls[0].id == "functions.say:0"
        await collect(model, asked("q", first, user(ToolResult("functions.say:0", (Text("x"),))), tools=(ECHO,)))
        messages = sent(server)["messages"]
    assert messages[1]["content"][0]["id"] == messages[2]["content"][0]["tool_use_id"] == "functions_say_0"


@pytest.mark.parametrize(
    ("wire", "model", "notices"),
    [("anthropic", "claude-haiku-4-5", ["param_dropped"]), ("anthropic", "claude-opus-5-5", []),
     ("anthropic-compat", "x", ["param_dropped"]), ("responses", "gpt-oss", []), ("compat", "qwen3", [])],
)  # fmt: skip
async def test_an_effort_is_sent_or_said_to_be_left_out(wire, model, notices):
    async with ModelServer() as server, models() as catalog:
        server.script(reply(wire, Say("ok")))
        seen = await collect(await catalog.open(ref_of(wire, server, model)), asked(effort="high"))
        assert ("high" in json.dumps(sent(server))) is not bool(notices)
    assert [e.code for e in seen if isinstance(e, ModelNotice)] == notices


async def test_a_template_without_system_messages_gets_the_text_first():
    async with ModelServer() as server, models() as catalog:
        server.script(
            answer({"object": "error", "message": "System role not supported"}, 400),
            reply("compat", Say("a")), reply("compat", Say("b")),
        )  # fmt: skip
        model = await catalog.open(ref_of("compat", server, "gemma"))
        for _ in range(2):
            await collect(model, asked("hi", system="Be brief."))
        assert len(server.posts) == 3
        assert sent(server)["messages"] == [{"role": "user", "content": "Be brief.\n\nhi"}]
