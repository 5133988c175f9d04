"""How the numbers of a reliability audit were computed, for the report."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.audits.reliability.gaps import LEAST_DAMAGED, LEAST_FOR_RATIOS, LEAST_IN_A_FOLD, LEAST_MOVED, LEAST_PEOPLE
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.sections import Method

_PAPER = "T. Räz (2024), Reliability gaps between groups in COMPAS dataset, FAccT '24"


def reliability_methods(spec: ReliabilitySpec) -> Iterator[Method]:
    """Yield how each number was computed."""
    raters = "Both raters go wrong." if spec.noisy_raters == 2 else "The first rater enters the data as they are."
    drawn = "afresh at every noise level" if spec.fresh else "once for all noise levels, so that mistakes only add up"
    yield Method(
        "Simulation",
        f"Two raters enter the features of the same people. {raters} Mistakes are drawn {drawn}; "
        f"{spec.replicates:,} replicates. Each distinct row is scored once, and the statistics follow from sums; this "
        "is exactly what scoring everybody at every level gives.",
        _PAPER,
    )
    yield Method(
        "Cohen's kappa, PABAK",
        "Of decisions, with counts a (both select), b, c (one of the two does) and d (neither): kappa = 2(ad - bc) / "
        "((a+c)(c+d) + (b+d)(a+b)), PABAK = (a + d - b - c) / n. PABAK - kappa = (1 - kappa)(PI² - BI²), with the "
        "prevalence index PI = (a - d) / n and the bias index BI = (b - c) / n.",
        "T. Byrt, J. Bishop and J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical Epidemiology 46",
    )
    yield Method(
        "ICC(A,1), spread-adjusted ICC",
        "Of scores. ICC(A,1) = (MSR - MSE) / (MSR + MSE + 2 (MSC - MSE) / n) is close to 1 - E(e²) / spread, with the "
        "spread of the group itself. The spread-adjusted ICC is 1 - E(e²) / V with one V for all groups, twice the "
        "variance of everybody's scores; on decisions it would be PABAK.",
        "K. O. McGraw and S. P. Wong (1996), Forming inferences about some intraclass correlation coefficients, "
        "Psychological Methods 1",
    )
    yield Method(
        "Intervals, bands and test of gaps",
        f"People are resampled {spec.resamples:,} times within group and fold, each with all their mistakes; the "
        "models stay as they are. What m people of a fold and group add to the spread is multiplied by "
        "sqrt(m / (m - 1)). Bands are value ± q standard errors, with q the quantile of the largest deviation over all "
        "noise levels (sup-t), times Student's over the normal quantile. The test is of the gap averaged over noise "
        "levels: gap / standard error, against Student's t with Satterthwaite's degrees of freedom. The standard error "
        "is at least the one that the gap has if the people of both groups vary alike. Groups with fewer "
        f"than {LEAST_PEOPLE} people, or {LEAST_IN_A_FOLD} in a fold ({LEAST_FOR_RATIOS} for statistics other than "
        "PABAK and the spread-adjusted ICC), have no interval and no test; nor has a gap where what mistakes change in "
        f"a group rests on fewer than {LEAST_DAMAGED} people ({LEAST_MOVED} for scores): (sum d)² / sum d² of people's "
        "changed decisions or squared errors d.",
        "J. Montiel Olea and M. Plagborg-Møller (2019), Simultaneous confidence bands, Journal of Applied Econometrics "
        "34",
    )
    if any(setting.pilot is not None and setting.pilot.by is not None for setting in spec.noise):
        yield Method(
            "Another pilot",
            "Mistakes were learned by group, each replicate from a resample of the pilot. The variance of the gap "
            "between these replicates, less that between replicates that all learn from the pilot itself, is added to "
            "the variance of the gap, and the degrees of freedom are lowered (Satterthwaite); where the second one "
            "is not known well enough it is not taken off. Bands of curves do not allow for another pilot.",
        )
    yield Method(
        "Many tests, and thresholds",
        "The adjusted p-values are Holm's, over all tests of the run: all models, groupings, groups, statistics and "
        "ways of going wrong. A difference is clear when its adjusted p-value is below one less the confidence. An "
        "interval is for its gap alone. A threshold is held against the largest gap of all pairs of groups, or each "
        "gap to the reference group, by intervals that hold for all of these together (Bonferroni).",
        "S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6",
    )
    yield Method(
        "Levels at which a group is lower",
        "The share of noise levels at which a group is lower is given, but it is weak evidence: the levels share "
        "people, models and random numbers, so that one group is often lower at nearly all of them by chance alone.",
    )
    yield Method(
        "Over runs",
        "Standard deviation between replicates, and mean ± t sd / sqrt(R): what other random mistakes would give. It "
        "says nothing about other people.",
    )
    if spec.attribution is not False:
        yield Method(
            "Parts of the gap",
            "Shapley values: what a feature's mistakes add to the gap, averaged over all orders in which features can "
            "go wrong; all coalitions up to 10 features, 20 orders a replicate above. They are of the same replicates "
            "as the curves and add up to the gap. There is no share of a gap whose interval holds 0.",
            "L. S. Shapley (1953), A value for n-person games, Contributions to the Theory of Games II",
        )
