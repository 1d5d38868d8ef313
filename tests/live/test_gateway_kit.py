"""The author's kit: a project that passes its own tests, works at once, and starts anew when it is saved."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from desktop_host.app.compose import open_host
from desktop_host.core.servers import ServerState
from desktop_host.engine.host import HeadlessPolicy, HostSpec

pytestmark = pytest.mark.live


async def program(home: Path, *argv: str) -> tuple[int, str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "DBUS_SESSION_BUS_ADDRESS": "/dev/null"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "desktop_host", "--home", str(home), *argv, env=env,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode()


def whole(project: Path) -> str:
    return "".join(p.read_text() for p in project.rglob("*") if p.is_file())


async def test_a_new_server_is_tested_works_and_restarts_on_save(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code, said = await program(home, "servers", "new", "my-notes", "--in", str(tmp_path), "--json")
    assert code == 0, said
    project = Path(json.loads(said)["folder"])
    assert project == tmp_path / "my-notes"
    assert "__NAME__" not in whole(project) and "my-notes" in whole(project)
    tests = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", str(project), cwd=project,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(tests.communicate(), 90)
    assert tests.returncode == 0, out.decode()
    async with open_host(HostSpec(home, headless=HeadlessPolicy())) as host:
        status = await host.servers.start("my-notes")
        assert status.state is ServerState.READY
        assert {t.name for t in host.servers.tools("my-notes")} == {"search_notes", "add_note"}
        reader = host.subscribe(None)
        source = project / "server.py"
        changed = source.read_text().replace('title="Search notes"', 'name="find_notes", title="Search notes"')
        await asyncio.to_thread(source.write_text, changed)
        async with asyncio.timeout(40):
            async for _batch in reader:
                if "find_notes" in {t.name for t in host.servers.tools("my-notes")}:
                    break
    for argv, told in [
        (("my-notes",), "my-notes"), (("My Notes",), "My Notes"), (("other", "--in", "/proc/none"), "/proc/none"),
    ]:  # fmt: skip
        code, said = await program(home, "servers", "new", *argv)
        assert code in (2, 5) and told in said and "Traceback" not in said
    (tmp_path / "there").mkdir()
    code, said = await program(home, "servers", "new", "there", "--in", str(tmp_path))
    assert code == 2 and "there" in said
