"""The frontier of accuracy against the gap over candidates and margins, with simultaneous regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audits.improvability import result as records
from evenhand.audits.improvability.estimate import NO_CANDIDATE, Curves, targets
from evenhand.audits.improvability.messages import say
from evenhand.audits.improvability.spec import STATUS_QUO
from evenhand.audits.improvability.splits import Inputs, Trial, Trials
from evenhand.charts import curve
from evenhand.core.display import DisplayTable, Figure, Number, Range, make_table
from evenhand.core.records import OK
from evenhand.messages.formats import Format, finite, show, show_confidence
from evenhand.stats.improvability import EIGENVALUE_LIMIT
from evenhand.stats.improvability import STATUS_QUO as OLD

if TYPE_CHECKING:
    from evenhand.audits.improvability.result import FrontierPoint, ImprovabilityResult

_ALIKE = say("alike", least=EIGENVALUE_LIMIT)
_AXES = {"x": "accuracy", "left": "accuracy_low", "right": "accuracy_high", "y": "gap", "low": "gap_low"}
_AXES |= {"high": "gap_high"}


def frontier_records(inputs: Inputs, trials: Trials, curves: Curves) -> Iterator[FrontierPoint]:
    """Yield the points of the status quo and of every candidate.

    For a search, yield its choices at larger margins, too.
    """
    most = max(
        trials.values(), key=lambda each: sum(trial.piece.test.size for trial in each if trial.piece.status == OK)
    )
    points = [_point(inputs, STATUS_QUO, most, OLD)]
    fairness = targets(inputs)[0]
    for name, each in trials.items():
        point = _point(inputs, name, each, 1 - OLD)
        points.append(replace(point, better=curves[name, records.JUDGED, fairness].established[0]))
        points += _later_choices(inputs, name, each)
    yield from _ranked_points(points, 1.0 if inputs.spec.utility.better == "higher" else -1.0)


def _later_choices(inputs: Inputs, name: str, trials: Sequence[Trial]) -> Iterator[FrontierPoint]:
    """Yield the members that a search chooses at margins above 0, in one pass or a single split."""
    if len(trials) != 1 or (search := trials[0].search) is None:
        return
    choice, margins = search.choice["fairness"], inputs.margins.fairness
    for member in dict.fromkeys(choice.tolist()):
        if member != choice[0]:
            margin = float(margins[int(np.argmax(choice == member))])
            yield replace(_point(inputs, name, [search.members[member]], 1 - OLD), margin=margin)


def _point(inputs: Inputs, name: str, trials: Sequence[Trial], side: int) -> FrontierPoint:
    spec = inputs.spec
    named = {"model": name, "metric": spec.utility.name, "gap_metric": spec.fairness[0].name}
    tested_trials = [trial for trial in trials if trial.piece.status == OK]
    if not tested_trials:
        return records.FrontierPoint(**named, n=0, accuracy=None, gap=None, status=NO_CANDIDATE)
    region = np.mean([t.estimates.region[side] for t in tested_trials], axis=0)
    limits: dict[str, Any] = dict(zip(_AXES.values(), map(finite, region.ravel()), strict=True))
    eigenvalue = finite(min(trial.estimates.eigenvalue for trial in tested_trials)) if side != OLD else None
    return records.FrontierPoint(
        **named,
        n=round(float(np.mean([trial.piece.test.size for trial in tested_trials]))),
        **limits,
        eigenvalue=eigenvalue,
        status=_ALIKE if eigenvalue is not None and eigenvalue < EIGENVALUE_LIMIT else OK,
    )


def _ranked_points(points: Sequence[FrontierPoint], sign: float) -> Iterator[FrontierPoint]:
    """Yield every point with its efficiency and regret among all points, the status quo first."""
    places = [None if p.accuracy is None or p.gap is None else (sign * p.accuracy, -p.gap) for p in points]
    defined = [place for place in places if place is not None]
    least = np.inf if points[0].accuracy is None else sign * points[0].accuracy
    fairest = max((fair for merit, fair in filter(None, places[1:]) if merit >= least), default=np.nan)
    for number, (point, place) in enumerate(zip(points, places, strict=True)):
        if place is None:
            yield point
        else:
            regret = finite(fairest - place[1]) if number else None
            yield replace(point, efficient=not _is_beaten(place, defined), regret=regret)


def _is_beaten(place: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    """Return whether another point is at least as good in both coordinates."""
    return any(other[0] >= place[0] and other[1] >= place[1] and other != place for other in others)


def _title(point: FrontierPoint) -> str:
    name = "status quo" if point.model == STATUS_QUO else point.model
    return name if point.margin is None else f"{name}, from {show(point.margin, 'percent')}"


def frontier_panels(result: ImprovabilityResult, _: str | None = None) -> list[Any]:
    """Return the panel of accuracy against gap: a region per algorithm, with dashed lines through the status quo."""
    defined = [point for point in result.frontier if point.accuracy is not None and point.gap is not None]
    if not defined:
        return []
    first, quo = defined[0], result.frontier[0]
    percent = {name: result.metrics[name].unit == "share" for name in (first.metric, first.gap_metric)}
    panel = curve(
        [{"series": _title(p)} | {axis: getattr(p, name) for axis, name in _AXES.items()} for p in defined],
        title="Accuracy against the gap",
        x=f"{result.metrics[first.metric].title}, everyone ({result.better} is better)",
        y="Gap between groups",
        intervals="boxes",
        points=True,
        percent_x=percent[first.metric],
        percent_y=percent[first.gap_metric],
        level=quo.gap,
        upright=quo.accuracy,
        width=420,
        height=260,
    )
    return [panel]


def frontier_figure(result: ImprovabilityResult) -> Figure:
    """Return the chart of the frontier."""
    shown = [point.model for point in result.frontier if point.better]
    claim = say("better_in_both", models=tuple(shown)) if shown else say("none_better_in_both")
    side = "right" if result.better == "higher" else "left"
    described = [
        f"{_title(p)}: accuracy {show(p.accuracy, result.metrics[p.metric].style())}, gap "
        f"{show(p.gap, result.metrics[p.gap_metric].style())}"
        for p in result.frontier
    ]
    return Figure(
        "The frontier",
        f"The status quo and every candidate; below and {side} of the dashed lines is better in both. The boxes are "
        f"{show_confidence(result.spec.confidence)} regions for accuracy and gap of all of them together.",
        f"{'; '.join(described)}.",
        tuple(frontier_panels(result)),
        claim,
    )


def frontier_table(result: ImprovabilityResult) -> DisplayTable:
    """Return the table behind the chart of the frontier."""

    def style(name: str) -> Format:
        return result.metrics[name].style()

    return make_table(
        "The frontier: limits hold for all points together",
        {
            "Algorithm": _title,
            "Accuracy": lambda p: Number(p.accuracy, style(p.metric)),
            "Accuracy, region": lambda p: Range(p.accuracy_low, p.accuracy_high, style(p.metric)),
            "Gap": lambda p: Number(p.gap, style(p.gap_metric)),
            "Gap, region": lambda p: Range(p.gap_low, p.gap_high, style(p.gap_metric)),
            "Better in both": lambda p: None if p.better is None else "shown" if p.better else "not shown",
            "Efficient": lambda p: None if p.efficient is None else "yes" if p.efficient else "no",
            "Regret": lambda p: Number(p.regret, style(p.gap_metric)),
            "Smallest eigenvalue": lambda p: Number(p.eigenvalue),
            "Remark": lambda p: "" if p.status == OK else p.status.text,
        },
        result.frontier,
    )
