"""The metrics of agreement by scale and number of raters, as functions of rating patterns and weights.

Names, meanings and possible limits of the metrics are in `core.metrics`, which other audits use, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from evenhand.core.metrics import AGREEMENT_METRICS, Metric
from evenhand.stats import agreement as kernel
from evenhand.stats.agreement import (
    COUNT_METRICS,
    BinaryCounts,
    ScoreMoments,
    Undefined,
    binary_counts,
    score_moments,
)
from evenhand.stats.agreement.categories import AlphaScale
from evenhand.stats.agreement.scores import IccForm
from evenhand.stats.types import FloatArray

Scale: TypeAlias = Literal["binary", "nominal", "ordinal", "interval"]
SCALES: tuple[Scale, ...] = ("binary", "nominal", "ordinal", "interval")


@dataclass(frozen=True, eq=False)
class Ratings:
    """Distinct rating patterns, one array per rater: 0 and 1, category positions, or scores; nan if missing.

    Parameters
    ----------
    raters : one array of patterns per rater.
    categories : the number of categories; 0 for scores.
    spread : the variance V of the spread-adjusted ICC, the same for all groups.
    """

    raters: tuple[FloatArray, ...]
    categories: int
    spread: float

    @property
    def missing(self) -> bool:
        """Whether a rating is missing."""
        return bool(np.isnan(np.stack(self.raters)).any())


Evaluate: TypeAlias = Callable[[Ratings, FloatArray], FloatArray]
Share: TypeAlias = Callable[[int], tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class AgreementMetric(Metric):
    """A metric of agreement with its computation.

    Parameters
    ----------
    evaluate : the function from patterns and their weights (..., patterns) to the metric.
    kernel_name : the metric's name in the kernel, which explains undefined values; None if it needs no explanation
        there.
    tolerates_missing : whether the metric accepts missing ratings.
    form : the form of an intraclass correlation, else None.
    share : for a linear function of observed agreement, the function from the number of categories to slope and
        intercept.
    """

    evaluate: Evaluate
    kernel_name: str | None = None
    tolerates_missing: bool = False
    form: str | None = None
    share: Share | None = None

    @property
    def compared(self) -> bool:
        """Whether higher values mean more agreement, so that gaps have a direction."""
        return bool(self.limits)

    @property
    def direct(self) -> bool:
        """Whether a lower value means less agreement and nothing else."""
        return self.compared and not self.moves_with


def _counts(value: Callable[[BinaryCounts], FloatArray]) -> Evaluate:
    return lambda ratings, weight: value(binary_counts(*ratings.raters, weight=weight))


def _moments(value: Callable[[ScoreMoments], FloatArray]) -> Evaluate:
    return lambda ratings, weight: value(score_moments(*ratings.raters, weight=weight))


def _of_categories(value: Callable[..., FloatArray]) -> Evaluate:
    return lambda ratings, weight: value(*ratings.raters, categories=range(ratings.categories), weight=weight)


def _icc(form: IccForm) -> Evaluate:
    return lambda ratings, weight: kernel.icc(*ratings.raters, form=form, weight=weight)


def _alpha(scale: AlphaScale) -> Evaluate:
    return lambda ratings, weight: kernel.alpha(*ratings.raters, scale=scale, weight=weight)


def _weighted(distance: str) -> Evaluate:
    return lambda ratings, weight: kernel.weighted_kappa(
        *ratings.raters, distance=distance, categories=range(ratings.categories), weight=weight
    )


def _part(which: Literal["prevalence", "bias"]) -> Callable[[BinaryCounts], FloatArray]:
    def part(counts: BinaryCounts) -> FloatArray:
        parts = kernel.pabak_minus_kappa(counts.kappa(), counts.prevalence_index(), counts.bias_index())
        return parts.prevalence if which == "prevalence" else parts.bias

    return part


def _beyond_chance(categories: int) -> tuple[float, float]:
    q = max(categories, 2)
    return q / (q - 1), -1 / (q - 1)


def _itself(categories: int) -> tuple[float, float]:  # noqa: ARG001
    return 1.0, 0.0


def _row(name: str, evaluate: Evaluate, kernel_name: str | None = None, **extra: Any) -> AgreementMetric:
    """Return the shared definition of a metric with its computation."""
    shared = {item.name: getattr(AGREEMENT_METRICS[name], item.name) for item in fields(Metric)}
    return AgreementMetric(**{**shared, "evaluate": evaluate, "kernel_name": kernel_name, **extra})


def _table(*rows: AgreementMetric) -> dict[str, AgreementMetric]:
    return {row.name: row for row in rows}


_OF_COUNTS: dict[str, dict[str, Any]] = {
    "kappa": {"headline": True},
    "pabak": {"headline": True, "share": _beyond_chance},
    "agreement": {"share": _itself},
}
_BINARY_PAIR = _table(
    *(_row(name, _counts(function), name, **_OF_COUNTS.get(name, {})) for name, function in COUNT_METRICS.items()),
    _row("prevalence_part", _counts(_part("prevalence")), "kappa"),
    _row("bias_part", _counts(_part("bias")), "kappa"),
)

_MANY = _table(
    _row("conger_kappa", _of_categories(kernel.conger_kappa), "conger_kappa", headline=True, tolerates_missing=True),
    _row(
        "bennett_s",
        _of_categories(kernel.bennett_s),
        "bennett_s",
        headline=True,
        tolerates_missing=True,
        share=_beyond_chance,
    ),
    _row("fleiss_kappa", _of_categories(kernel.fleiss_kappa), "fleiss_kappa", tolerates_missing=True),
    _row("ac1", _of_categories(kernel.ac1), "ac1", tolerates_missing=True),
    _row("alpha", _alpha("nominal"), "alpha", tolerates_missing=True),
)

_NOMINAL_PAIR = _table(
    _row("kappa", _of_categories(kernel.cohen_kappa), "cohen_kappa", headline=True),
    *(_MANY[name] for name in ("bennett_s", "ac1", "alpha")),
)

_ORDINAL_PAIR = _table(
    _row("weighted_kappa_linear", _weighted("linear"), "weighted_kappa", headline=True),
    _row("weighted_kappa_quadratic", _weighted("quadratic"), "weighted_kappa"),
    _NOMINAL_PAIR["kappa"],
    _MANY["bennett_s"],
    _row(
        "alpha",
        _alpha("ordinal"),
        "alpha",
        title="Krippendorff's alpha, ordinal",
        formula="1 - observed / expected disagreement, of the ratings' middle ranks",
        moves_with=AGREEMENT_METRICS["icc_a1"].moves_with,
        headline=True,
        tolerates_missing=True,
    ),
)

_FORMS: dict[str, IccForm] = {
    "icc_a1": "A,1",
    "icc_c1": "C,1",
    "icc_1": "1",
    "icc_ak": "A,k",
    "icc_ck": "C,k",
    "icc_k": "k",
}
_INTERVAL = _table(
    *(
        _row(name, _icc(form), f"icc {form}", headline=name == "icc_a1", form=form, tolerates_missing=True)
        for name, form in _FORMS.items()
    ),
    _row(
        "alpha",
        _alpha("interval"),
        "alpha",
        title="Krippendorff's alpha, interval",
        caveat=AGREEMENT_METRICS["icc_a1"].caveat,
        moves_with=AGREEMENT_METRICS["icc_a1"].moves_with,
        tolerates_missing=True,
    ),
)

_INTERVAL_PAIR = {
    "icc_a1": _INTERVAL["icc_a1"],
    **_table(
        _row(
            "icc_spread",
            lambda given, weight: score_moments(*given.raters, weight=weight).spread_adjusted(given.spread),
            headline=True,
        ),
        _row("concordance", _moments(ScoreMoments.concordance), "concordance"),
    ),
    **_INTERVAL,
    **_table(
        _row("mean_squared_error", _moments(ScoreMoments.mean_squared_error)),
        _row("mean_error", _moments(lambda moments: moments.mean_error)),
        _row("variance_first", _moments(lambda moments: moments.variance_first)),
        _row("variance_second", _moments(lambda moments: moments.variance_second)),
    ),
}


def metrics_for(scale: Scale, raters: int) -> Mapping[str, AgreementMetric]:
    """Return the metrics that a scale and a number of raters allow.

    Examples
    --------
    >>> list(metrics_for("nominal", 2))
    ['kappa', 'bennett_s', 'ac1', 'alpha']
    """
    pair = {"binary": _BINARY_PAIR, "nominal": _NOMINAL_PAIR, "ordinal": _ORDINAL_PAIR, "interval": _INTERVAL_PAIR}
    scores = {**_INTERVAL, "alpha": replace(_INTERVAL["alpha"], headline=True)}
    many = {"binary": _MANY, "nominal": _MANY, "interval": scores}
    ordinal = {"alpha": _ORDINAL_PAIR["alpha"], **{name: _MANY[name] for name in ("conger_kappa", "bennett_s", "ac1")}}
    return pair[scale] if raters == 2 else {**many, "ordinal": ordinal}[scale]


METRICS: dict[str, AgreementMetric] = {
    name: metric
    for scale in reversed(SCALES)
    for raters in (3, 2)
    for name, metric in metrics_for(scale, raters).items()
}
"""All metrics by name; a metric with several forms by scale has its first form."""


def why_undefined(metric: AgreementMetric, ratings: Ratings, weight: FloatArray) -> Undefined | None:
    """Return the reason why a metric of these ratings is undefined.

    Return None if the reason is missing ratings.
    """
    if ratings.missing and not metric.tolerates_missing:
        return None
    if metric.kernel_name is None:
        return Undefined.NOBODY if weight.sum() == 0 else Undefined.NO_SPREAD
    reason = str(kernel.why_undefined(metric.kernel_name, *ratings.raters, weight=weight))
    return Undefined(reason) if reason else Undefined.ZERO_DENOMINATOR


def values_of(metrics: Sequence[AgreementMetric], ratings: Ratings, weight: FloatArray) -> FloatArray:
    """Return the metrics (..., metrics) of patterns with weights (..., patterns); nan where undefined."""
    undefined = np.full(weight.shape[:-1], np.nan)
    by_form: dict[str, FloatArray] = {}
    if ratings.missing and any(metric.form is not None for metric in metrics):  # a single fit gives all forms
        by_form = kernel.panel_of(*ratings.raters, weight=weight).iccs()

    def value(metric: AgreementMetric) -> FloatArray:
        if metric.form in by_form:
            return by_form[metric.form]
        missed = ratings.missing and not metric.tolerates_missing
        return undefined if missed else np.asarray(metric.evaluate(ratings, weight))

    return np.stack(np.broadcast_arrays(*map(value, metrics)), axis=-1)
