"""A synthetic table of households with a known truth: what an audit ought to find can be computed exactly.

**The data are invented.** The groups bear familiar names so that reports read naturally, but shares, incomes
and risks are made up to give an audit something to find. Nothing here is a statement about real groups.

The causal story, in the order in which a row is made:

1. A household is in a *cell*: race, sex, age group, employment. Age depends on race, employment on age.
2. Its log income in a year is the level of its cell, plus its own lasting standing, plus growth at a yearly
   rate (that of its cell plus its own), less a dip in 2020 that depends on employment, plus a shock that
   carries over from year to year. So groups differ in level *and* in trajectory.
3. Its latent risk falls with the income of 2022 and with the household's own growth, differs by race and age
   group, and holds a part ("trouble") that no column records.
4. It misses a payment in 2023 with probability Phi(risk), Phi the normal distribution function.
5. Three models see the risk through noise of their own, and turn it into a score (see `_MODELS`).

Within a cell everything before Phi is Gaussian, so each rate is a normal integral; see `households_truth`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.errors import ConfigError
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.frames import build_frame

Truth = dict[str, dict[str, dict[str, dict[str, float]]]]
"""What `households_truth` returns: model, grouping, group, figure."""


class _Race(NamedTuple):
    share: float
    ages: tuple[float, float, float, float]
    income: float
    growth: float
    risk: float


class _Sex(NamedTuple):
    share: float
    income: float


class _Age(NamedTuple):
    youngest: int
    oldest: int
    employment: tuple[float, float, float, float]
    income: float
    growth: float
    risk: float


class _Employment(NamedTuple):
    income: float
    dip_2020: float


# Incomes, growth and dips are differences in log dollars (a year); risks are in probit units.
_RACES = {
    "White": _Race(0.620, (0.18, 0.24, 0.25, 0.33), 0.00, 0.025, 0.00),
    "Black": _Race(0.120, (0.22, 0.27, 0.25, 0.26), -0.36, 0.040, 0.15),
    "Hispanic": _Race(0.180, (0.28, 0.31, 0.24, 0.17), -0.24, 0.045, 0.05),
    "Asian": _Race(0.062, (0.22, 0.32, 0.25, 0.21), 0.18, 0.035, -0.10),
    "American Indian": _Race(0.013, (0.24, 0.27, 0.25, 0.24), -0.40, 0.010, 0.15),
    "Pacific Islander": _Race(0.005, (0.26, 0.30, 0.25, 0.19), -0.18, 0.030, 0.05),
}
_SEXES = {"Female": _Sex(0.51, -0.12), "Male": _Sex(0.49, 0.00)}
_AGES = {
    "18-29": _Age(18, 29, (0.56, 0.22, 0.04, 0.18), -0.25, 0.050, 0.10),
    "30-44": _Age(30, 44, (0.69, 0.10, 0.08, 0.13), 0.02, 0.025, 0.10),
    "45-59": _Age(45, 59, (0.66, 0.08, 0.10, 0.16), 0.10, 0.005, 0.00),
    "60+": _Age(60, 90, (0.24, 0.09, 0.08, 0.59), 0.05, -0.020, -0.45),
}
_EMPLOYMENTS = {
    "Full-time": _Employment(0.25, 0.01),
    "Part-time": _Employment(-0.40, 0.10),
    "Self-employed": _Employment(0.10, 0.12),
    "Not working": _Employment(-0.45, 0.03),
}

_YEARS = (2019, 2020, 2021, 2022)
_LOG_INCOME = math.log(64_000)
_STANDING_SD, _GROWTH_SD, _SHOCK_SD, _SHOCK_MEMORY = 0.55, 0.06, 0.12, 0.5
_SMALLEST_INCOME, _INCOME_STEP = 1_000.0, 100.0

_RISK_AT_BASE_INCOME, _RISK_OF_INCOME, _RISK_OF_GROWTH, _TROUBLE_SD = -1.60, -1.30, -4.0, 0.85
_YEARS_OF_GROWTH = _YEARS[-1] - _YEARS[0]
_RISK_SD = math.sqrt(
    (_RISK_OF_INCOME * _STANDING_SD) ** 2
    + ((_RISK_OF_INCOME * _YEARS_OF_GROWTH + _RISK_OF_GROWTH) * _GROWTH_SD) ** 2
    + (_RISK_OF_INCOME * _SHOCK_SD) ** 2
    + _TROUBLE_SD**2
)
"""The spread of latent risk within a cell, the same in every cell."""


@dataclass(frozen=True)
class _ScoreModel:
    """How a model turns latent risk into the score Phi(q).

    It sees risk + noise, and q = intercept + slope * (what it sees, from the mean risk of the cell). With
    `spread` 1 and no `bias`, Phi(q) is the probability of a missed payment given that sight: calibrated in
    every cell, hence in every group. A `spread` below 1 pulls q towards `centre`; a `bias` raises it.
    """

    noise: float
    spread: float
    bias: dict[str, float]
    centre: float = -0.80

    @property
    def _trust(self) -> float:
        """How much of what the model sees is signal: the reliability of its sight."""
        return _RISK_SD**2 / (_RISK_SD**2 + self.noise**2)

    @property
    def _unseen(self) -> float:
        """The spread of the outcome's latent variable that remains given what the model sees."""
        return math.sqrt(1.0 + _RISK_SD**2 * (1.0 - self._trust))

    @property
    def slope(self) -> float:
        """How q moves with what the model sees, measured from the cell's mean risk."""
        return self.spread * self._trust / self._unseen

    def intercept(self, cells: _Cells) -> FloatArray:
        """Return q, cell by cell, for a household that looks average for its cell."""
        bias: FloatArray = np.array([self.bias.get(race, 0.0) for race in _RACES])[cells.race]
        return self.centre + self.spread * (cells.risk / self._unseen - self.centre) + bias


_MODELS = {
    "xgboost": _ScoreModel(noise=0.50, spread=1.0, bias={"Black": 0.40, "Hispanic": 0.25}),
    "logistic": _ScoreModel(noise=0.70, spread=1.0, bias={}),
    "random_forest": _ScoreModel(noise=0.60, spread=0.65, bias={}),
}


@dataclass(frozen=True)
class _Cells:
    """Race, sex, age group and employment (as codes) of every cell, its share, and its means."""

    share: FloatArray
    race: IntArray
    sex: IntArray
    age: IntArray
    employment: IntArray
    log_income: FloatArray
    growth: FloatArray
    dip_2020: FloatArray
    risk: FloatArray


def make_households(n: int = 10_000, seed: int = 0, *, backend: str | None = None) -> Any:
    """Make a synthetic table of households, their incomes over four years and three models' risk scores.

    The data are invented and no statement about real groups. In short: incomes differ by group in level and
    in growth, risk falls with income and with growth, a payment is missed with a probability that rises with
    risk, and three models see that risk through noise. `evenhand.datasets.households` has the whole story.

    Parameters
    ----------
    n : int, default 10_000
        The number of households. The smallest race has 0.5 % of them, so small tables hold very small groups.
    seed : int, default 0
        The same `n` and `seed` give the same table. A longer table does not begin with a shorter one.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        One row per household, no missing values, with the columns

        - `household`: 1 to `n`, the id;
        - `race`: White, Black, Hispanic, Asian, American Indian or Pacific Islander;
        - `sex`: Female or Male;
        - `age`: 18 to 90, and `age_group`: 18-29, 30-44, 45-59 or 60+;
        - `employment`: Full-time, Part-time, Self-employed or Not working;
        - `income_2019`, `income_2020`, `income_2021`, `income_2022`: dollars in the year, to the nearest 100
          and at least 1,000: the trajectory of an effort audit;
        - `missed_payment`: 1 when a payment was missed in 2023, else 0: the outcome, about 17 % ones;
        - `risk_xgboost`: a score that overstates the risk of Black and Hispanic households;
        - `risk_logistic`: a score that is calibrated in every group by construction, and still selects groups
          at different rates, because their risks differ;
        - `risk_random_forest`: a score shrunken towards the overall rate: too high for low risks, too low for
          high ones, seldom above 0.5.

        Scores lie strictly between 0 and 1; a high score is bad for the household.

    Raises
    ------
    ConfigError
        `n` is not a positive integer, `seed` is not a non-negative integer, or `backend` is unknown.

    See Also
    --------
    households_truth : the exact rates that this table estimates.

    Examples
    --------
    >>> table = make_households(1_000, seed=3, backend="polars")
    >>> table.shape
    (1000, 14)
    >>> table.columns[:6]
    ['household', 'race', 'sex', 'age', 'age_group', 'employment']
    >>> table.equals(make_households(1_000, seed=3, backend="polars"))
    True
    """
    rng = np.random.default_rng(_whole_number("seed", seed, at_least=0))
    rows = _whole_number("n", n, at_least=1)
    cells = _cells()
    cell = rng.choice(cells.share.size, size=rows, p=cells.share)
    columns: dict[str, npt.NDArray[Any]] = {"household": np.arange(1, rows + 1), **_people(cells, cell, rng)}
    incomes, risk_from_mean = _incomes_and_risk(cells, cell, rng)
    columns |= incomes
    columns["missed_payment"] = _missed(cells.risk[cell] + risk_from_mean, rng)
    columns |= _scores(cells, cell, risk_from_mean, rng)
    return build_frame(columns, backend)


def households_truth() -> Truth:
    """Return the exact rates of the population that `make_households` samples from.

    Within a cell the latent risk, a model's view of it and the outcome's latent variable are jointly normal.
    Outcome rates, selection rates and mean scores follow in closed form; the chance to be selected *and* to
    miss a payment is one integral over the risk, taken by Gauss-Legendre quadrature. Then cells are added up.

    Returns
    -------
    dict
        `truth[model][grouping][group][figure]`, a float exact to about 1e-12, with

        - model: "xgboost", "logistic" or "random_forest" (the score is in the column "risk_" + model);
        - grouping: "race", "sex", "age_group" or "overall" (whose only group is "all");
        - figure: `share` of the group in the population, `outcome_rate` P(missed_payment = 1),
          `selection_rate` P(score > 0.5), `mean_score`, `tpr` P(score > 0.5 | missed) and
          `fpr` P(score > 0.5 | not missed).

    Examples
    --------
    The logistic model is calibrated for Black households, the XGBoost model is not:

    >>> truth = households_truth()
    >>> for model in ("logistic", "xgboost"):
    ...     black = truth[model]["race"]["Black"]
    ...     print(f"{model:8}  missed {black['outcome_rate']:.3f}  mean score {black['mean_score']:.3f}")
    logistic  missed 0.244  mean score 0.244
    xgboost   missed 0.244  mean score 0.336
    """
    cells = _cells()
    groupings: dict[str, tuple[tuple[str, ...], IntArray]] = {
        "overall": (("all",), np.zeros_like(cells.race)),
        "race": (tuple(_RACES), cells.race),
        "sex": (tuple(_SEXES), cells.sex),
        "age_group": (tuple(_AGES), cells.age),
    }
    return {
        name: {
            grouping: _group_figures(_cell_masses(model, cells), labels, code)
            for grouping, (labels, code) in groupings.items()
        }
        for name, model in _MODELS.items()
    }


def _whole_number(name: str, value: object, *, at_least: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = at_least - 1
    if number < at_least or isinstance(value, bool):
        raise ConfigError(f"`{name}` must be an integer of at least {at_least}; got {value!r}.")
    return number


@cache
def _cells() -> _Cells:
    """Cross race, sex, age group and employment, and add up the tables above for each cell."""
    sizes = (len(_RACES), len(_SEXES), len(_AGES), len(_EMPLOYMENTS))
    race, sex, age, job = np.indices(sizes).reshape(4, -1)
    share = _field(_RACES, "share")[race] * _field(_SEXES, "share")[sex]
    share *= _field(_RACES, "ages")[race, age] * _field(_AGES, "employment")[age, job]
    income = _field(_RACES, "income")[race] + _field(_SEXES, "income")[sex]
    income += _field(_AGES, "income")[age] + _field(_EMPLOYMENTS, "income")[job]
    growth = _field(_RACES, "growth")[race] + _field(_AGES, "growth")[age]
    risk = _RISK_AT_BASE_INCOME + _field(_RACES, "risk")[race] + _field(_AGES, "risk")[age]
    risk += _RISK_OF_INCOME * (income + _YEARS_OF_GROWTH * growth)
    dip_2020 = _field(_EMPLOYMENTS, "dip_2020")[job]
    return _Cells(share / share.sum(), race, sex, age, job, _LOG_INCOME + income, growth, dip_2020, risk)


def _field(table: Mapping[str, NamedTuple], name: str) -> npt.NDArray[Any]:
    return np.array([getattr(row, name) for row in table.values()])


def _people(cells: _Cells, cell: IntArray, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    """Return who the households are: the group columns, and an age drawn evenly from the age group."""
    age_code = cells.age[cell]
    youngest, oldest = _field(_AGES, "youngest")[age_code], _field(_AGES, "oldest")[age_code]
    return {
        "race": _labels(_RACES, cells.race[cell]),
        "sex": _labels(_SEXES, cells.sex[cell]),
        "age": rng.integers(youngest, oldest, endpoint=True),
        "age_group": _labels(_AGES, age_code),
        "employment": _labels(_EMPLOYMENTS, cells.employment[cell]),
    }


def _labels(names: Mapping[str, NamedTuple], codes: IntArray) -> npt.NDArray[np.object_]:
    return np.array(list(names), dtype=object)[codes]


def _incomes_and_risk(
    cells: _Cells, cell: IntArray, rng: np.random.Generator
) -> tuple[dict[str, npt.NDArray[Any]], FloatArray]:
    """Return the four incomes, and each household's latent risk measured from the mean of its cell."""
    standing = _STANDING_SD * rng.standard_normal(cell.size)
    own_growth = _GROWTH_SD * rng.standard_normal(cell.size)
    level, growth = cells.log_income[cell] + standing, cells.growth[cell] + own_growth
    shock = _SHOCK_SD * rng.standard_normal(cell.size)
    incomes: dict[str, npt.NDArray[Any]] = {}
    for since_start, year in enumerate(_YEARS):
        if since_start > 0:
            fresh = math.sqrt(1.0 - _SHOCK_MEMORY**2) * _SHOCK_SD * rng.standard_normal(cell.size)
            shock = _SHOCK_MEMORY * shock + fresh
        log_income = level + since_start * growth + shock
        if year == 2020:
            log_income -= cells.dip_2020[cell]
        dollars = np.round(np.exp(log_income) / _INCOME_STEP) * _INCOME_STEP
        incomes[f"income_{year}"] = np.maximum(dollars, _SMALLEST_INCOME).astype(np.int64)
    own_log_income = standing + _YEARS_OF_GROWTH * own_growth + shock
    trouble = _TROUBLE_SD * rng.standard_normal(cell.size)
    return incomes, _RISK_OF_INCOME * own_log_income + _RISK_OF_GROWTH * own_growth + trouble


def _missed(risk: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw the outcome, 1 with probability Phi(risk)."""
    return (rng.standard_normal(risk.size) < risk).astype(np.int64)


def _scores(
    cells: _Cells, cell: IntArray, risk_from_mean: FloatArray, rng: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    from scipy.special import ndtr

    scores: dict[str, npt.NDArray[Any]] = {}
    for name, model in _MODELS.items():
        seen = risk_from_mean + model.noise * rng.standard_normal(cell.size)
        scores[f"risk_{name}"] = ndtr(model.intercept(cells)[cell] + model.slope * seen)
    return scores


def _cell_masses(model: _ScoreModel, cells: _Cells) -> dict[str, FloatArray]:
    """Return by cell the shares of the population that miss, are selected, and both; and the mean score."""
    from scipy.special import ndtr

    node, weight = np.polynomial.legendre.leggauss(400)
    z = 9.0 * node
    density = 9.0 * weight * np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)
    intercept, seen_variance = model.intercept(cells), _RISK_SD**2 + model.noise**2
    missed_given_risk = ndtr(cells.risk[:, None] + _RISK_SD * z)
    selected_given_risk = ndtr((intercept[:, None] / model.slope + _RISK_SD * z) / model.noise)
    return {
        "all": cells.share,
        "missed": cells.share * ndtr(cells.risk / math.sqrt(1.0 + _RISK_SD**2)),
        "selected": cells.share * ndtr(intercept / (model.slope * math.sqrt(seen_variance))),
        "both": cells.share * ((missed_given_risk * selected_given_risk) @ density),
        "score": cells.share * ndtr(intercept / np.sqrt(1.0 + model.slope**2 * seen_variance)),
    }


def _group_figures(
    masses: dict[str, FloatArray], labels: tuple[str, ...], code: IntArray
) -> dict[str, dict[str, float]]:
    """Add up the cells of each group and divide."""
    total = {name: np.bincount(code, weights=mass) for name, mass in masses.items()}
    figures = {
        "share": np.minimum(total["all"], 1.0),
        "outcome_rate": total["missed"] / total["all"],
        "selection_rate": total["selected"] / total["all"],
        "mean_score": total["score"] / total["all"],
        "tpr": total["both"] / total["missed"],
        "fpr": (total["selected"] - total["both"]) / (total["all"] - total["missed"]),
    }
    return {label: {name: float(v[i]) for name, v in figures.items()} for i, label in enumerate(labels)}
