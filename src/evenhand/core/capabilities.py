"""Optional capabilities of an audit beside its result.

These are counts of people, verdicts under other shares of groups, a section of `audit.toml`, and the gaps of a study
that is still collecting answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np

from evenhand.core.findings import Finding
from evenhand.core.metrics import Metric
from evenhand.core.thresholds import Threshold, Verdict, is_least
from evenhand.messages import Message
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.weighted import Judged
from evenhand.table.roles import SMALL, UNNAMED

if TYPE_CHECKING:
    from evenhand.core.result import Result
    from evenhand.table.cells import Cells
    from evenhand.table.table import Table


@dataclass(frozen=True)
class GroupSeries:
    """The counts of one metric in a group and in its reference group, by period."""

    model: str
    grouping: str
    metric: Metric
    group: str
    reference: str
    n: IntArray
    hits: IntArray
    other_n: IntArray
    other_hits: IntArray


@dataclass(frozen=True)
class Periods:
    """The cells of one model, and the period of each cell.

    Cells without a period have the code `number`, the last period's code plus 1.
    """

    model: str
    cells: Cells
    codes: IntArray
    number: int


@dataclass(frozen=True)
class GroupCounts:
    """The groups of one grouping under one model, with their people and favourable decisions.

    `unknown` is the number of people with an unknown or hidden group; `hidden` is the number in small hidden groups.
    `stratum` is a stratum of a legitimate factor, or None for all people.
    """

    model: str
    grouping: str
    groups: tuple[str, ...]
    n: tuple[int, ...]
    counted: tuple[int, ...]
    unknown: int
    hidden: int = 0
    nobody: str = "nobody was selected"
    stratum: str | None = None


def counted_groups(model: str, grouping: str, groups: Mapping[str, tuple[int, int]]) -> GroupCounts:
    """Return the counts of a grouping from each group's size and favourable decisions; unknown groups are separate."""
    named = [group for group, (n, _) in groups.items() if group not in UNNAMED and n > 0]
    n, counted = (tuple(groups[group][side] for group in named) for side in (0, 1))
    unknown = sum(groups[group][0] for group in UNNAMED if group in groups)
    return GroupCounts(model, grouping, tuple(named), n, counted, unknown, groups.get(SMALL, (0, 0))[0])


class Counting(Protocol):
    """Counting of an audit's people by group and decision."""

    metric: str
    """The metric that legal profiles need: the selection rate of a group."""

    def series(self, table: Table, spec: Any, periods: Periods) -> Iterator[GroupSeries]:
        """Yield the series of every rate in every group and in the reference group, by period."""

    def selections(
        self, result: Result, groupings: Collection[str], *, by_stratum: bool = False
    ) -> Iterator[GroupCounts]:
        """Yield the favourable decisions by group for every model and grouping, and by stratum if requested."""

    def favourable(self, result: Result) -> dict[str, str | None]:
        """Return each model's decision that is good for a person: selected, not_selected, or None."""


@dataclass(frozen=True)
class Mix:
    """People reweighted to other shares of one column's groups.

    Parameters
    ----------
    column, what : the column, and a description of the shares.
    weight : the weight of each group of the column.
    spread : the covariance of the weights if the shares are estimated from a sample, else None.
    """

    column: str
    what: Message
    weight: FloatArray
    spread: FloatArray | None = None

    @property
    def as_is(self) -> Mix:
        """The same people with their actual shares."""
        return replace(self, weight=np.ones_like(self.weight), spread=None)


class Reweighter(Protocol):
    """Judgement of one audit's verdicts for reweighted people."""

    @property
    def by_counts(self) -> bool:
        """Whether the reweighted values depend only on counts by group, outcome and decision."""

    def why_not(self, finding: Finding) -> Message | None:
        """Return the reason why a verdict cannot be judged for reweighted people, or None if it can."""

    def depends_on(self, finding: Finding, column: str) -> bool:
        """Return whether the verdict on a finding can depend on the shares of a column."""

    def judged(self, finding: Finding, mix: Mix) -> tuple[Judged, Verdict]:
        """Return the value for reweighted people with its limits, and its verdict."""


MakeReweighter: TypeAlias = "Callable[[Table, Any, Any], Reweighter]"
"""Function from the table, the audit's result and the settings of the run to a reweighter."""


def threshold_of(finding: Finding) -> Threshold:
    """Return the threshold behind a finding's verdict."""
    side = "min" if finding.threshold is not None and is_least(finding.threshold) else "max"
    return Threshold.model_validate({"metric": finding.metric, side: finding.limit})


@dataclass(frozen=True, kw_only=True)
class SeenFile:
    """The features of a data file that determine proposals.

    Parameters
    ----------
    source : the name of the file.
    long : the columns of the person and the time, if the file has a row for each person and time, else None.
    panel : the columns of one feature over time, with the time of each column.
    numbers : the numeric columns with many values, columns without a role first.
    """

    source: str
    long: tuple[str, str] | None = None
    panel: Mapping[str, int] = field(default_factory=dict)
    numbers: Sequence[str] = ()


class Proposing:
    """The proposal of an audit for `audit.toml`, by default empty."""

    leaves_blanks: ClassVar[bool] = False
    """Whether the proposal has settings that the user must fill in; `evenhand audit` refuses them until then."""

    def section(self, _seen: SeenFile) -> Iterable[str]:
        """Return the lines of the audit's section."""
        return ()

    def offer(self, _seen: SeenFile) -> Iterable[str]:
        """Return lines for the end of the file: an optional, commented-out section."""
        return ()

    def remarks(self, _seen: SeenFile) -> Iterable[str]:
        """Return remarks for the user before the roles are fixed."""
        return ()


def quoted(value: object) -> str:
    """Return a text as a TOML string; JSON's quoting is valid TOML for every text."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_list(values: Iterable[object]) -> str:
    """Return a TOML list of strings."""
    return f"[{', '.join(map(quoted, values))}]"


class Live(Protocol):
    """Fast computation of an audit's gaps from few answers."""

    def titles(self) -> list[str]:
        """Return the titles of the metrics."""

    def gaps(self, cases: Table, settings: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        """Yield the gaps of every grouping with the titles of their metrics; `settings` are the audit's settings."""
