"""Markdown is cut into blocks as it streams."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from desktop_host.ui.markdown import CloseCode, CodeLines, Commit, OpenCode, Splitter, Step, Tail, presentable
from desktop_host.ui.widgets.prose import Prose

SAMPLE = """# Title

First paragraph with **bold** and `code`.

1. one
2. two

   more of two

   ```python
   def f():
       return "x"
   ```

3. three

| a | b |
|---|---|
| 1 | 2 |

~~~
tilde ``` inside
~~~
$$
x^2
$$
\\[ y = 1 \\]
> quote

- [ ] task
- [x] done
end"""


def settled(steps: list[Step]) -> list[Step]:
    """Without tails, code lines joined: what remains when all has come."""
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Tail):
            continue
        if isinstance(step, CodeLines) and out and isinstance(out[-1], CodeLines):
            out[-1] = CodeLines(f"{out[-1].text}\n{step.text}")
        else:
            out.append(step)
    return out


def run(pieces: list[str]) -> list[Step]:
    splitter = Splitter()
    steps = [s for piece in pieces for s in splitter.feed(piece)]
    return settled(steps + splitter.finish())


def test_blocks_are_committed_at_blank_lines_and_code_is_told_apart() -> None:
    assert run([SAMPLE]) == [
        Commit("# Title"),
        Commit("First paragraph with **bold** and `code`."),
        Commit("1. one\n2. two\n\n   more of two"),
        OpenCode("python"),
        CodeLines('def f():\n    return "x"'),
        CloseCode(),
        Commit("3. three"),
        Commit("| a | b |\n|---|---|\n| 1 | 2 |"),
        OpenCode(""),
        CodeLines("tilde ``` inside"),
        CloseCode(),
        OpenCode("latex"),
        CodeLines("x^2"),
        CloseCode(),
        OpenCode("latex"),
        CodeLines("y = 1"),
        CloseCode(),
        Commit("> quote"),
        Commit("- [ ] task\n- [x] done\nend"),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_cuts_do_not_depend_on_how_the_text_arrives(seed: int) -> None:
    rng = random.Random(seed)
    pieces, at = [], 0
    while at < len(SAMPLE):
        step = rng.randint(1, 9)
        pieces.append(SAMPLE[at : at + step])
        at += step
    assert run(pieces) == run([SAMPLE])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(["a b", "\n", "\n\n", "```", "```py\n", "- x", "1. y", "  ", "$$", "\\[", "`", "> q", "|a|"])
    )
)
def test_any_stream_of_marks_gives_balanced_steps(pieces: list[str]) -> None:
    depth = 0
    for step in run(pieces):
        depth += isinstance(step, OpenCode) - isinstance(step, CloseCode)
        assert depth in (0, 1)
        assert not (isinstance(step, CodeLines) and depth == 0)
    assert depth == 0


def test_a_paragraph_is_committed_as_soon_as_the_next_one_begins() -> None:
    splitter = Splitter()
    splitter.feed("first\n\n")
    assert splitter.feed("s") == [Commit("first"), Tail("s")]


def test_the_mark_of_a_fence_is_not_shown_before_it_is_known() -> None:
    splitter = Splitter()
    assert splitter.feed("text\n``") == [Tail("text")]
    assert splitter.feed("`py\nx") == [Commit("text"), OpenCode("py")]


def test_remote_images_become_links_and_code_is_left_alone() -> None:
    assert presentable("![cat](http://a/b.png)") == "[cat](http://a/b.png)"
    assert presentable("`![cat](http://a/b.png)`") == "`![cat](http://a/b.png)`"
    assert presentable("![dot](data:image/png;base64,AAAA)") == "![dot](data:image/png;base64,AAAA)"


def test_inline_formulas_are_readable_and_prices_are_not_formulas() -> None:
    assert presentable(r"so \(a^2\) and $E=mc^2$") == "so *a²* and *E=mc²*"
    assert presentable(r"the \(x^{q}\) here") == "the [`x^{q}`](formula:785e7b717d) here"
    assert presentable("$5 and $6") == "$5 and $6"


def test_open_marks_are_closed_while_text_streams() -> None:
    assert presentable("a **bo", unfinished=True) == "a **bo**"
    assert presentable("a `co", unfinished=True) == "a `co`"
    assert presentable("a `co`", unfinished=True) == "a `co`"


def test_columns_of_a_wide_table_share_the_room_so_that_words_stay_whole() -> None:
    from desktop_host.ui.widgets.prose_tables import shares

    assert shares((50, 300, 60), (50, 80, 60), 420) is None, "all fit"
    found = shares((50, 600, 60), (50, 80, 60), 400)
    assert found is not None and [round(one * 4) for one in found] == [50, 290, 60], "short columns get what they want"
    crowded = shares((500, 500), (300, 100), 200)
    assert crowded is not None and [round(one) for one in crowded] == [75, 25]


@pytest.mark.parametrize("text", ["42.", "42)", "So it is:\n\n42.", "7.\n\nand more", "1. `x`\n\n2."])
def test_a_number_alone_is_text_and_no_item_without_words(qtbot: QtBot, text: str) -> None:
    prose = Prose()
    qtbot.addWidget(prose)
    prose.commit(text)
    shown = prose.toPlainText()
    assert all(number in shown for number in re.findall(r"\d+[.)](?=\n|$)", text)), shown


def test_items_whose_words_follow_stay_items() -> None:
    assert presentable("1. one\n2.\n   two\n3. three") == "1. one\n2.\n   two\n3. three"
