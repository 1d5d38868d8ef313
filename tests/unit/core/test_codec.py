from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core import asks, events
from desktop_host.core.codec import block_to_mcp, decode, encode, event_to_json
from desktop_host.core.errors import PeerFault
from desktop_host.core.exchange import SamplingRequest
from desktop_host.core.messages import (
    Audio,
    EmbeddedResource,
    Image,
    Message,
    Native,
    Outcome,
    ResourceLink,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user,
)
from desktop_host.core.permissions import Effect, Life, Rule
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.core.skills import SkillPin
from desktop_host.core.values import FrozenDict, freeze, thaw

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), json_values, max_size=3).map(freeze)
texts = st.text(max_size=20)
blocks = st.one_of(
    st.builds(Text, texts, st.none() | objects),
    st.builds(Thinking, texts),
    st.builds(Image, texts, st.just("image/png")),
    st.builds(Audio, texts, st.just("audio/wav")),
    st.builds(ResourceLink, texts, texts, size=st.none() | st.integers(0, 9)),
    st.builds(EmbeddedResource, texts, text=st.none() | texts),
    st.builds(ToolCall, texts, texts, objects, st.none() | texts),
)
results = st.builds(
    ToolResult, texts, st.lists(blocks, max_size=2).map(tuple), st.sampled_from(Outcome), json_values.map(freeze)
)
messages = st.builds(
    Message,
    st.sampled_from(Role),
    st.lists(blocks | results, max_size=3).map(tuple),
    st.none() | st.builds(Native, texts, texts, texts, json_values.map(freeze)),
)
some_events = st.one_of(
    st.builds(events.UserSaid, texts, st.just((events.Attachment("a", "b", 1),)), st.just((Text("t"),))),
    st.builds(events.AssistantSaid, messages, texts, st.booleans()),
    st.builds(events.ToolRequested, texts, texts, texts, texts, objects, st.sampled_from(Effect)),
    st.builds(
        events.ToolSettled, texts, st.sampled_from(Outcome), st.lists(blocks, max_size=2).map(tuple),
        json_values.map(freeze),
    ),
    st.builds(events.TurnEnded, st.sampled_from(TurnStatus), st.sampled_from(TurnStop), texts, st.none() | objects),
    st.builds(events.SkillsChosen, st.just((SkillPin("a", "1", "d"),)), texts),
    st.builds(events.AskRaised, st.builds(asks.ApproveTool, texts, texts, texts, texts, texts, objects)),
    st.builds(events.AskRaised, st.builds(asks.FillForm, texts, st.none(), texts, texts, texts, objects)),
    st.builds(events.Notice, texts, objects),
)  # fmt: skip
stamped = st.builds(events.Stamped, st.integers(1, 99), st.just(1.5), texts, st.integers(0, 9), some_events)


@given(stamped)
def test_what_is_journaled_is_read_back_the_same(event):
    assert decode(json.loads(json.dumps(encode(event)))) == event


@given(stamped)
def test_every_event_is_a_line_of_json(event):
    line = json.loads(json.dumps(event_to_json(event)))
    assert line["type"] == event.event.type and {"seq", "t", "session", "turn"} <= line.keys()


@given(json_values)
def test_freezing_and_thawing_give_the_same_value_back(value):
    assert thaw(freeze(value)) == value


def test_a_frozen_object_cannot_be_changed_but_copied():
    frozen = freeze({"a": [1, {"b": 2}]})
    with pytest.raises(TypeError, match="frozen"):
        frozen["a"] = 1
    with pytest.raises(TypeError, match="frozen"):
        frozen["a"][1].update(b=3)
    assert copy.deepcopy(frozen) == frozen == pickle.loads(pickle.dumps(frozen))
    assert isinstance(pickle.loads(pickle.dumps(frozen)), FrozenDict)


def test_options_with_rules_come_back():
    options = SessionOptions("local", None, ("a",), ("/tmp",), (Rule(Effect.DENY, "*", life=Life.SESSION),), skills=())
    assert decode(json.loads(json.dumps(encode(options)))) == options


def test_a_field_of_a_newer_version_is_passed_over_and_a_missing_one_gets_its_default():
    data = encode(events.UserSaid("hi"))
    data["from_the_future"] = 1
    del data["attachments"]
    assert decode(data) == events.UserSaid("hi")


def test_a_value_nobody_wrote_is_refused_by_name():
    with pytest.raises(PeerFault, match="Unheard"):
        decode({"$": "Unheard"})
    with pytest.raises(PeerFault, match="lacks"):
        decode({"$": "UserSaid"})


def test_blocks_have_the_shape_of_the_protocol():
    assert block_to_mcp(ResourceLink("a://b", "n", mime_type="text/plain")) == {
        "type": "resource_link", "uri": "a://b", "name": "n", "mimeType": "text/plain",
    }  # fmt: skip
    assert block_to_mcp(EmbeddedResource("a://b", None, "t"))["resource"] == {"uri": "a://b", "text": "t"}


def test_a_sampling_review_shows_its_messages():
    ask = asks.ReviewSampling("1", "s", "c", "srv", SamplingRequest((user("hi"),), 5), "m")
    line = event_to_json(events.Stamped(1, 0.0, "s", 1, events.AskRaised(ask)))
    assert line["kind"] == "sampling" and line["messages"][0]["content"] == [{"type": "text", "text": "hi"}]
