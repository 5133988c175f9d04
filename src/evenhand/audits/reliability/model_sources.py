"""The sources of audited models: estimators by name, files (ONNX, skops, allowed pickles), objects, functions."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationInfo, field_serializer, model_validator

from evenhand.core.spec import is_from_json
from evenhand.errors import ConfigError, EvenhandError, SettingError, require_extra, require_name
from evenhand.models.estimators import ESTIMATORS, Fit
from evenhand.settings import Settings
from evenhand.stats.types import FloatArray
from evenhand.table.roles import Columns

PICKLES = (".pkl", ".pickle", ".joblib")
FILES = (".onnx", ".skops", *PICKLES)
"""File name endings of model files."""

_ONNX_NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


_SAFE = frozenset(
    (
        "builtins.object",
        "collections.OrderedDict",
        "numpy.dtype",
        "scipy.interpolate._bsplines.BSpline",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer._RemainderColsList",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.utils._bunch.Bunch",
    )
)
"""Types of plain scikit-learn pipelines that skops does not trust by default but that only contain values: they neither
run code of the file nor use its values to index memory. Trees and similar types do the latter, so they are excluded."""


class ModelSource(Settings):
    """One model: exactly one of `estimator`, `file` and `model`.

    Parameters
    ----------
    estimator : the short name of an estimator that is fitted here, out of fold.
    settings : settings of that estimator, by the names of its library; our defaults are filled in.
    file : the path of an ONNX or skops file, relative to the folder of `audit.toml`; a pickle only with
        `allow_pickle`.
    model : a fitted object with predict_proba or predict, a function of rows, or an estimator; 'module:attribute' in
        `audit.toml`.
    features : the columns that this model uses; by default the columns it was fitted to, or all features.
    threshold : the cut-off above which this model's score selects a person; by default the audit's cut-off.

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
    def _filled_in(cls, values: object) -> object:
        if isinstance(values, Mapping) and values.get("estimator") in ESTIMATORS:
            fit = Fit(estimator=values["estimator"], settings=values.get("settings", {}))
            return {**values, "settings": fit.settings}
        return values

    @model_validator(mode="after")
    def _one_of_three(self, info: ValidationInfo) -> Self:
        if sum(source is not None for source in (self.estimator, self.file, self.model)) != 1:
            raise SettingError("a model needs exactly one of `estimator`, `file` and `model`")
        if self.estimator is not None:
            require_name(self.estimator, ESTIMATORS, "there is no estimator {name!r}; {hint}", SettingError)
        if self.settings and self.estimator is None:
            raise SettingError("`settings` go with an `estimator` by name")
        if self.file is not None and PurePath(self.file).suffix.lower() not in FILES:
            raise SettingError(
                "the file of a model must end in {names}; got {file!r}", names=", ".join(FILES), file=self.file
            )
        if self.model is not None and not (is_from_json(info) and isinstance(self.model, str)):
            _require_usable(self.model)
        return self

    @field_serializer("model")
    def _name_of_code(self, value: object) -> str | None:
        return value if value is None or isinstance(value, str) else described(value)


def as_models(value: object, info: ValidationInfo) -> object:
    """Return a mapping of names to models from one model, a list of models, or a mapping."""
    if is_from_json(info):
        return value
    if isinstance(value, Mapping | list | tuple) and not value:
        raise SettingError("`model` names no model; give at least one")
    if isinstance(value, Mapping) and not _is_single_model(value):
        return {str(name): _as_source(model) for name, model in value.items()}
    return _named_models(value if isinstance(value, list | tuple) else [value])


def _named_models(models: Sequence[Any]) -> dict[str, Any]:
    named = [(_default_name(model), _as_source(model)) for model in models]
    names = [name for name, _ in named]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError(
            "two models are called {twice!r}; give them names: {{'one': ..., 'other': ...}}", twice=twice
        )
    return dict(named)


def described(model: object) -> str:
    """Return a description of a model: its class with the steps of a pipeline, or a function as 'module:name'.

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


def _is_single_model(value: Mapping[Any, Any]) -> bool:
    """Return whether a mapping holds the settings of one model, not models by name."""
    return set(value) <= set(ModelSource.model_fields) and bool(set(value) & {"estimator", "file", "model"})


def _as_source(value: object) -> object:
    if isinstance(value, Mapping | ModelSource):
        return value
    if isinstance(value, PurePath):
        return {"file": str(value)}
    if not isinstance(value, str):
        return {"model": value}
    if PurePath(value).suffix.lower() in FILES:
        return {"file": value}
    require_name(
        value,
        ESTIMATORS,
        "{name!r} is neither an estimator nor a file that ends in {names}; {hint}",
        SettingError,
        names=", ".join(FILES),
    )
    return {"estimator": value}


def _default_name(model: object) -> str:
    """Return the default name of an unnamed model."""
    if isinstance(model, Mapping):
        model = next((model[key] for key in ("estimator", "file", "model") if model.get(key) is not None), "model")
    if isinstance(model, str | PurePath):
        return PurePath(model).stem if PurePath(model).suffix.lower() in FILES else str(model)
    if inspect.isroutine(model):
        return model.__name__ if model.__name__ != "<lambda>" else "model"
    steps = getattr(model, "steps", None)
    last = steps[-1][-1] if isinstance(steps, list) and steps else model
    return type(last).__name__


def _require_usable(model: object) -> None:
    if inspect.isclass(model):
        raise SettingError("the model is the class {name}; give an instance of it", name=model.__name__)
    if not any(callable(getattr(model, name, None)) for name in ("predict_proba", "predict", "__call__")):
        raise SettingError(
            "a model must have predict_proba or predict, or be a function; got {name}", name=type(model).__name__
        )


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(
            "the model file '{name}' cannot be read: {reason}.", name=path.name, reason=error.strerror or error
        ) from None


def load_file(path: Path, *, trusted: Sequence[str], allow_pickle: bool) -> object:
    """Return the model in a file.

    Parameters
    ----------
    path : the path of the file; its suffix determines the format.
    trusted : additional types that a skops file may contain, beside the types that skops trusts by default.
    allow_pickle : whether pickle files may be read, which can run arbitrary code.
    """
    if path.suffix.lower() == ".onnx":
        return OnnxModel(path)
    if path.suffix.lower() == ".skops":
        return _load_skops(path, trusted)
    if path.suffix.lower() in PICKLES and not allow_pickle:
        raise ConfigError(
            "'{name}' is a pickle, and reading one can run any code; save the model as ONNX or skops, or "
            "read it with `allow_pickle=True` if you made it yourself.",
            name=path.name,
        )
    require_extra("joblib", "models", f"the model file '{path.name}'")
    try:
        return import_module("joblib").load(path)
    except Exception as error:
        raise _unreadable(path, error) from error


def _load_skops(path: Path, trusted: Sequence[str]) -> object:
    require_extra("skops", "models", f"the model file '{path.name}'")
    skops = import_module("skops.io")
    try:
        untrusted = skops.get_untrusted_types(file=path)
    except Exception as error:
        raise _unreadable(path, error) from error
    unknown = [name for name in untrusted if name not in trusted and name not in _SAFE]
    if unknown:
        listed = ", ".join(repr(name) for name in unknown[:5])
        raise ConfigError(
            "'{name}' holds types that skops does not trust: {listed}; look at them, and name them in "
            "`trusted` if you know what they do.",
            name=path.name,
            listed=listed,
        )
    try:
        return skops.load(path, trusted=[name for name in untrusted if name in trusted or name in _SAFE])
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> EvenhandError:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return EvenhandError(
        "the model file '{name}' cannot be read: {reason}",
        name=path.name,
        reason=reason,
    )


class OnnxModel:
    """An ONNX model with one input for all columns, or one named input per column.

    Parameters
    ----------
    path : the path of the file.
    """

    def __init__(self, path: Path) -> None:
        require_extra("onnxruntime", "models", f"the model file '{path.name}'")
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # sums of several threads differ in their last bits
        options.log_severity_level = 3
        try:
            self.session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _unreadable(path, error) from error
        self.name = path.name
        self.inputs = self.session.get_inputs()
        self.scores = self._output()
        self.label = self._label()
        self.classes: list[Any] | None = None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the model's columns if it has one input per column, or None."""
        return tuple(entry.name for entry in self.inputs) if len(self.inputs) > 1 else None

    @property
    def width(self) -> int | None:
        """The declared number of columns of the model's only input, or None."""
        shape = self.inputs[0].shape
        return shape[1] if len(self.inputs) == 1 and len(shape) == 2 and isinstance(shape[1], int) else None

    def predict(self, columns: dict[str, npt.NDArray[Any]]) -> tuple[FloatArray, list[Any] | None]:
        """Return scores and None, or class probabilities and the class labels (None for unknown labels)."""
        if len(self.inputs) > 1:
            fed = {entry.name: self._typed(columns[entry.name][:, np.newaxis], entry.type) for entry in self.inputs}
        else:
            fed = {self.inputs[0].name: self._typed(np.column_stack(list(columns.values())), self.inputs[0].type)}
        output, *labels = self.session.run([name for name in (self.scores, self.label) if name is not None], fed)
        if isinstance(output, list):  # a map of probabilities by class for each row, as converters make by default
            self.classes = list(output[0]) if output else self.classes
            return np.array([list(row.values()) for row in output], dtype=np.float64), self.classes
        scores = np.asarray(output, dtype=np.float64)
        if labels and scores.ndim == 2 and scores.shape[1] == 2:
            self._learn_classes(scores, np.asarray(labels[0]).ravel())
        return scores, self.classes

    def _learn_classes(self, scores: FloatArray, labels: npt.NDArray[Any]) -> None:
        """Infer the labels of two unlabelled probability columns from rows in which one class is likelier."""
        classes = self.classes or [None, None]
        for column in (0, 1):
            likelier = np.flatnonzero(scores[:, column] > scores[:, 1 - column])
            if classes[column] is None and likelier.size:
                classes[column] = labels[likelier[0]].item() if labels.dtype != object else labels[likelier[0]]
        self.classes = classes if classes != [None, None] else None
        if self.classes is not None and None not in self.classes:
            self.label = None  # all classes are known

    def _typed(self, values: npt.NDArray[Any], wanted: str) -> npt.NDArray[Any]:
        if wanted == "tensor(string)":
            return values.astype(str).astype(object)
        if wanted == "tensor(bool)":
            return values.astype(np.bool_)
        if wanted not in _ONNX_NUMBERS:
            raise EvenhandError(
                "the model '{name}' wants an input of the type {wanted}, which is not known here.",
                name=self.name,
                wanted=wanted,
            )
        return values.astype(_ONNX_NUMBERS[wanted])

    def _output(self) -> str:
        """Return the name of the output with scores: a probability output, else the last numeric output."""
        outputs: dict[str, str] = {entry.name: entry.type for entry in self.session.get_outputs()}
        likely = [name for name in outputs if "prob" in name.lower()]
        numbers = [name for name, kind in outputs.items() if "float" in kind or "double" in kind]
        if not likely and not numbers:
            raise EvenhandError(
                "the model '{name}' gives no scores; its outputs are {names}.", name=self.name, names=", ".join(outputs)
            )
        return (likely or numbers)[-1]

    def _label(self) -> str | None:
        """Return the name of the output with each row's class, or None."""
        kinds = ("tensor(int64)", "tensor(int32)", "tensor(string)", "tensor(bool)")
        return next((entry.name for entry in self.session.get_outputs() if entry.type in kinds), None)
