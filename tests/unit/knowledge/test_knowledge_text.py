from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.places import shipped

sys.path.insert(0, str(shipped("resources", "servers", "knowledge")))

from knowledge_text import PASSAGE_CHARS, decode, query_terms, read_document, terms


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("naïve 中文".encode(), "naïve 中文"),
        ("naïve".encode("utf-8-sig"), "naïve"),
        ("中文".encode("utf-16"), "中文"),
        ("保修七年".encode("gb18030"), "保修七年"),
        (b"\xff\xfa\x00\x81 broken", None),
    ],
)
def test_text_is_read_in_the_encodings_that_people_have(data: bytes, text: str | None) -> None:
    assert decode(data) == text if text is not None else "broken" in decode(data)


def test_words_are_folded_and_chinese_is_cut_into_characters_and_pairs() -> None:
    assert list(terms("Straße, ＡＢ1 can't")) == ["strasse", "ab1", "can", "t"]
    assert list(terms("水壶保修 ok")) == ["水", "壶", "保", "修", "水壶", "壶保", "保修", "ok"]


def test_a_question_is_reduced_to_its_telling_words() -> None:
    assert query_terms("What is the warranty of the Heron kettle?") == ["warranty", "heron", "kettle"]
    assert query_terms("what is the") == ["what", "is", "the"]
    assert query_terms("保修期") == ["保修", "修期"]
    assert query_terms("壶") == ["壶"]
    assert query_terms("?! …") == []


def test_passages_stand_below_their_headings_and_know_their_lines() -> None:
    text = "# A\n\nintro\n\n## B\n\nfirst\nsecond\n\n### C\n```\n# no heading\n```\n## D\nend"
    document = read_document(text, "file", markdown=True)
    assert document.title == "A"
    assert [(p.heading, p.text, p.first_line, p.last_line) for p in document.passages] == [
        ("A", "intro", 3, 3),
        ("A > B", "first\nsecond", 7, 8),
        ("A > B > C", "```\n# no heading\n```", 11, 13),
        ("A > D", "end", 15, 15),
    ]


def test_front_matter_gives_title_and_category_and_is_not_text() -> None:
    document = read_document("---\ntitle: 'T: x'\ncategory: c\n---\nbody", "file", markdown=True)
    assert (document.title, document.category, document.passages[0].text) == ("T: x", "c", "body")


def test_plain_text_has_no_headings() -> None:
    document = read_document("# not a heading\n\nbody", "notes", markdown=False)
    assert document.title == "notes"
    assert document.passages[0].text == "# not a heading\n\nbody"


@given(st.text(max_size=3000), st.booleans())
def test_no_word_of_a_text_is_lost_and_no_passage_is_too_long(text: str, markdown: bool) -> None:
    document = read_document(text, "x", markdown=markdown)
    lines = text.splitlines()
    assert document.lines == len(lines)
    for passage in document.passages:
        assert 1 <= passage.first_line <= passage.last_line <= len(lines)
        assert len(passage.text) <= 2 * PASSAGE_CHARS
    if not markdown:
        kept = "".join("".join(p.text.split()) for p in document.passages)
        assert kept == "".join(text.split())
