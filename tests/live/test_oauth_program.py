"""`servers login` and `servers logout` of the real program: the address on standard error, the vault on disk."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest

from tests.fakes.servers.signed import Signed
from tests.live.program import run, start

pytestmark = pytest.mark.live


def test_a_login_on_the_command_line_prints_the_address_and_lasts_until_the_logout(tmp_path: Path) -> None:
    home, passphrase = tmp_path / "home", tmp_path / "passphrase"
    passphrase.write_text("open sesame\n")
    keys = {"DESKTOP_HOST_PASSPHRASE_FILE": str(passphrase)}
    with Signed() as signed:
        run(home, "servers", "add", "web", signed.url, **keys)
        [refused] = run(home, "servers", "test", "web", code=5, **keys)
        assert refused["error"]["code"] == "auth"
        assert "servers login" in refused["error"]["remedy"]
        assert not signed.paths("/register")
        process = start(home, "servers", "login", "web", **keys)
        assert process.stderr is not None
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+/authorize\S+", line)))
        with urllib.request.urlopen(address, timeout=20) as page:
            assert "Signed in" in page.read().decode()
        out, _ = process.communicate(timeout=60)
        assert (process.returncode, json.loads(out)["state"]) == (0, "ready")
        signed.expire()
        [tested] = run(home, "servers", "test", "web", **keys)
        assert (tested["ok"], tested["tools"]) == (True, 3)
        assert len(signed.paths("/authorize")) == 1
        plain = b"".join(p.read_bytes() for p in home.rglob("*") if p.is_file())
        assert not [t for t in signed.tokens() if t.encode() in plain]
        [out] = run(home, "servers", "logout", "web", **keys)
        assert out == {"name": "web", "signed_out": True, "revoked": True}
        [after] = run(home, "servers", "test", "web", code=5, **keys)
        assert after["error"]["code"] == "auth"
