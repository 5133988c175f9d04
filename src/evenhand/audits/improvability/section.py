"""The improvability part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.audits.improvability.charts import curve_panels, power_panels, shown_pair, target_words, value_panel
from evenhand.audits.improvability.exhibit import process_table, scope_table
from evenhand.audits.improvability.tables import JUDGED
from evenhand.core.numbers import DASH, shown
from evenhand.core.sections import DisplayTable, Figure, Method, Section

if TYPE_CHECKING:
    from evenhand.audits.improvability.records import DecisionRecord, SplitRecord
    from evenhand.audits.improvability.result import ImprovabilityResult

_ALONE = "alone only"
_PAPER = "Auerbach, Liang, Tabord-Meehan and Okumura 2024, Testing the fairness-improvability of algorithms"


def improvability_section(result: ImprovabilityResult) -> Section:
    """Return the section of a report for this result."""
    parts: list[Figure | DisplayTable] = [process_table(result), scope_table(result)]
    if result.reasons:
        parts.append(_reason_table(result))
    parts += [
        _value_figure(result),
        *(_iterations(result, name) for name in result.spec.candidates),
        _decision_table(result),
        _delta_table(result),
        _curve_figure(result),
        *_other_test(result),
        _power_figure(result),
        _size_table(result),
        _candidate_table(result),
    ]
    if result.coefficients:
        parts.append(_coefficient_table(result))
    return Section(result.title, result.question, tuple(parts), tuple(_methods(result)), result.notes)


def _value_figure(result: ImprovabilityResult) -> Figure:
    high, low = shown_pair(result)
    said = [
        f"{r.candidate or 'status quo'}, {r.group}: {shown(r.value)}"
        for r in result.values
        if r.utility == result.spec.fairness[0].name and r.group in (high, low)
    ]
    better = "to the upper right" if result.spec.utility.better == "higher" else "to the lower left"
    return Figure(
        "Values by group",
        f"The value of each algorithm for {high} and for {low}, the mean over the splits, with "
        f"{100 * result.spec.confidence:g}% ellipses. On the dashed line both groups are served equally: nearer to it "
        f"is fairer, {better} is more accurate.",
        "; ".join(said) + ".",
        tuple(value_panel(result, utility.name) for utility in dict.fromkeys(result.spec.fairness)),
    )


def _iterations(result: ImprovabilityResult, candidate: str) -> DisplayTable:
    """Return the paper's table 1: values of candidate and status quo, and p-values, by split, at a margin of 0.

    The p-values are those that decide; where the published test was asked for, its p-values of fairness stand beside.
    """
    spec = result.spec
    shown_tests = (None, *dict.fromkeys((JUDGED, spec.test.fairness)))
    own = [r for r in result.splits if r.candidate == candidate and r.test in shown_tests]
    columns = ["Split"]
    for record in (r for r in own if r.split == 1 and r.component != "all"):
        gap = "Gap" if len(spec.fairness) == 1 else f"Gap in {record.utility}"
        name = str(record.group) if record.component == "accuracy" else gap
        both = [f"{name}, new", f"{name}, old", "p"]
        columns += both if record.test in (None, JUDGED) else [f"{name}, published p"]
    rows = [_iteration([r for r in own if r.split == split]) for split in sorted({r.split for r in own})]
    return DisplayTable(
        f"{candidate}, {_counted(result, candidate)}. By split; old is the status quo, new the candidate",
        (*columns, "Largest p"),
        tuple(rows),
        (True,) * (len(columns) + 1),
        folded=len(spec.candidates) > 3,
    )


def _iteration(records: list[SplitRecord]) -> tuple[str, ...]:
    cells = [str(records[0].split)]
    for record in records:
        if record.component == "all":
            continue
        if record.test in (None, JUDGED):
            cells += [shown(record.candidate_value), shown(record.status_quo)]
        cells.append(_p(record.p_value))
    return (*cells, _p(next(r.p_value for r in records if r.component == "all" and r.test == JUDGED)))


def _counted(result: ImprovabilityResult, candidate: str) -> str:
    """Return what follows from the p-values of the splits at a margin of 0."""
    one = next(
        r for r in result.curves if (r.candidate, r.test, r.target, r.delta) == (candidate, JUDGED, "fairness", 0.0)
    )
    return f"{_which_p(result)} {shown(one.p_adjusted)}: {'an' if one.established else 'no'} improvement is shown"


def _p(value: float | None) -> str:
    return DASH if value is None else f"{value:.4f}"


def _decision_table(result: ImprovabilityResult, test: str | None = None) -> DisplayTable:
    """Return the decisions; at a margin of 0 all targets are the same hypothesis, which stands once."""
    own = [d for d in result.decision if d.test == (test or JUDGED) and (d.delta > 0 or d.target == "fairness")]
    rows = []
    for d in own:
        target = "Fairness and accuracy" if d.delta == 0 else target_words(d.target, d.group, "", "")
        rows.append(
            (
                d.candidate,
                target,
                shown(d.delta, percent=True),
                _decided(d),
                _p(d.p_adjusted),
                _p(d.value),
                _p(d.p_median),
            )
        )
    columns = ("Candidate", "What improves", "Margin", "Decision", "Adjusted p", "Combined p", "Median p")
    alone = any(row[3].startswith(_ALONE) for row in rows)
    tried = f"; {_ALONE} means that its own test rejects, but {len(result.spec.candidates)} candidates were tried"
    words = f"Decisions at level {result.spec.test.alpha:g}{tried if alone else ''}"
    return DisplayTable(
        words if test is None else f"P-values of the {test} test, for comparison: nothing rests on them",
        columns,
        tuple(rows),
        (False, False, True, False, True, True, True),
        folded=test not in (None, result.spec.test.fairness),
    )


def _decided(decision: DecisionRecord) -> str:
    """Return the decision in words: with all candidates allowed for, and what the candidate's own test says."""
    if decision.established is None:
        words = "would reject" if decision.rejected else "would not reject"
    elif decision.established:
        words = "shown"
    else:
        words = _ALONE if decision.rejected else "not shown"
    return words if decision.status == "ok" else f"{words}; {decision.status}"


def _delta_table(result: ImprovabilityResult, test: str | None = None) -> DisplayTable:
    """Return the paper's table 2: the largest margins."""
    rows = []
    for d in result.deltas:
        if d.test != (test or JUDGED):
            continue
        nothing = d.value is None and "at a margin of 0" in d.status
        if nothing and d.target != "fairness":  # at a margin of 0 all targets are one hypothesis
            continue
        status = "" if d.status == "ok" else d.status.removeprefix("undefined: ").removeprefix("ok: ")
        ends = d.binding if d.binding and d.value is not None else DASH
        what = "Anything" if nothing else target_words(d.target, d.group, "", "")
        rows.append((d.candidate, what, shown(d.value, percent=True), "not shown" if nothing else status or ends))
    several = "; those of all candidates hold together" if len(result.spec.candidates) > 1 else ""
    words = f"Largest margins: the end of the unbroken run of rejections from 0, a lower bound{several}"
    return DisplayTable(
        words if test is None else f"Largest margins of the {test} test, for comparison",
        ("Candidate", "What improves", "At least", "Ended by"),
        tuple(rows),
        (False, False, True, False),
        folded=test not in (None, result.spec.test.fairness),
    )


def _other_test(result: ImprovabilityResult) -> Iterator[DisplayTable]:
    """Yield decisions and margins of the published fairness test, where it can be computed; open where asked for."""
    for test in dict.fromkeys(d.test for d in result.decision):
        if test != JUDGED:
            yield _decision_table(result, test)
            yield _delta_table(result, test)


def _curve_figure(result: ImprovabilityResult) -> Figure:
    spec = result.spec
    said = [
        f"{d.candidate}, {target_words(d.target, d.group, d.test, JUDGED)}: largest margin "
        f"{shown(d.value, percent=True)}"
        for d in result.deltas
    ]
    return Figure(
        "P-values by margin",
        f"The {_which_p(result)} where an improvement by at least the margin is claimed. It is shown as far as the "
        f"line stays below {spec.test.alpha:g} (dashed) from a margin of 0 on. A curve that rises and then falls again, "
        "as that of the published test may, must not be read from its end; nothing rests on the published test.",
        "; ".join(said) + ".",
        tuple(curve_panels(result)),
    )


def _which_p(result: ImprovabilityResult) -> str:
    return "adjusted p" if len(result.spec.candidates) > 1 else "combined p"


def _power_figure(result: ImprovabilityResult) -> Figure:
    spec = result.spec
    here = [r for r in result.power if r.rows == len(result.inputs.sample)]
    return Figure(
        "Power",
        f"The chance that an improvement is shown{_allowed(result)}, by the number of rows: one as the candidate had "
        f"it on the test rows, and a planned one (accuracy up by {shown(spec.plan.gain, percent=True)}, gap down by "
        f"{shown(spec.plan.reduction, percent=True)}).",
        "; ".join(f"{r.candidate}, {r.scenario}: {shown(r.value, percent=True)} with {r.rows:,} rows" for r in here)
        + ".",
        tuple(power_panels(result)),
    )


def _allowed(result: ImprovabilityResult) -> str:
    several = len(result.spec.candidates)
    at = (
        ""
        if min(result.spec.test.margins) == 0
        else f" at a margin of {shown(min(result.spec.test.margins), percent=True)}"
    )
    return f"{at}, with all {several} candidates allowed for" if several > 1 else at


def _size_table(result: ImprovabilityResult) -> DisplayTable:
    found: dict[str, list[str]] = {}
    for r in result.sample_sizes:
        words = f"{r.value:,}" if r.value is not None else r.status.removeprefix("undefined: ")
        found.setdefault(r.candidate, []).append(words)
    return DisplayTable(
        f"Rows in all for a power of {shown(result.spec.plan.power, percent=True)}{_allowed(result)}",
        ("Candidate", "As found", "As planned"),
        tuple((name, *words) for name, words in found.items()),
        (False, True, True),
    )


def _reason_table(result: ImprovabilityResult) -> DisplayTable:
    words = {"too_few_rows": "Too few rows", "not_found": "No better algorithm found", "unclear": "Either"}
    rows = tuple((r.candidate, words[r.reason], r.sentence) for r in result.reasons)
    return DisplayTable(
        "Why no improvement is shown", ("Candidate", "Plausible reason", "What the data say"), rows, (False,) * 3
    )


def _candidate_table(result: ImprovabilityResult) -> DisplayTable:
    solver = any(r.solver_status is not None for r in result.candidates)
    columns = [
        "Candidate",
        "Split",
        "What it is",
        "Test rows",
        "Selected",
        "Status quo selects",
        "Decided otherwise",
        "Tied at the cut",
    ]
    rows = []
    for r in result.candidates:
        row = [
            r.candidate,
            str(r.split),
            r.what if r.status == "ok" else r.status,
            f"{r.rows:,}",
            f"{r.selected:,}",
            f"{r.selected_status_quo:,}",
            f"{r.changed:,}",
            f"{r.tied:,}",
        ]
        if solver:
            row += [r.solver_status or DASH, shown(r.bound), shown(r.relative_gap)]
        rows.append(tuple(row))
    more = ("Solver", "Bound", "Gap to the bound") if solver else ()
    numeric = (False, True, False, *(True,) * 5, *((False, True, True) if solver else ()))
    return DisplayTable("The candidates by split", (*columns, *more), tuple(rows), numeric, folded=True)


def _coefficient_table(result: ImprovabilityResult) -> DisplayTable:
    rows = tuple((r.candidate, str(r.split), r.feature, f"{r.value:.6g}") for r in result.coefficients)
    return DisplayTable(
        "Coefficients of linear candidates",
        ("Candidate", "Split", "Feature", "Coefficient"),
        rows,
        (False, True, False, True),
        folded=True,
    )


def _methods(result: ImprovabilityResult) -> Iterator[Method]:
    spec = result.spec
    yield Method(
        "Value of a group",
        "U = sum of u over sum of w, over the group's rows. classification: u = [y = d], w = 1. calibration: u = y [d "
        "= 1], w = [d = 1]. false positive rate: u = [y = 0, d = 1], w = [y = 0]. false negative rate: u = [y = 1, "
        f"d = 0], w = [y = 1]. profit: u = d [y >= d], w = 1. Here: {spec.utility.name} for accuracy, "
        f"{', '.join(utility.name for utility in spec.fairness)} for fairness.",
        f"{_PAPER}, section 2",
    )
    yield Method(
        "Test of one split",
        f"The candidate is made from {shown(spec.test.train, percent=True)} of the rows and tested on the others. T = A1 - "
        "(1 + D) A0 for each group; the p-value is (1 + #(T* - T >= T)) / (J + 1) over "
        f"{spec.resamples:,} resamples T* of the test rows. The null is that some component does not improve, so p is "
        'the largest of the components\'. (The paper prints its hypothesis (3) as "is an improvement"; the null is '
        "that it is not.)",
        f"{_PAPER}, section 3",
    )
    yield Method(
        "Fairness: signed test",
        "With the groups furthest apart under the status quo taken from the training rows, the gap after is compared "
        "with (1 - D) times the gap before for every ordered pair of groups; p is the largest. Every part is smooth in "
        "means, so the level holds at all margins. At large margins it seldom rejects: it then shows near equality, "
        "which takes many rows.",
        "Berger 1982, Technometrics 24 (intersection-union tests)",
    )
    yield Method(
        "Fairness: published test",
        "T = (F1r - F1b)^2 - (1 - D)^2 (F0r - F0b)^2. Squares of gaps near 0 are not near normal: at D = 0.725 and 0.9 "
        "this rejects true nulls in 9 to 34 percent of simulated samples where 5 are allowed. It is shown for "
        "comparison.",
        f"{_PAPER}, section 3.2; erratum in the documentation",
    )
    rule = (
        "The null is rejected when the median p-value of the splits is below alpha / 2 (with one split, below alpha). "
        "The combined p is twice the median."
        if spec.test.combine == "median"
        else "The null is rejected when for some k at least half of the first k splits have p of at most alpha / 2. "
        "The combined p is the smallest alpha for which that is so."
    )
    yield Method(
        "Combining splits",
        rule,
        f"{_PAPER}, corollary 1" if spec.test.combine == "median" else "Gasparin, Wang and Ramdas 2025, PNAS 122",
    )
    yield Method(
        "Largest margin",
        "The p-value is computed over the whole range of margins from the same resamples. The largest margin is the "
        "end of the unbroken run of rejections from 0; a rejection beyond a gap in the run is not used. Read so, it is "
        "a one-sided confidence bound, for each kind of improvement by itself.",
        "",
    )
    if len(spec.candidates) > 1:
        yield Method(
            "Several candidates",
            f"Adjusted p = min(1, {len(spec.candidates)} p) (Bonferroni), at every margin. The chance that any claim "
            "is false, that a candidate improves or that it does so by its largest margin, is then at most alpha. "
            "Holm's p-values at each margin would not make the margins of several candidates hold together.",
            "Strassburger and Bretz 2008, Statistics in Medicine 27",
        )
    yield Method(
        "Intervals and ellipses",
        f"{100 * spec.confidence:g}% percentile intervals of the bootstrap, the mean over the splits; ellipses from "
        "the bootstrap's standard errors. Splits share rows, so they are not independent samples.",
        "",
    )
    yield Method(
        "Power",
        "The bootstrap's deviations stand for sampling error and shrink with the square root of the rows; power is the "
        f"share of resamples in which every component would exceed its critical value at level {spec.level:.3g}, which "
        f"is {_level_words(result)}.",
        "",
    )


def _level_words(result: ImprovabilityResult) -> str:
    spec, several = result.spec, len(result.spec.candidates)
    why = ["2, for several splits"] if spec.test.splits > 1 else []
    why += [f"{several}, for the candidates"] if several > 1 else []
    return f"alpha divided by {' and by '.join(why)}" if why else "alpha"
