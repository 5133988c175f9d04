"""A synthetic table of kidney offers with stakeholders' answers and known true rates.

**The data are invented.** They have the form of the feedback that the authors of disagreement-based fairness ask for in
kidney placement: a system puts the kidney of a deceased donor into a quality class, and patients, donors, families and
surgeons say whether they agree. The groups bear familiar names so that reports read naturally, but all numbers are made
up to give an audit something to find. Nothing here is a statement about real groups or about any transplant program.

The causal story, in the order in which a row is made:

1. An offer is in a *cell*: the donor's race and age group, and the patient's race and sex.
2. The kidney has a latent quality, normal around a mean that falls with the donor's age.
3. The system sees the quality through noise and marks it down for some donors (as the race term of a donor risk index
   does); cuts turn that into a class from 1 (poor) to 4 (excellent).
4. A critic is a patient, a donor, a family member or a surgeon, and lenient or strict by nature. A case makes an
   impression of its own, the same on all who see it. Each kind of critic sees the quality with more or less noise, and
   differs in how it looks at donors' and patients' groups.
5. The same cuts turn a critic's view into the class the critic has in mind. The answer compares the two classes.

Given the quality, the two views are independent normals, so each rate is a normal integral; see `kidney_offers_truth`.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from evenhand.datasets import _synthetic
from evenhand.datasets._synthetic import MOST_ROWS, Columns, Truth, _labels, _normal_nodes, column_of
from evenhand.errors import ConfigError, require_whole
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.frames import NativeFrame, build_frame


class _Donor(NamedTuple):
    share: float
    marked_down: float


class _Age(NamedTuple):
    share: float
    quality: float


class _Patient(NamedTuple):
    share: float
    worry: float


class _Sex(NamedTuple):
    share: float


class _Stakeholder(NamedTuple):
    share: float
    noise: float
    agrees_with_marking: float
    worry: float
    leniency: float


# Qualities, noises and biases are in standard deviations of the quality within a cell.
_DONOR_RACES = {
    "White": _Donor(0.62, 0.00),
    "Black": _Donor(0.16, 0.45),
    "Hispanic": _Donor(0.15, 0.10),
    "Asian": _Donor(0.07, 0.00),
}
_DONOR_AGES = {"18-39": _Age(0.42, 0.45), "40-59": _Age(0.40, -0.10), "60+": _Age(0.18, -0.85)}
_PATIENT_RACES = {
    "White": _Patient(0.40, 0.00),
    "Black": _Patient(0.32, 0.40),
    "Hispanic": _Patient(0.20, 0.15),
    "Asian": _Patient(0.08, 0.00),
}
_PATIENT_SEXES = {"Female": _Sex(0.39), "Male": _Sex(0.61)}
# How much of the system's marking down a kind of critic shares, and the doubts about offers to some patients.
_STAKEHOLDERS = {
    "Patient": _Stakeholder(0.35, 0.45, 0.00, 0.80, 0.00),
    "Donor": _Stakeholder(0.15, 0.45, -0.40, 0.20, 0.25),
    "Family": _Stakeholder(0.30, 0.55, 0.00, 0.60, 0.10),
    "Surgeon": _Stakeholder(0.20, 0.20, 0.90, 0.00, -0.05),
}
_GROUPINGS: _synthetic.Groupings = {
    "donor_race": _DONOR_RACES,
    "donor_age": _DONOR_AGES,
    "patient_race": _PATIENT_RACES,
    "patient_sex": _PATIENT_SEXES,
}

_CUTS = (-0.90, 0.00, 0.90)
_CLASSES = len(_CUTS) + 1
_SYSTEM_NOISE, _NATURE_SD, _IMPRESSION_SD = 0.30, 0.20, 0.20
_ANSWERS = np.array(["right", "too_high", "too_low"], dtype=object)


class _Cells(NamedTuple):
    """All cells: their codes into the tables of groups, shares, mean qualities, and the biases of views."""

    codes: IntArray
    share: FloatArray
    quality: FloatArray
    marked_down: FloatArray
    worry: FloatArray


@cache
def _cells() -> _Cells:
    codes = _synthetic.crossed(_GROUPINGS)
    shares = [column_of(table, "share")[code] for table, code in zip(_GROUPINGS.values(), codes, strict=True)]
    donor, age, patient, _ = codes
    return _Cells(
        codes=codes,
        share=np.prod(shares, axis=0),
        quality=column_of(_DONOR_AGES, "quality")[age],
        marked_down=column_of(_DONOR_RACES, "marked_down")[donor],
        worry=column_of(_PATIENT_RACES, "worry")[patient],
    )


def _bias(cell: IntArray, kind: IntArray) -> FloatArray:
    """Return by cell the amount by which critics of a kind see a kidney above its quality."""
    cells = _cells()
    shared, worry = column_of(_STAKEHOLDERS, "agrees_with_marking")[kind], column_of(_STAKEHOLDERS, "worry")[kind]
    lenient = column_of(_STAKEHOLDERS, "leniency")[kind]
    return np.asarray(lenient - shared * cells.marked_down[cell] - worry * cells.worry[cell], dtype=np.float64)


def make_kidney_offers(
    n_cases: int = 1_000, n_critics: int = 200, seed: int = 0, *, cases_per_critic: int = 25, backend: str | None = None
) -> NativeFrame:
    """Return a synthetic table of kidney offers with the system's quality classes and stakeholders' answers.

    The data are invented and are no statement about real groups. In short: a system marks down kidneys of some donors,
    critics of four kinds judge the quality differently, and say whether the class is right, too high or too low. For
    details see `evenhand.datasets.kidneys`.

    Parameters
    ----------
    n_cases : int, default 1_000
        The number of offers.
    n_critics : int, default 200
        The number of critics. A fifth are surgeons, and a third patients, in the long run.
    seed : int, default 0
        The same numbers and `seed` give the same table.
    cases_per_critic : int, default 25
        The number of offers seen by each critic. Offers are shuffled once and assigned in turn, so each is seen about
        equally often: 5 times with the numbers above.
    backend : {"pandas", "polars", "pyarrow"}, optional
        The library of the table; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        One row per answer, no missing values, with the columns

        - `offer`: 1 to `n_cases`, the id of the case;
        - `donor_race`: White, Black, Hispanic or Asian, and `donor_age`: 18-39, 40-59 or 60+;
        - `patient_race`: as for donors, and `patient_sex`: Female or Male;
        - `quality`: the class that the system gave, 1 (poor) to 4 (excellent): the decision of an audit;
        - `critic`: 1 to `n_critics`, and `stakeholder`: Patient, Donor, Family or Surgeon;
        - `disagrees`: 1 when the critic has another class in mind, else 0: the feedback of an audit;
        - `answer`: right, too_high or too_low: the same feedback with its direction;
        - `critic_quality`: the class that the critic has in mind, 1 to 4. An audit would not have it; it shows how
          much the feedback leaves open.

    Raises
    ------
    ConfigError
        A number is not a whole number of at least 1 (`seed`: 0), or a critic would see more offers than there are.

    See Also
    --------
    kidney_offers_truth : the exact rates that this table estimates.

    Examples
    --------
    >>> table = make_kidney_offers(200, 40, seed=3, backend="polars")
    >>> table.shape
    (1000, 11)
    >>> table.select("offer", "quality", "stakeholder", "answer", "critic_quality").row(0)
    (159, 4, 'Patient', 'right', 4)
    """
    cases, critics = (
        require_whole(name, value, 1, MOST_ROWS) for name, value in (("n_cases", n_cases), ("n_critics", n_critics))
    )
    seen = require_whole("cases_per_critic", cases_per_critic, 1)
    if seen > cases:
        raise ConfigError(
            "`cases_per_critic` must be at most the {cases} of `n_cases`; got {seen}.", cases=cases, seen=seen
        )
    rng = np.random.default_rng(require_whole("seed", seed, 0))
    cell = rng.choice(_cells().share.size, size=cases, p=_cells().share)
    quality = _cells().quality[cell] + rng.standard_normal(cases)
    system_class = _classes(quality - _cells().marked_down[cell] + _SYSTEM_NOISE * rng.standard_normal(cases))
    impression = _IMPRESSION_SD * rng.standard_normal(cases)
    kind = rng.choice(len(_STAKEHOLDERS), size=critics, p=column_of(_STAKEHOLDERS, "share"))
    nature = _NATURE_SD * rng.standard_normal(critics)

    critic = np.repeat(np.arange(critics), seen)
    case = rng.permutation(cases)[np.arange(critic.size) % cases]
    noise = column_of(_STAKEHOLDERS, "noise")[kind[critic]] * rng.standard_normal(critic.size)
    view = (quality + impression)[case] + _bias(cell[case], kind[critic]) + nature[critic] + noise
    columns: Columns = {"offer": case + 1}
    for (name, table), code in zip(_GROUPINGS.items(), _cells().codes, strict=True):
        columns[name] = _labels(table, code[cell[case]])
    critic_class = _classes(view)
    columns |= {
        "quality": system_class[case],
        "critic": critic + 1,
        "stakeholder": _labels(_STAKEHOLDERS, kind[critic]),
        "disagrees": (critic_class != system_class[case]).astype(np.int64),
        "answer": _ANSWERS[np.sign(system_class[case] - critic_class)],  # -1 is the last: too low
        "critic_quality": critic_class,
    }
    return build_frame(columns, backend)


def _classes(view: FloatArray) -> IntArray:
    return np.searchsorted(_CUTS, view).astype(np.int64) + 1


def kidney_offers_truth() -> Truth:
    """Return the exact rates of the population from which `make_kidney_offers` samples.

    Given the quality, the views of the system and of a critic are independent normals. The share of offers with one
    class from the system and another from a critic is one integral over the quality, computed by Gauss-Legendre
    quadrature; the results are summed over cells and kinds of critics.

    Returns
    -------
    dict
        `truth[stakeholder][grouping][group][figure]`, a float exact to about 1e-12, with

        - stakeholder: "Patient", "Donor", "Family" or "Surgeon", or "all" of them in their shares;
        - grouping: "donor_race", "donor_age", "patient_race", "patient_sex" or "overall" (whose only group is "all");
        - figure: `share` of the group in the population, `accuracy_equality` P(critic = system), and for each class k
          from 1 to 4 `statistical_parity_k` P(system = k), `calibration_k` P(critic = k | system = k),
          `equal_opportunity_k` P(system = k | critic = k), `predictive_equality_k` P(system = k | critic is not k) and
          `overall_misclassification_k` P(system is not k | critic = k).

    Examples
    --------
    Patients call many more kidneys of Black donors good than the system does; surgeons mostly share its view:

    >>> truth = kidney_offers_truth()
    >>> for stakeholder in ("Patient", "Surgeon"):
    ...     races = truth[stakeholder]["donor_race"]
    ...     print(stakeholder, *(f"{races[race]['equal_opportunity_4']:.3f}" for race in ("White", "Black")))
    Patient 0.732 0.486
    Surgeon 0.797 0.723
    """
    joint = _joint()
    shares = column_of(_STAKEHOLDERS, "share")
    kinds = {name: joint[i] for i, name in enumerate(_STAKEHOLDERS)} | {"all": np.tensordot(shares, joint, 1)}
    groupings: dict[str, tuple[tuple[str, ...], IntArray]] = {
        name: (tuple(table), code) for (name, table), code in zip(_GROUPINGS.items(), _cells().codes, strict=True)
    }
    groupings["overall"] = ("all",), np.zeros_like(_cells().codes[0])
    return {
        kind: {
            name: {group: _figures(mass[code == i].sum(axis=0)) for i, group in enumerate(groups)}
            for name, (groups, code) in groupings.items()
        }
        for kind, mass in kinds.items()
    }


@cache
def _joint() -> FloatArray:
    """Return (kinds, cells, K, K) population shares by cell, the system's class and the critic's class."""
    cells, (z, density) = _cells(), _normal_nodes()
    quality = cells.quality[:, np.newaxis] + z
    system = _chances(quality - cells.marked_down[:, np.newaxis], _SYSTEM_NOISE)
    every = np.arange(cells.share.size)
    joint = []
    for kind, who in enumerate(_STAKEHOLDERS.values()):
        spread = math.sqrt(who.noise**2 + _NATURE_SD**2 + _IMPRESSION_SD**2)
        critic = _chances(quality + _bias(every, np.full_like(every, kind))[:, np.newaxis], spread)
        joint.append(np.einsum("c,z,czl,czk->clk", cells.share, density, system, critic, optimize=True))
    return np.array(joint)


def _chances(view: FloatArray, noise: float) -> FloatArray:
    """Return (..., K) the probability of each class for a view before noise is added."""
    from scipy.special import ndtr

    cuts = np.array([-math.inf, *_CUTS, math.inf])
    return np.asarray(np.diff(ndtr((cuts - view[..., np.newaxis]) / noise), axis=-1))


def _figures(joint: FloatArray) -> dict[str, float]:
    """Return the rates of a group from the masses by the system's and the critic's class."""
    everything, system, critic, same = joint.sum(), joint.sum(axis=1), joint.sum(axis=0), np.diagonal(joint)
    by_class = {
        "statistical_parity": system / everything,
        "calibration": same / system,
        "equal_opportunity": same / critic,
        "predictive_equality": (system - same) / (everything - critic),
        "overall_misclassification": (critic - same) / critic,
    }
    figures = {"share": float(everything), "accuracy_equality": float(same.sum() / everything)}
    return figures | {f"{name}_{k + 1}": float(rates[k]) for name, rates in by_class.items() for k in range(_CLASSES)}
