"""The report section on agreement: charts, tables, and methods."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from evenhand.audits.agreement.charts import PARTS, drawn, drawn_gaps, gap_panels, part_panels, value_panels
from evenhand.audits.agreement.draws import LEAST_PEOPLE, LEAST_SCORED
from evenhand.audits.agreement.estimate import CLUSTERS, groupings_of_two
from evenhand.core.display import (
    DESCRIBES,
    DisplayTable,
    Figure,
    Method,
    Number,
    figure_sentence,
    gap_table,
    make_table,
    value_table,
)
from evenhand.core.methods import method
from evenhand.messages.formats import show, show_confidence

_method = partial(method, "evenhand.audits.agreement")

if TYPE_CHECKING:
    from evenhand.audits.agreement.result import AgreementResult
    from evenhand.core.findings import Finding


def parts(result: AgreementResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    confidence = result.spec.confidence
    groupings: list[str | None] = [*result.groupings] or [None]
    for grouping in groupings:
        of_groups = "" if grouping is None else f" by {grouping}"
        yield Figure(
            f"Agreement of the raters{of_groups}",
            f"1 is full agreement. Lines are {show_confidence(confidence)} intervals, each on its own; a hollow dot "
            "has none. The table has every metric.",
            " ".join(str(finding.headline) for finding in result.findings if finding.grouping in (None, grouping)),
            tuple(value_panels(result, grouping)),
            figure_sentence(_by(result, grouping), drawn(result), result.spec.finding_alpha),
        )
        yield from _gap_figure(result, grouping)
        if any(record.metric in PARTS for record in result.values):
            yield Figure(
                f"Why kappa and PABAK differ{of_groups}",
                "What unequal numbers of the two ratings (prevalence) and raters who say yes unequally often (bias) "
                "add to kappa; together they are PABAK minus kappa exactly.",
                _parts_in_words(result, grouping),
                tuple(part_panels(result, grouping)),
                DESCRIBES,
                aside=True,
            )
    yield from _tables(result)


def _tables(result: AgreementResult) -> Iterator[DisplayTable]:
    by_interval, confidence = {"Interval by": lambda r: r.method}, result.spec.confidence
    yield value_table(result.values, result.metrics, "Every metric", confidence, extra=by_interval)
    if result.gaps:
        two = groupings_of_two(result.gaps)
        gaps = [gap for gap in result.gaps if gap.against == "reference" or gap.grouping not in two]
        yield gap_table(gaps, result.metrics, "Gaps between groups", confidence)
    if result.counts:
        first, second = result.raters
        columns = {
            "Grouping": lambda r: r.grouping,
            "Group": lambda r: r.group,
            first: lambda r: r.first,
            second: lambda r: r.second,
            "People": lambda r: Number(r.n, "count"),
        }
        yield make_table("Who was rated how", columns, result.counts)


def _gap_figure(result: AgreementResult, grouping: str | None) -> Iterator[Figure]:
    """Yield the figure of gaps to the reference group, if there are any."""
    panels = gap_panels(result, grouping)
    gaps = result.rows("gaps", grouping=grouping, against="reference")
    if not panels:
        return
    itself = _agreement_itself(result, {gap.metric for gap in gaps})
    together = " that hold for all groups together" if len({gap.group for gap in gaps}) > 1 else ""
    reference = gaps[0].reference
    yield Figure(
        f"Gaps to {reference}, by {grouping}",
        f"Below 0 the metric is lower than for {reference}. Lines are {show_confidence(result.spec.confidence)} "
        f"intervals{together}; a hollow dot was not tested. In brackets: people.{itself}",
        " ".join(str(finding.headline) for finding in _by(result, grouping)),
        tuple(panels),
        figure_sentence([f for f in _by(result, grouping) if f.kind], drawn_gaps(result), result.spec.finding_alpha),
    )


def _agreement_itself(result: AgreementResult, drawn: Collection[str]) -> str:
    """Return a sentence on which of the drawn metrics measure agreement and nothing else."""
    direct = [metric.title for name, metric in result.metrics.items() if metric.direct and name in drawn]
    measure = "measure" if len(direct) > 1 else "measures"
    return f" Only {' and '.join(direct)} {measure} agreement itself." if direct else ""


def _by(result: AgreementResult, grouping: str | None) -> list[Finding]:
    return [finding for finding in result.findings if finding.grouping == grouping]


def _parts_in_words(result: AgreementResult, grouping: str | None) -> str:
    records = [r for r in result.values if r.grouping in (None, grouping)]
    by_group = {(r.group, r.metric): show(r.value) for r in records}
    return " ".join(
        f"{group}: prevalence adds {by_group[group, 'prevalence_part']}, bias {by_group[group, 'bias_part']}."
        for group in dict.fromkeys(r.group for r in records)
        if (group, "bias_part") in by_group and (group, "prevalence_part") in by_group
    )


def methods(result: AgreementResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    for name in dict.fromkeys(record.metric for record in result.values):
        metric = result.metrics[name]
        yield Method(f"{metric.title} ({name})", f"{metric.formula}.", metric.reference)
    if result.scale in ("binary", "interval"):
        yield _method(result.scale)
    if len(result.raters) > 2 and result.scale != "interval":
        yield _method("raters")
    if any(record.method == CLUSTERS for record in result.values):
        yield _method("clusters")
        return
    yield _method("intervals", resamples=result.spec.resamples, people=LEAST_PEOPLE, scored=LEAST_SCORED)
    if result.gaps:
        yield _method("gaps")
