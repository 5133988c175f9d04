"""Two audits compared: what changed in data, settings and models, and whether a gap grew beyond chance."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenhand.core.display import DisplayTable, Number, Range, make_table
from evenhand.core.findings import SHORT_VERDICTS, Finding
from evenhand.core.formats import json_text, rounded, show, show_confidence, show_interval, show_p
from evenhand.core.metrics import Metric
from evenhand.core.records import OVERALL, Gap, Record, Value, column, coordinates_of
from evenhand.core.run import write_files
from evenhand.core.thresholds import VERDICTS, Verdict, size_of_gap
from evenhand.errors import count
from evenhand.report.audit import Audit
from evenhand.report.pairing import Pairing, change_between, one_confidence, require_other_data, shared_audits
from evenhand.report.plan import setting_changes
from evenhand.stats.multiplicity import adjusted_p
from evenhand.table.table import Table

Direction = Literal["worse", "better", "changed", "unclear"]

MOST_UNCLEAR = 10
"""So many unclear changes are told in the summary."""

_SURE = {direction: f"{direction} beyond chance" for direction in ("worse", "better", "changed")} | {
    "unclear": "no clear change"
}
_PLACE = ("model", "model_reference", "grouping", "stratum", "metric", "kind", "against")
_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Record):
    """A number in two audits, and the difference between them."""

    audit: str = column("the audit")
    model: str | None = column("the model", None)
    model_reference: str | None = column("the model it is compared with; null unless models are compared", None)
    grouping: str | None = column("the grouping", None)
    group: str | None = column("the group; of a worst pair, that of the new audit", None)
    reference: str | None = column("the group it is compared with; of a worst pair, that of the new audit", None)
    old_group: str | None = column("of a worst pair: the group of the old audit", None)
    old_reference: str | None = column("of a worst pair: what that was compared with", None)
    stratum: str | None = column("the stratum", None)
    metric: str = column("the metric")
    kind: str | None = column("of a gap: difference or ratio", None)
    against: str | None = column("of a gap: what the group is compared with", None)
    coordinates: str = column("the audit's own coordinates, in words", "")
    title: str = column("the metric in words", "")
    unit: str = column("the unit of the metric", "index")
    old: float | None = column("its size in the old audit; of a gap, without its direction")
    new: float | None = column("its size in the new audit")
    change: float | None = column("new minus old; null where one of them is undefined")
    low: float | None = column("lower limit of the change", None)
    high: float | None = column("upper limit of the change", None)
    p_value: float | None = column("p-value of no change, of this number alone", None)
    p_adjusted: float | None = column(
        "p-value adjusted (Holm) for all findings compared, of other gaps for all those", None
    )
    old_verdict: str | None = column("the verdict of the old audit, where a threshold was set", None)
    new_verdict: str | None = column("the verdict of the new audit", None)
    direction: Direction = column(
        "worse or better where that is beyond chance; changed where it is neither; else unclear", "unclear"
    )

    @property
    def same_pair(self) -> bool:
        """Whether the old audit and the new one have it of the same groups."""
        return (self.old_group, self.old_reference) == (self.group, self.reference)

    def in_words(self) -> str:
        """Return the change as a sentence; where the worst pair is another one, with both pairs."""
        style, metric = _style(self), _metric(self).title_in_sentence
        points = " points" if style == "points" else ""
        kind, then, now = self._pairs()
        sizes = f"{self._size(self.old, style)}{then} before, {self._size(self.new, style)}{now} now"
        told = f"{self._where()}: {metric}{kind} was {sizes}"
        if self.change is None:
            return f"{told}."
        change = (
            f"a change of {show(self.change, _signed(style))}{points} ({show_interval(self.low, self.high, style)})"
        )
        p = f", {show_p(self.p_adjusted)} adjusted" if self.p_adjusted is not None else ""
        return f"{told}; {change}{p}: {_SURE[self.direction]}."

    @staticmethod
    def _size(size: float | None, style: Any) -> str:
        return "undefined" if size is None else f"{show(size, style)}{' points' if style == 'points' else ''}"

    def _where(self) -> str:
        """Return the models and people that it is about; a sentence begins with it."""
        model = f"{self.model} against {self.model_reference}" if self.model_reference else self.model
        by = f"by {self.grouping}" if self.grouping else None
        where = ", ".join(part for part in (model, self.coordinates, self.stratum, by) if part)
        return where if model else f"{where[:1].upper()}{where[1:]}" or "Everybody"

    def _pairs(self) -> tuple[str, str, str]:
        """Return the kind of a gap with its groups; where those are others now, the old ones and the new ones apart."""
        if self.kind is None:
            return "", "", ""
        kind = "gap" if self.kind == "difference" else self.kind
        if None in (self.group, self.reference) or self.group == self.reference:
            return f" ({kind})", "", ""
        then, now = f"{self.old_group} against {self.old_reference}", f"{self.group} against {self.reference}"
        return (f" ({kind}, {now})", "", "") if self.same_pair else (f" ({kind})", f" ({then})", f" ({now})")


def _metric(change: Change) -> Metric:
    return Metric(name=change.metric, title=change.title or change.metric, unit=change.unit)  # type: ignore[arg-type]


def _style(change: Change) -> Any:
    kind: Any = change.kind
    return _metric(change).style(kind)


def _signed(style: Any) -> Any:
    return {"points": "signed_points", "number": "signed"}.get(style, style)


@dataclass(frozen=True)
class Comparison:
    """Two audits compared.

    Parameters
    ----------
    changes : every number that both have and that a finding is about, verdict flips first, then worse ones.
    others : the other gaps of both, a family of their own.
    settings : what differs in data, settings and models, in sentences.
    confidence : of the intervals.
    shared : how many people are in both, where the two tables were given; None for independent samples.
    """

    changes: tuple[Change, ...]
    others: tuple[Change, ...]
    settings: tuple[str, ...]
    confidence: float
    shared: int | None = None

    @property
    def flips(self) -> tuple[Change, ...]:
        """The changes whose verdict is another one now."""
        return tuple(change for change in self.changes if change.old_verdict != change.new_verdict)

    @property
    def worse(self) -> tuple[Change, ...]:
        """The findings that changed for the worse beyond chance."""
        return tuple(change for change in self.changes if change.direction == "worse")

    def summary(self) -> str:
        """Return the comparison as plain text."""
        return "\n".join(self._lines("compare.md (--out)"))

    def _lines(self, table: str) -> list[str]:
        """Return the comparison in sentences; `table` is where all findings are."""
        lines = [f"Of {count(len(self.changes), 'finding')} compared: {_directions(self.changes)}."]
        if any(change.direction != "unclear" for change in self.others):
            lines.append(f"Of {count(len(self.others), 'other gap')}: {_directions(self.others)}.")
        lines += [f"Verdict {_flip(change)}{self._chance(change)}. {change.in_words()}" for change in self.flips]
        lines += [
            change.in_words() for change in self.changes if change not in self.flips and change.direction != "unclear"
        ]
        lines += [f"Among the other gaps: {change.in_words()}" for change in self._moved()]
        lines += self._unclear(table)
        alpha = show_confidence(1 - self.confidence)
        people = (
            "The two audits are treated as independent samples"
            if self.shared is None
            else f"{self.shared:,} people are in both audits, and the intervals account for it"
        )
        rest = ", and as much for the other gaps" if self.others else ""
        lines.append(f"{people}; the chance that any “worse” or “better” is false is at most {alpha} (Holm){rest}.")
        return [*lines, *self.settings]

    def _chance(self, change: Change) -> str:
        within = change.p_adjusted is not None and change.p_adjusted > 1 - self.confidence
        return ", but the change itself is within chance" if within else ""

    def _moved(self) -> list[Change]:
        """Return, of each metric and grouping, the other two groups whose gap changed most clearly beyond chance."""
        told = {_spot(c, (c.group, c.reference)) for c in self.changes if c.same_pair}
        clear = [c for c in self.others if c.direction != "unclear" and None not in (c.group, c.reference, c.p_value)]
        first: dict[_Key, Change] = {}
        for change in sorted(clear, key=lambda c: (c.kind == "ratio", c.p_value, -abs(c.change or 0.0))):
            if change.reference != OVERALL and _spot(change, (change.group, change.reference)) not in told:
                first.setdefault(_spot(change), change)
        return list(first.values())

    def _unclear(self, table: str) -> Iterator[str]:
        """Yield the changes that may be chance, those that come nearest to being beyond it first; of many, the rest."""
        unclear = [c for c in self.changes if c not in self.flips and c.direction == "unclear"]
        nearest = sorted(unclear, key=lambda change: 1.0 if change.p_value is None else change.p_value)
        yield from (change.in_words() for change in nearest[:MOST_UNCLEAR])
        if len(nearest) > MOST_UNCLEAR:
            more = count(len(nearest) - MOST_UNCLEAR, "more finding")
            yield f"{more} without a clear change {'is' if more.startswith('1 ') else 'are'} in {table}."

    def __str__(self) -> str:
        return self.summary()

    def table(self) -> DisplayTable:
        """Return the findings that were compared, as a table."""
        return _as_table(self.changes, "What changed", self.confidence)

    def _repr_html_(self) -> str:
        return self.table().to_html()

    def to_frame(self, backend: str | None = None) -> Any:
        """Return all changes as a data frame, those of findings first."""
        from evenhand.table.frames import build_frame

        rows = [*self.changes, *self.others]
        return build_frame({name: [getattr(row, name) for row in rows] for name in Change.columns()}, backend)

    def to_json(self) -> str:
        """Return the comparison as the text of a JSON file."""
        tables = {"changes": self.changes, "others": self.others}
        rows = {name: [change.to_dict() for change in changes] for name, changes in tables.items()}
        return json_text(
            rounded(
                {
                    "confidence": self.confidence,
                    "shared": self.shared,
                    "settings": list(self.settings),
                    **rows,
                }
            )
        )

    def to_markdown(self) -> str:
        """Return the comparison as Markdown."""
        tables = [self.table(), _as_table(self.others, "Other gaps", self.confidence)]
        parts = [f"## {table.caption}\n\n{table.to_markdown()}" for table in tables if table.rows]
        return "\n\n".join(["# Two audits compared", *self._lines("the table below"), *parts, ""])

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write compare.md and compare.json into a folder; return their paths."""
        return write_files(folder, {"compare.md": self.to_markdown(), "compare.json": self.to_json()})


def _directions(changes: Sequence[Change]) -> str:
    counted = Counter(change.direction for change in changes)
    changed = f"{counted['changed']:,} changed, " if counted["changed"] else ""
    return f"{counted['worse']:,} worse, {counted['better']:,} better, {changed}{counted['unclear']:,} unclear"


def _flip(change: Change) -> str:
    words = [
        SHORT_VERDICTS[_verdict(verdict)].lower() or "none" for verdict in (change.old_verdict, change.new_verdict)
    ]
    return f"from “{words[0]}” to “{words[1]}”"


def _then_now(old: str | None, new: str | None) -> str | None:
    return new if old == new else f"{old} → {new}"


def _spot(change: Change, pair: tuple[str | None, ...] = ()) -> _Key:
    """Return the metric and the people that a gap is of, with its two groups where they are given."""
    return (
        change.audit,
        change.model,
        change.model_reference,
        change.grouping,
        change.stratum,
        change.metric,
        change.coordinates,
        *sorted(map(str, pair)),
    )


def _verdict(verdict: str | None) -> Verdict:
    return next((known for known in VERDICTS if known == verdict), "no_threshold")


def _as_table(changes: Sequence[Change], caption: str, confidence: float) -> DisplayTable:
    columns = {
        "Audit": lambda r: r.audit,
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Group": lambda r: _then_now(r.old_group, r.group),
        "Compared with": lambda r: _then_now(r.old_reference, r.reference),
        "Stratum": lambda r: r.stratum,
        "Of": lambda r: r.coordinates,
        "Metric": lambda r: _metric(r).title,
        "Kind": lambda r: r.kind,
        "Before": lambda r: Number(r.old, _style(r)),
        "Now": lambda r: Number(r.new, _style(r)),
        "Change": lambda r: Number(r.change, _signed(_style(r))),
        f"{show_confidence(confidence)} interval": lambda r: Range(r.low, r.high, _signed(_style(r))),
        "Adjusted p": lambda r: Number(r.p_adjusted, "p"),
        "Verdict": lambda r: _flip(r) if r.old_verdict != r.new_verdict else None,
        "": lambda r: None if r.direction == "unclear" else r.direction,
    }
    return make_table(caption, columns, changes, always=("Metric", "Before", "Now", "Change"))


def compare(
    old: Audit | str | os.PathLike[str],
    new: Audit | str | os.PathLike[str],
    *,
    tables: tuple[Table, Table] | None = None,
    key: str | None = None,
) -> Comparison:
    """Compare two audits: every gap with an interval of its change, verdict flips first.

    The interval of a change is by MOVER (Zou and Donner 2008, Statistics in Medicine 27): with limits (l, u) of both
    numbers, from d - sqrt(a^2 + b^2 - 2 r a b), a = new - l_new, b = u_old - old, to the same with the other ends. Its
    p-value takes the distance to the limit on the side of no change for a multiple of a standard error. Where the
    direction of a gap is not clear, the limits allow for the other one (`pairing.size_change`). For different
    people r is 0. For the same people r is the correlation of the two errors, from what each person adds to either
    (Zou 2007, Psychological Methods 12); that needs both tables. Without them, audits of the same data are refused.

    Parameters
    ----------
    old, new
        Audits, or the folders where they were saved.
    tables
        The table of the old and of the new audit, where people are in both: two models of the same people, or the same
        people twice. A number of which the correlation is not known, such as one within a stratum, has no interval.
    key
        The column that tells people apart in both tables; by default their `id`, and without one the order of rows.

    Examples
    --------
    >>> import evenhand as eh
    >>> def month(hired):
    ...     table = eh.Table({"sex": ["F", "M"] * 300, "hired": hired * 60}, groups="sex", predictions="hired")
    ...     return eh.audit(table, parity={"metrics": "selection_rate"})
    >>> comparison = eh.compare(month([1, 0, 1, 1, 0, 1, 0, 1, 0, 0]), month([1, 0, 0, 1, 0, 1, 0, 1, 0, 1]))
    >>> comparison.changes[0].direction
    'worse'
    """
    before, after = (given if isinstance(given, Audit) else Audit.load(given) for given in (old, new))
    if tables is None:
        require_other_data(before, after)
    shared = shared_audits(before, after)
    confidence = one_confidence(before, after, shared)
    pairing = None if tables is None else Pairing.of(before, after, tables, key)
    told: list[Change] = []
    others: list[Change] = []
    for name in shared:
        told += _changes(name, _of_findings(before, name), _of_findings(after, name), confidence, after, pairing)
        rest = _changes(name, _of_gaps(before, name), _of_gaps(after, name), confidence, after, pairing)
        about = {_place(change) for change in told}
        others += [change for change in rest if _place(change) not in about]
    changes = sorted(_claimed(told, 1 - confidence), key=_order)
    people = None if pairing is None else pairing.shared
    others = list(_claimed(others, 1 - confidence))
    return Comparison(tuple(changes), tuple(others), tuple(_differences(before, after)), confidence, people)


def _key(record: Value | Gap | Finding) -> _Key:
    """Return what two numbers must share to be the same thing; the worst pair, or its label, may be another one."""
    sides = ("group", "reference") if getattr(record, "against", None) != "worst_pair" else ()
    place = tuple(getattr(record, name, None) for name in (*_PLACE, *sides))
    return *place, *sorted((name, str(value)) for name, value in _places(record).items())


def _own(record: Value | Gap | Finding) -> Mapping[str, Any]:
    return record.coordinates if isinstance(record, Finding) else coordinates_of(record)


def _places(record: Value | Gap | Finding) -> dict[str, Any]:
    """Return where an audit has a number, without what it found there."""
    found = ("label",) if getattr(record, "against", None) == "worst_pair" else ()
    return {name: value for name, value in _own(record).items() if name in _PLACES and name not in found}


_PLACES = frozenset(
    ("weight", "bin_low", "bin_high", "label", "stakeholder", "stakeholder_reference", "setting", "noise_level")
) | {"split", "component", "test"}
"""Columns of audits that say where a number stands; their other columns are results."""


def _of_findings(audit: Audit, name: str) -> dict[_Key, Finding]:
    found: dict[_Key, Finding] = {}
    for finding in audit.results[name].findings:
        found.setdefault((*_key(finding), finding.threshold), finding)
    return found


def _of_gaps(audit: Audit, name: str) -> dict[_Key, Gap]:
    return {_key(gap): gap for gap in audit.results[name].tables.get("gaps", ()) if isinstance(gap, Gap)}


def _changes(
    name: str,
    before: Mapping[_Key, Any],
    after: Mapping[_Key, Any],
    confidence: float,
    audit: Audit,
    pairing: Pairing | None,
) -> Iterator[Change]:
    metrics = audit.results[name].metrics
    for key, now in after.items():
        if key in before and _tells(before[key], now):
            correlation = 0.0 if pairing is None else None
            if pairing is not None and name == "parity":
                correlation = pairing.correlation(before[key], now)
            yield _change(name, before[key], now, metrics[now.metric], confidence, correlation)


def _tells(old: Any, now: Any) -> bool:
    """Tell whether two records have a change: both are defined, or one is and the verdict is another one."""
    defined = [record.value is not None for record in (old, now)]
    return all(defined) or (any(defined) and getattr(old, "verdict", None) != getattr(now, "verdict", None))


def _change(name: str, old: Any, now: Any, metric: Metric, confidence: float, correlation: float | None) -> Change:
    kind = getattr(now, "kind", None)
    sized = None if now.against in _WITH_SIGN else kind
    numbers = [(record.value, record.low, record.high) for record in (old, now)]
    ranges = [_range(record) for record in (old, now)]
    sizes = [size_of_gap(sized, *number)[0] for number in numbers]
    change, low, high, p_value = change_between(sized, numbers, ranges, confidence, correlation)
    judged = isinstance(now, Finding) and now.threshold is not None
    return Change(
        audit=name,
        **{item: getattr(now, item, None) for item in _COPIED},
        old_group=getattr(old, "group", None),
        old_reference=getattr(old, "reference", None),
        metric=now.metric,
        kind=kind,
        coordinates=_in_words(old, now),
        title=metric.title,
        unit=metric.unit,
        old=sizes[0],
        new=sizes[1],
        change=change,
        low=low,
        high=high,
        p_value=p_value,
        old_verdict=old.verdict if judged else None,
        new_verdict=now.verdict if judged else None,
        direction=_direction(change, kind, now.against, metric),
    )


def _in_words(old: Any, now: Any) -> str:
    """Return where both audits have a number; a label only where it is the same in both."""
    before = _own(old)
    places = {name: value for name, value in _own(now).items() if name in _PLACES and before.get(name) == value}
    return ", ".join(f"{name} {value}" for name, value in places.items())


_COPIED = ("model", "model_reference", "grouping", "group", "reference", "stratum", "against")
_WITH_SIGN = ("model", "status_quo")
"""A difference between two models keeps its sign: it says which of them does better."""


def _range(record: Any) -> tuple[float, float] | None:
    """Return the smallest and largest value that the data allow, where they leave a number open."""
    lower, upper = (_own(record).get(name) for name in ("lower", "upper"))
    return None if lower is None or upper is None else (lower, upper)


def _direction(change: float | None, kind: str | None, against: str | None, metric: Metric) -> Direction:
    """Return which way a change points: a larger difference or a smaller ratio is worse, a value as its metric says."""
    if not change:
        return "unclear"
    if against in _WITH_SIGN:
        return "changed"
    if kind == "difference":
        return "worse" if change > 0 else "better"
    if kind == "ratio":
        return "worse" if change < 0 else "better"
    if metric.better == "neither":
        return "changed"
    return "worse" if (change < 0) == (metric.better == "higher") else "better"


def _claimed(changes: Sequence[Change], alpha: float) -> Iterator[Change]:
    """Yield changes with p-values adjusted for all of them; a direction stays only where it is beyond chance."""
    tested = {id(change): change.p_value for change in changes if change.p_value is not None}
    adjusted = dict(zip(tested, adjusted_p(list(tested.values())).tolist(), strict=True)) if tested else {}
    for change in changes:
        p_adjusted = adjusted.get(id(change))
        clear = p_adjusted is not None and p_adjusted <= alpha
        yield replace(change, p_adjusted=p_adjusted, direction=change.direction if clear else "unclear")


def _order(change: Change) -> tuple[bool, int, float]:
    direction = ("worse", "better", "changed", "unclear").index(change.direction)
    p_value = 1.0 if change.p_adjusted is None else change.p_adjusted
    return change.old_verdict == change.new_verdict, direction, p_value


def _place(change: Change) -> _Key:
    return tuple(getattr(change, name) for name in ("audit", *_PLACE, "coordinates"))


def _differences(before: Audit, after: Audit) -> Iterator[str]:
    """Yield what differs in data, settings and models."""
    rows = [audit.data["rows_used"] for audit in (before, after)]
    yield f"Rows: {rows[0]:,} before, {rows[1]:,} now."
    yield from _without_counterpart(before, after)
    old, new = before.config.as_dict(), after.config.as_dict()
    for section in dict.fromkeys([*old, *new]):
        if section != "report":
            yield from setting_changes(f"[{section}]", old.get(section), new.get(section))


def _without_counterpart(before: Audit, after: Audit) -> Iterator[str]:
    """Yield how many findings only one of the audits has."""
    shared = shared_audits(before, after)
    old, new = ({(name, key) for name in shared for key in _of_findings(audit, name)} for audit in (before, after))
    if old != new:
        only = [count(len(one - other), "finding") for one, other in ((old, new), (new, old))]
        yield (
            f"Not compared: {only[0]} of the old audit and {only[1]} of the new one, which the other does not have (as "
            "where the reference group or the worst effort bin is another one)."
        )
