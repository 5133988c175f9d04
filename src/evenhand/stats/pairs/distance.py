"""Distances between people in effort and aggregate: the paper's and alternatives.

With e and s the differences in effort and aggregate, each over its scale, L the Lipschitz constant and w the weight of
effort, a score may differ by

    euclidean   L (w e² + (1 - w) s²)^(1/2)          the paper's, with L and the scales 1
    manhattan   L (w |e| + (1 - w) |s|)
    maximum     L max(|e|, |s|)                      |s| at w = 0, |e| at w = 1
    learned L (a e² + 2 b e s + c s²)^(1/2) a + c = 1, from judged pairs of people
    function    L f(E, S, E', S')                    of the user's own

The first three are the weighted power means of |e| and |s| with exponents 1, 2 and infinity: manhattan is never above
euclidean, euclidean is never above maximum, and all three are within [0, 1] if e and s are. All distances but the last
are exact in every exact method, because they are lengths after a linear change of coordinates: max(|e|, |s|) = |e + s|
/ 2 + |e - s| / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.pairs.inputs import OwnDistance, ScoredPeople
from evenhand.stats.types import FloatArray

Norm = Literal["euclidean", "manhattan", "maximum"]
NORMS: tuple[Norm, ...] = get_args(Norm)
_FEWEST = 10  # fewest judged pairs


@dataclass(frozen=True)
class Distance:
    """A distance between people in effort and aggregate.

    Attributes
    ----------
    norm
        'euclidean', 'manhattan' or 'maximum'.
    scales
        Divisors of differences in effort and in aggregate.
    lipschitz
        The permitted difference in scores per unit of distance.
    matrix
        a, b and c of a learned distance, which replaces the norm and the weight of effort.
    function
        A custom distance function of the efforts and aggregates of both people (arrays of one shape), which replaces
        everything but `lipschitz`.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.stats.pairs.inputs import distance_of
    >>> two = ScoredPeople(np.zeros(2), np.array([0.0, 0.3]), np.array([0.0, 0.4]))
    >>> first, second = np.array([0]), np.array([1])
    >>> [round(float(distance_of(*Distance(norm).transform(two, 0.5), first, second)[0]), 4) for norm in NORMS]
    [0.3536, 0.35, 0.4]
    """

    norm: Norm = "euclidean"
    scales: tuple[float, float] = (1.0, 1.0)
    lipschitz: float = 1.0
    matrix: tuple[float, float, float] | None = None
    function: OwnDistance | None = None

    def __post_init__(self) -> None:
        require_choice("norm", self.norm, NORMS)
        for name, value in (("scales", self.scales[0]), ("scales", self.scales[1]), ("lipschitz", self.lipschitz)):
            if not (np.isfinite(value) and value > 0):
                raise EvenhandError("`{name}` must be above 0 and finite; got {value:g}.", name=name, value=value)

    def transform(self, people: ScoredPeople, weight: float) -> tuple[ScoredPeople, float]:
        """Return the people in this distance's coordinates, and the weight of the first coordinate."""
        if self.function is not None:
            function, factor = self.function, self.lipschitz
            return _moved(
                people, people.effort, people.aggregate, own=lambda *x: factor * np.asarray(function(*x))
            ), weight
        effort, aggregate = (
            column if self.lipschitz == scale else self.lipschitz / scale * column
            for column, scale in zip((people.effort, people.aggregate), self.scales, strict=True)
        )
        if self.matrix is not None:
            root = np.sqrt(2.0) * np.linalg.cholesky(np.array([self.matrix[:2], self.matrix[1:]]))
            return _moved(people, root[0, 0] * effort + root[1, 0] * aggregate, root[1, 1] * aggregate), 0.5
        if self.norm == "maximum" and 0.0 < weight < 1.0:
            return _moved(people, effort + aggregate, effort - aggregate, diamond=True), 0.5
        return _moved(people, effort, aggregate, diamond=self.norm != "euclidean"), weight

    def same_coordinates(self, weights: Sequence[float]) -> list[list[int]]:
        """Return the indices of the weights, grouped by whether they need the same coordinates."""
        if self.norm != "maximum" or self.matrix is not None:
            return [list(range(len(weights)))]
        inside = [number for number, weight in enumerate(weights) if 0.0 < weight < 1.0]
        ends = [number for number in range(len(weights)) if number not in inside]
        return [part for part in (inside, ends) if part]


EUCLIDEAN = Distance()
"""The paper's distance."""


def _moved(
    people: ScoredPeople,
    effort: FloatArray,
    aggregate: FloatArray,
    diamond: bool = False,
    own: OwnDistance | None = None,
) -> ScoredPeople:
    return ScoredPeople(
        score=people.score, effort=effort, aggregate=aggregate, survey=people.survey, diamond=diamond, own=own
    )


def learn_metric(effort: ArrayLike, aggregate: ArrayLike, similar: ArrayLike) -> tuple[float, float, float]:
    """Return a, b and c of the distance (a e² + 2 b e s + c s²)^(1/2), a + c = 1, learned from judged pairs.

    The probability that a pair is judged similar is modelled as 2 / (1 + exp(q)), where q is the squared distance with
    an unscaled matrix: it is 1 for equal people and falls with their distance. The matrix maximises the likelihood,
    which is a convex problem. A penalty of 0.001 of the matrix's trace per pair keeps it finite if similar and
    different pairs do not overlap. The matrix is then divided by its trace, since `lipschitz` sets the size of a
    distance.

    Parameters
    ----------
    effort, aggregate
        The differences in effort and in aggregate of each pair.
    similar
        Whether the pair was judged similar.

    References
    ----------
    D. Mukherjee, M. Yurochkin, M. Banerjee and Y. Sun (2020), Two simple ways to learn individual fairness metrics from
    data, Proceedings of Machine Learning Research 119 (EXPLORE).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> e, s = rng.normal(0, 0.5, (2, 4_000))
    >>> judged = rng.random(4_000) < 2 / (1 + np.exp(9 * e**2 + s**2))
    >>> round(learn_metric(e, s, judged)[0], 1)
    0.9
    """
    from scipy.optimize import minimize

    e, s, is_similar = (np.asarray(x, dtype=np.float64) for x in (effort, aggregate, similar))
    if not e.shape == s.shape == is_similar.shape or e.size < _FEWEST:
        raise EvenhandError(
            "a learned distance needs at least {FEWEST} judged pairs; got {size}.", FEWEST=_FEWEST, size=e.size
        )
    if not 0 < is_similar.sum() < is_similar.size:
        which = "similar" if is_similar.all() else "different"
        raise EvenhandError(
            "a learned distance needs similar and different pairs; all {size:,} are {which}.",
            size=is_similar.size,
            which=which,
        )
    unit = float(np.sqrt(np.mean(e**2 + s**2))) or 1.0

    def loss(root: FloatArray) -> float:
        q = np.maximum((root[0] * e + root[1] * s) ** 2 + (root[2] * s) ** 2, 1e-12)
        unlikely = np.where(
            is_similar > 0, np.logaddexp(0.0, q), np.logaddexp(0.0, q) - np.log(np.expm1(np.minimum(q, 700.0)))
        )
        return float(unlikely.mean() + 1e-3 * unit**2 * np.sum(root**2))

    starts = [np.array([1.0, 0.0, 1.0]), np.array([1.0, 0.7, 0.7]), np.array([1.0, -0.7, 0.7])]
    best = min((minimize(loss, start / unit, method="BFGS") for start in starts), key=lambda fit: float(fit.fun))
    x, y, z = best.x
    trace = float(x * x + y * y + z * z)
    least = 1e-6  # a distance must not vanish in any direction
    return (
        float(x * x / trace * (1 - least) + least / 2),
        float(x * y / trace),
        float((y * y + z * z) / trace * (1 - least) + least / 2),
    )
