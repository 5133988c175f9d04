"""Audits of more people than fit in memory, with effort computed by the data's engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul, or_
from typing import Any

import narwhals as nw
import numpy as np

from evenhand.audits.effort import gather
from evenhand.audits.effort.spec import CURVE_WEIGHTS, EffortSpec, InertiaSources
from evenhand.core.progress import step
from evenhand.errors import ConfigError, DataError, problem
from evenhand.stats import pairs
from evenhand.stats.effort import linear_weights
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.cells import Cells, ColumnSum, score_sums, weight_sums
from evenhand.table.keys import Key, as_number
from evenhand.table.repeats import CHANCE, hash_stages
from evenhand.table.rows import DerivedRows, Stages
from evenhand.table.table import Table

MOST_IN_MEMORY = 5_000_000
"""The largest number of people read into memory; above, everything is computed in the data's engine."""

MOST_DIFFERENT = 200_000  # maximum number of different people with all pairs compared
SAMPLE = 200_000  # people in the sample that corrects the grid and gives the standard error
MOST_FREQUENT = 20_000  # kinds of people so frequent that the sample has them in proportion
_STEEPEST = 700.0  # beyond it the exponential overflows, and effort is 0 or the inertia to the last bit


# Derived columns, computed in stages and added to the data's columns.
OURS = "evenhand:"
EFFORT, AGGREGATE = nw.col(f"{OURS}effort"), nw.col(f"{OURS}aggregate")
AXES = ("score", "effort", "aggregate")
_CHANCE = nw.col(CHANCE)
_BUCKETS = 2**17  # six times the largest possible number of frequent kinds
_FEW_BUCKETS = 1_000  # that one condition names

Place = tuple[FloatArray, FloatArray]  # the effort and the aggregate of each person
Curves = dict[str, tuple[FloatArray, FloatArray]]
Estimates = tuple[pairs.FairnessOfModels, Curves]


@dataclass(frozen=True)
class PeopleSample:
    """A sample of people with scores, effort, aggregate and weight; `clustering` counts equal people once."""

    rows: dict[str, FloatArray]
    clustering: float


@dataclass(frozen=True, kw_only=True)
class LargeTable:
    """The people of a table too long for memory.

    Parameters
    ----------
    table : the table.
    spec : the settings.
    stages : the expressions for each row's effort and aggregate, without rows that lack a value.
    n, dropped : the number of people, and the number left out for a missing value.
    bounds : the lowest and highest effort and aggregate.
    sizes : the largest absolute value in each step of the trajectory.
    """

    table: Table
    spec: EffortSpec
    stages: Stages
    n: int
    dropped: int
    bounds: tuple[tuple[float, float], tuple[float, float]]
    sizes: dict[str, float]

    @property
    def highest(self) -> float:
        """The largest effort."""
        return self.bounds[0][1]

    def bin_cells(self, model: str) -> Cells:
        """Return counts and sums of scores by group and effort bin."""
        weight, exponent = self.table.weight_and_exponent()
        name = None if weight is None else self.table.roles.weight
        sums = score_sums(self.table.prediction(model), None, name, exponent)
        if name is not None:
            sums = [*weight_sums(name, exponent), *sums]
        number = (EFFORT / self.spec.width).round(9).floor().cast(nw.Int64)
        return DerivedRows(self.table, self.stages).cells([Key("bin", number)], sums)

    def spread_cells(self, bins: int) -> Cells:
        """Return counts by group and by equal bins of effort from 0 to the highest."""
        number = (EFFORT * (bins / max(self.highest, 1e-9))).floor().clip(0, bins - 1).cast(nw.Int64)
        return DerivedRows(self.table, self.stages).cells([Key("bin", number)], [])

    def fairness(self) -> Estimates:
        """Return individual fairness by model and weight, and each model's curve over weights with its errors.

        It is exact for few different people. Otherwise, one pass per model fills a grid, which is corrected on a
        sample.
        """
        columns = {name: nw.col(name) for name in self._scores} | {"effort": EFFORT, "aggregate": AGGREGATE}
        stages = [*self.stages, self._scores]
        step("Counting people who are alike")
        rows = DerivedRows(self.table, stages)
        if rows.more_than(MOST_DIFFERENT, columns):
            return self._by_grid(self._sample(columns, stages))
        return self._exact(rows.frequent(columns))

    def _exact(self, rows: dict[str, Any]) -> Estimates:
        squares, total = float(rows["ww"].sum()), float(rows["w"].sum())
        scores = {model: rows[name] for name, model in zip(self._scores, self.table.models, strict=True)}
        places = rows["effort"], rows["aggregate"]

        def compare(model: str, factor: float, place: Place, weight: float) -> pairs.PairFairness:
            return pairs.individual_fairness_counts(
                factor * scores[model],
                *place,
                total_weight=rows["w"],
                squares=rows["ww"],
                weight=weight,
                n=self.n,
                confidence=self.spec.confidence,
            )

        # The curve counts equal people as one person, so their pairs, which are all fair, are missing.
        share = (total**2 - float((rows["w"] ** 2).sum())) / (total**2 - squares)
        curves = {}
        for model, score in scores.items():
            step(f"Comparing all pairs of people under {model}")
            values, errors = pairs.fairness_by_weight(score, *places, CURVE_WEIGHTS, rows["w"])
            curves[model] = 1.0 - share * (1.0 - values), share * errors
        return self._of_models(compare, places), curves

    def _by_grid(self, sample: PeopleSample) -> Estimates:
        scores = {model: sample.rows[name] for name, model in zip(self._scores, self.table.models, strict=True)}
        places = sample.rows["effort"], sample.rows["aggregate"]
        moments, curves = {}, {}
        for model, score in scores.items():
            step(f"Filling the grid of pairs under {model}")
            moments[model] = self._grid(model)
            checked = pairs.check_people(score, *places, sample.rows["weight"])
            rng = np.random.default_rng(0)
            curves[model] = pairs.corrected_grid(moments[model], checked, CURVE_WEIGHTS, rng, sample=True)

        def compare(model: str, factor: float, place: Place, weight: float) -> pairs.PairFairness:
            return pairs.individual_fairness_cells(
                (moments[model] if place is places else moments[model].scores_alone()).shrunk(factor),
                factor * scores[model],
                *place,
                survey_weight=sample.rows["weight"],
                weight=weight,
                n=self.n,
                confidence=self.spec.confidence,
                clustering=sample.clustering,
            )

        return self._of_models(compare, places), curves

    def _of_models(
        self, compare: Callable[[str, float, Place, float], pairs.PairFairness], places: Place
    ) -> pairs.FairnessOfModels:
        """Return individual fairness of all models, by a function of model, factor, efforts and aggregates."""
        nowhere = np.zeros_like(places[0]), np.zeros_like(places[1])
        spreads = {model: compare(model, 1.0, nowhere, 0.5) for model in self.table.models}
        factors = {(model, model): 1.0 for model in spreads} | pairs.shrinkages(spreads)
        found = {
            (*pair, weight): compare(pair[0], factor, places, weight)
            for pair, factor in factors.items()
            for weight in self.spec.weights
        }
        return pairs.FairnessOfModels.of(found, spreads)

    @property
    def _scores(self) -> dict[str, nw.Expr]:
        return {f"{OURS}score{i}": self._score(model) for i, model in enumerate(self.table.models)}

    def _score(self, model: str) -> nw.Expr:
        return nw.col(self.table.prediction(model).column).cast(nw.Float64)

    def _grid(self, model: str) -> pairs.GridMoments:
        """Fill the grid of one model in one pass over the data."""
        bounds: pairs.Bounds = ((0.0, 1.0), *self.bounds)
        weight, exponent = self.table.weight_and_exponent()
        sizes = (pairs.SIZE, (pairs.SIZE + 1) // 2)
        once = {f"{OURS}weight": nw.lit(1.0) if weight is None else weight, f"{OURS}score": self._score(model)}
        stages = [*self.stages, once, *_grid_stages(bounds, sizes)]
        key = Key("cell", nw.col(f"{OURS}cell"))
        cells = DerivedRows(self.table, stages).cells([key], _grid_sums(sizes, exponent), groups=False)
        number = cell_numbers(cells, "cell")
        positions = np.column_stack([number // pairs.SIZE**2, number // pairs.SIZE % pairs.SIZE, number % pairs.SIZE])
        sums = np.column_stack([cells.sums[f"corner{number}"] for number in range(8)])
        selves = [[float(cells.sums[f"self{size}.{number}"].sum()) for number in range(4)] for size in sizes]
        return pairs.GridMoments.from_cells(
            bounds, pairs.SIZE, positions, sums=sums, squares=float(cells.sums["squares"].sum()), own=selves
        )

    def _sample(self, columns: Mapping[str, nw.Expr], stages: Stages) -> PeopleSample:
        """Return a sample of about 200,000 people.

        A hash of a person's numbers determines the sample, so it does not depend on the engine or the order of rows.
        Equal people are either all included or all excluded; so frequent kinds of people are not sampled but included
        in proportion.
        """
        share = min(1.0, SAMPLE / self.n)
        frequent = self._frequent_kinds(columns, stages, max(2, self.n // MOST_FREQUENT))
        drawn = self._random_share(columns, stages, share)
        kinds = len(frequent["n"])
        kinds_of_people = np.vstack([np.column_stack([rows[name] for name in columns]) for rows in (frequent, drawn)])
        distinct, first, kind = np.unique(kinds_of_people, axis=0, return_index=True, return_inverse=True)
        drawn_kind = kind.reshape(-1)[kinds:]
        left_to_chance = first[drawn_kind] >= kinds
        copies = np.round(frequent["n"] * share).astype(np.int64)
        weights = np.repeat(frequent["w"] / frequent["n"], copies)
        rows = {
            name: np.concatenate([drawn[name][left_to_chance], np.repeat(frequent[name], copies)]) for name in columns
        }
        rows["weight"] = np.concatenate([drawn["weight"][left_to_chance], weights])
        order = np.lexsort([rows[name] for name in (*columns, "weight")])
        sizes = np.bincount(drawn_kind[left_to_chance], minlength=len(distinct))
        clustering = float((sizes**2).sum() / max(sizes.sum(), 1))
        return PeopleSample({name: values[order] for name, values in rows.items()}, max(clustering, 1.0))

    def _frequent_kinds(self, columns: Mapping[str, nw.Expr], stages: Stages, least: int) -> dict[str, Any]:
        """Return the kinds of equal people with at least a minimum frequency.

        People are first counted in buckets by a hash, and kinds of people only in large enough buckets, because
        counting all kinds would need memory for about one entry per person.
        """
        bucket = (_CHANCE * _BUCKETS).floor().cast(nw.Int64)
        mixed = [*stages, *hash_stages(columns.values()), {f"{OURS}bucket": bucket}]
        cells = DerivedRows(self.table, mixed).cells([Key("bucket", nw.col(f"{OURS}bucket"))], [], groups=False)
        full = cell_numbers(cells, "bucket")[cells.n >= least].tolist()
        if not full:
            return {name: np.zeros(0) for name in (*columns, "n", "w", "ww")}
        within = [nw.col(f"{OURS}bucket").is_in(full)] if len(full) <= _FEW_BUCKETS else []
        return DerivedRows(self.table, [*mixed, *within]).frequent(columns, least)

    def _random_share(self, columns: Mapping[str, nw.Expr], stages: Stages, share: float) -> dict[str, Any]:
        """Return a share of the people, chosen by a hash of their numbers."""
        steps = (nw.col(x).cast(nw.Float64) / size for x, size in self.sizes.items() if size)
        mixing = hash_stages([*self._scores.values(), *steps])
        weight = self.table.weight_and_exponent()[0]
        weighted = {**columns, "weight": nw.lit(1.0) if weight is None else weight}
        return DerivedRows(self.table, [*stages, *mixing, share > _CHANCE]).rows(weighted)


def gather_large(table: Table, spec: EffortSpec) -> LargeTable:
    """Check the people of a long table in its engine, and build the expressions of effort and aggregate."""
    slopes = _require_engine(table, spec)
    table.refuse_columns_starting(OURS)
    column = gather.inertia_column(spec)
    table.read_in_engine([*spec.trajectory, *([column] if column is not None else [])])
    steps = [nw.col(name).cast(nw.Float64) for name in spec.trajectory]
    change = reduce(add, [x * float(c / spec.unit) for x, c in zip(steps, slopes, strict=True) if c != 0.0])
    rise, total, inertia = (nw.col(f"{OURS}{name}") for name in ("rise", "total", "inertia"))
    numbers = {
        f"{OURS}inertia": _inertia(table, spec, column),
        f"{OURS}rise": (change if spec.desirable else -change).clip(-_STEEPEST, _STEEPEST),
        f"{OURS}total": (reduce(add, steps) / spec.scale).clip(-_STEEPEST, _STEEPEST),
    }
    whole, lost = _check(table, spec, steps, numbers, column)
    sigmoids = {
        f"{OURS}effort": inertia / (1.0 + (-rise).exp()),
        f"{OURS}aggregate": 2.0 / (1.0 + (-total).exp()) - 1.0,
    }
    stages: Stages = [numbers, whole, sigmoids] if lost else [numbers, sigmoids]
    ends = DerivedRows(table, stages).extremes(
        {"effort": EFFORT, "aggregate": AGGREGATE, **{f"step:{x}": nw.col(x) for x in spec.trajectory}}
    )
    sizes = {x: max(abs(end) for end in ends[f"step:{x}"]) for x in spec.trajectory}
    gather.refuse_huge(sizes)
    return LargeTable(
        table=table,
        spec=spec,
        stages=stages,
        n=table.rows - lost,
        dropped=lost,
        bounds=(ends["effort"], ends["aggregate"]),
        sizes=sizes,
    )


def _require_engine(table: Table, spec: EffortSpec) -> FloatArray:
    """Return the coefficients of a linear measure.

    Refuse settings and measures that the engine cannot compute.
    """
    many = problem("needs all people in memory, which {people:,} are too many for", people=table.rows)
    if spec.history is not None:
        raise ConfigError("a `history` {many}; give the trajectory as columns of the table.", many=many)
    slopes = linear_weights(spec.measure, len(spec.trajectory), spec.times)
    if slopes is None:
        raise ConfigError(
            "the measure {measure!r} {many}; take 'acceleration', 'slope' or 'last_minus_first'.",
            measure=spec.measure,
            many=many,
        )
    if spec.robustness is not None:
        raise ConfigError("`robustness` {many}; try it on a sample of the table.", many=many)
    if spec.parity_of == "decisions":
        raise ConfigError(
            "parity of decisions {many}; give the decisions as 0 and 1 in a column of their own.", many=many
        )
    if isinstance(spec.inertia, InertiaSources):
        raise ConfigError("several sources of inertia {many}; combine them into a column, or take a sample.", many=many)
    if spec.distance != type(spec.distance)():
        raise ConfigError(
            "a distance other than the paper's {many}; leave `distance` out, or take a sample.", many=many
        )
    if spec.method not in ("auto", "grid"):
        raise ConfigError("the method {method!r} {many}; take 'grid'.", method=spec.method, many=many)
    return slopes


def _inertia(table: Table, spec: EffortSpec, column: str | None) -> nw.Expr:
    if spec.inertia is None:
        return nw.lit(1.0)
    if column is not None:
        return nw.col(column).cast(nw.Float64)
    return table.by_group(*gather.group_rates(table, spec))


def _check(
    table: Table, spec: EffortSpec, steps: Sequence[nw.Expr], numbers: Mapping[str, nw.Expr], column: str | None
) -> tuple[nw.Expr, int]:
    """Count rows by defect; return the filter of complete rows and the number of incomplete rows."""
    inertia = nw.col(f"{OURS}inertia")
    absent = [x.is_null() | x.is_nan() for x in steps]
    infinite = reduce(or_, [(x == np.inf) | (x == -np.inf) for x in steps])
    nothing = inertia.is_null() | inertia.is_nan()
    wrong = ~((inertia > 0) & (inertia < np.inf))
    marks = [reduce(or_, absent), nothing, infinite & ~reduce(or_, absent), wrong & ~nothing]
    keys = [Key(f"mark{i}", as_number(mark.fill_null(True))) for i, mark in enumerate(marks)]
    cells = DerivedRows(table, [numbers]).cells(keys, [], groups=False)
    flags = np.column_stack([cell_numbers(cells, key.name) for key in keys]).astype(bool)
    if cells.n[flags[:, 2]].sum():
        raise DataError("a trajectory column holds infinite values.")
    if cells.n[flags[:, 3]].sum():
        gather.refuse_inertia(column, DerivedRows(table, [numbers]).extremes({"m": inertia})["m"][0])
    lost = int(cells.n[flags[:, :2].any(axis=1)].sum())
    if lost and table.roles.missing != "drop":
        absences = [ColumnSum(str(i), as_number(gone)) for i, gone in enumerate(absent)]
        gaps = DerivedRows(table).cells([], absences, groups=False)
        gather.refuse_gaps(
            {name: int(gaps.sums[str(i)][0]) for i, name in enumerate(spec.trajectory)}, lost, table.rows
        )
    gather.require_pairs(table.rows - lost)
    return ~(reduce(or_, absent) | nothing), lost


def _grid_stages(bounds: pairs.Bounds, sizes: Sequence[int]) -> Iterator[dict[str, nw.Expr]]:
    """Yield the stages that compute each row's grid positions, cell, share on the cell's far side, and cell number."""
    grids = [(axis, size, f"{OURS}{axis}.{size}") for axis in AXES for size in sizes]
    ends = dict(zip(AXES, bounds, strict=True))
    yield {f"{name}.at": _position(nw.col(f"{OURS}{axis}"), ends[axis], size) for axis, size, name in grids}
    yield {f"{name}.cell": nw.col(f"{name}.at").floor().clip(0, size - 2) for _, size, name in grids}
    yield {f"{name}.far": nw.col(f"{name}.at") - nw.col(f"{name}.cell") for _, _, name in grids}
    cells = [nw.col(f"{OURS}{axis}.{sizes[0]}.cell") for axis in AXES]
    number = ((cells[0] * sizes[0] + cells[1]) * sizes[0] + cells[2]).cast(nw.Int64)
    far = {name: nw.col(f"{name}.far") for _, _, name in grids}
    yield {f"{OURS}cell": number, **{f"{name}.self": 2.0 * f * (1.0 - f) for name, f in far.items()}}


def _grid_sums(sizes: Sequence[int], exponent: int) -> list[ColumnSum]:
    """Return the sums over each grid cell that `pairs.GridMoments.from_cells` needs."""
    weight = nw.col(f"{OURS}weight")
    sums = [ColumnSum("squares", weight * weight, 2 * exponent)]
    far = [nw.col(f"{OURS}{axis}.{sizes[0]}.far") for axis in AXES]
    for number, corner in enumerate(np.ndindex(2, 2, 2)):
        shares = [share for share, is_far in zip(far, corner, strict=True) if is_far]
        sums.append(ColumnSum(f"corner{number}", reduce(mul, [weight, *shares]), exponent))
    for size in sizes:
        m, e, s = (nw.col(f"{OURS}{axis}.{size}.self") for axis in AXES)
        for number, product in enumerate((m, m * e, m * s, m * e * s)):
            sums.append(ColumnSum(f"self{size}.{number}", weight * weight * product, 2 * exponent))
    return sums


def cell_numbers(cells: Cells, key: str) -> IntArray:
    """Return the integer key of each cell."""
    return np.array([int(float(label)) for label in cells.labels[key]], dtype=np.int64)[cells.codes[key]]


def _position(x: nw.Expr, ends: tuple[float, float], size: int) -> nw.Expr:
    low, high = ends
    return (x - low) * ((size - 1) / (high - low)) if high > low else x * 0.0
