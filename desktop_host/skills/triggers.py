"""Keywords and exclusions: which of a skill's phrases stand in a sentence, and how much each says."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_host.skills.words import STOP, is_cjk, tokens

GAP = 8
"""Characters that may stand after the first one of a Chinese phrase: 订机票 is found in 订一张去上海的机票."""
_GAP_BEGINS = frozenset("一二两三四五六七八九十几多这那个张份间次明今后下上去到从往")
"""What such a gap begins with, unless it ends in 的: 订单里有机票 is another matter."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A phrase that was found."""

    phrase: str
    weight: float
    """How specific it is: 1 for each Chinese character, 1.5 for each word; less where it was found with a gap."""


def find(phrases: tuple[str, ...], text: str) -> list[Hit]:
    """The phrases that stand in `text`, the most specific first.

    English words match whole words (`trip` is not in `strip`, but in `trips`); Chinese phrases match anywhere, and
    with up to `GAP` characters after their first one. A phrase within a longer hit counts once.
    """
    said = tokens(text)
    hits: list[Hit] = []
    spans: list[tuple[int, int]] = []
    for phrase in sorted(phrases, key=lambda p: -len(p)):
        wanted = tokens(phrase)
        span = _find(wanted, said) if wanted else None
        if span is None or any(a <= span[0] and span[1] <= b for a, b in spans):
            continue
        spans.append(span)
        weight = sum(1.0 if is_cjk(t) else 0.2 if t in STOP else 1.5 for t in wanted)
        if span[1] - span[0] > len(wanted):
            weight *= 0.8
        hits.append(Hit(phrase, weight))
    return sorted(hits, key=lambda h: -h.weight)


def weight(hits: list[Hit]) -> float:
    """What several hits say together: the best, and a little for each other one."""
    return hits[0].weight + 0.25 * sum(h.weight for h in hits[1:]) if hits else 0.0


def _find(wanted: tuple[str, ...], said: tuple[str, ...]) -> tuple[int, int] | None:
    size = len(wanted)
    for at in range(len(said) - size + 1):
        if said[at : at + size] == wanted:
            return at, at + size
    if size < 3 or not all(is_cjk(t) for t in wanted):
        return None
    rest = wanted[1:]
    for at, token in enumerate(said):
        if token != wanted[0]:
            continue
        for start in range(at + 2, min(at + 2 + GAP, len(said) - size + 2)):
            if not all(is_cjk(t) or t.isalnum() for t in said[at:start]):
                break
            gap = said[at + 1 : start]
            if said[start : start + size - 1] == rest and (gap[0] in _GAP_BEGINS or gap[-1] == "的"):
                return at, start + size - 1
    return None
