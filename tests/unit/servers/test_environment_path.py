# ruff: noqa: ASYNC240  (the loop of a test serves nobody else)
from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from desktop_host.core.errors import KnownFault
from desktop_host.servers import environment
from desktop_host.servers.environment import child_environment, login_path, resolve_command

posix = pytest.mark.skipif(sys.platform == "win32", reason="a login shell is a POSIX thing")


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def dock(home: Path, shell: Path | str = "/bin/sh") -> dict[str, str]:
    """The environment of a program started from a dock."""
    return {"HOME": str(home), "SHELL": str(shell), "PATH": "/usr/bin:/bin"}


@posix
async def test_node_that_only_the_login_shell_knows_is_found(tmp_path: Path) -> None:
    """Hazard B14."""
    node = program(tmp_path / "node/v22/bin/npx")
    shell = program(tmp_path / "shell", f'#!/bin/sh\nPATH="{node.parent}:$PATH"; export PATH; shift 3; eval "$1"\n')
    path = await login_path(dock(tmp_path, shell))
    assert path.split(":")[0] == str(node.parent)
    assert resolve_command("npx", path) == str(node)


@posix
async def test_a_real_shell_that_talks_a_lot_still_tells_its_path(tmp_path: Path) -> None:
    """Hazard B14."""
    (tmp_path / ".profile").write_text('echo Welcome; echo PATH=/wrong; PATH="/opt/mine:$PATH"; export PATH\n')
    bash = Path("/bin/bash")
    shell = bash if bash.exists() else Path("/bin/sh")
    assert "/opt/mine" in (await login_path(dock(tmp_path, shell))).split(":")


@posix
async def test_a_job_that_keeps_the_pipe_open_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    shell = program(tmp_path / "shell", '#!/bin/sh\nsleep 30 &\nPATH=/opt/x; shift 3; eval "$1"\n')
    began = time.monotonic()
    path = await login_path(dock(tmp_path, shell))
    assert time.monotonic() - began < 4
    assert path.startswith(("/opt/x", "/usr/bin"))


@posix
async def test_a_shell_that_hangs_costs_its_time_limit_once_and_never_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard B14."""
    monkeypatch.setattr(environment, "SHELL_SECONDS", 0.3)
    shell = program(tmp_path / "shell", '#!/bin/sh\necho x >> "$HOME/started"\nexec sleep 60\n')
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    answers = await asyncio.gather(*(login_path(dock(tmp_path, shell)) for _ in range(4)))
    heart.cancel()
    assert len(set(answers)) == 1
    assert answers[0].startswith("/usr/bin:/bin")
    assert (tmp_path / "started").read_text().count("x") == 1
    assert beats > 100


async def test_without_a_shell_the_usual_places_are_added_where_they_exist(tmp_path: Path) -> None:
    """Hazard B14."""
    for place in (".local/bin", ".local/share/mise/shims", ".local/share/fnm/aliases/default/bin", ".cargo/bin"):
        (tmp_path / place).mkdir(parents=True)
    parts = (await login_path(dock(tmp_path, tmp_path / "no-such-shell"))).split(os.pathsep)
    assert parts[:2] == ["/usr/bin", "/bin"]
    for place in (".local/bin", ".local/share/mise/shims", ".local/share/fnm/aliases/default/bin", ".cargo/bin"):
        assert str(tmp_path / place) in parts
    assert str(tmp_path / ".volta/bin") not in parts


@pytest.mark.parametrize(
    ("alias", "version"),
    [(None, "v22.3.0"), ("20", "v20.11.1"), ("v9.1.0", "v9.1.0"), ("lts/*", "v22.3.0"), ("18", "v22.3.0")],
)
async def test_of_several_node_versions_the_chosen_or_else_the_newest_is_taken(
    tmp_path: Path, alias: str | None, version: str
) -> None:
    """Hazard B14: not the oldest, not the last by spelling."""
    for name in ("v9.1.0", "v20.2.0", "v20.11.1", "v22.3.0", "system"):
        (tmp_path / ".nvm/versions/node" / name / "bin").mkdir(parents=True)
    if alias is not None:
        (tmp_path / ".nvm/alias").mkdir()
        (tmp_path / ".nvm/alias/default").write_text(alias + "\n")
    parts = (await login_path(dock(tmp_path, tmp_path / "none"))).split(os.pathsep)
    assert [p for p in parts if ".nvm" in p] == [str(tmp_path / ".nvm/versions/node" / version / "bin")]


async def test_an_activated_environment_stays_before_the_shell_s_path(tmp_path: Path) -> None:
    shell = program(tmp_path / "shell", '#!/bin/sh\nPATH=/opt/shell:/usr/bin; export PATH; shift 3; eval "$1"\n')
    env = dock(tmp_path, shell) | {"PATH": f"{tmp_path}/venv/bin::relative:/usr/bin"}
    parts = (await login_path(env)).split(":")
    assert parts[:3] == [f"{tmp_path}/venv/bin", "/opt/shell", "/usr/bin"]
    assert all(os.path.isabs(p) for p in parts)


def test_a_child_gets_none_of_the_host_s_keys_and_none_of_its_loader_settings() -> None:
    """Hazard O136."""
    host = {
        "HOME": "/h", "USER": "u", "LOGNAME": "u", "SHELL": "/bin/sh", "TERM": "dumb", "LANG": "C.UTF-8", "LC_ALL": "C",
        "TMPDIR": "/t", "XDG_RUNTIME_DIR": "/run/user/1", "HTTPS_PROXY": "http://p:1", "SSL_CERT_FILE": "/c.pem",
        "ANTHROPIC_API_KEY": "sk-1", "OPENAI_API_KEY": "sk-2", "DESKTOP_HOST_PASSPHRASE_FILE": "/x",
        "LD_LIBRARY_PATH": "/frozen", "_PYI_ARCHIVE_FILE": "/a", "PYTHONPATH": "/p", "SSH_AUTH_SOCK": "/s",
        "PATH": "/host/bin", "LC_EVIL": "() { :; }; echo x",
    }  # fmt: skip
    child = child_environment({"MINE": "1", "LANG": "de"}, "/bin:/usr/bin", host)
    assert child == {
        "HOME": "/h", "USER": "u", "LOGNAME": "u", "SHELL": "/bin/sh", "TERM": "dumb", "LANG": "de", "LC_ALL": "C",
        "TMPDIR": "/t", "XDG_RUNTIME_DIR": "/run/user/1", "HTTPS_PROXY": "http://p:1", "SSL_CERT_FILE": "/c.pem",
        "PATH": "/bin:/usr/bin", "MINE": "1",
    }  # fmt: skip


def test_what_the_person_configured_wins_even_over_the_path() -> None:
    child = child_environment({"PATH": "/only", "LD_LIBRARY_PATH": "/wanted"}, "/bin", {})
    assert child == {"PATH": "/only", "LD_LIBRARY_PATH": "/wanted"}


def test_a_command_that_does_not_exist_is_named_with_the_path_that_was_searched() -> None:
    """Hazards B14, B26, B31."""
    with pytest.raises(KnownFault) as failed:
        resolve_command("no-such-program", "/bin:/usr/bin", None)
    assert failed.value.code == "server_failed"
    assert failed.value.params == {
        "reason": "command_not_found", "command": "no-such-program", "path": "/bin:/usr/bin", "cwd": None,
    }  # fmt: skip


@posix
def test_folders_spaces_and_foreign_letters_in_commands_are_no_obstacle(tmp_path: Path) -> None:
    """Hazards B17, B20."""
    folder = tmp_path / "中文 名"
    tool = program(folder / "my tool")
    assert resolve_command(str(tool), "/bin") == str(tool)
    assert resolve_command("./my tool", "/bin", str(folder)) == str(tool)
    assert resolve_command("my tool", f"/bin:{folder}") == str(tool)


@posix
def test_why_a_command_cannot_be_started_is_told_apart(tmp_path: Path) -> None:
    """Hazard B31."""
    (tmp_path / "data.txt").write_text("x")
    with pytest.raises(KnownFault) as failed:
        resolve_command(str(tmp_path / "data.txt"), "/bin")
    assert failed.value.params["reason"] == "command_not_executable"
    with pytest.raises(KnownFault) as failed:
        resolve_command("sh", "/bin", str(tmp_path / "gone"))
    assert failed.value.params["reason"] == "cwd_not_found"
    with pytest.raises(KnownFault) as failed:
        resolve_command(" ", "/bin")
    assert failed.value.params["reason"] == "command_not_found"
