"""Means over lists, and differences within lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from evenhand.audits.ranking.messages import say
from evenhand.audits.ranking.metrics import METRICS
from evenhand.audits.ranking.ranks import RankedRows
from evenhand.audits.ranking.result import RankingGap, RankingValue, ShortlistRecord
from evenhand.audits.ranking.spec import RankingSpec
from evenhand.core.estimates import Estimate, estimates_at
from evenhand.core.groups import ComparedGroups
from evenhand.core.records import OK
from evenhand.messages.shared import say as shared
from evenhand.stats.intervals import bonferroni
from evenhand.stats.within_units import UnitMeans, UnitPair, largest_difference, mean_limits


def value_estimates(
    means: UnitMeans, model: str, grouping: str | None, groups: Sequence[str], metric: str, spec: RankingSpec
) -> list[Estimate[RankingValue]]:
    """Return each group's mean over lists, with limits at any confidence."""
    is_share = METRICS[metric].unit == "share"

    def at(confidence: float) -> Iterator[RankingValue]:
        for position, group in enumerate(groups):
            of_lists = means.values(position)
            if not of_lists.size:
                continue
            low, high = mean_limits(of_lists, is_share, confidence)
            joint_low, joint_high = mean_limits(of_lists, is_share, bonferroni(confidence, len(groups)))
            why = say("one_list" if len(of_lists) < 2 else "all_alike")
            yield RankingValue(
                model=model,
                grouping=grouping,
                group=group,
                metric=metric,
                n=int(means.n[:, position].sum()),
                value=float(of_lists.mean()),
                low=low,
                high=high,
                joint_low=joint_low,
                joint_high=joint_high,
                lists=len(of_lists),
                status=OK if high is not None else shared("no_interval", why=why),
            )

    return estimates_at(at, spec.confidence, lambda record: record.group)


def gap_estimates(
    means: UnitMeans, model: str, grouping: ComparedGroups, metric: str, spec: RankingSpec
) -> list[Estimate[RankingGap]]:
    """Return the worst pair's gap, and the gap of each group to the reference."""
    pairs = [means.pair(a, b) for a, b in combinations(range(len(grouping.groups)), 2)]
    tested = [pair for pair in pairs if pair.units >= spec.min_count]
    to_reference = [means.pair(group, grouping.reference) for group in grouping.others]
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

    def at(confidence: float) -> Iterator[RankingGap]:
        if tested:
            worst = largest_difference(tested, confidence)
            gap = _gap(worst.pair, undefined, grouping, (confidence, confidence), spec)
            low, high = worst.low, worst.high
            yield replace(gap, low=low, high=high, joint_low=low, joint_high=high, p_value=worst.p_value)
        else:
            yield undefined
        for pair in to_reference:
            levels = confidence, bonferroni(confidence, len(to_reference))
            yield _gap(pair, replace(undefined, against="reference"), grouping, levels, spec)

    return estimates_at(at, spec.confidence, lambda gap: (gap.against, gap.group, gap.reference))


def _gap(
    pair: UnitPair, undefined: RankingGap, grouping: ComparedGroups, levels: tuple[float, float], spec: RankingSpec
) -> RankingGap:
    """Return the gap of a pair, with individual limits and limits simultaneous over all gaps."""
    compared = pair.comparison if pair.units >= spec.min_count else None
    few = say("few_lists", n=pair.units, least=spec.min_count)
    own, joint = ((None, None) if compared is None else compared.limits(level) for level in levels)
    return replace(
        undefined,
        group=grouping.groups[pair.a],
        reference=grouping.groups[pair.b],
        n=pair.n,
        value=None if pair.comparison is None else pair.comparison.mean,
        low=own[0],
        high=own[1],
        joint_low=joint[0],
        joint_high=joint[1],
        p_value=None if compared is None else compared.p_value,
        lists=pair.units,
        status=OK if compared is not None else shared("no_interval" if pair.units else "undefined", why=few),
    )


def shortlist_records(
    ranked: RankedRows, grouping: ComparedGroups, model: str, spec: RankingSpec
) -> Iterator[ShortlistRecord]:
    """Yield each group's share among the first k of a list, for every k up to the shortlist's size.

    The limits hold for all k and groups together (Bonferroni).
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
