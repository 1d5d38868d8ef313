"""Why a server does not work: real broken configurations, the sentence a person reads, and the press that mends."""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import FailureReport, Http, Launch, ServerConfig, ServerState, Sse, Stdio, Timeouts
from desktop_host.i18n import Translator
from tests.fakes.servers.stage import HERE, Stage, stage, until
from tests.fakes.servers.web import Web

pytestmark = pytest.mark.live
LIMITS = Timeouts(connect_s=12, call_s=5, call_max_s=10)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as running:
        yield running


async def failure(folder: Path, launch: Launch, limits: Timeouts = LIMITS) -> FailureReport:
    """How a server of this launch fails."""
    async with stage(folder, ServerConfig("it", launch, timeouts=limits), scale=0.02) as s:
        await _given_up(s)
        error = s.servers.status("it").error
        assert error is not None
        return error


async def _given_up(s: Stage) -> None:
    over = (ServerState.FAILED, ServerState.NEEDS_AUTH)
    await until(lambda: s.servers.status("it").state in over, 40, lambda: str(s.servers.status("it")))


def words(report: FailureReport) -> dict[str, tuple[str, str]]:
    """The sentence and the mend in both languages; neither may be a key, English in Chinese, or empty."""
    out = {}
    for language in ("en", "zh_CN"):
        what, mend = Translator(language).failure(report)
        assert what and mend and "remedy." not in mend and "failure." not in what and "{" not in what + mend
        out[language] = (what, mend)
    assert out["en"][0] != out["zh_CN"][0] and any(c >= "\u4e00" for c in out["zh_CN"][0])
    assert any(c >= "\u4e00" for c in out["zh_CN"][1])
    return out


@pytest.mark.parametrize(
    ("command", "args", "what", "remedy", "fix"),
    [
        ("npx", ("-y", "x"), "There is no program npx on the PATH that was used.", "install_node", "node"),
        ("no-such-thing", (), "There is no program no-such-thing on the PATH", "command_not_found", "edit"),
        ("/nowhere/run.sh", (), "There is no program at /nowhere/run.sh.", "missing_program", "edit"),
        (sys.executable, ("-m", "no_such_module"), "ended with exit code 1 before", "missing_module", "edit"),
        (sys.executable, ("/nowhere/server.py",), "ended with exit code 2 before", "missing_file", "edit"),
    ],
)
async def test_a_command_that_cannot_serve_says_why_in_both_languages(
    tmp_path: Path, command: str, args: tuple[str, ...], what: str, remedy: str, fix: str
) -> None:
    """Hazards B14, B31."""
    report = await failure(tmp_path, Stdio(command, args, env={"PATH": "/usr/lib"}))  # type: ignore[arg-type]
    assert what in words(report)["en"][0]
    assert (report.remedy, report.fix) == (f"remedy.server.{remedy}", fix)
    assert report.path == "/usr/lib"


async def test_a_file_that_may_not_be_run_is_made_executable_by_one_press(tmp_path: Path) -> None:
    program = tmp_path / "my server"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {HERE / 'raw.py'}\n")
    program.chmod(0o644)
    async with stage(tmp_path, ServerConfig("it", Stdio(str(program)), timeouts=LIMITS), scale=0.02) as s:
        await _given_up(s)
        error = s.servers.status("it").error
        assert error is not None
        assert words(error)["en"][0] == f"{program} is there, but may not be run."
        assert error.fix == "make_executable"
        status = await s.servers.mend("it")
        assert (status.state, os.access(program, os.X_OK)) == (ServerState.READY, True)
        with pytest.raises(UserFault) as caught:
            await s.servers.mend("it")
        assert caught.value.params["reason"] == "no_mend"


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    report = await failure(tmp_path, Stdio(sys.executable, ("-c", ""), cwd="/no/such/folder"))
    assert words(report)["en"][0] == "The working folder /no/such/folder does not exist."
    assert (report.remedy, report.fix) == ("remedy.server.missing_folder", "edit")


async def test_a_start_that_was_too_slow_gets_more_time_by_one_press(tmp_path: Path) -> None:
    slow = ServerConfig("it", Stdio(sys.executable, ("-c", "import time; time.sleep(600)")),
                        timeouts=Timeouts(connect_s=0.5, call_s=5, call_max_s=10))  # fmt: skip
    async with stage(tmp_path, scale=0.02, start=False) as s:
        await s.servers.add(slow)
        await s.servers.start("it")
        await until(lambda: s.servers.status("it").error)
        error = s.servers.status("it").error
        assert error is not None
        assert words(error)["en"][0] == "The server was not ready within 0.5 s."
        assert error.fix == "more_time"
        mending = asyncio.create_task(s.servers.mend("it"))
        await until(lambda: s.servers.configs()[0].timeouts.connect_s == 1.5)
        await s.servers.stop("it")
        await mending
    assert "1.5" in (tmp_path / "servers.json").read_text(), "the longer limit is kept"


async def test_a_port_where_nobody_listens_is_named(tmp_path: Path) -> None:
    with Web() as gone:
        pass
    report = await failure(tmp_path, Http(gone.url))
    assert words(report)["en"][0].startswith(f"127.0.0.1:{gone.port} did not answer")
    assert (report.code, report.fix) == ("network", "restart")


@pytest.mark.parametrize(
    ("status", "what", "remedy", "fix"),
    [
        (404, "answered with HTTP 404.", "wrong_url", "edit"),
        (500, "answered with HTTP 500.", "http_error", "restart"),
        (403, "refused to let us in (HTTP 403).", "auth", "sign_in"),
    ],
)
async def test_an_address_that_refuses_is_named_with_its_status(
    tmp_path: Path, web: Web, status: int, what: str, remedy: str, fix: str
) -> None:
    web.status = status
    report = await failure(tmp_path, Http(web.url))
    assert what in words(report)["en"][0], words(report)
    assert (report.remedy, report.fix) == (f"remedy.server.{remedy}", fix)


async def test_credentials_that_are_missing_lead_to_signing_in(tmp_path: Path, web: Web) -> None:
    web.status = 401
    report = await failure(tmp_path, Http(web.url))
    words(report)
    assert (report.code, report.fix) == ("auth", "sign_in")


async def test_a_key_of_ones_own_that_is_refused_leads_to_the_settings(tmp_path: Path, web: Web) -> None:
    web.status = 401
    report = await failure(tmp_path, Http(web.url, {"Authorization": "Bearer wrong-value-1"}))  # type: ignore[arg-type]
    assert words(report)["en"][0] == "The server refused to let us in (HTTP 401)."
    assert (report.remedy, report.fix) == ("remedy.server.auth", "edit")
    assert "wrong-value-1" not in str(report)


async def test_a_streamable_server_that_was_taken_for_sse_is_switched_by_one_press(tmp_path: Path, web: Web) -> None:
    async with stage(tmp_path, scale=0.02, start=False) as s:
        await s.servers.add(ServerConfig("it", Sse(web.url), timeouts=LIMITS))
        await s.servers.start("it")
        await _given_up(s)
        error = s.servers.status("it").error
        assert error is not None
        assert "HTTP 405" in words(error)["en"][0]
        assert (error.remedy, error.fix) == ("remedy.server.wrong_transport", "use_http")
        status = await s.servers.mend("it")
        assert (status.state, status.transport) == (ServerState.READY, "http")


async def test_an_sse_server_that_was_taken_for_streamable_is_switched_by_one_press(tmp_path: Path) -> None:
    async with sse_server() as url, stage(tmp_path, scale=0.02, start=False) as s:
        await s.servers.add(ServerConfig("it", Http(url), timeouts=LIMITS))
        await s.servers.start("it")
        await _given_up(s)
        error = s.servers.status("it").error
        assert error is not None
        assert (error.remedy, error.fix) == ("remedy.server.wrong_transport", "use_sse"), error
        status = await s.servers.mend("it")
        assert (status.state, status.transport) == (ServerState.READY, "sse")


async def test_a_certificate_that_nobody_vouches_for_is_a_matter_of_tls(tmp_path: Path) -> None:
    async with self_signed(tmp_path) as url:
        report = await failure(tmp_path, Http(url))
    assert words(report)["en"][0].startswith("The secure connection to localhost:")
    assert (report.code, report.remedy) == ("tls", "remedy.server.tls")


@asynccontextmanager
async def sse_server() -> AsyncIterator[str]:
    """A real HTTP+SSE server of the SDK."""
    code = (
        "import sys\nfrom mcp.server import MCPServer\n"
        "s = MCPServer('sse')\n"
        "@s.tool()\ndef hello() -> str:\n    return 'hi'\n"
        "s.run('sse', host='127.0.0.1', port=int(sys.argv[1]))\n"
    )
    with Web() as taken:
        port = taken.port
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(port), stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        await _listening(port)
        yield f"http://127.0.0.1:{port}/sse"
    finally:
        process.kill()
        await process.wait()


async def _listening(port: int) -> None:
    end = asyncio.get_running_loop().time() + 30
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            assert asyncio.get_running_loop().time() < end, "the server did not come up"
            await asyncio.sleep(0.05)
        else:
            writer.close()
            await writer.wait_closed()
            return


@asynccontextmanager
async def self_signed(folder: Path) -> AsyncIterator[str]:
    """A TLS server whose certificate is its own."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = folder / "server.pem"
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        await server.wait_closed()
