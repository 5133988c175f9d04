"""The reliability findings: what is told of a gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.audits.reliability.metrics import METRICS, measures_harm
from evenhand.audits.reliability.noise import GroupNoise
from evenhand.audits.reliability.result import ReliabilityGap
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.families import Clarity
from evenhand.core.findings import Claim
from evenhand.core.groups import ComparedGroups
from evenhand.errors import all_of

SMALLEST_TOLD = 0.001
"""A smaller gap stands in the detail, not in the headline."""

SENTENCES = {
    "hurt_more": "{where}: mistakes hurt {lower} more; {title} is {size:unit} lower than for {higher}.",
    "hurt_slightly_more": (
        "{where}: mistakes hurt {lower} more; {title} is less than {least:unit} lower than for {higher}."
    ),
    "lower": "{where}: {title} is {size:unit} lower for {lower} than for {higher}.",
    "slightly_lower": "{where}: {title} is less than {least:unit} lower for {lower} than for {higher}.",
    "no_clear_difference": "{where}: no clear difference in {title} between {group} and {reference}.",
    "not_tested": "{where}: whether {title} differs between {group} and {reference} was not tested.",
    "same": "{where}: {title} is the same for {group} and {reference}.",
    "worst_pair": "{where}: of all pairs of groups, {title} differs most between {lower} and {higher}, by {size:unit}.",
    "no_pair_apart": "{where}: no pair of groups differs by {least:unit} or more in {title}.",
    "gap_undefined": "{where}: the gap in {title} between {group} and {reference} is undefined.",
}


def make_claims(
    gaps: Sequence[ReliabilityGap], groups: Sequence[ComparedGroups], spec: ReliabilitySpec
) -> Iterator[Claim]:
    """Yield what can be told: every gap averaged over noise levels. Those to the reference are told in any case."""
    levels = _levels(gaps)
    counts = _group_counts(gaps)
    unequal = _unequal_mistakes(groups, spec)
    for gap in gaps:
        if gap.noise_level is not None:
            continue
        compared = counts[gap.grouping]
        asides = " ".join(_asides(gap, levels.get(_place(gap), ""), unequal))
        yield Claim(
            records=(gap,),
            sentence_id=_sentence_id(gap, compared),
            when=_when(gap, compared, asides),
            undefined_id="gap_undefined" if gap.group is not None else None,
            arguments=_arguments(gap, spec),
            headline=gap.against == "reference" and gap.group is not None,
            aside=asides,
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


def _family(gap: ReliabilityGap, groups: int) -> str | None:
    if groups <= 2:
        return None
    return "all pairs of groups" if gap.against == "worst_pair" else all_of(groups - 1, "groups")


def _sentence_id(gap: ReliabilityGap, groups: int) -> str:
    """Return what is said beside a verdict: how large the gap is."""
    if not gap.value:
        return "same"
    small = abs(gap.value) < SMALLEST_TOLD
    if gap.against == "worst_pair" and groups > 2:
        return "no_pair_apart" if small else "worst_pair"
    return "slightly_lower" if small else "lower"


def _when(gap: ReliabilityGap, groups: int, aside: str) -> dict[Clarity, dict[str, str]]:
    """Return what is said of the gap alone: whom mistakes hurt more only where the metric is of nothing else."""
    if not gap.value or (gap.against == "worst_pair" and groups > 2):
        return {}
    plain = _sentence_id(gap, groups)
    clear = {"sentence_id": plain}
    if measures_harm(gap.metric):
        clear = {"sentence_id": "hurt_more" if plain == "lower" else "hurt_slightly_more"}
    else:
        moved = METRICS[gap.metric].moves_with
        clear["aside"] = f"{aside} {moved[:1].upper()}{moved[1:]}, so it does not say whom mistakes hurt more.".lstrip()
    unclear, untested = ({"sentence_id": name} for name in ("no_clear_difference", "not_tested"))
    if gap.least_shown is not None:
        least = f"with nobody of the smaller group hurt, it takes one above {gap.least_shown:.3f}."
        unclear["aside"] = f"{aside} So few people cannot show a small gap: {least}".lstrip()
        which = f"a gap below {gap.least_shown:.3f}" if gap.least_shown < 1 else "a gap"
        untested["aside"] = f"{aside} No test could show {which} with so few people, even if nobody were hurt.".lstrip()
    return {"clear": clear, "unclear": unclear, "untested": untested}


def _arguments(gap: ReliabilityGap, spec: ReliabilitySpec) -> Mapping[str, Any]:
    where = f"{gap.model}, by {gap.grouping}"
    if len(spec.noise.settings) > 1:
        where += f", noise {gap.setting}"
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


def _asides(gap: ReliabilityGap, levels: str, unequal: str) -> Iterator[str]:
    """Yield what belongs to a gap beside its size, interval and p-value."""
    if gap.value is not None:
        direction = f"{gap.group} minus {gap.reference}, on average" if gap.against == "reference" else "On average"
        yield f"{direction} over {levels}."
    if gap.status.startswith("unbounded above: "):
        yield f"{gap.status.removeprefix('unbounded above: ')}."
    if unequal:
        yield f"{unequal}: a gap can come from that alone, and need not be what the model makes of equal mistakes."


def _unequal_mistakes(groups: Sequence[ComparedGroups], spec: ReliabilitySpec) -> str:
    """Return by what people were given different mistakes, in words; empty where all go wrong alike."""
    for grouping, by_group in spec.noise.group_noise.items():
        labels = [label for compared in groups if compared.name == grouping for label in compared.groups]
        ways = [by_group.get(label, GroupNoise()) for label in dict.fromkeys((*labels, *by_group))]
        if any(way != ways[0] for way in ways):
            return f"By {grouping}, people were given different mistakes"
    if spec.noise.pilot is not None and spec.noise.pilot.by is not None:
        return f"Mistakes were learned apart by {spec.noise.pilot.by}"
    return ""


def _levels(gaps: Sequence[ReliabilityGap]) -> dict[tuple[str | None, ...], str]:
    """Return for each mean gap the noise levels that it is over, in words."""
    levels: dict[tuple[str | None, ...], set[float]] = {}
    for gap in gaps:
        if gap.noise_level is not None:
            levels.setdefault(_place(gap), set()).add(gap.noise_level)
    return {
        place: f"the noise level {max(over):g}"
        if len(over) == 1
        else f"{len(over)} noise levels from {min(over):g} to {max(over):g}"
        for place, over in levels.items()
    }
