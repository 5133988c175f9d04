"""The agreement findings: what is told of raters and of gaps, and the remarks that a reader needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb

import numpy as np

from evenhand.audits.agreement.estimate import groupings_of_two
from evenhand.audits.agreement.gather import Rated
from evenhand.audits.agreement.metrics import AgreementMetric
from evenhand.audits.agreement.result import AgreementGap, AgreementValue
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.families import Clarity
from evenhand.core.findings import Claim
from evenhand.core.groups import ComparedGroups
from evenhand.errors import all_of, count

Metrics = Mapping[str, AgreementMetric]
_Values = Mapping[tuple[str | None, str, str], float | None]

SAME = 1e-12
"""Values that differ by less are the same but for rounding."""

_BOTH = "{where}: {title} is {group_value:unit} for {group} and {reference_value:unit} for {reference}"
SENTENCES = {
    "raters": "{title} of the {raters} raters is {value:unit}.",
    "raters_undefined": "{title} of the {raters} raters cannot be computed.",
    "same": "{where}: {title} is the same for {group} and {reference}, {group_value:unit}.",
    "less_agreement": f"{_BOTH}; raters agree less about {{lower}}.",
    "lower": f"{_BOTH}; it is lower for {{lower}}.",
}


def make_claims(
    values: Sequence[AgreementValue],
    gaps: Sequence[AgreementGap],
    metrics: Metrics,
    raters: int,
    spec: AgreementSpec,
) -> Iterator[Claim]:
    """Yield what can be told: what the raters reach on the whole, and every gap.

    Between two groups the worst pair is the gap to the reference group, and told once.
    """
    told = {r.metric for r in values if r.grouping is None and is_told(metrics[r.metric], spec)}
    yield from _value_claims([record for record in values if record.grouping is None], told, metrics, raters)
    by_group = {(record.grouping, record.group, record.metric): record.value for record in values}
    yield from _gap_claims(gaps, told, by_group, metrics)


def _gap_claims(
    gaps: Sequence[AgreementGap], told: Collection[str], by_group: _Values, metrics: Metrics
) -> Iterator[Claim]:
    two = groupings_of_two(gaps)
    others = {(gap.grouping, gap.group) for gap in gaps if gap.against == "reference"}
    sizes = Counter(grouping for grouping, _ in others)
    for gap in gaps:
        metric = metrics[gap.metric]
        same = gap.value is None or abs(gap.value) <= SAME
        yield Claim(
            records=(gap,),
            sentence_id="same" if same else "two_values",
            when={} if same else _when(gap, metric),
            arguments=_arguments(gap, metric, by_group),
            headline=gap.metric in told and gap.value is not None,
            aside=_of_some(gap),
            family=_family(gap, sizes[gap.grouping] + 1),
            key=(gap.grouping, gap.metric) if gap.grouping in two else None,
        )


def is_told(metric: AgreementMetric, spec: AgreementSpec) -> bool:
    """Return whether a metric is told as a finding: a headline one, or any that was asked for."""
    return metric.headline or spec.metrics is not None


def _value_claims(
    everybody: Sequence[AgreementValue], told: Collection[str], metrics: Metrics, raters: int
) -> Iterator[Claim]:
    for record in everybody:
        title = metrics[record.metric].title
        yield Claim(
            records=(record,),
            sentence_id="raters",
            undefined_id="raters_undefined",
            arguments={"where": "", "title": title, "raters": raters, "value": record.value},
            headline=record.metric in told or not told,
        )


def _family(gap: AgreementGap, groups: int) -> str | None:
    if groups < 3:
        return None
    return all_of(comb(groups, 2), "pairs") if gap.against == "worst_pair" else all_of(groups - 1, "groups")


def is_significant(gap: AgreementGap, spec: AgreementSpec) -> bool:
    """Return whether a gap is beyond chance, all tables of the run considered."""
    return gap.p_adjusted is not None and gap.p_adjusted <= 1.0 - spec.confidence


def _when(gap: AgreementGap, metric: AgreementMetric) -> dict[Clarity, dict[str, str]]:
    """Return what is said of the gap: less agreement where the metric is nothing else, else no more than lower."""
    clear = {"sentence_id": "less_agreement" if metric.direct else "lower"}
    if metric.moves_with and not metric.direct:
        moves = f"{metric.title}: {metric.moves_with}, so a lower value need not mean less agreement."
        clear["aside"] = f"{_of_some(gap)} {moves}".lstrip()
    unclear, untested = ({"sentence_id": name} for name in ("no_clear_difference", "not_tested"))
    return {"clear": clear, "unclear": unclear, "untested": untested}


def _of_some(gap: AgreementGap) -> str:
    return "It is the largest gap of the groups that can be tested." if gap.status.startswith("unbounded") else ""


def _arguments(gap: AgreementGap, metric: AgreementMetric, by_group: _Values) -> dict[str, str | float | None]:
    return {
        "where": f"By {gap.grouping}",
        "title": metric.title,
        "group": gap.group,
        "group_value": by_group.get((gap.grouping, gap.group or "", gap.metric)),
        "reference": gap.reference,
        "reference_value": by_group.get((gap.grouping, gap.reference or "", gap.metric)),
        "lower": gap.group if (gap.value or 0.0) < 0 else gap.reference,
    }


# Remarks --------------------------------------------------------------------------------------------------------------

_NAMED = 3
_SIDES = {True: ("higher", "more"), False: ("lower", "less")}
_DEPENDS = (
    "Only agreement itself (PABAK, Bennett's S, the spread-adjusted ICC) says how often or how far raters differ; the "
    "others also depend on how common the ratings are, or how alike the people."
)


def agreement_notes(
    rated: Rated,
    values: Sequence[AgreementValue],
    gaps: Sequence[AgreementGap],
    *,
    metrics: Metrics,
    groupings: Sequence[ComparedGroups],
    spec: AgreementSpec,
) -> Iterator[str]:
    """Yield the remarks."""
    yield from _rating_notes(rated, spec)
    differ = False
    for grouping in groupings:
        if len(grouping.groups) < 2:
            yield (
                f"{grouping.name}: fewer than two groups have min_count {spec.min_count} people, so there is nothing "
                "to compare."
            )
        compared = [gap for gap in gaps if gap.grouping == grouping.name and gap.against == "reference"]
        told = [gap for gap in compared if is_told(metrics[gap.metric], spec)]
        turned = list(_directions(told, metrics, spec))
        differ = differ or bool(turned)
        yield from _untested(grouping.name, compared, metrics)
        yield from _named(grouping.name, turned)
        yield from _named(grouping.name, list(_certainties(told, metrics, spec)))
    if differ:
        yield _DEPENDS
    yield from _undefined(values)


def _undefined(values: Sequence[AgreementValue]) -> Iterator[str]:
    undefined = [r for r in values if r.value is None and not r.status.endswith("some ratings are missing")]
    if undefined:
        names = sorted({f"{r.metric} of {r.group}" for r in undefined})
        yield f"Undefined: {', '.join(names[:6])}{' and others' if len(names) > 6 else ''}; the table says why."


def _rating_notes(rated: Rated, spec: AgreementSpec) -> Iterator[str]:
    """Yield what the ratings were taken for, who lacks some, and that two raters may have used different words."""
    if rated.scale == "binary":
        yield f"The positive rating is {rated.labels[1]!r}."
    elif spec.scale is None:
        yield f"The ratings were taken to be {rated.scale}; say so with `scale` if they are not."
    if (gaps := np.isnan(rated.ratings)).any():
        given = (~gaps).sum(axis=1)
        yield (
            f"{count(int(gaps.any(axis=1).sum()), 'person', 'people')} lack some rating: each has "
            f"{given.min()} to {given.max()} of {rated.ratings.shape[1]}. Kappas and the like count the pairs given."
        )
    used = [set(np.unique(column[~np.isnan(column)])) for column in rated.ratings.T] if rated.labels else []
    for (first, used_first), (second, used_second) in combinations(zip(rated.raters, used, strict=False), 2):
        if not used_first & used_second:
            yield f"The raters {first!r} and {second!r} have no rating in common; check that they use the same words."
            return


def _listed(titles: Sequence[str]) -> str:
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"


def _untested(grouping: str, gaps: Sequence[AgreementGap], metrics: Metrics) -> Iterator[str]:
    """Yield which gaps have a value but no test, and why."""
    reasons: dict[str, list[str]] = {}
    for gap in gaps:
        if gap.value is not None and gap.p_value is None:
            reasons.setdefault(gap.status.partition(": ")[2], []).append(metrics[gap.metric].title)
    alike: dict[tuple[str, ...], list[str]] = {}
    for reason, titles in reasons.items():
        alike.setdefault(tuple(dict.fromkeys(titles)), []).append(reason)
    for same, why in alike.items():
        more = f" and {count(len(same) - _NAMED, 'more metric')}" if len(same) > _NAMED else ""
        named = f"{', '.join(same[:_NAMED])}{more}" if more else _listed(same)
        yield f"{grouping}: {named}: not tested, as {'; '.join(why)}."


def _named(grouping: str, remarks: Sequence[str]) -> Iterator[str]:
    if remarks:
        more = f"; and {count(len(remarks) - _NAMED, 'more group')}" if len(remarks) > _NAMED else ""
        yield f"{grouping}: {'; '.join(remarks[:_NAMED])}{more}."


def _by_group(gaps: Sequence[AgreementGap]) -> dict[tuple[str | None, str | None], list[AgreementGap]]:
    by_group = defaultdict(list)
    for gap in gaps:
        by_group[gap.group, gap.reference].append(gap)
    return by_group


def _directions(gaps: Sequence[AgreementGap], metrics: Metrics, spec: AgreementSpec) -> Iterator[str]:
    """Yield for which groups some metrics are higher than for the reference and others lower, all beyond chance."""
    for (group, reference), tested in _by_group([gap for gap in gaps if is_significant(gap, spec)]).items():
        higher, lower = (_titles((g for g in tested if sign * (g.value or 0.0) > SAME), metrics) for sign in (1, -1))
        if higher and lower:
            yield (
                f"the metrics point different ways: for {group} {_listed(lower)} {_is(lower)} lower than for "
                f"{reference}, but {_listed(higher)} {_is(higher)} higher, both beyond chance"
            )


def _titles(gaps: Iterable[AgreementGap], metrics: Metrics) -> list[str]:
    return [metrics[gap.metric].title for gap in gaps]


def _certainties(gaps: Sequence[AgreementGap], metrics: Metrics, spec: AgreementSpec) -> Iterator[str]:
    """Yield for which groups a coefficient is lower beyond chance but agreement itself is not."""
    for (group, reference), tested in _by_group([gap for gap in gaps if gap.p_adjusted is not None]).items():
        significant, direct = _significant_and_direct(tested, metrics, spec)
        signs = {(gap.value or 0.0) > 0 for gap in (*direct, *significant)}
        mixed = len(signs) > 1 or any(gap in direct for gap in significant)
        if direct and significant and not mixed:
            side, more = _SIDES[signs.pop()]
            names, plain = _titles(significant, metrics), _titles(direct, metrics)
            yield (
                f"{_listed(names)} {_is(names)} {side} for {group} than for {reference} beyond chance, "
                f"{_listed(plain)} {_is(plain)} not: it is not shown that raters agree {more} about {group}"
            )


def _significant_and_direct(
    gaps: Sequence[AgreementGap], metrics: Metrics, spec: AgreementSpec
) -> tuple[list[AgreementGap], list[AgreementGap]]:
    return [g for g in gaps if is_significant(g, spec)], [g for g in gaps if metrics[g.metric].direct]


def _is(titles: Sequence[str]) -> str:
    return "is" if len(titles) == 1 else "are"
