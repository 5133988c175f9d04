"""What a form may hold: the fields that were sent in, the answer to store out, or what is missing in plain words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.study.flow.design import Design
from evenhand.study.flow.steps import Plan, Step
from evenhand.study.flow.views import CaseView, CheckView, PairView, view_of
from evenhand.study.flow.words import words_in
from evenhand.study.schema import FACTORS

LONGEST_TEXT = 2_000
SCALES = ("trajectory", "aggregate", "overall")
SLIDERS = ("predicted", "risk")
Fields = Mapping[str, Sequence[str]]
"""The fields as they were sent: every value of each name."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def read_form(
    design: Design, plan: Plan, step: Step, fields: Fields, language: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the answer that a form holds, in the names of the tidy schema, and a sentence for each field that lacks.

    The answer is only to be stored where no sentence came back. What was sent beyond the questions is ignored.
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
    """Return a percentage from 0 to 100 as a share, or None.

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
    r"""Return free text without control characters and outer blanks, with plain line ends; None where nothing is left.

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
        given = _one(fields, name)
        if given.isascii() and given.isdigit() and 1 <= int(given[:6]) <= len(view.scale):
            answer[name] = int(given)
        else:
            errors[name] = words["choose_one"]
    other = read_text(_one(fields, "factor_text"))
    ticked = {factor for factor in fields.get("factors", ()) if factor in FACTORS} | ({"other"} if other else set())
    answer |= {f"factor_{factor}": int(factor in ticked) for factor in FACTORS}
    if not ticked:
        errors["factors"] = words["choose_some"]
    if "other" in ticked and other is None:
        errors["factor_text"] = words["say_what"]
    _add_text(answer, errors, "factor_text", other, words)
    for name in SLIDERS:
        share = read_percent(_one(fields, name))
        if share is None:
            errors[name] = words["number_0_100"]
        answer[name] = share
    answer["risk_reference"] = view.risk_reference
    _add_text(answer, errors, "reason", read_text(_one(fields, "reason")), words)
    return answer, errors


def _case(view: CaseView, fields: Fields, words: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    given, errors = _one(fields, "answer"), {}
    if given not in {value for value, _ in view.answers}:
        errors["answer"] = words["choose_one"]
    answer = {"decision": view.label, "answer": given}
    _add_text(answer, errors, "reason", read_text(_one(fields, "reason")), words)
    return answer, errors


def _check(
    view: CheckView, design: Design, step: Step, fields: Fields, words: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    given = _one(fields, "choice")
    if given not in {value for value, _ in view.choices}:
        return {}, {"choice": words["choose_one"]}
    right = design.spec.attention[(step.check or 1) - 1].right_choice(design.spec.languages[0])
    return {"choice": given, "passed": int(given == right)}, {}


def _one(fields: Fields, name: str) -> str:
    """Return the last value of a field, or nothing: so a repeated field cannot be read in two ways."""
    values = fields.get(name, ())
    return values[-1] if values else ""


def _add_text(
    answer: dict[str, Any], errors: dict[str, str], name: str, text: str | None, words: Mapping[str, str]
) -> None:
    if text is not None and len(text) > LONGEST_TEXT:
        errors[name] = words["too_long"].replace("{limit}", str(LONGEST_TEXT))
    answer[name] = text
