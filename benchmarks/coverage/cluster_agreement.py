"""Coverage of agreement about people in clusters of different difficulty for the raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from evenhand.audits.agreement.draws import draw_group, with_errors
from evenhand.audits.agreement.estimate import gap_estimates, value_records
from evenhand.audits.agreement.gather import RatedPeople
from evenhand.audits.agreement.metrics import METRICS
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.groups import ComparedGroups
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.cells import Cells

MEASURED = (
    "audits/agreement/clustered.py",
    "audits/agreement/draws.py",
    "audits/agreement/estimate.py",
    "stats/clusters.py",
    "stats/agreement",
)
CLUSTERS = ((10, 10), (10, 50), (30, 30), (100, 100))
CORRELATIONS = (0.05, 0.1, 0.3)
ROWS = 10
AGREE = 0.8
"""The chance of agreement; with both ratings equally usual, kappa is 0.6."""
NAMES = ("agreement", "kappa")
TRUTH = {"agreement": AGREE, "kappa": 2 * AGREE - 1}


@dataclass(frozen=True, kw_only=True)
class Case:
    """Clusters of two groups; a cluster's probability of agreement is beta distributed."""

    clusters: tuple[int, int]
    within: float

    @property
    def name(self) -> str:
        """The name of the line."""
        return f"{self.clusters[0]} and {self.clusters[1]} clusters of {ROWS} rows, correlation {self.within}"

    def drawn(self, rng: Generator) -> tuple[FloatArray, IntArray, IntArray]:
        """Return the ratings of both raters, and the group and cluster of each row."""
        number, strength = sum(self.clusters), 1.0 / self.within - 1.0
        cluster = np.repeat(np.arange(number), ROWS)
        agree = rng.random(len(cluster)) < rng.beta(AGREE * strength, (1 - AGREE) * strength, number)[cluster]
        usual = rng.beta(0.5 * strength, 0.5 * strength, number)[cluster]
        first = (rng.random(len(cluster)) < usual).astype(np.float64)
        ratings = np.column_stack([first, np.where(agree, first, 1.0 - first)])
        return ratings, (cluster >= self.clusters[0]).astype(np.int64), cluster


def lines_of(samples: int, rng: Generator, case: Case) -> Sequence[Line]:
    """Return the coverage of the limits of one group and of a difference, among defined limits."""
    found: dict[tuple[str, str], list[bool]] = {(name, what): [] for name in NAMES for what in ("group", "difference")}
    metrics = {name: METRICS[name] for name in NAMES}
    spec = AgreementSpec(raters=("a", "b"), resamples=100, metrics=NAMES)
    for _ in range(samples):
        ratings, group, cluster = case.drawn(rng)
        cells = Cells({}, {}, np.ones(len(group), dtype=np.int64))
        rated = RatedPeople(
            scale="binary",
            labels=("no", "yes"),
            ratings=ratings,
            weight=None,
            groups=cells,
            dropped=0,
            raters=("a", "b"),
            cluster=cluster,
        )
        groups = with_errors([draw_group(rated, group == g, list(metrics.values()), 0.0, spec) for g in (0, 1)])
        for value in value_records(groups[0], "group", "A", metrics, 0.95):
            if value.low is not None and value.high is not None:
                found[value.metric, "group"].append(value.low <= TRUTH[value.metric] <= value.high)
        sizes = tuple(np.bincount(group).tolist())
        compared = ComparedGroups("group", ("A", "B"), sizes, 0, group, ())
        for estimate in gap_estimates(compared, groups, metrics, spec):
            gap = estimate.record
            if gap.against == "reference" and gap.low is not None and gap.high is not None:
                found[gap.metric, "difference"].append(gap.low <= 0.0 <= gap.high)
    return [
        Line(
            what=f"{METRICS[name].title_in_sentence}: interval of a {what}, rows in clusters",
            population=case.name,
            kind="interval",
            nominal=0.95,
        ).seen(np.array(covered))
        for (name, what), covered in found.items()
    ]


def promises(book: Book) -> None:
    """Declare the lines of all cases."""
    for clusters in CLUSTERS:
        for within in CORRELATIONS:
            case = Case(clusters=clusters, within=within)
            guard = 40 if clusters == (30, 30) and within == 0.1 else 0
            book.several(case.name, partial(lines_of, case=case), samples=1_000, guard=guard)
