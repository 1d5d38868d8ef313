"""What one press does about a server that does not work."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.servers import FailureReport, Http, ServerConfig, Sse, Stdio

PATIENCE = 3.0
"""How many times longer a server may take to start where it was too slow."""
LONGEST_S = 600.0


def mended(config: ServerConfig, report: FailureReport) -> ServerConfig:
    """The configuration with the failure's `fix` done; the same one where only a new start is needed. Blocking.

    Raises:
        UserFault: `usage`, the host can do nothing by itself.
        KnownFault: `permission`, a file could not be made executable.
    """
    launch = config.launch
    match report.fix:
        case "restart":
            return config
        case "more_time":
            limit = min(config.timeouts.connect_s * PATIENCE, LONGEST_S)
            return replace(config, timeouts=replace(config.timeouts, connect_s=max(limit, config.timeouts.connect_s)))
        case "use_sse" if isinstance(launch, Http):
            return replace(config, launch=Sse(launch.url, launch.headers, launch.auth))
        case "use_http" if isinstance(launch, Sse):
            return replace(config, launch=Http(launch.url, launch.headers, launch.auth))
        case "make_executable" if isinstance(launch, Stdio):
            _make_executable(Path(os.path.join(launch.cwd or os.curdir, os.path.expanduser(launch.command))))
            return config
        case other:
            raise UserFault(
                "usage",
                f"the host cannot mend {config.name} by itself",
                reason="no_mend",
                server=config.name,
                fix=other,
            )


def _make_executable(path: Path) -> None:
    """For its owner alone, and for nobody who may not read it."""
    try:
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    except OSError as error:
        told = f"{path} cannot be made executable: {error.strerror}"
        raise KnownFault(
            "permission", told, reason="not_executable", file=str(path), detail=str(error.strerror)
        ) from error
