"""Sentences on why a coefficient of agreement has no value."""

from __future__ import annotations

from evenhand.messages import Catalogue

say = Catalogue(
    "agreement_stats",
    __package__ or "evenhand.stats.agreement",
    {
        "nobody": "there is nobody to rate",
        "one_person": ("there is only one person", "there are only {n:count} people"),
        "no_pair": "nobody has two ratings",
        "one_class": "all ratings are in one class",
        "no_spread": "all scores are one number",
        "no_positive": "no rating is positive",
        "no_negative": "no rating is negative",
        "negative_variance": "the formula divides by a variance that is estimated below 0",
        "unequal": "people have different numbers of ratings, so a single mean over raters is not defined",
        "not_crossed": "the raters share too few people to tell a rater's own level from error",
        "many_raters": "there are more than 500 raters",
        "zero_denominator": "the formula divides by 0",
    },
)
"""Makes a message on why a coefficient has no value."""
