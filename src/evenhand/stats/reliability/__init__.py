"""Reliability under input mistakes: curves by group, their gaps, and the uncertainty of these."""

from evenhand.stats.bounded import bounded_limits
from evenhand.stats.reliability.bounded import Unseen, bounded_difference, bounded_p
from evenhand.stats.reliability.gaps import GapOverLevels, gap_of, joint_band, pilot_variance
from evenhand.stats.reliability.metrics import (
    METRICS,
    RELIABILITY,
    Curves,
    curves,
    fold_spread,
    metric_values,
    run_band,
    share_lower,
    spread_of_runs,
    why_undefined,
)
from evenhand.stats.reliability.resampling import PeopleDraws, bootstrap_people

__all__ = [
    "METRICS",
    "RELIABILITY",
    "Curves",
    "GapOverLevels",
    "PeopleDraws",
    "Unseen",
    "bootstrap_people",
    "bounded_difference",
    "bounded_limits",
    "bounded_p",
    "curves",
    "fold_spread",
    "gap_of",
    "joint_band",
    "metric_values",
    "pilot_variance",
    "run_band",
    "share_lower",
    "spread_of_runs",
    "why_undefined",
]
