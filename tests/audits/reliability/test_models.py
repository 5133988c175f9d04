"""Models of every kind: objects, functions, files, estimators; and models that misbehave."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability.audit import run
from evenhand.audits.reliability.model_sources import load_file
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.errors import ConfigError, EvenhandError

from .conftest import curve, mean_gap, nested, reliability

pytest.importorskip("sklearn", reason="models of scikit-learn are audited")

from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

NUMBERS = ["age", "priors", "sex"]
NOISE: dict[str, Any] = {"age": 4, "priors": 1, "sex": "flip"}
EXACT: dict[str, Any] = {"solver": "newton-cholesky", "tol": 1e-12}


def fitted(people: pd.DataFrame, *steps: Any) -> Any:
    return make_pipeline(*steps).fit(people[NUMBERS].to_numpy(float), people.again)


def values(result: Any) -> Any:
    return np.array([record.value for record in result.values], dtype=float)


@pytest.mark.parametrize(
    "steps",
    [
        (LogisticRegression(**EXACT),),
        (StandardScaler(), LogisticRegression(**EXACT)),
        (ColumnTransformer([("n", StandardScaler(), [0, 1])], remainder="passthrough"), LogisticRegression(**EXACT)),
        (ColumnTransformer([("s", OneHotEncoder(), [2]), ("n", MinMaxScaler(), [0, 1])]), LogisticRegression(**EXACT)),
    ],
    ids=["plain", "scaled", "columns", "one-hot"],
)
def test_linear_models_are_found_and_give_what_their_rows_give(
    people: pd.DataFrame, table: eh.Table, quick: dict[str, Any], steps: tuple[Any, ...]
) -> None:
    model = fitted(people, *steps)
    found = reliability({"m": model}, table, features=NUMBERS, noise=NOISE, **quick)
    by_rows = reliability(
        {"m": lambda rows: model.predict_proba(rows)[:, 1]}, table, features=NUMBERS, noise=NOISE, **quick
    )
    assert (found.models[0].method, by_rows.models[0].method) == ("linear", "rows")
    np.testing.assert_allclose(values(found), values(by_rows), atol=1e-9)


@pytest.mark.parametrize(
    "steps",
    [
        (PolynomialFeatures(), StandardScaler(), LogisticRegression(**EXACT)),
        (MinMaxScaler(clip=True), LogisticRegression(**EXACT)),
        (RandomForestClassifier(10, random_state=0),),
    ],
    ids=["products", "clipped", "forest"],
)
def test_other_models_are_not_taken_for_linear(
    people: pd.DataFrame, table: eh.Table, quick: dict[str, Any], steps: tuple[Any, ...]
) -> None:
    model = fitted(people, *steps)
    found = reliability({"m": model}, table, features=NUMBERS, noise=NOISE, **quick)
    assert found.models[0].method == "rows"
    plain = reliability({"m": lambda r: model.predict_proba(r)[:, 1]}, table, features=NUMBERS, noise=NOISE, **quick)
    np.testing.assert_array_equal(values(found), values(plain))


def test_a_model_fitted_to_a_frame_gets_one_in_its_own_order(
    people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]
) -> None:
    columns = ColumnTransformer([("text", OneHotEncoder(), ["job"]), ("number", StandardScaler(), ["age"])])
    model = make_pipeline(columns, LogisticRegression(**EXACT)).fit(people[["job", "age"]], people.again)
    found = reliability(
        model, table, features=["age", "priors", "job"], noise={"age": 3, "priors": 1, "job": "flip"}, **quick
    )
    assert found.models[0].features == "job, age"
    assert found.models[0].method == "rows"  # three jobs are not one number
    assert "the mistakes in 'priors' changed entries and no score" in "\n".join(map(str, found.notes))
    chance = model.predict_proba(people[["job", "age"]])[:, 1]
    assert found.models[0].mean_score == pytest.approx(chance.mean())


def test_an_estimator_is_fitted_out_of_fold(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]) -> None:
    columns = ColumnTransformer([("text", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression(**EXACT, max_iter=500))
    asked: dict[str, Any] = {"features": ["age", "job"], "noise": {"age": 3, "job": "flip"}, **quick}
    found = reliability(model, table, **asked)
    assert (found.models[0].kind, found.models[0].folds) == ("fitted here", 5)
    three = reliability(model, table, **asked, folds=3)
    assert three.models[0].folds == 3
    already = make_pipeline(columns, LogisticRegression(**EXACT, max_iter=500)).fit(
        people[["age", "job"]], people.again
    )
    assert reliability(already, table, **asked).models[0].kind == "object"
    assert reliability(already, table, **asked, folds=3).values == three.values
    with pytest.raises(ConfigError, match="is to be fitted, which needs an outcome"):
        reliability(model, eh.Table(people, groups="group"), **asked)


def test_a_loose_fit_is_told(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability(LogisticRegression(max_iter=5000), table, features=NUMBERS, noise=NOISE, **quick)
    assert "reliability.loose_fit" in {note.id for note in found.notes}
    exact = reliability(LogisticRegression(**EXACT), table, features=NUMBERS, noise=NOISE, **quick)
    assert not any("optimum" in note.text for note in exact.notes)


def test_predict_alone_gives_scores(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]) -> None:
    for kind in (Ridge(), LinearSVC()):
        model = fitted(people, StandardScaler(), kind)
        found = reliability(model, table, features=NUMBERS, noise=NOISE, **quick)
        scores = model.predict(people[NUMBERS].to_numpy(float))
        assert found.models[0].selected == pytest.approx((scores > 0.5).mean())


def test_models_side_by_side(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]) -> None:
    full = fitted(people, StandardScaler(), LogisticRegression(**EXACT))
    sparse = LogisticRegression(**EXACT).fit(people[["priors"]].to_numpy(float), people.again)
    models = {
        "full": full,
        "sparse": {"model": sparse, "features": ["priors"], "threshold": 0.6},
        "tree": {"estimator": "decision_tree", "settings": {"max_depth": 2}},
    }
    found = reliability(models, table, features=NUMBERS, noise=NOISE, **quick)
    assert [model.model for model in found.models] == ["full", "sparse", "tree"]
    assert [model.threshold for model in found.models] == [0.5, 0.6, 0.5]
    assert found.models[1].features == "priors"
    assert {record.model for record in found.gaps} == {"full", "sparse", "tree"}


# Files ----------------------------------------------------------------------------------------------------


def onnx_file(path: Path, model: Any, **options: Any) -> Path:
    skl2onnx = pytest.importorskip("skl2onnx", reason="a model is converted to ONNX")
    pytest.importorskip("onnxruntime", reason="a model in ONNX is run")
    converted = skl2onnx.to_onnx(model, np.zeros((1, 3), dtype=np.float32), target_opset=18, **options)
    path.write_bytes(converted.SerializeToString())
    return path


@pytest.mark.parametrize("zipmap", [False, True], ids=["array", "map"])
def test_an_onnx_file(
    people: pd.DataFrame, table: eh.Table, quick: dict[str, Any], tmp_path: Path, zipmap: bool
) -> None:
    model = fitted(people, StandardScaler(), LogisticRegression(**EXACT))
    options = {} if zipmap else {"options": {"zipmap": False}}
    path = onnx_file(tmp_path / "risk.onnx", model, **options)
    found = reliability(str(path), table, features=NUMBERS, noise=NOISE, **quick)
    (record,) = found.models
    assert (record.model, record.kind, record.source) == ("risk", "file", "risk.onnx")
    assert record.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    python = reliability({"risk": model}, table, features=NUMBERS, noise=NOISE, **quick)
    for one, other in zip(found.values, python.values, strict=True):
        if one.metric in ("icc_a1", "mean_squared_error", "mean_second"):  # single precision
            assert one.value == pytest.approx(other.value, abs=1e-5)
    with pytest.raises(ConfigError, match="takes 3 columns and is given 2; name its own"):
        reliability(str(path), table, features=NUMBERS[:2], noise={"age": 3}, **quick)


def test_an_onnx_file_with_an_input_for_each_column(
    people: pd.DataFrame, table: eh.Table, quick: dict[str, Any], tmp_path: Path
) -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="a model is converted to ONNX")
    columns = ColumnTransformer([("text", OneHotEncoder(), ["job"]), ("number", StandardScaler(), ["age"])])
    frame = people[["job", "age"]].astype({"age": np.float32, "job": object})
    model = make_pipeline(columns, LogisticRegression(**EXACT)).fit(frame, people.again)
    types = [
        ("job", skl2onnx.common.data_types.StringTensorType([None, 1])),
        ("age", skl2onnx.common.data_types.FloatTensorType([None, 1])),
    ]
    converted = skl2onnx.convert_sklearn(model, initial_types=types, options={"zipmap": False})
    (tmp_path / "risk.onnx").write_bytes(converted.SerializeToString())
    found = reliability(
        tmp_path / "risk.onnx", table, features=["age", "priors", "job"], noise={"age": 3, "job": "flip"}, **quick
    )
    assert found.models[0].features == "job, age"
    assert found.models[0].mean_score == pytest.approx(model.predict_proba(frame)[:, 1].mean(), abs=1e-6)


class Mine:
    """A model whose type skops cannot know."""

    def __init__(self) -> None:
        self.weight = 0.1

    def predict(self, rows: Any) -> Any:
        return self.weight * rows[:, 1]


def plain_pipeline(model: Any) -> Any:
    """Return what the documentation of scikit-learn advises for columns of numbers and text."""
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    parts = [("words", words, ["job"]), ("numbers", numbers, make_column_selector(dtype_include="number"))]
    return make_pipeline(ColumnTransformer(parts, remainder="passthrough"), model)


def test_a_plain_pipeline_of_skops_loads_without_a_question(tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io", reason="a model is written by skops")
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    rows = pd.DataFrame({"job": ["clerk", "nurse", None, "clerk"] * 10, "age": [20.0, None, 40.0, 50.0] * 10})
    outcome = [0, 1, 1, 0] * 10
    plain = plain_pipeline(LogisticRegression()).fit(rows, outcome)
    skops.dump(plain, tmp_path / "plain.skops")
    loaded: Any = load_file(tmp_path / "plain.skops", trusted=(), allow_pickle=False)
    assert np.array_equal(loaded.predict_proba(rows), plain.predict_proba(rows))
    skops.dump(plain_pipeline(RandomForestClassifier(2)).fit(rows, outcome), tmp_path / "forest.skops")
    with pytest.raises(ConfigError, match=r"holds types that skops does not trust: 'sklearn.tree._tree.Tree'; look"):
        load_file(tmp_path / "forest.skops", trusted=(), allow_pickle=False)
    assert load_file(tmp_path / "forest.skops", trusted=("sklearn.tree._tree.Tree",), allow_pickle=False)


def test_a_skops_file(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any], tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io", reason="a model is written by skops")
    model = fitted(people, StandardScaler(), LogisticRegression(**EXACT))
    skops.dump(model, tmp_path / "risk.skops")
    found = reliability({"m": str(tmp_path / "risk.skops")}, table, features=NUMBERS, noise=NOISE, **quick)
    assert (
        values(found).tolist()
        == values(reliability({"m": model}, table, features=NUMBERS, noise=NOISE, **quick)).tolist()
    )
    skops.dump(Mine(), tmp_path / "mine.skops")
    with pytest.raises(ConfigError, match=r"holds types that skops does not trust: '.*Mine'; look at them"):
        reliability(tmp_path / "mine.skops", table, features=NUMBERS, noise=NOISE, **quick)
    name = f"{Mine.__module__}.{Mine.__qualname__}"
    trusted = reliability(tmp_path / "mine.skops", table, features=NUMBERS, noise=NOISE, trusted=name, **quick)
    assert trusted.models[0].mean_score == pytest.approx(0.1 * people.priors.mean())


def test_a_pickle_is_read_only_when_that_is_allowed(
    people: pd.DataFrame, table: eh.Table, quick: dict[str, Any], tmp_path: Path
) -> None:
    model = fitted(people, LogisticRegression(**EXACT))
    path = tmp_path / "risk.pkl"
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(ConfigError, match=r"'risk.pkl' is a pickle, and reading one can run any code"):
        reliability(path, table, features=NUMBERS, noise=NOISE, **quick)
    found = reliability(path, table, features=NUMBERS, noise=NOISE, allow_pickle=True, **quick)
    assert found.models[0].kind == "file"


def test_files_that_are_not_there_or_not_models(table: eh.Table, quick: dict[str, Any], tmp_path: Path) -> None:
    asked: dict[str, Any] = {"features": NUMBERS, "noise": NOISE, **quick}
    with pytest.raises(ConfigError, match=r"'gone.onnx' cannot be read: No such file"):
        reliability(tmp_path / "gone.onnx", table, **asked)
    for name in ("text.onnx", "text.skops", "text.joblib"):
        (tmp_path / name).write_text("not a model")
        with pytest.raises(EvenhandError, match=f"the model file '{name}' cannot be read"):
            reliability(tmp_path / name, table, allow_pickle=True, **asked)
    spec = ReliabilitySpec.parse(nested({"model": "gone.onnx", **asked}), "here").relative_to(tmp_path)
    with pytest.raises(ConfigError, match=r"'gone.onnx' cannot be read"):
        run(table, spec)


# Models that misbehave ------------------------------------------------------------------------------------


def raises(rows: Any) -> Any:
    raise ZeroDivisionError("no luck")


WRONG: list[tuple[Any, str]] = [
    (raises, "the model 'raises' failed on 240 rows of age, priors, sex: ZeroDivisionError: no luck"),
    (
        lambda rows: np.full(len(rows), np.nan),
        "the model 'model' gave the score nan for age .., priors ., sex .; scores must",
    ),
    (lambda rows: rows[:3, 0], "the model 'model' must return one score a row; 240 rows gave 3"),
    (lambda rows: ["high"] * len(rows), "the model 'model' gives no numbers; wrap it in a function"),
]


@pytest.mark.parametrize(("model", "message"), WRONG, ids=["raises", "nan", "shape", "text"])
def test_a_model_that_misbehaves(table: eh.Table, quick: dict[str, Any], model: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        reliability(model, table, features=NUMBERS, noise=NOISE, **quick)


def test_a_model_of_three_classes(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]) -> None:
    model = LogisticRegression(**EXACT).fit(people[NUMBERS].to_numpy(float), people.stage)
    with pytest.raises(EvenhandError, match="'LogisticRegression' gives the chances of 3 classes, but reliability is"):
        reliability(model, table, features=NUMBERS, noise=NOISE, **quick)


def test_the_positive_class_by_its_name(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people["word"] = np.where(people.again == 1, "again", "never")
    model = LogisticRegression(**EXACT).fit(people[NUMBERS].to_numpy(float), people.word)
    table = eh.Table(people, groups="group", outcome="word", positive="again")
    found = reliability(model, table, features=NUMBERS, noise=NOISE, **quick)
    chance = model.predict_proba(people[NUMBERS].to_numpy(float))[:, 0]
    assert found.models[0].mean_score == pytest.approx(chance.mean())
    assert found.models[0].auc is not None
    assert found.models[0].auc > 0.5


def test_a_model_that_knows_one_class_only(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]) -> None:
    model = DummyClassifier().fit(people[NUMBERS].to_numpy(float), np.zeros(len(people)))
    found = reliability(model, table, features=NUMBERS, noise=NOISE, **quick)
    assert any("all scores are 0. Kappa and ICC are undefined" in note.text for note in found.notes)
    by_name = {record.metric: record for record in found.values if record.noise_level == 0.3}
    assert (by_name["kappa"].value, by_name["icc_a1"].value, by_name["pabak"].value) == (None, None, 1.0)
    assert by_name["kappa"].status.text == "undefined: all ratings are in one class in every run"
    assert by_name["icc_a1"].status.text == "undefined: all scores are one number in every run"
    assert (
        mean_gap(found, "kappa").status.text == "undefined: at 2 of 2 noise levels, since all ratings are in one class"
    )
    gap = mean_gap(found, "pabak")
    assert ((gap.value, gap.status.text, gap.p_value)) == (0.0, "ok", 1.0)
    assert gap.low < 0 < gap.high  # other people might be hurt
    assert found.section().parts


def test_constant_scores(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability(lambda rows: np.full(len(rows), 0.7), table, features=NUMBERS, noise=NOISE, **quick)
    assert any("all scores are 0.7" in note.text for note in found.notes)
    assert found.section().parts
    assert {record.value for record in found.values if record.metric == "mean_squared_error"} == {0.0}


def test_a_threshold_that_nobody_passes(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability(lambda rows: rows[:, 1] / 50, table, features=NUMBERS, noise={"age": 2}, threshold=2, **quick)
    assert any("nobody is selected at the threshold 2" in note.text for note in found.notes)
    assert curve(found, "kappa", "A")[1].value is None
    everybody = reliability(lambda rows: rows[:, 0], table, features=NUMBERS, noise={"age": 2}, **quick)
    assert any("everybody is selected at the threshold 0.5" in note.text for note in everybody.notes)


def test_models_that_are_none(table: eh.Table, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": NUMBERS, "noise": NOISE, **quick}
    for model, message in (
        ("logistc", "'logistc' is neither an estimator nor a file .* did you mean 'logistic'"),
        (3, "a model must have predict_proba or predict, or be a function; got int"),
        (LogisticRegression, "the model is the class LogisticRegression; give an instance"),
        ({}, "`model` names no model"),
        ({"m": {"estimator": "logistic", "file": "a.onnx"}}, "needs exactly one of `estimator`, `file` and `model`"),
        ({"m": {"model": len, "settings": {"a": 1}}}, "`settings` go with an `estimator` by name"),
        ({"m": {"file": "a.txt"}}, "the file of a model must end in .onnx"),
        (["logistic", "logistic"], "two models are called 'logistic'"),
        ({"m": {"estimator": "logistic", "features": "agee"}}, "`features` names 'agee', which is no feature"),
    ):
        with pytest.raises(ConfigError, match=message):
            reliability(model, table, **asked)


def test_a_model_fitted_to_what_is_not_there(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]) -> None:
    model = LogisticRegression(**EXACT).fit(people[["age", "priors"]], people.again)
    with pytest.raises(ConfigError, match="was fitted to 'priors', which is not among `features`"):
        reliability(model, table, features=["age", "sex"], noise={"age": 3}, **quick)
    with pytest.raises(ConfigError, match="was fitted to other features than it is given: age, priors"):
        reliability({"m": {"model": model, "features": ["age"]}}, table, features=NUMBERS, noise=NOISE, **quick)
    with pytest.raises(ConfigError, match="the feature 'job' holds text, which an array of numbers cannot"):
        reliability(raises, table, features=["age", "job"], noise={"age": 3}, rows="array", **quick)
