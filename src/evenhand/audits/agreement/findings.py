"""The findings of the agreement audit: claims on raters and gaps, and notes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb

import numpy as np

from evenhand.audits.agreement.estimate import groupings_of_two
from evenhand.audits.agreement.gather import RatedPeople
from evenhand.audits.agreement.messages import say
from evenhand.audits.agreement.metrics import AgreementMetric
from evenhand.audits.agreement.result import AgreementGap, AgreementValue
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.estimates import Estimate
from evenhand.core.families import Significance
from evenhand.core.findings import Arguments, Claim, all_of_things, join_sentences, without_kind
from evenhand.core.groups import ComparedGroups
from evenhand.messages import Argument, Message

Metrics = Mapping[str, AgreementMetric]
_Values = Mapping[tuple[str | None, str, str], float | None]

SAME = 1e-12
"""The difference below which values are equal up to rounding."""


def make_claims(
    values: Sequence[Estimate[AgreementValue]],
    gaps: Sequence[Estimate[AgreementGap]],
    metrics: Metrics,
    raters: int,
    spec: AgreementSpec,
) -> Iterator[Claim]:
    """Yield claims on the overall agreement and on every gap.

    With two groups, the worst pair is the gap to the reference group, which gives only one claim.
    """
    everybody = [estimate for estimate in values if estimate.record.grouping is None]
    headline_names = {metric for each in everybody if is_headline(metrics[metric := each.record.metric], spec)}
    yield from _value_claims(everybody, headline_names, metrics, raters)
    records = [estimate.record for estimate in values]
    by_group = {(record.grouping, record.group, record.metric): record.value for record in records}
    yield from _gap_claims(gaps, headline_names, by_group, metrics)


def _gap_claims(
    gaps: Sequence[Estimate[AgreementGap]], headline_names: Collection[str], by_group: _Values, metrics: Metrics
) -> Iterator[Claim]:
    records = [estimate.record for estimate in gaps]
    two = groupings_of_two(records)
    others = {(gap.grouping, gap.group) for gap in records if gap.against == "reference"}
    sizes = Counter(grouping for grouping, _ in others)
    for estimate in gaps:
        gap = estimate.record
        metric = metrics[gap.metric]
        pairs = comb(sizes[gap.grouping] + 1, 2) if gap.against == "worst_pair" else 1
        same = gap.value is None or abs(gap.value) <= SAME
        yield Claim(
            estimates=(estimate,),
            sentence_id="same" if same else "two_values",
            when={} if same else _sentence_by_significance(gap, metric, several=pairs > 1),
            pairs=pairs,
            arguments=_arguments(gap, metric, by_group),
            headline=gap.metric in headline_names and gap.value is not None,
            aside=_of_some(gap),
            family=_family(gap, sizes[gap.grouping] + 1),
            key=(gap.grouping, gap.metric) if gap.grouping in two else None,
        )


def is_headline(metric: AgreementMetric, spec: AgreementSpec) -> bool:
    """Return whether a metric gives findings: a headline metric, or any metric if metrics were requested."""
    return metric.headline or spec.metrics is not None


def _value_claims(
    everybody: Sequence[Estimate[AgreementValue]], headline_names: Collection[str], metrics: Metrics, raters: int
) -> Iterator[Claim]:
    for estimate in everybody:
        record = estimate.record
        title = metrics[record.metric].title
        yield Claim(
            estimates=(estimate,),
            sentence_id="raters",
            undefined_id="raters_undefined",
            arguments={"where": None, "title": title, "raters": raters, "value": record.value},
            headline=record.metric in headline_names or not headline_names,
        )


def _family(gap: AgreementGap, groups: int) -> Message | None:
    if groups < 3:
        return None
    return (
        all_of_things(comb(groups, 2), "pairs") if gap.against == "worst_pair" else all_of_things(groups - 1, "groups")
    )


def is_significant(gap: AgreementGap, spec: AgreementSpec) -> bool:
    """Return whether a gap is significant, adjusted over all tables of the run."""
    return gap.p_adjusted is not None and gap.p_adjusted <= 1.0 - spec.confidence


def _sentence_by_significance(
    gap: AgreementGap, metric: AgreementMetric, *, several: bool
) -> dict[Significance, dict[str, str | Message | None]]:
    """Return the sentence on a gap: less agreement if the metric measures only agreement, else a lower value.

    With several pairs, the significant gap can belong to another pair.
    """
    clear: dict[str, str | Message | None] = {"sentence_id": "less_agreement" if metric.direct else "lower"}
    if metric.moves_with and not metric.direct:
        moves, some = say("moves_with", title=metric.title, moves_with=metric.moves_with), _of_some(gap)
        clear["aside"] = join_sentences([moves] if some is None else [some, moves])
    return {
        "directed": clear,
        "significant": {"sentence_id": "some_groups_differ"} if several else clear,
        "not_significant": {"sentence_id": "no_clear_difference"},
        "untested": {"sentence_id": "not_tested"},
    }


def _of_some(gap: AgreementGap) -> Message | None:
    return say("largest_tested") if gap.status.id == "core.unbounded_above" else None


def _arguments(gap: AgreementGap, metric: AgreementMetric, by_group: _Values) -> Arguments:
    return {
        "where": say("by_grouping", grouping=gap.grouping),
        "title": metric.title,
        "group": gap.group,
        "group_value": by_group.get((gap.grouping, gap.group or "", gap.metric)),
        "reference": gap.reference,
        "reference_value": by_group.get((gap.grouping, gap.reference or "", gap.metric)),
        "lower": gap.group if (gap.value or 0.0) < 0 else gap.reference,
    }


# Notes ----------------------------------------------------------------------------------------------------------------

_NAMED = 3


def agreement_notes(
    rated: RatedPeople,
    values: Sequence[AgreementValue],
    gaps: Sequence[AgreementGap],
    *,
    metrics: Metrics,
    groupings: Sequence[ComparedGroups],
    spec: AgreementSpec,
) -> Iterator[Message]:
    """Yield the notes on ratings, values and gaps."""
    yield from _rating_notes(rated, spec)
    differ = False
    for grouping in groupings:
        if len(grouping.groups) < 2:
            yield say("nothing_to_compare", grouping=grouping.name, least=spec.min_count)
        compared = [gap for gap in gaps if gap.grouping == grouping.name and gap.against == "reference"]
        headline_gaps = [gap for gap in compared if is_headline(metrics[gap.metric], spec)]
        turned = list(_directions(headline_gaps, metrics, spec))
        differ = differ or bool(turned)
        yield from _untested(grouping.name, compared, metrics)
        yield from _named(grouping.name, turned)
        yield from _named(grouping.name, list(_certainties(headline_gaps, metrics, spec)))
    if differ:
        yield say("depends")
    yield from _undefined(values)


def _undefined(values: Sequence[AgreementValue]) -> Iterator[Message]:
    undefined = {
        (r.metric, r.group) for r in values if r.value is None and without_kind(r.status).id != "agreement.some_missing"
    }
    if undefined:
        named = [say("metric_of_group", metric=metric, group=group) for metric, group in sorted(undefined)]
        yield say("undefined", records=tuple(named[:6]), others=say("and_others") if len(named) > 6 else None)


def _rating_notes(rated: RatedPeople, spec: AgreementSpec) -> Iterator[Message]:
    """Yield notes on the scale, on missing ratings, and on raters with possibly different words."""
    if rated.scale == "binary":
        yield say("positive_rating", rating=rated.labels[1])
    elif spec.scale is None:
        yield say("taken_for", scale=rated.scale)
    if (gaps := np.isnan(rated.ratings)).any():
        ratings_per_rater, people = (~gaps).sum(axis=1), int(gaps.any(axis=1).sum())
        fewest, most = int(ratings_per_rater.min()), int(ratings_per_rater.max())
        yield say("lack_ratings", n=people, fewest=fewest, most=most, raters=rated.ratings.shape[1])
    used = [set(np.unique(column[~np.isnan(column)])) for column in rated.ratings.T] if rated.labels else []
    for (first, used_first), (second, used_second) in combinations(zip(rated.raters, used, strict=False), 2):
        if not used_first & used_second:
            yield say("nothing_in_common", first=first, second=second)
            return


def _untested(grouping: str, gaps: Sequence[AgreementGap], metrics: Metrics) -> Iterator[Message]:
    """Yield notes on gaps with a value but without a test, with the reasons."""
    reasons: dict[Message, list[str]] = {}
    for gap in gaps:
        if gap.value is not None and gap.p_value is None:
            reasons.setdefault(without_kind(gap.status), []).append(metrics[gap.metric].title)
    by_reason: dict[tuple[str, ...], list[Message]] = {}
    for reason, titles in reasons.items():
        by_reason.setdefault(tuple(dict.fromkeys(titles)), []).append(reason)
    for same, why in by_reason.items():
        if len(same) > _NAMED:
            named, more = same[:_NAMED], say("more_metrics", n=len(same) - _NAMED)
            yield say("many_not_tested_as", grouping=grouping, titles=named, more=more, why=tuple(why))
        else:
            yield say("not_tested_as", grouping=grouping, titles=same, why=tuple(why))


def _named(grouping: str, remarks: Sequence[Message]) -> Iterator[Message]:
    if remarks:
        more = say("more_groups", n=len(remarks) - _NAMED) if len(remarks) > _NAMED else None
        yield say("remarks", grouping=grouping, remarks=tuple(remarks[:_NAMED]), more=more)


def _by_group(gaps: Sequence[AgreementGap]) -> dict[tuple[str | None, str | None], list[AgreementGap]]:
    by_group = defaultdict(list)
    for gap in gaps:
        by_group[gap.group, gap.reference].append(gap)
    return by_group


def _directions(gaps: Sequence[AgreementGap], metrics: Metrics, spec: AgreementSpec) -> Iterator[Message]:
    """Yield the groups with some metrics significantly higher and some significantly lower than the reference's."""
    for (group, reference), tested in _by_group([gap for gap in gaps if is_significant(gap, spec)]).items():
        higher, lower = (_titles((g for g in tested if sign * (g.value or 0.0) > SAME), metrics) for sign in (1, -1))
        if higher and lower:
            sides: dict[str, Argument] = {"higher": _are_or_is(higher, "higher"), "lower": _are_or_is(lower, "lower")}
            yield say("different_ways", group=group, reference=reference, **sides)


def _titles(gaps: Iterable[AgreementGap], metrics: Metrics) -> tuple[str, ...]:
    return tuple(metrics[gap.metric].title for gap in gaps)


def _certainties(gaps: Sequence[AgreementGap], metrics: Metrics, spec: AgreementSpec) -> Iterator[Message]:
    """Yield the groups with significant gaps in coefficients but not in raw agreement."""
    for (group, reference), tested in _by_group([gap for gap in gaps if gap.p_adjusted is not None]).items():
        significant, direct = _significant_and_direct(tested, metrics, spec)
        more = _all_higher(significant, direct)
        if direct and significant and more is not None:
            clear = _are_or_is(_titles(significant, metrics), "higher" if more else "lower")
            plain = _are_or_is(_titles(direct, metrics), "not")
            key = "not_shown_more" if more else "not_shown_less"
            yield say(key, group=group, reference=reference, clear=clear, plain=plain)


def _significant_and_direct(
    gaps: Sequence[AgreementGap], metrics: Metrics, spec: AgreementSpec
) -> tuple[list[AgreementGap], list[AgreementGap]]:
    return [gap for gap in gaps if is_significant(gap, spec)], [gap for gap in gaps if metrics[gap.metric].direct]


def _all_higher(significant: Sequence[AgreementGap], direct: Sequence[AgreementGap]) -> bool | None:
    """Return whether all gaps are positive (True) or negative (False).

    Return None if the signs differ, or if the gap in raw agreement is significant.
    """
    signs = {(gap.value or 0.0) > 0 for gap in (*direct, *significant)}
    return None if len(signs) != 1 or any(gap in direct for gap in significant) else signs.pop()


def _are_or_is(titles: tuple[str, ...], what: str) -> Message:
    return say(f"{'is' if len(titles) == 1 else 'are'}_{what}", titles=titles)
