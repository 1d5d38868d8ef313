"""Tool results as a model gets them."""

from __future__ import annotations

import base64
import json

import pytest

from desktop_host.core.messages import Audio, EmbeddedResource, Image, Outcome, ResourceLink, Text, Thinking, ToolResult
from desktop_host.core.values import freeze
from desktop_host.providers import results
from desktop_host.providers.results import FilePart, ImagePart, TextPart, parts_of, result_parts


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


PNG = b64(b"\x89PNG\r\n\x1a\n" + b"0" * 50)
JPEG = b64(b"\xff\xd8\xff" + b"0" * 50)
WEBP = b64(b"RIFF0000WEBP" + b"0" * 50)
GIF = b64(b"GIF89a" + b"0" * 50)
SVG = b64(b"<svg xmlns='http://www.w3.org/2000/svg'/>")


@pytest.mark.parametrize(
    ("data", "mime"), [(PNG, "image/png"), (JPEG, "image/jpeg"), (WEBP, "image/webp"), (GIF, "image/gif")]
)
def test_an_image_is_what_its_bytes_say(data, mime):
    """Public bug claude-code#58330 and #11936: a mislabelled image bricked the chat."""
    assert parts_of((Image(data, "image/x-whatever"),)) == [ImagePart(data, mime)]


def test_what_only_claims_to_be_an_image_becomes_text():
    svg = parts_of((Image(SVG, "image/svg+xml"),))
    assert isinstance(svg[0], TextPart)
    assert "<svg" in svg[0].text
    for data in ("!!!not base64!!!", b64(b"\x00\x01\x02" * 20)):
        part = parts_of((Image(data, "image/png"),))[0]
        assert isinstance(part, TextPart)
        assert data not in part.text


def test_an_image_that_is_too_large_is_named_instead():
    big = b64(b"\x89PNG\r\n\x1a\n" + b"0" * results.MAX_IMAGE_BYTES)
    part = parts_of((Image(big, "image/png"),))[0]
    assert isinstance(part, TextPart)
    assert "too large" in part.text
    assert len(part.text) < 200


def test_a_sound_is_named_and_never_sent():
    part = parts_of((Audio(b64(b"RIFF" + b"0" * 96), "audio/wav"),))[0]
    assert part == TextPart("[audio audio/wav, 100 bytes: played to the person, not sent]")


def test_a_link_is_told_whole_and_never_fetched():
    """Hazard I98."""
    part = parts_of((ResourceLink("file:///a.txt", "a", description="The file", mime_type="text/plain"),))[0]
    assert part == TextPart("[resource link] a <file:///a.txt> (text/plain): The file")


def test_embedded_resources_show_text_or_data_whatever_is_there():
    """Hazard I97: an empty `text` hid the blob."""
    assert parts_of((EmbeddedResource("u:1", text="hello"),)) == [TextPart('<resource uri="u:1">\nhello\n</resource>')]
    assert parts_of((EmbeddedResource("u:1", text="", blob=PNG),)) == [ImagePart(PNG, "image/png")]
    pdf = b64(b"%PDF-1.7 " + b"0" * 40)
    assert parts_of((EmbeddedResource("file:///x/doc.pdf", blob=pdf),)) == [FilePart(pdf, "doc.pdf")]
    csv = parts_of((EmbeddedResource("u:2", "text/csv", blob=b64(b"a,b")),))[0]
    assert isinstance(csv, TextPart)
    assert "a,b" in csv.text
    binary = parts_of((EmbeddedResource("u:3", "application/zip", blob=b64(b"PK\x03\x04" * 9)),))[0]
    assert binary == TextPart("[application/zip u:3, 36 bytes: shown to the person, not sent]")


def test_structured_data_is_sent_only_where_there_is_no_content():
    """Hazard I94; public bug claude-code#70280: the image was sent again inside structuredContent."""
    structured = freeze({"image": PNG * 50, "n": 1})
    with_content = ToolResult("c", (Image(PNG, "image/png"),), structured=structured)
    assert result_parts(with_content) == [ImagePart(PNG, "image/png")]
    alone = result_parts(ToolResult("c", (), structured=structured))[0]
    assert isinstance(alone, TextPart)
    said = json.loads(alone.text)
    assert said["n"] == 1
    assert "binary data" in said["image"]


def test_blank_text_is_skipped_and_nothing_is_said_to_be_nothing():
    assert result_parts(ToolResult("c", (Text("  \n"), Text("")))) == [TextPart("(no output)")]
    assert result_parts(ToolResult("c", (), Outcome.TIMED_OUT)) == [TextPart("(timed_out, no details)")]


def test_an_error_is_text_alone():
    result = ToolResult("c", (Text("bad"), Image(PNG, "image/png")), Outcome.ERROR)
    assert result_parts(result) == [TextPart("bad")]


def test_thinking_is_no_content():
    assert parts_of((Thinking("x"),)) == []


def test_long_text_that_is_no_base64_stays():
    text = "word " * 2000
    assert results.without_base64(text) == text
    assert results.without_base64("x y") == "x y"
