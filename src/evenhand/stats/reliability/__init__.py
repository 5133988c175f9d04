"""Whom mistakes in the inputs hurt more: curves of reliability by group, their gaps, and how sure we are of them."""

from evenhand.stats.reliability.curves import Curves, curves, run_band, share_lower, spread_of_runs
from evenhand.stats.reliability.gaps import Gap, PilotVariance, gap_of, joint_band, pilot_variance
from evenhand.stats.reliability.people import PeopleDraws, bootstrap_people
from evenhand.stats.reliability.statistics import RELIABILITY, STATISTICS, fold_spread, statistic, why_undefined

__all__ = [
    "RELIABILITY",
    "STATISTICS",
    "Curves",
    "Gap",
    "PeopleDraws",
    "PilotVariance",
    "bootstrap_people",
    "curves",
    "fold_spread",
    "gap_of",
    "joint_band",
    "pilot_variance",
    "run_band",
    "share_lower",
    "spread_of_runs",
    "statistic",
    "why_undefined",
]
