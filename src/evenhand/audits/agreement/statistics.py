"""The statistics of agreement by scale and number of raters, each a function of rating patterns and their weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from evenhand.stats import agreement as kernel
from evenhand.stats.agreement import BinaryCounts, ScoreMoments, binary_counts, pabak_minus_kappa, score_moments
from evenhand.stats.types import FloatArray

Scale: TypeAlias = Literal["binary", "nominal", "ordinal", "interval"]
SCALES: tuple[Scale, ...] = ("binary", "nominal", "ordinal", "interval")


@dataclass(frozen=True, eq=False)
class Ratings:
    """Distinct patterns of ratings, one array a rater: 0 and 1, positions of categories, or scores; nan if missing.

    Parameters
    ----------
    raters : one array of patterns a rater.
    categories : how many categories there are; 0 for scores.
    spread : V of the spread-adjusted ICC, one for all groups.
    """

    raters: tuple[FloatArray, ...]
    categories: int
    spread: float

    @property
    def missing(self) -> bool:
        """Whether a rating is missing."""
        return bool(np.isnan(np.stack(self.raters)).any())


Value: TypeAlias = Callable[[Ratings, FloatArray], FloatArray]
Share: TypeAlias = Callable[[int], tuple[float, float]]


@dataclass(frozen=True)
class Statistic:
    """One statistic.

    Parameters
    ----------
    title : what it is called.
    value : it, of patterns and their weights (..., patterns).
    why : the kernel's name of it, which knows why it is undefined; None where it always has a value for somebody.
    compared : whether more is more agreement, so that a gap has a direction.
    headline : whether a gap in it is a finding unless other statistics are asked for.
    gaps : whether it can do with missing ratings.
    form : for an intraclass correlation, its form.
    share : for a straight function of observed agreement, its slope and intercept for so many categories.
    direct : whether less of it is less agreement and nothing else.
    elsewhere : where it is not, what else can make it lower in a group.
    caveat : what it does not show.
    """

    title: str
    value: Value
    why: str | None
    compared: bool = True
    headline: bool = False
    gaps: bool = False
    form: str | None = None
    share: Share | None = None
    direct: bool = False
    elsewhere: str = ""
    caveat: str = ""


def _counts(value: Callable[[BinaryCounts], FloatArray]) -> Value:
    return lambda given, weight: value(binary_counts(*given.raters, weight=weight))


def _moments(value: Callable[[ScoreMoments], FloatArray]) -> Value:
    return lambda given, weight: value(score_moments(*given.raters, weight=weight))


def _of_categories(value: Callable[..., FloatArray]) -> Value:
    return lambda given, weight: value(*given.raters, categories=range(given.categories), weight=weight)


def _icc(form: Any) -> Value:
    return lambda given, weight: kernel.icc(*given.raters, form=form, weight=weight)


def _alpha(scale: Any) -> Value:
    return lambda given, weight: kernel.alpha(*given.raters, scale=scale, weight=weight)


def _weighted(distance: str) -> Value:
    return lambda given, weight: kernel.weighted_kappa(
        *given.raters, distance=distance, categories=range(given.categories), weight=weight
    )


def _part(which: Literal["prevalence", "bias"]) -> Callable[[BinaryCounts], FloatArray]:
    def part(counts: BinaryCounts) -> FloatArray:
        parts = pabak_minus_kappa(counts.kappa(), counts.prevalence_index(), counts.bias_index())
        return parts.prevalence if which == "prevalence" else parts.bias

    return part


_PREVALENCE = "Kappa falls where one category is rare, however well raters agree. Read it beside PABAK or Bennett's S."
_NO_CHANCE = "It counts agreement alone; it does not ask how much there would be by chance."
_OWN_SPREAD = (
    "It sets errors against the spread of the group itself: people who are more alike have a lower ICC for the same "
    "errors. Read it beside the spread-adjusted ICC or the mean squared error."
)
_RARE = "one rating being rarer there"
_ALIKE = "people there being more alike"
_EVEN = "the ratings being more evenly common there"


def _beyond_chance(categories: int) -> tuple[float, float]:
    q = max(categories, 2)
    return q / (q - 1), -1 / (q - 1)


def _itself(categories: int) -> tuple[float, float]:  # noqa: ARG001
    return 1.0, 0.0


_BINARY_PAIR: dict[str, Statistic] = {
    "kappa": Statistic(
        "Cohen's kappa", _counts(BinaryCounts.kappa), "cohen_kappa", headline=True, elsewhere=_RARE, caveat=_PREVALENCE
    ),
    "pabak": Statistic(
        "PABAK", _counts(BinaryCounts.pabak), None, headline=True, share=_beyond_chance, direct=True, caveat=_NO_CHANCE
    ),
    "agreement": Statistic(
        "Agreement", _counts(BinaryCounts.agreement), None, share=_itself, direct=True, caveat=_NO_CHANCE
    ),
    "positive_agreement": Statistic(
        "Positive agreement",
        _counts(BinaryCounts.positive_agreement),
        "positive_agreement",
        elsewhere="positive ratings being rarer there",
        caveat="It is about the positive rating alone.",
    ),
    "negative_agreement": Statistic(
        "Negative agreement",
        _counts(BinaryCounts.negative_agreement),
        "negative_agreement",
        elsewhere="negative ratings being rarer there",
        caveat="It is about the negative rating alone.",
    ),
    "ac1": Statistic(
        "Gwet's AC1", _counts(BinaryCounts.ac1), None, elsewhere=_EVEN, caveat="Where one rating is rare, it is high."
    ),
    "alpha": Statistic(
        "Krippendorff's alpha", _counts(BinaryCounts.alpha), "alpha", elsewhere=_RARE, caveat=_PREVALENCE
    ),
    "prevalence_index": Statistic("Prevalence index", _counts(BinaryCounts.prevalence_index), None, compared=False),
    "bias_index": Statistic("Bias index", _counts(BinaryCounts.bias_index), None, compared=False),
    "prevalence_part": Statistic(
        "PABAK - kappa: prevalence", _counts(_part("prevalence")), "cohen_kappa", compared=False
    ),
    "bias_part": Statistic("PABAK - kappa: bias", _counts(_part("bias")), "cohen_kappa", compared=False),
}

_MANY: dict[str, Statistic] = {
    "conger_kappa": Statistic(
        "Conger's kappa",
        _of_categories(kernel.conger_kappa),
        "conger_kappa",
        headline=True,
        gaps=True,
        elsewhere=_RARE,
        caveat=_PREVALENCE,
    ),
    "bennett_s": Statistic(
        "Bennett's S",
        _of_categories(kernel.bennett_s),
        "bennett_s",
        headline=True,
        gaps=True,
        share=_beyond_chance,
        direct=True,
        caveat=_NO_CHANCE,
    ),
    "fleiss_kappa": Statistic(
        "Fleiss' kappa",
        _of_categories(kernel.fleiss_kappa),
        "fleiss_kappa",
        gaps=True,
        elsewhere=_RARE,
        caveat=_PREVALENCE,
    ),
    "ac1": Statistic(
        "Gwet's AC1",
        _of_categories(kernel.ac1),
        "ac1",
        gaps=True,
        elsewhere=_EVEN,
        caveat="Where one rating is rare, it is high.",
    ),
    "alpha": Statistic(
        "Krippendorff's alpha", _alpha("nominal"), "alpha", gaps=True, elsewhere=_RARE, caveat=_PREVALENCE
    ),
}

_NOMINAL_PAIR: dict[str, Statistic] = {
    "kappa": Statistic(
        "Cohen's kappa",
        _of_categories(kernel.cohen_kappa),
        "cohen_kappa",
        headline=True,
        elsewhere=_RARE,
        caveat=_PREVALENCE,
    ),
    **{name: _MANY[name] for name in ("bennett_s", "ac1", "alpha")},
}

_ORDINAL_PAIR: dict[str, Statistic] = {
    "weighted_kappa_linear": Statistic(
        "Weighted kappa, linear",
        _weighted("linear"),
        "weighted_kappa",
        headline=True,
        elsewhere=_ALIKE,
        caveat=_PREVALENCE,
    ),
    "weighted_kappa_quadratic": Statistic(
        "Weighted kappa, quadratic", _weighted("quadratic"), "weighted_kappa", elsewhere=_ALIKE, caveat=_PREVALENCE
    ),
    "kappa": _NOMINAL_PAIR["kappa"],
    "bennett_s": _MANY["bennett_s"],
    "alpha": Statistic(
        "Krippendorff's alpha, ordinal",
        _alpha("ordinal"),
        "alpha",
        headline=True,
        gaps=True,
        elsewhere=_ALIKE,
        caveat=_PREVALENCE,
    ),
}

_FORMS = {"icc_a1": "A,1", "icc_c1": "C,1", "icc_1": "1", "icc_ak": "A,k", "icc_ck": "C,k", "icc_k": "k"}
_ICC: dict[str, Statistic] = {
    name: Statistic(
        f"ICC({form})",
        _icc(form),
        f"icc {form}",
        headline=name == "icc_a1",
        form=form,
        elsewhere=_ALIKE,
        caveat=_OWN_SPREAD,
    )
    for name, form in _FORMS.items()
}
_INTERVAL: dict[str, Statistic] = {
    **_ICC,
    "alpha": Statistic(
        "Krippendorff's alpha, interval",
        _alpha("interval"),
        "alpha",
        gaps=True,
        elsewhere=_ALIKE,
        caveat=_OWN_SPREAD,
    ),
}

_INTERVAL_PAIR: dict[str, Statistic] = {
    "icc_a1": _ICC["icc_a1"],
    "icc_spread": Statistic(
        "Spread-adjusted ICC",
        lambda given, weight: score_moments(*given.raters, weight=weight).spread_adjusted(given.spread),
        None,
        headline=True,
        direct=True,
        caveat="It compares mean squared errors on one scale for all groups, no more.",
    ),
    "concordance": Statistic(
        "Lin's concordance", _moments(ScoreMoments.concordance), "concordance", elsewhere=_ALIKE, caveat=_OWN_SPREAD
    ),
    **_INTERVAL,
    "mean_squared_error": Statistic(
        "Mean squared error", _moments(ScoreMoments.mean_squared_error), None, compared=False
    ),
    "mean_error": Statistic(
        "Mean difference of the raters", _moments(lambda moments: moments.mean_error), None, compared=False
    ),
    "variance_first": Statistic(
        "Variance, first rater", _moments(lambda moments: moments.variance_first), None, compared=False
    ),
    "variance_second": Statistic(
        "Variance, second rater", _moments(lambda moments: moments.variance_second), None, compared=False
    ),
}


def statistics_for(scale: Scale, raters: int) -> Mapping[str, Statistic]:
    """Return the statistics that a scale and a number of raters allow.

    Examples
    --------
    >>> list(statistics_for("nominal", 2))
    ['kappa', 'bennett_s', 'ac1', 'alpha']
    """
    pair = {"binary": _BINARY_PAIR, "nominal": _NOMINAL_PAIR, "ordinal": _ORDINAL_PAIR, "interval": _INTERVAL_PAIR}
    scores = {**_INTERVAL, "alpha": replace(_INTERVAL["alpha"], headline=True)}  # it can do with missing ratings
    many = {"binary": _MANY, "nominal": _MANY, "interval": scores}
    ordinal = {"alpha": _ORDINAL_PAIR["alpha"], **{name: _MANY[name] for name in ("conger_kappa", "bennett_s")}}
    return pair[scale] if raters == 2 else {**many, "ordinal": ordinal}[scale]


def known_statistics() -> list[str]:
    """Return the names of all statistics."""
    every = [statistics_for(scale, raters) for scale in SCALES for raters in (2, 3)]
    return list(dict.fromkeys(name for found in every for name in found))


def compared_statistics() -> set[str]:
    """Return the names of the statistics that have gaps."""
    every = [statistics_for(scale, raters) for scale in SCALES for raters in (2, 3)]
    return {name for found in every for name, one in found.items() if one.compared}


def why_undefined(statistic: Statistic, given: Ratings, weight: FloatArray) -> str:
    """Return why a statistic of these ratings has no value."""
    if given.missing and not statistic.gaps:
        return "some ratings are missing"
    if statistic.why is None:
        return "there is nobody to rate" if weight.sum() == 0 else "all scores are one number"
    return str(kernel.why_undefined(statistic.why, *given.raters, weight=weight)) or "the formula divides by 0"


def values_of(statistics: Sequence[Statistic], given: Ratings, weight: FloatArray) -> FloatArray:
    """Return statistics (..., T) of patterns with weights (..., patterns); nan where one is undefined."""
    lost = given.missing
    nothing = np.full(weight.shape[:-1], np.nan)
    found = [nothing if lost and not one.gaps else np.asarray(one.value(given, weight)) for one in statistics]
    return np.stack(np.broadcast_arrays(*found), axis=-1)
