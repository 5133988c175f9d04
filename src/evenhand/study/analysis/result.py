"""The result of a study's analysis, and its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.records import OK, Gap, Record, Reveals, Value, column
from evenhand.core.result import Result
from evenhand.errors import ConfigError
from evenhand.messages import Message
from evenhand.study.analysis.descriptor import ANALYSIS
from evenhand.study.analysis.spec import AnalysisSpec

if TYPE_CHECKING:
    from evenhand.core.display import DisplayTable

_CONDITION = "the condition; empty where the study has none"
_METHOD = "how; 'published' and the tests by name take answers for people, the others do not"
_DF = "degrees of freedom of the test; null for a normal or chi-square statistic"
_HOLM = "p-value for the whole family by Holm; `p_adjusted` is Bonferroni's"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyValue(Value):
    """A rank correlation, a weight of effort, or a share of answers with a factor ticked; `n` counts people."""

    value: float | None = column("the value; null where it is undefined", reveals="share", of="answers")
    condition: str = column(_CONDITION, reveals="name")
    target: str = column(
        "what people concluded: 'overall' or 'output'; 'trajectory' between the two distances", reveals="name"
    )
    factor: str | None = column(
        "the distance that is correlated with the target, or the factor ticked", None, reveals="name"
    )
    method: str = column(_METHOD, reveals="name")
    answers: int = column("the answers of these people", reveals="count", of="")
    stderr: float | None = column("standard error", None, reveals="number")
    statistic: float | None = column("test statistic of no correlation", None, reveals="number")
    df: float | None = column(_DF, None, reveals="number")
    p_value: float | None = column("p-value of no correlation", None, reveals="number")
    p_adjusted: float | None = column(
        "p-value for all correlations by this method, by Bonferroni", None, reveals="number"
    )
    p_holm: float | None = column(_HOLM, None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyGap(Gap):
    """Trajectory minus aggregate: of two rank correlations, or of two factor shares; `n` counts people.

    The sign shows which of the two has more weight, so a threshold limits the signed difference.
    """

    signed: ClassVar[bool] = True

    condition: str = column(_CONDITION, reveals="name")
    target: str = column("what people concluded: 'overall' or 'output'", reveals="name")
    method: str = column(_METHOD, reveals="name")
    answers: int = column("the answers of these people", reveals="count", of="")
    stderr: float | None = column("standard error of the gap", None, reveals="number")
    statistic: float | None = column("test statistic of equality", None, reveals="number")
    df: float | None = column(_DF, None, reveals="number")
    p_holm: float | None = column(_HOLM, None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionRecord(Record):
    """One estimate of a regression of the target on both distances."""

    regression: str = column(
        "'condition': of one condition by itself; 'moderation': of all, with the condition in it", reveals="name"
    )
    condition: str = column(f"{_CONDITION}; of the moderation as in 'a against b'", reveals="name")
    target: str = column("what is explained: 'overall' or 'output'", reveals="name")
    metric: str = column(
        "'coefficient', 'wald_test', 'f_statistic', 'r_squared', 'adjusted_r_squared' or 'share_between_people'",
        reveals="name",
    )
    term: str | None = column("the term of a coefficient, or the null hypothesis of a Wald test", None, reveals="name")
    method: str = column(
        "standard errors: 'published' (classical), 'clustered' by person, or 'random_intercept'", reveals="name"
    )
    n: int = column("the people behind the number", reveals="count")
    answers: int = column("the answers of these people", reveals="count", of="")
    value: float | None = column(
        "the value; null where it is undefined, and of a test of several terms", reveals="number"
    )
    low: float | None = column("lower limit of the interval", None, reveals="number")
    high: float | None = column("upper limit of the interval", None, reveals="number")
    stderr: float | None = column("standard error", None, reveals="number")
    statistic: float | None = column("test statistic", None, reveals="number")
    df: float | None = column(_DF, None, reveals="number")
    p_value: float | None = column("p-value of this test alone", None, reveals="number")
    p_adjusted: float | None = column("p-value for the whole family by Bonferroni", None, reveals="number")
    p_holm: float | None = column(_HOLM, None, reveals="number")
    status: Message = column("'ok', or why there is no value, interval or test", OK, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class SerumRecord(Record):
    """The truth-serum results of a condition, without naming participants."""

    condition: str = column(_CONDITION, reveals="name")
    n: int = column("people", reveals="count")
    scored: int = column("people with a score", reveals="count")
    paid: int = column("people with a bonus", reveals="count")
    highest: float | None = column("the highest score", reveals="number")
    lowest_paid: float | None = column("the lowest score with a bonus", reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class BonusRecord(Record):
    """A person's truth-serum score, rank and bonus."""

    individual: ClassVar[bool] = True

    participant: str = column("the person", reveals="name")
    condition: str = column(_CONDITION, reveals="name")
    pairs: int = column("pairs with an answer and a prediction", reveals="count", of="")
    value: float | None = column("the truth-serum score: the mean over the pairs", reveals="number")
    rank: int | None = column("1 for the highest score; null for who cannot be paid", reveals="number")
    bonus: bool = column("whether the person gets the bonus", reveals="number")
    status: Message = column("'ok', or why the person cannot be paid", reveals="name")


@dataclass(frozen=True, repr=False, kw_only=True)
class StudyResult(Result):
    """The results of a study: correlations, comparisons, regressions, factors, weights and truth serum.

    Parameters
    ----------
    values, gaps, regressions, truth_serum, bonus : the tables, as records.
    conditions : the conditions, in order.
    people, answers : the numbers analysed; null if `suppress_below` withholds them.
    """

    descriptor: ClassVar[AuditDescriptor] = ANALYSIS
    main_table: ClassVar[str] = "gaps"
    reveals: ClassVar[Mapping[str, Reveals]] = {"conditions": "name", "people": "count", "answers": "count"}

    spec: AnalysisSpec
    values: tuple[StudyValue, ...]
    gaps: tuple[StudyGap, ...]
    regressions: tuple[RegressionRecord, ...]
    truth_serum: tuple[SerumRecord, ...]
    bonus: tuple[BonusRecord, ...]
    conditions: tuple[str, ...]
    people: int | None
    answers: int | None

    @property
    def weights(self) -> dict[str, float]:
        """The weight of effort in each condition, for `eh.effort(weights=[...])`, without undefined weights."""
        weights: tuple[StudyValue, ...] = self.rows("values", metric="effort_weight", method="published")
        return {record.condition: record.value for record in weights if record.value is not None}

    def paper_table(self, number: int) -> DisplayTable:
        """Return table 2, 3, 4 or 5 of the effort paper in its layout, with published and clustered estimates."""
        from evenhand.study.analysis.section import PAPER_TABLES

        if number not in PAPER_TABLES:
            raise ConfigError("`number` must be one of 2, 3, 4 and 5; got {number}.", number=number)
        table: DisplayTable = PAPER_TABLES[number](self)
        return table
