"""`servers login` and `servers logout` of the real program: the address on standard error, the vault on disk."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
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


def test_a_login_that_cannot_be_is_told_with_its_remedy_and_an_interrupt_ends_the_wait(tmp_path: Path) -> None:
    home, passphrase = tmp_path / "home", tmp_path / "passphrase"
    passphrase.write_text("open sesame\n")
    keys = {"DESKTOP_HOST_PASSPHRASE_FILE": str(passphrase)}
    with Signed() as signed, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run(home, "servers", "add", "web", signed.url, **keys)
        run(home, "settings", "set", "oauth.redirect_port", str(port), **keys)
        [told] = run(home, "servers", "login", "web", code=5, **keys)
        assert told["code"] == "auth" and str(port) in told["message"]
        taken.close()
        signed.metadata = {"token_endpoint": "https://169.254.169.254/token"}
        process = start(home, "servers", "login", "web", **keys)
        out, _ = finished(process)
        [told] = json.loads(f"[{out}]")
        assert "169.254.169.254" in told["message"] and "Do not sign in" in told["remedy"]
        signed.metadata = {}
        process = start(home, "servers", "login", "web", **keys)
        assert process.stderr is not None
        next(line for line in process.stderr if "/authorize" in line)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        socket.create_server(("127.0.0.1", port)).close()


def finished(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a login that sends its person to the browser says in the end."""
    assert process.stderr is not None
    address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+/authorize\S+", line)))
    urllib.request.urlopen(address, timeout=20).close()
    return process.communicate(timeout=60)


def test_credentials_of_an_entry_sign_in_on_the_command_line_and_out_again(tmp_path: Path) -> None:
    home, passphrase = tmp_path / "home", tmp_path / "passphrase"
    passphrase.write_text("open sesame\n")
    keys = {"DESKTOP_HOST_PASSPHRASE_FILE": str(passphrase)}
    with Signed() as signed:
        signed.secret = "robot-robot"
        auth = {"type": "clientCredentials", "clientId": "known", "clientSecret": "${keyring:robot}"}
        entry = {"url": signed.url, "desktopHost": {"auth": {**auth, "scopes": ["read"], "issuer": signed.issuer}}}
        (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"web": entry}}))
        run(home, "servers", "import", str(tmp_path / "servers.json"), **keys)
        run(home, "secrets", "set", "robot", given="robot-robot\n", **keys)
        [tested] = run(home, "servers", "test", "web", **keys)
        assert (tested["ok"], tested["tools"]) == (True, 3)
        assert not signed.paths("/authorize")
        [out] = run(home, "servers", "logout", "web", **keys)
        assert out["revoked"] is True and len(signed.revoked) == 1
