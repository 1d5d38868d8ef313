"""A model whose requests are told to a collector, by the GenAI semantic conventions."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from desktop_host.core.codec import encode
from desktop_host.core.errors import HostError
from desktop_host.core.messages import Message, StopReason
from desktop_host.core.models import Completed, ModelEvent, ModelRequest, RetryWaiting, TextDelta, ThinkingDelta
from desktop_host.core.ports import ChatModel
from desktop_host.core.telemetry import NOTHING, Span, Tracing
from desktop_host.providers.refs import Local, Remote, Script

_FINISH = {
    StopReason.END: "stop", StopReason.STOP_SEQUENCE: "stop", StopReason.LENGTH: "length",
    StopReason.TOOLS: "tool_calls", StopReason.REFUSAL: "content_filter", StopReason.CONTEXT: "length",
}  # fmt: skip
"""Our reasons as the conventions name them."""


class Traced:
    """A `ChatModel` with a span for each request, retries included."""

    def __init__(self, model: ChatModel, named: Remote | Local | Script, tracing: Tracing) -> None:
        self._model, self._named, self._tracing = model, named, tracing

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer one request."""
        span = self._begin(request)
        started, first = time.perf_counter(), True
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    match event:
                        case TextDelta() | ThinkingDelta() if first:
                            first = False
                            span.put(gen_ai__response__time_to_first_chunk=time.perf_counter() - started)
                        case RetryWaiting():
                            span.event("retry", error__type=event.code, desktop_host__delay_s=event.delay_s)
                        case Completed():
                            _told(span, event)
                    yield event
        except HostError as fault:
            span.fail(fault.code, fault.message)
            raise
        except GeneratorExit:
            span.fail("cancelled")
            raise
        except BaseException as error:
            span.fail(type(error).__name__)
            raise
        finally:
            span.end()

    def _begin(self, request: ModelRequest) -> Span:
        named = self._named
        remote = isinstance(named, Remote)
        model = named.model if isinstance(named, Remote) else named.name if isinstance(named, Local) else "script"
        place = urlsplit(named.base_url) if isinstance(named, Remote) else None
        span = self._tracing.begin(
            f"chat {model or 'local'}", "client" if remote else "internal",
            gen_ai__operation__name="chat", gen_ai__provider__name=_provider(named),
            gen_ai__request__model=model or "local", gen_ai__request__stream=True,
            gen_ai__request__max_tokens=request.max_tokens, gen_ai__request__temperature=request.temperature,
            gen_ai__conversation__id=request.conversation.partition(":")[0] or None,
            desktop_host__purpose=request.purpose.value,
            server__address=place.hostname if place else None, server__port=place.port if place else None,
        )  # fmt: skip
        if span is not NOTHING:
            span.content(
                gen_ai__system_instructions=request.system,
                gen_ai__input__messages=[_plain(message) for message in request.messages],
            )
        return span


def _provider(named: Remote | Local | Script) -> str:
    if not isinstance(named, Remote):
        return "desktop_host"
    if named.vendor is not None:
        return named.vendor
    return "anthropic" if named.wire.startswith("anthropic") else "openai"


def _told(span: Span, done: Completed) -> None:
    usage = done.usage
    span.put(
        gen_ai__response__model=done.model, gen_ai__response__finish_reasons=[_FINISH.get(done.stop, done.stop.value)],
        gen_ai__usage__input_tokens=usage.input + usage.cache_read + usage.cache_write,
        gen_ai__usage__output_tokens=usage.output, gen_ai__usage__cache_read__input_tokens=usage.cache_read,
        gen_ai__usage__cache_creation__input_tokens=usage.cache_write,
        gen_ai__usage__reasoning__output_tokens=usage.reasoning, desktop_host__cost_usd=usage.cost_usd,
    )  # fmt: skip
    span.content(gen_ai__output__messages=[_plain(done.message)])


def _plain(message: Message) -> dict[str, Any]:
    return {"role": message.role.value, "parts": [encode(block) for block in message.blocks]}
