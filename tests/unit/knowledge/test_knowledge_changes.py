from __future__ import annotations

import hashlib
import json
import sys
import threading
from pathlib import Path

import pytest

from desktop_host.core.places import shipped

sys.path.insert(0, str(shipped("resources", "servers", "knowledge")))

from knowledge_folders import BadRequest
from knowledge_index import BATCH, Index
from knowledge_tenants import digest_of, holder, new_key, read_tenants
from knowledge_watch import Watch


def test_a_watched_folder_is_taken_in_and_told(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("apples")
    index = Index([tmp_path], None)
    told: list[frozenset[str]] = []
    some = threading.Event()

    def changed(paths: frozenset[str]) -> None:
        told.append(paths)
        some.set()

    watch = Watch(index)
    watch.start()
    index.refresh(force=True)
    index.on_change.append(changed)
    (tmp_path / "b.md").write_text("quinces")
    assert some.wait(10)
    assert "b.md" in set().union(*told)
    assert [h.path for h in index.search("quinces", 5)] == ["b.md"]
    watch.close()
    index.close()


def test_questions_are_answered_while_many_documents_are_read(tmp_path: Path) -> None:
    """In batches: what was read so far is found."""
    for n in range(3 * BATCH):
        (tmp_path / f"{n:04}.md").write_text(f"apple {n}")
    index = Index([tmp_path], None)
    seen: list[int] = []

    def progress(done: int, of: int, _path: str) -> None:
        if done == 2 * BATCH + 1:
            seen.append(index.count())
            assert index.stats()["reading"] == {"done": done, "of": of}

    index.refresh(force=True, progress=progress)
    assert seen == [2 * BATCH]
    assert index.count() == 3 * BATCH
    index.close()


def test_folders_that_were_added_or_removed_stay_so(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "a.md").write_text(f"apples of {folder.name}")
    index = Index([one], tmp_path / "cache")
    assert index.add_folder(two) == (two, 2)
    with pytest.raises(BadRequest, match="already"):
        index.add_folder(two)
    assert {h.path for h in index.search("apples", 5)} == {"a.md", "two/a.md"}
    index.close()
    again = Index([one], tmp_path / "cache")
    assert set(again.folders) == {one, two}
    assert again.remove_folder(one) == (one, 1)
    again.close()
    third = Index([one], tmp_path / "cache")
    assert third.folders == (two,)
    assert third.add_folder(one)[1] == 2
    third.close()


def test_the_id_of_a_document_depends_on_its_path_alone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("apples")
    index = Index([tmp_path], None)
    before = index.documents()[0].key
    (tmp_path / "a.md").write_text("quinces now")
    index.refresh(force=True)
    assert index.documents()[0].key == before
    assert index.by_key(before)[1] == ["quinces now"]  # type: ignore[index]
    assert index.by_key("none") is None
    index.close()


def test_keys_are_known_by_their_digest(tmp_path: Path) -> None:
    key, digest = new_key()
    assert digest == hashlib.sha256(key.encode()).hexdigest() == digest_of(key)
    digests = [("ada", digest), ("bob", digest_of("x")), ("cy", None)]
    assert holder(key, digests) == "ada"
    assert holder("x", digests) == "bob"
    for wrong in ("", digest, "y", "\udc80", "-" * 64):
        assert holder(wrong, digests) is None


@pytest.mark.parametrize(
    ("tenants", "told"),
    [
        ({"Ada": {"folders": []}}, "no name"), ({"ada": {}}, "wanted"), ({"ada": {"folders": "x"}}, "wanted"),
        ({"ada": {"folders": [], "key_sha256": "abc"}}, "64 hex digits"),
        ({"ada": {"folders": [], "key_sha256": "a" * 64}, "bob": {"folders": [], "key_sha256": "a" * 64}}, "same key"),
    ],
)  # fmt: skip
def test_a_wrong_file_of_tenants_is_told(tmp_path: Path, tenants: object, told: str) -> None:
    file = tmp_path / "tenants.json"
    file.write_text(json.dumps({"tenants": tenants}))
    with pytest.raises(BadRequest, match=told):
        read_tenants(file)


def test_folders_of_tenants_count_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tenants.json"
    file.write_text(json.dumps({"tenants": {"ada": {"folders": ["docs"], "may_add": ["more"]}}}))
    tenant = read_tenants(file)["ada"]
    assert tenant.folders == (tmp_path / "docs",)
    assert tenant.allows(tmp_path / "more" / "x")
    assert not tenant.allows(tmp_path / "docs")
