"""The charts of the disagreement audit: what is known of gaps and rates, critics one by one, kinds of critics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.audits.disagreement.notions import WORDS
from evenhand.charts.look import PALETTE, PANEL_WIDTH, SHAPES, data, series_scale
from evenhand.stats.feedback import DEFINITE, INDEFINITE, METRICS, TOLERANT
from evenhand.stats.feedback import FeedbackMetric as Notion

if TYPE_CHECKING:
    from evenhand.audits.disagreement.records import CriticRecord, GapRecord, RateRecord
    from evenhand.audits.disagreement.result import DisagreementResult

ALL = "all critics"
MOST_GROUPS = 6
MOST_KINDS = 6
_BINS = 20


def told_notions(gaps: Iterable[GapRecord]) -> list[Notion]:
    """Return the notions that have a gap of their own, in the order in which they are always told."""
    own = {gap.notion for gap in gaps if gap.same_as is None}
    return [notion for notion in METRICS if notion in own]


def gap_panels(result: DisagreementResult, groupings: Sequence[str]) -> list[Any]:
    """Return one panel a grouping: the gap of every notion as all critics see it."""
    panels = []
    for grouping in groupings:
        own = [gap for gap in result.gaps if (gap.grouping, gap.stakeholder, gap.critic) == (grouping, None, None)]
        notions = told_notions(own)
        rows = [_row(gap, WORDS[notion].title, ALL) for notion in notions for gap in own if gap.notion == notion]
        panels.append(_known(rows, [WORDS[notion].title for notion in notions], [ALL], grouping))
    return panels


def stakeholder_panels(result: DisagreementResult, groupings: Sequence[str]) -> list[Any]:
    """Return one panel a grouping: the gap of every notion as each kind of critics sees it."""
    panels = []
    for grouping in groupings:
        own = [gap for gap in result.gaps if gap.grouping == grouping and gap.critic is None]
        kinds = [kind for kind in dict.fromkeys(gap.stakeholder for gap in own) if kind is not None][:MOST_KINDS]
        notions = told_notions(own)
        rows = [
            _row(gap, WORDS[notion].title, gap.stakeholder or ALL)
            for notion in notions
            for gap in own
            if gap.notion == notion and (gap.stakeholder is None or gap.stakeholder in kinds)
        ]
        panels.append(_known(rows, [WORDS[notion].title for notion in notions], [ALL, *kinds], grouping))
    return panels


def agreement_panels(result: DisagreementResult, groupings: Sequence[str]) -> list[Any]:
    """Return one panel a grouping: how often each kind of critics agrees with the decisions on each group."""
    notion = "tolerant_accuracy" if result.spec.tolerance else "accuracy_equality"
    panels = []
    for grouping in groupings:
        own = [rate for rate in result.rates if (rate.grouping, rate.notion) == (grouping, notion)]
        groups = _largest(own)
        kinds = [kind for kind in dict.fromkeys(rate.stakeholder for rate in own) if kind is not None][:MOST_KINDS]
        rows = [
            _row(rate, rate.group, rate.stakeholder or ALL)
            for rate in own
            if rate.group in groups and (rate.stakeholder is None or rate.stakeholder in kinds)
        ]
        panels.append(_known(rows, groups, [ALL, *kinds], grouping))
    return panels


def rate_panels(result: DisagreementResult, grouping: str) -> list[Any]:
    """Return one panel a notion: every label's rate in each of the largest groups, as all critics see it."""
    panels = []
    for notion in ("statistical_parity", "calibration", *INDEFINITE[:2], *TOLERANT[:1]):
        own = [
            rate for rate in result.rates if (rate.grouping, rate.stakeholder, rate.notion) == (grouping, None, notion)
        ]
        if not own:
            continue
        groups = _largest(own)
        rows = [_row(rate, rate.label or "", rate.group) for rate in own if rate.group in groups]
        panels.append(_known(rows, list(result.labels), groups, WORDS[notion].title))
    return panels


def _largest(rates: Sequence[RateRecord]) -> list[str]:
    """Return the groups with the most answers, in the order of the table."""
    sizes: dict[str, int] = {}
    for rate in rates:
        sizes[rate.group] = max(sizes.get(rate.group, 0), rate.n)
    largest = set(sorted(sizes, key=lambda group: -sizes[group])[:MOST_GROUPS])
    return [group for group in sizes if group in largest]


def _row(record: GapRecord | RateRecord, row: str, series: str) -> dict[str, Any]:
    """Return what a chart draws of a gap or rate; a number that is exact is a point and has no bar."""
    exact = record.lower is not None and record.upper is not None and record.upper - record.lower <= 1e-9
    return {
        "row": row,
        "series": series,
        "lower": record.lower,
        "upper": record.upper,
        "value": record.value if exact else None,
        "low": record.low,
        "high": record.high,
        "truth": None if exact else record.truth,
    }


def _known(rows: list[dict[str, Any]], order: list[str], series: list[str], title: str) -> Any:
    """Return thick bars for what the answers leave open, thin lines for the interval, points for what is exact."""
    import altair as alt

    rows = [row for row in rows if row["lower"] is not None]
    legend = alt.Legend(title=None) if len(series) > 1 else None
    axis = alt.Axis(format="%", tickCount=4, title=None, labelOverlap="greedy", labelSeparation=6)
    scale = series_scale(series, PALETTE)
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("row:N", sort=order, title=None),
        yOffset=alt.YOffset("series:N", sort=series),
        color=alt.Color("series:N", sort=series, scale=scale, legend=legend),
    )
    x, x2 = alt.X("low:Q", axis=axis), "high:Q"
    thin = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5, opacity=0.8).encode(x=x, x2=x2)
    thick = (
        base.transform_filter("!isValid(datum.value)")
        .mark_bar(size=7, opacity=0.45)
        .encode(x=alt.X("lower:Q", axis=axis), x2="upper:Q")
    )
    point = (
        base.transform_filter("isValid(datum.value)")
        .mark_point(filled=True, size=50, opacity=1)
        .encode(
            x=alt.X("value:Q", axis=axis),
            shape=alt.Shape("series:N", sort=series, scale=series_scale(series, SHAPES), legend=legend),
        )
    )
    truth = (
        base.transform_filter("isValid(datum.truth)")
        .mark_tick(thickness=2, size=13, color="currentColor")
        .encode(x=alt.X("truth:Q", axis=axis), color=alt.value("currentColor"))
    )
    step = max(26, 12 * len(series) + 8)
    layers = thin + thick + point + truth
    return layers.properties(title=title, width=PANEL_WIDTH, height=alt.Step(step, **{"for": "position"}))


def critic_panels(result: DisagreementResult, grouping: str) -> list[Any]:
    """Return one panel a notion: true gap, estimate and bounds over the critics, lowest estimate first.

    Notions that a critic's answers leave open come first, then how often the critic agrees.
    """
    panels = []
    for notion in _critic_notions(result):
        own = [r for r in result.critics if (r.grouping, r.notion) == (grouping, notion) and r.value is not None]
        if own:
            own.sort(key=lambda r: (r.value or 0.0, r.upper or 0.0, r.truth or 0.0, r.critic))
            panels.append(_over_critics(own, WORDS[notion].title))
    return panels


def _critic_notions(result: DisagreementResult) -> list[Notion]:
    told = told_notions(gap for gap in result.gaps if gap.critic is None)
    return [notion for notion in (*INDEFINITE, "accuracy_equality", "tolerant_accuracy") if notion in told]


def _over_critics(own: Sequence[CriticRecord], title: str) -> Any:
    import altair as alt

    definite = own[0].notion in (*DEFINITE, *TOLERANT)  # then the truth is the estimate
    names = ["Estimate", "True"]
    wide = [{"critic": place, "lower": r.lower, "upper": r.upper} for place, r in enumerate(own, 1)]
    points = [{"critic": place, "value": r.value, "what": names[0]} for place, r in enumerate(own, 1)]
    shown = names if not definite and any(r.truth is not None for r in own) else names[:1]
    if len(shown) > 1:
        true = [(place, r.truth) for place, r in enumerate(own, 1) if r.truth is not None]
        points += [{"critic": place, "value": truth, "what": names[1]} for place, truth in true]
    x = alt.X("critic:Q", title="Critics, lowest estimate first", axis=alt.Axis(tickCount=4, format="d"))
    axis = alt.Axis(format="%", tickCount=5)
    band = (
        alt.Chart(data(wide))
        .mark_area(opacity=0.22, color=PALETTE[0], interpolate="step")
        .encode(x=x, y=alt.Y("lower:Q", title="Gap", axis=axis), y2="upper:Q")
    )
    legend = alt.Legend(title=None) if len(shown) > 1 else None
    dots = (
        alt.Chart(data(points))
        .mark_point(filled=True, opacity=0.85)
        .encode(
            x=x,
            y=alt.Y("value:Q", title="Gap", axis=axis),
            color=alt.Color("what:N", scale=series_scale(shown, PALETTE), legend=legend),
            shape=alt.Shape("what:N", scale=series_scale(shown, SHAPES), legend=legend),
            size=alt.value(22 if len(own) < 150 else 10),
        )
    )
    return (band + dots).properties(title=title, width=PANEL_WIDTH, height=190)


def error_panel(result: DisagreementResult, grouping: str) -> Any | None:
    """Return how the absolute errors of the estimates are spread over the critics; None where there are none."""
    import altair as alt

    notions = [notion for notion in _critic_notions(result) if notion in INDEFINITE]
    records, names = [], []
    for notion in notions:
        errors = [
            abs(r.error) for r in result.critics if (r.grouping, r.notion) == (grouping, notion) and r.error is not None
        ]
        if max(errors, default=0.0) < 1e-9:
            continue
        names.append(WORDS[notion].title)
        counts = [0] * _BINS
        for error in errors:
            counts[min(int(error * _BINS), _BINS - 1)] += 1
        last = max(place for place, n in enumerate(counts) if n)
        records += [
            {"notion": names[-1], "error": (place + 0.5) / _BINS, "share": n / len(errors)}
            for place, n in enumerate(counts[: last + 2])
        ]
    if not records:
        return None
    legend = alt.Legend(title=None, columns=1, labelLimit=PANEL_WIDTH)
    base = alt.Chart(data(records)).encode(
        x=alt.X(
            "error:Q",
            title="Absolute error of the estimate",
            axis=alt.Axis(tickCount=4, format="%"),
            scale=alt.Scale(zero=True),
        ),
        y=alt.Y("share:Q", title="Share of critics", axis=alt.Axis(tickCount=4, format="%")),
        color=alt.Color("notion:N", scale=series_scale(names, PALETTE), legend=legend),
    )
    shape = alt.Shape("notion:N", scale=series_scale(names, SHAPES), legend=legend)
    layers = base.mark_line(strokeWidth=1.8) + base.mark_point(filled=True, size=40, opacity=1).encode(shape=shape)
    return layers.properties(title="How far estimates are off", width=PANEL_WIDTH, height=190)
