"""The effort part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.audits.effort import paper
from evenhand.audits.effort.charts import pair_panels, parity_panels, spread_panels, weight_panel
from evenhand.audits.effort.robustness.parts import robustness_methods, robustness_parts
from evenhand.core.findings import Finding
from evenhand.core.numbers import DASH, shown, shown_interval
from evenhand.core.sections import DisplayTable, Figure, Method, Section

if TYPE_CHECKING:
    from evenhand.audits.effort.records import PairRecord
    from evenhand.audits.effort.result import EffortResult
    from evenhand.audits.effort.spec import EffortSpec

_PAPER = "Nguyen, Xu, Che et al., Effort-aware fairness"


def effort_section(result: EffortResult) -> Section:
    """Return the section of a report for this result."""
    groupings = list(dict.fromkeys(record.grouping for record in result.bins))
    parts: list[Figure | DisplayTable] = [
        Figure(
            "Individual fairness",
            "1 means that no two people are scored more differently than their effort and aggregate are. "
            "The line follows the weight of effort from 0 to 1; the points are the weights of this audit, with their "
            f"{100 * result.spec.confidence:g}% intervals.",
            " ".join(finding.claim for finding in result.findings if _is(finding, "eaif")),
            (weight_panel(result),),
        ),
        paper.individual_table(result),
        _individual_table(result),
    ]
    if groupings:
        least = " ".join(finding.claim for finding in result.findings if _is(finding, "effort_parity"))
        parts += [
            Figure(
                "Parity among people of similar effort",
                "Smallest group mean score over the largest in each bin of effort; bands are intervals that hold "
                f"for all pairs of groups of one bin, of at least {result.spec.min_count} people each. A line breaks "
                "where a bin has no two such groups.",
                least,
                tuple(parity_panels(result, groupings)),
            ),
            paper.parity_table(result),
            _bin_table(result),
            Figure(
                "How effort is spread",
                "The distribution of effort within the largest groups.",
                "Effort follows from trajectory and inertia as set out below.",
                tuple(spread_panels(result, groupings)),
            ),
        ]
    if result.pairs:
        parts.append(
            Figure(
                "The least fair pairs",
                "Two people whose scores differ by more than their effort and aggregate do, at effort weight "
                f"{result.spec.weights[0]:g}. The full list is below.",
                " ".join(_pair_sentence(pair) for pair in result.pairs[:3]),
                tuple(pair_panels(result)),
            )
        )
    if result.people:
        parts += [_people_table(result), _pair_table(result)]
    methods = list(_methods(result))
    if result.robustness is not None:
        parts += robustness_parts(result.robustness)
        methods += robustness_methods(result.robustness)
    return Section(result.title, result.question, tuple(parts), tuple(methods), result.notes)


def _is(finding: Finding, metric: str) -> bool:
    return finding.metric == metric and finding.kind != "robustness"


def _individual_table(result: EffortResult) -> DisplayTable:
    rows = [
        (
            r.model,
            f"{r.weight:g}",
            shown(r.value),
            shown_interval(r.low, r.high),
            shown(r.stderr),
            shown(r.violated, percent=True),
            f"{r.n:,}",
            f"{r.pairs:,}",
            r.method,
        )
        for r in result.individual
    ]
    columns = ("Model", "Weight", "Fairness", "Interval", "Std. error", "Pairs violated", "n", "Pairs", "Method")
    return DisplayTable(
        "Individual fairness of every model", columns, tuple(rows), (False,) + (True,) * 7 + (False,), folded=True
    )


def _bin_table(result: EffortResult) -> DisplayTable:
    rows = [
        (
            r.model,
            r.grouping,
            "all (traditional)" if r.bin_low is None else f"{r.bin_low:g} to {r.bin_high:g}",
            r.group_high or DASH,
            r.group_low or DASH,
            f"{r.n:,}",
            str(r.groups),
            shown(r.value),
            shown_interval(r.low, r.high),
            "" if r.status == "ok" else r.status,
        )
        for r in result.bins
    ]
    columns = ("Model", "Grouping", "Effort", "Higher", "Lower", "n", "Groups", "Parity", "Interval", "Remark")
    numeric = (False,) * 5 + (True,) * 4 + (False,)
    return DisplayTable("Parity of every effort bin", columns, tuple(rows), numeric, folded=True)


def _people_table(result: EffortResult) -> DisplayTable:
    rows = [
        (r.model, f"{r.weight:g}", r.id, shown(r.score), shown(r.effort), shown(r.aggregate), shown(r.value))
        for r in result.people
    ]
    columns = ("Model", "Weight", "Person", "Score", "Effort", "Aggregate", "Mean fairness of their pairs")
    caption = "The people whose pairs are least fair, to their loss or their gain"
    return DisplayTable(caption, columns, tuple(rows), (False, True, False) + (True,) * 4, folded=True)


def _pair_sentence(pair: PairRecord) -> str:
    return (
        f"{pair.model}: {pair.id_a} has the score {shown(pair.score_a)} and {pair.id_b} {shown(pair.score_b)}, "
        f"{shown(pair.value)} more than their distance of {shown(pair.distance)}."
    )


def _pair_table(result: EffortResult) -> DisplayTable:
    rows = [
        (
            r.model,
            f"{r.weight:g}",
            r.id_a,
            r.id_b,
            shown(r.score_a),
            shown(r.score_b),
            shown(r.distance),
            shown(r.value),
        )
        for r in result.pairs
    ]
    columns = ("Model", "Weight", "Person", "Other", "Score", "Other's score", "Distance", "Excess")
    return DisplayTable(
        "The least fair pairs", columns, tuple(rows), (False, True, False, False) + (True,) * 4, folded=True
    )


def _trajectory(spec: EffortSpec) -> str:
    return f"{spec.history.value} over {spec.history.time}" if spec.history else ", ".join(spec.trajectory)


def _methods(result: EffortResult) -> Iterator[Method]:
    spec = result.spec
    better = "m sigmoid(A)" if spec.desirable else "m (1 - sigmoid(A))"
    yield Method(
        "Effort",
        f"E = {better}, with m the inertia and A the {spec.measure.replace('_', ' ')} of "
        f"{_trajectory(spec)} in units of {spec.unit:g}.",
        _PAPER,
    )
    yield Method("Aggregate", f"S = 2 sigmoid(sum of the values / {spec.scale:g}) - 1.", _PAPER)
    yield Method(
        "Individual fairness (eaif)",
        "The mean over all pairs of 1 - max(0, D - d): D is the difference of the two scores, d = sqrt(w (E "
        "- E')^2 + (1 - w) "
        "(S - S')^2). The interval treats it as a U-statistic: Student's t on the scale log(1 - value).",
        f"{_PAPER}, equations 12 and 13; Arvesen 1969, Annals of Mathematical Statistics 40",
    )
    yield Method(
        "Parity by effort (effort_parity)",
        f"In bins of effort of width {spec.width:g}, the smallest group mean score over the largest, groups "
        "of at least "
        f"{spec.min_count}. The interval comes from simultaneous intervals of all pairs of groups "
        "from their own limits (MOVER).",
        f"{_PAPER}, equation 14",
    )
    yield Method(
        "Differences between models", "Student's t on the row means of the same people: a paired comparison.", ""
    )
