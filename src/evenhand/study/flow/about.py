"""What people say about themselves, between the consent and the start: the page, and what its form may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.study.flow.language import words_in
from evenhand.study.flow.pages import Fields, filled_paragraphs, last_of
from evenhand.study.settings import UNSAID, AboutQuestion
from evenhand.study.spec import StudySpec

CONSENT = "about_consent"
"""The field of the box that people tick so that these answers may be stored."""
_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class QuestionView:
    """A question about the person, in their language.

    Parameters
    ----------
    field, question : what the field of the form is called, and the words.
    choices : value that is sent and words; none where a whole number is asked for.
    range : the smallest and the largest number.
    skip : the words of "prefer not to say"; empty where it is not offered.
    hint : what may be typed, for a number.
    """

    field: str
    question: str
    choices: tuple[tuple[str, str], ...]
    range: tuple[int, int] | None
    skip: str
    hint: str

    @property
    def skip_field(self) -> str:
        """The box of a number that is not told."""
        return f"{self.field}_unsaid"


@dataclass(frozen=True)
class AboutView:
    """The page: paragraphs, questions, and the words of the box for the consent to store the answers, if any."""

    paragraphs: tuple[str, ...]
    questions: tuple[QuestionView, ...]
    consent: str


def about_view(spec: StudySpec, language: str) -> AboutView:
    """Return what the page about the person shows.

    Examples
    --------
    >>> import tomllib
    >>> from evenhand.study.template import study_template
    >>> asked = {"questions": [{"name": "kind", "question": "Who are you?", "choices": ["patient", "donor"]}]}
    >>> spec = StudySpec.parse({**tomllib.loads(study_template("effort")), "about": asked}, "study.toml")
    >>> about_view(spec, "en").questions[0].choices[-1]
    ('prefer not to say', 'I prefer not to say')
    """
    words, about = words_in(language, spec.interface), spec.about
    return AboutView(
        filled_paragraphs(spec, about.text, language),
        tuple(_question_view(spec, question, language, words) for question in about.questions),
        spec.words(about.consent, language).strip(),
    )


def _question_view(spec: StudySpec, question: AboutQuestion, language: str, words: Mapping[str, str]) -> QuestionView:
    skip = words["prefer_not_to_say"] if question.may_skip else ""
    shown = (spec.words(choice, language) for choice in question.choices)
    choices = [*zip(question.offered(spec.languages[0]), shown, strict=True)]
    if choices and skip:
        choices.append((UNSAID, skip))
    low, high = question.range or (0, 0)
    number = words["whole_number"].replace("{low}", str(low)).replace("{high}", str(high)) if high else ""
    asked = spec.words(question.question, language)
    return QuestionView(
        field=f"about_{question.name}",
        question=asked,
        choices=tuple(choices),
        range=question.range,
        skip=skip,
        hint=number,
    )


def read_about(spec: StudySpec, fields: Fields, language: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return what somebody says about themselves, by question, and a sentence for each field that lacks.

    Nothing may be stored where a sentence came back. Without the consent of its own, where the study asks for one, only
    "prefer not to say" is taken.
    """
    words, view = words_in(language, spec.interface), about_view(spec, language)
    said: dict[str, str] = {}
    errors: dict[str, str] = {}
    for name, question in zip(spec.about.names, view.questions, strict=True):
        given = _given(question, fields)
        if given is None:
            errors[question.field] = question.hint or words["choose_one"]
        else:
            said[name] = given
    told = any(value != UNSAID for value in said.values())
    if not errors and view.consent and told and last_of(fields, CONSENT) != "yes":
        errors[CONSENT] = words["tick_or_skip"]
    return said, errors


def _given(question: QuestionView, fields: Fields) -> str | None:
    """Return the answer to a question; None where there is none that fits."""
    given = last_of(fields, question.field).strip()
    if question.range is None:
        return given if given in dict(question.choices) else None
    if not given and question.skip and last_of(fields, question.skip_field) == "yes":
        return UNSAID
    if not (given.isascii() and given.isdigit() and len(given) <= _DIGITS):
        return None
    low, high = question.range
    return str(int(given)) if low <= int(given) <= high else None
