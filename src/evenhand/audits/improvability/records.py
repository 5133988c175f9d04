"""The records of the improvability audit: flat, frozen, JSON-safe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SplitRecord:
    """One component of the test on one split: accuracy of a group, fairness by a utility, or all of them.

    `value` is by how much the candidate is better: accuracy gained, or the gap's reduction. The p-value of "all" is the
    largest of the components'. `test` is null for accuracy, which both fairness tests share.
    """

    candidate: str
    split: int
    component: str
    group: str | None
    utility: str | None
    test: str | None
    n: int
    n_status_quo: int
    status_quo: float | None
    candidate_value: float | None
    p_value: float
    binding: bool
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """The decision over all splits at one margin; `value` is the combined p-value, to be compared with alpha.

    `rejected` is the candidate's own test. `p_adjusted` is the combined p-value times the number of candidates, and
    `established` what follows with all of them allowed for: it is below alpha at this margin and at all smaller ones.
    The published test establishes nothing (null).
    """

    candidate: str
    test: str
    target: str
    group: str | None
    delta: float
    splits: int
    p_median: float | None
    rejected: bool
    p_adjusted: float | None
    established: bool | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class DeltaRecord:
    """The largest margin of an unbroken run of rejections from 0; it is also `low`, a one-sided confidence bound.

    The rejections are those of `p_adjusted`, so that the bounds of all candidates hold together. `binding` is the
    component that ends the run.
    """

    candidate: str
    test: str
    target: str
    group: str | None
    binding: str | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class CurveRecord:
    """The p-values at one margin, by a target, as in `DecisionRecord`; `value` is the combined p-value."""

    candidate: str
    test: str
    target: str
    group: str | None
    delta: float
    p_median: float
    rejected: bool
    p_adjusted: float
    established: bool | None
    value: float


@dataclass(frozen=True, slots=True)
class ValueRecord:
    """A group's value under the status quo (`candidate` null) or a candidate, the mean over the splits."""

    candidate: str | None
    utility: str
    group: str
    n: int
    stderr: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class PowerRecord:
    """The power of the test with so many rows in all and all candidates allowed for, the median over the splits.

    `scenario` is "found" for the improvement that the candidate showed on the test rows, "planned" for one that raises
    accuracy by `gain` and shrinks the gap by `reduction`.
    """

    candidate: str
    scenario: str
    gain: float | None
    reduction: float | None
    rows: int
    value: float | None
    status: str


@dataclass(frozen=True, slots=True)
class SampleSizeRecord:
    """How many rows in all give the power wanted, as in `PowerRecord`; `value` is null where no number does."""

    candidate: str
    scenario: str
    gain: float | None
    reduction: float | None
    power: float
    value: int | None
    status: str


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """What a candidate was in one split, and how it decided the test rows."""

    candidate: str
    split: int
    rule: str
    what: str
    rows: int
    selected: int
    selected_status_quo: int
    changed: int
    tied: int
    tied_selected: int
    tied_status_quo: int
    found_by: str | None
    solver_status: str | None
    claimed: float | None
    bound: float | None
    relative_gap: float | None
    reproduced: bool | None
    polished: bool | None
    status: str


@dataclass(frozen=True, slots=True)
class CoefficientRecord:
    """A coefficient of a linear candidate in one split, for one unit of the feature."""

    candidate: str
    split: int
    feature: str
    value: float


@dataclass(frozen=True, slots=True)
class ReasonRecord:
    """Why no improvement is established for a candidate, as far as the data tell.

    `reason` is "too_few_rows" where the candidate improved on the test rows but not beyond chance, "not_found" where it
    did not improve there and the test would have found a planned improvement, else "unclear".
    """

    candidate: str
    reason: str
    improved_splits: int
    splits: int
    power_found: float | None
    power_planned: float | None
    rows_needed: int | None
    sentence: str
