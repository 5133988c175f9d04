"""Estimators by a short name, with settings that give the same results for any number of threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from narwhals.typing import IntoDataFrame
from pydantic import Field, field_validator, model_validator

from evenhand.errors import ConfigError, SettingError, brief, did_you_mean, require_extra
from evenhand.settings import Settings, named_once
from evenhand.stats.types import FloatArray
from evenhand.table.roles import Columns, Scalar

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

SEED = "random_state"

PeopleFeatures: TypeAlias = npt.ArrayLike | IntoDataFrame
"""The features of people in a model's format: an array or a data frame, one row per person."""


class Predictor(Protocol):
    """A fitted model with `predict`, as in scikit-learn."""

    def predict(self, features: Any, /) -> npt.ArrayLike:
        """Return a class or a number for each row."""


class ChancePredictor(Protocol):
    """A fitted classifier with probabilities, as in scikit-learn."""

    def predict_proba(self, features: Any, /) -> npt.ArrayLike:
        """Return the probability of each class for each row of the features."""


class Estimator(Predictor, Protocol):
    """A model with `fit`, as in scikit-learn."""

    def fit(self, features: Any, outcome: Any, /) -> Self:
        """Fit the model and return it."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The construction of a named estimator.

    Parameters
    ----------
    module, name : the module and the name of its class.
    regressor : the class for numeric outcomes; None if it only predicts yes or no.
    settings : our settings, which a user may change.
    fixed : settings that a user may not change, for the same results on any number of threads or for less output.
    seeded : whether it draws random numbers.
    scaled : whether numbers are standardised first.
    """

    module: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True
    scaled: bool = False
    regressor: str | None = None

    @property
    def package(self) -> str:
        """The name of the required package."""
        return self.module.partition(".")[0]


# Mostly the libraries' own defaults, written down so that a new version does not change a number.
ESTIMATORS: dict[str, Recipe] = {
    # Newton's method reaches the optimum itself; a looser solver's end depends on the last bits of sums.
    "logistic": Recipe(
        module="sklearn.linear_model",
        name="LogisticRegression",
        settings={"C": 1.0, "solver": "newton-cholesky", "tol": 1e-8, "max_iter": 200},
        scaled=True,
    ),
    "random_forest": Recipe(
        module="sklearn.ensemble",
        name="RandomForestClassifier",
        settings={"n_estimators": 100, "max_depth": None, "min_samples_leaf": 1},
        fixed={"n_jobs": 1},
        regressor="RandomForestRegressor",
    ),
    # Limited, because a fully grown tree predicts only 0 or 1.
    "decision_tree": Recipe(
        module="sklearn.tree",
        name="DecisionTreeClassifier",
        settings={"max_depth": 5, "min_samples_leaf": 20},
        regressor="DecisionTreeRegressor",
    ),
    "xgboost": Recipe(
        module="xgboost",
        name="XGBClassifier",
        settings={"n_estimators": 100, "max_depth": 6, "learning_rate": 0.3},
        fixed={"n_jobs": 1, "tree_method": "hist", "verbosity": 0},
        regressor="XGBRegressor",
    ),
    "lightgbm": Recipe(
        module="lightgbm",
        name="LGBMClassifier",
        settings={"n_estimators": 100, "num_leaves": 31, "learning_rate": 0.1, "min_child_samples": 20},
        fixed={"n_jobs": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1},
        regressor="LGBMRegressor",
    ),
    "gradient_boosting": Recipe(
        module="sklearn.ensemble",
        name="HistGradientBoostingClassifier",
        settings={"max_iter": 100, "max_leaf_nodes": 31, "learning_rate": 0.1, "early_stopping": False},
        regressor="HistGradientBoostingRegressor",
    ),
    "lasso": Recipe(
        module="sklearn.linear_model",
        name="LassoCV",
        settings={"cv": 5, "tol": 1e-8, "max_iter": 10_000},
        fixed={"n_jobs": 1},
        seeded=False,
        scaled=True,
        regressor="LassoCV",
    ),
    "linear": Recipe(
        module="sklearn.linear_model", name="LinearRegression", seeded=False, regressor="LinearRegression"
    ),
}
"""The estimators by name. The effort paper names XGBoost, LightGBM, logistic regression, random forest and decision
tree; it tuned XGBoost by a random search and prints no settings of any of them."""


def require_packages(names: Sequence[str]) -> None:
    """Raise a `MissingExtraError` unless the packages of these estimators are installed."""
    for name in names:
        for package in ("sklearn", ESTIMATORS[name].package):
            require_extra(package, "models", f"the estimator {name!r}")


def make_pipeline(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    text: Sequence[int] = (),
    numbers: Sequence[int] = (),
    regressor: bool = False,
) -> Pipeline:
    """Return an unfitted scikit-learn pipeline: prepared columns, then the estimator.

    Text columns, passed as codes, become one 0/1 column for each code in the training rows; an unseen code is 0 in all
    of them. Numbers stay unchanged, or are standardised if the estimator needs it.

    Parameters
    ----------
    name : a key of `ESTIMATORS`.
    settings : settings by the library's names, which replace ours.
    seed : the same seed gives the same fit.
    text, numbers : indices of the text columns and of the numeric columns.
    regressor : whether the outcome is numeric instead of yes or no.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 1.5], [1.0, 2.5], [0.0, 3.5], [1.0, 4.5]])
    >>> model = make_pipeline("logistic", {"C": 10.0}, text=[0], numbers=[1]).fit(x, [0, 0, 1, 1])
    >>> model.predict_proba(x)[:, 1].round(2)
    array([0.06, 0.13, 0.87, 0.94])
    """
    if name not in ESTIMATORS:
        raise ConfigError("there is no estimator {name!r}; {hint}", name=name, hint=did_you_mean(name, ESTIMATORS))
    require_packages([name])
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    recipe = ESTIMATORS[name]
    prepared = [
        ("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), list(text)),
        ("numbers", StandardScaler() if recipe.scaled else "passthrough", list(numbers)),
    ]
    columns = ColumnTransformer([part for part in prepared if part[2]])
    estimator = _estimator(name, recipe, settings or {}, seed, regressor=regressor)
    return Pipeline([("columns", columns), ("estimator", estimator)])


def _estimator(name: str, recipe: Recipe, settings: Mapping[str, Any], seed: int, *, regressor: bool) -> Estimator:
    if regressor and recipe.regressor is None:
        raise ConfigError(
            "the estimator {name!r} predicts yes or no; the outcome here is a number: use another one.", name=name
        )
    kind = getattr(import_module(recipe.module), (recipe.regressor if regressor else None) or recipe.name)
    names = [option for option in kind().get_params() if option not in (SEED, *recipe.fixed)]
    for option in settings:
        if option not in names:
            raise ConfigError(
                "{name} ({name_2!r}) has no setting {option!r}; {hint}",
                name=recipe.name,
                name_2=name,
                option=option,
                hint=did_you_mean(option, names),
            )
    seeded = {SEED: small_seed(seed)} if recipe.seeded else {}
    estimator: Estimator = kind(**{**recipe.settings, **settings, **recipe.fixed, **seeded})
    return estimator


def small_seed(seed: int) -> int:
    """Return a seed below 2**31, as every library requires, from a seed of any size.

    Examples
    --------
    >>> small_seed(10**30) < 2**31, small_seed(0) != small_seed(1)
    (True, True)
    """
    return int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)


def scores_of(pipeline: Predictor, matrix: FloatArray) -> FloatArray:
    """Return a fitted pipeline's scores: the probability of a positive, or predictions clipped to [0, 1].

    Scores are rounded to nine decimals, because further decimals depend on the processor.
    """
    chances = getattr(pipeline, "predict_proba", None)
    scores = np.clip(pipeline.predict(matrix), 0.0, 1.0) if chances is None else chances(matrix)[:, 1]
    return np.asarray(np.round(np.asarray(scores, dtype=np.float64), 9))


# Settings -------------------------------------------------------------------------------------------------


class Search(Settings):
    """A randomised search that cross-validates some combinations of settings and fits the best one.

    Parameters
    ----------
    grid : the values to try for each setting of the estimator.
    iterations : the largest number of combinations to try.
    folds : the number of cross-validation folds of the training rows.
    metric : the metric to maximise.

    References
    ----------
    J. Bergstra and Y. Bengio (2012), Random search for hyper-parameter optimization, JMLR 13.

    Examples
    --------
    >>> Search(grid={"max_depth": [2, 3, 6]}).iterations
    20
    """

    grid: dict[str, list[Any]] = Field(min_length=1)
    iterations: int = Field(20, ge=1, le=1_000)
    folds: int = Field(5, ge=2, le=20)
    metric: Literal["weighted_f1", "accuracy", "auc"] = "weighted_f1"

    @field_validator("grid")
    @classmethod
    def _values(cls, value: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for name, options in value.items():
            if not options:
                raise SettingError("`grid` has no values for {name!r}", name=name)
        return value


class Fit(Settings):
    """One model to fit.

    Parameters
    ----------
    estimator : the estimator's short name; by default the model's own name.
    settings : settings of the estimator by its library's names; our defaults are added.
    search : a randomised search of settings, with its grid.

    Examples
    --------
    >>> Fit(estimator="decision_tree", settings={"max_depth": 3}).settings
    {'max_depth': 3, 'min_samples_leaf': 20}
    """

    estimator: str
    settings: dict[str, Any] = Field({})
    search: Search | None = None

    @field_validator("estimator")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in ESTIMATORS:
            raise SettingError(
                "there is no estimator {value!r}; {hint}", value=value, hint=did_you_mean(value, ESTIMATORS)
            )
        return value

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        recipe, chosen = ESTIMATORS.get(str(values.get("estimator"))), values.get("settings", {})
        if recipe is None or not isinstance(chosen, Mapping):
            return values
        return {**values, "settings": {**recipe.settings, **chosen}}

    @model_validator(mode="after")
    def _free_to_set(self) -> Self:
        recipe = ESTIMATORS[self.estimator]
        for option in (*self.settings, *(self.search.grid if self.search is not None else ())):
            if option == SEED:
                raise SettingError("`{SEED}` cannot be set for one model; set `seed` for all of them", SEED=SEED)
            if option in recipe.fixed:
                raise SettingError(
                    "`{option}` is always {fixed!r}, so that the numbers stay the same",
                    option=option,
                    fixed=recipe.fixed[option],
                )
        return self


class ModelsSettings(Settings):
    """The `[models]` section: models fitted to the outcome before the audits, with out-of-fold scores.

    Examples
    --------
    >>> ModelsSettings(features="income", fit="logistic").fit["logistic"].estimator
    'logistic'
    """

    features: Columns = Field(description="Columns that the models may use: numbers, true or false, or text.")
    fit: dict[str, Fit] = Field(
        min_length=1,
        description="Estimators by name, or a table of models: the name of each with its `estimator` and `settings`.",
    )
    folds: int = Field(5, ge=2, le=100, description="Parts of the data; each is scored by models fitted to the others.")
    seed: int = Field(0, ge=0, description="Seed of the folds and of the estimators.")
    split: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="A share of the rows, as 0.7: models are also fitted to it and judged on the rest (accuracy, "
        "weighted F1), beside the scores out of fold.",
    )

    @field_validator("features")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return named_once("features", value)

    @field_validator("fit", mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        if isinstance(value, str):
            return {value: {"estimator": value}}
        if isinstance(value, Mapping):
            return {name: _fit(name, fit) for name, fit in value.items()}
        names = list(value) if isinstance(value, Iterable) else [value]
        if not all(isinstance(name, str) for name in names):
            raise SettingError("give estimators by name, or a table of models; got {value}", value=brief(value))
        return {name: {"estimator": name} for name in names}


def _fit(name: object, fit: object) -> object:
    if isinstance(fit, str):
        return {"estimator": fit}
    return {"estimator": name, **fit} if isinstance(fit, Mapping) else fit


# Fitted models ----------------------------------------------------------------------------------------------


def fitted(
    model: Predictor | ChancePredictor, X: PeopleFeatures, *, positive: Scalar | None = None
) -> npt.NDArray[Any]:
    """Return a fitted model's predictions for people as an array for an audit.

    Parameters
    ----------
    model
        Any object with `predict_proba` or `predict`, as in scikit-learn: a two-class classifier, a regressor, or a
        pipeline of one. For a regressor, pass `outcome_kind="number"` to the table.
    X
        The features of the people of the table, in the order of its rows. Do not pass training rows, on which every
        model looks better than it is.
    positive
        The class whose probability is the score; by default the second of the model's classes.

    Returns
    -------
    numpy.ndarray
        The probability of the positive class if the model provides one, otherwise its decisions or its numbers.

    Examples
    --------
    >>> import evenhand as eh
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> scores = eh.fitted(LogisticRegression().fit(X, y), X)
    >>> table = eh.Table({"sex": ["f", "m", "f", "m"]}, groups="sex", predictions={"logistic": scores}, outcome=y)
    >>> table.has_scores("logistic")
    True
    """
    name = type(model).__name__
    if not any(callable(getattr(model, method, None)) for method in ("predict_proba", "predict")):
        raise ConfigError("a fitted model must have predict_proba or predict; got {model}.", model=brief(model))
    try:
        return _predictions(model, X, positive)
    except ConfigError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ConfigError("the model {name} could not score `X`: {reason}", name=name, reason=reason) from error


def _predictions(model: Predictor | ChancePredictor, features: PeopleFeatures, positive: object) -> npt.NDArray[Any]:
    names = getattr(model, "classes_", None)
    classes = None if names is None else list(names)
    if classes is not None:
        positive = _positive_class(type(model).__name__, classes, positive)
    predict_chances = getattr(model, "predict_proba", None)
    if callable(predict_chances):
        chances = np.asarray(predict_chances(features), dtype=np.float64)
        column = -1 if classes is None else classes.index(positive)
        return chances if chances.ndim == 1 else chances[:, column]
    answers = np.asarray(getattr(model, "predict")(features))  # noqa: B009 it has the one or the other
    return answers if classes is None else np.asarray(answers == positive, dtype=np.int64)


def _positive_class(name: str, classes: list[Any], positive: object) -> object:
    """Return the class whose probability is the score: `positive`, or by default the second class."""
    if len(classes) != 2:
        raise ConfigError(
            "the model {name} knows {number} classes; a prediction is about two: give one score.",
            name=name,
            number=len(classes),
        )
    if positive is None:
        return classes[-1]
    if positive not in classes:
        names = " and ".join(repr(str(value)) for value in classes)
        raise ConfigError(
            "`positive` got {positive}; the model {name} knows {known}.",
            positive=brief(positive),
            name=name,
            known=names,
        )
    return positive
