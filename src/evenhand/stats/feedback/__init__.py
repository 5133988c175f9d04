"""Fairness metrics from critics' feedback on a system's decisions: exact where possible, else sharp bounds.

Critics see cases with the system's label, and agree or disagree. `Feedback` defines which labels are compatible with an
answer, `rates` and `gap` compute six metrics of fairness, and `gap_intervals` computes their intervals.
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
from evenhand.stats.feedback.compare import CriticComparison, Differences, TooFewSharedError, compare_critics
from evenhand.stats.feedback.crossed import CrossedDraws, Resampled, crossed_bootstrap, crossed_draws
from evenhand.stats.feedback.gaps import FeedbackGap, differences, gap, same_gap
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
    UndefinedRate,
    rates,
)
from evenhand.stats.feedback.pairs import PAIR_METRICS, LikePairs, PairShare, find_like_pairs, split_share

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
    "CriticComparison",
    "CrossedDraws",
    "Differences",
    "Feedback",
    "FeedbackGap",
    "FeedbackKind",
    "FeedbackMetric",
    "GapInterval",
    "LikePairs",
    "PairShare",
    "Rates",
    "Resampled",
    "TooFewSharedError",
    "UndefinedRate",
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
    "split_share",
]
