"""The robustness part of a report: the specification curves, who is the fairest how often, what changes it."""

from __future__ import annotations

from evenhand.audits.effort.robustness.charts import MOST_DRAWN, curve_panels, leading_model
from evenhand.audits.effort.robustness.explore import Robustness
from evenhand.audits.effort.robustness.findings import robustness_findings
from evenhand.core.numbers import DASH, shown, shown_interval
from evenhand.core.sections import DisplayTable, Figure, Method
from evenhand.stats.pairs import EXACT_ROWS

_METRICS = {"eaif": "individual fairness", "effort_parity": "lowest parity"}


def robustness_parts(robustness: Robustness) -> list[Figure | DisplayTable]:
    """Return the figure and the tables of the robustness analysis, for a section of a report."""
    parts: list[Figure | DisplayTable] = [_figure(robustness), _range_table(robustness)]
    if len(robustness.curves[0].models) > 1:
        parts.append(_flip_table(robustness))
    return [*parts, _choice_table(robustness)]


def robustness_methods(robustness: Robustness) -> list[Method]:
    """Return how the numbers were computed, and why there are so many."""
    worst = max(float(curve.error.max()) for curve in robustness.curves)
    pairs = (
        f"There are more than {EXACT_ROWS:,} different people, so individual fairness comes from a grid here, "
        f"corrected on random pairs; it is right to {worst:.1g}, and models closer than that count as tied."
        if worst > 0
        else "All pairs are compared exactly."
    )
    return [
        Method(
            "Robustness",
            "Whoever picks the window picks the effort, and so can make an unfair model look fair (fairwashing). The "
            "answer is to declare every defensible choice and to compute all combinations, each a specification: it "
            "can then be seen whether a result holds under most of them or hangs on one. The people are the same in "
            "all, those with a value at every time step. Every combination counts once, also where a choice cannot "
            f"matter: at weight 0 effort plays no part, at weight 1 the scale does not. {pairs}",
            "Steegen, Tuerlinckx, Gelman and Vanpaemel 2016, Perspectives on Psychological Science 11; Simonsohn, "
            "Simmons and Nelson 2020, Nature Human Behaviour 4",
        ),
        Method(
            "Fairest model",
            "The one with the highest individual fairness, or with the highest parity in its least equal effort bin. "
            "Tied models share the specification evenly. Where a model has no value the specification is not ranked, "
            "and is counted apart. The lowest of many small bins is low by chance too: values over different widths "
            "and smallest groups are not alike, their order of models is.",
        ),
        Method(
            "What changes it",
            "All pairs of specifications that differ in one choice alone: the share in which no model is the fairest "
            "in both.",
        ),
    ]


def _figure(robustness: Robustness) -> Figure:
    several = len(robustness.curves[0].models) > 1
    leaders = dict.fromkeys(curve.models[leading_model(curve)] for curve in robustness.curves)
    caption = [
        "Each column is one specification. Points are the models' values; the marks beneath show which option of each "
        "choice it takes."
    ]
    if several:
        caption.append(
            "Marks have the colour of the fairest model, grey where there is no single one. Columns are sorted by the "
            f"values of the model that is the fairest most often ({', '.join(leaders)})."
        )
    caption.append("The dashed line is the audit's own specification.")
    most = max(curve.size for curve in robustness.curves)
    if most > MOST_DRAWN:
        caption.append(
            f"Where there are more than {MOST_DRAWN} specifications, {MOST_DRAWN} are drawn, evenly spread over that "
            "order; all of them count."
        )
    claims = " ".join(finding.claim for finding in robustness_findings(robustness))
    return Figure("Under other choices", " ".join(caption), claims, tuple(curve_panels(robustness)))


def _range_table(robustness: Robustness) -> DisplayTable:
    several = len(robustness.curves[0].models) > 1
    rows = [
        (
            _METRICS[r.metric],
            r.grouping or DASH,
            r.model,
            f"{r.specifications:,}",
            *(
                (
                    f"{r.ranked:,}",
                    f"{r.wins or 0:,.6g}",
                    f"{r.tied or 0:,}",
                    shown(r.share, percent=True),
                    DASH if r.own_fairest is None else "yes" if r.own_fairest else "no",
                )
                if several
                else ()
            ),
            shown_interval(r.low, r.high),
            shown(r.own_value),
            f"{r.undefined:,}",
        )
        for r in robustness.fairest
    ]
    ranking = ("Ranked", "Fairest in", "Of these tied", "Share", "Fairest in the audit's own")
    columns = (
        "Metric",
        "Grouping",
        "Model",
        "Specifications",
        *(ranking if several else ()),
        "Values",
        "The audit's own",
        "Undefined",
    )
    numeric = (False, False, False, True, *((True,) * 4 + (False,) if several else ()), True, True, True)
    caption = "How often each model is the fairest" if several else "The range of values over all specifications"
    return DisplayTable(caption, columns, tuple(rows), numeric)


def _flip_table(robustness: Robustness) -> DisplayTable:
    titles = {choice.name: choice.title for choice in (*robustness.grid.individual, *robustness.grid.group)}
    rows = [
        (
            _METRICS[r.metric],
            r.grouping or DASH,
            titles[r.choice],
            f"{r.comparisons:,}",
            f"{r.changed:,}",
            shown(r.share, percent=True),
            r.own_option,
            r.own_flips or DASH,
            "" if r.status == "ok" else r.status,
        )
        for r in robustness.flips
        if r.options > 1
    ]
    columns = (
        "Metric",
        "Grouping",
        "Choice",
        "Comparisons",
        "Changed",
        "Share",
        "The audit's own",
        "Options that change it",
        "Remark",
    )
    numeric = (False, False, False, True, True, True, False, False, False)
    return DisplayTable("Which choice changes the fairest model", columns, tuple(rows), numeric)


def _choice_table(robustness: Robustness) -> DisplayTable:
    grid = robustness.grid
    rows = [
        (choice.title, "; ".join(choice.labels), choice.labels[choice.own])
        for choice in (*grid.individual, *grid.group[-2:])
    ]
    columns = ("Choice", "Options", "The audit's own")
    return DisplayTable("The choices that were declared", columns, tuple(rows), (False, False, False), folded=True)
