"""Verdicts on parity by effort: how often they are wrong where every bin is at the limit, and how often right.

Two or four groups in each bin, scores from beta distributions. "Does not meet" is wrong where the means are in the
ratio 0.8 in all bins and the limit is 0.8. "Meets" is right where the groups are equal; beside it stands what the joint
limits of all bins, which both verdicts once had, would say.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book
from evenhand.audits.effort.bins import EffortBins, bin_records
from evenhand.audits.effort.findings import make_claims
from evenhand.audits.effort.group_means import GroupedMeans, group_means
from evenhand.audits.effort.result import EffortGap
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.estimates import Estimate
from evenhand.core.thresholds import judge_all
from evenhand.stats.types import BoolArray

MEASURED = ("audits/effort", "stats/intervals.py", "stats/worst_pair.py", "core/thresholds.py")

LIMIT = [{"audit": "effort", "metric": "eagf", "min": 0.8}]
SPEC = EffortSpec(trajectory=("a", "b", "c"), width=0.01, thresholds=LIMIT)


def compared(groups: int, bins: int, each: int, first: float, rng: Generator) -> list[EffortGap]:
    """Return the gaps of the bins of one sample, the least equal one first."""
    place = np.repeat(np.arange(bins), groups * each)
    group = np.tile(np.repeat(np.arange(groups), each), bins)
    mean = np.where(group == 0, first, 0.5)
    score = rng.beta(4 * mean, 4 * (1 - mean))
    by_bin = group_means(place, group, score, None, (bins, groups))
    whole = group_means(np.zeros_like(place), group, score, None, (1, groups))
    labels = tuple(f"g{number}" for number in range(groups))
    bins_of = EffortBins.of(GroupedMeans(by_bin, whole, labels), "m", "g", SPEC.min_count)
    values, gaps = bin_records(bins_of, SPEC)
    claims = make_claims([*map(Estimate, values)], [*map(Estimate, gaps)], (), SPEC)
    (claim,) = (claim for claim in claims if claim.sentence_id == "least_equal")
    return [record for record in claim.records if isinstance(record, EffortGap)]


def wrong(samples: int, rng: Generator, groups: int, bins: int, each: int) -> BoolArray:
    """Tell whether parity at the limit is said not to meet it."""
    threshold = SPEC.thresholds[0]
    return np.array(
        [judge_all(threshold, compared(groups, bins, each, 0.4, rng))[1] == "does_not_meet" for _ in range(samples)]
    )


def meets(samples: int, rng: Generator, groups: int, bins: int, each: int) -> tuple[BoolArray, BoolArray]:
    """Tell whether equal groups are said to meet the limit: ours, and by joint limits."""
    found = np.zeros((samples, 2), dtype=np.bool_)
    for sample in range(samples):
        gaps = compared(groups, bins, each, 0.5, rng)
        together = all((gap.joint_low or 0.0) >= SPEC.thresholds[0].limit for gap in gaps)
        found[sample] = judge_all(SPEC.thresholds[0], gaps)[1] == "meets", together
    return found[:, 0], found[:, 1]


def promises(book: Book) -> None:
    """Declare the lines."""
    for groups, bins, each in ((2, 1, 30), (2, 10, 100), (4, 5, 30), (4, 10, 15)):
        book.measure(
            "parity by effort: false 'does not meet'",
            f"{bins} bins, {groups} groups of {each}, all at the limit of .8",
            partial(wrong, groups=groups, bins=bins, each=each),
            kind="verdict",
            nominal=0.05,
            samples=300,
            guard=40 if (groups, bins) == (4, 5) else 0,
        )
    for groups, bins, each in ((2, 10, 200), (4, 10, 200)):
        book.measure(
            "parity by effort: 'meets' .8",
            f"{bins} bins, {groups} groups of {each}, equal",
            partial(meets, groups=groups, bins=bins, each=each),
            kind="power",
            oracle="joint limits",
            samples=100,
        )
