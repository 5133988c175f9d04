"""How far raters agree: kappa and its relatives, intraclass correlations, Krippendorff's alpha.

Every function takes one array a rater with people on the last axis and simulations on the others; what is undefined
is nan, and `why_undefined` says why.
"""

from evenhand.stats.agreement.byrt import PabakParts, kappa_from_pabak, pabak_from_kappa, pabak_minus_kappa
from evenhand.stats.agreement.counts import (
    COUNT_STATISTICS,
    BinaryCounts,
    bias_index,
    binary_counts,
    negative_agreement,
    pabak,
    positive_agreement,
    prevalence_index,
)
from evenhand.stats.agreement.differences import coefficient_difference, p_of_equality, share_difference
from evenhand.stats.agreement.intraclass import (
    ICC_FORMS,
    IccForm,
    MeanSquares,
    icc,
    icc_a1,
    icc_interval,
    mean_squares,
)
from evenhand.stats.agreement.kappa import category_table, cohen_kappa, weighted_kappa
from evenhand.stats.agreement.many import ALPHA_SCALES, AlphaScale, ac1, alpha, bennett_s, conger_kappa, fleiss_kappa
from evenhand.stats.agreement.moments import (
    SCORE_STATISTICS,
    ScoreMoments,
    concordance,
    pooled_spread,
    score_moments,
    spread_adjusted_icc,
)
from evenhand.stats.agreement.reasons import why_undefined
from evenhand.stats.agreement.undefined import Undefined

__all__ = [
    "ALPHA_SCALES",
    "COUNT_STATISTICS",
    "ICC_FORMS",
    "SCORE_STATISTICS",
    "AlphaScale",
    "BinaryCounts",
    "IccForm",
    "MeanSquares",
    "PabakParts",
    "ScoreMoments",
    "Undefined",
    "ac1",
    "alpha",
    "bennett_s",
    "bias_index",
    "binary_counts",
    "category_table",
    "coefficient_difference",
    "cohen_kappa",
    "concordance",
    "conger_kappa",
    "fleiss_kappa",
    "icc",
    "icc_a1",
    "icc_interval",
    "kappa_from_pabak",
    "mean_squares",
    "negative_agreement",
    "p_of_equality",
    "pabak",
    "pabak_from_kappa",
    "pabak_minus_kappa",
    "pooled_spread",
    "positive_agreement",
    "prevalence_index",
    "score_moments",
    "share_difference",
    "spread_adjusted_icc",
    "weighted_kappa",
    "why_undefined",
]
