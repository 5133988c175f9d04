"""A study as one declarative object: what `study.toml` holds, checked."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from evenhand.errors import ConfigError, count, did_you_mean
from evenhand.settings import Settings
from evenhand.study.analysis.analyze import run
from evenhand.study.analysis.result import StudyResult
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.study.cases import Assignment, CaseSettings, deal_cases, read_cases
from evenhand.study.responses import Responses, read_columns
from evenhand.study.schema import FEEDBACK, SCALE, Kind
from evenhand.study.sets import Instrument, load_instrument

_IS_TEXT = "text shown to people"
Text = Annotated[str | dict[str, str], _IS_TEXT]
"""Words shown to people: one text, or one for each language as in ``{en = "Similar", de = "Ähnlich"}``."""

Language = Annotated[str, Field(pattern="^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
PLACEHOLDERS = ("reference", "subject", "subjects", "feature", "outcome", "score", "decision")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class Condition(Settings):
    """A condition of an effort study: what the trajectories are of, and the words for it."""

    instrument: str = Field(description="The JSON file of the sets, as design_sets(...).save() wrote it.")
    feature: Text = Field(description="What is shown over time, such as 'annual income'.")
    subject: Text = Field(description="What one of the compared is called, such as 'household'.")
    subjects: Text = Field(description="The same in the plural.")
    outcome: Text = Field(description="What the risk score is of, such as 'missing a credit card payment'.")
    desirable: bool = Field(True, description="Whether more of the feature is better.")
    unit: Text = Field("", description="Unit of the values, such as '$'.")
    share: float = Field(1.0, gt=0, description="People in this condition, relative to the others.")


class Questions(Settings):
    """The wording of the questions; {reference}, {subject}, {feature} and so on are filled in."""

    trajectory: Text = "How similar are {reference} and {subject} in how their {feature} developed?"
    aggregate: Text = "How similar are {reference} and {subject} in their total {feature}?"
    overall: Text = "How similar are {reference} and {subject} overall?"
    factors: Text = "What was behind your last answer? You may tick several."
    factor_trajectory: Text = "How {feature} developed over time"
    factor_aggregate: Text = "The total {feature}"
    factor_other: Text = "Something else (please say what)"
    predicted: Text = "What percentage of the other people asked will call {reference} and {subject} similar?"
    risk: Text = (
        "The risk of {outcome} of {reference} was scored {score}. What score would be fair for {subject}, in percent?"
    )
    reason: Text = "How did you decide on this? (optional)"
    feedback: Text = "The system decided: {decision}. Do you agree?"


class AttentionCheck(Settings):
    """A question that shows whether people read: its words, the choices and the right one."""

    question: Text = Field(description="The question.")
    choices: tuple[str, ...] = Field(min_length=2, description="The choices, the same in every language.")
    right: str = Field(description="The right choice.")
    after: int = Field(1, ge=0, description="After which item it is asked; 0 is before the first.")

    @model_validator(mode="after")
    def _is_a_choice(self) -> Self:
        if self.right not in self.choices:
            raise ValueError(f"`right` must be one of the choices; got {self.right!r}")
        return self


class Bonus(Settings):
    """A bonus: for the highest truth-serum scores, or for the best reasons as somebody rates them."""

    by: Literal["truth_serum", "reasons"] = Field(description="What it is paid for.")
    amount: float = Field(gt=0, description="How much each person gets, in the currency of the payment.")
    share: float = Field(0.1, gt=0, le=1, description="Share of people who get it.")


class Payment(Settings):
    """What people are paid."""

    amount: float = Field(ge=0, description="For taking part.")
    currency: str = Field("USD", pattern="^[A-Z]{3}$", description="Three letters, such as USD or EUR.")
    minutes: float = Field(gt=0, description="How long it takes; the hourly rate follows.")
    bonuses: tuple[Bonus, ...] = Field((), description="Bonuses on top.")

    @property
    def hourly(self) -> float:
        """The amount for an hour."""
        return 60 * self.amount / self.minutes


class Feedback(Settings):
    """What a feedback study shows and asks."""

    cases: str = Field(description="The file of the cases.")
    id: str = Field(description="Column that identifies a case.")
    decision: str = Field(description="Column of what the system decided.")
    labels: tuple[str, ...] = Field(min_length=2, description="All labels the system can give, lowest first.")
    groups: tuple[str, ...] = Field((), description="Columns of the groups every critic should see.")
    shown: tuple[str, ...] = Field(min_length=1, description="Columns that critics see of a case.")
    answers: tuple[str, ...] = Field(("agree", "disagree"), description="What critics can answer.")
    assignment: CaseSettings = Field(CaseSettings(), description="How cases are dealt out.")

    @model_validator(mode="after")
    def _known_answers(self) -> Self:
        for answer in self.answers:
            if answer not in FEEDBACK:
                raise ValueError(f"`answers` got {answer!r}; {did_you_mean(answer, FEEDBACK)}")
        if "agree" not in self.answers or len(set(self.answers)) < 2:
            raise ValueError("`answers` must hold 'agree' and something else")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("`labels` names a label twice")
        return self


class StudySpec(Settings):
    """A whole study.

    Examples
    --------
    >>> from evenhand.study.template import study_template
    >>> spec = StudySpec.parse(tomllib.loads(study_template("effort")), "study.toml")
    >>> spec.kind, round(spec.payment.hourly, 2)
    ('effort', 12.07)
    """

    kind: Kind = Field(description="'effort' (people compare pairs) or 'feedback' (people judge decisions).")
    title: Text = Field(description="Title that people see.")
    name: str = Field(pattern="^[a-z0-9][a-z0-9-]{0,63}$", description="Short name for files and addresses.")
    languages: tuple[Language, ...] = Field(("en",), min_length=1, description="Languages; the first is the default.")
    consent: Text = Field(description="What people agree to before they start.")
    instructions: Text = Field("", description="What people read before the first item.")
    debrief: Text = Field("", description="What people read at the end.")
    conditions: dict[str, Condition] = Field({}, description="Conditions of an effort study, by name.")
    sets_per_person: int = Field(3, ge=1, description="Sets that each person sees (effort).")
    feedback: Feedback | None = Field(None, description="What a feedback study shows.")
    scale: tuple[Text, ...] = Field(SCALE, min_length=2, description="Words of the scale, most similar first.")
    questions: Questions = Field(Questions(), description="Wording of the questions.")
    attention: tuple[AttentionCheck, ...] = Field((), description="Attention checks.")
    payment: Payment = Field(description="What people are paid.")
    analysis: AnalysisSpec = Field(AnalysisSpec(), description="How the answers are analysed, and who is left out.")
    seed: int = Field(0, ge=0, description="Seed of what chance decides: conditions, orders, assignment.")

    _folder: Path = PrivateAttr(default=Path())

    @model_validator(mode="before")
    @classmethod
    def _one_share(cls, values: Any) -> Any:
        """Take the share of people with a truth-serum bonus from [[payment.bonuses]], where it is paid."""
        try:
            shares = [one.get("share", 0.1) for one in values["payment"]["bonuses"] if one["by"] == "truth_serum"]
            analysis = {**values.get("analysis", {})}
        except (KeyError, TypeError, AttributeError):
            return values
        return {**values, "analysis": {"bonus_share": shares[0], **analysis}} if shares else values

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "effort" and not self.conditions:
            raise ValueError("an effort study needs at least one condition: [conditions.NAME]")
        if self.kind == "effort" and self.feedback is not None:
            raise ValueError("[feedback] belongs to a study of kind 'feedback'")
        if self.kind == "feedback" and self.feedback is None:
            raise ValueError("a feedback study needs [feedback] with its cases")
        if self.kind == "feedback" and self.conditions:
            raise ValueError("[conditions] belong to a study of kind 'effort'")
        if self.kind == "effort" and len(self.scale) % 2:
            raise ValueError(f"`scale` must have an even number of points, half of them similar; got {len(self.scale)}")
        return self

    @model_validator(mode="after")
    def _bonuses_agree(self) -> Self:
        for bonus in self.payment.bonuses:
            if bonus.by == "truth_serum" and bonus.share != self.analysis.bonus_share:
                raise ValueError(
                    f"[[payment.bonuses]] pays the truth serum to a share of {bonus.share:g}, but `bonus_share` in "
                    f"[analysis] is {self.analysis.bonus_share:g}; leave the latter out"
                )
        return self

    @model_validator(mode="after")
    def _checks_suffice(self) -> Self:
        limit = self.analysis.exclusions.failed_checks
        if self.attention and limit is not None and limit > len(self.attention):
            raise ValueError(
                f"`failed_checks` in [analysis.exclusions] is {limit}, but there are only {len(self.attention)} "
                "attention checks"
            )
        return self

    @model_validator(mode="after")
    def _all_languages(self) -> Self:
        if len(set(self.languages)) < len(self.languages):
            raise ValueError("`languages` names one twice")
        for where, text in texts_of(self):
            if text and not _unasked(where, self.kind):
                self._check_text(where, text)
        return self

    def _check_text(self, where: str, text: str | Mapping[str, str]) -> None:
        """Refuse a text that lacks a language, or has one or a placeholder that is not known."""
        listed = ", ".join(self.languages)
        if isinstance(text, str) and text not in _ENGLISH and len(self.languages) > 1:
            raise ValueError(f"`{where}` needs a text for each language ({listed}), as in {{ en = '...', de = '...' }}")
        words = {"en" if text in _ENGLISH else self.languages[0]: text} if isinstance(text, str) else text
        for language in self.languages:
            if language not in words:
                raise ValueError(f"`{where}` has no text in {language!r}; give one for each language ({listed})")
        for language, word in words.items():
            if language not in self.languages:
                raise ValueError(f"`{where}` has a text in {language!r}; {did_you_mean(language, self.languages)}")
            _check_placeholders(where, word)

    def instruments(self) -> dict[str, Instrument]:
        """Read the sets of every condition, from beside the `study.toml`, and check that they suffice.

        Raises a `ConfigError` where an instrument holds fewer sets than each person is to see, or shows no score for K.
        """
        found = {}
        for name, condition in self.conditions.items():
            made = load_instrument(self._folder / condition.instrument)
            if len(made.sets) < self.sets_per_person:
                raise ConfigError(
                    f"the instrument of [conditions.{name}] holds {count(len(made.sets), 'set')}, but "
                    f"`sets_per_person` is {self.sets_per_person}; design more sets."
                )
            if any(one.subjects[0].score is None for one in made.sets):
                raise ConfigError(
                    f"the instrument of [conditions.{name}] holds no score to show for K; give the table of "
                    "design_sets() a prediction, or name its `model`."
                )
            found[name] = made
        return found

    def assignment(self) -> Assignment:
        """Read the cases of a feedback study, from beside the `study.toml`, and deal them out to critics."""
        if self.feedback is None:
            raise ConfigError("only a feedback study deals out cases; this one is of kind 'effort'.")
        asked, source = self.feedback, self._folder / self.feedback.cases
        columns, _ = read_columns(source)
        for name in asked.shown:
            if name not in columns:
                raise ConfigError(f"`shown` in [feedback] got {name!r}; {did_you_mean(name, columns)}")
        cases = read_cases(columns, asked.id, asked.decision, asked.groups)
        for label in cases.label_names:
            if label not in asked.labels:
                raise ConfigError(f"`labels` in [feedback] lacks {label!r}; {did_you_mean(label, asked.labels)}")
        return deal_cases(cases, asked.assignment)

    def analyze(self, responses: Responses) -> StudyResult:
        """Analyse responses as [analysis] says."""
        return run(responses, self.analysis)

    def words(self, text: str | Mapping[str, str], language: str | None = None) -> str:
        """Return a text in a language, by default the first."""
        if isinstance(text, str):
            return text
        return text[language if language in self.languages else self.languages[0]]


def texts_of(model: BaseModel, path: str = "") -> Iterator[tuple[str, str | Mapping[str, str]]]:
    """Yield every text shown to people, with the name of its setting."""
    for name, field in type(model).model_fields.items():
        yield from _texts_in(getattr(model, name), f"{path}{name}", _IS_TEXT in field.metadata)


def _texts_in(value: Any, where: str, is_text: bool) -> Iterator[tuple[str, str | Mapping[str, str]]]:
    if is_text:
        yield where, value
    elif isinstance(value, BaseModel):
        yield from texts_of(value, f"{where}.")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts_in(inner, f"{where}.{key}", False)
    elif isinstance(value, tuple) and where == "scale":
        for point, inner in enumerate(value, 1):
            yield f"{where}.{point}", inner
    elif isinstance(value, tuple):
        for place, inner in enumerate(value, 1):
            yield from _texts_in(inner, f"{where}.{place}", False)


_ENGLISH = {*SCALE, *(str(text) for _, text in texts_of(Questions()))}
"""The texts that are there before anybody writes their own; they are English."""
_FEEDBACK_QUESTIONS = ("questions.feedback", "questions.reason")


def _unasked(where: str, kind: Kind) -> bool:
    """Tell whether a text is of no use in this kind of study."""
    if kind == "effort":
        return where == "questions.feedback"
    return where.startswith("scale.") or (where.startswith("questions.") and where not in _FEEDBACK_QUESTIONS)


def _check_placeholders(where: str, text: str) -> None:
    if not where.startswith("questions."):
        return
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            raise ValueError(f"`{where}` has a placeholder {{{name}}}; {did_you_mean(name, PLACEHOLDERS)}")


def read_study(path: str | os.PathLike[str]) -> StudySpec:
    """Read and check a `study.toml`; the files that it names are looked for beside it."""
    name = os.fspath(path)
    try:
        raw = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file '{name}'.") from None
    except IsADirectoryError:
        raise ConfigError(f"'{name}' is a folder; give the path of a study.toml file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"'{name}' is not valid TOML: {error}") from None
    spec = StudySpec.parse(raw, name)
    spec._folder = Path(name).parent
    return spec


def study_schema() -> dict[str, Any]:
    """Return the JSON Schema of `study.toml`.

    Examples
    --------
    >>> import evenhand as eh
    >>> sorted(eh.study.study_schema()["required"])
    ['consent', 'kind', 'name', 'payment', 'title']
    """
    schema = StudySpec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
