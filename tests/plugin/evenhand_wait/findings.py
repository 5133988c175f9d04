"""What is told of waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.core.findings import Claim
from evenhand_wait.metrics import METRICS
from evenhand_wait.result import WaitGap, WaitValue

SENTENCES = {
    "waited": "{where}: {group} waited {group_value:unit} days on average and {reference} {reference_value:unit}."
}


def make_claims(values: Sequence[WaitValue], gaps: Sequence[WaitGap]) -> Iterator[Claim]:
    """Yield what can be told: the mean of everybody, and every gap."""
    title = METRICS["mean_wait"].title_in_sentence
    by_group = {(value.grouping, value.group): value.value for value in values}
    for value in values:
        where = {"where": "Everybody" if value.grouping is None else value.group, "title": title}
        yield Claim(records=(value,), sentence_id="value", arguments={**where, "value": value.value})
    for gap in gaps:
        yield Claim(
            records=(gap,),
            sentence_id="waited",
            arguments={
                "where": f"By {gap.grouping}",
                "title": title,
                "group": gap.group,
                "group_value": by_group.get((gap.grouping, gap.group or "")),
                "reference": gap.reference,
                "reference_value": by_group.get((gap.grouping, gap.reference or "")),
            },
            headline=gap.against == "worst_pair" and gap.value is not None,
        )
