"""Common parts of synthetic tables: cells of people, latent risk, the models' scores, and the exact true rates.

A person is in a *cell* (race, sex, age group and one more thing). Within a cell latent risk is normal, with a mean
specific to the cell and the same standard deviation in all cells; the outcome is 1 with probability Phi(risk). Each
model observes the risk with independent noise. Each rate in a cell is therefore a normal integral, and the rates of
groups are sums over cells. These are the true rates, which a table of any size estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from evenhand.errors import require_whole
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.frames import NativeFrame, build_frame

Columns = dict[str, npt.NDArray[Any]]
Groupings = Mapping[str, Mapping[str, NamedTuple]]
Truth = dict[str, dict[str, dict[str, dict[str, float]]]]
"""The exact truth: model, grouping, group, figure."""

_CUTOFF = 0.5

MOST_ROWS = 10**9
"""Larger tables would not fit into memory."""
"""Scores above it are selected."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """All cells, with their groups (as codes into the tables), shares and typical values.

    The typical values are the mean latent risk, and the level and the yearly growth of the logarithm of the
    trajectory's values.
    """

    groupings: Groupings
    share: FloatArray
    risk: FloatArray
    level: FloatArray
    growth: FloatArray

    @cached_property
    def codes(self) -> dict[str, IntArray]:
        """The code of each cell in every grouping."""
        return dict(zip(self.groupings, crossed(self.groupings), strict=True))

    def draw(self, rows: int, rng: np.random.Generator) -> IntArray:
        """Return a randomly drawn cell for each person."""
        return rng.choice(self.share.size, size=rows, p=self.share)

    def people(self, cell: IntArray, rng: np.random.Generator) -> Columns:
        """Return the group columns of people in these cells, with an age drawn uniformly from the age group."""
        ages, code = self.groupings["age_group"], self.codes["age_group"][cell]
        age = rng.integers(column_of(ages, "youngest")[code], column_of(ages, "oldest")[code], endpoint=True)
        labels = {name: _labels(table, self.codes[name][cell]) for name, table in self.groupings.items()}
        return {"race": labels["race"], "sex": labels["sex"], "age": age, **labels}


def crossed(groupings: Groupings) -> IntArray:
    """Return the codes of every combination of groups, one row per grouping."""
    return np.indices([len(table) for table in groupings.values()]).reshape(len(groupings), -1)


class Model(Protocol):
    """A model that scores people, with known expected scores in each cell."""

    def scores(self, cells: Cells, cell: IntArray, own_risk: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a score for each person; `own_risk` is the latent risk minus the mean of the cell."""

    def masses(self, cells: Cells) -> dict[str, FloatArray]:
        """Return by cell the masses of people with the outcome, selected, and both, and of the scores."""


@dataclass(frozen=True, kw_only=True)
class ProbitModel:
    """A model that transforms latent risk into the score Phi(q).

    It observes risk + noise, and q = intercept + slope * (its observation minus the mean risk of the cell). With
    `spread` 1 and no `bias`, Phi(q) is the probability of the outcome given the observation: calibrated in every cell,
    and therefore in every group. A `spread` below 1 moves q towards `centre`, a `spread` above 1 away from it; a `bias`
    raises q for a race.
    """

    risk_sd: float
    noise: float
    spread: float
    bias: Mapping[str, float] = field(default_factory=dict)
    centre: float = -0.80

    @property
    def _trust(self) -> float:
        """The reliability of the model's observation: the share of its variance due to risk."""
        return self.risk_sd**2 / (self.risk_sd**2 + self.noise**2)

    @property
    def _unseen(self) -> float:
        """The residual standard deviation of the outcome's latent variable given the model's observation."""
        return math.sqrt(1.0 + self.risk_sd**2 * (1.0 - self._trust))

    @property
    def slope(self) -> float:
        """The slope of q in the model's observation minus the cell's mean risk."""
        return self.spread * self._trust / self._unseen

    def intercept(self, cells: Cells) -> FloatArray:
        """Return q by cell for a person at the cell's mean."""
        bias: FloatArray = np.array([self.bias.get(race, 0.0) for race in cells.groupings["race"]])[cells.codes["race"]]
        return self.centre + self.spread * (cells.risk / self._unseen - self.centre) + bias

    def scores(self, cells: Cells, cell: IntArray, own_risk: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return Phi(q) for each person."""
        from scipy.special import ndtr

        seen = own_risk + self.noise * rng.standard_normal(cell.size)
        return np.asarray(ndtr(self.intercept(cells)[cell] + self.slope * seen), dtype=np.float64)

    def masses(self, cells: Cells) -> dict[str, FloatArray]:
        """Return the masses by cell; all but "both" are in closed form."""
        from scipy.special import ndtr

        z, density = _normal_nodes()
        intercept, seen_variance = self.intercept(cells), self.risk_sd**2 + self.noise**2
        outcome_given_risk = ndtr(cells.risk[:, None] + self.risk_sd * z)
        selected_given_risk = ndtr((intercept[:, None] / self.slope + self.risk_sd * z) / self.noise)
        return {
            "all": cells.share,
            "outcome": _outcome_mass(cells, self.risk_sd),
            "selected": cells.share * ndtr(intercept / (self.slope * math.sqrt(seen_variance))),
            "both": cells.share * ((outcome_given_risk * selected_given_risk) @ density),
            "score": cells.share * ndtr(intercept / np.sqrt(1.0 + self.slope**2 * seen_variance)),
        }


@dataclass(frozen=True, kw_only=True)
class TreeModel:
    """A model with few leaves, chosen by the interval of `cuts` that contains risk + noise; it does not use groups.

    `leaves` are the scores, one more than the cuts. If they equal `leaf_rates`, the scores are calibrated overall, but
    too low for a high-risk group and too high for a low-risk group.
    """

    risk_sd: float
    noise: float
    cuts: tuple[float, ...]
    leaves: tuple[float, ...]

    def leaf_rates(self, cells: Cells) -> FloatArray:
        """Return the rate of the outcome among the people of each leaf."""
        reached, with_outcome = self._leaf_masses(cells)
        return np.asarray(with_outcome.sum(axis=0) / reached.sum(axis=0), dtype=np.float64)

    def scores(self, cells: Cells, cell: IntArray, own_risk: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the score of each person's leaf."""
        seen = cells.risk[cell] + own_risk + self.noise * rng.standard_normal(cell.size)
        return np.array(self.leaves)[np.searchsorted(self.cuts, seen)]

    def masses(self, cells: Cells) -> dict[str, FloatArray]:
        """Return the masses by cell, summed over the leaves."""
        reached, with_outcome = self._leaf_masses(cells)
        leaves = np.array(self.leaves)
        return {
            "all": cells.share,
            "outcome": _outcome_mass(cells, self.risk_sd),
            "selected": reached[:, leaves > _CUTOFF].sum(axis=1),
            "both": with_outcome[:, leaves > _CUTOFF].sum(axis=1),
            "score": reached @ leaves,
        }

    def _leaf_masses(self, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """Return by cell and leaf the share of the population, and the share with the outcome."""
        from scipy.special import ndtr

        z, density = _normal_nodes()
        cuts = np.array([-math.inf, *self.cuts, math.inf])
        risk = cells.risk[:, None] + self.risk_sd * z
        seen_sd = math.hypot(self.risk_sd, self.noise)
        reached = np.diff(ndtr((cuts - cells.risk[:, None]) / seen_sd), axis=1)
        below_given_risk = ndtr((cuts - risk[:, :, None]) / self.noise)
        with_outcome = np.einsum("cz,czl->cl", ndtr(risk) * density, np.diff(below_given_risk, axis=2))
        return cells.share[:, None] * reached, cells.share[:, None] * with_outcome


@dataclass(frozen=True, kw_only=True)
class Population:
    """People in cells with a history, an outcome and models, from which tables and true rates are computed.

    `history` returns the columns of the trajectory for people of these cells, and their latent risk minus the mean of
    the cell.
    """

    person: str
    outcome: str
    cells: Cells
    history: Callable[[IntArray, np.random.Generator], tuple[Columns, FloatArray]]
    models: Mapping[str, Model]

    def table(self, n: int, seed: int, backend: str | None) -> NativeFrame:
        """Return a random table of `n` people; a model's scores are in the column "risk_" + name."""
        rng = np.random.default_rng(require_whole("seed", seed, 0))
        rows = require_whole("n", n, 1, MOST_ROWS)
        cell = self.cells.draw(rows, rng)
        columns: Columns = {self.person: np.arange(1, rows + 1), **self.cells.people(cell, rng)}
        trajectory, own_risk = self.history(cell, rng)
        columns |= trajectory
        columns[self.outcome] = (rng.standard_normal(rows) < self.cells.risk[cell] + own_risk).astype(np.int64)
        for name, model in self.models.items():
            columns[f"risk_{name}"] = model.scores(self.cells, cell, own_risk, rng)
        return build_frame(columns, backend)

    def truth(self) -> Truth:
        """Return the exact true rates by model, grouping and group."""
        tables = {name: self.cells.groupings[name] for name in ("race", "sex", "age_group")}
        groupings = {name: (tuple(table), self.cells.codes[name]) for name, table in tables.items()}
        groupings = {"overall": (("all",), np.zeros_like(self.cells.codes["race"])), **groupings}
        masses = {name: model.masses(self.cells) for name, model in self.models.items()}
        return {
            name: {key: _group_figures(by_cell, *groups) for key, groups in groupings.items()}
            for name, by_cell in masses.items()
        }


def yearly_shocks(sd: float, memory: float, years: int, size: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield autocorrelated yearly normal shocks with this `sd` and the correlation `memory` between years."""
    shock = sd * rng.standard_normal(size)
    yield shock
    for _ in range(years - 1):
        fresh = math.sqrt(1.0 - memory**2) * sd * rng.standard_normal(size)
        shock = memory * shock + fresh
        yield shock


def column_of(table: Mapping[str, NamedTuple], name: str) -> npt.NDArray[Any]:
    """Return one field of all rows of a table of groups as an array."""
    return np.array([getattr(row, name) for row in table.values()])


def _labels(table: Mapping[str, NamedTuple], codes: IntArray) -> npt.NDArray[np.object_]:
    return np.array(list(table), dtype=object)[codes]


@cache
def _normal_nodes() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for integration against the normal density, exact to about 1e-12."""
    node, weight = np.polynomial.legendre.leggauss(400)
    z = 9.0 * node
    return z, 9.0 * weight * np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)


def _outcome_mass(cells: Cells, risk_sd: float) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(cells.share * ndtr(cells.risk / math.sqrt(1.0 + risk_sd**2)), dtype=np.float64)


def _group_figures(
    masses: dict[str, FloatArray], groups: tuple[str, ...], code: IntArray
) -> dict[str, dict[str, float]]:
    """Return the figures of each group from sums over its cells."""
    total = {name: np.bincount(code, weights=mass) for name, mass in masses.items()}
    figures = {
        "share": np.minimum(total["all"], 1.0),
        "outcome_rate": total["outcome"] / total["all"],
        "selection_rate": total["selected"] / total["all"],
        "mean_score": total["score"] / total["all"],
        "tpr": total["both"] / total["outcome"],
        "fpr": (total["selected"] - total["both"]) / (total["all"] - total["outcome"]),
    }
    return {group: {name: float(v[i]) for name, v in figures.items()} for i, group in enumerate(groups)}
