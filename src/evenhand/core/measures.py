"""Measures (named sums over rows), and metrics as ratios of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.errors import did_you_mean
from evenhand.stats.types import FloatArray

Columns = Mapping[str, FloatArray]
"""Columns by name: binary states of roles, and the row values to sum."""

Terms = tuple[tuple[str, float], ...]
"""A sum of measures, as pairs of name and coefficient."""

_TERM = re.compile(r"\s*(?P<sign>[+-]?)\s*(?P<number>\d+(?:\.\d+)?)?\s*(?P<name>[A-Za-z_]\w*)\s*")


@dataclass(frozen=True)
class Measure:
    """A named sum over rows.

    The expression is linear in the row values, and the coefficients may depend on the states. So the measure is a sum
    over rows and, with the same coefficients, a sum over cells of rows with equal states.

    Parameters
    ----------
    name : the name of the measure in formulas.
    meaning : a description of the summed quantity.
    expression : the function from the columns to the summand of each row.

    Examples
    --------
    >>> cost = Measure("cost", "5 for a miss", lambda row: 5 * row["people"] * row["outcome"] * (1 - row["decision"]))
    >>> cost.coefficients(("outcome", "decision"), ("people", "score"))[1, 0]
    array([5., 0.])
    """

    name: str
    meaning: str
    expression: Callable[[Columns], FloatArray]

    def coefficients(self, states: Sequence[str], values: Sequence[str]) -> FloatArray:
        """Return the coefficient of each row value in each combination of states.

        Parameters
        ----------
        states : the binary columns; each is an axis of length 2.
        values : the row values, which are the last axis.
        """
        grid = dict(zip(states, np.indices((2,) * len(states)).astype(np.float64), strict=True))
        shape = (2,) * len(states)

        def summand(numbers: FloatArray) -> FloatArray:
            columns = {name: np.full(shape, number) for name, number in zip(values, numbers, strict=True)}
            return np.broadcast_to(self.expression({**grid, **columns}), shape)

        coefficients = np.stack([summand(unit) for unit in np.eye(len(values))], axis=-1)
        sizes: FloatArray = np.arange(2.0, 2.0 + len(values))
        probes = [scale * sign * sizes for scale in (0.0, 0.1, 1.0, 1e6) for sign in (1.0, -1.0, (-1.0) ** sizes)]
        if not all(np.allclose(coefficients @ probe, summand(probe)) for probe in probes):
            raise ValueError(f"the measure {self.name!r} is not linear in {', '.join(values)}, so cells cannot sum it")
        return coefficients


@dataclass(frozen=True)
class Ratio:
    """A sum of measures divided by another sum.

    Parameters
    ----------
    numerator, denominator : the measures of each sum, with coefficients.

    Examples
    --------
    >>> Ratio.parse("2 tp / (2 tp + fp + fn)", ("tp", "fp", "fn"))
    Ratio(numerator=(('tp', 2.0),), denominator=(('tp', 2.0), ('fp', 1.0), ('fn', 1.0)))
    """

    numerator: Terms
    denominator: Terms

    @classmethod
    def parse(cls, formula: str, measures: Collection[str]) -> Ratio:
        """Parse a formula such as "2 tp / (2 tp + fp + fn)".

        Parameters
        ----------
        formula : two sums of measures, separated by a slash.
        measures : the permitted names of measures.

        Raises
        ------
        ValueError
            If the formula is not a ratio of two sums, or names an unknown measure.
        """
        sides = formula.split("/")
        if len(sides) != 2:
            raise ValueError(
                f"the formula {formula!r} must be one sum of measures over another, as in 'tp / (tp + fn)'"
            )
        above, below = (_parse_sum(side, formula, measures) for side in sides)
        return cls(above, below)


def _parse_sum(text: str, formula: str, measures: Collection[str]) -> Terms:
    """Return the measures of a sum with their coefficients."""
    written = text.strip()
    bracketed = written.startswith("(") and written.endswith(")")
    terms = _parse_terms(written[1:-1] if bracketed else written, formula, measures)
    if len(terms) > 1 and not bracketed:
        raise ValueError(f"the formula {formula!r} needs parentheses around {written!r}: a slash binds more than a sum")
    return terms


def _parse_terms(inner: str, formula: str, measures: Collection[str]) -> Terms:
    """Return the measures of a sum without its parentheses."""
    terms: list[tuple[str, float]] = []
    position = 0
    while position < len(inner) or not terms:
        term = _TERM.match(inner, position)
        if term is None or (terms and not term["sign"]):
            raise ValueError(f"the formula {formula!r} cannot be read at {inner[position:].strip()!r}")
        _require_measure(term["name"], formula, measures, [name for name, _ in terms])
        sign = -1.0 if term["sign"] == "-" else 1.0
        terms.append((term["name"], sign * float(term["number"] or 1.0)))
        position = term.end()
    return tuple(terms)


def _require_measure(name: str, formula: str, measures: Collection[str], before: Collection[str]) -> None:
    if name not in measures:
        raise ValueError(f"the formula {formula!r} has no measure {name!r}; {did_you_mean(name, list(measures))}")
    if name in before:
        raise ValueError(f"the formula {formula!r} names a measure twice in one sum; add its coefficients")


def sum_coefficients(
    terms: Terms, measures: Mapping[str, Measure], states: Sequence[str], values: Sequence[str]
) -> FloatArray:
    """Return the coefficients of a sum of measures, by states and row value.

    Examples
    --------
    >>> people = Measure("n", "all people", lambda row: row["people"])
    >>> sum_coefficients((("n", 3.0),), {"n": people}, ("outcome",), ("people",)).ravel()
    array([3., 3.])
    """
    parts = [number * measures[name].coefficients(states, values) for name, number in terms]
    return np.asarray(sum(parts[1:], parts[0]))
