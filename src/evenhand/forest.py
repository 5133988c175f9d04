"""The forest: values with their intervals, row by row, laid out by a page or drawn by a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.charts import PALETTE, PANEL_WIDTH, SHAPES, by_series, data, round_ticks
from evenhand.core.findings import Finding
from evenhand.core.records import Gap
from evenhand.messages.formats import Format, show, show_interval

if TYPE_CHECKING:
    import altair as alt

MOST_ROWS = 24
"""The largest number of rows in a panel."""


@dataclass(frozen=True)
class Forest:
    """One panel of values with intervals; a page lays it out as rows with their numbers, `chart` draws it.

    Parameters
    ----------
    title : the panel's title.
    rows : for each value its `label`, `series`, `value`, `low`, `high`, `n`, `limits` and whether it is `small`; where
        a value is not known exactly the two ends of what is `open`, and the `truth` where that is known.
    labels : the labels, top first.
    series : all series in order, so that each has one colour in all panels.
    style : the format of numbers.
    zero : the position of the line of equality, if any.
    domain : the ends of the axis, if several panels share one.
    width : of the plot, in pixels.
    thin : whether intervals are thin lines, as thick bars show what is open.
    """

    title: str
    rows: tuple[Mapping[str, Any], ...]
    labels: tuple[str, ...]
    series: tuple[str, ...]
    style: Format = "number"
    zero: float | None = None
    domain: tuple[float, float] | None = None
    width: int = PANEL_WIDTH
    thin: bool = False

    def ends(self) -> tuple[float, float]:
        """Return the ends of the values, or of the shared axis."""
        if self.domain is not None and self.domain[0] < self.domain[1]:
            return self.domain
        numbers = [row[name] for row in self.rows for name in ("value", "low", "high", "truth")]
        numbers += [end for row in self.rows for end in (*row["limits"], *(row["open"] or ()))] + [self.zero]
        finite = [number for number in numbers if number is not None]
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def ticks(self) -> list[float]:
        """Return at most five round numbers between the ends of the axis.

        Examples
        --------
        >>> forest([{"label": "a", "value": 0.17, "low": 0.12, "high": 0.31}], title="").ticks()
        [0.1, 0.2, 0.3, 0.4]
        """
        return round_ticks(*self.ends())

    def chart(self) -> alt.LayerChart | alt.FacetChart:
        """Return the panel as an Altair chart: n beside the label, the value as text on the right."""
        import altair as alt

        ticks = self.ticks()
        rows = [row for row in self.rows if row["value"] is not None or row["open"]]
        labels = {row["label"]: f"{row['label']} (n = {row['n']:,})" for row in rows if row.get("n") is not None}
        records = [self._record(row, labels) for row in rows]
        axis = alt.Axis(**self._numbers(), values=ticks, title=None, labelOverlap=True)
        scale = alt.Scale(domain=[ticks[0], ticks[-1]], nice=False)
        opacity = alt.Opacity("strength:Q", scale=None, legend=None)
        base = alt.Chart(data(records)).encode(
            y=alt.Y("label:N", sort=[labels.get(label, label) for label in self.labels], title=None),
            yOffset=alt.YOffset("series:N", sort=list(self.series)),
            color=alt.Color(**by_series(self.series, PALETTE)),
        )
        rule = base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", axis=axis, scale=scale), x2="high:Q", opacity=opacity
        )
        point = (
            base.transform_filter("isValid(datum.value)")
            .mark_point(size=55)
            .encode(
                x=alt.X("value:Q", axis=axis, scale=scale),
                shape=alt.Shape(**by_series(self.series, SHAPES)),
                fill=alt.Fill(**by_series(self.series, PALETTE)),
                fillOpacity=alt.FillOpacity("filled:Q", scale=None, legend=None),
                opacity=opacity,
            )
        )
        text = base.mark_text(align="left", fontSize=11).encode(x=alt.value(self.width + 8), text="text:N")
        layers = [] if self.zero is None else [_upright([{"x": self.zero}], PALETTE[6], strokeDash=[4, 3])]
        layers += _limit_layers(rows, labels)
        if any(row["open"] for row in rows):
            layers += _open_layers(base, axis, scale)
        step = alt.Step(max(26, 13 * len(self.series) + 8), **{"for": "position"})
        drawn = alt.layer(*layers, rule, point, text.encode(color=alt.value("currentColor")))
        return drawn.properties(title=self.title, width=self.width, height=step)

    def _numbers(self) -> dict[str, Any]:
        """Return the axis' number format: per cent, points of 100, or plain."""
        if self.style in ("points", "signed_points"):
            return {"labelExpr": "format(100 * datum.value, '~g')"}
        return {"format": "%" if self.style == "percent" else "~g"}

    def _record(self, row: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
        """Return a row in the chart's format; its limits are drawn separately."""
        drawn = {
            "label": labels.get(row["label"], row["label"]),
            "filled": int(row["low"] is not None),
            "text": shown_value(row, self.style),
            "strength": 0.4 if row["small"] else 1,
            "lower": row["open"] and row["open"][0],
            "upper": row["open"] and row["open"][1],
        }
        return {name: value for name, value in row.items() if name not in ("limits", "open")} | drawn

    def to_dict(self, *, validate: bool = True) -> dict[str, Any]:
        """Return the chart's specification, as an Altair chart does."""
        chart: dict[str, Any] = self.chart().to_dict(validate=validate)
        return chart


def forest(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    order: Sequence[str] | None = None,
    series: Sequence[str] | None = None,
    percent: bool = False,
    style: Format | None = None,
    zero: float | None = None,
    domain: tuple[float, float] | None = None,
    width: int = PANEL_WIDTH,
    thin: bool = False,
) -> Forest:
    """Return one panel of values with intervals.

    Parameters
    ----------
    rows
        For each value its `label` (the row), `value`, `low`, `high`, and where there are any its `series`, `n`,
        `limits` (of thresholds), whether it is `small` and so drawn faint, what is `open` of it (two ends) and the
        `truth`. A value without an interval is hollow.
    title
        The panel's title.
    order
        The labels, top first; by default in order of appearance.
    series
        All series in order, so that each has one colour in all panels; by default in order of appearance.
    percent
        Whether numbers are in percent.
    style
        The format of numbers; by default as for `percent`.
    zero
        The position of the line of equality, if any.
    domain
        The ends of the axis, if several panels share one; by default those of the values.
    width
        Of the plot, in pixels.
    thin
        Whether intervals are thin lines.
    """
    usual = {"series": "", "low": None, "high": None, "n": None, "limits": (), "small": False}
    usual |= {"open": None, "truth": None}
    records = tuple({**usual, **row} for row in rows)
    return Forest(
        title,
        records,
        tuple(order or dict.fromkeys(record["label"] for record in records)),
        tuple(series or dict.fromkeys(record["series"] for record in records)),
        style or ("percent" if percent else "number"),
        zero,
        domain,
        width,
        thin,
    )


def shown_value(row: Mapping[str, Any], style: Format) -> str:
    """Return the number of a row as text; both ends of its open range."""
    if row["open"]:
        low, high = row["open"]
        return show_interval(low, high, "points" if style == "percent" else style)
    return show(row["value"], style)


def forest_row(record: object, label: str | None, series: str | None = "") -> dict[str, Any]:
    """Return a record as a row of a forest: its number, its own limits and its number of people."""
    numbers = {name: getattr(record, name, None) for name in ("value", "low", "high", "n")}
    return {"label": label or "", "series": series or "", **numbers}


def limits_of(gap: Gap, findings: Sequence[Finding]) -> tuple[float, ...]:
    """Return the limits of the thresholds that judge a gap, each once."""
    same = ("model", "grouping", "group", "reference", "metric", "kind", "against")
    limits = (f for f in findings if f.limit is not None and all(getattr(f, x) == getattr(gap, x) for x in same))
    return tuple(dict.fromkeys(finding.limit for finding in limits if finding.limit is not None))


def share_axis(panels: Sequence[Forest]) -> list[Forest]:
    """Return panels with one axis, so that they can be compared."""
    ends = [end for panel in panels if panel.rows for end in panel.ends()]
    return [replace(panel, domain=(min(ends), max(ends))) for panel in panels] if ends else list(panels)


def _upright(records: list[dict[str, Any]], color: str, **look: Any) -> alt.Chart:
    import altair as alt

    rule: alt.Chart = alt.Chart(data(records)).mark_rule(color=color, **look).encode(x="x:Q")
    return rule


def _limit_layers(rows: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> list[alt.Chart]:
    """Return dark ticks for the limits of thresholds."""
    import altair as alt

    marks = [{"x": x, "label": labels.get(row["label"], row["label"])} for row in rows for x in row["limits"]]
    limits = alt.Chart(data(marks)).mark_tick(color="currentColor", thickness=2, bandSize=22)
    return [limits.encode(x="x:Q", y=alt.Y("label:N", sort=list(labels.values())))] if marks else []


def _open_layers(base: alt.Chart, axis: alt.Axis, scale: alt.Scale) -> list[alt.Chart]:
    """Return thick bars for the open ranges of values, and dark ticks for the truth."""
    import altair as alt

    thick = base.transform_filter("isValid(datum.lower)").mark_bar(size=7, opacity=0.45)
    tick = base.transform_filter("isValid(datum.truth)").mark_tick(thickness=2, size=13)
    return [
        thick.encode(x=alt.X("lower:Q", axis=axis, scale=scale), x2=alt.X2("upper:Q")),
        tick.encode(x=alt.X("truth:Q", axis=axis, scale=scale), color=alt.value("currentColor")),
    ]
