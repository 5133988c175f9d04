"""Read the rows of the test from a table: groups, outcomes, features, decisions and scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from evenhand.audits.improvability.candidates import Candidate, described
from evenhand.audits.improvability.messages import say
from evenhand.audits.improvability.spec import STATUS_QUO, ImprovabilitySpec
from evenhand.core.groups import largest_first, ranks_of_groups, require_reference
from evenhand.core.records import LeftOut
from evenhand.errors import ConfigError, DataError, EvenhandError, count, did_you_mean, problem, require_name
from evenhand.messages.shared import say as shared
from evenhand.models.estimators import ESTIMATORS
from evenhand.models.features import read_features
from evenhand.stats.clusters import FEWEST
from evenhand.stats.pairs import hashes
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.coding import Coded
from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit
from evenhand.table.keys import label_of, yes_or_no
from evenhand.table.keys import shown as shown_values
from evenhand.table.roles import MISSING, TIMES, Scalar
from evenhand.table.rows import CodedRows
from evenhand.table.table import Table

Kind = Literal["score", "decision"]

_MOST_CODES = 50

TRANSFER = TransferLimit("the features, the outcome and the decisions, once", MOST_ROWS, REFUSED)
"""The most data that an engine sends to this process for an improvability audit."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Existing decisions, or scores with a cut-off.

    Parameters
    ----------
    values : the value of each row; nan where missing.
    kind : the kind of values, 'decision' or 'score'.
    threshold : the cut-off above which rows are selected, if no capacity ranks the scores.
    """

    values: FloatArray
    kind: Kind
    threshold: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditRows:
    """The rows of the test, in one canonical order.

    Parameters
    ----------
    grouping, groups, group : the grouping, its groups, and each row's group code.
    outcome : the outcomes; nan where unknown.
    features, labels, matrix : the names of the features, the text of their codes, and the matrix of numbers and codes.
    weight : the survey weights, or None.
    predictions : the columns of decisions or scores, by name.
    ids : an array of row identifiers, or None.
    columns : further columns that the utilities depend on.
    left_out : the rows left out, with the reasons.
    unlabelled : the number of rows left out for a missing outcome here, or for a missing outcome or prediction by the
        table.
    favourable : the decision that is good for a person, or None if it is unknown.
    cluster : the cluster of each row, 0, 1, ... in an order independent of names; None if rows are independent.
    """

    grouping: str
    groups: tuple[str, ...]
    group: IntArray
    outcome: FloatArray
    features: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    matrix: FloatArray
    weight: FloatArray | None
    predictions: Mapping[str, Predictions]
    ids: Any
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    unlabelled: int = 0
    favourable: str | None = None
    cluster: IntArray | None = None

    def __len__(self) -> int:
        return self.group.size

    @property
    def status_quo(self) -> Predictions:
        """The challenged decisions."""
        return self.predictions[STATUS_QUO]

    @property
    def binary(self) -> bool:
        """Whether every known outcome is 0 or 1."""
        return bool(np.isin(self.outcome[~np.isnan(self.outcome)], (0.0, 1.0)).all())

    def column_of(self, name: str, candidate: Candidate) -> Predictions:
        """Return the column of a candidate."""
        return self.predictions[_column_name(name, str(candidate.column))]

    def rows(self, chosen: IntArray) -> AuditRows:
        """Return the rows at some positions."""
        return replace(
            self,
            group=self.group[chosen],
            outcome=self.outcome[chosen],
            matrix=self.matrix[chosen],
            weight=None if self.weight is None else self.weight[chosen],
            predictions={
                name: replace(column, values=column.values[chosen]) for name, column in self.predictions.items()
            },
            ids=None if self.ids is None else self.ids[chosen],
            columns={name: values[chosen] for name, values in self.columns.items()},
            cluster=None if self.cluster is None else self.cluster[chosen],
        )

    @property
    def contents(self) -> list[FloatArray]:
        """The numeric columns: outcome, features (or else predictions), columns of utilities, and weights."""
        names = sorted(self.predictions, key=lambda name: name != STATUS_QUO)
        features = self.matrix.T if self.features else [self.predictions[name].values for name in names]
        weight = [] if self.weight is None else [self.weight]
        return [self.outcome, *features, *self.columns.values(), *weight]

    def digest(self) -> str:
        """Return the SHA-256 of all data behind the results, the same on every engine."""
        digest = hashlib.sha256(json.dumps([self.groups, self.features, sorted(self.labels.items())]).encode())
        weight = [] if self.weight is None else [self.weight]
        existing = [column.values for _, column in sorted(self.predictions.items())]
        more = [values for _, values in sorted(self.columns.items())]
        for column in (self.outcome, *self.matrix.T, *existing, *more, *weight):
            digest.update(np.ascontiguousarray(column + 0.0, dtype="<f8").tobytes())
        clusters = [] if self.cluster is None else [self.cluster]
        for codes in (self.group, *clusters):
            digest.update(np.ascontiguousarray(codes, dtype="<i8").tobytes())
        return digest.hexdigest()


def read_sample(table: Table, spec: ImprovabilitySpec) -> AuditRows:
    """Read the rows of a table, without rows that lack a group or belong to a too small group.

    All rows left out are counted.
    """
    grouping = _grouping(table, spec)
    _refuse_features(table, spec, grouping)
    outcome = _outcome_column(table, spec)
    columns = {"outcome": outcome, **{f"features[{i}]": name for i, name in enumerate(spec.features)}}
    sources = dict(_sources(table, spec))
    columns |= {name: source.column for name, source in sources.items()}
    more = dict.fromkeys(name for utility in spec.criteria.utilities for name in utility.columns)
    columns |= {f"utility[{name}]": name for name in more}
    columns |= {role: name for role in ("id", "cluster") if (name := getattr(table.roles, role)) is not None}
    rows = table.coded_rows(columns)
    codes, names = rows.groups.joint(table.groupings[grouping])
    require_reference({grouping: names}, None)
    coded = {name: rows.columns[f"features[{i}]"] for i, name in enumerate(spec.features)}
    features = read_features(coded, rows=len(rows.groups.n))
    ids = rows.columns.get("id")
    sample = AuditRows(
        grouping=grouping,
        groups=names,
        group=codes,
        outcome=_outcome(rows.columns["outcome"], outcome, table, spec),
        features=features.names,
        labels=features.labels,
        matrix=features.values,
        weight=rows.weight,
        predictions={name: _predictions(rows.columns[name], source) for name, source in sources.items()},
        ids=np.array(ids.labels, dtype=object)[ids.codes] if ids is not None else None,
        favourable=_favourable(table, spec),
        columns={name: _utility_column(rows.columns[f"utility[{name}]"], name) for name in more},
        cluster=_clusters(rows),
    )
    complete = _complete_rows(sample.rows(_canonical_order(rows)), table, spec)
    return _in_order_of_clusters(_in_order_of_groups(_with_model_scores(complete, spec)))


def _clusters(rows: CodedRows) -> IntArray | None:
    return rows.columns["cluster"].codes if "cluster" in rows.columns else None


def _grouping(table: Table, spec: ImprovabilitySpec) -> str:
    if not table.groupings:
        raise ConfigError("improvability compares groups; name the table's `groups`.")
    if spec.grouping is None and len(table.groupings) > 1:
        raise ConfigError(
            "the table has {number} groupings; name the one to compare as `grouping`: {hint}.",
            number=len(table.groupings),
            hint=did_you_mean("", table.groupings),
        )
    grouping = next(iter(table.groupings)) if spec.grouping is None else spec.grouping
    require_name(grouping, table.groupings, "`grouping` is {name!r}; {hint}")
    return grouping


def _outcome_column(table: Table, spec: ImprovabilitySpec) -> str:
    column = spec.outcome or table.roles.outcome
    if column is None:
        raise ConfigError(
            "improvability needs to know what really happened; name the column as `outcome`, here or in the table."
        )
    return column


def _refuse_features(table: Table, spec: ImprovabilitySpec, grouping: str) -> None:
    for name, what in ((_outcome_column(table, spec), problem("the outcome")), (table.roles.id, problem("the id"))):
        if name in spec.features:
            raise ConfigError("`features` names {name!r}, which is {what}; leave it out.", name=name, what=what)
    for name in table.groupings[grouping]:
        if name in spec.features and not spec.use_group:
            raise ConfigError(
                "`features` names {name!r}, which the grouping is made of: a candidate that uses it would treat "
                "the groups differently on purpose, which is another question in law (disparate treatment). "
                "Leave it out, or set `use_group` to true where that is allowed.",
                name=name,
            )


class _Source(NamedTuple):
    """The source of decisions or scores; `whose` names their origin in messages."""

    whose: str
    column: str
    kind: Kind | None
    threshold: float | None
    selected: Scalar | None


def _sources(table: Table, spec: ImprovabilitySpec) -> Iterator[tuple[str, _Source]]:
    """Yield the sources of existing decisions and scores, by name.

    For a model, the column is its prediction's.
    """
    outcome = _outcome_column(table, spec)
    for name, source in _decision_sources(table, spec):
        whose, column, kind, threshold, selected = source
        if spec.predicts:
            column = table.prediction(column).column if column in table.models else column
            source = _Source(whose, column, "decision", None, None)
        elif column in table.models:
            prediction = table.prediction(column)
            kind = kind or ("score" if table.has_scores(column) else "decision")
            if threshold is None and spec.capacity is None:
                threshold = prediction.threshold
            selected = prediction.selected if selected is None else selected
            source = _Source(whose, prediction.column, kind, threshold, selected)
        if source.column == outcome:
            raise ConfigError(
                "{whose} is {outcome!r}, which is the outcome: nobody knows it when deciding. Name a column of "
                "decisions or scores.",
                whose=whose,
                outcome=outcome,
            )
        yield name, source


def _decision_sources(table: Table, spec: ImprovabilitySpec) -> Iterator[tuple[str, _Source]]:
    """Yield the sources of decisions or scores named in the settings."""
    quo = spec.status_quo
    if quo.column is not None:
        yield STATUS_QUO, _Source("status quo", quo.column, quo.kind, quo.threshold, quo.selected)
    for name, candidate in spec.candidates.items():
        for member in (candidate, *candidate.family):
            if member.column is not None:
                _require_column(table, name, member.column)
                source = _Source(f"candidate {name!r}", member.column, member.kind, member.threshold, None)
                yield _column_name(name, member.column), source


def _favourable(table: Table, spec: ImprovabilitySpec) -> str | None:
    """Return the decision that is good for a person, from the status quo's settings or the table's model."""
    quo = spec.status_quo
    if quo.favourable is None and quo.column is not None and quo.column in table.models:
        return table.prediction(quo.column).favourable
    return quo.favourable


def _column_name(candidate: str, column: str) -> str:
    """Return the name under which a candidate's column is read."""
    return f"candidate {candidate!r}, column {column!r}"


def _require_column(table: Table, candidate: str, column: str) -> None:
    existing_names = [*table.models, *table.source.names]
    if column not in existing_names:
        hint = did_you_mean(column, [*ESTIMATORS, "search", "sweep", "milp", "reductions", *existing_names])
        raise ConfigError(
            "the candidate {candidate!r} is {column!r}, which is no estimator, rule, model or column; {hint}",
            candidate=candidate,
            column=column,
            hint=hint,
        )


def _canonical_order(rows: CodedRows) -> IntArray:
    """Return an order of rows independent of their order in the data: by id, or else by all values."""
    if "id" in rows.columns:
        return np.asarray(np.argsort(rows.columns["id"].codes, kind="stable"))
    by: list[Any] = [coded.codes for name, coded in rows.columns.items() if name != "cluster"]
    weight = [] if rows.weight is None else [rows.weight]
    return np.asarray(np.lexsort([*by, *ranks_of_groups(rows.groups, [*by, *weight]), *weight]))


def _outcome(coded: Coded, column: str, table: Table, spec: ImprovabilitySpec) -> FloatArray:
    """Return the outcome as numbers: the column's values, or 1 for the positive value."""
    is_outcome = column == table.roles.outcome
    if table.roles.outcome_kind == "number" if is_outcome else _are_numbers(coded):
        _refuse_shares_of_right_decisions(column, spec)
        return _numbers(coded, f"the outcome {column!r}")
    yes = table.roles.positive if is_outcome else None
    return _decisions(coded, column, yes, "outcome")


def _refuse_shares_of_right_decisions(column: str, spec: ImprovabilitySpec) -> None:
    """Refuse a utility that counts decisions equal to a numeric outcome."""
    if spec.outcome is None and "classification" in (utility.name for utility in spec.criteria.utilities):
        raise ConfigError(
            "the utility 'classification' counts right decisions, and the outcome {column!r} is a number; name another "
            "`utility`, such as 'absolute_error' of predicted numbers, or 'calibration', the mean outcome of the "
            "selected.",
            column=column,
        )


def _predictions(coded: Coded, source: _Source) -> Predictions:
    _, column, kind, threshold, selected = source
    two_valued = selected is not None or None not in map(yes_or_no, coded.values)
    if kind is None:
        kind = "decision" if two_valued and threshold is None else "score"
    if kind == "decision" and (two_valued or not _are_numbers(coded)):
        return Predictions(_decisions(coded, column, selected, "decision"), "decision", None)
    if not _are_numbers(coded):
        raise DataError(
            "column {column!r} must hold decisions or scores; it holds {held}.",
            column=column,
            held=shown_values(list(coded.values), 3),
        )
    return Predictions(_numbers(coded), kind, threshold)


def _decisions(coded: Coded, column: str, yes: Scalar | None, role: str) -> FloatArray:
    """Return 1 for the positive value (or words for yes) and 0 for other values; nan where missing."""
    if yes is None:
        states = [yes_or_no(value) for value in coded.values]
        other = [value for value, state in zip(coded.values, states, strict=True) if state is None]
        if other:
            _refuse_other_words(other, column, role, numbers=_are_numbers(coded))
    else:
        states = [_text_of_value(value) == _text_of_value(yes) for value in coded.values]
        if states and not any(states):
            shown = shown_values(list(coded.values), 3)
            raise DataError(
                "no row of the {role} {column!r} is {yes!r}; it holds {held}.",
                role=role,
                column=column,
                yes=yes,
                held=shown,
            )
    return np.array([*states, np.nan], dtype=np.float64)[coded.codes]


def _refuse_other_words(other: list[Any], column: str, role: str, *, numbers: bool) -> None:
    """Refuse values that mean neither yes nor no."""
    more = problem("name it as `outcome` of the audit, or say" if role == "outcome" and numbers else "say")
    raise DataError(
        "the {role} {column!r} holds {held}, which is neither yes nor no; {more} which value counts ({which}).",
        role=role,
        column=column,
        held=shown_values(other, 3),
        more=more,
        which=problem("`positive` of the table" if role == "outcome" else "`selected`"),
    )


def _text_of_value(value: object) -> str:
    return label_of(value).strip().lower()


def _are_numbers(coded: Coded) -> bool:
    return all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in coded.values)


def _numbers(coded: Coded, what: str = "") -> FloatArray:
    """Return a numeric column's values; refuse infinite values in a named column."""
    values = np.array([*(float(value) for value in coded.values), np.nan])[coded.codes]
    if what and np.isinf(values).any():
        raise DataError("{what} holds infinite values; replace them.", what=what)
    return values


def _utility_column(coded: Coded, name: str) -> FloatArray:
    """Return a column that a utility depends on."""
    if not _are_numbers(coded):
        raise DataError(
            "a utility names {name!r}, which holds {held}; it needs numbers.",
            name=name,
            held=shown_values(list(coded.values), 3),
        )
    return _numbers(coded, f"the column {name!r} of a utility")


def _complete_rows(sample: AuditRows, table: Table, spec: ImprovabilitySpec) -> AuditRows:
    """Drop rows without a group, too small groups and, if requested, incomplete rows."""
    left_out = []
    if table.dropped:
        left_out.append(LeftOut(n=table.dropped, reason=shared("rows_dropped")))
    holes = {f"feature {name!r}": np.isnan(sample.matrix[:, i]) for i, name in enumerate(sample.features)}
    holes |= {name.replace("_", " "): np.isnan(column.values) for name, column in sample.predictions.items()}
    holes |= {f"column {name!r} of a utility": np.isnan(values) for name, values in sample.columns.items()}
    lost = np.zeros(len(sample), dtype=np.bool_)
    for name, hole in holes.items():
        if hole.any() and table.roles.missing != "drop":
            raise DataError(
                "{name} is missing in {rows} of {number:,}; fill them, or drop them with `missing='drop' in eh.Table`.",
                name=name,
                rows=count(int(hole.sum()), "row"),
                number=len(sample),
            )
        lost |= hole
    if lost.any():
        left_out.append(LeftOut(n=int(lost.sum()), reason=say("missing_score")))
    unlabelled = np.isnan(sample.outcome) & ~lost if table.roles.missing == "drop" else np.zeros_like(lost)
    if unlabelled.any():
        left_out.append(LeftOut(n=int(unlabelled.sum()), reason=say("missing_outcome")))
    sample, records = _large_groups(sample.rows(np.flatnonzero(~lost & ~unlabelled)), spec)
    before = table.dropped if spec.outcome is None else 0
    return replace(sample, left_out=(*left_out, *records), unlabelled=before + int(unlabelled.sum()))


def _large_groups(sample: AuditRows, spec: ImprovabilitySpec) -> tuple[AuditRows, list[LeftOut]]:
    sizes = np.bincount(sample.group, minlength=len(sample.groups))
    large = np.array([name != MISSING for name in sample.groups], dtype=np.bool_) & (sizes >= spec.min_count)
    reasons = {MISSING: say("missing_group")}
    if sample.cluster is not None:
        clusters = [np.unique(sample.cluster[sample.group == code]).size for code in range(len(sample.groups))]
        scattered = np.array(clusters) >= FEWEST
        few = [name for name, enough in zip(sample.groups, scattered | ~large, strict=True) if not enough]
        reasons |= dict.fromkeys(few, say("few_clusters", least=FEWEST))
        large &= scattered
    small = say("few_rows", least=spec.min_count)
    records = [
        LeftOut(grouping=sample.grouping, group=name, n=int(n), reason=reasons.get(name, small))
        for name, n, is_large in zip(sample.groups, sizes, large, strict=True)
        if not is_large
    ]
    kept = np.flatnonzero(large)
    groups = tuple(sample.groups[code] for code in kept)
    _require_groups(groups, sample.grouping, spec, records)
    codes = np.argsort(np.append(kept, np.flatnonzero(~large)))
    smaller = sample.rows(np.flatnonzero(large[sample.group]))
    return replace(smaller, group=codes[smaller.group], groups=groups), records


def _in_order_of_groups(sample: AuditRows) -> AuditRows:
    """Return the sample with its groups in an order independent of names."""
    order = largest_first(np.bincount(sample.group), sample.group, sample.contents)
    groups = tuple(sample.groups[code] for code in order)
    return replace(sample, group=np.argsort(order)[sample.group], groups=groups)


def _in_order_of_clusters(sample: AuditRows) -> AuditRows:
    """Return the sample with clusters numbered by size and a hash of their rows, independent of names."""
    if sample.cluster is None:
        return sample
    _, codes = np.unique(sample.cluster, return_inverse=True)
    signature = np.zeros(int(codes.max()) + 1, dtype=np.uint64)
    columns = [sample.group.astype(np.float64), *sample.contents]
    np.add.at(signature, codes, hashes(*(np.nan_to_num(column, nan=-1.0) for column in columns)))
    order = np.lexsort((signature, np.bincount(codes)))
    return replace(sample, cluster=np.argsort(order)[codes])


def _require_groups(groups: tuple[str, ...], grouping: str, spec: ImprovabilitySpec, left_out: list[LeftOut]) -> None:
    """Refuse fewer than two groups, and a pair with unknown groups."""
    if len(groups) < 2:
        small = "; ".join(f"{record.group!r} has {record.n}" for record in left_out if record.n)
        raise DataError(
            "improvability compares groups, and only {groups} of {grouping!r} {has} at least {least} rows{small}; use "
            "more rows, merge groups or lower `min_count`.",
            groups=count(len(groups), "group"),
            has="has" if len(groups) == 1 else "have",
            grouping=grouping,
            least=spec.min_count,
            small=f" ({small})" if small else "",
        )
    for name in spec.test.worst_pair or ():
        if name not in groups:
            hint = did_you_mean(name, groups)
            raise ConfigError(
                "`worst_pair` names {name!r}, which is no group of the test; {hint}", name=name, hint=hint
            )


def _with_model_scores(sample: AuditRows, spec: ImprovabilitySpec) -> AuditRows:
    """Return the sample with the status quo's scores, if the status quo is a model that computes them."""
    model, threshold = spec.status_quo.model, spec.status_quo.threshold
    if model is None:
        return sample
    values, is_chance = _scores(model, sample.matrix), hasattr(model, "predict_proba")
    if values.shape != (len(sample),) or not np.isfinite(values).all():
        raise EvenhandError("the status quo {model} must return one finite number a row.", model=described(model))
    if threshold is None and spec.capacity is None and is_chance:
        threshold = 0.5
    is_decision = threshold is None and bool(np.isin(values, (0.0, 1.0)).all())
    is_decision = is_decision or spec.predicts
    kind = spec.status_quo.kind or ("decision" if is_decision else "score")
    return replace(sample, predictions={**sample.predictions, STATUS_QUO: Predictions(values, kind, threshold)})


def _scores(model: object, matrix: FloatArray) -> FloatArray:
    chances: Callable[[FloatArray], object] | None = getattr(model, "predict_proba", None)
    predict: Callable[[FloatArray], object] | None = getattr(model, "predict", model if callable(model) else None)
    try:
        if chances is not None:
            return np.asarray(chances(matrix), dtype=np.float64)[:, 1]
        if predict is None:
            raise TypeError("it is no function and has no `predict`")
        return np.asarray(predict(matrix), dtype=np.float64)
    except Exception as error:
        raise EvenhandError(
            "the status quo {model} cannot score the features: {error}", model=described(model), error=error
        ) from error


def telling_features(sample: AuditRows) -> Iterator[str]:
    """Yield the features that reveal the group, except the grouping's own columns."""
    for position, name in enumerate(sample.features):
        if name in sample.grouping.split(TIMES):
            continue
        values, codes = np.unique(sample.matrix[:, position], return_inverse=True)
        if not 1 < values.size <= max(_MOST_CODES, len(sample.groups)):
            continue
        seen = np.zeros((values.size, len(sample.groups)), dtype=np.bool_)
        seen[codes.ravel(), sample.group] = True
        if (seen.sum(axis=1) == 1).all():
            yield name
