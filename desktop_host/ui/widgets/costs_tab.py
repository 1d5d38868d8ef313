"""Budgets, quotas, kept answers, and the routes: which models do a task, in which order."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from desktop_host.core.errors import HostError
from desktop_host.core.routes import DOWNGRADE, EXAMPLE, NAME, RESERVED, Considered, Link, Route
from desktop_host.i18n import current, tr, trn
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.lifetime import while_alive
from desktop_host.ui.viewmodels.models import Models
from desktop_host.ui.viewmodels.settings import ProfileSettings
from desktop_host.ui.widgets.flow import Flow
from desktop_host.ui.widgets.forms import Field, Lines
from desktop_host.ui.widgets.page import Page, told
from desktop_host.ui.widgets.pieces import Card, button, clear, column, label, pill, row
from desktop_host.ui.widgets.setting_row import SettingRow, section_card

SECTIONS = ("budgets", "quotas", "cache", "routing")


class CostsTab(Page):
    """See the module."""

    def __init__(self, settings: ProfileSettings, models: Models) -> None:
        super().__init__(inside=True)
        self.rows: dict[str, SettingRow] = {}
        for section in SECTIONS:
            self.add(label(tr(f"settings.{section}"), "heading"))
            card, rows = section_card(settings, section)
            self.rows |= rows
            self.add(card)
            self.column.addSpacing(Space.S)
        self.routes = Routes(settings, models)
        self.add(self.routes)


class Routes(QWidget):
    """The table of routes as a list that can be edited."""

    def __init__(self, settings: ProfileSettings, models: Models) -> None:
        super().__init__()
        self._settings, self._models = settings, models
        self._drawn: tuple[Route, ...] | None = None
        self._body = column(space=Space.M)
        outer = column(self, space=Space.M)
        outer.addWidget(label(tr("routes.title"), "heading"))
        outer.addWidget(label(tr("routes.lead"), "muted"))
        outer.addLayout(self._body)
        self._error = label("", "danger")
        self._error.hide()
        outer.addWidget(self._error)
        self.add_button = button(tr("routes.add"), lambda: self.edit(None), icon="plus")
        self.example_button = button(tr("routes.example"), self._use_example, role="quiet")
        outer.addWidget(row_of(self.add_button, self.example_button))
        self.editor: RouteEditor | None = None
        settings.changed.connect(lambda _key: self.show_routes())
        self.show_routes()

    @property
    def cards(self) -> tuple[RouteCard, ...]:
        """The routes that are listed."""
        items = (self._body.itemAt(i) for i in range(self._body.count()))
        return tuple(w for i in items if i is not None and isinstance(w := i.widget(), RouteCard))

    def show_routes(self) -> None:
        """Draw the table where it is another."""
        routes = self._settings.current.routes
        if routes == self._drawn:
            return
        self._drawn = routes
        clear(self._body)
        self.editor = None
        if not routes:
            self._body.addWidget(label(tr("routes.none"), "muted"))
        for route in routes:
            self._body.addWidget(RouteCard(self._settings, route, self.edit, self._remove))
        self.example_button.setVisible(not routes)

    def edit(self, route: Route | None) -> None:
        """Open the editor of a route, or (None) of a new one."""
        if self.editor is not None:
            self._body.removeWidget(self.editor)
            self.editor.hide()
            self.editor.deleteLater()
        known = tuple(e.ref for e in self._models.entries if e.ready)
        self.editor = RouteEditor(route, tuple(r.name for r in self._settings.current.routes if r != route), known)
        self.editor.saved.connect(lambda made: self._keep(route, made))
        self.editor.cancelled.connect(lambda: self._close())
        at = next((i for i, c in enumerate(self.cards) if c.route == route), len(self.cards))
        self._body.insertWidget(at + 1 if route else at, self.editor)
        self.editor.name.setFocus()

    def _close(self) -> None:
        self._drawn = None
        self.show_routes()
        self.add_button.setFocus()

    def _keep(self, old: Route | None, made: Route) -> None:
        routes = self._settings.current.routes
        new = tuple(made if r == old else r for r in routes) if old else (*routes, made)
        self._put(new)

    def _remove(self, route: Route) -> None:
        self._put(tuple(r for r in self._settings.current.routes if r != route))

    def _use_example(self) -> None:
        self._put(EXAMPLE)
        if not self._settings.current.budgets.downgrade:
            self._settings.set("budgets.downgrade", DOWNGRADE, while_alive(self, self._failed))

    def _put(self, routes: tuple[Route, ...]) -> None:
        self._error.hide()
        self._settings.put_routes(routes, lambda: None, while_alive(self, self._failed))

    def _failed(self, error: HostError) -> None:
        self._error.setText(" ".join(told(error)))
        self._error.show()


class RouteCard(Card):
    """One route: its models in order, and what it would do now."""

    def __init__(
        self,
        settings: ProfileSettings,
        route: Route,
        edit: Callable[[Route], object],
        remove: Callable[[Route], object],
    ) -> None:
        super().__init__()
        self._settings, self.route = settings, route
        self.setAccessibleName(route.name)
        limited = sum(link != Link(link.model) for link in route.chain)
        head = row(label(route.name, "strong", wrap=False))
        if limited:
            head.addWidget(pill(trn("routes.conditions", limited)))
        head.addStretch(1)
        self.explain = button(tr("routes.test"), self._explain)
        change = button(tr("action.edit"), lambda: edit(route), icon="edit")
        away = button(tr("action.remove"), lambda: remove(route), role="quiet", icon="trash")
        for made, key in ((self.explain, "explain"), (change, "edit"), (away, "remove")):
            made.setAccessibleName(tr(f"routes.{key}", name=route.name))
        self._said = label("", "caption", selectable=True)
        self._said.hide()
        self.add(
            head, label(" → ".join(link.model for link in route.chain)), Flow(self.explain, change, away), self._said
        )

    @property
    def said(self) -> str:
        """What the route would do now, in words."""
        return self._said.text()

    def _explain(self) -> None:
        self._settings.explain_route(self.route.name, while_alive(self, self._tell), while_alive(self, self._failed))

    def _tell(self, found: tuple[Considered, ...]) -> None:
        self._said.setText("\n".join(f"{c.model}: {', '.join(map(reason_words, c.reasons))}" for c in found))
        self._said.show()

    def _failed(self, error: HostError) -> None:
        self._said.setText(" ".join(told(error)))
        self._said.show()


class RouteEditor(Card):
    """Name and models of a route; conditions of models that stay are kept."""

    saved = Signal(object)
    cancelled = Signal()

    def __init__(self, route: Route | None, taken: tuple[str, ...], known: tuple[str, ...]) -> None:
        super().__init__("card-info")
        self._old, self._taken = route, taken
        self.name = QLineEdit(route.name if route else "")
        self.models = Lines((link.model for link in route.chain) if route else (), rows=5)
        self.models.setPlaceholderText("\n".join(known[:3]))
        self._name = Field(tr("routes.name"), self.name)
        self._models = Field(tr("routes.models"), self.models, ", ".join(known[:8]))
        self.save = button(tr("routes.save"), self._save, role="primary")
        cancel = button(tr("action.cancel"), self.cancelled.emit)
        self.add(self._name, self._models, Flow(self.save, cancel))

    @property
    def errors(self) -> tuple[str, str]:
        """What is wrong with name and models."""
        return self._name.error, self._models.error

    def _save(self) -> None:
        name = self.name.text().strip()
        typed = [part.strip() for line in self.models.values() for part in line.split(",")]
        models = tuple(dict.fromkeys(m for m in typed if m))
        wrong = ""
        if not NAME.fullmatch(name) or name in RESERVED:
            wrong = tr("routes.bad_name")
        elif name in self._taken:
            wrong = tr("routes.taken")
        self._name.complain(wrong)
        self._models.complain("" if models else tr("routes.empty"))
        if not wrong and models:
            before = {link.model: link for link in self._old.chain} if self._old else {}
            self.saved.emit(Route(name, tuple(before.get(m, Link(m)) for m in models)))


def reason_words(code: str) -> str:
    """A reason of a route in words."""
    kind, _, detail = code.partition(":")
    for key in (f"routes.{kind}", f"routes.reason.{kind}"):
        if current().has(key):
            return tr(key, code=detail)
    return code.replace("_", " ")


def row_of(*parts: QWidget) -> QWidget:
    """Buttons that break their row where the room ends."""
    made = QWidget()
    made.setLayout(Flow(*parts))
    return made
