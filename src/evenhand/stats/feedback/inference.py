"""Intervals of gaps that hold for what the answers leave open and for the sample of critics and cases at once.

`plan_answers` says how many more answers would narrow such an interval to a wanted width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator

from evenhand.errors import ConfigError, require_choice
from evenhand.stats.bootstrap import Draws
from evenhand.stats.feedback.answers import Answers, Feedback
from evenhand.stats.feedback.gaps import Gap, differences, gap, same_gap, together
from evenhand.stats.feedback.limits import ROUNDING, critical_values, numbers_behind, slacks
from evenhand.stats.feedback.metrics import BY_LABEL, INDEFINITE, Bounds, FeedbackMetric, rates
from evenhand.stats.feedback.sampling import CrossedDraws, Resampled, crossed_bootstrap, crossed_draws
from evenhand.stats.intervals import normal_quantile, t_quantile, tail_share
from evenhand.stats.types import FloatArray

GapMethod = Literal["cells", "bounds"]
GAP_METHODS: tuple[GapMethod, ...] = get_args(GapMethod)
Hurdle = Literal["open", "cases", "no_interval"]
_MOST = 1e6


@dataclass(frozen=True, eq=False)
class GapInterval:
    """A gap with an interval that covers the true one, wherever between its bounds that may be.

    Attributes
    ----------
    gap
        The gap in the sample.
    low, high
        The limits, from 0 to 1; nan when the answers do not vary, or a gap is undefined in too many resamples.
    stderr
        (2,) the standard errors of the lower and the upper bound.
    components
        (3, 2) the variances that critics, cases and single answers add to the two bounds; None unless both are drawn
        again.
    below, above
        How far the limits lie outside of the bounds, before they are cut off at 0 and 1.
    """

    gap: Gap
    low: float
    high: float
    stderr: FloatArray
    components: FloatArray | None
    below: float
    above: float


def gap_intervals(
    answers: Answers,
    metrics: Sequence[FeedbackMetric],
    *,
    rng: Generator,
    draws: int = 2_000,
    resampled: Resampled = "both",
    confidence: float = 0.95,
    bounds: Bounds = "sharp",
    method: GapMethod = "cells",
) -> dict[FeedbackMetric, GapInterval]:
    """Return the gaps of several metrics with their intervals, from one bootstrap of critics and cases.

    Parameters
    ----------
    answers
        The answers, of at least two groups.
    metrics
        Some of `METRICS`.
    rng
        Source of randomness.
    draws
        Number of resamples.
    resampled
        'both' critics and cases, 'critics' when the cases are the whole target, or 'cases'.
    confidence
        The confidence with which the true gap is covered.
    bounds
        'sharp' or 'published', see `rates`. Published bounds have the method 'bounds' only.
    method
        'cells' or 'bounds', see Notes.

    Notes
    -----
    'bounds' is the interval of `set_interval` for the two bounds of the gap. But a gap is the largest of several noisy
    differences, so its estimate is too high and the interval too, above all when groups are treated alike. 'cells' goes
    back to the differences: with Stoye's c_l and c_u, the gap is at most max (d_j + c_u se_j) over the largest
    difference d_j of each ordered pair and label, since it is one of them; and at least max (d_j - q se_j) over their
    smallest differences and the smallest gap of each pair, with q the simultaneous quantile of all of them that belongs
    to c_l. Both are widened by Student's t with one less than the critics or cases, whichever are fewer, as its degrees
    of freedom; and a rate of 0 or 1 is given the exact limits of a proportion (`slacks`), since resampling shows no
    error there. A mass of 0 in the sample does not prove that it is 0 (`closed` in `rates`). A difference that is
    undefined in more than 5 % of the resamples may be anything: the high limit is then 1.

    References
    ----------
    V. Chernozhukov, S. Lee and A. M. Rosen (2013), Intersection bounds: estimation and inference, Econometrica 81.
    J. Stoye (2009), More on confidence intervals for partially identified parameters, Econometrica 77.

    Examples
    --------
    >>> seed = np.random.default_rng(0)
    >>> critic, case = np.repeat(np.arange(40), 20), np.arange(800) % 100  # 40 critics, 20 cases each
    >>> group, label = np.arange(100) % 2, np.arange(100) // 2 % 2
    >>> disagree = (seed.random(800) < np.array([0.1, 0.5])[group[case]]).astype(int)
    >>> answers = Answers(critic, case, disagree, group, label, 2, 40, Feedback(2))
    >>> found = gap_intervals(answers, ["calibration"], rng=seed)["calibration"]
    >>> round(float(found.gap.estimate), 2), round(found.low, 2), round(found.high, 2)
    (0.47, 0.36, 0.55)
    """
    require_choice("method", method, GAP_METHODS)
    feedback, masses = answers.feedback, answers.masses()
    alike = {metric: same_gap(metric, feedback.labels) if bounds == "sharp" else metric for metric in metrics}
    distinct = tuple(dict.fromkeys(alike.values()))
    columns = partial(_columns, feedback, distinct, bounds)
    resamples: Draws | CrossedDraws
    if resampled == "both":
        resamples = crossed_draws(answers, columns, rng=rng, draws=draws)
    else:
        resamples = crossed_bootstrap(answers, columns, rng=rng, draws=draws, resampled=resampled)
    parts: dict[FeedbackMetric, _Columns] = {}
    start = 0
    for metric in distinct:
        differing, pairs = _sizes(feedback, metric, bounds, answers.groups)
        part = resamples.part(slice(start, start + differing + pairs))
        behind = numbers_behind(answers, metric, resampled)
        cells = rates(masses, feedback, metric, bounds=bounds, closed=True)
        tails = [tail_share(confidence) / share for share in (1, differing)]
        above, below = (np.append(slacks(cells, behind, tail), np.zeros(pairs)) for tail in tails)
        published = bounds == "published" and metric in INDEFINITE
        parts[metric] = _Columns(part, differing, published, above, below, _student(answers, resampled, confidence))
        start += differing + pairs
    return {
        metric: _interval(gap(masses, feedback, metric, bounds=bounds), parts[alike[metric]], confidence, method)
        for metric in metrics
    }


@dataclass(frozen=True)
class _Columns:
    """The draws of one metric: the largest differences, then the smallest gaps of pairs.

    `above` and `below` are the slacks of the columns, for one of them and for all at once; `student` is what a normal
    quantile is to be multiplied with.
    """

    draws: Draws | CrossedDraws
    differing: int
    published: bool
    above: FloatArray
    below: FloatArray
    student: float

    @property
    def plain(self) -> Draws:
        """The draws of whatever is a sample."""
        return self.draws.both if isinstance(self.draws, CrossedDraws) else self.draws

    def ends(self, columns: FloatArray) -> FloatArray:
        """Return (..., 2) the bounds of the gap."""
        largest, pairs = columns[..., : self.differing], columns[..., self.differing :]
        upper, lower = np.fmax.reduce(largest, axis=-1), np.fmax.reduce(-largest, axis=-1)
        if not self.published:
            lower = np.minimum(np.maximum(lower, pairs.max(axis=-1, initial=0.0)), upper)
        return np.stack([lower, upper], axis=-1)

    def smallest(self, columns: FloatArray) -> FloatArray:
        """Return (..., columns) what the gap is at least: the smallest differences, and the smallest gaps of pairs."""
        return np.concatenate([-columns[..., : self.differing], columns[..., self.differing :]], axis=-1)


def _student(answers: Answers, resampled: Resampled, confidence: float) -> float:
    """Return the quantile of Student's t over the normal one; one less than the critics or cases are its df."""
    sizes = {"critics": answers.critics, "cases": answers.cases, "both": min(answers.critics, answers.cases)}
    return float(t_quantile(max(sizes[resampled] - 1, 1), confidence)) / normal_quantile(confidence)


def _sizes(feedback: Feedback, metric: FeedbackMetric, bounds: Bounds, groups: int) -> tuple[int, int]:
    """Return how many columns `_columns` has for a metric: of differences, and of smallest gaps of pairs."""
    depends = metric in INDEFINITE and bounds == "sharp" and feedback.kind != "label" and feedback.labels > 2
    ordered = groups * (groups - 1)
    columns = ordered * (feedback.labels if metric in BY_LABEL else 1)
    return columns, ordered // 2 if depends and not feedback.tolerance else 0


def _columns(feedback: Feedback, metrics: tuple[FeedbackMetric, ...], bounds: Bounds, masses: FloatArray) -> FloatArray:
    """Return the largest differences of all pairs and labels, and the smallest gap of each pair, metric by metric."""
    mass = masses[..., 0, :, :, :]
    columns = []
    for metric in metrics:
        columns.append(differences(rates(mass, feedback, metric, bounds=bounds, closed=True)))
        if _sizes(feedback, metric, bounds, mass.shape[-3])[1]:
            columns.append(together(mass, feedback, metric, closed=True))
    return np.concatenate(columns, axis=-1)


def _interval(in_sample: Gap, columns: _Columns, confidence: float, method: GapMethod) -> GapInterval:
    with np.errstate(all="ignore"):
        if isinstance(columns.draws, CrossedDraws):
            crossed = columns.draws.map(columns.ends)
            ends, stderr, components = crossed.both, crossed.stderr(), crossed.components()
        else:
            ends = Draws(columns.ends(columns.draws.estimate), columns.ends(columns.draws.values))
            stderr, components = ends.stderr(), None
    low, high = _limits(columns, ends, stderr, confidence, method)
    below, above = float(in_sample.lower) - low, high - float(in_sample.upper)
    low, high = (float(np.clip(limit, 0.0, 1.0)) for limit in (low, high))
    return GapInterval(in_sample, low, high, stderr, components, below, above)


def _limits(
    columns: _Columns, ends: Draws, stderr: FloatArray, confidence: float, method: GapMethod
) -> tuple[float, float]:
    """Return the limits of the gap, which may lie outside 0 and 1; nan where nothing is known of its error."""
    from scipy.special import ndtr

    lower, upper, lower_stderr, upper_stderr = (float(x) for x in (*ends.estimate, *stderr))
    c_low, c_high = critical_values(lower, upper, lower_stderr, upper_stderr, _correlation(ends.values), confidence)
    plain = method == "bounds" or columns.published
    if np.isnan(c_low) and not plain and np.isfinite([upper, *stderr]).all() and columns.above.any():
        c_low = c_high = normal_quantile(confidence)  # nothing varies, but all agree or all disagree
    if np.isnan(c_low):
        return (0.0, 1.0) if lower <= 0 and upper >= 1 else (float("nan"), float("nan"))
    if plain:
        return lower - c_low * columns.student * lower_stderr, upper + c_high * columns.student * upper_stderr
    return _from_cells(columns, float(ndtr(c_low)), c_high)


def _correlation(ends: FloatArray) -> float:
    """Return the correlation of the two bounds over the draws that have both; 0 where one does not vary."""
    known = ends[~np.isnan(ends).any(axis=1)]
    if len(known) < 2:
        return 0.0
    centred = known - known.mean(axis=0)
    spread = float(np.sqrt((centred**2).sum(axis=0).prod()))
    return float(np.clip(centred.prod(axis=1).sum() / spread, -1.0, 1.0)) if spread > 0 else 0.0


def _from_cells(columns: _Columns, one_sided: float, c_high: float) -> tuple[float, float]:
    """Return the limits from the differences one by one: pointwise above, simultaneous below."""
    stderr, drawn = columns.draws.stderr(), columns.plain
    largest, spread = drawn.estimate[: columns.differing], stderr[: columns.differing]
    reach = np.hypot(columns.student * c_high * spread, columns.above[: columns.differing])
    high = np.where(np.isnan(spread), 1.0, largest + reach)[~np.isnan(largest)].max()
    estimate, values = columns.smallest(drawn.estimate), columns.smallest(drawn.values)
    varies = (stderr > ROUNDING) & (drawn.stderr() > ROUNDING)
    q = 0.0
    if varies.any():
        excess = np.fmax.reduce((values - estimate)[:, varies] / drawn.stderr()[varies], axis=1)
        q = columns.student * max(float(np.quantile(excess[~np.isnan(excess)], one_sided, method="higher")), 0.0)
    sure = varies | (columns.below > 0)  # else nothing is known of the error
    at_least = (estimate - np.hypot(q * stderr, columns.below))[sure & ~np.isnan(stderr + estimate)]
    return float(at_least.max()) if at_least.size else 0.0, float(high)


@dataclass(frozen=True)
class Plan:
    """What it takes to know a gap better.

    Attributes
    ----------
    width
        The wanted width of the interval.
    now
        Its width at present.
    least
        The width that no number of critics gets below.
    critics, cases, answers
        How many more of each are needed at the present design, 0 when the interval is narrow enough; None when the
        width cannot be reached.
    hurdle
        Why it cannot: 'open', the answers leave more than that open, whoever is asked; 'cases', more critics on the
        same cases do not help, new cases would; 'no_interval', there is none to begin with. None when it can.
    """

    width: float
    now: float
    least: float
    critics: int | None
    cases: int | None
    answers: int | None
    hurdle: Hurdle | None


def plan_answers(interval: GapInterval, answers: Answers, width: float, *, new_cases: bool = True) -> Plan:
    """Return how many more critics, cases and answers would narrow the interval of a gap to a width.

    With f times the critics, each answering as many cases as now, the variance of a bound is critics / f + cases / g +
    answers / f, where g = f when the cases grow along and g = 1 when they stay the same, and the three parts are those
    of the crossed bootstrap. The limits move towards the bounds as the standard errors do. What the answers leave open
    does not shrink with their number.

    Parameters
    ----------
    interval
        The interval at present, with critics and cases both resampled.
    answers
        The answers behind it.
    width
        The wanted width, above 0.
    new_cases
        Whether new critics come with new cases, so that as many critics see each case as now; else they see the same
        cases.

    Examples
    --------
    >>> from evenhand.stats.feedback import Feedback, gap_intervals
    >>> seed = np.random.default_rng(0)
    >>> critic, case = np.repeat(np.arange(40), 20), np.arange(800) % 100
    >>> group, label = np.arange(100) % 2, np.arange(100) // 2 % 2
    >>> disagree = (seed.random(800) < np.array([0.1, 0.5])[group[case]]).astype(int)
    >>> answers = Answers(critic, case, disagree, group, label, 2, 40, Feedback(2))
    >>> found = gap_intervals(answers, ["calibration"], rng=seed)["calibration"]
    >>> plan = plan_answers(found, answers, width=0.1)
    >>> round(plan.now, 3), plan.critics, plan.cases, plan.answers
    (0.194, 111, 276, 2220)
    """
    if not width > 0:
        raise ConfigError(f"`width` must be above 0; got {width!r}.")
    if interval.components is None:
        raise ConfigError("`interval` must come from resampling both critics and cases; set `resampled` to 'both'.")
    if np.isnan(interval.low):
        nothing = float("nan")
        return Plan(width, nothing, nothing, None, None, None, "no_interval")
    now, least = (_width(interval, factor, new_cases) for factor in (1.0, math.inf))
    if now <= width:
        return Plan(width, now, least, 0, 0, 0, None)
    if _width(interval, _MOST, new_cases) > width:
        still_open = _width(interval, math.inf, new_cases=True) >= width
        return Plan(width, now, least, None, None, None, "open" if still_open else "cases")
    factor = _least_factor(interval, width, new_cases)
    critics = math.ceil(answers.critics * factor - 1e-9)
    cases = math.ceil(answers.cases * factor - 1e-9) if new_cases else answers.cases
    each = len(answers.answer) / answers.critics
    more = math.ceil((critics - answers.critics) * each)
    return Plan(width, now, least, critics - answers.critics, cases - answers.cases, more, None)


def _least_factor(interval: GapInterval, width: float, new_cases: bool) -> float:
    low, high = 0.0, math.log(_MOST)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _width(interval, math.exp(middle), new_cases) <= width else (middle, high)
    return math.exp(high)


def _width(interval: GapInterval, factor: float, new_cases: bool) -> float:
    """Return the width of the interval with so many times the critics: the errors of its two bounds shrink."""
    assert interval.components is not None  # noqa: S101 -- checked by the caller
    critics, cases, single = interval.components
    total = critics + cases + single
    left = (critics + single) / factor + cases / (factor if new_cases else 1.0)
    lower, upper = np.sqrt(np.divide(left, total, out=np.full(2, 1.0 / factor), where=total > 0)).tolist()
    low = max(float(interval.gap.lower) - interval.below * lower, 0.0)
    return float(min(float(interval.gap.upper) + interval.above * upper, 1.0) - low)
