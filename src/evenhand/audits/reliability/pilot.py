"""A pilot study: a small table in which two raters rated the same people, and the mistakes learned from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.audits.reliability.mistakes import PilotTable
from evenhand.audits.reliability.people import Feature, People
from evenhand.audits.reliability.profiles import Groupings
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, DataError, EvenhandError, count
from evenhand.stats.noise import Pilot
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.roles import MISSING
from evenhand.table.rows import Coded
from evenhand.table.sources import engine_errors, open_source
from evenhand.table.table import Table

FEW_RATED_TWICE = 60
"""People below which a note warns: with so many, the gap of a simulated pilot was near the true one."""


def read_pilot(
    settings: PilotTable, free: Sequence[Feature], people: People, groupings: Groupings, spec: ReliabilitySpec
) -> tuple[Pilot, list[str], tuple[str, ...], list[str]]:
    """Return the pilot for the features that both raters rated, their names, groups with own profiles, and remarks.

    Parameters
    ----------
    settings : where the pilot is, and what its columns are called.
    free : the features that may go wrong.
    people : the people of the audit.
    groupings : the groupings of the audit's table.
    spec : the settings of the audit.
    """
    source = settings.data if settings.source is None else str(spec.folder / settings.source)
    with engine_errors():
        known = open_source(source).frame.collect_schema().names()
    rated = [(feature, pair) for feature in free if (pair := settings.pair(feature.name)) and set(pair) <= set(known)]
    for name in settings.columns:
        if name not in [feature.name for feature, _ in rated]:
            raise ConfigError(f"`pilot` names columns for {name!r}, which it does not have or which may not go wrong.")
    if not rated:
        raise ConfigError("`pilot` has no feature with a column of each rater; check `suffixes` and `columns`.")
    by = _columns_of_groups(settings, groupings, known)
    try:
        table = Table(source, groups=list(by))
    except DataError as error:
        raise DataError(f"`pilot`: {error}") from error
    rows = table.coded_rows({f"{rater} of {f.name}": pair[at] for f, pair in rated for at, rater in enumerate(_RATERS)})
    first, second = (
        np.column_stack([_numbers(feature, rows.columns[f"{rater} of {feature.name}"]) for feature, _ in rated])
        for rater in _RATERS
    )
    whole = ~(np.isnan(first) | np.isnan(second)).any(axis=1)
    if not whole.any():
        raise DataError("`pilot` has nobody whom both raters rated in every feature.")
    features = [feature for feature, _ in rated]
    codes, labels = rows.groups.joint(by) if by else (np.zeros(len(first), dtype=np.int64), ())
    order = np.flatnonzero(whole)[np.lexsort([codes[whole], *first[whole].T, *second[whole].T])]
    learned, apart, told = _apart(settings, codes[order], labels)
    places = people.places([feature.name for feature in features])
    try:
        pilot = Pilot(
            first[order],
            second[order],
            tuple(places),
            {at: _categories(feature) for at, feature in zip(places, features, strict=True) if feature.categorical},
            settings.together,
            settings.near,
            {
                at: spec.minima.get(f.name, float(f.distinct[0]))
                for at, f in zip(places, features, strict=True)
                if not f.categorical
            },
            apart=apart,
        )
        pilot.items()
    except EvenhandError as error:
        raise ConfigError(f"`pilot`: {error}") from error
    notes = _notes(int(whole.sum()), int((~whole).sum()), features, free, shared=settings.by is None)
    return pilot, [feature.name for feature in features], learned, [*notes, *told]


_RATERS = ("first rater", "second rater")


def _columns_of_groups(settings: PilotTable, groupings: Groupings, known: Sequence[str]) -> tuple[str, ...]:
    by = () if settings.by is None else groupings[settings.by]
    for column in by:
        if column not in known:
            raise ConfigError(f"`pilot` learns by {settings.by!r} and has no column {column!r}.")
    return by


def _apart(
    settings: PilotTable, codes: IntArray, labels: Sequence[str]
) -> tuple[tuple[str, ...], tuple[IntArray, ...], list[str]]:
    """Return the groups with enough people in the pilot for a profile of their own, their rows, and a remark."""
    if settings.by is None:
        return (), (), []
    enough = max(settings.enough, settings.near or 0)
    sizes = {label: int(n) for label, n in zip(labels, np.bincount(codes, minlength=len(labels)), strict=True)}
    learned = tuple(label for label in labels if label != MISSING and sizes[label] >= enough)
    few = [f"{label} ({n})" for label, n in sizes.items() if label != MISSING and label not in learned]
    said = [f"{label} ({sizes[label]} people of the pilot)" for label in learned]
    note = (
        f"By {settings.by}, mistakes were learned apart for {' and '.join(said) or 'no group'}; everybody else goes "
        "wrong as the whole pilot does. That they were learned apart does not show that they differ."
    )
    if few:
        note += f" Fewer than {enough} people of the pilot are {', '.join(few)}."
    return learned, tuple(np.flatnonzero(codes == labels.index(label)) for label in learned), [note]


def _numbers(feature: Feature, coded: Coded) -> FloatArray:
    """Return the ratings of a column in the numbers that stand for the feature's values; nan where missing."""
    if feature.labels is None and any(isinstance(value, str) for value in coded.values):
        raise DataError(f"`pilot` holds text for {feature.name!r}, which holds numbers.")
    try:
        numbers = [feature.number_of(value) for value in coded.values]
    except ConfigError:
        strange = next(value for value in coded.values if str(value) not in (feature.labels or ()))
        raise DataError(f"`pilot` holds {strange!r} for {feature.name!r}, which the data does not have.") from None
    return np.array([*numbers, np.nan])[coded.codes]


def _categories(feature: Feature) -> tuple[float, ...]:
    return (0.0, 1.0) if np.isin(feature.distinct, (0.0, 1.0)).all() else tuple(feature.distinct.tolist())


def _notes(used: int, lost: int, features: Sequence[Feature], free: Sequence[Feature], *, shared: bool) -> list[str]:
    notes = [
        f"The mistakes were learned from {count(used, 'person', 'people')} whom two raters rated; noise level 1 is as "
        f"often as there.{' All groups share one profile of errors.' if shared else ''}"
    ]
    if used < FEW_RATED_TWICE:
        notes.append(
            f"{count(used, 'person', 'people')} rated twice are few to learn mistakes from: rare mistakes may be "
            f"missing, and another pilot may give other gaps. Rate {FEW_RATED_TWICE} people or more twice."
        )
    if lost:
        notes.append(f"{count(lost, 'person', 'people')} of the pilot lack a rating and were not used.")
    apart = [feature.name for feature in free if feature not in features]
    if apart:
        notes.append(f"The pilot does not have {', '.join(apart)}; they were not perturbed.")
    return notes
