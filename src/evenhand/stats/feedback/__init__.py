"""Fairness from what critics say of a system's decisions: exact where that is possible, else sharp bounds.

Critics see cases with the label that a system gave, and agree or disagree. `Feedback` says what an answer leaves open,
`rates` and `gap` what follows for six metrics of fairness, `gap_intervals` how sure that is.
"""

from evenhand.stats.feedback.answers import (
    AGREE,
    DISAGREE,
    RIGHT,
    TOO_HIGH,
    TOO_LOW,
    Answers,
    Feedback,
    FeedbackKind,
    numbered,
)
from evenhand.stats.feedback.compare import Comparison, Differences, TooFewSharedError, compare_critics
from evenhand.stats.feedback.crossed import CrossedDraws, Resampled, crossed_bootstrap, crossed_draws
from evenhand.stats.feedback.gaps import Gap, differences, gap, same_gap
from evenhand.stats.feedback.inference import GapInterval, gap_intervals, plan_answers
from evenhand.stats.feedback.limits import numbers_of, set_interval, slacks
from evenhand.stats.feedback.metrics import (
    BY_LABEL,
    DEFINITE,
    INDEFINITE,
    METRICS,
    TOLERANT,
    Bounds,
    FeedbackMetric,
    Rates,
    Undefined,
    rates,
)
from evenhand.stats.feedback.pairs import PAIR_METRICS, LikePairs, PairShare, find_like_pairs, split_of_any

__all__ = [
    "AGREE",
    "BY_LABEL",
    "DEFINITE",
    "DISAGREE",
    "INDEFINITE",
    "METRICS",
    "PAIR_METRICS",
    "RIGHT",
    "TOLERANT",
    "TOO_HIGH",
    "TOO_LOW",
    "Answers",
    "Bounds",
    "Comparison",
    "CrossedDraws",
    "Differences",
    "Feedback",
    "FeedbackKind",
    "FeedbackMetric",
    "Gap",
    "GapInterval",
    "LikePairs",
    "PairShare",
    "Rates",
    "Resampled",
    "TooFewSharedError",
    "Undefined",
    "compare_critics",
    "crossed_bootstrap",
    "crossed_draws",
    "differences",
    "find_like_pairs",
    "gap",
    "gap_intervals",
    "numbered",
    "numbers_of",
    "plan_answers",
    "rates",
    "same_gap",
    "set_interval",
    "slacks",
    "split_of_any",
]
