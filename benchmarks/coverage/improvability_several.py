"""Level of the improvability test with several candidates, margins, groups or utilities.

A line is one population in which the null is true: the share of samples with a false claim at p <= 0.05. As in
improvability_level.py, n test rows are drawn, 10 % are selected by the status quo and 10 % by a candidate, groups'
values are set exactly, and the pair of groups comes from 2 n training rows.

`candidates`: 1, 3 or 10 candidates are tested, all at the boundary of the null (of fairness; `accuracy`: no gain for
one group). A false claim is that any candidate is better. `margins`: candidates have different true margins, 0.1 to
0.7, with a gap of 60 standard errors, so that every smaller margin is detected. A false claim is a largest margin
beyond the true one for any candidate. `Holm` is the same with Holm's p-values at each margin, which the audit does not
use. `search`: the most promising of 3 or 10 members on the training rows is chosen for each margin. Members are all at
the boundary, or (`search, margins`) have different true margins; a false claim is then a largest margin beyond all of
them. `groups`: one pair of 3 or 5 groups has the gap (`tied`: several pairs of 4 groups). `utilities`: 3 utilities must
become fairer; one or all of them are at the boundary. `audit`: the whole audit with 3 fitted candidates and a search.
Features are independent of the group and the outcome is higher in one group by a constant, so any ranking by features
leaves the gap unchanged: every candidate is at the boundary, with more accuracy. n counts test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np
from numpy.random import Generator

from benchmarks.coverage._lines import Book, Line
from evenhand.audits.improvability.curves import make_margins, z_curves
from evenhand.stats.improvability import (
    Criteria,
    Pair,
    Rows,
    SplitTest,
    Utility,
    ValueDraws,
    bootstrap_values,
    get_utility,
    largest_delta,
)
from evenhand.stats.multiplicity import adjusted_p
from evenhand.stats.types import BoolArray, FloatArray

MEASURED = ("stats/improvability", "stats/multiplicity.py", "audits/improvability")

ALPHA = 0.05
LIMIT = ALPHA + 1e-9  # p-values are multiples of 1 / (resamples + 1), and p <= alpha the least favourable reading
SELECTED, BOTH = 0.10, 1 / 3
CALIBRATION = get_utility("calibration")
CRITERIA = Criteria(CALIBRATION, (CALIBRATION,))
SHARES = {2: (0.7, 0.3), 3: (0.5, 0.3, 0.2), 4: (0.3, 0.3, 0.2, 0.2), 5: (0.2,) * 5}
GRID = np.round(np.arange(0.0, 0.95, 0.05), 6)


@dataclass(frozen=True)
class Case:
    """One line: a population, a number of candidates, groups or utilities, the margin, and the kind of outcome."""

    name: str
    n: int
    number: int
    delta: float = 0.0
    kind: str = "normal"

    @property
    def tried(self) -> int:
        """The number of candidates for which p-values are adjusted."""
        return self.number if self.name in ("candidates", "accuracy", "margins") else 1

    @property
    def resamples(self) -> int:
        """About 200 resamples, such that alpha over the number of candidates is a possible p-value."""
        return 20 * self.tried * ceil(10 / self.tried) - 1


def gap_error(n: int, groups: int = 2) -> float:
    """Return the standard error of the gap between the first and the last group under one algorithm."""
    return float(np.sqrt(sum(1.0 / (SELECTED * share * n) for share in (SHARES[groups][0], SHARES[groups][-1]))))


def outcomes(kind: str, shape: tuple[int, ...], rng: Generator) -> FloatArray:
    """Return outcomes with mean 0 and standard deviation 1."""
    return rng.exponential(1.0, shape) - 1.0 if kind == "exponential" else rng.standard_normal(shape)


def draw(n: int, old: FloatArray, new: FloatArray, rng: Generator, kind: str = "normal", *, one: bool = False) -> Rows:
    """Return n random rows with values `old` (G,) and `new` (C, G) of C candidates, each stored as a utility.

    With `one` there is one candidate and C utilities with correlated outcomes, and `old` has the shape (C, G).
    """
    count, groups = new.shape
    group = rng.choice(groups, size=n, p=SHARES[groups])
    chosen = rng.random(n) < SELECTED
    only = SELECTED * (1 - BOTH) / (1 - SELECTED)
    drawn = rng.random((n, 1 if one else count))
    taken = np.where(chosen[:, np.newaxis], drawn < BOTH, drawn < only)
    y = outcomes(kind, (n, 1), rng)
    if one:
        y = np.sqrt(0.5) * (y + outcomes(kind, (n, count), rng))
    terms = np.zeros((n, count, 2, 2))
    before, after = np.atleast_2d(old)[:, group].T, new[:, group].T
    terms[..., 0, 1], terms[..., 1, 1] = chosen[:, np.newaxis], taken
    terms[..., 0, 0], terms[..., 1, 0] = terms[..., 0, 1] * (y + before), terms[..., 1, 1] * (y + after)
    return Rows(group, terms, tuple("abcde"[:groups]), tuple(f"u{c}" for c in range(count)))


def part(draws: ValueDraws, which: int) -> ValueDraws:
    """Return the draws of one candidate."""
    own = slice(which, which + 1)
    spread = None if draws.spread is None else draws.spread[:, own]
    return replace(draws, estimate=draws.estimate[:, own], values=draws.values[:, :, own], spread=spread, spreads=None)


def training_pair(n: int, old: FloatArray, rng: Generator, kind: str = "normal") -> Pair:
    """Return the status quo's worst pair on 2 n training rows, drawing only the selected rows."""
    shares = np.array(SHARES[old.size]) * SELECTED
    sizes = rng.multinomial(2 * n, [*shares, 1.0 - shares.sum()])[:-1]
    means = old + np.array([outcomes(kind, (max(int(size), 1),), rng).mean() for size in sizes])
    return Pair(int(np.argmax(means)), int(np.argmin(means)))


def p_of(case: Case, old: FloatArray, new: FloatArray, deltas: FloatArray, rng: Generator) -> FloatArray:
    """Return (C, D) the p-values of all candidates in one random sample at margins of fairness."""
    pair = training_pair(case.n, old, rng, case.kind)
    rows = draw(case.n, old, new, rng, case.kind)
    draws = bootstrap_values(rows, resamples=case.resamples, rng=rng, method="rows", threads=1)
    return np.stack(
        [
            SplitTest(draws=part(draws, c), criteria=CRITERIA, worst=[pair]).curve("fairness", deltas)
            for c in range(len(new))
        ]
    )


def candidates(case: Case, rng: Generator) -> tuple[bool, ...]:
    """Return whether any candidate at the boundary is claimed to be better."""
    gap = 3.5 * gap_error(case.n)
    old, one = np.array([5.0, 5.0 + gap]), np.array([8.0, 8.0 + (1 - case.delta) * gap])
    if case.name == "accuracy":
        wide = 8.0 * gap_error(case.n)
        old, one = np.array([5.0, 5.0 + wide]), np.array([5.0 + wide, 5.0 + wide])
    p = p_of(case, old, np.tile(one, (case.number, 1)), np.array([case.delta]), rng)
    return (bool(case.tried * p.min() <= LIMIT),)


def margins(case: Case, rng: Generator) -> tuple[bool, ...]:
    """Return whether any candidate's largest margin is beyond its true one: by Bonferroni, and by Holm."""
    gap, true = 60.0 * gap_error(case.n), true_margins(case.number)
    old = np.array([5.0, 5.0 + gap])
    new = np.column_stack([np.full(true.size, 8.0 + gap), 8.0 + gap + (1 - true) * gap])
    p = p_of(case, old, new, GRID, rng)
    holm = np.column_stack([adjusted_p(at) for at in p.T])
    return tuple(
        any(
            not largest_delta(GRID, row <= LIMIT) < margin
            for row, margin in zip(adjusted, true, strict=True)
            if row[0] <= LIMIT
        )
        for adjusted in (case.tried * p, holm)
    )


def true_margins(number: int) -> FloatArray:
    """Return the candidates' true margins, all of them on the grid."""
    return GRID[np.round(np.linspace(2, 14, number)).astype(np.int64)]


def search(case: Case, rng: Generator) -> tuple[bool, ...]:
    """Return whether a search that chooses a member for each margin makes a false claim."""
    own = case.name == "search, margins"
    gap = (20.0 if own else 3.5) * gap_error(case.n)
    true = true_margins(case.number) if own else np.full(case.number, case.delta)
    old = np.array([5.0, 5.0 + gap])
    new = np.column_stack([np.full(true.size, 8.0 + gap), 8.0 + gap + (1 - true) * gap])
    deltas = GRID if own else np.unique([0.0, case.delta])
    train = draw(2 * case.n, old, new, rng, case.kind)
    pair = Pair(*(int(at) for at in np.argsort(-train.values()[:2, 0, 0])))
    seen = bootstrap_values(train, resamples=1, rng=rng, studentised=True, threads=1)
    grid = make_margins(tuple(deltas.tolist()), coarse=True, higher=True)
    at = np.searchsorted(grid.fairness, deltas)
    promise = [
        z_curves(SplitTest(draws=part(seen, c), criteria=CRITERIA, worst=[pair]), grid).of("fairness", lowest=True)[at]
        for c in range(len(new))
    ]
    draws = bootstrap_values(
        draw(case.n, old, new, rng, case.kind), resamples=case.resamples, rng=rng, method="rows", threads=1
    )
    curves = np.stack(
        [
            SplitTest(draws=part(draws, c), criteria=CRITERIA, worst=[pair]).curve("fairness", deltas)
            for c in range(len(new))
        ]
    )
    rejected: BoolArray = curves[np.argmax(promise, axis=0), np.arange(deltas.size)] <= LIMIT
    if own:
        return (bool(rejected[0]) and not largest_delta(deltas, rejected) < true.max(),)
    return (bool(rejected[-1]),)


def groups(case: Case, rng: Generator) -> tuple[bool, ...]:
    """Return whether fairness is falsely claimed with more than two groups."""
    gap = 3.5 * gap_error(case.n, case.number)
    place = np.linspace(0.0, 1.0, case.number)
    if case.name == "groups, tied":
        place = np.round(place + 0.01)
    p = p_of(case, 5.0 + gap * place, 8.0 + (1 - case.delta) * gap * place[np.newaxis], np.array([case.delta]), rng)
    return (bool(p[0, 0] <= LIMIT),)


def utilities(case: Case, rng: Generator) -> tuple[bool, ...]:
    """Return whether fairness by several utilities at once is falsely claimed; accuracy uses the first utility."""
    gap = 3.5 * gap_error(case.n)
    keep = np.full(case.number, 1.0 - case.delta)
    if case.name == "utilities, one":
        keep[:-1] = 0.0
    old = np.tile([5.0, 5.0 + gap], (case.number, 1))
    new = np.column_stack([np.full(case.number, 8.0 + gap), 8.0 + gap + keep * gap])
    every = tuple(Utility(name=f"u{k}", u=CALIBRATION.u, w=CALIBRATION.w) for k in range(case.number))
    pairs = [training_pair(case.n, old[0], rng, case.kind) for _ in every]
    rows = draw(case.n, old, new, rng, case.kind, one=True)
    draws = bootstrap_values(rows, resamples=case.resamples, rng=rng, method="rows", threads=1)
    return (
        SplitTest(draws=draws, criteria=Criteria(every[0], every), worst=pairs).components(fairness=case.delta).p
        <= LIMIT,
    )


def audit(case: Case, rng: Generator) -> tuple[bool, ...]:
    """Return whether the whole audit falsely claims that a fitted candidate is fairer."""
    import evenhand as eh

    size = 3 * case.n
    x, group = rng.standard_normal((size, 3)), (rng.random(size) < 0.3).astype(np.float64)
    y = 10.0 + x[:, 0] + 0.5 * x[:, 1] + 3.5 * gap_error(case.n) * group + rng.standard_normal(size)
    data = {
        "who": np.arange(size),
        "g": np.where(group, "b", "a"),
        "y": y,
        "old": rng.random(size),
        **{f"x{j}": x[:, j] for j in range(3)},
    }
    tree = {"estimator": "decision_tree", "settings": {"max_depth": 5}}
    fitted = {"linear": {}, "lasso": {}, "tree": tree, "search": {"family": ["linear", "lasso", tree], "folds": 3}}
    result = eh.improvability(
        eh.Table(data, id="who", groups="g"),
        status_quo="old",
        capacity=SELECTED,
        outcome="y",
        utility="calibration",
        features=["x0", "x1", "x2"],
        candidates=fitted,
        test={"splits": case.number, "alpha": ALPHA, "combine": "exchangeable"},
        resamples=400,
        seed=int(rng.integers(2**31)),
    )
    return (bool(result.established),)


KINDS: dict[str, Callable[[Case, Generator], tuple[bool, ...]]] = {
    "candidates": candidates,
    "accuracy": candidates,
    "margins": margins,
    "search": search,
    "search, margins": search,
    "groups": groups,
    "groups, tied": groups,
    "utilities, one": utilities,
    "utilities, all": utilities,
    "audit": audit,
}


def cases(sizes: Sequence[int]) -> list[Case]:
    """Return the cases to simulate."""
    plan = []
    for n in sizes:
        plan += [Case("candidates", n, m) for m in (1, 3, 10)]
        plan += [Case("candidates", n, m, kind="exponential") for m in (1, 10)]
        plan += [Case("accuracy", n, m) for m in (1, 10)]
        plan += [Case("margins", n, m) for m in (3, 7)]
        plan += [Case("search", n, m, delta) for m, delta in ((3, 0.0), (10, 0.0), (10, 0.25))]
        plan += [Case("search, margins", n, 3)]
        plan += [Case("groups", n, g, delta) for g, delta in ((3, 0.0), (5, 0.0), (5, 0.25))]
        plan += [Case("groups, tied", n, 4)]
        plan += [Case("utilities, one", n, 3, delta) for delta in (0.0, 0.25)]
        plan += [Case("utilities, all", n, 3)]
    return [*plan, Case("audit", sizes[0], 1)]


def lines(samples: int, rng: Generator, *, case: Case) -> list[Line]:
    """Return the line of a case, with Holm's claims beside Bonferroni's if available."""
    found = np.array([KINDS[case.name](case, rng) for _ in range(samples)])
    of = {"candidates": "candidates", "accuracy": "candidates", "margins": "candidates", "audit": "split"}
    number = f"{case.number} {of.get(case.name, case.name.partition(',')[0])}"
    line = Line(
        what="improvability, several: any false claim",
        population=f"{case.name}: {number}, {case.kind} outcome, {case.n:,} test rows, delta {case.delta:g}",
        kind="test",
        nominal=ALPHA,
    ).seen(found[:, 0])
    return [line if found.shape[1] == 1 else line.held_against({"Holm, which is not used": found[:, 1]})]


def promises(book: Book) -> None:
    """Declare the lines of all cases."""
    for case in cases((500, 2_000)):
        name = f"{case.name}, {case.number}, {case.kind}, {case.n}, {case.delta:g}"
        samples = 20 if case.name == "audit" else 600 if (case.name, case.number) == ("search", 3) else 200
        book.several(name, partial(lines, case=case), samples=samples)
