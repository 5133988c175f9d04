"""Means over lists, and differences within lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evenhand.audits.ranking.messages import say
from evenhand.audits.ranking.metrics import METRICS
from evenhand.audits.ranking.ranks import RankedRows
from evenhand.audits.ranking.result import RankingGap, RankingValue, ShortlistRecord
from evenhand.audits.ranking.spec import RankingSpec
from evenhand.core.estimates import Estimate
from evenhand.core.groups import ComparedGroups
from evenhand.core.within_units import gaps_within_units, values_within_units
from evenhand.messages.shared import say as shared
from evenhand.stats.intervals import bonferroni
from evenhand.stats.within_units import UnitMeans, mean_limits


def value_estimates(
    means: UnitMeans, model: str, grouping: str | None, groups: Sequence[str], *, metric: str, spec: RankingSpec
) -> list[Estimate[RankingValue]]:
    """Return each group's mean over lists, with limits at any confidence."""
    empty = RankingValue(model=model, grouping=grouping, metric=metric, n=0, value=None, lists=0)
    return values_within_units(
        means,
        groups,
        empty,
        spec.confidence,
        is_share=METRICS[metric].unit == "share",
        complete=lambda record, lists: replace(record, lists=lists),
        why_no_limits=lambda lists: say("one_list" if lists < 2 else "all_alike"),
    )


def gap_estimates(
    means: UnitMeans, model: str, grouping: ComparedGroups, metric: str, spec: RankingSpec
) -> list[Estimate[RankingGap]]:
    """Return the worst pair's gap, and the gap of each group to the reference."""
    undefined = RankingGap(
        model=model,
        grouping=grouping.name,
        metric=metric,
        kind="difference",
        against="worst_pair",
        n=int(sum(grouping.sizes)),
        value=None,
        status=shared("undefined", why=shared("two_groups_needed", least=spec.min_count)),
    )
    return gaps_within_units(
        means,
        grouping,
        undefined,
        spec.confidence,
        least=spec.min_count,
        complete=lambda record, pair: replace(record, lists=pair.units),
        few=lambda lists: say("few_lists", n=lists, least=spec.min_count),
    )


def shortlist_records(
    ranked: RankedRows, grouping: ComparedGroups, model: str, spec: RankingSpec
) -> Iterator[ShortlistRecord]:
    """Yield each group's share among the first k of a list, for every k up to the shortlist's size.

    The limits are simultaneous over all k and groups (Bonferroni).
    """
    confidence = bonferroni(spec.confidence, spec.size * max(len(grouping.groups), 1))
    for k in range(1, spec.size + 1):
        means = UnitMeans.build(ranked.query, grouping.code, len(grouping.groups), ranked.shortlisted(k), 1.0)
        for position, group in enumerate(grouping.groups):
            of_lists = means.values(position)
            if of_lists.size:
                low, high = mean_limits(of_lists, True, confidence)
                yield ShortlistRecord(
                    model=model,
                    grouping=grouping.name,
                    group=group,
                    k=k,
                    lists=len(of_lists),
                    n=int(means.n[:, position].sum()),
                    value=float(of_lists.mean()),
                    low=low,
                    high=high,
                )
