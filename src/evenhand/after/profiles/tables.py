"""The tables of the profiles that count people: UGESP and New York City's Local Law 144.

Counts come from the audit that counts people (`counts` of its descriptor). Only the scoring rates of Local Law 144 read
the data again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.after.counting import counting_audit
from evenhand.after.messages import say
from evenhand.after.profiles import PROFILES
from evenhand.after.profiles.result import Impact, Rate
from evenhand.audits import REGISTRY
from evenhand.core.counting import Counted, counted_groups
from evenhand.core.records import OK
from evenhand.core.result import Result
from evenhand.core.spec import Spec
from evenhand.errors import ConfigError, did_you_mean
from evenhand.messages import Message
from evenhand.messages.formats import finite
from evenhand.messages.shared import say as shared
from evenhand.stats.adverse_impact import adverse_impact
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
"""Words of column names that say race, sex or ethnic group."""


def require_counts(profiles: Sequence[str], audits: Mapping[str, Spec]) -> None:
    """Refuse a profile that needs selection rates in a run that computes none."""
    for name in profiles:
        if PROFILES[name].counts and not any(map(_counts, audits.values())):
            audit = counting_audit()
            counts = REGISTRY[audit].counts
            raise ConfigError(
                "the profile {name!r} counts who is selected, which the {audit} audit does with the metric "
                "{which!r}; add it, or leave out the profile.",
                name=name,
                audit=audit,
                which=counts.metric if counts else "",
            )


def _counts(spec: Spec) -> bool:
    """Tell whether an audit with these settings counts who is selected."""
    counts = REGISTRY[spec.audit].counts
    return counts is not None and counts.metric in (getattr(spec, "metrics", None) or (counts.metric,))


def require_groupings(named: Sequence[str] | None, known: Iterable[str]) -> None:
    """Refuse a grouping for the tables of profiles that the data do not have."""
    for name in named or ():
        if name not in (names := list(known)):
            raise ConfigError(
                "`profile_groupings` names {name!r}, no grouping of the data; {hint}",
                name=name,
                hint=did_you_mean(name, names),
            )


def meant(groupings: Mapping[str, Sequence[str]], named: Sequence[str] | None) -> tuple[list[str], Message | None]:
    """Return the groupings that a rule is about, and which are left out and why; None where none is.

    The rules are about race, sex and ethnic group. Without `named`, those are the groupings of which every column is
    called so; where none is, all stand, since names in other words may mean the same.

    Examples
    --------
    >>> meant({"race": ["race"], "age": ["age"]}, None)[0]
    ['race']
    """
    called = [name for name, columns in groupings.items() if all(map(_is_named_so, columns))]
    wanted = named if named is not None else called or list(groupings)
    shown, left_out = ([name for name in groupings if (name in wanted) is kept] for kept in (True, False))
    if wanted is not named and not called:
        return shown, say("every_grouping_here")
    key = "groupings_not_named" if wanted is named else "groupings_not_meant"
    return shown, say(key, groupings=tuple(left_out)) if left_out else None


def _is_named_so(column: str) -> bool:
    return bool({*_NAMES.split()} & {*words(column)})


def selections(result: Result, groupings: Collection[str]) -> Iterator[Counted]:
    """Yield who got the favourable decision, for every model and each of these groupings."""
    counts = result.descriptor.counts
    return iter(()) if counts is None else counts.selections(result, groupings)


def is_reverse(result: Result, model: str) -> bool:
    """Tell whether not being selected is the favourable decision, so that people who are not selected are counted."""
    return _favourable(result)[model] == "not_selected"


def _favourable(result: Result) -> dict[str, str | None]:
    counts = result.descriptor.counts
    return {} if counts is None else counts.favourable(result)


def count_notes(result: Result, data: Mapping[str, Any], decided: Iterable[str]) -> Iterator[Message]:
    """Say what the counts rest on; `decided` are the models whose decisions are counted."""
    if data.get("weight") is not None:
        yield say("weighted_counts")
        return
    unsaid = [model for model, side in _favourable(result).items() if side is None]
    if unsaid:
        yield say("favourable_unsaid", models=tuple(unsaid))
    reverse = [model for model in decided if is_reverse(result, model)]
    if reverse:
        yield say("not_selected_is_favourable", models=tuple(reverse))
    for column, labels in data.get("labels", {}).items():
        if len(set(labels.values())) < len(labels):
            yield say("labels_merge", column=column)


# UGESP ----------------------------------------------------------------------------------------------------------------


def impact_rows(result: Result, groupings: Collection[str]) -> Iterator[Impact]:
    """Yield every group beside the one with the highest rate; groups stand as the data have them, none is merged."""
    for item in selections(result, groupings):
        if item.groups:
            yield from _impact(item, result.spec.min_count, result.spec.confidence)


def unknown_notes(result: Result, groupings: Collection[str]) -> Iterator[Message]:
    """Say how many people are in no table because their group is not known."""
    unknown = {item.grouping: item.unknown for item in selections(result, groupings) if item.unknown}
    if unknown:
        sizes = tuple(say("people_of_grouping", grouping=name, n=number) for name, number in unknown.items())
        small = any(getattr(value, "group", None) == SMALL for value in result.rows("values"))
        yield say("hidden_in_no_table" if small else "unknown_in_no_table", sizes=sizes)


def _nobody(item: Counted) -> Message:
    """Return the status of a rate or ratio where nobody counts."""
    why = item.nobody
    return shared("undefined", why=why if isinstance(why, Message) else Message(why))


def _impact(item: Counted, least: int, confidence: float) -> Iterator[Impact]:
    found = adverse_impact(item.n, item.counted, least, confidence)
    nobody = item.counted[found.highest] == 0
    for at, group in enumerate(item.groups):
        is_highest = at == found.highest
        small = say("never_the_highest", least=least)
        yield Impact(
            model=item.model,
            grouping=item.grouping,
            group=group,
            highest=item.groups[found.highest],
            n=item.n[at],
            selected=item.counted[at],
            rate=float(found.rate[at]),
            ratio=finite(found.ratio[at]),
            low=None if is_highest else finite(found.ratio_limits.low[at]),
            high=None if is_highest else finite(found.ratio_limits.high[at]),
            difference=float(found.difference[at]),
            below_four_fifths=None if nobody else bool(found.below[at]),
            standard_deviations=finite(found.deviations[at]),
            p_value=finite(found.p_value[at]),
            shortfall=finite(found.shortfall[at]),
            to_four_fifths=int(found.to_four_fifths[at]),
            flip_one=found.flip[at],
            status=_nobody(item) if nobody else small if item.n[at] < least else OK,
        )


# Local Law 144 --------------------------------------------------------------------------------------------------------


def rate_rows(result: Result, table: Table, groupings: Collection[str]) -> Iterator[Rate]:
    """Yield the categories of these groupings: selection rates of decisions, scoring rates of scores."""
    for item in selections(result, groupings):
        if not table.has_scores(item.model):
            yield from _rates(item, "selection")
    for model in table.models:
        if table.has_scores(model):
            yield from _scoring(table, model, groupings)


def _scoring(table: Table, model: str, groupings: Collection[str]) -> Iterator[Rate]:
    """Yield the share of each category that scores above the median of the full sample, unknown categories included."""
    rows = table.score_rows(model)
    times = rows.groups.n
    score = np.repeat(_in_units(rows.score, table, model) if rows.binned else rows.score, times)
    median = float(np.median(score))
    above = score > median
    for grouping, columns in ((name, table.groupings[name]) for name in groupings):
        codes, labels = rows.groups.joint(columns)
        code = np.repeat(codes, times)
        counted = {
            label: (int((code == at).sum()), int((above & (code == at)).sum())) for at, label in enumerate(labels)
        }
        item = counted_groups(model, grouping, counted)
        yield from _rates(item, "scoring", median, _quartiles(score, code, labels))


def _in_units(bins: FloatArray, table: Table, model: str) -> FloatArray:
    """Return the middle of each bin, where a long table gives bins in place of scores."""
    low, high = table.prediction(model).range
    return np.asarray(low + (bins + 0.5) / FINE_BINS * (high - low))


def _quartiles(score: FloatArray, code: IntArray, labels: Sequence[str]) -> dict[str, list[float]]:
    return {
        label: np.quantile(score[code == at], [0.25, 0.5, 0.75]).tolist()
        for at, label in enumerate(labels)
        if label != MISSING
    }


def _ratio(rate: float, highest: float) -> float | None:
    return rate / highest if highest else None


def _rates(
    item: Counted, kind: str, median: float | None = None, quartiles: Mapping[str, list[float]] | None = None
) -> Iterator[Rate]:
    everybody = sum(item.n)
    rates = [x / n for n, x in zip(item.n, item.counted, strict=True)]
    large = [n >= SMALL_SHARE * everybody for n in item.n]
    highest = max(rates, default=0.0)
    highest_large = max((rate for rate, kept in zip(rates, large, strict=True) if kept), default=0.0)
    undefined = _nobody(item) if kind == "selection" else shared("undefined", why=say("nobody_above"))
    at: dict[str, Any] = {"model": item.model, "grouping": item.grouping, "kind": kind, "median": median}
    for group, n, x, rate, kept in zip(item.groups, item.n, item.counted, rates, large, strict=True):
        low, middle, high = (quartiles or {}).get(group, (None, None, None))
        yield Rate(
            **at,
            group=group,
            n=n,
            counted=x,
            rate=rate,
            share=n / everybody,
            impact_ratio=_ratio(rate, highest),
            large_ratio=_ratio(rate, highest_large) if kept else None,
            score_low=low,
            score_median=middle,
            score_high=high,
            status=OK if highest else undefined,
        )
    nothing: dict[str, Any] = dict.fromkeys(("counted", "rate", "share", "impact_ratio", "large_ratio"))
    unnamed = {MISSING: ("unknown", item.unknown - item.hidden), SMALL: ("hidden", item.hidden)}
    for group, (why, n) in unnamed.items():
        if n:
            yield Rate(**at, group=group, n=n, **nothing, status=say(f"category_{why}"))


def rate_notes(result: Result, table: Table) -> Iterator[Message]:
    """Say what the rates rest on, and what the rule asks for beyond them."""
    scored = [model for model in table.models if table.has_scores(model)]
    reverse = [model for model in scored if is_reverse(result, model)]
    if reverse:
        yield say("high_scores_are_bad", models=tuple(reverse))
    if scored and table.rows > EXACT_ROWS:
        yield say("scores_in_bins", bins=FINE_BINS)
