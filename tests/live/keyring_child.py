"""What `test_keyring_secret_service.py` runs inside a D-Bus session of its own: `keyring_child.py VERB FOLDER`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from desktop_host.core.errors import HostError
from desktop_host.diagnostics import profile
from desktop_host.i18n import Translator
from desktop_host.profiles.vault import Vault, forget_profile, open_vault

FOLDER = Path(sys.argv[2])
DAEMON = int(os.environ.get("KEYRING_PID", "0"))


async def vault(limit_s: float = 10.0) -> Vault:
    return await open_vault("live-test", FOLDER, environ={}, limit_s=limit_s)


async def code_of(work: Any) -> str:
    try:
        await work
    except HostError as error:
        return f"{error.code}/{error.params['reason']}"
    return "fine"


async def roundtrip() -> dict[str, Any]:
    """Everything once, against the real service."""
    one = await vault()
    probe = await one.probe()
    await one.put("openai", "sk-真-key")
    await one.put("tokens", "x" * 1_000_000)
    two = await vault()
    answer = {
        "probe": probe, "described": one.describe(), "names": await two.names(), "key": await two.get("openai"),
        "big": len(await two.get("tokens") or ""),
    }  # fmt: skip
    await two.delete("openai")
    answer["left"] = forget_profile("live-test", FOLDER)
    import keyring

    answer["after"] = [keyring.get_password("desktop-host/live-test", name) for name in ("openai", "tokens")]
    return answer


async def locked() -> dict[str, Any]:
    """The collection is locked and there is no display for a prompt."""
    await (await vault()).put("openai", "sk-secret")
    import secretstorage

    bus = secretstorage.dbus_init()
    secretstorage.get_default_collection(bus).lock()
    bus.close()
    fresh = await vault()
    return {"get": await code_of(fresh.get("openai")), "put": await code_of(fresh.put("b", "c")),
            "names": await fresh.names(), "probe": await fresh.probe(),
            "doctor": Translator("en").finding(await profile.vault(fresh))}  # fmt: skip


async def stopped() -> dict[str, Any]:
    """The daemon does not answer, and later does again."""
    await (await vault()).put("openai", "sk-secret")
    fresh = await vault(limit_s=1.0)
    os.kill(DAEMON, signal.SIGSTOP)
    began = time.monotonic()
    first = await code_of(fresh.get("openai"))
    took = time.monotonic() - began
    second = await code_of(fresh.get("openai"))
    os.kill(DAEMON, signal.SIGCONT)
    for _attempt in range(10):  # each waits for its limit at most
        if (found := await code_of(fresh.get("openai"))) == "fine":
            break
    return {"first": first, "took": took, "second": second, "later": found, "value": await fresh.get("openai")}


async def hang_at_exit() -> dict[str, Any]:
    """The daemon never answers; the program must end all the same."""
    await (await vault()).put("openai", "sk-secret")
    os.kill(DAEMON, signal.SIGSTOP)
    return {"get": await code_of((await vault(limit_s=0.5)).get("openai"))}


async def none() -> dict[str, Any]:
    """There is no keyring."""
    one = await vault()
    return {"get": await one.get("openai"), "put": await code_of(one.put("openai", "sk-secret")),
            "probe": await one.probe()}  # fmt: skip


if __name__ == "__main__":
    verbs = {"roundtrip": roundtrip, "locked": locked, "stopped": stopped, "hang": hang_at_exit, "none": none}
    print(json.dumps(asyncio.run(verbs[sys.argv[1]]())), flush=True)
