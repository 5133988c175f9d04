"""The page of questions about the participant, between consent and start, and how its form is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.study.flow.language import words_in
from evenhand.study.flow.pages import Fields, filled_paragraphs, last_of
from evenhand.study.settings import UNSAID, AboutQuestion
from evenhand.study.spec import StudySpec

CONSENT = "about_consent"
"""The form field of the consent to store these answers."""
_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class QuestionView:
    """A question about the participant, in their language.

    Parameters
    ----------
    field, question : the name of the form field, and the text of the question.
    choices : pairs of submitted value and text; empty if a whole number is asked for.
    range : the smallest and the largest allowed number.
    skip : the text of "prefer not to say"; empty if not offered.
    hint : the text that states the allowed numbers.
    """

    field: str
    question: str
    choices: tuple[tuple[str, str], ...]
    range: tuple[int, int] | None
    skip: str
    hint: str

    @property
    def skip_field(self) -> str:
        """The form field of the check box for skipping a numeric question."""
        return f"{self.field}_unsaid"


@dataclass(frozen=True)
class AboutView:
    """The page: paragraphs, questions, and the text of the consent to store the answers, if any."""

    paragraphs: tuple[str, ...]
    questions: tuple[QuestionView, ...]
    consent: str


def about_view(spec: StudySpec, language: str) -> AboutView:
    """Return the contents of the page about the participant.

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
    """Return the participant's answers about themselves by question, and an error message per invalid field.

    Store nothing if there is an error. If the study asks for a separate consent and it is not given, only
    "prefer not to say" is accepted.
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
    """Return the answer to a question; None if missing or invalid."""
    given = last_of(fields, question.field).strip()
    if question.range is None:
        return given if given in dict(question.choices) else None
    if not given and question.skip and last_of(fields, question.skip_field) == "yes":
        return UNSAID
    if not (given.isascii() and given.isdigit() and len(given) <= _DIGITS):
        return None
    low, high = question.range
    return str(int(given)) if low <= int(given) <= high else None
