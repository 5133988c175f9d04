"""The findings of the classes audit: claims on gaps, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb

from evenhand.audits.classes.gather import Classified
from evenhand.audits.classes.messages import say
from evenhand.audits.classes.metrics import METRICS
from evenhand.audits.classes.result import ClassesGap, ClassesValue
from evenhand.audits.classes.spec import ClassesSpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Arguments, Claim, all_of_things
from evenhand.messages import Message
from evenhand.messages.shared import say as shared

_Values = Mapping[tuple[str | None, str, str, str], float | None]


def make_claims(
    gaps: Sequence[Estimate[ClassesGap]], values: Sequence[ClassesValue], sizes: Mapping[str, int]
) -> Iterator[Claim]:
    """Yield a claim for every gap, worst pairs as headlines; `sizes` are the numbers of groups by grouping."""
    by_group = {(r.grouping, r.group, r.metric, r.label): r.value for r in values}
    for estimate in gaps:
        gap = estimate.record
        groups = sizes[str(gap.grouping)]
        pairs = comb(groups, 2) if gap.against == "worst_pair" else 1
        dominance = gap.metric == "dominance"
        yield Claim(
            estimates=(estimate,),
            sentence_id="dominance" if dominance else "two_values",
            undefined_id="dominance_undefined" if dominance else None,
            when=_sentence_by_significance(gap, several=pairs > 1),
            arguments=_arguments(gap, by_group),
            headline=gap.against == "worst_pair" and METRICS[gap.metric].headline,
            family=all_of_things(pairs, "pairs") if pairs > 1 else None,
            pairs=pairs,
            named_by="limits",
            one_sided=not dominance,
            test_key=(gap.grouping, gap.metric, gap.label) if groups == 2 else None,
        )


def _sentence_by_significance(gap: ClassesGap, *, several: bool) -> dict[Significance, dict[str, str]]:
    if gap.metric == "dominance":
        some = "dominance_some" if several else "dominance"
        ids: dict[Significance, str] = {
            "directed": "dominance",
            "significant": some,
            "not_significant": "dominance_unclear",
            "untested": "dominance_untested",
        }
        return {significance: {"sentence_id": sentence} for significance, sentence in ids.items()}
    ids = {
        "directed": "two_values_differ" if gap.worse_off is None else "two_values_worse_off",
        "significant": "some_groups_differ" if several else "two_values_differ",
        "not_significant": "no_clear_difference",
        "untested": "not_tested",
    }
    return {significance: {"sentence_id": sentence} for significance, sentence in ids.items()}


def _arguments(gap: ClassesGap, by_group: _Values) -> Arguments:
    place, is_lower = shared("by", grouping=gap.grouping), (gap.value or 0.0) < 0
    values = {
        side: by_group.get((gap.grouping, name or "", gap.metric, gap.label or ""))
        for side, name in (("group_value", gap.group), ("reference_value", gap.reference))
    }
    return {
        "where": place,
        "place": place,
        "metric": gap.metric,
        "title": METRICS[gap.metric].title_in_sentence,
        "label": gap.label,
        "group": gap.group,
        "reference": gap.reference,
        "higher": gap.reference if is_lower else gap.group,
        "lower": gap.group if is_lower else gap.reference,
        "size": None if gap.value is None else abs(gap.value),
        "worse_off": gap.worse_off,
        **values,
    }


def classes_notes(people: Classified, spec: ClassesSpec) -> Iterator[Message]:
    """Yield the notes of the audit."""
    yield say("classes", labels=people.labels)
    if spec.order is None:
        yield say("no_order")
