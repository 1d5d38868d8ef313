from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_host.core.places import shipped

KNOWLEDGE = shipped("resources", "servers", "knowledge")
sys.path.insert(0, str(KNOWLEDGE))

from knowledge_cache import remember, remembered  # noqa: E402
from knowledge_index import BadRequest, Index  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "tea").mkdir(parents=True)
    (folder / "tea" / "green.md").write_text("# Green tea\n\nSteep it for two minutes at 75 degrees.\n")
    (folder / "notes.txt").write_text("Buy apples and pears.")
    (folder / "picture.png").write_bytes(b"apples")
    (folder / ".hidden.md").write_text("apples")
    return folder


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    index = Index([folder], None)
    yield index
    index.close()


def paths(index: Index, query: str) -> list[str]:
    return [hit.path for hit in index.search(query, 5)]


def test_the_sample_answers_its_questions() -> None:
    index = Index([KNOWLEDGE / "sample"], None)
    for question, path, words in [
        ("What is the warranty of the Heron kettle?", "products/heron-kettle.md", "7 years on the body"),
        ("How do I calibrate the scale?", "products/grebe-scale.md", "TARE"),
        ("How long does a repair take?", "support/returns.md", "nine working days"),
        ("who founded Marsh & Reed", "company/about.md", "Ottilie Marsh"),
        ("热水壶保修多久", "support/中文说明.md", "七年"),
        ("除垢", "support/中文说明.md", "柠檬酸"),
    ]:
        best = index.search(question, 5)[0]
        assert best.path == path
        assert words in best.text
        assert best.score > 0
    index.close()


def test_only_text_that_is_not_hidden_is_indexed(index: Index) -> None:
    assert [e.path for e in index.documents()] == ["notes.txt", "tea/green.md"]
    assert paths(index, "apples") == ["notes.txt"]
    assert index.stats() | {"folders": []} == {
        "documents": 2, "passages": 2, "categories": {"general": 1, "tea": 1}, "folders": [],
        "bytes": sum(e.size for e in index.documents()), "skipped": 0, "kinds": {"markdown": 1, "text": 1},
        "reading": None,
    }  # fmt: skip


def test_a_hit_tells_where_it_stands(index: Index) -> None:
    (hit,) = index.search("steeping", 5)
    assert (hit.path, hit.title, hit.heading, hit.passage) == ("tea/green.md", "Green tea", "Green tea", 1)
    assert (hit.first_line, hit.last_line) == (3, 3)


def test_beginnings_of_words_are_found_where_nothing_else_is(index: Index) -> None:
    assert paths(index, "appl") == ["notes.txt"]
    assert paths(index, "xyzzy") == []


@pytest.mark.parametrize("query", ['"', "a* OR", "NEAR(", "apples) AND (", "-apples", "heading:apples", "col : x"])
def test_search_syntax_in_a_question_is_only_text(index: Index, query: str) -> None:
    index.search(query + " apples", 5)


def test_a_question_without_words_is_refused_with_advice(index: Index) -> None:
    with pytest.raises(BadRequest, match="words"):
        index.search(" ?! ", 5)


def test_changes_in_the_folder_are_taken_in(index: Index, folder: Path) -> None:
    index.refresh(force=True)
    (folder / "notes.txt").write_text("Buy plums.")
    os.utime(folder / "notes.txt", ns=(1, 1))
    (folder / "new.md").write_text("quinces")
    (folder / "tea" / "green.md").unlink()
    index.refresh(force=True)
    assert paths(index, "plums") == ["notes.txt"]
    assert paths(index, "quinces") == ["new.md"]
    assert paths(index, "apples") == paths(index, "tea") == []


def test_an_index_on_disk_is_used_again_and_only_what_changed_is_read(folder: Path, tmp_path: Path) -> None:
    first = Index([folder], tmp_path / "cache")
    first.refresh()
    first.close()
    stat = (folder / "notes.txt").stat()
    (folder / "notes.txt").write_text("Buy grapes and pears.")
    os.utime(folder / "notes.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    again = Index([folder], tmp_path / "cache")
    assert paths(again, "apples") == ["notes.txt"]
    again.close()


def test_a_damaged_index_is_made_anew(folder: Path, tmp_path: Path) -> None:
    first = Index([folder], tmp_path / "cache")
    first.close()
    (file,) = (tmp_path / "cache").glob("*.db")
    file.write_bytes(b"not a database" * 100)
    again = Index([folder], tmp_path / "cache")
    assert paths(again, "apples") == ["notes.txt"]
    again.close()


def test_a_cache_that_cannot_be_written_is_replaced_by_memory(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    index = Index([folder], tmp_path / "file" / "cache")
    assert paths(index, "apples") == ["notes.txt"]
    assert "in memory" in capsys.readouterr().err
    index.close()


def test_two_servers_share_an_index_and_many_threads_ask_it(folder: Path, tmp_path: Path) -> None:
    one, two = Index([folder], tmp_path / "cache"), Index([folder], tmp_path / "cache")
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda i=i: found.append(paths(i, "apples")))  # type: ignore[misc]
        for i in (one, two) * 8
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["notes.txt"]] * 16
    assert len(one.documents()) == 2
    one.close()
    two.close()


@pytest.mark.parametrize("path", ["../secret.md", "/etc/passwd", "tea/../../secret.md", "link.md", "out/secret.md", ""])
def test_no_path_leads_out_of_the_folder(folder: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "out").symlink_to(tmp_path)
    index = Index([folder], None)
    with pytest.raises(BadRequest, match="no document"):
        index.read(path)
    assert paths(index, "secret") == []
    index.close()


def test_a_file_replaced_by_a_link_after_indexing_is_not_read(folder: Path, tmp_path: Path) -> None:
    index = Index([folder], None)
    index.refresh()
    (tmp_path / "secret.md").write_text("secret")
    (folder / "notes.txt").unlink()
    (folder / "notes.txt").symlink_to(tmp_path / "secret.md")
    with pytest.raises(BadRequest, match="no document"):
        index.read("notes.txt")
    index.close()


def test_a_wrong_path_is_answered_with_near_ones(index: Index) -> None:
    with pytest.raises(BadRequest, match=r"tea/green\.md"):
        index.read("tea/gren.md")


def test_several_folders_are_told_apart_by_their_names(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "more" / "docs"
    other.mkdir(parents=True)
    (other / "notes.txt").write_text("apples again")
    index = Index([folder, other], None)
    assert sorted(paths(index, "apples")) == ["docs-2/notes.txt", "docs/notes.txt"]
    assert index.read("docs-2/notes.txt")[1] == ["apples again"]
    index.close()


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="no folder"):
        Index([tmp_path / "none"], None)


def test_files_that_are_too_large_are_left_out_and_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knowledge_index.LARGEST_FILE", 30)
    index = Index([folder], None)
    assert [e.path for e in index.documents()] == ["notes.txt"]
    assert "tea/green.md: larger" in capsys.readouterr().err
    index.close()


def test_indexed_folders_are_remembered_while_they_exist(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert remembered(cache) == []
    remember(cache, folder)
    remember(cache, folder / "tea")
    remember(cache, folder)
    assert remembered(cache) == [folder, folder / "tea"]
    (folder / "tea" / "green.md").unlink()
    (folder / "tea").rmdir()
    assert remembered(cache) == [folder]
    (cache / "folders.json").write_text("{")
    assert remembered(cache) == []
