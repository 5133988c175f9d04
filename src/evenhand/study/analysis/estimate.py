"""Values and gaps: correlations of the two distances with the target, shares of factors, and the bonus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand.core.estimates import Estimate
from evenhand.core.progress import step
from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats import correlation
from evenhand.stats.correlation import ClusterEstimate, cluster_t, contrast, rank_bootstrap, two_sided_p
from evenhand.stats.draws import Draws
from evenhand.stats.intervals import wilson
from evenhand.stats.regression import ols
from evenhand.stats.truth_serum import Bonus, bonus, person_scores, scores
from evenhand.stats.types import FloatArray, IntArray
from evenhand.study.analysis.gather import Part, estimate, numbers_at, why_no_spread, why_no_test
from evenhand.study.analysis.messages import say
from evenhand.study.analysis.result import BonusRecord, SerumRecord, StudyGap, StudyValue
from evenhand.study.analysis.spec import AnalysisSpec
from evenhand.study.responses import Responses
from evenhand.study.schema import FACTORS

BY_PEOPLE = "participant_bootstrap"
TESTS: dict[str, tuple[Callable[..., Any], bool]] = {
    "hotelling": (correlation.hotelling_t, True),
    "williams": (correlation.williams_t, True),
    "meng": (correlation.meng_z, False),
    "steiger": (correlation.steiger_z, False),
}
"""The row-level tests by name: the function, and whether it uses Student's t with n - 3 degrees of freedom."""

# Positions of correlations in the draws: aggregate with trajectory, aggregate with target, trajectory with target.
_BETWEEN, _AGGREGATE, _TRAJECTORY = 0, 1, 2


def _gap(metric: str, columns: dict[str, Any]) -> StudyGap:
    return StudyGap(
        metric=metric, group="trajectory", reference="aggregate", kind="difference", against="reference", **columns
    )


# Correlations ---------------------------------------------------------------------------------------------------------


def correlation_records(parts: Sequence[Part], spec: AnalysisSpec) -> tuple[list[StudyValue], list[Estimate[StudyGap]]]:
    """Return the rank correlations, and the trajectory's minus the aggregate's."""
    values: list[StudyValue] = []
    gaps: list[Estimate[StudyGap]] = []
    for part in (part for part in parts if len(part.y)):
        step(f"Correlating the answers of {part.condition or 'all people'}, {part.target} distance")
        r = _coefficients(part)
        by_people = difference = None
        if part.people > 1:
            rng = np.random.default_rng([spec.seed, *part.seeds, 0])
            draws = rank_bootstrap(part.columns, part.who, resamples=spec.resamples, rng=rng)
            by_people = cluster_t(draws, part.people, spec.confidence)
            difference = contrast(draws, _TRAJECTORY, _AGGREGATE)
        values += _correlations(part, r, by_people, spec)
        value = float(r[_TRAJECTORY] - r[_AGGREGATE])
        by_rows = [*_row_tests(part, r), *_row_bootstrap(part, value, spec)]
        gaps += [Estimate(_gap("rank_correlation", columns)) for columns in by_rows]
        gaps.append(_difference_by_people(part, difference, value, spec.confidence))
    return values, gaps


def _difference_by_people(part: Part, draws: Draws | None, value: float, confidence: float) -> Estimate[StudyGap]:
    """Return the person-level difference of the correlations, with limits at any confidence level."""

    def at(level: float) -> StudyGap:
        difference = None if draws is None else cluster_t(draws, part.people, level)
        return _gap("rank_correlation", _by_people(part, difference, 0, value, 2))

    return Estimate(at(confidence), at)


def _coefficients(part: Part) -> FloatArray:
    if len(part.y) < 2:
        return np.full(3, np.nan)
    return correlation.spearman_matrix(part.columns)[np.triu_indices(3, 1)]


def _correlations(
    part: Part, r: FloatArray, by_people: ClusterEstimate | None, spec: AnalysisSpec
) -> Iterator[StudyValue]:
    """Yield the correlations with the target, and once per condition the correlation of the two distances."""
    wanted = [("aggregate", _AGGREGATE, part.target), ("trajectory", _TRAJECTORY, part.target)]
    if part.seeds[1] == 0:
        wanted.append(("aggregate", _BETWEEN, "trajectory"))
    n = len(part.y)
    for factor, position, target in wanted:
        value = float(r[position])
        t = float(correlation.correlation_t(value, n)) if abs(value) < 1 else np.nan
        low, high = correlation.spearman_interval(value, n, spec.confidence)
        limits = {"low": float(low), "high": float(high)}
        published = _tested(part, "published", value, t, n - 2, **limits)
        for columns in (published, _by_people(part, by_people, position, value, 1)):
            yield StudyValue(metric="rank_correlation", factor=factor, **{**columns, "target": target})


def _by_people(
    part: Part, estimates: ClusterEstimate | None, position: int, value: float, largest: float
) -> dict[str, Any]:
    """Return the columns of a person-level bootstrap estimate with absolute value at most `largest`."""
    if estimates is None or np.isnan(estimates.stderr[position]):
        status = shared("no_interval", why=why_no_spread(part)) if np.isfinite(value) else None
        return estimate(part, BY_PEOPLE, value, status=status)
    numbers = numbers_at(estimates, position)
    numbers |= {"low": max(numbers["low"], -largest), "high": min(numbers["high"], largest)}
    return estimate(part, BY_PEOPLE, value, **numbers)


def _row_tests(part: Part, r: FloatArray) -> Iterator[dict[str, Any]]:
    n, value = len(part.y), float(r[_TRAJECTORY] - r[_AGGREGATE])
    for name, (test, student) in TESTS.items():
        statistic = float(test(r[_TRAJECTORY], r[_AGGREGATE], r[_BETWEEN], n))
        statistic = statistic if np.isfinite(statistic) else np.nan
        yield _tested(part, name, value, statistic, float(n - 3) if student else np.inf)


def _tested(part: Part, method: str, value: float, statistic: float, df: float, **limits: float) -> dict[str, Any]:
    """Return a number with its test, or the reason why it has no test."""
    p_value, status = float(two_sided_p(statistic, df)), why_no_test(part, value, statistic)
    return estimate(part, method, value, statistic=statistic, df=df, p_value=p_value, status=status, **limits)


def _row_bootstrap(part: Part, value: float, spec: AnalysisSpec) -> Iterator[dict[str, Any]]:
    """Yield the published interval of table 4 (percentiles of resampled rows), extended to contain the value."""
    if np.isnan(value):
        return
    rng = np.random.default_rng([spec.seed, *part.seeds, 1])
    draws = rank_bootstrap(part.columns, np.arange(len(part.y)), resamples=spec.resamples, rng=rng)
    gap = contrast(draws, _TRAJECTORY, _AGGREGATE)
    low, high = (float(limit[0]) for limit in gap.percentile(spec.confidence))
    stderr = float(gap.stderr()[0])
    yield estimate(part, "row_bootstrap", value, stderr=stderr, low=min(low, value), high=max(high, value))


# Factors --------------------------------------------------------------------------------------------------------------


def factor_records(responses: Responses, spec: AnalysisSpec) -> tuple[list[StudyValue], list[StudyGap]]:
    """Return the share of answers that tick each factor, and the trajectory's share minus the aggregate's.

    The question is optional: an answer counts if at least one factor was ticked. The published form is the share with
    Wilson's interval over rows; the clustered form allows for dependence between a person's answers.
    """
    ticked = np.column_stack([responses.numbers(f"factor_{factor}") for factor in FACTORS])
    asked = (np.nan_to_num(ticked) > 0).any(axis=1)
    names = responses.condition_of_rows()
    values: list[StudyValue] = []
    gaps: list[StudyGap] = []
    for condition in responses.conditions:
        rows = asked & (names == condition)
        if not rows.any():
            continue
        ticks, who = np.nan_to_num(ticked[rows]), responses.person[rows]
        for position, factor in enumerate(FACTORS):
            for method, share in share_estimates(ticks[:, position], who, spec.confidence).items():
                columns = _mean_columns(condition, method, who, share)
                values.append(StudyValue(metric="factor_share", factor=factor, **columns))
        difference = clustered_mean(ticks[:, 0] - ticks[:, 1], who, spec.confidence)
        tested = {"statistic": finite(difference.statistic), "p_value": finite(difference.p_value)}
        gaps.append(_gap("factor_share", _mean_columns(condition, "clustered", who, difference) | tested))
    return values, gaps


class MeanEstimate(NamedTuple):
    """A mean with its limits, and the test that the mean is 0."""

    value: float
    low: float = np.nan
    high: float = np.nan
    statistic: float = np.nan
    p_value: float = np.nan


def share_estimates(y: FloatArray, who: IntArray, confidence: float) -> dict[str, MeanEstimate]:
    """Return a share of rows with Wilson's interval (published), and with an interval clustered by person."""
    share = float(y.mean())
    low, high = wilson(share, len(y), confidence)
    mean = clustered_mean(y, who, confidence)
    ends = {"low": float(np.clip(mean.low, 0.0, 1.0)), "high": float(np.clip(mean.high, 0.0, 1.0))}
    return {"published": MeanEstimate(share, float(low), float(high)), "clustered": mean._replace(**ends)}


def clustered_mean(y: FloatArray, who: IntArray, confidence: float) -> MeanEstimate:
    """Return a mean over rows with clustered limits; limits are nan if people do not differ."""
    fit = ols(np.zeros((len(y), 0)), y, (), who)
    mean = fit.coefficients("cluster", confidence)
    if not mean.stderr[0] > 0:
        return MeanEstimate(float(fit.coef[0]))
    return MeanEstimate(*(float(v[0]) for v in (fit.coef, mean.low, mean.high, mean.statistic, mean.p_value)))


def _mean_columns(condition: str, method: str, who: IntArray, mean: MeanEstimate) -> dict[str, Any]:
    whose = {"condition": condition, "target": "overall", "n": len(np.unique(who)), "answers": len(who)}
    numbers = {"value": finite(mean.value), "low": finite(mean.low), "high": finite(mean.high)}
    status = OK if numbers["low"] is not None else shared("no_interval", why=say("all_alike"))
    return {**whose, "method": method, **numbers, "status": status}


# The truth serum ------------------------------------------------------------------------------------------------------


def bonus_table(responses: Responses, spec: AnalysisSpec) -> tuple[tuple[BonusRecord, ...], list[Message]]:
    """Return each participant's truth-serum score, rank and bonus, the highest first, and notes.

    An overall answer in the nearer half of the scale counts as 'similar'. Each pair is scored among the people who
    gave an answer and a prediction; a person's score is the mean over their pairs. To be eligible, a person must have
    finished (if known) and scored on a share `bonus_answered` of the pairs asked in their condition, because
    the mean of a single pair would be mostly luck.
    """
    answers, predictions = _matrices(responses)
    if not (~np.isnan(predictions)).any():
        return (), []
    value, counted = person_scores(scores(answers, predictions, weight=spec.serum_weight))
    eligible = counted >= np.maximum(1, spec.bonus_answered * _asked(responses, answers))
    eligible &= np.asarray(responses.people.get("finished", np.ones(len(counted)))) != 0
    paid = bonus(value, share=spec.bonus_share, eligible=eligible, include_ties=spec.bonus_ties)
    records = [
        BonusRecord(
            participant=str(participant),
            condition=str(responses.people["condition"][person] or ""),
            pairs=int(counted[person]),
            value=finite(value[person]),
            rank=int(paid.rank[person]) or None,
            bonus=bool(paid.chosen[person]),
            status=OK if eligible[person] else say("not_eligible"),
        )
        for person, participant in enumerate(responses.people["participant"])
    ]
    records.sort(key=lambda record: (record.rank is None, record.rank or 0, record.participant))
    unpredicted = int((~np.isnan(answers) & np.isnan(predictions)).sum())
    return tuple(records), list(_notes(unpredicted, paid, spec))


def serum_records(records: Sequence[BonusRecord]) -> Iterator[SerumRecord]:
    """Yield a summary of the truth serum per condition without names, since reports are shared widely."""
    for condition in dict.fromkeys(record.condition for record in records):
        people = [record for record in records if record.condition == condition]
        values = [record.value for record in people if record.value is not None]
        paid = [record.value for record in people if record.bonus and record.value is not None]
        counts = {"n": len(people), "scored": len(values), "paid": len(paid)}
        highest, lowest_paid = max(values, default=None), min(paid, default=None)
        yield SerumRecord(condition=condition, **counts, highest=highest, lowest_paid=lowest_paid)


def _asked(responses: Responses, answers: FloatArray) -> FloatArray:
    """Return for each person the number of pairs asked in their condition: the largest number answered there."""
    conditions = np.array([str(name or "") for name in responses.people["condition"]])
    _, condition = np.unique(conditions, return_inverse=True)
    most = np.zeros(condition.max(initial=0) + 1)
    np.maximum.at(most, condition, (~np.isnan(answers)).sum(axis=1))
    return most[condition]


def _matrices(responses: Responses) -> tuple[FloatArray, FloatArray]:
    """Return (people, pairs) arrays: whether a pair was called similar, and the predicted share of 'similar'."""
    pairs, pair_of_row = np.unique(responses.pairs().astype(str), return_inverse=True)
    overall, shape = responses.numbers("overall"), (len(responses.people["participant"]), len(pairs))
    answers, predictions = np.full(shape, np.nan), np.full(shape, np.nan)
    similar = np.where(np.isnan(overall), np.nan, overall <= responses.points / 2)
    answers[responses.person, pair_of_row] = similar
    predictions[responses.person, pair_of_row] = responses.numbers("predicted")
    return answers, predictions


def _notes(unpredicted: int, paid: Bonus, spec: AnalysisSpec) -> Iterator[Message]:
    if unpredicted:
        yield say("unpredicted", n=unpredicted)
    unfilled = paid.places - int(paid.chosen.sum())
    if paid.tied:
        yield say("tied", n=paid.tied, places=paid.places)
    elif unfilled > 0 and not spec.bonus_ties:
        yield say("unfilled", places=paid.places, unfilled=unfilled)
