"""The findings of the paired tests: claims on gaps, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb

from evenhand.audits.paired.gather import Answers
from evenhand.audits.paired.messages import say
from evenhand.audits.paired.metrics import METRICS
from evenhand.audits.paired.result import PairedGap, PairedValue, PlaceboRecord
from evenhand.audits.paired.spec import PairedSpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Arguments, Claim, all_of_things, join_sentences
from evenhand.messages import Message
from evenhand.messages.shared import say as shared

_HARDLY = 0.5
"""The between-template share of the variance above which more repetitions would hardly narrow the interval."""


def make_claims(
    gaps: Sequence[Estimate[PairedGap]],
    values: Sequence[PairedValue],
    placebos: Sequence[PlaceboRecord],
    sizes: Mapping[str, int],
    spec: PairedSpec,
) -> Iterator[Claim]:
    """Yield a claim for every gap, worst pairs as headlines; `sizes` are the numbers of groups by grouping."""
    by_group = {(record.grouping, record.group, record.metric): record.value for record in values}
    for estimate in gaps:
        gap = estimate.record
        pairs = comb(sizes[str(gap.grouping)], 2) if gap.against == "worst_pair" else 1
        yield Claim(
            estimates=(estimate,),
            sentence_id="two_values",
            when=_sentence_by_significance(gap, several=pairs > 1),
            arguments=_arguments(gap, by_group),
            headline=gap.against == "worst_pair" and METRICS[gap.metric].headline,
            aside=_aside(gap),
            condition=placebo_failure(placebos, gap.metric, spec),
            family=all_of_things(pairs, "pairs") if pairs > 1 else None,
            pairs=pairs,
            named_by="limits",
            test_key=(gap.grouping, gap.metric) if sizes[str(gap.grouping)] == 2 else None,
        )


def _sentence_by_significance(gap: PairedGap, *, several: bool) -> dict[Significance, dict[str, str]]:
    ids: dict[Significance, str] = {
        "directed": "two_values_differ" if gap.worse_off is None else "two_values_worse_off",
        "significant": "some_groups_differ" if several else "two_values_differ",
        "not_significant": "no_clear_difference",
        "untested": "not_tested",
    }
    return {significance: {"sentence_id": sentence} for significance, sentence in ids.items()}


def _arguments(gap: PairedGap, by_group: Mapping[tuple[str | None, str, str], float | None]) -> Arguments:
    place = shared("by", grouping=gap.grouping)
    return {
        "where": place,
        "place": place,
        "metric": gap.metric,
        "title": METRICS[gap.metric].title_in_sentence,
        "group": gap.group,
        "group_value": by_group.get((gap.grouping, gap.group or "", gap.metric)),
        "reference": gap.reference,
        "reference_value": by_group.get((gap.grouping, gap.reference or "", gap.metric)),
        "worse_off": gap.worse_off,
    }


def _aside(gap: PairedGap) -> Message | None:
    """Describe the number of templates, the sources of variation, and ways to narrow the interval."""
    if not gap.templates:
        return None
    parts = [say("same_templates", n=gap.templates)]
    if gap.template_share is not None:
        style = METRICS[gap.metric].style()
        parts.append(say("spread", template=gap.template_sd, replicate=gap.replicate_sd, unit=style))
        parts.append(say("more_templates" if gap.template_share > _HARDLY else "more_repetitions"))
    return join_sentences(parts)


def placebo_failure(placebos: Sequence[PlaceboRecord], metric: str, spec: PairedSpec) -> Message | None:
    """Return a message on the largest significant effect of a placebo on a metric, or None."""
    failed = [
        record
        for record in placebos
        if record.metric == metric and record.p_adjusted is not None and record.p_adjusted <= spec.finding_alpha
    ]
    if not failed:
        return None
    worst = max(failed, key=lambda record: abs(record.value or 0.0))
    style = METRICS[metric].style("difference", signed=True)
    return say(
        "placebo_failed",
        column=worst.placebo,
        first=worst.first,
        second=worst.second,
        value=worst.value,
        unit=style,
    )


def paired_notes(
    answers: Answers, placebos: Sequence[PlaceboRecord], cells: tuple[int, int], spec: PairedSpec
) -> Iterator[Message]:
    """Yield the notes; `cells` are the smallest and largest number of answers for a template and group."""
    fewest, most = cells
    templates = int(answers.template.max()) + 1
    uneven = {"most": most} if fewest < most else {}
    design = "design_uneven" if uneven else "design"
    yield say(design, answers=len(answers.template), templates=templates, fewest=fewest, **uneven)
    if answers.passes is not None:
        yield say("passes", value=answers.passes)
    if answers.refused.any():
        yield say("refusals", n=int(answers.refused.sum()))
    if spec.favourable is None:
        yield say("no_side")
    if placebos and placebo_failure(placebos, placebos[0].metric, spec) is None:
        yield say("placebo_held", n=len(answers.placebos), columns=tuple(answers.placebos))
