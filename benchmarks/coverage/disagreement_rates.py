"""Coverage of the intervals of rates in the disagreement audit.

The data are synthetic kidney offers with known true rates. For each metric the lines report, over all classes and
groups, the share of intervals that cover the true rate, beside the coverage of the sample's bounds alone; and the class
and group with the lowest coverage. The nominal coverage is 95 %. The intervals of one sample are correlated, so the
Monte Carlo error counts samples, not intervals.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

import evenhand as eh
from benchmarks.coverage._lines import Book, Line
from evenhand.audits.disagreement.estimate import value_records
from evenhand.audits.disagreement.gather import gather
from evenhand.audits.disagreement.groups import answer_set, find_groupings
from evenhand.audits.disagreement.metrics import METRICS, computed_metrics
from evenhand.audits.disagreement.result import DisagreementValue
from evenhand.audits.disagreement.spec import Answers, DisagreementSpec
from evenhand.stats.feedback import INDEFINITE

MEASURED = ("audits/disagreement/estimate.py", "stats/feedback")

CASES, CRITICS, EACH = 400, 80, 20


def rates_in(seed: int, grouping: str, answers: dict[str, str], resamples: int) -> list[DisagreementValue]:
    """Return the audit's rates for one random sample."""
    offers = eh.datasets.make_kidney_offers(CASES, CRITICS, seed, cases_per_critic=EACH)
    spec = DisagreementSpec(
        decision="quality",
        critic="critic",
        case="offer",
        answers=Answers(labels=(1, 2, 3, 4)),
        resamples=resamples,
        seed=seed,
        disagree=answers.get("disagree"),
        answer=answers.get("answer"),
    )
    table = eh.Table(offers, groups=grouping)
    panel = gather(table, spec)
    heard = answer_set(panel, find_groupings(table, panel, spec.min_count)[0], compared=False)
    return list(value_records(heard, computed_metrics(0), spec))


def lines(samples: int, rng: Generator, *, grouping: str, answers: dict[str, str]) -> list[Line]:
    """Return two lines per metric: the coverage over all classes and groups, and the lowest of any class and group."""
    truth = eh.datasets.kidney_offers_truth()["all"][grouping]
    held, bounded = (defaultdict[str, dict[str, list[tuple[int, bool]]]](lambda: defaultdict(list)) for _ in range(2))
    for sample in range(samples):
        for rate in rates_in(int(rng.integers(2**31)), grouping, answers, 200):
            name = rate.metric if rate.label is None else f"{rate.metric}_{rate.label}"
            true, cell = truth[rate.group][name], f"{rate.group}{'' if rate.label is None else f', class {rate.label}'}"
            if rate.low is None or rate.high is None or rate.lower is None or rate.upper is None:
                continue
            held[rate.metric][cell].append((sample, rate.low <= true <= rate.high))
            bounded[rate.metric][cell].append((sample, rate.lower - 1e-9 <= true <= rate.upper + 1e-9))
    said = "agree or disagree" if "disagree" in answers else "which way they differ"
    who = f"{CASES} cases, {CRITICS} critics, {EACH} cases each, who say {said}"
    found = []
    for metric, cells in held.items():
        line = Line(what=f"{METRICS[metric].title}: interval of a rate", population=who, kind="interval", nominal=0.95)
        alone = {"the bounds of the sample alone": _by_sample(bounded[metric])}
        told = line.seen(_by_sample(cells))
        found.append(told.held_against(alone) if metric in INDEFINITE else told)
        name, least = min(cells.items(), key=lambda item: np.mean([hit for _, hit in item[1]]))
        least_of: dict[str, Any] = (
            {"allowed": 0.92, "why": f"the least of {len(cells)}, found by looking"} if len(cells) > 1 else {}
        )
        one = replace(line, population=f"{who}: the least, {name}", **least_of)
        found.append(one.seen([hit for _, hit in least]))
    return found


def _by_sample(cells: dict[str, list[tuple[int, bool]]]) -> list[float]:
    """Return the share of covering intervals in each sample."""
    every: dict[int, list[bool]] = defaultdict(list)
    for cell in cells.values():
        for sample, hit in cell:
            every[sample].append(hit)
    return [float(np.mean(hits)) for hits in every.values()]


def promises(book: Book) -> None:
    """Declare the lines of critics who agree or disagree, and of critics who state a direction."""
    for answers in ({"disagree": "disagrees"}, {"answer": "answer"}):
        simulate = partial(lines, grouping="donor_age", answers=answers)
        book.several(f"rates, {next(iter(answers))}", simulate, samples=120)
