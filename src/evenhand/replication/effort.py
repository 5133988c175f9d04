"""Replication of the effort paper: its human study from printed tables, and the SHED households."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import evenhand as eh
from evenhand.charts import curve
from evenhand.core.display import Figure
from evenhand.datasets import load_shed
from evenhand.replication.records import Chapter, Claim, PrintedLine, data_folder, number_or_nan, published
from evenhand.stats.correlation import hotelling_t, meng_z, steiger_z, two_sided_p, williams_t

CELLS = (("CLUE", "input"), ("CLUE", "output"), ("SHED", "input"), ("SHED", "output"))
"""The pairs of condition and target of the human study."""

_TARGET = {"input": "d", "output": "D"}
_ROUNDED = "correlations are printed to four digits"
_SHED_FEATURES = (
    *(f"income_{year}" for year in range(2019, 2023)),
    *("employment", "household_size", "education", "age", "bank_account"),
)
_RATES = {"White": 13, "Asian": 14, "Pacific Islander": 25, "American Indian": 36, "Black": 39}


class Correlations(NamedTuple):
    """The correlations of table 2: aggregate with trajectory, and both with a target."""

    n: int
    between: float
    aggregate: float
    trajectory: float


def correlations(condition: str, target: str) -> Correlations:
    """Return the correlations of table 2 for a condition and a target."""
    printed = published()["effort_paper"]["table2_spearman"][condition]
    return Correlations(printed["n"], printed["aggr_traj"], printed[f"aggr_{target}"], printed[f"traj_{target}"])


def comparisons(condition: str, target: str) -> dict[str, float]:
    """Return four tests for equality of two dependent correlations, from table 2.

    Examples
    --------
    >>> {name: round(value, 4) for name, value in comparisons("CLUE", "input").items()}
    {'hotelling': 7.9759, 'meng': 6.9075, 'williams': 6.9714, 'steiger': 6.9146}
    """
    n, between, aggregate, trajectory = correlations(condition, target)
    tests = {"hotelling": hotelling_t, "meng": meng_z, "williams": williams_t, "steiger": steiger_z}
    return {name: float(test(trajectory, aggregate, between, n)) for name, test in tests.items()}


def wald_equal(condition: str, target: str, r: float = 0.0, rounding: float = 0.0) -> float:
    """Return the Wald statistic for equal coefficients, from table 5.

    cov(a1, a2) = -r se1 se2, with r the Pearson correlation of the two distances, close to Spearman's in table 2.

    Parameters
    ----------
    condition, target
        The condition and the target of the regression.
    r
        Added to the correlation of table 2.
    rounding
        Added to the standard errors, which are printed to four digits.
    """
    fit = published()["effort_paper"]["table5_ols"][f"{condition}_{_TARGET[target]}"]
    between = correlations(condition, target).between + r
    first, second = fit["aggregate_se"] + rounding, fit["trajectory_se"] + rounding
    variance = first**2 + second**2 + 2 * between * first * second
    return float((fit["trajectory"] - fit["aggregate"]) ** 2 / variance)


def replicate_effort() -> Chapter:
    """Replicate the effort paper: its study from the printed tables, and SHED if the survey's files exist."""
    lines = [*_study_lines()]
    shed = data_folder("shed")
    figures: tuple[Figure, ...] = ()
    if shed is not None:
        shed_lines, figures = shed_results(load_shed(shed))
        lines += shed_lines
    absent = ["shed"] if shed is None else []
    return Chapter("effort", lines, [*_study_claims()], [*absent, "clue", "answers", "instrument"], figures)


def _study_lines() -> Iterator[PrintedLine]:
    printed = published()["effort_paper"]
    for condition, target in CELLS:
        where = f"{condition}, {target} distance"
        tests = comparisons(condition, target)
        for test, title in (("hotelling", "Hotelling's t"), ("meng", "“Steiger's Z”")):
            why = f"from table 2; {_ROUNDED}" + ("; it is Meng's z" if test == "meng" else "")
            value = printed["table3"][condition][f"{test}_{target}"]
            yield PrintedLine("Table 3", f"{where}: {title}", value, tests[test], 4e-3, why)
    fits = {key.replace("_", ", "): (fit, 2) for key, fit in printed["table5_ols"].items()}
    fits |= {f"moderation, {key}": (fit, 5) for key, fit in printed["table5_moderation"].items()}
    for where, (fit, regressors) in fits.items():
        rest = fit["n"] - regressors - 1
        f = (fit["r2"] / regressors) / ((1 - fit["r2"]) / rest)
        adjusted = 1 - (1 - fit["r2"]) * (fit["n"] - 1) / rest
        yield PrintedLine("Table 5", f"{where}: F", fit["F"], f, 8e-4 * fit["F"], "from the printed R²")
        yield PrintedLine("Table 5", f"{where}: adjusted R²", fit["adj_r2"], adjusted, 2e-4, "from the printed R²")
    yield from _moderation_lines(printed)
    for condition, target in CELLS:
        ends = [wald_equal(condition, target, r, by) for r, by in ((0.1, 5e-5), (-0.1, -5e-5))]
        value = printed["table5_ols"][f"{condition}_{_TARGET[target]}"]["wald_equal"]
        ours = wald_equal(condition, target)
        why = "null a1 = a2, from table 5 and the correlation of table 2; standard errors of two digits"
        yield PrintedLine("Footnotes 15, 16", f"{condition}, {target}: Wald", value, ours, max(ends) - min(ends), why)
    for condition, (weight, _) in printed["human_weights"].items():
        fit = printed["table5_ols"][f"{condition}_d"]
        ours = fit["trajectory"] / (fit["trajectory"] + fit["aggregate"])
        yield PrintedLine("Tables 1 and 7", f"{condition}: weight of effort", weight, ours, 5e-5, "from table 5")


def _moderation_lines(printed: Mapping[str, Any]) -> Iterator[PrintedLine]:
    """Yield the interactions of table 5, as differences between the conditions' coefficients."""
    for target in ("d", "D"):
        fits = [printed["table5_ols"][f"{condition}_{target}"] for condition in ("CLUE", "SHED")]
        of = printed["table5_moderation"][target]
        for name, key in (("condition", "intercept"), ("aggregate_x", "aggregate"), ("trajectory_x", "trajectory")):
            what, why = f"moderation, {target}: {name}", "CLUE less SHED; coefficients of four digits"
            yield PrintedLine("Table 5", what, of[name], fits[0][key] - fits[1][key], 1.5e-4, why)


def _study_claims() -> Iterator[Claim]:
    printed = published()["effort_paper"]
    worst = 0.0
    for condition in printed["table2_spearman"].values():
        n = condition["n"]
        for name, r in condition.items():
            if name != "n":
                worst = max(worst, float(10 * two_sided_p(r * math.sqrt((n - 2) / (1 - r**2)), n - 2)))
    yield Claim(
        "Table 2",
        "All correlations are significant at 0.001 after Bonferroni's correction.",
        "holds" if worst < 0.001 else "does not hold",
        f"the largest of the ten adjusted p-values is {worst:.1g}, with rows taken for people",
    )
    tests = [abs(8 * two_sided_p(value)) for cell in CELLS for value in comparisons(*cell).values()]
    yield Claim(
        "Table 3",
        "Trajectory goes more with both distances than aggregate does, beyond chance after Bonferroni's correction.",
        "holds in part",
        f"largest adjusted p {max(tests):.1g} with rows for people; by people the answers would be needed",
    )
    inside = [low < c.aggregate - c.trajectory < high for c, (low, high) in _table_4(printed)]
    turned = [low < c.trajectory - c.aggregate < high for c, (low, high) in _table_4(printed)]
    yield Claim(
        "Table 4",
        "Intervals of r_traj − r_aggr.",
        "does not hold",
        f"{sum(turned)} of 4 hold the labelled difference of table 2, {sum(inside)} of 4 the opposite one",
    )
    doubled = [2 * fit["F"] / fit["wald_equal"] for fit in printed["table5_ols"].values()]
    yield Claim(
        "Footnotes 15, 16",
        "The Wald tests are of a1 = a2 = 0.",
        "does not hold",
        f"that statistic is 2 F, which is {min(doubled):.1f} to {max(doubled):.0f} times what is printed",
    )
    fit = printed["table5_ols"]["CLUE_D"]
    t = fit["aggregate"] / fit["aggregate_se"]
    yield Claim(
        "Footnote 16", "0.0070 is significant at 1 %.", "does not hold", f"t = {t:.1f}, p = {two_sided_p(t):.3f}"
    )


def _table_4(printed: Mapping[str, Any]) -> Iterator[tuple[Correlations, tuple[float, float]]]:
    for condition, target in CELLS:
        low, high = printed["table4_ci95_of_aggr_minus_traj"][condition][target]
        yield correlations(condition, target), (low, high)


def shed_results(households: object) -> tuple[list[PrintedLine], tuple[Figure, ...]]:
    """Return tables 1 and 6 and figure 3 for households with the columns of `load_shed`."""
    from evenhand.models.estimators import ModelsSettings
    from evenhand.models.folds import add_models

    printed = published()["effort_paper"]
    arguments: dict[str, Any] = {
        "data": households,
        "id": "household",
        "outcome": "unpaid_balance",
        "groups": ["race", "sex", "age_group"],
        "favourable": "not_selected",
        "missing": "drop",
    }
    models = ["xgboost", "logistic", "random_forest"]
    settings = ModelsSettings.parse({"features": list(_SHED_FEATURES), "fit": models}, "the replication")
    table = add_models(eh.Table(**arguments), arguments, settings)
    weights = [0.5, printed["human_weights"]["SHED"][0]]
    result = eh.effort(
        table,
        trajectory=[f"income_{year}" for year in range(2019, 2023)],
        inertia=_RATES,
        unit=10_000,
        scale=200_000,
        weights=weights,
    )
    parity = eh.parity(table, metrics=["mean_score"], resamples=200)
    why = "out-of-fold scores; the paper's settings of the models and of its household link are not printed"
    number = printed["table1_eaif_SHED"]["n"]
    lines = [PrintedLine("Data", "households", number, table.rows, 0.5, "link of `load_shed`")]
    for model in models:
        for value, weight in zip(printed["table1_eaif_SHED"][model], weights, strict=True):
            ours = number_or_nan(result.get("values", metric="eaif", model=model, weight=weight).value)
            lines.append(PrintedLine("Table 1", f"{model}, weight {weight:g}", value, ours, 0.005, why))
        for value, grouping in zip(printed["table6_parity_SHED"][model], arguments["groups"], strict=True):
            means = [
                record.value
                for record in parity.rows("values", metric="mean_score", model=model, grouping=grouping)
                if record.n >= 10 and record.value
            ]
            ours = min(means) / max(means)
            lines.append(PrintedLine("Table 6", f"{model}, {grouping}", value, ours, 0.005, why))
    return lines, (_parity_figure(result),)


def _parity_figure(result: eh.EffortResult) -> Figure:
    panels = [
        curve(
            [
                {"x": gap.bin_low + 0.05, "y": gap.value, "series": gap.model}
                for gap in result.gaps
                if (gap.metric, gap.grouping) == ("eagf", grouping)
                if gap.value is not None and gap.bin_low is not None
            ],
            title=grouping,
            x="Effort",
            y="Parity",
            intervals="none",
            points=True,
        )
        for grouping in ("race", "sex", "age_group")
    ]
    return Figure(
        "Figure 3", "Effort-aware group parity by bins of effort.", "Parity by effort and model.", tuple(panels)
    )
