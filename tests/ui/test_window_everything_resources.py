"""Every resource and template of server-everything in the real window: read, watched, attached, saved and opened."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from desktop_host.core.servers import ServerState
from desktop_host.core.transcript import UserEntry
from desktop_host.ui.widgets.content_views import LinkRow
from desktop_host.ui.widgets.pieces import CodeBox
from desktop_host.ui.widgets.server_resources import ResourceRow, ResourcesTab
from tests.ui.window_kit import Window, browser, call, npm, script

pytestmark = [pytest.mark.live, pytest.mark.slow]
TEXTS, BLOBS = "demo://resource/dynamic/text/{resourceId}", "demo://resource/dynamic/blob/{resourceId}"


@pytest.fixture
def window(real_window: Window) -> Window:
    real_window.add(npm("mcp-server-everything"), "everything")
    return real_window


@pytest.fixture
def rows(window: Window) -> dict[str, ResourceRow]:
    """The rows of the resources tab by their addresses."""
    tab: ResourcesTab = window.tab("everything", "resources")
    window.until(lambda: len(tab.rows) == 9)
    return {row.spec.uri: row for row in tab.rows if isinstance(row, ResourceRow)}


def shown(row: ResourceRow) -> str:
    """The contents that a row shows."""
    boxes = [box.toPlainText() for box in row.findChildren(CodeBox)]
    return "\n".join([*boxes, *(one.text() for one in row.findChildren(QLabel) if not one.isHidden())])


def fill(window: Window, row: ResourceRow, value: str) -> None:
    """Type a template's argument."""
    field = row.arguments.fields["resourceId"]
    window.click(field)
    window.key(Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    window.type(value)


def test_every_resource_and_template_is_read_where_it_is_listed(window: Window, rows: dict[str, ResourceRow]) -> None:
    """A template that lacks its argument says so and asks nothing of the server."""
    for uri, row in rows.items():
        if not row.spec.template:
            window.click(row.read)
            window.until(lambda row=row: row.findChildren(CodeBox))  # type: ignore[misc]
            assert len(shown(row)) > 500, uri
    window.picture("resources-read")
    texts, blobs = rows[TEXTS], rows[BLOBS]
    window.click(texts.read)
    window.until(lambda: "This is needed." in shown(texts))
    fill(window, texts, "7")
    window.until(lambda: texts.arguments.proposals("resourceId") == ("7",))
    window.click(texts.read)
    window.until(lambda: "Resource 7: This is a plaintext resource created at" in shown(texts))
    fill(window, blobs, "abc")
    window.click(blobs.read)
    window.until(lambda: "Unknown resource: demo://resource/dynamic/blob/abc" in shown(blobs))
    fill(window, blobs, "3")
    window.click(blobs.read)
    window.until(lambda: "demo://resource/dynamic/blob/3" in shown(blobs) and "text/plain · " in shown(blobs))
    with browser("file") as opened:
        window.click(blobs.open)
        window.until(lambda: opened.urls)
    saved = Path(opened.urls[0].removeprefix("file://"))
    assert saved.read_text().startswith("Resource 3: This is a base64 blob created at")
    assert saved.is_relative_to(window.home)
    window.picture("resources-templates")


def test_a_watched_resource_is_marked_and_read_again_and_a_stopped_server_stays_stopped(
    window: Window, rows: dict[str, ResourceRow]
) -> None:
    """A template's address is watched as it is filled in, and gets a row of its own."""
    row = rows[TEXTS]
    fill(window, row, "5")
    window.click(row.watch)
    uri = "demo://resource/dynamic/text/5"
    tab: ResourcesTab = window.tab("everything", "resources")
    window.until(lambda: len(tab.rows) == 10 and row.watch.isChecked())
    alone = next(r for r in tab.rows if isinstance(r, ResourceRow) and r.spec.uri == uri)
    assert alone.watch.isChecked() and row.arguments.fields["resourceId"].text() == "5", "what was typed is kept"
    window.until(lambda: "Resource 5:" in shown(row))
    before = shown(row)
    assert row.mark.isHidden()

    async def toggle(servers: Any) -> None:
        await servers.call_tool("everything", "toggle-subscriber-updates", {})

    window.until(lambda: shown(row) == before)
    window.of_host(toggle)
    window.until(lambda: not row.mark.isHidden() and not alone.mark.isHidden())
    assert row.mark.text().startswith("Changed ")

    async def reads(servers: Any) -> int:
        frames = [f.message for f in servers.trace("everything")]
        return sum(m.get("method") == "resources/read" for m in frames)

    window.until(lambda: window.of_host(reads) >= 2)  # when it was watched, and when it changed
    window.picture("resources-watched")
    fill(window, row, "6")
    assert not row.watch.isChecked() and row.mark.isHidden(), "another address is another resource"

    detail = window.workspace.servers_page.detail
    assert detail is not None
    window.click(detail.run)
    window.until(lambda: window.status("everything").state is ServerState.STOPPED)
    window.click(detail.run)
    window.until(lambda: window.status("everything").state is ServerState.READY and len(tab.rows) == 9)

    async def watched(servers: Any) -> tuple[str, ...]:
        found: tuple[str, ...] = servers.subscribed("everything")
        return found

    assert window.of_host(watched) == ()


def test_a_resource_goes_with_a_message_from_its_page_and_by_the_at_sign(
    window: Window, rows: dict[str, ResourceRow], tmp_path: Path
) -> None:
    lines = script(tmp_path / "script.json", [{"text": "Read."}], [{"text": "Read, too."}])
    window.click(rows["demo://resource/static/document/features.md"].attach)
    page = window.workspace.chat
    window.until(lambda: window.workspace.page == "chats" and page.composer.files)
    page.chat.choices.pick_model(f"script:{lines}")
    window.click(page.composer.edit)
    window.type("Look ")
    window.type("@text")
    window.until(lambda: [offer.title for offer in page.offers.list.shown] == ["Dynamic Text Resource"])
    window.key(Qt.Key.Key_Return)
    window.until(lambda: page.offers.form is not None and page.offers.form.fields["resourceId"].hasFocus())
    window.type("9")
    window.key(Qt.Key.Key_Return)
    window.until(lambda: len(page.composer.files) == 2 and page.offers.form is None)
    window.picture("resources-attached")
    window.click(page.composer.send_button)
    window.until(lambda: window.said() == "Read." and window.ended)
    said = next(e for e in page.chat.transcript.now.entries if isinstance(e, UserEntry))
    assert said.text == "Look" and [a.name for a in said.attachments] == [
        "features.md", "demo://resource/dynamic/text/9",
    ]  # fmt: skip
    whole = str(said.blocks)
    assert "Resource 9: This is a plaintext resource" in whole and "trigger-elicitation-request" in whole


@contextmanager
def serving(data: bytes) -> Iterator[str]:
    """Bytes at an address of this computer."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/big"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_large_binary_resource_becomes_a_file_that_the_platform_opens(
    window: Window, rows: dict[str, ResourceRow], tmp_path: Path
) -> None:
    """Hazard I92: what is too large to show is kept on disk, in the chat as on the page."""
    with serving(os.urandom(6_000_000)) as address:
        lines = script(
            tmp_path / "script.json",
            [call("everything.gzip-file-as-resource", name="big.gz", data=address, outputType="resourceLink")],
            [{"text": "Packed."}],
        )
        window.say("Pack it", lines)
        window.approve_all()
    tab: ResourcesTab = window.tab("everything", "resources")
    window.until(lambda: len(tab.rows) == 10)  # the server told of its new resource
    row = next(r for r in tab.rows if isinstance(r, ResourceRow) and r.spec.name == "big.gz")
    assert rows[TEXTS] in tab.rows, "the rows that were there stay as they are"
    window.click(row.read)
    window.until(lambda: "Too large to show here; kept as " in shown(row))
    with browser("file") as opened:
        window.press("Open with the system", row)
        window.until(lambda: opened.urls)
        window.workspace.show_chat(window.workspace.chat.chat.session)
        card = window.card("gzip-file-as-resource")
        assert len(card.findChildren(LinkRow)) == 1
        window.press("Open: big.gz", card)
        window.until(lambda: len(opened.urls) == 2)
    for url in opened.urls:
        made = Path(url.removeprefix("file://"))
        assert made.suffix == ".gz" and made.stat().st_size > 6_000_000
