"""The roles of columns: the outcome, the groups, the predictions and the survey weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from math import isfinite
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from evenhand.errors import ConfigError, SettingError, brief
from evenhand.messages import showable
from evenhand.settings import Settings

MISSING = "(missing)"
SMALL = "(small groups)"
UNNAMED = (MISSING, SMALL)
"""Labels of unknown or hidden groups, which are displayed but not compared."""
TIMES = " × "
LARGEST_SCORE = 1e15
_LONGEST_WORD = 40

Scalar: TypeAlias = str | bool | int | float
PredictionKind: TypeAlias = Literal["score", "decision", "number"]
Favourable: TypeAlias = Literal["selected", "not_selected", "higher", "lower"]


def _tuple_of_columns(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, Mapping) else value


Columns: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_tuple_of_columns), Field(min_length=1)]


def _short_word(value: str) -> str:
    if not value.strip() or len(value) > _LONGEST_WORD or showable(value) != value:
        raise SettingError(
            "it must be a word or two of at most {LONGEST_WORD} characters; got {value}",
            LONGEST_WORD=_LONGEST_WORD,
            value=brief(value),
        )
    return value.strip()


Word: TypeAlias = Annotated[str, AfterValidator(_short_word)]


class Percentile(Settings):
    """A threshold at a percentile of the scores of all or some people.

    Parameters
    ----------
    of : the percentile, between 0 and 100: the percentage of these people who are not selected.
    among : the column that selects the people; by default all.
    value : its value for these people.

    Examples
    --------
    >>> Percentile(of=62, among="charge", value="felony").of
    62.0
    """

    of: float = Field(gt=0, lt=100)
    among: str | None = None
    value: Scalar | None = None

    @model_validator(mode="after")
    def _both(self) -> Percentile:
        if (self.among is None) != (self.value is None):
            raise SettingError("`percentile` needs both `among` (a column) and its `value`, or neither")
        return self


class Prediction(Settings):
    """One model's scores, decisions or numbers.

    Parameters
    ----------
    column : the column of the predictions.
    kind : 'score', 'decision' or 'number' (a salary, a price, a grade); by default text, booleans and whole numbers are
        decisions, other numbers scores.
    threshold : a person is selected if the score is above it.
    percentile : the threshold as a percentile of the scores, of all people or some: `of`, `among`, `value`.
    capacity : the number of people to select by highest score: a whole number, or a share below 1.
    selected : the value of a decision column that means "selected" (default: 1, true, yes).
    favourable : the favourable decision for the person: 'selected' (a loan, a job) or 'not_selected' (a risk flag);
        for a number, 'higher' (a salary) or 'lower' (a price).
    range : the lowest and highest possible score.
    selected_word : the verb for selecting a person in sentences: "flags", "refuses".
    """

    column: str
    kind: PredictionKind | None = None
    threshold: float = 0.5
    percentile: Percentile | None = None
    capacity: int | float | None = Field(None, gt=0)
    selected: Scalar | None = None
    favourable: Favourable | None = None
    range: tuple[float, float] = (0.0, 1.0)
    selected_word: Word = "selects"

    def __dir__(self) -> list[str]:
        return list(type(self).model_fields)

    @model_validator(mode="after")
    def _check(self) -> Prediction:
        low, high = self.range
        if not low < high:
            raise SettingError("`range` must be (lowest, highest); got ({low:g}, {high:g})", low=low, high=high)
        if not 1 / LARGEST_SCORE <= max(-low, high) <= LARGEST_SCORE:
            raise SettingError(
                "`range` must be finite and of a usual size; got ({low:g}, {high:g}): rescale the score",
                low=low,
                high=high,
            )
        if self.percentile is not None and self.capacity is not None:
            raise SettingError("`percentile` and `capacity` both say who is selected; leave out one of the two")
        if self.capacity is not None and self.capacity > 1 and self.capacity != int(self.capacity):
            raise SettingError(
                "`capacity` must be a whole number of people, or a share below 1; got {capacity:g}",
                capacity=self.capacity,
            )
        is_given = self.percentile is None and self.capacity is None and self.kind not in ("decision", "number")
        if is_given and not low <= self.threshold <= high:
            raise SettingError(
                "`threshold` {threshold:g} lies outside the score range {low:g} to {high:g}; if scores have "
                "another one, give their `range` too",
                threshold=self.threshold,
                low=low,
                high=high,
            )
        self._check_number()
        return self

    def _check_number(self) -> None:
        """Raise for settings that only fit numbers, or only fit scores and decisions."""
        of_numbers = self.favourable in ("higher", "lower")
        if self.favourable is not None and of_numbers != (self.kind == "number"):
            raise SettingError(
                "`favourable` {favourable!r} is for {kind}; say {choice}",
                favourable=self.favourable,
                kind="numbers (`kind='number'`)" if of_numbers else "scores and decisions",
                choice="'selected' or 'not_selected'" if of_numbers else "'higher' or 'lower'",
            )
        if self.kind == "number" and (self.percentile, self.capacity, self.selected) != (None, None, None):
            raise SettingError("a number selects nobody: leave out `percentile`, `capacity` and `selected`")


class Roles(Settings):
    """The roles of a table's columns; the `[data]` section of `audit.toml` has the same fields."""

    id: str | None = None
    outcome: str | None = None
    outcome_kind: Literal["binary", "number"] | None = None
    positive: Scalar | None = None
    groups: tuple[Columns, ...] = ()
    cuts: dict[str, tuple[float, ...]] = Field({})
    labels: dict[str, dict[str, str]] = Field({})
    one_hot: dict[str, Columns] = Field({})
    predictions: dict[str, Prediction] = Field({})
    weight: str | None = None
    count: str | None = None
    cluster: str | None = None
    people: Word | None = None
    missing: Literal["error", "drop"] = "error"

    @field_validator("groups", mode="before")
    @classmethod
    def _one_name_is_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("groups")
    @classmethod
    def _no_repeats(cls, value: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        names = [TIMES.join(grouping) for grouping in value]
        for name, grouping in zip(names, value, strict=True):
            if len(set(grouping)) < len(grouping) or names.count(name) > 1:
                raise SettingError("`groups` names {name!r} twice", name=name)
        return value

    @field_validator("labels", mode="before")
    @classmethod
    def _values_as_text(cls, value: object) -> dict[object, dict[str, object]]:
        from evenhand.table.keys import label_of  # keys imports this module

        if not isinstance(value, Mapping) or not all(isinstance(named, Mapping) for named in value.values()):
            raise SettingError(
                "`labels` must name columns, and in them values: {'black': {0: 'not Black', 1: 'Black'}}"
            )
        return {column: {label_of(key): label for key, label in named.items()} for column, named in value.items()}

    @field_validator("one_hot")
    @classmethod
    def _at_least_two(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for family, columns in value.items():
            if len(set(columns)) < max(2, len(columns)):
                raise SettingError(
                    "`one_hot` {family!r} needs at least two columns, each named once; got {columns}",
                    family=family,
                    columns=list(columns),
                )
        return value

    @field_validator("cuts")
    @classmethod
    def _rising(cls, value: dict[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
        for column, cuts in value.items():
            if not cuts or list(cuts) != sorted(set(cuts)) or not all(isfinite(cut) for cut in cuts):
                raise SettingError(
                    "the cut points of '{column}' must be finite and rise; got {cuts}", column=column, cuts=list(cuts)
                )
        return value

    @field_validator("predictions")
    @classmethod
    def _named_plainly(cls, value: dict[str, Prediction]) -> dict[str, Prediction]:
        for name in value:
            if showable(name) != name:
                raise SettingError("the model name {name!r} has control characters; rename it", name=name)
        return value

    @model_validator(mode="after")
    def _outcome_fits(self) -> Roles:
        kinds = {prediction.kind == "number" for prediction in self.predictions.values()}
        if self.outcome_kind is not None and self.outcome is None:
            raise SettingError("`outcome_kind` is given, but no `outcome` column is named")
        if self.outcome_kind == "number" and self.positive is not None:
            raise SettingError(
                "a numeric outcome has no `positive` value; leave out `positive`, or make the outcome yes or no"
            )
        if self.outcome is not None and len(kinds) == 2:
            raise SettingError(
                "numbers and scores or decisions are predictions of different outcomes; audit them in two tables"
            )
        if self.outcome is not None and kinds and kinds != {self.outcome_kind == "number"}:
            raise SettingError(
                "predictions and outcome must both be numbers, or neither; give the predictions `kind='number'`, or "
                "`outcome_kind='binary'`"
            )
        return self

    @model_validator(mode="after")
    def _count_fits(self) -> Roles:
        if self.count is None:
            return self
        if self.id is not None:
            raise SettingError("a row that stands for several people (`count`) has no `id`; leave out one of the two")
        for name, prediction in self.predictions.items():
            for role in ("percentile", "capacity"):
                if getattr(prediction, role) is not None:
                    raise SettingError(
                        "the `{role}` of model {name!r} needs one row per person; with a `count`, give its `threshold`",
                        role=role,
                        name=name,
                    )
        return self

    @property
    def columns(self) -> frozenset[str]:
        """All columns of the data with a role."""
        predictions = self.predictions.values()
        among = (prediction.percentile.among for prediction in predictions if prediction.percentile is not None)
        single = (self.id, self.outcome, self.weight, self.count, self.cluster)
        named = {*single, *among, *(item.column for item in predictions)}
        members = chain.from_iterable(self.one_hot.values())
        return frozenset(name for name in (*named, *self.group_columns, *members) if name is not None)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """All columns of groupings, without repetitions, in the given order."""
        return tuple(dict.fromkeys(column for grouping in self.groups for column in grouping))


def grouping_name(columns: Iterable[str]) -> str:
    """Return the name of a grouping: its column, or 'race × sex' for an intersection."""
    return TIMES.join(columns)


_OF_EACH_PREDICTION = ("threshold", "percentile", "capacity", "favourable", "selected_word")


def make_roles(**arguments: object) -> Roles:
    """Build roles from the arguments of `Table`; some arguments are defaults for every prediction.

    Without predictions, a numeric outcome is itself compared between groups. With a numeric outcome, predictions are
    numbers; with numeric predictions, the outcome is numeric too, unless its `positive` value is named.
    """
    defaults = _without_none({name: arguments.pop(name, None) for name in _OF_EACH_PREDICTION})
    named = _named(arguments.get("predictions"))
    outcome_kind = arguments.get("outcome_kind")
    if isinstance(outcome_kind, str) and outcome_kind == "number":
        defaults["kind"] = "number"
        if not named and arguments.get("outcome") is not None:
            named = {str(arguments["outcome"]): arguments["outcome"]}
            arguments |= {"outcome": None, "outcome_kind": None}
    predictions = {name: _prediction(value, defaults) for name, value in named.items()}
    has_outcome = arguments.get("outcome") is not None and arguments.get("positive") is None
    if has_outcome and any(_kind_of(prediction) == "number" for prediction in predictions.values()):
        arguments["outcome_kind"] = arguments.get("outcome_kind") or "number"
    arguments["predictions"] = predictions
    return Roles.parse(_without_none(arguments), "the roles of the table")


def _without_none(options: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}


def _named(predictions: object) -> dict[str, object]:
    """Return predictions by model name, from a column, a list of columns, or a mapping."""
    if predictions is None:
        return {}
    if isinstance(predictions, str):
        return {predictions: predictions}
    if isinstance(predictions, Mapping):
        return {str(name): value for name, value in predictions.items()}
    if not isinstance(predictions, Iterable) or not all(isinstance(column, str) for column in predictions):
        raise ConfigError(
            "`predictions` must be a column, a list of columns, or a table of models with the column of "
            "each; got {predictions}.",
            predictions=brief(predictions),
        )
    return {column: column for column in predictions}


def _kind_of(prediction: object) -> object:
    return prediction.get("kind") if isinstance(prediction, Mapping) else getattr(prediction, "kind", None)


def _prediction(value: object, defaults: dict[str, object]) -> object:
    if isinstance(value, str):
        return {"column": value, **defaults}
    return {**defaults, **value} if isinstance(value, Mapping) else value
