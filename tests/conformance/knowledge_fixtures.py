"""The knowledge server with the conformance suite's diagnostic tools, prompts and resources added, over HTTP.

Run: `python tests/conformance/knowledge_fixtures.py PORT [--logging]`. What the suite asks for by name is put beside
the server's own; the server class, its lists, notifications, transports and error handling are those that ship.
"""

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Annotated, Any

ROOT = Path(__file__).resolve().parents[2] / "resources" / "servers" / "knowledge"
sys.path.insert(0, str(ROOT))

import knowledge_serving  # noqa: E402
import mcp_types as T  # noqa: E402
from knowledge_index import Index  # noqa: E402
from knowledge_server import KnowledgeServer  # noqa: E402
from knowledge_tenants import Tenant  # noqa: E402
from mcp.server.mcpserver import Context, Elicit, Resolve, Sample  # noqa: E402
from mcp.server.mcpserver.exceptions import ToolError  # noqa: E402
from pydantic import BaseModel, Field  # noqa: E402

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0").decode()


def text(said: str) -> T.TextContent:
    return T.TextContent(type="text", text=said)


def embedded(uri: str, mime: str, said: str) -> T.EmbeddedResource:
    return T.EmbeddedResource(type="resource", resource=T.TextResourceContents(uri=uri, mime_type=mime, text=said))


def result(*content: Any) -> T.CallToolResult:
    return T.CallToolResult(content=list(content))


def form(message: str, **properties: Any) -> T.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return T.ElicitRequest(params=T.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(said: str) -> T.CreateMessageRequest:
    message = T.SamplingMessage(role="user", content=text(said))
    return T.CreateMessageRequest(params=T.CreateMessageRequestParams(messages=[message], max_tokens=100))


NAME = {"name": {"type": "string"}}


class User(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


def add_tools(server: KnowledgeServer) -> None:
    @server.tool()
    def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @server.tool()
    def test_image_content() -> T.CallToolResult:
        return result(T.ImageContent(type="image", data=PNG, mime_type="image/png"))

    @server.tool()
    def test_audio_content() -> T.CallToolResult:
        return result(T.AudioContent(type="audio", data=WAV, mime_type="audio/wav"))

    @server.tool()
    def test_embedded_resource() -> T.CallToolResult:
        return result(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))

    @server.tool()
    def test_multiple_content_types() -> T.CallToolResult:
        return result(
            text("Multiple content types test:"), T.ImageContent(type="image", data=PNG, mime_type="image/png"),
            embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        )  # fmt: skip

    @server.tool()
    def test_error_handling() -> str:
        raise ToolError("This tool intentionally returns an error for testing")

    @server.tool()
    async def test_tool_with_progress(ctx: Context) -> str:
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            await asyncio.sleep(0.05)
        return "done"

    def ask_model(prompt: str) -> Sample:
        return Sample([T.SamplingMessage(role="user", content=text(prompt))], max_tokens=100)

    @server.tool()
    def test_sampling(prompt: str, said: Annotated[T.CreateMessageResult, Resolve(ask_model)]) -> str:
        return f"LLM response: {getattr(said.content, 'text', '')}"

    def ask_user(message: str) -> Elicit[User]:
        return Elicit(message, User)

    @server.tool()
    def test_elicitation(message: str, said: Annotated[User, Resolve(ask_user)]) -> str:
        return f"User response: {said.model_dump_json()}"

    def fixed_question() -> Sample:
        return Sample([T.SamplingMessage(role="user", content=text("x"))], max_tokens=1)

    @server.tool()
    def test_missing_capability(said: Annotated[T.CreateMessageResult, Resolve(fixed_question)]) -> str:
        return "sampled"

    @server.tool()
    async def test_trigger_tool_change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "told"

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context) -> str:
        await ctx.notify_prompts_changed()
        return "told"

    @server.tool()
    def test_reconnection() -> str:
        return "never left"

    @server.tool()
    async def test_streaming_elicitation(ctx: Context) -> T.CallToolResult | T.InputRequiredResult:
        if ctx.input_responses is None:
            return T.InputRequiredResult(input_requests={"user_name": form("Name?", **NAME)})
        return result(text("done"))


def add_rounds(server: KnowledgeServer) -> None:
    """What the suite asks of `input_required`."""
    asked = T.CallToolResult | T.InputRequiredResult

    def rounds(name: str, state: str | None, **questions: Any) -> None:
        async def run(ctx: Context) -> asked:  # type: ignore[valid-type]
            answers = ctx.input_responses or {}
            if set(questions) - set(answers):
                return T.InputRequiredResult(input_requests=questions, request_state=state)
            kept = "state-ok" if state is None or ctx.request_state == state else "state-lost"
            return result(text(f"{kept}: {json.dumps({k: _plain(v) for k, v in answers.items()})}"))

        server.add_tool(run, name=f"test_input_required_result_{name}", description=name)

    yes = {"ok": {"type": "boolean"}}
    rounds("elicitation", None, user_name=form("What is your name?", **NAME))
    rounds("sampling", None, capital_question=sampling("What is the capital of France?"))
    rounds("list_roots", None, client_roots=T.ListRootsRequest())
    rounds("request_state", "round-1", confirm=form("Please confirm", **yes))
    rounds("tampered_state", "round-1", confirm=form("Please confirm", **yes))
    rounds(
        "multiple_inputs", "several", user_name=form("What is your name?", **NAME),
        greeting=sampling("Generate a greeting"), client_roots=T.ListRootsRequest(),
    )  # fmt: skip

    @server.tool()
    async def test_input_required_result_multi_round(ctx: Context) -> asked:  # type: ignore[valid-type]
        answers = ctx.input_responses or {}
        if ctx.request_state is None or ("step1" not in answers and ctx.request_state != "second"):
            ask = form("Step 1: What is your name?", **NAME)
            return T.InputRequiredResult(input_requests={"step1": ask}, request_state="first")
        if ctx.request_state == "first":
            ask = form("Step 2: What is your favorite color?", color={"type": "string"})
            return T.InputRequiredResult(input_requests={"step2": ask}, request_state="second")
        return result(text("both steps are done"))

    @server.tool()
    async def test_input_required_result_capabilities(ctx: Context) -> asked:  # type: ignore[valid-type]
        can = ctx.client_capabilities
        questions: dict[str, Any] = {}
        if can is not None and can.sampling is not None:
            questions["ask_model"] = sampling("Hello?")
        if can is not None and can.elicitation is not None:
            questions["ask_user"] = form("Name?", **NAME)
        if questions and not ctx.input_responses:
            return T.InputRequiredResult(input_requests=questions)
        return result(text("done"))

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> Any:
        if not ctx.input_responses:
            ask = form("What context should the prompt use?", context={"type": "string"})
            return T.InputRequiredResult(input_requests={"user_context": ask})
        return f"Use this context: {_plain(ctx.input_responses['user_context'])}"


def add_forms(server: KnowledgeServer) -> None:
    """Forms that are sent in mid-call, as until 2025-11-25."""

    async def ask(ctx: Context, **properties: Any) -> str:
        schema = {"type": "object", "properties": properties}
        said = await ctx.session.elicit_form("Please fill in", schema, related_request_id=ctx.request_id)
        return f"Elicitation completed: action={said.action}, content={json.dumps(said.content)}"

    @server.tool()
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        return await ask(
            ctx, name={"type": "string", "default": "John Doe"}, age={"type": "integer", "default": 30},
            score={"type": "number", "default": 95.5}, verified={"type": "boolean", "default": True},
            status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        )  # fmt: skip

    @server.tool()
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        plain = ["option1", "option2", "option3"]
        titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
        return await ask(
            ctx, untitledSingle={"type": "string", "enum": plain}, titledSingle={"type": "string", "oneOf": titled},
            legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"]},
            untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
            titledMulti={"type": "array", "items": {"anyOf": titled}},
        )  # fmt: skip


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value


def add_others(server: KnowledgeServer) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return base64.b64decode(PNG)

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        return "watched"

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @server.prompt()
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:
        block = embedded(resourceUri, "text/plain", "Embedded resource content for testing.").model_dump(by_alias=True)
        return [
            {"role": "user", "content": block},
            {"role": "user", "content": {"type": "text", "text": "Please process the embedded resource above."}},
        ]

    @server.prompt()
    def test_prompt_with_image() -> list[Any]:
        return [
            {"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}},
            {"role": "user", "content": {"type": "text", "text": "Please analyze the image above."}},
        ]


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object",
                          "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                   "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                   "phone": {"type": "string"}, "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": False,
}  # fmt: skip


def add_schema(server: KnowledgeServer) -> None:
    async def json_schema_2020_12_tool(name: str = "") -> str:
        return "done"

    server.add_tool(json_schema_2020_12_tool, description="Tool with JSON Schema 2020-12 features")
    (made,) = [t for t in server._tool_manager.list_tools() if t.name == "json_schema_2020_12_tool"]
    made.parameters = SCHEMA


def add_logging(server: KnowledgeServer) -> None:
    """For what stands before the server and declares logging; the server itself does not."""

    @server.tool()
    async def test_tool_with_logging(ctx: Context) -> str:
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            line = T.LoggingMessageNotificationParams(level="info", data=said)
            await ctx.session.send_notification(T.LoggingMessageNotification(params=line), ctx.request_id)
            await asyncio.sleep(0.05)
        return "done"


def main(port: int, *more: Any) -> None:
    """Serve until ended."""
    tenant = Tenant("", (ROOT / "sample",), may_add=None)
    rooms = knowledge_serving.Rooms(
        None, {"": tenant}, lambda t: Index(t.folders, None), "knowledge", None, "127.0.0.1"
    )
    made = knowledge_serving.build

    def build(*args: Any, **settings: Any) -> KnowledgeServer:
        server = made(*args, **settings)
        for add in (add_tools, add_rounds, add_forms, add_others, add_schema, *more):
            add(server)
        for one in [*server._tool_manager.list_tools(), *server._prompt_manager.list_prompts()]:
            one.description = one.description or "What the conformance suite asks for by this name."
        return server

    knowledge_serving.build = build
    asyncio.run(knowledge_serving.serve_http(rooms, "127.0.0.1", port))


if __name__ == "__main__":
    main(int(sys.argv[1]), *((add_logging,) if "--logging" in sys.argv else ()))
