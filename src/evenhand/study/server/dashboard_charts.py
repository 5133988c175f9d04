"""The dashboard's charts, drawn with the curves of the reports, each with a text description."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from evenhand.charts import Curve, curve, to_svg
from evenhand.study.store.records import PageCounts

if TYPE_CHECKING:
    from evenhand.study.server.dashboard import Estimate, Series, Snapshot

_SMALL, _WIDE, _HEIGHT = 300, 420, 136
Axis = tuple[float, float]
"""The lower and upper end of a value axis."""


def show(value: float | None, digits: int = 2) -> str:
    """Return a number as the dashboard formats it; a dash for None.

    Examples
    --------
    >>> show(-0.256), show(None)
    ('−0.26', '–')
    """
    if value is None:
        return "–"
    text = f"{abs(value):,.{digits}f}"
    return f"−{text}" if value < 0 and text.strip("0.,") else text


def is_open(estimate: Estimate) -> bool:
    """Return whether an estimate is only known to lie between two bounds."""
    return estimate.lower is not None and estimate.upper is not None and estimate.upper - estimate.lower > 1e-9


def in_words(estimate: Estimate) -> str:
    """Return an estimate with its interval as text."""
    if estimate.value is None:
        return estimate.status.text
    between = f"between {show(estimate.lower)} and {show(estimate.upper)}"
    value = between if is_open(estimate) else show(estimate.value)
    if estimate.low is None:
        return f"{value} ({estimate.status})"
    return f"{value}, interval {show(estimate.low)} to {show(estimate.high)}"


def axes(snapshot: Snapshot) -> dict[str, Axis]:
    """Return the common value axis of all charts of each kind of estimate."""
    ends: dict[str, list[float]] = {}
    for series in snapshot.series:
        shown = ends.setdefault(series.now.kind, [0.0, 1.0])
        for _, estimate in series.points:
            shown += [value for value in (estimate.value, estimate.low, estimate.high) if value is not None]
    return {kind: (-1.0 if -1 <= min(shown) < 0 else min(shown), max(shown)) for kind, shown in ends.items()}


def trend(series: Series, axis: Axis) -> Markup:
    """Draw an estimate against the number of answers, with its interval or its bounds."""
    known = [(at, estimate) for at, (_, estimate) in enumerate(series.points) if estimate.value is not None]
    if not known:
        return Markup("")
    # The midpoint of the bounds is no better an estimate than its ends, so no point is drawn.
    left_open = is_open(series.now)
    rows = [
        {"x": at, "y": None if left_open else one.value, "low": one.low, "high": one.high, "series": "interval"}
        for at, one in known
    ]
    if left_open:
        rows += [{"x": at, "y": None, "low": one.lower, "high": one.upper, "series": "open"} for at, one in known]
    title = f"{series.label}, {series.group}" if series.group else series.label
    names = tuple(f"{n:,}" for n, _ in series.points)
    intervals = "bars" if len(known) == 1 else "band"
    panel = curve(rows, title=title, x="", y="", names=names, domain=axis, points=True, intervals=intervals)
    return _svg(panel, _SMALL, "; ".join(f"after {n:,} answers {in_words(one)}" for n, one in series.points))


def dropout(pages: Sequence[PageCounts], names: Sequence[str]) -> Markup:
    """Draw for every page the number of people who dropped out there and who may still answer it."""
    states = {"dropped out": [page.dropped for page in pages], "still on it": [page.waiting for page in pages]}
    rows = [{"x": at, "y": n, "series": state} for state, people in states.items() for at, n in enumerate(people)]
    words = "; ".join(
        f"page {page.index + 1} ({name}): {page.dropped} dropped out, {page.waiting} still on it"
        for page, name in zip(pages, names, strict=True)
        if page.dropped or page.waiting
    )
    most = max((page.waiting + page.dropped for page in pages), default=0)
    panel = _of_pages("People by the page they have not answered", rows, len(pages), max(most, 4))
    return _svg(panel, _WIDE, words or "nobody", legend=True)


def times(pages: Sequence[PageCounts], names: Sequence[str]) -> Markup:
    """Draw for every page the median and the interquartile range of the seconds spent on it."""
    timed = [(at, page.times) for at, page in enumerate(pages) if page.times is not None]
    rows = [{"x": at, "y": one.median, "low": one.lower, "high": one.upper, "series": "seconds"} for at, one in timed]
    words = "; ".join(f"page {at + 1} ({names[at]}): median {show(one.median, 1)} seconds" for at, one in timed)
    longest = max((one.upper for _, one in timed), default=0.0)
    return _svg(_of_pages("Seconds on each page", rows, len(pages), longest or 1.0), _WIDE, words or "no times yet")


def _of_pages(title: str, rows: Sequence[dict[str, object]], pages: int, most: float) -> Curve:
    names = tuple(str(number) for number in range(1, max(pages, 1) + 1))
    return curve(rows, title=title, x="", y="", names=names, domain=(0.0, most), points=True, intervals="bars")


def _svg(panel: Curve, width: int, words: str, *, legend: bool = False) -> Markup:
    """Return the drawing with a text description for screen readers."""
    name = f"chart-{hashlib.sha256(panel.title.encode()).hexdigest()[:8]}"
    described = f"{panel.title}: {words}"
    drawn = to_svg(panel, panel.title, described, name=name, legend=legend, titles=False, width=width, height=_HEIGHT)
    return Markup(drawn)  # noqa: S704 the curve escapes its texts
