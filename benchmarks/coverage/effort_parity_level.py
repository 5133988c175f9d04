"""Error rates and power of verdicts on parity by effort, with every bin at the limit.

Two or four groups in each bin, scores from beta distributions. "Does not meet" is wrong if the means have the ratio 0.8
in all bins and the limit is 0.8. "Meets" is right if the groups are equal; beside it is the verdict from the joint
limits of all bins, which both verdicts used earlier. The finding is about all bins together: groups that differ only in
effort must not be reported as different. Its power for different groups is compared with a regression of scores on
group and bin with robust errors.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator

import evenhand as eh
from benchmarks.coverage._lines import Book
from evenhand.audits.effort.bins import EffortBins, bin_records
from evenhand.audits.effort.findings import make_claims
from evenhand.audits.effort.group_means import GroupedMeans, group_means
from evenhand.audits.effort.result import EffortGap, EffortResult
from evenhand.audits.effort.spec import EffortSpec
from evenhand.core.estimates import Estimate
from evenhand.core.thresholds import judge_all
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MEASURED = ("audits/effort", "stats/permutation", "stats/intervals.py", "stats/worst_pair.py", "core/thresholds.py")

LIMIT = [{"audit": "effort", "metric": "eagf", "min": 0.8}]
SPEC = EffortSpec(trajectory=("a", "b", "c"), width=0.01, thresholds=LIMIT)


def compared(groups: int, bins: int, each: int, first: float, rng: Generator) -> list[EffortGap]:
    """Return the gaps of all bins in one random sample, least equal first."""
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
    (claim,) = (claim for claim in claims if claim.sentence_id == "bin_parity")
    return [record for record in claim.records if isinstance(record, EffortGap)]


def wrong(samples: int, rng: Generator, groups: int, bins: int, each: int) -> BoolArray:
    """Return whether each sample with parity at the limit gets the verdict "does not meet"."""
    threshold = SPEC.thresholds[0]
    return np.array(
        [judge_all(threshold, compared(groups, bins, each, 0.4, rng))[1] == "does_not_meet" for _ in range(samples)]
    )


def meets(samples: int, rng: Generator, groups: int, bins: int, each: int) -> tuple[BoolArray, BoolArray]:
    """Return whether each sample of equal groups gets the verdict "meets": ours, and by joint limits."""
    found = np.zeros((samples, 2), dtype=np.bool_)
    for sample in range(samples):
        gaps = compared(groups, bins, each, 0.5, rng)
        together = all((gap.joint_low or 0.0) >= SPEC.thresholds[0].limit for gap in gaps)
        found[sample] = judge_all(SPEC.thresholds[0], gaps)[1] == "meets", together
    return found[:, 0], found[:, 1]


def audited(people: int, rng: Generator, shift: float, rare: bool) -> tuple[EffortResult, float]:
    """Return the audit of two groups that differ in effort, and by `shift` in scores, with a regression's p-value.

    A fifth of the people are in the first group; the p-value is the group's in a regression of scores on group and bin.
    """
    in_first = rng.random(people) < 0.2
    effort = np.clip(rng.beta(4, 4, people) + np.where(in_first, 0.15, 0.0), 0.05, 0.94)
    noise = np.where(rng.random(people) < 0.025, 0.3, 0.02 * rng.random(people)) if rare else 0.2 * rng.random(people)
    start, score = np.zeros(people), 0.6 * np.floor(effort * 10) / 10 + noise + np.where(in_first, shift, 0.0)
    table = eh.Table(
        {
            "m": score,
            "g": np.where(in_first, "a", "b"),
            "x": start,
            "y": start,
            "z": np.log(effort / (1 - effort)),
        },
        groups="g",
        predictions={"m": {"column": "m", "kind": "score"}},
    )
    return eh.effort(table, trajectory=("x", "y", "z")), by_regression(
        score, in_first, np.floor(effort * 10).astype(int)
    )


def by_regression(score: FloatArray, in_first: BoolArray, place: IntArray) -> float:
    """Return the group's p-value in a least-squares regression on group and bin with robust errors (HC1)."""
    from scipy.stats import t

    people, n = np.bincount(place), place.size
    apart, value = (x - (np.bincount(place, x) / np.maximum(people, 1))[place] for x in (in_first.astype(float), score))
    slope = float(apart @ value / (apart @ apart))
    freedom = n - np.count_nonzero(people) - 1
    error = np.sqrt(np.sum((apart * (value - slope * apart)) ** 2) * n / freedom) / (apart @ apart)
    return float(2 * t.sf(abs(slope) / error, freedom))


def said_to_differ(samples: int, rng: Generator, people: int, shift: float, rare: bool) -> tuple[BoolArray, BoolArray]:
    """Return whether the groups are reported as different: by the ratio at equal effort, and by a regression."""
    found = np.zeros((samples, 2), dtype=np.bool_)
    for sample in range(samples):
        result, p = audited(people, rng, shift, rare)
        found[sample] = result.get("gaps", metric="equal_effort").p_value < 0.05, p < 0.05
    return found[:, 0], found[:, 1]


def promises(book: Book) -> None:
    """Declare the lines of all designs."""
    for people, rare in ((400, False), (400, True), (2_000, True)):
        scores = "2.5 % of scores far above the others" if rare else "uniform scores"
        for shift in (0.0, 0.03):
            book.measure(
                "parity at equal effort",
                f"{people} people, {scores}, {'groups differ in effort alone' if not shift else 'scores .03 apart'}",
                partial(said_to_differ, people=people, shift=shift, rare=rare),
                kind="power" if shift else "test",
                nominal=None if shift else 0.05,
                oracle="regression on group and bin",
                samples=300,
                guard=30 if (people, rare, shift) == (400, False, 0.0) else 0,
            )
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
