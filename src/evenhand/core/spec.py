"""The settings every audit has, and the thresholds that turn numbers into verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from evenhand.errors import did_you_mean
from evenhand.settings import Settings
from evenhand.table.roles import grouping_name

Kind = Literal["difference", "ratio"]
Against = Literal["worst_pair", "reference", "overall"]


def _as_grouping_name(value: Any) -> Any:
    """Accept `["race", "sex"]` for the grouping that is called 'race × sex'."""
    return grouping_name(value) if isinstance(value, list | tuple) else value


class Threshold(Settings):
    """A limit of the user's for one gap, in all models and groupings or in the ones named.

    Parameters
    ----------
    audit : the audit it belongs to.
    metric : the metric, or a gap known by a name of its own such as 'traditional_parity'.
    min, max : the limit; exactly one of them.
    kind : 'ratio' or 'difference'; by default a `min` limits a ratio and a `max` a difference.
    against : which gap is limited; by default that of the worst pair of groups.
    grouping, model, stratum : limit only these.

    Examples
    --------
    >>> Threshold(metric="selection_rate", min=0.8).kind
    'ratio'
    """

    audit: str = "parity"
    metric: str
    min: float | None = None
    max: float | None = None
    kind: Kind | None = None
    against: Against = "worst_pair"
    grouping: Annotated[str | None, BeforeValidator(_as_grouping_name)] = None
    model: str | None = None
    stratum: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_kind(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("kind") is None:
            return {**values, "kind": "ratio" if values.get("min") is not None else "difference"}
        return values

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if (self.min is None) == (self.max is None):
            raise ValueError("a threshold needs exactly one of `min` and `max`")
        limit = self.max if self.min is None else self.min
        if limit is not None and not isfinite(limit):
            raise ValueError(f"the limit of a threshold must be a finite number; got {limit}")
        return self

    def in_words(self, *, points: bool = False) -> str:
        """Return the limit as in 'at least 0.8', or in percentage points as in 'at most 10 points'."""
        word, limit = ("at least", self.min) if self.min is not None else ("at most", self.max or 0.0)
        return f"{word} {100 * limit:g} points" if points else f"{word} {limit:g}"


def require_known_metrics(thresholds: Iterable[Threshold], metrics: Iterable[str]) -> None:
    """Refuse a threshold for a metric that an audit does not have; for the validators of specs.

    Examples
    --------
    >>> require_known_metrics([Threshold(metric="eaiff", min=0.9)], ["eaif"])
    Traceback (most recent call last):
    ValueError: `metric` 'eaiff' of a threshold is not known; did you mean 'eaif'?
    """
    known = list(metrics)
    for threshold in thresholds:
        if threshold.metric not in known:
            hint = did_you_mean(threshold.metric, known)
            raise ValueError(f"`metric` {threshold.metric!r} of a threshold is not known; {hint}")


class Spec(Settings):
    """What every audit can be told; the same names everywhere."""

    code: ClassVar[tuple[str, ...]] = ()
    """Settings that hold code; `audit.toml` names it as 'module:attribute', which needs --allow-code."""
    code_or_name: ClassVar[tuple[str, ...]] = ()
    """The same, but only text of the form 'module:attribute' is code."""
    runs_code: ClassVar[tuple[str, ...]] = ()
    """Settings that let files of the user run code, which needs --allow-code too."""

    confidence: float = Field(0.95, gt=0, lt=1, description="Confidence of every interval.")
    resamples: int = Field(10_000, ge=100, le=1_000_000, description="Bootstrap resamples of the cells.")
    seed: int = Field(0, ge=0, description="Seed of the one random generator.")
    min_count: int = Field(10, ge=1, description="Groups with fewer people are listed but left out of gaps.")
    thresholds: tuple[Threshold, ...] = Field((), description="Limits that turn gaps into verdicts.")

    _folder: Path = PrivateAttr(default=Path())

    @property
    def folder(self) -> Path:
        """The folder that file names in the settings are relative to: that of `audit.toml`."""
        return self._folder

    def placed(self, folder: Path) -> Self:
        """Return the same settings as read from a file in this folder."""
        copy = self.model_copy()
        copy._folder = folder
        return copy
