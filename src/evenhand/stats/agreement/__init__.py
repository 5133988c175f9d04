"""Agreement between raters: kappa and related coefficients, intraclass correlations, Krippendorff's alpha.

Every function takes one array per rater with people on the last axis and simulations on the others; undefined results
are nan, and `why_undefined` returns the reason.
"""

from evenhand.stats.agreement.categories import (
    ALPHA_SCALES,
    AlphaScale,
    ac1,
    alpha,
    bennett_s,
    category_table,
    cohen_kappa,
    conger_kappa,
    fleiss_kappa,
    weighted_kappa,
)
from evenhand.stats.agreement.counts import (
    COUNT_METRICS,
    BinaryCounts,
    PabakParts,
    bias_index,
    binary_counts,
    kappa_from_pabak,
    pabak,
    pabak_from_kappa,
    pabak_minus_kappa,
    prevalence_index,
)
from evenhand.stats.agreement.differences import (
    ac1_limits,
    coefficient_difference,
    coefficient_limits,
    p_of_equality,
    shared_shape_stderr,
    unseen_tail,
)
from evenhand.stats.agreement.panels import panel_of
from evenhand.stats.agreement.ratings import Reasons, Undefined, first_reason
from evenhand.stats.agreement.reasons import why_undefined
from evenhand.stats.agreement.scores import (
    ICC_FORMS,
    SCORE_METRICS,
    IccForm,
    ScoreMoments,
    concordance,
    icc,
    icc_a1,
    icc_interval,
    mean_squares,
    pooled_spread,
    score_moments,
)

__all__ = [
    "ALPHA_SCALES",
    "COUNT_METRICS",
    "ICC_FORMS",
    "SCORE_METRICS",
    "AlphaScale",
    "BinaryCounts",
    "IccForm",
    "PabakParts",
    "Reasons",
    "ScoreMoments",
    "Undefined",
    "ac1",
    "ac1_limits",
    "alpha",
    "bennett_s",
    "bias_index",
    "binary_counts",
    "category_table",
    "coefficient_difference",
    "coefficient_limits",
    "cohen_kappa",
    "concordance",
    "conger_kappa",
    "first_reason",
    "fleiss_kappa",
    "icc",
    "icc_a1",
    "icc_interval",
    "kappa_from_pabak",
    "mean_squares",
    "p_of_equality",
    "pabak",
    "pabak_from_kappa",
    "pabak_minus_kappa",
    "panel_of",
    "pooled_spread",
    "prevalence_index",
    "score_moments",
    "shared_shape_stderr",
    "unseen_tail",
    "weighted_kappa",
    "why_undefined",
]
