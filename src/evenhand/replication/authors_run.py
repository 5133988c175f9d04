"""Replay the run of the reliability paper's author: folds, models, random numbers and published curves.

The author's five fold models and NumPy's legacy random stream with seed 0 reproduce the ten published result files.
"""

from __future__ import annotations

import csv
import gzip
import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.datasets import load_compas
from evenhand.replication.records import data_folder, published
from evenhand.stats.agreement import binary_counts, icc_a1, pabak_from_kappa
from evenhand.stats.noise import Linear, Predictor, products
from evenhand.stats.types import FloatArray, IntArray

NUMERIC = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
BINARY = ("c_charge_degree_M", "c_charge_degree_F", "sex")
AGES = ("25 - 45", "Greater than 45", "Less than 25")
AuthorSetting = tuple[str, str, str]
"""The perturbed features, the printed variance, and the use of minima (Y or N), as in the author's file names."""

SETTINGS: dict[AuthorSetting, str] = {
    ("all", "1", "N"): "Figures 1a-c, 2",
    ("all", "5", "N"): "Figures 1d-f, 3",
    ("all", "10", "N"): "Figures 1g-i, 4",
    ("all", "1", "Y"): "Figure 5, row 1",
    ("all", "5", "Y"): "Figure 5, row 2",
    ("all", "10", "Y"): "Figure 5, row 3",
    ("num", "1", "N"): "Figure 6, row 1",
    ("num", "5", "N"): "Figure 6, row 2",
    ("num", "10", "N"): "Figure 6, row 3",
    ("cat", "", "N"): "Figure 7",
}
LEVELS = np.round(np.arange(31) * 0.01, 5)
_RESULT = re.compile(r"(?:feature_set=)?(all|num|cat)[a-z ]*_var=(\w+)_grouped=Y_num-min=([YN])\.csv")


class Defendants(NamedTuple):
    """The 6,167 defendants: features, and indicators of White people and of rearrest."""

    features: FloatArray
    white: IntArray
    rearrested: FloatArray


@lru_cache
def defendants() -> Defendants:
    """Return the paper's table, rebuilt from ProPublica's file without five rows that lack a charge."""
    table = load_compas()
    columns = {name: np.asarray(table[name]) for name in (*NUMERIC, "sex", "race", "age_cat", "c_charge_degree")}
    charge, outcome = np.asarray(table["c_charge_desc"], dtype=object), np.asarray(table["two_year_recid"])
    keep = np.array([isinstance(text, str) and text != "" for text in charge])
    selected = {name: values[keep] for name, values in columns.items()}
    male, white = selected["sex"] == "Male", selected["race"] == "Caucasian"
    made = {name: selected[name].astype(np.float64) for name in NUMERIC}
    made |= {"sex": male, "race": white, "sex-race": male & white}
    made |= {f"age_cat_{age}": selected["age_cat"] == age for age in AGES}
    made |= {f"c_charge_degree_{degree}": selected["c_charge_degree"] == degree for degree in "FM"}
    names = published()["reliability_paper"]["columns"]
    features = np.ascontiguousarray(np.column_stack([made[name] for name in names]), dtype=np.float64)
    return Defendants(features, white.astype(np.int64), outcome[keep].astype(np.float64))


def positions(*names: str) -> list[int]:
    """Return the positions of features."""
    columns: list[str] = published()["reliability_paper"]["columns"]
    return [columns.index(name) for name in names]


Split = tuple[IntArray, tuple[Predictor, ...]]
"""The fold number of each person, and the model of each fold."""


def raw_units(weights: FloatArray, intercept: float, mean: FloatArray, scale: FloatArray) -> Linear:
    """Convert a linear model of scaled features to a model of raw features."""
    weights, numbers = weights.copy(), positions(*NUMERIC)
    intercept -= float((weights[numbers] * mean / scale).sum())
    weights[numbers] /= scale
    return Linear(weights, intercept)


@lru_cache
def authors_split() -> Split:
    """Return the author's folds and models for seed 0."""
    order = np.arange(len(defendants().features))
    np.random.RandomState(0).shuffle(order)  # the author's stream begins with the folds
    folds = np.empty(order.size, dtype=np.int64)
    for number, part in enumerate(np.array_split(order, 5)):
        folds[part] = number
    models = tuple(
        raw_units(
            np.array(fold["coef"]), fold["intercept"], np.array(fold["scaler_mean"]), np.array(fold["scaler_scale"])
        )
        for fold in published()["reliability_paper"]["models_of_seed_0"]
    )
    return folds, models


def _authors_rows(setting: AuthorSetting, fold: IntArray, level: float, stream: np.random.RandomState) -> FloatArray:
    """Return the author's perturbed rows of a fold and level, drawing random numbers in the author's order."""
    feature_set, sd, minima = setting
    rows, white = defendants().features[fold].copy(), defendants().white[fold]
    groups = [np.flatnonzero(white == group) for group in (1, 0)]
    for column in positions(*NUMERIC) if feature_set != "cat" else []:
        for members in groups:
            mask = stream.choice([0, 1], size=len(members), p=[1 - level, level])
            rows[members, column] = np.rint(
                rows[members, column] + mask * stream.normal(0, float(sd), size=len(members))
            )
        if minima == "Y":
            rows[:, column] = np.clip(rows[:, column], 18 if column == positions("age")[0] else 0, None)
    for column in positions(*BINARY) if feature_set != "num" else []:
        for members in groups:
            rows[members, column] = (
                rows[members, column] + stream.choice([0, 1], size=len(members), p=[1 - level, level])
            ) % 2
    return rows


@lru_cache
def _authors_perturbations() -> dict[AuthorSetting, list[npt.NDArray[np.int16]]]:
    """Return the perturbed rows (levels, people, features) of the author, by experiment and fold."""
    stream = np.random.RandomState(0)
    stream.shuffle(np.arange(len(defendants().features)))  # the folds were drawn first
    folds = [np.flatnonzero(authors_split()[0] == number) for number in range(5)]
    rows_by_experiment = {}
    for setting in SETTINGS:
        by_level = [[_authors_rows(setting, fold, level, stream) for fold in folds] for level in LEVELS]
        rows_by_experiment[setting] = [np.stack(of_fold).astype(np.int16) for of_fold in zip(*by_level, strict=True)]
    return rows_by_experiment


@lru_cache
def replay(setting: AuthorSetting, follow: bool = False) -> dict[str, FloatArray]:
    """Return the replayed statistics (levels, groups), averaged over folds; `follow` recomputes sex-race."""
    folds, models = authors_split()
    people = defendants()
    sums: dict[str, FloatArray] = {}
    for number, perturbed in enumerate(_authors_perturbations()[setting]):
        fold_members, predict = np.flatnonzero(folds == number), models[number]
        rows = perturbed.reshape(-1, perturbed.shape[-1]).astype(np.float64)
        if follow:
            rows = products({positions("sex-race")[0]: positions("sex", "race")})(rows)
        first, second = predict(people.features[fold_members]), predict(rows)
        score, label = second.score.reshape(31, -1), second.label.reshape(31, -1)
        for group in (0, 1):
            members = people.white[fold_members] == group
            counts = binary_counts(first.label[members], label[:, members])
            kappa, pi, bi = counts.kappa(), counts.prevalence_index(), counts.bias_index()
            values = {
                "ICC_2": icc_a1(first.score[members], score[:, members]),
                "kappa": kappa,
                "PABAK": counts.pabak(),
                "PAK": pabak_from_kappa(kappa, pi, 0.0),
                "BAK": pabak_from_kappa(kappa, 0.0, bi),
            }
            for statistic, value in values.items():
                sums.setdefault(statistic, np.zeros((31, 2)))[:, group] += value / 5
    return sums


def replayed_gap(setting: AuthorSetting, statistic: str) -> float:
    """Return the replayed gap, White minus non-White, averaged over levels above 0."""
    return float(np.diff(replay(setting)[statistic][1:], axis=1).mean())


@lru_cache
def published_curves() -> dict[AuthorSetting, dict[str, FloatArray]]:
    """Return the author's published curves (levels, groups) by experiment and statistic.

    The files are in EVENHAND_DATA: compas/raez_published_irr_curves.csv.gz, or the folder `results` of the author's
    repository in compas/.
    """
    curves = {}
    for setting, of in (_stacked_rows() or _result_rows()).items():
        of.sort(key=lambda row: float(row["noise_level"]))
        names = ("ICC_2", "kappa", "PABAK", "PAK", "BAK")
        curves[setting] = {
            name: np.array([[float(row[f"group_{group}_{name}"]) for group in (0, 1)] for row in of]) for name in names
        }
    return curves


def _stacked_rows() -> dict[AuthorSetting, list[dict[str, str]]]:
    rows: dict[AuthorSetting, list[dict[str, str]]] = {}
    path = data_folder("compas", "raez_published_irr_curves.csv.gz")
    if path is not None:
        with gzip.open(path, "rt") as file:
            for row in csv.DictReader(file):
                rows.setdefault((row["feature_set"], row["variance"], row["num_min"]), []).append(row)
    return rows


def _result_rows() -> dict[AuthorSetting, list[dict[str, str]]]:
    rows: dict[AuthorSetting, list[dict[str, str]]] = {}
    folder = data_folder("compas", "results")
    for path in sorted(folder.glob("*.csv")) if folder is not None else ():
        if (match := _RESULT.fullmatch(path.name)) is not None:
            feature_set, size, minima = match.groups()
            with path.open(newline="") as file:
                read = [{**row, "noise_level": row[""]} for row in csv.DictReader(file)]
            rows[feature_set, "" if size == "None" else size, minima] = read
    return rows
