"""The reliability findings: what is told of a gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.metrics import METRICS, measures_harm
from evenhand.audits.reliability.noise import GroupNoise
from evenhand.audits.reliability.result import ReliabilityGap
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Clarity
from evenhand.core.findings import Arguments, Claim, all_together, in_one, without_kind
from evenhand.core.groups import ComparedGroups
from evenhand.messages import Message
from evenhand.messages.shared import say as shared

SMALLEST_TOLD = 0.001
"""A smaller gap stands in the detail, not in the headline."""


def make_claims(
    gaps: Sequence[Estimate[ReliabilityGap]], groups: Sequence[ComparedGroups], spec: ReliabilitySpec
) -> Iterator[Claim]:
    """Yield what can be told: every gap averaged over noise levels. Those to the reference are told in any case."""
    records = [estimate.record for estimate in gaps]
    levels = _levels(records)
    counts = _group_counts(records)
    unequal = _unequal_mistakes(groups, spec)
    for estimate in gaps:
        gap = estimate.record
        if gap.noise_level is not None:
            continue
        compared = counts[gap.grouping]
        asides = list(_asides(gap, levels.get(_place(gap)), unequal))
        yield Claim(
            estimates=(estimate,),
            sentence_id=_sentence_id(gap, compared),
            when=_when(gap, compared, asides),
            undefined_id="gap_undefined" if gap.group is not None else None,
            arguments=_arguments(gap, spec),
            headline=gap.against == "reference" and gap.group is not None,
            aside=in_one(asides),
            family=_family(gap, compared),
            key=_place(gap) if compared == 2 else None,
        )


def _place(gap: ReliabilityGap) -> tuple[str | None, ...]:
    return gap.model, gap.setting, gap.grouping, gap.metric


def _group_counts(gaps: Sequence[ReliabilityGap]) -> dict[str | None, int]:
    """Return how many groups each grouping compares."""
    others: dict[str | None, set[str | None]] = {}
    for gap in gaps:
        if gap.against == "reference":
            others.setdefault(gap.grouping, set()).add(gap.group)
    return {grouping: 1 + len(labels - {None}) for grouping, labels in others.items()}


def _family(gap: ReliabilityGap, groups: int) -> Message | None:
    if groups <= 2:
        return None
    return shared("all_pairs") if gap.against == "worst_pair" else all_together(groups - 1, "groups")


def _sentence_id(gap: ReliabilityGap, groups: int) -> str:
    """Return what is said beside a verdict: how large the gap is."""
    if not gap.value:
        return "same"
    small = abs(gap.value) < SMALLEST_TOLD
    if gap.against == "worst_pair" and groups > 2:
        return "no_pair_apart" if small else "worst_pair"
    return "slightly_lower" if small else "lower"


def _when(
    gap: ReliabilityGap, groups: int, asides: Sequence[Message]
) -> dict[Clarity, dict[str, str | Message | None]]:
    """Return what is said of the gap alone: whom mistakes hurt more only where the metric is of nothing else."""
    if not gap.value or (gap.against == "worst_pair" and groups > 2):
        return {}
    plain = _sentence_id(gap, groups)
    clear: dict[str, str | Message | None] = {"sentence_id": plain}
    if measures_harm(gap.metric):
        clear = {"sentence_id": "hurt_more" if plain == "lower" else "hurt_slightly_more"}
    else:
        clear["aside"] = in_one([*asides, say(f"moves_{gap.metric}")])
    unclear: dict[str, str | Message | None] = {"sentence_id": "no_clear_difference"}
    untested: dict[str, str | Message | None] = {"sentence_id": "not_tested"}
    if gap.least_shown is not None:
        unclear["aside"] = in_one([*asides, say("few_people_show", least=gap.least_shown)])
        none = "few_people_show_none_below" if gap.least_shown < 1 else "few_people_show_none"
        untested["aside"] = in_one([*asides, say(none, least=gap.least_shown)])
    return {"clear": clear, "unclear": unclear, "untested": untested}


def _arguments(gap: ReliabilityGap, spec: ReliabilitySpec) -> Arguments:
    where = shared("model_place", model=gap.model, place=shared("by", grouping=gap.grouping))
    if len(spec.noise.settings) > 1:
        where = say("noise_place", place=where, setting=gap.setting)
    value = gap.value or 0.0
    lower, higher = (gap.group, gap.reference) if value < 0 else (gap.reference, gap.group)
    return {
        "where": where,
        "title": METRICS[gap.metric].title_in_sentence,
        "group": gap.group,
        "reference": gap.reference,
        "lower": lower,
        "higher": higher,
        "size": abs(value),
        "least": SMALLEST_TOLD,
    }


def _asides(gap: ReliabilityGap, levels: Message | None, unequal: Message | None) -> Iterator[Message]:
    """Yield what belongs to a gap beside its size, interval and p-value."""
    if gap.value is not None:
        pair = gap.against == "reference"
        words = {"group": gap.group, "reference": gap.reference} if pair else {}
        yield say("mean_of_pair" if pair else "mean", **words, levels=levels)
    if gap.status.id == "core.unbounded_above":
        yield shared("sentence", text=without_kind(gap.status))
    if unequal is not None:
        yield say("unequal_mistakes", how=unequal)


def _unequal_mistakes(groups: Sequence[ComparedGroups], spec: ReliabilitySpec) -> Message | None:
    """Return by what people were given different mistakes; None where all go wrong alike."""
    for grouping, by_group in spec.noise.group_noise.items():
        labels = [label for compared in groups if compared.name == grouping for label in compared.groups]
        ways = [by_group.get(label, GroupNoise()) for label in dict.fromkeys((*labels, *by_group))]
        if any(way != ways[0] for way in ways):
            return say("given_apart", grouping=grouping)
    if spec.noise.pilot is not None and spec.noise.pilot.by is not None:
        return say("learned_apart", grouping=spec.noise.pilot.by)
    return None


def _levels(gaps: Sequence[ReliabilityGap]) -> dict[tuple[str | None, ...], Message]:
    """Return for each mean gap the noise levels that it is over."""
    levels: dict[tuple[str | None, ...], set[float]] = {}
    for gap in gaps:
        if gap.noise_level is not None:
            levels.setdefault(_place(gap), set()).add(gap.noise_level)
    return {
        place: say("one_level", level=max(over))
        if len(over) == 1
        else say("several_levels", number=len(over), low=min(over), high=max(over))
        for place, over in levels.items()
    }
