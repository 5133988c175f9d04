"""Selection rules, which learn an algorithm from training rows to decide other rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from evenhand.audits.improvability.candidates import Candidate
from evenhand.audits.improvability.gather import AuditRows, Kind, Predictions
from evenhand.audits.improvability.messages import say
from evenhand.errors import ConfigError, EvenhandError, problem, require_extra
from evenhand.models.estimators import make_pipeline, small_seed
from evenhand.stats.improvability import Utility, select_top
from evenhand.stats.linear_search import LinearCandidate, search_problem, solve_milp, sweep_directions
from evenhand.stats.types import FloatArray, IntArray

Scorer = Callable[[FloatArray], Any]
Coefficient = tuple[str, float]
"""A prepared column, and its coefficient in the score."""

DEFAULT_THRESHOLD = 0.5
INTERCEPT = "(intercept)"


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingRows:
    """The inputs of a selection rule.

    Parameters
    ----------
    features, names : (rows, columns) the numbers and codes of text, and the names of the columns.
    labels : the text of the codes, for features of text.
    outcome : (rows,) the outcomes; nan where unknown.
    group, groups : (rows,) the group of each row, and the names of the groups.
    status_quo : (rows,) the decisions of the status quo.
    weight : the survey weights, or None.
    capacity : the share to select, or None.
    seed : the seed for rules that draw random numbers.
    columns : further columns that the utility depends on.
    """

    features: FloatArray
    names: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    outcome: FloatArray
    group: IntArray
    groups: tuple[str, ...]
    status_quo: FloatArray
    weight: FloatArray | None
    capacity: float | None
    seed: int
    columns: Mapping[str, FloatArray] = field(default_factory=dict)

    def known(self) -> TrainingRows:
        """Return the rows with a known outcome."""
        keep = ~np.isnan(self.outcome)
        if keep.all():
            return self
        return replace(
            self,
            features=self.features[keep],
            outcome=self.outcome[keep],
            group=self.group[keep],
            status_quo=self.status_quo[keep],
            weight=None if self.weight is None else self.weight[keep],
            columns={name: values[keep] for name, values in self.columns.items()},
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """An algorithm that a rule has learned.

    Parameters
    ----------
    score : the function from a feature matrix to scores or decisions.
    kind : whether `score` returns scores or decisions.
    threshold : the cut-off above which rows are selected, if no capacity ranks the scores.
    pipeline : the scikit-learn pipeline behind the algorithm, or None.
    linear : the linear classifier that a search found, or None.
    """

    score: Scorer
    kind: Kind
    threshold: float | None
    pipeline: Any = None
    linear: LinearCandidate | None = None


class Decisions(NamedTuple):
    """Decisions, with the numbers of rows tied at the cut-off of a capacity and of tied rows selected at random."""

    values: FloatArray
    tied: int = 0
    tied_selected: int = 0


def fit_rule(candidate: Candidate, rows: TrainingRows, utility: Utility, name: str) -> Fitted:
    """Make a candidate from the training rows.

    Parameters
    ----------
    candidate : the rule.
    rows : the training rows.
    utility : the accuracy utility, which the linear searches need.
    name : the name of the candidate in messages.
    """
    try:
        if candidate.linear_search:
            return _linear(candidate, rows.known(), utility)
        if candidate.rule == "own":
            return _seeded_copy(candidate, rows)
        if utility.of_predictions and candidate.kind is None:
            candidate = candidate.model_copy(update={"kind": "decision"})
        make = _reduction if candidate.rule == "reductions" else _estimator
        with import_module("threadpoolctl").threadpool_limits(limits=1):  # sums of threads differ in their last bits
            return make(candidate, rows.known())
    except EvenhandError as error:
        raise type(error)(say("of_candidate", candidate=name, problem=error.message)) from error
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        raise EvenhandError("the candidate {name!r} could not be made: {reason}", name=name, reason=reason) from error


def decide(
    algorithm: Predictions | Fitted, values: FloatArray, capacity: float | None, rng: np.random.Generator
) -> Decisions:
    """Return an algorithm's decisions: its own, or its scores ranked to the capacity or cut at the threshold."""
    if algorithm.kind == "decision":
        return Decisions(values)
    if capacity is not None:
        chosen = select_top(values, capacity, rng)
        drawn = chosen.tied_selected < chosen.tied
        ties = (chosen.tied, chosen.tied_selected) if drawn else (0, 0)
        return Decisions(chosen.selected.astype(np.float64), *ties)
    threshold = DEFAULT_THRESHOLD if algorithm.threshold is None else algorithm.threshold
    return Decisions((values > threshold).astype(np.float64))


def scores(fitted: Fitted, matrix: FloatArray, name: str) -> FloatArray:
    """Return a fitted candidate's scores of rows; refuse scores that are not finite."""
    one_thread = import_module("threadpoolctl").threadpool_limits(limits=1) if fitted.pipeline else nullcontext()
    try:
        with one_thread:
            values = np.asarray(fitted.score(matrix), dtype=np.float64)
    except Exception as error:  # the user's code, or its shape, may raise anything
        reason = str(error).strip() or type(error).__name__
        raise EvenhandError(
            "the candidate {name!r} cannot score the features: {reason}", name=name, reason=reason
        ) from error
    if values.shape != (len(matrix),) or not np.isfinite(values).all():
        wrong = None if values.shape != (len(matrix),) else problem(" with values that are not finite")
        raise EvenhandError(
            "the candidate {name!r} must return one finite number a row, {rows} here; got shape {shape}{wrong}.",
            wrong=wrong,
            name=name,
            rows=len(matrix),
            shape=str(values.shape),
        )
    return values


def is_binary(outcome: FloatArray) -> bool:
    """Return whether all outcomes are 0 or 1."""
    return bool(np.isin(outcome, (0.0, 1.0)).all())


def _text(rows: TrainingRows) -> tuple[list[int], list[int]]:
    text = [position for position, name in enumerate(rows.names) if name in rows.labels]
    return text, [position for position in range(len(rows.names)) if position not in text]


def _estimator(candidate: Candidate, rows: TrainingRows) -> Fitted:
    text, numbers = _text(rows)
    binary = is_binary(rows.outcome)
    if isinstance(candidate.estimator, str):
        pipeline = make_pipeline(
            candidate.estimator, candidate.settings, seed=rows.seed, text=text, numbers=numbers, regressor=not binary
        )
    else:
        pipeline = _wrapped(candidate.estimator, text, numbers, rows.seed)
    target = rows.outcome.astype(np.int64) if binary else rows.outcome
    pipeline.fit(rows.features, target)
    return Fitted(Scores(pipeline, binary, candidate.factor), candidate.kind or "score", candidate.threshold, pipeline)


def _wrapped(estimator: object, text: list[int], numbers: list[int], seed: int) -> Any:
    """Return a copy of the user's estimator behind the same preparation of columns, seeded if possible."""
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    copy = clone(estimator)
    parameters = copy.get_params()
    if "random_state" in parameters and parameters["random_state"] is None:
        copy.set_params(random_state=small_seed(seed))
    return Pipeline([("columns", _columns(text, numbers)), ("estimator", copy)])


def _columns(text: list[int], numbers: list[int]) -> Any:
    """Return the unfitted preparation of columns: indicator columns for codes of text, numbers unchanged."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [("text", encoder, text), ("numbers", "passthrough", numbers)]
    return ColumnTransformer([part for part in parts if part[2]])


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of a fitted pipeline: the probability of outcome 1 if available, else the prediction."""

    pipeline: Any
    binary: bool
    factor: float = 1.0

    def __call__(self, matrix: FloatArray) -> FloatArray:
        """Return one number per row."""
        return self.factor * self._predicted(matrix)

    def _predicted(self, matrix: FloatArray) -> FloatArray:
        if self.binary and hasattr(self.pipeline, "predict_proba"):
            chances = self.pipeline.predict_proba(matrix)
            classes = list(self.pipeline.classes_)
            return chances[:, classes.index(1)] if 1 in classes else np.zeros(len(matrix))
        if self.binary and hasattr(self.pipeline, "decision_function"):
            return np.asarray(self.pipeline.decision_function(matrix)) + DEFAULT_THRESHOLD  # its own cut is at 0
        return np.asarray(self.pipeline.predict(matrix), dtype=np.float64)


def _reduction(candidate: Candidate, rows: TrainingRows) -> Fitted:
    """Fit fairlearn's exponentiated gradient; the score is the mixture's probability of selection."""
    require_extra("fairlearn", "models", "A fairlearn reduction")
    if not is_binary(rows.outcome):
        raise ConfigError("fairlearn's reductions need an outcome of 0 or 1.")
    settings = candidate.settings if isinstance(candidate.estimator, str) else {}
    plain = Candidate(rule="estimator", estimator=candidate.estimator, settings=settings)
    base = _estimator(plain, rows).pipeline
    columns, estimator = base.named_steps["columns"], base.named_steps["estimator"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its use of pandas
        reductions: Any = import_module("fairlearn.reductions")
        kinds = {
            "demographic_parity": reductions.DemographicParity,
            "equalized_odds": reductions.EqualizedOdds,
            "true_positive_rate": reductions.TruePositiveRateParity,
            "false_positive_rate": reductions.FalsePositiveRateParity,
            "error_rate": reductions.ErrorRateParity,
        }
        from sklearn.base import clone

        constraint = kinds[candidate.constraint](difference_bound=candidate.slack)
        gradient = reductions.ExponentiatedGradient(clone(estimator), constraint, eps=candidate.slack)
        design = columns.transform(rows.features)
        gradient.fit(design, rows.outcome.astype(np.int64), sensitive_features=rows.group)
    weighed = zip(gradient.predictors_, gradient.weights_, strict=True)
    members = tuple((member, float(weight)) for member, weight in weighed if weight > 0)
    return Fitted(Mixture(columns, members), "score", candidate.threshold)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A weighted mixture of classifiers, which returns the probability of selection."""

    columns: Any
    members: tuple[tuple[Any, float], ...]

    def __call__(self, matrix: FloatArray) -> FloatArray:
        """Return one probability per row."""
        design = self.columns.transform(matrix)
        chances = [weight * np.asarray(member.predict(design)) for member, weight in self.members]
        return np.asarray(np.sum(chances, axis=0) / sum(weight for _, weight in self.members), dtype=np.float64)


def _seeded_copy(candidate: Candidate, rows: TrainingRows) -> Fitted:
    made = candidate.own(rows)
    if not callable(made):
        raise EvenhandError(
            "a selection rule must return a function of a feature matrix; got {name} instead.", name=type(made).__name__
        )
    ranked = rows.capacity is not None or candidate.threshold is not None
    kind: Kind = candidate.kind or ("score" if ranked else "decision")
    return Fitted(made, kind, candidate.threshold)


def _linear(candidate: Candidate, rows: TrainingRows, utility: Utility) -> Fitted:
    """Search for a linear classifier by the sweep or the mixed-integer program."""
    if candidate.amounts is not None and rows.capacity is not None:
        raise ConfigError("`amounts` go with no `capacity`: a capacity selects people, and amounts are set for all.")
    if candidate.goal != "fairness" and candidate.goal not in rows.groups:
        raise ConfigError("`goal` is {goal!r}, which is neither 'fairness' nor a group.", goal=candidate.goal)
    prepared = prepare_columns(rows)
    names = [rows.names[position] for _, position in column_names(prepared, rows.names, rows.labels)]
    problem = search_problem(
        prepared.transform(rows.features),
        rows.outcome,
        rows.status_quo,
        rows.group,
        rows.groups,
        utility=utility,
        amounts=candidate.amounts or (0.0, 1.0),
        columns=rows.columns,
        goal="fairness" if candidate.goal == "fairness" else rows.groups.index(candidate.goal),
        iota=candidate.iota,
        capacity=rows.capacity,
        monotone=[candidate.monotone.get(name, 0) for name in names],
        excluded=[name in candidate.excluded for name in names],
    )
    rng = np.random.default_rng(rows.seed)
    if candidate.rule == "sweep":
        linear = sweep_directions(problem, rng, directions=candidate.directions)
    else:
        linear = solve_milp(
            problem, rng, time_limit=candidate.time_limit, margin=candidate.margin, directions=candidate.directions
        )
    return linear_rule(linear, prepared, ranked=rows.capacity is not None, amounts=candidate.amounts)


def linear_rule(
    linear: LinearCandidate, prepared: object, *, ranked: bool, amounts: tuple[float, float] | None = None
) -> Fitted:
    """Return a linear classifier as a pipeline with the score intercept + x'b; scores of at least 0 are selected."""
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import Pipeline

    size = linear.coefficients.size
    estimator = LinearRegression().fit(np.eye(2, size), np.zeros(2))  # converters check that it was fitted
    estimator.coef_, estimator.intercept_ = linear.coefficients, np.float64(linear.intercept)
    pipeline = Pipeline([("columns", prepared), ("estimator", estimator)])
    return Fitted(
        _Linear(linear, prepared, ranked, amounts or (0.0, 1.0)),
        "score" if ranked else "decision",
        None,
        pipeline,
        linear,
    )


@dataclass(frozen=True, eq=False)
class _Linear:
    linear: LinearCandidate
    prepared: Any
    ranked: bool
    amounts: tuple[float, float]

    def __call__(self, matrix: FloatArray) -> FloatArray:
        design = self.prepared.transform(matrix)
        if not self.ranked:
            return np.where(self.linear.decide(design), self.amounts[1], self.amounts[0])
        used = np.flatnonzero(self.linear.coefficients)
        return np.asarray(design[:, used] @ self.linear.coefficients[used])


def prepare_columns(rows: TrainingRows) -> Any:
    """Return the preparation of columns that the linear searches use, fitted to the rows."""
    return _columns(*_text(rows)).fit(rows.features)


def column_names(prepared: Any, names: tuple[str, ...], labels: Mapping[str, tuple[str, ...]]) -> list[tuple[str, int]]:
    """Return the names of prepared columns ('job=nurse' for text), each with its feature's position."""
    columns: list[tuple[str, int]] = []
    for part, step, positions in prepared.transformers_:
        if part == "text":
            for position, codes in zip(positions, step.categories_, strict=True):
                name = names[position]
                columns += [(f"{name}={labels[name][int(code)]}", position) for code in codes]
        elif part == "numbers":
            columns += [(names[position], position) for position in positions]
    return columns


def coefficients_of(fitted: Fitted, sample: AuditRows) -> tuple[Coefficient, ...]:
    """Return the intercept and coefficients of a linear pipeline in raw units.

    The tuple is empty for other pipelines.
    """
    steps = getattr(fitted.pipeline, "named_steps", {})
    estimator = steps.get("estimator")
    weights = getattr(estimator, "coef_", None)
    if weights is None or "columns" not in steps:
        return ()
    slopes = np.asarray(weights, dtype=np.float64).reshape(-1).copy()
    intercept = float(np.ravel(getattr(estimator, "intercept_", 0.0))[0])
    columns = [name for name, _ in column_names(steps["columns"], sample.features, sample.labels)]
    if slopes.size != len(columns):
        return ()
    scaler = steps["columns"].named_transformers_.get("numbers")
    if hasattr(scaler, "scale_"):  # the numbers come after the text
        scaled = slopes[-scaler.scale_.size :]
        scaled /= scaler.scale_
        intercept -= float(scaled @ scaler.mean_)
    return ((INTERCEPT, intercept), *zip(columns, slopes.tolist(), strict=True))
