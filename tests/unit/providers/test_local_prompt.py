from __future__ import annotations

from desktop_host.core.messages import (
    EmbeddedResource,
    Image,
    Message,
    Outcome,
    ResourceLink,
    Role,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from desktop_host.core.models import ModelRequest
from desktop_host.core.tools import ToolSpec
from desktop_host.core.values import freeze
from desktop_host.providers.local_prompt import HISTORY_TOKENS, Prompt, build, cut, tokens
from desktop_host.providers.local_tools import is_question, pick_tools, spoken_of
from desktop_host.providers.weights import ModelCard

CARD = ModelCard(name="tiny", title="Tiny", file="tiny.gguf", bytes=1, sha256="", result_tokens=400)
READ = ToolSpec("fs", "read_file", "Read the text of one file.")
TOOLS = (READ,)

CATALOGUE = tuple(
    ToolSpec(server, name, text)
    for server, name, text in (
        ("git", "git_log", "Show recent commits."),
        ("git", "git_status", "Show the working tree status."),
        ("fs", "read_file", "Read the text of one file."),
        ("fs", "write_file", "Create or overwrite a file."),
        ("fs", "list_directory", "List the files in a directory."),
        ("daily", "get_weather", "Get the current weather for a city."),
        ("daily", "get_time", "Get the current time in a timezone."),
        ("host", "search_tools", "Find tools by words."),
        ("mail", "send_email", "Send an e-mail."),
        ("web", "fetch", "Download a web page."),
    )
)


def prompt(*messages: Message, plain: bool = False, tools: tuple[ToolSpec, ...] = TOOLS) -> Prompt:
    return build(ModelRequest(messages, tools=tools), CARD, plain=plain)


def called(*results: ToolResult) -> tuple[Message, ...]:
    calls = tuple(ToolCall(r.call_id, READ.wire_name, freeze({"path": r.call_id})) for r in results)
    return (user("Read."), assistant(*calls), Message(Role.USER, results))


def test_every_call_is_followed_by_its_own_result() -> None:
    """Hazard H88: results come in call order, whatever order they were given in."""
    one, two = ToolResult("a", (Text("first"),)), ToolResult("b", (Text("second"),))
    user_text, calls, _ = called(one, two)
    sent = prompt(user_text, calls, Message(Role.USER, (two, one))).messages[1:]
    assert [m["role"] for m in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert '"path": "a"' in sent[1]["content"]
    assert sent[2]["content"].startswith("Tool result of read_file: first")
    assert sent[4]["content"].startswith("Tool result of read_file: second")


def test_a_call_without_a_result_does_not_break_the_conversation() -> None:
    """Hazard J101."""
    sent = prompt(user("Read."), assistant(ToolCall("a", READ.wire_name)), user("hi")).messages
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]


def test_outcomes_are_told_as_what_they_are() -> None:
    """Hazard H89: a server's error is given to the model."""
    lines = [
        prompt(*called(ToolResult("a", (Text("why"),), outcome))).messages[-1]["content"].split("\n")[0]
        for outcome in (Outcome.OK, Outcome.ERROR, Outcome.DENIED, Outcome.TIMED_OUT)
    ]
    assert lines == [
        "Tool result of read_file: why", "Tool read_file failed: why",
        "The user did not allow read_file. why", "Tool read_file failed: why",
    ]  # fmt: skip


def test_a_huge_result_is_cut_to_the_models_measure() -> None:
    """Hazard I92."""
    text = "begin " + "word " * 400_000 + "end"
    line = prompt(*called(ToolResult("a", (Text(text),)))).messages[-1]["content"]
    assert tokens(line) < CARD.result_tokens + 60
    assert "begin" in line
    assert "end" in line


def test_chinese_counts_one_token_a_character() -> None:
    assert tokens("中文" * 50) == 100
    assert tokens(cut("中文" * 5000, 400)) <= 410


def test_what_a_text_model_cannot_see_is_named() -> None:
    """Hazards I97, I98 and I100."""
    blocks = (
        Image("aGk=", "image/png"), ResourceLink("file:///a", "a", title="A"),
        EmbeddedResource("x://y", text="inside"), EmbeddedResource("x://z", blob="aGk="),
    )  # fmt: skip
    line = prompt(*called(ToolResult("a", blocks))).messages[-1]["content"]
    for part in ("image/png", "[resource A: file:///a]", "inside", "[resource x://z]"):
        assert part in line
    assert "aGk=" not in line


def test_structured_data_stands_in_where_there_is_no_text() -> None:
    made = prompt(*called(ToolResult("a", (), structured=freeze({"rows": 3}))))
    assert '{"rows": 3}' in made.messages[-1]["content"]
    assert made.last_result == ("read_file", '{"rows": 3}')


def test_old_turns_go_whole_and_the_newest_always_stays() -> None:
    """Hazard J103: a call is never parted from its result."""
    talk: list[Message] = []
    for n in range(60):
        talk += called(ToolResult(f"c{n}", (Text("word " * 80),)))
        talk.append(assistant(f"answer {n}"))
    sent = prompt(*talk, user("and now?")).messages
    assert sent[-1]["content"] == "and now?"
    assert sent[1]["content"] == "Read."
    assert sum(tokens(m["content"]) for m in sent[1:]) <= HISTORY_TOKENS


def test_the_beginning_moves_seldom_so_that_it_stays_cached() -> None:
    talk: list[Message] = []
    begins = []
    for n in range(60):
        talk += [user(f"question {n} " + "word " * 80), assistant("answer")]
        begins.append(prompt(*talk).messages[1]["content"][:14])
    assert len(set(begins)) < 8


def test_a_single_long_message_is_sent_whole() -> None:
    text = "word " * 3000
    assert prompt(user("old"), assistant("ok"), user(text)).messages[-1]["content"] == text


def test_plain_requests_know_nothing_of_the_protocol() -> None:
    sent = prompt(user("hi"), assistant("hello"), plain=True).messages
    assert sent == ({"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"})


def test_few_tools_are_all_shown_in_their_order() -> None:
    assert pick_tools(CATALOGUE, ["x"], frozenset(), 10) == list(CATALOGUE)


def test_the_tools_whose_words_match_are_shown() -> None:
    cases = {
        "What's the weather in Paris?": "get_weather", "Send Ann an email": "send_email",
        "Show the commits": "git_log", "北京天气怎么样": "get_weather", "读取文件": "read_file",
    }  # fmt: skip
    for said, name in cases.items():
        assert name in [t.name for t in pick_tools(CATALOGUE, [said], frozenset(), 3)]


def test_a_fitting_tool_list_stays_as_it_is() -> None:
    said = ["Read the file a.txt", "now list the directory", "thanks", "read another file"]
    lists = [pick_tools(CATALOGUE, said[: n + 1], frozenset(), 5) for n in range(len(said))]
    assert lists[0] == lists[1] == lists[2] == lists[3]


def test_a_new_subject_brings_its_tool_and_keeps_most_others() -> None:
    first = pick_tools(CATALOGUE, ["Read the file a.txt"], frozenset(), 5)
    second = pick_tools(CATALOGUE, ["Read the file a.txt", "send it by email"], frozenset(), 5)
    assert "send_email" in [t.name for t in second]
    assert len([t for t in first if t in second]) >= 3
    assert len(second) == 5


def test_the_hosts_own_tools_yield_to_the_persons() -> None:
    chosen = pick_tools(CATALOGUE, ["blah"], frozenset(), 9)
    assert "host" not in {t.server for t in chosen}


def test_questions_are_told_from_small_talk() -> None:
    asked = ("What is the warranty?", "who founded it", "保修几年", "Is it open on Sunday?", "How old is the firm")
    talk = ("Thanks", "hello?", "How are you?", "你好吗？", "Tell me a joke", "Save this to a.txt", "Can you help me?")
    assert [is_question(text) for text in (*asked, *talk)] == [True] * len(asked) + [False] * len(talk)


def test_an_optional_argument_is_offered_where_the_person_spoke_of_it() -> None:
    number, text, choice = {"type": "integer"}, {"type": "string"}, {"enum": ["asc", "desc"]}
    for name, schema, said in (
        ("max_count", number, "the last 5 commits"), ("top_k", number, "前三个"), ("limit", number, "with no limit"),
        ("recursive", {"type": "boolean"}, "list it recursively"), ("order", choice, "newest first, DESC"),
    ):  # fmt: skip
        assert spoken_of(name, schema, said)
    for name, schema in (("max_count", number), ("body", text), ("order", choice), ("x", {"type": ["number", "null"]})):
        assert not spoken_of(name, schema, "Show the commits")
