"""The power of tests and thresholds of rates, by simulation.

Rates are simulated for the plan's groups. All groups have the same rate except the smallest group, and the gap is
widened until its test or threshold decides in the wanted share of samples. Tests and verdicts are the audit's
(`evenhand.stats.two_rates`), with the level corrected for all pairs of groups and all questions of the plan. The
correction is Bonferroni's; the audit uses Holm's, which is never stricter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenhand.audits.parity.decisions import RateDecision
from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.messages import say
from evenhand.audits.parity.metrics import METRICS
from evenhand.core.power import Power, PowerLine, PowerPlan
from evenhand.core.records import Value
from evenhand.core.thresholds import Threshold
from evenhand.errors import ConfigError, did_you_mean
from evenhand.messages import Message
from evenhand.stats.bootstrap import named_rng
from evenhand.stats.intervals import tail_share
from evenhand.stats.two_rates import RateComparison, compare_rates
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.roles import UNNAMED

if TYPE_CHECKING:
    from evenhand.core.spec import Spec

Kind = Literal["difference", "ratio"]
_STEPS = 10
_BELOW: dict[tuple[str, ...], tuple[str, bool]] = {
    ("tp", "fn"): ("base_rate", False),
    ("fp", "tn"): ("base_rate", True),
    ("tp", "fp"): ("selection_rate", False),
    ("fn", "tn"): ("selection_rate", True),
}
"""The rate equal to the denominator's share of people (or, if True, its complement)."""


@dataclass(frozen=True)
class ExpectedRate:
    """The expected rate of a metric in one grouping: group names, shares that count, and the rate.

    Groups too small for the audit are in `left_out`.
    """

    model: str | None
    grouping: str
    names: tuple[str, ...]
    shares: FloatArray
    rate: float
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class RateQuestion:
    """A question of the plan: a test or a threshold of a rate, in one grouping of one model."""

    metric: ParityMetric
    expected: ExpectedRate
    threshold: Threshold | None

    @property
    def kind(self) -> Kind:
        """The kind of gap in question: a difference or a ratio."""
        return "ratio" if self.threshold is not None and self.threshold.kind == "ratio" else "difference"


def lines(plan: PowerPlan) -> Iterator[PowerLine]:
    """Yield the power of the parity audit's tests and thresholds."""
    spec = plan.specs.get("parity")
    if spec is None:
        return
    if _are_numbers(plan):
        yield PowerLine(audit="parity", metric="", how=say("numbers_not_simulated"))
        return
    questions = list(_questions(plan, spec))
    for question in questions:
        family = [other for other in questions if (other.threshold is None) == (question.threshold is None)]
        answered = sum(len(other.expected.names) > 1 for other in family)
        yield _rate_line(plan, question, spec.confidence, max(1, answered))
    for threshold in spec.thresholds:
        metric = _known_metrics(spec).get(spec.metric_of(threshold))
        if metric is None or metric.method != "rate" or threshold.of == "value":
            how = say("limits_a_value" if threshold.of == "value" else "no_rate_simulated")
            yield PowerLine(
                audit="parity", metric=threshold.metric, threshold=threshold.message(), points=True, how=how
            )


def _are_numbers(plan: PowerPlan) -> bool:
    return plan.pilot is not None and any(map(plan.pilot.has_numbers, plan.pilot.models))


def _questions(plan: PowerPlan, spec: Spec) -> Iterator[RateQuestion]:
    """Yield the tests of headline rates and the thresholds, by grouping and model."""
    for metric in _tested_rates(spec):
        for expected in _expected_rates(plan, metric, needed=False):
            yield RateQuestion(metric, expected, None)
    for threshold in spec.thresholds:
        limited = _known_metrics(spec).get(spec.metric_of(threshold))
        if threshold.of == "gap" and limited is not None and limited.method == "rate":
            for expected in _expected_rates(plan, limited, needed=True):
                if threshold.model in (None, expected.model) and threshold.grouping in (None, expected.grouping):
                    yield RateQuestion(limited, expected, threshold)


def _known_metrics(spec: Spec) -> dict[str, ParityMetric]:
    """Return the built-in metrics not replaced by a custom metric."""
    return {name: metric for name, metric in METRICS.items() if name not in getattr(spec, "custom", ())}


def _tested_rates(spec: Spec) -> list[ParityMetric]:
    chosen = getattr(spec, "metrics", None)  # requested metrics are always findings
    rates = [metric for metric in _known_metrics(spec).values() if metric.method == "rate"]
    return [metric for metric in rates if (metric.headline if chosen is None else metric.name in chosen)]


def _expected_rates(plan: PowerPlan, metric: ParityMetric, *, needed: bool) -> Iterator[ExpectedRate]:
    """Yield the expected rates of a metric, from the pilot or from `[power]`."""
    if plan.pilot is not None:
        yield from _expected_from_pilot(plan, metric)
        return
    rates = plan.settings.rates
    below, rest = _BELOW.get(metric.denominator_names, (None, False))
    lacking = [name for name in (metric.name, below) if name is not None and name not in rates]
    if lacking and needed:
        raise ConfigError(
            "`rates` in [power] has no {lacking!r}, which the threshold for {name!r} needs; add it, or give "
            "a file of like data with --pilot.",
            lacking=lacking[0],
            name=metric.name,
        )
    if lacking:
        return
    share = 1.0 if below is None else rates[below]
    counted = 1.0 - share if rest else share
    for grouping, shares in _planned_groups(plan).items():
        rate = rates[metric.name]
        yield _expectation(plan, None, grouping, [(group, counted * part, rate) for group, part in shares.items()])


def _planned_groups(plan: PowerPlan) -> Mapping[str, Mapping[str, float]]:
    """Return the shares of groups in `[power]` by grouping.

    Refuse names that are not groupings of the data.
    """
    if not plan.settings.groups:
        raise ConfigError(
            "[power] says nothing of the groups; add their shares, such as groups = { race = { a = 0.7, b = 0.3 } }."
        )
    for grouping in plan.settings.groups:
        if plan.groupings and grouping not in plan.groupings:
            hint = did_you_mean(grouping, plan.groupings)
            raise ConfigError(
                "`groups` in [power] names {grouping!r}, which is no grouping of [data]; {hint}",
                grouping=grouping,
                hint=hint,
            )
    return plan.settings.groups


def _expected_from_pilot(plan: PowerPlan, metric: ParityMetric) -> Iterator[ExpectedRate]:
    """Yield the expected rates from the pilot's groups, without groups too small in the pilot."""
    assert plan.pilot is not None  # noqa: S101
    from evenhand.audits.parity.audit import parity

    if "outcome" in metric.needs and plan.pilot.roles.outcome is None:
        return
    least = plan.specs["parity"].min_count
    result = parity(plan.pilot, metrics=[metric.name], min_count=least)
    for model, grouping in dict.fromkeys((value.model, value.grouping) for value in result.values):
        rows = result.rows("values", model=model, grouping=grouping, metric=metric.name)
        piloted = [(str(row.group), row.n / plan.pilot.rows, row.value) for row in rows if _is_compared(row, least)]
        if grouping is not None and len(piloted) > 1:
            yield _expectation(plan, model, grouping, piloted)


def _is_compared(row: Value, least: int) -> bool:
    """Return whether the audit compares a pilot's group: it is named, large enough, and has a rate."""
    return row.group not in UNNAMED and row.n >= least and row.value is not None


def _expectation(
    plan: PowerPlan, model: str | None, grouping: str, groups: Sequence[tuple[str, float, float]]
) -> ExpectedRate:
    """Return the expected rate from groups (name, share of the rows, rate), without groups too small for the audit."""
    least = plan.specs["parity"].min_count
    large = [row for row in groups if round(row[1] * plan.rows) >= least]
    names, left_out = (tuple(row[0] for row in groups if (row in large) is is_large) for is_large in (True, False))
    shares, rates = (np.array([row[column] for row in large], dtype=np.float64) for column in (1, 2))
    rate = float(np.average(rates, weights=shares)) if large else 0.0
    return ExpectedRate(model, grouping, names, shares, rate, left_out)


def _rate_line(plan: PowerPlan, question: RateQuestion, confidence: float, family: int) -> PowerLine:
    """Return the power of one test or threshold of a rate within its family."""
    expected, threshold = question.expected, question.threshold
    columns: dict[str, Any] = {
        "audit": "parity",
        "metric": question.metric.name,
        "model": expected.model,
        "grouping": expected.grouping,
        "threshold": None if threshold is None else threshold.message(question.metric.style(question.kind)),
        "kind": question.kind,
        "points": True,
    }
    if len(expected.names) < 2:
        how = _with_left_out(say("power_nothing_compared"), plan, expected)
        return PowerLine(**columns, meets=None if threshold is None else 0.0, how=how)
    people = np.maximum(1, np.round(plan.rows * expected.shares)).astype(np.int64)
    smallest = int(np.argmin(people))
    keys = (question.metric.name, expected.model or "", expected.grouping, threshold.in_words() if threshold else "")
    draws = named_rng(plan.seed, "power", *keys).random((plan.settings.samples, people.size))
    simulation = _Simulation(question, people, smallest, draws, confidence, family)
    gap = simulation.smallest_shown(plan.power)
    return PowerLine(
        **columns,
        group=expected.names[smallest],
        n=int(people[smallest]),
        gap=gap if gap is None or question.kind == "difference" else 1.0 - gap / expected.rate,
        meets=None if threshold is None else float(simulation.met_without_gap().mean()),
        how=_with_left_out(say("rate_simulated", samples=plan.settings.samples, rate=expected.rate), plan, expected),
    )


def _with_left_out(how: Message, plan: PowerPlan, expected: ExpectedRate) -> Message:
    if not expected.left_out:
        return how
    return say("power_left_out", how=how, least=plan.specs["parity"].min_count, groups=expected.left_out)


@dataclass(frozen=True)
class _Simulation:
    """Simulated rates of the groups, equal in all but one, with the audit's decisions on them.

    Parameters
    ----------
    question : the test or threshold.
    people : the number of people that count in each group.
    odd : the position of the group that differs.
    draws : (samples, groups) uniform random numbers, the same for all gaps.
    confidence : the confidence of the audit.
    family : the number of tests (or of verdicts) in the plan.
    """

    question: RateQuestion
    people: IntArray
    odd: int
    draws: FloatArray
    confidence: float
    family: int

    def smallest_shown(self, wanted: float) -> float | None:
        """Return the smallest gap detected with the wanted power, by bisection.

        Return None if even the widest gap lacks the power.
        """
        rate = self.question.expected.rate
        below, above = 0.0, rate if self._downwards else 1.0 - rate
        if self.shown(above).mean() < wanted:
            return None
        for _ in range(_STEPS):
            middle = (below + above) / 2
            below, above = (below, middle) if self.shown(middle).mean() >= wanted else (middle, above)
        return above

    @property
    def _downwards(self) -> bool:
        return self.question.kind == "ratio" or self.question.expected.rate >= 0.5

    def shown(self, gap: float) -> BoolArray:
        """Return the mask of samples in which the difference, or a violation of the threshold, is significant.

        Only pairs that include the differing group are tested, because all other pairs are equal.
        """
        others = np.delete(np.arange(self.people.size), self.odd) if self._among_all else self._base
        return self._decision.shown(self._pairs(gap, np.full_like(others, self.odd), others))

    def met_without_gap(self) -> BoolArray:
        """Return the mask of samples without a gap that show the threshold to be met, without a family correction."""
        sides = np.triu_indices(self.people.size, 1) if self._among_all else (np.array([self.odd]), self._base)
        return self._decision.met(self._pairs(0.0, *sides))

    @property
    def _among_all(self) -> bool:
        """Whether all pairs of groups are compared, not only pairs with the reference group or all people."""
        threshold = self.question.threshold
        return threshold is None or threshold.against == "worst_pair"

    @property
    def _base(self) -> IntArray:
        return np.array([int(np.argmax(self.people))])

    @property
    def _decision(self) -> RateDecision:
        groups, threshold = self.people.size, self.question.threshold
        pairs = groups * (groups - 1) // 2 if self._among_all else groups - 1
        return RateDecision(
            kind=self.question.kind,
            limit=None if threshold is None else threshold.limit,
            confidence=self.confidence,
            family=self.family,
            near_tail=tail_share(self.confidence) / pairs,
            pairs=pairs,
        )

    def _pairs(self, gap: float, first: IntArray, second: IntArray) -> RateComparison:
        """Return the simulated comparisons of pairs of groups, one sample per row."""
        from scipy.stats import binom

        rates = np.full(self.people.size, self.question.expected.rate)
        rates[self.odd] += -gap if self._downwards else gap
        yes = np.asarray(binom.ppf(self.draws, self.people, np.clip(rates, 0.0, 1.0)))
        counts = yes[:, first], self.people[first], yes[:, second], self.people[second]
        return compare_rates(*counts, self.question.kind)


POWER = Power(lines=lines)
"""The parity audit's power calculation."""
