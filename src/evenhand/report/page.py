"""Render the report as one self-contained page without scripts or network requests, enforced by a policy."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from evenhand._version import __version__
from evenhand.charts import Curve, Forest, Grid, Icons, Panel, columns_for, legend_of, mark_path, same_looks, to_svg
from evenhand.charts.forest_rows import ForestRow
from evenhand.core.display import Cell, DisplayTable, Figure, Link, Section, cell_text, showable_value
from evenhand.core.findings import beside_numbers
from evenhand.core.progress import step
from evenhand.messages import Message, Setting
from evenhand.messages.formats import rounded
from evenhand.messages.settings import SettingStyle
from evenhand.report import front
from evenhand.report.answer import Answer, Row, answer
from evenhand.report.forests import forest_view, what_marks_mean
from evenhand.report.paper import as_source, forest_on_paper
from evenhand.report.wording import PageWording, page_wording

if TYPE_CHECKING:
    from evenhand.run.audit import Audit

MOST_ROWS = 400
SHOWN_FINDINGS = 8


def render(audit: Audit, sections: Mapping[str, Section] | None = None, *, paged: bool = False) -> str:
    """Render the page of an audit; `paged` for print, without folding and with long tables only named.

    `sections` are the audit's sections if they were built before.
    """
    with looks_of(audit):
        return _rendered(audit, audit.sections() if sections is None else sections, paged=paged)


def looks_of(audit: Audit) -> AbstractContextManager[None]:
    """Give each model and group the same colour and shape in all charts drawn within this context."""
    groups = (list(groups) for groups in audit.data.get("groups", {}).values())
    names = audit.config.report.names
    return same_looks([names.get(model, model) for model in audit.config.data.get("predictions") or ()], *groups)


def _rendered(audit: Audit, sections: Mapping[str, Section], *, paged: bool) -> str:
    findings, wording = audit.findings, wording_of(audit)
    judged = front.lines((finding for finding in findings if finding.threshold is not None), wording)
    unjudged = front.lines((finding for finding in findings if finding.threshold is None), wording)
    told = answer(audit, wording)
    return render_page(
        "report.html",
        ("report.css", "paged.css") if paged else ("report.css",),
        about=audit.config.report,
        title=wording.title(audit.config.report.title),
        facts=split_facts(audit, wording),
        answer=told,
        answers=answer_rows(told, wording, paged=paged),
        wording=wording,
        front=front,
        compared=front.groups_compared(audit),
        glance=front.at_a_glance(audit, wording),
        judged=judged,
        established=front.established(audit, wording),
        measured=[] if judged else unjudged[:SHOWN_FINDINGS],
        others=[f for line in unjudged[0 if judged else SHOWN_FINDINGS :] for f in (line.finding, *line.others)],
        appendix=front.rank(findings) if paged else (),
        families=audit.families,
        sections=[section_view(name, section, paged=paged) for name, section in sections.items()],
        left_out=left_out(audit),
        data=audit.data,
        run=audit.run,
        study="people" in audit.data,
        most_rows=MOST_ROWS,
        most_groups=front.MOST_GROUPS,
        config=json.dumps(rounded(audit.config.as_dict()), indent=2, ensure_ascii=False),
        models=_models(audit),
        paged=paged,
        plan=audit.plan,
        with_code=with_code,
        beside_numbers=beside_numbers,
        to_message=Message.from_dict,
    )


def answer_rows(told: Answer, wording: PageWording, *, paged: bool = False) -> list[dict[str, Any]]:
    """Return the rows of the answer with their charts: the deciding interval, and the groups."""
    rows: list[dict[str, Any]] = []
    for row in told.rows:
        strip = "" if row.finding is None else front.picture_with_axis(row.finding, wording)
        drawn = None if row.groups is None else _groups_view(row.groups, wording, paged=paged)
        panel = "" if row.panel is None else _panel_view(row, paged=paged)
        words = {"key": row.key, "question": row.question, "lines": row.lines, "marks": row.marks}
        rows.append({**words, "strip": strip, "groups": drawn, "panel": panel})
    return rows


def _panel_view(row: Row, *, paged: bool) -> Markup:
    """Return the chart of a row as markup; charts escape all text of the data."""
    if row.panel is None:
        return Markup("")
    words = row.question, " ".join(row.lines)
    if paged:
        svg = to_svg(row.panel, *words, name="answer", width=_ANSWER_ON_PAPER, height=90)
        return Markup('<img class="chart" alt="{}" src="{}">').format(words[1], as_source(svg))
    drawn = ((n, to_svg(row.panel, *words, name=f"answer-{n}", width=w, height=90)) for n, w in _ANSWER_WIDTHS.items())
    return Markup("").join(Markup(f'<div class="{name}-only">{svg}</div>') for name, svg in drawn)  # noqa: S704


def _groups_view(panel: Forest, wording: PageWording, *, paged: bool) -> dict[str, Any]:
    if paged:
        return forest_on_paper(panel, _PAPER - 120)
    view = forest_view(panel)
    rows = [(_row_in(line, wording), picture) for line, picture in view["rows"]]
    heads = {name: wording.say(name, "answer") for name in ("value", "interval_head")}
    return {**view, "rows": rows, "heads": heads, "people": wording.count}


def _row_in(line: ForestRow, wording: PageWording) -> ForestRow:
    """Return a row of a forest with its numbers in the reader's language."""
    low, to, high = line.interval.partition(" to ")
    interval = wording.say("range", low=wording.number(low), high=wording.number(high)) if to else wording.number(low)
    return replace(line, value=wording.number(line.value), interval=interval)


def wording_of(audit: Audit) -> PageWording:
    """Return the page's wording in the language of the run, or else of the settings."""
    return page_wording(audit.run.get("language") or audit.config.report.language)


def render_page(template: str, sheets: tuple[str, ...] = ("report.css",), **content: object) -> str:
    """Render one of the package's pages with inline style sheets and a policy that blocks all other content."""
    environment = templates(autoescape=True)
    environment.filters.update(slug=slug)
    style = "".join(environment.loader.get_source(environment, name)[0] for name in sheets if environment.loader)
    frame = {"policy": _policy(style), "style": Markup(style), "version": __version__}  # noqa: S704
    return environment.get_template(template).render(**frame, **content)


@cache
def templates(*, autoescape: bool, keep_trailing_newline: bool = False) -> Environment:
    """Return the template environment of the package."""
    return Environment(
        loader=PackageLoader("evenhand.report"),
        autoescape=autoescape,  # noqa: S701 - Markdown has escapes of its own
        undefined=StrictUndefined,
        finalize=showable_value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=keep_trailing_newline,
    )


def slug(text: str) -> str:
    """Return text as an identifier for a link.

    Examples
    --------
    >>> slug("Values by race × sex")
    'values-by-race-sex'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"


class _CodeStyle(SettingStyle):
    """Setting style that marks setting names with special characters, which `with_code` converts to code."""

    def mention(self, setting: Setting) -> str:
        """Return a setting as written within a sentence."""
        if setting.shown:
            return super().mention(setting)
        where = f" in {self.place(setting.where)}" if setting.where else ""
        return f"\ue000{setting.name}\ue001{where}"


def with_code(message: Message, wording: PageWording | None = None) -> Markup:
    """Return a message as HTML with setting names as code; backticks in the data are unchanged.

    Examples
    --------
    >>> with_code(Message("a < {b}: take a larger `unit`", {"b": "`x`"}))
    Markup('a &lt; `x`: take a larger <code>unit</code>')
    """
    text = str(escape((wording or page_wording()).message(message, _CodeStyle())))
    return Markup(re.sub("\ue000([^\ue000\ue001]*)\ue001", r"<code>\1</code>", text))  # noqa: S704


def _policy(style: str) -> str:
    """Return a Content-Security-Policy that allows only this page's style sheet."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; script-src 'none'; base-uri 'none'; form-action 'none'"


def facts(audit: Audit, wording: PageWording) -> list[tuple[str, str]]:
    """Return the facts below the title: system, people, author, and the origin of the thresholds."""
    say, about, data, models = wording.say, audit.config.report, audit.data, _models(audit)
    rows, used = wording.count(data["rows"]), wording.count(data["rows_used"])
    entries = [(say("system"), about.system), (say("auditor"), about.auditor)]
    entries.append((say("model" if len(models) == 1 else "models"), ", ".join(models)))
    entries += [*_roles(audit.config.data, about.names, wording), *_participants(data, wording)]
    entries.append((_rows_word(audit), say("rows_used", used=used, rows=rows) if data["rows_dropped"] else used))
    entries.append((say("weighted_by"), audit.config.data.get("weight") or ""))
    if any(finding.threshold is not None for finding in audit.findings):
        entries.append((say("thresholds_by"), about.thresholds_by or say("not_said")))
    if audit.plan is not None:
        followed = say("followed" if audit.plan["followed"] else "not_followed")
        sealed = say("plan_told", date=wording.date(audit.plan["sealed"]), followed=followed)
        entries.append((say("plan"), f"{audit.plan['sha256'][:12]}, {sealed}"))
    entries.append((say("date"), wording.date(audit.run["started"])))
    return [(wording.fact(term), text) for term, text in entries if text]


def split_facts(audit: Audit, wording: PageWording) -> dict[str, list[tuple[str, str]]]:
    """Return the facts below the title, the folded facts on models and decisions, and the fact on the outcome."""
    outcome = wording.fact("Positive outcome")
    rest = {*(term for term, _ in _selection(audit.config.data, wording)), wording.say("model"), wording.say("models")}
    everything = facts(audit, wording)
    return {
        "first": [fact for fact in everything if fact[0] not in {*rest, outcome}],
        "rest": [fact for fact in everything if fact[0] in rest],
        "outcome": [fact for fact in everything if fact[0] == outcome],
    }


def _roles(data: dict[str, Any], names: Mapping[str, str], wording: PageWording) -> Iterator[tuple[str, str]]:
    """Yield the definitions of selection and outcome, the basis of every rate, under display names."""
    yield from _selection(data, wording)
    if data.get("outcome") is not None and data.get("outcome_kind") != "number":
        value = wording.say("yes") if data["positive"] is None else repr(data["positive"])
        outcome = names.get(data["outcome"], data["outcome"])
        yield "Positive outcome", wording.say("outcome", outcome=outcome, value=value)


def _selection(data: dict[str, Any], wording: PageWording) -> Iterator[tuple[str, str]]:
    """Yield the definition of the sentences' verb, such as "flags" or "hires", for each rule of selection."""
    predictions = {name: each for name, each in data.get("predictions", {}).items() if each["kind"] != "number"}
    rules = {
        (prediction.get("selected_word", "selects"), _selected(prediction, wording))
        for prediction in predictions.values()
    }
    if len(rules) == 1:
        verb, rule = rules.pop()
        yield wording.say("means", verb=verb), rule
        return
    for name, prediction in predictions.items():
        yield (
            wording.say("model_means", model=name, verb=prediction.get("selected_word", "selects")),
            _selected(prediction, wording),
        )


def _participants(data: dict[str, Any], wording: PageWording) -> Iterator[tuple[str, str]]:
    """Yield the numbers of participants and of analysed participants in a study."""
    if "people" in data:
        everybody, used = wording.count(data["people"]), wording.count(data["people_used"])
        yield "People", used if used == everybody else wording.say("rows_used", used=used, rows=everybody)


def _rows_word(audit: Audit) -> str:
    if "people" in audit.data:
        return "Answers"
    data = audit.config.data
    is_of_people = data.get("predictions") or data.get("people") or data.get("id")
    return "People" if is_of_people and not data.get("cluster") else "Rows"


def _selected(prediction: dict[str, Any], wording: PageWording) -> str:
    if prediction["kind"] == "score":
        rule = wording.say("score", limit=wording.number(f"{prediction['threshold']:g}"))
    else:
        value = wording.say("yes") if prediction["selected"] is None else repr(prediction["selected"])
        rule = wording.say("decision", value=value)
    side = {"selected": "good", "not_selected": "bad"}.get(prediction["favourable"])
    return wording.say(side, rule=rule) if side else rule


def _models(audit: Audit) -> list[str]:
    named = dict.fromkeys(finding.model for finding in audit.findings if finding.model is not None)
    declared = [name for name in audit.config.data.get("predictions", {}) if name in named]
    return [*declared, *(name for name in named if name not in declared)]


def section_view(name: str, section: Section, *, paged: bool = False) -> dict[str, Any]:
    """Return the template data of a section.

    Figures are drawn for screen or paper, and tables are converted to text.
    """
    parts: list[dict[str, Any]] = []
    for number, part in enumerate(section.parts):
        if isinstance(part, Figure) and part.aside and paged:
            parts.append({"aside": part})
        elif isinstance(part, Figure):
            step(f"Drawing {part.title}")
            parts.append(figure_view(part, f"{name}-{number}", paged=paged))
        elif isinstance(part, DisplayTable):
            rows = [[_cell(cell) for cell in row] for row in part.rows[: part.rows_shown()]]
            file = table_file(name, part) if len(rows) < len(part.rows) else ""
            parts.append({"table": part, "rows": rows, "file": file})
    return {"name": name, "section": section, "parts": parts}


_LONGEST_NAME = 60


def table_file(section: str, table: DisplayTable) -> str:
    """Return the file name of a long table."""
    named = slug(table.caption)
    if len(named) > _LONGEST_NAME:
        named = named[:_LONGEST_NAME].rpartition("-")[0]
    return f"table-{section}-{named}.csv"


def _cell(cell: Cell) -> str:
    """Return a cell as text; a part of the report is rendered as a link."""
    text = cell_text(cell)
    return Markup('<a href="#{}">{}</a>').format(cell.anchor, text) if isinstance(cell, Link) else text


_CHART_WIDTHS = {1: 960, 2: 470, 3: 340, 4: 290}
"""The width of a chart by the number of columns in its figure; the style sheet stretches it slightly."""
_WIDTHS_ON_PAPER, _HEIGHT_ON_PAPER = {1: 650, 2: 310, 3: 203}, 125
_MANY_ROWS = 100
"""The number of rows in a figure above which panels with a shared axis are placed side by side."""
_PHONE, _ANSWER_ON_PAPER = 330, 529
_ANSWER_WIDTHS = {"wide": 540, "narrow": _PHONE}
_PAPER = 650
"""The width of a page between its margins, in pixels."""


def figure_view(figure: Figure, name: str, *, paged: bool = False) -> dict[str, Any]:
    """Return the template data of a figure: forests as rows, other panels drawn, and one shared legend.

    On paper, there are no second versions for phones, and charts are less high.
    """
    forests = [chart for chart in figure.charts if isinstance(chart, Forest)]
    legend = [] if forests else legend_of(figure.charts)
    columns = _columns(figure.charts, forests, paged=paged)
    panels: list[dict[str, Any]] = []
    for number, chart in enumerate(figure.charts):
        if isinstance(chart, Forest):
            panels.append(forest_on_paper(chart, _PAPER // columns - 10) if paged else forest_view(chart))
            continue
        words = figure.description if number == 0 else f"Described with the first panel of “{figure.title}”."
        drawn = _Drawn(chart, _panel_title(chart, figure), words, f"{name}-{number}", columns, legend=not legend)
        panels += [drawn.on_paper()] if paged else drawn.on_screen()
    grids = (chart.panel for chart in figure.charts if isinstance(chart, Grid))
    return {
        "figure": figure,
        "panels": panels,
        "columns": columns,
        "legend": [(name, Markup(mark_path(shape, colour, [(6, 6)]))) for name, colour, shape in legend],  # noqa: S704
        "forest": len(forests) == len(panels),
        "marks": " ".join(what_marks_mean([*forests, *grids])),
    }


@dataclass(frozen=True)
class _Drawn:
    """A panel to draw, with its title, description, identifier prefix, and the number of columns in its figure."""

    chart: Panel
    title: str
    words: str
    name: str
    columns: int
    legend: bool

    def on_paper(self) -> dict[str, Any]:
        """Return the panel as an image source, with its titles as text."""
        wide = _WIDTHS_ON_PAPER[self.columns]
        svg = self._svg(self.name, titles=False, width=wide, height=_HEIGHT_ON_PAPER)
        return {"src": as_source(svg), "alt": f"{self.title}. {self.words}", **_titles(self.chart)}

    def on_screen(self) -> list[dict[str, Any]]:
        """Return the panel drawn at each of its widths; charts escape all text of the data."""
        widths = _widths(self.columns).items()
        names = {where: f"{self.name}{'n' if where == 'narrow' else ''}" for where, _ in widths}
        return [{"svg": Markup(self._svg(names[where], width=width)), "only": where} for where, width in widths]  # noqa: S704

    def _svg(self, name: str, **options: Any) -> str:
        return to_svg(self.chart, self.title, self.words, name=name, legend=self.legend, **options)


def _titles(chart: Panel) -> dict[str, str]:
    """Return the titles of a chart, which are text on paper because text in images is slow to render."""
    axes = {"above": chart.above, "below": chart.x} if isinstance(chart, Curve) else {"above": "", "below": ""}
    return {"title": chart.title, **axes}


def _columns(charts: Sequence[Any], forests: Sequence[Forest], *, paged: bool) -> int:
    """Return the number of columns for panels.

    Forests need more room; with a shared axis they need one column, unless they have very many rows. Two columns are
    too narrow on paper, and if both ends of an open range are written out.

    Where both ends of an open range are written out, two columns are too narrow, as they are for the type of paper.
    """
    if len(forests) < len(charts):
        return _columns_of_drawn(charts, paged=paged)
    wide = paged or any(panel.paired or (panel.thin and len(panel.series) > 1) for panel in forests)
    few = sum(len(panel.rows) for panel in forests) <= _MANY_ROWS
    return 1 if wide or (few and any(panel.domain for panel in forests)) else min(2, len(forests))


def _columns_of_drawn(charts: Sequence[Any], *, paged: bool) -> int:
    """Return the number of columns for drawn panels; square panels need less room, and panels on paper more."""
    if paged and any(isinstance(chart, Icons) for chart in charts):
        return 1
    grids = paged and any(isinstance(chart, Grid) for chart in charts)
    most = 2 if grids else 3 if paged else 4
    if any(isinstance(chart, Curve) and chart.diagonal for chart in charts):
        return min(most, 4 if len(charts) == 4 else max(2, columns_for(len(charts))))
    return min(most, columns_for(len(charts)))


def _widths(columns: int) -> dict[str, int]:
    """Return the widths of a chart on screen: one width, and a second one for phones if it is alone in its row."""
    wide = _CHART_WIDTHS[columns]
    return {"wide": wide, "narrow": _PHONE} if columns == 1 else {"": wide}


def _panel_title(chart: Panel, figure: Figure) -> str:
    return f"{figure.title}: {chart.title or figure.title}"


def left_out(audit: Audit) -> list[dict[str, Any]]:
    """Return the records of people left out, dropped rows first.

    Equal entries of several models are merged.
    """
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for result in audit.results.values():
        for record in result.left_out:
            key = (record.grouping, record.group, record.n, record.reason)
            models = merged.setdefault(key, {**record.to_dict(), "reason": record.reason, "models": []})["models"]
            if record.model is not None and record.model not in models:
                models.append(record.model)
    return sorted(merged.values(), key=lambda record: record["group"] is not None)
