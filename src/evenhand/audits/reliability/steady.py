"""Whether a model gives a person one score: asked again, in another order, and about that person alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from evenhand.audits.reliability.people import People
from evenhand.errors import EvenhandError
from evenhand.stats.types import FloatArray

_MOST_ROWS, _ALONE = 500, 5
_ROUNDING, _TINY = 1e-12, 1e-6


def unsteady_notes(name: str, scores: Callable[[FloatArray], FloatArray], people: People) -> Iterator[str]:
    """Refuse a model whose score of a person changes by itself; yield a remark where only its last digits do.

    The simulation takes every change of a score for the work of a mistake, and asks about people in any company.

    Parameters
    ----------
    name : of the model.
    scores : rows of the people's matrix to scores.
    people : some of them are asked about.
    """
    pick = np.linspace(0, len(people.matrix) - 1, min(_MOST_ROWS, len(people.matrix))).astype(np.int64)
    rows = people.matrix[pick]
    first = scores(rows)
    again = _apart(first, scores(rows))
    if again > _TINY:
        raise EvenhandError(
            f"the model {name!r} gives the same people other scores when it is asked again, by up to {again:.2g}; it "
            "must not draw at random: fix its seed, or average over its draws."
        )
    order = np.random.default_rng(0).permutation(len(rows))
    some = order[:_ALONE]
    alone = np.concatenate([scores(rows[[at]]) for at in some.tolist()])
    company = max(_apart(first[order], scores(rows[order])), _apart(first[some], alone))
    if company > _TINY:
        raise EvenhandError(
            f"the model {name!r} gives people other scores beside other people, by up to {company:.2g}; each score "
            "must be made of that person's own features: fit scalers and ranks once, not anew on the rows it is given."
        )
    if max(again, company) > _ROUNDING:
        yield (
            f"{name}: scores of the same people differ by up to {max(again, company):.1g} from one call to the next. "
            "That is rounding, and people within it of the threshold may change sides."
        )


def _apart(one: FloatArray, other: FloatArray) -> float:
    """Return the largest difference, of scores above 1 the largest relative one."""
    return float(np.max(np.abs(one - other) / np.maximum(1.0, np.abs(one)), initial=0.0))
