"""The waiting audit: a table and settings in, the draft of a result out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import fsum, sqrt
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_ind_from_stats

from evenhand.core.estimates import Estimate
from evenhand.core.groups import ComparedGroups, compared_groups
from evenhand.core.records import OK, OVERALL, Against, LeftOut
from evenhand.core.result import Draft
from evenhand.core.thresholds import require_known
from evenhand.messages.shared import say as shared
from evenhand.stats.intervals import bonferroni, student_t, welch_difference
from evenhand.stats.types import FloatArray
from evenhand.table.table import Table
from evenhand_wait.findings import make_claims
from evenhand_wait.messages import say
from evenhand_wait.result import LongWait, Quantile, Rank, WaitGap, WaitResult, WaitValue
from evenhand_wait.spec import WaitSpec


class Waited(NamedTuple):
    """How long the people of a group waited."""

    group: str
    n: int
    mean: float
    deviation: float
    longest: float
    long: int
    long_days: tuple[float, ...]

    @classmethod
    def of(cls, group: str, days: FloatArray, limit: float | None) -> Waited:
        """Return the mean of some days, whatever their order."""
        mean = fsum(days) / len(days)
        deviation = sqrt(fsum((days - mean) ** 2) / max(len(days) - 1, 1))
        long = () if limit is None else tuple(sorted(days[days > limit].tolist()))
        return cls(group, len(days), mean, deviation, float(days.max()), len(long), long)

    @property
    def stderr(self) -> float:
        """The standard error of the mean."""
        return self.deviation / sqrt(self.n)

    @property
    def summary(self) -> tuple[float, float, int]:
        """The mean, its standard error and its degrees of freedom."""
        return self.mean, self.stderr, self.n - 1


def run(table: Table, spec: WaitSpec) -> Draft[WaitResult]:
    """Audit how long the people of a table waited."""
    require_known(spec.thresholds, groupings=table.groupings)
    rows = table.person_rows([spec.days])
    known = ~np.isnan(rows.numbers[spec.days])
    people = rows.where(known)
    days = people.numbers[spec.days]
    missing = int((~known).sum())
    groupings = compared_groups(table, people.groups, spec.reference, spec.min_count, [days])
    waited = {
        grouping: [Waited.of(name, days[grouping.code == code], spec.long) for code, name in enumerate(grouping.groups)]
        for grouping in groupings
    }
    everybody = Waited.of(OVERALL, days, spec.long)
    values = [_value(None, everybody, spec)]
    gaps: list[Estimate[WaitGap]] = []
    for grouping, groups in waited.items():
        values += [_value(grouping.name, group, spec) for group in groups]
        gaps += _gaps(grouping, groups, spec)
    left_out = [LeftOut(n=missing, reason=say("missing_days"))] if missing else []
    result = WaitResult(
        spec=spec,
        findings=(),
        left_out=(*left_out, *(one for grouping in groupings for one in grouping.left_out)),
        notes=(
            *table.source.notes,
            say("measured", column=spec.days),
            say("longest", n=everybody.n, days=everybody.longest),
            *([] if spec.long is None else [say("long_waits", n=everybody.long, days=spec.long)]),
        ),
        backend=table.backend,
        values=tuple(estimate.record for estimate in values),
        gaps=tuple(estimate.record for estimate in gaps),
        **({} if spec.long is None else _long_waits(spec.long, everybody, waited, days)),
    )
    long = {} if spec.long is None else {each.group: each.long for groups in waited.values() for each in groups}
    return Draft(result=result, claims=list(make_claims(values, gaps, long, spec)), own=say)


def _long_waits(
    limit: float, everybody: Waited, waited: dict[ComparedGroups, list[Waited]], days: FloatArray
) -> dict[str, Any]:
    """Return tables and fields that tell of the people who waited long, some of which say what they reveal."""
    counted = [(None, everybody), *((grouping.name, each) for grouping, groups in waited.items() for each in groups)]
    return {
        "long_waits": tuple(
            LongWait(
                grouping=grouping,
                group=each.group,
                longer_than=limit,
                n=each.long,
                mean=fsum(each.long_days) / each.long if each.long else None,
                median=median(each.long_days) if each.long else None,
            )
            for grouping, each in counted
        ),
        "quantiles": tuple(Quantile(share=share, days=float(np.quantile(days, share))) for share in (0.5, 0.99)),
        "ranks": tuple(
            Rank(grouping=grouping.name, group=each.group, place=place)
            for grouping, groups in waited.items()
            for place, each in enumerate(sorted(groups, key=lambda one: -one.mean), 1)
        ),
        "slow": everybody.long,
        "slowest": everybody.long_days[-3:],
    }


def _value(grouping: str | None, waited: Waited, spec: WaitSpec) -> Estimate[WaitValue]:
    """Return the mean of a group, with limits at any confidence."""

    def at(confidence: float) -> WaitValue:
        low, high = student_t(waited.mean, waited.stderr, max(waited.n - 1, 1), confidence)
        return WaitValue(
            grouping=grouping,
            group=waited.group,
            metric="mean_wait",
            n=waited.n,
            value=waited.mean,
            low=float(low),
            high=float(high),
            ward=spec.ward,
            longest=waited.longest,
            status=OK if spec.long is None else say("few_long", n=waited.long, days=spec.long),
        )

    return Estimate(at(spec.confidence), at)


def _gaps(grouping: ComparedGroups, waited: list[Waited], spec: WaitSpec) -> Iterator[Estimate[WaitGap]]:
    """Yield the gap of the worst pair, and of every group to the reference."""
    pairs = list(combinations(sorted(waited, key=lambda one: (-one.mean, one.group)), 2))
    if not pairs:
        undefined = WaitGap(
            grouping=grouping.name,
            metric="mean_wait",
            kind="difference",
            against="worst_pair",
            n=sum(one.n for one in waited),
            value=None,
            status=shared("undefined", why=shared("two_groups_needed", least=spec.min_count)),
            ward=spec.ward,
        )
        yield Estimate(undefined)
        return
    worst = max(pairs, key=lambda pair: pair[0].mean - pair[1].mean)
    yield _gap(grouping.name, worst, "worst_pair", len(pairs), spec)
    for position in grouping.others:
        pair = waited[position], waited[grouping.reference]
        yield _gap(grouping.name, pair, "reference", len(grouping.others), spec)


def _gap(
    grouping: str, pair: tuple[Waited, Waited], against: Against, family: int, spec: WaitSpec
) -> Estimate[WaitGap]:
    """Return the difference of two means, with limits at any confidence."""
    a, b = pair
    test = ttest_ind_from_stats(a.mean, a.deviation, a.n, b.mean, b.deviation, b.n, equal_var=False)
    floor = 0.0 if against == "worst_pair" else -np.inf

    def at(confidence: float) -> WaitGap:
        low, high = welch_difference(a.summary, b.summary, confidence)
        joint_low, joint_high = welch_difference(a.summary, b.summary, bonferroni(confidence, family))
        return WaitGap(
            grouping=grouping,
            group=a.group,
            reference=b.group,
            metric="mean_wait",
            kind="difference",
            against=against,
            n=a.n + b.n,
            value=a.mean - b.mean,
            low=max(float(low), floor),
            high=float(high),
            joint_low=max(float(joint_low), floor),
            joint_high=float(joint_high),
            p_value=min(float(test.pvalue) * family, 1.0),
            worse_off=a.group if a.mean > b.mean else b.group,
            ward=spec.ward,
        )

    return Estimate(at(spec.confidence), at)
