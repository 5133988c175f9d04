"""The records, the result and the evidence of the improvability audit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from evenhand.audits.improvability import AUDIT
from evenhand.audits.improvability.candidates import RuleName
from evenhand.audits.improvability.curves import Scenario
from evenhand.audits.improvability.exhibits import Exhibit, file_stem, shown_piece
from evenhand.audits.improvability.metrics import FAIRNESS
from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.audits.improvability.splits import Inputs, Trials
from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.files import write_files
from evenhand.core.records import OK, Gap, Record, Reveals, Value, column, matching
from evenhand.core.result import Result
from evenhand.errors import ConfigError, require_name
from evenhand.messages import Message
from evenhand.stats.improvability import FairnessTest

Reason = Literal["too_few_rows", "not_found", "unclear", "unchanged"]
Better = Literal["higher", "lower"]

JUDGED: FairnessTest = "signed"
"""The fairness test behind every conclusion, because the published test is not valid at all margins."""

_MODEL = "the candidate"
_SPLIT = "the split, from 1; 1 in one pass"
_STEP = "the split or step, from 1"
_TEST = "the fairness test: 'signed', which conclusions rest on, or 'published'"
_WHAT = "'improvable_fairness' for a smaller gap, 'improvable_accuracy' for more accuracy"
_GROUP = "the group whose accuracy is to improve; '(overall)' for all that is tested together"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImprovabilityValue(Value):
    """A group's value of a utility under the status quo (`model` 'status_quo') or a candidate, as mean over splits."""

    stderr: float | None = column("the bootstrap's standard error, the mean over splits", None, reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImprovabilityGap(Gap):
    """One component of the test on one split, at a margin of 0: the candidate's improvement.

    The improvement is the gain in accuracy, or the shrinkage of the gap between groups. The p-value of the component
    'all' is the largest p-value of the other components.
    """

    split: int = column(_SPLIT, reveals="safe")
    component: Literal["accuracy", "fairness", "all"] = column(
        "'accuracy' of a group, 'fairness' by a utility, or 'all' of them", reveals="name"
    )
    test: FairnessTest | None = column(f"{_TEST}; null for accuracy, which both share", None, reveals="name")
    model_value: float | None = column("the candidate's value, or its gap between groups", None, reveals="share")
    reference_value: float | None = column("the same of the status quo", None, reveals="share", of="n_reference")
    n_reference: int = column(
        "the rows that count under the status quo; `n` under the candidate", reveals="count", of=""
    )
    binding: bool = column("whether its p-value is the largest of the components", reveals="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint(Record):
    """The p-values of all splits at one margin."""

    model: str = column(_MODEL, reveals="name")
    grouping: str = column("the grouping", reveals="name")
    group: str = column(_GROUP, reveals="name")
    metric: Literal["improvable_fairness", "improvable_accuracy"] = column(_WHAT, reveals="name")
    test: FairnessTest = column(_TEST, reveals="name")
    margin: float = column("the share by which things must improve", reveals="safe")
    p_median: float | None = column("the median p-value of the splits", reveals="number")
    p_value: float | None = column("the combined p-value of the splits, to be compared with alpha", reveals="number")
    p_adjusted: float | None = column(
        "the combined p-value times the number of candidates, at most 1", reveals="number"
    )
    rejected: bool = column("whether the candidate's own test rejects", reveals="number")
    established: bool | None = column(
        "whether `p_adjusted` is below alpha at this margin and at all smaller ones; null for the published test",
        reveals="number",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(CurvePoint):
    """The decision over all splits at a requested margin."""

    rejected_by_median: bool | None = column(
        "whether the paper's rule rejects, the median p of several splits below alpha / 2; null without splits",
        reveals="number",
    )
    splits: int = column("the number of splits; 1 in one pass", reveals="safe")
    status: Message = column("'ok', or why there is no p-value, or in how many splits or steps there was no candidate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin(Value):
    """The largest margin of improvement, a one-sided confidence bound: all smaller margins are established, too.

    It is simultaneous over all candidates.
    """

    test: FairnessTest = column(_TEST, reveals="name")
    binding: str | None = column("the component that ends the run", None, reveals="name")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint(Record):
    """An algorithm's point on the frontier: overall accuracy against the gap, as means over splits.

    The limits are simultaneous over accuracy and gap of the status quo and all candidates.
    """

    model: str = column("the candidate, or 'status_quo'", reveals="name")
    margin: float | None = column(
        "of a search's further choices the smallest margin at which they are made", None, reveals="safe"
    )
    metric: str = column("the utility of accuracy", reveals="name")
    gap_metric: str = column("the utility of the gap", reveals="name")
    n: int = column("the test rows", reveals="count")
    accuracy: float | None = column("the value over everyone", reveals="share")
    accuracy_low: float | None = column("its lower limit, for all points together", None, reveals="number")
    accuracy_high: float | None = column("its upper limit", None, reveals="number")
    gap: float | None = column("the largest difference between groups", reveals="number")
    gap_low: float | None = column("its lower limit, for all points together", None, reveals="number")
    gap_high: float | None = column("its upper limit", None, reveals="number")
    efficient: bool | None = column(
        "whether no other point is as good in both and better in one", None, reveals="number"
    )
    better: bool | None = column(
        "whether it is shown to be better in accuracy and gap, adjusted for all", None, reveals="number"
    )
    regret: float | None = column(
        "by how much its gap exceeds the smallest of the candidates that are as accurate as the status quo, on the "
        "test rows; the smallest of several flatters itself",
        None,
        reveals="number",
    )
    eigenvalue: float | None = column(
        "the smallest eigenvalue of assumption 2; below 0.01 p-values are rough", None, reveals="number"
    )
    status: Message = column("'ok', or what is wrong", OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRecord(Record):
    """The description of a candidate in one split or step, with its decisions on the test rows."""

    model: str = column(_MODEL, reveals="name")
    split: int = column(_STEP, reveals="safe")
    rule: RuleName = column("the rule that made it", reveals="name")
    what: str = column("what it is, in words", reveals="name")
    n: int = column("the test rows", reveals="count")
    selected: int = column("how many of them it selects", reveals="count")
    selected_reference: int = column("how many the status quo selects", reveals="count")
    changed: int = column("how many are decided otherwise than by the status quo", reveals="count")
    tied: int = column("rows with the same score at the cut of the capacity", reveals="count")
    tied_selected: int = column("those of them that were drawn", reveals="count", of="tied")
    tied_reference: int = column("tied rows under the status quo", reveals="count")
    found_by: str | None = column("of a linear search, what found it: 'sweep' or 'milp'", None, reveals="name")
    solver_status: Message | None = column("what HiGHS said", None, reveals="name")
    claimed: float | None = column("the objective that HiGHS claims", None, reveals="number")
    bound: float | None = column("its bound on the objective", None, reveals="number")
    relative_gap: float | None = column("the relative gap between the two", None, reveals="number")
    reproduced: bool | None = column("whether the coefficients reach what HiGHS claims", None, reveals="number")
    polished: bool | None = column("whether they were repaired by a margin program", None, reveals="number")
    status: Message = column("'ok', or why there is no candidate", OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoefficientRecord(Record):
    """A coefficient of a linear candidate in one split or step."""

    model: str = column(_MODEL, reveals="name")
    split: int = column(_STEP, reveals="safe")
    feature: str = column("the feature, 'feature=text' for one of text, or '(intercept)'", reveals="name")
    value: float = column(
        "what one unit of it adds to the score, to six digits; an exported candidate has them all", reveals="number"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScenarioRecord(Record):
    """An improvement assumed in the power calculation."""

    model: str = column(_MODEL, reveals="name")
    scenario: Scenario = column(
        "'found' for the improvement on the test rows, 'planned' for the one of `plan`", reveals="name"
    )
    gain: float | None = column("of the planned improvement, the gain in accuracy", None, reveals="safe")
    reduction: float | None = column("of the planned improvement, the reduction of the gap", None, reveals="safe")


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRecord(_ScenarioRecord):
    """The power of the test for a number of rows, adjusted for all candidates, as median over splits."""

    n: int = column("rows in all", reveals="count")
    value: float | None = column("the power", reveals="number")
    status: Message = column("'ok', or why there is none")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSizeRecord(_ScenarioRecord):
    """The total number of rows for the required power."""

    power: float = column("the required power", reveals="safe")
    n: int | None = column("rows in all; null where no number gives this power", reveals="count")
    status: Message = column("'ok', or why there is none")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonRecord(Record):
    """The plausible reason why no improvement is established for a candidate."""

    model: str = column(_MODEL, reveals="name")
    reason: Reason = column(
        "'too_few_rows' where the candidate improved on the test rows but not beyond chance, 'not_found' where it did "
        "not and the test would have found a planned improvement, 'unchanged' where it decides as the status quo does, "
        "else 'unclear'",
        reveals="name",
    )
    improved_splits: int = column("splits in which every component improved on the test rows", reveals="safe")
    splits: int = column("the number of splits; 1 in one pass", reveals="safe")
    power_found: float | None = column("the power here for the improvement found", reveals="number")
    power_planned: float | None = column("the power here for the planned improvement", reveals="number")
    n_needed: int | None = column("rows in all that the improvement found would take", reveals="count")
    sentence: Message = column("the reason in words")


@dataclass(frozen=True, eq=False)
class Evidence:
    """The rows of the data and the trials behind a result, which stay in memory and are never written with it.

    Parameters
    ----------
    inputs : the rows, the settings and the margins.
    trials : the trials of every candidate, in the order of the splits.
    """

    inputs: Inputs
    trials: Trials


@dataclass(frozen=True, repr=False, kw_only=True)
class ImprovabilityResult(Result):
    """The tests of all candidates on all splits, the decisions, and the largest margins.

    Parameters
    ----------
    values, gaps, frontier, decisions, margins, curves, candidates, coefficients : tables.
    power, sample_sizes, reasons : more tables.
    groups : the compared groups.
    furthest_apart : the two groups furthest apart under the status quo on (the first training) rows, the higher one
        first.
    better : whether higher or lower values of the accuracy utility are better.
    n : the number of rows of the test; null if `suppress_below` withholds it.
    unlabelled : the number of rows left out for a missing outcome (or prediction); null as for `n`.
    hash : the SHA-256 of the rows behind the results.
    kept : the rows and trials behind the tables, which are never written or pickled (see `evidence`).
    """

    descriptor: ClassVar[AuditDescriptor] = AUDIT
    places: ClassVar[tuple[str, ...]] = ("split", "component", "test")
    main_table: ClassVar[str] = "decisions"
    reveals: ClassVar[Mapping[str, Reveals]] = {
        "groups": "name",
        "furthest_apart": "name",
        "better": "name",
        "n": "count",
        "unlabelled": "count",
        "hash": "safe",
    }

    spec: ImprovabilitySpec
    values: tuple[ImprovabilityValue, ...]
    gaps: tuple[ImprovabilityGap, ...]
    frontier: tuple[FrontierPoint, ...]
    decisions: tuple[Decision, ...]
    margins: tuple[Margin, ...]
    curves: tuple[CurvePoint, ...]
    candidates: tuple[CandidateRecord, ...]
    coefficients: tuple[CoefficientRecord, ...]
    power: tuple[PowerRecord, ...]
    sample_sizes: tuple[SampleSizeRecord, ...]
    reasons: tuple[ReasonRecord, ...]
    groups: tuple[str, ...]
    furthest_apart: tuple[str, ...]
    better: Better
    n: int | None
    unlabelled: int | None
    hash: str
    kept: InitVar[Evidence | None] = None

    def __post_init__(self, kept: Evidence | None) -> None:
        object.__setattr__(self, "kept", kept)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "kept"}

    @property
    def evidence(self) -> Evidence:
        """The rows, decisions and fitted rules behind the result, which `export` writes.

        Raises
        ------
        ConfigError
            If the result was loaded or unpickled, because it never contains rows of the data.
        """
        evidence: Evidence | None = vars(self).get("kept")
        if evidence is None:
            raise ConfigError(
                "a result that was loaded or unpickled holds no rows of the data; run the audit again to export its "
                "candidates."
            )
        return evidence

    @property
    def established(self) -> tuple[Decision, ...]:
        """The decisions that establish an improvement at the smallest requested margin, adjusted for all candidates."""
        return tuple(decision for decision in self.rejections if decision.established)

    @property
    def rejections(self) -> tuple[Decision, ...]:
        """The decisions of candidates whose own signed test rejects at the smallest requested margin."""
        least = min(self.spec.test.margins)
        decisions: tuple[Decision, ...] = matching(self.decisions, test=JUDGED, metric=FAIRNESS, margin=least)
        return tuple(decision for decision in decisions if decision.rejected)

    def export(
        self, folder: str | os.PathLike[str], candidate: str | None = None, split: int | None = None
    ) -> list[Path]:
        """Write candidates into a folder, so that others can check and use them.

        Parameters
        ----------
        folder
            The folder to write to; it is created if it does not exist.
        candidate
            The name of the candidate; by default all candidates.
        split
            The number of the candidate's split or step, from 1; by default the split with the median p-value, or the
            last step.

        Returns
        -------
        list of Path
            For each candidate, a JSON file with its description (coefficients, features, capacity or threshold, and
            formats that could not be written), a CSV file with its decisions on the test rows of every split or step
            and, where possible, a skops and an ONNX file.
        """
        inputs, trials = self.evidence.inputs, self.evidence.trials
        if candidate is not None:
            require_name(candidate, trials, "there is no candidate {name!r}; {hint}")
        files: dict[str, bytes] = {}
        for number, name in enumerate([candidate] if candidate is not None else trials):
            decisions: tuple[Decision, ...] = matching(self.decisions, test=JUDGED, model=name)
            exhibit = Exhibit(inputs, name, trials[name], *shown_piece(trials[name], split)).files(decisions)
            files |= {f"{file_stem(name, number)}{ending}": content for ending, content in exhibit.items()}
        return list(write_files(folder, files).values())
