"""How alike questions are in meaning, by the sentence encoder of the extra `[semantic]`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from desktop_host.skills.matchers import SEMANTIC, SemanticMatcher, semantic_installed, shared_encoder

_log = logging.getLogger(__name__)


class Likeness:
    """Implements `core.budgets.Likeness`. The encoder is loaded when first asked, in a thread."""

    def __init__(self) -> None:
        self._matcher: SemanticMatcher | None = None
        self._turn = asyncio.Lock()

    async def scores(self, question: str, others: Sequence[str]) -> list[float] | None:
        """Cosines from 0 to 1; None where the extra is not installed."""
        if not semantic_installed():
            return None
        async with self._turn:
            try:
                return await asyncio.to_thread(self._scores, question, tuple(others))
            except ImportError as error:
                _log.warning("questions are compared by their words, for the encoder cannot be loaded: %s", error)
                return None

    def _scores(self, question: str, others: Sequence[str]) -> list[float]:
        if self._matcher is None:
            self._matcher = SemanticMatcher(shared_encoder(), SEMANTIC)
        return self._matcher.scores(question, others)
