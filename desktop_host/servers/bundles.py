"""Bundles of the profile: looked into, installed with the person's values, updated, removed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import sys
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from desktop_host.core.admin import SecretStore
from desktop_host.core.bundles import BundlePreview, InstalledBundle
from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.server_ports import ServerReach
from desktop_host.core.servers import ServerConfig, Stdio
from desktop_host.core.tools import alias_for
from desktop_host.core.values import EMPTY, FrozenDict, freeze
from desktop_host.servers import environment, private
from desktop_host.servers.bundle_archive import ICON_LIMIT, MANIFEST_LIMIT, BundleArchive, bad, opened
from desktop_host.servers.bundle_signature import Signature, signature_of
from desktop_host.servers.bundle_values import checked, default_of
from desktop_host.servers.command_line import runs_shell
from desktop_host.servers.importing import runs_code
from desktop_host.servers.manifest import Manifest, Secret, filled, read
from desktop_host.servers.profile_paths import movable

RECORD = "bundle.json"


class Bundles:
    """The `BundleAdmin` of a profile; its bundles lie below `folder`, one folder for each alias.

    Args:
        folder: `<profile>/bundles`.
        home: what `${HOME}` means.
        environ: where programs are looked for.
    """

    def __init__(
        self, folder: Path, servers: ServerReach, secrets: SecretStore, *, home: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._folder, self._servers, self._secrets = folder, servers, secrets
        self._home = home or Path.home()
        self._environ = os.environ if environ is None else environ
        self._turn = asyncio.Lock()

    async def preview(self, path: Path) -> BundlePreview:
        manifest, archive, icon = await asyncio.to_thread(_look, path)
        signature = await asyncio.to_thread(signature_of, path) if archive.signed else None
        installed = next((b for b in await self.installed() if b.name == manifest.name), None)
        alias = installed.alias if installed else self._alias(manifest)
        command, missing = await self._program(manifest)
        launch = Stdio(command, manifest.args, manifest.env, "${__dirname}")
        warnings = [_signed(signature)]
        if manifest.old_key or manifest.spec == "0.1":
            warnings.append("bundle_old_manifest")
        if not _fits(manifest):
            warnings.append("bundle_other_platform")
        if missing:
            warnings.append("bundle_runtime_missing")
        if runs_shell(command, manifest.args):
            warnings.append("shell_command")
        if any(runs_code(k) and not str(v).startswith("${__dirname}") for k, v in manifest.env.items()):
            warnings.append("env_runs_code")
        return BundlePreview(
            path=path, name=manifest.name, title=manifest.title, version=manifest.version,
            description=manifest.description, author=manifest.author, kind=manifest.kind,
            manifest_version=manifest.spec, config=ServerConfig(alias, launch, manifest.title),
            fields=tuple(replace(f, default=default_of(f, self._home)) for f in manifest.fields), tools=manifest.tools,
            files=len(archive.entries), size=archive.size, icon=icon, links=manifest.links,
            installed=installed.alias if installed else None,
            installed_version=installed.version if installed else None, warnings=tuple(warnings),
            signer=signature.signer if signature and signature.fits else "",
            runtime=None if manifest.kind == "binary" else command,
        )  # fmt: skip

    async def install(self, path: Path, values: FrozenDict = EMPTY, *, enabled: bool = True) -> ServerConfig:
        async with self._turn:
            manifest, _, _ = await asyncio.to_thread(_look, path)
            if not _fits(manifest):
                raise bad(path, "other_platform", f"it is for {', '.join(manifest.platforms)}, not for this machine",
                          platforms=", ".join(manifest.platforms))  # fmt: skip
            old = next((b for b in await self.installed() if b.name == manifest.name), None)
            alias = old.alias if old else self._alias(manifest)
            given, secrets = checked(path, manifest.fields, values, old.values if old else EMPTY, alias, self._home)
            folder = await asyncio.to_thread(self._unpack, path, alias, manifest)
            try:
                config = await self._config(manifest, alias, folder, given, enabled)
                for name, value in secrets.items():
                    await self._secrets.put(name, value)
                if old and any(c.name == alias for c in self._servers.configs()):
                    await self._servers.update(config)
                else:
                    await self._servers.add(config)
                await asyncio.to_thread(self._record, alias, manifest, folder, given)
            except BaseException:
                if old is None or old.folder != folder:
                    await asyncio.to_thread(shutil.rmtree, folder, True)
                raise
            await asyncio.to_thread(_only, folder)
            return config

    async def installed(self) -> tuple[InstalledBundle, ...]:
        return await asyncio.to_thread(self._installed)

    async def remove(self, alias: str) -> bool:
        async with self._turn:
            found = next((b for b in await self.installed() if b.alias == alias), None)
            if found is None:
                raise UserFault("not_found", f"no bundle is installed as {alias!r}", kind="bundle", name=alias)
            told = True
            if any(c.name == alias for c in self._servers.configs()):
                told = await self._servers.remove(alias)
            for value in found.values.values():
                if isinstance(value, str) and (kept := re.fullmatch(r"\$\{keyring:([^}]+)\}", value)):
                    await self._secrets.delete(kept[1])
            await asyncio.to_thread(shutil.rmtree, self._folder / alias, True)
            return told

    # ---- inside
    def _alias(self, manifest: Manifest) -> str:
        return alias_for(manifest.name, frozenset(c.name for c in self._servers.configs()))

    async def _program(self, manifest: Manifest) -> tuple[str, bool]:
        """The command as it will be started, and whether it is missing. Only `python` may become `python3`."""
        command = manifest.command
        if "${__dirname}" in command or "/" in command or "\\" in command:
            return command, False
        path = await environment.login_path(self._environ)
        for candidate in (command, "python3") if command == "python" else (command,):
            try:
                await asyncio.to_thread(environment.resolve_command, candidate, path)
            except KnownFault:
                continue
            return candidate, False
        return command, True

    async def _config(
        self, manifest: Manifest, alias: str, folder: Path, values: Mapping[str, Any], enabled: bool
    ) -> ServerConfig:
        def one(text: str) -> str:
            return "".join(filled(text, folder, self._home, values))

        command, _ = await self._program(manifest)
        command = one(command)
        if "/" in command and not os.path.isabs(command):
            command = str(folder / command)
        if sys.platform == "win32" and manifest.kind == "binary" and not command.lower().endswith(".exe"):
            command += ".exe"
        if Path(command).is_relative_to(folder):
            await asyncio.to_thread(_make_runnable, Path(command))
        args = tuple(a for text in manifest.args for a in filled(text, folder, self._home, values))
        env = FrozenDict({k: one(str(v)) for k, v in manifest.env.items()})
        old = next((c for c in self._servers.configs() if c.name == alias), None)
        launch = movable(Stdio(command, args, env, str(folder)), self._folder.parent)
        return replace(old, launch=launch) if old else ServerConfig(alias, launch, manifest.title, enabled)

    def _unpack(self, path: Path, alias: str, manifest: Manifest) -> Path:
        with path.open("rb") as file:
            mark = hashlib.file_digest(file, "sha256").hexdigest()[:8]
        version = re.sub(r"[^\w.+-]+", "_", manifest.version)[:40]
        target = self._folder / alias / f"{version}-{mark}"
        if target.is_dir():
            return target
        draft = self._folder / alias / f".new-{uuid.uuid4().hex[:8]}"
        with opened(path) as archive:
            archive.unpack(draft)
        os.replace(draft, target)
        return target

    def _record(self, alias: str, manifest: Manifest, folder: Path, values: Mapping[str, Any]) -> None:
        kept = {k: v.reference if isinstance(v, Secret) else v for k, v in values.items()}
        body = {"name": manifest.name, "title": manifest.title, "version": manifest.version, "folder": folder.name,
                "values": kept}  # fmt: skip
        target = self._folder / alias / RECORD
        draft = target.with_suffix(".part")
        private.write(draft, json.dumps(body, ensure_ascii=False, indent=1))
        os.replace(draft, target)

    def _installed(self) -> tuple[InstalledBundle, ...]:
        out: list[InstalledBundle] = []
        for record in sorted(self._folder.glob(f"*/{RECORD}")):
            try:
                raw = json.loads(record.read_text(encoding="utf-8"))
                folder = record.parent / Path(str(raw["folder"])).name
                out.append(InstalledBundle(
                    record.parent.name, str(raw["name"]), str(raw["title"]), str(raw["version"]), folder,
                    freeze(raw["values"]),
                ))  # fmt: skip
            except (OSError, ValueError, KeyError, TypeError):
                continue  # A record that cannot be read: the next install under this alias writes it anew.
        return tuple(out)


def _signed(signature: Signature | None) -> str:
    """The code that tells of a signature."""
    if signature is None:
        return "bundle_unsigned"
    if signature.fits is None:
        return "bundle_signature_unverified"
    if not signature.fits:
        return "bundle_signature_broken"
    return "bundle_self_signed" if signature.own else "bundle_signed"


def _look(path: Path) -> tuple[Manifest, BundleArchive, bytes | None]:
    with opened(path) as archive:
        data = archive.read("manifest.json", MANIFEST_LIMIT)
        if data is None:
            raise bad(path, "no_manifest", "it holds no manifest.json")
        manifest = read(path, data)
        icon = archive.read(manifest.icon, ICON_LIMIT) if manifest.icon else None
        return manifest, archive, icon if icon and icon.startswith(b"\x89PNG") else None


def _fits(manifest: Manifest) -> bool:
    return not manifest.platforms or sys.platform in manifest.platforms


def _only(folder: Path) -> None:
    """Remove earlier versions, and what a host that died in mid-install left beside them."""
    for other in folder.parent.iterdir():
        if other.is_dir() and other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _make_runnable(path: Path) -> None:
    if path.is_file():
        path.chmod(0o700)
