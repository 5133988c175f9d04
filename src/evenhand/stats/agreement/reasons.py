"""The reasons why a metric of the passed ratings is undefined."""

from __future__ import annotations

from functools import reduce
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import EvenhandError, require_choice
from evenhand.stats.agreement.categories import pairable_people
from evenhand.stats.agreement.counts import COUNT_METRICS, binary_counts
from evenhand.stats.agreement.panels import panel_of
from evenhand.stats.agreement.ratings import Reasons, Undefined, coded_ratings, first_reason, has_gaps, people_weights
from evenhand.stats.agreement.scores import ICC_FORMS, SCORE_METRICS, IccForm, mean_squares, score_moments
from evenhand.stats.types import BoolArray

_CATEGORICAL = ("cohen_kappa", "weighted_kappa", "conger_kappa", "fleiss_kappa", "bennett_s", "ac1", "alpha")
_NEVER_ONE_CLASS = ("bennett_s", "ac1")


def why_undefined(metric: str, *raters: ArrayLike, weight: ArrayLike | None = None) -> Reasons:
    """Return the reason a metric of these raters is nan, as a value of `Undefined`; "" if it is defined.

    Parameters
    ----------
    metric
        The name of the function, such as 'cohen_kappa', 'icc_a1' or 'alpha'; a form of `icc` as 'icc C,k'.
    raters
        The ratings passed to the function.
    weight
        The weights passed to the function.

    Examples
    --------
    >>> str(why_undefined("cohen_kappa", [1, 1, 1], [1, 1, 1]))
    'one_class'
    >>> str(why_undefined("pabak", [1, 1, 1], [1, 1, 1]))
    ''
    """
    forms = {"icc_a1": "A,1"} | {f"icc {form}": form for form in ICC_FORMS}
    require_choice("metric", metric, [*_CATEGORICAL, *COUNT_METRICS, "concordance", *forms])
    if metric in forms and has_gaps(raters):
        return panel_of(*raters, weight=weight).why_undefined(forms[metric])
    if metric in forms:
        return mean_squares(*raters, weight=weight).why_undefined(cast(IccForm, forms[metric]))
    if metric in _CATEGORICAL:
        return _of_categories(metric, raters, weight)
    if len(raters) != 2:
        raise EvenhandError("'{metric}' compares two raters; got {number}.", metric=metric, number=len(raters))
    if metric in SCORE_METRICS:
        return score_moments(*raters, weight=weight).why_undefined(metric)
    return binary_counts(*raters, weight=weight).why_undefined(metric)


def _of_categories(metric: str, raters: tuple[ArrayLike, ...], weight: ArrayLike | None) -> Reasons:
    codes, _ = coded_ratings(raters, None, missing=True)
    weights = people_weights(weight, codes[0].shape[-1])
    nobody = np.asarray(weights.sum(axis=-1) == 0)
    checks: list[tuple[BoolArray, Undefined]] = [
        (nobody, Undefined.NOBODY),
        (np.asarray(pairable_people(*raters, weight=weight) == 0), Undefined.NO_PAIR),
    ]
    if metric not in _NEVER_ONE_CLASS:
        alone = metric == "alpha"  # alpha uses only people with two ratings
        ratings = sum((code >= 0 for code in codes), start=np.zeros(1))
        counted = np.where(ratings >= (2 if alone else 1), weights, 0.0) > 0
        used = [(code, counted & (code >= 0)) for code in codes]
        top = reduce(np.maximum, (np.where(mask, code, -1).max(axis=-1, initial=-1) for code, mask in used))
        most = np.iinfo(np.int64).max
        low = reduce(np.minimum, (np.where(mask, code, most).min(axis=-1, initial=most) for code, mask in used))
        checks.append((np.asarray(top == low), Undefined.ONE_CLASS))
    return first_reason(checks)
