"""How many resamples a bootstrap of critics and cases gets: what was asked for, less where the work would be too much.

It depends on sizes only, never on the clock, so that the same data give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.stats.feedback import Answers, Resampled

LEAST_RESAMPLES = 200
MOST_PRODUCTS = 2_000_000_000
MOST_PAIRS = 6_000


@dataclass(frozen=True)
class Resampling:
    """One bootstrap: its number of resamples, what is drawn again, and its own generator."""

    draws: int
    resampled: Resampled
    rng: np.random.Generator


def resampling_of(answers: Answers, spec: DisagreementSpec, *stream: int) -> Resampling:
    """Return how to resample these answers.

    Parameters
    ----------
    answers
        The answers.
    spec
        The settings.
    stream
        What tells this bootstrap from the others of the audit.
    """
    draws = min(spec.resamples, MOST_PRODUCTS // max(len(answers.answer), 1))
    if answers.feedback.labels > 2:  # the smallest gap of each pair of groups is a search in every resample
        draws = min(draws, MOST_PAIRS // max(answers.groups * (answers.groups - 1) // 2, 1))
    what: Resampled = "cases" if answers.critics == 1 else "critics" if spec.cases == "all" else "both"
    return Resampling(
        max(draws, min(LEAST_RESAMPLES, spec.resamples)), what, np.random.default_rng([spec.seed, *stream])
    )
