"""The report in other formats: the same findings, numbers as numbers, and no text that acts."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from ctypes import create_string_buffer
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium
import pytest
import yaml  # type: ignore[import-untyped]
from python_calamine import CalamineWorkbook

import evenhand as eh
from evenhand.charts import forest
from evenhand.cli.main import main
from evenhand.core.display import Figure
from evenhand.errors import ConfigError, MissingExtraError
from evenhand.messages.formats import show
from evenhand.report import page
from evenhand.report.answer import answer
from evenhand.report.formats import FORMATS, make_files
from evenhand.report.paper import forest_on_paper

HOSTILE = "=cmd('x')|<b>[a](javascript:1)"


@pytest.fixture(scope="module")
def audit() -> eh.Audit:
    data = {"sex": ["F", HOSTILE] * 300, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 60}
    table = eh.Table(data, groups="sex", predictions={"=model": "hired"}, favourable="selected")
    limits = [
        {"metric": "selection_rate", "max": 0.05},
        {"metric": "selection_rate", "max": 0.2},
        {"metric": "selection_rate", "max": 0.5},
    ]
    return eh.audit(table, parity={"resamples": 100}, thresholds=limits, report={"title": "A *title* <i>"})


def text_of(audit: eh.Audit, name: str, file: str) -> str:
    content = make_files(audit, [name])[file]
    return content.decode() if isinstance(content, bytes) else content


def test_markdown_tells_every_finding_and_no_name_becomes_markup(audit: eh.Audit) -> None:
    text = text_of(audit, "md", "report.md")
    assert text.startswith("# A \\*title\\* &lt;i&gt;")
    assert text.count("\n- ") >= len(audit.findings)
    assert "<b>" not in text
    assert "[a](" not in text
    assert "**Does not meet** (at most 5 points)" in text


def test_markdown_points_to_no_picture(tmp_path: Path) -> None:
    """It has no charts and few tables: its words stand alone, and hold the numbers of the calibration."""
    people = eh.datasets.make_defendants(800, seed=1)
    scores = np.random.default_rng(1).beta(2, 3, 800).round(4)
    table = eh.Table(
        {**people.to_dict("list"), "score": scores, "month": [f"2026-{1 + at % 6:02d}" for at in range(800)]},
        outcome="rearrested",
        groups="sex",
        predictions="score",
        favourable="not_selected",
    )
    run = eh.audit(table, parity={}, report={"period": "month"})
    text = text_of(run, "md", "report.md").partition("## Provenance")[0]
    assert not re.findall(r"\b(?:chart|picture|(?:table|figure) (?:below|above)|dashed|outlines)\b", text)
    rows = [row for row in run.results["parity"].rows("calibration", group="Male") if row.n >= 10]
    worst = max(rows, key=lambda row: abs((row.value or 0.0) - (row.mean_score or 0.0)))
    assert f"with a mean score of {show(worst.mean_score)}" in text
    assert f"(n = {worst.n})" in text


def test_markdown_has_the_front_page_of_the_report_in_its_language(tmp_path: Path) -> None:
    """Facts, who was compared and what was left out, as the page has them."""
    data = {"sex": ["F", "M"] * 300 + [None] * 4 + ["X"] * 3, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 60 + [1] * 7}
    table = eh.Table(data, groups="sex", predictions="hired")
    limits = [{"metric": "selection_rate", "max": limit} for limit in (0.05, 0.2, 0.3, 0.5)]
    about = {"system": "The tool", "thresholds_by": "The board", "scope": "One office."}
    whole = eh.audit(table, parity={"resamples": 100}, thresholds=limits, report=about)
    text = text_of(whole, "md", "report.md")
    front, _, rest = text.partition("## Parity")
    for line in (
        "- System: The tool",
        "- Model: hired",
        "- People: 607",
        "- Thresholds set by: The board",
        "One office.",
        "### At a glance",
        "- Selection rate, by sex (at most 5 points): hired 20.0 points does not meet",
        "### Who was compared",
        "- sex: F 300 · M 300 · X 3 (too few to compare) · not known 4",
    ):
        assert f"\n{line}\n" in front, line
    left_out = rest.partition("## Left out")[2]
    assert "| sex | X | 3 | hired | fewer than 10 people; not compared |" in left_out
    german = text_of(replace(whole, run={**whole.run, "language": "de"}), "md", "report.md")
    for line in (
        "- Grenzwerte festgelegt von: The board",
        "### Wer verglichen wurde",
        "## Befunde",
        "## Nicht berücksichtigt",
    ):
        assert f"\n{line}\n" in german, line
    assert "- F1 **Nicht eingehalten** (höchstens 5 Prozentpunkte): Nach sex" in german
    assert {"## Nicht berücksichtigt", "## Herkunft"} <= set(german.splitlines())
    (told,) = (line for line in german.splitlines() if "(höchstens 5 Prozentpunkte): Nach sex" in line)
    assert "interval" not in told
    assert "95\u00a0%-Intervall" in told  # the detail is in German too
    assert "\n  - " not in german


def test_markdown_has_every_part_that_its_checklists_point_to(audit: eh.Audit) -> None:
    files = [{"name": "people.csv", "sha256": "ab" * 32, "bytes": 1234}]
    text = text_of(replace(audit, data={**audit.data, "files": files}), "md", "report.md")
    assert {"**What these numbers do not show**", "**How this was computed**"} <= set(text.splitlines())
    provenance = text.partition("## Provenance")[2]
    assert f"- people.csv, SHA-256: `{'ab' * 32}` (1,234 bytes)" in provenance
    assert f"numpy {audit.run['packages']['numpy']}" in provenance
    settings = provenance.partition("```json")[2].partition("```")[0]
    assert json.loads(settings)["parity"]["resamples"] == 100


def test_a_workbook_holds_numbers_as_numbers_and_formulas_as_text(audit: eh.Audit) -> None:
    content = make_files(audit, ["xlsx"])["tables.xlsx"]
    assert isinstance(content, bytes)
    book = CalamineWorkbook.from_filelike(io.BytesIO(content))
    assert book.sheet_names[:3] == ["summary", "findings", "parity-values"]
    summary = {str(row[0]): row[1] for row in book.get_sheet_by_name("summary").to_python()}
    assert summary["Is there a problem?"] == answer(audit).text
    header, *rows = book.get_sheet_by_name("parity-values").to_python()
    assert len(rows) == len(audit["parity"].tables["values"])
    value, group = header.index("value"), header.index("group")
    assert all(isinstance(row[value], float) for row in rows)
    assert HOSTILE in {row[group] for row in rows}
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        sheets = [parts.read(name) for name in parts.namelist() if name.startswith("xl/worksheets/")]
    assert not any(b"<f>" in sheet for sheet in sheets)


def test_csv_marks_what_a_spreadsheet_would_run(audit: eh.Audit) -> None:
    rows = list(csv.DictReader(io.StringIO(text_of(audit, "csv", "parity-values.csv"))))
    assert {row["group"] for row in rows} >= {"F", f"'{HOSTILE}"}
    assert {row["model"] for row in rows} == {"'=model"}
    told = list(csv.DictReader(io.StringIO(text_of(audit, "csv", "findings.csv"))))
    assert len(told) == len(audit.findings)


def test_junit_has_a_case_for_every_threshold(audit: eh.Audit) -> None:
    suite = ElementTree.fromstring(text_of(audit, "junit", "junit.xml"))  # noqa: S314 (our own)
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["3", "1", "1"]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.text.startswith("F1: By sex, =model selects")
    names = [case.get("name", "") for case in suite.iter("testcase")]
    assert len(set(names)) == len(names)
    assert names[0] == "=model/selection_rate/sex/difference/worst_pair", "what was found in the data has no part in it"
    messages = [case[0].get("message", "") for case in suite.iter("testcase") if case[0].tag != "system-out"]
    assert all(re.match(r"F\d+: ", message) for message in messages), "the number in the report"


def test_a_model_card_has_the_fields_of_google_and_a_head_for_the_hub(audit: eh.Audit) -> None:
    card = json.loads(text_of(audit, "card", "model-card-model.json"))
    assert list(card) == [
        "model_details",
        "intended_use",
        "factors",
        "metrics",
        "evaluation_data",
        "training_data",
        "quantitative_analyses",
        "ethical_considerations",
        "caveats_and_recommendations",
    ]
    assert card["quantitative_analyses"]["findings"] == [f.text for f in audit.findings]
    text = text_of(audit, "card", "model-card-model.md")
    head = yaml.safe_load(text.split("---")[1])
    assert "model-index" not in head  # nothing was measured for everybody
    assert all(line.startswith("=model, selection rate by sex, at most") for line in card["metrics"]["thresholds"])
    assert "<b>" not in text


def test_a_datasheet_says_what_is_known_and_leaves_the_rest_open(audit: eh.Audit) -> None:
    sheet = json.loads(text_of(audit, "datasheet", "datasheet.json"))
    assert sheet["preprocessing"]["missing_values"].startswith("no outcome or score is missing")
    assert sheet["composition"]["instances"] == "600 rows, of which 600 are used"
    assert sheet["collection"]["consent"].startswith("To be filled in")


def test_the_pdf_is_paged_tagged_and_tells_the_findings(audit: eh.Audit) -> None:
    content = make_files(audit, ["pdf"])["report.pdf"]
    assert isinstance(content, bytes)
    document = pypdfium2.PdfDocument(content)
    assert 1 <= len(document) <= 8
    text = "".join(page.get_textpage().get_text_bounded() for page in document)
    assert "By sex, =model selects: 60.0%" in " ".join(text.split())
    assert f"/ {len(document)}" in text
    assert document.is_tagged()


def test_on_paper_every_picture_stands_once_and_forests_are_lines_of_text(audit: eh.Audit) -> None:
    screen, paper = page.render(audit), page.render(audit, paged=True)
    assert "narrow-only" not in paper.partition("</style>")[2]
    assert 'class="forest panel"' in screen
    assert 'class="forest panel"' not in paper
    values = re.findall(r'<td class="num">([^<]+)</td><td class="num iv">([^<]+)</td>', screen)
    assert values
    for value, interval in values:
        assert re.search(
            rf'<td style="[^"]*">{re.escape(value)}</td><td style="[^"]*">{re.escape(interval)}</td>', paper
        )


def test_type_on_paper_has_nine_points_and_the_paper_the_size_that_was_asked_for(audit: eh.Audit) -> None:
    for paper, size in (("A4", (595, 842)), ("letter", (612, 792))):
        report = audit.config.report.model_copy(update={"paper": paper, "auditor": "Office of Audit"})
        asked = replace(audit, config=audit.config.model_copy(update={"report": report}))
        document = pypdfium2.PdfDocument(make_files(asked, ["pdf"])["report.pdf"])
        assert tuple(map(round, document[0].get_size())) == size
        text = " ".join("".join(sheet.get_textpage().get_text_bounded() for sheet in document).split())
        assert "Signature" in text
        assert text.count(f"{audit.findings[0].number} ") >= 2  # among the findings, and in the appendix
        assert min(letter_sizes(document)) >= 9


def letter_sizes(document: pypdfium2.PdfDocument) -> Iterator[float]:
    """Yield the size of every letter in points."""
    for sheet in document:
        text, matrix = sheet.get_textpage(), pdfium.FS_MATRIX()
        for at in range(text.count_chars()):
            letter = chr(pdfium.FPDFText_GetUnicode(text.raw, at))
            pdfium.FPDFText_GetMatrix(text.raw, at, matrix)
            if letter.isprintable() and not letter.isspace():
                yield round(pdfium.FPDFText_GetFontSize(text.raw, at) * (matrix.c**2 + matrix.d**2) ** 0.5, 1)


def elements(document: pypdfium2.PdfDocument) -> Iterator[tuple[str, str, list[str]]]:
    """Yield what a screen reader meets: the kind of each element, its alternative text and the kinds within it."""
    for sheet in document:
        tree = pdfium.FPDF_StructTree_GetForPage(sheet)
        waiting = [
            pdfium.FPDF_StructTree_GetChildAtIndex(tree, at) for at in range(pdfium.FPDF_StructTree_CountChildren(tree))
        ]
        while waiting:
            element = waiting.pop()
            count = range(pdfium.FPDF_StructElement_CountChildren(element))
            within = [pdfium.FPDF_StructElement_GetChildAtIndex(element, at) for at in count]
            within = [one for one in within if one]
            kinds = [told(pdfium.FPDF_StructElement_GetType, one) for one in within]
            alternative = told(pdfium.FPDF_StructElement_GetAltText, element)
            yield told(pdfium.FPDF_StructElement_GetType, element), alternative, kinds
            waiting += within


def told(ask: Callable[..., int], element: Any) -> str:
    held = create_string_buffer(ask(element, None, 0))
    ask(element, held, len(held))
    return held.raw.decode("utf-16-le").rstrip("\0")


def test_a_screen_reader_gets_forests_as_tables_and_pictures_in_words() -> None:
    people = eh.datasets.make_households(600, seed=3)
    table = eh.Table(people, outcome="missed_payment", groups="sex", predictions={"xgboost": "risk_xgboost"})
    content = make_files(eh.audit(table, parity={"metrics": ["selection_rate", "tpr"]}), ["pdf"])["report.pdf"]
    assert isinstance(content, bytes)
    found = list(elements(pypdfium2.PdfDocument(content)))
    pictures = [alternative for kind, alternative, _ in found if kind == "Figure"]
    assert any(words.startswith("Calibration by sex: Female (n = ") for words in pictures)
    assert "" not in pictures
    rows = [within for kind, _, within in found if kind == "TR"]
    assert ["TH", "TD", "TD", "TD"] in rows  # a row of a forest: whose, n, the value, the interval
    assert ["TH", "TH", "TH", "TH"] in rows
    assert any(kind == "Table" and within[0] == "Caption" for kind, _, within in found)
    scopes = re.findall(rb"/Scope /(Row|Column)", gzip_free(content))
    assert {b"Row", b"Column"} <= set(scopes)


def gzip_free(content: bytes) -> bytes:
    """Return a document with all its objects in the clear."""
    streams = re.findall(rb"stream\r?\n(x[\x01\x5e\x9c\xda].*?)endstream", content, re.DOTALL)
    return content + b"".join(zlib.decompressobj().decompress(part) for part in streams)


def test_pictures_come_as_svg_and_png(audit: eh.Audit) -> None:
    drawn = make_files(audit, ["svg", "png"])
    assert {Path(name).suffix for name in drawn} == {".svg", ".png"}
    assert all(str(content).startswith("<svg") for name, content in drawn.items() if name.endswith(".svg"))
    assert all(content[:4] == b"\x89PNG" for name, content in drawn.items() if name.endswith(".png"))


def test_a_saved_audit_gives_the_same_files_without_the_data(audit: eh.Audit, tmp_path: Path) -> None:
    audit.save(tmp_path)
    names = [name for name in FORMATS if name not in ("pdf", "xlsx", "png")]  # these hold a clock of their own
    assert make_files(eh.Audit.load(tmp_path), names) == make_files(audit, names)


def test_the_command_adds_formats_to_a_folder(
    audit: eh.Audit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit.save(tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    with pytest.raises(SystemExit) as left:
        main(["report", str(tmp_path), "--format", "md, junit"])
    assert left.value.code == 0
    assert {"report.md", "junit.xml", "report.html"} <= set(os.listdir(tmp_path))
    assert (tmp_path / "results.json").read_bytes() == before
    assert "report.md" in capsys.readouterr().out.replace("\n", "")


def test_a_report_in_no_format_is_an_error(audit: eh.Audit, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit.save(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(["report", str(tmp_path), "--format", " , "])
    assert left.value.code == 2
    assert "names no format" in " ".join(capsys.readouterr().err.split())


def test_an_unknown_format_and_a_missing_extra_are_one_sentence(
    audit: eh.Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="there is no format 'xls'; did you mean 'xlsx'"):
        make_files(audit, ["xls"])
    missing: Any = None
    monkeypatch.setitem(sys.modules, "weasyprint", missing)
    with pytest.raises(MissingExtraError, match=r"PDF needs the package 'weasyprint', .*'evenhand\[pdf\]'"):
        make_files(audit, ["pdf"])


def test_on_paper_a_long_title_stays_in_its_column_and_heads_stand_above_their_numbers() -> None:
    name = "a model with quite a long name, as they have them"
    data = {
        "race": ["A", "B", "A", "B", "A"] * 40,
        "sex": ["F", "M", "M"] * 66 + ["F", "M"],
        "hired": [1, 0, 0, 1] * 50,
    }
    table = eh.Table(data, groups=["race", "sex"], predictions={name: "hired"}, favourable="selected")
    audit = eh.audit(
        table,
        parity={"metrics": "selection_rate", "resamples": 100},
        thresholds=[{"metric": "selection_rate", "max": 0.1}],
        report={"shift": 0.1},
    )
    figure = next(part for part in audit.sections()["population_shift"].parts if isinstance(part, Figure))
    assert len(figure.charts) == 2
    content = make_files(audit, ["pdf"])["report.pdf"]
    assert isinstance(content, bytes)
    document = pypdfium2.PdfDocument(content)
    edge = document[0].get_width() - 50
    titles = 0
    for sheet in document:
        text = sheet.get_textpage()
        for left, bottom, right, top in (text.get_rect(at) for at in range(text.count_rects())):
            if left < edge / 4 and text.get_text_bounded(left, bottom, right, top).startswith(f"{name}:"):
                titles += 1
                assert right < edge
    assert titles
    values = next(
        part for part in audit.sections()["parity"].parts if isinstance(part, Figure) and "by sex" in part.title
    )
    forest = forest_on_paper(values.charts[0], 320)
    ends = [[cell.right for cell in row.cells] for piece in forest["pieces"] for row in piece["rows"] if row.cells]
    assert all(end == [cell.right for cell in forest["pieces"][0]["head"][1]] for end in ends)


def test_on_paper_no_name_of_a_model_is_broken() -> None:
    rows = [
        {"label": "Black", "series": name, "value": 0.2, "low": 0.1, "high": 0.3, "n": 100}
        for name in ("xgboost", "random_forest")
    ]
    drawn = forest_on_paper(forest(rows, title="", style="percent"), 650)
    assert [row.head.strip("\u00a0") for row in drawn["pieces"][0]["rows"]] == [
        "Black, n = 100",
        "xgboost",
        "random_forest",
    ]
