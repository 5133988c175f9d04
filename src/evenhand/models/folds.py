"""Out-of-fold predictions: scores from models fitted to other people, and a table with these scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, cast

import narwhals as nw
import numpy as np

from evenhand.errors import ConfigError, DataError, EvenhandError, count, did_you_mean
from evenhand.messages import Message
from evenhand.models.estimators import (
    Estimator,
    Fit,
    ModelsSettings,
    make_pipeline,
    require_packages,
    scores_of,
    small_seed,
)
from evenhand.models.features import FeatureMatrix, Training, read_training
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.stats.workers import in_parallel
from evenhand.table.frames import NativeFrame, TableData, build_frame
from evenhand.table.messages import say
from evenhand.table.roles import Scalar
from evenhand.table.sources import FileOptions, Source
from evenhand.table.table import Table, with_fitted_models

if TYPE_CHECKING:
    from sklearn.model_selection import RandomizedSearchCV
    from sklearn.pipeline import Pipeline


def cross_predict(
    data: TableData,
    *,
    outcome: str,
    features: Sequence[str] | str,
    fit: Sequence[str] | str | Mapping[str, Any],
    positive: Scalar | None = None,
    id: str | None = None,  # noqa: A002
    folds: int = 5,
    seed: int = 0,
    missing: Literal["error", "drop"] = "error",
) -> NativeFrame:
    """Return scores of every row from models fitted by k-fold cross-validation.

    The rows are divided into `folds` parts with equal shares of positive outcomes. Each part is scored by models fitted
    to the other parts, so no row is scored by a model fitted to it. All models use the same parts.

    Parameters
    ----------
    data
        A data frame (pandas, Polars, PyArrow, DuckDB), a mapping of columns, or the path of a file; its columns
        are read into memory.
    outcome, positive
        Column to predict, and the value that counts as positive (default: 1, true, yes).
    features
        Columns for the models: numbers, true or false, or text, which is one-hot encoded.
    fit
        Names of estimators, ``["xgboost", "logistic"]``, or models by name, each with its estimator and settings of
        that estimator's library: ``{"forest": {"estimator": "random_forest", "settings": {"n_estimators": 500}}}``.
        Estimators: logistic, random_forest, decision_tree, xgboost, lightgbm, gradient_boosting, lasso, linear.
    id
        Column that identifies a row. With it the scores do not depend on the order of the rows; without it rows are
        identified by their position, and another order gives different folds.
    folds, seed
        The number of parts, and the seed of the parts and of the estimators.
    missing
        The treatment of rows with a missing outcome or feature: 'error' raises, 'drop' excludes them from the fits and
        leaves their scores missing.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        A column of scores in [0, 1] for each model, in the order of the rows of `data`, after the ids if `id` is set;
        in the library of `data`, or as a dict of arrays if `data` is a mapping. A score is the predicted probability of
        a positive outcome; predictions of lasso and linear are clipped to 0 and 1.

    Notes
    -----
    Each fit runs on one thread, so the scores do not depend on the number of threads. Survey weights are not used.
    Files and frames of engines without an order of rows need an `id` to match the scores to the rows.

    References
    ----------
    M. Stone. Cross-validatory choice and assessment of statistical predictions. Journal of the Royal Statistical
    Society B 36 (1974).

    Examples
    --------
    >>> from evenhand.datasets import make_households
    >>> households = make_households(500, seed=1, backend="polars")
    >>> scores = cross_predict(
    ...     households, id="household", outcome="missed_payment", features=["income_2022", "employment"], fit="logistic"
    ... )
    >>> scores.columns, scores.shape
    (['household', 'logistic'], (500, 2))
    """
    settings = ModelsSettings.parse(
        {"features": features, "fit": fit, "folds": folds, "seed": seed}, "the arguments of cross_predict()"
    )
    table = Table(data, id=id, outcome=outcome, positive=positive, missing=missing)
    training = read_training(data, FileOptions(), table.roles, settings.features)
    scores = out_of_fold(training, settings)
    if isinstance(data, Mapping):
        return cast(NativeFrame, scores)
    ids = {} if id is None or training.ids is None else {id: training.ids}
    return build_frame({**ids, **scores}, table.backend)


def out_of_fold(
    training: Training, settings: ModelsSettings, progress: Callable[[str], None] | None = None
) -> dict[str, FloatArray]:
    """Return every model's out-of-fold scores in the order of the data; nan for unusable rows."""
    require_packages([fit.estimator for fit in settings.fit.values()])
    rng = np.random.default_rng(settings.seed)
    rows = rng.permutation(training.by_id[training.usable[training.by_id]])
    _require_both(training.outcome[rows], settings.folds)
    part = deal(training.outcome[rows], settings.folds)
    scores = {name: np.full(len(training.outcome), np.nan) for name in settings.fit}
    every = list(product(settings.fit, range(settings.folds)))

    def work() -> Iterator[tuple[_FitTask]]:
        for name, fold in every:
            if progress is not None:
                progress(f"Fitting {name}: fold {fold + 1} of {settings.folds}")
            yield (_fit_task(training, name, settings, fitted_to=rows[part != fold], held_out=rows[part == fold]),)

    for (name, fold), found in zip(every, in_parallel(_fitted_scores, work()), strict=True):
        scores[name][rows[part == fold]] = found
    return scores


def deal(outcome: BoolArray, folds: int) -> IntArray:
    """Return the fold of each row, assigned in turn to the rows sorted by outcome.

    The sizes of the folds differ by at most one, and so do their numbers of positive outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> deal(np.array([True, False, False, True, False]), 2)
    array([1, 0, 1, 0, 0])
    """
    part = np.empty(len(outcome), dtype=np.int64)
    part[np.argsort(outcome, kind="stable")] = np.arange(len(outcome)) % folds
    return part


@dataclass(frozen=True, kw_only=True)
class _FitTask:
    """The data of one fit, in a form that can be sent to other processes.

    Parameters
    ----------
    features, outcome : the features and the outcome of all rows.
    name, fit, seed : the model, its settings, and its seed.
    fitted_to, held_out : the rows for fitting, and the rows to be scored.
    """

    features: FeatureMatrix
    outcome: BoolArray
    name: str
    fit: Fit
    seed: int
    fitted_to: IntArray
    held_out: IntArray


def _fit_task(
    training: Training, name: str, settings: ModelsSettings, *, fitted_to: IntArray, held_out: IntArray
) -> _FitTask:
    return _FitTask(
        features=training.features,
        outcome=training.outcome,
        name=name,
        fit=settings.fit[name],
        seed=settings.seed,
        fitted_to=fitted_to,
        held_out=held_out,
    )


def _fitted_scores(task: _FitTask) -> FloatArray:
    """Return the scores of the held-out rows from a model fitted to all other rows."""
    features, fit = task.features, task.fit
    text, numbers = features.categories, features.numbers
    pipeline: Estimator = make_pipeline(fit.estimator, fit.settings, seed=task.seed, text=text, numbers=numbers)
    if fit.search is not None:
        pipeline = searched(pipeline, fit, task.seed)
    one_thread = import_module("threadpoolctl").threadpool_limits(limits=1)
    with one_thread:  # sums of several threads differ in their last bits
        try:
            pipeline.fit(features.values[task.fitted_to], task.outcome[task.fitted_to].astype(np.int64))
        except Exception as error:
            reason = str(error).strip() or type(error).__name__
            raise EvenhandError(
                "the model {name!r} ({estimator}) could not be fitted: {reason}",
                name=task.name,
                estimator=fit.estimator,
                reason=reason,
            ) from error
        return scores_of(pipeline, features.values[task.held_out])


_SCORERS = {"weighted_f1": "f1_weighted", "accuracy": "accuracy", "auc": "roc_auc"}


def searched(pipeline: Pipeline, fit: Fit, seed: int) -> RandomizedSearchCV:
    """Return a pipeline that searches for its best settings when it is fitted."""
    from sklearn.model_selection import ParameterGrid, RandomizedSearchCV, StratifiedKFold

    search = fit.search
    assert search is not None  # noqa: S101
    known = pipeline.named_steps["estimator"].get_params()
    for option in search.grid:
        if option not in known:
            raise ConfigError(
                "`grid` of {estimator!r} has {option!r}; {hint}",
                estimator=fit.estimator,
                option=option,
                hint=did_you_mean(option, known),
            )
    grid = {f"estimator__{option}": values for option, values in search.grid.items()}
    state = small_seed(seed)
    return RandomizedSearchCV(
        pipeline,
        grid,
        n_iter=min(search.iterations, len(ParameterGrid(grid))),
        scoring=_SCORERS[search.metric],
        cv=StratifiedKFold(search.folds, shuffle=True, random_state=state),
        random_state=state,
        n_jobs=1,
    )


def judged_on_split(training: Training, settings: ModelsSettings) -> Message:
    """Return a message with every model's accuracy and weighted F1 on held-out rows after one split."""
    assert settings.split is not None  # noqa: S101
    rng = np.random.default_rng(settings.seed)
    rows = rng.permutation(training.by_id[training.usable[training.by_id]])
    rows = rows[np.argsort(training.outcome[rows], kind="stable")]
    index = np.empty(len(rows), dtype=np.int64)
    for side in (False, True):  # gives both parts the same share of positive outcomes
        same = training.outcome[rows] == side
        index[same] = np.arange(same.sum()) < round(settings.split * same.sum())
    fitted_to, held_out = rows[index == 1], rows[index == 0]
    truth = training.outcome[held_out]
    parts = []
    work = ((_fit_task(training, name, settings, fitted_to=fitted_to, held_out=held_out),) for name in settings.fit)
    for name, scores in zip(settings.fit, in_parallel(_fitted_scores, work), strict=True):
        selected = scores > 0.5
        accuracy, f1 = float((selected == truth).mean()), float(weighted_f1(truth, selected))
        parts.append(say("judged_model", model=name, accuracy=accuracy, f1=f1))
    return say("judged_on_split", share=settings.split, people=len(held_out), models=tuple(parts))


def weighted_f1(truth: BoolArray, selected: BoolArray) -> float:
    """Return the mean F1 of both classes, weighted by their numbers of people; 0/0 counts as 0.

    Examples
    --------
    >>> weighted_f1(np.array([True, True, False, False]), np.array([True, False, False, False])).__round__(4)
    0.7333
    """
    total = 0.0
    for side in (False, True):
        hits = float(((truth == side) & (selected == side)).sum())
        claims = float((truth == side).sum() + (selected == side).sum())
        total += float((truth == side).mean()) * (2.0 * hits / claims if claims else 0.0)
    return total


def _require_both(outcome: BoolArray, folds: int) -> None:
    positive = int(outcome.sum())
    for n, side in ((positive, "positive"), (len(outcome) - positive, "not positive")):
        if n < folds:
            raise DataError(
                "the outcome is {side} in {rows} of {number:,}; {folds} folds need at least {folds} such rows.",
                side=side,
                rows=count(n, "row"),
                number=len(outcome),
                folds=folds,
            )


def add_models(
    table: Table, arguments: Mapping[str, Any], settings: ModelsSettings, progress: Callable[[str], None] | None = None
) -> Table:
    """Return the table with the scores of newly fitted models as predictions.

    Parameters
    ----------
    table : the table without the models, validated.
    arguments : the table's arguments; `threshold` and `favourable` also apply to the new predictions.
    settings : the models to fit.
    progress : called with a description of each step.
    """
    for name in settings.fit:
        if name in table.models:
            raise ConfigError(
                "the table already has predictions called {name!r}; give the model another name.", name=name
            )
    chosen = {name: arguments[name] for name in FileOptions.model_fields if name in arguments}
    options = FileOptions.parse(chosen, "the options of the file")
    training = read_training(arguments["data"], options, table.roles, settings.features)
    _require_new_columns(training.source, settings)
    scores = out_of_fold(training, settings, progress)
    predictions: dict[str, Any] = {
        **table.roles.predictions,
        **{name: {"column": name, "kind": "score"} for name in scores},
    }
    scored = Table(**{**arguments, "data": _with_columns(training.source, scores), "predictions": predictions})
    split = () if settings.split is None else (judged_on_split(training, settings),)
    notes = (_note(training, settings), *split)
    return with_fitted_models(scored, before=table, models=scores, digest=training.digest(), notes=notes)


def _require_new_columns(source: Source, settings: ModelsSettings) -> None:
    existing = {name.casefold(): name for name in source.names}
    for name in settings.fit:
        if name.casefold() in existing:
            raise ConfigError(
                "the data already has a column {taken!r}; give the model another name.", taken=existing[name.casefold()]
            )


def _with_columns(source: Source, columns: Mapping[str, FloatArray]) -> TableData:
    """Return the data with additional columns, as a data frame or as a table in our own connection."""
    frame = source.frame
    if isinstance(frame, nw.DataFrame):
        library = frame.implementation
        added = [nw.new_series(name, values, nw.Float64, backend=library) for name, values in columns.items()]
        native: NativeFrame = frame.with_columns(*added).to_native()
        return native
    connection, rows = source.connection, "evenhand_row"
    assert connection is not None  # noqa: S101 lazy frames of other engines are refused before
    numbers = np.arange(1, len(next(iter(columns.values()))) + 1)
    connection.register("evenhand_scores", {rows: numbers, **columns})
    numbered = frame.to_native().project(f"*, row_number() over () as {rows}")
    scored = numbered.join(connection.table("evenhand_scores"), rows).project(f"* exclude ({rows})")
    scored.query("scored_rows", "create temp table evenhand_scored as from scored_rows")
    return connection.table("evenhand_scored")


def _note(training: Training, settings: ModelsSettings) -> Message:
    return say(
        "fitted_here",
        models=tuple(settings.fit),
        seed=settings.seed,
        folds=settings.folds,
        people=int(training.usable.sum()),
        features=tuple(settings.features),
    )
