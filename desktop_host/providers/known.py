"""What is known of vendors' models without asking: current names and what each family takes.

A short list for the first look; the vendor's own list replaces it as soon as a key is there. A name that is
not known is sent as typed, with nothing that only some models take.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ANTHROPIC: tuple[tuple[str, str, int | None], ...] = (
    ("claude-opus-5-5", "Claude Opus 5.5", 1_000_000),
    ("claude-sonnet-5-5", "Claude Sonnet 5.5", 1_000_000),
    ("claude-haiku-5-5", "Claude Haiku 5.5", 1_000_000),
    ("claude-fable-5-2", "Claude Fable 5.2", 1_000_000),
    ("claude-opus-5", "Claude Opus 5", 1_000_000),
    ("claude-sonnet-5", "Claude Sonnet 5", 1_000_000),
    ("claude-haiku-4-5", "Claude Haiku 4.5", 200_000),
)
"""Name, title, and context window in tokens as the price table has it; the same for OpenAI."""
OPENAI: tuple[tuple[str, str, int | None], ...] = (
    ("gpt-6.2-sol", "GPT-6.2 Sol", None),
    ("gpt-6-luna", "GPT-6 Luna", 1_050_000),
    ("gpt-5.6-sol", "GPT-5.6 Sol", 1_050_000),
    ("gpt-5.6-terra", "GPT-5.6 Terra", 1_050_000),
    ("gpt-5.6-luna", "GPT-5.6 Luna", 1_050_000),
    ("gpt-5.4-mini", "GPT-5.4 mini", 400_000),
)
ASSUMED_WINDOW = 128_000
"""Context window where nobody says; shown as assumed."""
_CLAUDE = re.compile(r"claude-(fable|mythos|opus|sonnet|haiku)-(\d)(?:[-.](\d)(?!\d))?")
_NOT_CHAT = re.compile(
    r"embed|whisper|tts|audio|realtime|image|dall-e|moderation|transcri|sora|davinci|babbage|instruct|search|live"
)


@dataclass(frozen=True, slots=True)
class Claude:
    """What a Claude model takes."""

    adaptive: bool
    """`thinking: adaptive`."""
    binding: bool
    """Its thinking is bound to the exact conversation before it."""
    forced_tools: bool
    """`tool_choice` `any`."""
    effort: bool
    max_output: int


def claude(model: str) -> Claude | None:
    """The family of a model name; None where it is not a known Claude."""
    found = _CLAUDE.search(model)
    if not found:
        return None
    line, version = found[1], (int(found[2]), int(found[3] or 0))
    bound_from = (5, 1) if line in ("fable", "mythos") else (5, 5)
    bound = version >= bound_from
    return Claude(
        adaptive=version >= (4, 6),
        binding=bound,
        forced_tools=not bound or line == "haiku",
        effort=version >= (4, 6) or (line == "opus" and version == (4, 5)),
        max_output=64_000 if version >= (4, 5) else 32_000,
    )


def reasons(model: str) -> bool:
    """Whether an OpenAI model reasons (and so takes `reasoning`, and no `temperature`)."""
    name = model.rsplit("/", 1)[-1].lower()
    return bool(re.match(r"(gpt-[5-9]|o\d|codex)", name)) and "chat-latest" not in name


def is_chat(model: str) -> bool:
    """Whether a row of OpenAI's list is a model to talk to."""
    return bool(re.match(r"(gpt-|o\d|chatgpt|codex)", model)) and not _NOT_CHAT.search(model)
