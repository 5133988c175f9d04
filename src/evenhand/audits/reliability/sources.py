"""Which models are audited: names of estimators to fit, files, or objects and functions of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Self

from pydantic import Field, field_serializer, model_validator

from evenhand.errors import did_you_mean
from evenhand.models.estimators import ESTIMATORS, Fit
from evenhand.settings import Settings
from evenhand.table.roles import Columns

PICKLES = (".pkl", ".pickle", ".joblib")
FILES = (".onnx", ".skops", *PICKLES)
"""Endings by which a file of a model is known."""


class ModelSource(Settings):
    """One model: exactly one of `estimator`, `file` and `model`.

    Parameters
    ----------
    estimator : the short name of an estimator that is fitted here, out of fold.
    settings : settings of that estimator, by the names its library gives them; ours are filled in.
    file : an ONNX or skops file, seen from the folder of `audit.toml`; a pickle only with `allow_pickle`.
    model : a fitted object with predict_proba or predict, a function of rows, or an estimator; 'module:attribute' in
        `audit.toml`.
    features : the columns that this model uses; by default those it was fitted to, or all features.
    threshold : a person is selected when this model's score is above it; by default the audit's.

    Examples
    --------
    >>> ModelSource(estimator="logistic", features="age").features
    ('age',)
    """

    estimator: str | None = None
    settings: dict[str, Any] = Field({})
    file: str | None = None
    model: Any = None
    features: Columns | None = None
    threshold: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("estimator") in ESTIMATORS:
            fit = Fit(estimator=values["estimator"], settings=values.get("settings", {}))
            return {**values, "settings": fit.settings}
        return values

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if sum(given is not None for given in (self.estimator, self.file, self.model)) != 1:
            raise ValueError("a model needs exactly one of `estimator`, `file` and `model`")
        if self.estimator is not None and self.estimator not in ESTIMATORS:
            raise ValueError(f"there is no estimator {self.estimator!r}; {did_you_mean(self.estimator, ESTIMATORS)}")
        if self.settings and self.estimator is None:
            raise ValueError("`settings` go with an `estimator` by name")
        if self.file is not None and PurePath(self.file).suffix.lower() not in FILES:
            raise ValueError(f"the file of a model must end in {', '.join(FILES)}; got {self.file!r}")
        if self.model is not None:
            _require_usable(self.model)
        return self

    @field_serializer("model")
    def _by_class(self, value: Any) -> str | None:
        return None if value is None else described(value)


def as_models(value: Any) -> Any:
    """Return models by name from one model, a list of names, or a mapping."""
    if isinstance(value, Mapping) and value and not _is_one(value):
        return {str(name): _as_source(given) for name, given in value.items()}
    several = value if isinstance(value, list | tuple) else [value]
    if not value and isinstance(value, Mapping | list | tuple):
        raise ValueError("`model` names no model; give at least one")
    named = [(_name(given), _as_source(given)) for given in several]
    for place, (name, _) in enumerate(named):
        if name in [other for other, _ in named[:place]]:
            raise ValueError(f"two models are called {name!r}; give them names: {{'one': ..., 'other': ...}}")
    return dict(named)


def described(model: Any) -> str:
    """Return what an object is: its class, with the steps of a pipeline, or a function as 'module:name'.

    Examples
    --------
    >>> described(len), described("text")
    ('builtins:len', 'builtins.str')
    """
    if inspect.isroutine(model):
        return f"{model.__module__ or ''}:{model.__qualname__}"
    steps = getattr(model, "steps", None)
    inside = f" of {', '.join(type(part).__name__ for _, part in steps)}" if isinstance(steps, list) else ""
    return f"{type(model).__module__}.{type(model).__qualname__}{inside}"


def _is_one(value: Mapping[Any, Any]) -> bool:
    """Tell the settings of one model from models by name."""
    return set(value) <= set(ModelSource.model_fields) and bool(set(value) & {"estimator", "file", "model"})


def _as_source(given: Any) -> Any:
    if isinstance(given, Mapping | ModelSource):
        return given
    if isinstance(given, PurePath):
        return {"file": str(given)}
    if not isinstance(given, str):
        return {"model": given}
    if PurePath(given).suffix.lower() in FILES:
        return {"file": given}
    if given not in ESTIMATORS:
        raise ValueError(
            f"{given!r} is neither an estimator nor a file that ends in {', '.join(FILES)}; "
            f"{did_you_mean(given, ESTIMATORS)}"
        )
    return {"estimator": given}


def _name(given: Any) -> str:
    """Return a name for a model that came without one."""
    if isinstance(given, Mapping):
        given = next((given[key] for key in ("estimator", "file", "model") if given.get(key) is not None), "model")
    if isinstance(given, str | PurePath):
        return PurePath(given).stem if PurePath(given).suffix.lower() in FILES else str(given)
    if inspect.isroutine(given):
        return given.__name__ if given.__name__ != "<lambda>" else "model"
    steps = getattr(given, "steps", None)
    last = steps[-1][-1] if isinstance(steps, list) and steps else given
    return type(last).__name__


def _require_usable(model: Any) -> None:
    if inspect.isclass(model):
        raise ValueError(f"the model is the class {model.__name__}; give an instance of it")
    if isinstance(model, str | Mapping | Iterable) and not hasattr(model, "predict") and not callable(model):
        raise ValueError(f"a model must have predict_proba or predict, or be a function; got {type(model).__name__}")
    if not any(callable(getattr(model, name, None)) for name in ("predict_proba", "predict", "__call__")):
        raise ValueError(f"a model must have predict_proba or predict, or be a function; got {type(model).__name__}")
