"""The sections of `study.toml`: conditions, questions, attention checks, payment, cases and recruitment."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evenhand.errors import did_you_mean
from evenhand.settings import Settings
from evenhand.study.cases import CaseSettings
from evenhand.study.schema import FEEDBACK

IS_TEXT = "text shown to people"
Text = Annotated[str | dict[str, str], IS_TEXT]
"""Words shown to people: one text, or one for each language as in ``{en = "Similar", de = "Ähnlich"}``."""

Language = Annotated[str, Field(pattern="^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
PLACEHOLDERS = ("reference", "subject", "subjects", "feature", "outcome", "score", "decision")


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
    names: dict[str, Text] = Field(
        {}, description="What columns and labels are called on the page, as in priors = 'Earlier arrests'."
    )
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
        for name in self.names:
            if name not in (*self.shown, *self.labels):
                raise ValueError(f"`names` got {name!r}; {did_you_mean(name, (*self.shown, *self.labels))}")
        return self


class Recruitment(Settings):
    """Where people come from, and where they are sent at the end; the defaults are those of Prolific."""

    id_parameter: str = Field(
        "PROLIFIC_PID", pattern="^[A-Za-z0-9_.-]{1,64}$", description="The parameter of the link that says who comes."
    )
    required: bool = Field(False, description="Whether only people with such an id may take part.")
    completion_code: str | None = Field(
        None, pattern="^[A-Za-z0-9-]{4,64}$", description="Code shown at the end; by default one made with the study."
    )
    completion_url: str | None = Field(
        None, pattern='^https://[^\\s<>"]+$', description="Link at the end; {code} in it becomes the completion code."
    )
    abandon_after: float = Field(
        4.0, gt=0, description="Hours without an answer after which somebody else may take a person's place."
    )
