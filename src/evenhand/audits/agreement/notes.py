"""Remarks that a reader of an agreement audit needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evenhand.audits.agreement.compare import row_label
from evenhand.audits.agreement.findings import SAME, surely
from evenhand.audits.agreement.people import Rated
from evenhand.audits.agreement.records import GapRecord, StatisticRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.audits.agreement.statistics import Statistic
from evenhand.core.compared import Compared
from evenhand.errors import count

_NAMED = 3
_DEPENDS = (
    "Only agreement itself (PABAK, Bennett's S, the spread-adjusted ICC) says how often or how far raters differ; the "
    "others also depend on how common the ratings are, or how alike the people."
)


def agreement_notes(
    rated: Rated,
    statistics: Sequence[StatisticRecord],
    gaps: Sequence[GapRecord],
    known: Mapping[str, Statistic],
    groupings: Sequence[Compared],
    spec: AgreementSpec,
) -> Iterator[str]:
    """Yield the remarks."""
    if rated.scale == "binary":
        yield f"The positive rating is {rated.labels[1]!r}."
    elif spec.scale is None:
        yield f"The ratings were taken to be {rated.scale}; say so with `scale` if they are not."
    if np.isnan(rated.ratings).any():
        yield (
            f"{count(int(np.isnan(rated.ratings).any(axis=1).sum()), 'person', 'people')} lack some rating; statistics "
            "that need all of them are undefined."
        )
    yield from _nothing_shared(rated, spec)
    differ = False
    for grouping in groupings:
        if len(grouping.groups) < 2:
            yield (
                f"{grouping.name}: fewer than two groups have min_count {spec.min_count} people, so there is nothing "
                "to compare."
            )
        own = [gap for gap in gaps if gap.grouping == grouping.name and gap.against == "reference"]
        told = [gap for gap in own if known[gap.statistic].headline or spec.statistics is not None]
        yield from _untested(grouping.name, own, known)
        turned = list(_directions(told, known, spec))
        differ = differ or bool(turned)
        yield from _named(grouping.name, turned)
        yield from _named(grouping.name, list(_certainties(told, known, spec)))
    if differ:
        yield _DEPENDS
    lost = [r for r in statistics if r.value is None and not r.status.endswith("some ratings are missing")]
    if lost:
        named = sorted({f"{r.statistic} of {row_label(r.grouping, r.group)}" for r in lost})
        yield f"Undefined: {', '.join(named[:6])}{' and others' if len(named) > 6 else ''}; the table says why."


def _nothing_shared(rated: Rated, spec: AgreementSpec) -> Iterator[str]:
    """Yield that two raters have no category in common: they may have used different words."""
    used = [set(np.unique(column[~np.isnan(column)])) for column in rated.ratings.T] if rated.labels else []
    for first, one in enumerate(used):
        for second in range(first + 1, len(used)):
            if not one & used[second]:
                yield (
                    f"The raters {spec.raters[first]!r} and {spec.raters[second]!r} have no rating in common; check "
                    "that they use the same words."
                )
                return


def _listed(titles: Sequence[str]) -> str:
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"


def _untested(grouping: str, gaps: Sequence[GapRecord], known: Mapping[str, Statistic]) -> Iterator[str]:
    """Yield which gaps have a value but no test, and why."""
    reasons: dict[str, list[str]] = {}
    for gap in gaps:
        if gap.value is not None and gap.p_value is None:
            reasons.setdefault(gap.status.partition(": ")[2], []).append(known[gap.statistic].title)
    alike: dict[tuple[str, ...], list[str]] = {}
    for reason, found in reasons.items():
        alike.setdefault(tuple(dict.fromkeys(found)), []).append(reason)
    for titles, why in alike.items():
        more = f" and {count(len(titles) - _NAMED, 'more statistic')}" if len(titles) > _NAMED else ""
        named = f"{', '.join(titles[:_NAMED])}{more}" if more else _listed(titles)
        yield f"{grouping}: {named}: not tested, as {'; '.join(why)}."


def _named(grouping: str, remarks: Sequence[str]) -> Iterator[str]:
    if remarks:
        more = f"; and {count(len(remarks) - _NAMED, 'more group')}" if len(remarks) > _NAMED else ""
        yield f"{grouping}: {'; '.join(remarks[:_NAMED])}{more}."


def _by_group(gaps: Sequence[GapRecord]) -> dict[tuple[str, str], list[GapRecord]]:
    found: dict[tuple[str, str], list[GapRecord]] = {}
    for gap in gaps:
        found.setdefault((gap.group, gap.reference), []).append(gap)
    return found


def _directions(gaps: Sequence[GapRecord], known: Mapping[str, Statistic], spec: AgreementSpec) -> Iterator[str]:
    """Yield for which groups some statistics are higher than for the reference group and others lower, all surely."""
    for (group, reference), own in _by_group([gap for gap in gaps if surely(gap, spec)]).items():
        higher, lower = ([known[g.statistic].title for g in own if sign * (g.value or 0.0) > SAME] for sign in (1, -1))
        if higher and lower:
            yield (
                f"the statistics point different ways: for {group} {_listed(lower)} {_is(lower)} lower than for "
                f"{reference}, but {_listed(higher)} {_is(higher)} higher, both beyond chance"
            )


def _certainties(gaps: Sequence[GapRecord], known: Mapping[str, Statistic], spec: AgreementSpec) -> Iterator[str]:
    """Yield for which groups a coefficient is lower beyond chance but agreement itself is not."""
    for (group, reference), own in _by_group(gaps).items():
        tested = [g for g in own if g.p_adjusted is not None]
        direct = [g for g in tested if known[g.statistic].direct]
        others = [g for g in tested if not known[g.statistic].direct and surely(g, spec)]
        signs = {(g.value or 0.0) > 0 for g in (*direct, *others)}
        if direct and others and len(signs) == 1 and not any(surely(g, spec) for g in direct):
            which = "higher" if True in signs else "lower"
            names, plain = ([known[g.statistic].title for g in some] for some in (others, direct))
            yield (
                f"{_listed(names)} {_is(names)} {which} for {group} than for {reference} beyond chance, "
                f"{_listed(plain)} {_is(plain)} not: it is not shown that raters agree "
                f"{'more' if which == 'higher' else 'less'} about {group}"
            )


def _is(titles: Sequence[str]) -> str:
    return "is" if len(titles) == 1 else "are"
