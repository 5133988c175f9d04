"""The metrics of rankings: each is a mean over lists of the mean of a group's candidates in the list."""

from __future__ import annotations

from math import inf

from evenhand.core.metrics import Metric, gap_limits

_SAME = "It compares groups within a list; it does not say whether the candidates of a list are equally qualified."

METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            name="shortlist_rate",
            title="Shortlist rate",
            unit="share",
            formula="mean over lists of the share of the group's candidates among the first k; ties share places",
            reference="K. Yang and J. Stoyanovich (2017), Measuring fairness in ranked outputs, SSDBM",
            caveat=_SAME,
            headline=True,
            limits=gap_limits(),
        ),
        Metric(
            name="exposure",
            title="Exposure",
            unit="index",
            formula="mean over lists of the candidates' 1 / log2(1 + place), over the mean of the whole list",
            reference="A. Singh and T. Joachims (2018), Fairness of exposure in rankings, KDD",
            caveat="It assumes how attention falls from place to place. " + _SAME,
            headline=True,
            limits=gap_limits(most=inf),
        ),
        Metric(
            name="pairwise_accuracy",
            title="Pairwise accuracy",
            unit="share",
            formula="mean over lists of the share of negative candidates ranked below a positive one of the group; a "
            "tie counts half",
            reference="A. Beutel et al. (2019), Fairness in recommendation ranking through pairwise comparisons, KDD",
            caveat="It takes the recorded outcome for the truth; where outcomes are recorded differently by group, so "
            "is this.",
            headline=True,
            limits=gap_limits(),
        ),
    )
}
"""The metrics by name."""
