"""The charts of the dashboard, drawn in a process of their own and kept for as long as their numbers stay.

Each chart carries in words what it shows. The renderer of charts takes 60 to 120 ms of CPU a chart, all the while with
Python's lock, and a second for the first one: in the server's own process every participant's page would wait for it,
as measured.
"""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from evenhand.charts import PALETTE, data, to_svg
from evenhand.study.server.pages import axis_ticks
from evenhand.study.server.protocol import end_with_parent
from evenhand.study.store.records import PageCounts

if TYPE_CHECKING:
    import altair as alt

    from evenhand.study.server.dashboard import Estimate, Series, Snapshot

log = logging.getLogger("evenhand.study")
_MOST_CHARTS = 500
_PATIENCE = 60.0
_SMALL, _WIDE, _HEIGHT = 272, 392, 136
_BLUE, _RED, _LIGHT_BLUE = PALETTE[0], PALETTE[1], PALETTE[5]
_COLOURS = {"dropped": _RED, "waiting": _LIGHT_BLUE, "quartiles": _LIGHT_BLUE, "median": "currentColor"}


class ChartProcess:
    """Draws charts in another process, started with the first chart, and keeps those that were drawn last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: ProcessPoolExecutor | None = None
        self._drawn = lru_cache(_MOST_CHARTS)(self._draw)

    def draw(self, chart: Callable[..., str], *values: Hashable) -> Markup:
        """Return the SVG that a function of this module draws from values; nothing where it cannot be drawn now."""
        try:
            return self._drawn(chart, *values)
        except (BrokenExecutor, CancelledError, TimeoutError) as error:
            log.error("a chart could not be drawn: %s", type(error).__name__)
            self.close()
            return Markup("")

    def _draw(self, chart: Callable[..., str], *values: Hashable) -> Markup:
        with self._lock:
            if self._process is None:
                spawn = multiprocessing.get_context("spawn")
                self._process = ProcessPoolExecutor(1, mp_context=spawn, initializer=_prepare_process)
            drawing = self._process.submit(chart, *values)
        return Markup(drawing.result(_PATIENCE))  # noqa: S704

    def close(self) -> None:
        """End the process; the next chart starts another."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.shutdown(wait=False, cancel_futures=True)


@cache
def chart_process() -> ChartProcess:
    """Return the child process that draws charts for this server process."""
    return ChartProcess()


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    end_with_parent()


def show(value: float | None, digits: int = 2) -> str:
    """Return a number as the dashboard writes it; a dash where there is none.

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
    """Tell whether the answers leave open where an estimate lies."""
    return estimate.lower is not None and estimate.upper is not None and estimate.upper - estimate.lower > 1e-9


def in_words(estimate: Estimate) -> str:
    """Return an estimate with its interval in words."""
    if estimate.value is None:
        return estimate.status
    between = f"between {show(estimate.lower)} and {show(estimate.upper)}"
    value = between if is_open(estimate) else show(estimate.value)
    if estimate.low is None:
        return f"{value} ({estimate.status})"
    return f"{value}, interval {show(estimate.low)} to {show(estimate.high)}"


def axes(snapshot: Snapshot) -> dict[str, tuple[float, ...]]:
    """Return the ticks of the value axis for each kind of estimate: one axis holds all charts of a kind."""
    ends: dict[str, list[float]] = {}
    bounded: set[str] = set()
    for series in snapshot.series:
        kind = series.now.kind
        if series.now.lower is not None:
            bounded.add(kind)
        shown = ends.setdefault(kind, [])
        for _, estimate in series.points:
            shown += [value for value in (estimate.value, estimate.low, estimate.high) if value is not None]
    return {kind: _axis(shown or [0.0], kind in bounded) for kind, shown in ends.items()}


def _axis(ends: Sequence[float], bounded: bool) -> tuple[float, ...]:
    if min(ends) < -1 or max(ends) > 1:
        return tuple(axis_ticks(min(ends), max(ends)))
    low = 0.0 if min(ends) >= 0 else -1.0
    high = 0.5 if bounded and low == 0 and max(ends) < 0.5 else 1.0
    return low, (low + high) / 2, high


def _digits(ticks: Sequence[float]) -> int:
    """Return the digits after the point that tell the ticks of an axis apart and write each in full."""
    step = ticks[1] - ticks[0]
    return next((digits for digits in range(6) if abs(round(step, digits) - step) < 1e-6 * step), 6)


def trend(series: Series, ticks: Sequence[float]) -> str:
    """Draw an estimate against the number of answers: the interval as a band, what is left open as a darker one."""
    import altair as alt

    known = [(n, estimate) for n, estimate in series.points if estimate.value is not None]
    if not known:
        return ""
    most = series.points[-1][0]
    labels = "datum.value === 0 ? '0' : format(datum.value, ',') + ' answers'"
    axis = alt.Axis(values=[0, most], labelExpr=labels, labelFlush=True, grid=False, title=None)
    x = alt.X("n:Q", scale=alt.Scale(domain=[0, most], nice=False), axis=axis)
    bands = [
        _band([(n, estimate.low, estimate.high) for n, estimate in known], x, ticks, opacity=0.2),
        _band([(n, estimate.lower, estimate.upper) for n, estimate in known], x, ticks, opacity=0.5, stroke=_BLUE),
    ]
    # The middle of what is left open is no better than its ends, so nothing is drawn there.
    lines = [] if is_open(series.now) else _line([(n, estimate.value) for n, estimate in known], x, ticks)
    title = f"{series.label}, {series.group}" if series.group else series.label
    words = "; ".join(f"after {n:,} answers {in_words(estimate)}" for n, estimate in series.points)
    return _svg(alt.layer(*filter(None, bands), *lines), _SMALL, title, words)


def _line(values: Sequence[tuple[int, float | None]], x: alt.X, ticks: Sequence[float]) -> list[alt.Chart]:
    """Return the estimates as dots on a line, the last one larger."""
    import altair as alt

    last = values[-1][0]
    rows = [{"n": n, "value": value, "size": 60 if n == last else 25} for n, value in values]
    line = alt.Chart(data(rows)).encode(x=x, y=_value_axis("value:Q", ticks))
    dots = line.mark_point(color=_BLUE, filled=True, opacity=1).encode(size=alt.Size("size:Q", scale=None))
    return [line.mark_line(color=_BLUE, strokeWidth=2), dots]


def _band(ends: Sequence[tuple[int, float | None, float | None]], x: alt.X, ticks: Sequence[float], **mark: Any) -> Any:
    """Return the area between two ends over the points that have both; a bar where only one point has."""
    import altair as alt

    rows = [{"n": n, "low": low, "high": high} for n, low, high in ends if low is not None and high is not None]
    if all(row["high"] - row["low"] < 1e-9 for row in rows):
        return None
    band = alt.Chart(data(rows)).encode(x=x, y=_value_axis("low:Q", ticks), y2="high")
    if len(rows) > 1:
        return band.mark_area(color=_BLUE, fillOpacity=mark["opacity"], stroke=mark.get("stroke"))
    return band.mark_rule(color=_BLUE, opacity=mark["opacity"], strokeWidth=8)


def _value_axis(field: str, ticks: Sequence[float]) -> alt.Y:
    import altair as alt

    axis = alt.Axis(values=list(ticks), format=f",.{_digits(ticks)}f", grid=True, title=None)
    return alt.Y(field, scale=alt.Scale(domain=[ticks[0], ticks[-1]], nice=False), axis=axis)


def dropout_bars(pages: Sequence[PageCounts], names: Sequence[str]) -> str:
    """Draw a bar for every page: who dropped out there, and on top who may still answer it."""
    most = max((page.waiting + page.dropped for page in pages), default=0)
    listed = list(zip(range(1, len(pages) + 1), pages, names, strict=True))
    bars = [(number, 0, page.dropped, "dropped") for number, page, _ in listed if page.dropped]
    bars += [(n, page.dropped, page.dropped + page.waiting, "waiting") for n, page, _ in listed if page.waiting]
    words = "; ".join(
        f"page {number} ({name}): {page.dropped} dropped out, {page.waiting} still on it"
        for number, page, name in listed
        if page.dropped or page.waiting
    )
    chart = _bars(len(pages), bars, axis_ticks(0, max(most, 4)))
    return _svg(chart, _WIDE, "People by the page they have not answered", words or "nobody")


def time_bars(pages: Sequence[PageCounts], names: Sequence[str]) -> str:
    """Draw for every page the seconds that the middle half of people took, with the median."""
    timed = [(number, page.times) for number, page in enumerate(pages, 1) if page.times is not None]
    ticks = axis_ticks(0, max((times.upper for _, times in timed), default=1.0))
    half = 1.5 * (ticks[-1] - ticks[0]) / _HEIGHT
    bars = [(number, times.lower, times.upper, "quartiles") for number, times in timed]
    bars += [(number, times.median - half, times.median + half, "median") for number, times in timed]
    words = "; ".join(
        f"page {number} ({names[number - 1]}): median {show(times.median, _digits(ticks))} seconds"
        for number, times in timed
    )
    return _svg(_bars(len(pages), bars, ticks), _WIDE, "Seconds on each page", words or "no times yet")


def _bars(pages: int, bars: Sequence[tuple[int, float, float, str]], ticks: Sequence[float]) -> Any:
    """Return bars over pages from 1: each has its page, both ends and its kind; the thinnest is a pixel high."""
    import altair as alt

    pixel = (ticks[-1] - ticks[0]) / _HEIGHT
    rows = [{"page": page, "low": low, "high": max(high, low + pixel), "kind": kind} for page, low, high, kind in bars]
    step = next((step for step in (1, 2, 5, 10, 20, 50, 100) if step * _WIDE >= 24 * pages), 1000)
    labelled = [page for page in range(1, pages + 1) if page == 1 or page % step == 0]
    axis = alt.Axis(values=labelled, labelAngle=0, labelOverlap=False, format=",", grid=False, title=None)
    scale = alt.Scale(domain=list(range(1, max(pages, 1) + 1)), paddingInner=0.24, paddingOuter=0.12)
    bar = alt.Chart(data(rows)).encode(x=alt.X("page:O", scale=scale, axis=axis), y2="high")
    y, kinds = _value_axis("low:Q", ticks), {row["kind"] for row in rows}
    layers = [
        bar.mark_bar(color=colour, clip=True).transform_filter(f"datum.kind === '{kind}'").encode(y=y)
        for kind, colour in _COLOURS.items()
        if kind in kinds
    ]
    return alt.layer(*(layers or [bar.mark_bar().encode(y=y)]))


def _svg(chart: Any, width: int, title: str, words: str) -> str:
    """Return the drawing with what it shows in words, for those who do not see it."""
    name = f"chart-{hashlib.sha256(title.encode()).hexdigest()[:8]}"
    return to_svg(chart.properties(width=width, height=_HEIGHT), title, f"{title}: {words}", name=name)
