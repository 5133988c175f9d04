"""The records of the reliability audit: flat, frozen, JSON-safe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CurveRecord:
    """One statistic of a group at one noise level, the mean over folds and replicates.

    `low` and `high` are for other people, jointly at all noise levels; `replicate_low` and `replicate_high` only for
    other random mistakes.
    """

    model: str
    setting: str
    grouping: str
    group: str
    statistic: str
    noise_level: float
    n: int
    undefined: int
    replicate_sd: float | None
    replicate_low: float | None
    replicate_high: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class GapRecord:
    """A group's statistic less that of the reference group; `noise_level` is null for the mean over levels above 0.

    At one noise level, `low` and `high` hold jointly at all of them. Where there are more than two groups, one record
    `against` the 'worst_pair' has the largest gap of all pairs: `group` is the lower of the two, `reference` the
    higher, and `low` and `high` hold for all pairs together. `p_adjusted` is Holm's, over all tests of a run. Where
    mistakes were learned from a pilot by group, `stderr`, `low` and `high` allow for another pilot of the same size.
    """

    model: str
    setting: str
    grouping: str
    group: str
    reference: str
    against: str
    statistic: str
    noise_level: float | None
    n: int
    stderr: float | None
    df: float | None
    p_value: float | None
    p_adjusted: float | None
    share_lower: float | None
    replicate_sd: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class AttributionRecord:
    """How much of a gap at one noise level the mistakes in one feature make: its Shapley value.

    Over features the values add up to the gap, that of one rater who goes wrong. `share` is null where the interval of
    the gap holds 0, or there is none.
    """

    model: str
    setting: str
    grouping: str
    group: str
    reference: str
    statistic: str
    noise_level: float
    feature: str
    method: str
    share: float | None
    replicate_low: float | None
    replicate_high: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model: what it is, and how it does without mistakes; `method` says how it was evaluated."""

    model: str
    kind: str
    source: str
    sha256: str | None
    features: str
    folds: int
    threshold: float
    method: str
    n: int
    selected: float
    mean_score: float
    accuracy: float | None
    auc: float | None
