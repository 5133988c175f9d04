"""The metrics of agreement between two ratings of the same people, one row each: for every audit that uses them.

The two ratings may be those of two raters, or what a model gives with and without mistakes in its inputs. Of people
rated 0 or 1, a are rated 1 by both, b and c by one of the two, and d by neither; po is the share rated alike.
"""

from __future__ import annotations

from evenhand.core.metrics import Metric, Unit, gap_limits

_COHEN = "J. Cohen (1960), A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20"
_BYRT = "T. Byrt, J. Bishop and J. B. Carlin (1993), Bias, prevalence and kappa, Journal of Clinical Epidemiology 46"
_GWET = "K. L. Gwet (2014), Handbook of Inter-Rater Reliability"
_KRIPPENDORFF = "K. Krippendorff (2011), Computing Krippendorff's alpha-reliability"
_MCGRAW = (
    "K. O. McGraw and S. P. Wong (1996), Forming inferences about some intraclass correlation coefficients, "
    "Psychological Methods 1"
)
_LIN = "L. I.-K. Lin (1989), A concordance correlation coefficient to evaluate reproducibility, Biometrics 45"

_KAPPA_CAVEAT = (
    "With equally many disagreements, it is lower where one rating is rare or nearly universal. Read it beside "
    "PABAK or Bennett's S."
)
_NO_CHANCE = "It counts equal ratings alone; it does not ask how many there would be by chance."
_OWN_SPREAD = (
    "It compares errors with the spread of a group's own scores: a group with less spread has a lower value for the "
    "same errors. Read it beside the spread-adjusted ICC or the mean squared error."
)
_RARE = "it also falls where one rating is rare"
_ALIKE = "it also falls where a group's ratings are close together"


def _index(name: str, title: str, formula: str, reference: str, caveat: str, moves_with: str = "") -> Metric:
    """Return a coefficient from -1 to 1: more is more agreement, unless something else moves it too."""
    return Metric(
        name=name,
        title=title,
        unit="index",
        better="higher",
        formula=formula,
        reference=reference,
        caveat=caveat,
        moves_with=moves_with,
        limits=gap_limits(most=2.0),
    )


def _share(name: str, title: str, formula: str, caveat: str, moves_with: str = "") -> Metric:
    return Metric(
        name=name,
        title=title,
        unit="share",
        better="higher",
        formula=formula,
        reference=_GWET,
        caveat=caveat,
        moves_with=moves_with,
        limits=gap_limits(most=1.0),
    )


def _companion(name: str, title: str, unit: Unit, formula: str, reference: str = "") -> Metric:
    """Return what stands beside the coefficients and explains them; more of it is not more agreement."""
    return Metric(name=name, title=title, unit=unit, formula=formula, reference=reference)


_ICC_FORMS = {"icc_a1": "A,1", "icc_c1": "C,1", "icc_1": "1", "icc_ak": "A,k", "icc_ck": "C,k", "icc_k": "k"}
_ICC_FORMULA = {
    "icc_a1": "(MSR - MSE) / (MSR + MSE + 2 (MSC - MSE) / n) for two ratings",
    "icc_c1": "(MSR - MSE) / (MSR + (k - 1) MSE)",
    "icc_1": "(MSR - MSW) / (MSR + (k - 1) MSW)",
    "icc_ak": "(MSR - MSE) / (MSR + (MSC - MSE) / n)",
    "icc_ck": "(MSR - MSE) / MSR",
    "icc_k": "(MSR - MSW) / MSR",
}

_ROWS = (
    _index(
        "kappa",
        "Cohen's kappa",
        "(po - pc) / (1 - pc), with pc the agreement that the two ratings' own shares would give by chance; of 0 and 1 "
        "it is 2(ad - bc) / ((a+c)(c+d) + (b+d)(a+b))",
        _COHEN,
        _KAPPA_CAVEAT,
        _RARE,
    ),
    _index("pabak", "PABAK", "2 po - 1 = (a + d - b - c) / n", _BYRT, _NO_CHANCE),
    _index(
        "ac1",
        "Gwet's AC1",
        "(po - pe) / (1 - pe), with pe = sum of p(1 - p) / (q - 1) over the q categories' mean shares p",
        _GWET,
        "It follows PABAK, more strongly: where one rating is rare, it is high.",
        "it also rises where one rating is rare",
    ),
    _index(
        "alpha",
        "Krippendorff's alpha",
        "1 - observed / expected disagreement",
        _KRIPPENDORFF,
        "It is close to kappa, and falls as kappa does where one rating is rare or nearly universal.",
        _RARE,
    ),
    *(
        _index(name, f"ICC({form})", _ICC_FORMULA[name], _MCGRAW, _OWN_SPREAD, _ALIKE)
        for name, form in _ICC_FORMS.items()
    ),
    _index(
        "icc_spread",
        "Spread-adjusted ICC",
        "1 - E(e²) / V, with one V for all groups: twice the variance of everybody's scores",
        "",
        "It compares mean squared errors of scores on one scale for all groups, and says nothing about decisions.",
    ),
    _index(
        "concordance",
        "Lin's concordance",
        "2 cov(x, y) / (var(x) + var(y) + (mean(x) - mean(y))²)",
        _LIN,
        f"It is ICC(A,1) but for a term of the order 1/n. {_OWN_SPREAD}",
        _ALIKE,
    ),
    _index("conger_kappa", "Conger's kappa", "Cohen's kappa of several raters", _GWET, _KAPPA_CAVEAT, _RARE),
    _index("fleiss_kappa", "Fleiss' kappa", "kappa with chance from all raters' shares", _GWET, _KAPPA_CAVEAT, _RARE),
    _index("bennett_s", "Bennett's S", "(q po - 1) / (q - 1) for q categories", _GWET, _NO_CHANCE),
    *(
        _index(
            f"weighted_kappa_{power}",
            f"Weighted kappa, {power}",
            f"1 - sum D o / sum D e over pairs of categories, with D {distance}",
            "J. Cohen (1968), Weighted kappa, Psychological Bulletin 70",
            _KAPPA_CAVEAT,
            _ALIKE,
        )
        for power, distance in (
            ("linear", "how many categories apart they are"),
            ("quadratic", "the square of how many categories apart they are"),
        )
    ),
    _share("agreement", "Agreement", "po = (a + d) / n", _NO_CHANCE),
    _share(
        "positive_agreement",
        "Positive agreement",
        "2a / (2a + b + c)",
        "It is about the positive rating alone.",
        "it also falls where positive ratings are rare",
    ),
    _share(
        "negative_agreement",
        "Negative agreement",
        "2d / (2d + b + c)",
        "It is about the negative rating alone.",
        "it also falls where negative ratings are rare",
    ),
    _companion("prevalence_index", "Prevalence index", "index", "PI = (a - d) / n", _BYRT),
    _companion("bias_index", "Bias index", "index", "BI = (b - c) / n", _BYRT),
    _companion("prevalence_part", "PABAK - kappa: prevalence", "index", "(1 - kappa) PI²", _BYRT),
    _companion("bias_part", "PABAK - kappa: bias", "index", "-(1 - kappa) BI²", _BYRT),
    _companion("mean_squared_error", "Mean squared error", "amount", "mean of (second - first)²"),
    _companion("mean_error", "Mean difference of the ratings", "amount", "mean of second - first"),
    _companion("variance_first", "Variance of the first rating", "amount", "of the first rating, in a group"),
    _companion("variance_second", "Variance of the second rating", "amount", "of the second rating, in a group"),
    _companion("mean_second", "Mean of the second rating", "amount", "of the second rating, in a group"),
)

AGREEMENT_METRICS: dict[str, Metric] = {metric.name: metric for metric in _ROWS}
"""The rows by name. Those with limits have a gap with a direction; a gap of those without `moves_with` is agreement."""
