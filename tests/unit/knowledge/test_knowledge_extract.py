from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import pytest

from desktop_host.core.places import shipped

sys.path.insert(0, str(shipped("resources", "servers", "knowledge")))

from knowledge_extract import UNPACKED, Unreadable, extract
from knowledge_index import Index
from knowledge_text import read_document

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(body: str, **more: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {W}><w:body>{body}</w:body></w:document>")
        for name, data in more.items():
            archive.writestr(name, data)
    return made.getvalue()


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def pdf(*pages: str) -> bytes:
    """A small PDF, written by hand."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R"
            " /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    start, size = len(out), len(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    out += f"startxref\n{start}\n%%EOF"
    return out.encode("latin-1")


def test_html_becomes_headings_paragraphs_lists_and_code_without_scripts() -> None:
    page = b"""<html><head><title>The  kettle</title><style>p {}</style></head><body><nav>Home</nav>
    <h1>Kettle</h1><p>It boils <b>fast</b> &amp; well.</p><ul><li>one</li><li>two</li></ul>
    <pre>  x = 1\n  y = 2</pre><table><tr><td>a</td><td>b</td></tr></table><script>alert(1)</script></body></html>"""
    made = extract(Path("a.html"), page)
    assert (made.kind, made.title) == ("markdown", "The kettle")
    assert "# Kettle" in made.text
    assert "It boils fast & well." in made.text
    assert "- one\n- two" in made.text
    assert "  x = 1\n  y = 2" in made.text
    assert "a | b" in made.text
    for silent in ("alert", "Home", "p {}"):
        assert silent not in made.text


def test_html_says_its_own_charset() -> None:
    page = '<meta charset="gbk"><p>\u4e2d\u6587</p>'.encode("gbk")
    assert "\u4e2d\u6587" in extract(Path("a.htm"), page).text
    assert extract(Path("a.htm"), b'<meta charset="nonsense"><p>tea').text == "tea"


def test_docx_gives_headings_lists_tables_and_its_title() -> None:
    core = b'<c xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Manual</dc:title></c>'
    table = f"<w:tbl><w:tr><w:tc>{paragraph('cell')}</w:tc></w:tr></w:tbl>"
    body = paragraph("Care", "Heading1") + paragraph("Descale it.") + table
    made = extract(Path("a.docx"), docx(body, **{"docProps/core.xml": core}))
    assert made.title == "Manual"
    assert made.text == "# Care\n\nDescale it.\n\ncell"


def test_pdf_gives_its_pages() -> None:
    pytest.importorskip("pypdf")
    made = extract(Path("a.pdf"), pdf("The kettle boils", "The second page"))
    assert made.text == "# Page 1\n\nThe kettle boils\n\n# Page 2\n\nThe second page"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pdf", b"%PDF-1.4 nothing"), ("a.pdf", b""), ("a.docx", b"PK nothing"), ("a.docx", docx("<w:p>")),
        ("a.txt", b"\0\1\2\3"), ("a.py", b"\0elf"), ("a.exe", b"MZ"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_why(name: str, data: bytes) -> None:
    if name.endswith("pdf"):
        pytest.importorskip("pypdf")
    with pytest.raises(Unreadable) as told:
        extract(Path(name), data)
    assert str(told.value)


def test_an_archive_that_unpacks_without_end_is_refused() -> None:
    bomb = docx(paragraph("x" * (UNPACKED + 10)))
    assert len(bomb) < 1_000_000
    with pytest.raises(Unreadable, match="unpacks"):
        extract(Path("a.docx"), bomb)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("word/document.xml", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')
    with pytest.raises(Unreadable):
        extract(Path("a.docx"), made.getvalue())


def test_code_is_cut_at_its_definitions() -> None:
    text = "import os\n\n\ndef first(a):\n    return a\n\n\nclass Second:\n    def third(self):\n        pass\n"
    document = read_document(text, "tool", markdown=False, code=True)
    assert [p.heading for p in document.passages] == ["tool", "tool > first", "tool > Second", "tool > third"]
    assert document.passages[1].first_line == 4


def test_every_kind_is_found_and_a_broken_file_is_only_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.pdf").write_bytes(pdf("The quokka page"))
    (tmp_path / "b.docx").write_bytes(docx(paragraph("A wombat.")))
    (tmp_path / "c.html").write_text("<p>A numbat.")
    (tmp_path / "d.py").write_text("def bilby():\n    return 1\n")
    (tmp_path / "e.pdf").write_bytes(b"nothing")
    index = Index([tmp_path], None)
    for word, name in (("quokka", "a.pdf"), ("wombat", "b.docx"), ("numbat", "c.html"), ("bilby", "d.py")):
        assert [h.path for h in index.search(word, 5)] == [name]
    assert index.stats()["documents"] == 4
    assert "e.pdf" in capsys.readouterr().err
    index.close()
