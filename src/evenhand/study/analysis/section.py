"""The study's section of a report: charts, tables, the tables of the effort paper, and methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from evenhand.core.display import DisplayTable, Extra, Figure, Method, Number, Range, make_table, remark
from evenhand.messages.formats import DASH, show, show_confidence
from evenhand.study.analysis.charts import correlation_panels, factor_panels, weight_panels
from evenhand.study.analysis.metrics import METRICS, TARGETS

if TYPE_CHECKING:
    from evenhand.study.analysis.result import RegressionRecord, StudyGap, StudyResult, StudyValue

    AnyRecord: TypeAlias = StudyValue | StudyGap | RegressionRecord


def parts(result: StudyResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    level = show_confidence(result.spec.confidence)
    yield Figure(
        "What goes with people's judgement",
        f"Rank correlations of the two distances with what people concluded; {level} intervals that take answers for "
        "people (published) and that resample people.",
        _headlines(result, "rank_correlation"),
        tuple(correlation_panels(result)),
    )
    yield from (table(result) for table in PAPER_TABLES.values())
    yield _null_table(result)
    weights = weight_panels(result)
    if weights:
        caption = f"From the regression of the overall distance, for eh.effort(weights=...); {level} intervals."
        yield Figure("The weight of effort", caption, _headlines(result, "effort_weight"), tuple(weights))
        yield _weight_table(result)
    shares = factor_panels(result)
    if shares:
        yield Figure(
            "The factors people named",
            "Share of answers in which a factor was ticked, among answers with at least one; several may be ticked.",
            " ".join(
                f"{f'{r.condition}: ' if r.condition else ''}{r.factor} {show(r.value, 'percent')}."
                for r in result.rows("values", metric="factor_share", method="published")
            ),
            tuple(shares),
        )
        yield _factor_table(result)
    if result.truth_serum:
        yield _serum_table(result)


def _headlines(result: StudyResult, metric: str) -> str:
    return " ".join(str(finding.headline) for finding in result.findings if finding.metric == metric)


_CONDITION: Extra = {"Condition": lambda r: r.condition}
_SIZE: Extra = {"Answers": lambda r: Number(r.answers, "count"), "People": lambda r: Number(r.n, "count")}


def _null_table(result: StudyResult) -> DisplayTable:
    columns: Extra = {
        **_CONDITION,
        "Target": lambda r: r.target,
        "Null": lambda r: r.term,
        "Standard errors": lambda r: r.method,
        "Chi-square": lambda r: Number(r.statistic),
        "p": lambda r: Number(r.p_value, "p"),
        "p, Bonferroni": lambda r: Number(r.p_adjusted, "p"),
    }
    caption = "Wald tests of both nulls (the paper states the first and prints the second)"
    return make_table(caption, columns, result.rows("regressions", metric="wald_test"))


def _weight_table(result: StudyResult) -> DisplayTable:
    columns: Extra = {
        **_CONDITION,
        "Method": lambda r: r.method.replace("_", " "),
        "Weight": lambda r: Number(r.value),
        "Std. error": lambda r: Number(r.stderr),
        "Interval": lambda r: Range(r.low, r.high),
        **_SIZE,
        "Remark": lambda r: remark(r.status),
    }
    return make_table("The weight of trajectory", columns, result.rows("values", metric="effort_weight"))


def _factor_table(result: StudyResult) -> DisplayTable:
    columns: Extra = {
        **_CONDITION,
        "Factor": lambda r: getattr(r, "factor", None) or _difference(r),
        "Form": lambda r: r.method,
        "Share": lambda r: Number(r.value, "percent"),
        "Interval": lambda r: Range(r.low, r.high, "percent"),
        "p, Bonferroni": lambda r: Number(r.p_adjusted, "p"),
        **_SIZE,
    }
    records = [*result.rows("values", metric="factor_share"), *result.rows("gaps", metric="factor_share")]
    records.sort(key=lambda r: result.conditions.index(r.condition))
    return make_table("The factors people named", columns, records)


def _serum_table(result: StudyResult) -> DisplayTable:
    columns: Extra = {
        **_CONDITION,
        "People": lambda r: Number(r.n, "count"),
        "Scored": lambda r: Number(r.scored, "count"),
        "With a bonus": lambda r: Number(r.paid, "count"),
        "Highest score": lambda r: Number(r.highest),
        "Lowest score with a bonus": lambda r: Number(r.lowest_paid),
    }
    return make_table("Truth serum", columns, result.truth_serum)


# Tables of the paper, with published and person-level estimates ------------------------------------------------------

_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_REGRESSION_STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))
_PAIRS = (
    ("aggregate", "overall", "Aggregate and overall distance"),
    ("trajectory", "overall", "Trajectory and overall distance"),
    ("aggregate", "trajectory", "Aggregate and trajectory distance"),
    ("aggregate", "output", "Aggregate and output distance"),
    ("trajectory", "output", "Trajectory and output distance"),
)
_TESTS = {
    "hotelling": "Hotelling's t (published)",
    "meng": "Meng's z (published as Steiger's Z)",
    "williams": "Williams' t",
    "steiger": "Steiger's z",
    "participant_bootstrap": "t of resampled people",
}
_Fit = tuple[str, str, str]
"""The name of a regression, its condition and its target."""

_EXPLAINED = {"r_squared": "R-squared", "adjusted_r_squared": "Adj. R-squared", "f_statistic": "F"}


@dataclass(frozen=True)
class PaperTable(DisplayTable):
    """A table as printed in the paper, with right-aligned numbers as text so that they can carry stars."""

    text_columns: int = 1

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column contains numbers."""
        return tuple(position >= self.text_columns for position in range(len(self.columns)))


def _table_2(result: StudyResult) -> DisplayTable:
    held = {(r.condition, r.target, r.factor, r.method): r for r in result.rows("values", metric="rank_correlation")}
    rows = []
    for factor, target, title in _PAIRS:
        cells = [title]
        for condition in result.conditions:
            published = held.get((condition, target, factor, "published"))
            people = held.get((condition, target, factor, "participant_bootstrap"))
            cells += [_starred(published, "value", _STARS, adjusted=True), _interval(people)]
        rows.append(tuple(cells))
    columns = ("Rank correlation", *_of_conditions(result, ("r", "interval")))
    caption = (
        f"Correlations (the paper's table 2). {_star_words(_STARS)}, by rows as published, adjusted by Bonferroni; "
        "intervals by people."
    )
    return PaperTable(caption, columns, tuple(rows))


def _table_3(result: StudyResult) -> DisplayTable:
    held = _comparisons(result)
    rows: list[tuple[str, ...]] = []
    for method, title in _TESTS.items():
        for target in TARGETS:
            gaps = [held.get((condition, target, method)) for condition in result.conditions]
            if any(gaps):
                rows.append((title, target, *(_starred(gap, "statistic", _STARS, adjusted=True) for gap in gaps)))
    columns = ("Test", "Target", *_of_conditions(result, ("statistic",)))
    caption = (
        f"Does trajectory correlate with the target more than aggregate does? (the paper's table 3). "
        f"{_star_words(_STARS)}, adjusted by Bonferroni."
    )
    return PaperTable(caption, columns, tuple(rows), text_columns=2)


def _table_4(result: StudyResult) -> DisplayTable:
    held = _comparisons(result)
    rows = []
    for target in TARGETS:
        of_target = [gap for gap in held.values() if gap.target == target]
        cells = [
            _interval(held.get((condition, target, method)))
            for condition in result.conditions
            for method in ("row_bootstrap", "participant_bootstrap")
        ]
        if any(cell != DASH for cell in cells):
            rows.append((f"{_difference(of_target[0])} with {target}", *cells))
    columns = ("Difference of rank correlations", *_of_conditions(result, ("rows (published)", "people")))
    caption = (
        f"{show_confidence(result.spec.confidence)} intervals of the difference (the paper's table 4, which prints "
        "them with the sign turned)."
    )
    return PaperTable(caption, columns, tuple(rows))


def _table_5(result: StudyResult) -> DisplayTable:
    """Return table 5: a row per term, a column per regression, with classical and clustered standard errors."""
    fits: dict[_Fit, RegressionRecord] = {}
    for record in result.regressions:
        fits.setdefault((record.regression, record.condition, record.target), record)
    held = {(r.regression, r.condition, r.target, r.metric, r.term, r.method): r for r in result.regressions}
    clustered = result.rows("regressions", metric="coefficient", method="clustered")
    rows: list[tuple[str, ...]] = []
    for term in dict.fromkeys(r.term for r in clustered if r.stderr is not None):
        published, people = (
            [held.get((*fit, "coefficient", term, method)) for fit in fits] for method in ("published", "clustered")
        )
        rows += _coefficient_rows(term, published, people)
    for metric, title in _EXPLAINED.items():
        rows.append((title, *(_explained(held.get((*fit, metric, None, "published"))) for fit in fits)))
    rows += _size_rows(list(fits.values()))
    moderation = next(
        (f"; moderation: {condition}" for regression, condition, _ in fits if regression == "moderation"), ""
    )
    caption = (
        f"Regressions (the paper's table 5{moderation}). Standard errors classical, as published, and clustered by "
        f"person. {_star_words(_REGRESSION_STARS)}, as published."
    )
    return PaperTable(caption, ("", *map(_fit_title, fits)), tuple(rows))


def _fit_title(fit: _Fit) -> str:
    regression, condition, target = fit
    which = regression if regression == "moderation" else condition
    return f"{which}, {target}" if which else target


def _size_rows(records: Sequence[RegressionRecord]) -> Iterator[tuple[str, ...]]:
    yield ("Answers", *(show(record.answers, "count") for record in records))
    yield ("People", *(show(record.n, "count") for record in records))


def _coefficient_rows(
    term: str, published: Sequence[RegressionRecord | None], people: Sequence[RegressionRecord | None]
) -> Iterator[tuple[str, ...]]:
    title = f"{term[0].upper()}{term[1:]}"
    yield (title, *("" if record is None else _starred(record, "value", _REGRESSION_STARS) for record in published))
    yield ("std. error, rows", *map(_error, published))
    yield ("std. error, people", *map(_error, people))


PAPER_TABLES: dict[int, Callable[[StudyResult], DisplayTable]] = {2: _table_2, 3: _table_3, 4: _table_4, 5: _table_5}
"""The tables by their numbers in the paper."""


def _comparisons(result: StudyResult) -> dict[tuple[str, str, str], StudyGap]:
    return {(gap.condition, gap.target, gap.method): gap for gap in result.rows("gaps", metric="rank_correlation")}


def _difference(gap: StudyGap) -> str:
    return f"{gap.group} - {gap.reference}"


def _error(record: RegressionRecord | None) -> str:
    if record is None:
        return ""
    return DASH if record.stderr is None else f"({record.stderr:.4f})"


def _starred(
    record: AnyRecord | None, column: str, levels: Sequence[tuple[float, str]], *, adjusted: bool = False
) -> str:
    number = None if record is None else getattr(record, column)
    if record is None or number is None:
        return DASH
    p = record.p_adjusted if adjusted else record.p_value
    stars = next((mark for limit, mark in levels if p is not None and p < limit), "")
    return f"{number:.4f}{stars}"


def _explained(record: RegressionRecord | None) -> str:
    if record is None or record.value is None:
        return DASH
    return f"{record.value:.2f}" if record.metric == "f_statistic" else f"{record.value:.4f}"


def _interval(record: AnyRecord | None) -> str:
    if record is None or record.low is None or record.high is None:
        return DASH
    return f"[{record.low:.4f}, {record.high:.4f}]"


def _of_conditions(result: StudyResult, names: Sequence[str]) -> Iterator[str]:
    for condition in result.conditions:
        for name in names:
            yield f"{condition}, {name}" if condition else name


def _star_words(levels: Sequence[tuple[float, str]]) -> str:
    return ", ".join(f"{mark} p < {limit:g}" for limit, mark in levels)


# Methods --------------------------------------------------------------------------------------------------------------


def methods(_result: StudyResult) -> Iterator[Method]:
    """Yield the methods by which the numbers were computed."""
    paper = METRICS["effort_weight"].reference
    yield Method(
        "Rank correlations",
        f"{METRICS['rank_correlation'].formula}. Published: every answer counts as a person, "
        "t = r sqrt((n - 2)/(1 - r²)). By people: people are resampled with all their answers, ranks are recomputed "
        "each time, and Student's t with people - 1 degrees of freedom uses the standard error of the resamples.",
        f"{METRICS['rank_correlation'].reference}; Davison and Hinkley 1997, Bootstrap Methods and their Application",
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
        "(CR1, people - 1 degrees of freedom); a random intercept for each person, with standard errors by people "
        "(CR2) and Satterthwaite's degrees of freedom, from 12 people on. Two nulls are tested by name: both "
        "coefficients 0, and both equal. The paper states the first and prints the second.",
        f"{paper}, table 5 and footnotes; Cameron and Miller 2015, Journal of Human Resources 50; Pustejovsky and "
        "Tipton 2018, Journal of Business and Economic Statistics 36",
    )
    yield Method(
        "Weight of effort",
        f"{METRICS['effort_weight'].formula}; undefined outside 0 to 1. Published: delta method over rows; by people: "
        "standard error of resampled people.",
        paper,
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
