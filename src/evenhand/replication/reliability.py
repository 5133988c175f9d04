"""Replication of the reliability paper: its curves exactly, and its claims, on ProPublica's defendants.

Claims are judged with new folds, models and simulated errors, and by a bootstrap over people with the author's models.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from evenhand.charts import curve
from evenhand.core.display import Figure
from evenhand.core.progress import step
from evenhand.datasets.registry import at_hand
from evenhand.replication.authors_run import (
    BINARY,
    LEVELS,
    NUMERIC,
    SETTINGS,
    Split,
    authors_split,
    defendants,
    positions,
    published_curves,
    raw_units,
    replay,
    replayed_gap,
)
from evenhand.replication.records import Chapter, Claim, PrintedLine, Verdict, published
from evenhand.stats.noise import Experiment, products, published_noise, replicate_seeds, simulate, with_derived
from evenhand.stats.reliability import GapOverLevels, bootstrap_people, curves, gap_of
from evenhand.stats.types import FloatArray

STATISTICS = {"kappa": "Cohen's kappa", "PABAK": "PABAK", "ICC_2": "ICC(A,1)"}
SPLITS = 12
"""The number of new splits, each with new models and simulated errors, behind the claims."""

_RUN = ("kappa", "pabak", "icc_a1", "icc_spread", "prevalence_part", "bias_part", "mean_second", "mean_squared_error")


@lru_cache
def own_split(seed: int) -> Split:
    """Return new folds, and logistic regressions fitted to convergence."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold

    features, numbers = defendants().features, positions(*NUMERIC)
    folds, models = np.empty(len(features), dtype=np.int64), []
    for number, (train, test) in enumerate(KFold(5, shuffle=True, random_state=seed).split(features)):
        folds[test] = number
        scaled = features[train]
        mean, scale = scaled[:, numbers].mean(axis=0), scaled[:, numbers].std(axis=0)
        scaled[:, numbers] = (scaled[:, numbers] - mean) / scale
        fitted = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(scaled, defendants().rearrested[train])
        models.append(raw_units(fitted.coef_[0], float(fitted.intercept_[0]), mean, scale))
    return folds, tuple(models)


def experiment(name: str, split: Split, **settings: Any) -> Experiment:
    """Return the paper's experiment in one interpretation ("raez-2024/all/1", "raez-2024-text/all/1")."""
    noise = published_noise(name)
    minima = dict.fromkeys(positions(*NUMERIC), 0.0) | {positions("age")[0]: 18.0}
    items = noise.items(positions(*NUMERIC), positions(*BINARY), minima)
    people = defendants()
    return Experiment(
        features=people.features,
        predictors=split[1],
        items=items,
        groups=people.white,
        folds=split[0],
        shares=noise.shares,
        **settings,
    )


@lru_cache
def runs(name: str) -> dict[str, FloatArray]:
    """Return every statistic as (splits, levels, groups), with new folds, models and errors in each split."""
    statistics: dict[str, list[FloatArray]] = {statistic: [] for statistic in (*_RUN, "variance_first")}
    for seed in range(SPLITS):
        trial = experiment(name, own_split(seed), common=False)
        done = simulate(trial, replicate_seeds(1, np.random.default_rng([seed, 7])))
        for statistic, values in statistics.items():
            values.append(curves(trial, done, statistic).values[0])
    return {statistic: np.array(values) for statistic, values in statistics.items()}


def mean_gap(name: str, statistic: str) -> float:
    """Return the gap, White minus non-White, averaged over levels above 0 and splits."""
    values = runs(name)[statistic][:, 1:]
    return float((values[..., 1] - values[..., 0]).mean())


@lru_cache
def over_people(name: str, follow: bool = False) -> dict[str, GapOverLevels]:
    """Return the gaps with the author's models, bootstrapped over people.

    If `follow`, sex-race is recomputed from the perturbed sex.
    """
    folds, models = authors_split()
    if follow:
        derive = products({positions("sex-race")[0]: positions("sex", "race")})
        models = tuple(with_derived(model, derive) for model in models)
    trial = experiment(name, (folds, models), common=False)
    seeds, rng = replicate_seeds(6, np.random.default_rng(3)), np.random.default_rng(4)
    draws = bootstrap_people(trial, seeds, ["kappa", "pabak", "icc_a1"], resamples=300, rng=rng)
    return {statistic: gap_of(draws.gap(statistic, 1, 0)) for statistic in draws.values}


def sure_levels(gap: GapOverLevels) -> int:
    """Return the number of levels at which the simultaneous band excludes 0."""
    return int(((gap.simultaneous.low > 0) | (gap.simultaneous.high < 0)).sum())


# The chapter ----------------------------------------------------------------------------------------------------------


def replicate_reliability() -> Chapter:
    """Replicate the reliability paper, if ProPublica's file is available."""
    if not at_hand("compas"):
        return Chapter("reliability", absent=["compas"])
    step("Replaying the author's random numbers")
    lines, figures = [*_curve_lines()], [*_curve_figures()]
    return Chapter("reliability", lines, [*_claims()], [] if published_curves() else ["curves"], figures)


def _curve_lines() -> Iterator[PrintedLine]:
    printed, white = published()["reliability_paper"], defendants().white
    for what, number in (("n", white.size), ("white", int(white.sum())), ("non_white", int((1 - white).sum()))):
        why = "ProPublica's filter, charge known"
        yield PrintedLine("Section 4.2", what.replace("_", "-"), printed[what], number, 0.5, why)
    for setting, item in SETTINGS.items():
        if setting not in published_curves():
            continue
        names = list(published_curves()[setting])
        theirs, ours = (np.stack([of[name] for name in names]) for of in (published_curves()[setting], replay(setting)))
        worst = np.unravel_index(np.argmax(np.abs(ours - theirs)), ours.shape)
        what = f"the one of {ours.size} numbers that is furthest off ({names[worst[0]]}, noise {LEVELS[worst[1]]:g})"
        why = "the author's models and random stream, with standard deviations"
        yield PrintedLine(item, what, float(theirs[worst]), float(ours[worst]), 1e-9, why)


def _curve_figures() -> Iterator[Figure]:
    for setting, item in SETTINGS.items():
        ours = replay(setting)
        panels = [
            curve(
                [
                    {"x": float(level), "y": float(value), "series": who}
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


def _verdict(*readings: bool) -> Verdict:
    """Return the verdict on a claim from its truth in each interpretation."""
    return "holds" if all(readings) else "holds in part" if any(readings) else "does not hold"


def _claims() -> Iterator[Claim]:
    step("Judging the claims by the people")
    readings, sizes = ("raez-2024", "raez-2024-text"), (1, 5, 10)
    z = {
        (r, s, m): over_people(f"{r}/all/{s}")[m].z
        for r in readings
        for s in sizes
        for m in ("kappa", "pabak", "icc_a1")
    }
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
    """Yield the claims of sections 5.4 and 6, judged with new folds, models and errors."""
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
