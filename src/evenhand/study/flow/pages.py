"""The page of a step: its contents in the participant's language, and how its form is read.

`view_of` returns the texts and values of a step; `read_form` reads the submitted fields and
returns the answer to store, or error messages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.study.flow.design import Design, Plan, Step
from evenhand.study.flow.language import show_amount, show_number, words_in
from evenhand.study.schema import FACTORS
from evenhand.study.settings import Condition
from evenhand.study.spec import StudySpec

LONGEST_TEXT = 2_000
SCALES = ("trajectory", "aggregate", "overall")
SLIDERS = ("predicted", "risk")
Fields = Mapping[str, Sequence[str]]
"""The submitted fields: all values of each name."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_LETTERS = "LMNO"


@dataclass(frozen=True, kw_only=True)
class PairView:
    """A pair to compare: K and another person, their values over time, and the questions.

    Parameters
    ----------
    reference, subject : the names of the two people; the second's letter depends on page order, not on role.
    times : labels of the time points; `stamps` are the times as numbers, if the instrument has them.
    reference_values, subject_values : the values at these times.
    feature, unit : the feature shown, and its unit.
    score : the risk score shown for K, as text; `risk_reference` is the number.
    questions : the text of each question by name.
    scale : the labels of the scale, most similar first.
    item, items, pair : number of the set, number of sets, and number of the pair in its set, from 1; 0 for practice.
    """

    reference: str
    subject: str
    times: tuple[str, ...]
    stamps: tuple[float, ...] | None
    reference_values: tuple[float, ...]
    subject_values: tuple[float, ...]
    feature: str
    unit: str
    score: str
    risk_reference: float
    questions: Mapping[str, str]
    scale: tuple[str, ...]
    item: int
    items: int
    pair: int


@dataclass(frozen=True, kw_only=True)
class CaseView:
    """A case to judge: facts (label, value), the decision, the question and the allowed answers (value, text)."""

    facts: tuple[tuple[str, str], ...]
    label: str
    decision: str
    question: str
    reason: str
    answers: tuple[tuple[str, str], ...]
    item: int
    items: int


@dataclass(frozen=True)
class CheckView:
    """An attention check: the question and the choices (stored value, text)."""

    question: str
    choices: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TextView:
    """The paragraphs of the instructions."""

    paragraphs: tuple[str, ...]


View = PairView | CaseView | CheckView | TextView


def view_of(design: Design, plan: Plan, step: Step, language: str) -> View:
    """Return the contents of a step's page."""
    spec = design.spec
    if step.kind == "instructions":
        return TextView(filled_paragraphs(spec, spec.instructions, language))
    if step.kind == "check":
        check = spec.attention[(step.check or 1) - 1]
        shown = (spec.words(choice, language) for choice in check.choices)
        choices = tuple(zip(check.offered(spec.languages[0]), shown, strict=True))
        return CheckView(spec.words(check.question, language), choices)
    if design.kind == "disagreement":
        return _case_view(design, plan, step, language)
    return _pair_view(design, plan, step, language)


def filled_paragraphs(spec: StudySpec, text: str | Mapping[str, str], language: str) -> tuple[str, ...]:
    """Return the paragraphs of a consent, instructions or debrief, with the payment filled in."""
    paid = spec.payment
    known = {
        "minutes": show_number(paid.minutes, language=language),
        "amount": show_amount(paid.amount, language),
        "currency": paid.currency,
    }
    return paragraphs(_fill(spec.words(text, language), known))


def paragraphs(text: str) -> tuple[str, ...]:
    r"""Return the paragraphs of a text, separated by empty lines; line breaks within them stay.

    Examples
    --------
    >>> paragraphs("One\n  line.\n\nTwo.")
    ('One\nline.', 'Two.')
    """
    parts = re.split(r"\n\s*\n", text.replace("\r\n", "\n"))
    return tuple(
        "\n".join(" ".join(line.split()) for line in part.strip().splitlines()) for part in parts if part.strip()
    )


def time_labels(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return labels of time points: the column names without their common prefix.

    Examples
    --------
    >>> time_labels(("income_2019", "income_2020")), time_labels(("arrests_year1", "arrests_year2"))
    (('2019', '2020'), ('year 1', 'year 2'))
    """
    first, last = min(columns), max(columns)
    start = first[
        : next((n for n, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    ]
    shared = max(start.rfind(mark) for mark in "_ .-") + 1
    shorter = [column[shared:] or column for column in columns]
    return tuple(re.sub(r"(?<=[^\W\d])(?=\d)", " ", name).replace("_", " ").strip() for name in shorter)


def _pair_view(design: Design, plan: Plan, step: Step, language: str) -> PairView:
    spec, condition = design.spec, design.spec.conditions[plan.condition]
    instrument = design.instruments[plan.condition]
    item = instrument.sets[0] if step.item is None else design.set_of(plan.condition, step.item)
    reference, others = item.subjects[0], {subject.role: subject for subject in item.subjects[1:]}
    score = reference.score or 0.0
    if step.item is None or step.subject is None:
        values, other, pair = *_practice_values(reference.values, instrument.settings.step), 0
    else:
        pair = [shown.subject for shown in plan.steps if shown.item == step.item].index(step.subject) + 1
        values, other = reference.values, others[step.subject].values
    names = _names(spec.words(condition.subject, language), max(pair, 1))
    percent = show_number(round(100 * score), "%", language)
    questions = _filled_questions(design, condition, language, {**names, "score": percent})
    return PairView(
        **names,
        times=time_labels(instrument.trajectory),
        stamps=instrument.settings.times,
        reference_values=values,
        subject_values=other,
        feature=spec.words(condition.feature, language),
        unit=spec.words(condition.unit, language),
        score=percent,
        risk_reference=score,
        questions=questions,
        scale=tuple(spec.words(point, language) for point in spec.scale),
        item=step.position or 0,
        items=spec.sets_per_person,
        pair=pair,
    )


def _case_view(design: Design, plan: Plan, step: Step, language: str) -> CaseView:
    spec, asked = design.spec, design.spec.disagreement
    case = design.practice_case(plan.place) if step.item is None else step.item
    if asked is None or case is None:
        raise LookupError(f"step {step.key!r} shows no case")
    words, values = words_in(language, spec.interface), design.cases[case]

    def called(name: str) -> str:
        return spec.words(asked.names[name], language) if name in asked.names else name

    label = values[asked.decision] or ""
    decision = called(label)
    facts = tuple((called(name), values[name] or words["not_given"]) for name in asked.shown)
    offered = tuple((answer, words[answer]) for answer in asked.answers if _possible(answer, label, asked.labels))
    question = spec.words(spec.questions.feedback, language).replace("{decision}", decision)
    reason = spec.words(spec.questions.reason, language).replace("{decision}", decision)
    items = len(design.critics[plan.place])
    return CaseView(
        facts=facts,
        label=label,
        decision=decision,
        question=question,
        reason=reason,
        answers=offered,
        item=step.position or 0,
        items=items,
    )


def _possible(answer: str, label: str, labels: tuple[str, ...]) -> bool:
    """Return whether an answer makes sense: the highest label cannot be too low, nor the lowest too high."""
    return not ((answer == "too_low" and label == labels[-1]) or (answer == "too_high" and label == labels[0]))


def _names(subject: str, pair: int) -> dict[str, str]:
    called = f"{subject[:1].upper()}{subject[1:]}"
    return {"reference": f"{called} K", "subject": f"{called} {_LETTERS[pair - 1]}"}


def _filled_questions(design: Design, condition: Condition, language: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return every question with its placeholders filled in, once: inserted values are not expanded."""
    spec = design.spec
    known = {name: spec.words(getattr(condition, name), language) for name in ("feature", "subjects", "outcome")}
    known |= names
    asked = spec.questions
    return {name: _fill(spec.words(getattr(asked, name), language), known) for name in type(asked).model_fields}


def _fill(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: known.get(match[1], match[0]), text)


def _practice_values(values: tuple[float, ...], step: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return two made-up trajectories near a real person's, rounded to the step of the values."""

    def rounded(value: float) -> float:
        return round(value / step) * step

    return tuple(rounded(0.9 * value) for value in values), tuple(rounded(1.1 * value) for value in reversed(values))


def read_form(
    design: Design, plan: Plan, step: Step, fields: Fields, language: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the answer in a form, by the names of the tidy schema, and an error message per invalid field.

    Store the answer only if there are no errors. Unknown fields are ignored.
    """
    view, words = view_of(design, plan, step, language), words_in(language, design.spec.interface)
    if isinstance(view, PairView):
        return _pair(view, fields, words)
    if isinstance(view, CaseView):
        return _case(view, fields, words)
    if isinstance(view, CheckView):
        return _check(view, design, step, fields, words)
    return {}, {}


def read_percent(text: str) -> float | None:
    """Return a percentage from 0 to 100 as a share; None if invalid.

    Examples
    --------
    >>> read_percent("37,5 %"), read_percent("0"), read_percent("101"), read_percent("nan"), read_percent("1e1")
    (0.375, 0.0, None, None, None)
    """
    plain = text.strip().removesuffix("%").strip().replace(",", ".")
    if not re.fullmatch(r"\d{1,3}(\.\d{1,6})?", plain, flags=re.ASCII):
        return None
    number = float(plain)
    return round(number / 100, 8) if math.isfinite(number) and number <= 100 else None


def read_text(text: str) -> str | None:
    r"""Return free text without control characters and outer blanks, with plain line ends; None if empty.

    Examples
    --------
    >>> read_text(" a\x00b\r\nc "), read_text("  ")
    ('ab\nc', None)
    """
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip() or None


def _pair(view: PairView, fields: Fields, words: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    answer: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name in SCALES:
        given = last_of(fields, name)
        if given.isascii() and given.isdigit() and 1 <= int(given[:6]) <= len(view.scale):
            answer[name] = int(given)
        else:
            errors[name] = words["choose_one"]
    _read_factors(fields, answer, errors, words)
    for name in SLIDERS:
        answer[name] = read_percent(last_of(fields, name))
        if answer[name] is None:
            errors[name] = words["number_0_100"]
    answer["risk_reference"] = view.risk_reference
    _add_text(answer, errors, "reason", read_text(last_of(fields, "reason")), words)
    return answer, errors


def _read_factors(fields: Fields, answer: dict[str, Any], errors: dict[str, str], words: Mapping[str, str]) -> None:
    """Read the ticked factors; a text in the free field ticks "other"."""
    other = read_text(last_of(fields, "factor_text"))
    ticked = {factor for factor in fields.get("factors", ()) if factor in FACTORS} | ({"other"} if other else set())
    answer |= {f"factor_{factor}": int(factor in ticked) for factor in FACTORS}
    if not ticked:
        errors["factors"] = words["choose_some"]
    if "other" in ticked and other is None:
        errors["factor_text"] = words["say_what"]
    _add_text(answer, errors, "factor_text", other, words)


def _case(view: CaseView, fields: Fields, words: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    given, errors = last_of(fields, "answer"), {}
    if given not in {value for value, _ in view.answers}:
        errors["answer"] = words["choose_one"]
    answer = {"decision": view.label, "answer": given}
    _add_text(answer, errors, "reason", read_text(last_of(fields, "reason")), words)
    return answer, errors


def _check(
    view: CheckView, design: Design, step: Step, fields: Fields, words: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    given = last_of(fields, "choice")
    if given not in {value for value, _ in view.choices}:
        return {}, {"choice": words["choose_one"]}
    right = design.spec.attention[(step.check or 1) - 1].right_choice(design.spec.languages[0])
    return {"choice": given, "passed": int(given == right)}, {}


def last_of(fields: Fields, name: str) -> str:
    """Return the last value of a field, or an empty text, so that repeated fields are read consistently."""
    values = fields.get(name, ())
    return values[-1] if values else ""


def _add_text(
    answer: dict[str, Any], errors: dict[str, str], name: str, text: str | None, words: Mapping[str, str]
) -> None:
    if text is not None and len(text) > LONGEST_TEXT:
        errors[name] = words["too_long"].replace("{limit}", str(LONGEST_TEXT))
    answer[name] = text
