"""`evenhand init`: look at a table, guess the roles of its columns, write a commented audit.toml that runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import FINE, print_line
from evenhand.errors import ConfigError
from evenhand.table.files import FileOptions
from evenhand.table.profile import ColumnProfile, profile

_WORDS = {
    "id": "id uuid key household person applicant customer patient defendant case",
    "group": "race ethnicity ethnic sex gender age religion disability disabled nationality country marital language "
    "veteran orientation region citizenship agegroup agecat",
    "outcome": "outcome label target truth actual y recid reoffended default defaulted missed repaid churned "
    "readmitted employed performed died event result observed",
    "score": "score risk prob probability proba pred prediction predicted model logit rating decile yhat",
    "decision": "decision approved approve selected select flag flagged accepted accept denied offer granted "
    "shortlisted admitted invited yhat pred predicted prediction hired",
    "weight": "weight weights wt pweight sampleweight",
}
_RISK_WORDS = {"risk", "recid", "default", "fraud", "flag", "flagged", "denied", "decile"}
_MOST_GROUPS = 20
_FURTHER_SETTINGS = """\
[parity]
# metrics = ["selection_rate", "tpr", "fpr"]    # default: all that the data allows
# within = ["..."]    # a legitimate factor: compare like with like
# reference = "..."    # default: the largest group
# min_count = 10    # smaller groups are listed but left out of gaps

# Thresholds are yours. With --check, a broken one makes the command fail.
# [[thresholds]]
# metric = "selection_rate"
# min = 0.8    # smallest ratio between two groups; or max = 0.1 for the largest difference

# [report]
# title = "Fairness audit"
# system = "..."
# auditor = "..."
"""


def init(
    data: Annotated[str, typer.Argument(help="A CSV, Parquet or JSON file (a glob in quotes).")],
    path: Annotated[Path, typer.Option("--out", "-o", help="Where to write the audit.toml.")] = Path("audit.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    decimal: Annotated[str, typer.Option(help="Decimal sign of a CSV file: '.' or ','.")] = ".",
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a CSV file: utf-8, latin-1 or utf-16 (default: guessed).")
    ] = None,
) -> int:
    """Look at a table, guess what its columns mean, and write a commented audit.toml that runs as it is.

    Read what it guessed before you trust a number: only you know what the columns mean.
    """
    if path.exists() and not force:
        raise ConfigError(f"'{path}' exists already; give --force to overwrite it, or another name with --out.")
    options = FileOptions.parse({"decimal": decimal, "encoding": encoding}, "the options of the command")
    columns = profile(data, options)
    roles = propose(columns)
    _require_roles(data, roles, columns)
    text = "\n".join(_toml(_relative(data, path), options, roles, columns)) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    print_line(f"Wrote {path}")
    for role, value in _summary(roles):
        print_line(f"  {role:<12}{value}")
    print_line(f"Check these roles, then: evenhand audit {path}")
    return FINE


def _require_roles(data: str, roles: Proposal, columns: Sequence[ColumnProfile]) -> None:
    lacking = [] if roles.scores or roles.decisions else ["a score or a decision"]
    lacking += [] if roles.groups else ["a group"]
    if lacking:
        names = ", ".join(column.name for column in columns[:30])
        raise ConfigError(
            f"no column of '{data}' looks like {', or like '.join(lacking)}; name the columns yourself, for example: "
            f"evenhand audit {data} --groups COLUMN --scores COLUMN (columns: {names})"
        )


def _relative(data: str, path: Path) -> str:
    """Return the data's path as seen from the audit.toml, which is where it is looked up."""
    return Path(os.path.relpath(data, path.parent)).as_posix()


def _summary(roles: Proposal) -> Iterator[tuple[str, str]]:
    yield "id", roles.id or "none found"
    yield "outcome", roles.outcome.name if roles.outcome else "none found: error rates need one"
    yield "groups", ", ".join(column.name for column in roles.groups)
    yield "scores", ", ".join(column.name for column in roles.scores) or "none found"
    yield "decisions", ", ".join(column.name for column in roles.decisions) or "none found"
    if roles.weight:
        yield "weight", roles.weight
    if roles.drops_rows:
        yield "missing", "drop: some rows have no outcome or prediction; they are dropped and counted"


def _text(value: object) -> str:
    """Return a TOML string; JSON's quoting is TOML's for every text."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(source: str, options: FileOptions, roles: Proposal, columns: Sequence[ColumnProfile]) -> Iterator[str]:
    yield "# What evenhand guessed from the data. Check every role: only you know what the columns mean."
    yield "# Run it with evenhand audit and the name of this file."
    yield ""
    yield "[data]"
    yield f"source = {_text(source)}    # a CSV, Parquet or JSON file, or a glob; seen from this file's folder"
    if options.decimal != ".":
        yield f"decimal = {_text(options.decimal)}"
    if options.encoding:
        yield f"encoding = {_text(options.encoding)}"
    yield from _person_and_outcome(roles)
    yield from _groups(roles.groups)
    yield from _weight_and_sides(roles)
    yield ""
    yield from _predictions(roles)
    yield from _FURTHER_SETTINGS.splitlines()
    unused = [column.name for column in columns if column.name not in _used(roles)]
    if unused:
        yield ""
        yield f"# Columns not used: {', '.join(_text(name) for name in unused)}"


def _person_and_outcome(roles: Proposal) -> Iterator[str]:
    if roles.id:
        yield f"id = {_text(roles.id)}    # identifies a person; must not repeat"
    if roles.outcome:
        yield f"outcome = {_text(roles.outcome.name)}    # what really happened"
        yield "# positive = 1    # the outcome's value that counts as positive (default: 1, true, yes)"
    else:
        yield '# outcome = "..."    # what really happened: error rates and calibration need it'


def _groups(columns: Sequence[ColumnProfile]) -> Iterator[str]:
    groups = [_text(column.name) for column in columns]
    if len(groups) > 1:
        groups.append(f"[{groups[0]}, {groups[1]}]")
    yield f"groups = [{', '.join(groups)}]    # a list inside the list is an intersection"
    cuts = ((column.name, cut_points(column)) for column in columns)
    inner = ", ".join(f"{_text(name)} = {points}" for name, points in cuts if points)
    if inner:
        yield f"cuts = {{ {inner} }}    # numeric groups: under the first cut, between cuts, the last and over"


def _weight_and_sides(roles: Proposal) -> Iterator[str]:
    if roles.weight:
        yield f"weight = {_text(roles.weight)}    # survey weight"
    else:
        yield '# weight = "..."    # survey weight, if any'
    side = "not_selected" if is_risk(column.name for column in (*roles.scores, *roles.decisions)) else "selected"
    yield f"favourable = {_text(side)}    # is being selected good for the person ('selected') or bad ('not_selected')?"
    rows = _text("drop" if roles.drops_rows else "error")
    yield f"missing = {rows}    # rows without outcome or prediction: 'error' or 'drop' (counted)"


def _predictions(roles: Proposal) -> Iterator[str]:
    kinds = [*((column, "score") for column in roles.scores), *((column, "decision") for column in roles.decisions)]
    for column, kind in kinds:
        yield f"[data.predictions.{_text(column.name)}]"
        yield f"column = {_text(column.name)}"
        yield f"kind = {_text(kind)}"
        low, high = column.low or 0.0, column.high or 0.0
        if kind == "score" and (low < 0 or high > 1):
            ends = f"{_number(low)}, {_number(high)}"
            yield f"range = [{ends}]    # lowest and highest possible score: seen in the data, check it"
            yield f"threshold = {_number((low + high) / 2)}    # selected when the score is above it: check it"
        elif kind == "score":
            yield "threshold = 0.5    # selected when the score is above it"
        yield ""


def _number(value: float) -> str:
    """Return a number without losing a digit: a range must hold every score seen."""
    return str(int(value)) if value.is_integer() else repr(value)


def _used(roles: Proposal) -> set[str | None]:
    named = {column.name for column in (*roles.groups, *roles.scores, *roles.decisions)}
    return named | {roles.id, roles.weight, roles.outcome.name if roles.outcome else None}


@dataclass
class Proposal:
    """Roles that a table seems to have, with a reason for each."""

    id: str | None = None
    outcome: ColumnProfile | None = None
    groups: list[ColumnProfile] = field(default_factory=list)
    scores: list[ColumnProfile] = field(default_factory=list)
    decisions: list[ColumnProfile] = field(default_factory=list)
    weight: str | None = None

    @property
    def drops_rows(self) -> bool:
        """Whether some row lacks its outcome or prediction."""
        return any(c.missing for c in (self.outcome, *self.scores, *self.decisions) if c is not None)


def propose(columns: Sequence[ColumnProfile]) -> Proposal:
    """Guess the roles of columns from their names and values."""
    free = list(columns)
    roles = Proposal(id=_take(free, _is_id), weight=_take(free, _is_weight))
    roles.groups = _groups_by_name(free)
    free = [c for c in free if c not in roles.groups]
    roles.scores = [c for c in free if _is_score(c)]
    roles.decisions, roles.outcome = _decisions_and_outcome([c for c in free if c.two_valued], bool(roles.scores))
    if not roles.groups:  # none sounds like one: what could be one
        used = [*roles.scores, *roles.decisions, roles.outcome]
        roles.groups = [c for c in free if c not in used and c.kind in ("text", "boolean") and _can_group(c)][:3]
    return roles


def _decisions_and_outcome(
    binary: Sequence[ColumnProfile], has_scores: bool
) -> tuple[list[ColumnProfile], ColumnProfile | None]:
    """Tell decisions from the outcome; where nothing else predicts, what looks like an outcome must be the decision."""
    decisions = [c for c in binary if _sounds(c, "decision") and not _sounds(c, "outcome")]
    others = [c for c in binary if c not in decisions]
    outcome = next((c for c in others if _sounds(c, "outcome")), others[0] if others else None)
    if outcome is not None and not decisions and not has_scores:
        return [outcome], None
    return decisions, outcome


def cut_points(column: ColumnProfile) -> list[int] | None:
    """Return cut points for a numeric group column with many values; the usual ones for an age."""
    if not _is_number(column) or column.distinct <= _MOST_GROUPS or column.low is None or column.high is None:
        return None
    if "age" in words(column.name):
        return [cut for cut in (25, 45, 65) if column.low < cut <= column.high] or None
    step = (column.high - column.low) / 4
    cuts = sorted({round(column.low + step * part) for part in (1, 2, 3)})
    return cuts if len(cuts) == 3 else None


def is_risk(names: Iterable[str]) -> bool:
    """Tell whether being selected sounds bad for the person, as with a risk score."""
    return any(_RISK_WORDS & set(words(name)) for name in names)


def words(name: str) -> list[str]:
    """Split a column name into lower-case words.

    Examples
    --------
    >>> words("riskScore_XGB"), words("age_group")
    (['risk', 'score', 'xgb'], ['age', 'group'])
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]


def _sounds(column: ColumnProfile, role: str) -> bool:
    return bool(set(words(column.name)) & set(_WORDS[role].split()))


def _take(free: list[ColumnProfile], fits: Callable[[ColumnProfile], bool]) -> str | None:
    """Take the first column that fits out of the free ones, and return its name."""
    column = next((c for c in free if fits(c)), None)
    if column is None:
        return None
    free.remove(column)
    return column.name


def _is_id(column: ColumnProfile) -> bool:
    return column.unique and column.kind in ("whole", "text") and _sounds(column, "id")


def _is_weight(column: ColumnProfile) -> bool:
    return _sounds(column, "weight") and _is_number(column) and (column.low or 0) >= 0


def _groups_by_name(free: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Return what sounds like a group, but not a number such as `age` where the table has `age_group` too."""
    groups = [c for c in free if _sounds(c, "group") and _can_group(c)]
    return [
        c
        for c in groups
        if not (cut_points(c) and any(o is not c and set(words(c.name)) < set(words(o.name)) for o in groups))
    ]


def _is_number(column: ColumnProfile) -> bool:
    return column.kind in ("whole", "real")


def _can_group(column: ColumnProfile) -> bool:
    if column.distinct < 2 or column.kind in ("other", "date", "datetime"):
        return False
    if _is_number(column):
        return column.distinct <= _MOST_GROUPS or cut_points(column) is not None
    return column.distinct <= _MOST_GROUPS * 5


def _is_score(column: ColumnProfile) -> bool:
    if not _is_number(column) or column.distinct <= 2 or column.low is None or column.high is None:
        return False
    if not (isfinite(column.low) and isfinite(column.high)):
        return False
    unit = column.kind == "real" and column.low >= 0 and column.high <= 1
    return _sounds(column, "score") and (unit or column.kind == "real" or column.distinct <= 100)
