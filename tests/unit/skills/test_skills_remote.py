"""Skills over MCP: nothing before it is asked for, nothing without approval, nothing that is not what was approved."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.values import FrozenDict, freeze
from desktop_host.skills.remote import RemoteLibrary
from desktop_host.skills.state import SkillState

MAIN = b'---\nname: helper\ndescription: Helps\nmetadata:\n  version: "1.10"\n---\nRead notes.md.\n'


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass
class Server:
    """A server with skills: what it lists and what it serves may differ."""

    files: dict[str, bytes] = field(default_factory=lambda: {"SKILL.md": MAIN, "notes.md": b"Notes."})
    frontmatter: dict[str, Any] = field(
        default_factory=lambda: {"name": "helper", "description": "Helps", "metadata": {"version": "1.10"}}
    )
    extra: list[dict[str, Any]] = field(default_factory=list)
    served: dict[str, bytes] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    down: bool = False

    def row(self) -> FrozenDict:
        base = "skill://helper/"
        rows = [{"uri": base + p, "digest": digest(d)} for p, d in self.files.items()]
        frozen: FrozenDict = freeze(
            {"uri": base + "SKILL.md", "frontmatter": self.frontmatter, "resources": rows + self.extra}
        )
        return frozen

    def serving(self) -> tuple[str, ...]:
        return () if self.down else ("docs",)

    async def listing(self, server: str) -> tuple[FrozenDict, ...]:
        if self.down:
            raise KnownFault("server_lost", "gone")
        return (self.row(),)

    async def entry(self, server: str, uri: str) -> FrozenDict:
        return self.row()

    async def read(self, server: str, uri: str) -> bytes:
        self.reads.append(uri)
        path = uri.removeprefix("skill://helper/")
        return self.served.get(path, self.files.get(path, b""))


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def library(server, tmp_path) -> RemoteLibrary:
    return RemoteLibrary(server, SkillState(tmp_path))


async def approved(library: RemoteLibrary) -> str:
    skill = (await library.refresh())[0]
    await library.approve(skill.id, skill.digest)
    return skill.id


async def test_listing_and_approving_fetch_nothing(server, library):
    skill = (await library.refresh())[0]
    assert (skill.id, skill.name, skill.description, skill.approved) == ("docs--helper", "helper", "Helps", False)
    await library.approve(skill.id, skill.digest)
    assert library.skills()[0].approved and server.reads == []
    await library.load(skill.id)
    assert server.reads == ["skill://helper/SKILL.md"]


async def test_an_unapproved_skill_is_not_loaded(server, library):
    await library.refresh()
    with pytest.raises(UserFault) as caught:
        await library.load("docs--helper")
    assert caught.value.params["reason"] == "not_approved" and server.reads == []


async def test_a_body_and_files_are_read_when_asked_and_tagged_with_their_origin(server, library):
    id_ = await approved(library)
    body = await library.load(id_)
    assert body.startswith('<skill name="docs--helper" source="server docs">') and "Read notes.md." in body
    assert await library.read(id_, "notes.md") == b"Notes."
    with pytest.raises(UserFault):
        await library.read(id_, "unlisted.md")
    assert "unlisted" not in "".join(server.reads)


async def test_another_content_than_announced_is_refused_and_the_approval_lapses(server, library):
    id_ = await approved(library)
    server.served["notes.md"] = b"Evil."
    with pytest.raises(UserFault) as caught:
        await library.read(id_, "notes.md")
    assert caught.value.params["reason"] == "digest"
    assert not library.skills()[0].approved


async def test_another_frontmatter_than_listed_is_refused(server, library):
    server.frontmatter = {"name": "helper", "description": "Helps a lot"}
    id_ = await approved(library)
    with pytest.raises(UserFault) as caught:
        await library.load(id_)
    assert caught.value.params["reason"] == "digest"


async def test_an_update_needs_a_new_approval(server, library):
    id_ = await approved(library)
    server.files["notes.md"] = b"New notes."
    skill = (await library.refresh())[0]
    assert (skill.approved, skill.changed) == (False, True)
    with pytest.raises(UserFault):
        await library.load(id_)
    await library.approve(id_, skill.digest)
    assert await library.read(id_, "notes.md") == b"New notes."


async def test_an_approval_is_for_what_was_shown(server, library):
    skill = (await library.refresh())[0]
    server.files["notes.md"] = b"Changed meanwhile."
    await library.refresh()
    with pytest.raises(UserFault) as caught:
        await library.approve(skill.id, skill.digest)
    assert caught.value.params["reason"] == "not_approved"


async def test_an_approval_survives_a_restart(server, library, tmp_path):
    await approved(library)
    again = RemoteLibrary(server, SkillState(tmp_path))
    assert (await again.refresh())[0].approved


@pytest.mark.parametrize(
    "row",
    [
        {"uri": "skill://other/x.md", "digest": digest(b"")},
        {"uri": "skill://helper/../x.md", "digest": digest(b"")},
        {"uri": "skill://helper/x.md", "digest": "md5:1"},
        {"uri": "skill://helper/" + "x" * 2000, "digest": digest(b"")},
    ],
)
async def test_entries_that_are_not_sound_are_left_out_and_told(server, library, row):
    server.extra = [row]
    assert await library.refresh() == () and len(library.problems["docs"]) == 1


async def test_a_skill_within_a_skill_needs_its_own_consent(server, library):
    server.extra = [{"uri": "skill://helper/inner/SKILL.md", "digest": digest(b"x")}]
    assert (await library.refresh())[0].files == ("SKILL.md", "notes.md")


async def test_a_lost_server_keeps_its_listing_hidden_and_harms_nobody(server, library):
    await approved(library)
    server.down = True
    assert await library.refresh() == ()
    assert await library.refresh("docs") == () and library.problems["docs"] == ("gone",)
    server.down = False
    assert library.skills()[0].approved


async def test_an_oversized_main_file_is_refused(server, library):
    server.files["SKILL.md"] = MAIN + b"x" * 300_000
    id_ = await approved(library)
    with pytest.raises(UserFault):
        await library.load(id_)


async def test_servers_are_asked_once_until_their_listing_is_old(server, library):
    asked = 0
    listing = server.listing

    async def counted(alias: str):
        nonlocal asked
        asked += 1
        return await listing(alias)

    server.listing = counted
    await library.ensure()
    await library.ensure()
    assert asked == 1 and [s.id for s in library.skills()] == ["docs--helper"]
