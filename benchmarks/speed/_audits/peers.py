"""The peers' code for `speed.py` and the people it uses; needs only NumPy, pandas and the peer."""

from __future__ import annotations

from typing import Any

import numpy as np


def people(rows: int) -> dict[str, Any]:
    """Return synthetic people for every audit, with scores, histories, raters and critics."""
    rng = np.random.default_rng(13)
    race = rng.choice(["Black", "Other", "White"], rows, p=[0.35, 0.25, 0.4])
    ability = rng.normal(0, 1, rows) + 0.5 * (race == "White")
    risk = 1 / (1 + np.exp(-(ability + rng.normal(0, 0.6, rows))))
    outcome = (ability + rng.normal(0, 1, rows) > 0).astype(int)
    first = np.where(rng.random(rows) < 0.85, outcome, 1 - outcome)
    columns: dict[str, Any] = {
        "id": np.arange(rows),
        "sex": rng.choice(["F", "M"], rows),
        "race": race,
        "outcome": outcome,
        "risk": risk.round(6),
        "age": rng.integers(20, 70, rows),
        "income": (30 + 8 * ability + rng.normal(0, 4, rows)).round(3),
        "rater_a": first,
        "rater_b": np.where(rng.random(rows) < 0.8, first, 1 - first),
        "label": np.where(risk > 0.5, "high", "low"),
        "critic": np.arange(rows) // 25,
        "disagree": (rng.random(rows) < np.where(race == "Black", 0.4, 0.2)).astype(int),
        "hired": (risk > 0.55).astype(int),
    }
    return columns | {year: rng.uniform(20, 60, rows).round(3) for year in ("y1", "y2", "y3")}


def frame(rows: int) -> Any:
    """Return the synthetic people as a pandas frame."""
    import pandas as pd

    return pd.DataFrame(people(rows))


# Peers ----------------------------------------------------------------------------------------------------------------


def fairlearn_rates(data: Any) -> None:
    """Compute three rates by group, without intervals: fairlearn's MetricFrame."""
    from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate

    metrics = {"selection": selection_rate, "tpr": true_positive_rate, "fpr": false_positive_rate}
    for group in ("race", "sex"):
        said = data["risk"] >= 0.5
        MetricFrame(metrics=metrics, y_true=data["outcome"], y_pred=said, sensitive_features=data[group])


def fairlearn_boots(data: Any) -> None:
    """Compute the same rates with two of fairlearn's bootstrap resamples."""
    from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate

    MetricFrame(
        metrics={"selection": selection_rate, "tpr": true_positive_rate, "fpr": false_positive_rate},
        y_true=data["outcome"],
        y_pred=(data["risk"] >= 0.5),
        sensitive_features=data["race"],
        n_boot=2,
        ci_quantiles=[0.025, 0.975],
    )


def aequitas_rates(data: Any) -> None:
    """Compute aequitas' table of group metrics and disparities, without intervals."""
    from aequitas.bias import Bias
    from aequitas.group import Group

    short = data.assign(score=(data["risk"] >= 0.5).astype(int), label_value=data["outcome"])
    short = short[["score", "label_value", "race", "sex"]]
    table, _ = Group().get_crosstabs(short, attr_cols=["race", "sex"])
    Bias().get_disparity_predefined_groups(
        table, original_df=short, ref_groups_dict={"race": "White", "sex": "M"}, alpha=0.05, check_significance=False
    )


def aif360_rates(data: Any) -> None:
    """Compute AIF360's classification metrics for one pair of groups, without intervals."""
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import ClassificationMetric

    short = data.assign(group=(data["race"] == "White").astype(int))[["group", "outcome"]]
    truth = BinaryLabelDataset(df=short, label_names=["outcome"], protected_attribute_names=["group"])
    predicted = truth.copy()
    predicted.labels = (data["risk"].to_numpy() >= 0.5).astype(float).reshape(-1, 1)
    sides = {"unprivileged_groups": [{"group": 0}], "privileged_groups": [{"group": 1}]}
    found = ClassificationMetric(truth, predicted, **sides)
    found.disparate_impact(), found.equal_opportunity_difference(), found.average_odds_difference()


def holisticai_rates(data: Any) -> None:
    """Compute holisticai's table of bias metrics for one pair of groups, without intervals."""
    from holisticai.bias.metrics import classification_bias_metrics

    white, said = (data["race"] == "White").to_numpy(), (data["risk"].to_numpy() >= 0.5).astype(int)
    classification_bias_metrics(~white, white, said, data["outcome"].to_numpy(), metric_type="both")


def numpy_tiles(data: Any) -> None:
    """Compare all pairs by the paper's formula with NumPy, in tiles of 512."""
    score, effort, aggregate = (data[name].to_numpy() for name in ("risk", "income", "age"))
    for start in range(0, len(data), 512):
        part = slice(start, start + 512)
        across = 0.5 * np.subtract.outer(effort[part], effort) ** 2
        across += 0.5 * np.subtract.outer(aggregate[part], aggregate) ** 2
        np.maximum(0.0, np.abs(np.subtract.outer(score[part], score)) - np.sqrt(across)).sum()


def pingouin_and_statsmodels(data: Any) -> None:
    """Compute kappa by statsmodels and ICC by pingouin for each group."""
    import pandas as pd
    import pingouin
    from statsmodels.stats.inter_rater import cohens_kappa

    for group in ("race", "sex"):
        for _, part in data.groupby(group):
            cohens_kappa(pd.crosstab(part["rater_a"], part["rater_b"]))
            long = part.melt(id_vars="id", value_vars=["rater_a", "rater_b"], var_name="rater", value_name="answer")
            pingouin.intraclass_corr(long, targets="id", raters="rater", ratings="answer")


def perturbing_loop(data: Any) -> None:
    """Perturb the features, predict and correlate by group for each level and replicate, as in the paper."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    rng, features = np.random.default_rng(0), data[["age", "income"]].to_numpy(dtype=float)
    model = LogisticRegression().fit(features, data["outcome"])
    before = cross_val_predict(LogisticRegression(), features, data["outcome"], method="predict_proba")[:, 1]
    for level in (0.1, 0.3):
        for _ in range(5):
            hit = rng.random(features.shape) < level
            after = model.predict_proba(features + hit * rng.normal(0, [5, 3], features.shape))[:, 1]
            for _, rows in data.groupby("race").indices.items():
                np.corrcoef(before[rows], after[rows])


def resampling_loop(data: Any) -> None:
    """Resample people with pandas and compute the gap of two decisions 20 times, as in the paper's bootstrap."""
    for seed in range(20):
        drawn = data.sample(frac=1.0, replace=True, random_state=seed)
        for decision in ("hired", "rater_a"):
            drawn.groupby("sex")[[decision, "outcome"]].mean()


def scipy_boots(data: Any) -> None:
    """Compute percentile intervals of three rates by group from 20 resamples each, with SciPy's bootstrap."""
    from scipy.stats import bootstrap

    said, outcome = data["risk"].to_numpy() >= 0.5, data["outcome"].to_numpy() == 1
    for _, rows in data.groupby("race").indices.items():
        for inside in (np.ones(rows.size, dtype=bool), outcome[rows], ~outcome[rows]):
            rate = said[rows][inside].astype(float)
            bootstrap((rate,), np.mean, n_resamples=20, batch=1, method="percentile", rng=0)


def disagreeing_shares(data: Any) -> None:
    """Compute the share of disagreeing critics by group and label, from which the bounds follow, with pandas."""
    for group in ("race", "sex"):
        shares = data.groupby([group, "label"])["disagree"].agg(["mean", "size"])
        shares["mean"].unstack() * shares["size"].unstack()
