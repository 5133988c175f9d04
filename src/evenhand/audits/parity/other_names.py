"""Other packages' names for the metrics and gaps of parity."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.core.metrics import OtherName
from evenhand.core.records import Kind


def _other_names() -> Iterator[tuple[str, OtherName]]:
    """Yield names in scikit-learn, fairlearn and AIF360 with our equivalent, or the reason for none."""
    peers = {
        "true_positive_rate": "tpr",
        "recall": "tpr",
        "recall_score": "tpr",
        "false_positive_rate": "fpr",
        "false_negative_rate": "fnr",
        "true_negative_rate": "tnr",
        "precision": "ppv",
        "precision_score": "ppv",
        "accuracy_score": "accuracy",
        "balanced_accuracy_score": "balanced_accuracy",
        "f1_score": "f1",
        "roc_auc_score": "auc",
        "brier_score_loss": "brier",
        "mean_prediction": "mean_score",
        "mean_absolute_error": "mae",
        "mean_squared_error": "mse",
        "root_mean_squared_error": "rmse",
        "selection_rate": "selection_rate",
    }
    kinds: tuple[Kind, ...] = ("difference", "ratio")
    for name, metric in peers.items():
        if name != metric:
            yield name, OtherName("fairlearn, scikit-learn", (metric,))
        for kind in kinds:
            yield f"{name}_{kind}", OtherName("fairlearn", (metric,), kind, "worst_pair")
        for end in ("min", "max"):
            read = f"it is the {end}imum over groups; read `{metric}` in the table `values`"
            yield f"{name}_group_{end}", OtherName("fairlearn", refused=read)
    for kind in kinds:
        yield f"equalized_odds_{kind}", OtherName("fairlearn", ("tpr", "fpr"), kind, "worst_pair")
        yield f"demographic_parity_{kind}", OtherName("fairlearn", ("selection_rate",), kind, "worst_pair")
        yield f"equal_opportunity_{kind}", OtherName("fairlearn", ("tpr",), kind, "worst_pair")
    yield "zero_one_loss_difference", OtherName("fairlearn", ("accuracy",), "difference", "worst_pair")
    yield "disparate_impact", OtherName("AIF360", ("selection_rate",), "ratio", "reference")
    for name in ("statistical_parity_difference", "mean_difference"):
        yield name, OtherName("AIF360", ("selection_rate",), "difference", "reference")
    yield "error_rate_difference", OtherName("AIF360", ("accuracy",), "difference", "reference")
    mean = "it is the mean of two gaps, in which one can hide the other; use `tpr` and `fpr`"
    yield from (
        (name, OtherName("AIF360", refused=mean)) for name in ("average_odds_difference", "average_abs_odds_difference")
    )
    for name in ("theil_index", "consistency", "generalized_entropy_index", "between_group_theil_index"):
        yield name, OtherName("AIF360", refused="it compares persons, not groups; see the effort audit")
    for name in ("zero_one_loss", "log_loss", "r2_score"):
        refusal = OtherName("fairlearn, scikit-learn", refused="give it as a function of the cells, with custom={...}")
        yield from ((f"{name}{end}", refusal) for end in ("", "_ratio", "_group_min", "_group_max"))


OTHER_NAMES: dict[str, OtherName] = dict(_other_names())
"""Names of other packages, accepted in place of ours."""
