"""The looks of the window: palette, style sheet, type and icons, switchable while it runs.

Widgets say what they are (`role` property, `theme.font(Type.HEADING)`, `set_icon(button, "stop")`); what that
looks like is decided here. After a switch every icon set by `set_icon` is redrawn; whoever paints by hand
listens to `theme.changed`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QPushButton, QWidget

from desktop_host.core.places import shipped
from desktop_host.ui.sheet import style_sheet
from desktop_host.ui.tokens import BASE_ICON, COLORS, Colors, Scheme, Space, Type

SCALE_RANGE = (80, 200)
PLAIN = ("Sans Serif", "Sans", "DejaVu Sans", "")
"""Families that a desktop without a theme names; ours are better to read."""
LATIN = ("Inter", "Noto Sans", "Cantarell", "Ubuntu", "Source Sans 3", "Noto Sans CJK SC", "DejaVu Sans")
CHINESE = ("PingFang SC", "Microsoft YaHei UI", "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei")


class Theme(QObject):
    """The current looks. One a process: a palette belongs to the application."""

    changed = Signal()
    """Colours or sizes are others; icons set by `set_icon` are redrawn already."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = "system"
        """As set: `system`, `light`, `dark` or `high_contrast`."""
        self.scheme = Scheme.LIGHT
        self.colors: Colors = COLORS[self.scheme]
        self.scale = 100
        """Font scale in percent."""
        self._following = False
        self._families: list[str] = []
        self._mono: list[str] = []

    def apply(self, wanted: str | None = None, scale: int | None = None) -> None:
        """Dress the application; None leaves that part as it is. Needs a QApplication."""
        self.wanted = self.wanted if wanted is None else wanted
        low, high = SCALE_RANGE
        self.scale = self.scale if scale is None else max(low, min(high, scale))
        if not self._following:
            self._following = True
            QGuiApplication.styleHints().colorSchemeChanged.connect(self._system_changed)
        self.scheme = self._resolve()
        self.colors = COLORS[self.scheme]
        app = cast(QApplication, QApplication.instance())
        if app.style() is None or app.style().objectName().lower() != "fusion":
            app.setStyle("Fusion")
        app.setPalette(palette(self.colors))
        app.setFont(self.font(Type.BODY))
        app.setStyleSheet(style_sheet(self.colors, self.px, self.mono_families()))
        for widget in app.allWidgets():
            _redraw(widget)
        self.changed.emit()

    @property
    def dark(self) -> bool:
        """Whether the background is dark (for code colours)."""
        return self.scheme is not Scheme.LIGHT

    def px(self, size: int) -> int:
        """Pixels of a token at the current font scale."""
        return round(size * self.scale / 100)

    def font(self, kind: Type = Type.BODY) -> QFont:
        """The font of a step of the type scale."""
        font = QFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont))
        font.setFamilies(self._text_families())
        font.setPixelSize(self.px(kind.px))
        font.setWeight(QFont.Weight(kind.weight))
        return font

    def mono(self, kind: Type = Type.CAPTION) -> QFont:
        """The fixed-width font, for code, commands and logs."""
        font = QFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setFamilies(self.mono_families())
        font.setPixelSize(self.px(kind.px))
        return font

    def mono_families(self) -> list[str]:
        """The fixed-width family, then the one for Chinese: fallback would pick its bold cut."""
        if not self._mono:
            fixed = QFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
            fixed.setStyleHint(QFont.StyleHint.Monospace)
            # Its name may be an alias ("monospace"), which a list of names would pass over.
            self._mono = [QFontInfo(fixed).family(), *self._text_families()[1:]]
        return self._mono

    def color(self, role: str) -> QColor:
        """The colour of a role of `Colors`, e.g. `danger`."""
        return QColor(getattr(self.colors, role))

    def _text_families(self) -> list[str]:
        """The desktop's own family (on a bare one the best there is), then one for Chinese.

        Chinese needs a named family: left to itself, fallback picks Japanese forms and sometimes the bold cut.
        """
        if not self._families:
            own = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
            there = set(QFontDatabase.families())
            latin = [f for f in LATIN if f in there][:1] if own in PLAIN else [own]
            self._families = [*latin, *[f for f in CHINESE if f in there][:1]] or [own]
        return self._families

    def _resolve(self) -> Scheme:
        if self.wanted != "system":
            return Scheme(self.wanted)
        # Unknown (no platform theme) means light: most bare desktops are.
        dark = QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark
        return Scheme.DARK if dark else Scheme.LIGHT

    def _system_changed(self) -> None:
        if self.wanted == "system":
            self.apply()


def palette(c: Colors) -> QPalette:
    """The Fusion palette of a set of colours."""
    p = QPalette()
    roles = {
        QPalette.ColorRole.Window: c.window,
        QPalette.ColorRole.WindowText: c.text,
        QPalette.ColorRole.Base: c.base,
        QPalette.ColorRole.AlternateBase: c.sunken,
        QPalette.ColorRole.Text: c.text,
        QPalette.ColorRole.Button: c.raised,
        QPalette.ColorRole.ButtonText: c.text,
        QPalette.ColorRole.BrightText: c.danger,
        QPalette.ColorRole.ToolTipBase: c.raised,
        QPalette.ColorRole.ToolTipText: c.text,
        QPalette.ColorRole.PlaceholderText: c.muted,
        QPalette.ColorRole.Highlight: c.accent,
        QPalette.ColorRole.HighlightedText: c.on_accent,
        QPalette.ColorRole.Link: c.link,
        QPalette.ColorRole.LinkVisited: c.link,
        QPalette.ColorRole.Accent: c.accent,
        QPalette.ColorRole.Light: c.border,
        QPalette.ColorRole.Midlight: c.border,
        QPalette.ColorRole.Mid: c.border_strong,
        QPalette.ColorRole.Dark: c.border_strong,
        QPalette.ColorRole.Shadow: c.border_strong,
    }
    for role, value in roles.items():
        p.setColor(role, QColor(value))
    for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText):
        p.setColor(QPalette.ColorGroup.Disabled, role, QColor(c.faint))
    return p


# ---- icons


@lru_cache(maxsize=128)
def _svg(name: str) -> bytes:
    return shipped("resources", "icons", f"{name}.svg").read_bytes()


@lru_cache(maxsize=1024)
def _drawn(name: str, color: str, side: int) -> QPixmap:
    renderer = QSvgRenderer(QByteArray(_svg(name).replace(b"currentColor", color.encode())))
    pixmap = QPixmap(side, side)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, side, side))
    painter.end()
    return pixmap


def icon_pixmap(name: str, role: str = "text", size: int = BASE_ICON) -> QPixmap:
    """An icon of `resources/icons` in the colour of a role; `size` in pixels at 100 %."""
    app = cast(QGuiApplication | None, QGuiApplication.instance())
    ratio = app.devicePixelRatio() if app else 1.0
    pixmap = QPixmap(_drawn(name, getattr(theme.colors, role), round(theme.px(size) * ratio)))
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def icon(name: str, role: str = "text", size: int = BASE_ICON, gap: int = 0) -> QIcon:
    """The same as a QIcon, with its disabled form and `gap` pixels before a text. Prefer `set_icon`.

    Before a text it stands a little lower: the middle of the letters is below that of their line.
    """
    made = QIcon(_spaced(icon_pixmap(name, role, size), gap))
    made.addPixmap(_spaced(icon_pixmap(name, "faint", size), gap), QIcon.Mode.Disabled)
    return made


def _spaced(pixmap: QPixmap, gap: int) -> QPixmap:
    if not gap:
        return pixmap
    ratio = pixmap.devicePixelRatio()
    wide = QPixmap(pixmap.width() + round(theme.px(gap) * ratio), pixmap.height())
    wide.setDevicePixelRatio(ratio)
    wide.fill(Qt.GlobalColor.transparent)
    painter = QPainter(wide)
    painter.drawPixmap(0, theme.px(1), pixmap)
    painter.end()
    return wide


def set_icon(widget: QAbstractButton | QLabel, name: str, role: str = "text", size: int = BASE_ICON) -> None:
    """Give a button or label an icon that follows the theme."""
    widget.setProperty("themeIcon", (name, role, size))
    _redraw(widget)


def _redraw(widget: QWidget) -> None:
    spec = widget.property("themeIcon")
    if not spec:
        return
    name, role, size = spec
    if isinstance(widget, QLabel):
        widget.setPixmap(icon_pixmap(name, role, size))
    elif isinstance(widget, QAbstractButton):
        gap = Space.XS if isinstance(widget, QPushButton) and widget.text() else 0
        widget.setIcon(icon(name, role, size, gap))
        widget.setIconSize(QSize(theme.px(size + gap), theme.px(size)))


def redraw_icon(widget: QAbstractButton) -> None:
    """Draw a button's icon again: it says another text now, or none."""
    _redraw(widget)


def set_role(widget: QWidget, role: str) -> None:
    """Say what a widget is (`card`, `primary`, `quiet`, `danger`, `muted`, …); the style sheet does the rest."""
    if widget.property("role") == role:
        return
    widget.setProperty("role", role)
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)


theme = Theme()

__all__ = ["Space", "Theme", "Type", "icon", "icon_pixmap", "palette", "redraw_icon", "set_icon", "set_role", "theme"]
