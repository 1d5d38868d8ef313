"""Which tools a small model is shown: the few whose words match the conversation, changing as little as can be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import FrozenDict

WANTED = 3
"""How many of the best tools for a later message must be in the list."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CHINESE = {
    "读": "read", "文件": "file", "列": "list", "目录": "directory list", "文件夹": "folder directory", "写": "write",
    "保存": "write save", "删": "delete remove", "移动": "move", "搜": "search find", "查": "search query find",
    "找": "search find", "天气": "weather", "时间": "time", "几点": "time", "时区": "timezone time", "算": "calculate",
    "加": "add sum", "提交": "commit log", "仓库": "repository git", "分支": "branch", "邮件": "email mail",
    "网页": "fetch url page web", "网站": "fetch url web", "下载": "download fetch", "数据库": "database query sql",
    "表": "table query", "知识": "knowledge", "文档": "document file knowledge", "笔记": "note knowledge file",
    "记住": "memory remember create", "图": "image graph", "日历": "calendar", "提醒": "reminder timer",
    "创建": "create", "新建": "create", "更新": "update", "运行": "run execute", "脚本": "script", "技能": "skill",
}  # fmt: skip
"""Tools are mostly described in English; these are the common words of requests in Chinese."""

_SEARCHES = frozenset({"search", "find", "query", "lookup", "look", "ask", "retrieve", "recall", "knowledge"})
_QUERIES = frozenset({"query", "q", "question", "search", "keyword", "keywords", "term", "topic", "text"})
_QUESTION = re.compile(
    r"[?？]\s*$|^(who|whom|whose|what|when|where|which|why|how)\b|谁|什么|哪|几|多少|吗|怎么|如何|为何|何时",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(
    r"\b(hi|hello|thanks?|joke|poem|story|how are you|(who|what) are you|(can|could|would|will|do) you|your name)\b"
    r"|你好|谢谢|你是|你能|你会|你可以|笑话",
    re.IGNORECASE,
)


def is_search(tool: ToolSpec) -> bool:
    """Whether a tool looks something up by one text: what a question about facts is for."""
    required = tuple(tool.input_schema.get("required") or ())
    named = {w.lower() for w in _WORD.findall(tool.name)} & _SEARCHES
    return bool(named) and tool.server != "host" and len(required) == 1 and str(required[0]).lower() in _QUERIES


def is_question(text: str) -> bool:
    """Whether a message asks for a fact, and is no talk about the assistant itself."""
    return bool(_QUESTION.search(text.strip())) and not _SMALL_TALK.search(text)


def spoken_of(name: str, schema: Mapping[str, Any], message: str) -> bool:
    """Whether a message gives reason to fill an optional argument: it names it, or holds such a value."""
    if words(name) & words(message) or any(str(v).lower() in message.lower() for v in schema.get("enum") or ()):
        return True
    kinds = schema.get("type")
    numeric = bool({"integer", "number"} & set(kinds if isinstance(kinds, list) else [kinds]))
    return numeric and bool(re.search(r"\d|[一二三四五六七八九十两]|\b(one|two|three|four|five|six|ten)\b", message))


def own_words(tool: ToolSpec, arguments: FrozenDict, message: str) -> FrozenDict:
    """The arguments of a search, with the person's words where the query has none of them in common."""
    if not is_search(tool):
        return arguments
    name = str(tool.input_schema["required"][0])
    query = str(arguments.get(name, ""))
    wide = {c for c in query if c > "\u2e80"} & set(message)
    if wide or words(query) & words(message):
        return arguments
    return FrozenDict({**arguments, name: message})


def words(text: str) -> set[str]:
    """The words of a text, roughly stemmed; Chinese ones also as English."""
    glossed = " ".join([text, *(english for chinese, english in _CHINESE.items() if chinese in text)])
    found = {w.lower() for w in _WORD.findall(glossed)}
    return {_stem(w) for w in found if len(w) > 1}


def _stem(word: str) -> str:
    for ending in ("ely", "ly", "ing", "ies", "ed", "es", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def pick_tools(tools: Sequence[ToolSpec], messages: Sequence[str], used: frozenset[str], cap: int) -> list[ToolSpec]:
    """At most `cap` tools, in their given order.

    A pure function of the conversation: `messages` are what the person said, oldest first, so a restart gives
    the same list, and a new message swaps tools only where its best ones are missing (the prompt's beginning
    stays cached). `used` are wire names already called; they go last.
    """
    if len(tools) <= cap:
        return list(tools)
    names = [words(f"{t.name} {t.title or ''}") for t in tools]
    texts = [words(t.description) for t in tools]
    rarity: dict[str, float] = {}
    for vocabulary in (n | d for n, d in zip(names, texts, strict=True)):
        for word in vocabulary:
            rarity[word] = rarity.get(word, 0) + 1
    rarity = {w: math.log(1 + len(tools) / n) for w, n in rarity.items()}

    def score(at: int, said: set[str]) -> float:
        value = sum(rarity[w] * (3 if w in names[at] else 1) for w in said & (names[at] | texts[at]))
        return value + (0.5 if tools[at].wire_name in used else 0.0)

    def ranked(said: set[str]) -> list[int]:
        return sorted(range(len(tools)), key=lambda i: (-score(i, said), tools[i].server == "host", i))

    heard = [words(m) for m in messages] or [set()]
    chosen = ranked(heard[0])[:cap]
    for said in heard[1:]:
        best = [i for i in ranked(said)[:WANTED] if score(i, said) > 0.5]
        missing = [i for i in best if i not in chosen]
        if missing:
            leaving = sorted((i for i in chosen if i not in best), key=lambda i: (score(i, said), -chosen.index(i)))
            gone = set(leaving[: len(missing)])
            chosen = [*missing, *(i for i in chosen if i not in gone)][:cap]
    return [tools[i] for i in sorted(chosen)]
