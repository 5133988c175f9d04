"""The waiting audit: a table and settings in, the draft of a result out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import fsum, sqrt
from typing import NamedTuple

import numpy as np
from scipy.stats import ttest_ind_from_stats

from evenhand.core.groups import ComparedGroups, compared_groups
from evenhand.core.records import OVERALL, Against, LeftOut
from evenhand.core.result import Draft
from evenhand.core.thresholds import require_known
from evenhand.errors import count
from evenhand.stats.intervals import bonferroni, student_t, welch_difference
from evenhand.stats.types import FloatArray
from evenhand.table.table import Table
from evenhand_wait.findings import SENTENCES, make_claims
from evenhand_wait.result import WaitGap, WaitResult, WaitValue
from evenhand_wait.spec import WaitSpec


class Waited(NamedTuple):
    """How long the people of a group waited."""

    group: str
    n: int
    mean: float
    deviation: float
    longest: float

    @classmethod
    def of(cls, group: str, days: FloatArray) -> Waited:
        """Return the mean of some days, whatever their order."""
        mean = fsum(days) / len(days)
        deviation = sqrt(fsum((days - mean) ** 2) / max(len(days) - 1, 1))
        return cls(group, len(days), mean, deviation, float(days.max()))

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
    groupings = compared_groups(table, people.groups, spec.reference, spec.min_count)
    waited = {
        grouping: [Waited.of(name, days[grouping.code == code]) for code, name in enumerate(grouping.groups)]
        for grouping in groupings
    }
    everybody = Waited.of(OVERALL, days)

    def estimated(spec: WaitSpec) -> tuple[list[WaitValue], list[WaitGap]]:
        values = [_value(None, everybody, spec)]
        gaps: list[WaitGap] = []
        for grouping, groups in waited.items():
            values += [_value(grouping.name, group, spec) for group in groups]
            gaps += _gaps(grouping, groups, spec)
        return values, gaps

    values, gaps = estimated(spec)
    left_out = [LeftOut(n=missing, reason="missing days")] if missing else []
    result = WaitResult(
        spec=spec,
        findings=(),
        left_out=(*left_out, *(one for grouping in groupings for one in grouping.left_out)),
        notes=(*table.source.notes, f"{count(everybody.n, 'patient')} waited {everybody.longest:g} days at most."),
        backend=table.backend,
        values=tuple(values),
        gaps=tuple(gaps),
    )
    return Draft(
        result=result,
        claims=list(make_claims(values, gaps)),
        at=lambda confidence: list(make_claims(*estimated(spec.at(confidence)))),
        sentences=SENTENCES,
    )


def _value(grouping: str | None, waited: Waited, spec: WaitSpec) -> WaitValue:
    low, high = student_t(waited.mean, waited.stderr, max(waited.n - 1, 1), spec.confidence)
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
    )


def _gaps(grouping: ComparedGroups, waited: list[Waited], spec: WaitSpec) -> Iterator[WaitGap]:
    """Yield the gap of the worst pair, and of every group to the reference."""
    pairs = list(combinations(sorted(waited, key=lambda one: (-one.mean, one.group)), 2))
    if not pairs:
        yield WaitGap(
            grouping=grouping.name,
            metric="mean_wait",
            kind="difference",
            against="worst_pair",
            n=sum(one.n for one in waited),
            value=None,
            status="undefined: fewer than two groups are large enough",
            ward=spec.ward,
        )
        return
    worst = max(pairs, key=lambda pair: pair[0].mean - pair[1].mean)
    yield _gap(grouping.name, worst, "worst_pair", len(pairs), spec)
    for position in grouping.others:
        pair = waited[position], waited[grouping.reference]
        yield _gap(grouping.name, pair, "reference", len(grouping.others), spec)


def _gap(grouping: str, pair: tuple[Waited, Waited], against: Against, family: int, spec: WaitSpec) -> WaitGap:
    a, b = pair
    low, high = welch_difference(a.summary, b.summary, spec.confidence)
    joint_low, joint_high = welch_difference(a.summary, b.summary, bonferroni(spec.confidence, family))
    test = ttest_ind_from_stats(a.mean, a.deviation, a.n, b.mean, b.deviation, b.n, equal_var=False)
    p_value = min(float(test.pvalue) * family, 1.0)
    floor = 0.0 if against == "worst_pair" else -np.inf
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
        p_value=p_value,
        worse_off=a.group if a.mean > b.mean else b.group,
        ward=spec.ward,
    )
