"""The report in every format, from the same `Audit`: nothing is computed here, and the data are not needed.

A format is a row of `FORMATS`: the function that makes its files.
"""

from __future__ import annotations

import gc
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree

from evenhand.charts import joined, to_png, to_svg
from evenhand.core.display import Cell, DisplayTable, Figure, Number, Section, in_markdown, make_table
from evenhand.core.findings import Finding
from evenhand.core.records import Record
from evenhand.core.result import plain_cell
from evenhand.errors import ConfigError, did_you_mean
from evenhand.messages import showable
from evenhand.messages.formats import rounded
from evenhand.report import cards, front, page, short
from evenhand.report.extras import EXTRAS
from evenhand.report.profiles.result import TABLES
from evenhand.report.wording import PageWording
from evenhand.study.schema import write_csv

if TYPE_CHECKING:
    from evenhand.report.audit import Audit

Files: TypeAlias = dict[str, str | bytes]

_MOST_ROWS_IN_MARKDOWN = 40
_MOST_ROWS_OF_A_SHEET = 1_048_575
_LONGEST_SHEET_NAME = 31
_WIDEST_COLUMN = 60


def make_files(audit: Audit, formats: Iterable[str]) -> Files:
    """Return the files of formats by name.

    Examples
    --------
    >>> import evenhand as eh
    >>> data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
    >>> audit = eh.audit(eh.Table(data, groups="sex", predictions="hired"))
    >>> list(make_files(audit, ["md", "junit"]))
    ['report.md', 'junit.xml']
    """
    files: Files = {}
    for name in formats:
        if name not in FORMATS:
            raise ConfigError(
                "there is no format {name!r}; {hint}",
                name=name,
                hint=did_you_mean(name, FORMATS),
            )
        files |= FORMATS[name](audit)
    return files


# Pages ---------------------------------------------------------------------------------------------------------------


def _html(audit: Audit) -> Files:
    """Return the page, and a file for each table that is too long for it."""
    sections = audit.sections()
    files: Files = {"report.html": page.render(audit, sections)}
    for name, section in sections.items():
        for part in section.parts:
            if isinstance(part, DisplayTable) and part.cut() < len(part.rows):
                files[page.table_file(name, part)] = write_csv(part.numbers())
    return files


def _pdf(audit: Audit) -> Files:
    """Return the page as a paged, tagged document; long tables are named and stay in the spreadsheet."""
    weasyprint = _extra("weasyprint", "pdf", "PDF")
    refusing = weasyprint.urls.URLFetcher(allowed_protocols=("data",))  # everything stands in the page itself
    document = weasyprint.HTML(string=page.render(audit, paged=True), url_fetcher=refusing)
    settings = {"pdf_tags": True, "pdf_identifier": audit.data["hash"].encode()}
    with _without_collection():
        return {"report.pdf": document.write_pdf(finisher=_scope_of_heads, **settings)}


@contextmanager
def _without_collection() -> Iterator[None]:
    """Leave the collection of garbage for later: it takes a quarter of the time that a printer needs for its boxes."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _scope_of_heads(_: object, pdf: Any) -> None:
    """Say of which line a head is the head in tables that are set as lines; WeasyPrint links those that it lays out."""
    for element in pdf.objects:
        if isinstance(element, dict) and element.get("S") == "/TH" and "ID" not in element:
            row = pdf.objects[int(element["P"].split()[0])]
            part = pdf.objects[int(row["P"].split()[0])]
            element["A"]["Scope"] = "/Column" if part["S"] == "/THead" else "/Row"


def _markdown(audit: Audit) -> Files:
    spoken = page.wording_of(audit)
    lines = [*_front_page(audit, spoken)]
    for section in audit.sections().values():
        head = spoken.section(section)
        lines += [f"## {_inline(head['title'])}", "", _inline(head["question"]), ""]
        lines += [f"{_inline(note)}\n" for note in map(spoken.told, section.notes)]
        for part in section.parts:
            if isinstance(part, Figure):
                lines += [f"**{_inline(part.title)}.** {_inline(part.description)}", ""]
            elif not part.folded:
                lines += [f"**{_inline(part.caption)}**", "", *_short_table(part), ""]
        lines += [*_background(section)]
    lines += [*_left_out(audit, spoken), *_provenance(audit, spoken)]
    return {"report.md": "\n".join(lines)}


def _background(section: Section) -> Iterator[str]:
    """Yield what the page folds below a section: what its numbers do not show, and how they were computed."""
    methods = [(item.term, f"{item.text}{f' {item.reference}.' if item.reference else ''}") for item in section.methods]
    parts = {"What these numbers do not show": section.caveats, "How this was computed": methods}
    for title, told in parts.items():
        if told:
            yield from (f"**{title}**", "", *(f"- {_inline(f'{term}: {text}')}" for term, text in told), "")


def _provenance(audit: Audit, spoken: PageWording) -> Iterator[str]:
    """Yield what the numbers come from: plan, data, files, software and every setting."""
    plan, data, run = audit.plan, audit.data, audit.run
    yield from (f"## {spoken.say('provenance')}", "")
    if plan is not None:
        followed = "The audit followed it." if plan["followed"] else "The audit did not follow it; what differs:"
        yield from (
            f"A plan was sealed on {_inline(plan['sealed'])}, SHA-256 `{_inline(plan['sha256'])}`. {followed}",
            "",
        )
        yield from (f"- {_inline(change['text'])}" for change in plan["changes"])
        yield ""
    yield f"- {'Answers' if 'people' in data else 'Data read'}, SHA-256: `{data['hash']}`"
    yield from (
        f"- {_inline(file['name'])}, SHA-256: `{file['sha256']}` ({file['bytes']:,} bytes)" for file in data["files"]
    )
    versions = {"evenhand": run["evenhand"], "Python": run["python"], **run["packages"]}
    yield f"- Software: {_inline(', '.join(f'{name} {version}' for name, version in versions.items()))}"
    yield f"- Run: {_inline(run['started'])}, {_inline(run['platform'])}"
    config = json.dumps(rounded(audit.config.as_dict()), indent=2, ensure_ascii=False)
    yield from ("", "Configuration, with every default:", "", "```json", *map(showable, config.splitlines()), "```", "")


def _front_page(audit: Audit, spoken: PageWording) -> Iterator[str]:
    """Yield what the page has first: the facts, the answer in short, who was compared, and every finding."""
    say, about = spoken.say, audit.config.report
    yield from (f"# {_inline(about.title)}", "")
    yield from (f"- {_inline(term)}: {_inline(text)}" for term, text in page.facts(audit, spoken))
    if about.scope:
        yield from ("", _inline(about.scope))
    yield from ("", f"## {say('in_short')}", "", _inline(" ".join(short.answer(audit, spoken))), "")
    glance = front.at_a_glance(audit, spoken)
    if glance:
        yield from (f"### {say('glance')}", "", *(_glance_line(line, spoken) for line in glance), "")
    yield from _compared(audit, spoken)
    yield from (f"## {say('findings')}", "")
    for first, *others in front.in_order(audit.findings):
        yield from _finding_lines(first, spoken)
        for other in others:
            yield from (f"  {line}" for line in _finding_lines(other, spoken))
    yield ""
    for sentence in audit.families:
        yield f"{_inline(spoken.told(sentence))}\n"
    if spoken.code != "en":
        yield f"{say('english')}\n"


def _compared(audit: Audit, spoken: PageWording) -> Iterator[str]:
    compared = front.who_was_compared(audit)
    if compared:
        yield from (f"### {spoken.say('who')}", "", *(f"- {_inline(item.in_words(spoken))}" for item in compared), "")
        hidden = audit.config.report.suppress_below is not None
        yield f"{' '.join(front.who_is_missing(compared, audit.data, spoken, hidden=hidden))}\n"


def _glance_line(line: front.Glance, spoken: PageWording) -> str:
    told = ((spoken.verdict(verdict), f"{name}: " if name else "") for name, verdict in line.verdicts)
    return f"- {_inline(f'{line.what} ({line.limit})')}: {', '.join(f'{_inline(name)}{word}' for word, name in told)}"


def _finding_lines(finding: Finding, spoken: PageWording) -> Iterator[str]:
    """Yield a finding; what has no translation stands below it in English."""
    verdict = ""
    if finding.threshold:
        verdict = f"**{spoken.verdict(finding.verdict)}** ({_inline(spoken.limit(finding))}): "
    told = [spoken.headline(finding), spoken.say("exploratory") if finding.exploratory else ""]
    if spoken.code != "en" and finding.value is not None and not spoken.speaks(finding.detail):
        amount = spoken.amount(finding)
        amount = spoken.say("ratio", amount=amount) if finding.kind == "ratio" else amount
        told.append(f"({amount}; {spoken.interval(finding)})")
    layers = (finding.detail, finding.reason)
    told += [spoken.told(layer) for layer in layers if spoken.speaks(layer)]
    english = [spoken.told(layer) for layer in layers if not spoken.speaks(layer)]
    yield f"- {verdict}{_inline(' '.join(filter(None, told)))}"
    if english:
        yield f"  - {_inline(' '.join(english))}"


def _left_out(audit: Audit, spoken: PageWording) -> Iterator[str]:
    """Yield what was left out, and why."""
    records = page.left_out(audit)
    columns: dict[str, Callable[[Any], Cell]] = {
        "Grouping": lambda r: r["grouping"],
        "Group": lambda r: r["group"],
        "n": lambda r: Number(r["n"], "count"),
        "Model": lambda r: ", ".join(r["models"]) or None,
        "Why": lambda r: spoken.told(r["reason"]),
    }
    yield from (f"## {spoken.say('left_out')}", "")
    if records:
        yield from (*_short_table(make_table("Left out", columns, records)), "")
    else:
        yield from ("Nothing.", "")


def _short_table(table: DisplayTable) -> Iterator[str]:
    shown = DisplayTable(table.caption, table.columns, table.rows[:_MOST_ROWS_IN_MARKDOWN])
    yield shown.to_markdown()
    hidden = len(table.rows) - len(shown.rows)
    if hidden > 0:
        yield f"\n{hidden:,} more rows are in `results.json`."


def _inline(text: str) -> str:
    return in_markdown(showable(text))


# Tables --------------------------------------------------------------------------------------------------------------


def _tables(audit: Audit) -> Iterator[tuple[str, Sequence[str], list[list[Any]]]]:
    """Yield every table of the audit, findings first: its name, its columns and its rows."""
    columns = list(Finding.columns())
    yield "findings", columns, [_row(finding, columns) for finding in audit.findings]
    for name, kind, records in _records(audit):
        columns = list(kind.columns())
        yield name, columns, [_row(record, columns) for record in records]


def _records(audit: Audit) -> Iterator[tuple[str, type[Record], Sequence[Record]]]:
    """Yield the records of results, extras and profiles: the name of the table, their type, and they themselves."""
    for name, result in audit.results.items():
        for table, kind in result.record_types().items():
            records = result.tables[table]
            if records and (not kind.individual or result.shows_individuals):
                yield f"{name}-{table}", kind, records
    for extra in audit.extras:
        for table, records in extra.tables.items():
            yield f"{extra.name}-{table}", EXTRAS[extra.name][table], records
    for profile in audit.profiles:
        for table, records in profile.tables.items():
            yield f"{profile.name}-{table}", TABLES[table], records


def _row(record: Record, columns: Iterable[str]) -> list[Any]:
    return [_plain(getattr(record, column)) for column in columns]


def _plain(value: object) -> object:
    """Return a value as one cell, its digits those of `results.json`."""
    plain = rounded(plain_cell(value))
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list) else plain


def _csv(audit: Audit) -> Files:
    return {
        f"{name}.csv": write_csv({column: [row[at] for row in rows] for at, column in enumerate(columns)})
        for name, columns, rows in _tables(audit)
    }


def _xlsx(audit: Audit) -> Files:
    """Return one workbook: a sheet a table, numbers as numbers, all text as text and never as a formula."""
    xlsxwriter = _extra("xlsxwriter", "files", "XLSX")
    held = io.BytesIO()
    with xlsxwriter.Workbook(held, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}) as book:
        book.set_properties({"title": showable(audit.config.report.title), "created": _started(audit)})
        bold = book.add_format({"bold": True, "bottom": 1})
        taken: set[str] = set()
        for name, columns, rows in _tables(audit):
            if len(rows) > _MOST_ROWS_OF_A_SHEET:
                raise ConfigError(
                    "the table '{name}' has {number:,} rows, more than a sheet holds; ask for csv.",
                    name=name,
                    number=len(rows),
                )
            sheet = book.add_worksheet(_sheet_name(name, taken))
            sheet.freeze_panes(1, 0)
            for at, column in enumerate(columns):
                sheet.write_string(0, at, column, bold)
                sheet.set_column(at, at, _width(column, rows, at))
            for number, row in enumerate(rows, 1):
                for at, value in enumerate(row):
                    _write_cell(sheet, number, at, value)
            sheet.autofilter(0, 0, max(1, len(rows)), len(columns) - 1)
    return {"tables.xlsx": held.getvalue()}


def _sheet_name(name: str, taken: set[str]) -> str:
    short = name[:_LONGEST_SHEET_NAME]
    number = 1
    while short in taken:
        number += 1
        short = f"{name[: _LONGEST_SHEET_NAME - 3]}-{number}"
    taken.add(short)
    return short


def _width(column: str, rows: Sequence[Sequence[Any]], at: int) -> int:
    longest = max((len(str(row[at])) for row in rows[:200] if isinstance(row[at], str)), default=9)
    return min(max(len(column), longest) + 2, _WIDEST_COLUMN)


def _write_cell(sheet: Any, row: int, column: int, value: object) -> None:
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int | float):
        sheet.write_number(row, column, value)
    elif value is not None:
        sheet.write_string(row, column, showable(str(value)))


def _started(audit: Audit) -> datetime:
    return datetime.fromisoformat(audit.run["started"]).replace(tzinfo=None)


# For a build ---------------------------------------------------------------------------------------------------------


def _junit(audit: Audit) -> Files:
    """Return a test case for every threshold: broken is a failure, undecided is skipped, with the finding's words."""
    judged = [finding for finding in audit.findings if finding.threshold is not None]
    broken = sum(finding.verdict == "does_not_meet" for finding in judged)
    undecided = sum(finding.verdict == "insufficient_evidence" for finding in judged)
    counts = {"tests": str(len(judged)), "failures": str(broken), "skipped": str(undecided), "errors": "0"}
    suite = ElementTree.Element("testsuite", {"name": showable(audit.config.report.title), **counts})
    for finding in judged:
        name = f"{finding.headline} Limit: {finding.threshold}."
        case = ElementTree.SubElement(suite, "testcase", {"classname": finding.audit, "name": showable(name)})
        if finding.verdict == "does_not_meet":
            ElementTree.SubElement(case, "failure", {"message": showable(finding.headline.text)}).text = showable(
                finding.text
            )
        elif finding.verdict == "insufficient_evidence":
            ElementTree.SubElement(case, "skipped", {"message": showable(str(finding.reason or finding.headline))})
    ElementTree.indent(suite, " ")
    return {"junit.xml": ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)}


# Pictures ------------------------------------------------------------------------------------------------------------


def _figures(audit: Audit) -> Iterator[tuple[str, Figure, Any]]:
    """Yield every figure as one chart, with a name for its file."""
    for name, section in audit.sections().items():
        figures = [part for part in section.parts if isinstance(part, Figure) and part.charts]
        for number, figure in enumerate(figures, 1):
            whole = joined(figure.charts, figure.title, str(figure.shows or ""))
            yield f"{name}-{number}-{page.slug(figure.title)}", figure, whole


def _svg(audit: Audit) -> Files:
    return {
        f"{name}.svg": to_svg(chart, figure.title, f"{figure.shows or ''} {figure.description}".strip(), name=name)
        for name, figure, chart in _figures(audit)
    }


def _png(audit: Audit) -> Files:
    return {f"{name}.png": to_png(chart) for name, _, chart in _figures(audit)}


def _extra(module: str, extra: str, what: str) -> ModuleType:
    """Import what a format needs, or say how to install it."""
    from importlib import import_module

    try:
        imported = import_module(module)
    except ImportError:
        raise ConfigError(
            "{what} needs the extra `{extra}`; install it with: pip install 'evenhand[{extra}]'",
            what=what,
            extra=extra,
        ) from None
    except OSError as error:  # WeasyPrint loads Pango, a library of the system
        raise ConfigError(
            "{what} needs a library of the system that is missing ({splitlines}); on Debian install it "
            "with: apt-get install libpango-1.0-0 libpangoft2-1.0-0",
            what=what,
            splitlines=showable(str(error)).splitlines()[0],
        ) from None
    return imported


FORMATS: dict[str, Callable[[Audit], Files]] = {
    "html": _html,
    "pdf": _pdf,
    "md": _markdown,
    "xlsx": _xlsx,
    "csv": _csv,
    "card": cards.model_cards,
    "datasheet": cards.datasheet,
    "junit": _junit,
    "svg": _svg,
    "png": _png,
}
"""The formats by name; each gives the files that it makes."""
