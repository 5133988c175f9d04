"""Fairness from what critics say of a system's decisions: exact where that is possible, else sharp bounds.

Critics see cases with the label that a system gave, and agree or disagree. `Feedback` says what an answer leaves open,
`rates` and `gap` what follows for six notions of fairness, `gap_intervals` how sure that is.
"""

from evenhand.stats.feedback.answers import Answers
from evenhand.stats.feedback.compare import Comparison, Differences, compare_critics
from evenhand.stats.feedback.gaps import Gap, gap, same_gap
from evenhand.stats.feedback.inference import GapInterval, gap_intervals
from evenhand.stats.feedback.kinds import AGREE, DISAGREE, RIGHT, TOO_HIGH, TOO_LOW, Feedback, FeedbackKind
from evenhand.stats.feedback.limits import SetInterval, set_interval
from evenhand.stats.feedback.notions import (
    BOUNDS,
    BY_LABEL,
    DEFINITE,
    INDEFINITE,
    NOTIONS,
    TOLERANT,
    Bounds,
    Notion,
    Rates,
    Undefined,
    rates,
)
from evenhand.stats.feedback.planning import Plan, plan_answers
from evenhand.stats.feedback.sampling import (
    RESAMPLED,
    CrossedDraws,
    Resampled,
    crossed_bootstrap,
    crossed_draws,
)

__all__ = [
    "AGREE",
    "BOUNDS",
    "BY_LABEL",
    "DEFINITE",
    "DISAGREE",
    "INDEFINITE",
    "NOTIONS",
    "RESAMPLED",
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
    "Gap",
    "GapInterval",
    "Notion",
    "Plan",
    "Rates",
    "Resampled",
    "SetInterval",
    "Undefined",
    "compare_critics",
    "crossed_bootstrap",
    "crossed_draws",
    "gap",
    "gap_intervals",
    "plan_answers",
    "rates",
    "same_gap",
    "set_interval",
]
