"""A second attack on models and inputs: shortcuts that are not linear, guessed classes, dummies of the group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import evenhand as eh
from evenhand.charts import to_svg
from evenhand.core.display import Figure
from evenhand.errors import EvenhandError

from .conftest import reliability


def values(result: Any) -> Any:
    return np.array([np.nan if record.value is None else record.value for record in result.values])


def chance(rng: np.random.Generator, logit: Any) -> Any:
    return (rng.random(len(logit)) < 1 / (1 + np.exp(-logit))).astype(int)


# The linear shortcut --------------------------------------------------------------------------------------


@pytest.fixture
def wide() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.random(4_000) * 1e6,
            "s": rng.normal(size=4_000),
            "b": rng.integers(0, 2, 4_000),
            "group": rng.choice(["p", "q"], 4_000),
        }
    )


def both_ways(model: Any, data: pd.DataFrame, features: list[str], quick: dict[str, Any], **asked: Any) -> Any:
    """Return the audit of a model, and of a function that can only be asked by rows."""
    y = chance(np.random.default_rng(1), 4 * (data.x / 1e6 - 0.5) + 2 * data.b - 1)
    fitted = model.fit(data[features], y)
    table = eh.Table(data, groups="group")
    by_rows = {"m": lambda rows: fitted.predict_proba(pd.DataFrame(rows, columns=features))[:, 1]}
    return (
        reliability({"m": fitted}, table, features=features, **asked, **quick),
        reliability(by_rows, table, features=features, **asked, **quick),
    )


CLIPPED = make_column_transformer((MinMaxScaler(clip=True), ["x"]), remainder="passthrough")
IGNORING = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["b"]), remainder="passthrough")
PLAIN = make_column_transformer((MinMaxScaler(), ["x"]), remainder="passthrough")
BINARY = make_column_transformer((OneHotEncoder(drop="if_binary"), ["b"]), remainder="passthrough")
SHORTCUTS: list[tuple[Any, list[str], dict[str, Any], str]] = [
    (CLIPPED, ["x", "s"], {"x": 8e5}, "rows"),
    (CLIPPED, ["x", "s"], {"s": 1}, "linear"),  # nothing goes wrong where it clips
    (CLIPPED, ["x", "s"], {"x": {"sd": 8e5, "minimum": 2e5, "maximum": 5e5}}, "linear"),
    (PLAIN, ["x", "s"], {"x": 8e5}, "linear"),
    (IGNORING, ["b", "s"], {"b": 1, "s": 0.1}, "rows"),
    (IGNORING, ["b", "s"], {"b": "flip", "s": 0.1}, "linear"),
    (BINARY, ["b", "s"], {"b": "flip", "s": 0.1}, "linear"),
]


@pytest.mark.parametrize(("part", "features", "noise", "method"), SHORTCUTS)
def test_the_shortcut_is_taken_only_where_the_audits_own_mistakes_leave_a_model_linear(
    wide: pd.DataFrame, quick: dict[str, Any], part: Any, features: list[str], noise: dict[str, Any], method: str
) -> None:
    found, asked = both_ways(make_pipeline(part, LogisticRegression(C=1e3)), wide, features, quick, noise=noise)
    assert found.models[0].method == method
    np.testing.assert_allclose(values(found), values(asked), atol=1e-9)


def test_mistakes_of_one_group_and_of_a_pilot_count_too(wide: pd.DataFrame, quick: dict[str, Any]) -> None:
    model = make_pipeline(CLIPPED, LogisticRegression(C=1e3))
    own = {"group": {"q": {"noise": {"x": 8e5}}}}
    found, asked = both_ways(model, wide, ["x", "s"], quick, noise={"x": 1.0, "s": 1.0}, group_noise=own)
    assert found.models[0].method == "rows"
    np.testing.assert_allclose(values(found), values(asked), atol=1e-9)
    twice = {"x_a": [1e5, 2e5, 8e5, 9e5], "x_b": [9e5, 2e5, 8e5, 1e5]}
    pilot = {"pilot": {"data": twice, "suffixes": ["_a", "_b"], "resample": False}}
    assert both_ways(model, wide, ["x", "s"], quick, noise=pilot)[0].models[0].method == "rows"


def test_one_rare_value_that_an_encoder_leaves_out_is_found(wide: pd.DataFrame, quick: dict[str, Any]) -> None:
    wide["b"] *= 2
    model = make_pipeline(IGNORING, LogisticRegression())
    model.fit(wide[["b", "s"]], chance(np.random.default_rng(1), wide.s + wide.b))
    wide.loc[3, "b"] = 1  # between the two that it knows
    found = reliability(model, eh.Table(wide, groups="group"), features=["b", "s"], noise={"s": 1}, **quick)
    assert found.models[0].method == "rows"


def test_an_encoder_of_two_numbers_is_not_asked_about_a_third(quick: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.integers(0, 50, 300), "s": rng.choice([1, 2], 300), "g": rng.choice(["p", "q"], 300)})
    encoder = make_column_transformer((OneHotEncoder(drop="if_binary"), ["s"]), (StandardScaler(), ["a"]))
    y = chance(rng, data.a / 12 - 2 + data.s - 1.5)
    model = make_pipeline(encoder, LogisticRegression()).fit(data[["a", "s"]], y)
    table = eh.Table(data, groups="g")
    for noise in ({"s": "flip", "a": 5}, {"a": 5}, {"s": {"values": [1, 2], "chances": [[1, 0], [0.5, 0.5]]}}):
        found = reliability(model, table, features=["a", "s"], noise=noise, **quick)
        assert found.models[0].method == "linear"
    with pytest.raises(EvenhandError, match=r"the model 'LogisticRegression' failed .*unknown categories"):
        reliability(model, table, features=["a", "s"], noise={"s": 3}, **quick)  # such a value is asked about


# Models that decide ---------------------------------------------------------------------------------------


@pytest.fixture
def sides() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300), "g": rng.choice(["p", "q"], 300)})
    data["side"] = data.a + data.b + 0.3 * rng.normal(size=300) > 0.5
    return data


LABELS: list[tuple[Any, Any, Any]] = [(1, 2, 2), (1, 2, 1), (0, 1, 1), (0, 1, 0), ("no", "yes", "yes"), (-1, 1, 1)]


@pytest.mark.parametrize(("low", "high", "positive"), LABELS)
def test_a_decision_is_for_the_positive_class(
    sides: pd.DataFrame, quick: dict[str, Any], low: Any, high: Any, positive: Any
) -> None:
    sides["y"] = [high if side else low for side in sides.side]
    table = eh.Table(sides, groups="g", outcome="y", positive=positive)
    asked: dict[str, Any] = {"features": ["a", "b"], "noise": {"a": 1, "b": 1}, **quick}
    for model in (LinearSVC().fit(sides[["a", "b"]], sides.y), LinearSVC()):
        record = reliability(model, table, **asked).models[0]
        assert record.accuracy is not None
        assert record.accuracy > 0.9
        assert record.selected == pytest.approx((sides.y == positive).mean(), abs=0.06)


def test_classes_that_cannot_be_told_apart_are_refused(sides: pd.DataFrame, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": ["a", "b"], "noise": {"a": 1}, **quick}
    table = eh.Table(sides, groups="g")
    rows = sides[["a", "b"]]
    with pytest.raises(EvenhandError, match="knows the classes '1' and '2'; say which is the positive one"):
        reliability(LinearSVC().fit(rows, 1 + sides.side), table, **asked)
    three = np.random.default_rng(0).integers(0, 3, len(sides))
    with pytest.raises(EvenhandError, match="decides between 3 classes; reliability is about one score"):
        reliability(LinearSVC().fit(rows, three), table, **asked)

    class Odd:
        classes_ = (0, 1)

        def predict(self, rows: Any) -> Any:
            return 1 / (1 + np.exp(-rows[:, 0]))

    with pytest.raises(EvenhandError, match=r"decides for '0\.\d+', which is none of its classes; wrap it"):
        reliability({"m": Odd()}, table, **asked)
    line = LinearRegression().fit(rows, sides.side)  # has no classes: its numbers are scores
    assert reliability(line, table, **asked).models[0].selected == pytest.approx(sides.side.mean(), abs=0.1)


# Features that tell the group -----------------------------------------------------------------------------


def test_a_dummy_of_the_group_is_held_fixed_by_published_settings(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    seen: list[Any] = []

    def model(rows: Any) -> Any:
        seen.append(rows[:, [1, 2]].copy())
        return rows[:, 0] / 100 + rows[:, 1] / 5 + rows[:, 2] / 5

    table = eh.Table(people, groups="group")
    asked: dict[str, Any] = {"features": ["age", "member", "sex"], **quick}
    found = reliability({"m": model}, table, noise="raez-2024/all/1", **asked | {"attribution": True})
    assert {record.feature for record in found.attribution} == {"age", "sex"}
    assert any(note.text.startswith("'member' is a function of 'group', which defines groups") for note in found.notes)
    assert np.concatenate(seen)[:, 0].mean() == pytest.approx(1 / 3, abs=0.02)
    given = reliability({"m": model}, table, noise={"member": "flip", "age": 1}, **asked)
    assert any(note.text.startswith("Warning: 'member' is a function of 'group' in every row") for note in given.notes)
    other = reliability({"m": model}, table, noise={"age": 1, "sex": "flip"}, **asked)
    assert not any("function of 'group'" in note.text for note in other.notes)


# Limits, copies and whole numbers -------------------------------------------------------------------------


def risk(rows: Any) -> Any:
    return rows[:, 0] / 100 + rows[:, 1] / 20


def test_limits_that_the_data_does_not_keep_are_told(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    table = eh.Table(people, groups="group")
    asked: dict[str, Any] = {"features": ["age", "priors"], **quick}
    below = int((people.age < 50).sum())
    found = reliability(risk, table, noise={"age": {"sd": 1, "minimum": 50}}, **asked)
    warned = [note.text for note in found.notes if note.text.startswith("Warning")]
    assert len(warned) == 1
    assert warned[0].startswith(f"Warning: 'age' is below its minimum 50 for {below} people of 240.")
    above = reliability(risk, table, noise={"age": {"sd": 1, "minimum": 18, "maximum": 30}}, **asked)
    assert any(f"above its maximum 30 for {int((people.age > 30).sum())} people" in note.text for note in above.notes)
    least = reliability(risk, table, noise="raez-2024/minima/1", minima={"age": 20}, **asked)
    assert any(
        f"'age' is below its minimum 20 for {int((people.age < 20).sum())} people" in n.text for n in least.notes
    )
    own = {"group": {"A": {"noise": {"age": {"sd": 1, "minimum": 30}}}}}
    part = reliability(risk, table, noise={"age": 1}, group_noise=own, **asked)
    young = int(((people.age < 30) & (people.group == "A")).sum())
    assert any(f"'age' is below its minimum 30 for {young} people" in note.text for note in part.notes)
    kept = reliability(risk, table, noise={"age": {"sd": 1, "minimum": 18}}, **asked)
    assert not any(note.text.startswith("Warning") for note in kept.notes)


def test_rows_that_are_repeated_are_told(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people["who"] = np.arange(len(people))
    twice = pd.concat([people, people.head(60)], ignore_index=True)
    asked: dict[str, Any] = {"features": ["age", "priors", "income"], "noise": {"age": 1}, **quick}
    told = "60 rows of 300 are exact copies of another one in all columns used"
    assert any(told in note.text for note in reliability(risk, eh.Table(twice, groups="group"), **asked).notes)
    assert not any("copies" in note.text for note in reliability(risk, eh.Table(people, groups="group"), **asked).notes)
    twice["who"] = np.arange(len(twice))
    named = reliability(risk, eh.Table(twice, groups="group", id="who"), **asked)
    assert not any("copies" in note.text for note in named.notes)


def test_a_frame_has_the_whole_numbers_that_the_data_has(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    frames: list[pd.DataFrame] = []

    def model(rows: pd.DataFrame) -> Any:
        frames.append(rows)
        return rows["age"] / 100 + rows["income"] / 500

    asked: dict[str, Any] = {"features": ["age", "sex", "income"], "rows": "frame", **quick}
    table = eh.Table(people, groups="group")
    reliability({"m": model}, table, noise={"age": 3, "sex": "flip", "income": 5}, **asked)
    assert {str(frame.age.dtype) for frame in frames} == {str(frame.sex.dtype) for frame in frames} == {"int64"}
    assert {str(frame.income.dtype) for frame in frames} == {"float64"}
    frames.clear()
    reliability({"m": model}, table, noise={"age": {"sd": 3, "whole": False}}, **asked)
    assert any((frame.age != frame.age.round()).any() for frame in frames)  # an error that is not whole is not rounded


# What agreement says --------------------------------------------------------------------------------------


def test_random_ratings_do_not_point_different_ways() -> None:
    rng = np.random.default_rng(1)
    data = {"x": rng.integers(1, 6, 200), "y": rng.integers(1, 6, 200), "g": rng.choice(["a", "b", "c"], 200)}
    for scale in ("nominal", "ordinal"):
        found = eh.agreement(eh.Table(data, groups="g"), raters=["x", "y"], resamples=100, scale=scale)
        assert all(gap.p_adjusted is None or gap.p_adjusted > 0.05 for gap in found.gaps)
        assert "agreement.different_ways" not in {note.id for note in found.notes}


def test_a_point_without_an_interval_is_explained(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    few = people[(people.group == "B") | (people.index < 60)]
    models = {"one": risk, "two": lambda rows: rows[:, 0] / 90 + rows[:, 1] / 9}
    for data, bare in ((few, True), (pd.concat([people] * 4), False)):
        found = reliability(
            models, eh.Table(data, groups="group"), features=["age", "priors"], noise={"age": 5}, **quick
        )
        (figure,) = (
            part
            for part in found.section().parts
            if isinstance(part, Figure) and part.title.startswith("Gaps of the models")
        )
        drawn = [to_svg(panel, "t", "d", name="x") for panel in figure.charts]
        assert ("A hollow point has no interval." in figure.caption) == bare
        assert any('fill="none" stroke=' in svg for svg in drawn) == bare
        assert [panel.title for panel in figure.charts] == ["Cohen's kappa", "PABAK", "ICC(A,1)", "Spread-adjusted ICC"]
