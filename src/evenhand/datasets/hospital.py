"""Hospital patients with a risk score trained to predict cost: the published data, and similar synthetic data.

The published data come from Obermeyer and others (2019): a hospital enrols the patients with the highest risk scores in
a care programme; the score predicts cost, and Black patients cost less at the same state of health. The authors
synthesised the file from real records; no row is a real person.

**The data of `make_patients` are invented.** In the order in which a row is made:

1. A patient's need for care is normal, with a mean that depends on race.
2. Chronic illnesses of the next year, the outcome, are Poisson with mean exp(level + slope * need).
3. The hospital's risk score sees need through noise, less a part for patients with less access to care, because it
   learned from cost. A second score sees need through noise of its own, and no cost.
4. The other columns (age, illnesses and medications now, emergency visits, cost) are further noisy signs of need.

Need and scores are jointly normal within a race, so the values of either score at any capacity are exact: see
`patients_truth`.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.datasets._synthetic import MOST_ROWS, Columns, column_of
from evenhand.datasets.registry import fetch, query_file
from evenhand.errors import ConfigError, require_choice, require_whole
from evenhand.table.frames import NativeFrame, build_frame

Part = Literal["full", "holdout"]
_FILES: dict[str, str] = {"full": "hospital", "holdout": "hospital_holdout"}

_HOLDOUT_COLUMNS = """
    "index" AS row, CASE dem_race_black WHEN 1 THEN 'Black' ELSE 'White' END AS race, risk_score_t, gagne_sum_t, cost_t,
    cost_avoidable_t, program_enrolled_t, gagne_sum_t_hat, log_cost_t_hat, log_cost_avoidable_t_hat,
    risk_score_t_percentile
"""
_FULL_COLUMNS = "* REPLACE (upper(race[1]) || race[2:] AS race)"


def load_hospital(part: Part = "holdout", *, backend: str | None = None) -> NativeFrame:
    """Load the hospital data of Obermeyer and others: risk scores, chronic illnesses and race of patients.

    The file comes from `fetch`: the folder named by EVENHAND_DATA, the cache, or the publisher.

    Parameters
    ----------
    part : {"holdout", "full"}, default "holdout"
        "holdout": the authors' own hold-out of 16,099 patients, with the predictions of their lasso models, trained on
        all other patients. "full": all 48,784 patients with 149 covariates.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        One row per patient and year, in the publisher's order. Both parts have

        - `race`: Black or White, as patients reported it;
        - `risk_score_t`: the commercial score, the status quo; a high score enrols;
        - `gagne_sum_t`: the number of active chronic illnesses in the year, the outcome;
        - `cost_t`, `cost_avoidable_t`: dollars in the year; `program_enrolled_t`: 1 when enrolled.

        The hold-out also has `row` (the row in the full file), `gagne_sum_t_hat`, `log_cost_t_hat` and
        `log_cost_avoidable_t_hat` (lasso predictions without race) and `risk_score_t_percentile`. The full file has
        five biomarkers of the year, often missing, and the covariates of the year before, whose names end in `_tm1`.

    Raises
    ------
    ConfigError
        `part` is unknown.
    EvenhandError
        The file could not be obtained, or differs from the published one.

    Notes
    -----
    The authors made the file with a synthesiser from the records of real patients. They state no licence.

    References
    ----------
    Z. Obermeyer, B. Powers, C. Vogeli and S. Mullainathan (2019). Dissecting racial bias in an algorithm used to manage
    the health of populations. Science 366, 447-453. https://doi.org/10.1126/science.aax2342
    """
    require_choice("part", part, _FILES)
    columns = _FULL_COLUMNS if part == "full" else _HOLDOUT_COLUMNS
    query = f"SELECT {columns} FROM read_csv($path, header = true, sample_size = -1)"  # noqa: S608 -- constants only
    return build_frame(query_file(fetch(_FILES[part]), query), backend)


class _Race(NamedTuple):
    share: float
    need: float
    access: float


class _Score(NamedTuple):
    noise: float
    sees_access: bool


_RACES = {"White": _Race(0.88, 0.0, 0.0), "Black": _Race(0.12, 0.5, -0.45)}
_SCORES = {"risk_score": _Score(1.3, True), "need_score": _Score(0.4, False)}
_ILLNESS_LEVEL, _ILLNESS_SLOPE = -0.05, 0.75


def make_patients(n: int = 10_000, seed: int = 0, *, backend: str | None = None) -> NativeFrame:
    """Return a synthetic table of patients with a risk score that predicts cost and a score that predicts need.

    The data are invented and are no statement about real groups. Black patients have more need and less access to care,
    so at the same risk score they are sicker. A score of need is fairer and more accurate for both groups:
    `patients_truth` has the exact figures.

    Parameters
    ----------
    n : int, default 10_000
        The number of patients; 12 % of them are Black.
    seed : int, default 0
        The same `n` and `seed` give the same table. A longer table does not begin with a shorter one.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        One row per patient, no missing values, with the columns

        - `patient`: 1 to `n`, the id;
        - `race`: White or Black; `sex`: Female or Male; `age`: 18 to 95;
        - `illnesses_now`, `medications`, `emergency_visits`: counts in the year before;
        - `cost`: dollars in the year before, to the nearest 100;
        - `illnesses`: chronic illnesses in the year, the outcome;
        - `risk_score`: the hospital's score, the status quo, made to predict cost;
        - `need_score`: a candidate, made to predict illness.

        A high score is selected for the care programme.

    Raises
    ------
    ConfigError
        `n` is not a positive integer, `seed` is not a non-negative integer, or `backend` is unknown.

    Examples
    --------
    >>> table = make_patients(1_000, seed=3, backend="polars")
    >>> table.columns
    ['patient', 'race', 'sex', 'age', 'illnesses_now', 'medications', 'emergency_visits', 'cost', 'illnesses', \
'risk_score', 'need_score']
    >>> table.equals(make_patients(1_000, seed=3, backend="polars"))
    True
    """
    rng = np.random.default_rng(require_whole("seed", seed, 0))
    rows = require_whole("n", n, 1, MOST_ROWS)
    code = rng.choice(len(_RACES), size=rows, p=column_of(_RACES, "share"))
    need = column_of(_RACES, "need")[code] + rng.standard_normal(rows)
    access = column_of(_RACES, "access")[code]
    seen = {
        name: need + score.sees_access * access + score.noise * rng.standard_normal(rows)
        for name, score in _SCORES.items()
    }
    columns: Columns = {
        "patient": np.arange(1, rows + 1),
        "race": np.array(list(_RACES), dtype=object)[code],
        "sex": np.array(["Female", "Male"], dtype=object)[rng.integers(2, size=rows)],
        "age": np.clip(np.round(50 + 8 * need + 14 * rng.standard_normal(rows)), 18, 95).astype(np.int64),
        "illnesses_now": rng.poisson(np.exp(_ILLNESS_LEVEL + _ILLNESS_SLOPE * need)),
        "medications": rng.poisson(np.exp(0.6 + 0.5 * need)),
        "emergency_visits": rng.poisson(np.exp(-1.0 + 0.6 * need)),
        "cost": _dollars(seen["risk_score"], rng),
        "illnesses": rng.poisson(np.exp(_ILLNESS_LEVEL + _ILLNESS_SLOPE * need)),
        # Processors differ in the last digit of an exponential, which should not change the patients.
        "risk_score": np.round(np.exp(1.0 + 0.5 * seen["risk_score"]), 6),
        "need_score": seen["need_score"],
    }
    return build_frame(columns, backend)


def _dollars(seen: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return costs in dollars from the risk score's observation, with noise."""
    log_cost = 8.0 + 0.9 * seen + 0.3 * rng.standard_normal(seen.size)
    return np.asarray(np.round(np.exp(log_cost) / 100) * 100, dtype=np.int64)


def patients_truth(capacity: float = 0.03) -> dict[str, dict[str, dict[str, float]]]:
    """Return the exact values of both scores in the population from which `make_patients` samples.

    Within a race need h and a score s are jointly normal with covariance 1, so
    E[exp(a + b h); s > c] = exp(a + b mean + b² / 2) Phi((mean of s + b - c) / sd of s). The cut-off c selects the
    share `capacity` of the whole population.

    Parameters
    ----------
    capacity : float, default 0.03
        The selected share of the population, above 0 and below 1.

    Returns
    -------
    dict
        `truth[score][group][figure]` with score "risk_score" or "need_score", group "White", "Black" or "all", and the
        figures `share` of the population, `illnesses` (the mean outcome), `selection_rate` and `illnesses_selected`,
        the mean outcome of the selected: the group's value by the calibration utility.

    Examples
    --------
    >>> truth = patients_truth()
    >>> for score, groups in truth.items():
    ...     print(score, *(f"{name} {groups[name]['illnesses_selected']:.2f}" for name in ("Black", "White")))
    risk_score Black 4.67 White 3.25
    need_score Black 5.78 White 5.21
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    if not 0.0 < capacity < 1.0:
        raise ConfigError("`capacity` must be a share above 0 and below 1; got {capacity!r}.", capacity=capacity)
    share, need, access = (column_of(_RACES, name) for name in ("share", "need", "access"))
    illnesses = np.exp(_ILLNESS_LEVEL + _ILLNESS_SLOPE * need + _ILLNESS_SLOPE**2 / 2)
    truth: dict[str, dict[str, dict[str, float]]] = {}
    for name, score in _SCORES.items():
        mean = need + score.sees_access * access
        sd = math.sqrt(1.0 + score.noise**2)
        cut = brentq(lambda c, mean=mean, sd=sd: float(share @ ndtr((mean - c) / sd)) - capacity, -40.0, 40.0)
        selected = ndtr((mean - cut) / sd)
        among = illnesses * ndtr((mean + _ILLNESS_SLOPE - cut) / sd)
        truth[name] = {
            group: _figures(share[codes], illnesses[codes], selected[codes], among[codes])
            for group, codes in {**{race: [i] for i, race in enumerate(_RACES)}, "all": list(range(share.size))}.items()
        }
    return truth


def _figures(*columns: npt.NDArray[np.float64]) -> dict[str, float]:
    share, illnesses, selected, among = columns
    total, chosen = float(share.sum()), float(share @ selected)
    return {
        "share": min(total, 1.0),
        "illnesses": float(share @ illnesses) / total,
        "selection_rate": chosen / total,
        "illnesses_selected": float(share @ among) / chosen,
    }
