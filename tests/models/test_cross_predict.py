"""Out-of-fold scores: against scikit-learn by hand, the laws they obey, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import ConfigError, DataError, EvenhandError, MissingExtraError
from evenhand.models import cross_predict
from evenhand.models.estimators import ESTIMATORS, make_pipeline, small_seed
from evenhand.models.folds import deal

FEATURES = ["income", "job", "owner"]


def predict(data: Any, fit: Any = "logistic", **options: Any) -> Any:
    given = {"outcome": "late", "features": FEATURES, "id": "name", **options}
    return cross_predict(data, fit=fit, **given)


def require_package(name: str) -> None:
    package = ESTIMATORS[name].package
    pytest.importorskip(package, reason=f"the estimator {name!r} needs {package}, of the extra 'models'")


# Against other sources ------------------------------------------------------------------------------------


def parts_of(data: pd.DataFrame, folds: int, seed: int) -> Any:
    """Return the fold of each row: sorted by id, shuffled, sorted by outcome, dealt out."""
    rows = np.random.default_rng(seed).permutation(np.argsort(data.name.to_numpy().astype(str)))
    parts = np.empty(len(data), dtype=int)
    positives = [row for row in rows if data.late[row] == "yes"]
    for position, row in enumerate([row for row in rows if data.late[row] != "yes"] + positives):
        parts[row] = position % folds
    return parts


def test_scores_equal_those_of_a_fit_by_hand(people: pd.DataFrame) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import PredefinedSplit

    x = pd.get_dummies(people[FEATURES], columns=["job", "owner"]).astype(float)
    scores = predict(people, {"m": {"estimator": "logistic", "settings": {"C": 0.7}}}, folds=4, seed=5)["m"]
    for fitted_to, held_out in PredefinedSplit(parts_of(people, 4, 5)).split():
        own = x.iloc[fitted_to]
        scale = own.std(ddof=0).where(x.columns == "income", 1.0)
        centre = own.mean().where(x.columns == "income", 0.0)
        model = LogisticRegression(C=0.7, tol=1e-10, max_iter=5_000).fit((own - centre) / scale, people.late[fitted_to])
        assert list(model.classes_) == ["no", "yes"]
        expected = model.predict_proba((x.iloc[held_out] - centre) / scale)[:, 1]
        np.testing.assert_allclose(scores[held_out], expected, atol=1e-5)


def test_linear_scores_are_least_squares_cut_off_at_0_and_1(people: pd.DataFrame) -> None:
    x = np.column_stack([np.ones(len(people)), people.income])
    y = (people.late == "yes").to_numpy(float)
    steep = np.where(y > 0, people.income.to_numpy() - 60, people.income.to_numpy() + 60)
    frame = people.assign(income=steep)
    x[:, 1] = steep
    scores, parts = predict(frame, "linear", features="income")["linear"].to_numpy(), parts_of(people, 5, 0)
    expected = np.empty(len(people))
    for part in range(5):
        own = parts != part
        expected[~own] = x[~own] @ np.linalg.lstsq(x[own], y[own], rcond=None)[0]
    assert expected.min() < 0
    assert expected.max() > 1
    np.testing.assert_allclose(scores, np.clip(expected, 0, 1), atol=1e-9)


def test_nobody_is_scored_by_a_model_fitted_to_them() -> None:
    """A tree that knows every row by heart gets noise right where it saw it, and guesses where it did not."""
    rng = np.random.default_rng(2)
    data = {"x": rng.normal(size=2_000), "y": rng.integers(0, 2, 2_000)}
    whole: dict[str, Any] = {"estimator": "decision_tree", "settings": {"max_depth": None, "min_samples_leaf": 1}}
    scores = cross_predict(data, outcome="y", features="x", fit={"tree": whole})["tree"]
    right = float(((scores > 0.5) == data["y"]).mean())
    assert 0.45 < right < 0.55
    tree = make_pipeline("decision_tree", whole["settings"], numbers=[0]).fit(data["x"][:, None], data["y"])
    assert (tree.predict(data["x"][:, None]) == data["y"]).all()


# Laws -----------------------------------------------------------------------------------------------------


@given(st.lists(st.booleans(), min_size=2, max_size=60), st.integers(2, 7))
def test_parts_are_of_equal_size_and_equally_positive(outcome: list[bool], folds: int) -> None:
    parts = deal(np.array(outcome), folds)
    for kept in (np.array(outcome), ~np.array(outcome), np.ones(len(outcome), bool)):
        sizes = np.bincount(parts[kept], minlength=folds)
        assert sizes.max() - sizes.min() <= 1
        assert len(sizes) == folds


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_order_of_rows_and_columns_does_not_matter_with_an_id(people: pd.DataFrame, name: str) -> None:
    require_package(name)
    first = predict(people, name).set_index("name")
    assert first[name].between(0, 1).all()
    assert first[name].nunique() > 3
    shuffled = people.sample(frac=1, random_state=4)[["late", "owner", "name", "income", "sex", "job"]]
    again = predict(shuffled, name)
    assert list(again["name"]) == list(shuffled["name"])
    pd.testing.assert_frame_equal(again.set_index("name").loc[first.index], first, check_exact=True)


def test_without_an_id_rows_are_told_apart_by_their_position(people: pd.DataFrame) -> None:
    first = predict(people, id=None)
    assert list(first) == ["logistic"]
    pd.testing.assert_frame_equal(predict(people.copy(), id=None), first, check_exact=True)
    turned = predict(people[::-1], id=None)[::-1].reset_index(drop=True)
    assert np.abs(turned - first).to_numpy().max() > 1e-4


def test_all_models_have_the_same_folds_and_the_seed_moves_them(people: pd.DataFrame) -> None:
    both = predict(people, ["linear", "logistic"])
    pd.testing.assert_series_equal(both["logistic"], predict(people)["logistic"], check_exact=True)
    assert not np.allclose(both["logistic"], predict(people, seed=1)["logistic"])
    forests = {seed: predict(people, "random_forest", seed=seed)["random_forest"] for seed in (0, 10**20)}
    assert not forests[0].equals(forests[10**20])
    assert small_seed(10**20) < 2**31


def test_renaming_the_texts_of_a_feature_changes_nothing(people: pd.DataFrame) -> None:
    renamed = people.assign(job=people.job.map({"clerk": "z", "cook": "y", "none": "x"}))
    for name in ("logistic", "linear", "lasso"):
        np.testing.assert_allclose(predict(renamed, name)[name], predict(people, name)[name], atol=1e-9)


LIBRARIES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "lazy polars": lambda frame, folder: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "mapping": lambda frame, folder: {name: frame[name].to_numpy() for name in frame},
    "duckdb": lambda frame, folder: duckdb.from_df(frame),
    "csv": lambda frame, folder: written(frame, folder / "people.csv"),
    "parquet": lambda frame, folder: written(frame, folder / "people.parquet"),
}


def written(frame: pd.DataFrame, path: Path) -> str:
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("with_id", ["name", None])
def test_every_library_gives_the_same_scores_in_its_own_kind_of_frame(
    people: pd.DataFrame, tmp_path: Path, library: str, with_id: str | None
) -> None:
    data = LIBRARIES[library](people, tmp_path)
    scores = predict(data, ["logistic", "decision_tree"], id=with_id)
    expected = predict(people, ["logistic", "decision_tree"], id=with_id)
    kinds = {"polars": pl.DataFrame, "lazy polars": pl.DataFrame, "pyarrow": pa.Table, "mapping": dict}
    assert isinstance(scores, kinds.get(library, pd.DataFrame))
    for name in ("logistic", "decision_tree"):
        np.testing.assert_array_equal(np.asarray(scores[name]), expected[name].to_numpy())
    if with_id is not None and library != "mapping":
        assert [str(value) for value in scores["name"]] == list(people.name)


def test_ids_come_back_as_they_were(people: pd.DataFrame) -> None:
    numbered = people.assign(name=np.arange(1_000, 1_000 + len(people)))
    joined = numbered.merge(predict(numbered), on="name")
    assert len(joined) == len(people)
    assert joined["name"].dtype == numbered["name"].dtype


def test_a_later_row_of_another_type(people: pd.DataFrame, tmp_path: Path) -> None:
    """The first 20,480 rows of the file hold whole numbers only, later ones a word."""
    many = pd.concat([people] * 80, ignore_index=True)
    many["job"] = many["job"].map({"clerk": "1", "cook": "2", "none": "3"})
    many.loc[len(many) - 5 :, "job"] = "unknown"
    scores = predict(written(many, tmp_path / "people.csv"), id=None, features="job")
    expected = predict(many, id=None, features="job")
    assert expected["logistic"].round(3).nunique() > 3
    np.testing.assert_array_equal(scores["logistic"], expected["logistic"])


# What is missing ------------------------------------------------------------------------------------------


@pytest.fixture
def gaps(people: pd.DataFrame) -> pd.DataFrame:
    frame = people.copy()
    frame.loc[[3, 50], "income"] = np.nan
    frame.loc[[7], "job"] = "  "
    frame.loc[[9], "late"] = None
    return frame


def test_a_gap_is_an_error_that_counts(gaps: pd.DataFrame) -> None:
    with pytest.raises(DataError) as caught:
        predict(gaps.fillna({"late": "no"}))
    assert caught.value.problems == (
        "feature 'income' is missing in 2 rows of 300; fill them, or drop them with missing='drop'.",
        "feature 'job' is missing in 1 row of 300; fill them, or drop them with missing='drop'.",
    )
    with pytest.raises(DataError, match="outcome column 'late' is missing in 1 row"):
        predict(gaps)


def test_dropped_rows_have_no_score_and_take_no_part(gaps: pd.DataFrame) -> None:
    scores = predict(gaps, "random_forest", missing="drop")
    assert list(np.flatnonzero(scores["random_forest"].isna())) == [3, 7, 9, 50]
    whole = predict(gaps.drop(index=[3, 7, 9, 50]).reset_index(drop=True), "random_forest")
    left = scores.dropna().reset_index(drop=True)
    pd.testing.assert_frame_equal(left, whole, check_exact=True)


def test_a_text_seen_in_no_other_fold_is_no_obstacle(people: pd.DataFrame) -> None:
    rare = people.copy()
    rare.loc[0, "job"] = "only one"
    assert predict(rare)["logistic"].between(0, 1).all()


# Mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": ["incme"]}, "feature 'incme' is not in the data; did you mean 'income'"),
        ({"features": []}, "`features` in the arguments of cross_predict()"),
        ({"features": ["income", "income"]}, "`features` names the column 'income' twice"),
        ({"features": ["income", "late"]}, "`features` names 'late', which is the outcome; leave it out."),
        ({"features": ["income", "name"]}, "`features` names 'name', which is the id; leave it out."),
        ({"features": ["day"]}, "feature 'day' must hold numbers, true or false, or text; turn it into one of them."),
        ({"features": ["huge"]}, "feature 'huge' holds infinite values; replace them."),
        (
            {"features": ["code"]},
            "feature 'code' holds 300 different texts, more than 200; put them into fewer kinds, or leave it out.",
        ),
        ({"fit": "logstic"}, "there is no estimator 'logstic'; did you mean 'logistic'?"),
        ({"fit": {"m": {"estimator": ["x"]}}}, "`fit.m.estimator` in the arguments of cross_predict()"),
        ({"fit": []}, "`fit` in the arguments of cross_predict()"),
        ({"fit": {"m": 3}}, "`fit.m` in the arguments of cross_predict()"),
        (
            {"fit": {"tree": {"estimator": "decision_tree", "settings": {"max_dept": 3}}}},
            "DecisionTreeClassifier ('decision_tree') has no setting 'max_dept'; did you mean 'max_depth'",
        ),
        (
            {"fit": {"random_forest": {"settings": {"n_jobs": 4}}}},
            "`n_jobs` is always 1, so that the numbers stay the same",
        ),
        (
            {"fit": {"random_forest": {"settings": {"random_state": 4}}}},
            "`random_state` cannot be set for one model; set `seed` for all of them",
        ),
        (
            {"fit": {"m": {"estimator": "decision_tree", "settings": {"max_depth": -3}}}},
            "the model 'm' (decision_tree) could not be fitted: The 'max_depth' parameter",
        ),
        ({"folds": 1}, "`folds` in the arguments of cross_predict(): must be greater than or equal to 2"),
        ({"seed": -1}, "`seed` in the arguments of cross_predict(): must be greater than or equal to 0"),
        ({"outcome": "lat"}, "outcome column 'lat' is not in the data; did you mean 'late'?"),
        ({"positive": "perhaps"}, "'perhaps'"),
        ({"outcome": "rare", "folds": 4}, "the outcome is positive in 3 rows of 300; 4 folds need at least 4 such"),
        ({"outcome": "always"}, "the outcome is not positive in 0 rows of 300; 5 folds need at least 5 such rows."),
    ],
)
def test_mistakes(people: pd.DataFrame, options: dict[str, Any], message: str) -> None:
    frame = people.assign(
        day=pd.Timestamp("2024-01-01"),
        huge=np.inf,
        code=[f"c{i}" for i in range(300)],
        rare=np.arange(300) < 3,
        always=1,
    )
    with pytest.raises(EvenhandError) as caught:
        predict(frame, **{"fit": "logistic", **options})
    assert message in str(caught.value)


def test_an_unknown_estimator_of_make_pipeline() -> None:
    with pytest.raises(ConfigError, match="there is no estimator 'forest'"):
        make_pipeline("forest")


@pytest.mark.parametrize(("fit", "package"), [("xgboost", "xgboost"), ("lightgbm", "lightgbm"), ("linear", "sklearn")])
def test_a_package_that_is_not_installed(
    people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, fit: str, package: str
) -> None:
    monkeypatch.setattr("evenhand.errors.find_spec", lambda name: None if name == package else True)
    with pytest.raises(MissingExtraError) as caught:
        predict(people, fit)
    assert str(caught.value) == (
        f"the estimator {fit!r} needs the package '{package}', which is not installed; "
        "install it with: pip install 'evenhand[models]'"
    )
