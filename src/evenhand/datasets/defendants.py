"""A synthetic table of defendants for which the correct results of an audit can be computed exactly.

**The data are invented.** They have the form of the court records (CLUE, Maryland) on which the authors of
effort-aware fairness worked and which may not be passed on: arrests a year over four years, a new arrest as
the outcome, and the risk scores of three models. The groups bear familiar names so that reports read naturally,
but shares, arrests and risks are made up to give an audit something to find. Nothing here is a statement about
real groups or about any court.

The causal story, in the order in which a row is made:

1. A defendant is in a *cell*: race, sex, age group, degree of the charge. Age depends on race, and the charge on sex.
2. How often the defendant comes to be arrested in a year (a rate) is the level of the cell, times their own
   lasting level, times a yearly growth or decline (that of the cell times their own), times a shock that carries
   over from year to year. So groups differ in level *and* in trajectory.
3. In some years a defendant is out of reach and has no arrests; in the others the count is a Poisson number with
   that rate. So zeros are many, and neighbouring years alike.
4. The latent risk rises with the rate of the fourth year and with the defendant's own growth, differs by race,
   sex, age group and charge, and holds a part ("circumstances") that no column records.
5. The defendant is arrested again with probability Phi(risk), Phi the normal distribution function.
6. Three models see the risk through noise of their own, and turn it into a score (see `_MODELS`).

Within a cell the logarithm of the rates and the risk are Gaussian, so each rate of an audit is a normal
integral; see `defendants_truth`.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from evenhand.datasets import _synthetic
from evenhand.datasets._synthetic import Cells, Columns, Model, Population, ProbitModel, TreeModel, Truth, column_of
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.frames import NativeFrame


class _Race(NamedTuple):
    share: float
    ages: tuple[float, float, float, float]
    arrests: float
    growth: float
    risk: float


class _Sex(NamedTuple):
    share: float
    charges: tuple[float, float]
    arrests: float
    risk: float


class _Age(NamedTuple):
    youngest: int
    oldest: int
    arrests: float
    growth: float
    risk: float


class _Charge(NamedTuple):
    arrests: float
    risk: float


# Arrests and growth are differences in the logarithm of the yearly rate; risks are in probit units.
_RACES = {
    "White": _Race(0.430, (0.22, 0.34, 0.22, 0.22), 0.00, 0.00, 0.00),
    "Black": _Race(0.520, (0.28, 0.35, 0.19, 0.18), 0.25, -0.06, 0.10),
    "Asian": _Race(0.030, (0.27, 0.35, 0.21, 0.17), -0.55, -0.02, -0.25),
    "American Indian": _Race(0.012, (0.24, 0.36, 0.22, 0.18), 0.20, 0.05, 0.10),
    "Pacific Islander": _Race(0.008, (0.29, 0.36, 0.20, 0.15), 0.05, 0.02, 0.05),
}
_SEXES = {"Female": _Sex(0.24, (0.24, 0.76), -0.15, -0.05), "Male": _Sex(0.76, (0.36, 0.64), 0.00, 0.00)}
_AGES = {
    "18-24": _Age(18, 24, 0.10, 0.10, 0.18),
    "25-34": _Age(25, 34, 0.10, 0.02, 0.08),
    "35-44": _Age(35, 44, 0.00, -0.05, -0.05),
    "45+": _Age(45, 75, -0.15, -0.08, -0.25),
}
_CHARGES = {"Felony": _Charge(0.15, 0.15), "Misdemeanor": _Charge(0.00, 0.00)}

_YEARS = 4
_LOG_RATE = math.log(0.40)
_LASTING_SD, _GROWTH_SD, _SHOCK_SD, _SHOCK_MEMORY = 0.75, 0.15, 0.40, 0.5
_OUT_OF_REACH, _MOST_ARRESTS = 0.15, 12

_RISK_AT_BASE_RATE, _RISK_OF_RATE, _RISK_OF_GROWTH, _CIRCUMSTANCES_SD = -0.80, 0.50, 1.20, 0.45
_YEARS_OF_GROWTH = _YEARS - 1
_RISK_SD = math.sqrt(
    (_RISK_OF_RATE * _LASTING_SD) ** 2
    + ((_RISK_OF_RATE * _YEARS_OF_GROWTH + _RISK_OF_GROWTH) * _GROWTH_SD) ** 2
    + (_RISK_OF_RATE * _SHOCK_SD) ** 2
    + _CIRCUMSTANCES_SD**2
)
"""The spread of latent risk within a cell, the same in every cell."""

_MODELS: dict[str, Model] = {
    "lightgbm": ProbitModel(risk_sd=_RISK_SD, noise=0.40, spread=1.0),
    "logistic": ProbitModel(risk_sd=_RISK_SD, noise=0.60, spread=1.3, bias={"Black": 0.20}, centre=-0.55),
    "decision_tree": TreeModel(
        risk_sd=_RISK_SD,
        noise=0.50,
        cuts=(-1.8, -1.3, -0.9, -0.5, -0.1, 0.3, 0.8),
        leaves=(0.051, 0.118, 0.186, 0.265, 0.357, 0.459, 0.573, 0.732),
    ),
}


def make_defendants(n: int = 10_000, seed: int = 0, *, backend: str | None = None) -> NativeFrame:
    """Return a synthetic table of defendants with four years of arrests and three models' risk scores.

    The data are invented and are no statement about real groups. In short: arrests differ by group in level and trend,
    risk rises with the arrest rate and its growth, the probability of a new arrest rises with risk, and three models
    observe this risk with noise. For details see `evenhand.datasets.defendants`.

    Parameters
    ----------
    n : int, default 10_000
        The number of defendants. The smallest race has 0.8 % of them, so small tables contain very small groups.
    seed : int, default 0
        The same `n` and `seed` give the same table. A longer table does not begin with a shorter one.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        One row per defendant, no missing values, with the columns

        - `defendant`: 1 to `n`, the id;
        - `race`: White, Black, Asian, American Indian or Pacific Islander: those for which the paper on effort
          gives a rate of childhood poverty (NCES, 2012), so that an inertia can be looked up for everyone;
        - `sex`: Female or Male;
        - `age`: 18 to 75, at the current charge, and `age_group`: 18-24, 25-34, 35-44 or 45+;
        - `charge_degree`: Felony or Misdemeanor, of the current charge;
        - `arrests_year1`, `arrests_year2`, `arrests_year3`, `arrests_year4`: earlier arrests in each of the four
          years before the current charge, the oldest year first, from 0 (most of them) to 12: the trajectory of
          an effort audit, where less is better;
        - `rearrested`: 1 when arrested again after the current charge, else 0: the outcome, about 30 % ones;
        - `risk_lightgbm`: a score that is calibrated in every group by construction, and still selects groups at
          different rates, because their risks differ;
        - `risk_logistic`: a score that exaggerates, too low for low risks and too high for high ones, and that
          overstates the risk of Black defendants besides;
        - `risk_decision_tree`: a score with eight distinct values, as a small tree has. It is calibrated as a
          whole; it does not use the group, so it is too low for groups of high risk and too high for those of low risk.

        Scores lie strictly between 0 and 1; a high score is bad for the defendant.

    Raises
    ------
    ConfigError
        `n` is not a positive integer, `seed` is not a non-negative integer, or `backend` is unknown.

    See Also
    --------
    defendants_truth : the exact rates that this table estimates.
    make_households : its counterpart with incomes, where more is better.

    References
    ----------
    T. T. Nguyen, J. Xu, Z. Che et al. Effort-aware Fairness: Incorporating a Philosophy-informed, Human-centered
    Notion of Effort into Algorithmic Fairness Metrics (the court records there are CLUE, the models these three).

    Examples
    --------
    >>> table = make_defendants(1_000, seed=3, backend="polars")
    >>> table.shape
    (1000, 14)
    >>> table.columns[:6]
    ['defendant', 'race', 'sex', 'age', 'age_group', 'charge_degree']
    >>> table["risk_decision_tree"].n_unique()
    8
    >>> table.equals(make_defendants(1_000, seed=3, backend="polars"))
    True
    """
    return _population().table(n, seed, backend)


def defendants_truth() -> Truth:
    """Return the exact rates of the population from which `make_defendants` samples.

    Within a cell the latent risk, a model's view of it and the outcome's latent variable are jointly normal.
    The probability of being selected (or of falling into a leaf of the tree) *and* arrested again is one integral over
    the risk, computed by Gauss-Legendre quadrature; all other rates have closed forms. The results are summed over
    leaves and cells.

    Returns
    -------
    dict
        `truth[model][grouping][group][figure]`, a float exact to about 1e-12, with

        - model: "lightgbm", "logistic" or "decision_tree" (the score is in the column "risk_" + model);
        - grouping: "race", "sex", "age_group" or "overall" (whose only group is "all");
        - figure: `share` of the group in the population, `outcome_rate` P(rearrested = 1),
          `selection_rate` P(score > 0.5), `mean_score`, `tpr` P(score > 0.5 | rearrested) and
          `fpr` P(score > 0.5 | not rearrested).

    Examples
    --------
    The boosted model is calibrated for Black defendants, the logistic model is not, and the tree is so only on
    the whole:

    >>> truth = defendants_truth()
    >>> for model in ("lightgbm", "logistic", "decision_tree"):
    ...     black = truth[model]["race"]["Black"]
    ...     print(f"{model:13}  rearrested {black['outcome_rate']:.3f}  mean score {black['mean_score']:.3f}")
    lightgbm       rearrested 0.331  mean score 0.331
    logistic       rearrested 0.331  mean score 0.408
    decision_tree  rearrested 0.331  mean score 0.324
    """
    return _population().truth()


@cache
def _population() -> Population:
    return Population(
        person="defendant", outcome="rearrested", cells=_cells(), history=_arrests_and_risk, models=_MODELS
    )


@cache
def _cells() -> Cells:
    """Return all combinations of race, sex, age group and charge, with the summed effects of the tables above."""
    groupings: _synthetic.Groupings = {"race": _RACES, "sex": _SEXES, "age_group": _AGES, "charge_degree": _CHARGES}
    race, sex, age, charge = _synthetic.crossed(groupings)
    share = column_of(_RACES, "share")[race] * column_of(_RACES, "ages")[race, age]
    share *= column_of(_SEXES, "share")[sex] * column_of(_SEXES, "charges")[sex, charge]
    rate = column_of(_RACES, "arrests")[race] + column_of(_SEXES, "arrests")[sex]
    rate += column_of(_AGES, "arrests")[age] + column_of(_CHARGES, "arrests")[charge]
    growth = column_of(_RACES, "growth")[race] + column_of(_AGES, "growth")[age]
    risk = _RISK_AT_BASE_RATE + column_of(_RACES, "risk")[race] + column_of(_SEXES, "risk")[sex]
    risk += column_of(_AGES, "risk")[age] + column_of(_CHARGES, "risk")[charge]
    risk += _RISK_OF_RATE * (rate + _YEARS_OF_GROWTH * growth)
    return Cells(
        groupings=groupings,
        share=share / share.sum(),
        risk=risk,
        level=_LOG_RATE + rate,
        growth=growth,
    )


def _arrests_and_risk(cell: IntArray, rng: np.random.Generator) -> tuple[Columns, FloatArray]:
    """Return the arrests of four years, and each defendant's latent risk minus the mean of the cell."""
    cells = _cells()
    lasting = _LASTING_SD * rng.standard_normal(cell.size)
    own_growth = _GROWTH_SD * rng.standard_normal(cell.size)
    level, growth = cells.level[cell] + lasting, cells.growth[cell] + own_growth
    arrests: Columns = {}
    for year, shock in enumerate(_synthetic.yearly_shocks(_SHOCK_SD, _SHOCK_MEMORY, _YEARS, cell.size, rng)):
        rate = np.exp(level + year * growth + shock)
        rate[rng.random(cell.size) < _OUT_OF_REACH] = 0.0
        arrests[f"arrests_year{year + 1}"] = np.minimum(rng.poisson(rate), _MOST_ARRESTS)
    own_log_rate = lasting + _YEARS_OF_GROWTH * own_growth + shock
    circumstances = _CIRCUMSTANCES_SD * rng.standard_normal(cell.size)
    return arrests, _RISK_OF_RATE * own_log_rate + _RISK_OF_GROWTH * own_growth + circumstances
