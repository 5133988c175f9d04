"""Compiled loops for the comparison of two rates. Import only where needed: this imports numba.

Two groups are (x, m, y, n): x of m people in the first, y of n in the second. A null hypothesis is a position on a
scale where 0 means equal rates: the difference of rates, or the logarithm of their ratio.
"""

from __future__ import annotations

import numpy as np

from evenhand.stats.compiled import kernel
from evenhand.stats.types import FloatArray, IntArray

Groups = tuple[float, float, float, float]
Null = tuple[float, bool]  # the position, and whether it is a log ratio
Span = tuple[float, float]
Search = tuple[Groups, bool, Span, float, float]  # groups, whether of a ratio, pooled rates, tail, and its least share
# first count; chances at even odds of one count more, eight more, and eight less, over those of a count; their room
Window = tuple[int, FloatArray, FloatArray, FloatArray, FloatArray]
Tables = tuple[Span, Null, Window, Window, IntArray]  # sizes, null hypothesis, counts of both groups, and `find_reach`
_TIE = 1e-9  # statistics closer than this are equal
_STEP = 0.25  # between nuisance rates, in standard errors of the pooled rate
_MOST_STEPS = 4096
_REFINEMENTS = 6
_SAME_RATE = 1e-2  # rates closer than this share of their bracket are not told apart
_LEAP = 8  # chances that are computed at once
_NEAR_BEST = 0.98  # maxima of the grid above this share of the largest are refined
_FAR_FROM_ENOUGH = 0.9  # below this share of what would be enough, refining cannot reach it
_MANY_RATES = 12  # with fewer, every second one does not show how high the chance may be
_NEGLIGIBLE = 1e-18  # rates below this are 0
_FARTHEST = 60.0  # log ratio
_SCORE_PRECISION = 1e-13
_FAR_BEYOND = 0.6  # below this share of the tail, p-values do not reach it again
_PRECISION = 1e-2  # of a limit, as a share of the distance of probes
_PROBES, _PROBE_STEP = 24, 1.0 / 96.0  # beyond a limit, and their distance as a share of the limit's from the estimate


@kernel()
def middle_root(square: float, linear: float, constant: float) -> float:
    """Return the middle of the three real roots of p³ + square p² + linear p + constant."""
    q = max((square * square - 3.0 * linear) / 9.0, 0.0)
    r = (2.0 * square**3 - 9.0 * square * linear + 27.0 * constant) / 54.0
    root = np.sqrt(q)
    cosine = r / (q * root) if q > 0 else 1.0
    angle = np.arccos(min(max(cosine, -1.0), 1.0))
    p = -2.0 * root * np.cos((angle - 2.0 * np.pi) / 3.0) - square / 3.0
    for _ in range(2):  # Newton's steps
        slope = (3.0 * p + 2.0 * square) * p + linear
        step = (((p + square) * p + linear) * p + constant) / slope if slope != 0 else 0.0
        if abs(step) < 1e-5:
            p -= step
    return float(p)


@kernel()
def score_above(groups: Groups, null: Null) -> float:
    """Return the score statistic of a null hypothesis with a higher first rate."""
    x, m, y, n = groups
    position, is_ratio = null
    if is_ratio:
        ratio = np.exp(position)
        half = m * ratio + x + n + y * ratio
        root = np.sqrt(max(half * half - 4.0 * (m + n) * ratio * (x + y), 0.0))
        second = min(2.0 * (x + y) / (half + root), 1.0 / ratio)
        first = min(ratio * second, 1.0)
        away = x / m - ratio * y / n
        variance = first * (1.0 - first) / m + ratio * ratio * second * (1.0 - second) / n
    else:
        size = m + n
        square = -(x - m * position + m + y + n * (1.0 - 2.0 * position)) / size
        linear = (x - m * position + y * (1.0 - 2.0 * position) - n * position * (1.0 - position)) / size
        constant = y * position * (1.0 - position) / size
        second = min(max(middle_root(square, linear, constant), 0.0), 1.0 - position)
        first = second + position
        away = x / m - y / n - position
        variance = first * max(1.0 - first, 0.0) / m + second * (1.0 - second) / n
    if variance > 0:
        return float(away / np.sqrt(variance))
    return 0.0 if abs(away) < _TIE else float(np.copysign(np.inf, away))


@kernel()
def score(groups: Groups, null: Null) -> float:
    """Return the score statistic: the distance of the observed contrast from the null hypothesis in standard errors."""
    x, m, y, n = groups
    position, is_ratio = null
    if position > 0.0:
        return score_above(groups, null)
    if position < 0.0:
        return -score_above((y, n, x, m), (-position, is_ratio))
    variance = (x + y) * ((m - x) + (n - y)) * m * n / (m + n)
    return float((x * n - y * m) / np.sqrt(variance)) if variance > 0 else 0.0


@kernel()
def rates_at(pooled: float, m: float, n: float, null: Null) -> Span:
    """Return the rates of both groups under the null hypothesis if the overall rate is `pooled`."""
    position, is_ratio = null
    if is_ratio:
        ratio = np.exp(position)
        first, second = pooled * (m + n) / (m + n / ratio), pooled * (m + n) / (m * ratio + n)
    else:
        first, second = pooled + position * n / (m + n), pooled - position * m / (m + n)
    return min(max(first, 0.0), 1.0), min(max(second, 0.0), 1.0)


@kernel()
def possible_span(span: Span, m: float, n: float, null: Null) -> Span:
    """Return the part of a span of pooled rates in which both rates are between 0 and 1."""
    position, is_ratio = null
    low, high = span
    if is_ratio:
        ratio = np.exp(position)
        return low, min(high, (m + n / ratio) / (m + n), (m * ratio + n) / (m + n))
    first, second = position * n / (m + n), position * m / (m + n)
    return max(low, -first, second), min(high, 1.0 - first, 1.0 + second)


@kernel()
def null_rates(groups: FloatArray, position: float, is_ratio: bool) -> FloatArray:
    """Return the rates (2, P) of both groups under the null at the observed pooled rate; nan if impossible."""
    found = np.full((2, len(groups)), np.nan)
    for i in range(len(groups)):
        x, m, y, n = groups[i, 0], groups[i, 1], groups[i, 2], groups[i, 3]
        x, m, y, n = groups[i]
        pooled, null = (x + y) / (m + n), (position, is_ratio)
        low, high = possible_span((pooled, pooled), m, n, null)
        if low <= high:
            found[0, i], found[1, i] = rates_at(pooled, m, n, null)
    return found


@kernel()
def make_window(people: float, lowest: float, highest: float) -> Window:
    """Return the window of all non-negligible counts for rates between `lowest` and `highest`."""
    size = int(people)
    first = max(0, int(people * lowest - farthest_count(people, lowest)))
    last = min(size, int(people * highest + farthest_count(people, highest)) + 1)
    growth = np.empty(last - first + 1)
    for i in range(growth.size):
        growth[i] = (size - first - i) / (first + i + 1.0)
    leaps = np.ones(max(growth.size - _LEAP, 0))
    for i in range(leaps.size):
        for j in range(_LEAP):
            leaps[i] *= growth[i + j]
    return first, growth, leaps, 1.0 / leaps, np.empty(growth.size)


@kernel()
def farthest_count(people: float, rate: float) -> float:
    """Return a distance from its expectation that a count exceeds with probability at most 1e-17 (Bernstein)."""
    return float(13.0 + np.sqrt(169.0 + 78.0 * people * rate * (1.0 - rate)))


@kernel(fast=True)
def fill_chances(rate: float, people: float, window: Window) -> tuple[int, int, float]:
    """Write binomial probabilities, divided by the mode's probability, into a window.

    Return the start and stop of the non-negligible range, and the sum of the probabilities.
    """
    first, growth, leaps, drops, chances = window
    start = min(max(min(int((people + 1.0) * rate), int(people)) - first, 0), chances.size - 1)
    chances[start] = 1.0
    if rate <= _NEGLIGIBLE or rate >= 1.0:
        return start, start + 1, 1.0
    odds, away = rate / (1.0 - rate), int(farthest_count(people, rate)) + 2
    begin, end = max(start - away, 0), min(start + away, chances.size)
    fill_up(chances[start:end], growth[start:], leaps[start:], odds)
    fill_down(chances[begin : start + 1], growth[begin:], drops[begin:], odds)
    return begin, end, total(chances[begin:end])


@kernel(fast=True)
def fill_up(chances: FloatArray, growth: FloatArray, leaps: FloatArray, odds: float) -> None:
    """Write the relative probabilities of the counts above the first, eight at a time."""
    for i in range(1, min(_LEAP, chances.size)):
        chances[i] = chances[i - 1] * growth[i - 1] * odds
    eight = odds**_LEAP
    for i in range(chances.size - _LEAP):
        chances[i + _LEAP] = chances[i] * (leaps[i] * eight)


@kernel(fast=True)
def fill_down(chances: FloatArray, growth: FloatArray, drops: FloatArray, odds: float) -> None:
    """Write the relative probabilities of the counts below the last, eight at a time."""
    last = chances.size - 1
    for i in range(last - 1, max(last - _LEAP, -1), -1):
        chances[i] = chances[i + 1] / (growth[i] * odds)
    eight = odds**-_LEAP
    for i in range(last - _LEAP, -1, -1):
        chances[i] = chances[i + _LEAP] * (drops[i] * eight)


@kernel(fast=True)
def total(numbers: FloatArray) -> float:
    """Return the sum of numbers."""
    found = 0.0
    for i in range(numbers.size):
        found += numbers[i]
    return found


@kernel()
def find_reach(groups: Groups, null: Null, ours: Window, theirs: Window) -> IntArray:
    """Return for each first count the index of the largest second count at least as extreme as observed.

    The statistic rises with the first count and falls with the second.
    """
    x, m, y, n = groups
    observed = score(groups, null)
    observed -= _TIE * (1.0 + abs(observed)) if np.isfinite(observed) else 0.0
    first, second, size = ours[0], theirs[0], theirs[1].size
    reach, last, step = np.empty(ours[1].size, dtype=np.int64), -1, 0
    for i in range(reach.size):
        before, last = last, min(last + step, size - 1)  # as far as from the count before
        while last > before and score((float(first + i), m, float(second + last), n), null) < observed:
            last -= 1
        while last + 1 < size and score((float(first + i), m, float(second + last + 1), n), null) >= observed:
            last += 1
        if first + i == int(x):
            last = max(last, min(int(y) - second, size - 1))
        reach[i] = last
        step = last - before
    return reach


@kernel(fast=True)
def chance_at(pooled: float, tables: Tables) -> float:
    """Return the probability of tables at least as extreme as observed, at one pooled rate."""
    sizes, null, ours, theirs, reach = tables
    rates = rates_at(pooled, sizes[0], sizes[1], null)
    begin, end, all_ours = fill_chances(rates[0], sizes[0], ours)
    start, stop, all_theirs = fill_chances(rates[1], sizes[1], theirs)
    first, second = ours[4], theirs[4]
    found, below = 0.0, 0.0
    for i in range(begin, end):
        last = min(reach[i] + 1, stop)
        below += total(second[start : max(start, last)])
        start = max(start, last)
        found += first[i] * below
    return found / (all_ours * all_theirs)


@kernel()
def refined(rates: tuple[float, float, float], chances: tuple[float, float, float], tables: Tables) -> float:
    """Return the largest probability near the second of three pooled rates, by parabolas through three points.

    Within a step of a quarter of a standard error, the probability is nearly a parabola.
    """
    low, middle, high = rates
    at_low, at_middle, at_high = chances
    for _ in range(_REFINEMENTS):
        left, right = (at_middle - at_low) / (middle - low), (at_high - at_middle) / (high - middle)
        top = (low + middle + (high - low) * left / (left - right)) / 2 if left > right else low
        if not low < top < high:
            break
        if abs(top - middle) < _SAME_RATE * (high - low):  # the other side may still be far
            top = middle + 0.1 * (high - middle if high - middle > middle - low else low - middle)
        at_top = chance_at(top, tables)
        if at_top >= at_middle:
            low, at_low, high, at_high = (
                (middle, at_middle, high, at_high) if top > middle else (low, at_low, middle, at_middle)
            )
            middle, at_middle = top, at_top
        elif top > middle:
            high, at_high = top, at_top
        else:
            low, at_low = top, at_top
    return max(at_low, at_middle, at_high)


@kernel()
def next_rate(pooled: float, m: float, n: float, null: Null) -> float:
    """Return the next higher pooled rate, a fixed share of the pooled rate's standard error away."""
    first, second = rates_at(pooled, m, n, null)
    ratio = np.exp(null[0]) if null[1] else 1.0
    slope_of_first, slope_of_second = (m + n) / (m + n / ratio), (m + n) / (m * ratio + n)
    information = slope_of_first**2 * m / max(first * (1.0 - first), 0.25 / m)
    information += slope_of_second**2 * n / max(second * (1.0 - second), 0.25 / n)
    return float(pooled + _STEP / np.sqrt(information))


@kernel()
def pooled_rates(span: Span, m: float, n: float, null: Null) -> FloatArray:
    """Return pooled rates from one end of a span to the other at the steps of `next_rate`."""
    rates, steps, pooled = np.empty(_MOST_STEPS), 0, span[0]
    while pooled < span[1] and steps < _MOST_STEPS - 1:
        rates[steps] = pooled
        pooled = next_rate(pooled, m, n, null)
        steps += 1
    rates[steps] = span[1]
    return rates[: steps + 1]


@kernel()
def largest_tail(groups: Groups, null: Null, span: Span, enough: float) -> float:
    """Return the largest probability, over pooled rates in a span, of a score at least as large as observed.

    The search stops once the probability reaches `enough`, or once every second rate shows that it stays far below. It
    begins at the observed rate, where the probability is usually near its largest value.
    """
    m, n = groups[1], groups[3]
    low, high = possible_span(span, m, n, null)
    if low > high:
        return 0.0
    lowest, highest = rates_at(low, m, n, null), rates_at(high, m, n, null)
    ours, theirs = make_window(m, lowest[0], highest[0]), make_window(n, lowest[1], highest[1])
    tables = (m, n), null, ours, theirs, find_reach(groups, null, ours, theirs)
    rates = pooled_rates((low, high), m, n, null)
    size, chances = rates.size, np.full(rates.size, -1.0)
    observed = min(np.searchsorted(rates, (groups[0] + groups[2]) / (m + n)), size - 1)
    order = np.concatenate((np.array([observed, 0, size - 1]), np.arange(0, size, 2), np.arange(1, size, 2)))
    best: float = 0.0
    for number, step in enumerate(order):
        if chances[step] < 0.0:
            chances[step] = chance_at(rates[step], tables)
            best = max(best, float(chances[step]))
        is_far = best < _FAR_FROM_ENOUGH * enough <= _FAR_FROM_ENOUGH and size >= _MANY_RATES
        if best >= enough or (is_far and number >= 2 + (size + 1) // 2):
            return best
    return refined_best(best, rates, chances, enough, tables)


@kernel()
def refined_best(best: float, rates: FloatArray, chances: FloatArray, enough: float, tables: Tables) -> float:
    """Return the largest probability after refining the near-largest maxima of a grid."""
    least, steps = _NEAR_BEST * best, rates.size
    for i in range(steps):
        before, after = max(i - 1, 0), min(i + 1, steps - 1)
        if best >= enough or before == after or chances[i] < max(least, chances[before], chances[after]):
            continue
        middle, at_middle = rates[i], chances[i]
        if i in (before, after):
            middle = (rates[before] + rates[after]) / 2
            at_middle = chance_at(middle, tables)
        brackets = (rates[before], middle, rates[after]), (chances[before], at_middle, chances[after])
        best = max(best, refined(*brackets, tables))
    return best


@kernel()
def score_limit(groups: Groups, is_ratio: bool, z: float) -> float:
    """Return the lowest position with a score statistic of at most z; the statistic falls with the position."""
    low, high = (-_FARTHEST, _FARTHEST) if is_ratio else (-1.0, 1.0)
    at_equality = score(groups, (0.0, is_ratio))
    if at_equality > z:
        low = 0.0
    else:
        high = 0.0
    if high == 0.0 and score(groups, (low, is_ratio)) <= z:
        return -np.inf if is_ratio else -1.0
    while high - low > _SCORE_PRECISION * (1.0 + abs(low)):
        middle = (low + high) / 2
        if score(groups, (middle, is_ratio)) <= z:
            high = middle
        else:
            low = middle
    return high


@kernel()
def score_limits(groups: FloatArray, is_ratio: bool, z: FloatArray) -> FloatArray:
    """Return the result of `score_limit` for each row of groups (P, 4)."""
    found = np.empty(z.size)
    for i in range(z.size):
        found[i] = score_limit((groups[i, 0], groups[i, 1], groups[i, 2], groups[i, 3]), is_ratio, z[i])
    return found


@kernel()
def scores(groups: FloatArray, position: float, is_ratio: bool) -> FloatArray:
    """Return the score statistic of each row of groups (P, 4)."""
    found = np.empty(len(groups))
    for i in range(found.size):
        found[i] = score((groups[i, 0], groups[i, 1], groups[i, 2], groups[i, 3]), (position, is_ratio))
    return found


@kernel()
def share_beyond(position: float, search: Search) -> float:
    """Return the one-sided p-value of a position, or a lower bound on the same side of the tail."""
    groups, is_ratio, span, tail, least = search
    return largest_tail(groups, (position, is_ratio), span, tail - least) + least


@kernel()
def is_accepted(position: float, search: Search) -> bool:
    """Return whether the one-sided p-value of a position is at least the tail."""
    return share_beyond(position, search) >= search[3]


@kernel()
def narrowed(rejected: float, accepted: float, precision: float, search: Search) -> float:
    """Return the accepted end after bisection between a rejected and an accepted position."""
    while accepted - rejected > precision:
        middle = (rejected + accepted) / 2
        if is_accepted(middle, search):
            accepted = middle
        else:
            rejected = middle
    return accepted


@kernel()
def enclosed(start: float, ends: Span, width: float, search: Search) -> Span:
    """Return a rejected and an accepted position that enclose a limit near `start`, within the ends."""
    lowest, highest = ends
    if start >= highest or is_accepted(start, search):
        while start - width > lowest:
            if not is_accepted(start - width, search):
                return start - width, start
            start -= width
            width *= 2.0
        return lowest, start
    while start + width < highest:
        if is_accepted(start + width, search):
            return start, start + width
        start += width
    return start, highest


@kernel()
def outermost(accepted: float, lowest: float, step: float, search: Search) -> float:
    """Return the lowest crossing found by probing positions shortly below an accepted limit."""
    probe = 1
    while probe <= _PROBES and accepted - probe * step > lowest:
        position = accepted - probe * step
        beyond = share_beyond(position, search)
        if beyond < _FAR_BEYOND * search[3]:
            break
        if beyond >= search[3]:
            accepted = narrowed(max(position - step, lowest), position, _PRECISION * step, search)
            probe = 0
        probe += 1
    return accepted


@kernel()
def exact_limit(search: Search, guess: float) -> float:
    """Return the lowest position with a one-sided p-value of at least the tail; above 0 if 0 is rejected.

    The search starts at a guess. Because the p-value jumps where tables change their order, positions shortly below the
    first crossing may also be accepted, so these are probed.
    """
    (x, m, y, n), is_ratio = search[0], search[1]
    lowest, estimate = -1.0, x / m - y / n
    if is_ratio:
        lowest = -_FARTHEST
        estimate = float(np.log(x * n / (y * m))) if x > 0 and y > 0 else float(np.copysign(_FARTHEST, x - y))
    highest = estimate
    if is_accepted(0.0, search):
        highest = min(estimate, 0.0)
        if is_accepted(lowest, search):
            return -np.inf if is_ratio else -1.0
    else:
        lowest = 0.0
    start = min(max(guess, lowest), highest)
    rejected, accepted = enclosed(start, (lowest, highest), 0.1 * max(estimate - start, 1e-3), search)
    accepted = narrowed(rejected, accepted, _PRECISION * max(estimate - accepted, 1e-3) * _PROBE_STEP, search)
    return outermost(accepted, lowest, max(estimate - accepted, 1e-3) * _PROBE_STEP, search)
