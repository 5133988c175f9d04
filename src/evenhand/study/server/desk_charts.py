"""The charts of the dashboard as inline SVG: colours and fonts are in desk.css, since inline styles are forbidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from evenhand.study.server.charts import axis_ticks
from evenhand.study.server.estimates import Estimate, Series, Snapshot
from evenhand.study.store.records import PageCounts

_WIDTH, _HEIGHT = 320, 176
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 10, 12, 28
_WIDE = 440


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


def is_open(one: Estimate) -> bool:
    """Tell whether the answers leave open where an estimate lies."""
    return one.lower is not None and one.upper is not None and one.upper - one.lower > 1e-9


def in_words(one: Estimate) -> str:
    """Return an estimate with its interval in words."""
    if one.value is None:
        return one.status
    said = f"between {show(one.lower)} and {show(one.upper)}" if is_open(one) else show(one.value)
    interval = f", interval {show(one.low)} to {show(one.high)}" if one.low is not None else f" ({one.status})"
    return said + interval


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where values lie on the canvas: x from 0 to `most`, y from the first tick to the last."""

    width: int
    most: float
    ticks: Sequence[float]

    def x(self, value: float) -> float:
        return _LEFT + (self.width - _LEFT - _RIGHT) * value / self.most

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    def grid(self) -> Markup:
        drawn, digits = Markup(""), _digits(self.ticks)
        for tick in self.ticks:
            line = Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>')
            drawn += line.format(_LEFT, self.width - _RIGHT, self.y(tick), self.y(tick))
            drawn += _text(_LEFT - 5, self.y(tick) + 4, show(tick, digits), "end")
        return drawn

    def bar(self, kind: str, at: int, low: float, high: float) -> Markup:
        """Return a bar at the place `at`, from 0, between two values."""
        left, right, top = self.x(at + 0.12), self.x(at + 0.88), self.y(high)
        rect = Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')
        return rect.format(kind, left, top, right - left, max(self.y(low) - top, 1.0))

    def page_numbers(self) -> Markup:
        """Return the numbers of the pages from 1, as many as there is room for."""
        apart = self.x(1) - self.x(0)
        step = next((step for step in (1, 2, 5, 10, 20, 50, 100) if step * apart >= 24), 1000)
        numbers = [at for at in range(1, int(self.most) + 1) if at == 1 or at % step == 0]
        return Markup("").join(_text(self.x(at - 0.5), _HEIGHT - 8, f"{at:,}", "middle") for at in numbers)


def axes(snapshot: Snapshot) -> dict[str, list[float]]:
    """Return the ticks of the value axis for each kind of estimate: one axis holds all charts of a kind."""
    ends: dict[str, list[float]] = {}
    bounded: dict[str, bool] = {}
    for series in snapshot.series:
        kind = series.now.kind
        bounded[kind] = bounded.get(kind, False) or series.now.lower is not None
        held = ends.setdefault(kind, [])
        for _, one in series.points:
            held += [value for value in (one.value, one.low, one.high) if value is not None]
    return {kind: _axis(held or [0.0], bounded[kind]) for kind, held in ends.items()}


def _axis(ends: Sequence[float], bounded: bool) -> list[float]:
    if min(ends) < -1 or max(ends) > 1:
        return axis_ticks(min(ends), max(ends))
    low = 0.0 if min(ends) >= 0 else -1.0
    high = 0.5 if bounded and low == 0 and max(ends) < 0.5 else 1.0
    return [low, (low + high) / 2, high]


def _digits(ticks: Sequence[float]) -> int:
    """Return the digits after the point that tell the ticks of an axis apart and write each in full."""
    step = ticks[1] - ticks[0]
    return next((digits for digits in range(6) if abs(round(step, digits) - step) < 1e-6 * step), 6)


def trend(series: Series, ticks: Sequence[float]) -> Markup:
    """Draw an estimate against the number of answers: the interval as a band, what is left open as a darker one."""
    known = [(n, one) for n, one in series.points if one.value is not None]
    if not known:
        return Markup("")
    most = series.points[-1][0]
    frame = _Frame(_WIDTH, most, ticks)
    drawn = [
        frame.grid(),
        _band("interval", frame, known, lambda one: (one.low, one.high)),
        _band("open", frame, known, lambda one: (one.lower, one.upper)),
        # The middle of what is left open is no better than its ends, so nothing is drawn there.
        Markup("") if is_open(series.now) else _line(frame, known),
        _text(_LEFT, _HEIGHT - 8, "0", "start"),
        _text(_WIDTH - _RIGHT, _HEIGHT - 8, f"{most:,} answers", "end"),
    ]
    words = "; ".join(f"after {n:,} answers {in_words(one)}" for n, one in series.points)
    return _svg(f"{series.label}, {series.group}" if series.group else series.label, words, drawn, _WIDTH)


def dropout_bars(pages: Sequence[PageCounts], names: Sequence[str]) -> Markup:
    """Draw a bar for every page: who dropped out there, and on top who may still answer it."""
    most = max((page.waiting + page.dropped for page in pages), default=0)
    frame = _Frame(_WIDE, max(len(pages), 1), axis_ticks(0, max(most, 4)))
    drawn = [frame.grid()]
    for at, page in enumerate(pages):
        if page.dropped:
            drawn.append(frame.bar("dropped", at, 0, page.dropped))
        if page.waiting:
            drawn.append(frame.bar("waiting", at, page.dropped, page.dropped + page.waiting))
    words = "; ".join(
        f"page {at} ({name}): {page.dropped} dropped out, {page.waiting} still on it"
        for at, (page, name) in enumerate(zip(pages, names, strict=True), 1)
        if page.dropped or page.waiting
    )
    drawn.append(frame.page_numbers())
    return _svg("People by the page they have not answered", words or "nobody", drawn, _WIDE)


def time_bars(pages: Sequence[PageCounts], names: Sequence[str]) -> Markup:
    """Draw for every page the seconds that the middle half of people took, with the median."""
    longest = max((page.times.upper for page in pages if page.times is not None), default=1.0)
    frame = _Frame(_WIDE, max(len(pages), 1), axis_ticks(0, longest))
    drawn, words = [frame.grid()], []
    for at, (page, name) in enumerate(zip(pages, names, strict=True)):
        if page.times is not None:
            drawn.append(frame.bar("quartiles", at, page.times.lower, page.times.upper))
            half = 1.5 * (frame.ticks[-1] - frame.ticks[0]) / (_HEIGHT - _TOP - _BOTTOM)
            drawn.append(frame.bar("median", at, page.times.median - half, page.times.median + half))
            words.append(f"page {at + 1} ({name}): median {show(page.times.median, _digits(frame.ticks))} seconds")
    drawn.append(frame.page_numbers())
    return _svg("Seconds on each page", "; ".join(words) or "no times yet", drawn, _WIDE)


def _line(frame: _Frame, known: Sequence[tuple[int, Estimate]]) -> Markup:
    """Return the estimates as dots on a line, the last one larger."""
    dots = [(frame.x(n), frame.y(one.value)) for n, one in known if one.value is not None]
    dot = Markup('<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="{}"/>')
    line = Markup('<polyline class="estimate" points="{}"/>').format(_points(dots))
    return line + Markup("").join(dot.format(x, y, 4 if (x, y) == dots[-1] else 2.5) for x, y in dots)


def _band(
    kind: str,
    frame: _Frame,
    known: Sequence[tuple[int, Estimate]],
    ends: Callable[[Estimate], tuple[float | None, float | None]],
) -> Markup:
    """Return the area between two ends over the points that have both; a bar where only one point has."""
    found = [(n, *ends(one)) for n, one in known]
    both = [(n, low, high) for n, low, high in found if low is not None and high is not None]
    if not both or all(high - low < 1e-9 for _, low, high in both):
        return Markup("")
    if len(both) == 1:
        n, low, high = both[0]
        line = Markup('<line class="{}-bar" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>')
        return line.format(kind, frame.x(n), frame.x(n), frame.y(low), frame.y(high))
    there = [(frame.x(n), frame.y(high)) for n, _, high in both]
    back = [(frame.x(n), frame.y(low)) for n, low, _ in reversed(both)]
    return Markup('<polygon class="{}" points="{}"/>').format(kind, _points([*there, *back]))


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _svg(title: str, words: str, drawn: Sequence[Markup], width: int) -> Markup:
    """Return the whole drawing with what it shows in words, for those who do not see it."""
    opening = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}" focusable="false">')
    return opening.format(width, _HEIGHT, f"{title}: {words}") + Markup("").join(drawn) + Markup("</svg>")
