"""The names that other packages give to our metrics and gaps: understood wherever ours are, and told in a note."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.core.records import Against, Kind
from evenhand.errors import ConfigError


@dataclass(frozen=True)
class OtherName:
    """What another package calls a metric or a gap of ours.

    Parameters
    ----------
    package : whose name it is.
    metrics : our metrics; several where the name stands for the largest of several gaps.
    kind, against : of which gap it is the name; None for a metric itself.
    refused : why it has no counterpart; empty where it has one.
    """

    package: str
    metrics: tuple[str, ...] = ()
    kind: Kind | None = None
    against: Against | None = None
    refused: str = ""

    def where(self, name: str) -> dict[str, Any]:
        """Return the columns of a record that the name stands for; refuse a name without a counterpart."""
        if self.refused:
            raise ConfigError(f"{name!r} of {self.package} has no counterpart here: {self.refused}.")
        return {"kind": self.kind, "against": self.against} if self.kind is not None else {}

    def in_words(self, name: str) -> str:
        """Return the remark that says what a name is read as."""
        ours = " and ".join(f"`{metric}`" for metric in self.metrics)
        if self.kind is None:
            return f"{name} ({self.package}) is {ours} here."
        pair = "of the worst pair of groups" if self.against == "worst_pair" else "to the reference group"
        each = ", each judged by itself" if len(self.metrics) > 1 else ""
        what = f"ratio of {ours}" if self.kind == "ratio" else f"difference in {ours}"
        return f"{name} ({self.package}) is the {what} {pair} here{each}."


def translate(
    values: Mapping[str, Any], names: Mapping[str, OtherName], known: Collection[str] = ()
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return settings in our own names, and remarks on what was read as what.

    Parameters
    ----------
    values : the settings; their `metrics` and `thresholds` are read.
    names : names of other packages.
    known : those of them that thresholds know by themselves.

    Raises
    ------
    ValueError
        For a name that has no counterpart here; the settings turn it into a `ConfigError`.

    Examples
    --------
    >>> names = {"recall_score": OtherName("scikit-learn", ("tpr",))}
    >>> translate({"metrics": ["recall_score"]}, names)
    ({'metrics': ['tpr']}, ('recall_score (scikit-learn) is `tpr` here.',))
    """
    said: dict[str, str] = {}

    def ours(name: Any) -> OtherName | None:
        other = names.get(name) if isinstance(name, str) else None
        if other is not None and other.refused:
            raise ValueError(f"{name!r} of {other.package} has no counterpart here: {other.refused}")
        if other is not None:
            said[name] = other.in_words(name)
        return other

    changed = dict(values)
    metrics = [values["metrics"]] if isinstance(values.get("metrics"), str) else values.get("metrics")
    if isinstance(metrics, Sequence):
        read = [(name, ours(name)) for name in metrics]
        listed = [metric for name, other in read for metric in ((name,) if other is None else other.metrics)]
        changed["metrics"] = [name for number, name in enumerate(listed) if name not in listed[:number]]
    thresholds = values.get("thresholds")
    if isinstance(thresholds, Sequence) and not isinstance(thresholds, str):
        limits = [(limit, ours(_metric(limit)), _metric(limit) in list(known)) for limit in thresholds]
        changed["thresholds"] = [
            part
            for limit, other, kept in limits
            for part in ([limit] if other is None or kept else _thresholds(limit, other))
        ]
    return changed, tuple(said.values())


def _metric(threshold: Any) -> Any:
    return threshold.get("metric") if isinstance(threshold, Mapping) else getattr(threshold, "metric", None)


def _thresholds(threshold: Any, other: OtherName) -> list[Any]:
    """Return a threshold in our names: one for each metric that the other name stands for."""
    written = dict(threshold) if isinstance(threshold, Mapping) else threshold.model_dump(exclude_none=True)
    place = {} if other.kind is None else {"kind": other.kind, "against": other.against}
    return [{**written, **place, "metric": metric} for metric in other.metrics]
