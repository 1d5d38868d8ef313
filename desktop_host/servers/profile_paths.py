"""Paths inside the profile as the file of servers has them: they stand when the profile is copied or moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.values import FrozenDict

PROFILE = "DESKTOP_HOST_PROFILE"
"""Stands for the profile's folder in a launch, as `${DESKTOP_HOST_PROFILE}`."""


def movable(launch: Stdio, folder: Path) -> Stdio:
    """A launch in which the profile's folder is named by its placeholder."""
    return _each(launch, lambda text: text.replace(str(folder) + "/", "${" + PROFILE + "}/"))


def settled_here(config: ServerConfig, folder: Path) -> ServerConfig:
    """The same server for another host on this machine, which does not know the placeholder."""
    if not isinstance(config.launch, Stdio):
        return config
    return replace(config, launch=_each(config.launch, lambda text: text.replace("${" + PROFILE + "}", str(folder))))


def _each(launch: Stdio, change: Callable[[str], str]) -> Stdio:
    return replace(
        launch, command=change(launch.command), args=tuple(change(a) for a in launch.args),
        env=FrozenDict({k: change(str(v)) for k, v in launch.env.items()}),
        cwd=None if launch.cwd is None else change(launch.cwd),
    )  # fmt: skip
