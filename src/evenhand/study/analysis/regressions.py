"""Regressions of the target on both distances: one per condition, and one with conditions as moderators."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.core.estimates import Estimate
from evenhand.core.progress import step
from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.stats import regression as linear
from evenhand.stats.random_intercept import FEWEST_PEOPLE, random_intercept
from evenhand.stats.regression import Coefficients, Inference, LinearFit, WeightEstimate, WeightStatus
from evenhand.stats.types import FloatArray
from evenhand.study.analysis.estimate import BY_PEOPLE
from evenhand.study.analysis.gather import Part, estimate, numbers_at, why_no_spread, why_no_test, why_undefined
from evenhand.study.analysis.messages import say
from evenhand.study.analysis.metrics import DISTANCES, TARGETS
from evenhand.study.analysis.result import RegressionRecord, StudyValue
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.table.roles import TIMES

INFERENCES: dict[str, Inference] = {"published": "classical", "clustered": "cluster"}
ZERO, EQUAL = "aggregate = trajectory = 0", "aggregate = trajectory"
INTERCEPT = "intercept"
_CONDITION = "condition "


def regression_records(
    parts: Sequence[Part], spec: AnalysisSpec
) -> tuple[list[RegressionRecord], list[Estimate[StudyValue]]]:
    """Return the estimates of all regressions, and the weights of effort derived from them."""
    records: list[RegressionRecord] = []
    weights: list[Estimate[StudyValue]] = []
    for part in (part for part in parts if len(part.y)):
        step(f"Fitting the {part.target} distance of {part.condition or 'all people'}")
        regression = Regression("condition", part, part.distances, DISTANCES)
        fit = regression.fit()
        records += regression.records(fit, spec)
        records += regression.null_records(fit)
        records += regression.random_intercept_records(spec)
        if part.target == "overall":
            weights += _weights(part, fit, spec)
    for regression in _moderations(parts, spec):
        step(f"Fitting the moderation of the {regression.part.target} distance")
        records += regression.records(regression.fit(), spec)
        records += regression.random_intercept_records(spec)
    return records, weights


def family_of(record: RegressionRecord) -> Hashable | None:
    """Return the family of tests of a record: slopes by method, or a single null hypothesis; None for intercepts."""
    if record.metric == "wald_test":
        return record.regression, record.method, record.term
    if record.metric != "coefficient" or record.term is None:
        return None
    is_slope = record.term != INTERCEPT and not record.term.startswith(_CONDITION)
    return (record.regression, record.method, "slopes") if is_slope else None


@dataclass(frozen=True)
class Regression:
    """A regression of the target on some terms.

    Parameters
    ----------
    name : 'condition' or 'moderation'.
    part : the answers.
    x, terms : the regressors and their names.
    """

    name: str
    part: Part
    x: FloatArray
    terms: Sequence[str]

    def fit(self) -> LinearFit:
        """Return the least-squares fit."""
        return linear.ols(self.x, self.part.y, self.terms, self.part.who)

    def records(self, fit: LinearFit, spec: AnalysisSpec) -> Iterator[RegressionRecord]:
        """Yield the coefficients, the F test and the explained variance."""
        for method, inference in INFERENCES.items():
            yield from self._coefficients(fit.names, fit.coefficients(inference, spec.confidence), method)
            whole = linear.f_test(fit, inference)
            numbers: dict[str, Any] = {"statistic": whole.f, "df": whole.df_error, "p_value": whole.p_value}
            yield self._record("f_statistic", method, whole.f, status=self._no_test(fit, whole.f), **numbers)
        yield self._record("r_squared", "published", fit.r2)
        yield self._record("adjusted_r_squared", "published", fit.adjusted_r2)

    def null_records(self, fit: LinearFit) -> Iterator[RegressionRecord]:
        """Yield the Wald tests of two null hypotheses: both coefficients are 0, and both are equal."""
        for method, inference in INFERENCES.items():
            both, equal = linear.wald_zero(fit, DISTANCES, inference), linear.wald_equal(fit, *DISTANCES, inference)
            for term, test in ((ZERO, both), (EQUAL, equal)):
                value = float(fit.coef[2] - fit.coef[1]) if term == EQUAL else np.nan
                numbers = {"statistic": test.statistic, "df": test.df_error, "p_value": test.p_value}
                status = self._no_test(fit, test.statistic) or (OK if np.isfinite(test.statistic) else None)
                yield self._record("wald_test", method, value, term, status=status, **numbers)

    def random_intercept_records(self, spec: AnalysisSpec) -> Iterator[RegressionRecord]:
        """Yield the coefficients with a random intercept per person, if there are several people."""
        if self.part.people < 2:
            return
        fit = random_intercept(self.x, self.part.y, self.terms, self.part.who)
        yield from self._coefficients(fit.names, fit.coefficients(spec.confidence), "random_intercept")
        single = self.part.people == len(self.part.y)
        status = shared("undefined", why=say("one_answer_each")) if single else None
        yield self._record("share_between_people", "random_intercept", fit.share, status=status)

    def _coefficients(
        self, terms: Sequence[str], coefficients: Coefficients, method: str
    ) -> Iterator[RegressionRecord]:
        for position, term in enumerate(terms):
            value, numbers = float(coefficients.value[position]), numbers_at(coefficients, position)
            has_no_interval = np.isfinite(value) and not np.isfinite(numbers["low"])
            few = method == "random_intercept" and self.part.people < FEWEST_PEOPLE
            why = say("fewer_people", least=FEWEST_PEOPLE) if few else why_no_spread(self.part)
            status = shared("no_interval", why=why) if has_no_interval else None
            yield self._record("coefficient", method, value, term, status=status, **numbers)

    def _no_test(self, fit: LinearFit, statistic: float) -> Message | None:
        """Return why a fitted model has no test; None if it has a test or there is no fit."""
        return why_no_test(self.part, float(fit.coef.sum()), statistic)

    def _record(
        self, metric: str, method: str, value: float, term: str | None = None, **numbers: Any
    ) -> RegressionRecord:
        columns = estimate(self.part, method, value, **numbers)
        return RegressionRecord(regression=self.name, metric=metric, term=term, **columns)


def _moderations(parts: Sequence[Part], spec: AnalysisSpec) -> Iterator[Regression]:
    """Yield the regressions with the condition and its interactions with both distances, if several.

    A condition with one person is left out: its clustered standard errors would be 0.
    """
    for target in TARGETS:
        compared = [part for part in parts if part.target == target and part.people >= 2]
        if len(compared) > 1:
            conditions = [part.condition for part in compared]
            yield _moderation(compared, spec.baseline if spec.baseline in conditions else conditions[-1])


def _moderation(compared: Sequence[Part], baseline: str) -> Regression:
    others = [part.condition for part in compared if part.condition != baseline]
    whole = replace(
        compared[0],
        condition=f"{', '.join(others)} against {baseline}",
        incomplete=sum(part.incomplete for part in compared),
        distances=np.vstack([part.distances for part in compared]),
        y=np.concatenate([part.y for part in compared]),
        who=np.concatenate([part.who for part in compared]),
    )
    of_row = np.repeat([part.condition for part in compared], [len(part.y) for part in compared])
    x = linear.moderated(whole.distances, np.column_stack([of_row == condition for condition in others]))
    terms = [*DISTANCES]
    for condition in others:
        terms += [f"{_CONDITION}{condition}", *(f"{distance}{TIMES}{condition}" for distance in DISTANCES)]
    return Regression("moderation", whole, x, terms)


# The weight of effort -------------------------------------------------------------------------------------------------


def _weights(part: Part, fit: LinearFit, spec: AnalysisSpec) -> Iterator[Estimate[StudyValue]]:
    for method, inference in INFERENCES.items():
        yield Estimate(_weight(part, linear.delta_weight(fit, inference=inference, confidence=spec.confidence), method))
    by_people = _weight_by_people(part, fit, spec)
    yield Estimate(by_people(spec.confidence), by_people)


def _weight_by_people(part: Part, fit: LinearFit, spec: AnalysisSpec) -> Callable[[float], StudyValue]:
    """Return a function that gives the person-level weight at any confidence, from the same draws."""
    if part.people < 2:
        alone = _weight(part, linear.delta_weight(fit, inference="cluster"), BY_PEOPLE)
        return lambda _: alone
    rng = np.random.default_rng([spec.seed, *part.seeds, 2])
    draws = linear.coefficient_bootstrap(part.distances, part.y, part.who, resamples=spec.resamples, rng=rng)

    def at(level: float) -> StudyValue:
        weight = linear.bootstrap_weight(draws, part.people, trajectory=2, aggregate=1, confidence=level)
        return _weight(part, weight, BY_PEOPLE)

    return at


def _weight(part: Part, weight: WeightEstimate, method: str) -> StudyValue:
    numbers = {name: getattr(weight, name) for name in ("stderr", "df", "low", "high")}
    status = _weight_status(part, weight.status)
    return StudyValue(metric="effort_weight", **estimate(part, method, weight.value, status=status, **numbers))


def _weight_status(part: Part, status: WeightStatus) -> Message:
    if status is WeightStatus.NO_SPREAD:
        return shared("no_interval", why=why_no_spread(part))
    if status is WeightStatus.NO_FIT:
        return shared("undefined", why=why_undefined(part))
    return shared("undefined", why=say("other_signs")) if status is WeightStatus.OTHER_SIGNS else OK
