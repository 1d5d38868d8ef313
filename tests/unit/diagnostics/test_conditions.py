"""The doctor where the trouble is real: a full disk, no files left, taken ports, dead proxies, foreign certificates."""

from __future__ import annotations

import email.utils
import errno
import os
import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.auth import OAuth
from desktop_host.core.events import Notice, Stamped, TurnEnded
from desktop_host.core.servers import Http, ServerConfig
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.core.settings import Endpoint, Network, Settings
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.diagnostics import machine
from desktop_host.i18n import Translator
from tests.fakes.memory_history import MemoryHistory, World
from tests.fakes.model_server import ModelServer, answer, page
from tests.fakes.remote import models
from tests.fakes.ward import FixedServers, Ward
from tests.unit.providers.test_recovery import certificate


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    tmp_path.chmod(0o700)
    return Ward(tmp_path)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip("a disk of its own cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Write until there is no room."""
    with (folder / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 65_536)


def limit_of(name: str) -> str:
    path = Path(f"/proc/sys/fs/inotify/{name}")
    return path.read_text().strip() if path.exists() else "?"


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount")
async def test_a_disk_that_is_small_or_full_is_told(ward: Ward, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as ward.folder:
        what, remedy, _, act = await ward.ill("disk")
        assert what == "1.0 MB free" and "200 MB" in remedy and act == f"file:{ward.folder}"
        with pytest.raises(OSError, match="No space left"):
            fill(ward.folder)
        assert (await ward.ill("disk"))[0] == "0.0 MB free"
        assert "the disk is full" in (await ward.ill("home"))[0]


async def test_a_process_without_files_left_and_watchers_that_cannot_be_made_are_told(ward: Ward) -> None:
    health = ward.health()
    used, _ = machine.open_files() or (0, 0)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    await machine.files()  # its thread stands before the limit does
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 2, before[1]))
    try:
        near = await machine.files()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not near.ok and near.place == "ulimit -n"
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(OSError, match="inotify_init1") as caught:
            machine.watch(str(ward.folder))
        spent = machine.open_files()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert caught.value.errno == errno.EMFILE and spent == (3, 3)
    assert (await health.run(("watcher",)))[0].ok


@pytest.mark.parametrize(("number", "name"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")])
async def test_the_limit_of_watches_is_told_with_its_value_and_how_to_raise_it(number: int, name: str) -> None:
    def look(_folder: str) -> None:
        raise OSError(number, "no more")

    found = await machine.watcher(Path("/"), look)
    _, what, remedy = Translator("en").finding(found)
    assert limit_of(name) in what
    assert f"sysctl fs.inotify.{name}=" in remedy and found.place == f"fs.inotify.{name}"


async def test_a_port_that_the_browser_must_come_back_to_and_another_program_has_is_told(ward: Ward) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        port = other.getsockname()[1]
        ward.set("oauth.redirect_port", port)
        assert (await ward.ill("port"))[2:] == ("oauth.redirect_port", "settings")
        ward.set("oauth.redirect_port", 0)
        remote = ServerConfig("crm", Http("https://x/mcp", auth=OAuth(redirect_port=port)))
        ward.servers = FixedServers((), (remote,))
        what, _, place, act = await ward.ill("port")
        assert (str(port) in what, place, act) == (True, "crm", "server:crm")
    assert (await ward.rows("port"))["port"].ok


async def test_a_proxy_that_takes_no_connection_is_told(ward: Ward) -> None:
    port = free_port()
    ward.set("network.proxy", f"http://ada:hidden-value@127.0.0.1:{port}")
    what, remedy, place, act = await ward.ill("proxy")
    assert "takes no connection" in what and "hidden-value" not in what and "network.proxy" in remedy
    assert (place, act) == ("network.proxy", "settings")


class Online:
    """A ward whose models are real ones at an address of the test's own."""

    def __init__(self, ward: Ward, url: str, wire: str = "compat", **network: str) -> None:
        self.ward = ward
        self.settings = replace(
            Settings(), endpoints=(Endpoint("Mine", wire, url),), network=Network(**network)
        )  # fmt: skip

    async def ill(self, check: str, **more: Any) -> tuple[str, str, str, str]:
        async with models(settings=self.settings, discover=(), secrets={self.settings.endpoints[0].base_url: "k"}) as m:
            self.ward.models = m  # type: ignore[assignment]
            return await self.ward.ill(check, **more)

    async def well(self, check: str) -> str:
        async with models(settings=self.settings, discover=(), secrets={self.settings.endpoints[0].base_url: "k"}) as m:
            self.ward.models = m  # type: ignore[assignment]
            found = (await self.ward.rows(check))[check]
        assert found.ok, found
        return Translator("en").finding(found)[1]


async def test_an_address_that_answers_is_well_and_its_time_is_compared(ward: Ward) -> None:
    async with ModelServer() as server:
        date = ("date", email.utils.formatdate(time.time() - 7200, usegmt=True))
        server.gets["/v1/models"] = answer({"data": []}, 200, date)
        online = Online(ward, f"{server.url}/v1")
        assert "127.0.0.1" in await online.well("addresses")
        what, remedy, _, _ = await online.ill("clock")
        assert "720" in what and "ahead" in what and "clock" in remedy
        server.gets["/v1/models"] = answer(
            {"error": {"message": "no"}}, 401, ("date", email.utils.formatdate(time.time() + 900, usegmt=True))
        )
        assert "behind" in (await online.ill("clock"))[0]
        server.gets["/v1/models"] = answer({"data": []}, 200, ("date", email.utils.formatdate(usegmt=True)))
        assert "agrees within" in await online.well("clock")
        server.gets["/v1/models"] = answer({"data": []}, 200, ("date", "some day"))
        assert "no address told its time" in await online.well("clock")
        assert not server.posts, "a check costs nothing"


async def test_a_wrong_address_a_dead_one_and_a_refused_key_are_told_apart(ward: Ward) -> None:
    async with ModelServer() as server:
        what, _, place, act = await Online(ward, f"{server.url}/v2").ill("addresses")
        assert (place, act) == (f"{server.url}/v2", "models")
        server.gets["/v1/models"] = page()
        assert await Online(ward, f"{server.url}/v1").ill("addresses")
        server.gets["/v1/models"] = answer({"error": {"message": "no"}}, 401)
        refused, remedy, _, act = await Online(ward, f"{server.url}/v1").ill("addresses")
        assert "key" in (refused + remedy).lower() and act == "models"
        server.gets.clear()
        assert await Online(ward, server.url, "anthropic-compat").well("addresses")  # gateways have no list
    dead, _, _, _ = await Online(ward, f"http://127.0.0.1:{free_port()}/v1").ill("addresses")
    assert len({what, refused, dead}) == 3
    broken, _, place, _ = await Online(ward, "http://u:hidden-value@x/v1").ill("addresses")
    assert place == "Mine" and "hidden-value" not in broken


async def test_a_certificate_that_nobody_vouches_for_is_told_until_it_is_named(ward: Ward, tmp_path: Path) -> None:
    pem, context = certificate(tmp_path)
    async with ModelServer(tls=context) as server:
        server.gets["/v1/models"] = answer({"data": []})
        url = f"https://localhost:{server.port}/v1"
        what, remedy, _, _ = await Online(ward, url).ill("addresses")
        assert "certificate" in what and "network.ca_file" in remedy
        await Online(ward, url, ca_file=str(pem)).well("addresses")


async def test_a_certificate_of_another_time_leads_to_the_clock(ward: Ward, tmp_path: Path) -> None:
    pem, context = certificate(tmp_path, begins_days=2)
    async with ModelServer(tls=context) as server:
        what, remedy, _, _ = await Online(ward, f"https://localhost:{server.port}/v1", ca_file=str(pem)).ill(
            "addresses"
        )
    assert "not yet valid" in what and "clock" in remedy


async def test_a_proxy_that_refuses_models_is_told_by_their_address(ward: Ward) -> None:
    async with ModelServer() as server:  # it is no proxy: CONNECT is answered 500
        what, remedy, _, act = await Online(ward, "https://models.invalid/v1", proxy=server.url).ill("addresses")
    assert "proxy" in what.lower() and "network.proxy" in remedy and act == "models"


async def ended(history: MemoryHistory, session: str, now: float, code: str, *, status: Any, **params: Any) -> None:
    """A chat whose last turn ended with this code."""
    await history.create(session, f"Chat {session}", SessionOptions())
    error = freeze({"code": code, "message": f"{code}!", "params": params}) if code else None
    stop = TurnStop.ERROR if code else TurnStop.END
    await history.append([Stamped(1, now, session, 1, TurnEnded(status, stop, "", error))])


async def test_chats_that_ended_for_want_of_room_or_allowance_are_named_for_a_day(ward: Ward) -> None:
    now = time.time()
    ward.history = MemoryHistory(World(), now=lambda: now)
    await ended(ward.history, "a", now, "context_overflow", status=TurnStatus.FAILED, model="tiny")
    await ended(ward.history, "b", now, "rate_limited", status=TurnStatus.FAILED)
    await ended(ward.history, "c", now, "", status=TurnStatus.DONE)
    what, remedy, place, act = await ward.ill("context")
    assert "“Chat a” no longer fitted its model tiny" in what and "summarised" in remedy
    assert (place, act) == ("Chat a", "chat:a")
    assert "rate_limited!" in (await ward.ill("rate_limit"))[0]
    assert (await ward.rows("schema"))["schema"].ok
    later = await ward.rows("context", "rate_limit", now=lambda: now + 90_000)
    assert [found.ok for found in later.values()] == [True, True]


async def test_a_tool_that_a_model_refused_is_named(ward: Ward) -> None:
    now = time.time()
    ward.history = MemoryHistory(World(), now=lambda: now)
    await ended(ward.history, "a", now, "", status=TurnStatus.DONE)
    notice = Notice("tool_quarantined", FrozenDict({"server": "crm", "tool": "find", "detail": "bad pattern"}))
    await ward.history.append([Stamped(2, now, "a", 1, notice)])
    what, remedy, _, act = await ward.ill("schema")
    assert "crm.find: bad pattern" in what and "Switch the tool off" in remedy and act == "chat:a"


def test_open_files_are_counted() -> None:
    counted = machine.open_files()
    assert counted is not None and counted[0] >= 3 and counted[1] >= counted[0]
    with open(os.devnull):
        more = machine.open_files()
    assert more is not None and more[0] > 0
