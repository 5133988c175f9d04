"""Reliability under input mistakes: metrics by group over noise levels, their gaps, and the uncertainty of both."""

from evenhand.stats.reliability.gaps import GapOverLevels, gap_of, joint_band, pilot_variance
from evenhand.stats.reliability.metrics import (
    METRICS,
    Curves,
    curves,
    fold_spread,
    metric_values,
    run_band,
    share_lower,
    spread_of_runs,
    why_undefined,
)
from evenhand.stats.reliability.people import (
    MEANS,
    PeopleGap,
    compare_patterns,
    compare_people,
    derivatives_of,
    people_values,
)
from evenhand.stats.reliability.resampling import PeopleDraws, bootstrap_people

__all__ = [
    "MEANS",
    "METRICS",
    "Curves",
    "GapOverLevels",
    "PeopleDraws",
    "PeopleGap",
    "bootstrap_people",
    "compare_patterns",
    "compare_people",
    "curves",
    "derivatives_of",
    "fold_spread",
    "gap_of",
    "joint_band",
    "metric_values",
    "people_values",
    "pilot_variance",
    "run_band",
    "share_lower",
    "spread_of_runs",
    "why_undefined",
]
