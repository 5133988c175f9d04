"""A synthetic table of households for which the correct results of an audit can be computed exactly.

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
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from evenhand.datasets import _synthetic
from evenhand.datasets._synthetic import Cells, Columns, Population, ProbitModel, Truth, column_of
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.frames import NativeFrame


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


_MODELS = {
    "xgboost": ProbitModel(risk_sd=_RISK_SD, noise=0.50, spread=1.0, bias={"Black": 0.40, "Hispanic": 0.25}),
    "logistic": ProbitModel(risk_sd=_RISK_SD, noise=0.70, spread=1.0),
    "random_forest": ProbitModel(risk_sd=_RISK_SD, noise=0.60, spread=0.65),
}


@dataclass(frozen=True, kw_only=True)
class _Cells(Cells):
    """The cells with their fall in income in 2020."""

    dip_2020: FloatArray


def make_households(n: int = 10_000, seed: int = 0, *, backend: str | None = None) -> NativeFrame:
    """Return a synthetic table of households with four years of incomes and three models' risk scores.

    The data are invented and are no statement about real groups. In short: incomes differ by group in level and growth,
    risk falls with income and growth, the probability of a missed payment rises with risk, and three models observe
    this risk with noise. For details see `evenhand.datasets.households`.

    Parameters
    ----------
    n : int, default 10_000
        The number of households. The smallest race has 0.5 % of them, so small tables contain very small groups.
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
    return _population().table(n, seed, backend)


def households_truth() -> Truth:
    """Return the exact rates of the population from which `make_households` samples.

    Within a cell the latent risk, a model's view of it and the outcome's latent variable are jointly normal.
    Outcome rates, selection rates and mean scores follow in closed form; the probability of being selected *and*
    missing a payment is one integral over the risk, computed by Gauss-Legendre quadrature. The results are summed over
    cells.

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
    return _population().truth()


@cache
def _population() -> Population:
    return Population(
        person="household", outcome="missed_payment", cells=_cells(), history=_incomes_and_risk, models=_MODELS
    )


@cache
def _cells() -> _Cells:
    """Return all combinations of race, sex, age group and employment, with the summed effects of the tables above."""
    groupings: _synthetic.Groupings = {"race": _RACES, "sex": _SEXES, "age_group": _AGES, "employment": _EMPLOYMENTS}
    race, sex, age, job = _synthetic.crossed(groupings)
    share = column_of(_RACES, "share")[race] * column_of(_SEXES, "share")[sex]
    share *= column_of(_RACES, "ages")[race, age] * column_of(_AGES, "employment")[age, job]
    income = column_of(_RACES, "income")[race] + column_of(_SEXES, "income")[sex]
    income += column_of(_AGES, "income")[age] + column_of(_EMPLOYMENTS, "income")[job]
    growth = column_of(_RACES, "growth")[race] + column_of(_AGES, "growth")[age]
    risk = _RISK_AT_BASE_INCOME + column_of(_RACES, "risk")[race] + column_of(_AGES, "risk")[age]
    risk += _RISK_OF_INCOME * (income + _YEARS_OF_GROWTH * growth)
    return _Cells(
        groupings=groupings,
        share=share / share.sum(),
        risk=risk,
        level=_LOG_INCOME + income,
        growth=growth,
        dip_2020=column_of(_EMPLOYMENTS, "dip_2020")[job],
    )


def _incomes_and_risk(cell: IntArray, rng: np.random.Generator) -> tuple[Columns, FloatArray]:
    """Return the incomes of four years, and each household's latent risk minus the mean of its cell."""
    cells = _cells()
    standing = _STANDING_SD * rng.standard_normal(cell.size)
    own_growth = _GROWTH_SD * rng.standard_normal(cell.size)
    level, growth = cells.level[cell] + standing, cells.growth[cell] + own_growth
    shocks = _synthetic.yearly_shocks(_SHOCK_SD, _SHOCK_MEMORY, len(_YEARS), cell.size, rng)
    incomes: Columns = {}
    for since_start, (year, shock) in enumerate(zip(_YEARS, shocks, strict=True)):
        log_income = level + since_start * growth + shock
        if year == 2020:
            log_income -= cells.dip_2020[cell]
        dollars = np.round(np.exp(log_income) / _INCOME_STEP) * _INCOME_STEP
        incomes[f"income_{year}"] = np.maximum(dollars, _SMALLEST_INCOME).astype(np.int64)
    own_log_income = standing + _YEARS_OF_GROWTH * own_growth + shock
    trouble = _TROUBLE_SD * rng.standard_normal(cell.size)
    return incomes, _RISK_OF_INCOME * own_log_income + _RISK_OF_GROWTH * own_growth + trouble


def demonstration() -> dict[str, Any]:
    """Return the audit sections of these households that `evenhand demo` runs.

    The inertia comes from NCES 2012; for Hispanic households, which have no rate in the paper, it is our own number.
    """
    rates = {"White": 13, "Asian": 14, "Pacific Islander": 25, "Hispanic": 33, "American Indian": 36, "Black": 39}
    return {
        "parity": {},
        "effort": {
            "trajectory": [f"income_{year}" for year in _YEARS],
            "unit": 10_000,
            "scale": 200_000,
            "inertia": rates,
            "weights": [0.5],
        },
        "thresholds": [
            {"metric": "traditional_parity", "min": 0.8, "grouping": "race"},
            {"metric": "demographic_parity_difference", "max": 0.1, "grouping": "race"},
            {"metric": "equal_opportunity_difference", "max": 0.1, "grouping": "sex"},
            {"audit": "effort", "metric": "eaif", "min": 0.85},
        ],
    }


def names_for_readers() -> dict[str, str]:
    """Return the display names of columns, groups and models in the report of `evenhand demo`.

    Examples
    --------
    >>> names_for_readers()["Black × Female"]
    'female Black'
    """
    names = {"race × sex": "race and sex", "age_group": "age", "missed_payment": "missed payment"}
    names |= {"random_forest": "random forest", "Female": "female", "Male": "male"}
    races = demonstration()["effort"]["inertia"]
    return names | {f"{race} × {sex}": f"{sex.lower()} {race}" for race in races for sex in ("Female", "Male")}
