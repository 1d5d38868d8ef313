"""The host's own server room as the client of the official conformance suite: `python -m tests.conformance.client URL`.

The suite starts a server, runs this with the server's URL appended, and judges the traffic it saw. The scenario and
its data come in `MCP_CONFORMANCE_SCENARIO` and `MCP_CONFORMANCE_CONTEXT`. Everything goes through `Servers` as in the
program; only the person is played: every question is accepted, and a sign-in is followed like a browser would.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from desktop_host.core.auth import Auth, ClientCredentials, EnterpriseManaged, OAuth, SignInDefaults
from desktop_host.core.errors import HostError
from desktop_host.core.exchange import ElicitReply, FormRequest, Origin, SamplingReply, SamplingRequest, UrlRequest
from desktop_host.core.messages import Outcome, Text
from desktop_host.core.servers import Http, ServerConfig, ServerState, Timeouts
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.engine.forms import completed
from desktop_host.servers.json_schema import misfit
from desktop_host.servers.supervisor import Servers
from desktop_host.skills.remote import RemoteLibrary
from desktop_host.skills.state import SkillState
from tests.fakes.memory_vault import MemoryVault
from tests.fakes.servers.stage import WallClock

CIMD = "https://conformance-test.local/client-metadata.json"
"""The client metadata document that the suite's authorization servers know."""
NAME = "peer"


class Person:
    """A `Reviewer` who agrees to everything."""

    async def sample(self, origin: Origin, request: SamplingRequest) -> SamplingReply:
        return SamplingReply((Text("ok"),), "played", "endTurn")

    async def elicit(self, origin: Origin, request: FormRequest | UrlRequest) -> ElicitReply:
        if isinstance(request, FormRequest):
            return ElicitReply("accept", completed(EMPTY, request.schema, misfit))
        async with httpx2.AsyncClient(trust_env=False) as browser:
            response = await browser.get(request.url, follow_redirects=False)
            target = response.headers.get("location", "")
            if urlsplit(target).hostname == "127.0.0.1":
                await browser.get(target)
        return ElicitReply("accept")

    def roots(self, session: str | None) -> tuple[str, ...]:
        return ()


@dataclass
class Failure(Exception):
    """The host could not do what the scenario wants."""

    why: str


@dataclass
class Run:
    """One connection to the suite's server."""

    servers: Servers
    skills: RemoteLibrary
    context: dict[str, Any] = field(default_factory=dict)

    async def start(self) -> None:
        status = await self.servers.start(NAME)
        if status.state is not ServerState.READY:
            raise Failure(f"{status.state}: {status.error.message if status.error else ''}")
        if status.error is not None:
            raise Failure(status.error.message)

    async def call(self, tool: str, arguments: dict[str, Any] | None = None) -> None:
        outcome = await self.servers.call_tool(NAME, tool, freeze(arguments or {}))
        raw = outcome.raw if isinstance(outcome.raw, FrozenDict) else {}
        if outcome.outcome is Outcome.TIMED_OUT or "host_error" in raw or "error" in raw:
            raise Failure(f"{tool}: {' '.join(b.text for b in outcome.content if isinstance(b, Text))}")

    async def call_all(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        """Calls that may each be refused."""
        for tool, arguments in calls:
            try:
                await self.call(tool, arguments)
            except Failure as failure:
                print(failure.why, file=sys.stderr)


async def connect_only(run: Run) -> None:
    await run.start()


async def first_tool(run: Run) -> None:
    await run.start()
    for tool in run.servers.tools(NAME)[:1]:
        await run.call(tool.name)


async def add_numbers(run: Run) -> None:
    await run.start()
    await run.call("add_numbers", {"a": 5, "b": 3})


async def everything(run: Run) -> None:
    """Whatever the server lists."""
    await every_tool(run)
    for resource in await run.servers.resources(NAME):
        if not resource.template:
            await run.servers.read_resource(NAME, resource.uri)
    for prompt in await run.servers.prompts(NAME):
        await run.servers.get_prompt(NAME, prompt.name, FrozenDict({a.name: "x" for a in prompt.arguments}))


async def form_defaults(run: Run) -> None:
    await run.start()
    await run.call("test_client_elicitation_defaults")


async def reconnection(run: Run) -> None:
    await run.start()
    await run.call("test_reconnection")


async def schema_kept(run: Run) -> None:
    await run.start()
    tool = next(t for t in run.servers.tools(NAME) if t.name == "json_schema_2020_12_tool")
    await run.call("json_schema_echo", {"schema": tool.input_schema})


async def rounds(run: Run) -> None:
    await run.start()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await run.call(f"test_mrtr_{name}")


async def every_tool(run: Run) -> None:
    await run.start()
    blank: dict[str, Any] = {"integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}
    calls = []
    for tool in run.servers.tools(NAME):
        properties = tool.input_schema.get("properties", EMPTY)
        needed = tool.input_schema.get("required", ())
        calls.append((tool.name, {n: blank.get(properties.get(n, EMPTY).get("type"), "x") for n in needed}))
    await run.call_all(calls)


async def named_calls(run: Run) -> None:
    await run.start()
    names = {t.name for t in run.servers.tools(NAME)}
    wanted = [c for c in run.context.get("toolCalls", []) if c["name"] in names]
    await run.call_all([(c["name"], c.get("arguments") or {}) for c in wanted])


async def list_skills(run: Run) -> None:
    await run.start()
    if not await run.skills.refresh():
        raise Failure(f"no skills: {run.skills.problems}")


async def load_skills(run: Run) -> None:
    """Approve each skill as listed, load it, and read its other files as long as all is as announced."""
    await list_skills(run)
    for skill in run.skills.skills():
        await run.skills.approve(skill.id, skill.digest)
        try:
            await run.skills.load(skill.id)
            for path in skill.files:
                await run.skills.read(skill.id, path)
        except HostError as refused:
            print(f"{skill.id}: {refused}", file=sys.stderr)


SCENARIOS = {
    "initialize": connect_only,
    "json-schema-ref-no-deref": connect_only,
    "tools_call": add_numbers,
    "request-metadata": everything,
    "http-standard-headers": everything,
    "elicitation-sep1034-client-defaults": form_defaults,
    "sse-retry": reconnection,
    "json-schema-2020-12-preservation": schema_kept,
    "sep-2322-client-request-state": rounds,
    "http-invalid-tool-headers": every_tool,
    "http-custom-headers": named_calls,
    "sep-2640-client-no-prefetch": list_skills,
    "sep-2640-client-verify-digest": load_skills,
    "sep-2640-client-verify-size": load_skills,
    "sep-2640-client-verify-frontmatter": load_skills,
}
"""What is done in a scenario; in all others (signing in) the first tool is called."""


async def auth_of(scenario: str, context: dict[str, Any], url: str) -> Auth:
    """How the person configured the server."""
    match scenario:
        case "auth/client-credentials-basic":
            return ClientCredentials(context["client_id"], context["client_secret"])
        case "auth/client-credentials-jwt":
            algorithm = context.get("signing_algorithm", "ES256")
            return ClientCredentials(context["client_id"], private_key=context["private_key_pem"], algorithm=algorithm)
        case "auth/enterprise-managed-authorization":
            return EnterpriseManaged(
                context["client_id"], context["client_secret"], await issuer_of(url), context["idp_token_endpoint"],
                context["idp_client_id"], context["idp_id_token"],
            )  # fmt: skip
    return OAuth(context.get("client_id", ""), context.get("client_secret", ""))


async def issuer_of(url: str) -> str:
    """What the organisation's administrator would have told: the server's authorization server."""
    at = urlsplit(url)
    async with httpx2.AsyncClient(trust_env=False) as http:
        response = await http.get(f"{at.scheme}://{at.netloc}/.well-known/oauth-protected-resource{at.path}")
    return str(response.json()["authorization_servers"][0])


async def main(url: str) -> int:
    """Play one scenario; 0 if the host did what was wanted."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "initialize")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    config = ServerConfig(
        NAME, Http(url, auth=await auth_of(scenario, context, url)), timeouts=Timeouts(connect_s=25, call_s=25)
    )
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(
            Path(folder), MemoryVault(), Person(), lambda _event: None, WallClock(), extra=(config,), environ={},
            sign_in=lambda: SignInDefaults(client_metadata_url=CIMD),
        )  # fmt: skip
        await servers.open()
        try:
            await SCENARIOS.get(scenario, first_tool)(
                Run(servers, RemoteLibrary(servers.skills, SkillState(Path(folder))), context)
            )
        except Failure as failure:
            print(failure.why, file=sys.stderr)
            return 1
        finally:
            await servers.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
