"""From a table to the rows of the test: groups, outcomes, features, and the decisions and scores that are given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from evenhand.audits.improvability.spec import ImprovabilitySpec
from evenhand.errors import ConfigError, DataError, count, did_you_mean
from evenhand.models.estimators import ESTIMATORS
from evenhand.models.features import MOST_LABELS
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.keys import FALSE_WORDS, TRUE_WORDS, label_of
from evenhand.table.keys import shown as shown_values
from evenhand.table.roles import MISSING, Scalar
from evenhand.table.rows import Coded, CodedRows
from evenhand.table.table import Table

Kind = Literal["score", "decision"]
EVERYONE = "(everyone)"


@dataclass(frozen=True, eq=False)
class Given:
    """Decisions, or scores with a threshold, that were there before.

    Parameters
    ----------
    values : one a row; nan where missing.
    kind : what they are.
    threshold : selected above it, where no capacity ranks the scores.
    """

    values: FloatArray
    kind: Kind
    threshold: float | None


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of the test, in one canonical order.

    Parameters
    ----------
    grouping, groups, group : the grouping, its groups, and the code of each row's.
    outcome : what happened; nan where it is not known.
    features, labels, matrix : the features, what the codes of text mean, and numbers and codes.
    weight : survey weights, or None.
    given : columns of decisions or scores by name.
    ids : what identifies the rows, or None.
    left_out : what was left out and why.
    unlabelled : how many rows were dropped for a missing outcome, by the table (or for a prediction) or here.
    """

    grouping: str
    groups: tuple[str, ...]
    group: IntArray
    outcome: FloatArray
    features: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    matrix: FloatArray
    weight: FloatArray | None
    given: Mapping[str, Given]
    ids: tuple[str, ...] | None
    left_out: tuple[dict[str, Any], ...] = ()
    unlabelled: int = 0

    def __len__(self) -> int:
        return self.group.size

    @property
    def binary(self) -> bool:
        """Whether every known outcome is 0 or 1."""
        return bool(np.isin(self.outcome[~np.isnan(self.outcome)], (0.0, 1.0)).all())

    @property
    def text(self) -> list[int]:
        """Positions of the features of text."""
        return [place for place, name in enumerate(self.features) if name in self.labels]

    @property
    def numbers(self) -> list[int]:
        """Positions of the features that are numbers."""
        return [place for place, name in enumerate(self.features) if name not in self.labels]

    def digest(self) -> str:
        """Return the SHA-256 of what every number is computed from; the same on every engine."""
        found = hashlib.sha256(json.dumps([self.groups, self.features, sorted(self.labels.items())]).encode())
        weight = [] if self.weight is None else [self.weight]
        for column in (self.outcome, *self.matrix.T, *(one.values for _, one in sorted(self.given.items())), *weight):
            found.update(np.ascontiguousarray(column + 0.0, dtype="<f8").tobytes())
        found.update(np.ascontiguousarray(self.group, dtype="<i8").tobytes())
        return found.hexdigest()


def read_sample(table: Table, spec: ImprovabilitySpec) -> Sample:
    """Read the rows of a table, and leave out those without a group, or in groups too small; all are counted."""
    grouping = _grouping(table, spec)
    _refuse_features(table, spec, grouping)
    outcome = _outcome_column(table, spec)
    columns = {"outcome": outcome, **{f"features[{i}]": name for i, name in enumerate(spec.features)}}
    sources = dict(_sources(table, spec))
    columns |= {name: column for name, (column, *_) in sources.items()}
    if table.roles.id is not None:
        columns["id"] = table.roles.id
    rows = table.coded_rows(columns)
    order = _canonical(rows)
    codes, names = rows.groups.joint(table.groupings[grouping])
    if EVERYONE in names:
        raise DataError(f"a group of {grouping!r} is called {EVERYONE!r}, the name of all groups together; rename it.")
    labels, matrix = _features(rows, spec)
    given = {name: _given(rows.columns[name], *about) for name, about in sources.items()}
    sample = Sample(
        grouping=grouping,
        groups=names,
        group=codes,
        outcome=_outcome(rows.columns["outcome"], outcome, table, spec),
        features=spec.features,
        labels=labels,
        matrix=matrix,
        weight=rows.weight,
        given=given,
        ids=_ids(rows.columns["id"]) if "id" in columns else None,
    )
    return _complete(_kept(sample, order), table, spec)


def _ids(coded: Coded) -> tuple[str, ...]:
    labels = coded.labels
    return tuple(labels[code] for code in coded.codes)


def _grouping(table: Table, spec: ImprovabilitySpec) -> str:
    if not table.groupings:
        raise ConfigError("improvability compares groups; name the table's `groups`.")
    if spec.grouping is None:
        if len(table.groupings) > 1:
            raise ConfigError(
                f"the table has {len(table.groupings)} groupings; name the one to compare as `grouping`: "
                f"{did_you_mean('', table.groupings)}."
            )
        return next(iter(table.groupings))
    if spec.grouping not in table.groupings:
        raise ConfigError(f"`grouping` is {spec.grouping!r}; {did_you_mean(spec.grouping, table.groupings)}")
    return spec.grouping


def _outcome_column(table: Table, spec: ImprovabilitySpec) -> str:
    column = spec.outcome or table.roles.outcome
    if column is None:
        raise ConfigError("improvability needs to know what really happened; name the `outcome` column.")
    return column


def _refuse_features(table: Table, spec: ImprovabilitySpec, grouping: str) -> None:
    for name, what in ((_outcome_column(table, spec), "the outcome"), (table.roles.id, "the id")):
        if name in spec.features:
            raise ConfigError(f"`features` names {name!r}, which is {what}; leave it out.")
    for name in table.groupings[grouping]:
        if name in spec.features and not spec.use_group:
            raise ConfigError(
                f"`features` names {name!r}, which the grouping is made of: a candidate that uses it would treat the "
                "groups differently on purpose, which is another question in law (disparate treatment). Leave it out, "
                "or set `use_group` to true where that is allowed."
            )


def _sources(table: Table, spec: ImprovabilitySpec) -> Iterator[tuple[str, tuple[str, Kind | None, Any, Any]]]:
    """Yield the columns of given decisions and scores: by name the column, its kind, threshold and selected value."""
    wanted: list[tuple[str, str, Kind | None, float | None, Scalar | None]] = []
    quo = spec.status_quo
    if quo.column is not None:
        wanted.append(("status_quo", quo.column, quo.kind, quo.threshold, quo.selected))
    for name, candidate in spec.candidates.items():
        for member in (candidate, *candidate.family):
            if member.column is not None:
                _require_column(table, name, member.column)
                wanted.append((given_key(name, member.column), member.column, None, member.threshold, None))
    for name, column, kind, threshold, selected in wanted:
        source = table.prediction(column).column if column in table.models else column
        if source == _outcome_column(table, spec):
            whose = name.split(", column")[0].replace("_", " ")
            raise ConfigError(
                f"{whose} is {source!r}, which is the outcome: nobody knows it when deciding. "
                "Name a column of decisions or scores."
            )
        if column not in table.models:
            yield name, (column, kind, threshold, selected)
            continue
        prediction = table.prediction(column)
        found: Kind = "score" if table.has_scores(column) else "decision"
        cut = threshold if threshold is not None or spec.capacity is not None else prediction.threshold
        yield name, (prediction.column, kind or found, cut, prediction.selected if selected is None else selected)


def given_key(candidate: str, column: str) -> str:
    """Return the name under which a candidate's column is read.

    Examples
    --------
    >>> given_key("mine", "score")
    "candidate 'mine', column 'score'"
    """
    return f"candidate {candidate!r}, column {column!r}"


def _require_column(table: Table, candidate: str, column: str) -> None:
    known = [*table.models, *table.source.frame.collect_schema().names()]
    if column not in known:
        hint = did_you_mean(column, [*ESTIMATORS, "search", "sweep", "milp", "reductions", *known])
        raise ConfigError(
            f"the candidate {candidate!r} is {column!r}, which is no estimator, rule, model or column; {hint}"
        )


def _canonical(rows: CodedRows) -> IntArray:
    """Return an order of rows that does not depend on theirs: by id, or else by all that is read of them."""
    if "id" in rows.columns:
        return np.asarray(np.argsort(rows.columns["id"].codes, kind="stable"))
    by: list[Any] = [coded.codes for coded in rows.columns.values()]
    by += [codes for _, codes in sorted(rows.groups.codes.items())]
    return np.asarray(np.lexsort([*by, *([] if rows.weight is None else [rows.weight])]))


def _features(rows: CodedRows, spec: ImprovabilitySpec) -> tuple[dict[str, tuple[str, ...]], FloatArray]:
    labels, columns = {}, []
    for place, name in enumerate(spec.features):
        coded = rows.columns[f"features[{place}]"]
        if _are_numbers(coded):
            columns.append(_numbers(coded))
            if np.isinf(columns[-1]).any():
                raise DataError(f"feature {name!r} holds infinite values; replace them.")
            continue
        if len(coded.values) > MOST_LABELS:
            raise DataError(
                f"feature {name!r} holds {len(coded.values):,} different texts, more than {MOST_LABELS}; "
                "put them into fewer kinds, or leave it out."
            )
        labels[name] = coded.labels
        columns.append(np.where(coded.codes < 0, np.nan, coded.codes))
    return labels, np.column_stack(columns) if columns else np.empty((len(rows.groups.n), 0))


def _outcome(coded: Coded, column: str, table: Table, spec: ImprovabilitySpec) -> FloatArray:
    """Return the outcome as numbers: those of the column, or 1 for what counts as positive."""
    if spec.outcome is not None and spec.outcome != table.roles.outcome and _are_numbers(coded):
        values = _numbers(coded)
        if np.isinf(values).any():
            raise DataError(f"the outcome {column!r} holds infinite values; replace them.")
        return values
    yes = table.roles.positive if column == table.roles.outcome else None
    return _decisions(coded, column, yes, "outcome")


def _given(coded: Coded, column: str, kind: Kind | None, threshold: float | None, selected: Scalar | None) -> Given:
    two_valued = selected is not None or all(_word(value) in TRUE_WORDS + FALSE_WORDS for value in coded.values)
    if kind is None:
        kind = "decision" if two_valued and threshold is None else "score"
    if kind == "decision" and (two_valued or not _are_numbers(coded)):
        return Given(_decisions(coded, column, selected, "decision"), "decision", None)
    if not _are_numbers(coded):
        raise DataError(
            f"column {column!r} must hold decisions or scores; it holds {shown_values(list(coded.values), 3)}."
        )
    return Given(_numbers(coded), kind, threshold)


def _decisions(coded: Coded, column: str, yes: Scalar | None, role: str) -> FloatArray:
    words = [_word(value) for value in coded.values]
    if yes is not None:
        found = [float(word == _word(yes)) for word in words]
        if coded.values and 1.0 not in found:
            raise DataError(
                f"no row of the {role} {column!r} is {yes!r}; it holds {shown_values(list(coded.values), 3)}."
            )
    else:
        odd = [value for value, word in zip(coded.values, words, strict=True) if word not in TRUE_WORDS + FALSE_WORDS]
        if odd:
            more = "name it as `outcome` of the audit, or say" if role == "outcome" and _are_numbers(coded) else "say"
            raise DataError(
                f"the {role} {column!r} holds {shown_values(odd, 3)}, which is neither yes nor no; {more} which value "
                f"counts ({'`positive` of the table' if role == 'outcome' else '`selected`'})."
            )
        found = [float(word in TRUE_WORDS) for word in words]
    return np.array([*found, np.nan])[coded.codes]


def _word(value: Any) -> str:
    return label_of(value).strip().lower()


def _are_numbers(coded: Coded) -> bool:
    return all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in coded.values)


def _numbers(coded: Coded) -> FloatArray:
    return np.array([*(float(value) for value in coded.values), np.nan])[coded.codes]


def _complete(sample: Sample, table: Table, spec: ImprovabilitySpec) -> Sample:
    """Leave out rows with something missing where that was asked for, and groups that are none or too small."""
    left_out = []
    if table.dropped:
        left_out.append(_record(None, None, table.dropped, "missing outcome or prediction: rows dropped"))
    holes = {f"feature {name!r}": np.isnan(sample.matrix[:, i]) for i, name in enumerate(sample.features)}
    holes |= {name.replace("_", " "): np.isnan(one.values) for name, one in sample.given.items()}
    lost = np.zeros(len(sample), dtype=np.bool_)
    for name, hole in holes.items():
        if hole.any() and table.roles.missing != "drop":
            raise DataError(
                f"{name} is missing in {count(int(hole.sum()), 'row')} of {len(sample):,}; fill them, or drop them "
                "with missing='drop'."
            )
        lost |= hole
    if lost.any():
        left_out.append(_record(None, None, int(lost.sum()), "missing feature, decision or score: rows dropped"))
    unlabelled = np.isnan(sample.outcome) & ~lost if table.roles.missing == "drop" else np.zeros_like(lost)
    if unlabelled.any():
        left_out.append(_record(None, None, int(unlabelled.sum()), "missing outcome: rows dropped"))
    sample, records = _large_groups(_kept(sample, np.flatnonzero(~lost & ~unlabelled)), spec)
    before = table.dropped if spec.outcome is None else 0
    return replace(sample, left_out=(*left_out, *records), unlabelled=before + int(unlabelled.sum()))


def _large_groups(sample: Sample, spec: ImprovabilitySpec) -> tuple[Sample, list[dict[str, Any]]]:
    sizes = np.bincount(sample.group, minlength=len(sample.groups))
    records, kept = [], []
    for code, (name, n) in enumerate(zip(sample.groups, sizes.tolist(), strict=True)):
        if name == MISSING:
            records.append(_record(sample.grouping, name, n, "missing group: rows left out of the test"))
        elif n < spec.min_count:
            reason = f"fewer than {spec.min_count} rows: left out of the test"
            records.append(_record(sample.grouping, name, n, reason))
        else:
            kept.append(code)
    if len(kept) < 2:
        small = "; ".join(f"{record['group']!r} has {record['n']}" for record in records if record["n"])
        raise DataError(
            f"improvability compares groups, and only {count(len(kept), 'group')} of {sample.grouping!r} "
            f"{'has' if len(kept) == 1 else 'have'} at least {spec.min_count} rows"
            + (f" ({small})" if small else "")
            + "; use more rows, merge groups or lower `min_count`."
        )
    for name in spec.worst_pair or ():
        if name not in [sample.groups[code] for code in kept]:
            hint = did_you_mean(name, [sample.groups[code] for code in kept])
            raise ConfigError(f"`worst_pair` names {name!r}, which is no group of the test; {hint}")
    new = np.full(len(sample.groups), -1, dtype=np.int64)
    new[kept] = np.arange(len(kept))
    rows: BoolArray = new[sample.group] >= 0
    smaller = _kept(sample, np.flatnonzero(rows))
    return replace(smaller, group=new[smaller.group], groups=tuple(sample.groups[code] for code in kept)), records


def _kept(sample: Sample, rows: IntArray) -> Sample:
    return replace(
        sample,
        group=sample.group[rows],
        outcome=sample.outcome[rows],
        matrix=sample.matrix[rows],
        weight=None if sample.weight is None else sample.weight[rows],
        given={name: replace(one, values=one.values[rows]) for name, one in sample.given.items()},
        ids=None if sample.ids is None else tuple(sample.ids[row] for row in rows),
    )


def _record(grouping: str | None, group: str | None, n: int, reason: str) -> dict[str, Any]:
    return {"model": None, "grouping": grouping, "group": group, "n": int(n), "reason": reason}
