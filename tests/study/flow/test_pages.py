"""Forms: what is stored, what is refused, and in which words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.errors import ConfigError
from evenhand.study.flow.design import Design
from evenhand.study.flow.language import LANGUAGES, built_in, check_words
from evenhand.study.flow.pages import (
    LONGEST_TEXT,
    CaseView,
    CheckView,
    PairView,
    TextView,
    filled_paragraphs,
    read_form,
    read_percent,
    time_labels,
    view_of,
)
from evenhand.study.responses import build_responses
from evenhand.study.template import study_template

Make = Callable[..., Design]
GOOD = {
    "trajectory": ["2"],
    "aggregate": ["5"],
    "overall": ["3"],
    "factors": ["trajectory", "other"],
    "factor_text": [" luck "],
    "predicted": ["70"],
    "risk": ["12,5"],
    "reason": ["a\r\nb\x00"],
}


def step_of(design: Design, kind: str, condition: str = "income") -> tuple[Any, Any]:
    plan = design.plan(condition, 0)
    return plan, next(step for step in plan.steps if step.kind == kind)


def test_a_full_form_is_an_answer_in_the_names_of_the_schema(effort: Make) -> None:
    design = effort()
    plan, step = step_of(design, "pair")
    answer, errors = read_form(design, plan, step, GOOD, "en")
    assert errors == {}
    view = view_of(design, plan, step, "en")
    assert isinstance(view, PairView)
    assert answer == {
        "trajectory": 2,
        "aggregate": 5,
        "overall": 3,
        "factor_trajectory": 1,
        "factor_aggregate": 0,
        "factor_other": 1,
        "factor_text": "luck",
        "predicted": 0.7,
        "risk": 0.125,
        "reason": "a\nb",
        "risk_reference": view.risk_reference,
    }
    row = {"participant": "p1", "item": step.item, "subject": step.subject, **answer}
    built = build_responses({name: [value] for name, value in row.items()}, "effort", where="the form")
    assert built.numbers("overall").tolist() == [3.0]


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("trajectory", [], "Please choose an answer."),
        ("overall", ["7"], "Please choose an answer."),
        ("overall", ["0"], "Please choose an answer."),
        ("overall", ["²"], "Please choose an answer."),
        ("overall", ["9" * 400], "Please choose an answer."),
        ("factors", ["nothing"], "Please tick at least one."),
        ("factor_text", ["  "], "Please say what else."),
        ("predicted", ["-1"], "Please give a number from 0 to 100."),
        ("risk", [""], "Please give a number from 0 to 100."),
        ("reason", ["x" * (LONGEST_TEXT + 1)], f"Please use at most {LONGEST_TEXT} characters."),
    ],
)
def test_what_is_missing_is_said(field: str, value: list[str], sentence: str, effort: Make) -> None:
    design = effort()
    given = {**GOOD, "factor_text": []} if field == "factors" else GOOD
    _, errors = read_form(design, *step_of(design, "pair"), {**given, field: value}, "en")
    assert errors == {field: sentence}


def test_words_about_something_else_tick_it(effort: Make) -> None:
    design = effort()
    for ticked in (["aggregate"], []):
        answer, errors = read_form(design, *step_of(design, "pair"), {**GOOD, "factors": ticked}, "en")
        assert errors == {}
        assert (answer["factor_other"], answer["factor_text"]) == (1, "luck")
        assert answer["factor_aggregate"] == len(ticked)


def test_errors_are_in_the_language_of_the_person(effort: Make) -> None:
    design = effort()
    _, errors = read_form(design, *step_of(design, "pair"), {**GOOD, "overall": []}, "de")
    assert errors == {"overall": "Bitte wählen Sie eine Antwort."}


def test_a_check_is_right_or_wrong(effort: Make) -> None:
    design = effort()
    plan, step = step_of(design, "check")
    assert read_form(design, plan, step, {"choice": ["Blue"]}, "en")[0] == {"choice": "Blue", "passed": 1}
    assert read_form(design, plan, step, {"choice": ["Red"]}, "en")[0] == {"choice": "Red", "passed": 0}
    assert read_form(design, plan, step, {"choice": ["Black"]}, "en")[1]


def test_a_check_is_in_the_persons_language_and_stored_in_the_first(effort: Make) -> None:
    design = effort(
        **{
            '"Red", "Blue"': '{ en = "Red", de = "Rot" }, { en = "Blue", de = "Blau" }',
            'right = "Blue"': "right = 2",
            **in_two_languages(study_template("effort")),
        }
    )
    plan, step = step_of(design, "check")
    view = view_of(design, plan, step, "de")
    assert isinstance(view, CheckView)
    assert view.choices == (("Red", "Rot"), ("Blue", "Blau"), ("Green", "Green"))
    assert read_form(design, plan, step, {"choice": ["Blue"]}, "de")[0] == {"choice": "Blue", "passed": 1}
    assert read_form(design, plan, step, {"choice": ["Blau"]}, "de")[1]
    pair = view_of(design, *step_of(design, "pair"), "de")
    assert isinstance(pair, PairView)
    assert pair.scale[0] == "Sehr ähnlich"
    assert pair.questions["overall"] == "Wie ähnlich sind sich Zwei K und Zwei L insgesamt?"


def in_two_languages(text: str) -> dict[str, str]:
    """Return what to replace so that every text of a template has a German twin."""
    names = "title|consent|debrief|feature|subject|subjects|outcome|question"
    found = re.findall(rf'^((?:{names}) = )("""[\s\S]*?"""|"[^"]*")', text, re.M)
    twins = {start + words: f'{start}{{ en = "two", de = "zwei" }}' for start, words in found}
    return {'languages = ["en"]': 'languages = ["en", "de"]', **twins}


def test_what_is_paid_is_told_in_the_persons_words(effort: Make) -> None:
    told_so = 'instructions = "It takes {minutes} min.\\nYou get {amount} {currency}.\\n\\nThank you."'
    design = effort(**{"sets_per_person = 3": f"sets_per_person = 3\n{told_so}"})
    view = view_of(design, *step_of(design, "instructions"), "en")
    assert view == TextView(("It takes 42 min.\nYou get 8.45 USD.", "Thank you."))
    assert filled_paragraphs(design.spec, "{amount} {currency}", "de") == ("8,45 USD",)
    assert filled_paragraphs(design.spec, "{other}", "de") == ("{other}",)


def test_feedback_offers_only_answers_that_make_sense(feedback: Make) -> None:
    every = 'answers = ["agree", "disagree", "too_high", "too_low"]'
    design = feedback(**{'answers = ["agree", "disagree"]': every})
    offered = {}
    plan = design.plan("", 0)
    for step in plan.steps:
        view = view_of(design, plan, step, "en")
        if isinstance(view, CaseView):
            offered[view.label] = [value for value, _ in view.answers]
    assert offered == {"low": ["agree", "disagree", "too_low"], "high": ["agree", "disagree", "too_high"]}
    step = next(one for one in plan.steps if one.kind == "case")
    label = design.cases[str(step.item)]["label"]
    wrong = "too_high" if label == "low" else "too_low"
    assert read_form(design, plan, step, {"answer": [wrong]}, "en")[1]
    assert read_form(design, plan, step, {"answer": ["agree"]}, "en") == (
        {"decision": label, "answer": "agree", "reason": None},
        {},
    )


def test_the_pair_on_the_page_is_that_of_the_set_and_its_letter_hides_its_role(effort: Make) -> None:
    design = effort()
    plan = design.plan("income", 0)
    pairs = [step for step in plan.steps if step.kind == "pair"]
    for place, step in enumerate(pairs[:4]):
        view = view_of(design, plan, step, "en")
        assert isinstance(view, PairView)
        subjects = {one.role: one for one in design.set_of("income", str(step.item)).subjects}
        assert (view.reference_values, view.subject_values) == (
            subjects["K"].values,
            subjects[str(step.subject)].values,
        )
        assert (view.reference, view.subject) == ("Household K", f"Household {'LMNO'[place]}")
        assert view.times == ("2019", "2020", "2021", "2022")
        assert "{" not in "".join(view.questions[name] for name in ("trajectory", "overall", "predicted", "risk"))
        assert (view.item, view.items, view.pair) == (1, 3, place + 1)


def test_a_placeholder_in_a_word_is_not_filled_in_again(effort: Make) -> None:
    design = effort(**{'subject = "household"': 'subject = "{score}"'})
    view = view_of(design, *step_of(design, "pair"), "en")
    assert isinstance(view, PairView)
    assert "{score} K" in view.questions["overall"]


@given(st.text())
def test_any_text_is_a_percentage_or_none(text: str) -> None:
    share = read_percent(text)
    assert share is None or 0 <= share <= 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(GOOD)), st.lists(st.text(max_size=30), max_size=3)))
def test_any_form_is_read_without_a_failure(effort: Make, fields: dict[str, list[str]]) -> None:
    design = SHARED.get("design") or SHARED.setdefault("design", effort())
    answer, errors = read_form(design, *step_of(design, "pair"), fields, "en")
    assert errors or answer["overall"] in range(1, 7)


SHARED: dict[str, Design] = {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_word_and_its_parts(language: str) -> None:
    english, words = built_in("en"), built_in(language)
    assert list(words) == list(english)
    for key, text in english.items():
        assert sorted(_parts(words[key])) == sorted(_parts(text)), key
        assert words[key].strip()


def _parts(text: str) -> list[str]:
    return [piece.split("}")[0] for piece in text.split("{")[1:]]


def test_a_language_without_words_needs_them() -> None:
    check_words("it", built_in("en"))
    with pytest.raises(ValueError, match=r"the pages have no words in 'it' \(only in en, de, es, fr\); give them in"):
        check_words("it", {"next": "Avanti"})


def test_single_words_can_be_changed_and_mistyped_ones_are_refused(effort: Make) -> None:
    changed = effort(**{"[payment]": '[interface.en]\nchoose_one = "Pick one."\n\n[payment]'})
    assert read_form(changed, *step_of(changed, "check"), {}, "en")[1] == {"choice": "Pick one."}
    with pytest.raises(ConfigError, match=r"has 'nxt', which no page uses; did you mean 'next'\?"):
        effort(**{"[payment]": '[interface.en]\nnxt = "Go"\n\n[payment]'})


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        (("a", "b"), ("a", "b")),
        (("x_1",), ("1",)),
        (("x", "xy"), ("x", "xy")),
        (("q_2020_a", "q_2021_a"), ("2020 a", "2021 a")),
    ],
)
def test_time_points_have_short_names(columns: tuple[str, ...], labels: tuple[str, ...]) -> None:
    assert time_labels(columns) == labels
