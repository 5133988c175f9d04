"""What is told of waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.core.estimates import Estimate
from evenhand.core.findings import Claim
from evenhand_wait.messages import say
from evenhand_wait.metrics import METRICS
from evenhand_wait.result import WaitGap, WaitValue
from evenhand_wait.spec import WaitSpec


def make_claims(
    values: Sequence[Estimate[WaitValue]], gaps: Sequence[Estimate[WaitGap]], long: dict[str, int], spec: WaitSpec
) -> Iterator[Claim]:
    """Yield what can be told: the mean of everybody, and every gap."""
    title = METRICS["mean_wait"].title_in_sentence
    by_group = {(one.record.grouping, one.record.group): one.record.value for one in values}
    for estimate in values:
        value = estimate.record
        where = say("everybody") if value.grouping is None else value.group
        arguments = {"where": where, "title": title, "value": value.value}
        yield Claim(estimates=(estimate,), sentence_id="value", arguments=arguments)
    for compared in gaps:
        gap = compared.record
        yield Claim(
            estimates=(compared,),
            sentence_id="waited",
            arguments={
                "where": say("by", grouping=gap.grouping),
                "title": title,
                "group": gap.group,
                "group_value": by_group.get((gap.grouping, gap.group or "")),
                "reference": gap.reference,
                "reference_value": by_group.get((gap.grouping, gap.reference or "")),
            },
            headline=gap.against == "worst_pair" and gap.value is not None,
            aside=say("also_long", n=long[gap.group], days=spec.long, group=gap.group) if gap.group in long else None,
        )
