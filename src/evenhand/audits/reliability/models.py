"""Models as the noise engine asks them: matrices of numbers and codes in, one score a row out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from evenhand.audits.reliability.files import OnnxModel, file_digest, load_file
from evenhand.audits.reliability.linear import Scores, as_linear
from evenhand.audits.reliability.noise import every_mistake
from evenhand.audits.reliability.people import Feature, People, is_negative, is_positive
from evenhand.audits.reliability.sources import ModelSource, described
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.audits.reliability.steady import unsteady_notes
from evenhand.core.progress import step
from evenhand.errors import ConfigError, DataError, EvenhandError, count, did_you_mean, require_extra
from evenhand.models.estimators import make_pipeline
from evenhand.stats.noise import Linear, Predictor, thresholded
from evenhand.stats.types import FloatArray, IntArray
from evenhand.table.frames import build_frame, installed_backend
from evenhand.table.keys import label_of
from evenhand.table.roles import Scalar

TIE = 1e-12
"""A score that exceeds the threshold by less is a tie, and a tie is not selected: whole numbers make ties common, and
the last bits of a score depend on the machine."""

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Model:
    """One model, ready to be asked.

    Parameters
    ----------
    name : what the audit calls it.
    kind : 'fitted here', 'object', 'function' or 'file'.
    source : its class, estimator or file.
    sha256 : of its file, or None.
    columns : the features it uses.
    threshold : a person is selected when the score is above it.
    fold : (people,) who is scored by which predictor; None where one serves all.
    predictors : one a fold.
    linear : whether it is evaluated as a linear model.
    notes : remarks on it.
    """

    name: str
    kind: str
    source: str
    sha256: str | None
    columns: tuple[str, ...]
    threshold: float
    fold: IntArray | None
    predictors: tuple[Predictor, ...]
    linear: bool
    notes: tuple[str, ...]


def prepare_model(
    name: str,
    source: ModelSource,
    people: People,
    spec: ReliabilitySpec,
    positive: Scalar | None,
    fold: IntArray | None,
) -> Model:
    """Load or fit one model.

    Parameters
    ----------
    name, source : the model.
    people : whom it scores, and is fitted to where it is an estimator.
    spec : the settings of the audit.
    positive : the value of the outcome that counts as positive.
    fold : the folds, for models that are fitted here.
    """
    digest, asked = None, source.model
    if source.file is not None:
        path = spec.folder / source.file
        digest = file_digest(path)
        asked = load_file(path, trusted=spec.trusted, allow_pickle=spec.allow_pickle)
    columns = _columns(name, source, asked, people)
    kind, label = _kind(source, asked)
    threshold = spec.threshold if source.threshold is None else source.threshold
    refit = needs_folds(source, spec)
    if refit:
        kind = "fitted here"
        fold = fold if fold is not None else np.zeros(len(people.matrix), dtype=np.int64)
        fitted = [_fitted(name, source, asked, columns, people, fold, number, spec) for number in range(fold.max() + 1)]
    else:
        fitted, fold = [asked], None
    yes = 1 if refit else positive  # what is fitted here is fitted to 0 and 1
    asking = [_Asking(name, model, columns, people, spec, yes, named=asked is None) for model in fitted]
    notes = list(_remarks(name, asked, refit))
    for one in asking:
        notes += unsteady_notes(name, one, people)
    linear: list[Linear] = []
    if spec.derive is None and not spec.linked:
        mistakes = every_mistake(people, spec)
        found = [as_linear(one.model, one.given, one, columns, people, threshold, mistakes) for one in asking]
        linear = [model for model in found if model is not None]
    plain = len(linear) == len(asking)
    predictors = tuple(linear) if plain else tuple(thresholded(one, threshold + TIE) for one in asking)
    return Model(name, kind, label, digest, columns, threshold, fold, predictors, plain, tuple(dict.fromkeys(notes)))


def needs_folds(source: ModelSource, spec: ReliabilitySpec) -> bool:
    """Tell whether a model is fitted here."""
    if source.estimator is not None:
        return True
    return source.model is not None and _is_estimator(source.model) and bool(spec.folds or not _is_fitted(source.model))


def _kind(source: ModelSource, asked: Any) -> tuple[str, str]:
    if source.estimator is not None:
        return "fitted here", source.estimator
    if source.file is not None:
        return "file", source.file.replace("\\", "/").rpartition("/")[2]
    return ("function" if inspect.isroutine(asked) else "object"), described(asked)


def _columns(name: str, source: ModelSource, asked: Any, people: People) -> tuple[str, ...]:
    """Return the features a model uses: those given, those it was fitted to, or all."""
    own = asked.columns if isinstance(asked, OnnxModel) else getattr(asked, "feature_names_in_", None)
    own = None if own is None else tuple(str(column) for column in own)
    if source.features is not None:
        if own is not None and set(own) <= set(people.names) and set(own) != set(source.features):
            raise ConfigError(f"the model {name!r} was fitted to other features than it is given: {', '.join(own)}.")
        return own if own is not None and set(own) == set(source.features) else source.features
    if own is None or not any(column in people.names for column in own):  # some libraries make names up
        return people.names
    for column in own:
        if column not in people.names:
            raise ConfigError(
                f"the model {name!r} was fitted to {column!r}, which is not among `features`; "
                f"{did_you_mean(column, people.names)}"
            )
    return own


def _is_estimator(model: Any) -> bool:
    return all(callable(getattr(model, method, None)) for method in ("fit", "get_params"))


def _is_fitted(model: Any) -> bool:
    require_extra("sklearn", "models", "an estimator as a model")
    validation = import_module("sklearn.utils.validation")
    try:
        validation.check_is_fitted(model)
    except Exception:
        return False
    return True


def _fitted(
    name: str,
    source: ModelSource,
    asked: Any,
    columns: Sequence[str],
    people: People,
    fold: IntArray,
    number: int,
    spec: ReliabilitySpec,
) -> Any:
    """Return the model of one fold, fitted to the people of the others."""
    if people.outcome is None:
        raise ConfigError(f"the model {name!r} is to be fitted, which needs an outcome; name its column as `outcome`.")
    step(f"Fitting {name}: fold {number + 1} of {int(fold.max()) + 1}")
    places = people.places(columns)
    own = [people.features[place] for place in places]
    train = np.flatnonzero(fold != number)
    outcome = people.outcome[train].astype(np.int64)
    if len(np.unique(outcome)) < 2:
        raise DataError(f"the model {name!r} cannot be fitted: the people outside fold {number + 1} have one outcome.")
    if asked is None:
        text = [at for at, feature in enumerate(own) if feature.labels is not None]
        numbers = [at for at, feature in enumerate(own) if feature.labels is None]
        model = make_pipeline(str(source.estimator), source.settings, seed=spec.seed, text=text, numbers=numbers)
        rows: Any = people.matrix[train][:, places]
    else:
        model = import_module("sklearn.base").clone(asked)
        rows = _rows(own, people.matrix[train][:, places], frame=spec.rows != "array")
    with import_module("threadpoolctl").threadpool_limits(limits=1):  # sums of several threads differ in last bits
        try:
            return model.fit(rows, outcome)
        except Exception as error:
            reason = str(error).strip() or type(error).__name__
            raise EvenhandError(f"the model {name!r} could not be fitted: {reason}") from error


class _Asking:
    """A model that is asked about rows of the people's matrix.

    Parameters
    ----------
    name, model, columns : the model and its features.
    people, spec, positive : as for `prepare_model`.
    named : whether it is an estimator of ours, which takes codes of text as they are.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        columns: Sequence[str],
        people: People,
        spec: ReliabilitySpec,
        positive: Scalar | None,
        *,
        named: bool,
    ) -> None:
        self.name, self.model, self.columns = name, model, columns
        self.places = people.places(columns)
        self.features = [people.features[place] for place in self.places]
        self.frame = not named and self._wants_frame(spec)
        self.ask: Scores | Callable[[Any], FloatArray] = _question(model, positive)
        # Who knows whether code of the user's may run twice at once.
        self.lock = Lock() if inspect.isroutine(model) or not hasattr(model, "get_params") else None
        if isinstance(model, OnnxModel):
            self.lock = None
            if model.width is not None and model.width != len(columns):
                raise ConfigError(
                    f"the model {name!r} takes {count(model.width, 'column')} and is given {len(columns)}; name its "
                    "own as `features` of the model, in its order."
                )

    def given(self, rows: FloatArray) -> Any:
        """Return rows as the model takes them."""
        own = rows[:, self.places]
        if isinstance(self.model, OnnxModel):
            return {feature.name: feature.as_column(own[:, at]) for at, feature in enumerate(self.features)}
        return _rows(self.features, own, frame=self.frame)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the scores of rows; what a model raises is told in our words."""
        try:
            with self.lock or nullcontext():
                return self._checked(rows, self.ask(self.given(rows)))
        except EvenhandError as error:
            raise EvenhandError(f"the model {self.name!r} {error}") from error
        except Exception as error:
            reason = str(error).strip() or "no reason given"
            raise EvenhandError(
                f"the model {self.name!r} failed on {count(len(rows), 'row')} of {', '.join(self.columns)}: "
                f"{type(error).__name__}: {reason}"
            ) from error

    def _checked(self, rows: FloatArray, scores: FloatArray) -> FloatArray:
        if scores.shape != (len(rows),):
            shape = " by ".join(str(size) for size in scores.shape) or "one number"
            raise EvenhandError(f"must return one score a row; {count(len(rows), 'row')} gave {shape}.")
        bad = np.flatnonzero(~np.isfinite(scores))
        if bad.size:
            row = ", ".join(
                f"{feature.name} {feature.shown(value) if np.isfinite(value) else value}"
                for feature, value in zip(self.features, rows[bad[0], self.places], strict=True)
            )
            raise EvenhandError(f"gave the score {scores[bad[0]]} for {row}; scores must be finite.")
        return scores

    def _wants_frame(self, spec: ReliabilitySpec) -> bool:
        text = next((feature.name for feature in self.features if feature.labels is not None), None)
        if spec.rows == "array" and text is not None and not isinstance(self.model, OnnxModel):
            raise ConfigError(f"the feature {text!r} holds text, which an array of numbers cannot; leave `rows` out.")
        return spec.rows == "frame" or (spec.rows == "auto" and (text is not None or _knows(self.model, self.columns)))


def _knows(model: Any, columns: Sequence[str]) -> bool:
    """Tell whether a model was fitted to a frame with these columns, and so wants one."""
    own = getattr(model, "feature_names_in_", None)
    return own is not None and [str(column) for column in own] == list(columns)


def _rows(features: Sequence[Feature], matrix: FloatArray, *, frame: bool) -> Any:
    if not frame:
        return matrix
    if installed_backend() is None:
        raise EvenhandError("wants a data frame, which needs pandas or Polars; install one of them.")
    return build_frame({feature.name: feature.as_given(matrix[:, at]) for at, feature in enumerate(features)})


def _question(model: Any, positive: Scalar | None) -> Callable[[Any], FloatArray]:
    """Return how a model is asked for one score a row; what it raises reads on from 'the model ...'."""
    if isinstance(model, OnnxModel):
        return lambda rows: _chance(*model.predict(rows), positive)
    if callable(getattr(model, "predict_proba", None)):
        return lambda rows: _chance(model.predict_proba(rows), getattr(model, "classes_", None), positive)
    if not callable(getattr(model, "predict", None)):
        return lambda rows: _numbers(model(rows))
    classes = getattr(model, "classes_", None)
    if classes is None:
        return lambda rows: _numbers(model.predict(rows))
    return lambda rows: _decisions(model.predict(rows), list(classes), positive)


def _decisions(found: Any, known: Sequence[Any], positive: Scalar | None) -> FloatArray:
    """Return 1 where a model decides for the positive one of its classes, else 0."""
    if len(known) > 2:
        raise EvenhandError(
            f"decides between {len(known)} classes; reliability is about one score: wrap it in a function that returns "
            "that."
        )
    yes = _positive_class(known, positive) if len(known) == 2 else 0
    chosen = np.asarray(found)
    chosen = chosen[:, 0] if chosen.ndim == 2 and chosen.shape[1] == 1 else chosen
    is_known = np.isin(chosen, known)
    if not is_known.all():
        raise EvenhandError(
            f"decides for {label_of(chosen[~is_known].flat[0])!r}, which is none of its classes; wrap it in a function "
            "that returns one score a row."
        )
    if len(known) == 1:
        return np.full(chosen.shape, float(is_positive(known[0], positive)))
    return np.asarray(chosen == known[yes], dtype=np.float64)


def _chance(found: Any, classes: Any, positive: Scalar | None) -> FloatArray:
    """Return the chance of the positive class; 0 or 1 where the model knows one class only."""
    chances = _numbers(found, two=True)
    if chances.ndim != 2:
        return chances
    known = None if classes is None else list(classes)
    if chances.shape[1] > 2:
        raise EvenhandError(
            f"gives the chances of {chances.shape[1]} classes; reliability is about one score: wrap it in a function "
            "that returns that."
        )
    if known is None:
        return chances[:, -1]
    if len(known) != chances.shape[1]:
        raise EvenhandError(f"gives the chances of {chances.shape[1]} classes and names {len(known)}.")
    if len(known) == 1:
        return np.full(len(chances), float(is_positive(known[0], positive)))
    return chances[:, _positive_class(known, positive)]


def _positive_class(known: Sequence[Any], positive: Scalar | None) -> int:
    """Return which of two classes is the positive one; a class that is not known, None, is what the other is not."""
    fits = [value is not None and is_positive(value, positive) for value in known]
    negative = [value is not None and is_negative(value, positive) for value in known]
    if sum(fits) == 1 and (negative[1 - fits.index(True)] or None in known):
        return fits.index(True)
    if None in known and sum(negative) == 1:
        return 1 - negative.index(True)
    shown = " and ".join(repr(label_of(value)) for value in known if value is not None)
    if positive is None:
        raise EvenhandError(f"knows the classes {shown}; say which is the positive one with `positive` of the table.")
    raise EvenhandError(
        f"knows the classes {shown}, and the positive outcome of the table is {label_of(positive)!r}; name the class "
        "that it is with `positive`, or wrap the model in a function that returns the score."
    )


def _numbers(found: Any, *, two: bool = False) -> FloatArray:
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise EvenhandError("gives no numbers; wrap it in a function that returns one score a row.") from None
    if values.ndim == 2 and not two and values.shape[1] == 1:
        return values[:, 0]
    return values


def _remarks(name: str, asked: Any, refit: bool) -> list[str]:
    """Warn of a fit that stops before the optimum: where columns depend on each other its weights are arbitrary."""
    steps = getattr(asked, "steps", None)
    last = steps[-1][-1] if isinstance(steps, list) and steps else asked
    loose = type(last).__name__ == "LogisticRegression" and getattr(last, "tol", 0.0) > 1e-6
    if refit and loose:
        return [
            f"{name}: a logistic regression with tol={last.tol:g} stops before the optimum. Where columns add up to a "
            "constant its coefficients, and with them these numbers, are then those of the software's version; "
            'fit with solver="newton-cholesky", tol=1e-12.'
        ]
    return []
