"""The study's part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.core.numbers import shown, shown_interval
from evenhand.core.sections import DisplayTable, Figure, Method, Section
from evenhand.study.analysis.charts import correlation_panels, factor_panels, weight_panel
from evenhand.study.analysis.regressions import EQUAL, WEIGHT, ZERO
from evenhand.study.analysis.tables import paper_tables

if TYPE_CHECKING:
    from evenhand.study.analysis.result import StudyResult

_PAPER = "Nguyen, Xu, Che et al., Effort-aware fairness"


def study_section(result: StudyResult) -> Section:
    """Return the section of a report for this result."""
    tables = paper_tables(result)
    level = f"{100 * result.spec.confidence:g}%"
    parts: list[Figure | DisplayTable] = [
        Figure(
            "What goes with people's judgement",
            f"Rank correlations of the two distances with what people concluded; {level} intervals that take answers "
            "for people (published) and that resample people.",
            _claims(result, "correlation_difference"),
            tuple(correlation_panels(result)),
        ),
        tables[2],
        tables[3],
        tables[4],
        tables[5],
        _null_table(result),
    ]
    if any(r.term == WEIGHT and r.value is not None for r in result.regressions):
        caption = f"From the regression of the overall distance, for eh.effort(weights=...); {level} intervals."
        figure = Figure("The weight of effort", caption, _claims(result, "effort_weight"), (weight_panel(result),))
        parts += [figure, _weight_table(result)]
    if result.factors:
        parts += [_factor_figure(result), _factor_table(result)]
    if result.bonus:
        parts.append(_bonus_table(result))
    return Section(result.title, result.question, tuple(parts), tuple(_methods()), result.notes)


def _claims(result: StudyResult, metric: str) -> str:
    return " ".join(finding.claim for finding in result.findings if finding.metric == metric)


def _null_table(result: StudyResult) -> DisplayTable:
    rows = [
        (r.condition, r.target, r.term, r.method, shown(r.statistic), shown(r.p_value), shown(r.p_adjusted))
        for r in result.regressions
        if r.term in {ZERO, EQUAL}
    ]
    columns = ("Condition", "Target", "Null", "Standard errors", "Chi-square", "p", "p, Bonferroni")
    caption = "Wald tests of both nulls (the paper states the first and prints the second)"
    return DisplayTable(caption, columns, tuple(rows), (False,) * 4 + (True,) * 3, folded=True)


def _weight_table(result: StudyResult) -> DisplayTable:
    rows = [
        (
            r.condition,
            r.method.replace("_", " "),
            shown(r.value),
            shown(r.stderr),
            shown_interval(r.low, r.high),
            f"{r.people:,}",
            "" if r.status == "ok" else r.status,
        )
        for r in result.regressions
        if r.term == WEIGHT
    ]
    columns = ("Condition", "Method", "Weight", "Std. error", "Interval", "People", "Remark")
    return DisplayTable(
        "The weight of trajectory", columns, tuple(rows), (False, False, True, True, True, True, False), folded=True
    )


def _factor_figure(result: StudyResult) -> Figure:
    told = [
        f"{r.condition}: {r.term} {shown(r.value, percent=True)}.".removeprefix(": ")
        for r in result.factors
        if r.method == "published"
    ]
    caption = "Share of answers in which a factor was ticked, among answers with at least one; several may be ticked."
    return Figure("The factors people named", caption, " ".join(told), tuple(factor_panels(result)))


def _factor_table(result: StudyResult) -> DisplayTable:
    rows = [
        (
            r.condition,
            r.term,
            r.method,
            shown(r.value, percent=True),
            shown_interval(r.low, r.high, percent=True),
            f"{r.n:,}",
            f"{r.people:,}",
        )
        for r in result.factors
    ]
    columns = ("Condition", "Factor", "Form", "Share", "Interval", "Answers", "People")
    return DisplayTable("The factors people named", columns, tuple(rows), (False,) * 3 + (True,) * 4, folded=True)


def _bonus_table(result: StudyResult) -> DisplayTable:
    """Show how the truth serum came out, without naming anybody: a report travels further than a payment list."""
    rows = []
    for condition in dict.fromkeys(r.condition for r in result.bonus):
        own = [r for r in result.bonus if r.condition == condition]
        values = [r.value for r in own if r.value is not None]
        paid = [r.value for r in own if r.bonus and r.value is not None]
        rows.append(
            (
                condition,
                f"{len(own):,}",
                f"{len(values):,}",
                f"{len(paid):,}",
                shown(max(values, default=None)),
                shown(min(paid, default=None)),
            )
        )
    columns = ("Condition", "People", "Scored", "With a bonus", "Highest score", "Lowest score with a bonus")
    return DisplayTable("Truth serum", columns, tuple(rows), (False,) + (True,) * 5, folded=True)


def _methods() -> Iterator[Method]:
    yield Method(
        "Rank correlations",
        "Spearman's correlation of each distance with the target. Published: every answer counts as a person, "
        "t = r sqrt((n - 2)/(1 - r²)). By people: people are resampled with all their answers, ranks are recomputed "
        "each time, and Student's t with people - 1 degrees of freedom uses the standard error of the resamples.",
        f"{_PAPER}, table 2; Davison and Hinkley 1997, Bootstrap Methods and their Application",
    )
    yield Method(
        "Comparison of two correlations",
        "Hotelling's t and Meng's z as published (the paper calls the latter Steiger's Z), Williams' t and Steiger's z "
        "beside them. All four take answers for people and reject too often when one person gives several.",
        "Hotelling 1940; Williams 1959; Steiger 1980; Meng, Rosenthal and Rubin 1992",
    )
    yield Method(
        "Regressions",
        "Least squares of the target on both distances. Classical standard errors as published; clustered by person "
        "(CR1, people - 1 degrees of freedom); a random intercept a person. Two nulls are tested by name: both "
        "coefficients 0, and both equal. The paper states the first and prints the second.",
        f"{_PAPER}, table 5 and footnotes; Cameron and Miller 2015, Journal of Human Resources 50",
    )
    yield Method(
        "Weight of effort",
        "a_trajectory / (a_trajectory + a_aggregate) from the regression of the overall distance; undefined outside 0 "
        "to 1. Published: delta method over rows; by people: standard error of resampled people.",
        _PAPER,
    )
    yield Method(
        "Many tests",
        "p-values are adjusted by Bonferroni and by Holm over all conditions and targets of one method.",
        "Holm 1979, Scandinavian Journal of Statistics 6",
    )
    yield Method(
        "Truth serum",
        "log(x/y) of the answer given, x the share that gave it and y the geometric mean of the predicted shares, plus "
        "the closeness of the person's own prediction; the mean over pairs. An answer that is more common than "
        "predicted scores high; the paper's sentence has this backwards.",
        "Prelec 2004, Science 306",
    )
