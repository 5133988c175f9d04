"""Out-of-fold predictions: everybody is scored by models that were not fitted to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np

from evenhand.errors import DataError, EvenhandError, count
from evenhand.models.estimators import make_pipeline, require_packages, scores_of
from evenhand.models.spec import Fit, ModelsSettings
from evenhand.models.training import Training, read_training
from evenhand.stats.types import BoolArray, FloatArray, IntArray
from evenhand.table.files import FileOptions
from evenhand.table.frames import build_frame
from evenhand.table.roles import Scalar
from evenhand.table.table import Table


def cross_predict(
    data: Any,
    *,
    outcome: str,
    features: Sequence[str] | str,
    fit: Sequence[str] | str | Mapping[str, Any],
    positive: Scalar | None = None,
    id: str | None = None,  # noqa: A002
    folds: int = 5,
    seed: int = 0,
    missing: Literal["error", "drop"] = "error",
) -> Any:
    """Fit models to an outcome and score every row by k-fold cross-validation.

    The rows are dealt into `folds` parts, each with the same share of positive outcomes. Each part is scored by
    models fitted to the other parts, so no score was fitted to the row it belongs to. All models have the same parts.

    Parameters
    ----------
    data
        A data frame (pandas, Polars, PyArrow, DuckDB), a mapping of columns, or the path of a file; its columns
        are read into memory.
    outcome, positive
        Column to predict, and the value that counts as positive (default: 1, true, yes).
    features
        Columns that the models may use: numbers, true or false, or text, which is one-hot encoded.
    fit
        Names of estimators, ``["xgboost", "logistic"]``, or models by name, each with its estimator and settings of
        that estimator's library: ``{"forest": {"estimator": "random_forest", "settings": {"n_estimators": 500}}}``.
        Estimators: logistic, random_forest, decision_tree, xgboost, lightgbm, gradient_boosting, lasso, linear.
    id
        Column that identifies a row. With it the scores do not depend on the order of the rows; without it rows are
        told apart by their position, and another order gives other folds.
    folds, seed
        Number of parts, and the seed of the parts and of the estimators.
    missing
        What to do with rows whose outcome or feature is missing: 'error', or 'drop', which leaves them out of the
        fits and gives them no score.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame, pyarrow.Table or dict
        A column of scores in [0, 1] for each model, in the order of the rows of `data`, after the ids where there is
        an `id`; in the library of `data`, or as a dict of arrays where `data` is a mapping. A score is the predicted
        chance of a positive outcome; the predictions of lasso and linear are cut off at 0 and 1.

    Notes
    -----
    Each fit runs on one thread, so the scores are the same on any number of them. Survey weights are not used.
    Files and frames of engines that keep no order of rows need an `id` to put the scores back.

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
        return scores
    own = {} if id is None else {id: training.ids}
    return build_frame({**own, **scores}, table.backend)


def out_of_fold(
    training: Training, settings: ModelsSettings, progress: Callable[[str], None] | None = None
) -> dict[str, FloatArray]:
    """Return every model's out-of-fold scores in the order of the data; nan for rows that are not usable."""
    require_packages([fit.estimator for fit in settings.fit.values()])
    rng = np.random.default_rng(settings.seed)
    rows = rng.permutation(training.by_id[training.usable[training.by_id]])
    _require_both(training.outcome[rows], settings.folds)
    part = deal(training.outcome[rows], settings.folds)
    scores = {}
    for name, fit in settings.fit.items():
        scores[name] = np.full(len(training.outcome), np.nan)
        for fold in range(settings.folds):
            if progress is not None:
                progress(f"Fitting {name}: fold {fold + 1} of {settings.folds}")
            held_out, fitted_to = rows[part == fold], rows[part != fold]
            scores[name][held_out] = _fitted_scores(training, name, fit, fitted_to, held_out, settings.seed)
    return scores


def deal(outcome: BoolArray, folds: int) -> IntArray:
    """Return the part of each row: rows are sorted by outcome, else in the order given, and dealt out like cards.

    So the sizes of the parts differ by one at most, and so do their numbers of positive outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> deal(np.array([True, False, False, True, False]), 2)
    array([1, 0, 1, 0, 0])
    """
    part = np.empty(len(outcome), dtype=np.int64)
    part[np.argsort(outcome, kind="stable")] = np.arange(len(outcome)) % folds
    return part


def _fitted_scores(
    training: Training, name: str, fit: Fit, fitted_to: IntArray, held_out: IntArray, seed: int
) -> FloatArray:
    pipeline = make_pipeline(fit.estimator, fit.settings, seed=seed, text=training.text, numbers=training.numbers)
    one_thread = import_module("threadpoolctl").threadpool_limits(limits=1)
    with one_thread:  # sums of several threads differ in their last bits
        try:
            pipeline.fit(training.matrix[fitted_to], training.outcome[fitted_to].astype(np.int64))
        except Exception as error:
            reason = str(error).strip() or type(error).__name__
            raise EvenhandError(f"the model {name!r} ({fit.estimator}) could not be fitted: {reason}") from error
        return scores_of(pipeline, training.matrix[held_out])


def _require_both(outcome: BoolArray, folds: int) -> None:
    positive = int(outcome.sum())
    for n, which in ((positive, "positive"), (len(outcome) - positive, "not positive")):
        if n < folds:
            raise DataError(
                f"the outcome is {which} in {count(n, 'row')} of {len(outcome):,}; {folds} folds need at least "
                f"{folds} such rows."
            )
