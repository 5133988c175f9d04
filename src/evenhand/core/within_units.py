"""Records of groups' values and gaps within units such as templates or lists, which contain several groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

from evenhand.core.estimates import Estimate, estimates_at
from evenhand.core.groups import ComparedGroups
from evenhand.core.records import OK, Gap, Value
from evenhand.messages import Message
from evenhand.messages.shared import say
from evenhand.stats.intervals import bonferroni
from evenhand.stats.within_units import UnitMeans, UnitPair, largest_difference, mean_limits

V = TypeVar("V", bound=Value)
G = TypeVar("G", bound=Gap)


def values_within_units(
    means: UnitMeans,
    groups: Sequence[str],
    empty: V,
    confidence: float,
    *,
    is_share: bool,
    complete: Callable[[V, int], V],
    why_no_limits: Callable[[int], Message],
) -> list[Estimate[V]]:
    """Return each group's mean over the units, with limits at any confidence.

    Parameters
    ----------
    means, groups : the means by unit and group, and the names of the groups.
    empty : a record with the common coordinates of all values.
    confidence : the confidence of the audit.
    is_share : whether the values are shares.
    complete : the function that adds the audit's own columns to a record, from the number of units.
    why_no_limits : the function from the number of units to the reason for missing limits.
    """

    def at(level: float) -> Iterator[V]:
        for position, group in enumerate(groups):
            of_units = means.values(position)
            if not of_units.size:
                continue
            low, high = mean_limits(of_units, is_share, level)
            joint_low, joint_high = mean_limits(of_units, is_share, bonferroni(level, len(groups)))
            no_limits = say("no_interval", why=why_no_limits(of_units.size)) if high is None else OK
            record = replace(
                empty,
                group=group,
                n=int(means.n[:, position].sum()),
                value=float(of_units.mean()),
                low=low,
                high=high,
                joint_low=joint_low,
                joint_high=joint_high,
                status=no_limits,
            )
            yield complete(record, of_units.size)

    return estimates_at(at, confidence, lambda record: record.group)


def gaps_within_units(
    means: UnitMeans,
    grouping: ComparedGroups,
    undefined: G,
    confidence: float,
    *,
    least: int,
    complete: Callable[[G, UnitPair], G],
    few: Callable[[int], Message],
) -> list[Estimate[G]]:
    """Return the worst pair's gap, and each group's gap to the reference, with limits at any confidence.

    Parameters
    ----------
    means, grouping : the means by unit and group, and the groups.
    undefined : a record with the common coordinates of all gaps, and the status of an undefined worst pair.
    confidence : the confidence of the audit.
    least : the minimum number of common units of two tested groups.
    complete : the function that adds the audit's own columns to the record of a pair.
    few : the function from the number of units to the reason for a missing test.
    """
    pairs = [means.pair(a, b) for a, b in combinations(range(len(grouping.groups)), 2)]
    tested = [pair for pair in pairs if pair.units >= least]
    to_reference = [means.pair(group, grouping.reference) for group in grouping.others]

    def gap(pair: UnitPair, empty: G, level: float, joint_level: float) -> G:
        compared = pair.comparison if pair.units >= least else None
        own, joint = ((None, None) if compared is None else compared.limits(each) for each in (level, joint_level))
        why = say("no_interval" if pair.units else "undefined", why=few(pair.units))
        record = replace(
            empty,
            group=grouping.groups[pair.a],
            reference=grouping.groups[pair.b],
            n=pair.n,
            value=None if pair.comparison is None else pair.comparison.mean,
            low=own[0],
            high=own[1],
            joint_low=joint[0],
            joint_high=joint[1],
            p_value=None if compared is None else compared.p_value,
            status=why if compared is None else OK,
        )
        return complete(record, pair)

    def at(level: float) -> Iterator[G]:
        if tested:
            worst = largest_difference(tested, level)
            low, high = worst.low, worst.high
            found = gap(worst.pair, undefined, level, level)
            yield replace(found, low=low, high=high, joint_low=low, joint_high=high, p_value=worst.p_value)
        else:
            yield undefined
        for pair in to_reference:
            yield gap(pair, replace(undefined, against="reference"), level, bonferroni(level, len(to_reference)))

    return estimates_at(at, confidence, lambda record: (record.against, record.group, record.reference))
