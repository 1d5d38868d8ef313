"""Bundles: read with limits, unpacked safely, installed with values, updated, removed."""

from __future__ import annotations

import datetime
import json
import os
import random
import stat
import struct
import sys
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs7

from desktop_host.core.errors import UserFault
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.servers.bundle_signature import signature_of
from desktop_host.servers.bundles import Bundles
from desktop_host.servers.manifest import filled, read
from tests.fakes.memory_vault import MemoryVault

MANIFEST: dict[str, Any] = {
    "manifest_version": "0.3",
    "name": "notes",
    "display_name": "My Notes",
    "version": "1.0.0",
    "description": "Keeps notes",
    "author": {"name": "Ada"},
    "server": {
        "type": "python",
        "entry_point": "server/main.py",
        "mcp_config": {
            "command": "python",
            "args": ["${__dirname}/server/main.py", "${user_config.folders}", "--size", "${user_config.size}"],
            "env": {"API_KEY": "${user_config.key}", "LIB": "${__dirname}${/}lib", "RAW": "${PATH} ${keyring:other}"},
        },
    },
    "user_config": {
        "folders": {"type": "directory", "title": "Folders", "multiple": True, "default": ["${HOME}/Notes"]},
        "size": {"type": "number", "title": "Size", "default": 10, "min": 1, "max": 100},
        "key": {"type": "string", "title": "API key", "sensitive": True, "required": True},
    },
    "tools": [{"name": "add"}, {"name": "find"}],
}


@dataclass
class Room:
    """The servers that bundles are added to."""

    held: dict[str, ServerConfig] = field(default_factory=dict)

    def configs(self) -> tuple[ServerConfig, ...]:
        return tuple(self.held.values())

    async def add(self, config: ServerConfig, secrets: FrozenDict | None = None) -> ServerConfig:
        self.held[config.name] = config
        return config

    async def update(self, config: ServerConfig) -> None:
        self.held[config.name] = config

    async def remove(self, name: str) -> None:
        del self.held[name]


def pack(path: Path, manifest: dict[str, Any] | None = None, files: dict[str, bytes] | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("manifest.json", json.dumps(manifest or MANIFEST))
        for name, data in {"server/main.py": b"print(1)", **(files or {})}.items():
            out.writestr(name, data)
    return path


@pytest.fixture
def made(tmp_path: Path) -> tuple[Bundles, Room, MemoryVault]:
    room, vault = Room(), MemoryVault()
    home = tmp_path / "home"
    return Bundles(tmp_path / "bundles", room, vault, home=home), room, vault  # type: ignore[arg-type]


def changed(**more: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(MANIFEST)), **more}


async def test_a_bundle_is_shown_before_anything_of_it_is_written(tmp_path, made):
    """Hazard K115, K116: the whole command, arguments and environment are in the preview."""
    bundles, room, _ = made
    seen = await bundles.preview(pack(tmp_path / "notes.mcpb"))
    assert (seen.name, seen.title, seen.version, seen.author, seen.kind) == (
        "notes",
        "My Notes",
        "1.0.0",
        "Ada",
        "python",
    )
    assert isinstance(seen.config.launch, Stdio)
    assert seen.config.launch.args[0] == "${__dirname}/server/main.py" and "API_KEY" in seen.config.launch.env
    assert seen.fields[0].default == (str(tmp_path / "home/Notes"),) and seen.fields[2].secret
    assert seen.tools == ("add", "find") and seen.files == 2
    assert "bundle_unsigned" in seen.warnings
    assert not (tmp_path / "bundles").exists() and not room.held


async def test_values_go_into_the_launch_and_secrets_into_the_vault(tmp_path, made):
    bundles, room, vault = made
    values = freeze({"key": "s3cret", "folders": ["/a", "/b ${HOME}"], "size": "20"})
    config = await bundles.install(pack(tmp_path / "notes.mcpb"), values)
    launch = room.held["notes"].launch
    assert config is room.held["notes"] and isinstance(launch, Stdio)
    folder = launch.cwd
    assert folder is not None and folder.startswith("${DESKTOP_HOST_PROFILE}/bundles/notes/")
    there = Path(folder.replace("${DESKTOP_HOST_PROFILE}", str(tmp_path)))
    assert (there / "server/main.py").read_bytes() == b"print(1)"
    assert launch.args == (f"{folder}/server/main.py", "/a", "/b $${HOME}", "--size", "20")
    assert launch.env["API_KEY"] == "${keyring:notes/key}" and launch.env["LIB"] == f"{folder}/lib"
    assert launch.env["RAW"] == "$${PATH} $${keyring:other}", "a bundle reads no variable and no secret of others"
    assert await vault.get("notes/key") == "s3cret"
    assert "s3cret" not in (tmp_path / "bundles/notes/bundle.json").read_text()


async def test_an_update_keeps_values_and_takes_the_old_files_away(tmp_path, made):
    bundles, room, vault = made
    await bundles.install(pack(tmp_path / "one.mcpb"), freeze({"key": "k", "size": 7}))
    old = Path(room.held["notes"].launch.cwd)
    room.held["notes"] = replace(room.held["notes"], trusted=True)
    newer = pack(tmp_path / "two.mcpb", changed(version="1.1.0"))
    seen = await bundles.preview(newer)
    assert (seen.installed, seen.installed_version) == ("notes", "1.0.0")
    await bundles.install(newer)
    assert room.held["notes"].launch.args[-1] == "7" and room.held["notes"].trusted
    left = [p.name for p in (tmp_path / "bundles/notes").iterdir()]
    assert old.name not in left and len(room.held) == 1 and await vault.get("notes/key") == "k"
    assert [(b.alias, b.version) for b in await bundles.installed()] == [("notes", "1.1.0")]
    await bundles.remove("notes")
    assert not room.held and await vault.get("notes/key") is None and not (tmp_path / "bundles/notes").exists()
    with pytest.raises(UserFault):
        await bundles.remove("notes")


@pytest.mark.parametrize(
    ("values", "reason", "field"),
    [
        ({}, "value_missing", "key"),
        ({"key": "k", "size": 500}, "value_wrong", "size"),
        ({"key": "k", "size": "many"}, "value_wrong", "size"),
        ({"key": ["k", "l"]}, "value_wrong", "key"),
        ({"key": "k", "other": 1}, "value_unknown", "other"),
    ],
)
async def test_wrong_values_leave_nothing_behind(tmp_path, made, values, reason, field):
    bundles, room, vault = made
    with pytest.raises(UserFault) as caught:
        await bundles.install(pack(tmp_path / "notes.mcpb"), freeze(values))
    assert (caught.value.code, caught.value.params["reason"], caught.value.params["field"]) == (
        "bad_bundle",
        reason,
        field,
    )
    assert not room.held and not await vault.names() and not list((tmp_path / "bundles").glob("*/*"))


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3", "0.4"])
@pytest.mark.parametrize("key", ["manifest_version", "dxt_version"])
async def test_every_manifest_version_under_both_keys_is_read(tmp_path, made, version, key):
    """Hazard N131."""
    manifest = changed()
    del manifest["manifest_version"]
    seen = await made[0].preview(pack(tmp_path / "notes.dxt", {**manifest, key: version}))
    assert seen.manifest_version == version
    assert ("bundle_old_manifest" in seen.warnings) == (key == "dxt_version" or version == "0.1")


async def test_a_missing_runtime_is_said_before_and_not_replaced(tmp_path):
    """Hazard N133, B22, B23."""
    empty = tmp_path / "empty"
    empty.mkdir()
    environ = {"PATH": str(empty), "HOME": str(tmp_path), "SHELL": "/bin/false"}
    bundles = Bundles(tmp_path / "b", Room(), MemoryVault(), home=tmp_path, environ=environ)  # type: ignore[arg-type]
    manifest = changed(server={"type": "uv", "entry_point": "src/server.py"}, manifest_version="0.4", user_config={})
    seen = await bundles.preview(pack(tmp_path / "x.mcpb", manifest))
    assert "bundle_runtime_missing" in seen.warnings and seen.runtime == "uv"
    assert seen.config.launch.args == ("run", "--directory", "${__dirname}", "src/server.py")
    config = await bundles.install(pack(tmp_path / "x.mcpb", manifest))
    assert isinstance(config.launch, Stdio) and config.launch.command == "uv"


async def test_a_platforms_own_command_counts_and_another_platforms_bundle_is_refused(tmp_path, made):
    manifest = changed(user_config={}, compatibility={"platforms": [sys.platform]})
    manifest["server"] = {
        "type": "binary",
        "mcp_config": {
            "command": "server/tool", "args": ["a"], "env": {"A": "1"},
            "platform_overrides": {sys.platform: {"args": ["b"], "env": {"B": "2"}}, "other": {"args": ["c"]}},
        },
    }  # fmt: skip
    packed = pack(tmp_path / "x.mcpb", manifest, {"server/tool": b"#!/bin/sh\n"})
    config = await made[0].install(packed)
    launch = config.launch
    assert isinstance(launch, Stdio) and launch.args == ("b",) and launch.env == {"A": "1", "B": "2"}
    command = launch.command.replace("${DESKTOP_HOST_PROFILE}", str(tmp_path))
    assert command != launch.command and os.access(command, os.X_OK)
    other = pack(tmp_path / "y.mcpb", changed(compatibility={"platforms": ["plan9"]}))
    assert "bundle_other_platform" in (await made[0].preview(other)).warnings
    with pytest.raises(UserFault) as caught:
        await made[0].install(other, freeze({"key": "k"}))
    assert caught.value.params["reason"] == "other_platform"


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "a/../../evil", "C:/evil", "a\\..\\evil", "nul", "x/con.txt", "dir./f", "a\x01b"]
)
async def test_names_that_lead_out_of_the_folder_are_refused(tmp_path, made, name):
    with pytest.raises(UserFault) as caught:
        await made[0].install(pack(tmp_path / "x.mcpb", files={name: b"x"}), freeze({"key": "k"}))
    assert caught.value.params["reason"] == "unsafe_path"
    assert not (tmp_path / "evil").exists() and not list(tmp_path.glob("bundles/*/*"))


async def test_links_twins_and_bombs_are_refused(tmp_path, made):
    link = zipfile.ZipInfo("server/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    linked = pack(tmp_path / "l.mcpb")
    with zipfile.ZipFile(linked, "a") as out:
        out.writestr(link, "/etc/passwd")
    twins = pack(tmp_path / "t.mcpb", files={"Server/MAIN.py": b"y"})
    bomb = pack(tmp_path / "b.mcpb", files={"zeros": b"\0" * (80 * 2**20)})
    for path, reason in ((linked, "link"), (twins, "twice"), (bomb, "bomb")):
        with pytest.raises(UserFault) as caught:
            await made[0].preview(path)
        assert caught.value.params["reason"] == reason


async def test_damage_no_zip_and_no_manifest_are_said_plainly(tmp_path, made):
    (tmp_path / "n.mcpb").write_text("hello")
    whole = pack(tmp_path / "d.mcpb", files={"data": bytes(range(256)) * 400}).read_bytes()
    at = whole.index(b"data") + 40
    (tmp_path / "d.mcpb").write_bytes(whole[:at] + b"\xff" * 60 + whole[at + 60 :])
    with zipfile.ZipFile(tmp_path / "m.mcpb", "w") as out:
        out.writestr("a/readme", "x")
        out.writestr("b/readme", "x")
    for name, reason in (("n", "no_zip"), ("m", "no_manifest")):
        with pytest.raises(UserFault) as caught:
            await made[0].preview(tmp_path / f"{name}.mcpb")
        assert caught.value.params["reason"] == reason
    with pytest.raises(UserFault) as caught:
        await made[0].install(tmp_path / "d.mcpb", freeze({"key": "k"}))
    assert caught.value.params["reason"] == "damaged" and not list(tmp_path.glob("bundles/*/*"))
    with pytest.raises(UserFault) as gone:
        await made[0].preview(tmp_path / "gone.mcpb")
    assert gone.value.code == "not_found"


async def test_a_bundle_packed_in_one_folder_and_with_a_signature_is_read(tmp_path, made):
    path = tmp_path / "f.mcpb"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("__MACOSX/x", "x")
        out.writestr("notes/manifest.json", b"\xef\xbb\xbf" + json.dumps(MANIFEST).encode())
        out.writestr("notes/server/main.py", "x")
    with path.open("ab") as file:
        file.write(b"MCPB_SIG_V1" + b"\x10\0\0\0" + b"s" * 16 + b"MCPB_SIG_END")
    seen = await made[0].preview(path)
    assert seen.files == 2 and "bundle_signature_unverified" in seen.warnings


def signed(path: Path, kind: str = "rsa", issuer: str = "Ada Packers", options: tuple = ()) -> Path:
    """The file with a signature after it, as `mcpb sign` writes it."""
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Ada Packers")])
    by = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(by).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now).not_valid_after(now)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    all_options = [pkcs7.PKCS7Options.DetachedSignature, pkcs7.PKCS7Options.Binary, *options]
    data = path.read_bytes()
    block = (
        pkcs7.PKCS7SignatureBuilder().set_data(data).add_signer(made, key, hashes.SHA256())
        .sign(serialization.Encoding.DER, all_options)
    )  # fmt: skip
    path.write_bytes(data + b"MCPB_SIG_V1" + struct.pack("<I", len(block)) + block + b"MCPB_SIG_END")
    return path


@pytest.mark.parametrize("kind", ["rsa", "ec"])
@pytest.mark.parametrize("options", [(), (pkcs7.PKCS7Options.NoAttributes,)])
async def test_a_signature_that_fits_names_the_signer_and_one_that_does_not_is_told(tmp_path, made, kind, options):
    path = signed(pack(tmp_path / "notes.mcpb"), kind, options=options)
    seen = await made[0].preview(path)
    assert (seen.signer, "bundle_self_signed" in seen.warnings) == ("Ada Packers", True)
    other = signed(pack(tmp_path / "other.mcpb"), kind, issuer="Somebody Else", options=options)
    assert "bundle_signed" in (await made[0].preview(other)).warnings
    data = bytearray(path.read_bytes())
    data[10] ^= 1  # The time of the first file: nothing else would notice.
    path.write_bytes(data)
    seen = await made[0].preview(path)
    assert (seen.signer, seen.warnings[0]) == ("", "bundle_signature_broken")


def test_what_stands_as_a_signature_and_is_none_is_never_an_exception(tmp_path):
    path = signed(pack(tmp_path / "notes.mcpb"))
    whole, chance = path.read_bytes(), random.Random(3)
    start = whole.rindex(b"MCPB_SIG_V1") + 15
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(start, len(data) - 12)] = chance.randrange(256)
        path.write_bytes(data)
        assert signature_of(path).fits in (None, True, False)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"server": {"type": "java"}}, "server.type"),
        ({"name": ""}, "name"),
        ({"manifest_version": "1.0"}, "manifest_version"),
        ({"server": {"type": "node", "mcp_config": {"args": []}}}, "server.mcp_config.command"),
        ({"user_config": {"x": {"type": "color"}}}, "x"),
    ],
)
def test_a_bad_manifest_names_the_field(more, named):
    with pytest.raises(UserFault) as caught:
        read(Path("x.mcpb"), json.dumps(changed(**more)).encode())
    assert caught.value.params["field"] == named


def test_several_values_in_one_text_are_joined_and_unknown_fields_are_empty():
    values = {"a": ["x", "y"], "b": True, "n": 2.0}
    home = Path("/h")
    assert filled("${user_config.a}", home, home, values) == ["x", "y"]
    assert filled("-p=${user_config.a}", home, home, values) == ["-p=x:y"]
    assert filled("${user_config.b}${user_config.n}${user_config.gone}", home, home, values) == ["true2"]
