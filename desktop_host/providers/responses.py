"""`ChatModel` over OpenAI Responses: nothing is stored at the vendor, so each turn goes back item by item.

A reasoning item only holds together with the item that follows it: both go back, with the encrypted
content, or neither; what stood with a dropped one loses its id, by which the vendor would miss it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import Any

from desktop_host.core.messages import ContentBlock, Message, Role, StopReason, Text, Thinking, ToolCall, ToolResult
from desktop_host.core.models import (
    Completed,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    Purpose,
)
from desktop_host.core.values import EMPTY, freeze
from desktop_host.providers.arguments import CUT_OFF, parse
from desktop_host.providers.clients import VENDOR_HOSTS, Connection
from desktop_host.providers.errors import classify, protocol, truncated
from desktop_host.providers.history import repaired
from desktop_host.providers.known import reasons
from desktop_host.providers.quirks import TOOL_LIMIT, Draft, notice
from desktop_host.providers.responses_turn import Turn
from desktop_host.providers.results import FilePart, ImagePart, Part, TextPart, is_error, parts_of, result_parts
from desktop_host.providers.toolset import ToolProfile, WireTools
from desktop_host.providers.wiremodel import WireModel, encode

MIN_OUTPUT = 16
_QUIET = (Purpose.TITLE, Purpose.SAMPLING, Purpose.CLASSIFICATION)


def _shape(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    entry = {"type": "function", "name": name, "parameters": schema, "strict": False}
    return {**entry, "description": description} if description else entry


class ResponsesModel(WireModel):
    """A model behind the Responses API."""

    dialect = "responses"
    path = "/responses"
    history_key = "input"
    profile = ToolProfile(_shape)

    def __init__(self, connection: Connection, model: str) -> None:
        super().__init__(connection, model)
        self._reasons = reasons(model)

    def tool_limit(self) -> int | None:
        own = TOOL_LIMIT if self.connection.where("").host.endswith(VENDOR_HOSTS["openai"]) else None
        return self.quirks.tool_limit or own

    def notices(self, request: ModelRequest, tools: WireTools) -> Iterator[ModelNotice]:
        yield from super().notices(request, tools)
        if request.temperature is not None and self._reasons:
            yield notice("temperature_dropped", model=self.model)

    def body(self, request: ModelRequest, tools: WireTools, draft: Draft) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "stream": True, "store": False, "truncation": "disabled"}
        if request.system.strip():
            body["instructions"] = request.system
        if request.conversation:
            body["prompt_cache_key"] = request.conversation[:64]
        effort = request.effort or ("low" if request.purpose in _QUIET and self._reasons else None)
        if self._reasons:
            body["include"] = ["reasoning.encrypted_content"]
            body["reasoning"] = {"summary": "auto"}
        elif request.temperature is not None:
            body["temperature"] = request.temperature
        if effort:
            body.setdefault("reasoning", {})["effort"] = effort
        most = draft.max_tokens or request.max_tokens or self.quirks.max_tokens
        if most:
            body["max_output_tokens"] = max(MIN_OUTPUT, min(most, self.quirks.max_tokens or most))
        if tools.text:
            body["parallel_tool_calls"] = True
            if request.tool_choice != "auto":
                body["tool_choice"] = request.tool_choice
        return body

    def history(self, request: ModelRequest, tools: WireTools, draft: Draft) -> str:
        variant = (draft.strip_thinking, draft.no_images, tuple(sorted(tools.renames)))
        return self.fragments.join(
            request.conversation, variant, repaired(request.messages),
            lambda message: self._render(message, tools, draft),
        )  # fmt: skip

    async def read(
        self, events: AsyncIterator[Any], request: ModelRequest, tools: WireTools
    ) -> AsyncGenerator[ModelEvent, None]:
        turn = Turn(request.stop)
        async for event in events:
            if not isinstance(event, dict):
                continue
            if event.get("type") == "error" or (event.get("error") and "type" not in event):
                raise classify(self.where, event)
            try:
                shown = turn.take(event)
            except (KeyError, TypeError, AttributeError) as error:
                raise protocol(self.where, "bad_event", f"an event is not as it should be: {error}") from error
            if shown is not None:
                yield shown
        rest = turn.cutter.finish()
        if rest:
            yield turn.shown(rest)
        if turn.final is None:
            raise truncated(self.where, visible=False)
        if turn.final.get("status") == "failed":
            raise classify(self.where, turn.final.get("error") or {"message": "the response failed"})
        yield self._completed(turn, tools)

    def unfold(self, whole: Any) -> Iterator[Any]:
        if not isinstance(whole, dict) or not isinstance(whole.get("output"), list):
            raise protocol(self.where, "not_an_api", "the answer is JSON, but not a response")
        for index, item in enumerate(whole["output"]):
            if item.get("type") == "message":
                for part in item.get("content") or ():
                    yield {"type": "response.output_text.delta", "output_index": index, "delta": part.get("text") or ""}
        yield {"type": "response.completed", "response": whole}

    def _completed(self, turn: Turn, tools: WireTools) -> Completed:
        final = turn.final or {}
        model = final.get("model") or self.model
        reason = (final.get("incomplete_details") or {}).get("reason")
        cut = final.get("status") == "incomplete" and reason != "content_filter"
        items = turn.items()
        blocks, refused = self._blocks(items, tools, cut)
        if refused or reason == "content_filter":
            kept = tuple(b for b in blocks if isinstance(b, Text))
            return Completed(Message(Role.ASSISTANT, kept), turn.usage(), StopReason.REFUSAL, model, refused or reason)
        if turn.cutter.hit:
            message = Message(Role.ASSISTANT, (Text(turn.text),) if turn.text.strip() else ())
            return Completed(message, turn.usage(), StopReason.STOP_SEQUENCE, model)
        stop = StopReason.LENGTH if cut else StopReason.END
        if not cut and any(isinstance(b, ToolCall) for b in blocks):
            stop = StopReason.TOOLS
        native = self.native(freeze(items), model) if items else None
        return Completed(Message(Role.ASSISTANT, tuple(blocks), native), turn.usage(), stop, model, reason)

    def _blocks(self, items: list[Any], tools: WireTools, cut: bool) -> tuple[list[ContentBlock], str | None]:
        """The neutral blocks, and the words of a refusal. Of an answer that was cut off no call is run."""
        out: list[ContentBlock] = []
        refused = None
        for item in items:
            kind = item.get("type")
            if kind == "reasoning":
                said = "\n\n".join(p.get("text") or "" for p in (item.get("summary") or item.get("content") or ()))
                if said.strip():
                    out.append(Thinking(said))
            elif kind == "message":
                for part in item.get("content") or ():
                    text = part.get("text") or part.get("refusal") or ""
                    refused = text if part.get("type") == "refusal" else refused
                    if text.strip():
                        out.append(Text(text))
            elif kind == "function_call":
                arguments, problem = parse(item.get("arguments") or "")
                if cut or item.get("status") == "incomplete":
                    problem = CUT_OFF
                if problem:
                    item["arguments"] = "{}"
                name = str(item.get("name") or "")
                given = EMPTY if problem else tools.arguments(name, arguments)
                out.append(ToolCall(str(item["call_id"]), name, given, problem))
        return out, refused

    def _render(self, message: Message, tools: WireTools, draft: Draft) -> list[Any]:
        if message.role is Role.ASSISTANT:
            return self._assistant(message, tools, draft)
        out: list[Any] = []
        rest: list[ContentBlock] = []
        for block in message.blocks:
            if isinstance(block, ToolResult):
                out.append(self._result(block, draft))
            else:
                rest.append(block)
        content = self._parts(parts_of(rest), draft)
        return [*out, {"type": "message", "role": "user", "content": content}] if content else out

    def _assistant(self, message: Message, tools: WireTools, draft: Draft) -> list[Any]:
        native = message.native
        if native is not None and native.dialect == self.dialect and isinstance(native.data, tuple):
            items: Sequence[Any] = native.data
            ids = [item["call_id"] for item in items if item.get("type") == "function_call"]
            data = self.replay(message, ids)
            if data is not None:
                return paired(data, strip=draft.strip_thinking)
        out: list[Any] = []
        for block in message.blocks:
            if isinstance(block, Text) and block.text.strip():
                content = [{"type": "output_text", "text": block.text}]
                out.append({"type": "message", "role": "assistant", "content": content})
            elif isinstance(block, ToolCall):
                given = encode(tools.wire_arguments(block.wire_name, block.arguments))
                out.append({"type": "function_call", "call_id": block.id, "name": block.wire_name, "arguments": given})
        return out

    def _result(self, result: ToolResult, draft: Draft) -> dict[str, Any]:
        content = self._parts(result_parts(result), draft)
        if is_error(result):
            content.insert(0, {"type": "input_text", "text": "Tool error:"})
        output: Any = content
        if all(part["type"] == "input_text" for part in content):
            output = "\n".join(part["text"] for part in content)
        return {"type": "function_call_output", "call_id": result.call_id, "output": output}

    def _parts(self, parts: list[Part], draft: Draft) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    out.append({"type": "input_text", "text": text})
                case ImagePart(mime_type=mime) if draft.no_images:
                    out.append({"type": "input_text", "text": f"[{mime}: the model takes no images]"})
                case ImagePart():
                    out.append({"type": "input_image", "image_url": part.url, "detail": "auto"})
                case FilePart(name=name):
                    out.append({"type": "input_file", "filename": name, "file_data": part.url})
        return out


def paired(items: Sequence[Any], *, strip: bool = False) -> list[Any]:
    """A turn's items as they may go back: no reasoning alone, none without its encrypted content.

    Args:
        items: the items as they came.
        strip: leave out all reasoning, because the vendor refused it.
    """
    followed = [place + 1 < len(items) and items[place + 1].get("type") != "reasoning" for place in range(len(items))]
    whole = not strip and all(
        item.get("encrypted_content") and followed[place]
        for place, item in enumerate(items)
        if item.get("type") == "reasoning"
    )
    if whole:
        return list(items)
    return [
        {k: v for k, v in item.items() if k != "id" or item.get("type") not in ("message", "function_call")}
        for item in items
        if item.get("type") != "reasoning"
    ]
