"""What an audit may offer beside its result.

Counts of people, verdicts among people with other shares of groups, a section of `audit.toml`, and the gaps of a study
while its answers arrive.
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
    """One metric of one group and of its reference, in every period."""

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

    Cells in no period have the code `number`, one more than the last period.
    """

    model: str
    cells: Cells
    codes: IntArray
    number: int


@dataclass(frozen=True)
class GroupCounts:
    """The people of one grouping under one model, and how many of them have the favourable decision.

    `unknown` are people whose group is unknown or `hidden` because it is small. `stratum` is the stratum of a
    legitimate factor that they belong to; None for everybody.
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
    """Return the counts of a grouping from each group's size and favourable decisions; unknown groups apart."""
    named = [group for group, (n, _) in groups.items() if group not in UNNAMED and n > 0]
    n, counted = (tuple(groups[group][side] for group in named) for side in (0, 1))
    unknown = sum(groups[group][0] for group in UNNAMED if group in groups)
    return GroupCounts(model, grouping, tuple(named), n, counted, unknown, groups.get(SMALL, (0, 0))[0])


class Counting(Protocol):
    """Counts the people of an audit by group and decision."""

    metric: str
    """The metric that legal profiles need: the share of a group that is selected."""

    def series(self, table: Table, spec: Any, periods: Periods) -> Iterator[GroupSeries]:
        """Yield every rate of every group and of the reference group, by period."""

    def selections(
        self, result: Result, groupings: Collection[str], *, by_stratum: bool = False
    ) -> Iterator[GroupCounts]:
        """Yield the favourable decisions by group, for every model and each of these groupings; perhaps by stratum."""

    def favourable(self, result: Result) -> dict[str, str | None]:
        """Return the decision that is good for the person by model: selected, not_selected, or None."""


@dataclass(frozen=True)
class Mix:
    """People with other shares of the groups of one column.

    Parameters
    ----------
    column, what : the column, and the shares in words.
    weight : the weight of each group of the column.
    spread : the covariance of the weights, if the shares are those of a sample.
    """

    column: str
    what: Message
    weight: FloatArray
    spread: FloatArray | None = None

    @property
    def as_is(self) -> Mix:
        """The people with their actual shares."""
        return replace(self, weight=np.ones_like(self.weight), spread=None)


class Reweighter(Protocol):
    """Judges the verdicts of one audit among weighted people."""

    @property
    def by_counts(self) -> bool:
        """Whether its numbers follow from counts by group, outcome and decision alone."""

    def why_not(self, finding: Finding) -> Message | None:
        """Return why a verdict cannot be judged among weighted people; None if it can."""

    def depends_on(self, finding: Finding, column: str) -> bool:
        """Return whether shares of a column can matter."""

    def judged(self, finding: Finding, mix: Mix) -> tuple[Judged, Verdict]:
        """Return the number among weighted people with its limits, and the verdict."""


MakeReweighter: TypeAlias = "Callable[[Table, Any, Any], Reweighter]"
"""Makes a reweighter from the table, the result of the audit, and the settings that it ran with."""


def threshold_of(finding: Finding) -> Threshold:
    """Return the threshold that a finding was judged by."""
    side = "min" if finding.threshold is not None and is_least(finding.threshold) else "max"
    return Threshold.model_validate({"metric": finding.metric, side: finding.limit})


@dataclass(frozen=True, kw_only=True)
class SeenFile:
    """The features of a data file that proposals depend on.

    Parameters
    ----------
    source : its name.
    long : the columns of the person and of the time, if a person has one row for each time.
    panel : columns of one feature over time, with the time of each.
    numbers : numeric columns with many values, those without a role first.
    """

    source: str
    long: tuple[str, str] | None = None
    panel: Mapping[str, int] = field(default_factory=dict)
    numbers: Sequence[str] = ()


class Proposing:
    """An audit's proposal for `audit.toml`; the default is empty."""

    leaves_blanks: ClassVar[bool] = False
    """Whether it proposes settings that the user must fill in; `evenhand audit` then refuses them by name."""

    def section(self, _seen: SeenFile) -> Iterable[str]:
        """Return the lines of its section."""
        return ()

    def offer(self, _seen: SeenFile) -> Iterable[str]:
        """Return lines for the end of the file: a commented-out section that the user may want."""
        return ()

    def remarks(self, _seen: SeenFile) -> Iterable[str]:
        """Return remarks for the user before the roles are fixed."""
        return ()


def quoted(value: object) -> str:
    """Return a TOML string; JSON's quoting is valid TOML for every text."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_list(values: Iterable[object]) -> str:
    """Return a TOML list of strings."""
    return f"[{', '.join(map(quoted, values))}]"


class Live(Protocol):
    """Computes the gaps of an audit from few answers, quickly."""

    def titles(self) -> list[str]:
        """Return the titles of the metrics."""

    def gaps(self, cases: Table, settings: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        """Yield the gaps of every grouping, with the titles of their metrics; `settings` are the audit's."""
