"""The result of the parity audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.audits.parity.records import CalibrationRecord, GapRecord, GroupRecord
from evenhand.audits.parity.spec import ParitySpec
from evenhand.core.result import Result
from evenhand.core.sections import Section
from evenhand.core.spec import Against, Kind
from evenhand.errors import ConfigError, did_you_mean, require_choice


@dataclass(frozen=True, repr=False)
class ParityResult(Result):
    """Group values, gaps and calibration with their intervals.

    Parameters
    ----------
    groups, gaps, calibration : the tables, as records.
    favourable : for each model the side of the decision that is good for the person, where the user said it.
    """

    audit: ClassVar[str] = "parity"
    title: ClassVar[str] = "Parity"
    question: ClassVar[str] = "Do groups get different outcomes, and how sure are we?"
    main_table: ClassVar[str] = "gaps"

    spec: ParitySpec
    groups: tuple[GroupRecord, ...]
    gaps: tuple[GapRecord, ...]
    calibration: tuple[CalibrationRecord, ...]
    favourable: dict[str, str | None]

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables `groups`, `gaps` and `calibration`."""
        return {"groups": self.groups, "gaps": self.gaps, "calibration": self.calibration}

    def gap(
        self,
        metric: str,
        *,
        grouping: str | None = None,
        model: str | None = None,
        kind: Kind = "difference",
        against: Against = "worst_pair",
        group: str | None = None,
        stratum: str | None = None,
    ) -> GapRecord:
        """Return one gap; a name such as 'traditional_parity' stands for its metric, kind and pair.

        `grouping` and `model` may be left out where there is only one.
        """
        from evenhand.audits.parity.metrics import NAMED_GAPS

        wanted = NAMED_GAPS.get(metric, (metric, kind, against))
        found = [
            gap
            for gap in self.gaps
            if (gap.metric, gap.kind, gap.against) == wanted
            and gap.stratum == stratum
            and grouping in (None, gap.grouping)
            and model in (None, gap.model)
            and group in (None, gap.group)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise ConfigError(f"{len(found)} gaps in {metric!r} fit; name the grouping, model or group.")
        for name, given in (("model", model), ("grouping", grouping), ("group", group)):
            known = sorted({str(getattr(gap, name)) for gap in self.gaps if getattr(gap, name) is not None})
            if given is not None and given not in known:
                raise ConfigError(f"`{name}` got {given!r}; {did_you_mean(given, known)}")
        metrics = sorted({gap.metric for gap in self.gaps} | set(NAMED_GAPS))
        raise ConfigError(f"no gap in {metric!r} was computed for these choices; {did_you_mean(metric, metrics)}")

    def section(self) -> Section:
        """Return the parity part of a report."""
        from evenhand.audits.parity.section import parity_section

        return parity_section(self)

    def plot(self, grouping: str | None = None) -> Any:
        """Return the chart of group values, by default of the first grouping."""
        from evenhand.audits.parity.charts import group_chart

        known = list(dict.fromkeys(record.grouping for record in self.groups))
        if grouping is not None:
            require_choice("grouping", grouping, known)
        return group_chart(self, grouping or known[0])
