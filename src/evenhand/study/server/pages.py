"""What the templates of a participant's pages are filled with."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.study.flow import pages as flow
from evenhand.study.flow.design import Design, Plan, Step
from evenhand.study.flow.language import show_number, words_in
from evenhand.study.flow.pages import LONGEST_TEXT, CaseView, CheckView, Fields, PairView, filled_paragraphs
from evenhand.study.schema import FACTORS
from evenhand.study.server.pair_chart import Line, pair_chart

LANGUAGE_NAMES = {"en": "English", "de": "Deutsch", "es": "Español", "fr": "Français"}
_PAIR_FIELDS = ("trajectory", "aggregate", "overall", "factors", "factor_text", "predicted", "risk")
FORM_FIELDS = (*_PAIR_FIELDS, "reason", "answer", "choice")
"""Every field that a form of a step may hold beside its hidden ones."""


@dataclass(frozen=True)
class Filled:
    """How the form of a step is filled in: by what was sent or stored, with what is wrong in it.

    Parameters
    ----------
    fields : every value of each field.
    revision : which revision of the stored answer the form edits; 0 where there is none.
    errors : a sentence for each field that lacks.
    stale : whether another answer was stored since the form was made.
    locked : whether the answer cannot be changed any more.
    """

    fields: Fields = field(default_factory=dict)
    revision: int = 0
    errors: Mapping[str, str] = field(default_factory=dict)
    stale: bool = False
    locked: bool = False


@dataclass(frozen=True, slots=True)
class StepPage:
    """The page of a step as one browser sees it.

    Parameters
    ----------
    plan, index : the person's plan, and which of its steps.
    language : the language of the page.
    first : the first step that this browser may open.
    """

    plan: Plan
    index: int
    language: str
    first: int

    @property
    def step(self) -> Step:
        """The step that is shown."""
        return self.plan.steps[self.index]


def common_values(design: Design, language: str, heading: str, *, may_stop: bool = False) -> dict[str, Any]:
    """Return what every page needs; `heading` may name a word of the interface."""
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
    """Return what the page of the consent shows."""
    values = common_values(design, language, "consent")
    return values | {
        "paragraphs": filled_paragraphs(design.spec, design.spec.consent, language),
        "csrf": csrf,
        "languages": [(code, LANGUAGE_NAMES.get(code, code)) for code in design.spec.languages],
        "errors": {"agree": values["w"]["tick_to_start"]} if missing else {},
    }


def done_values(design: Design, language: str, code: str) -> dict[str, Any]:
    """Return what the last page shows: the debrief, the completion code and the way back."""
    spec = design.spec
    url = spec.recruitment.completion_url
    return common_values(design, language, "thanks", may_stop=True) | {
        "paragraphs": filled_paragraphs(spec, spec.debrief, language),
        "code": code,
        "url": url and url.replace("{code}", code),
    }


def step_values(design: Design, shown: StepPage, csrf: str, filled: Filled) -> tuple[str, dict[str, Any]]:
    """Return the template of a step and what fills it."""
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


def empty_form_key(shown: StepPage) -> Hashable:
    """Return what decides how the page of a step looks that nobody has filled in."""
    plan, index, step = shown.plan, shown.index, shown.step
    before = plan.steps[index - 1].kind if index else None
    pair = sum(earlier.item == step.item for earlier in plan.steps[:index]) if step.kind == "pair" else None
    place = plan.place if step.kind == "practice" else None
    return plan.condition, place, step, pair, index, len(plan.steps), before, _back(shown), shown.language


def fields_of(payload: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the fields of a form that holds a stored answer.

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
    """Return the template, the heading and the values that belong to one kind of page."""
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
    """Return the step that a person may go back to from a step: the nearest that is no attention check."""
    if shown.step.kind == "check":
        return None
    earlier = range(shown.index - 1, shown.first - 1, -1)
    return next((index for index in earlier if shown.plan.steps[index].kind != "check"), None)


def _fill(text: str, **values: object) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def as_fields(raw: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """Return the fields of a form that belong to its questions, each as a list, texts cut where no answer is longer.

    Examples
    --------
    >>> as_fields({"factors": ["other"], "reason": "why", "csrf": "x"})
    {'factors': ['other'], 'reason': ['why']}
    """
    sent = {name: raw[name] for name in FORM_FIELDS if raw.get(name)}
    lists = {name: [value] if isinstance(value, str) else value for name, value in sent.items()}
    return {name: [text[: LONGEST_TEXT + 1] for text in texts] for name, texts in lists.items()}
