from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from desktop_host.core.places import shipped

sys.path.insert(0, str(shipped("resources", "servers", "knowledge")))

np = pytest.importorskip("numpy")

from knowledge_index import Index  # noqa: E402
from knowledge_meaning import Meaning, installed  # noqa: E402

TOPICS = (("tea", "brew", "steep", "leaves"), ("car", "engine", "wheel", "drive"))


class ByTopic(Meaning):
    """Vectors that count the words of two topics."""

    def _encode(self, texts: Sequence[str]) -> Any:
        counted = [[sum(text.count(word) for word in topic) + 0.01 for topic in TOPICS] for text in texts]
        made = np.asarray(counted, dtype=np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    (tmp_path / "a.md").write_text("To brew, steep the leaves.")
    (tmp_path / "b.md").write_text("The engine drives the wheel.")
    index = Index([tmp_path], None, ByTopic())
    index.refresh(force=True)
    yield index
    index.close()


def test_words_alone_serve_until_there_are_vectors(index: Index) -> None:
    assert [h.path for h in index.search("steep", 5)] == ["a.md"]
    assert index.search("tea", 5) == []


def test_a_passage_is_found_by_its_sense(index: Index) -> None:
    assert index.meaning is not None
    assert index.meaning.learn(index.store) == 2
    assert index.meaning.learn(index.store) == 0
    assert index.search("tea", 5)[0].path == "a.md"
    assert index.search("car", 1)[0].path == "b.md"
    scores = [h.score for h in index.search("engine wheel", 5)]
    assert scores == sorted(scores, reverse=True) and scores[0] > 0


def test_vectors_go_with_their_passages(index: Index, tmp_path: Path) -> None:
    assert index.meaning is not None
    index.meaning.learn(index.store)
    (tmp_path / "a.md").unlink()
    index.refresh(force=True)
    assert [h.path for h in index.search("tea", 5)] == ["b.md"]
    assert index.store.db.execute("SELECT count(*) FROM vectors").fetchone() == (1,)


@pytest.mark.skipif(not installed(), reason="the extra [semantic] is not installed")
def test_the_real_encoder_finds_other_words(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Most repairs take nine working days.")
    (tmp_path / "b.md").write_text("The office is painted blue.")
    index = Index([tmp_path], None, Meaning())
    index.refresh(force=True)
    assert index.meaning is not None
    index.meaning.learn(index.store)
    assert index.search("how long is mending", 2)[0].path == "a.md"
    index.close()
