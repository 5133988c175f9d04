"""Level and coverage of gaps within lists, for shortlists, exposure and pairs, in lists of unequal length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from evenhand.audits.ranking.ranks import RankedRows
from evenhand.stats.types import FloatArray
from evenhand.stats.within_units import UnitMeans

MEASURED = ("stats/sign_flips.py", "stats/within_units.py", "audits/ranking/ranks.py")
METRICS = {"shortlist rate": 1.0, "exposure": 3.0, "pairwise accuracy": 1.0}
SHORTLIST = 5
FEW = "a list often has one or two candidates of the small group, so that the differences are skewed"


@dataclass(frozen=True)
class Population:
    """Lists with candidates of two groups.

    Parameters
    ----------
    name : the special feature of the lists.
    lists : the number of lists.
    advantage : the amount by which scores of the first group are higher.
    share : the mean share of the first group over lists.
    uneven : whether the share differs from list to list.
    allowed, why : the promised coverage if below 95 %, and the reason.
    """

    name: str
    lists: int
    advantage: float = 0.0
    share: float = 0.5
    uneven: bool = False
    allowed: float | None = None
    why: str = ""


POPULATIONS = (
    *(Population("equal groups", lists) for lists in (10, 30, 200)),
    Population("equal groups, one in ten of a group", 60, share=0.1, allowed=0.92, why=FEW),
    Population("equal groups, in other shares in every list", 60, uneven=True),
    Population("scores .3 sd higher", 60, advantage=0.3),
    Population("scores .3 sd higher, in other shares in every list", 60, advantage=0.3, uneven=True),
)


def differences(rng: Generator, of: Population, lists: int) -> dict[str, UnitMeans]:
    """Return the values of lists' candidates by metric."""
    sizes = rng.integers(8, 40, lists)
    query = np.repeat(np.arange(lists), sizes)
    share = rng.beta(2, 2, lists) if of.uneven else np.full(lists, of.share)
    group = (rng.random(len(query)) >= share[query]).astype(np.int64)
    fit = rng.normal(0.0, 1.0, len(query))
    score = fit + rng.normal(0.0, 1.0, len(query)) + of.advantage * (group == 0)
    ranked = RankedRows.build(query, score, fit + rng.normal(0.0, 0.5, len(query)) > 0.5)
    rows = ranked.shortlisted(SHORTLIST), ranked.exposure(), ranked.pairwise_accuracy()
    in_order = group[ranked.order]
    return {
        name: UnitMeans.build(ranked.query, in_order, 2, values, largest)
        for (name, largest), values in zip(METRICS.items(), rows, strict=True)
    }


def truth_of(rng: Generator, of: Population) -> dict[str, float]:
    """Return the true differences, from a large number of lists."""
    if of.advantage == 0.0:
        return dict.fromkeys(METRICS, 0.0)
    found = differences(rng, of, 60_000)
    return {name: _mean(means.pair(0, 1).comparison) for name, means in found.items()}


def _mean(compared: object) -> float:
    return float(getattr(compared, "mean", np.nan))


def lines_of(samples: int, rng: Generator, of: Population) -> Sequence[Line]:
    """Return the lines of coverage and of rejections (level or power) for each metric."""
    truth = truth_of(rng, of)
    found: dict[str, FloatArray] = {name: np.zeros((samples, 2)) for name in METRICS}
    for sample in range(samples):
        for name, means in differences(rng, of, of.lists).items():
            compared = means.pair(0, 1).comparison
            assert compared is not None
            low, high = compared.limits(0.95)
            found[name][sample] = low <= truth[name] <= high, compared.p_value < 0.05
    lines = []
    is_null = of.advantage == 0.0
    for name in METRICS:
        covers, rejects = found[name].astype(np.bool_).T
        population = f"{of.name}, {of.lists} lists"
        interval = Line(
            what=f"interval of a gap in {name}",
            population=population,
            kind="interval",
            nominal=0.95,
            allowed=of.allowed,
            why=of.why,
        )
        test = Line(
            what=f"test of a gap in {name}",
            population=population,
            kind="test" if is_null else "power",
            nominal=0.05 if is_null else None,
            allowed=None if of.allowed is None or not is_null else 1.0 - of.allowed,
            why=of.why,
        )
        lines += [interval.seen(covers), test.seen(rejects)]
    return lines


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    for population in POPULATIONS:
        book.several(
            f"{population.name}, {population.lists}",
            partial(lines_of, of=population),
            samples=1_000,
            guard=100 if population.lists == 30 else 0,
        )
