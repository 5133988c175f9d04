"""The tables of profiles that count people: UGESP and New York City's Local Law 144.

Counts come from the audit that counts people (`counts` of its descriptor). Only the scoring rates of Local Law 144 are
computed from the data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.after.counting import counting_audit
from evenhand.after.messages import say
from evenhand.after.profiles import PROFILES
from evenhand.after.profiles.result import Impact, Pooled, Rate
from evenhand.audits import REGISTRY
from evenhand.core.capabilities import GroupCounts, counted_groups
from evenhand.core.records import OK
from evenhand.core.result import Result
from evenhand.core.spec import Spec
from evenhand.errors import ConfigError, did_you_mean
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.adverse_impact import adverse_impact
from evenhand.stats.pooled_events import pooled_selection
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.profile import words
from evenhand.table.roles import MISSING, SMALL
from evenhand.table.table import EXACT_ROWS, FINE_BINS, Table

SMALL_SHARE = 0.02
"""Local Law 144: a category with a smaller share of the data may be left out of the impact ratio."""


_NAMES = """
race races racial ethnicity ethnic ethnie black white nonwhite asian latino latina latinx hisp hispan hispanic
indigenous sex gender female male woman women man men geschlecht herkunft sexe sexo genero raza etnia
"""
"""Words that mark columns of race, sex or ethnic group."""


def require_counts(profiles: Sequence[str], audits: Mapping[str, Spec]) -> None:
    """Refuse a profile that needs selection rates if no audit of the run computes them."""
    for name in profiles:
        if PROFILES[name].table and not any(map(_counts_people, audits.values())):
            audit = counting_audit()
            counts = REGISTRY[audit].counts
            raise ConfigError(
                "the profile {name!r} counts who is selected, which the {audit} audit does with the metric "
                "{which!r}; add it, or leave out the profile.",
                name=name,
                audit=audit,
                which=counts.metric if counts else "",
            )


def _counts_people(spec: Spec) -> bool:
    """Return whether an audit with these settings counts selected people."""
    counts = REGISTRY[spec.audit].counts
    return counts is not None and counts.metric in (getattr(spec, "metrics", None) or (counts.metric,))


def require_groupings(named: Sequence[str] | None, existing: Iterable[str]) -> None:
    """Refuse profile groupings missing from the data."""
    for name in named or ():
        if name not in (names := list(existing)):
            raise ConfigError(
                "`profile_groupings` names {name!r}, no grouping of the data; {hint}",
                name=name,
                hint=did_you_mean(name, names),
            )


def covered_groupings(
    groupings: Mapping[str, Sequence[str]], named: Sequence[str] | None
) -> tuple[list[str], Message | None]:
    """Return the groupings covered by a rule, and the reason why others are left out.

    The reason is None if all groupings are covered.

    The rules are about race, sex and ethnic group. Without `named`, the covered groupings have only columns with such
    names; if there are no such groupings, all are covered, because other names may have the same meaning.

    Examples
    --------
    >>> covered_groupings({"race": ["race"], "age": ["age"]}, None)[0]
    ['race']
    """
    called = [name for name, columns in groupings.items() if all(map(_names_protected_trait, columns))]
    wanted = named if named is not None else called or list(groupings)
    shown, left_out = ([name for name in groupings if (name in wanted) is is_shown] for is_shown in (True, False))
    if wanted is not named and not called:
        return shown, say("every_grouping_here")
    key = "groupings_not_named" if wanted is named else "groupings_not_meant"
    return shown, say(key, groupings=tuple(left_out)) if left_out else None


def _names_protected_trait(column: str) -> bool:
    return bool({*_NAMES.split()} & {*words(column)})


def selections(result: Result, groupings: Collection[str]) -> Iterator[GroupCounts]:
    """Yield counts of people with the favourable decision, by model and grouping."""
    counts = result.descriptor.counts
    return iter(()) if counts is None else counts.selections(result, groupings)


def is_reverse(result: Result, model: str) -> bool:
    """Return whether non-selection is favourable, so that people not selected are counted."""
    return _favourable(result)[model] == "not_selected"


def _favourable(result: Result) -> dict[str, str | None]:
    counts = result.descriptor.counts
    return {} if counts is None else counts.favourable(result)


def count_notes(result: Result, data: Mapping[str, Any], decided: Iterable[str]) -> Iterator[Message]:
    """Yield notes on the basis of the counts; `decided` are the models with counted decisions."""
    if data.get("weight") is not None:
        yield say("weighted_counts")
        return
    if data.get("cluster") is not None:
        yield say("clustered_counts", cluster=data["cluster"])
        return
    yield from _side_notes(result, data)
    reverse = [model for model in decided if is_reverse(result, model)]
    if reverse:
        yield say("not_selected_is_favourable", models=tuple(reverse))
    for column, labels in data.get("labels", {}).items():
        if len(set(labels.values())) < len(labels):
            yield say("labels_merge", column=column)


def _side_notes(result: Result, data: Mapping[str, Any]) -> Iterator[Message]:
    """Yield notes on models with unknown favourable decisions, and on models that predict numbers."""
    numbers = [name for name, prediction in data["predictions"].items() if prediction["kind"] == "number"]
    unsaid = [model for model, side in _favourable(result).items() if side is None and model not in numbers]
    if numbers:
        yield say("numbers_select_nobody", models=tuple(numbers))
    if unsaid:
        yield say("favourable_unsaid", models=tuple(unsaid))


# UGESP ----------------------------------------------------------------------------------------------------------------


def impact_rows(result: Result, groupings: Collection[str]) -> Iterator[Impact]:
    """Yield every group compared with the group with the highest rate, without merging groups."""
    for item in selections(result, groupings):
        if item.groups:
            yield from _impact(item, result.spec.min_count, result.spec.confidence)


def unknown_notes(result: Result, groupings: Collection[str]) -> Iterator[Message]:
    """Yield a note on the number of people in no table because their group is unknown."""
    unknown = {item.grouping: item.unknown for item in selections(result, groupings) if item.unknown}
    if unknown:
        sizes = tuple(say("people_of_grouping", grouping=name, n=number) for name, number in unknown.items())
        small = any(getattr(value, "group", None) == SMALL for value in result.rows("values"))
        yield say("hidden_in_no_table" if small else "unknown_in_no_table", sizes=sizes)


def _status_without_people(item: GroupCounts) -> Message:
    """Return the status of a rate or ratio without people."""
    why = item.nobody
    return shared("undefined", why=why if isinstance(why, Message) else Message(why))


def pooled_rows(result: Result, impacts: Sequence[Impact]) -> Iterator[Pooled]:
    """Yield every group compared with the group with the highest rate, pooled over the audit's strata."""
    strata: dict[tuple[str, str], list[GroupCounts]] = {}
    counts, groupings = result.descriptor.counts, {row.grouping for row in impacts}
    for item in () if counts is None else counts.selections(result, groupings, by_stratum=True):
        strata.setdefault((item.model, item.grouping), []).append(item)
    for row in impacts:
        if row.group != row.highest and (items := strata.get((row.model, row.grouping))):
            yield _pooled(row, items, result.spec.confidence)


def _pooled(row: Impact, events: Sequence[GroupCounts], confidence: float) -> Pooled:
    both = [item for item in events if {row.group, row.highest} <= set(item.groups)]
    places = [[item.groups.index(group) for item in both] for group in (row.group, row.highest)]
    columns = [
        [getattr(item, name)[position] for item, position in zip(both, positions, strict=True)]
        for positions in places
        for name in ("counted", "n")
    ]
    x, n, y, m = columns
    found = pooled_selection(x, n, y, m, confidence)
    return Pooled(
        model=row.model,
        grouping=row.grouping,
        group=row.group,
        highest=row.highest,
        events=found.events,
        n=found.n,
        selected=round(found.observed),
        expected=found.expected,
        ratio=finite(found.ratio),
        low=finite(found.low),
        high=finite(found.high),
        standard_deviations=finite(found.deviations),
        p_value=finite(found.p_value),
        consistency=finite(found.consistency),
        status=OK if found.events else shared("undefined", why=say("no_common_event")),
    )


def _impact(item: GroupCounts, least: int, confidence: float) -> Iterator[Impact]:
    impacts = adverse_impact(item.n, item.counted, least, confidence)
    nobody = item.counted[impacts.highest] == 0
    for position, group in enumerate(item.groups):
        is_highest = position == impacts.highest
        small = say("never_the_highest", least=least)
        yield Impact(
            model=item.model,
            grouping=item.grouping,
            group=group,
            highest=item.groups[impacts.highest],
            n=item.n[position],
            selected=item.counted[position],
            rate=float(impacts.rate[position]),
            ratio=finite(impacts.ratio[position]),
            low=None if is_highest else finite(impacts.ratio_limits.low[position]),
            high=None if is_highest else finite(impacts.ratio_limits.high[position]),
            difference=float(impacts.difference[position]),
            below_four_fifths=None if nobody else bool(impacts.below[position]),
            standard_deviations=finite(impacts.deviations[position]),
            p_value=finite(impacts.p_value[position]),
            shortfall=finite(impacts.shortfall[position]),
            to_four_fifths=int(impacts.to_four_fifths[position]),
            flip_one=impacts.flip[position],
            status=_status_without_people(item) if nobody else small if item.n[position] < least else OK,
        )


# Local Law 144 --------------------------------------------------------------------------------------------------------


def rate_rows(result: Result, table: Table, groupings: Collection[str]) -> Iterator[Rate]:
    """Yield the rates of all categories: selection rates for decisions, and scoring rates for scores."""
    for item in selections(result, groupings):
        if not table.has_scores(item.model):
            yield from _rates(item, "selection")
    for model in table.models:
        if table.has_scores(model):
            yield from _scoring_rates(table, model, groupings)


def _scoring_rates(table: Table, model: str, groupings: Collection[str]) -> Iterator[Rate]:
    """Yield each category's share above the median of the full sample, which includes unknown categories."""
    rows = table.score_rows(model)
    times = rows.groups.n
    score = np.repeat(_bin_centres(rows.score, table, model) if rows.binned else rows.score, times)
    median = float(np.median(score))
    above = score > median
    for grouping, columns in ((name, table.groupings[name]) for name in groupings):
        codes, labels = rows.groups.joint(columns)
        code = np.repeat(codes, times)
        counted = {
            label: (int((code == position).sum()), int((above & (code == position)).sum()))
            for position, label in enumerate(labels)
        }
        item = counted_groups(model, grouping, counted)
        yield from _rates(item, "scoring", median, _quartiles(score, code, labels))


def _bin_centres(bins: FloatArray, table: Table, model: str) -> FloatArray:
    """Return the middle of each bin, for large tables with binned scores."""
    low, high = table.prediction(model).range
    return np.asarray(low + (bins + 0.5) / FINE_BINS * (high - low))


def _quartiles(score: FloatArray, code: IntArray, labels: Sequence[str]) -> dict[str, list[float]]:
    return {
        label: np.quantile(score[code == position], [0.25, 0.5, 0.75]).tolist()
        for position, label in enumerate(labels)
        if label != MISSING
    }


def _ratio(rate: float, highest: float) -> float | None:
    return rate / highest if highest else None


def _rates(
    item: GroupCounts, kind: str, median: float | None = None, quartiles: Mapping[str, list[float]] | None = None
) -> Iterator[Rate]:
    everybody = sum(item.n)
    rates = [x / n for n, x in zip(item.n, item.counted, strict=True)]
    large = [n >= SMALL_SHARE * everybody for n in item.n]
    highest = max(rates, default=0.0)
    highest_large = max((rate for rate, is_large in zip(rates, large, strict=True) if is_large), default=0.0)
    undefined = _status_without_people(item) if kind == "selection" else shared("undefined", why=say("nobody_above"))
    coordinates: dict[str, Any] = {"model": item.model, "grouping": item.grouping, "kind": kind, "median": median}
    for group, n, x, rate, is_large in zip(item.groups, item.n, item.counted, rates, large, strict=True):
        low, middle, high = (quartiles or {}).get(group, (None, None, None))
        yield Rate(
            **coordinates,
            group=group,
            n=n,
            counted=x,
            rate=rate,
            share=n / everybody,
            impact_ratio=_ratio(rate, highest),
            large_ratio=_ratio(rate, highest_large) if is_large else None,
            score_low=low,
            score_median=middle,
            score_high=high,
            status=OK if highest else undefined,
        )
    nothing: dict[str, Any] = dict.fromkeys(("counted", "rate", "share", "impact_ratio", "large_ratio"))
    unnamed = {MISSING: ("unknown", item.unknown - item.hidden), SMALL: ("hidden", item.hidden)}
    for group, (why, n) in unnamed.items():
        if n:
            yield Rate(**coordinates, group=group, n=n, **nothing, status=say(f"category_{why}"))


def rate_notes(result: Result, table: Table) -> Iterator[Message]:
    """Yield notes on the basis of the rates, and on further requirements of the rule."""
    scored = [model for model in table.models if table.has_scores(model)]
    reverse = [model for model in scored if is_reverse(result, model)]
    if reverse:
        yield say("high_scores_are_bad", models=tuple(reverse))
    if scored and table.rows > EXACT_ROWS:
        yield say("scores_in_bins", bins=FINE_BINS)
