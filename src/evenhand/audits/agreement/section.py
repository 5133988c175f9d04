"""The agreement part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.audits.agreement.charts import gap_panels, group_panels, part_panel
from evenhand.audits.agreement.compare import row_label
from evenhand.audits.agreement.statistics import statistics_for
from evenhand.audits.agreement.variation import LEAST_PEOPLE, LEAST_SCORED
from evenhand.core.numbers import DASH, shown, shown_interval
from evenhand.core.sections import DisplayTable, Figure, Method, Section

if TYPE_CHECKING:
    from evenhand.audits.agreement.result import AgreementResult


def agreement_section(result: AgreementResult) -> Section:
    """Return the section of a report for this result."""
    groupings: list[str | None] = list(dict.fromkeys(r.grouping for r in result.statistics if r.grouping is not None))
    parts: list[Figure | DisplayTable] = []
    for grouping in groupings or [None]:
        of = "" if grouping is None else f" by {grouping}"
        parts.append(
            Figure(
                f"Agreement of the raters{of}",
                f"1 is full agreement. Lines are {100 * result.spec.confidence:g}% intervals, each on its own; a "
                "hollow dot has none. The table has every statistic.",
                " ".join(f.claim for f in result.findings if f.grouping in (None, grouping)),
                tuple(group_panels(result, grouping)),
            )
        )
        if grouping is not None:
            parts += _gap_figures(result, grouping)
        if any(r.statistic == "prevalence_part" for r in result.statistics):
            parts.append(
                Figure(
                    f"Why kappa and PABAK differ{of}",
                    "What unequal numbers of the two ratings (prevalence) and raters who say yes unequally often "
                    "(bias) add to kappa; together they are PABAK less kappa exactly.",
                    _parts_in_words(result, grouping),
                    (part_panel(result, grouping),),
                )
            )
    parts.append(_statistic_table(result))
    if result.gaps:
        parts.append(_gap_table(result))
    if result.counts:
        parts.append(_count_table(result))
    return Section(result.title, result.question, tuple(parts), tuple(_methods(result)), result.notes)


def _gap_figures(result: AgreementResult, grouping: str) -> Iterator[Figure]:
    """Yield the figure of gaps to the reference group, where there are any."""
    panels, known = gap_panels(result, grouping), statistics_for(result.scale, len(result.spec.raters))
    own = [gap for gap in result.gaps if gap.grouping == grouping and gap.against == "reference"]
    if panels:
        direct = [one.title for name, one in known.items() if one.direct and name in {gap.statistic for gap in own}]
        itself = f" Only {' and '.join(direct)} is agreement itself." if direct else ""
        together = " that hold for all groups together" if len({gap.group for gap in own}) > 1 else ""
        yield Figure(
            f"Gaps to {own[0].reference}, by {grouping}",
            f"Below 0 the statistic is lower than for {own[0].reference}. Lines are {100 * result.spec.confidence:g}% "
            f"intervals{together}; a hollow dot was not tested.{itself}",
            " ".join(f.claim for f in result.findings if f.grouping == grouping),
            tuple(panels),
        )


def _titles(result: AgreementResult) -> dict[str, str]:
    return {name: one.title for name, one in statistics_for(result.scale, len(result.spec.raters)).items()}


def _parts_in_words(result: AgreementResult, grouping: str | None) -> str:
    own = [r for r in result.statistics if r.grouping in (None, grouping)]
    found = {(row_label(r.grouping, r.group), r.statistic): shown(r.value) for r in own}
    return " ".join(
        f"{group}: prevalence adds {found[group, 'prevalence_part']}, bias {found[group, 'bias_part']}."
        for group in dict.fromkeys(row_label(r.grouping, r.group) for r in own)
        if (group, "bias_part") in found and (group, "prevalence_part") in found
    )


def _statistic_table(result: AgreementResult) -> DisplayTable:
    titles = _titles(result)
    rows = [
        (
            r.grouping or DASH,
            r.group,
            titles[r.statistic],
            f"{r.n:,}",
            shown(r.value),
            shown_interval(r.low, r.high),
            r.method,
            "" if r.status == "ok" else r.status,
        )
        for r in result.statistics
    ]
    columns = ("Grouping", "Group", "Statistic", "n", "Value", "Interval", "Interval by", "Remark")
    numeric = (False, False, False, True, True, True, False, False)
    return DisplayTable("Every statistic", columns, tuple(rows), numeric, folded=True)


def _gap_table(result: AgreementResult) -> DisplayTable:
    titles, two = _titles(result), _of_two(result)
    rows = [
        (
            r.grouping,
            r.group,
            r.reference,
            "farthest apart" if r.against == "worst_pair" else "reference",
            titles[r.statistic],
            f"{r.n:,}",
            shown(r.value, signed=True),
            shown_interval(r.low, r.high, signed=True),
            shown_interval(r.all_low, r.all_high, signed=True),
            _p(r.p_value),
            _p(r.p_adjusted),
            "" if r.status == "ok" else r.status,
        )
        for r in result.gaps
        if r.against == "reference" or r.grouping not in two
    ]
    columns = (
        "Grouping",
        "Group",
        "Held against",
        "As",
        "Statistic",
        "n",
        "Gap",
        "Interval",
        "For all groups",
        "p",
        "Adjusted p",
        "Remark",
    )
    numeric = (False,) * 5 + (True,) * 6 + (False,)
    return DisplayTable("Gaps between groups", columns, tuple(rows), numeric, folded=True)


def _of_two(result: AgreementResult) -> set[str]:
    """Return the groupings of two groups: their worst pair is the gap to the reference group."""
    pairs = {(r.grouping, r.group) for r in result.gaps if r.against == "reference"}
    return {name for name, _ in pairs if sum(name == other for other, _ in pairs) == 1}


def _p(value: float | None) -> str:
    return DASH if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _count_table(result: AgreementResult) -> DisplayTable:
    rows = [(r.grouping or DASH, r.group, r.first, r.second, f"{r.n:,}") for r in result.counts]
    columns = ("Grouping", "Group", result.spec.raters[0], result.spec.raters[1], "People")
    return DisplayTable("Who was rated how", columns, tuple(rows), (False,) * 4 + (True,), folded=True)


def _methods(result: AgreementResult) -> Iterator[Method]:
    yield from _RATINGS[result.scale]
    if len(result.spec.raters) > 2 and result.scale != "interval":
        yield Method(
            "More than two raters",
            "Conger's kappa is Cohen's, with chance from each rater's own shares; Fleiss' from the shares of all. "
            "Bennett's S is PABAK's, with chance 1 / q for q categories.",
            "K. L. Gwet (2014), Handbook of Inter-Rater Reliability",
        )
    yield Method(
        "Intervals",
        f"Agreement, PABAK and Bennett's S are shares of people: exact limits. For the others people are resampled "
        f"{result.spec.resamples:,} times: BCa limits, none where the disagreement rests on fewer than {LEAST_PEOPLE} "
        f"people ({LEAST_SCORED} for scores). Intraclass correlations have limits from the F distribution, for raters "
        "and people drawn at random with normal errors; not with survey weights.",
        "C. J. Clopper and E. S. Pearson (1934), Biometrika 26; B. Efron (1987), Better bootstrap confidence "
        "intervals, Journal of the American Statistical Association 82; McGraw and Wong 1996",
    )
    if result.gaps:
        yield Method(
            "Gaps and their tests",
            "The difference of two groups' statistics. Limits from the exact limits of both shares; for the others "
            "from Student's t with the resamples' standard errors, on the statistic's own scale and on that of log(1 - "
            "value), whichever is wider. p is where the limits begin to hold 0. Adjusted p and the words of the "
            "findings allow for all gaps that are told as findings, over all groups, groupings and statistics (Holm). "
            "A threshold is judged by limits that hold for all its groups, or all pairs of groups, together "
            "(Bonferroni).",
            "G. Y. Zou and A. Donner (2008), Construction of confidence limits about effect measures, Statistics in "
            "Medicine 27; S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian "
            "Journal of Statistics 6",
        )


_KAPPA = Method(
    "Cohen's kappa",
    "(po - pc) / (1 - pc): observed agreement beyond what the raters' own shares would give by chance.",
    "J. Cohen (1960), A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20",
)
_RATINGS = {
    "binary": (
        _KAPPA,
        Method(
            "PABAK, prevalence and bias",
            "PABAK = 2 po - 1. PABAK - kappa = (1 - kappa)(PI² - BI²), with the prevalence index PI = (a - d) / n and "
            "the bias index BI = (b - c) / n.",
            "T. Byrt, J. Bishop and J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical Epidemiology "
            "46",
        ),
    ),
    "nominal": (_KAPPA,),
    "ordinal": (
        Method(
            "Weighted kappa",
            "1 - sum D o / sum D e over pairs of categories, with D how many categories apart they are (linear) or its "
            "square (quadratic).",
            "J. Cohen (1968), Weighted kappa, Psychological Bulletin 70",
        ),
        Method(
            "Krippendorff's alpha",
            "1 - observed / expected disagreement, of the ratings' middle ranks.",
            "K. Krippendorff (2011), Computing Krippendorff's alpha-reliability",
        ),
    ),
    "interval": (
        Method(
            "Intraclass correlations",
            "From the analysis of variance of people by raters; A is absolute agreement, C consistency, 1 one rater, k "
            "the mean of all. ICC sets errors against the spread of the group itself.",
            "K. O. McGraw and S. P. Wong (1996), Forming inferences about some intraclass correlation coefficients, "
            "Psychological Methods 1",
        ),
        Method(
            "Spread-adjusted ICC",
            "1 - mean squared difference / V with one V for all groups: twice the variance of everybody's scores.",
        ),
    ),
}
