"""The sections of `study.toml`: conditions, questions, attention checks, payment, cases, people and recruitment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.functional_validators import model_validator
from pydantic_core import CoreSchema, core_schema

from evenhand.errors import SettingError
from evenhand.settings import Settings
from evenhand.study.cases import CaseSettings
from evenhand.study.schema import BY_NAME, FEEDBACK, require_known

IS_TEXT = "text shown to people"


@dataclass(frozen=True)
class Spelling:
    """The required form of a text, as a pattern for machines and as a phrase for error messages."""

    pattern: str
    must: str

    def check(self, text: str) -> str:
        """Return a text that matches the pattern; raise otherwise."""
        if re.fullmatch(self.pattern.removeprefix("^").removesuffix("$"), text) is None:
            raise SettingError("it must {must}; got {text!r}", must=self.must, text=text)
        return text

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": self.pattern}


def _is_words(value: object) -> object:
    """Return a value that is a text or a table of texts by language; raise otherwise."""
    texts = value.values() if isinstance(value, dict) else [value]
    if not all(isinstance(text, str) for text in texts) or value == {}:
        raise SettingError(
            "it must be a text in quotes, or one for each language as in {{ en = '...', de = '...' }}; got {value!r}",
            value=value,
        )
    return value


Text = Annotated[str | dict[str, str], IS_TEXT, BeforeValidator(_is_words)]
"""A text shown to people, or one text for each language as in ``{en = "Similar", de = "Ähnlich"}``."""

Language = Annotated[
    str, Spelling("^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", "be the short code of a language, such as en, de or pt-BR")
]
Name = Annotated[
    str,
    Spelling(
        "^[a-z0-9][a-z0-9-]{0,63}$",
        "have only small letters a to z, digits and hyphens, at most 64, such as who-is-alike",
    ),
]
Currency = Annotated[str, Spelling("^[A-Z]{3}$", "be three letters such as USD")]
Parameter = Annotated[
    str,
    Spelling(
        "^[A-Za-z0-9_.-]{1,64}$", "have only letters, digits, dots, hyphens and underscores, such as PROLIFIC_PID"
    ),
]
Code = Annotated[str, Spelling("^[A-Za-z0-9-]{4,64}$", "have 4 to 64 letters, digits and hyphens, such as C1A2B3C4")]
ColumnName = Annotated[
    str, Spelling("^[a-z][a-z0-9_]{0,39}$", "have only small letters a to z, digits and underscores, such as age_group")
]
Link = Annotated[str, Spelling('^https://[^\\s<>"]+$', "start with https:// and have no blanks or quotes in it")]

PLACEHOLDERS = ("reference", "subject", "subjects", "feature", "outcome", "score", "decision")
"""The placeholders of questions."""
PAYMENT_PLACEHOLDERS = ("minutes", "amount", "currency")
"""The placeholders of the consent, the instructions and the debrief."""
UNSAID = "prefer not to say"
"""The stored answer of a person who skips a question about themselves."""


class Condition(Settings):
    """A condition of an effort study: the feature whose trajectories are shown, and the words for it."""

    instrument: str = Field(description="The JSON file of the sets, as design_sets(...).save() wrote it.")
    feature: Text = Field(description="What is shown over time, such as 'annual income'.")
    subject: Text = Field(description="What one of the compared is called, such as 'household'.")
    subjects: Text = Field(description="The same in the plural.")
    outcome: Text = Field(description="What the risk score is of, such as 'missing a credit card payment'.")
    desirable: bool = Field(True, description="Whether more of the feature is better.")
    unit: Text = Field("", description="Unit of the values, such as '$'; one text serves every language.")
    share: float = Field(1.0, gt=0, description="People in this condition, relative to the others.")


class Questions(Settings):
    """The texts of the questions, with placeholders such as {reference}, {subject} and {feature}."""

    trajectory: Text = "How similar are {reference} and {subject} in how their {feature} developed?"
    aggregate: Text = "How similar are {reference} and {subject} in their total {feature}?"
    overall: Text = "How similar are {reference} and {subject} overall?"
    factors: Text = "What was behind your last answer? You may tick several."
    factor_trajectory: Text = "How {feature} developed over time"
    factor_aggregate: Text = "The total {feature}"
    factor_other: Text = "Something else (please say what)"
    predicted: Text = "What percentage of the other people asked will call {reference} and {subject} similar?"
    risk: Text = (
        "The risk score of {reference} is {score}: the chance of {outcome}. What score would be fair for {subject}, in "
        "percent?"
    )
    reason: Text = "How did you decide on this? (optional)"
    feedback: Text = "The system decided: {decision}. Do you agree?"


def _is_list(value: object) -> object:
    """Return choices that are a list; raise otherwise."""
    if not isinstance(value, list | tuple):
        raise SettingError(
            "it must be a list of choices, each a text or one for each language as in [{{ en = 'Red', de = "
            "'Rot' }}, {{ en = 'Blue', de = 'Blau' }}]; got {value!r}",
            value=value,
        )
    return value


Choices = Annotated[tuple[Text, ...], BeforeValidator(_is_list)]
"""The choices of a question."""


def _offered(choices: tuple[str | dict[str, str], ...], language: str) -> tuple[str, ...]:
    return tuple(choice if isinstance(choice, str) else choice[language] for choice in choices)


class AttentionCheck(Settings):
    """A question to check that people read carefully: its text, the choices and the right one."""

    question: Text = Field(description="The question.")
    choices: Choices = Field(
        min_length=2, description="The choices; one that is a single text is the same in every language."
    )
    right: str | int = Field(description="The right choice as in the first language, or its number from 1.")
    after: int = Field(1, ge=0, description="After which item it is asked; 0 is before the first.")

    def offered(self, language: str) -> tuple[str, ...]:
        """Return the choices in a language; the choice in the study's first language is stored.

        Examples
        --------
        >>> check = AttentionCheck(question="Choose blue.", choices=[{"en": "Blue", "de": "Blau"}, "7"], right=1)
        >>> check.offered("de"), check.right_choice("en")
        (('Blau', '7'), 'Blue')
        """
        return _offered(self.choices, language)

    def right_choice(self, first: str) -> str | None:
        """Return the right choice in the study's first language; None if `right` is not a choice."""
        offered = self.offered(first)
        if isinstance(self.right, int):
            return offered[self.right - 1] if 1 <= self.right <= len(offered) else None
        return self.right if self.right in offered else None


class AboutQuestion(Settings):
    """A question about the participant, answered by a choice or a whole number."""

    name: ColumnName = Field(description="Name of the answer in the export.")
    question: Text = Field(description="The question.")
    choices: Choices = Field((), description="The choices; one that is a single text is the same in every language.")
    range: tuple[int, int] | None = Field(
        None, description="Instead of choices: the smallest and the largest whole number, such as [18, 99]."
    )
    may_skip: bool = Field(True, description="Whether people may prefer not to say.")

    @model_validator(mode="after")
    def _one_way_to_answer(self) -> Self:
        if (self.range is None) == (not self.choices):
            raise SettingError("the question {name!r} needs `choices` or `range`, and not both", name=self.name)
        if len(self.choices) == 1:
            raise SettingError("`choices` of the question {name!r} must be two or more; got one", name=self.name)
        if self.range is not None and not 0 <= self.range[0] < self.range[1]:
            raise SettingError(
                "`range` of the question {name!r} must rise from 0 or more; got {range}",
                name=self.name,
                range=list(self.range),
            )
        return self

    def offered(self, language: str) -> tuple[str, ...]:
        """Return the choices in a language; the choice in the study's first language is stored."""
        return _offered(self.choices, language)


class About(Settings):
    """The questions about the participants, asked before the study starts.

    Examples
    --------
    >>> kind = AboutQuestion(name="kind", question="Who are you?", choices=["patient", "donor", "surgeon"])
    >>> About(questions=[kind]).names
    ('kind',)
    """

    text: Text = Field("", description="What is said above the questions: why they are asked, and what becomes of it.")
    consent: Text = Field(
        "",
        description="Text of a check box for storing these answers, in addition to the consent to the study; people "
        "who do not check it can only prefer not to say.",
    )
    questions: tuple[AboutQuestion, ...] = Field((), description="The questions, in order.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the questions."""
        return tuple(question.name for question in self.questions)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the questions with numeric answers."""
        return tuple(question.name for question in self.questions if question.range is not None)

    def question(self, name: str, where: str) -> AboutQuestion:
        """Return a question by name; `where` is the setting that names it, for the error message."""
        require_known([name], self.names, f"{where} got {{name}}, which is no question of [about]")
        return next(question for question in self.questions if question.name == name)

    @model_validator(mode="after")
    def _different(self) -> Self:
        for name in self.names:
            if self.names.count(name) > 1:
                raise SettingError("[[about.questions]] has two questions {name!r}", name=name)
            if name in BY_NAME or name.startswith("check_") or name in ("person", "duration_clock"):
                raise SettingError(
                    "the question {name!r} is called as a column of the answers; give it another name", name=name
                )
        return self


class Bonus(Settings):
    """A bonus for the highest truth-serum scores, or for the best-rated reasons."""

    by: Literal["truth_serum", "reasons"] = Field(description="What it is paid for.")
    amount: float = Field(gt=0, description="How much each person gets, in the currency of the payment.")
    share: float = Field(0.1, gt=0, le=1, description="Share of people who get it.")
    of: Literal["mean", "best", "total"] = Field(
        "mean", description="For reasons: which of a person's ratings counts, each the mean of both raters."
    )
    least_agreement: float | None = Field(
        None,
        ge=-1,
        le=1,
        description="For reasons: nobody is paid while the raters' quadratically weighted kappa is below it.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.by != "reasons" and (self.of != "mean" or self.least_agreement is not None):
            raise SettingError("`of` and `least_agreement` belong to a bonus by 'reasons'")
        return self


class Rationales(Settings):
    """Settings for rating people's reasons by two raters, blind to each other, on the researcher pages."""

    raters: tuple[str, ...] = Field(
        (),
        description="The names that the two raters log in with; these logins open nothing but the rating. Without them "
        "nothing is rated.",
    )
    question: str = Field("How detailed and persuasive is this reason?", description="What raters are asked.")
    scale: tuple[str, ...] = Field(
        ("Not at all", "A little", "Fairly", "Very"), description="Words of the ratings, lowest first: three or more."
    )
    leave_out: tuple[str, ...] = Field(
        ("vague", "contradicts the data", "written by a machine"),
        description="Why a reason is not rated; one that either rater leaves out does not count.",
    )
    first: int | None = Field(
        None, ge=1, description="Only reasons for this many sets or cases of a person, from the first; by default all."
    )

    @model_validator(mode="after")
    def _two(self) -> Self:
        if len(set(self.raters)) not in (0, 2) or len(self.raters) != len(set(self.raters)):
            raise SettingError("`raters` must be two different names; got {raters}", raters=list(self.raters))
        if len(self.scale) < 3:
            raise SettingError("`scale` in [rationales] needs three words or more; got {scale}", scale=list(self.scale))
        for name in ("scale", "leave_out"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise SettingError("`{name}` in [rationales] names one twice", name=name)
        return self


class Payment(Settings):
    """The payment of participants."""

    amount: float = Field(ge=0, description="For taking part.")
    currency: Currency = Field("USD", description="Three letters, such as USD or EUR.")
    minutes: float = Field(gt=0, description="How long it takes; the hourly rate follows.")
    bonuses: tuple[Bonus, ...] = Field((), description="Bonuses on top.")

    @property
    def hourly(self) -> float:
        """The pay per hour."""
        return 60 * self.amount / self.minutes


class Disagreement(Settings):
    """The cases and questions of a disagreement study."""

    cases: str = Field(description="The file of the cases.")
    id: str = Field(description="Column that identifies a case.")
    decision: str = Field(description="Column of what the system decided.")
    labels: tuple[str, ...] = Field(min_length=2, description="All labels the system can give, lowest first.")
    groups: tuple[str, ...] = Field((), description="Columns of the groups every critic should see.")
    shown: tuple[str, ...] = Field(min_length=1, description="Columns that critics see of a case.")
    names: dict[str, Text] = Field(
        {}, description="What columns and labels are called on the page, as in priors = 'Earlier arrests'."
    )
    answers: tuple[str, ...] = Field(("agree", "disagree"), description="What critics can answer.")
    assignment: CaseSettings = Field(CaseSettings(), description="How cases are distributed.")
    stakeholder: str | None = Field(
        None, description="The question of [about] that says which kind of critic somebody is: patient, surgeon ..."
    )

    @model_validator(mode="after")
    def _known_answers(self) -> Self:
        require_known(self.answers, FEEDBACK, "`answers` got {name}")
        if "agree" not in self.answers or len(set(self.answers)) < 2:
            raise SettingError("`answers` must hold 'agree' and something else")
        if len(set(self.labels)) < len(self.labels):
            raise SettingError("`labels` names a label twice")
        require_known(self.names, (*self.shown, *self.labels), "`names` got {name}")
        return self


class Filter(Settings):
    """A recruitment filter: the allowed values of a column of the recruiter's export.

    Examples
    --------
    >>> Filter(column="Approval rate", least=99).in_words
    'at least 99'
    """

    column: str = Field(description="The column of the recruiter's export, such as 'Country of residence'.")
    values: tuple[str, ...] = Field(
        (), description="What it may hold, capitals aside; a cell that lists several must hold one of them."
    )
    least: float | None = Field(None, description="Instead of `values`: the smallest number it may hold.")
    most: float | None = Field(None, description="The largest number it may hold.")

    @property
    def in_words(self) -> str:
        """The allowed values as text."""
        if self.values:
            return " or ".join(self.values)
        ends = (("at least", self.least), ("at most", self.most))
        return " and ".join(f"{words} {end:g}" for words, end in ends if end is not None)

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        numbers = self.least is not None or self.most is not None
        if bool(self.values) == numbers:
            raise SettingError(
                "the filter of {column!r} needs `values`, or `least` and `most`, and not both", column=self.column
            )
        if self.least is not None and self.most is not None and self.least > self.most:
            raise SettingError("`least` of the filter of {column!r} is above `most`", column=self.column)
        return self


class Recruitment(Settings):
    """Recruitment settings: link, completion code, filters and quotas; the defaults suit Prolific."""

    id_parameter: Parameter = Field("PROLIFIC_PID", description="The parameter of the link that identifies the person.")
    required: bool = Field(False, description="Whether only people with such an id may take part.")
    completion_code: Code | None = Field(None, description="Code shown at the end; by default one made with the study.")
    completion_url: Link | None = Field(None, description="Link at the end; {code} in it becomes the completion code.")
    most_people: int | None = Field(
        None, ge=1, description="How many people may take part; by default as many as there are places."
    )
    filters: tuple[Filter, ...] = Field(
        (), description="Whom the recruiter should send; `evenhand study recruits` checks it in the recruiter's export."
    )
    export_id: str = Field("Participant id", description="The column of the recruiter's export that holds the ids.")
    quotas: dict[str, dict[str, Annotated[int, Field(ge=0)]]] = Field(
        {},
        description="How many people may take part by what they say about themselves: the question of [about], then "
        f"the choice in the first language, or '{UNSAID}', as in kind = {{ patient = 40, surgeon = 20 }}.",
    )
    turned_away_url: Link | None = Field(
        None,
        description="Link for people whom a quota turns away, such as the recruiter's for those screened out.",
    )
    abandon_after: float = Field(
        4.0, gt=0, description="Hours without an answer after which a person's place may go to somebody else."
    )

    @model_validator(mode="after")
    def _one_code(self) -> Self:
        if self.completion_url and "{code}" not in self.completion_url and self.completion_code is None:
            raise SettingError(
                "`completion_url` has no {code} in it and `completion_code` is not set, so the page would show another "
                "code than the link hands in; set `completion_code`, or put {code} in the link"
            )
        return self
