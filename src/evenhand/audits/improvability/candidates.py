"""Candidates: rules that learn from training rows, and existing columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)

from evenhand.core.spec import is_from_json
from evenhand.errors import SettingError, brief, require_name
from evenhand.messages import Setting
from evenhand.models.estimators import ESTIMATORS, Fit
from evenhand.settings import Settings

RuleName = Literal["estimator", "column", "search", "sweep", "milp", "reductions", "own"]
Constraint = Literal["demographic_parity", "equalized_odds", "true_positive_rate", "false_positive_rate", "error_rate"]

_LINEAR = ("goal", "iota", "directions", "monotone", "excluded", "amounts")
_SETTINGS: dict[str, tuple[str, ...]] = {
    "estimator": ("estimator", "settings", "threshold", "kind", "factor"),
    "column": ("column", "threshold", "kind"),
    "search": ("family", "folds"),
    "sweep": _LINEAR,
    "milp": (*_LINEAR, "time_limit", "margin"),
    "reductions": ("estimator", "settings", "constraint", "slack", "threshold"),
    "own": ("own", "threshold", "kind"),
}
# The setting that implies the rule, if no rule is named.
_MARKS = {
    "column": "column",
    "own": "own",
    "search": "family",
    "reductions": "constraint",
    "estimator": "estimator",
    "milp": "time_limit",
}
_SHORT = ("search", "sweep", "milp", "reductions")
# The paper's random forest has 300 trees (footnote 11).
_OURS: dict[str, dict[str, Any]] = {"random_forest": {"n_estimators": 300}}


class Candidate(Settings):
    """One candidate: an existing column, or the rule that makes it.

    Examples
    --------
    >>> Candidate(rule="estimator", estimator="random_forest").settings["n_estimators"]
    300
    """

    rule: RuleName = Field(description="What makes the candidate; by default what the other settings say.")
    estimator: Any = Field(None, description="An estimator's short name; in Python also any scikit-learn estimator.")
    settings: dict[str, Any] = Field({}, description="Settings of the estimator, by its library's names.")
    column: str | None = Field(None, description="A column of decisions or scores, or a model; nothing is fitted.")
    threshold: float | None = Field(None, description="Selected above it, where there is no capacity; by default 0.5.")
    kind: Literal["decision", "score"] | None = Field(
        None,
        description="`decision` where the numbers themselves are decided, such as prices; by default two-valued "
        "columns are decisions, all else scores.",
    )
    factor: float = Field(1.0, gt=0, description="What an estimator's prediction is multiplied by to make an amount.")
    amounts: tuple[float, float] | None = Field(
        None, description="Two amounts, such as prices, that a linear search chooses between; by default 0 and 1."
    )
    family: tuple[Candidate, ...] = Field((), description="Candidates that a search compares on the training rows.")
    folds: int = Field(5, ge=2, le=50, description="Folds of the search.")
    goal: str = Field("fairness", description="`fairness`, or the group whose accuracy the linear search raises.")
    iota: float = Field(0.0, ge=0, description="How much better than the status quo on the training rows.")
    directions: int = Field(5_000, ge=1, le=10_000_000, description="Budget of the sweep.")
    monotone: dict[str, Literal[1, -1]] = Field({}, description="Features that may only raise (1) or lower (-1).")
    excluded: tuple[str, ...] = Field((), description="Features that the linear search may not use.")
    time_limit: float = Field(60.0, gt=0, le=86_400, description="Seconds that HiGHS may take in each split.")
    margin: float = Field(1e-4, gt=0, lt=1, description="How far from 0 the score of a row not selected must be.")
    constraint: Constraint = Field("equalized_odds", description="What a fairlearn reduction equalises.")
    slack: float = Field(0.01, gt=0, lt=1, description="The difference that the reduction allows.")
    own: Any = Field(
        None, description="Your own selection rule: a function of `TrainingRows` that returns one of a feature matrix."
    )

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: object, info: ValidationInfo) -> object:
        if not isinstance(values, Mapping) or is_from_json(info):
            return values
        fields = dict(values)
        if fields.get("rule") is None:
            fields["rule"] = _infer_rule(fields)
        if fields["rule"] == "reductions" and fields.get("estimator") is None:
            fields["estimator"] = "logistic"
        if fields["rule"] == "search" and not fields.get("family"):
            fields["family"] = ("linear", "lasso", "random_forest")
        if "family" in fields:
            fields["family"] = tuple(as_candidates(fields["family"]).values())
        estimator = fields.get("estimator")
        if isinstance(estimator, str) and isinstance(fields.get("settings", {}), Mapping):
            settings = {**_OURS.get(estimator, {}), **fields.get("settings", {})}
            fields["settings"] = Fit(estimator=estimator, settings=settings).settings
        return fields

    @field_validator("family")
    @classmethod
    def _no_search_in_a_search(cls, value: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        if any(member.rule == "search" for member in value):
            raise SettingError("a search cannot be a member of a search's family")
        return value

    @model_validator(mode="after")
    def _own_settings_only(self, info: ValidationInfo) -> Self:
        if is_from_json(info):  # estimators and functions are recorded by name
            return self
        allowed = ("rule", *_SETTINGS[self.rule])
        for name in sorted(self.model_fields_set):
            if name not in allowed and getattr(self, name) != type(self).model_fields[name].default:
                raise SettingError(
                    "`{name}` is no setting of the rule {rule!r}; it has {listed}",
                    name=name,
                    rule=self.rule,
                    listed=_listed(allowed[1:]),
                )
        if self.rule in ("estimator", "column", "own") and getattr(self, self.rule) is None:
            raise SettingError("the rule {rule!r} needs its `{rule}`", rule=self.rule)
        self._require_usable_code()
        return self

    def _require_usable_code(self) -> None:
        if self.estimator is not None and not isinstance(self.estimator, str):
            if not _is_estimator(self.estimator):
                raise SettingError(
                    "`estimator` must be a name or a scikit-learn estimator; got {estimator!r}",
                    estimator=self.estimator,
                )
            if self.settings:
                raise SettingError("`settings` go with an estimator's name; set those of your own estimator on it")
        if self.own is not None and not callable(self.own):
            raise SettingError("`own` must be a function of the training rows; got {own!r}", own=self.own)

    @field_serializer("estimator", "own")
    def _in_words(self, value: object) -> str | None:
        return None if value is None else described(value)

    @model_serializer(mode="wrap")
    def _own_settings(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise the rule with only its own settings."""
        names = ("rule", *_SETTINGS[self.rule])
        return {name: value for name, value in written(self).items() if name in names}

    @property
    def refits(self) -> bool:
        """Whether the candidate is refitted in every split."""
        return self.rule != "column"

    @property
    def linear_search(self) -> bool:
        """Whether the candidate is a search over linear classifiers."""
        return self.rule in ("sweep", "milp")

    def in_words(self) -> str:
        """Return a description of the candidate for a report."""
        what = described(self.estimator) if self.estimator is not None else ""
        members = "; ".join(member.in_words() for member in self.family)
        words = {
            "estimator": what.replace("_", " "),
            "column": f"column {self.column!r}, given",
            "search": f"the most promising of: {members}",
            "sweep": f"linear classifier, sweep over {self.directions:,} directions",
            "milp": f"linear classifier, mixed-integer program, at most {self.time_limit:g} s",
            "reductions": f"fairlearn reduction of {what}, {self.constraint.replace('_', ' ')} within {self.slack:g}",
            "own": f"the user's rule {described(self.own)}" if self.own is not None else "",
        }
        return words[self.rule]


def as_candidates(value: object) -> dict[str, Any]:
    """Return candidates by name from a name, an estimator, a function, a list of these, or a mapping.

    Examples
    --------
    >>> as_candidates(["linear", "need_score"])
    {'linear': {'rule': 'estimator', 'estimator': 'linear'}, 'need_score': {'rule': 'column', 'column': 'need_score'}}
    """
    if isinstance(value, Mapping):
        return {str(name): _settings(item, str(name)) for name, item in value.items()}
    candidates: dict[str, Any] = {}
    for item in (value,) if isinstance(value, str | Candidate) or not isinstance(value, Iterable) else value:
        name = _name(item)
        if name in candidates:
            raise SettingError(
                "two candidates are called {name!r}; give them names of their own, in a mapping", name=name
            )
        candidates[name] = _settings(item, name)
    return candidates


def _settings(settings: object, name: str) -> Candidate | dict[str, object]:
    if isinstance(settings, Mapping):
        named = name in (*_SHORT, *ESTIMATORS) and not any(mark in settings for mark in ("rule", *_MARKS.values()))
        return {**(_settings_of_name(name) if named or not settings else {}), **settings}
    if isinstance(settings, Candidate):
        return settings
    if isinstance(settings, str):
        return _settings_of_name(settings)
    if _is_estimator(settings):
        return {"rule": "estimator", "estimator": settings}
    if callable(settings):
        return {"rule": "own", "own": settings}
    raise SettingError(
        "a candidate must be a name, a table of settings, a scikit-learn estimator or a function; got {given}",
        given=brief(settings),
    )


def _settings_of_name(name: str) -> dict[str, object]:
    """Return the settings that a name stands for: a rule, an estimator or a column."""
    if name in _SHORT:
        return {"rule": name}
    return {"rule": "estimator", "estimator": name} if name in ESTIMATORS else {"rule": "column", "column": name}


def _infer_rule(settings: Mapping[str, Any]) -> str:
    """Return the rule implied by a candidate's settings."""
    for name in settings:
        require_name(name, Candidate.model_fields, "there is no setting `{name}` of a candidate; {hint}", SettingError)
    for rule, mark in _MARKS.items():
        if settings.get(mark) is not None:
            return rule
    if any(name in _LINEAR for name in settings):
        return "sweep"
    raise SettingError("a candidate needs its `rule`: {listed}", listed=_listed(_SETTINGS))


def _name(value: object) -> str:
    if isinstance(value, str | Candidate):
        return value if isinstance(value, str) else value.in_words()
    if isinstance(value, Mapping):
        return str(value.get("column") or value.get("rule") or described(value.get("estimator")))
    return type(value).__name__ if _is_estimator(value) else str(getattr(value, "__name__", type(value).__name__))


def _is_estimator(value: object) -> bool:
    return not isinstance(value, type) and hasattr(value, "fit") and hasattr(value, "predict")


def described(value: object) -> str:
    """Return a description for settings and reports, the same in every process."""
    if isinstance(value, str):
        return value
    if _is_estimator(value):
        return " ".join(repr(value).split())
    home, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return f"{home}:{name}" if home and name else type(value).__name__


def _listed(names: Iterable[str]) -> tuple[Setting, ...]:
    return tuple(Setting(name=name) for name in names)
