"""Coverage of the bootstrap of cells for values standardised over strata and for custom metrics."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.coverage._parity.core import UNEXPLAINED, Effort, Row, covered
from benchmarks.coverage._parity.rates import KINDS
from evenhand.audits.parity.analysis import Analysis
from evenhand.audits.parity.comparison import Analysed, analyse
from evenhand.audits.parity.definition import ParityMetric
from evenhand.audits.parity.gather import GroupCells, Totals
from evenhand.audits.parity.metrics import BOOTSTRAPPED, METRICS, custom_metric
from evenhand.audits.parity.resampled import Custom
from evenhand.audits.parity.result import ParityGap
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.records import STANDARDISED, Value
from evenhand.stats.types import FloatArray, IntArray, Interval

FACTORS = np.array([0.6, 1.0, 1.4])
"""The rates of three strata, as multiples of their mean."""

MIX = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
"""The shares of the strata in two groups of one size."""

OWN = custom_metric("f1")


def f1(cells: Totals) -> FloatArray:
    """Return the harmonic mean of the positive predictive value and the true positive rate."""
    return np.asarray(2 * cells.tp / (2 * cells.tp + cells.fp + cells.fn))


def cells_of(n: IntArray) -> GroupCells:
    """Return the cells of counts by stratum, group, outcome and decision."""
    first, second = np.zeros((*n.shape, 3)), np.zeros((*n.shape, 3, 3))
    first[..., 0], second[..., 0, 0] = n, n
    strata = tuple(map(str, range(len(n)))) if len(n) > 1 else ("",)
    return GroupCells(("a", "b"), strata, n, first, second, weighted=False)


Record = Value | ParityGap


def audited(n: IntArray, metric: ParityMetric, custom: Custom | None, effort: Effort) -> Analysed:
    """Return the audit's records for counts, standardised if there are several strata; group b is the reference."""
    standardise = len(n) > 1
    support = {metric.name: np.ones(len(n), dtype=bool)} if standardise else None
    return analyse(
        Analysis(
            model="m",
            grouping="g",
            stratum=STANDARDISED if standardise else None,
            cells=cells_of(n),
            metrics=[(metric, custom)],
            spec=ParitySpec(resamples=effort.resamples),
            reference=1,
            score_range=(0.0, 1.0),
            favourable=None,
            support=support,
        )
    )


def quantities(analysed: Analysed) -> Iterator[tuple[str, Record]]:
    """Yield the first group's value and gaps, and the worst pair, by name."""
    yield "value", analysed.values[0].record
    for gap in (estimate.record for estimate in analysed.gaps):
        if gap.group in (None, "a") or gap.against == "worst_pair":
            yield f"{gap.against} {gap.kind}", gap


def truths(value: float, other: float, overall: float) -> dict[str, float]:
    """Return the true value and gaps of the first group, which has the lower value."""
    found = {"value": value}
    for against, base in (("reference", other), ("overall", overall)):
        found |= {f"{against} difference": value - base, f"{against} ratio": value / base}
    return found | {"worst_pair difference": other - value, "worst_pair ratio": value / other}


def gathered(
    name: str, size: int, at: str, records: dict[str, list[Record]], truth: dict[str, float], why: str
) -> list[Row]:
    """Return one row for each quantity."""
    rows = []
    for what, found in records.items():
        low = np.array([np.nan if r.low is None else r.low for r in found])
        # A ratio without a high limit has none because it is infinite, where it has a low one.
        high = np.array([np.nan if r.low is None else np.inf if r.high is None else r.high for r in found])
        coverage, none = covered(Interval(low, high), truth[what])
        words = what.replace("_pair", "").replace("overall", "to all,").replace("reference", "to ref.,")
        is_permuted = name == "standardised" and what.split("_")[0].split()[0] in ("worst", "reference")
        method = "permutation" if is_permuted else "max-t" if what.startswith("worst") else "BCa"
        rows.append(Row(f"{name} {words}", size, at, method, coverage, none, len(found), (), why))
    return rows


def few(positives: float) -> str:
    """Return a note that the bootstrap has few people, if so."""
    return (
        f"a bootstrap of few (about {positives:.0f} selected in the smallest stratum)"
        if positives <= 20
        else UNEXPLAINED
    )


def standardised(size: int, rate: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage of standardised selection rates over three strata, with rates in the ratio 4/5."""
    factors = FACTORS if rate < 0.5 else 1 + (FACTORS - 1) / 2
    rate_of = np.stack([0.8 * rate * factors, rate * factors])
    share = MIX.mean(axis=0)
    everybody = (MIX / 2 * rate_of).sum(axis=0) / share
    truth = truths(*(float((share * part).sum()) for part in (*rate_of, everybody)))
    # Cells by group, stratum and decision; all people have one outcome.
    chances = np.stack([MIX / 2 * (1 - rate_of), MIX / 2 * rate_of], axis=-1)
    records: dict[str, list[Record]] = {}
    for _ in range(effort.boots // 3):
        drawn = rng.multinomial(2 * size, chances.ravel()).reshape(2, 3, 2)
        n = np.zeros((3, 2, 2, 2), dtype=np.int64)
        n[:, :, 0] = drawn.transpose(1, 0, 2)
        for what, record in quantities(audited(n, METRICS["selection_rate"], None, effort)):
            records.setdefault(what, []).append(record)
    why = few(float(size * (MIX * rate_of).min()))
    return gathered("standardised", size, f"{0.8 * rate:g} {rate:g}", records, truth, why)


def custom_f1(size: int, prevalence: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for F1 of two groups of `size`, as a custom metric."""
    return _of_cells("F1", OWN, f1, size, prevalence, effort, rng)


def weighted_f1(size: int, prevalence: float, effort: Effort, rng: np.random.Generator) -> list[Row]:
    """Return the coverage for weighted F1 of two groups of `size`."""
    return _of_cells("weighted F1", *BOOTSTRAPPED["weighted_f1"], size, prevalence, effort, rng)


def _of_cells(
    name: str,
    metric: ParityMetric,
    function: Custom,
    size: int,
    prevalence: float,
    effort: Effort,
    rng: np.random.Generator,
) -> list[Row]:
    """Return the coverage for a function of the cells, with true positive rates 0.5 and 0.7."""
    tpr = np.array([0.5, 0.7])
    chances = np.empty((2, 2, 2))  # group, outcome, decision
    chances[:, 1, 1], chances[:, 1, 0] = prevalence * tpr, prevalence * (1 - tpr)
    chances[:, 0, 1], chances[:, 0, 0] = (1 - prevalence) * 0.1, (1 - prevalence) * 0.9

    def value(part: FloatArray) -> float:
        cells: Any = SimpleNamespace(tp=part[1, 1], fn=part[1, 0], fp=part[0, 1], tn=part[0, 0])
        return float(function(cells))

    truth = truths(value(chances[0]), value(chances[1]), value(chances.sum(axis=0)))
    records: dict[str, list[Record]] = {}
    for _ in range(effort.boots // 3):
        n = np.stack([rng.multinomial(size, part.ravel()).reshape(2, 2) for part in chances])[None]
        for what, record in quantities(audited(n, metric, function, effort)):
            records.setdefault(what, []).append(record)
    why = few(size * prevalence * 0.5)
    assert set(records) == {"value", *(f"{a} {k}" for a in ("worst_pair", "reference", "overall") for k in KINDS)}
    return gathered(name, size, f"{prevalence} positive", records, truth, why)
