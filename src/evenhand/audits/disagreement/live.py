"""Live gaps of critics while answers arrive, without findings and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.audits.disagreement.estimate import gap_estimates
from evenhand.audits.disagreement.gather import gather
from evenhand.audits.disagreement.groups import answer_set, find_groupings
from evenhand.audits.disagreement.metrics import METRICS, computed_metrics
from evenhand.audits.disagreement.result import DisagreementGap
from evenhand.audits.disagreement.spec import DisagreementSpec
from evenhand.core.live import Live
from evenhand.table.table import Table


class DisagreementLive:
    """The gaps of the metrics of fairness while answers arrive."""

    def titles(self) -> list[str]:
        """Return the titles of the headline metrics."""
        return [METRICS[metric].title for metric in computed_metrics(0)]

    def gaps(self, cases: Table, settings: Mapping[str, Any]) -> Iterator[tuple[str, DisagreementGap]]:
        """Yield the gaps of every grouping with the titles of their metrics."""
        spec = DisagreementSpec.parse(settings, "the live estimates")
        panel = gather(cases, spec)
        for number, grouping in enumerate(find_groupings(cases, panel, spec.min_count)):
            gaps, _ = gap_estimates(answer_set(panel, grouping), computed_metrics(0), spec, 2, number, 0)
            yield from ((METRICS[gap.metric].title, gap) for gap in (e.record for e in gaps) if gap.same_as is None)


LIVE: Live = DisagreementLive()
"""The disagreement audit's live estimates."""
