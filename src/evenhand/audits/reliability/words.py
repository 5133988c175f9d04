"""What the statistics are called, and what they say."""

from __future__ import annotations

TITLES = {
    "kappa": "Cohen's kappa",
    "pabak": "PABAK",
    "icc_a1": "ICC(A,1)",
    "icc_spread": "Spread-adjusted ICC",
    "ac1": "Gwet's AC1",
    "alpha": "Krippendorff's alpha",
    "concordance": "Lin's concordance",
    "agreement": "Agreement",
    "prevalence_index": "Prevalence index",
    "bias_index": "Bias index",
    "prevalence_part": "PABAK - kappa: prevalence",
    "bias_part": "PABAK - kappa: bias",
    "mean_squared_error": "Mean squared error",
    "variance_first": "Variance of scores",
    "variance_second": "Variance with mistakes",
    "mean_second": "Mean score with mistakes",
}

COMPANIONS = (
    "agreement",
    "prevalence_index",
    "bias_index",
    "prevalence_part",
    "bias_part",
    "mean_squared_error",
    "variance_first",
    "variance_second",
    "mean_second",
)
"""What stands beside the statistics that are compared, and explains them."""

CAVEATS = {
    "kappa": "With equally many changed decisions, kappa is lower for the group in which selection is rarer, or nearly "
    "universal. Read it beside PABAK.",
    "pabak": "PABAK counts changed decisions alone; it does not ask how many would agree by chance.",
    "icc_a1": "ICC compares errors with the spread of a group's own scores: a group with less spread has a lower ICC "
    "for the same errors. Read it beside the spread-adjusted ICC.",
    "icc_spread": "It compares mean squared errors of scores on one scale for all groups, and says nothing about "
    "decisions.",
    "ac1": "AC1 follows PABAK, more strongly: where one decision is rare, it is high.",
    "alpha": "Alpha is close to kappa and falls with prevalence as kappa does.",
    "concordance": "Lin's concordance is ICC(A,1) but for a term of the order 1/n, and shares what it does not show.",
}
"""What a gap in each statistic does not show."""

HARM = ("pabak", "icc_spread")
"""Statistics that count what mistakes do and nothing else: changed decisions, and errors of scores on one scale."""

MOVED_BY = {
    "kappa": "it also falls where selection is rare or nearly universal",
    "alpha": "it also falls where selection is rare or nearly universal",
    "ac1": "it also rises where selection is rare or nearly universal",
    "icc_a1": "it also falls where a group's scores are close together",
    "concordance": "it also falls where a group's scores are close together",
}
"""What moves the other statistics with the same mistakes, so that they do not say whom mistakes hurt."""


def in_sentence(statistic: str) -> str:
    """Return a title as it reads inside a sentence.

    Examples
    --------
    >>> in_sentence("icc_spread"), in_sentence("kappa")
    ('the spread-adjusted ICC', "Cohen's kappa")
    """
    return "the spread-adjusted ICC" if statistic == "icc_spread" else TITLES[statistic]
