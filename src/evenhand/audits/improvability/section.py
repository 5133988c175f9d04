"""The report section on improvability: legal context, charts, tables, and methods."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from evenhand.audits.improvability import charts, frontier
from evenhand.audits.improvability.estimate import NONE_ESTABLISHED
from evenhand.audits.improvability.metrics import FAIRNESS, MEANINGS, PAPER
from evenhand.audits.improvability.result import JUDGED
from evenhand.audits.improvability.spec import STATUS_QUO, ImprovabilitySpec
from evenhand.core.display import Cell, DisplayTable, Figure, Method, Number, make_table
from evenhand.core.findings import without_kind
from evenhand.core.methods import method
from evenhand.core.needed import two_digits
from evenhand.core.records import OK, OVERALL, matching
from evenhand.errors import count
from evenhand.messages.formats import show, show_confidence, show_p

if TYPE_CHECKING:
    from evenhand.audits.improvability.result import Decision, ImprovabilityGap, ImprovabilityResult, Margin

_ALONE = "alone only"
_method = partial(method, "evenhand.audits.improvability")
_DIRECTIONS = {
    "splits": "With the groups furthest apart under the status quo taken from the training rows",
    "named": "With the groups furthest apart under the status quo named beforehand",
    "one_pass": "For every pair of groups that may be furthest apart under the status quo, in both directions (the "
    "smallest p counts as often as there are pairs, calibrated for two directions by the correlation of their parts)",
}
_SHOWN = (
    (
        "It establishes",
        "At this level of error, that an algorithm exists which is fairer and no less accurate by these measures. The "
        "algorithm itself can be exported and examined.",
    ),
    (
        "It does not establish",
        "That this alternative is the best one; that it is lawful, practical or cheap; that it serves interests which "
        "the measures leave out; or that it would do as well in another population or year.",
    ),
)
_NOT_SHOWN = (
    ("It establishes", "That these candidates were not shown to be better in all measures at once on these rows."),
    (
        "It does not establish",
        "That the disparity is necessary. A better algorithm may exist that these rules did not find, or the rows may "
        "be too few to show it; the next table says which is more plausible.",
    ),
)


def parts(result: ImprovabilityResult) -> Iterator[Figure | DisplayTable]:
    """Yield the figures and tables of the section."""
    yield _process_table(result)
    yield _scope_table(result)
    if result.reasons:
        yield _reason_table(result)
    yield frontier.frontier_figure(result)
    yield frontier.frontier_table(result)
    yield charts.value_figure(result)
    yield from (_split_table(result, name) for name in result.spec.candidates)
    yield _decision_table(result, JUDGED)
    yield _margin_table(result, JUDGED)
    yield charts.curve_figure(result)
    for test in dict.fromkeys(decision.test for decision in result.decisions if decision.test != JUDGED):
        yield _decision_table(result, test)
        yield _margin_table(result, test)
    yield charts.power_figure(result)
    yield _size_table(result)
    yield _candidate_table(result)
    if result.coefficients:
        yield _coefficient_table(result)


# The legal process ---------------------------------------------------------------------------------------------------


def _process_table(result: ImprovabilityResult) -> DisplayTable:
    """Return the table of the three parts of a disparate-impact case, with this result's bearing on each."""
    rows = (
        (
            "1. Prima facie case. Do the benefits or harms fall disproportionately on a protected group?",
            f"Not tested here. {_status_quo_gap(result)} The parity audit speaks to this part.",
        ),
        (
            "2. Business necessity. "
            "Is the policy necessary to achieve a legitimate interest that does not discriminate?",
            f"Not tested here. The interest is taken to be measured by {_interest(result)}; whether that is the "
            "legitimate interest is for the parties and the court.",
        ),
        (
            "3. Less discriminatory alternative. "
            "Is there an alternative that serves the same interest and discriminates less?",
            _answer(result),
        ),
    )
    columns = ("Part of the process", "What this result says")
    return DisplayTable("The three-part process of a disparate-impact case", columns, rows)


def _scope_table(result: ImprovabilityResult) -> DisplayTable:
    """Return the table of what the result establishes and does not establish."""
    fairness = " and in ".join(_meaning(utility.name) for utility in result.spec.fairness)
    error = (
        "If no candidate were better in all measures at once, the test would still reject in at most "
        f"{show(result.spec.test.alpha, 'percent')} of samples, adjusted for all candidates, in large samples."
    )
    rows = (
        ("Population", _population(result)),
        ("Measures", f"Accuracy is {_interest(result)}; fairness is the gap between groups in {fairness}."),
        ("Error", error),
        *(_SHOWN if result.established else _NOT_SHOWN),
    )
    return DisplayTable("What this establishes", ("Question", "Answer"), rows)


def _population(result: ImprovabilityResult) -> str:
    rows = "rows" if result.n is None else count(result.n, "row")
    drawn = f"The population that these {rows} were drawn from, by {result.groupings[0]} ({', '.join(result.groups)})."
    if not result.unlabelled:
        return drawn
    return f"{drawn} Only people whose outcome is known: {count(result.unlabelled, 'row')} without it were left out."


def _interest(result: ImprovabilityResult) -> str:
    who = "for everyone together" if result.spec.test.accuracy_of == "everyone" else "for each group"
    return f"{_meaning(result.spec.utility.name)} {who}{'' if result.better == 'higher' else ', lower is better'}"


def _meaning(utility: str) -> str:
    return MEANINGS.get(utility, utility)


def _status_quo_gap(result: ImprovabilityResult) -> str:
    utility = result.spec.fairness[0].name
    style = result.metrics[utility].style()
    values = matching(result.values, model=STATUS_QUO, metric=utility)
    group_values = (v for v in values if v.group != OVERALL and v.value is not None)
    listed = ", ".join(f"{v.group} {show(v.value, style)}" for v in group_values)
    return f"For orientation, {utility.replace('_', ' ')} under the status quo: {listed}."


def _answer(result: ImprovabilityResult) -> str:
    spec, several = result.spec, len(result.spec.candidates)
    if result.established:
        best = _clearest(result.established)
        names = ", ".join(decision.model for decision in result.established)
        adjusted = f", and {show_p(best.p_adjusted or 0.0)} adjusted for all candidates" if several > 1 else ""
        return (
            f"Yes, by these measures: {names}. For {best.model} the hypothesis of no improvement is rejected at level "
            f"{spec.test.alpha:g} ({show_p(best.p_value or 0.0)}{_by_median(result, best)}{adjusted})."
        )
    if result.rejections:
        best = _clearest(result.rejections)
        return (
            f"Not established. The test of {best.model} alone rejects ({show_p(best.p_value or 0.0)}), but "
            f"{several} candidates were tried, and adjusted for all of them it does not "
            f"({show_p(best.p_adjusted or 0.0)}). It would count if {best.model} had been the only candidate, named "
            "beforehand."
        )
    return "No such alternative was shown. That is not the same as there being none: see what this does not establish."


def _by_median(result: ImprovabilityResult, decision: Decision) -> str:
    """Return a clause on the conclusion of the paper's median rule, if there are several splits."""
    if decision.rejected_by_median is None or result.spec.test.combine == "median":
        return ""
    shown = "shows it too" if decision.rejected_by_median else "does not show it"
    return f"; the paper's median rule {shown}, median {show_p(decision.p_median or 0.0)}"


def _clearest(decisions: tuple[Decision, ...]) -> Decision:
    return min(decisions, key=lambda decision: decision.p_value or 0.0)


# Figures and tables --------------------------------------------------------------------------------------------------


def _split_table(result: ImprovabilityResult, candidate: str) -> DisplayTable:
    """Return the paper's table 1: values of candidate and status quo, and p-values, by split, at a margin of 0.

    The p-values belong to the deciding test; the published test's p-values of fairness, if requested, follow below.
    """
    tests = (None, JUDGED, result.spec.test.fairness)
    splits: dict[int, list[ImprovabilityGap]] = {}
    for gap in matching(result.gaps, model=candidate):
        if gap.test in tests and gap.component != "all":
            splits.setdefault(gap.split, []).append(gap)
    return DisplayTable(
        f"{candidate}, {_decided_at_zero(result, candidate)}. Old is the status quo, new the candidate",
        ("Split" if result.spec.test.design == "splits" else "Pass", "Of", "New", "Old", "p"),
        tuple(line for gaps in splits.values() for line in _lines_of_split(result, gaps)),
        folded=len(result.spec.candidates) > 3,
    )


def _lines_of_split(result: ImprovabilityResult, gaps: list[ImprovabilityGap]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each group and gap of a split, and then the largest deciding p-value."""
    split, several = Number(gaps[0].split, "count"), len(result.spec.fairness) > 1
    for gap in gaps:
        name = str(gap.group) if gap.component == "accuracy" else f"Gap in {gap.metric}" if several else "Gap"
        published = "" if gap.test in (None, JUDGED) else ", by the published test"
        style = result.metrics[gap.metric].style()
        values = Number(gap.model_value, style), Number(gap.reference_value, style)
        yield split, f"{name}{published}", *values, Number(gap.p_value, "p")
    of = {"model": gaps[0].model, "split": gaps[0].split, "test": JUDGED}
    for whole in matching(result.gaps, component="all", **of):
        yield split, "All of these, the largest p", None, None, Number(whole.p_value, "p")


def _decided_at_zero(result: ImprovabilityResult, candidate: str) -> str:
    """Return the conclusion from the splits' p-values at a margin of 0, as a clause."""
    point = matching(result.curves, model=candidate, test=JUDGED, metric=FAIRNESS, margin=0.0)[0]
    shown = "an" if point.established else "no"
    return f"{charts.p_title(result)} {show(point.p_adjusted, 'p')}: {shown} improvement is shown"


def _decision_table(result: ImprovabilityResult, test: str) -> DisplayTable:
    """Return the table of decisions; at a margin of 0, all targets are one hypothesis and are listed once."""
    decisions = [d for d in matching(result.decisions, test=test) if d.margin > 0 or d.metric == FAIRNESS]
    alone = any(decision.established is False and decision.rejected for decision in decisions)
    splits = result.spec.test.design == "splits" and result.spec.test.splits > 1
    tried = f"; {_ALONE} means that its own test rejects, but {len(result.spec.candidates)} candidates were tried"
    caption = f"Decisions at level {result.spec.test.alpha:g}{tried if alone else ''}"
    return make_table(
        caption if test == JUDGED else f"P-values of the {test} test, for comparison: nothing rests on them",
        {
            "Candidate": lambda d: d.model,
            "What improves": lambda d: charts.target_title(d.metric, d.group) if d.margin else "Fairness and accuracy",
            "Margin": lambda d: Number(d.margin, "percent"),
            "Decision": _decided,
            "Adjusted p": lambda d: Number(d.p_adjusted, "p"),
            "p": lambda d: Number(d.p_value, "p"),
            **({"Median p": lambda d: Number(d.p_median, "p"), "By the median rule": _by_rule} if splits else {}),
        },
        decisions,
        folded=test not in (JUDGED, result.spec.test.fairness),
    )


def _by_rule(decision: Decision) -> str | None:
    return None if decision.rejected_by_median is None else "rejects" if decision.rejected_by_median else "does not"


def _decided(decision: Decision) -> str:
    """Return a description of a decision, adjusted for all candidates or only by the candidate's own test."""
    if decision.established is None:
        words = "would reject" if decision.rejected else "would not reject"
    elif decision.established:
        words = "shown"
    else:
        words = _ALONE if decision.rejected else "not shown"
    return words if decision.status == OK else f"{words}; {decision.status}"


def _margin_table(result: ImprovabilityResult, test: str) -> DisplayTable:
    """Return the paper's table 2: the largest margins.

    At a margin of 0, all targets are one hypothesis.
    """
    margins = [m for m in matching(result.margins, test=test) if m.metric == FAIRNESS or not _shows_nothing(m)]
    several = "; those of all candidates hold together" if len(result.spec.candidates) > 1 else ""
    caption = f"Largest margins: the end of the unbroken run of rejections from 0, a lower bound{several}"
    return make_table(
        caption if test == JUDGED else f"Largest margins of the {test} test, for comparison",
        {
            "Candidate": lambda m: m.model,
            "What improves": lambda m: "Anything" if _shows_nothing(m) else charts.target_title(m.metric, m.group),
            "At least": lambda m: Number(m.value, "percent"),
            "Ended by": _ended_by,
        },
        margins,
        always=("At least",),
        folded=test not in (JUDGED, result.spec.test.fairness),
    )


def _shows_nothing(margin: Margin) -> bool:
    return margin.value is None and margin.status == NONE_ESTABLISHED


def _ended_by(margin: Margin) -> str | None:
    if _shows_nothing(margin):
        return "not shown"
    return margin.binding if margin.status == OK else without_kind(margin.status).text


def _size_table(result: ImprovabilityResult) -> DisplayTable:
    def needed(model: str, scenario: str) -> Cell:
        record = matching(result.sample_sizes, model=model, scenario=scenario)[0]
        return Number(two_digits(record.n), "count") if record.n is not None else without_kind(record.status).text

    return DisplayTable(
        f"Rows in all for a power of {show(result.spec.plan.power, 'percent')}{charts.adjusted_clause(result)}",
        ("Candidate", "As found", "As planned"),
        tuple((name, needed(name, "found"), needed(name, "planned")) for name in result.spec.candidates),
    )


def _reason_table(result: ImprovabilityResult) -> DisplayTable:
    words = {
        "too_few_rows": "Too few rows, or nothing better",
        "not_found": "No better algorithm found",
        "unclear": "Either",
    }
    words |= {"unchanged": "Nothing to compare"}
    rows = tuple((reason.model, words[reason.reason], reason.sentence.text) for reason in result.reasons)
    return DisplayTable("Why no improvement is shown", ("Candidate", "Plausible reason", "What the data say"), rows)


def _candidate_table(result: ImprovabilityResult) -> DisplayTable:
    return make_table(
        "The candidates by split or step",
        {
            "Candidate": lambda r: r.model,
            "Split": lambda r: Number(r.split, "count"),
            "What it is": lambda r: r.what if r.status == OK else r.status.text,
            "Test rows": lambda r: Number(r.n, "count"),
            "Selected": lambda r: Number(r.selected, "count"),
            "Status quo selects": lambda r: Number(r.selected_reference, "count"),
            "Decided otherwise": lambda r: Number(r.changed, "count"),
            "Tied at the cut": lambda r: Number(r.tied, "count"),
            "Solver": lambda r: None if r.solver_status is None else r.solver_status.text,
            "Bound": lambda r: Number(r.bound),
            "Gap to the bound": lambda r: Number(r.relative_gap),
        },
        result.candidates,
    )


def _coefficient_table(result: ImprovabilityResult) -> DisplayTable:
    return make_table(
        "Coefficients of linear candidates",
        {
            "Candidate": lambda r: r.model,
            "Split": lambda r: Number(r.split, "count"),
            "Feature": lambda r: r.feature,
            "Coefficient": lambda r: Number(r.value),
        },
        result.coefficients,
    )


def methods(result: ImprovabilityResult) -> Iterator[Method]:
    """Yield the methods behind the section's numbers."""
    spec, test, several = result.spec, result.spec.test, len(result.spec.candidates)
    splits = test.design == "splits"
    yield from _utilities(result)
    if splits:
        yield _method("splits", train=show(test.train, "percent"), splits=count(test.splits, "split"))
    else:
        yield _method("one_pass", steps=count(test.steps, "step"), start=show(test.start, "percent"))
    yield _method("test", resamples=spec.resamples, paper=PAPER)
    if any(note.id == "core.clustered" for note in result.notes):
        yield _method("clusters")
    yield _method("signed", groups=_DIRECTIONS[test.design if test.worst_pair is None else "named"])
    yield _method("published", paper=PAPER)
    if splits:
        yield _method(test.combine, paper=PAPER)
    yield _method("margin")
    if several > 1:
        yield _method("several", several=several)
    shared = ", the mean over the splits, which share rows and are not independent samples" if splits else ""
    yield _method("intervals", confidence=show_confidence(spec.confidence), shared=shared)
    yield _method("power", level=test.alpha / spec.counts, alpha=_level(spec))


def _utilities(result: ImprovabilityResult) -> Iterator[Method]:
    """Yield the definitions of the utilities, with their use."""
    spec = result.spec
    for utility in spec.criteria.utilities:
        used = [word for word, of in (("accuracy", (spec.utility,)), ("fairness", spec.fairness)) if utility in of]
        metric = result.metrics[utility.name]
        formula = metric.formula or "U = sum of u over sum of w, over the group's rows, with the user's own u and w"
        yield Method(f"{metric.title} ({metric.name})", f"{formula}. Here for {' and '.join(used)}.", metric.reference)


def _level(spec: ImprovabilitySpec) -> str:
    """Return a description of the level of one test, such as 'alpha divided by 3, for the candidates'."""
    test, several = spec.test, len(spec.candidates)
    divisors = ["2, for several splits"] if test.design == "splits" and test.splits > 1 else []
    divisors += [f"{several}, for the candidates"] if several > 1 else []
    return f"alpha divided by {' and by '.join(divisors)}" if divisors else "alpha"
