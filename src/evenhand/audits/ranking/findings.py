"""The findings of the ranking audit: claims on gaps, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import comb

from evenhand.audits.ranking.messages import say
from evenhand.audits.ranking.metrics import METRICS
from evenhand.audits.ranking.result import RankingGap, RankingValue
from evenhand.audits.ranking.spec import RankingSpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Arguments, Claim, all_of_things
from evenhand.messages import Message
from evenhand.messages.shared import say as shared
from evenhand.messages.shared import speaker
from evenhand.stats.types import IntArray
from evenhand.table.roles import Roles
from evenhand.table.table import Table


def with_worse_off(gap: RankingGap, favourable: str | None) -> RankingGap:
    """Return a gap with the worse-off group: the lower one, or the higher one if a high rank is unfavourable."""
    is_known = favourable is not None and (favourable == "selected" or gap.metric != "pairwise_accuracy")
    if not gap.value or not is_known:
        return gap
    lower, higher = (gap.group, gap.reference) if gap.value < 0 else (gap.reference, gap.group)
    return replace(gap, worse_off=lower if favourable == "selected" else higher)


def make_claims(gaps: Sequence[Estimate[RankingGap]], values: Sequence[RankingValue], roles: Roles) -> Iterator[Claim]:
    """Yield a claim for every gap; the gaps of worst pairs are headlines."""
    by_group = {(r.model, r.grouping, r.group, r.metric): r.value for r in values}
    compared = [(gap.record.model, gap.record.grouping, gap.record.metric, gap.record.against) for gap in gaps]
    for estimate in gaps:
        gap = estimate.record
        groups = 1 + compared.count((gap.model, gap.grouping, gap.metric, "reference"))
        pairs = comb(groups, 2) if gap.against == "worst_pair" else 1
        yield Claim(
            estimates=(estimate,),
            sentence_id="two_values",
            when=_sentence_by_significance(gap, several=pairs > 1),
            arguments=_arguments(gap, by_group, roles),
            headline=gap.against == "worst_pair" and METRICS[gap.metric].headline,
            aside=say("same_lists", n=gap.lists) if gap.lists else None,
            family=all_of_things(pairs, "pairs") if pairs > 1 else None,
            pairs=pairs,
            named_by="limits",
            test_key=(gap.model, gap.grouping, gap.metric) if groups == 2 else None,
        )


def _sentence_by_significance(gap: RankingGap, *, several: bool) -> dict[Significance, dict[str, str]]:
    ids: dict[Significance, str] = {
        "directed": "two_values_differ" if gap.worse_off is None else "two_values_worse_off",
        "significant": "some_groups_differ" if several else "two_values_differ",
        "not_significant": "no_clear_difference",
        "untested": "not_tested",
    }
    return {significance: {"sentence_id": sentence} for significance, sentence in ids.items()}


def _arguments(
    gap: RankingGap,
    by_group: Mapping[tuple[str | None, str | None, str, str], float | None],
    roles: Roles,
) -> Arguments:
    place, model = shared("by", grouping=gap.grouping), str(gap.model)
    return {
        "where": shared("model_place", model=model, place=place),
        "place": place,
        "metric": gap.metric,
        "title": METRICS[gap.metric].title_in_sentence,
        "model": speaker(model, roles.predictions[model].selected_word, alone=len(roles.predictions) == 1),
        "group": gap.group,
        "group_value": by_group.get((gap.model, gap.grouping, gap.group or "", gap.metric)),
        "reference": gap.reference,
        "reference_value": by_group.get((gap.model, gap.grouping, gap.reference or "", gap.metric)),
        "worse_off": gap.worse_off,
    }


def ranking_notes(sizes: IntArray, table: Table, spec: RankingSpec) -> Iterator[Message]:
    """Yield the notes on the audit; `sizes` are the numbers of candidates per list."""
    yield say(
        "design",
        rows=int(sizes.sum()),
        lists=len(sizes),
        fewest=int(sizes.min()),
        most=int(sizes.max()),
        size=spec.size,
    )
    if short := int((sizes <= spec.size).sum()):
        yield say("short_lists", n=short, size=spec.size)
    if any(table.prediction(model).favourable is None for model in table.models):
        yield say("no_side")
