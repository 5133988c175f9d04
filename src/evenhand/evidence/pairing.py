"""Covariance between the numbers of two audits of the same people.

To first order, an estimate T is its true value plus a sum over people of their influence psi_i on its error. An
audit computes the influence on its metrics in a group (`pair` of its descriptor), 0 for people outside the group; the
influence on a gap follows by the chain rule. The covariance of two estimates is then the sum of
products psi_i(old) psi_i(new) over the people in both (Hampel 1974, JASA 69; for two decisions about the
same people it is McNemar's).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from evenhand.core.descriptor import AuditDescriptor
from evenhand.core.findings import Finding
from evenhand.core.records import OVERALL, Gap, Value
from evenhand.core.spec import Spec
from evenhand.core.thresholds import size_of_gap
from evenhand.errors import ConfigError, DataError
from evenhand.messages.formats import finite, show_confidence
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.decided import DecidedRows, read_decided

if TYPE_CHECKING:
    from evenhand.run.audit import Audit
    from evenhand.table.table import Table


Numbered: TypeAlias = Value | Gap | Finding
"""A record with a value and its limits."""


@dataclass(frozen=True, eq=False)
class _Side:
    """One audit and its people."""

    name: str
    people: DecidedRows
    groupings: Mapping[str, tuple[str, ...]]
    specs: Mapping[str, Spec]
    cache: dict[tuple[str | None, ...], tuple[float, FloatArray] | None] = field(default_factory=dict)

    def influence(self, audit: AuditDescriptor, record: Numbered) -> FloatArray | None:
        """Return each person's influence on the size of a number; None if unknown."""
        if record.stratum is not None or record.value is None:
            return None
        first = self._of_group(audit, record, record.group)
        if isinstance(record, Value) or record.kind is None or first is None:
            return self._matching_influence(record, first)
        second = self._of_group(audit, record, record.reference)
        if second is None:
            return None
        (p, psi_p), (q, psi_q) = first, second
        if record.kind == "difference":
            gap = self._matching_influence(record, (p - q, psi_p - psi_q))
            return None if gap is None else np.sign(p - q) * gap
        with np.errstate(all="ignore"):
            gap = self._matching_influence(record, (p / q, (psi_p - p / q * psi_q) / q))
        return gap if gap is None or p <= q else -gap / (p / q) ** 2

    def _matching_influence(self, record: Numbered, influence: tuple[float, FloatArray] | None) -> FloatArray | None:
        """Return the influence if the people reproduce the audit's number; otherwise raise or return None.

        If they do not, the table is not the audit's table.
        """
        if influence is None or record.value is None or not np.isfinite(influence[0]):
            return None
        if abs(influence[0] - record.value) <= 1e-6 * max(1.0, abs(record.value)):
            return influence[1]
        if OVERALL in (record.group, getattr(record, "reference", None)):
            return None  # the overall rows are not always all people of the groups
        raise ConfigError(
            "the {name} table is not that of the {name} audit: {metric} by {grouping} is {found:.4g} in the "
            "table and {value:.4g} in the audit.",
            name=self.name,
            metric=record.metric,
            grouping=record.grouping,
            found=influence[0],
            value=record.value,
        )

    def _of_group(self, audit: AuditDescriptor, record: Numbered, group: str | None) -> tuple[float, FloatArray] | None:
        key = record.model, record.grouping, group, record.metric
        if (audit.name, *key) not in self.cache:
            self.cache[audit.name, *key] = self._gap_influence(audit, *key)
        return self.cache[audit.name, *key]

    def _gap_influence(
        self, audit: AuditDescriptor, model: str | None, grouping: str | None, group: str | None, metric: str
    ) -> tuple[float, FloatArray] | None:
        influence, members = audit.pair, self._members(grouping, group)
        if influence is None or members is None or model is None:
            return None
        return influence(self.specs[audit.name], self.people, model, members, metric)

    def _members(self, grouping: str | None, group: str | None) -> BoolArray | None:
        if grouping is None or grouping not in self.groupings or group is None:
            return None
        codes, labels = self.people.groups.joint(self.groupings[grouping])
        if group == OVERALL:
            return np.ones(len(codes), dtype=np.bool_)
        return np.asarray(codes == labels.index(group)) if group in labels else None


@dataclass(frozen=True, eq=False)
class Pairing:
    """The people of two audits, and the people in both."""

    old: _Side
    new: _Side
    in_old: IntArray
    in_new: IntArray

    @classmethod
    def of(cls, before: Audit, after: Audit, tables: tuple[Table, Table], key: str | None) -> Pairing:
        """Match the people of two tables by a key, or by the order of rows if neither has a key."""
        if any(audit.config.report.suppress_below for audit in (before, after)):
            raise ConfigError(
                "audits with `suppress_below` cannot be compared person by person: small counts would show."
            )
        sides = []
        for name, audit, table in zip(("old", "new"), (before, after), tables, strict=True):
            if table.rows != audit.data["rows_used"]:
                raise ConfigError(
                    "the {name} table is not that of the {name} audit: it has {rows:,} rows, the audit {data:,}.",
                    name=name,
                    rows=table.rows,
                    data=audit.data["rows_used"],
                )
            specs = {audited: result.spec for audited, result in audit.results.items()}
            sides.append(_Side(name, read_decided(table, key), table.groupings, specs))
        old, new = sides
        old_key, new_key = old.people.key, new.people.key
        if (old_key is None) != (new_key is None):
            raise ConfigError("one table has an `id` and the other has none; give the `key` that both share.")
        if old_key is not None and new_key is not None:
            _, in_old, in_new = np.intersect1d(old_key, new_key, return_indices=True)
            if len(in_old) == 0:
                raise DataError(
                    "nobody is in both tables: no key occurs in both; compare them without `tables=(old, new)`."
                )
        else:
            if tables[0].rows != tables[1].rows:
                raise ConfigError(
                    "the tables have {rows:,} and {rows_2:,} rows, so rows cannot be matched by their order; give "
                    "the `key` that tells people apart.",
                    rows=tables[0].rows,
                    rows_2=tables[1].rows,
                )
            in_old = in_new = np.arange(tables[0].rows)
        return cls(old, new, in_old, in_new)

    @property
    def shared(self) -> int:
        """The number of people, or of clusters, in both."""
        return len(self.in_old)

    def correlation(self, audit: AuditDescriptor, old: Numbered, new: Numbered) -> float | None:
        """Return the correlation between the errors of a number in the two audits.

        None if it is unknown.
        """
        of_old, of_new = self.old.influence(audit, old), self.new.influence(audit, new)
        if of_old is None or of_new is None:
            return None
        psi_old, psi_new = self.old.people.by_key(of_old), self.new.people.by_key(of_new)
        spread = sqrt(float(psi_old @ psi_old) * float(psi_new @ psi_new))
        if spread == 0:
            return 0.0
        return float(np.clip(psi_old[self.in_old] @ psi_new[self.in_new] / spread, -1.0, 1.0))


def paired_limits(
    old: tuple[float, float, float], new: tuple[float, float, float], correlation: float
) -> tuple[float, float]:
    """Return the limits of new - old, each given as (value, low, high), for errors with a given correlation.

    The lower limit is d - sqrt(a^2 + b^2 - 2 r a b) with a = new - l_new and b = u_old - old, the upper is analogous:
    MOVER for dependent estimates.

    References
    ----------
    G. Y. Zou (2007), Toward using confidence intervals to compare correlations, Psychological Methods 12.

    Examples
    --------
    >>> [round(limit, 3) for limit in paired_limits((0.4, 0.3, 0.5), (0.5, 0.4, 0.6), 0.5)]
    [0.0, 0.2]
    """

    def reach(a: float, b: float) -> float:
        return inf if inf in (a, b) else sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))

    change = new[0] - old[0]
    return change - reach(new[0] - new[1], old[2] - old[0]), change + reach(new[2] - new[0], old[0] - old[1])


def require_other_data(before: Audit, after: Audit) -> None:
    """Raise if both audits read the same data, or identical files."""
    sums = {file["sha256"] for file in before.data.get("files", ())}
    same = [f"the same file '{file['name']}'" for file in after.data.get("files", ()) if file["sha256"] in sums]
    if before.data["hash"] == after.data["hash"]:
        same = ["the same data"]
    if same:
        raise ConfigError(
            "both audits are of {same}, so that their numbers are not independent; give both tables with "
            "`tables=(old, new)`, or audit the two models in one run, as two predictions of one table.",
            same=same[0],
        )


def shared_audits(before: Audit, after: Audit) -> list[str]:
    """Return the names of the audits in both; raise if there are none."""
    shared = [name for name in after.results if name in before.results]
    if not shared:
        raise ConfigError(
            "the audits have nothing in common: {results} and {results_2}.",
            results=list(before.results),
            results_2=list(after.results),
        )
    return shared


def one_confidence(before: Audit, after: Audit, shared: Iterable[str]) -> float:
    """Return the common confidence level of the intervals; raise if it differs."""
    levels = {audit.results[name].spec.confidence for audit in (before, after) for name in shared}
    if len(levels) > 1:
        levels_text = ", ".join(show_confidence(level) for level in sorted(levels))
        raise ConfigError(
            "the audits have intervals of different confidence ({told}); run them with the same one.", told=levels_text
        )
    return levels.pop()


_Sized: TypeAlias = tuple[float | None, float | None, float | None]
_Change: TypeAlias = tuple[float | None, float | None, float | None, float | None]


def difference(old: _Sized, new: _Sized, confidence: float, correlation: float | None = 0.0) -> _Change:
    """Return the change, its MOVER limits, and the p-value of no change."""
    if old[0] is None or new[0] is None:
        return None, None, None, None
    change = new[0] - old[0]
    if correlation is None:
        return change, None, None, None
    low, high = map(finite, paired_limits(_unbounded(old), _unbounded(new), correlation))
    end = low if change > 0 else high
    if end is None:
        return change, low, high, None
    distance = abs(end - change)
    z = float(ndtri(0.5 + confidence / 2))
    p_value = 1.0 if change == 0 else 0.0 if distance == 0 else float(2 * ndtr(-abs(change) / distance * z))
    return change, low, high, p_value


def size_change(
    kind: str | None, old: _Sized, new: _Sized, confidence: float, correlation: float | None = 0.0
) -> _Change:
    """Return the change in the size of a gap, its limits, and the p-value of no change.

    If the true gaps have the observed directions, the change is D = new - old; if one of them has the opposite
    direction, it is S = new + old, or -S. In every case its size is the smaller of |D| and |S|, and its sign is the
    sign of D S. So the limits are the extremes of this function over the limits of D and S, and the change is
    significant if neither D nor S may be 0. If both directions are clear, S is large and D decides.

    Parameters
    ----------
    kind
        The kind of gap; None for a value, which has no direction.
    old, new
        The number and its limits, signed by direction.
    confidence
        The confidence level of the limits.
    correlation
        The correlation of the errors of the two sizes; None if unknown.

    Examples
    --------
    >>> [round(number, 3) for number in size_change("difference", (0.4, 0.3, 0.5), (-0.5, -0.6, -0.4), 0.95)]
    [0.1, -0.041, 0.241, 0.166]
    """
    if kind is None or old[0] is None or new[0] is None or correlation is None:
        sizes = [(size_of_gap(kind, *number)[0], *number[1:]) for number in (old, new)]
        return difference(sizes[0], sizes[1], confidence, correlation)
    before, now = _distance(kind, old), _distance(kind, new)
    turned = -before[0], -before[2], -before[1]
    _, *straight, p_straight = difference(before, now, confidence, correlation)
    _, *across, p_across = difference(turned, now, confidence, -correlation)
    ends = [_smaller(d, s) for d in _open(*straight) for s in _open(*across)]
    low, high = min(ends), max(ends)
    p_value = None if p_straight is None or p_across is None else max(p_straight, p_across)
    if kind == "ratio":  # a ratio falls as its distance from equality grows
        low, high = 0.0 - high, 0.0 - low
    return _size(kind, new) - _size(kind, old), finite(low), finite(high), p_value


def change_between(
    kind: str | None,
    numbers: Sequence[_Sized],
    ranges: Sequence[tuple[float, float] | None],
    confidence: float,
    correlation: float | None = 0.0,
) -> _Change:
    """Return `size_change`, extended to partially identified numbers with worst-case bounds.

    For a number that may lie anywhere in a range, the change is at least the new lower end minus the old upper end, and
    at most the new upper end minus the old lower end. The limits are the outer limits of these two changes, and the
    change is significant only if both have the same sign.

    Parameters
    ----------
    kind, confidence, correlation
        As for `size_change`.
    numbers
        The old and the new number with its limits.
    ranges
        The old and the new range; None if a number is point-identified.

    Examples
    --------
    >>> numbers, ranges = [(0.3, 0.0, 0.6), (0.3, 0.0, 0.6)], [(0.0, 0.6), (0.0, 0.6)]
    >>> [round(float(end), 3) for end in change_between(None, numbers, ranges, 0.95)]
    [0.0, -0.6, 0.6, 1.0]
    """
    old, new = numbers
    whole = size_change(kind, old, new, confidence, correlation)
    if whole[0] is None or all(ends is None for ends in ranges):
        return whole
    (old_least, old_most), (new_least, new_most) = (
        [_range_end_with_limits(end, number, ends) for end in ends] if ends else [number, number]
        for number, ends in zip(numbers, ranges, strict=True)
    )
    least = size_change(kind, old_most, new_least, confidence, correlation)
    most = size_change(kind, old_least, new_most, confidence, correlation)
    clear = least if (least[0] or 0.0) > 0 else most if (most[0] or 0.0) < 0 else None
    return whole[0], least[1], most[2], 1.0 if clear is None else clear[3]


def _range_end_with_limits(end: float, number: _Sized, ends: tuple[float, float]) -> _Sized:
    """Return an end of a range, with limits at the distances of the number's limits from the range.

    A lower limit of 0 is truncated; the upper distance then replaces the lower if larger.

    Examples
    --------
    >>> _range_end_with_limits(0.5, (0.4, 0.25, 0.625), (0.3, 0.5))
    (0.5, 0.45, 0.625)
    """
    _, low, high = number
    up = None if high is None else high - ends[1]
    down = None if low is None else ends[0] - low
    if low == 0 and up is not None and down is not None:
        down = max(down, up)
    return end, None if down is None else end - down, None if up is None else end + up


def _size(kind: str, number: _Sized) -> float:
    return float(size_of_gap(kind, *number)[0] or 0.0)


def _smaller(d: float, s: float) -> float:
    """Return the smaller of two sizes, with the sign of their product."""
    return min(abs(d), abs(s)) * float(np.sign(d) * np.sign(s))


def _distance(kind: str, number: _Sized) -> tuple[float, float, float]:
    """Return the distance of a gap from equality, with limits below 0 if the direction may be the opposite.

    The limits of a size, as of a worst pair, are truncated at equality; the other arm then replaces the truncated part.
    """
    value, low, high = _unbounded(number)
    if kind == "ratio":
        value, low, high = _below_equality(value), _below_equality(high), _below_equality(low)
    if value < 0:
        value, low, high = -value, -high, -low
    return value, min(low, 2 * value - high) if low == 0 else low, high


def _below_equality(ratio: float) -> float:
    """Return a ratio's distance below 1; for a ratio above 1, minus the inverse's distance.

    Examples
    --------
    >>> _below_equality(0.8), _below_equality(1.25), _below_equality(-inf)
    (0.19999999999999996, -0.19999999999999996, 1.0)
    """
    return 1 / ratio - 1 if ratio > 1 else 1 - max(ratio, 0.0)


def _open(low: float | None, high: float | None) -> tuple[float, float]:
    return -inf if low is None else low, inf if high is None else high


def _unbounded(number: _Sized) -> tuple[float, float, float]:
    """Return a number with its limits, infinite if missing."""
    value, low, high = number
    return float(value or 0.0), *_open(low, high)
