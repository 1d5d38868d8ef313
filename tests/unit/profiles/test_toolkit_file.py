"""`toolkit.json`: what is written is read back, what cannot be read is named and never overwritten."""

from __future__ import annotations

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.permissions import Effect
from desktop_host.core.toolkit import PostRule, ToolkitConfig, ToolRule
from desktop_host.core.tools import ToolGroup
from desktop_host.core.values import freeze
from desktop_host.profiles.toolkit_file import ToolkitFile

FULL = ToolkitConfig(
    groups=(
        ToolGroup("files", ("fs.*", "git.*"), False, Effect.ASK, "Read files", "Paths are absolute."),
        ToolGroup("web", ("web.*",)),
    ),
    rules=(
        ToolRule("web.fetch", freeze({"token": "${keyring:t}", "n": [1]}), PostRule("a[].b", True, 500), "Fetch"),
        ToolRule("fs.read", post=PostRule(max_chars=5)),
    ),
    model_switches=True,
)


async def test_what_is_saved_is_there_at_the_next_start(tmp_path):
    store = await ToolkitFile.open(tmp_path / "toolkit.json")
    assert store.current() == ToolkitConfig() and not (tmp_path / "toolkit.json").exists()
    await store.save(FULL)
    assert (await ToolkitFile.open(tmp_path / "toolkit.json")).current() == FULL == store.current()


async def test_a_byte_order_mark_is_read_over(tmp_path):
    """Hazard A1."""
    (tmp_path / "toolkit.json").write_bytes(b'\xef\xbb\xbf{"modelSwitches": true}')
    assert (await ToolkitFile.open(tmp_path / "toolkit.json")).current().model_switches


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"groups": [', {"line": 1}),
        ('{"groups": [{"name": "x"}]}', {"key": "groups[0].tools"}),
        ('{"groups": [{"name": "x", "tools": [], "permission": "maybe"}]}', {"key": "groups[0].permission"}),
        ('{"tools": {"a.b": {"maxChars": -1}}}', {"key": "tools.a.b.maxChars"}),
        ("[]", {"key": "toolkit"}),
    ],
)
async def test_a_file_that_cannot_be_read_is_named_with_its_place(tmp_path, text, named):
    """Hazard A8."""
    path = tmp_path / "toolkit.json"
    path.write_text(text)
    with pytest.raises(UserFault) as caught:
        await ToolkitFile.open(path)
    assert caught.value.code == "bad_settings" and caught.value.params["file"] == str(path)
    assert named.items() <= caught.value.params.items()
    assert path.read_text() == text
