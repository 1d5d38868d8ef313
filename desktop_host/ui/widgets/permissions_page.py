"""What was allowed or denied for good, with a way to take it back."""

from __future__ import annotations

from desktop_host.core.permissions import Effect, Rule
from desktop_host.i18n import tr
from desktop_host.ui.theme import Space
from desktop_host.ui.viewmodels.settings import Permissions
from desktop_host.ui.widgets.page import Empty, Page
from desktop_host.ui.widgets.pieces import Card, button, clear, column, label, pill, row

_TONES = {Effect.ALLOW: "success", Effect.ASK: "info", Effect.DENY: "danger"}


class PermissionsTab(Page):
    """One row a standing rule."""

    def __init__(self, permissions: Permissions) -> None:
        super().__init__(inside=True)
        self._permissions = permissions
        self._list = column(space=Space.S)
        self.add(label(tr("permissions.lead"), "muted"), self._list)
        permissions.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        clear(self._list)
        for rule in self._permissions.rules:
            self._list.addWidget(self._row(rule))
        if not self._permissions.rules and self._permissions.loaded:
            self._list.addWidget(Empty("shield", tr("permissions.none"), tr("permissions.none.text")))

    def _row(self, rule: Rule) -> Card:
        card = Card(margin=Space.M)
        revoke = button(tr("permissions.revoke"), lambda: self._permissions.revoke(rule.pattern), role="quiet")
        revoke.setAccessibleName(tr("permissions.revoke_of", pattern=rule.pattern))
        effect = pill(tr(f"permissions.{rule.effect.value}"), _TONES[rule.effect])
        head = row(effect, label(rule.pattern, "code", selectable=True), revoke)
        head.setStretch(1, 1)
        card.add(head)
        if rule.arguments:
            card.add(label(tr("permissions.arguments", pattern=rule.arguments), "caption"))
        if rule.tool_digest:
            card.add(label(tr("permissions.bound"), "caption"))
        if rule.origin not in ("person", ""):
            card.add(label(tr("permissions.origin", origin=rule.origin), "caption"))
        return card
