"""`eh.fitted`: what a fitted model says of people, as a prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError

pytest.importorskip("sklearn", reason="models of scikit-learn are asked, of the extra 'models'")

DRAW = np.random.default_rng(5)
X = pd.DataFrame({"income": DRAW.normal(size=80), "job": DRAW.choice(["clerk", "nurse"], 80)})
Y = (X["income"] + DRAW.normal(size=80) > 0).astype(int)


@pytest.fixture(scope="module")
def pipeline() -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    columns = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    return make_pipeline(columns, LogisticRegression()).fit(X, Y)


def test_the_score_is_the_chance_of_the_positive_class(pipeline: Any) -> None:
    assert np.array_equal(eh.fitted(pipeline, X), pipeline.predict_proba(X)[:, 1])
    assert np.array_equal(eh.fitted(pipeline, X, positive=0), pipeline.predict_proba(X)[:, 0])
    table = eh.Table(X, outcome=Y, groups="job", predictions={"logistic": eh.fitted(pipeline, X)})
    assert table.has_scores("logistic")


def test_a_model_without_chances_gives_decisions() -> None:
    from sklearn.svm import LinearSVC

    words = np.array(["bad", "good"])[Y]
    model = LinearSVC().fit(X[["income"]], words)
    decided = eh.fitted(model, X[["income"]])
    assert np.array_equal(decided == 1, model.predict(X[["income"]]) == "good")
    assert np.array_equal(eh.fitted(model, X[["income"]], positive="bad"), 1 - decided)


def test_what_cannot_be_asked_is_said(pipeline: Any) -> None:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    with pytest.raises(ConfigError, match="must have predict_proba or predict"):
        eh.fitted(object(), X)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the model Pipeline could not score `X`"):
        eh.fitted(pipeline, X[["income"]])
    with pytest.raises(ConfigError, match=r"could not score `X`: .*not fitted"):
        eh.fitted(LogisticRegression(), X[["income"]])
    with pytest.raises(ConfigError, match="`positive` got 'yes'; the model Pipeline knows '0' and '1'"):
        eh.fitted(pipeline, X, positive="yes")
    with pytest.raises(ConfigError, match="knows 3 classes"):
        eh.fitted(LogisticRegression().fit(X[["income"]], np.arange(80) % 3), X[["income"]])
    assert eh.fitted(LinearRegression().fit(X[["income"]], Y), X[["income"]]).shape == (80,)
    with pytest.raises(ConfigError, match=r"is a model \(Pipeline\); give its scores: .*eh.fitted\(model, X\)"):
        eh.Table(X, groups="job", predictions={"m": pipeline})
