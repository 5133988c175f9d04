"""The specification curve: every model's value under each combination of choices, with the choices below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import numpy.typing as npt

from evenhand.audits.effort.robustness import SpecificationCurve
from evenhand.charts import PALETTE, PANEL_WIDTH, mark_path
from evenhand.charts.look import (
    LINE,
    Legend,
    ends_of,
    head_of,
    letters,
    looks,
    round_ticks,
    text_at,
    text_width,
    title_at,
)
from evenhand.messages.formats import show_tick
from evenhand.stats.types import BoolArray, FloatArray, IntArray

MOST_DRAWN = 120
"""The maximum number of specifications in one panel."""
_ROW, _LABELS, _HEIGHT = 12, 128, 150
"""The height of an option's row, the room for its name, and the height of the curve."""
_TITLES = {"eaif": "Individual fairness", "eagf": "Lowest parity by effort"}
_NO_MODEL = "#7a7f87"


@dataclass(frozen=True)
class Strip:
    """The options of one choice, one row each, marked at the specifications that use the option.

    Parameters
    ----------
    title : the title of the choice.
    labels : the labels of the options.
    marked : (specifications, options) whether the specification uses the option.
    colours : (specifications, options) the colours of the marks.
    """

    title: str
    labels: tuple[str, ...]
    marked: BoolArray
    colours: npt.NDArray[np.str_]

    def paths(self, row: int) -> Iterator[tuple[str, list[tuple[float, float]]]]:
        """Yield each colour of a row with its runs of adjacent marks, because single marks would make the page slow."""
        here, shades = self.marked[:, row], self.colours[:, row]
        for colour in dict.fromkeys(shades[here].tolist()):
            yield colour, _runs(here & (shades == colour))


@dataclass(frozen=True)
class SpecificationPanel:
    """The specification curve of one metric.

    Parameters
    ----------
    title : the title of the metric.
    models : the models, in order.
    values : the values by drawn specification and model.
    strips : the rows of marks of the choices.
    chosen : the position of the audit's own specification.
    """

    title: str
    models: tuple[str, ...]
    values: FloatArray
    strips: tuple[Strip, ...]
    chosen: int

    @property
    def legend(self) -> Legend:
        """The legend of the models with colours and shapes; empty for a single model."""
        return looks(self.models) if len(self.models) > 1 else []

    def drawn(self, width: int, height: int, *, legend: bool, titles: bool = True) -> tuple[int, int, str]:
        """Return the panel's width, height and SVG content; see `evenhand.charts.Panel`."""
        panel = self if titles else replace(self, title="")
        return _Drawing(panel, width or _LABELS + PANEL_WIDTH + 14, min(height or _HEIGHT, _HEIGHT)).made(legend)


class _Drawing:
    """Drawing of a specification curve as SVG."""

    def __init__(self, panel: SpecificationPanel, width: int, height: int) -> None:
        self.panel, self.width, self.height = panel, width, height
        self.left, self.right = float(min(_LABELS, width // 3)), width - 14.0
        finite = panel.values[np.isfinite(panel.values)]
        self.ticks = round_ticks(*ends_of(finite.tolist()))
        self.top = 0.0

    def made(self, legend: bool) -> tuple[int, int, str]:
        """Return the width, the height and the SVG content."""
        top, head = head_of(self.panel.title, self.panel.legend if legend else [], self.width)
        self.top = top + 8
        body = [*self._curve(), *self._strips()]
        x = self._x(self.panel.chosen)
        look = 'stroke="currentColor" opacity=".6" stroke-dasharray="4 3"'
        rule = f'<path {look} d="M{x:.1f} {top + 8:.1f}V{self.top:.1f}"/>'
        return self.width, ceil(self.top + 4), "".join([head, rule, *body])

    def _x(self, specification: float) -> float:
        return self.left + (self.right - self.left) * (specification + 1) / (len(self.panel.values) + 1)

    def _y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return round(self.top + self.height * (1 - (value - low) / (high - low)), 1)

    def _curve(self) -> Iterator[str]:
        """Yield the axis, and a point for each model and specification."""
        across = "".join(f"M{self.left:.1f} {self._y(tick)}H{self.right:.1f}" for tick in self.ticks)
        yield f'<path stroke="currentColor" opacity=".14" d="{across}"/>'
        for tick in self.ticks:
            yield text_at(self.left - 6, self._y(tick) + 4, show_tick(tick, "number"), anchor="end")
        for model, (_, colour, shape) in enumerate(looks(self.panel.models)):
            values = self.panel.values[:, model]
            places = [(round(self._x(x), 1), self._y(values[x])) for x in np.flatnonzero(np.isfinite(values)).tolist()]
            yield mark_path(shape, colour, places, small=True)
        self.top += self.height + 6

    def _strips(self) -> Iterator[str]:
        """Yield the choices, each with its title and a row of marks per option."""
        for strip in self.panel.strips:
            self.top += LINE
            yield title_at(0, self.top - 4, strip.title, 11)
            for row, label in enumerate(strip.labels):
                middle = self.top + _ROW / 2
                yield text_at(self.left - 8, middle + 4, self._short(label), anchor="end", size=11)
                for colour, runs in strip.paths(row):
                    path = "".join(f"M{self._x(first):.1f} {middle:.1f}H{self._x(last):.1f}" for first, last in runs)
                    yield f'<path stroke="{colour}" stroke-width="{_ROW - 4}" d="{path}"/>'
                self.top += _ROW

    def _short(self, label: str) -> str:
        """Return a label shortened to fit beside the marks."""
        most = letters(self.left - 8, 11)
        return label if text_width(label, 11) <= self.left - 8 else f"{label[: most - 1]}…"


def leading_model(curve: SpecificationCurve) -> int:
    """Return the position of the model that is the fairest most often; ties give the first model."""
    return int(np.argmax(curve.wins.reshape(-1, len(curve.models)).sum(axis=0)))


def drawn_specifications(curve: SpecificationCurve) -> IntArray:
    """Return the specifications to draw, sorted by the leading model's value.

    Undefined values come last.

    More than 120 specifications are thinned evenly in this order; the audit's own specification replaces its nearest
    neighbour.
    """
    values = curve.value.reshape(-1, len(curve.models))[:, leading_model(curve)]
    order = np.argsort(np.round(values, 9), kind="stable")  # the same before and after numbers are written to JSON
    if order.size <= MOST_DRAWN:
        return order
    positions = np.linspace(0, order.size - 1, MOST_DRAWN).round().astype(np.int64)
    chosen = int(np.flatnonzero(order == _chosen_number(curve))[0])
    positions[int(np.argmin(np.abs(positions - chosen)))] = chosen
    return np.asarray(order[positions])


def _chosen_number(curve: SpecificationCurve) -> int:
    return int(np.ravel_multi_index(curve.chosen, curve.value.shape[:-1]))


def specification_panel(curve: SpecificationCurve) -> SpecificationPanel:
    """Return the specification curve of one metric."""
    drawn, models = drawn_specifications(curve), len(curve.models)
    fairest = curve.fairest.reshape(-1, models)[drawn]
    return SpecificationPanel(
        title=_TITLES[curve.metric] if curve.grouping is None else f"{_TITLES[curve.metric]}: {curve.grouping}",
        models=tuple(curve.models),
        values=curve.value.reshape(-1, models)[drawn],
        strips=tuple(_strips(curve, drawn, fairest)),
        chosen=int(np.flatnonzero(drawn == _chosen_number(curve))[0]),
    )


def _strips(curve: SpecificationCurve, drawn: IntArray, fairest: BoolArray) -> Iterator[Strip]:
    """Yield the row of the fairest model (if there are several), and the rows of every choice with several options."""
    palette = np.array([PALETTE[model % len(PALETTE)] for model in range(len(curve.models))])
    several = len(curve.models) > 1
    if several:
        yield Strip("Fairest", tuple(curve.models), fairest, np.broadcast_to(palette, fairest.shape))
    colour = np.where(fairest.sum(axis=1) == 1, palette[fairest.argmax(axis=1)], _NO_MODEL)
    taken = np.unravel_index(drawn, curve.value.shape[:-1])
    for choice, options in zip(curve.choices, taken, strict=True):
        if len(choice.options) > 1:
            marked = options[:, np.newaxis] == np.arange(len(choice.options))
            shade = colour[:, np.newaxis] if several else palette
            yield Strip(choice.title, tuple(choice.labels), marked, np.broadcast_to(shade, marked.shape))


def _runs(here: BoolArray) -> list[tuple[float, float]]:
    """Return the two ends of each run of adjacent marks."""
    edges: Sequence[Sequence[int]] = (
        np.flatnonzero(np.diff(np.concatenate([[False], here, [False]]).astype(np.int8))).reshape(-1, 2).tolist()
    )
    return [(first - 0.5, after - 0.5) for first, after in edges]
