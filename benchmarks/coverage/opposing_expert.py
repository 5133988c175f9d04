"""Populations in which an independent check found errors, measured again.

The check used the public interface on populations absent from other benchmarks: rare extreme scores, different seeds or
names, lenient limits, excluded groups, references with a small group, several rows per person, and an uninformative
score. Its figures are in `benchmarks/results/independent_check.csv`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

import evenhand as eh
from benchmarks.coverage._lines import Book, Line
from evenhand.core.findings import Finding
from evenhand.messages import Message
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("core", "audits/parity", "audits/effort", "stats/two_rates", "stats/permutation", "table/repeats.py")

CLAIMS = {"two_values_worse_off", "two_values_worse_off_listed", "two_values_differ", "some_groups_differ"}
SELECTION: dict[str, Any] = {"metrics": "selection_rate"}


def groups_of(sizes: Sequence[int]) -> list[str]:
    """Return the group name of each person."""
    return [chr(ord("A") + position) for position, size in enumerate(sizes) for _ in range(size)]


def decided(sizes: Sequence[int], yes: Sequence[int], **settings: Any) -> eh.ParityResult:
    """Return the parity audit of groups with these sizes and numbers of selected people."""
    chosen = [int(person < of) for size, of in zip(sizes, yes, strict=True) for person in range(size)]
    roles: dict[str, Any] = {"groups": "group", "predictions": {"m": {"column": "d", "favourable": "selected"}}}
    return eh.parity(eh.Table({"group": groups_of(sizes), "d": chosen}, **roles), **{**SELECTION, **settings})


def verdict_of(result: eh.ParityResult) -> Finding:
    """Return the finding of the only threshold."""
    return next(finding for finding in result.findings if finding.threshold is not None)


def rare_extremes(samples: int, rng: Generator, *, sizes: tuple[int, ...], metric: str) -> list[Line]:
    """Return lines of null reports with one score in 40 near 1: findings, rows of tables, and tiny p-values."""
    found, rows, tiny = (np.zeros(samples, dtype=bool) for _ in range(3))
    for sample in range(samples):
        people = sum(sizes)
        extreme = rng.random(people) < 0.025
        score = np.where(extreme, rng.beta(40, 2, people), rng.beta(1, 20, people))
        columns = {"group": groups_of(sizes), "score": score.tolist(), "y": (rng.random(people) < 0.02).astype(int)}
        roles: dict[str, Any] = {"predictions": {"m": {"column": "score", "favourable": "not_selected"}}}
        table = eh.Table({**columns, "y": columns["y"].tolist()}, groups="group", outcome="y", **roles)
        result = eh.parity(table, metrics=[metric])
        found[sample] = any(finding.sentence_id in CLAIMS for finding in result.findings)
        rows[sample] = any(gap.worse_off is not None for gap in result.gaps)
        tiny[sample] = any((gap.p_value or 1.0) <= 1e-3 for gap in result.gaps if gap.against == "worst_pair")
    who = f"{' and '.join(f'{size:,}' for size in sizes)} people, 2.5 % of scores near 1, nothing differs"
    line = partial(Line, population=who, kind="verdict")
    return [
        line(what=f"a finding claims a difference in {metric}", nominal=0.05).seen(found),
        line(what=f"a row of gaps in {metric} says “worse off”", nominal=0.05).seen(rows),
        line(what=f"p of {metric} is at most 0.001", nominal=0.001).seen(tiny),
    ]


def false_names(samples: int, rng: Generator) -> BoolArray:
    """Return whether any of 12 findings names one of four equal groups as worse off than another."""
    sizes = (3_000, 3_000, 80, 80, 80, 80)
    rate = np.repeat([0.54, 0.46, 0.5, 0.5, 0.5, 0.5], sizes)
    wrong = np.zeros(samples, dtype=bool)
    for sample in range(samples):
        models = {f"m{number}": (rng.random(len(rate)) < rate).astype(int).tolist() for number in range(12)}
        predictions: dict[str, Any] = {name: {"column": name, "favourable": "selected"} for name in models}
        table = eh.Table({"group": groups_of(sizes), **models}, groups="group", predictions=predictions)
        findings = eh.parity(table, **SELECTION).findings
        named = [{f.group, f.reference} for f in findings if f.sentence_id == "two_values_worse_off"]
        wrong[sample] = any(pair <= set("CDEF") for pair in named)
    return wrong


def changes(samples: int, rng: Generator, *, sizes: tuple[int, int], yes: tuple[int, int]) -> BoolArray:
    """Return whether another seed, column name, group name or row order changes the p-value or the sentence."""
    first = decided(sizes, yes)
    different = np.zeros(samples, dtype=bool)
    for sample in range(samples):
        name, labels = f"column {rng.integers(10**6)}", rng.permutation(["x", "y"])
        chosen = [int(person < of) for size, of in zip(sizes, yes, strict=True) for person in range(size)]
        order = rng.permutation(len(chosen))
        group = np.repeat(labels, sizes)[order].tolist()
        roles: dict[str, Any] = {"groups": name, "predictions": {"m": {"column": "d", "favourable": "selected"}}}
        table = eh.Table({name: group, "d": np.array(chosen)[order].tolist()}, **roles)
        result = eh.parity(table, **SELECTION, seed=int(rng.integers(10**6)))
        then, now = first.findings[0], result.findings[0]
        different[sample] = (then.p_value, then.sentence_id) != (now.p_value, now.sentence_id)
    return different


def hidden_difference(samples: int, rng: Generator) -> BoolArray:
    """Return whether meeting a limit of 50 points hides the difference between 60 % and 30 %."""
    limits = [{"metric": "selection_rate", "max": 0.5}]

    def hidden() -> bool:
        finding = verdict_of(decided((500, 500), rng.binomial(500, [0.6, 0.3]).tolist(), thresholds=limits))
        return finding.verdict == "meets" and finding.sentence_id not in CLAIMS

    return np.array([hidden() for _ in range(samples)])


def left_out(samples: int, rng: Generator) -> BoolArray:
    """Return whether a limit is met although a group of 9 people, too small for a comparison, violates it."""
    limits = [{"metric": "selection_rate", "min": 0.8}]

    def met() -> bool:
        yes = [*rng.binomial(1_000, [0.6, 0.58]).tolist(), int(rng.binomial(9, 0.02))]
        return verdict_of(decided((1_000, 1_000, 9), yes, thresholds=limits)).verdict == "meets"

    return np.array([met() for _ in range(samples)])


def false_meets(samples: int, rng: Generator, *, small: int, rate: float, ratio: float) -> BoolArray:
    """Return whether a limit on the ratio to a reference of 2,000 people is met just beyond it."""
    limits = [{"metric": "selection_rate", "min": ratio + 1e-9, "against": "reference"}]

    def met() -> bool:
        yes = rng.binomial([2_000, small], [rate, rate * ratio]).tolist()
        return verdict_of(decided((2_000, small), yes, thresholds=limits)).verdict == "meets"

    return np.array([met() for _ in range(samples)])


def reruns(
    samples: int, rng: Generator, *, sizes: Sequence[int], rates: Sequence[float], limit: dict[str, float]
) -> tuple[BoolArray, FloatArray]:
    """Return whether the additional people requested by a report decide its verdict, beside the promised share."""
    limits = [{"metric": "selection_rate", **limit}]
    first = verdict_of(decided(sizes, np.round(np.multiply(sizes, rates)).astype(int).tolist(), thresholds=limits))
    more = _needed(first.reason)
    larger = np.rint(np.multiply(sizes, 1 + more / sum(sizes))).astype(int)

    def is_decided() -> bool:
        again = decided(larger.tolist(), rng.binomial(larger, rates).tolist(), thresholds=limits)
        return verdict_of(again).verdict != "insufficient_evidence"

    return np.array([is_decided() for _ in range(samples)]), np.full(samples, 0.8)


def _needed(reason: object) -> float:
    """Return the number of further people named in the reason of an open verdict, or 0."""
    if isinstance(reason, tuple):
        return max(map(_needed, reason), default=0.0)
    if not isinstance(reason, Message):
        return 0.0
    own = reason.args.get("needed")
    return _needed(tuple(reason.args.values())) if own is None else float(str(own))


def warned(samples: int, rng: Generator, *, rows: int, two: bool = False) -> BoolArray:
    """Return whether a table of 300 people with `rows` rows each and no id gets a warning about repeated rows.

    With `two`, the only column apart from the score has two values.
    """

    def is_warned() -> bool:
        people = 300
        columns = {"group": rng.choice(["A", "B"], people), "score": rng.random(people).round(4)}
        if not two:
            columns |= {"sex": rng.choice(["A", "B"], people), "outcome": rng.integers(0, 2, people)}
        table = {name: np.repeat(values, rows).tolist() for name, values in columns.items()}
        roles: dict[str, Any] = {"groups": "group"} if two else {"groups": ["group", "sex"], "outcome": "outcome"}
        prediction = {"m": {"column": "score", "favourable": "selected"}}
        result = eh.parity(eh.Table(table, predictions=prediction, **roles), **SELECTION)
        return any(note.id == "table.repeated_rows" for note in result.notes)

    return np.array([is_warned() for _ in range(samples)])


def several_contrasts(samples: int, rng: Generator) -> BoolArray:
    """Return whether the worst pair, the reference and the rest have different p-values with two groups."""

    def differ() -> bool:
        gaps = decided((150, 90), rng.binomial([150, 90], 0.3).tolist()).gaps
        return len({gap.p_value for gap in gaps}) > 1

    return np.array([differ() for _ in range(samples)])


def constant_wins(samples: int, rng: Generator) -> BoolArray:
    """Return whether a nearly constant score is called fairer to individuals than a score that follows effort."""

    def wins() -> bool:
        people = 150
        years = rng.uniform(20, 60, (3, people)).round(2)
        columns = {f"y{year}": values.tolist() for year, values in enumerate(years)}
        columns |= {"real": np.clip(years.mean(axis=0) / 80 + rng.normal(0, 0.1, people), 0, 1).tolist()}
        columns |= {"flat": (0.5 + rng.normal(0, 0.001, people)).tolist()}
        table = eh.Table(columns, predictions=["real", "flat"])
        result = eh.effort(table, trajectory=["y0", "y1", "y2"], scale=100)
        return any(f.sentence_id == "fairer_model" and f.model == "flat" for f in result.findings)

    return np.array([wins() for _ in range(samples)])


def promises(book: Book) -> None:
    """Declare the lines of all populations."""
    for groups, metric in (((2_000, 80), "mean_score"), ((2_000, 80), "brier"), ((2_000, 300), "mean_score")):
        null = partial(rare_extremes, sizes=groups, metric=metric)
        book.several(f"rare extremes {groups} {metric}", null, samples=1_000)
    equal = "12 findings; groups of 3,000, 3,000 and four of 80, rates .54, .46 and four of .5"
    book.measure("one of several equal groups is named worse off", equal, false_names, **_wrong(100, 0.05))
    for pair, yes in (((100, 100), (30, 44)), ((200, 200), (60, 42))):
        who = f"{yes[0]} of {pair[0]} against {yes[1]} of {pair[1]}"
        again = partial(changes, sizes=pair, yes=yes)
        book.measure("another seed, name or order changes a finding", who, again, **_wrong(40, 0.0, guard=3))
    hidden = "60 % against 30 % of 500 people each, at most 50 points"
    book.measure("a limit that is met hides a difference", hidden, hidden_difference, **_wrong(100, 0.05, guard=5))
    omitted = "60 % and 58 % of 1,000, 2 % of 9 people, ratio at least 0.8"
    book.measure("“meets” though a group left out breaks the limit", omitted, left_out, **_wrong(100, 0.05, guard=5))
    for small, rate, ratio in ((30, 0.5, 0.5), (80, 0.5, 0.8), (80, 0.1, 0.3)):
        who = f"{small} against a reference of 2,000, rate {rate}, ratio {ratio} at the limit"
        beside = partial(false_meets, small=small, rate=rate, ratio=ratio)
        book.measure("false “meets” against a reference", who, beside, **_wrong(400, 0.05))
    needed(book)
    repeats(book)
    two = "150 and 90 people, rate 0.3"
    book.measure("two groups have several p-values", two, several_contrasts, **_wrong(40, 0.0, guard=3))
    flat = "150 people, a score that follows effort, and 0.5 with noise of 0.001"
    book.measure("a nearly constant score is “fairer to individuals”", flat, constant_wins, **_wrong(40, 0.05))


def repeats(book: Book) -> None:
    """Declare the lines of the warning about repeated rows, with and without repeated rows."""
    what = "a table of four rows a person is warned about"
    book.measure(
        what,
        "300 people, no id; two groupings, outcome and score of 4 digits",
        partial(warned, rows=4),
        kind="power",
        samples=100,
        guard=2,
    )
    one = "300 people, no id; one grouping of two values and score of 4 digits"
    book.measure(what, one, partial(warned, rows=4, two=True), kind="power", samples=100)
    for two in (False, True):
        who = f"300 people, no id, one row each; {'one grouping' if two else 'two groupings, outcome'} and score"
        apart = partial(warned, rows=1, two=two)
        book.measure("a table of one row a person is warned about", who, apart, **_wrong(200, 0.05))


def needed(book: Book) -> None:
    """Declare the lines of the number of people requested by a report."""
    cases: tuple[tuple[tuple[int, ...], tuple[float, ...], dict[str, float]], ...] = (
        ((300, 100), (0.3, 0.28), {"min": 0.8}),
        ((1_000, 80), (0.05, 0.1), {"max": 0.02}),
        ((200, 200, 200, 200), (0.5, 0.45, 0.42, 0.36), {"min": 0.8}),
    )
    for sizes, rates, limit in cases:
        (side, value), *_ = limit.items()
        what, who = (
            "as many people more as a report asks for decide",
            f"groups of {sizes}, rates {rates}, {side} {value}",
        )
        simulate = partial(reruns, sizes=sizes, rates=rates, limit=limit)
        book.measure(what, who, simulate, kind="power", samples=200, oracle="promised")


def _wrong(samples: int, nominal: float, guard: int = 0) -> dict[str, Any]:
    return {"kind": "verdict", "nominal": nominal, "samples": samples, "guard": guard}
