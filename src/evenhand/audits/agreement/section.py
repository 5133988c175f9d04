"""The agreement part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.audits.agreement.charts import group_panels, part_panel
from evenhand.audits.agreement.statistics import statistics_for
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
                f"1 is full agreement. Lines are {100 * result.spec.confidence:g}% intervals. The table has every "
                "statistic.",
                " ".join(f.claim for f in result.findings if f.grouping in (None, grouping)),
                tuple(group_panels(result, grouping)),
            )
        )
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


def _titles(result: AgreementResult) -> dict[str, str]:
    return {name: one.title for name, one in statistics_for(result.scale, len(result.spec.raters)).items()}


def _parts_in_words(result: AgreementResult, grouping: str | None) -> str:
    own = [r for r in result.statistics if r.grouping in (None, grouping)]
    found = {(r.group, r.statistic): shown(r.value) for r in own}
    return " ".join(
        f"{group}: prevalence adds {found[group, 'prevalence_part']}, bias {found[group, 'bias_part']}."
        for group in dict.fromkeys(r.group for r in own)
        if (group, "bias_part") in found and (group, "prevalence_part") in found
    )


def _statistic_table(result: AgreementResult) -> DisplayTable:
    titles = _titles(result)
    rows = [
        (
            r.grouping or DASH, r.group, titles[r.statistic], f"{r.n:,}", shown(r.value), shown_interval(r.low, r.high),
            r.method, "" if r.status == "ok" else r.status,
        )
        for r in result.statistics
    ]  # fmt: skip
    columns = ("Grouping", "Group", "Statistic", "n", "Value", "Interval", "Interval by", "Remark")
    numeric = (False, False, False, True, True, True, False, False)
    return DisplayTable("Every statistic", columns, tuple(rows), numeric, folded=True)


def _gap_table(result: AgreementResult) -> DisplayTable:
    titles = _titles(result)
    rows = [
        (
            r.grouping, r.group, r.reference, titles[r.statistic], f"{r.n:,}", shown(r.value, signed=True),
            shown_interval(r.low, r.high, signed=True),
            DASH if r.p_value is None else "< 0.001" if r.p_value < 0.001 else f"{r.p_value:.3f}",
            "" if r.status == "ok" else r.status,
        )
        for r in result.gaps
    ]  # fmt: skip
    columns = ("Grouping", "Group", "Reference", "Statistic", "n", "Gap", "Interval", "p", "Remark")
    numeric = (False,) * 4 + (True,) * 4 + (False,)
    return DisplayTable("Gaps between groups", columns, tuple(rows), numeric, folded=True)


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
        f"People are resampled {result.spec.resamples:,} times: BCa limits. Intraclass correlations have limits from "
        "the F distribution, for raters and people drawn at random with normal errors; not with survey weights.",
        "B. Efron (1987), Better bootstrap confidence intervals, Journal of the American Statistical Association 82; "
        "McGraw and Wong 1996",
    )
    yield Method(
        "Gaps and their test",
        "The difference of two groups' statistics ± z standard errors of independent resamples of both; the test is "
        "that it is 0. Each stands on its own: of many, some are off by chance.",
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
