"""Build the template variables of the participant pages, and draw the chart of a pair.

The chart shows two trajectories over one axis, as inline SVG that a phone and a screen reader can read. Nothing in it
sets a colour or a font: a strict Content-Security-Policy forbids inline styles, and the style sheet handles light
and dark mode. The two lines differ in colour, in marker and in dash.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jinja2
from markupsafe import Markup

from evenhand.core.display import showable_value
from evenhand.study.flow import pages as flow
from evenhand.study.flow.design import Design, Plan, Step
from evenhand.study.flow.language import show_number, words_in
from evenhand.study.flow.pages import LONGEST_TEXT, CaseView, CheckView, Fields, PairView, filled_paragraphs
from evenhand.study.schema import FACTORS

TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("evenhand.study.server"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    finalize=showable_value,
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)
"""The Jinja environment: it escapes every value and raises an error for undefined names."""
LANGUAGE_NAMES = {"en": "English", "de": "Deutsch", "es": "Español", "fr": "Français"}
_PAIR_FIELDS = ("trajectory", "aggregate", "overall", "factors", "factor_text", "predicted", "risk")
FORM_FIELDS = (*_PAIR_FIELDS, "reason", "answer", "choice")
"""Every visible field that the form of a step may contain."""


@dataclass(frozen=True)
class Filled:
    """The values, errors and state with which the form of a step is rendered.

    Parameters
    ----------
    fields : all values of each field, submitted or stored.
    revision : revision of the stored answer that the form edits; 0 if no answer is stored.
    errors : an error message for each missing or invalid field.
    stale : whether another answer was stored since the form was rendered.
    locked : whether the answer can no longer be changed.
    """

    fields: Fields = field(default_factory=dict)
    revision: int = 0
    errors: Mapping[str, str] = field(default_factory=dict)
    stale: bool = False
    locked: bool = False


@dataclass(frozen=True, slots=True)
class StepPage:
    """The page of one step in one participant's browser.

    Parameters
    ----------
    plan, index : the participant's plan and the index of the step in it.
    language : the language of the page.
    first : the first step that this browser may open.
    """

    plan: Plan
    index: int
    language: str
    first: int

    @property
    def step(self) -> Step:
        """The step on this page."""
        return self.plan.steps[self.index]


def common_values(design: Design, language: str, heading: str, *, may_stop: bool = False) -> dict[str, Any]:
    """Return the template variables of every page; `heading` may be a key of the interface's texts."""
    spec, words = design.spec, words_in(language, design.spec.interface)
    return {
        "language": language,
        "w": words,
        "study": spec.words(spec.title, language),
        "may_stop": may_stop,
        "heading": words.get(heading, heading),
        "contact": spec.words(spec.contact, language).strip(),
        "wide": design.kind == "effort",
    }


def consent_values(design: Design, language: str, csrf: str, *, missing: bool) -> dict[str, Any]:
    """Return the template variables of the consent page."""
    values = common_values(design, language, "consent")
    return values | {
        "paragraphs": filled_paragraphs(design.spec, design.spec.consent, language),
        "csrf": csrf,
        "languages": [(code, LANGUAGE_NAMES.get(code, code)) for code in design.spec.languages],
        "errors": {"agree": values["w"]["tick_to_start"]} if missing else {},
    }


def done_values(design: Design, language: str, code: str) -> dict[str, Any]:
    """Return the template variables of the last page: debrief, completion code and link back."""
    spec = design.spec
    url = spec.recruitment.completion_url
    return common_values(design, language, "thanks", may_stop=True) | {
        "paragraphs": filled_paragraphs(spec, spec.debrief, language),
        "code": code,
        "url": url and url.replace("{code}", code),
    }


def step_values(design: Design, shown: StepPage, csrf: str, filled: Filled) -> tuple[str, dict[str, Any]]:
    """Return the template of a step and its variables."""
    plan, index, language = shown.plan, shown.index, shown.language
    view, words = flow.view_of(design, plan, shown.step, language), words_in(language, design.spec.interface)
    template, heading, specific = _of_view(view, words, language)
    page, pages = index + 1, len(plan.steps)
    after_practice = index > 0 and plan.steps[index - 1].kind == "practice" and filled.revision == 0
    values = common_values(design, language, heading, may_stop=True) | {
        "view": view,
        "index": index,
        "csrf": csrf,
        "given": filled.fields,
        **{name: getattr(filled, name) for name in ("revision", "errors", "stale", "locked")},
        "limit": LONGEST_TEXT,
        "practice": shown.step.kind == "practice",
        "practice_done": after_practice,
        "back": _back(shown),
        "ends": [show_number(end, "%", language) for end in (0, 100)],
        "page": page,
        "pages": pages,
        "page_of": _fill(words["page_of"], page=page, pages=pages),
    }
    return template, values | specific


def fields_of(payload: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return a stored answer as form fields.

    Examples
    --------
    >>> fields_of({"overall": 2, "factor_trajectory": 1, "factor_other": 0, "risk": 0.375, "reason": None})
    {'overall': ['2'], 'factors': ['trajectory'], 'risk': ['37.5']}
    """
    fields = {"factors": [factor for factor in FACTORS if payload.get(f"factor_{factor}")]}
    for name in FORM_FIELDS:
        value = payload.get(name)
        if value is not None:
            fields[name] = [f"{100 * value:.8g}" if name in ("predicted", "risk") else str(value)]
    return {name: fields[name] for name in FORM_FIELDS if fields.get(name)}


def _of_view(view: flow.View, words: Mapping[str, str], language: str) -> tuple[str, str, dict[str, Any]]:
    """Return the template, the heading and the variables specific to one kind of page."""
    if isinstance(view, PairView):
        return "participant/pair.html", _fill(words["compare"], **_names(view)), _pair_values(view, words, language)
    if isinstance(view, CaseView):
        of = _fill(words["case_of"], item=view.item, items=view.items) if view.item else words["the_case"]
        return "participant/case.html", of, {"labels": {"answer": view.question, "reason": view.reason}}
    if isinstance(view, CheckView):
        return "participant/check.html", words["question"], {"labels": {"choice": view.question}}
    return "participant/instructions.html", words["instructions"], {"labels": {}}


def _pair_values(view: PairView, words: Mapping[str, str], language: str) -> dict[str, Any]:
    feature = view.feature[:1].upper() + view.feature[1:]
    title = _fill(words["chart_title"], feature=feature, **_names(view))
    columns = [[*values, sum(values)] for values in (view.reference_values, view.subject_values)]
    shown = [[show_number(value, view.unit, language) for value in column] for column in columns]
    lines = [
        Line(name.rsplit(" ", 1)[-1], values)
        for name, values in ((view.reference, view.reference_values), (view.subject, view.subject_values))
    ]
    return {
        "chart": pair_chart(*lines, view.times, title=title, stamps=view.stamps, unit=view.unit, language=language),
        "chart_title": title,
        "rows": list(zip([*view.times, words["total"]], *shown, strict=True)),
        "risk_of": _fill(words["risk_of"], reference=view.reference, score=view.score),
        "place": _fill(words["set_of"], item=view.item, items=view.items, pair=view.pair) if view.pair else "",
        "scale": [(str(point), text) for point, text in enumerate(view.scale, 1)],
        "factors": [(factor, view.questions[f"factor_{factor}"]) for factor in FACTORS],
        "labels": {**view.questions, "factor_text": words["other_factor"]},
    }


def _names(view: PairView) -> dict[str, str]:
    return {"reference": view.reference, "subject": view.subject}


def _back(shown: StepPage) -> int | None:
    """Return the nearest earlier step, skipping attention checks; None if going back is not possible."""
    if shown.step.kind == "check":
        return None
    earlier = range(shown.index - 1, shown.first - 1, -1)
    return next((index for index in earlier if shown.plan.steps[index].kind != "check"), None)


def _fill(text: str, **values: object) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def as_fields(raw: Mapping[str, str | Sequence[str]], known: Sequence[str] = FORM_FIELDS) -> dict[str, list[str]]:
    """Return a form's answer fields as lists, each text cut just above the allowed length.

    Examples
    --------
    >>> as_fields({"factors": ["other"], "reason": "why", "csrf": "x"})
    {'factors': ['other'], 'reason': ['why']}
    """
    sent = {name: raw[name] for name in known if raw.get(name)}
    lists = {name: [value] if isinstance(value, str) else value for name, value in sent.items()}
    return {name: [text[: LONGEST_TEXT + 1] for text in texts] for name, texts in lists.items()}


# The chart of a pair --------------------------------------------------------------------------------------------------


WIDTH, HEIGHT = 360, 250
_TOP, _BOTTOM = 26, 46
_LETTER = 6.9
"""Width of a letter at the style sheet's font size of 12 units, rounded up slightly."""
_APART = 15
_LONGEST_NAME = 14


@dataclass(frozen=True, slots=True)
class Line:
    """A trajectory: the person's name and the values."""

    name: str
    values: tuple[float, ...]


def _described(line: Line, times: Sequence[str], texts: Sequence[str]) -> str:
    """Return a trajectory as text for screen readers."""
    return f"{line.name}: {', '.join(f'{time} {text}' for time, text in zip(times, texts, strict=True))}"


def _with_values(texts: Sequence[str], frame: _Frame, number: int) -> list[int]:
    """Return the points labelled with values: all points if there is room, else the first and the last."""
    with_room = _with_room(texts, frame)
    return with_room if len(with_room) == number else sorted({0, number - 1})


@lru_cache(maxsize=4096)
def pair_chart(
    first: Line,
    second: Line,
    times: tuple[str, ...],
    *,
    title: str,
    stamps: tuple[float, ...] | None = None,
    unit: str = "",
    language: str = "en",
) -> Markup:
    """Draw two trajectories over one axis that starts at 0.

    Each point is labelled with its value if there is room, else only the first and the last; the page shows all of
    them in a table.

    Parameters
    ----------
    first, second : the trajectories, of equal length.
    times : labels of the points in time.
    title : title of the chart, for screen readers.
    stamps : the times as numbers, if they are unevenly spaced.
    unit, language : unit and language in which values are formatted.

    Examples
    --------
    >>> drawn = pair_chart(Line("K", (1, 2)), Line("<b>", (2, 1)), ("2001", "2002"), title="Arrests a year")
    >>> drawn.count("<path"), "<b>" in drawn
    (4, False)
    """
    ticks = axis_ticks(*first.values, *second.values)
    tick_texts = [show_number(tick, unit, language) for tick in ticks]
    texts = [[show_number(value, unit, language) for value in line.values] for line in (first, second)]
    names = [_shorter(first.name), _shorter(second.name)]
    half = max(14.0, _LETTER / 2 * max(len(row[end]) for row in (*texts, times) for end in (0, -1)))
    left = 10 + _LETTER * max(map(len, tick_texts))
    right = WIDTH - 4 - 1.3 * _LETTER * max(map(len, names))
    frame = _Frame(
        left=left, right=right, margin=half, low=ticks[0], high=ticks[-1], stamps=stamps or tuple(range(len(times)))
    )
    valued = _with_values([*texts[0], *texts[1]], frame, len(times))
    described = f"{_described(first, times, texts[0])}; {_described(second, times, texts[1])}"
    drawn = TEMPLATES.get_template("participant/pair_chart.svg").render(
        width=WIDTH,
        height=HEIGHT,
        title=title,
        described=described,
        frame=frame,
        ticks=[(tick, frame.y(tick), text) for tick, text in zip(ticks, tick_texts, strict=True)],
        times=[(frame.x(at), times[at]) for at in _with_room(times, frame)],
        traces=(("first", frame.points(first)), ("second", frame.points(second))),
        values=[value for at in valued for value in _values(frame, (first, second), texts, at)],
        names=_names_at_ends(frame, (first, second), names),
    )
    return Markup(drawn)  # noqa: S704 the template escapes


def axis_ticks(*values: float) -> list[float]:
    """Return about three to six round axis ticks that cover 0 and all values.

    Examples
    --------
    >>> axis_ticks(32400, 51000)
    [0.0, 20000.0, 40000.0, 60000.0]
    >>> axis_ticks(0, 3)
    [0.0, 1.0, 2.0, 3.0]
    >>> axis_ticks(0)
    [0.0, 1.0]
    """
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    if high - low < 1e-9:
        return [0.0, 1.0]
    rough = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    whole = all(value == int(value) for value in values)
    steps = [factor * size for factor in (1, 2, 2.5, 5, 10) if not whole or (factor * size).is_integer()]
    step = next(candidate for candidate in steps if candidate >= rough * 0.999)
    return [step * number for number in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """Position of the chart's plotting area and scales; `margin` is half the width of a value label."""

    left: float
    right: float
    margin: float
    low: float
    high: float
    stamps: tuple[float, ...]

    def x(self, at: int) -> float:
        start, end = self.left + self.margin + 2, self.right - self.margin - 6
        span = self.stamps[-1] - self.stamps[0]
        return start + (end - start) * ((self.stamps[at] - self.stamps[0]) / span if span else 0.5)

    def y(self, value: float) -> float:
        return _TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - _TOP - _BOTTOM)

    def points(self, line: Line) -> list[tuple[float, float]]:
        return [(self.x(at), self.y(value)) for at, value in enumerate(line.values)]


def _with_room(texts: Sequence[str], frame: _Frame) -> list[int]:
    """Return the points whose labels fit, chosen from the last point backwards."""
    wide = _LETTER * max(map(len, texts)) + 8
    kept = [len(frame.stamps) - 1]
    for at in range(len(frame.stamps) - 2, -1, -1):
        if frame.x(kept[-1]) - frame.x(at) >= wide:
            kept.append(at)
    return kept[::-1]


def _values(
    frame: _Frame, lines: Sequence[Line], texts: Sequence[Sequence[str]], at: int
) -> Iterator[tuple[str, float, float, str]]:
    """Yield the two value labels at a time: the higher above its point, the lower below, so that they never overlap."""
    above = lines[0].values[at] >= lines[1].values[at]
    for line, row, kind, up in zip(lines, texts, ("first", "second"), (above, not above), strict=True):
        yield kind, frame.x(at), frame.y(line.values[at]) + (-10 if up else 18), row[at]


def _names_at_ends(frame: _Frame, lines: Sequence[Line], names: Sequence[str]) -> list[tuple[str, float, str]]:
    """Return the position of each line's name at its right end, pushed apart if they would overlap."""
    wanted = [frame.y(line.values[-1]) + 5 for line in lines]
    gap = abs(wanted[0] - wanted[1])
    if gap < _APART:
        push = (_APART - gap) / 2
        down = 0 if wanted[0] > wanted[1] else 1
        wanted[down], wanted[1 - down] = wanted[down] + push, wanted[1 - down] - push
    return list(zip(("first", "second"), wanted, names, strict=True))


def _shorter(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
