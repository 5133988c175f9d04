"""The table of metrics of the effort audit."""

from __future__ import annotations

from evenhand.core.metrics import Limit, Metric, gap_limits, ratio_limits

PAPER = "Nguyen, Xu, Che et al., Effort-aware fairness"
MULTIVERSE = (
    "Steegen, Tuerlinckx, Gelman and Vanpaemel 2016, Perspectives on Psychological Science 11; Simonsohn, Simmons and "
    "Nelson 2020, Nature Human Behaviour 4"
)
_CHOICES = (
    "Specifications are choices, not samples: the share is no probability and rests on which choices were declared. It "
    "does not say which of them is right, nor whether other people would give the same order: all specifications have "
    "the same people, and close models may be in one order in all of them by chance."
)

_DIRECTION = f"Our answer to the limits that {PAPER} states: no direction between effort and outcome"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name="eaif",
            title="Individual fairness",
            unit="index",
            better="higher",
            formula="the mean over all pairs of people of 1 - max(0, D - d): D is the difference of the two scores, "
            "d = sqrt(w (E - E')^2 + (1 - w) (S - S')^2) their distance in effort E and aggregate S at weight w",
            reference=f"{PAPER}, equations 12 and 13",
            caveat="It does not say that more effort should be rewarded, nor which of two people is treated too well, "
            "nor whether scores are right: a constant score gets 1, so models are compared at equal spread of scores. "
            "It rests on the window, the measure and the inertia chosen.",
            headline=True,
            moves_with="scores that differ little from person to person, and the unit and scale of the feature",
            limits=(Limit("value", "min"),),
        ),
        Metric(
            name="equal_effort",
            title="Parity at equal effort",
            unit="score",
            formula="of two groups, the ratio of their mean scores, standardised: means in bins of effort, a bin with "
            "n and n' people of the groups counting n n' / (n + n'); of several groups, the lowest ratio of those that "
            "differ clearly",
            reference=f"{PAPER}, equation 14, over all bins together; overlap weights: Li, Morgan and Zaslavsky 2018, "
            "Journal of the American Statistical Association 113",
            caveat="People of similar effort may still differ in what the score should rest on; opposite differences "
            "in several bins cancel out, so look at the bins, too.",
            headline=True,
            moves_with="rates of inertia by group, which decide which groups share a bin",
            limits=ratio_limits(against=("worst_pair",)),
        ),
        Metric(
            name="eagf",
            title="Parity by effort",
            unit="score",
            formula="in a bin of effort, the smallest mean score of a group over the largest",
            reference=f"{PAPER}, equation 14",
            caveat="People of similar effort may still differ in what the score should rest on; bins with few people "
            "are uncertain.",
            moves_with="rates of inertia by group, which decide which groups share a bin",
            limits=ratio_limits(against=("worst_pair",)),
        ),
        Metric(
            name="reversed_pairs",
            title="Reversed pairs",
            unit="share",
            better="lower",
            formula="of the pairs in which one person came further (more effort, from no better a start to no worse an "
            "end), the share in which that person is scored worse",
            reference=_DIRECTION,
            caveat="It expects that the person who came further is scored no worse, which the paper leaves open; most "
            "pairs are not comparable in this way, and it does not cover them.",
            headline=True,
            moves_with="rates of inertia by group, which decide who has more effort, and scores with many ties",
            limits=(Limit("value", "max"), *gap_limits(against=("worst_pair",))),
        ),
        Metric(
            name="concordant_pairs",
            title="Concordant pairs",
            unit="share",
            better="higher",
            formula="of the same pairs, the share in which the person who came further is scored better",
            reference=_DIRECTION,
            limits=(Limit("value", "min"),),
        ),
        Metric(
            name="reversal_shortfall",
            title="Shortfall in reversed pairs",
            unit="score",
            better="lower",
            formula="in a reversed pair, by how much the person who came further is scored worse, on average",
            reference=_DIRECTION,
            limits=(Limit("value", "max"),),
        ),
        Metric(
            name="mean_score",
            title="Mean score",
            unit="score",
            formula="the (weighted) mean score of a group's people in a bin of effort, or of all of them",
            reference=f"{PAPER}, equation 14",
        ),
        Metric(
            name="fairest_share",
            title="Share of specifications in which the model is the fairest",
            unit="share",
            formula="specifications in which no model is fairer, shared evenly where models are tied, over those in "
            "which all models have a value",
            reference=MULTIVERSE,
            caveat=_CHOICES,
            headline=True,
        ),
        Metric(
            name="specification_range",
            title="Range over all specifications",
            unit="index",
            formula="the lowest and the highest value that the declared choices give",
            reference=MULTIVERSE,
            caveat=_CHOICES,
            headline=True,
        ),
    )
}
"""Every metric by name."""
