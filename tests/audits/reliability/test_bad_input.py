"""What an opposing expert would try on the inputs: rules that feed rules, classes, models that waver, odd numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, EvenhandError

from .conftest import reliability

NAN, INF = float("nan"), float("inf")


def risk(rows: Any) -> Any:
    return rows[:, 0] / 100 + rows[:, 1] / 20


def values(result: Any, statistic: str | None = None) -> Any:
    kept = [record for record in result.values if statistic in (None, record.metric)]
    return np.array([NAN if record.value is None else record.value for record in kept])


def warnings_of(result: Any) -> list[str]:
    return [note.text for note in result.notes if note.text.startswith("Warning")]


# Features that follow features that follow ----------------------------------------------------------------


@pytest.fixture
def chained(people: pd.DataFrame) -> eh.Table:
    people["old"] = (people.age >= 40).astype(int)
    people["old_man"] = people.old * people.sex
    people["old_member"] = people.old_man * people.member
    return eh.Table(people, groups="group", outcome="again")


CHAIN = ["age", "sex", "member", "old_member", "old_man", "old"]
LINKS: dict[str, Any] = {"old_member": ["old_man", "member"], "old_man": ["old", "sex"], "old": "age"}


class Frames:
    """A model that keeps the frames it is asked about."""

    def __init__(self) -> None:
        self.frames: list[pd.DataFrame] = []

    def predict(self, rows: pd.DataFrame) -> Any:
        self.frames.append(rows)
        numbers = rows.select_dtypes("number").to_numpy(float)
        return (numbers / (1 + np.arange(numbers.shape[1]))).sum(axis=1) / 100 + numbers[:, 3:].sum(axis=1) / 50


def make(columns: dict[str, Any]) -> dict[str, Any]:
    old = columns["age"] >= 40
    return {"old": old, "old_man": old * columns["sex"], "old_member": old * columns["sex"] * columns["member"]}


@pytest.mark.parametrize("order", [list(LINKS), list(LINKS)[::-1]], ids=["last first", "first first"])
def test_linked_features_follow_whatever_their_order(
    chained: eh.Table, quick: dict[str, Any], order: list[str]
) -> None:
    model = Frames()
    asked: dict[str, Any] = {"features": CHAIN, "noise": {"age": 9, "sex": "flip"}, "rows": "frame", **quick}
    found = reliability({"m": model}, chained, linked={name: LINKS[name] for name in order}, **asked)
    rows = pd.concat(model.frames)
    inside = rows[rows.age.between(18, 59)]
    assert len(inside) > 500
    assert ((inside.age >= 40) == inside.old).all()
    assert (rows.old * rows.sex == rows.old_man).all()
    assert (rows.old_man * rows.member == rows.old_member).all()
    assert not warnings_of(found)
    by_hook = reliability({"m": Frames()}, chained, derive=make, **asked)
    np.testing.assert_allclose(values(found), values(by_hook), atol=1e-12)


def test_what_derive_makes_feeds_linked_and_the_other_way_round(chained: eh.Table, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": CHAIN, "noise": {"age": 9, "sex": "flip"}, "rows": "frame", **quick}
    whole = reliability({"m": Frames()}, chained, derive=make, **asked)
    derive = lambda columns: {"old_man": columns["old"] * columns["sex"]}  # noqa: E731
    linked = {name: LINKS[name] for name in ("old_member", "old")}  # one is a source of `derive`, one is made of it
    between = reliability({"m": Frames()}, chained, derive=derive, linked=linked, **asked)
    np.testing.assert_allclose(values(whole), values(between), atol=1e-12)


CIRCLES: list[tuple[dict[str, Any], str]] = [
    ({"linked": {"old": "old_man", "old_man": ["old", "sex"]}}, "`linked` goes round in a circle: 'old"),
    (
        {"linked": {"old": "old_man", "old_man": "old_member", "old_member": ["age", "old"]}},
        "'old', which is made of 'old_man', which is made of 'old_member', which is made of 'old'",
    ),
    (
        {"linked": {"old_man": ["old", "sex"]}, "derive": lambda c: {"old": c["old_man"] + (c["age"] >= 40) * 0}},
        "`derive` looks at 'old_man', which `linked` makes of what `derive` returns",
    ),
    (
        {"derive": lambda c: {"old": c["age"] >= 40, "old_man": c["old"] * c["sex"]}},
        "`derive` looks at 'old', which it makes itself: those are the values from before",
    ),
    ({"linked": {"old": "age"}, "derive": make}, "`linked` and `derive` both make 'old'; leave it to one of them"),
]


@pytest.mark.parametrize(("settings", "message"), CIRCLES, ids=[str(place) for place in range(len(CIRCLES))])
def test_circles_are_refused(chained: eh.Table, quick: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        reliability(risk, chained, features=CHAIN, noise={"age": 3}, **settings, **quick)


DERIVED: list[tuple[Any, str]] = [
    (lambda c: {"old": np.full(len(c["age"]), "yes")}, "must return numbers for 'old', which holds numbers; got 'yes'"),
    (lambda c: {"old": c["old"].astype(str)}, "must return numbers for 'old', which holds numbers; got '.\\.0'"),
    (lambda c: {"old": None}, "one value a row for 'old'; 240 rows gave one value"),
    (lambda c: {"old": [[1], [1, 2]]}, "one value a row for 'old'"),
    (lambda c: {"old": c["old"][:2]}, "one value a row for 'old'; 240 rows gave 2"),
    (lambda c: {"old": c["old"] + 1j}, "must return numbers for 'old'"),
    (lambda c: {"job": np.full(len(c["age"]), 3)}, "returns '3' for 'job', which the data does not have"),
    (lambda c: None, "`derive` must return columns by name; it returned NoneType"),
    (lambda c: [1, 2], "`derive` must return columns by name; it returned list"),
    (lambda c: {"old": np.random.default_rng().random(len(c["age"]))}, "other values when it is asked again"),
    (lambda c: {"old": np.argsort(c["age"])}, "gives 'old' other values when it is asked about fewer people"),
]


@pytest.mark.parametrize(("derive", "message"), DERIVED, ids=[str(place) for place in range(len(DERIVED))])
def test_hooks_that_misbehave(chained: eh.Table, quick: dict[str, Any], derive: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        reliability({"m": Frames()}, chained, features=[*CHAIN, "job"], noise={"sex": "flip"}, derive=derive, **quick)


# Classes --------------------------------------------------------------------------------------------------


class Chances:
    """A classifier with classes of some kind; the second column is the one with the risk."""

    def __init__(self, classes: Any) -> None:
        self.classes_ = classes

    def predict_proba(self, rows: Any) -> Any:
        return np.column_stack([1 - risk(rows), risk(rows)])


SAME = [
    ([0, 1], 1),
    ([0, 1], 1.0),
    ([0.0, 1.0], 1),
    ([0.0, 1.0], "1"),
    ([False, True], 1),
    ([False, True], True),
    ([0, 1], True),
    ([0, 1], None),
    ([0.0, 1.0], None),
    ([False, True], None),
    (["no", "yes"], None),
    ([-1, 1], None),
    (np.array([0, 1]), 1),
    (np.array(["0", "1"]), 1),
    (np.array(["0", "1"]), "1"),
    ([2, 1], 1),
    (["never", "again"], "again"),
]


@pytest.mark.parametrize(("classes", "positive"), SAME, ids=[str(place) for place in range(len(SAME))])
def test_the_positive_class_is_scored(people: pd.DataFrame, quick: dict[str, Any], classes: Any, positive: Any) -> None:
    if positive == "again":
        people["again"] = np.where(people.again == 1, "again", "never")
    table = eh.Table(people, groups="group", outcome="again", positive=positive)
    found = reliability({"m": Chances(classes)}, table, features=["age", "priors"], noise={"age": 3}, **quick)
    assert found.models[0].mean_score == pytest.approx(risk(people[["age", "priors"]].to_numpy(float)).mean())


@pytest.mark.parametrize("classes", [[0, 1], [0.0, 1.0], [False, True], ["0", "1"]])
def test_a_positive_outcome_of_0_is_the_other_class(people: pd.DataFrame, quick: dict[str, Any], classes: Any) -> None:
    table = eh.Table(people, groups="group", outcome="again", positive=0)
    found = reliability({"m": Chances(classes)}, table, features=["age", "priors"], noise={"age": 3}, **quick)
    assert found.models[0].mean_score == pytest.approx(1 - risk(people[["age", "priors"]].to_numpy(float)).mean())


def test_what_is_fitted_here_is_scored_by_its_own_outcome(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    pytest.importorskip("sklearn", reason="a model is fitted")
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3}, **quick}
    for positive, word in ((0, None), ("never", "word")):
        people["word"] = np.where(people.again == 1, "again", "never")
        table = eh.Table(people, groups="group", outcome=word or "again", positive=positive)
        found = reliability("logistic", table, **asked)
        assert found.models[0].auc is not None
        assert found.models[0].auc > 0.6  # the scores rise with the outcome that counts as positive


@pytest.mark.parametrize(
    ("classes", "positive", "message"),
    [
        (["a", "b"], None, "'m' knows the classes 'a' and 'b'; say which is the positive one with `positive`"),
        ([1, 2], None, "'m' knows the classes '1' and '2'; say which"),
        (["a", "b"], 1, "'m' knows the classes 'a' and 'b', and the positive outcome of the table is '1'"),
        ([2, 3], 1, "'m' knows the classes '2' and '3', and the positive outcome of the table is '1'"),
        ([0, 1, 2], 1, "'m' gives the chances of 2 classes and names 3"),
    ],
)
def test_classes_that_cannot_be_told_apart(
    people: pd.DataFrame, quick: dict[str, Any], classes: Any, positive: Any, message: str
) -> None:
    table = eh.Table(people, groups="group", outcome="again", positive=positive)
    with pytest.raises(EvenhandError, match=message):
        reliability({"m": Chances(classes)}, table, features=["age", "priors"], noise={"age": 3}, **quick)


@pytest.mark.parametrize("zipmap", [False, True], ids=["array", "map"])
def test_the_classes_of_an_onnx_file(people: pd.DataFrame, quick: dict[str, Any], tmp_path: Path, zipmap: bool) -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="a model is converted to ONNX")
    pytest.importorskip("onnxruntime", reason="a model in ONNX is run")
    linear_model = pytest.importorskip("sklearn.linear_model", reason="a model is fitted")
    columns = people[["age", "priors"]].to_numpy(float)
    people["word"] = np.where(people.again == 1, "again", "never")
    for outcome, positive, at in (("again", 0, 0), ("again", 1, 1), ("word", "again", 0), ("word", "never", 1)):
        model = linear_model.LogisticRegression().fit(columns, people[outcome])
        options = {} if zipmap else {"options": {"zipmap": False}}
        converted = skl2onnx.to_onnx(model, np.zeros((1, 2), dtype=np.float32), target_opset=18, **options)
        (tmp_path / "risk.onnx").write_bytes(converted.SerializeToString())
        table = eh.Table(people, groups="group", outcome=outcome, positive=positive)
        found = reliability(tmp_path / "risk.onnx", table, features=["age", "priors"], noise={"age": 3}, **quick)
        assert found.models[0].mean_score == pytest.approx(model.predict_proba(columns)[:, at].mean(), abs=1e-5)


# Models that waver ----------------------------------------------------------------------------------------


class Wavering:
    """A model whose scores move by some amount from one call to the next."""

    def __init__(self, size: float) -> None:
        self.size, self.calls = size, 0

    def predict(self, rows: Any) -> Any:
        self.calls += 1
        return risk(rows) + self.size * (self.calls % 2)


WAVERING: list[tuple[Any, str]] = [
    (lambda rows: np.random.default_rng().random(len(rows)), "other scores when it is asked again, by up to"),
    (Wavering(0.01), "other scores when it is asked again, by up to 0.01"),
    (lambda rows: risk(rows) - risk(rows).mean(), "other scores beside other people"),
    (lambda rows: rows[:, 0].argsort().argsort() / len(rows), "other scores beside other people"),
    (lambda rows: risk(rows) + np.arange(len(rows)) / 1e4, "other scores beside other people"),
    (lambda rows: risk(rows) + (len(rows) == 1), "other scores beside other people, by up to 1"),
]


@pytest.mark.parametrize(("model", "message"), WAVERING, ids=[str(place) for place in range(len(WAVERING))])
def test_a_model_that_gives_a_person_several_scores(
    table: eh.Table, quick: dict[str, Any], model: Any, message: str
) -> None:
    with pytest.raises(EvenhandError, match=f"the model 'm' gives .*{message}"):
        reliability({"m": model}, table, features=["age", "priors"], noise={"age": 3}, **quick)


def test_rounding_is_told_and_not_refused(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability({"m": Wavering(1e-9)}, table, features=["age", "priors"], noise={"age": 3}, **quick)
    assert [note.args["size"] for note in found.notes if note.id == "reliability.rounding"] == [
        pytest.approx(1e-9, rel=0.1)
    ]
    steady = reliability({"m": risk}, table, features=["age", "priors"], noise={"age": 3}, **quick)
    assert not any(note.id == "reliability.rounding" for note in steady.notes)


SHAPES: list[tuple[Any, str]] = [
    (lambda rows: None, "240 rows gave one number"),
    (lambda rows: 0.5, "240 rows gave one number"),
    (lambda rows: [], "240 rows gave 0"),
    (lambda rows: np.ones((len(rows), 2)), "240 rows gave 240 by 2"),
    (lambda rows: [[1.0], [1.0, 2.0]], "gives no numbers"),
    (lambda rows: {"a": 1}, "gives no numbers"),
    (lambda rows: np.full(len(rows), None), "gave the score nan"),
    (lambda rows: np.full(len(rows), INF), "gave the score inf"),
]


@pytest.mark.parametrize(("model", "message"), SHAPES, ids=[str(place) for place in range(len(SHAPES))])
def test_scores_that_are_none(table: eh.Table, quick: dict[str, Any], model: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=f"the model 'm' .*{message}"):
        reliability({"m": model}, table, features=["age", "priors"], noise={"age": 3}, **quick)


NUMBERS: list[tuple[dict[str, Any], str]] = [
    ({"noise_levels": [NAN]}, "`noise.noise_levels.0` .* finite number"),
    ({"noise_levels": [0.1, INF]}, "`noise.noise_levels.1` .* finite number"),
    ({"threshold": NAN}, "`scoring.threshold` .* finite number"),
    ({"attribution": NAN}, "finite number"),
    ({"attribution": 5.0}, "`attribution` is 5, and more than 1 would change more than every entry; lower it"),
    ({"minima": {"age": NAN}}, "`noise.minima.age` .* finite number"),
    ({"noise": {"age": NAN}}, "finite number"),
    ({"noise": {"age": {"sd": 1, "maximum": NAN}}}, "finite number"),
    ({"noise": {"age": {"sd": 1, "minimum": 9, "maximum": 1}}}, "`minimum` 9 must not be above `maximum` 1"),
    ({"group_noise": {"group": {"A": NAN}}}, "`noise.group_noise.group.A.times` .* finite number"),
    ({"group_noise": {"group": {"A": -1}}}, "greater than or equal to 0"),
    ({"group_noise": {"group": {"A": {"tims": 2}}}}, "no such setting; did you mean 'times'"),
    ({"group_noise": {"group": {"A": {"noise": {"agee": 2}}}}}, "`group_noise` names 'agee', which is no feature"),
    ({"group_noise": {"group": {"A": {"noise": {"sex": 2}}}}, "fixed": "sex"}, "'sex' is in `group_noise` and in"),
    ({"group_noise": {"group": {"a": 2}}}, "`group_noise` names 'a' of 'group'; did you mean 'A'"),
    ({"group_noise": {"grup": {"A": 2}}}, "`group_noise` names the grouping 'grup'; did you mean 'group'"),
    ({"group_noise": {"group": {"A": 2}, "sex": {"1": 2}}}, "must be about one grouping; got 'group' and 'sex'"),
    ({"group_noise": {"group": 2}}, "`group_noise` must name a grouping, and in it groups"),
    ({"group_noise": {"group": {"A": 4}}}, "`noise_levels` go up to 0.3, and more than 0.25 would change more than"),
    (
        {"group_noise": {"group": {"A": {"noise": {"it": {"one_hot": ["sex", "member"]}}}}}, "noise": {"sex": "flip"}},
        "`group_noise` lets 'it' go wrong by itself, and `noise` together with other columns",
    ),
]


@pytest.mark.parametrize(("settings", "message"), NUMBERS, ids=[str(place) for place in range(len(NUMBERS))])
def test_numbers_that_are_none(table: eh.Table, quick: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    asked = {"features": ["age", "priors", "sex", "member"], "noise": {"age": 3}, **quick} | settings
    with pytest.raises(EvenhandError, match=message):
        reliability({"m": risk}, table, **asked)


# Features made of a perturbed one, and held fixed -----------------------------------------------------------


def test_everything_that_is_made_of_a_perturbed_feature_is_told(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people["age_squared"] = people.age**2
    people["months"] = 12 * people.age
    people["woman"] = 1 - people.sex
    people["old"] = np.where(people.age >= 40, "yes", "no")
    people["log_income"] = np.log(people.income)
    people["nearly"] = people.sex * people.member
    people.loc[people.index[:2], "nearly"] = 1 - people.loc[people.index[:2], "nearly"]
    made = ["age_squared", "months", "woman", "old", "log_income", "nearly"]
    asked: dict[str, Any] = {
        "features": ["age", "sex", "income", "member", *made, "job", "priors"],
        "rows": "frame",
        **quick,
        "noise": {"age": 3, "sex": "flip", "income": 4},
    }
    found = warnings_of(reliability({"m": Frames()}, eh.Table(people, groups="group"), **asked))
    told = {name: next(note for note in found if repr(name) in note) for name in made}
    assert len(found) == 4
    every = "'age_squared', 'months' and 'old' are each a function of 'age' in every row, but were held fixed while"
    assert every in told["old"]
    assert "linked={'age_squared': 'age', 'months': 'age', 'old': 'age'}" in told["old"]
    assert "is a function of 'sex' in every row" in told["woman"]
    assert "is all but a function of 'income'" in told["log_income"]
    assert "is 'sex' times 'member' in 99.1% of rows" in told["nearly"]
    linked = dict.fromkeys(("age_squared", "months", "old"), "age") | {"woman": "sex"}
    derive = lambda columns: {"log_income": np.log(np.maximum(columns["income"], 1e-9))}  # noqa: E731
    left = warnings_of(
        reliability({"m": Frames()}, eh.Table(people, groups="group"), **asked, linked=linked, derive=derive)
    )
    assert [note.partition(" is ")[0] for note in left] == ["Warning: 'nearly'"]


def test_unrelated_features_are_not_told(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    people["number"] = rng.permutation(len(people))
    people["coin"] = rng.integers(0, 2, len(people))
    people["rare"] = (rng.random(len(people)) < 0.03).astype(int)
    features = ["age", "priors", "income", "sex", "coin", "rare", "number", "member"]
    noise = {"age": 3, "income": 5, "sex": "flip", "priors": 1}
    for n in (15, 30, 240):
        table = eh.Table(people.iloc[:n], groups="group")
        found = reliability(risk, table, features=features, noise=noise, min_count=2, **quick)
        assert not warnings_of(found)


def test_a_group_made_of_a_perturbed_feature(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people["old"] = np.where(people.age >= 40, "yes", "no")
    table = eh.Table(people, groups="old")
    (warning,) = warnings_of(
        reliability({"m": Frames()}, table, features=["age", "old", "priors"], noise={"age": 3}, rows="frame", **quick)
    )
    assert "columns that define groups stay as they are, so hold 'age' fixed too" in warning


# Mistakes that change nothing -------------------------------------------------------------------------------


def test_the_engine_tells_whether_entries_changed(table: eh.Table, quick: dict[str, Any]) -> None:
    noise = {"age": 2, "priors": {"sd": 0.01}, "sex": "flip"}
    found = reliability({"m": risk}, table, features=["age", "priors", "sex"], noise=noise, **quick)
    notes = "\n".join(map(str, found.notes))
    assert "the mistakes in 'priors' never changed an entry" in notes  # errors of 0.01 are rounded to 0
    assert "the mistakes in 'sex' changed entries and no score" in notes
    assert "'age'" not in notes


# Memory and threads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
def test_memory_changes_no_number(fresh: bool) -> None:
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 60, 3_000),
            "priors": rng.poisson(2, 3_000),
            "group": rng.choice(["A", "B"], 3_000),
        }
    )
    table = eh.Table(people, groups="group")
    asked: dict[str, Any] = {
        "features": ["age", "priors"],
        "noise": {"age": 3, "priors": 1},
        "replicates": 3,
        "resamples": 300,
        "noise_levels": [0.0, 0.1, 0.3],
        "metrics": ["pabak", "icc_a1"],
        "fresh": fresh,
    }
    little, much = (reliability(risk, table, memory=memory, **asked) for memory in (1, 64))
    assert little.gaps == much.gaps
    assert little.values == much.values
    assert little.attribution == much.attribution


# Numbers out of reach -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e100, 1e200, 1e308])
def test_features_out_of_reach_of_the_arithmetic_are_refused(
    people: pd.DataFrame, quick: dict[str, Any], size: float
) -> None:
    table = eh.Table(people.assign(income=np.sin(people.income) * size), groups="group")
    with pytest.raises(EvenhandError, match=r"feature 'income' holds .*e\+.*; give it in other units\."):
        reliability(risk, table, features=["income", "age"], noise={"age": 2}, **quick)


@pytest.mark.parametrize("size", [1e70, 1e-70, 1e-308])
def test_large_and_small_features_warn_of_nothing(people: pd.DataFrame, quick: dict[str, Any], size: float) -> None:
    table = eh.Table(people.assign(income=np.sin(people.income) * size), groups="group")
    found = reliability(
        lambda rows: rows[:, 0], table, features=["income", "age"], noise={"income": size / 3}, threshold=0.0, **quick
    )
    assert all(record.value is not None or record.status.text.startswith("undefined") for record in found.values)


def test_scores_out_of_reach_of_the_arithmetic_are_refused(table: eh.Table, quick: dict[str, Any]) -> None:
    with pytest.raises(EvenhandError, match=r"a score of size .*e\+.*; give smaller scores\."):
        reliability(lambda rows: rows[:, 0] * 1e200, table, features=["age"], noise={"age": 2}, **quick)
