"""What servers offer beside tools, and many servers at once, against real processes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_host.core.errors import UserFault
from desktop_host.core.events import ServerChanged
from desktop_host.core.exchange import ElicitReply
from desktop_host.core.messages import ResourceLink
from desktop_host.core.servers import Protocol, ServerState, Timeouts
from desktop_host.core.uri_template import expand, variables
from desktop_host.core.values import freeze
from desktop_host.servers import patience
from tests.fakes.servers.stage import OpenReviewer, script, stage, text, until

pytestmark = pytest.mark.live


def features(name: str = "f", *flags: str, **more):
    return script(name, "features.py", *flags, **more)


async def test_arguments_are_completed_while_they_are_typed(tmp_path):
    async with stage(tmp_path, features()) as s:
        got = await s.servers.complete("f", "travel", "city", "ber")
        assert (got.values, got.total, got.has_more) == (("berlin", "bern"), 3, False)
        got = await s.servers.complete("f", "feat://{city}/{?day}", "city", "b", freeze({"land": "de-"}))
        assert got.values == ("de-berlin", "de-bern")


async def test_a_server_that_completes_nothing_gives_nothing(tmp_path):
    async with stage(tmp_path, script("small", "small.py")) as s:
        assert (await s.servers.complete("small", "greet", "who", "b")).values == ()


def test_templates_are_filled_by_the_rules_of_uri_templates():
    assert variables("feat://{city}/{?day,hour}") == ("city", "day", "hour")
    assert expand("feat://{city}/{?day,hour}", {"city": "a b/c", "day": "1"}) == "feat://a%20b%2Fc/?day=1"
    assert expand("f://x{/path*}{#frag}{+raw}", {"path": "a/b", "frag": "s", "raw": "/q?r"}) == "f://x/a/b#s/q?r"
    assert expand("f://{a:2}{&b}", {"a": "abcdef"}) == "f://ab"


async def test_a_log_level_reaches_a_running_server_and_is_kept(tmp_path):
    async with stage(tmp_path, features()) as s:
        await until(lambda: s.servers.trace("f") and "logging/setLevel" in str(s.servers.trace("f")))
        pid = s.servers.status("f").pid
        assert text(await s.call("f", "log")) == "info"
        await s.servers.set_log_level("f", "error")
        assert text(await s.call("f", "log")) == "error"
        told = [line.text for line in s.servers.logs("f") if line.source == "message"]
        assert told.count("feat: a line of info") == 1 and told.count("feat: a line of error") == 2
        assert s.servers.status("f").pid == pid, "nothing was restarted"
        assert s.servers.configs()[0].log_level == "error"
        with pytest.raises(UserFault):
            await s.servers.set_log_level("f", "loud")


async def test_a_modern_server_is_told_the_level_with_each_call(tmp_path):
    async with stage(tmp_path, script("m", "modern.py", protocol=Protocol.MODERN)) as s:
        await s.servers.set_log_level("m", "debug")
        await s.call("m", "echo", m="x")
        sent = [f.message for f in s.servers.trace("m") if f.message.get("method") == "tools/call"]
        assert sent[-1]["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "debug"


@pytest.mark.parametrize(("name", "file", "uri"), [("f", "features.py", "feat://a"), ("m", "modern.py", "modern://a")])
async def test_a_watched_resource_is_marked_in_both_eras(tmp_path, name, file, uri):
    async with stage(tmp_path, script(name, file)) as s:
        await s.servers.subscribe(name, uri)
        assert s.servers.subscribed(name) == (uri,)

        def marked() -> bool:
            return any(isinstance(e, ServerChanged) and f"resource:{uri}" in e.lists for e in s.events)

        async with asyncio.timeout(20):
            while not marked():
                await s.call(name, "touch")
                await asyncio.sleep(0.1)
        await s.servers.subscribe(name, uri, False)
        assert s.servers.subscribed(name) == ()


async def test_a_large_resource_becomes_a_file_that_the_platform_can_open(tmp_path):
    async with stage(tmp_path, features()) as s:
        saved = await s.servers.save_resource("f", "feat://big")
        assert saved.path.suffix == ".png" and saved.size == 5_000_004 and saved.path.stat().st_size == saved.size
        assert saved.path.parent == tmp_path / "files/f"
        (link,) = (await s.servers.read_resource("f", "feat://big")).content
        assert isinstance(link, ResourceLink) and link.uri.startswith("file://") and link.size == saved.size
        small = await s.servers.save_resource("f", "feat://a.exe")
        assert small.path.read_text() == "text of feat://a.exe" and small.path.suffix == ".txt"


async def test_icons_are_kept_where_a_window_may_show_them(tmp_path):
    async with stage(tmp_path, features()) as s:
        (icon,) = s.servers.tools("f")[0].icons
        assert icon["src"].startswith("data:image/png")
        assert (await s.servers.resources("f"))[0].icons


async def test_folders_follow_the_chat_and_the_profile_and_changes_are_told(tmp_path):
    class Folders(OpenReviewer):
        def roots(self, session: str | None) -> tuple[str, ...]:
            return self.folders.get(session) or self.folders[None]

    reviewer = Folders(folders={None: ("/profile",), "s2": ("/own",)})
    async with stage(tmp_path, features(), reviewer=reviewer) as s:
        await s.servers.prepare("s2", None, ("/own",))

        async def roots(session: str, wanted: str) -> None:
            for _ in range(200):
                if wanted in (told := text(await s.call("f", "roots", session))):
                    return
                await asyncio.sleep(0.05)
            raise AssertionError(told)

        await roots("s1", "file:///profile")
        await roots("s2", "file:///own")
        reviewer.folders[None] = ("/elsewhere",)
        await s.servers.prepare("s1", None, ())
        await roots("s1", "file:///elsewhere")
        await roots("s2", "file:///own")


async def test_changed_folders_are_told_to_running_servers_at_once_and_only_to_those_concerned(tmp_path):
    class Folders(OpenReviewer):
        def roots(self, session: str | None) -> tuple[str, ...]:
            return self.folders.get(session) or self.folders[None]

    reviewer = Folders(folders={None: ("/profile",), "own": ("/own",)})

    def told(s) -> int:
        frames = s.servers.trace("f")
        return sum("roots/list_changed" in str(f.message) for f in frames)

    async with stage(tmp_path, features(), reviewer=reviewer) as s:
        await s.servers.prepare("own", None, ("/own",))
        await s.servers.prepare("plain", None, ())
        await s.call("f", "roots", "own")
        await s.call("f", "roots", "plain")
        before = told(s)
        await s.servers.roots_changed("own")
        assert told(s) == before, "nothing is other"
        reviewer.folders["own"] = ("/own", "/second")
        await s.servers.roots_changed("own")
        assert told(s) == before + 1
        reviewer.folders[None] = ("/elsewhere",)
        await s.servers.roots_changed(None)
        assert told(s) == before + 2, "a chat with folders of its own is not concerned"


async def test_a_question_that_the_server_takes_back_is_closed(tmp_path):
    """Hazard M128."""
    closed = asyncio.Event()

    class Waiting(OpenReviewer):
        async def elicit(self, origin, request):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                closed.set()
                raise

    async with stage(tmp_path, features(), reviewer=Waiting()) as s:
        assert text(await s.call("f", "ask_and_cancel")) == "done"
        async with asyncio.timeout(10):
            await closed.wait()


async def test_stop_asking_ends_the_questions_of_a_call(tmp_path):
    """Hazard M127."""
    async with stage(tmp_path, features(), reviewer=OpenReviewer(answer=ElicitReply("stop"))) as s:
        assert "wants no more questions" in text(await s.call("f", "ask_twice"))


async def test_only_enabled_tools_are_used_where_they_are_listed(tmp_path):
    async with stage(tmp_path, features("f", "--tools", "3", enabled_tools=("tool_1",))) as s:
        on = [t.name for t in s.servers.session_tools("s1") if t.enabled]
        assert on == ["tool_1"]
        assert "switched off" in text(await s.call("f", "tool_2"))
        assert s.servers.status("f").tokens > 0


async def test_removing_a_server_removes_its_tools(tmp_path):
    async with stage(tmp_path, features("a"), features("b")) as s:
        await s.servers.remove("a")
        assert {t.server for t in s.servers.session_tools("s1")} == {"b"}
        assert "no longer available" in text(await s.call("a", "log"))


async def test_twenty_servers_of_which_four_misbehave_do_not_delay_the_sixteen(tmp_path, monkeypatch):
    """Hazard B26, B29, D47, D53: 20 servers with 50 tools each; dead, hanging, slow and crash-looping among them."""
    monkeypatch.setattr(patience, "QUIET_S", 3.0)
    good = [features(f"good-{n}", "--tools", "50") for n in range(16)]
    limits = Timeouts(connect_s=60, call_s=20, call_max_s=60)
    bad = [
        features("dead", "--dead", "--tools", "50", timeouts=limits),
        features("hanging", "--hang", "--tools", "50", timeouts=limits),
        features("slow", "--slow", "25", "--tools", "50", timeouts=limits),
        features("looping", "--loop", "--tools", "50", timeouts=limits),
    ]
    async with stage(tmp_path, *good, *bad, start=False) as s:
        began = time.monotonic()
        await s.servers.prepare("s1", None, ())
        took = time.monotonic() - began
        states = {name: s.servers.status(name).state for name in ("dead", "hanging", "slow")}
        assert all(s.servers.status(c.name).state is ServerState.READY for c in good)
        assert states["hanging"] is ServerState.STARTING and states["slow"] is ServerState.STARTING
        assert took < 40, f"{took:.1f} s"
        tools = [t for t in s.servers.session_tools("s1") if t.server.startswith("good-")]
        assert len(tools) == 16 * 55
        again = time.monotonic()
        await s.servers.prepare("s1", None, ())
        assert time.monotonic() - again < 2, "who was late once keeps nobody waiting again"
        outcomes = await asyncio.gather(
            *(s.call(c.name, f"tool_{n}", call_id=f"{c.name}{n}") for c in good for n in (0, 49))
        )
        assert [text(o) for o in outcomes] == [f"tool_{n}" for _ in good for n in (0, 49)]
        rows = {status.name: status for status in s.servers.statuses()}
        assert len(rows) == 20 and rows["dead"].error is not None
        assert "this server is dead" in rows["dead"].error.stderr
        flood = [e for e in s.events if isinstance(e, ServerChanged) and e.server == "looping"]
        assert len(flood) < 40, "a crash loop is told in measure"
        await until(lambda: s.servers.status("slow").state is ServerState.READY, 60)
        assert len([t for t in s.servers.session_tools("s1") if t.server == "slow"]) == 55


async def test_a_lone_slow_server_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "QUIET_S", 0.2)
    async with stage(tmp_path, features("slow", "--slow", "2"), start=False) as s:
        await s.servers.prepare("s1", None, ())
        assert s.servers.status("slow").state is ServerState.READY


async def test_names_taken_and_a_changed_setting_leave_a_running_server_alone(tmp_path: Path):
    """Hazard A11."""
    async with stage(tmp_path, features()) as s:
        pid = s.servers.status("f").pid
        await s.servers.update(replace(s.servers.configs()[0], trusted=True, enabled_tools=("log",), log_level="debug"))
        assert s.servers.status("f").pid == pid and pid is not None


async def test_what_was_saved_for_a_server_goes_with_it(tmp_path):
    async with stage(tmp_path, features()) as s:
        saved = await s.servers.save_resource("f", "feat://a")
        await s.servers.remove("f")
        assert not saved.path.exists()


async def test_a_server_that_asks_again_and_again_is_stopped_by_the_person(tmp_path):
    """Hazard M128: the modern era's rounds; the third question is answered with "stop asking"."""

    class Tired(OpenReviewer):
        async def elicit(self, origin, request):
            self.asked.append((origin, request))
            return ElicitReply("stop" if len(self.asked) == 3 else "decline")

    reviewer = Tired()
    async with stage(tmp_path, script("i", "insisting.py"), reviewer=reviewer) as s:
        outcome = await s.call("i", "insist")
        assert len(reviewer.asked) == 3 and {o.call_id for o, _ in reviewer.asked} == {"c1"}
        assert "wants no more questions" in text(outcome)
        assert s.servers.status("i").state is ServerState.READY
