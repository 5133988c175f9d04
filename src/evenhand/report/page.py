"""The report as one self-contained page: no script, no network request, and a policy that forbids both."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from evenhand._version import __version__
from evenhand.charts import PALETTE, columns_for, legend_of, to_svg
from evenhand.core.display import Cell, DisplayTable, Figure, Link, Section, cell_text, showable_value
from evenhand.core.formats import MINUS, Format, rounded, show, show_interval
from evenhand.core.run import step
from evenhand.core.thresholds import VERDICTS
from evenhand.forest import Forest
from evenhand.report import front
from evenhand.report.languages import Language, language

if TYPE_CHECKING:
    from evenhand.report.audit import Audit

MOST_ROWS = 400
SHOWN_FINDINGS = 8
_ROW, _ROW_ON_PAPER = 18, 12
"""How high a row of a forest is."""
_PAPER = 656
"""How wide a page is between its margins, in pixels."""
_LETTER = 5.1
"""How wide a letter is in a forest on paper: 0.6 of its font size, 8.5 pixels."""
_MOST_LINES_ON_PAPER = 66
MOST_GROUPS = 12


def render(audit: Audit, sections: Mapping[str, Section] | None = None, *, paged: bool = False) -> str:
    """Return the page of an audit; `paged` for a printer, where nothing can be unfolded: long tables are only named.

    `sections` are those of the audit, where they are at hand.
    """
    findings, spoken = audit.findings, language_of(audit)
    judged = front.judged_lines(findings, spoken)
    return render_page(
        "report.html",
        ("report.css", "paged.css") if paged else ("report.css",),
        about=audit.config.report,
        short=front.in_short(findings, spoken),
        spoken=spoken,
        compared=front.who_was_compared(audit),
        judged=judged,
        others=front.other_lines(findings, spoken),
        families=audit.families,
        shown_findings=SHOWN_FINDINGS,
        counts=[(verdict, Counter(line.finding.verdict for line in judged)[verdict]) for verdict in VERDICTS[:3]],
        sections=[section_view(name, section, paged=paged) for name, section in (sections or audit.sections()).items()],
        left_out=_left_out(audit),
        roles=[*_roles(audit.config.data), *_participants(audit.data)],
        data=audit.data,
        run=audit.run,
        rows_word=_rows_word(audit),
        study="people" in audit.data,
        most_rows=MOST_ROWS,
        most_groups=MOST_GROUPS,
        config=json.dumps(rounded(audit.config.as_dict()), indent=2, ensure_ascii=False),
        models=_models(audit),
        paged=paged,
        plan=audit.plan,
    )


def language_of(audit: Audit) -> Language:
    """Return the language of a report: that it was last written in, or that of the settings."""
    return language(audit.run.get("language") or audit.config.report.language)


def render_page(template: str, sheets: tuple[str, ...] = ("report.css",), **content: Any) -> str:
    """Return a page of ours: its style sheets within, and a policy that allows nothing else."""
    environment = Environment(
        loader=PackageLoader("evenhand.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=showable_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(slug=slug, code=code)
    style = "".join(environment.loader.get_source(environment, name)[0] for name in sheets if environment.loader)
    frame = {"policy": _policy(style), "style": Markup(style), "version": __version__}  # noqa: S704
    return environment.get_template(template).render(**frame, **content)


def slug(text: str) -> str:
    """Return text as an identifier for a link.

    Examples
    --------
    >>> slug("Values by race × sex")
    'values-by-race-sex'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"


def code(text: str) -> Markup:
    """Return text, escaped, with what stands between backticks set as code.

    Examples
    --------
    >>> code("a < b: take a larger `unit`")
    Markup('a &lt; b: take a larger <code>unit</code>')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704


def _policy(style: str) -> str:
    """Return a Content-Security-Policy that allows this page's own style sheet and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; script-src 'none'; base-uri 'none'; form-action 'none'"


def _roles(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Say what counts as selected and as the outcome, which every rate on the page rests on."""
    predictions = data.get("predictions", {})
    rules = {_selected(prediction) for prediction in predictions.values()}
    if len(rules) == 1:
        yield "Selected", rules.pop()
    elif rules:
        yield "Selected", "; ".join(f"{name}: {_selected(prediction)}" for name, prediction in predictions.items())
    if data.get("outcome") is not None:
        value = "1, true or yes" if data["positive"] is None else repr(data["positive"])
        yield "Positive outcome", f"{data['outcome']} is {value}"


def _participants(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Say how many people took part in a study, and how many of them were analysed."""
    if "people" in data:
        everybody, used = data["people"], data["people_used"]
        yield "People", f"{used:,}" if used == everybody else f"{used:,} of {everybody:,}"


def _rows_word(audit: Audit) -> str:
    if "people" in audit.data:
        return "Answers"
    return "People" if audit.config.data.get("predictions") else "Rows"


def _selected(prediction: dict[str, Any]) -> str:
    side = {"selected": ", good for the person", "not_selected": ", bad for the person"}.get(
        prediction["favourable"], ""
    )
    if prediction["kind"] == "score":
        return f"score above {prediction['threshold']:g}{side}"
    value = "1, true or yes" if prediction["selected"] is None else repr(prediction["selected"])
    return f"decision is {value}{side}"


def _models(audit: Audit) -> list[str]:
    return list(dict.fromkeys(finding.model for finding in audit.findings if finding.model is not None))


def section_view(name: str, section: Section, *, paged: bool = False) -> dict[str, Any]:
    """Return a section as the templates take it: figures drawn, for a screen or for paper; tables as text."""
    parts = []
    for number, part in enumerate(section.parts):
        if isinstance(part, Figure):
            step(f"Drawing {part.title}")
            parts.append(figure_view(part, f"{name}-{number}", paged=paged))
        elif isinstance(part, DisplayTable):
            rows = [[_cell(cell) for cell in row] for row in part.rows[: part.cut()]]
            file = table_file(name, part) if len(rows) < len(part.rows) else ""
            parts.append({"table": part, "rows": rows, "file": file})
    return {"name": name, "section": section, "parts": parts}


_LONGEST_NAME = 60


def table_file(section: str, table: DisplayTable) -> str:
    """Return the name of the file that holds a long table."""
    named = slug(table.caption)
    if len(named) > _LONGEST_NAME:  # what comes before a colon says which table it is
        named = slug(table.caption.partition(":")[0])[:_LONGEST_NAME].rstrip("-")
    return f"table-{section}-{named}.csv"


def _cell(cell: Cell) -> str:
    """Return a cell as text; a part of the report as a link to it."""
    text = cell_text(cell)
    return Markup('<a href="#{}">{}</a>').format(cell.place, text) if isinstance(cell, Link) else text


_CHART_WIDTHS = {1: 720, 2: 430, 3: 330, 4: 290}
"""How wide a chart is drawn by the columns of its figure; the style sheet stretches it a little."""

_PHONE = 330


def figure_view(figure: Figure, name: str, *, paged: bool = False) -> dict[str, Any]:
    """Return a figure as the templates take it: forests as rows, other panels drawn, one legend for all of them.

    On paper forests are plain lines over a picture, as tables take ten times as long to set; nothing is for phones.
    """
    drawn = [chart for chart in figure.charts if not isinstance(chart, Forest)]
    legend = [] if len(drawn) < len(figure.charts) else legend_of(drawn)
    shared = any(isinstance(chart, Forest) and chart.domain for chart in figure.charts)
    columns = columns_for(len(figure.charts)) if drawn else 1 if shared else min(2, len(figure.charts))
    two = columns == 1 and not paged
    panels: list[dict[str, Any]] = []
    for number, chart in enumerate(figure.charts):
        if isinstance(chart, Forest):
            panels.append(_forest_on_paper(chart, _PAPER // columns - 10) if paged else _forest_view(chart))
            continue
        title = chart.title if isinstance(chart.title, str) else figure.title
        words = figure.description if number == 0 else f"Described with the first panel of “{figure.title}”."
        for width, where in ((_CHART_WIDTHS[columns], "wide"), (_PHONE, "narrow"))[: 2 if two else 1]:
            svg = to_svg(
                chart,
                f"{figure.title}: {title}",
                words,
                name=f"{name}-{number}{'' if where == 'wide' else 'n'}",
                legend=not legend,
                width=width,
            )
            # The SVG comes from our renderer, which escapes all text of the data.
            panels.append({"svg": Markup(svg), "only": where if two else ""})  # noqa: S704
    marks = " ".join(_marks([chart for chart in figure.charts if isinstance(chart, Forest)]))
    view = {"figure": figure, "panels": panels, "columns": columns, "legend": legend, "forest": not drawn}
    return {**view, "marks": marks}


def _marks(panels: Sequence[Forest]) -> Iterator[str]:
    """Yield what the marks of forests mean, where there are any."""
    rows = [row for panel in panels for row in panel.rows]
    if any(row["limits"] for row in rows):
        yield "The black line is the limit."
    if any(panel.zero is not None for panel in panels):
        yield "The dashed line is no difference."
    if any(row["small"] for row in rows):
        yield "Faint: too few people to be compared."


def _forest_view(panel: Forest) -> dict[str, Any]:
    """Return a forest as rows of a table: label, series, n, the picture of the interval, value and interval."""
    lines = _forest_lines(panel)

    def x(number: float) -> str:
        return f"{100 * _share(number, panel):.1f}%"

    def picture(content: str, height: int, more: str = "") -> Markup:
        return Markup(f'<svg width="100%" height="{height}"{more} aria-hidden="true">{content}</svg>')  # noqa: S704

    for line in lines:
        line["picture"] = picture(_interval_marks(line["row"], x, line["colour"], panel.zero, _ROW), _ROW)
    return {
        "title": panel.title,
        "rows": lines,
        "several": len(panel.series) > 1,
        "counted": any(line["n"] is not None for line in lines),
        "axis": picture(_axis(panel, x), 14, ' fill="currentColor"'),
    }


def _forest_on_paper(panel: Forest, width: int) -> dict[str, Any]:
    """Return a forest as lines of text of one letter width over a picture of its intervals, as many as fit a page."""
    lines, several, letters = _forest_lines(panel), len(panel.series) > 1, int(width / _LETTER)
    counts = {id(line): "" if line["n"] is None else f"{line['n']:,}" for line in lines}
    names = [str(line["series"] if several else line["label"]) for line in lines]
    label = min(max(map(len, names), default=0) + several, letters // 4)
    count = max(map(len, counts.values()), default=0)
    value, interval = (max((len(line[name]) for line in lines), default=0) for name in ("value", "interval"))
    gap = letters - label - count - value - interval - 4  # the letters that the picture takes
    shown: list[tuple[str, dict[str, Any] | None]] = []
    for name, line in zip(names, lines, strict=True):
        if several and line["span"]:
            people = f"  n = {line['people']:,}" if line["people"] else ""
            shown.append((f"{str(line['label'])[: letters - 14]}{people}", None))
        *before, name = wrap(name, label - several) or [""]
        shown += [(" " * several + part, None) for part in before]
        written = f"{' ' * several + name:{label}} {counts[id(line)]:>{count}}"
        shown.append((f"{written}{' ' * gap} {line['value']:>{value}}  {line['interval']:>{interval}}", line))
    start, stop = (label + count + 3) * _LETTER, (label + count + gap - 2) * _LETTER

    def x(number: float) -> str:
        return f"{start + (stop - start) * _share(number, panel):.1f}"

    marks = [f'<g fill="#444" transform="translate(0 -2)">{_axis(panel, x, 8.5)}</g>']
    for number, (_, found) in enumerate(shown[:_MOST_LINES_ON_PAPER], start=1):
        if found:
            faint = ' opacity=".4"' if found["small"] else ""
            drawn = _interval_marks(found["row"], x, found["colour"], panel.zero, _ROW_ON_PAPER)
            if several and found["span"]:
                drawn += f'<line x1="0" x2="{width}" y1="-12" y2="-12" stroke="#bbb" stroke-width=".6"/>'
            marks.append(f'<g transform="translate(0 {number * _ROW_ON_PAPER})"{faint}>{drawn}</g>')
    more = sum(found is not None for _, found in shown[_MOST_LINES_ON_PAPER:])
    size = f'width="{width}" height="{(min(len(shown), _MOST_LINES_ON_PAPER) + 1) * _ROW_ON_PAPER}"'
    return {
        "title": panel.title,
        "svg": Markup(f'<svg {size} aria-hidden="true">{"".join(marks)}</svg>'),  # noqa: S704
        "lines": "\n".join(text for text, _ in shown[:_MOST_LINES_ON_PAPER]),
        "more": f"{more:,} more {'row is' if more == 1 else 'rows are'} in report.html." if more else "",
    }


def _share(number: float, panel: Forest) -> float:
    """Return where on the axis of a forest a number stands, from 0 to 1."""
    ticks = panel.ticks()
    return min(max((number - ticks[0]) / (ticks[-1] - ticks[0]), 0), 1)


def _axis(panel: Forest, x: Callable[[float], str], size: float = 11) -> str:
    return "".join(
        f'<text x="{x(tick)}" y="11" font-size="{size}" text-anchor="middle">{_tick(tick, panel)}</text>'
        for tick in panel.ticks()
    )


def _forest_lines(panel: Forest) -> list[dict[str, Any]]:
    """Return the rows of a forest in order, with what is written in each."""
    colours = {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(panel.series)}
    interval: Format = "points" if panel.style == "percent" else panel.style

    def ordered(row: Mapping[str, Any]) -> tuple[int, int]:
        return panel.labels.index(row["label"]), panel.series.index(row["series"])

    known = [row for row in panel.rows if row["label"] in panel.labels and row["series"] in panel.series]
    rows = sorted(known, key=ordered)
    spans = Counter(row["label"] for row in rows)
    counts = {label: {row["n"] for row in rows if row["label"] == label} for label in spans}
    one_size = all(len(found) == 1 for found in counts.values()) and len(panel.series) > 1
    sizes = {label: next(iter(found)) if one_size else None for label, found in counts.items()}
    seen: set[str] = set()
    lines = []
    for row in rows:
        first = row["label"] not in seen
        seen.add(row["label"])
        lines.append(
            {
                "label": row["label"],
                "people": sizes[row["label"]],
                "span": spans[row["label"]] if first else 0,
                "series": row["series"],
                "n": None if sizes[row["label"]] else row["n"],
                "small": row["small"],
                "row": row,
                "colour": colours[row["series"]],
                "value": show(row["value"], panel.style),
                "interval": show_interval(row["low"], row["high"], interval) if row["value"] is not None else "",
            }
        )
    return lines


def _interval_marks(
    row: Mapping[str, Any], x: Callable[[float], str], colour: str, zero: float | None, height: int
) -> str:
    """Return the interval of one row as a bar with its value, against equality and the limits; numbers are ours."""
    middle, thick = height / 2, 'stroke-width="5" opacity=".38"'
    parts = []
    if zero is not None:
        parts.append(
            f'<line x1="{x(zero)}" x2="{x(zero)}" y1="0" y2="{height}" stroke="{PALETTE[6]}" stroke-dasharray="3 2"/>'
        )
    if row["value"] is not None:
        low, high = (row["value"] if end is None else end for end in (row["low"], row["high"]))
        parts.append(f'<line x1="{x(low)}" x2="{x(high)}" y1="{middle}" y2="{middle}" stroke="{colour}" {thick}/>')
        hollow = row["low"] is None and row["high"] is None
        paint = f'fill="none" stroke="{colour}" stroke-width="1.6"' if hollow else f'fill="{colour}"'
        parts.append(f'<circle cx="{x(row["value"])}" cy="{middle}" r="{round(height / 4.5, 1)}" {paint}/>')
    for limit in row["limits"]:
        parts.append(
            f'<line x1="{x(limit)}" x2="{x(limit)}" y1="1" y2="{height - 1}" stroke="currentColor" stroke-width="2"/>'
        )
    return "".join(parts)


def _tick(number: float, panel: Forest) -> str:
    shown = f"{100 * number:g}" if panel.style in ("percent", "points", "signed_points") else f"{number:g}"
    return shown.replace("-", MINUS) + ("%" if panel.style == "percent" else "")


def _left_out(audit: Audit) -> list[dict[str, Any]]:
    """Return what was left out, dropped rows first; what concerns several models alike stands once with all of them."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for result in audit.results.values():
        for record in result.left_out:
            key = (record.grouping, record.group, record.n, record.reason)
            models = merged.setdefault(key, {**record.to_dict(), "models": []})["models"]
            if record.model is not None and record.model not in models:
                models.append(record.model)
    return sorted(merged.values(), key=lambda record: record["group"] is not None)
