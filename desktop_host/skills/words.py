"""Text to words, for English and Chinese alike: what keywords and the lexical matcher compare."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_CJK = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)?")

_STOP_WORDS = """
    a an the this that these those it its i me my we our you your he she they them is are was were be been am do
    does did can could will would shall should may might must have has had of to in on at by for with from as and
    or not no so if then than there here what which who whom whose when where why how s t d m re ve ll up out
    about into please help want need let get make made give tell show use using used user whenever any some all
    just also one two new like per via etc ok thing things way something anything nothing someone everything much
    many good best old time sure very really more most over
"""
STOP_ZH = frozenset(
    "的了着过是在有和与或也都就还要会能可我你他她它们这那个些一把被给让对帮请吗呢吧啊呀么什怎样哪谁为到从用以及等并当时上下中里"
)


def normal(text: str) -> str:
    """Compatibility forms made plain (full width, ligatures), lower case."""
    return unicodedata.normalize("NFKC", text).lower().replace("’", "'")


def is_cjk(token: str) -> bool:
    """Whether a token is one Chinese character."""
    return len(token) == 1 and ("\u3400" <= token <= "\u9fff" or "\uf900" <= token <= "\ufaff" or token > "\U0001ffff")


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[str, ...]:
    """Words (stemmed) and single Chinese characters, in order."""
    return tuple(stem(t) for t in _TOKEN.findall(normal(text)))


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A word without plural, `-ing`, `-ed`: enough to find `trips` by `trip`."""
    word = word.removesuffix("'s").replace("'", "")
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for ending, rest in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)] + rest
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        core = word.removesuffix(ending)
        if core != word and len(core) >= 3 and any(v in core for v in "aeiouy"):
            if core[-1] == core[-2] and core[-1] not in "lsz":
                core = core[:-1]
            return core.removesuffix("e")
    return word.removesuffix("e") if len(word) > 4 else word


def terms(text: str) -> list[str]:
    """What the matcher counts: words, Chinese characters that say something, and pairs of them."""
    out: list[str] = []
    last = ""
    for token in tokens(text):
        if is_cjk(token):
            if is_cjk(last):
                out.append(last + token)
            if token not in STOP_ZH:
                out.append(token)
        elif token not in STOP and not token.isdigit():
            out.append(token)
        last = token
    return out


def grams(text: str) -> list[str]:
    """Character n-grams: 3 to 5 within words, 2 and 3 across Chinese characters."""
    out: list[str] = []
    run = ""
    for token in (*tokens(text), ""):
        if is_cjk(token):
            run += token
            continue
        out += [run[i : i + n] for n in (2, 3) for i in range(len(run) - n + 1)]
        run = ""
        if token and token not in STOP:
            word = f"_{token}_"
            out += [word[i : i + n] for n in (3, 4, 5) for i in range(len(word) - n + 1)]
    return out


STOP = frozenset(stem(w) for w in _STOP_WORDS.split())
"""Words (stemmed) that say nothing about a topic."""
