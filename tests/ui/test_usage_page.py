"""The usage page: sums, limits, chart, tables, CSV; and where limits and routes are set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from desktop_host.core.errors import KnownFault, UserFault
from desktop_host.core.routes import DOWNGRADE, EXAMPLE, Considered, Link, Needs, Route
from desktop_host.core.values import FrozenDict
from desktop_host.ui.viewmodels.usage import Limit, Line, as_csv, limits_of
from desktop_host.ui.widgets.charts import BarChart, Gauge, nice
from desktop_host.ui.widgets.costs_tab import reason_words
from desktop_host.ui.widgets.usage_parts import LimitRow, money, short
from tests.fakes.shell_host import ShellHost, ShellModels
from tests.fakes.usage_ledger import TODAY, Ledger
from tests.ui.shell_kit import Shell


class Explainer(ShellModels):
    async def explain(self, name: str, needs: Needs) -> tuple[Considered, ...]:
        if name == "code":
            raise UserFault("not_found", "there is no such route", kind="route", name=name)
        return (Considered("a", True, True, ("first",)), Considered("b", False, False, ("no_key", "too_long")))


class UsageHost(ShellHost):
    def __init__(self) -> None:
        super().__init__()
        self.ledger: Any = Ledger()
        self.models = Explainer(self)

    async def standings(self, session: str | None = None) -> tuple[FrozenDict, ...]:
        common = {"key": "k", "reserved_usd": 0.0}
        return (
            FrozenDict({**common, "scope": "day", "spent_usd": 4.2, "limit_usd": 5.0, "calls": 50, "limit_calls": 50}),
            FrozenDict({**common, "scope": "month", "spent_usd": 9.0, "limit_usd": None, "calls": 90,
                        "limit_calls": None}),
        )  # fmt: skip


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> Iterator[Shell]:
    host = UsageHost()
    host.populate()
    made = Shell(qtbot, tmp_path, host)
    yield made
    made.close()


def opened(shell: Shell) -> Any:
    shell.window.commands.run("go.usage")
    page = shell.workspace.usage.page
    shell.until(lambda: shell.workspace.usage.model.loaded)
    return page


def cells(page: Any) -> list[list[str]]:
    table = page.table
    return [[table.item(r, c).text() for c in range(table.columnCount())] for r in range(table.rowCount())]


def test_the_page_tells_days_models_chats_and_servers(shell: Shell) -> None:
    page = opened(shell)
    assert shell.window.sidebar.nav["usage"].isChecked()
    assert cells(page)[0] == [TODAY.isoformat(), "2", "400", "50", "75%", "$0.25"]
    page.show_by("model")
    assert cells(page) == [
        ["m", "2", "400", "50", "75%", "$0.50"], ["blind", "2", "400", "50", "75%", "unknown"],
    ]  # fmt: skip
    page.show_by("session")
    rows = cells(page)
    assert rows[0][0] == "How do goroutines differ from threads?"
    assert rows[1][0] == "Deleted chat"
    assert rows[1][-1] == "≥ $0.50"
    page.show_by("server")
    assert cells(page) == [["files", "9", "1", "0", "0", "–"]]
    page.show_by("purpose")
    assert [r[0] for r in cells(page)] == ["Chat", "Summaries"]


def test_limits_are_bars_that_warn_from_four_fifths_on(shell: Shell) -> None:
    page = opened(shell)
    rows = page.findChildren(LimitRow)
    assert [r.accessibleName() for r in rows] == [
        "Today: $4.20 of $5.00 (84%)", "This month: $9.00 spent, no limit", "Requests today: 50 of 50 (100%)",
    ]  # fmt: skip
    assert [r.gauge.tone if r.gauge else "" for r in rows] == ["warning", "", "danger"]


def test_a_chat_of_the_table_opens_and_limits_lead_to_the_settings(shell: Shell) -> None:
    page = opened(shell)
    page.show_by("session")
    page.table.itemActivated.emit(page.table.item(0, 0))
    assert shell.workspace.session == "c1"
    opened(shell)
    shell.press("Change", page)
    assert shell.workspace.settings_page.tabs.currentWidget() is shell.workspace.settings_page.costs


def test_the_chart_shows_thirty_days_and_is_read_with_the_arrow_keys(shell: Shell) -> None:
    page = opened(shell)
    chart: BarChart = page.chart
    chart.setFocus()
    shell.qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert chart.chosen == f"{TODAY.day} {TODAY:%b}: $0.25"
    shell.qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert chart.chosen.endswith(": $0.50")
    assert chart.accessibleDescription() == chart.chosen
    shell.qtbot.mouseClick(page.measures["tokens"], Qt.MouseButton.LeftButton)
    assert "Tokens" in chart.accessibleName()
    shell.qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert chart.chosen.endswith(": 450")


def test_a_table_is_saved_as_csv_and_a_failure_to_save_is_told(shell: Shell, tmp_path: Path) -> None:
    page = opened(shell)
    page.show_by("model")
    page.save_csv(tmp_path / "usage.csv")
    lines = (tmp_path / "usage.csv").read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("model,requests,input_tokens,output_tokens,cache_hit_rate,cost_usd,unpriced_requests")
    assert lines[1].startswith("m,2,400,50,0.7500,0.500000,0")
    assert lines[2].startswith("blind,2,400,50,0.7500,,2")
    assert "usage.csv is saved." in shell.window.toasts.texts()
    page.save_csv(tmp_path / "no" / "folder.csv")
    assert any("could not be saved" in t for t in shell.window.toasts.texts())


def test_a_title_never_becomes_a_formula_in_a_spreadsheet() -> None:
    text = as_csv("session", (Line("c1", '=HYPERLINK("http://x")'), Line("c2", "a, b")))
    assert '"\'=HYPERLINK(""http://x"")"' in text
    assert '"a, b"' in text


def test_nothing_used_and_a_broken_ledger_are_states_of_their_own(qtbot: QtBot, tmp_path: Path) -> None:
    host = UsageHost()
    host.ledger.rows = dict.fromkeys(host.ledger.rows, ())
    shell = Shell(qtbot, tmp_path, host)
    page = opened(shell)
    shell.until(page._none.isVisible)
    host.ledger.fault = KnownFault("database_error", "the disk is gone")
    shell.workspace.usage.model.refresh()
    shell.until(lambda: shell.workspace.usage.model.error is not None)
    host.ledger.fault = None
    shell.press("Try again", page)
    shell.until(lambda: shell.workspace.usage.model.error is None)
    shell.close()


def test_figures_read_well() -> None:
    assert [money(x) for x in (0, 0.0004, 0.5, 12.345, 12345)] == ["$0", "$0.0004", "$0.50", "$12.35", "$12,345"]
    assert [short(x) for x in (0, 999, 1500, 2_000_000, 3.2e9)] == ["0", "999", "1.5k", "2M", "3.2G"]
    assert [nice(x) for x in (0, 0.7, 1, 1.1, 2.1, 34, 99)] == [1.0, 1.0, 1.0, 2.0, 2.5, 50.0, 100.0]
    assert Gauge("x", None).tone == "accent"
    assert limits_of(()) == ()
    assert Limit("day", "usd", 1.0, None).share is None
    assert reason_words("failed_lately:overloaded") == "failed lately: overloaded"
    assert reason_words("something_new") == "something new"


def test_budgets_are_set_where_the_schema_says(shell: Shell) -> None:
    shell.workspace.show_settings("costs")
    tab = shell.workspace.settings_page.costs
    assert {"budgets.day_usd", "quotas.tier", "cache.answers", "routing.compact_percent"} <= set(tab.rows)
    assert not set(tab.rows) & set(shell.workspace.settings_page.general.rows)
    tab.rows["budgets.day_usd"].control.setValue(2.5)
    shell.until(lambda: shell.host.settings.current().budgets.day_usd == 2.5)


def test_routes_are_made_changed_explained_and_removed(shell: Shell) -> None:
    shell.workspace.show_settings("costs")
    routes = shell.workspace.settings_page.costs.routes
    shell.qtbot.mouseClick(routes.example_button, Qt.MouseButton.LeftButton)
    shell.until(lambda: shell.host.settings.current().routes == EXAMPLE)
    shell.until(lambda: shell.host.settings.current().budgets.downgrade == DOWNGRADE)
    shell.until(lambda: [c.route.name for c in routes.cards] == [r.name for r in EXAMPLE])
    assert not routes.example_button.isVisible()

    def card(name: str) -> Any:
        return next(c for c in routes.cards if c.route.name == name)

    card("chat").explain.click()
    shell.until(lambda: card("chat").said == "a: answers\nb: no key, the request is too long for it")
    card("code").explain.click()
    shell.until(lambda: bool(card("code").said))
    routes.edit(card("sampling").route)
    editor = routes.editor
    assert editor is not None
    assert editor.name.hasFocus()
    editor.models.setPlainText("\n".join(["local", "anthropic/claude-haiku-5-5", "", "local"]))
    editor.save.click()
    wanted = tuple(reversed(EXAMPLE[6].chain))
    shell.until(lambda: shell.host.settings.current().routes[6] == Route("sampling", wanted))
    remove = next(b for b in card("title").findChildren(QAbstractButton) if b.accessibleName() == "Remove route title")
    remove.click()
    shell.until(lambda: "title" not in [c.route.name for c in routes.cards])


def test_a_route_that_cannot_be_is_refused_where_it_is_written(shell: Shell) -> None:
    shell.workspace.show_settings("costs")
    routes = shell.workspace.settings_page.costs.routes
    for name, models, wrong in (
        ("Local!", "a", ("A name has", "")), ("local", "a", ("A name has", "")), ("ok", " \n", ("", "A route needs")),
    ):  # fmt: skip
        routes.edit(None)
        editor = routes.editor
        assert editor is not None
        editor.name.setText(name)
        editor.models.setPlainText(models)
        editor.save.click()
        assert all(e.startswith(w) and bool(e) == bool(w) for e, w in zip(editor.errors, wrong, strict=True))
    editor.models.setPlainText("a, b")
    editor.save.click()
    shell.until(lambda: shell.host.settings.current().routes == (Route("ok", (Link("a"), Link("b"))),))
    shell.until(lambda: len(routes.cards) == 1)
    routes.edit(None)
    editor = routes.editor
    assert editor is not None
    editor.name.setText("ok")
    editor.models.setPlainText("c")
    editor.save.click()
    assert editor.errors[0].startswith("There is a route")
