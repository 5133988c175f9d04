"""Remarks that a reader of an agreement audit needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.audits.agreement.people import Rated
from evenhand.audits.agreement.records import StatisticRecord
from evenhand.audits.agreement.spec import AgreementSpec
from evenhand.core.compared import Compared
from evenhand.errors import count

FEW = 50
"""People below whom intervals may be too short; see `benchmarks/agreement_coverage.py`."""


def agreement_notes(
    rated: Rated, statistics: Sequence[StatisticRecord], groupings: Sequence[Compared], spec: AgreementSpec
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
    for grouping in groupings:
        if len(grouping.groups) < 2:
            yield (
                f"{grouping.name}: fewer than two groups have min_count {spec.min_count} people, so there is nothing "
                "to compare."
            )
        small = [f"{g} ({n})" for g, n in zip(grouping.groups, grouping.sizes, strict=True) if n < FEW]
        if small:
            yield (
                f"{grouping.name}: with fewer than {FEW} people intervals can be too short, most where one rating is "
                f"rare: {', '.join(small)}."
            )
    lost = [r for r in statistics if r.value is None and not r.status.endswith("some ratings are missing")]
    if lost:
        named = sorted({f"{r.statistic} of {r.group}" for r in lost})
        yield f"Undefined: {', '.join(named[:6])}{' and others' if len(named) > 6 else ''}; the table says why."
