"""The reliability paper: its curves number for number, and its claims one by one, on ProPublica's defendants.

The author's five fold models and NumPy's legacy random stream with seed 0 replay the ten published result files. Claims
are judged by new folds, models and mistakes, and by a bootstrap over people with the author's models.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.charts import curve
from evenhand.core.display import Figure
from evenhand.core.run import step
from evenhand.datasets import load_compas
from evenhand.datasets.registry import at_hand
from evenhand.replication.records import Chapter, Claim, Line, Missing, Verdict, data_folder, published
from evenhand.stats.agreement import binary_counts, icc_a1, pabak_from_kappa
from evenhand.stats.noise import (
    Experiment,
    Linear,
    Predictor,
    products,
    published_noise,
    replicate_seeds,
    simulate,
    with_derived,
)
from evenhand.stats.reliability import Gap, bootstrap_people, curves, gap_of
from evenhand.stats.types import FloatArray, IntArray

NUMERIC = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
BINARY = ("c_charge_degree_M", "c_charge_degree_F", "sex")
AGES = ("25 - 45", "Greater than 45", "Less than 25")
Setting = tuple[str, str, str]
"""The features perturbed, the printed variance, and whether there are minima, as the author's files name them."""

SETTINGS: dict[Setting, str] = {
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
STATISTICS = {"kappa": "Cohen's kappa", "PABAK": "PABAK", "ICC_2": "ICC(A,1)"}
LEVELS = np.round(np.arange(31) * 0.01, 5)
SPLITS = 12
"""New folds, models and mistakes behind the claims."""

_RUN = ("kappa", "pabak", "icc_a1", "icc_spread", "prevalence_part", "bias_part", "mean_second", "mean_squared_error")
_RESULT = re.compile(r"(?:feature_set=)?(all|num|cat)[a-z ]*_var=(\w+)_grouped=Y_num-min=([YN])\.csv")


class Defendants(NamedTuple):
    """The 6,167 defendants: features, who is White, who was arrested again."""

    features: FloatArray
    white: IntArray
    rearrested: FloatArray


@lru_cache
def defendants() -> Defendants:
    """Return the paper's table, made anew from ProPublica's file: its filter, less five rows without a charge."""
    table = load_compas()
    columns = {name: np.asarray(table[name]) for name in (*NUMERIC, "sex", "race", "age_cat", "c_charge_degree")}
    charge, outcome = np.asarray(table["c_charge_desc"], dtype=object), np.asarray(table["two_year_recid"])
    keep = np.array([isinstance(text, str) and text != "" for text in charge])
    kept = {name: values[keep] for name, values in columns.items()}
    male, white = kept["sex"] == "Male", kept["race"] == "Caucasian"
    made = {name: kept[name].astype(np.float64) for name in NUMERIC}
    made |= {"sex": male, "race": white, "sex-race": male & white}
    made |= {f"age_cat_{age}": kept["age_cat"] == age for age in AGES}
    made |= {f"c_charge_degree_{degree}": kept["c_charge_degree"] == degree for degree in "FM"}
    names = published()["reliability_paper"]["columns"]
    features = np.ascontiguousarray(np.column_stack([made[name] for name in names]), dtype=np.float64)
    return Defendants(features, white.astype(np.int64), outcome[keep].astype(np.float64))


def at(*names: str) -> list[int]:
    """Return the positions of features."""
    columns: list[str] = published()["reliability_paper"]["columns"]
    return [columns.index(name) for name in names]


Split = tuple[IntArray, tuple[Predictor, ...]]
"""The fold of each person, and the model of each fold."""


def _raw_units(weights: FloatArray, intercept: float, mean: FloatArray, scale: FloatArray) -> Linear:
    """Return a model of scaled numbers as a model of raw ones."""
    weights, numbers = weights.copy(), at(*NUMERIC)
    intercept -= float((weights[numbers] * mean / scale).sum())
    weights[numbers] /= scale
    return Linear(weights, intercept)


@lru_cache
def authors_split() -> Split:
    """Return the author's folds and models of seed 0."""
    order = np.arange(len(defendants().features))
    np.random.RandomState(0).shuffle(order)  # the author's stream begins with the folds
    folds = np.empty(order.size, dtype=np.int64)
    for number, part in enumerate(np.array_split(order, 5)):
        folds[part] = number
    models = tuple(
        _raw_units(
            np.array(fold["coef"]), fold["intercept"], np.array(fold["scaler_mean"]), np.array(fold["scaler_scale"])
        )
        for fold in published()["reliability_paper"]["models_of_seed_0"]
    )
    return folds, models


@lru_cache
def own_split(seed: int) -> Split:
    """Return new folds, and logistic regressions fitted to the optimum."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold

    features, numbers = defendants().features, at(*NUMERIC)
    folds, models = np.empty(len(features), dtype=np.int64), []
    for number, (train, test) in enumerate(KFold(5, shuffle=True, random_state=seed).split(features)):
        folds[test] = number
        scaled = features[train]
        mean, scale = scaled[:, numbers].mean(axis=0), scaled[:, numbers].std(axis=0)
        scaled[:, numbers] = (scaled[:, numbers] - mean) / scale
        fitted = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(scaled, defendants().rearrested[train])
        models.append(_raw_units(fitted.coef_[0], float(fitted.intercept_[0]), mean, scale))
    return folds, tuple(models)


def experiment(name: str, split: Split, **settings: Any) -> Experiment:
    """Return the paper's experiment in one of its readings ("raez-2024/all/1", "raez-2024-text/all/1")."""
    noise = published_noise(name)
    minima = dict.fromkeys(at(*NUMERIC), 0.0) | {at("age")[0]: 18.0}
    items = noise.items(at(*NUMERIC), at(*BINARY), minima)
    people = defendants()
    return Experiment(people.features, split[1], items, people.white, split[0], shares=noise.shares, **settings)


@lru_cache
def runs(name: str) -> dict[str, FloatArray]:
    """Return (splits, levels, groups) of every statistic: new folds, models and mistakes each time."""
    found: dict[str, list[FloatArray]] = {statistic: [] for statistic in (*_RUN, "variance_first")}
    for seed in range(SPLITS):
        trial = experiment(name, own_split(seed), common=False)
        done = simulate(trial, replicate_seeds(1, np.random.default_rng([seed, 7])))
        for statistic, values in found.items():
            values.append(curves(trial, done, statistic).values[0])
    return {statistic: np.array(values) for statistic, values in found.items()}


def mean_gap(name: str, statistic: str) -> float:
    """Return White less non-White, the mean over levels above 0 and splits."""
    values = runs(name)[statistic][:, 1:]
    return float((values[..., 1] - values[..., 0]).mean())


def mean_share(name: str, statistic: str) -> float:
    """Return the share of levels at which White people are lower, the mean over splits."""
    values = runs(name)[statistic][:, 1:]
    return float((values[..., 1] < values[..., 0]).mean())


@lru_cache
def over_people(name: str, follow: bool = False) -> dict[str, Gap]:
    """Return the gaps with the author's models and their bootstrap over people; `follow`: sex-race follows sex."""
    folds, models = authors_split()
    if follow:
        derive = products({at("sex-race")[0]: at("sex", "race")})
        models = tuple(with_derived(model, derive) for model in models)
    trial = experiment(name, (folds, models), common=False)
    seeds, rng = replicate_seeds(6, np.random.default_rng(3)), np.random.default_rng(4)
    draws = bootstrap_people(trial, seeds, ["kappa", "pabak", "icc_a1"], resamples=300, rng=rng)
    return {statistic: gap_of(draws.gap(statistic, 1, 0)) for statistic in draws.values}


def sure_levels(gap: Gap) -> int:
    """Return at how many levels the joint band leaves out 0."""
    return int(((gap.simultaneous.low > 0) | (gap.simultaneous.high < 0)).sum())


# The published numbers ------------------------------------------------------------------------------------------------


def _authors_rows(setting: Setting, fold: IntArray, level: float, stream: Any) -> FloatArray:
    """Return the author's perturbed rows of one fold at one level; it uses the random stream in the author's order."""
    feature_set, sd, minima = setting
    rows, white = defendants().features[fold].copy(), defendants().white[fold]
    groups = [np.flatnonzero(white == group) for group in (1, 0)]
    for column in at(*NUMERIC) if feature_set != "cat" else []:
        for own in groups:
            mask = stream.choice([0, 1], size=len(own), p=[1 - level, level])
            rows[own, column] = np.rint(rows[own, column] + mask * stream.normal(0, float(sd), size=len(own)))
        if minima == "Y":
            rows[:, column] = np.clip(rows[:, column], 18 if column == at("age")[0] else 0, None)
    for column in at(*BINARY) if feature_set != "num" else []:
        for own in groups:
            rows[own, column] = (rows[own, column] + stream.choice([0, 1], size=len(own), p=[1 - level, level])) % 2
    return rows


@lru_cache
def _authors_perturbations() -> dict[Setting, list[npt.NDArray[np.int16]]]:
    """Return for each experiment, per fold, the rows (levels, people, features) of the author's random stream."""
    stream = np.random.RandomState(0)
    stream.shuffle(np.arange(len(defendants().features)))  # the folds were drawn first
    folds = [np.flatnonzero(authors_split()[0] == number) for number in range(5)]
    found = {}
    for setting in SETTINGS:
        by_level = [[_authors_rows(setting, fold, level, stream) for fold in folds] for level in LEVELS]
        found[setting] = [np.stack(of_fold).astype(np.int16) for of_fold in zip(*by_level, strict=True)]
    return found


@lru_cache
def replay(setting: Setting, follow: bool = False) -> dict[str, FloatArray]:
    """Return the author's statistics (levels, groups), means over folds, with sex-race as it was or following sex."""
    folds, models = authors_split()
    people = defendants()
    sums: dict[str, FloatArray] = {}
    for number, perturbed in enumerate(_authors_perturbations()[setting]):
        own, predict = np.flatnonzero(folds == number), models[number]
        rows = perturbed.reshape(-1, perturbed.shape[-1]).astype(np.float64)
        if follow:
            rows = products({at("sex-race")[0]: at("sex", "race")})(rows)
        first, second = predict(people.features[own]), predict(rows)
        score, label = second.score.reshape(31, -1), second.label.reshape(31, -1)
        for group in (0, 1):
            members = people.white[own] == group
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


def replayed_gap(setting: Setting, statistic: str, *, follow: bool = False) -> float:
    """Return White less non-White in the replay, the mean over levels above 0."""
    return float(np.diff(replay(setting, follow)[statistic][1:], axis=1).mean())


@lru_cache
def published_curves() -> dict[Setting, dict[str, FloatArray]]:
    """Return the author's curves (levels, groups) by statistic: stacked in one file, or the results of the repository.

    They lie below EVENHAND_DATA as compas/raez_published_irr_curves.csv.gz, or as the folder `results` of the author's
    repository in compas/.
    """
    found = {}
    for setting, of in (_stacked_rows() or _result_rows()).items():
        of.sort(key=lambda row: float(row["noise_level"]))
        names = ("ICC_2", "kappa", "PABAK", "PAK", "BAK")
        found[setting] = {
            name: np.array([[float(row[f"group_{group}_{name}"]) for group in (0, 1)] for row in of]) for name in names
        }
    return found


def _stacked_rows() -> dict[Setting, list[dict[str, str]]]:
    rows: dict[Setting, list[dict[str, str]]] = {}
    path = data_folder("compas", "raez_published_irr_curves.csv.gz")
    if path is not None:
        with gzip.open(path, "rt") as file:
            for row in csv.DictReader(file):
                rows.setdefault((row["feature_set"], row["variance"], row["num_min"]), []).append(row)
    return rows


def _result_rows() -> dict[Setting, list[dict[str, str]]]:
    rows: dict[Setting, list[dict[str, str]]] = {}
    folder = data_folder("compas", "results")
    for path in sorted(folder.glob("*.csv")) if folder is not None else ():
        if (match := _RESULT.fullmatch(path.name)) is not None:
            feature_set, size, minima = match.groups()
            with path.open(newline="") as file:
                read = [{**row, "noise_level": row[""]} for row in csv.DictReader(file)]
            rows[feature_set, "" if size == "None" else size, minima] = read
    return rows


# The chapter ----------------------------------------------------------------------------------------------------------


def replicate_reliability() -> Chapter:
    """Replicate the reliability paper where ProPublica's file is at hand."""
    about = (
        "reliability",
        "Reliability gaps",
        "T. Räz, Reliability gaps between groups in COMPAS dataset, FAccT '24 (2024)",
    )
    if not at_hand("compas"):
        wait = Missing(
            "Figures 1 to 7, all claims",
            "ProPublica's file is not at hand.",
            "`evenhand data fetch compas`: `load_compas` reads it, and the paper's table is made from it.",
        )
        return Chapter(*about, missing=(wait,))
    missing = []
    if not published_curves():
        missing.append(
            Missing(
                "Figures 1 to 7, number by number",
                "The author's ten result files are not at hand; the figures here are replayed without them.",
                "Put the folder results of github.com/timraez/ReliabilityGapsCOMPAS into the folder compas of "
                "EVENHAND_DATA.",
            )
        )
    step("Replaying the author's random numbers")
    lines, figures = tuple(_curve_lines()), tuple(_curve_figures())
    return Chapter(*about, lines, tuple(_claims()), tuple(missing), figures)


def _curve_lines() -> Iterator[Line]:
    printed, white = published()["reliability_paper"], defendants().white
    for what, number in (("n", white.size), ("white", int(white.sum())), ("non_white", int((1 - white).sum()))):
        why = "ProPublica's filter, charge known"
        yield Line("Section 4.2", what.replace("_", "-"), printed[what], number, 0.5, why)
    for setting, item in SETTINGS.items():
        if setting not in published_curves():
            continue
        names = list(published_curves()[setting])
        theirs, ours = (np.stack([of[name] for name in names]) for of in (published_curves()[setting], replay(setting)))
        worst = np.unravel_index(np.argmax(np.abs(ours - theirs)), ours.shape)
        what = f"the one of {ours.size} numbers that is furthest off ({names[worst[0]]}, noise {LEVELS[worst[1]]:g})"
        why = "the author's models and random stream, with standard deviations"
        yield Line(item, what, float(theirs[worst]), float(ours[worst]), 1e-9, why)


def _curve_figures() -> Iterator[Figure]:
    for setting, item in SETTINGS.items():
        ours = replay(setting)
        panels = [
            curve(
                [
                    {"x": float(level), "y": float(value), "series": who, "low": None, "high": None}
                    for group, who in enumerate(("non-White", "White"))
                    for level, value in zip(LEVELS, ours[name][:, group], strict=True)
                ],
                title=title,
                x="Noise level",
                y=title,
                intervals="none",
                height=150,
            )
            for name, title in STATISTICS.items()
        ]
        gaps = "; ".join(f"{title}: {replayed_gap(setting, name):+.4f}" for name, title in STATISTICS.items())
        what = {"all": "All features", "num": "Numbers only", "cat": "Categories only"}[setting[0]]
        size = f", standard deviation {setting[1]}" if setting[1] else ""
        minima = ", with minima" if setting[2] == "Y" else ""
        yield Figure(
            item, f"{what}{size}{minima}.", f"Mean gap, White less non-White, above noise 0: {gaps}.", tuple(panels)
        )


def _z(name: str, statistic: str) -> float:
    return over_people(name)[statistic].z


def _verdict(*readings: bool) -> Verdict:
    """Return the verdict on a claim, which may hold in some of its readings only."""
    return "holds" if all(readings) else "holds in part" if any(readings) else "does not hold"


def _claims() -> Iterator[Claim]:
    step("Judging the claims by the people")
    readings, sizes = ("raez-2024", "raez-2024-text"), (1, 5, 10)
    z = {(r, s, m): _z(f"{r}/all/{s}", m) for r in readings for s in sizes for m in ("kappa", "pabak", "icc_a1")}
    pabak = [z[r, s, "pabak"] for r in readings for s in sizes]
    yield Claim(
        "Sections 5.1 to 5.3",
        "PABAK is lower for non-White people.",
        _verdict(min(pabak) > 2),
        f"z over people +{min(pabak):.1f} to +{max(pabak):.1f}, in both readings of the noise",
    )
    icc = [z[r, s, "icc_a1"] for r in readings for s in sizes]
    follow = over_people("raez-2024/all/1", True)["icc_a1"].z
    yield Claim(
        "Sections 5.1 to 5.3",
        "ICC(A,1) is lower for White people, almost universally.",
        _verdict(max(icc) < -2, follow < 0),
        f"z {min(icc):.1f} to {max(icc):.1f} as it was run; {follow:+.1f} for small errors where sex-race follows sex",
    )
    yield Claim(
        "Section 5.1",
        "Kappa has no systematic gap at σ² = 1.",
        _verdict(abs(z["raez-2024-text", 1, "kappa"]) < 2),
        f"z = {z['raez-2024-text', 1, 'kappa']:+.1f}",
    )
    for size, words in ((5, "mostly"), (10, "systematically")):
        sd, variance = (over_people(f"{r}/all/{size}")["kappa"] for r in readings)
        yield Claim(
            f"Section 5.{2 if size == 5 else 3}",
            f"Kappa is {words} lower for White people at σ² = {size}.",
            _verdict(sure_levels(sd) > 0 and sd.z < -2, sure_levels(variance) > 2),
            f"as a standard deviation z = {sd.z:.1f}, {sure_levels(sd)} of 30 levels beyond the joint band; as a "
            f"variance z = {variance.z:.1f}, {sure_levels(variance)} levels",
        )
    yield from _part_claims()


def _part_claims() -> Iterator[Claim]:
    """Yield the claims of sections 5.4 and 6, from new folds, models and mistakes."""
    step("Judging the claims by new folds and models")
    prevalence, bias = (
        runs("raez-2024-text/all/1")[name][:, 1:].mean(axis=(0, 1))[1] for name in ("prevalence_part", "bias_part")
    )
    yield Claim(
        "Section 5.1",
        "Prevalence, not bias, explains kappa against PABAK.",
        _verdict(abs(prevalence) > 10 * abs(bias)),
        f"White people: prevalence part {prevalence:+.4f}, bias part {bias:+.4f}",
    )
    free, limited = (runs(f"raez-2024-text/{name}/1")["kappa"][:, 30, 0].mean() for name in ("all", "minima"))
    yield Claim(
        "Section 5.4",
        "With minima reliability is slightly higher.",
        _verdict(limited > free),
        f"kappa at noise 0.3: {free:.3f} to {limited:.3f}",
    )
    closing = {
        r: [mean_gap(f"{r}/minima/{size}", "pabak") for size in (1, 5, 10)] for r in ("raez-2024", "raez-2024-text")
    }
    closes = [gaps[2] < gaps[0] / 2 for gaps in closing.values()]
    yield Claim(
        "Section 5.4",
        "With minima the PABAK gap closes as σ² grows.",
        _verdict(*closes),
        "; ".join(f"{r}: " + ", ".join(f"{gap:.3f}" for gap in gaps) for r, gaps in closing.items()),
    )
    printed = [replayed_gap(("num", size, "N"), "PABAK") for size in ("1", "5", "10")]
    kappa = [replayed_gap(("num", size, "N"), "kappa") for size in ("1", "5", "10")]
    yield Claim(
        "Section 5.4",
        "Numerical features only: the gaps of kappa and PABAK have opposite signs at σ² = 1.",
        _verdict(kappa[0] < 0 < printed[0]),
        f"kappa {kappa[0]:+.4f}, PABAK {printed[0]:+.4f}",
    )
    yield Claim(
        "Section 5.4",
        "Numerical features only: the PABAK gap becomes smaller as σ grows.",
        _verdict(printed[0] > printed[1] > printed[2]),
        "in the author's own files " + ", ".join(f"{gap:.4f}" for gap in printed),
    )
    alone = mean_gap("raez-2024/categorical", "pabak")
    full = [mean_gap(f"raez-2024-text/all/{size}", "pabak") for size in (1, 5, 10)]
    yield Claim(
        "Section 5.4",
        "Categorical features only: the PABAK gap is even more pronounced.",
        _verdict(alone > max(full)),
        f"{alone:.3f} against {min(full):.3f} to {max(full):.3f}",
    )
    spread = runs("raez-2024-text/all/1")
    variance, error = spread["variance_first"][:, 0].mean(axis=0), spread["mean_squared_error"][:, 30].mean(axis=0)
    yield Claim(
        "Section 5.1",
        "ICC is lower for White people because their mean score is lower (a conjecture).",
        "does not hold",
        f"it is the spread of scores: variances {variance[0]:.4f} and {variance[1]:.4f}, mean squared errors "
        f"{error[0]:.4f} and {error[1]:.4f}; with one spread for both the gap is "
        f"{mean_gap('raez-2024-text/all/1', 'icc_spread'):+.4f}",
    )
