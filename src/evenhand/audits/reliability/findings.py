"""The findings of the reliability audit: claims on gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.metrics import METRICS, headline_metric, measures_harm
from evenhand.audits.reliability.noise import GroupNoise
from evenhand.audits.reliability.result import ReliabilityGap
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Arguments, Claim, all_of_things, join_sentences, without_kind
from evenhand.core.groups import ComparedGroups
from evenhand.messages import Message
from evenhand.messages.shared import say as shared

SMALLEST_TOLD = 0.001
"""The smallest gap whose size is stated in the headline; smaller gaps are stated in the detail."""


def make_claims(
    gaps: Sequence[Estimate[ReliabilityGap]], groups: Sequence[ComparedGroups], spec: ReliabilitySpec
) -> Iterator[Claim]:
    """Yield a claim for every gap averaged over noise levels.

    Claims on gaps of one metric to the reference are headlines.
    """
    records = [estimate.record for estimate in gaps]
    levels = _levels(records)
    counts = _group_counts(records)
    unequal, told = _unequal_mistakes(groups, spec), headline_metric(spec.metrics)
    for estimate in gaps:
        gap = estimate.record
        if gap.noise_level is not None:
            continue
        compared = counts[gap.grouping]
        asides = list(_asides(gap, levels.get(_gap_arguments(gap)), unequal, spec.seed))
        yield Claim(
            estimates=(estimate,),
            sentence_id=_sentence_id(gap, compared),
            when=_sentence_by_significance(gap, compared, asides),
            undefined_id="gap_undefined" if gap.group is not None else None,
            arguments=_arguments(gap, spec),
            headline=gap.metric == told and gap.against == "reference" and gap.group is not None,
            aside=join_sentences(asides),
            condition=_condition(gap),
            family=_family(gap, compared),
            key=_gap_arguments(gap) if compared == 2 else None,
        )


def _gap_arguments(gap: ReliabilityGap) -> tuple[str | None, ...]:
    return gap.model, gap.setting, gap.grouping, gap.metric


def _group_counts(gaps: Sequence[ReliabilityGap]) -> dict[str | None, int]:
    """Return the number of compared groups in each grouping."""
    others: dict[str | None, set[str | None]] = {}
    for gap in gaps:
        if gap.against == "reference":
            others.setdefault(gap.grouping, set()).add(gap.group)
    return {grouping: 1 + len(labels - {None}) for grouping, labels in others.items()}


def _family(gap: ReliabilityGap, groups: int) -> Message | None:
    if groups <= 2:
        return None
    return shared("all_pairs") if gap.against == "worst_pair" else all_of_things(groups - 1, "groups")


def _sentence_id(gap: ReliabilityGap, groups: int) -> str:
    """Return the id of the sentence that describes the size of the gap."""
    if not gap.value:
        return "same"
    small = abs(gap.value) < SMALLEST_TOLD
    if gap.against == "worst_pair" and groups > 2:
        return "no_pair_apart" if small else "worst_pair"
    return "slightly_lower" if small else "lower"


def _sentence_by_significance(
    gap: ReliabilityGap, groups: int, asides: Sequence[Message]
) -> dict[Significance, dict[str, str | Message | None]]:
    """Return the sentence for each significance; "hurt more" only for metrics of nothing but harm."""
    if not gap.value or (gap.against == "worst_pair" and groups > 2):
        return {}
    plain = _sentence_id(gap, groups)
    clear: dict[str, str | Message | None] = {"sentence_id": plain}
    if measures_harm(gap.metric):
        clear = {"sentence_id": "hurt_more" if plain == "lower" else "hurt_slightly_more"}
    else:
        clear["aside"] = join_sentences([*asides, say(f"moves_{gap.metric}")])
    unclear: dict[str, str | Message | None] = {"sentence_id": "no_clear_difference"}
    untested: dict[str, str | Message | None] = {"sentence_id": "not_tested"}
    return {"significant": clear, "not_significant": unclear, "untested": untested}


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


def _condition(gap: ReliabilityGap) -> Message | None:
    """Return the caveat if few people determine the limits, or None."""
    few = gap.rests_on in ("bounds", "few people")
    return say(f"rests_on_{str(gap.rests_on).replace(' ', '_')}") if few else None


def _asides(gap: ReliabilityGap, levels: Message | None, unequal: Message | None, seed: int) -> Iterator[Message]:
    """Yield sentences that accompany a gap's size, interval and p-value."""
    if gap.value is not None:
        pair = gap.against == "reference"
        words = {"group": gap.group, "reference": gap.reference} if pair else {}
        yield say("mean_of_pair" if pair else "mean", **words, levels=levels, seed=seed)
    if gap.status.id == "core.unbounded_above":
        yield shared("sentence", text=without_kind(gap.status))
    if unequal is not None:
        yield say("unequal_mistakes", how=unequal)


def _unequal_mistakes(groups: Sequence[ComparedGroups], spec: ReliabilitySpec) -> Message | None:
    """Return a clause on mistakes that differed by group, or None if they were equal."""
    for grouping, by_group in spec.noise.group_noise.items():
        labels = [label for compared in groups if compared.name == grouping for label in compared.groups]
        profiles = [by_group.get(label, GroupNoise()) for label in dict.fromkeys((*labels, *by_group))]
        if any(profile != profiles[0] for profile in profiles):
            return say("given_apart", grouping=grouping)
    if spec.noise.pilot is not None and spec.noise.pilot.by is not None:
        return say("learned_apart", grouping=spec.noise.pilot.by)
    return None


def _levels(gaps: Sequence[ReliabilityGap]) -> dict[tuple[str | None, ...], Message]:
    """Return a description of the noise levels behind each mean gap."""
    levels: dict[tuple[str | None, ...], set[float]] = {}
    for gap in gaps:
        if gap.noise_level is not None:
            levels.setdefault(_gap_arguments(gap), set()).add(gap.noise_level)
    return {
        key: say("one_level", level=max(over))
        if len(over) == 1
        else say("several_levels", number=len(over), low=min(over), high=max(over))
        for key, over in levels.items()
    }
