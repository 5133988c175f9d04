"""`Metric`: one row per metric, the source of options, tables, sentences, limits and docs.

This module also contains the agreement metrics, which several audits use, and names of metrics in other packages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any, Literal

from evenhand.core.records import Against, Kind, Reveals
from evenhand.errors import ConfigError, SettingError
from evenhand.messages import Argument, Message
from evenhand.messages.formats import Format
from evenhand.messages.shared import say

Unit = Literal["share", "score", "index", "ratio", "amount"]
Better = Literal["higher", "lower", "neither"]
Of = Literal["value", "gap"]
Side = Literal["min", "max"]

_REVEALED_BY_UNIT: Mapping[Unit, Reveals] = {
    "share": "share",
    "score": "number",
    "index": "number",
    "ratio": "number",
    "amount": "undeclared",
}

BETWEEN_GROUPS: tuple[Against, ...] = ("worst_pair", "reference")


@dataclass(frozen=True)
class Limit:
    """A kind of threshold that is meaningful for a metric.

    Parameters
    ----------
    of : the limited quantity, a value or a gap.
    side : the side of the limit, a minimum or a maximum.
    kind : the kind of gap, 'difference' or 'ratio'; None for values.
    range : the smallest and largest sensible limit; a maximum must be below the largest, a minimum above the smallest.
    against : the comparisons of gaps that can be limited; the first is the default.
    """

    of: Of
    side: Side
    kind: Kind | None = None
    range: tuple[float, float] = (0.0, 1.0)
    against: tuple[Against, ...] = ()

    def allows(self, limit: float) -> bool:
        """Return whether some systems meet a limit and others violate it."""
        smallest, largest = self.range
        return smallest <= limit < largest if self.side == "max" else smallest < limit <= largest

    def in_words(self) -> str:
        """Return an instruction, such as 'max= of 0 or more and below 1 (a difference)'."""
        smallest, largest = self.range
        if self.side == "max":
            bounds = f"of {smallest:g} or more" + ("" if isinf(largest) else f" and below {largest:g}")
        else:
            bounds = f"above {smallest:g}" + ("" if isinf(largest) else f" and at most {largest:g}")
        return f"{self.side}= {bounds}" + (f" (a {self.kind})" if self.kind else "")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric.

    Parameters
    ----------
    name : the short name used in options and records.
    title : the name in words.
    unit : the kind of number.
    better : the direction that is better for the person.
    formula : the definition of the metric.
    reference : the source of the definition.
    caveat : the limitation of a value or gap.
    headline : whether the metric gives findings without a threshold, too.
    moves_with : other influences on the metric, as a clause.
    limits : the meaningful thresholds; empty if there are none.
    reveals : what the metric's values reveal about the number of people (see `column`), if not implied by the unit.
        With `suppress_below`, an 'amount' is withheld unless the metric declares it as a 'number', which is not a
        count.
    """

    name: str
    title: str
    unit: Unit
    better: Better = "neither"
    formula: str = ""
    reference: str = ""
    caveat: str = ""
    headline: bool = False
    moves_with: str = ""
    limits: tuple[Limit, ...] = ()
    reveals: Reveals | None = None

    def declared(self, value: object) -> Reveals:
        """Return the declaration of what a value of the metric reveals about the number of people.

        A share beyond 1 is another kind of number, and so undeclared.
        """
        if self.unit == "share" and isinstance(value, int | float) and abs(value) > 1:
            return "undeclared"
        return self.reveals or _REVEALED_BY_UNIT[self.unit]

    @property
    def title_in_sentence(self) -> str:
        """The title inside a sentence; abbreviations and names keep their capital letters."""
        first = self.title.split()[0] if self.title else ""
        abbreviated = len(first) == 1 or any(letter.isupper() or letter.isdigit() for letter in first[1:])
        return (
            self.title
            if abbreviated or "'" in first or first == "Brier"
            else f"{self.title[:1].lower()}{self.title[1:]}"
        )

    def style(self, kind: Kind | None = None, *, signed: bool = False) -> Format:
        """Return the format of the metric's values, or of gaps of a kind."""
        if kind is None:
            return "percent" if self.unit == "share" else "number"
        if kind == "difference" and self.unit == "share":
            return "signed_points" if signed else "points"
        return "signed" if signed and kind == "difference" else "number"


def gap_limits(*, most: float = 1.0, against: tuple[Against, ...] = BETWEEN_GROUPS) -> tuple[Limit, ...]:
    """Return the possible limits on a difference between groups, from 0 to below the largest possible difference."""
    return (Limit("gap", "max", "difference", (0.0, most), against),)


def ratio_limits(*, against: tuple[Against, ...] = BETWEEN_GROUPS) -> tuple[Limit, ...]:
    """Return the possible limits on a ratio between groups, the smaller value over the larger."""
    return (Limit("gap", "min", "ratio", (0.0, 1.0), against),)


# Agreement ------------------------------------------------------------------------------------------------------------

# The two ratings of the same people may come from two raters, or from a model with and without mistakes in its
# inputs. Of people rated 0 or 1, both ratings are 1 for a people, one of them for b and c people, and none for d; po is
# the share with equal ratings.

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


def _coefficient(
    name: str, title: str, *, formula: str, reference: str, caveat: str, moves_with: str = "", unit: Unit = "index"
) -> Metric:
    """Return a metric that rises with agreement: an index from -1 to 1, or a share."""
    return Metric(
        name=name,
        title=title,
        unit=unit,
        better="higher",
        formula=formula,
        reference=reference,
        caveat=caveat,
        moves_with=moves_with,
        limits=gap_limits(most=2.0 if unit == "index" else 1.0),
    )


def _share(name: str, title: str, formula: str, caveat: str, moves_with: str = "") -> Metric:
    return _coefficient(
        name, title, formula=formula, reference=_GWET, caveat=caveat, moves_with=moves_with, unit="share"
    )


def _companion(name: str, title: str, unit: Unit, formula: str, reference: str = "") -> Metric:
    """Return a metric that explains the coefficients but does not itself rise with agreement."""
    reveals: Reveals = "share" if unit == "share" else "number"
    return Metric(name=name, title=title, unit=unit, formula=formula, reference=reference, reveals=reveals)


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
    _coefficient(
        "kappa",
        "Cohen's kappa",
        formula="(po - pc) / (1 - pc), with pc the agreement that the two ratings' own shares would give by chance; of "
        "0 and 1 it is 2(ad - bc) / ((a+c)(c+d) + (b+d)(a+b))",
        reference=_COHEN,
        caveat=_KAPPA_CAVEAT,
        moves_with=_RARE,
    ),
    _coefficient("pabak", "PABAK", formula="2 po - 1 = (a + d - b - c) / n", reference=_BYRT, caveat=_NO_CHANCE),
    _coefficient(
        "ac1",
        "Gwet's AC1",
        formula="(po - pe) / (1 - pe), with pe = sum of p(1 - p) / (q - 1) over the q categories' mean shares p",
        reference=_GWET,
        caveat="It follows PABAK, more strongly: where one rating is rare, it is high.",
        moves_with="it also rises where one rating is rare",
    ),
    _coefficient(
        "alpha",
        "Krippendorff's alpha",
        formula="1 - observed / expected disagreement",
        reference=_KRIPPENDORFF,
        caveat="It is close to kappa, and falls as kappa does where one rating is rare or nearly universal.",
        moves_with=_RARE,
    ),
    *(
        _coefficient(
            name, f"ICC({form})", formula=_ICC_FORMULA[name], reference=_MCGRAW, caveat=_OWN_SPREAD, moves_with=_ALIKE
        )
        for name, form in _ICC_FORMS.items()
    ),
    _coefficient(
        "icc_spread",
        "Spread-adjusted ICC",
        formula="1 - E(e²) / V, with one V for all groups: twice the variance of everybody's scores",
        reference="",
        caveat="It compares mean squared errors of scores on one scale for all groups, and says nothing about "
        "decisions.",
    ),
    _coefficient(
        "concordance",
        "Lin's concordance",
        formula="2 cov(x, y) / (var(x) + var(y) + (mean(x) - mean(y))²)",
        reference=_LIN,
        caveat=f"It is ICC(A,1) but for a term of the order 1/n. {_OWN_SPREAD}",
        moves_with=_ALIKE,
    ),
    _coefficient(
        "conger_kappa",
        "Conger's kappa",
        formula="Cohen's kappa of several raters",
        reference=_GWET,
        caveat=_KAPPA_CAVEAT,
        moves_with=_RARE,
    ),
    _coefficient(
        "fleiss_kappa",
        "Fleiss' kappa",
        formula="kappa with chance from all raters' shares",
        reference=_GWET,
        caveat=_KAPPA_CAVEAT,
        moves_with=_RARE,
    ),
    _coefficient(
        "bennett_s", "Bennett's S", formula="(q po - 1) / (q - 1) for q categories", reference=_GWET, caveat=_NO_CHANCE
    ),
    *(
        _coefficient(
            f"weighted_kappa_{power}",
            f"Weighted kappa, {power}",
            formula=f"1 - sum D o / sum D e over pairs of categories, with D {distance}",
            reference="J. Cohen (1968), Weighted kappa, Psychological Bulletin 70",
            caveat=_KAPPA_CAVEAT,
            moves_with=_ALIKE,
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
"""The agreement metrics by name. A gap has a direction if its metric has limits."""


# Names of other packages ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OtherName:
    """Another package's name for a metric or gap of ours.

    Parameters
    ----------
    package : the package that uses the name.
    metrics : our metrics; several if the name stands for the largest of several gaps.
    kind, against : the named gap; None for a metric.
    refused : the reason why the name has no counterpart; empty if it has one.
    """

    package: str
    metrics: tuple[str, ...] = ()
    kind: Kind | None = None
    against: Against | None = None
    refused: str = ""

    def where(self, name: str) -> dict[str, Any]:
        """Return the record columns that the name implies; refuse a name without a counterpart."""
        if self.refused:
            raise ConfigError(
                "{name!r} of {package} has no counterpart here: {why}.",
                name=name,
                package=self.package,
                why=self.refused,
            )
        return {"kind": self.kind, "against": self.against} if self.kind is not None else {}

    def remark(self, name: str) -> Message:
        """Return a remark that explains the name."""
        arguments: dict[str, Argument] = {"metrics": tuple(f"`{metric}`" for metric in self.metrics)}
        arguments |= {"name": name, "package": self.package}
        if self.kind is None:
            return say("other_name", **arguments)
        suffix = "_each" if len(self.metrics) > 1 else ""
        return say(f"other_{self.kind}_{self.against}{suffix}", **arguments)


_NO_COUNTERPART = "{name!r} of {package} has no counterpart here: {why}"


def translate(
    values: Mapping[str, Any], names: Mapping[str, OtherName], known: Collection[str] = ()
) -> tuple[dict[str, Any], tuple[Message, ...]]:
    """Return settings with our own names, and a remark on each translated name.

    Parameters
    ----------
    values : the settings; their `metrics` and `thresholds` are translated.
    names : the names of other packages.
    known : the aliases that thresholds resolve themselves.

    Raises
    ------
    ValueError
        For a name without a counterpart; the settings convert it to a `ConfigError`.

    Examples
    --------
    >>> names = {"recall_score": OtherName("scikit-learn", ("tpr",))}
    >>> settings, remarks = translate({"metrics": ["recall_score"]}, names)
    >>> settings, remarks[0].text
    ({'metrics': ['tpr']}, 'recall_score (scikit-learn) is `tpr` here.')
    """
    reader, changed = _NameTranslator(names), dict(values)
    metrics, thresholds = values.get("metrics"), values.get("thresholds")
    if isinstance(metrics, Sequence):
        listed = [metrics] if isinstance(metrics, str) else metrics
        changed["metrics"] = reader.metrics(listed)
        if ratios := reader.ratios(listed):
            changed["ratios"] = [*changed.get("ratios", ()), *ratios]
    if isinstance(thresholds, Sequence) and not isinstance(thresholds, str):
        changed["thresholds"] = reader.thresholds(thresholds, list(known))
    return changed, tuple(reader.remarks.values())


class _NameTranslator:
    """Translator of names of other packages, which collects a remark on each."""

    def __init__(self, names: Mapping[str, OtherName]) -> None:
        self.names = names
        self.remarks: dict[str, Message] = {}

    def other(self, name: object) -> OtherName | None:
        """Return the meaning of another package's name, or None for other names."""
        other = self.names.get(name) if isinstance(name, str) else None
        if other is None or not isinstance(name, str):
            return None
        if other.refused:
            raise SettingError(_NO_COUNTERPART, name=name, package=other.package, why=other.refused)
        self.remarks[name] = other.remark(name)
        return other

    def metrics(self, names: Sequence[Any]) -> list[Any]:
        """Return metrics in our names, without repeats."""
        pairs = [(name, self.other(name)) for name in names]
        listed = [metric for name, other in pairs for metric in ((name,) if other is None else other.metrics)]
        return [name for number, name in enumerate(listed) if name not in listed[:number]]

    def ratios(self, names: Sequence[Any]) -> list[str]:
        """Return the metrics of names that stand for ratios between groups."""
        others = [other for name in names if (other := self.other(name)) is not None and other.kind == "ratio"]
        return [metric for other in others for metric in other.metrics]

    def thresholds(self, limits: Sequence[Any], aliases: Sequence[str]) -> list[Any]:
        """Return thresholds in our names; aliases that thresholds resolve themselves are unchanged."""
        pairs = [(limit, self.other(_metric(limit))) for limit in limits]
        return [
            part
            for limit, other in pairs
            for part in ([limit] if other is None or _metric(limit) in aliases else _thresholds(limit, other))
        ]


def _metric(threshold: object) -> object:
    return threshold.get("metric") if isinstance(threshold, Mapping) else getattr(threshold, "metric", None)


def _thresholds(threshold: object, other: OtherName) -> list[Any]:
    """Return a threshold in our names, one for each metric of the other name."""
    dump = getattr(threshold, "model_dump", None)
    values = dict(threshold) if isinstance(threshold, Mapping) else dump(exclude_none=True) if dump else {}
    gap = {} if other.kind is None else {"kind": other.kind, "against": other.against}
    return [{**values, **gap, "metric": metric} for metric in other.metrics]
