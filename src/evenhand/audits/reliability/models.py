"""Prepare models for the noise engine: read them, fit them out of fold, and convert linear ones."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from evenhand.audits.reliability.gather import ScoredPeople
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.mistakes import every_mistake
from evenhand.audits.reliability.model_sources import ModelSource, OnnxModel, described, file_digest, load_file
from evenhand.audits.reliability.scoring import Scorer, determinism_notes, model_rows
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.progress import step
from evenhand.errors import ConfigError, DataError, EvenhandError, did_you_mean, require_extra
from evenhand.messages import Message
from evenhand.models.estimators import make_pipeline
from evenhand.stats.noise import Linear, NoiseItem, NoiseModel, Normal, Predictor, between, thresholded
from evenhand.stats.types import FloatArray, IntArray
from evenhand.stats.workers import in_parallel
from evenhand.table.roles import Scalar

TIE = 1e-12
"""The difference up to which a score above the threshold is a tie, which is not selected. Whole numbers make ties
common, and the last bits of a score depend on the machine."""

FOLDS = 5

_SCALERS = {"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"}
_MOST_VALUES = 20
_DRAWS = 4
_FAR = 8.0
"""An upper bound of the size of errors, in standard deviations."""
_SAME = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """One prepared model that the engine can evaluate.

    Parameters
    ----------
    name : the name of the model in the audit.
    kind : 'fitted here', 'object', 'function' or 'file'.
    source : the class, estimator or file of the model.
    sha256 : the SHA-256 of the model's file, or None.
    columns : the features that the model uses.
    threshold : the cut-off above which a score selects a person.
    fold : (people,) the predictor of each person; None for a single predictor.
    predictors : the predictors, one per fold.
    linear : whether the model is evaluated as a linear model.
    notes : notes on the model.
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
    notes: tuple[Message, ...]


def prepare_model(
    name: str,
    source: ModelSource,
    people: ScoredPeople,
    *,
    spec: ReliabilitySpec,
    positive: Scalar | None,
    fold: IntArray | None,
) -> Model:
    """Load or fit one model.

    Parameters
    ----------
    name, source : the model.
    people : the people to score, and to fit an estimator to.
    spec : the settings of the audit.
    positive : the value of the outcome that counts as positive.
    fold : the folds, for models that are fitted here.
    """
    loaded, digest = _load_model(source, spec)
    columns = _columns(name, source, loaded, people)
    refit = needs_folds(source, spec)
    kind, label = ("fitted here", _kind(source, loaded)[1]) if refit else _kind(source, loaded)
    threshold = spec.scoring.decision if source.threshold is None else source.threshold
    fold = (np.zeros(len(people.matrix), dtype=np.int64) if fold is None else fold) if refit else None
    fitted = [loaded]
    if fold is not None:
        fitting = _Fitting(name=name, source=source, model=loaded, columns=columns, people=people, fold=fold, spec=spec)
        fitted = list(in_parallel(fitting.fit, ((number,) for number in range(fold.max() + 1))))
    yes = 1 if refit else positive  # models fitted here are fitted to 0 and 1
    scorers = [Scorer(name, model, columns, people, spec=spec, positive=yes, named=loaded is None) for model in fitted]
    notes = [*_tolerance_notes(name, loaded, refit)]
    for scorer in scorers:
        notes += determinism_notes(name, scorer, people)
    linear = _all_linear(scorers, people, threshold, spec)
    predictors: tuple[Predictor, ...] = tuple(thresholded(scorer, threshold + TIE) for scorer in scorers)
    predictors = predictors if linear is None else linear
    remarks = tuple(dict.fromkeys(notes))
    return Model(
        name=name,
        kind=kind,
        source=label,
        sha256=digest,
        columns=columns,
        threshold=threshold,
        fold=fold,
        predictors=predictors,
        linear=linear is not None,
        notes=remarks,
    )


def _load_model(source: ModelSource, spec: ReliabilitySpec) -> tuple[Any, str | None]:
    """Return the model object or the model in the file, and the file's SHA-256 (or None)."""
    if source.file is None:
        return source.model, None
    path = spec.folder / source.file
    digest = file_digest(path)
    return load_file(path, trusted=spec.scoring.trusted, allow_pickle=spec.scoring.allow_pickle), digest


def _all_linear(
    scorers: Sequence[Scorer], people: ScoredPeople, threshold: float, spec: ReliabilitySpec
) -> tuple[Linear, ...] | None:
    """Return the models of all folds as linear models.

    Return None if a model is not linear, or if there are derived features.
    """
    if spec.noise.derive is not None or spec.noise.linked:
        return None
    mistakes = every_mistake(people, spec)
    linear = [as_linear(scorer, people, threshold, mistakes) for scorer in scorers]
    linear_models = tuple(model for model in linear if model is not None)
    return linear_models if len(linear_models) == len(scorers) else None


def needs_folds(source: ModelSource, spec: ReliabilitySpec) -> bool:
    """Return whether a model is fitted here, out of fold."""
    if source.estimator is not None:
        return True
    return source.model is not None and _is_estimator(source.model) and bool(spec.folds or not _is_fitted(source.model))


def _kind(source: ModelSource, loaded: object) -> tuple[str, str]:
    if source.estimator is not None:
        return "fitted here", source.estimator
    if source.file is not None:
        return "file", source.file.replace("\\", "/").rpartition("/")[2]
    return ("function" if inspect.isroutine(loaded) else "object"), described(loaded)


def _columns(name: str, source: ModelSource, loaded: object, people: ScoredPeople) -> tuple[str, ...]:
    """Return the features of a model: the named ones, those it was fitted to, or all features."""
    names = loaded.columns if isinstance(loaded, OnnxModel) else getattr(loaded, "feature_names_in_", None)
    if names is None:
        return source.features or people.names
    fitted_to = tuple(map(str, names))
    unknown = [column for column in fitted_to if column not in people.names]
    if source.features is not None and set(fitted_to) != set(source.features):
        if not unknown:
            listed = ", ".join(fitted_to)
            raise ConfigError(
                "the model {name!r} was fitted to other features than it is given: {listed}.", name=name, listed=listed
            )
        return source.features
    if len(unknown) == len(fitted_to):  # some libraries invent names
        return people.names
    if unknown:
        raise ConfigError(
            "the model {name!r} was fitted to {unknown!r}, which is not among `features`; {hint}",
            name=name,
            unknown=unknown[0],
            hint=did_you_mean(unknown[0], people.names),
        )
    return fitted_to


def _is_estimator(model: object) -> bool:
    return all(callable(getattr(model, method, None)) for method in ("fit", "get_params"))


def _is_fitted(model: object) -> bool:
    require_extra("sklearn", "models", "an estimator as a model")
    validation = import_module("sklearn.utils.validation")
    try:
        validation.check_is_fitted(model)
    except Exception:
        return False
    return True


@dataclass(frozen=True, eq=False, kw_only=True)
class _Fitting:
    """A model to be fitted to all folds but one.

    Parameters
    ----------
    name, source : the model.
    model : the user's estimator, or None for a built-in one.
    columns : the features that the model uses.
    people, fold : the people to fit it to, and their folds.
    spec : the settings of the audit.
    """

    name: str
    source: ModelSource
    model: Any
    columns: Sequence[str]
    people: ScoredPeople
    fold: IntArray
    spec: ReliabilitySpec

    def fit(self, number: int) -> object:
        """Return the model fitted to all people outside the fold with this number."""
        name, outcome = self.name, self.people.outcome
        if outcome is None:
            raise ConfigError(
                "the model {name!r} is to be fitted, which needs an outcome; name its column as `outcome`.", name=name
            )
        step(f"Fitting {name}: fold {number + 1} of {int(self.fold.max()) + 1}")
        train = np.flatnonzero(self.fold != number)
        positive = outcome[train].astype(np.int64)
        if len(np.unique(positive)) < 2:
            raise DataError(
                "the model {name!r} cannot be fitted: the people outside fold {fold} have one outcome.",
                name=name,
                fold=number + 1,
            )
        model, rows = self._estimator(train)
        with import_module("threadpoolctl").threadpool_limits(limits=1):  # sums of several threads differ in last bits
            try:
                return model.fit(rows, positive)
            except Exception as error:
                reason = str(error).strip() or type(error).__name__
                raise EvenhandError(
                    "the model {name!r} could not be fitted: {reason}", name=name, reason=reason
                ) from error

    def _estimator(self, train: IntArray) -> tuple[Any, Any]:
        """Return an unfitted estimator, and the training people's rows in its input format."""
        positions = self.people.positions(self.columns)
        features = [self.people.features[position] for position in positions]
        matrix = self.people.matrix[train][:, positions]
        if self.model is not None:
            frame = self.spec.scoring.rows != "array"
            return import_module("sklearn.base").clone(self.model), model_rows(features, matrix, frame=frame)
        text = [number for number, feature in enumerate(features) if feature.kind != "number"]
        numbers = [number for number, feature in enumerate(features) if feature.kind == "number"]
        source = self.source
        made = make_pipeline(str(source.estimator), source.settings, seed=self.spec.seed, text=text, numbers=numbers)
        return made, matrix


def fit_to_everybody(name: str, source: ModelSource, people: ScoredPeople, spec: ReliabilitySpec) -> object:
    """Return a built-in estimator fitted to all people."""
    columns = source.features or people.names
    fold = np.zeros(len(people.matrix), dtype=np.int64)
    fitting = _Fitting(name=name, source=source, model=None, columns=columns, people=people, fold=fold, spec=spec)
    return fitting.fit(-1)


def _tolerance_notes(name: str, loaded: object, refit: bool) -> Iterator[Message]:
    """Warn of a loose tolerance, which makes the weights of dependent columns arbitrary."""
    steps = getattr(loaded, "steps", None)
    last = steps[-1][-1] if isinstance(steps, list) and steps else loaded
    tolerance = float(getattr(last, "tol", None) or 0.0) if type(last).__name__ == "LogisticRegression" else 0.0
    if refit and tolerance > 1e-6:
        yield say("loose_fit", model=name, tolerance=tolerance)


# Linear models -----------------------------------------------------------------------------------------------------


def as_linear(scorer: Scorer, people: ScoredPeople, threshold: float, mistakes: Sequence[NoiseItem]) -> Linear | None:
    """Return a logistic regression (with or without scalers) as a linear model of raw columns, or None.

    The weights are computed from scores of rows with one changed column each. They must reproduce the scores of the
    original people and of people with the audit's mistakes, including the largest ones, because clipping scalers and
    encoders that ignore unknown values are linear only in the range they were fitted to.

    Parameters
    ----------
    scorer : the scorer of the fitted model.
    people, threshold : the people, and the cut-off of the scores.
    mistakes : all possible mistakes, in any setting and any group.
    """
    if not 0 < threshold < 1 or not _may_be_linear(scorer.model) or np.isnan(people.matrix).any():
        return None
    from scipy.special import expit

    try:
        linear = _linear_weights(scorer, people, mistakes, threshold)
        rows = _with_mistakes(people, mistakes)
        expected = linear.sums(rows)
        # Scores near 0 and 1 hide the sum, and rounding is relative to its largest term.
        near = _SAME * (1.0 + float(np.abs(rows * linear.weights).max()))
        same = np.allclose(expected, scorer.model.decision_function(scorer.inputs(rows)), rtol=0, atol=near)
        same = same and np.allclose(expit(expected), scorer(rows), rtol=0, atol=_SAME)
    except Exception:  # a model that cannot score some row is not linear; the simulation reports the error
        return None
    return linear if same else None


def _linear_weights(scorer: Scorer, people: ScoredPeople, mistakes: Sequence[NoiseItem], threshold: float) -> Linear:
    """Return the linear model with the scores' slopes, each from one column raised from its minimum to its maximum."""
    moved = {column for item in mistakes for column in item.columns}
    lowest, highest = (np.array([feature.distinct[end] for feature in people.features]) for end in (0, -1))
    highest[[column for column in moved if lowest[column] == highest[column]]] += 1.0
    varied = [column for column in scorer.positions if highest[column] > lowest[column]]
    rows = np.repeat(lowest[np.newaxis], len(varied) + 1, axis=0)
    rows[np.arange(1, len(rows)), varied] = highest[varied]
    sums = np.asarray(scorer.model.decision_function(scorer.inputs(rows)), dtype=np.float64)
    weights = np.zeros(len(lowest))
    weights[varied] = [_without_noise(slope) for slope in (sums[1:] - sums[0]) / (highest - lowest)[varied]]
    return Linear(weights, _without_noise(float(sums[0] - (lowest * weights).sum())), threshold)


def _without_noise(number: float) -> float:
    """Return a weight rounded to 11 digits, because its last bits depend on the processor."""
    return float(f"{number:.11g}")


def _with_mistakes(people: ScoredPeople, mistakes: Sequence[NoiseItem]) -> FloatArray:
    """Return trial rows: unchanged, with random mistakes in many columns, and with the largest mistakes in one."""
    rng = np.random.default_rng(0)
    rows = _rows_to_try(people)
    columns_and_models = [(list(item.columns), model) for item in mistakes for model in (item.model, *item.others)]
    tried = [rows]
    for _ in range(_DRAWS):
        other = rows.copy()
        for columns, model in columns_and_models:  # if a column has several kinds of mistakes, each person has only one
            touched = rng.random(len(rows)) < 0.8
            other[:, columns] = np.where(
                touched[:, np.newaxis], _with_drawn_mistakes(model, rows[:, columns], rng), other[:, columns]
            )
        tried.append(other)
    for columns, model in columns_and_models:
        for end in (0, -1):
            other = rows.copy()
            other[:, columns] = [people.features[column].distinct[end] for column in columns]
            if isinstance(model, Normal):
                largest = np.rint(_FAR * model.sd) if model.whole else _FAR * model.sd
                beyond = other[:, columns] + (largest if end else -largest)
                other[:, columns] = between(beyond, model.minimum, model.maximum)
            else:
                other[:, columns] = _with_drawn_mistakes(model, other[:, columns], rng)
            tried.append(other)
    return np.concatenate(tried)


def _with_drawn_mistakes(model: NoiseModel, values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return values with random mistakes; values with an error rate of 0 are unchanged."""
    rate = model.rate(values)
    drawn = model.draw(values, rng)
    return drawn if rate is None else np.asarray(np.where(rate[:, np.newaxis] > 0, drawn, values))


def _rows_to_try(people: ScoredPeople) -> FloatArray:
    """Return trial rows that cover all values of columns with few values, and the extremes of other columns."""
    pick = people.sample().tolist()
    for column, feature in enumerate(people.features):
        values = feature.distinct if len(feature.distinct) <= _MOST_VALUES else feature.distinct[[0, -1]]
        pick += [int(np.argmax(people.matrix[:, column] == value)) for value in values]
    return people.matrix[np.unique(np.array(pick, dtype=np.int64))]


def _may_be_linear(model: object) -> bool:
    """Return whether a model is a scikit-learn logistic regression, alone or after linear steps."""
    if not type(model).__module__.startswith("sklearn."):
        return False
    name = type(model).__name__
    if name == "Pipeline":
        *before, last = [part for _, part in getattr(model, "steps", ())]
        return all(_keeps_linear(part) for part in before) and _may_be_linear(last)
    return name == "LogisticRegression" and getattr(model, "coef_", np.zeros((2, 1))).shape[0] == 1


def _keeps_linear(part: Any) -> bool:
    if part is None or isinstance(part, str):
        return part in (None, "passthrough", "drop")
    if type(part).__name__ == "ColumnTransformer":
        return all(_keeps_linear(inner) for _, inner, _ in part.transformers_)
    if type(part).__name__ == "OneHotEncoder":
        return all(len(categories) <= 2 for categories in part.categories_)
    if type(part).__name__ == "FunctionTransformer":
        return part.func is None  # a ColumnTransformer represents passed-through columns as such
    return type(part).__name__ in _SCALERS and type(part).__module__.startswith("sklearn.")
