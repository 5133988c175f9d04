"""Read the people of a table (numeric and coded features, groups, outcome) and the ratings of a pilot."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.noise import PilotTable
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.findings import join_sentences
from evenhand.core.groups import ranks_of_groups
from evenhand.errors import ConfigError, DataError, EvenhandError, problem
from evenhand.messages import Message, showable
from evenhand.models.features import Feature, FeatureMatrix, read_features
from evenhand.stats.noise import Pilot
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.cells import Cells
from evenhand.table.coding import Coded
from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit
from evenhand.table.frames import TableData
from evenhand.table.keys import label_of, yes_or_no
from evenhand.table.roles import MISSING, Scalar
from evenhand.table.sources import engine_errors, open_source
from evenhand.table.table import Table

Groupings = Mapping[str, tuple[str, ...]]
"""The groupings of a table with their columns."""

FEW_RATED_TWICE = 60
"""The size of a pilot below which a note warns: at this size, the gap of a simulated pilot was near the true one."""

MOST_ASKED = 500  # people scored to test a model or a user's function

TRANSFER = TransferLimit("the features and the outcome, once", MOST_ROWS, REFUSED)
"""The most data that an engine sends to this process for a reliability audit."""


class ModelFeature(Feature):
    """A feature in the form that models receive."""

    @property
    def is_text(self) -> bool:
        """Whether the feature's numbers are codes of text."""
        return self.kind == "text"

    @property
    def categorical(self) -> bool:
        """Whether the feature is categorical: text, truth values, or only 0 and 1."""
        return self.kind != "number" or bool(np.isin(self.distinct, (0.0, 1.0)).all())

    @property
    def whole(self) -> bool:
        """Whether all values of the feature are whole numbers."""
        return bool(np.all(self.distinct == np.rint(self.distinct)))

    def number_of(self, value: Scalar) -> float:
        """Return the number that stands for a value as the user writes it."""
        word = value if isinstance(value, str) else label_of(value)
        if self.is_text:
            if word in self.labels:
                return float(self.labels.index(word))
        else:
            try:
                return {"true": 1.0, "false": 0.0}[word] if word in ("true", "false") else float(value)
            except ValueError:
                pass
        allowed = ", ".join(self.shown(number) for number in self.distinct[:8])
        raise ConfigError(
            "`noise` names the value {value!r} of {name!r}, which does not hold it; it has {known}.",
            value=value,
            name=self.name,
            known=allowed,
        )

    def shown(self, number: float) -> str:
        """Return a number as the value shown in the data."""
        return repr(showable(self.labels[int(number)])) if self.is_text else f"{number:g}"

    def as_column(self, numbers: FloatArray) -> npt.NDArray[Any]:
        """Return numbers as a column of the data's type, with None for missing text."""
        if self.is_text:
            values = np.array([*self.labels, None], dtype=object)
            return values[np.where(np.isnan(numbers), len(self.labels), numbers).astype(np.int64)]
        if self.kind == "truth" and not np.isnan(numbers).any():
            return numbers.astype(np.bool_)
        return numbers

    def as_model_input(self, numbers: FloatArray) -> npt.NDArray[Any]:
        """Return numbers as a column of a model's input frame: integers if the data has integers and all are whole."""
        column = self.as_column(numbers)
        if self.integer and np.all(np.abs(numbers) < 2.0**53) and np.all(numbers == np.rint(numbers)):
            return column.astype(np.int64)
        return column


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredPeople:
    """The people of a reliability audit.

    Parameters
    ----------
    features : the columns of `matrix`.
    matrix : (people, features) numbers, and codes of text; nan where missing.
    groups : the group codes of each person.
    outcome : whether each person's outcome is positive; None if the table has no outcome.
    dropped : people left out for a missing feature.
    copies : the number of people identical to another person in all of these values; 0 if the table has an id.
    """

    features: tuple[ModelFeature, ...]
    matrix: FloatArray
    groups: Cells
    outcome: BoolArray | None
    dropped: int
    copies: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(feature.name for feature in self.features)

    def positions(self, names: Sequence[str]) -> list[int]:
        """Return the positions of features in the matrix."""
        return [self.names.index(name) for name in names]

    @property
    def contents(self) -> list[FloatArray | BoolArray]:
        """The columns of the features, and of the outcome if there is one."""
        return [*self.matrix.T, *([] if self.outcome is None else [self.outcome])]

    def sample(self) -> IntArray:
        """Return the positions of a few people, evenly spaced in the table, to test a model or function on."""
        return np.linspace(0, len(self.matrix) - 1, min(MOST_ASKED, len(self.matrix))).astype(np.int64)

    def digest(self) -> str:
        """Return the SHA-256 digest of all data that the results depend on.

        It does not depend on the engine or the order of rows.
        """
        head = repr(
            (self.names, [feature.labels if feature.is_text else None for feature in self.features], self.matrix.shape)
        )
        digest = hashlib.sha256(head.encode())
        digest.update(np.ascontiguousarray(self.matrix + 0.0, dtype="<f8").tobytes())
        for name in sorted(self.groups.codes):
            digest.update(np.ascontiguousarray(self.groups.codes[name], dtype="<i8").tobytes())
        if self.outcome is not None:
            digest.update(self.outcome.tobytes())
        return digest.hexdigest()


def gather(table: Table, spec: ReliabilitySpec) -> ScoredPeople:
    """Read the people of a table; refuse, drop or keep people with a missing feature."""
    _require_roles(table, spec)
    has_outcome = table.roles.outcome is not None and not spec.scoring.are_numbers
    outcome = {"outcome": str(table.roles.outcome)} if has_outcome else {}
    rows = table.coded_rows({f"feature {name}": name for name in spec.features} | outcome)
    columns = {name: rows.columns[f"feature {name}"] for name in spec.features}
    read = read_features(columns, rows.groups.rows)
    features, matrix = [_model_feature(feature, columns[feature.name]) for feature in read.features], read.values
    positive = _positive(rows.columns["outcome"], table.roles.positive) if outcome else None
    keep = _rows_to_keep(read, spec.scoring.missing or table.roles.missing)
    # Engines return rows in any order; people equal in all these values are exchangeable.
    outcome_column = [] if positive is None else [positive[keep]]
    contents = [*matrix[keep].T, *outcome_column]
    columns_used = [*contents, *ranks_of_groups(rows.groups.where(keep), contents)]
    sorting = np.lexsort(columns_used)
    order = np.flatnonzero(keep)[sorting]
    return ScoredPeople(
        features=tuple(features),
        matrix=np.ascontiguousarray(matrix[order]),
        groups=rows.groups.where(order),
        outcome=None if positive is None else positive[order],
        dropped=int((~keep).sum()),
        copies=0 if table.roles.id is not None else _count_copies([column[sorting] for column in columns_used]),
    )


def _rows_to_keep(read: FeatureMatrix, policy: str) -> BoolArray:
    """Return the mask of people to keep under the policy for missing features, or refuse the table."""
    if policy == "error":
        read.refuse_missing(advice=_MISSING_ADVICE)
    keep = read.complete if policy == "drop" else np.ones(len(read.values), dtype=np.bool_)
    if not keep.any():
        raise DataError("no people are left after leaving out those with a missing feature.")
    return keep


def _count_copies(columns: Sequence[npt.NDArray[Any]]) -> int:
    """Return the number of rows in sorted columns that equal the row before."""
    same = np.ones(len(columns[0]) - 1, dtype=np.bool_)
    for column in columns:
        same &= (column[1:] == column[:-1]) | ((column[1:] != column[1:]) & (column[:-1] != column[:-1]))  # nan
    return int(same.sum())


_MISSING_ADVICE = problem(
    "fill them, leave these people out with `missing='drop'`, or give them to the model as they are with "
    "`missing='keep'`"
)


def _require_roles(table: Table, spec: ReliabilitySpec) -> None:
    if not table.groupings:
        raise ConfigError("the table names no groups; give `groups=['column', ...]`.")
    for column, what in ((table.roles.outcome, problem("the outcome")), (table.roles.id, problem("the id"))):
        if column is not None and column in spec.features:
            raise ConfigError("`features` names {column!r}, which is {what}; leave it out.", column=column, what=what)


def _model_feature(feature: Feature, column: Coded) -> ModelFeature:
    """Return a feature for the user's models; truth values written as text stay text."""
    kind, labels = feature.kind, feature.labels
    if kind == "truth" and isinstance(column.values[0], str):
        written = {value.lower(): value for value in map(str, column.values)}
        kind, labels = "text", tuple(written.get(label, label) for label in labels)
    return ModelFeature(feature.name, kind, labels, feature.distinct, feature.integer)


def _positive(coded: Coded, yes: Scalar | None) -> BoolArray:
    """Return whether each row's outcome is positive, by the rules of `Table`."""
    positive = np.array([is_positive(value, yes) for value in coded.values] + [False], dtype=np.bool_)
    return np.asarray(positive[coded.codes])


def is_positive(value: object, yes: Scalar | None) -> bool:
    """Return whether a value equals `yes`, as text or as a number; without `yes`, whether it is a word for yes.

    Examples
    --------
    >>> is_positive(1.0, 1), is_positive(True, 1), is_positive("yes", None), is_positive("again", 1)
    (True, True, True, False)
    """
    if yes is not None:
        return label_of(value) == label_of(yes) or (not isinstance(value, str) and _same_number(value, yes))
    return yes_or_no(value) is True


def is_negative(value: object, yes: Scalar | None) -> bool:
    """Return whether a value stands for the negative outcome.

    Without `yes`, it must be a word for no, or -1.

    Examples
    --------
    >>> is_negative(0.0, 1), is_negative("no", None), is_negative("never", None)
    (True, True, False)
    """
    if yes is not None:
        return not is_positive(value, yes)
    return yes_or_no(value) is False or label_of(value).strip() == "-1"


def _same_number(value: object, yes: Scalar) -> bool:
    try:
        return float(value) == float(yes)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def deal_folds(people: ScoredPeople, folds: int, seed: int) -> IntArray:
    """Return the fold of each person, stratified by group and outcome.

    People are shuffled, sorted by group and outcome, and dealt to the folds in turn. So the sizes of any group and
    outcome differ by at most one between folds.
    """
    shuffled = np.random.default_rng(seed).permutation(len(people.matrix))
    by = [ranks[shuffled] for ranks in ranks_of_groups(people.groups, people.contents)]
    order = shuffled[np.lexsort([*by, people.outcome[shuffled]] if people.outcome is not None else by)]
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = np.arange(len(order)) % folds
    return fold


# A pilot ------------------------------------------------------------------------------------------------------------

_RATERS = ("first rater", "second rater")


@dataclass(frozen=True, eq=False)
class LearnedMistakes:
    """The mistakes learned from a pilot.

    Parameters
    ----------
    pilot : the ratings of both raters, in the form that the noise engine takes.
    names : the features rated by both raters.
    groups : the groups whose mistakes are learned from their own people in the pilot.
    notes : notes on the learned mistakes.
    """

    pilot: Pilot
    names: tuple[str, ...]
    groups: tuple[str, ...]
    notes: tuple[Message, ...]


def read_pilot(
    settings: PilotTable,
    free: Sequence[ModelFeature],
    people: ScoredPeople,
    groupings: Groupings,
    spec: ReliabilitySpec,
) -> LearnedMistakes:
    """Learn mistakes from the features rated by both raters of a pilot.

    Parameters
    ----------
    settings : the pilot, and the names of its columns.
    free : the features that may have mistakes.
    people : the people of the audit.
    groupings : the groupings of the audit's table.
    spec : the settings of the audit.
    """
    source = settings.data if settings.source is None else str(spec.folder / settings.source)
    with engine_errors():
        columns = open_source(source, columns=()).names
    rated = _rated_features(settings, free, columns)
    grouped_by = _columns_of_groups(settings, groupings, columns)
    first, second, codes, labels = _ratings(source, rated, grouped_by)
    complete = ~(np.isnan(first) | np.isnan(second)).any(axis=1)
    if not complete.any():
        raise DataError("`pilot` has nobody whom both raters rated in every feature.")
    features = [feature for feature, _ in rated]
    order = np.flatnonzero(complete)[np.lexsort([codes[complete], *first[complete].T, *second[complete].T])]
    groups, rows_of_groups, group_note = _own_mistakes(settings, codes[order], labels)
    positions = people.positions([feature.name for feature in features])
    placed = list(zip(positions, features, strict=True))
    try:
        pilot = Pilot(
            first=first[order],
            second=second[order],
            columns=tuple(positions),
            categories={position: _categories(feature) for position, feature in placed if feature.categorical},
            together=settings.together,
            near=settings.near,
            minima={
                position: spec.noise.minima.get(feature.name, float(feature.distinct[0]))
                for position, feature in placed
                if not feature.categorical
            },
            apart=rows_of_groups,
        )
        pilot.items()
    except EvenhandError as error:
        raise ConfigError("`pilot`: {problem}", problem=error.message) from error
    notes = _pilot_notes(int(complete.sum()), int((~complete).sum()), features, free, shared=settings.by is None)
    return LearnedMistakes(pilot, tuple(f.name for f in features), groups, (*notes, *group_note))


def _rated_features(
    settings: PilotTable, free: Sequence[ModelFeature], columns: Sequence[str]
) -> list[tuple[ModelFeature, tuple[str, str]]]:
    """Return the features rated by both raters, each with its two columns."""
    rated = [(feature, pair) for feature in free if (pair := settings.pair(feature.name)) and set(pair) <= set(columns)]
    for name in settings.columns:
        if name not in [feature.name for feature, _ in rated]:
            raise ConfigError(
                "`pilot` names columns for {name!r}, which it does not have or which may not go wrong.", name=name
            )
    if not rated:
        raise ConfigError("`pilot` has no feature with a column of each rater; check `suffixes` and `columns`.")
    return rated


def _columns_of_groups(settings: PilotTable, groupings: Groupings, available: Sequence[str]) -> tuple[str, ...]:
    columns = () if settings.by is None else groupings[settings.by]
    for column in columns:
        if column not in available:
            raise ConfigError("`pilot` learns by {by!r} and has no column {column!r}.", by=settings.by, column=column)
    return columns


def _ratings(
    source: TableData, rated: Sequence[tuple[ModelFeature, tuple[str, str]]], grouped_by: Sequence[str]
) -> tuple[FloatArray, FloatArray, IntArray, tuple[str, ...]]:
    """Return both raters' ratings (people, features), each person's group code, and the groups' labels."""
    try:
        table = Table(source, groups=list(grouped_by))
    except DataError as error:
        raise DataError("`pilot`: {problem}", problem=error.message) from error
    columns = {f"{rater} of {f.name}": pair[number] for f, pair in rated for number, rater in enumerate(_RATERS)}
    rows = table.coded_rows(columns)
    first, second = (
        np.column_stack([_rating(feature, rows.columns[f"{rater} of {feature.name}"]) for feature, _ in rated])
        for rater in _RATERS
    )
    codes, labels = rows.groups.joint(grouped_by) if grouped_by else (np.zeros(len(first), dtype=np.int64), ())
    return first, second, codes, labels


def _rating(feature: ModelFeature, coded: Coded) -> FloatArray:
    """Return the ratings of a column as the feature's numbers; nan where missing."""
    if not feature.is_text and any(isinstance(value, str) for value in coded.values):
        raise DataError("`pilot` holds text for {name!r}, which holds numbers.", name=feature.name)
    try:
        numbers = [feature.number_of(value) for value in coded.values]
    except ConfigError:
        unknown = next(value for value in coded.values if str(value) not in feature.labels)
        raise DataError(
            "`pilot` holds {unknown!r} for {name!r}, which the data does not have.", unknown=unknown, name=feature.name
        ) from None
    return np.array([*numbers, np.nan])[coded.codes]


def _own_mistakes(
    settings: PilotTable, codes: IntArray, labels: Sequence[str]
) -> tuple[tuple[str, ...], tuple[IntArray, ...], list[Message]]:
    """Return the groups large enough in the pilot for separate mistakes, the row numbers of each, and a note."""
    if settings.by is None:
        return (), (), []
    enough = max(settings.enough, settings.near or 0)
    sizes = {label: int(n) for label, n in zip(labels, np.bincount(codes, minlength=len(labels)), strict=True)}
    learned = tuple(label for label in labels if label != MISSING and sizes[label] >= enough)
    note = _own_mistakes_note(settings, sizes, learned, enough)
    rows = tuple(np.flatnonzero(codes == labels.index(label)) for label in learned)
    return learned, rows, [] if note is None else [note]


def _own_mistakes_note(
    settings: PilotTable, sizes: Mapping[str, int], learned: Sequence[str], enough: int
) -> Message | None:
    listed = [say("own_mistakes_of", group=label, size=sizes[label]) for label in learned] or [say("no_group")]
    notes = [say("own_mistakes", grouping=settings.by, groups=tuple(listed))]
    few = [
        say("group_size", group=label, size=n)
        for label, n in sizes.items()
        if label != MISSING and label not in learned
    ]
    return join_sentences([*notes, say("few_in_pilot", enough=enough, groups=tuple(few))] if few else notes)


def _categories(feature: ModelFeature) -> tuple[float, ...]:
    return (0.0, 1.0) if np.isin(feature.distinct, (0.0, 1.0)).all() else tuple(feature.distinct.tolist())


def _pilot_notes(
    used: int, lost: int, features: Sequence[ModelFeature], free: Sequence[ModelFeature], *, shared: bool
) -> list[Message]:
    notes = [say("learned_shared" if shared else "learned", n=used)]
    if used < FEW_RATED_TWICE:
        notes.append(say("rated_twice", n=used, least=FEW_RATED_TWICE))
    if lost:
        notes.append(say("lack_rating", n=lost))
    unrated = tuple(feature.name for feature in free if feature not in features)
    if unrated:
        notes.append(say("not_in_pilot", features=unrated))
    return notes
