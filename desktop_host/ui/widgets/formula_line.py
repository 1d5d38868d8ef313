"""Formulas within a line of prose: letters or source at first, a picture on the text's own line once it is drawn."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRectF, Qt, QUrl
from PySide6.QtGui import (
    QFontMetricsF,
    QGuiApplication,
    QImage,
    QPainter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextImageFormat,
)
from PySide6.QtSvg import QSvgRenderer

from desktop_host.ui.formula_drawing import Drawing
from desktop_host.ui.formula_text import FORMULA_LINK, linked_source
from desktop_host.ui.theme import Type, theme
from desktop_host.ui.widgets.formula import Formula, the_drawer

_SOURCE = int(QTextFormat.Property.UserProperty.value) + 7
Align = QTextCharFormat.VerticalAlignment


def formula_of(form: QTextCharFormat) -> str | None:
    """The source of the formula that a run shows; None for other runs."""
    source = form.property(_SOURCE)
    if isinstance(source, str):
        return source
    return linked_source(form.anchorHref()) if form.isAnchor() else None


def waiting(form: QTextCharFormat, source: str) -> QTextCharFormat:
    """How the letters look until the picture is there: no link, but known again."""
    made = QTextCharFormat(form)
    made.setAnchor(False)
    made.clearProperty(int(QTextFormat.Property.AnchorHref.value))
    made.clearProperty(int(QTextFormat.Property.TextUnderlineStyle.value))
    made.setFontUnderline(False)
    made.clearForeground()
    made.setProperty(_SOURCE, source)
    made.setToolTip(source)
    return made


def holds(document: QTextDocument, source: str) -> bool:
    """Whether a formula waits in a document."""
    block = document.begin()
    while block.isValid():
        it = block.begin()
        while not it.atEnd():
            form = it.fragment().charFormat()
            if not form.isImageFormat() and form.property(_SOURCE) == source:
                return True
            it += 1
        block = block.next()
    return False


def settle(document: QTextDocument, start: int = 0) -> list[tuple[int, int]]:
    """Put pictures in place of all formulas that are drawn, and ask for the others; `(position, growth)` of each."""
    runs: list[tuple[int, int, str]] = []
    block = document.findBlock(start)
    while block.isValid():
        it = block.begin()
        while not it.atEnd():
            fragment = it.fragment()
            form = fragment.charFormat()
            if not form.isImageFormat() and (source := formula_of(form)) is not None:
                last = runs[-1] if runs else None
                if last and last[2] == source and sum(last[:2]) == fragment.position():
                    runs[-1] = (last[0], last[1] + fragment.length(), source)
                else:
                    runs.append((fragment.position(), fragment.length(), source))
            it += 1
        block = block.next()
    changes: list[tuple[int, int]] = []
    for position, length, source in reversed(runs):
        formula = Formula(source, theme.colors.text, True)
        drawing = the_drawer().kept(formula)
        if drawing is None:
            the_drawer().ask(formula)
            continue
        cursor = QTextCursor(document)
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertImage(_image_format(formula, drawing))
        changes.append((position, 1 - length))
    return changes


def picture(url: QUrl) -> QImage | None:
    """The picture of an address that `settle` made; None for any other address."""
    source = linked_source(url.toString())
    if source is None:
        return None
    drawing = the_drawer().kept(Formula(source, theme.colors.text, True))
    if drawing is None:
        return QImage()
    _, height, above = _canvas(drawing)
    factor = theme.scale / 100
    app = QGuiApplication.instance()
    ratio = app.devicePixelRatio() if isinstance(app, QGuiApplication) else 1.0
    width = drawing.width * factor
    image = QImage(round(width * ratio), round(height * ratio), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    image.setDevicePixelRatio(ratio)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    tall = (drawing.ascent + drawing.descent) * factor
    QSvgRenderer(QByteArray(drawing.svg)).render(painter, QRectF(0, above - drawing.ascent * factor, width, tall))
    painter.end()
    return image


def plain(text: str, sources: list[str]) -> str:
    """Selected text with the formulas' sources where their pictures stand."""
    for source in sources:
        text = text.replace("\ufffc", f"${source}$", 1)
    return text


def sources_in(document: QTextDocument, start: int, end: int) -> list[str]:
    """Sources of all pictures from `start` to `end`, in order; images of other kinds count as their name."""
    found: list[str] = []
    block = document.findBlock(start)
    while block.isValid() and block.position() <= end:
        it = block.begin()
        while not it.atEnd():
            fragment = it.fragment()
            form = fragment.charFormat()
            if form.isImageFormat():
                inside = (at for at in range(fragment.position(), fragment.position() + fragment.length()))
                found += [str(form.property(_SOURCE) or "") for at in inside if start <= at < end]
            it += 1
        block = block.next()
    return found


def _image_format(formula: Formula, drawing: Drawing) -> QTextImageFormat:
    align, height, _ = _canvas(drawing)
    made = QTextImageFormat()
    made.setName(f"{FORMULA_LINK}{formula.source.encode().hex()}?{formula.color[1:]}-{theme.scale}")
    made.setWidth(drawing.width * theme.scale / 100)
    made.setHeight(height)
    made.setVerticalAlignment(align)
    made.setProperty(_SOURCE, formula.source)
    made.setToolTip(formula.source)
    made.setProperty(int(QTextFormat.Property.ImageAltText.value), formula.source)
    return made


def _canvas(drawing: Drawing) -> tuple[Align, float, float]:
    """How the picture stands in its line: alignment, height, and where its own base line is (pixels).

    Qt can put a picture's lower edge at the text's lowest point, or its middle at that of a small letter; the canvas
    is as high as it must be for the formula to stand on the line of the text, whichever takes less.
    """
    metrics = QFontMetricsF(theme.font(Type.BODY))
    factor = theme.scale / 100
    above, below = drawing.ascent * factor, drawing.descent * factor
    low = metrics.descent()
    if below <= low:
        return Align.AlignBaseline, above + low, above
    half = metrics.xHeight() / 2
    height = max(2 * above - half, 2 * below + half)
    return Align.AlignMiddle, height, (height + half) / 2
