"""A pilot study: a small table in which two raters rated the same people, and the mistakes learned from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.audits.reliability.mistakes import PilotTable
from evenhand.audits.reliability.people import Feature, People
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, DataError, EvenhandError, count
from evenhand.stats.noise import Pilot
from evenhand.stats.types import FloatArray
from evenhand.table.coding import Coded
from evenhand.table.sources import engine_errors, open_source
from evenhand.table.table import Table


def read_pilot(
    settings: PilotTable, free: Sequence[Feature], people: People, spec: ReliabilitySpec
) -> tuple[Pilot, list[str], list[str]]:
    """Return the pilot for the features that both raters rated, their names, and remarks.

    Parameters
    ----------
    settings : where the pilot is, and what its columns are called.
    free : the features that may go wrong.
    people : the people of the audit.
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
    table = Table(source)
    rows = table.coded_rows({f"{rater} of {f.name}": pair[at] for f, pair in rated for at, rater in enumerate(_RATERS)})
    first, second = (
        np.column_stack([_numbers(feature, rows.columns[f"{rater} of {feature.name}"]) for feature, _ in rated])
        for rater in _RATERS
    )
    whole = ~(np.isnan(first) | np.isnan(second)).any(axis=1)
    if not whole.any():
        raise DataError("`pilot` has nobody whom both raters rated in every feature.")
    features = [feature for feature, _ in rated]
    order = np.lexsort([*first[whole].T, *second[whole].T])
    places = people.places([feature.name for feature in features])
    try:
        pilot = Pilot(
            first[whole][order], second[whole][order], tuple(places),
            {at: _categories(feature) for at, feature in zip(places, features, strict=True) if feature.categorical},
            settings.together, settings.near,
            {at: spec.minima.get(f.name, float(f.distinct[0])) for at, f in zip(places, features, strict=True)
             if not f.categorical},
        )  # fmt: skip
        pilot.items()
    except EvenhandError as error:
        raise ConfigError(f"`pilot`: {error}") from error
    return pilot, [feature.name for feature in features], _notes(int(whole.sum()), int((~whole).sum()), features, free)


_RATERS = ("first rater", "second rater")


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


def _notes(used: int, lost: int, features: Sequence[Feature], free: Sequence[Feature]) -> list[str]:
    notes = [
        f"The mistakes were learned from {count(used, 'person', 'people')} whom two raters rated; noise level 1 is as "
        "often as there. All groups share one profile of errors."
    ]
    if lost:
        notes.append(f"{count(lost, 'person', 'people')} of the pilot lack a rating and were not used.")
    apart = [feature.name for feature in free if feature not in features]
    if apart:
        notes.append(f"The pilot does not have {', '.join(apart)}; they were not perturbed.")
    return notes
