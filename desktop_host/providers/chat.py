"""`ChatModel` over Chat Completions, for the many servers that are compatible with it, each in its own way.

OpenAI's own models are not reached this way: they refuse tools with reasoning on this wire.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from desktop_host.core.messages import ContentBlock, Message, Role, Text, ToolCall, ToolResult
from desktop_host.core.models import ModelEvent, ModelRequest
from desktop_host.core.values import FrozenDict
from desktop_host.providers.chat_turn import Turn
from desktop_host.providers.clients import Connection
from desktop_host.providers.errors import classify, protocol, truncated
from desktop_host.providers.history import repaired
from desktop_host.providers.quirks import Draft
from desktop_host.providers.results import FilePart, ImagePart, Part, is_error, parts_of, result_parts, text_of
from desktop_host.providers.toolset import ToolProfile, WireTools
from desktop_host.providers.wiremodel import WireModel, encode

DESCRIPTION_LIMIT = 1024
"""A limit of tool descriptions seen in the wild."""
MAX_STOPS = 4
_GRAMMAR_PORTS = frozenset({8080, 1234})
"""llama-server and LM Studio, which build a grammar from each schema."""
_REASONING = ("reasoning_content", "reasoning")


def _shape(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name, "parameters": schema}
    if description:
        function["description"] = description
    return {"type": "function", "function": function}


def wants_reduced(base_url: str) -> bool:
    """Whether a server is known to take only a subset of JSON Schema."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    return host.endswith("googleapis.com") or (
        host in ("127.0.0.1", "localhost", "::1") and parts.port in _GRAMMAR_PORTS
    )


class ChatCompletionsModel(WireModel):
    """A model behind a compatible server."""

    dialect = "chat"
    path = "/chat/completions"
    history_key = "messages"
    profile = ToolProfile(_shape, description_limit=DESCRIPTION_LIMIT)

    def __init__(self, connection: Connection, model: str) -> None:
        super().__init__(connection, model)
        self.quirks.reduced = wants_reduced(connection.base_url)

    def body(self, request: ModelRequest, tools: WireTools, draft: Draft) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "stream": True, "stream_options": {"include_usage": True}}
        most = draft.max_tokens or request.max_tokens or self.quirks.max_tokens
        if most:
            most = min(most, self.quirks.max_tokens or most)
            name = "max_completion_tokens" if "max_tokens" in self.quirks.without else "max_tokens"
            body[name] = most
        if request.temperature is not None:
            body["temperature"] = request.temperature
        stops = [stop for stop in request.stop if stop.strip()]
        if stops:
            body["stop"] = stops[:MAX_STOPS]
        if request.effort:
            body["reasoning_effort"] = request.effort
        if tools.text and request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
        return body

    def history(self, request: ModelRequest, tools: WireTools, draft: Draft) -> str:
        variant = (draft.strip_thinking, draft.no_images, self.quirks.echo, tuple(sorted(tools.renames)))
        messages = repaired(request.messages)
        folded = self.quirks.no_system and bool(request.system.strip()) and bool(messages)
        if folded:
            first_said = replace(messages[0], blocks=(Text(request.system), *messages[0].blocks))
            messages = (first_said, *messages[1:])
        text = self.fragments.join(
            request.conversation, variant, messages,
            lambda message: self._render(message, tools, draft),
        )  # fmt: skip
        if folded or not request.system.strip():
            return text
        first = encode({"role": "system", "content": request.system})
        return f"[{first}{',' if len(text) > 2 else ''}{text[1:]}"

    async def read(
        self, events: AsyncIterator[Any], request: ModelRequest, tools: WireTools
    ) -> AsyncGenerator[ModelEvent, None]:
        turn = Turn(tools)
        async for chunk in events:
            if chunk is None:
                turn.done = True
                continue
            if isinstance(chunk, list):
                chunk = chunk[0] if chunk else {}
            if not isinstance(chunk, dict):
                raise protocol(self.where, "bad_event", "an event is no object")
            if chunk.get("error") or chunk.get("object") == "error":
                raise classify(self.where, chunk)
            try:
                for event in turn.take(chunk):
                    yield event
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                raise protocol(self.where, "bad_event", f"a chunk is not as it should be: {error}") from error
        for event in turn.flush():
            yield event
        if not turn.ended:
            raise truncated(self.where, visible=False)
        turn.limit(min(filter(None, (request.max_tokens, self.quirks.max_tokens)), default=None))
        message, native = turn.message()
        if native is not None:
            message = Message(message.role, message.blocks, self.native(native, turn.model or self.model))
        yield turn.completed(message, self.model)

    def unfold(self, whole: Any) -> Iterator[Any]:
        choices = whole.get("choices") if isinstance(whole, dict) else None
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise protocol(self.where, "not_an_api", "the answer is JSON, but not a chat completion")
        choice = choices[0]
        delta = choice.get("message") or {}
        yield {**whole, "choices": [{"delta": delta, "finish_reason": choice.get("finish_reason") or "stop"}]}
        yield None

    def _render(self, message: Message, tools: WireTools, draft: Draft) -> list[Any]:
        if message.role is Role.ASSISTANT:
            said = self._assistant(message, tools, draft)
            return [said] if said else []
        out: list[Any] = []
        shown: list[Any] = []
        rest: list[ContentBlock] = []
        for block in message.blocks:
            if isinstance(block, ToolResult):
                entry, images = self._result(block, draft)
                out.append(entry)
                shown += images
            else:
                rest.append(block)
        content = shown + self._content(parts_of(rest), draft)
        if content and all(part["type"] == "text" for part in content):
            out.append({"role": "user", "content": "\n\n".join(part["text"] for part in content)})
        elif content:
            out.append({"role": "user", "content": content})
        return out

    def _result(self, result: ToolResult, draft: Draft) -> tuple[dict[str, Any], list[Any]]:
        """The tool message, and the images that follow in a user message: tool messages hold text alone."""
        parts = result_parts(result)
        images = [part for part in parts if isinstance(part, ImagePart)]
        lines = [text_of(parts)]
        if images:
            where = "omitted: the model takes no images" if draft.no_images else "in the message after the results"
            lines.append(f"[{len(images)} image(s) from this tool {where}]")
        lines += [f"[{part.name}: PDF, shown to the person]" for part in parts if isinstance(part, FilePart)]
        text = ("Error: " if is_error(result) else "") + "\n".join(line for line in lines if line)
        follow = [] if draft.no_images else [_image(part) for part in images]
        return {"role": "tool", "tool_call_id": result.call_id, "content": text}, follow

    def _content(self, parts: list[Part], draft: Draft) -> list[Any]:
        out: list[Any] = []
        for part in parts:
            if isinstance(part, ImagePart):
                note = {"type": "text", "text": f"[{part.mime_type}: the model takes no images]"}
                out.append(note if draft.no_images else _image(part))
            elif isinstance(part, FilePart):
                out.append({"type": "text", "text": f"[{part.name}: PDF, not sent]"})
            else:
                out.append({"type": "text", "text": part.text})
        return out

    def _assistant(self, message: Message, tools: WireTools, draft: Draft) -> dict[str, Any] | None:
        native = message.native
        if native is not None and native.dialect == self.dialect and isinstance(native.data, FrozenDict):
            ids = [call["id"] for call in native.data.get("tool_calls") or ()]
            data = self.replay(message, ids)
            if data is not None:
                return {k: v for k, v in data.items() if k not in _REASONING or self._echoes(data, draft)}
        text = "".join(b.text for b in message.blocks if isinstance(b, Text))
        calls = [
            {
                "id": b.id, "type": "function",
                "function": {
                    "name": b.wire_name, "arguments": encode(tools.wire_arguments(b.wire_name, b.arguments)),
                },
            }
            for b in message.blocks if isinstance(b, ToolCall)
        ]  # fmt: skip
        if not text.strip() and not calls:
            return None
        said: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            said["tool_calls"] = calls
        return said

    def _echoes(self, data: FrozenDict, draft: Draft) -> bool:
        """Reasoning text goes back with calls, where some servers demand it, unless a refusal taught otherwise."""
        if self.quirks.echo is not None:
            return self.quirks.echo == "all"
        return bool(data.get("tool_calls")) and not draft.strip_thinking


def _image(part: ImagePart) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": part.url}}
