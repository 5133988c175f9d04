"""Groups at equal effort: ratios of mean scores, standardised over effort bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from evenhand.audits.effort.bins import EffortBins
from evenhand.audits.effort.gather import EffortPeople
from evenhand.audits.effort.large_table import LargeTable
from evenhand.audits.effort.messages import say
from evenhand.audits.effort.result import EffortGap
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.families import MOST_FINDINGS
from evenhand.core.progress import step
from evenhand.core.records import OK
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.effort import effort_bins
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.permutation import MeanComparison, compare_means, compare_moments
from evenhand.stats.types import FloatArray
from evenhand.table.table import Table

_CLEAR = 0.05  # the level, adjusted for all pairs, at which two groups differ clearly
_LEAST_OF_CELLS = 2  # minimum people per group and bin of cells from a data engine, which need a variance

Compare = Callable[[int, int, float], MeanComparison]
"""Function that compares the groups at two positions, at levels down to the third argument."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EqualEffort:
    """The two groups of a model and grouping with the largest difference at equal effort.

    Parameters
    ----------
    model, grouping : the coordinates of the groups.
    group, reference : the group with the lower standardised mean, and the group with the higher one.
    pairs : the number of compared pairs of groups.
    n, apart : the numbers of people of these two groups with and without people of the other group at similar effort.
    n_group : the number of people of `group` among n.
    found : the comparison of the two groups; None if no two groups can be compared.
    """

    model: str
    grouping: str
    group: str | None = None
    reference: str | None = None
    pairs: int = 0
    n: int = 0
    apart: int = 0
    n_group: int = 0
    found: MeanComparison | None = None

    @property
    def p_value(self) -> float:
        """The p-value of the pair, adjusted for all pairs (Bonferroni)."""
        return float("nan") if self.found is None else min(1.0, self.pairs * self.found.p_value)

    def record(self, confidence: float, least: int) -> EffortGap:
        """Return the gap; its limit nearer to equality is adjusted for all pairs, its farther limit is not."""
        found, alpha = self.found, 1.0 - confidence
        value = low = high = float("nan")
        if found is not None and not np.isnan(found.estimate):
            value = found.estimate
            (far_low, far_high), (_, near) = found.limits(alpha), found.limits(alpha / self.pairs)
            low, high = min(far_low, 1.0 / far_high if far_high > 1.0 else 1.0), min(near, 1.0)
        return EffortGap(
            model=self.model,
            grouping=self.grouping,
            group=self.group,
            reference=self.reference,
            metric="equal_effort",
            kind="ratio",
            against="worst_pair",
            n=self.n,
            apart=self.apart,
            n_group=None if self.found is None else self.n_group,
            value=finite(value),
            low=finite(low),
            high=finite(high),
            p_value=finite(self.p_value),
            status=self._status(least),
        )

    def _status(self, least: int) -> Message:
        if self.found is None:
            return shared("undefined", why=say("few_groups", least=least))
        return shared("undefined", why=say("means_of_zero")) if np.isnan(self.found.estimate) else OK


def compare_groups(
    table: Table, subjects: EffortPeople | LargeTable, bins: Sequence[EffortBins], spec: EffortSpec
) -> Iterator[EqualEffort]:
    """Yield the two groups with the largest difference at equal effort, for every model and grouping.

    The means are standardised over effort bins with the weights n_a n_b / (n_a + n_b) (overlap weights; Li, Morgan and
    Zaslavsky 2018). So they are means over the efforts that occur in both groups, and no group needs many people in
    every bin.
    """
    for each in bins:
        step(f"Comparing groups at equal effort under {each.model}")
        if isinstance(subjects, LargeTable):
            yield _worst_pair(each, partial(_compare_moments, each), _LEAST_OF_CELLS)
        else:
            yield _worst_pair(each, _compare_people(subjects, each.model, table.groupings[each.grouping], spec), 1)


def _worst_pair(bins: EffortBins, compare: Compare, least: int) -> EqualEffort:
    """Return the pair with the lowest ratio among clearly different pairs, or among all pairs without any.

    A bin is compared if both groups have at least `least` people in it.
    """
    pairs = list(combinations(bins.large_groups[None].tolist(), 2))
    level = _CLEAR / max(1, len(pairs)) / MOST_FINDINGS
    found = {pair: each for pair in pairs if (each := compare(*pair, level)).basis != "none"}
    if not found:
        return EqualEffort(model=bins.model, grouping=bins.grouping)
    adjusted = dict(zip(found, adjusted_p([each.p_value for each in found.values()], "bonferroni"), strict=True))
    clear = [pair for pair, p in adjusted.items() if p < _CLEAR] or list(found)
    pair = min(clear, key=lambda pair: np.nan_to_num(_lower_first(found[pair]).estimate, nan=1.0))
    a, b = pair if found[pair].mean_a <= found[pair].mean_b else pair[::-1]
    everybody, shared = int(bins.members[None].n[list(pair)].sum()), _shared_people(bins, (a, b), least)
    n = sum(shared)
    return EqualEffort(
        model=bins.model,
        grouping=bins.grouping,
        group=bins.labels[a],
        reference=bins.labels[b],
        pairs=len(found),
        n=n,
        apart=everybody - n,
        n_group=shared[0],
        found=_lower_first(found[pair]),
    )


def _shared_people(bins: EffortBins, pair: tuple[int, int], least: int) -> tuple[int, int]:
    """Return the numbers of people of two groups in the bins where both groups have at least `least`."""
    n = np.array([each.n[list(pair)] for number, each in bins.members.items() if number is not None])
    first, second = n[n.min(axis=1) >= least].sum(axis=0)
    return int(first), int(second)


def _lower_first(found: MeanComparison) -> MeanComparison:
    return found.swapped() if found.mean_a > found.mean_b else found


def _compare_people(people: EffortPeople, model: str, columns: tuple[str, ...], spec: EffortSpec) -> Compare:
    """Return a function that compares two groups of people in memory."""
    codes, _ = people.rows.groups.joint(columns)
    bins, score = effort_bins(people.effort, spec.width), people.compared(model)
    weight = np.ones(people.n) if people.rows.weight is None else people.rows.weight

    def compare(a: int, b: int, level: float) -> MeanComparison:
        rows = np.flatnonzero((codes == a) | (codes == b))
        in_a, stratum, heavy = codes[rows] == a, bins[rows], weight[rows]
        size = int(stratum.max()) + 1
        return compare_means(
            score[rows],
            in_a,
            ~in_a,
            weights=None if people.rows.weight is None else heavy,
            strata=stratum,
            shares=_overlap(*(np.bincount(stratum, heavy * side, size).astype(np.float64) for side in (in_a, ~in_a))),
            contrast="ratio",
            bounds=(0.0, 1.0),
            alpha=_CLEAR,
            level=level,
        )

    return compare


def _compare_moments(bins: EffortBins, a: int, b: int, _: float) -> MeanComparison:
    """Compare two groups of cells counted by a data engine; so many people need no permutation."""
    of_bins = [
        each
        for number, each in bins.members.items()
        if number is not None and min(each.n[a], each.n[b]) >= _LEAST_OF_CELLS
    ]
    n, mean, stderr = (
        np.array([[getattr(each, name)[side] for each in of_bins] for side in (a, b)])
        for name in ("trials", "mean", "stderr")
    )
    return compare_moments(n, mean, stderr**2 * n, _overlap(*n), contrast="ratio", bounds=(0.0, 1.0))


def _overlap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the weight of each bin in the overlap of two groups."""
    both = a + b
    return np.divide(a * b, both, out=np.zeros_like(both), where=both > 0)
