"""The metrics of a study, and which of them a threshold may limit."""

from __future__ import annotations

from evenhand.core.metrics import Limit, Metric
from evenhand.core.thresholds import Alias

TARGETS = ("overall", "output")
"""The explained judgements: the overall distance of two people, and the distance of the risks found fair for them."""

DISTANCES = ("aggregate", "trajectory")
"""The explanatory judgements: the distance of the aggregates, and the distance of the trajectories."""

_PAPER = "Nguyen, Xu, Che et al., Effort-aware fairness"
_LARGEST = 2.0
"""The largest absolute difference between two correlations."""

METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            name="rank_correlation",
            title="Rank correlation",
            unit="index",
            formula="Spearman's correlation of the answers about a distance with those about the target",
            reference=f"{_PAPER}, table 2",
            caveat="Ranks of answers go together; it does not show that people ought to judge so, nor that other sets "
            "or other people would give the same.",
            headline=True,
            limits=(
                Limit("gap", "min", "difference", (-_LARGEST, _LARGEST), ("reference",)),
                Limit("gap", "max", "difference", (-_LARGEST, _LARGEST), ("reference",)),
            ),
        ),
        Metric(
            name="effort_weight",
            title="Weight of effort",
            unit="index",
            formula="a_trajectory / (a_trajectory + a_aggregate) from the regression of the overall distance",
            reference=_PAPER,
            caveat="It is the pull of the answers about two distances on a third answer of the same person, as shown "
            "here.",
            headline=True,
            limits=(Limit("value", "min"), Limit("value", "max")),
        ),
        Metric(
            name="factor_share",
            title="Share who named the factor",
            unit="share",
            formula="answers in which a factor was ticked, among those in which any was",
            reference=_PAPER,
        ),
    )
}

NAMED_GAPS: dict[str, Alias] = {"correlation_difference": ("rank_correlation", "difference", "reference")}
"""The trajectory's rank correlation minus the aggregate's."""
