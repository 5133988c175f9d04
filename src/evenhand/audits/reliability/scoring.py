"""Compute model scores: convert rows to the model's input format, and return one reproducible score per row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from threading import Lock
from typing import Any

import numpy as np

from evenhand.audits.reliability.gather import ModelFeature, ScoredPeople, is_negative, is_positive
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.model_sources import OnnxModel
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, EvenhandError, count
from evenhand.messages import Message
from evenhand.stats.types import FloatArray
from evenhand.table.frames import build_frame, installed_backend
from evenhand.table.keys import label_of
from evenhand.table.roles import Scalar

_ALONE = 5
"""The number of people scored alone, to check that scores do not depend on other rows."""
_ROUNDING, _TINY = 1e-12, 1e-6


class Scorer:
    """Scorer of rows of the people's matrix with a model.

    Parameters
    ----------
    name, model, columns : the model and its features.
    people : the people to score.
    spec : the settings of the audit.
    positive : the value of the outcome that counts as positive.
    named : whether the model is a built-in estimator, which takes codes for text.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        columns: Sequence[str],
        people: ScoredPeople,
        *,
        spec: ReliabilitySpec,
        positive: Scalar | None,
        named: bool,
    ) -> None:
        self.name, self.model, self.columns = name, model, columns
        self.positions = people.positions(columns)
        self.features = [people.features[position] for position in self.positions]
        self.frame = not named and self._wants_frame(spec)
        self.ask = _score_function(model, positive)
        # The user's code may not be thread-safe.
        self.lock = Lock() if inspect.isroutine(model) or not hasattr(model, "get_params") else None
        if isinstance(model, OnnxModel):
            self.lock = None
            if model.width is not None and model.width != len(columns):
                raise ConfigError(
                    "the model {name!r} takes {columns} and is given {number}; name its own as `features` of the "
                    "model, in its order.",
                    name=name,
                    columns=count(model.width, "column"),
                    number=len(columns),
                )

    def inputs(self, rows: FloatArray) -> object:
        """Return rows in the model's input format."""
        columns = rows[:, self.positions]
        if isinstance(self.model, OnnxModel):
            return {f.name: f.as_column(columns[:, number]) for number, f in enumerate(self.features)}
        return model_rows(self.features, columns, frame=self.frame)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the scores of rows; re-raise the model's errors with its name."""
        try:
            with self.lock or nullcontext():
                return self._checked(rows, self.ask(self.inputs(rows)))
        except EvenhandError as error:
            raise EvenhandError("the model {name!r} {problem}", name=self.name, problem=error.message) from error
        except Exception as error:
            reason = str(error).strip() or "no reason given"
            raise EvenhandError(
                "the model {name!r} failed on {rows} of {columns}: {kind}: {reason}",
                name=self.name,
                rows=count(len(rows), "row"),
                columns=tuple(self.columns),
                kind=type(error).__name__,
                reason=reason,
            ) from error

    def _checked(self, rows: FloatArray, scores: FloatArray) -> FloatArray:
        if scores.shape != (len(rows),):
            shape = " by ".join(str(size) for size in scores.shape) or "one number"
            raise EvenhandError(
                "must return one score a row; {rows} gave {shape}.", rows=count(len(rows), "row"), shape=shape
            )
        bad = np.flatnonzero(~np.isfinite(scores))
        if bad.size:
            row = ", ".join(
                f"{feature.name} {feature.shown(value) if np.isfinite(value) else value}"
                for feature, value in zip(self.features, rows[bad[0], self.positions], strict=True)
            )
            raise EvenhandError(
                "gave the score {score} for {row}; scores must be finite.", score=scores[bad[0]], row=row
            )
        return scores

    def _wants_frame(self, spec: ReliabilitySpec) -> bool:
        text = next((feature.name for feature in self.features if feature.is_text), None)
        rows = spec.scoring.rows
        if rows == "array" and text is not None and not isinstance(self.model, OnnxModel):
            raise ConfigError(
                "the feature {text!r} holds text, which an array of numbers cannot; leave `rows` out.", text=text
            )
        return rows == "frame" or (rows == "auto" and (text is not None or _fitted_to(self.model, self.columns)))


def _fitted_to(model: object, columns: Sequence[str]) -> bool:
    """Return whether a model was fitted to a frame with these columns, and so needs a frame."""
    names = getattr(model, "feature_names_in_", None)
    return names is not None and [str(name) for name in names] == list(columns)


def model_rows(features: Sequence[ModelFeature], matrix: FloatArray, *, frame: bool) -> object:
    """Return rows as a matrix or as a data frame."""
    if not frame:
        return matrix
    if installed_backend() is None:
        raise EvenhandError("wants a data frame, which needs pandas or Polars; install one of them.")
    return build_frame(
        {feature.name: feature.as_model_input(matrix[:, number]) for number, feature in enumerate(features)}
    )


def _score_function(model: Any, positive: Scalar | None) -> Callable[[Any], FloatArray]:
    """Return a function that returns a model's score of each row.

    Its error messages complete a sentence that starts with 'the model ...'.
    """
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


def _decisions(decisions: object, classes: Sequence[Any], positive: Scalar | None) -> FloatArray:
    """Return 1 where a model decides for the positive class, and 0 elsewhere."""
    if len(classes) > 2:
        raise EvenhandError(
            "decides between {number} classes; reliability is about one score: wrap it in a function that "
            "returns that.",
            number=len(classes),
        )
    yes = _positive_class(classes, positive) if len(classes) == 2 else 0
    chosen = np.asarray(decisions)
    chosen = chosen[:, 0] if chosen.ndim == 2 and chosen.shape[1] == 1 else chosen
    is_known = np.isin(chosen, classes)
    if not is_known.all():
        raise EvenhandError(
            "decides for {decision!r}, which is none of its classes; wrap it in a function that returns one "
            "score a row.",
            decision=label_of(chosen[~is_known].flat[0]),
        )
    if len(classes) == 1:
        return np.full(chosen.shape, float(is_positive(classes[0], positive)))
    return np.asarray(chosen == classes[yes], dtype=np.float64)


def _chance(output: object, classes: Iterable[object] | None, positive: Scalar | None) -> FloatArray:
    """Return the probability of the positive class; 0 or 1 if the model has only one class."""
    chances = _numbers(output, two=True)
    if chances.ndim != 2:
        return chances
    known_classes = None if classes is None else list(classes)
    if chances.shape[1] > 2:
        raise EvenhandError(
            "gives the chances of {number} classes, but reliability is about one score; wrap it in a function "
            "that returns one score for each row.",
            number=chances.shape[1],
        )
    if known_classes is None:
        return chances[:, -1]
    if len(known_classes) != chances.shape[1]:
        raise EvenhandError(
            "gives the chances of {given} classes and names {named}.", given=chances.shape[1], named=len(known_classes)
        )
    if len(known_classes) == 1:
        return np.full(len(chances), float(is_positive(known_classes[0], positive)))
    return chances[:, _positive_class(known_classes, positive)]


def _positive_class(classes: Sequence[Any], positive: Scalar | None) -> int:
    """Return the index of the positive class among two classes.

    An unknown class (None) is taken for the opposite of the other class.
    """
    fits = [value is not None and is_positive(value, positive) for value in classes]
    negative = [value is not None and is_negative(value, positive) for value in classes]
    if sum(fits) == 1 and (negative[1 - fits.index(True)] or None in classes):
        return fits.index(True)
    if None in classes and sum(negative) == 1:
        return 1 - negative.index(True)
    raise _unknown_classes(classes, positive)


def _unknown_classes(classes: Sequence[Any], positive: Scalar | None) -> EvenhandError:
    shown = " and ".join(repr(label_of(value)) for value in classes if value is not None)
    if positive is None:
        return EvenhandError(
            "knows the classes {shown}; say which is the positive one with `positive` of the table.",
            shown=shown,
        )
    return EvenhandError(
        "knows the classes {shown}, and the positive outcome of the table is {positive!r}; name the "
        "class that it is with `positive`, or wrap the model in a function that returns the score.",
        shown=shown,
        positive=label_of(positive),
    )


def _numbers(output: object, *, two: bool = False) -> FloatArray:
    try:
        values = np.asarray(output, dtype=np.float64)
    except (TypeError, ValueError):
        raise EvenhandError("gives no numbers; wrap it in a function that returns one score a row.") from None
    if values.ndim == 2 and not two and values.shape[1] == 1:
        return values[:, 0]
    return values


def determinism_notes(name: str, scores: Callable[[FloatArray], FloatArray], people: ScoredPeople) -> Iterator[Message]:
    """Refuse a model whose scores are not reproducible.

    Yield a note if only their last digits change.

    The simulation attributes every change of a score to a mistake, and it scores people in any batches. So this
    function scores a few people again, in another order, and alone.

    Parameters
    ----------
    name : the model's name.
    scores : the function that maps rows of the people's matrix to scores.
    people : the people to take trial rows from.
    """
    rows = people.matrix[people.sample()]
    first = scores(rows)
    difference = _largest_difference(first, scores(rows))
    if difference > _TINY:
        raise EvenhandError(
            "the model {name!r} gives the same people other scores when it is asked again, by up to "
            "{again:.2g}; it must not draw at random: fix its seed, or average over its draws.",
            name=name,
            again=difference,
        )
    order = np.random.default_rng(0).permutation(len(rows))
    some = order[:_ALONE]
    alone = np.concatenate([scores(rows[[position]]) for position in some.tolist()])
    company = max(_largest_difference(first[order], scores(rows[order])), _largest_difference(first[some], alone))
    if company > _TINY:
        raise EvenhandError(
            "the model {name!r} gives people other scores beside other people, by up to {company:.2g}; each "
            "score must be made of that person's own features: fit scalers and ranks once, not again on the "
            "rows it is given.",
            name=name,
            company=company,
        )
    if max(difference, company) > _ROUNDING:
        yield say("rounding", model=name, size=max(difference, company))


def _largest_difference(first: FloatArray, second: FloatArray) -> float:
    """Return the largest difference between scores, relative to the score where it exceeds 1."""
    return float(np.max(np.abs(first - second) / np.maximum(1.0, np.abs(first)), initial=0.0))
