"""Compare two audits: changed data, settings and models, and gaps with significant changes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.audits import REGISTRY
from evenhand.charts import Picture
from evenhand.core.display import DisplayTable, Number, Range, make_table
from evenhand.core.files import write_files
from evenhand.core.records import OVERALL, Gap
from evenhand.core.thresholds import VERDICTS, Verdict
from evenhand.errors import ConfigError
from evenhand.evidence.changes import (
    Change,
    Key,
    adjusted_changes,
    change_key,
    changes_between,
    findings_by_key,
    gaps_by_key,
)
from evenhand.evidence.messages import say
from evenhand.evidence.pairing import Pairing, one_confidence, require_other_data, shared_audits
from evenhand.evidence.slopes import slope_picture
from evenhand.messages import Message
from evenhand.messages.formats import json_text, rounded, show_confidence
from evenhand.messages.shared import say as shared
from evenhand.run.audit import Audit
from evenhand.run.plan import setting_changes
from evenhand.table.table import Table

MOST_UNCLEAR = 10
"""The maximum number of unclear changes in the summary."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of two audits.

    Parameters
    ----------
    changes : the changes of numbers with a finding in both audits, verdict flips first, then changes for the worse.
    others : the changes of other gaps, adjusted as a separate family.
    settings : sentences on differences in data, settings and models.
    confidence : confidence level of the intervals.
    shared : number of people in both audits, if both tables were given; None for independent samples.
    """

    changes: tuple[Change, ...]
    others: tuple[Change, ...]
    settings: tuple[Message, ...]
    confidence: float
    shared: int | None = None

    @property
    def flips(self) -> tuple[Change, ...]:
        """The changes with a different verdict."""
        return tuple(change for change in self.changes if change.old_verdict != change.new_verdict)

    @property
    def worse(self) -> tuple[Change, ...]:
        """The findings with a significant change for the worse."""
        return tuple(change for change in self.changes if change.direction == "worse")

    def summary(self) -> str:
        """Return the comparison as plain text."""
        return "\n".join(map(str, self._lines("compare.md (--out)")))

    def _lines(self, table: str) -> list[Message]:
        """Return the comparison as sentences; `table` names the place of the complete table."""
        count = say("findings", n=len(self.changes))
        lines = [say("compared", what=count, directions=_directions(self.changes))]
        if any(change.direction != "unclear" for change in self.others):
            others = say("other_gaps", n=len(self.others))
            lines.append(say("others_compared", what=others, directions=_directions(self.others)))
        lines += map(self._flipped, self.flips)
        lines += [
            change.message() for change in self.changes if change not in self.flips and change.direction != "unclear"
        ]
        lines += [say("among_others", change=change.message()) for change in self._other_changed_pairs()]
        return [*lines, *self._unclear(table), self._false_claims(), *self.settings]

    def _flipped(self, change: Change) -> Message:
        within = change.p_adjusted is not None and change.p_adjusted > 1 - self.confidence
        before, now = (_verdict_message(verdict) for verdict in (change.old_verdict, change.new_verdict))
        return say("flip_within_chance" if within else "flip", before=before, now=now, change=change.message())

    def _false_claims(self) -> Message:
        """Return a sentence on the probability of any false claim of a change, and its assumptions."""
        everything = (*self.changes, *self.others)
        is_some_changed = any(change.direction == "changed" for change in everything)
        return say(
            "false_claims",
            people=say("independent_samples") if self.shared is None else say("people_in_both", n=self.shared),
            words=say("worse_better_changed" if is_some_changed else "worse_or_better"),
            share=1 - self.confidence,
            rest=say("as_much_for_others") if self.others else None,
        )

    def _other_changed_pairs(self) -> list[Change]:
        """Return the other gap with the most significant change, for each metric and grouping."""
        pairs = {_gap_key(c, (c.group, c.reference)) for c in self.changes if c.same_pair}
        clear = [c for c in self.others if c.direction != "unclear" and None not in (c.group, c.reference, c.p_value)]
        first: dict[Key, Change] = {}
        for change in sorted(clear, key=lambda c: (c.kind == "ratio", c.p_value, -abs(c.change or 0.0))):
            if change.reference != OVERALL and _gap_key(change, (change.group, change.reference)) not in pairs:
                first.setdefault(_gap_key(change), change)
        return list(first.values())

    def _unclear(self, table: str) -> Iterator[Message]:
        """Yield the unclear changes with the smallest p-values, and the number of the rest."""
        unclear = [c for c in self.changes if c not in self.flips and c.direction == "unclear"]
        nearest = sorted(unclear, key=lambda change: 1.0 if change.p_value is None else change.p_value)
        yield from (change.message() for change in nearest[:MOST_UNCLEAR])
        if len(nearest) > MOST_UNCLEAR:
            yield say("more_unclear", n=len(nearest) - MOST_UNCLEAR, table=table)

    def __str__(self) -> str:
        return self.summary()

    def table(self) -> DisplayTable:
        """Return the compared findings as a table."""
        return _as_table(self.changes, "What changed", self.confidence)

    def _repr_html_(self) -> str:
        picture = slope_picture(self.changes)
        return f"{picture._repr_html_() if picture else ''}{self.table().to_html()}"

    def to_frame(self, backend: str | None = None) -> Any:
        """Return all changes as a data frame, the changes of findings first."""
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
                    "settings": [sentence.to_dict() for sentence in self.settings],
                    **rows,
                }
            )
        )

    def to_markdown(self) -> str:
        """Return the comparison as Markdown."""
        tables = [self.table(), _as_table(self.others, "Other gaps", self.confidence)]
        parts = [f"## {table.caption}\n\n{table.to_markdown()}" for table in tables if table.rows]
        drawn = [f"![{picture.title}](compare.svg)"] if (picture := slope_picture(self.changes)) else []
        return "\n\n".join(["# Two audits compared", *map(str, self._lines("the table below")), *drawn, *parts, ""])

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write compare.md, compare.json and, if drawable, compare.svg into a folder; return their paths."""
        files = {"compare.md": self.to_markdown(), "compare.json": self.to_json()}
        if (picture := slope_picture(self.changes)) is not None:
            files["compare.svg"] = picture.to_svg(name="compare")
        return write_files(folder, files)

    def plot(self) -> Picture:
        """Return a chart with every compared finding before and now, joined by a line."""
        if (picture := slope_picture(self.changes)) is None:
            raise ConfigError("there is nothing to draw: no finding has a number in both audits.")
        return picture


def _directions(changes: Sequence[Change]) -> Message:
    counted = Counter(change.direction for change in changes)
    words = {name: counted[name] for name in ("worse", "better", "changed", "unclear")}
    return say("directions_changed" if counted["changed"] else "directions", **words)


def _verdict_message(verdict: str | None) -> Message:
    return shared(f"it_{_verdict(verdict)}")


def _flip(change: Change) -> str:
    before, now = (_verdict_message(verdict) for verdict in (change.old_verdict, change.new_verdict))
    return f"from “{before}” to “{now}”"


def _then_now(old: str | None, new: str | None) -> str | None:
    return new if old == new else f"{old} → {new}"


def _gap_key(change: Change, pair: tuple[str | None, ...] = ()) -> Key:
    """Return a key of a gap's metric and people, optionally with its two groups."""
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
    return next((known_verdict for known_verdict in VERDICTS if known_verdict == verdict), "no_threshold")


def _as_table(changes: Sequence[Change], caption: str, confidence: float) -> DisplayTable:
    columns = {
        "Finding": lambda r: _then_now(r.old_number, r.number),
        "Audit": lambda r: r.audit,
        "Model": lambda r: r.model,
        "Grouping": lambda r: r.grouping,
        "Group": lambda r: _then_now(r.old_group, r.group),
        "Compared with": lambda r: _then_now(r.old_reference, r.reference),
        "Stratum": lambda r: r.stratum,
        "Of": lambda r: r.coordinates,
        "Metric": lambda r: r.named_metric.title,
        "Kind": lambda r: r.kind,
        "Before": lambda r: Number(r.old, r.style),
        "Now": lambda r: Number(r.new, r.style),
        "Change": lambda r: Number(r.change, r.signed_style),
        f"{show_confidence(confidence)} interval": lambda r: Range(r.low, r.high, r.signed_style),
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
    numbers, the lower limit is d - sqrt(a^2 + b^2 - 2 r a b) with a = new - l_new and b = u_old - old, and the upper
    limit is analogous. Its p-value treats the distance to the limit on the side of no change as a multiple of a
    standard error. If the direction of a gap is not clear, the limits allow for the opposite direction
    (`pairing.size_change`). For different people r is 0. For the same people r is the correlation of the two errors,
    from each person's influence on them (Zou 2007, Psychological Methods 12), which requires both tables. Without
    them, audits of the same data are refused.

    Parameters
    ----------
    old, new
        Audits, or folders with saved audits.
    tables
        The tables of the old and the new audit, if they share people: two models of the same people, or the same
        people twice. A number with unknown correlation, such as a gap within a stratum, has no interval.
    key
        The column that identifies people in both tables; by default their `id`, or else the order of rows.

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
    before, after = map(_as_audit, (old, new))
    if tables is None:
        require_other_data(before, after)
    shared = shared_audits(before, after)
    confidence = one_confidence(before, after, shared)
    pairing = None if tables is None else Pairing.of(before, after, tables, key)
    finding_changes: list[Change] = []
    others: list[Change] = []
    for name in shared:
        change = partial(changes_between, result=after.results[name], confidence=confidence, pairing=pairing)
        finding_changes += change(findings_by_key(before, name), findings_by_key(after, name))
        rest = change(gaps_by_key(before, name), gaps_by_key(after, name))
        about = {change_key(change) for change in finding_changes}
        others += [change for change in rest if change_key(change) not in about]
    changes = sorted(adjusted_changes(finding_changes, 1 - confidence), key=_order)
    people = None if pairing is None else pairing.shared
    others = list(adjusted_changes(others, 1 - confidence))
    differences = [*([] if pairing is None else _not_paired(shared)), *_differences(before, after)]
    return Comparison(tuple(changes), tuple(others), tuple(differences), confidence, people)


def _as_audit(given: object) -> Audit:
    """Return the audit, loading it if a folder is given."""
    if isinstance(given, Audit):
        return given
    if not isinstance(given, str | os.PathLike):
        raise ConfigError(
            "compare() takes audits, or the folders where they were saved; got a {kind}.", kind=type(given).__name__
        )
    folder = Path(given)
    return Audit.load(folder.parent if folder.name == "results.json" and folder.is_file() else folder)


def _not_paired(audits: Sequence[str]) -> Iterator[Message]:
    """Yield a message on audits whose changes have no intervals, since they lack the capability `pair`."""
    without = tuple(name for name in audits if REGISTRY[name].pair is None)
    if without:
        yield say("not_paired", n=len(without), audits=without)


def _order(change: Change) -> tuple[bool, int, float]:
    direction = ("worse", "better", "changed", "unclear").index(change.direction)
    p_value = 1.0 if change.p_adjusted is None else change.p_adjusted
    return change.old_verdict == change.new_verdict, direction, p_value


def _differences(before: Audit, after: Audit) -> Iterator[Message]:
    """Yield the differences in data, findings, references, settings and models."""
    rows = [audit.data["rows_used"] for audit in (before, after)]
    yield say("rows_then_now", before=rows[0], now=rows[1])
    yield from _without_counterpart(before, after)
    yield from _other_references(before, after)
    old, new = before.config.as_dict(), after.config.as_dict()
    for section in dict.fromkeys([*old, *new]):
        if section != "report":
            yield from setting_changes(f"[{section}]", old.get(section), new.get(section))


def _without_counterpart(before: Audit, after: Audit) -> Iterator[Message]:
    """Yield a message on the numbers of findings that are in only one of the audits."""
    shared = shared_audits(before, after)
    old, new = ({(name, key) for name in shared for key in findings_by_key(audit, name)} for audit in (before, after))
    if old != new:
        only = [say("findings", n=len(names - other)) for names, other in ((old, new), (new, old))]
        yield say("without_counterpart", old=only[0], new=only[1])


def _other_references(before: Audit, after: Audit) -> Iterator[Message]:
    """Yield the groupings with different reference groups, whose gaps to the reference cannot be compared.

    By default the reference is the largest group, which can change between groups of similar size.
    """
    for name in shared_audits(before, after):
        old, new = (_references(audit, name) for audit in (before, after))
        changed = [grouping for grouping in old.keys() & new.keys() if old[grouping] != new[grouping]]
        for grouping in sorted(changed):
            groups = {"old": tuple(sorted(old[grouping])), "new": tuple(sorted(new[grouping]))}
            yield say("reference_changed", audit=name, grouping=grouping, **groups)


def _references(audit: Audit, name: str) -> dict[str, set[str]]:
    """Return the reference groups of an audit's gaps, by grouping."""
    found: dict[str, set[str]] = {}
    for gap in audit.results[name].tables.get("gaps", ()):
        if (
            isinstance(gap, Gap)
            and gap.against == "reference"
            and gap.grouping is not None
            and gap.reference is not None
        ):
            found.setdefault(gap.grouping, set()).add(gap.reference)
    return found
