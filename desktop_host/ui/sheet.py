"""The style sheet, made of tokens. Small on purpose: the palette does most; this draws what Fusion cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from desktop_host.core.places import shipped
from desktop_host.ui.tokens import RADIUS, Colors, Space, Type


def quoted(families: Sequence[str]) -> str:
    """Families as a style sheet names them, with the generic fixed-width one last."""
    return ", ".join((*(f'"{name}"' for name in families), "monospace"))


def _edge(tone: str, ground: str) -> str:
    """The edge of a tinted card: between its ground and its tone, as its words and sign say the rest."""
    if ground == "#000000":
        return tone  # high contrast
    pairs = ((int(tone[at : at + 2], 16), int(ground[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(0.4 * a + 0.6 * b):02x}" for a, b in pairs)


def style_sheet(c: Colors, px: Callable[[int], int], mono: Sequence[str]) -> str:
    """The sheet for a set of colours; `px` turns token pixels into real ones; `mono`: fixed-width families."""
    code = quoted(mono)
    xs, s, m = px(Space.XS), px(Space.S), px(Space.M)
    r = px(RADIUS)
    caption, heading, title = (px(t.px) for t in (Type.CAPTION, Type.HEADING, Type.TITLE))
    icons = shipped("resources", "icons").as_posix()
    tone = "light" if c.window > "#808080" else "dark"
    return f"""
QToolTip {{ background: {c.raised}; color: {c.text}; border: 1px solid {c.border_strong}; padding: {xs}px {s}px; }}
QLabel {{ background: transparent; }}
QLabel[role="title"] {{ font-size: {title}px; font-weight: 600; }}
QLabel[role="heading"] {{ font-size: {heading}px; font-weight: 600; }}
QLabel[role="strong"] {{ font-weight: 600; }}
QLabel[role="muted"] {{ color: {c.muted}; }}
QLabel[role="caption"] {{ color: {c.muted}; font-size: {caption}px; }}
QLabel[role="danger"] {{ color: {c.danger}; }}
QLabel[role="warning"] {{ color: {c.warning}; }}
QLabel[role="success"] {{ color: {c.success}; }}
QLabel[role="code"], QLineEdit[role="code"] {{ font-family: {code}; font-size: {caption}px; }}
QLabel[role="pill"], QLabel[role="pill-success"], QLabel[role="pill-warning"], QLabel[role="pill-danger"],
QLabel[role="pill-info"] {{ border-radius: {px(9)}px; padding: {px(2)}px {s}px; font-size: {caption}px; }}
QLabel[role="pill"] {{ background: {c.sunken}; color: {c.muted}; border: 1px solid {c.border}; }}
QLabel[role="pill-success"] {{ background: {c.success_soft}; color: {c.success}; border: 1px solid {c.success_soft}; }}
QLabel[role="pill-warning"] {{ background: {c.warning_soft}; color: {c.warning}; border: 1px solid {c.warning_soft}; }}
QLabel[role="pill-danger"] {{ background: {c.danger_soft}; color: {c.danger}; border: 1px solid {c.danger_soft}; }}
QLabel[role="pill-info"] {{ background: {c.info_soft}; color: {c.info}; border: 1px solid {c.info_soft}; }}

QFrame[role="card"] {{ background: {c.raised}; border: 1px solid {c.border}; border-radius: {r}px; }}
QFrame[role="card-warning"] {{ background: {c.warning_soft}; border: 1px solid {_edge(c.warning, c.warning_soft)};
  border-radius: {r}px; }}
QFrame[role="card-danger"] {{ background: {c.danger_soft}; border: 1px solid {_edge(c.danger, c.danger_soft)};
  border-radius: {r}px; }}
QFrame[role="composer"], QFrame[role="composer-focused"] {{ background: {c.base}; border: 1px solid {c.border_strong};
  border-radius: {px(12)}px; }}
QFrame[role="composer-focused"] {{ border-color: {c.focus}; }}
QFrame[role="card-ask"] {{ background: {c.raised}; border: 1px solid {c.accent}; border-radius: {r}px; }}
QFrame[role="card-failure"] {{ background: {c.raised}; border: 1px solid {c.danger}; border-radius: {r}px; }}
QFrame[role="card-info"] {{ background: {c.info_soft}; border: 1px solid {_edge(c.info, c.info_soft)};
  border-radius: {r}px; }}
QFrame[role="well"] {{ background: {c.sunken}; border: 1px solid {c.border}; border-radius: {r}px; }}
QFrame[role="toast"] {{ background: {c.raised}; border: 1px solid {c.border_strong}; border-radius: {r}px; }}
QFrame[role="line"] {{ background: {c.border}; border: none; max-height: 1px; min-height: 1px; }}
QWidget[role="sidebar"] {{ background: {c.sidebar}; }}
QWidget[role="aside"] {{ background: {c.window}; }}
QFrame[role="sidebar"] {{ background: {c.sidebar}; border: none; border-right: 1px solid {c.border}; }}

QPushButton, QToolButton {{ background: {c.raised}; color: {c.text}; border: 1px solid {c.border_strong};
  border-radius: {px(6)}px; padding: {px(5)}px {m}px; min-height: {px(18)}px; }}
QToolButton {{ padding: {px(5)}px; }}
QPushButton:hover, QToolButton:hover {{ background: {c.hover}; }}
QPushButton:pressed, QToolButton:pressed {{ background: {c.border}; }}
QPushButton:focus, QToolButton:focus {{ border: 2px solid {c.focus}; padding: {px(5) - 1}px {m - 1}px; }}
QToolButton:focus {{ padding: {px(5) - 1}px; }}
QPushButton:disabled, QToolButton:disabled {{ color: {c.faint}; border-color: {c.border}; background: {c.window}; }}
QPushButton[role="primary"] {{ background: {c.accent}; color: {c.on_accent}; border-color: {c.accent};
  font-weight: 600; }}
QPushButton[role="primary"]:hover {{ border-color: {c.text}; }}
QPushButton[role="primary"]:focus {{ border: 2px solid {c.text}; }}
QPushButton[role="primary"]:disabled {{ background: {c.hover}; color: {c.faint}; border-color: {c.hover}; }}
QPushButton[role="danger"] {{ color: {c.danger}; border-color: {c.danger}; }}
QPushButton[role="danger"]:hover {{ background: {c.danger_soft}; }}
QPushButton[role="quiet"], QToolButton[role="quiet"] {{ background: transparent; border-color: transparent; }}
QPushButton[role="quiet"]:hover, QToolButton[role="quiet"]:hover {{ background: {c.hover}; }}
QPushButton[role="quiet"]:focus, QToolButton[role="quiet"]:focus {{ border-color: {c.focus}; }}
QToolButton[role="quiet"]:checked {{ background: {c.accent_soft}; }}
QToolButton[role="in-field"] {{ background: transparent; border: none; padding: 0px; border-radius: {px(4)}px;
  min-height: 0px; }}
QToolButton[role="in-field"]:hover {{ background: {c.hover}; }}
QPushButton[role="link"] {{ background: transparent; border-color: transparent; color: {c.link}; padding: {xs}px;
  text-align: left; }}
QPushButton[role="link"]:hover {{ text-decoration: underline; }}
QPushButton[role="link"]:focus {{ border-color: {c.focus}; }}
QPushButton[role="name"] {{ background: transparent; border: 2px solid transparent; font-weight: 600;
  padding: {px(2)}px {xs}px {px(2)}px 0px; text-align: left; }}
QPushButton[role="name"]:hover {{ color: {c.link}; }}
QPushButton[role="name"]:focus {{ border-color: {c.focus}; padding-left: {xs}px; }}
QPushButton[role="suggestion"] {{ text-align: left; padding: {s}px {m}px; }}
QPushButton[role="nav"], QPushButton[role="nav-folded"] {{ background: transparent; border: 2px solid transparent;
  text-align: left; padding: {px(6)}px {s}px; }}
QPushButton[role="nav-folded"] {{ text-align: center; padding: {px(6)}px 0px; }}
QPushButton[role="nav"]:hover, QPushButton[role="nav-folded"]:hover {{ background: {c.hover}; }}
QPushButton[role="nav"]:checked, QPushButton[role="nav-folded"]:checked {{ background: {c.accent_soft};
  font-weight: 600; }}
QPushButton[role="nav"]:disabled, QPushButton[role="nav-folded"]:disabled {{ color: {c.faint};
  background: transparent; }}
QPushButton[role="nav"]:focus, QPushButton[role="nav-folded"]:focus {{ border-color: {c.focus}; }}
QPushButton[role="filter"] {{ background: transparent; border-color: {c.border}; border-radius: {px(12)}px;
  color: {c.muted}; padding: {px(3)}px {m}px; }}
QPushButton[role="filter"]:hover {{ background: {c.hover}; }}
QPushButton[role="filter"]:checked {{ background: {c.accent_soft}; border-color: {c.accent}; color: {c.text}; }}
QPushButton[role="filter"]:focus {{ border: 2px solid {c.focus}; padding: {px(2)}px {m - 1}px; }}
QFrame[role="drop"] {{ background: {c.accent_soft}; border: 2px dashed {c.accent}; border-radius: {r}px; }}
QToolButton::menu-indicator, QPushButton::menu-indicator {{ image: none; }}

QLineEdit, QPlainTextEdit, QTextEdit, QSpinBox, QDoubleSpinBox, QComboBox {{ background: {c.base}; color: {c.text};
  border: 1px solid {c.border_strong}; border-radius: {px(6)}px; padding: {px(5)}px {s}px;
  selection-background-color: {c.accent}; selection-color: {c.on_accent}; }}
QComboBox {{ padding: {px(4)}px {s}px; }}
QLineEdit, QAbstractSpinBox, QComboBox {{ min-height: {px(18)}px; }}
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QAbstractSpinBox:focus, QComboBox:focus {{
  border: 2px solid {c.focus}; padding: {px(5) - 1}px {s - 1}px; }}
QComboBox:focus {{ padding: {px(4) - 1}px {s - 1}px; }}
QLineEdit:disabled, QPlainTextEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled {{ color: {c.faint};
  background: {c.window}; border-color: {c.border}; }}
QLineEdit[state="error"], QPlainTextEdit[state="error"] {{ border-color: {c.danger}; }}
QTextEdit[role="plain"], QPlainTextEdit[role="plain"], QTextBrowser[role="plain"] {{ background: transparent;
  border: none; padding: 0px; }}
QPlainTextEdit[role="code"], QTextEdit[role="code"] {{ background: {c.sunken}; border-color: {c.border};
  font-family: {code}; font-size: {caption}px; }}
QPlainTextEdit[role="code"][readOnly="false"], QTextEdit[role="code"][readOnly="false"] {{ background: {c.base};
  border-color: {c.border_strong}; }}
QPlainTextEdit[role="code"]:focus {{ border-color: {c.focus}; }}
QComboBox::drop-down {{ border: none; width: {px(24)}px; }}
QComboBox::down-arrow {{ image: url({icons}/arrow-{tone}.svg); width: {px(14)}px; height: {px(14)}px; }}
QComboBox QAbstractItemView {{ background: {c.raised}; border: 1px solid {c.border_strong}; outline: none;
  selection-background-color: {c.accent_soft}; selection-color: {c.text}; }}
QAbstractSpinBox QLineEdit {{ border: none; padding: 0px 0px 0px {px(6)}px; background: transparent;
  min-height: 0px; }}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{ width: {px(20)}px; border: none;
  background: transparent; }}
QAbstractSpinBox::up-arrow {{ image: url({icons}/arrow-up-{tone}.svg); width: {px(12)}px; height: {px(12)}px; }}
QAbstractSpinBox::down-arrow {{ image: url({icons}/arrow-{tone}.svg); width: {px(12)}px; height: {px(12)}px; }}

QCheckBox, QRadioButton {{ spacing: {s}px; background: transparent; border: none; padding: {px(2)}px 0px; }}
QCheckBox::indicator {{ width: {px(16)}px; height: {px(16)}px; background: {c.base};
  border: 1px solid {c.border_strong}; border-radius: {px(4)}px; }}
QCheckBox::indicator:checked {{ background: {c.accent}; border-color: {c.accent};
  image: url({icons}/check-{tone}.svg); }}
QCheckBox::indicator:disabled {{ background: {c.hover}; border-color: {c.border}; }}
QCheckBox::indicator:focus {{ border: 2px solid {c.focus}; }}
QCheckBox::indicator:checked:focus {{ border: 2px solid {c.text}; }}
QCheckBox:disabled, QRadioButton:disabled {{ color: {c.faint}; }}

QSlider {{ min-height: {px(24)}px; background: transparent; }}
QSlider::groove:horizontal {{ height: {px(4)}px; background: {c.border_strong}; border-radius: {px(2)}px; }}
QSlider::sub-page:horizontal {{ background: {c.accent}; border-radius: {px(2)}px; }}
QSlider::sub-page:horizontal:disabled {{ background: {c.faint}; }}
QSlider::handle:horizontal {{ width: {px(12)}px; height: {px(12)}px; margin: -{px(6)}px 0px; background: {c.accent};
  border: 2px solid {c.raised}; border-radius: {px(7)}px; }}
QSlider::handle:horizontal:focus {{ border-color: {c.text}; }}
QSlider::handle:horizontal:disabled {{ background: {c.faint}; }}
QListView, QTreeView, QTableView {{ background: {c.base}; border: 1px solid {c.border}; border-radius: {r}px;
  outline: none; }}
QListView[role="plain"], QTreeView[role="plain"] {{ background: transparent; border: none; }}
QListView::item {{ border-radius: {px(6)}px; padding: {px(3)}px; }}
QTreeView::item {{ padding: {px(3)}px; }}
QListView::item:hover, QTreeView::item:hover {{ background: {c.hover}; color: {c.text}; }}
QListView::item:selected, QTreeView::item:selected {{ background: {c.accent_soft}; color: {c.text}; }}
QHeaderView {{ background: transparent; border: none; }}
QHeaderView::section:first {{ border-top-left-radius: {r - 1}px; }}
QHeaderView::section:last {{ border-top-right-radius: {r - 1}px; }}
QHeaderView::section {{ background: {c.window}; color: {c.muted}; border: none; border-bottom: 1px solid {c.border};
  padding: {xs}px {s}px; }}

QTabWidget::pane {{ border: none; border-top: 1px solid {c.border}; }}
QTabBar {{ background: transparent; qproperty-drawBase: 0; outline: none; }}
QTabBar::tab {{ background: transparent; color: {c.muted}; border: 2px solid transparent; padding: {px(6)}px {m}px;
  margin-right: {px(2)}px; }}
QTabBar::tab:selected {{ color: {c.text}; border-bottom-color: {c.accent}; }}
QTabBar::tab:hover {{ color: {c.text}; background: {c.hover}; }}
QTabBar::tab:focus {{ border-color: {c.focus}; border-radius: {px(4)}px; }}

QTabBar::tear {{ width: 0px; border: none; }}
QTabBar::scroller {{ width: {px(48)}px; }}
QTabBar QToolButton {{ background: {c.window}; border: none; padding: 0px; min-height: 0px; }}
QTabBar QToolButton::left-arrow {{ image: url({icons}/arrow-left-{tone}.svg); width: {px(14)}px; height: {px(14)}px; }}
QTabBar QToolButton::right-arrow {{ image: url({icons}/arrow-right-{tone}.svg); width: {px(14)}px;
  height: {px(14)}px; }}

QMessageBox QLabel#qt_msgbox_label {{ font-size: {heading}px; font-weight: 600; min-width: {px(280)}px; }}
QMessageBox QLabel#qt_msgbox_informativelabel {{ color: {c.muted}; min-width: {px(280)}px; }}

QMenu {{ background: {c.raised}; color: {c.text}; border: 1px solid {c.border_strong}; padding: {xs}px; }}
QMenu::item {{ padding: {px(6)}px {px(28)}px {px(6)}px {px(24)}px; border-radius: {px(4)}px; }}
QMenu::icon {{ padding-left: {s}px; }}
QMenu::item:selected {{ background: {c.accent_soft}; color: {c.text}; }}
QMenu::item:disabled {{ color: {c.faint}; }}
QMenu::separator {{ height: 1px; background: {c.border}; margin: {xs}px {s}px; }}

QProgressBar {{ background: {c.hover}; border: none; border-radius: {px(2)}px; height: {px(4)}px;
  max-height: {px(4)}px; text-align: center; }}
QProgressBar::chunk {{ background: {c.accent}; border-radius: {px(2)}px; }}

QScrollArea {{ background: transparent; border: none; }}
QScrollArea > QWidget > QWidget[role="page"] {{ background: transparent; }}
QScrollBar:vertical {{ background: transparent; width: {px(12)}px; margin: 0px; }}
QScrollBar:horizontal {{ background: transparent; height: {px(12)}px; margin: 0px; }}
QScrollBar::handle {{ background: {c.border_strong}; border-radius: {px(4)}px; margin: {px(2)}px; }}
QScrollBar::handle:disabled {{ background: transparent; }}
QScrollBar::handle:vertical {{ min-height: {px(32)}px; }}
QScrollBar::handle:horizontal {{ min-width: {px(32)}px; }}
QScrollBar::handle:hover {{ background: {c.muted}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0px; height: 0px; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QSplitter::handle {{ background: {c.border}; }}
"""
