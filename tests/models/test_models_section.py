"""`[models]` and `dataset` of audit.toml: models are fitted before the audits, and told in results.json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.models import cross_predict, folds
from evenhand.models.estimators import ESTIMATORS, ModelsSettings

TOML = """
[data]
source = "people.csv"
delimiter = ";"
id = "name"
outcome = "late"
groups = ["sex"]
threshold = 0.4
favourable = "not_selected"
predictions = { old = { column = "old", threshold = 0.7 } }

[models]
features = ["income", "job", "owner"]
fit = ["logistic", "decision_tree"]

[parity]
metrics = ["mean_score", "selection_rate"]
resamples = 100
"""


@pytest.fixture
def place(people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(people)
    Path("audit.toml").write_text(TOML)
    return tmp_path


def save(people: pd.DataFrame) -> None:
    old = (people.income.rank() / (len(people) + 1)).round(3)
    people.assign(old=old).to_csv("people.csv", sep=";", index=False)


def run(text: str = TOML, **options: Any) -> dict[str, Any]:
    Path("audit.toml").write_text(text)
    results: dict[str, Any] = json.loads(eh.audit("audit.toml", **options).to_json())
    return results


def test_the_scores_are_those_of_cross_predict(people: pd.DataFrame, place: Path) -> None:
    scores = cross_predict(
        people, id="name", outcome="late", features=["income", "job", "owner"], fit=["logistic", "decision_tree"]
    )
    groups = run()["audits"]["parity"]["values"]
    assert {record["model"] for record in groups} == {"old", "logistic", "decision_tree"}
    for model in ("logistic", "decision_tree"):
        for sex in ("f", "m"):
            own = scores[model][people.sex == sex]
            found = {r["metric"]: r["value"] for r in groups if (r["model"], r["group"]) == (model, sex)}
            assert found["mean_score"] == pytest.approx(own.mean(), abs=1e-11)
            assert found["selection_rate"] == pytest.approx((own > 0.4).mean(), abs=1e-11)


def test_the_results_say_what_was_fitted(place: Path) -> None:
    results = run()
    config = results["config"]
    assert config["models"] == {
        "features": ["income", "job", "owner"],
        "fit": {
            name: {"estimator": name, "settings": dict(ESTIMATORS[name].settings), "search": None}
            for name in ("logistic", "decision_tree")
        },
        "folds": 5,
        "seed": 0,
        "split": None,
    }
    assert config["data"]["source"] == "people.csv"
    assert config["data"]["delimiter"] == ";"
    assert set(config["data"]["predictions"]) == {"old", "logistic", "decision_tree"}
    assert config["data"]["predictions"]["old"]["threshold"] == 0.7
    assert config["data"]["predictions"]["logistic"] == {
        "column": "logistic",
        "kind": "score",
        "threshold": 0.4,
        "percentile": None,
        "capacity": None,
        "selected": None,
        "favourable": "not_selected",
        "range": [0.0, 1.0],
        "selected_word": "selects",
    }
    assert [file["name"] for file in results["data"]["files"]] == ["people.csv"]
    assert any("out of fold: 5 folds of 300 people" in note["text"] for note in results["audits"]["parity"]["notes"])
    assert ModelsSettings.parse(config["models"], "results.json").model_dump(mode="json") == config["models"]


@pytest.mark.slow
def test_the_hash_is_that_of_the_data_the_features_and_the_outcome(people: pd.DataFrame, place: Path) -> None:
    first = run()["data"]["hash"]
    assert run()["data"]["hash"] == first
    save(people.sample(frac=1, random_state=1).assign(unused=1))
    assert run()["data"]["hash"] == first
    assert run(TOML.replace('"job", ', ""))["data"]["hash"] != first
    assert run(TOML.replace("[models]", "[models]\nfolds = 3"))["data"]["hash"] == first
    changed = people.copy()
    changed.loc[0, "owner"] = not changed.loc[0, "owner"]
    save(changed)
    assert run()["data"]["hash"] != first


def test_the_order_of_rows_changes_nothing(people: pd.DataFrame, place: Path) -> None:
    first = run()
    save(people.sample(frac=1, random_state=1))
    again = run()
    assert first["data"].pop("files") != again["data"].pop("files")
    assert first == again


@pytest.mark.slow
def test_the_seed_of_the_command_is_that_of_the_models_too(place: Path) -> None:
    assert run(seed=7)["config"]["models"]["seed"] == 7
    own = run(TOML.replace("[models]", "[models]\nseed = 7").replace("[parity]", "[parity]\nseed = 7"))
    assert run(seed=7) == own
    assert own["audits"] != run()["audits"]


def test_rows_without_outcome_or_feature_are_dropped_and_counted(people: pd.DataFrame, place: Path) -> None:
    gaps = people.copy()
    gaps.loc[[0, 1], "income"] = np.nan
    gaps.loc[[5], "late"] = None
    save(gaps)
    with pytest.raises(DataError, match="outcome column 'late' is missing in 1 row"):
        run()
    data = run(TOML.replace("[data]", "[data]\nmissing = 'drop'"))["data"]
    assert (data["rows"], data["rows_used"], data["rows_dropped"]) == (300, 297, 3)


@pytest.mark.slow
def test_rows_of_weight_0_take_no_part(people: pd.DataFrame, place: Path) -> None:
    weighted = TOML.replace("[data]", "[data]\nweight = 'w'")
    nobody = pd.concat([people.assign(w=1.0), people.assign(w=0.0, income=np.nan, name=people.name + "x")])
    save(nobody.reset_index(drop=True))
    groups = run(weighted)["audits"]["parity"]["values"]
    save(people.assign(w=1.0))
    alone = run(weighted)["audits"]["parity"]["values"]
    for model in ("logistic", "decision_tree"):
        assert [r for r in groups if r["model"] == model] == [r for r in alone if r["model"] == model]


def test_scores_go_back_to_their_own_rows_of_a_long_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long enough that the engine reads it in several parts at once."""
    rng = np.random.default_rng(3)
    n = 400_000
    frame = pd.DataFrame({"x": rng.permutation(n) / n, "y": rng.integers(0, 2, n), "g": rng.integers(0, 2, n)})
    frame.to_parquet("long.parquet", row_group_size=20_000)
    arguments: dict[str, Any] = {"data": "long.parquet", "outcome": "y", "groups": "g"}
    monkeypatch.setattr(folds, "out_of_fold", lambda training, *_: {"m": training.matrix[:, 0].copy()})
    settings = ModelsSettings.parse({"features": "x", "fit": {"m": "linear"}}, "here")
    table = folds.add_models(eh.Table(**arguments), arguments, settings)
    assert table.rows == n
    rows = table.person_rows(["x"])
    np.testing.assert_array_equal(rows.scores["m"], rows.numbers["x"])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", None])
def test_scores_go_back_to_their_own_rows_of_a_frame(backend: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend is None:
        monkeypatch.setattr("evenhand.table.frames._is_installed", lambda module: False)
    data = eh.datasets.make_households(500, seed=1, backend=backend)
    arguments: dict[str, Any] = {"data": data, "outcome": "missed_payment", "groups": "sex"}
    monkeypatch.setattr(folds, "out_of_fold", lambda training, *_: {"m": training.matrix[:, 0] / 1e7})
    settings = ModelsSettings.parse({"features": "income_2022", "fit": {"m": "linear"}}, "here")
    table = folds.add_models(eh.Table(**arguments), arguments, settings)
    rows = table.person_rows(["income_2022"])
    np.testing.assert_array_equal(rows.scores["m"], rows.numbers["income_2022"] / 1e7)
    assert table.backend == backend


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOML.replace('outcome = "late"\n', ""), "models need an outcome to predict; name its column as `outcome`."),
        (
            TOML.replace("fit = ", "fitt = "),
            "`fitt` in [models] of audit.toml: there is no such setting; did you mean 'fit'?",
        ),
        (
            TOML.replace('features = ["income", "job", "owner"]\n', ""),
            "`features` in [models] of audit.toml: it is required and was not given",
        ),
        (
            TOML.replace("decision_tree", "decision_trees"),
            "there is no estimator 'decision_trees'; did you mean 'decision_tree'?",
        ),
        (TOML.replace("[models]", "[model]"), "there is no section [model] in audit.toml; did you mean 'models'?"),
        (
            TOML.replace('["logistic", "decision_tree"]', '{ old = "logistic" }'),
            "the table already has predictions called 'old'; give the model another name.",
        ),
        (
            TOML.replace('["logistic", "decision_tree"]', '{ Income = "logistic" }'),
            "the data already has a column 'income'; give the model another name.",
        ),
        (
            TOML.replace('source = "people.csv"', 'source = "people.csv"\ndataset = "households"'),
            "[data] of 'audit.toml' names both a `source` and a `dataset`; give one of them.",
        ),
        (
            TOML.replace('source = "people.csv"', 'dataset = "housholds"'),
            "`dataset` in [data] got 'housholds'; did you mean 'households'?",
        ),
        (
            TOML.replace('source = "people.csv"', 'dataset = "households"\nrows = 0'),
            "`rows` in [data] of audit.toml: must be greater than or equal to 1; got 0.",
        ),
        (
            TOML.replace('source = "people.csv"', 'source = "people.csv"\nrows = 5'),
            "there is no setting `rows` in [data]",
        ),
    ],
)
def test_mistakes(place: Path, text: str, message: str) -> None:
    with pytest.raises(eh.EvenhandError) as caught:
        run(text)
    assert message in str(caught.value)


def test_a_table_takes_no_models() -> None:
    table = eh.Table({"g": ["a", "b"], "d": [0, 1]}, groups="g", predictions="d")
    with pytest.raises(ConfigError, match="a Table takes no `models`"):
        eh.audit(table, parity={}, models={"features": "g", "fit": "linear"})


INVENTED = """
[data]
dataset = "{dataset}"
rows = 400
dataset_seed = 3
outcome = "{outcome}"
groups = ["sex"]

[models]
features = [{features}]
fit = [{fit}]

[parity]
metrics = ["mean_score"]
resamples = 100
"""
HOUSEHOLDS = INVENTED.format(
    dataset="households",
    outcome="missed_payment",
    features="'income_2019', 'income_2022', 'employment'",
    fit="'xgboost', 'logistic', 'random_forest', 'gradient_boosting', 'lasso', 'linear'",
)
DEFENDANTS = INVENTED.format(
    dataset="defendants",
    outcome="rearrested",
    features="'arrests_year4', 'charge_degree', 'age'",
    fit="'lightgbm', 'logistic', 'decision_tree'",
)


def test_invented_data(place: Path) -> None:
    results = run(DEFENDANTS.replace("'lightgbm', ", ""))
    data = results["config"]["data"]
    assert (data["dataset"], data["rows"], data["dataset_seed"]) == ("defendants", 400, 3)
    assert "source" not in data
    assert results["data"]["rows"] == 400
    rate = eh.datasets.make_defendants(400, 3, backend="pandas").groupby("sex").rearrested.mean()
    groups = results["audits"]["parity"]["values"]
    for sex in ("Female", "Male"):
        found = [r["value"] for r in groups if r["group"] == sex and r["metric"] == "mean_score"]
        assert np.allclose(found, rate[sex], atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("text", [HOUSEHOLDS, DEFENDANTS], ids=["households", "defendants"])
def test_the_same_bytes_on_any_number_of_threads(place: Path, text: str) -> None:
    for package in ("xgboost", "lightgbm"):
        pytest.importorskip(package, reason=f"needs {package}, of the extra 'models'")
    Path("audit.toml").write_text(text)
    printed = []
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads), "PYTHONHASHSEED": threads}
        command = [sys.executable, "-m", "evenhand", "audit", "audit.toml", "--json"]
        printed.append(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert printed[0] == printed[1]
    assert len(printed[0]) > 1_000


SCORED = """
import hashlib, sys
import numpy as np
from evenhand.models.estimators import make_pipeline, scores_of
from evenhand.stats.noise.predictors import Linear

rng = np.random.default_rng(3)
x = rng.normal(size=(2_000, 6))
y = rng.random(2_000) < 1 / (1 + np.exp(-x @ [1, -1, 0.5, 0, 0, 2]))
pipeline = make_pipeline("logistic", numbers=range(6)).fit(x, y)
sums = Linear(rng.normal(size=6), 0.1).sums(x)
for numbers in (pipeline.predict_proba(x)[:, 1], scores_of(pipeline, x), sums):
    print(hashlib.sha256(numbers.tobytes()).hexdigest())
"""


def test_scores_do_not_depend_on_the_kernels_of_the_processor() -> None:
    seen = []
    for kernels in ("Prescott", "Haswell"):  # with and without AVX2 and FMA; where NumPy has no OpenBLAS, both the same
        environment = {**os.environ, "OPENBLAS_CORETYPE": kernels}
        done = subprocess.run(
            [sys.executable, "-c", SCORED], env=environment, capture_output=True, text=True, check=True
        )
        seen.append(done.stdout.split())
    (_, *ours), (_, *others) = seen
    assert ours == others
