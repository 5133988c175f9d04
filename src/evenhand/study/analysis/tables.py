"""Tables 2 to 5 in the layout of the effort paper: the published form, and beside it the one by people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evenhand.core.numbers import DASH
from evenhand.core.sections import DisplayTable
from evenhand.study.analysis.correlations import DIFFERENCE
from evenhand.study.analysis.parts import TARGETS
from evenhand.study.analysis.records import EstimateRecord

if TYPE_CHECKING:
    from evenhand.study.analysis.result import StudyResult

_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_REGRESSION_STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))
_PAIRS = (
    ("aggregate", "overall", "Aggregate and overall distance"),
    ("trajectory", "overall", "Trajectory and overall distance"),
    ("aggregate", "trajectory", "Aggregate and trajectory distance"),
    ("aggregate", "output", "Aggregate and output distance"),
    ("trajectory", "output", "Trajectory and output distance"),
)
_TESTS = (
    ("hotelling", "Hotelling's t (published)"),
    ("meng", "Meng's z (published as Steiger's Z)"),
    ("williams", "Williams' t"),
    ("steiger", "Steiger's z"),
    ("participant_bootstrap", "t of resampled people"),
)


def paper_tables(result: StudyResult) -> dict[int, DisplayTable]:
    """Return the tables by their numbers in the paper."""
    return {2: _table_2(result), 3: _table_3(result), 4: _table_4(result), 5: _table_5(result)}


def _table_2(result: StudyResult) -> DisplayTable:
    held = {(r.condition, r.target, r.term, r.method): r for r in result.correlations}
    rows = []
    for term, target, words in _PAIRS:
        cells = [words]
        for condition in result.conditions:
            published = held.get((condition, target, term, "published"))
            people = held.get((condition, target, term, "participant_bootstrap"))
            cells += [_starred(published, "value", _STARS, adjusted=True), _interval(people)]
        rows.append(tuple(cells))
    columns = ("Rank correlation", *_of_conditions(result, ("r", "interval")))
    caption = (
        f"Correlations (the paper's table 2). {_star_words(_STARS)}, by rows as published, adjusted by Bonferroni; "
        "intervals by people."
    )
    return _table(caption, columns, rows)


def _table_3(result: StudyResult) -> DisplayTable:
    held = {(r.condition, r.target, r.method): r for r in result.comparisons}
    rows = [
        (
            name,
            target,
            *(
                _starred(held.get((condition, target, method)), "statistic", _STARS, adjusted=True)
                for condition in result.conditions
            ),
        )
        for method, name in _TESTS
        for target in TARGETS
        if any(held.get((condition, target, method)) for condition in result.conditions)
    ]
    columns = ("Test", "Target", *_of_conditions(result, ("statistic",)))
    caption = (
        f"Does trajectory correlate with the target more than aggregate does? (the paper's table 3). "
        f"{_star_words(_STARS)}, adjusted by Bonferroni."
    )
    return _table(caption, columns, rows, text=2)


def _table_4(result: StudyResult) -> DisplayTable:
    held = {(r.condition, r.target, r.method): r for r in result.comparisons}
    rows = []
    for target in TARGETS:
        cells = [f"{DIFFERENCE} with {target}"]
        for condition in result.conditions:
            cells += [_interval(held.get((condition, target, m))) for m in ("row_bootstrap", "participant_bootstrap")]
        if any(cell != DASH for cell in cells[1:]):
            rows.append(tuple(cells))
    columns = ("Difference of rank correlations", *_of_conditions(result, ("rows (published)", "people")))
    caption = (
        f"{100 * result.spec.confidence:g}% intervals of the difference (the paper's table 4, which prints them "
        "with the sign turned)."
    )
    return _table(caption, columns, rows)


def _table_5(result: StudyResult) -> DisplayTable:
    """Terms down, models across; below each coefficient its classical and its clustered standard error."""
    models = list(dict.fromkeys((r.model, r.condition, r.target) for r in result.regressions))
    held = {(r.model, r.condition, r.target, r.term, r.method): r for r in result.regressions}
    terms = list(dict.fromkeys(r.term for r in result.regressions if r.method == "clustered" and _is_coefficient(r)))
    rows = []
    for term in terms:
        published = [held.get((*model, term, "published")) for model in models]
        people = [held.get((*model, term, "clustered")) for model in models]
        rows.append((_term(term), *(_starred(r, "value", _REGRESSION_STARS) if r else "" for r in published)))
        rows.append(("std. error, rows", *(_error(r) for r in published)))
        rows.append(("std. error, people", *(_error(r) for r in people)))
    for term, words in (("r_squared", "R-squared"), ("adjusted_r_squared", "Adj. R-squared"), ("f_statistic", "F")):
        rows.append((words, *(_places(held.get((*model, term, "published"))) for model in models)))
    first = {
        model: next(r for r in result.regressions if (r.model, r.condition, r.target) == model) for model in models
    }
    rows.append(("Answers", *(f"{first[model].n:,}" for model in models)))
    rows.append(("People", *(f"{first[model].people:,}" for model in models)))
    columns = (
        "",
        *(
            f"{'moderation' if kind == 'moderation' else condition}, {target}".removeprefix(", ")
            for kind, condition, target in models
        ),
    )
    moderation = next((f"; moderation: {condition}" for kind, condition, _ in models if kind == "moderation"), "")
    caption = (
        f"Regressions (the paper's table 5{moderation}). Standard errors classical, as published, and clustered by "
        f"person. {_star_words(_REGRESSION_STARS)}, as published."
    )
    return _table(caption, columns, rows)


def _is_coefficient(record: EstimateRecord) -> bool:
    return record.stderr is not None and record.term != "weight"


def _term(term: str) -> str:
    return f"{term[0].upper()}{term[1:]}"


def _error(record: EstimateRecord | None) -> str:
    if record is None:
        return ""
    return DASH if record.stderr is None else f"({record.stderr:.4f})"


def _starred(
    record: EstimateRecord | None, field: str, levels: Sequence[tuple[float, str]], *, adjusted: bool = False
) -> str:
    number = None if record is None else getattr(record, field)
    if record is None or number is None:
        return DASH
    p = record.p_adjusted if adjusted else record.p_value
    stars = next((mark for limit, mark in levels if p is not None and p < limit), "")
    return f"{number:.4f}{stars}"


def _places(record: EstimateRecord | None) -> str:
    if record is None or record.value is None:
        return DASH
    return f"{record.value:.2f}" if record.term == "f_statistic" else f"{record.value:.4f}"


def _interval(record: EstimateRecord | None) -> str:
    if record is None or record.low is None or record.high is None:
        return DASH
    return f"[{record.low:.4f}, {record.high:.4f}]"


def _of_conditions(result: StudyResult, names: Sequence[str]) -> Iterator[str]:
    for condition in result.conditions:
        for name in names:
            yield f"{condition}, {name}" if condition else name


def _star_words(levels: Sequence[tuple[float, str]]) -> str:
    return ", ".join(f"{mark} p < {limit:g}" for limit, mark in levels)


def _table(caption: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]], text: int = 1) -> DisplayTable:
    return DisplayTable(caption, tuple(columns), tuple(rows), (False,) * text + (True,) * (len(columns) - text))
