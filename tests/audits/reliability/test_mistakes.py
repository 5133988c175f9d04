"""Mistakes of every kind, features that follow others, pilots, and input that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability.messages import say
from evenhand.core.records import LeftOut
from evenhand.errors import ConfigError, DataError, EvenhandError

from .conftest import curve, mean_gap, nested, reliability

FEATURES = ["age", "priors", "income", "sex", "job", "stage"]


class Seen:
    """A model that keeps the frames it is asked about."""

    def __init__(self) -> None:
        self.frames: list[pd.DataFrame] = []

    def predict(self, rows: pd.DataFrame) -> Any:
        self.frames.append(rows)
        return rows.age.to_numpy() / 100 + rows.priors.to_numpy() / 50

    @property
    def rows(self) -> pd.DataFrame:
        return pd.concat(self.frames)

    @property
    def changed(self) -> pd.DataFrame:
        """The rows with mistakes: people as they are come all 240 together, or one by one."""
        return pd.concat([frame for frame in self.frames if len(frame) not in (1, 240)])


def seen(table: eh.Table, quick: dict[str, Any], **settings: Any) -> pd.DataFrame:
    model = Seen()
    asked = {"features": FEATURES, **quick, "noise_levels": [1.0], "rows": "frame"} | settings
    reliability(model, table, **asked)
    return model.rows


# Kinds of mistakes ----------------------------------------------------------------------------------------


def test_numbers_keep_their_kind_and_their_limits(table: eh.Table, people: pd.DataFrame, quick: dict[str, Any]) -> None:
    noise = {"age": {"sd": 9, "minimum": 18, "maximum": 59}, "income": 4, "priors": {"sd": 2, "whole": False}}
    rows = seen(table, quick, noise=noise)
    assert rows.age.between(18, 59).all()
    assert (rows.age % 1 == 0).all()  # whole numbers stay whole
    assert (rows.income % 1 != 0).any()
    assert (rows.priors % 1 != 0).any()
    assert set(rows.sex.unique()) == {0, 1}
    assert rows.stage.isin(people.stage.unique()).all()


def test_categories_of_more_than_two_values(table: eh.Table, quick: dict[str, Any]) -> None:
    """A flip of three jobs goes to both others, in equal shares."""
    rows = seen(table, quick | {"replicates": 40}, noise={"job": "flip"})
    shares = rows.job.value_counts(normalize=True)
    assert set(shares.index) == {"clerk", "driver", "nurse"}
    assert shares.min() > 0.25
    published = reliability(
        Seen(), table, features=FEATURES, noise="raez-2024/all/1", rows="frame", fixed=["stage"], **quick
    )
    assert any("'job' has 3, and a mistake makes it one of the others" in note.text for note in published.notes)


def test_an_ordered_scale_moves_to_neighbours(table: eh.Table, people: pd.DataFrame, quick: dict[str, Any]) -> None:
    model = Seen()
    asked = quick | {"noise_levels": [1.0], "replicates": 3, "rows": "frame"}
    reliability(model, table, features=FEATURES, noise={"stage": {"ordinal": ["I", "II", "III"]}}, **asked)
    before = people.groupby("stage").size()
    # At level 1 every I and III becomes II, and each II an I or a III.
    assert (model.changed.stage == "II").mean() == pytest.approx((before["I"] + before["III"]) / len(people))
    numbers = seen(table, quick, noise={"sex": {"ordinal": True}})
    assert set(numbers.sex) == {0, 1}


def test_chances_are_followed(table: eh.Table, quick: dict[str, Any]) -> None:
    """At level 1 every clerk is entered as a driver, drivers stay, nurses stay."""
    chances = [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    model = Seen()
    reliability(
        model,
        table,
        features=FEATURES,
        noise={"job": {"values": ["clerk", "driver", "nurse"], "chances": chances}},
        rows="frame",
        **quick | {"noise_levels": [1.0]},
    )
    assert (model.changed.job == "driver").all()


def test_one_hot_columns_move_together(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    for job in ("clerk", "driver", "nurse"):
        people[f"is_{job}"] = (people.job == job).astype(int)
    columns = ["is_clerk", "is_driver", "is_nurse"]
    rows = seen(
        eh.Table(people, groups="group"),
        quick,
        features=["age", "priors", *columns],
        noise={"job": {"one_hot": columns}},
    )
    assert (rows[columns].sum(axis=1) == 1).all()


def test_truth_values_stay_truth_values(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people["male"] = people.sex == 1
    rows = seen(eh.Table(people, groups="group"), quick, features=["age", "priors", "male"], noise={"male": "flip"})
    assert rows.male.dtype == bool


def test_published_settings(table: eh.Table, people: pd.DataFrame, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": ["age", "priors", "sex"], **quick}

    def model(rows: Any) -> Any:
        return rows[:, 1] / 9 + rows[:, 0] / 100 - 0.1 * rows[:, 2]

    found = reliability(model, table, noise=["raez-2024/all/5", "raez-2024-text/all/5"], **asked)
    assert [setting.name for setting in found.spec.noise.settings] == ["raez-2024/all/5", "raez-2024-text/all/5"]
    errors = [curve(found, "mean_squared_error", "B", setting=s.name)[-1].value for s in found.spec.noise.settings]
    assert errors[0] > 2 * errors[1]  # sd 5 against variance 5
    least = people.age.min()
    rows = seen(table, quick, features=["age", "priors", "sex"], noise="raez-2024/minima/10")
    assert rows.age.min() == least
    assert rows.priors.min() == 0
    lower = seen(
        table, quick, features=["age", "priors", "sex"], noise="raez-2024/minima/10", minima={"age": 10, "priors": -2}
    )
    assert lower.age.min() == 10
    assert lower.priors.min() == -2


WRONG: list[tuple[Any, str]] = [
    ({"job": 3}, "gives 'job' an `sd`, but it holds no numbers; use \"flip\""),
    ({"income": "flip"}, "'income' has 2.. different values; for numbers give the `sd`"),
    ({"job": {"ordinal": True}}, "'job' holds text, which has no order; list its values"),
    ({"job": {"ordinal": ["clerk", "driver"]}}, "`ordinal` of the noise of 'job' leaves out 'nurse'"),
    (
        {"job": {"ordinal": ["clerk", "driver", "nurze"]}},
        "names the value 'nurze' of 'job', which does not hold it; it has 'clerk'",
    ),
    ({"job": {"values": ["clerk"], "chances": [[1.0]]}}, "`values` of the noise of 'job' leaves out 'driver', 'nurse'"),
    (
        {"sex": {"values": [0, 1], "chances": [[0.5, 0.4], [0, 1]]}},
        "must hold numbers that are not negative and add",
    ),
    ({"sex": {"values": [0, 1]}}, "exactly one of `flip`, `sd`"),
    ({"age": {"sd": 3, "flip": True}}, "exactly one of `flip`, `sd`"),
    ({"sex": {"flip": True, "minimum": 0}}, "`whole`, `minimum` and `maximum` go with `sd`"),
    ({"agee": 3}, "`noise` names 'agee', which is no feature; did you mean 'age'"),
    ({}, "`noise` names no feature"),
    ("raez-2024/al/5", "did you mean 'raez-2024/all/5'"),
    (7, r"`noise` must be a Noise\(...\), a published setting's name"),
    ({"age": "shift"}, "a feature's noise in one word is"),
    ({"x": {"one_hot": ["sex", "age"]}}, "A value to be perturbed must be 0 or 1"),
]


@pytest.mark.parametrize(("noise", "message"), WRONG, ids=[str(place) for place in range(len(WRONG))])
def test_mistakes_that_cannot_be(table: eh.Table, quick: dict[str, Any], noise: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        reliability(Seen(), table, features=FEATURES, noise=noise, rows="frame", **quick)


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"fixed": "age"}, "'age' is in `noise` and in `fixed`; it cannot be both"),
    ({"linked": {"age": "priors"}}, "'age' is in `noise` and in `linked`; it cannot be both"),
    ({"linked": {"sex": "sex"}}, "`linked` makes 'sex' of itself"),
    ({"fixed": "sexx"}, "`fixed` names 'sexx', which is no feature; did you mean 'sex'"),
    ({"minima": {"agee": 3}}, "`minima` names 'agee', which is no feature"),
    ({"noise_levels": [0.2, 0.1]}, "`noise_levels` must be one or more rising numbers"),
    ({"noise_levels": []}, "`noise_levels` must be one or more rising numbers"),
    ({"noise_levels": [1.5]}, "more than 1 would change more than every entry; lower them"),
    ({"attribution": -0.1}, "`attribution` must be a noise level above 0"),
    ({"metrics": "kapa"}, "there is no metric 'kapa' to compare; did you mean 'kappa'"),
    ({"replicates": 0}, "`replicates` in the arguments of reliability"),
    ({"features": [*FEATURES, "age"]}, "`features` names the column 'age' twice"),
    ({"features": [*FEATURES, "again"]}, "`features` names 'again', which is the outcome; leave it out"),
    ({"features": [*FEATURES, "incme"]}, "'incme', which is not in the data; did you mean 'income'"),
    ({"folds": 1}, "`folds` in the arguments of reliability"),
    ({"shares": "about"}, "`noise.shares` in the arguments of reliability"),
    ({"thresholds": [{"metric": "pabak", "min": 0.1}]}, "must give max= of 0 or more and below 2"),
    ({"surprise": 1}, "there is no such setting"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS, ids=[str(place) for place in range(len(SETTINGS))])
def test_settings_that_cannot_be(table: eh.Table, quick: dict[str, Any], settings: Any, message: str) -> None:
    from evenhand.audits.reliability.audit import run
    from evenhand.audits.reliability.spec import ReliabilitySpec

    asked = {"model": Seen(), "features": FEATURES, "noise": {"age": 3}, "rows": "frame", **quick} | settings
    with pytest.raises(EvenhandError, match=message):
        run(table, ReliabilitySpec.parse(nested(asked), "the arguments of reliability()"))


# People ---------------------------------------------------------------------------------------------------


def risk(rows: Any) -> Any:
    return np.nan_to_num(rows[:, 0], nan=30) / 100 + np.nan_to_num(rows[:, 1]) / 20


def test_missing_features_are_refused_dropped_or_kept(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people["priors"] = people.priors.astype(float)
    people.loc[people.index[:7], "priors"] = np.nan
    table = eh.Table(people, groups="group")
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3, "priors": 1}, **quick}
    with pytest.raises(DataError, match="feature 'priors' is missing in 7 rows of 240; fill them, leave these people"):
        reliability(risk, table, **asked)
    dropped = reliability(risk, table, **asked, missing="drop")
    assert LeftOut(n=7, reason=say("missing_feature")) in dropped.left_out
    assert sum(record.n for record in dropped.values if record.noise_level == 0 and record.metric == "pabak") == 233
    kept = reliability(risk, table, **asked, missing="keep")
    assert sum(record.n for record in kept.values if record.noise_level == 0 and record.metric == "pabak") == 240
    by_table = reliability(risk, eh.Table(people, groups="group", missing="drop"), **asked)
    assert by_table.values == dropped.values
    with pytest.raises(DataError, match="feature 'empty' holds no values"):
        reliability(
            risk,
            eh.Table(people.assign(empty=None), groups="group"),
            features=["age", "empty"],
            noise={"age": 3},
            **quick,
        )
    with pytest.raises(DataError, match="feature 'income' holds infinite values"):
        reliability(
            risk,
            eh.Table(people.assign(income=np.inf), groups="group"),
            features=["age", "income"],
            noise={"age": 3},
            **quick,
        )


def test_a_group_of_three_people(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people.loc[people.index[:3], "group"] = "C"
    table = eh.Table(people, groups="group")
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3, "priors": 1}, **quick}
    found = reliability(risk, table, **asked)
    (left_out,) = found.left_out
    assert (left_out.grouping, left_out.group, left_out.n) == ("group", "C", 3)
    assert left_out.reason.text == "fewer than 10 people; not compared"
    assert {record.group for record in found.values} == {"A", "B"}
    with pytest.raises(ConfigError, match="`reference` 'C' of 'group' has 3 people, fewer than min_count 10"):
        reliability(risk, table, **asked, reference="C")
    all_three = reliability(risk, table, **asked, min_count=1)
    assert {record.group for record in all_three.values} == {"A", "B", "C"}
    alone = reliability(risk, table, **asked, min_count=100)
    assert {gap.value for gap in alone.gaps} == {None}
    assert {gap.status.text for gap in alone.gaps} == {"undefined: fewer than two groups have 100 people or more"}
    assert any("fewer than two groups have 100 people" in note.text for note in alone.notes)
    assert alone.section().parts
    nobody = reliability(risk, table, **asked, min_count=1000)
    assert not nobody.values
    assert nobody.section().parts


def test_a_small_group_in_folds_is_undefined_and_says_so(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people.loc[people.index[:10], "group"] = "C"
    found = reliability(
        "logistic",
        eh.Table(people, groups="group", outcome="again"),
        features=["age", "priors"],
        noise={"age": 3, "priors": 1},
        folds=10,
        **quick,
    )
    lost = [record for record in found.values if record.group == "C" and record.value is None]
    assert lost
    assert all(record.status.text.startswith("undefined: ") and record.undefined > 0 for record in lost)
    assert any("undefined, of C (group)" in note.text for note in found.notes)
    assert mean_gap(found, "kappa", "C").value is None
    assert found.section().parts


def test_people_without_a_group_are_not_compared(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people.loc[people.index[:20], "group"] = None
    found = reliability(risk, eh.Table(people, groups="group"), features=["age", "priors"], noise={"age": 3}, **quick)
    assert any(record.group == "(missing)" and record.n == 20 for record in found.left_out)


def test_survey_weights_are_not_used_and_no_groups_refused(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3}, **quick}
    found = reliability(risk, eh.Table(people, groups="group", weight="age"), **asked)
    assert "Survey weights are not used: every person counts once." in map(str, found.notes)
    with pytest.raises(ConfigError, match="the table names no groups"):
        reliability(risk, eh.Table(people), **asked)


def test_no_noise_at_all(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability(risk, table, features=["age", "priors"], noise={"age": 3}, **quick | {"noise_levels": [0.0]})
    assert not found.gaps
    assert {r.value for r in found.values if r.metric == "kappa"} == {1.0}
    assert {(r.low, r.high) for r in found.values if r.metric == "kappa"} == {(1.0, 1.0)}
    assert found.section().parts
    still = reliability(risk, table, features=["age", "priors"], noise={"age": {"sd": 0}}, **quick)
    assert {r.value for r in still.values if r.metric == "pabak"} == {1.0}
    assert mean_gap(still, "pabak").value == 0.0


def test_noise_on_a_feature_that_no_model_uses(table: eh.Table, quick: dict[str, Any]) -> None:
    found = reliability(risk, table, features=["age", "priors", "sex"], noise={"sex": "flip", "age": 2}, **quick)
    assert any("the mistakes in 'sex' changed entries and no score" in note.text for note in found.notes)


# Features made of others ----------------------------------------------------------------------------------

PRODUCT = ["age", "priors", "sex", "member", "sex_member"]


def interaction(rows: Any) -> Any:
    """Sex counts, but not for members: a wrong sex moves the score of others only, if the product follows."""
    return 0.2 + rows[:, 1] / 40 + 0.4 * rows[:, 2] - 0.4 * rows[:, 4]


def test_a_product_held_fixed_draws_a_warning_and_turns_the_gap(table: eh.Table, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": PRODUCT, "noise": {"sex": "flip"}, "reference": "B", **quick}
    fixed = reliability(interaction, table, **asked)
    warning = next(note.text for note in fixed.notes if note.text.startswith("Warning"))
    assert (
        "'sex_member' is 'sex' times 'member' in every row, but was held fixed while mistakes were simulated in 'sex'"
        in warning
    )
    assert "linked={'sex_member': ['sex', 'member']}" in warning
    linked = reliability(interaction, table, **asked, linked={"sex_member": ["sex", "member"]})
    assert not any(note.text.startswith("Warning") for note in linked.notes)
    # Held fixed, a wrong sex moves everybody's score alike; with the product following, it moves no member's.
    assert curve(linked, "pabak", "A")[-1].value == 1.0
    assert curve(fixed, "pabak", "A")[-1].value < 1.0
    assert curve(linked, "pabak", "B") == curve(fixed, "pabak", "B")


def test_the_other_factor_may_be_a_group(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    found = reliability(
        lambda rows: rows[:, 0] / 100 + rows[:, 2] / 5,
        eh.Table(people, groups="group"),
        features=["age", "sex", "sex_member"],
        noise={"sex": "flip"},
        **quick,
    )
    warning = next(note.text for note in found.notes if note.text.startswith("Warning"))
    assert "'sex_member' is 'sex' times 'group = A'" in warning
    assert "put that column among `features`" in warning


def test_a_hook_derives_columns(table: eh.Table, quick: dict[str, Any]) -> None:
    def derive(columns: dict[str, Any]) -> dict[str, Any]:
        assert set(columns) == set(PRODUCT)
        return {"sex_member": columns["sex"] * columns["member"]}

    asked: dict[str, Any] = {"features": PRODUCT, "noise": {"sex": "flip"}, **quick}
    by_hook = reliability(interaction, table, **asked, derive=derive)
    by_link = reliability(interaction, table, **asked, linked={"sex_member": ["sex", "member"]})
    assert by_hook.values == by_link.values
    assert by_hook.to_dict()["spec"]["noise"]["derive"].endswith("derive")


def test_a_function_of_one_feature_follows_it(people: pd.DataFrame, quick: dict[str, Any]) -> None:
    people["older"] = np.where(people.age >= 40, "yes", "no")
    rows = seen(
        eh.Table(people, groups="group"),
        quick,
        features=["age", "priors", "older"],
        noise={"age": 6},
        linked={"older": "age"},
    )
    inside = rows[rows.age.between(people.age.min(), people.age.max())]
    assert ((inside.age >= 40) == (inside.older == "yes")).all()
    assert (rows[rows.age < 18].older == "no").all()
    text = seen(
        eh.Table(people.assign(is_clerk=(people.job == "clerk").astype(int)), groups="group"),
        quick,
        features=["age", "priors", "job", "is_clerk"],
        noise={"job": "flip"},
        linked={"is_clerk": "job"},
    )
    assert ((text.job == "clerk") == (text.is_clerk == 1)).all()


def test_rules_that_do_not_fit_the_data(people: pd.DataFrame, table: eh.Table, quick: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"features": PRODUCT, "noise": {"age": 3}, **quick}
    with pytest.raises(DataError, match=r"'sex_member' is not what `linked` or `derive` makes .* in .* rows of 240"):
        reliability(interaction, table, **asked, linked={"sex_member": ["sex", "priors"]})
    with pytest.raises(DataError, match="people with the same 'sex' differ in it"):
        reliability(interaction, table, **asked, linked={"priors": "sex"})
    with pytest.raises(ConfigError, match="`derive` returns 'other', which is not among `features`"):
        reliability(interaction, table, **asked, derive=lambda columns: {"other": columns["sex"]})
    with pytest.raises(EvenhandError, match="`derive` failed: KeyError: 'nothing'"):
        reliability(interaction, table, **asked, derive=lambda columns: {"sex": columns["nothing"]})
    with pytest.raises(EvenhandError, match="`derive` must return one value a row for 'sex'; 240 rows gave"):
        reliability(interaction, table, **asked, derive=lambda columns: {"sex": columns["sex"][:3]})
    with pytest.raises(ConfigError, match="makes a product of 'job', which holds text; use `derive`"):
        reliability(Seen(), table, **asked | {"features": [*PRODUCT, "job"]}, linked={"sex": ["job", "age"]})
    with pytest.raises(ConfigError, match="'member' defines groups and must stay as it is"):
        reliability(
            interaction,
            eh.Table(people, groups="member"),
            **asked,
            derive=lambda columns: {"member": columns["member"]},
        )


# Pilots ---------------------------------------------------------------------------------------------------


def pilot(people: pd.DataFrame, n: int = 60, seed: int = 5) -> pd.DataFrame:
    """Two raters: the second is off by one year in a third of ages, flips a tenth of sexes, and never errs in jobs."""
    rng = np.random.default_rng(seed)
    first = people.iloc[:n]
    return pd.DataFrame(
        {
            "age_a": first.age,
            "age_b": first.age + rng.choice([0, 0, 1], n),
            "sex_a": first.sex,
            "sex_b": np.where(rng.random(n) < 0.1, 1 - first.sex, first.sex),
            "job_a": first.job,
            "job_b": first.job,
        }
    )


def test_mistakes_are_learned_from_a_pilot(table: eh.Table, people: pd.DataFrame, quick: dict[str, Any]) -> None:
    small = pilot(people)
    model = Seen()
    asked = quick | {"noise_levels": None, "replicates": 30}
    found = reliability(
        model,
        table,
        features=FEATURES,
        noise={"pilot": {"data": small, "suffixes": ["_a", "_b"]}},
        rows="frame",
        **asked,
    )
    assert curve(found, "pabak", "A")[-1].noise_level == 1.0
    changed = model.changed
    assert changed.age.between(18, 60).all()
    assert not changed.priors.isin([-1]).any()
    notes = "\n".join(map(str, found.notes))
    assert "The mistakes were learned from 60 people whom two raters rated" in notes
    assert "The pilot does not have priors, income, stage; they were not perturbed." in notes
    error = curve(found, "mean_squared_error", "B")[-1].value
    expected = np.mean((small.age_b - small.age_a) ** 2) / 100**2
    assert error == pytest.approx(expected, rel=0.15)


def test_a_pilot_of_whole_error_vectors(table: eh.Table, people: pd.DataFrame, quick: dict[str, Any]) -> None:
    small = pilot(people)[["age_a", "age_b", "sex_a", "sex_b"]]
    found = reliability(
        Seen(),
        table,
        features=FEATURES,
        rows="frame",
        **quick | {"attribution": True},
        noise={"pilot": {"data": small, "suffixes": ["_a", "_b"], "together": True, "resample": False}},
    )
    assert not found.attribution  # one item: everything
    assert curve(found, "pabak", "A")[-1].value is not None


def test_a_pilot_by_columns_with_gaps_in_it(
    table: eh.Table, people: pd.DataFrame, quick: dict[str, Any], tmp_path: Path
) -> None:
    small = pilot(people)
    small["age_b"] = small.age_b.astype(float)
    small.loc[small.index[:4], "age_b"] = np.nan
    small.to_csv(tmp_path / "pilot.csv", index=False)
    settings = {"data": str(tmp_path / "pilot.csv"), "columns": {"age": ["age_a", "age_b"]}, "near": 10}
    found = reliability(Seen(), table, features=FEATURES, noise={"pilot": settings}, rows="frame", **quick)
    assert "4 people of the pilot lack a rating and were not used." in map(str, found.notes)


PILOTS: list[tuple[dict[str, Any], str]] = [
    ({"suffixes": ["_x", "_y"]}, "`pilot` has no feature with a column of each rater"),
    ({"columns": {"priors": ["p", "q"]}}, "names columns for 'priors', which it does not have"),
    ({}, "`pilot` needs `suffixes` or `columns`"),
    ({"suffixes": ["_a", "_a"]}, "`suffixes` must differ"),
    ({"suffixes": ["_a", "_b"], "near": 100}, "`pilot`: `near` must be from 1 to the 60 people"),
    ({"suffixes": ["_a", "_b"], "together": True}, "`pilot`: Errors can only be drawn together where categories are 0"),
]


@pytest.mark.parametrize(("settings", "message"), PILOTS, ids=[str(place) for place in range(len(PILOTS))])
def test_pilots_that_cannot_be(
    table: eh.Table, people: pd.DataFrame, quick: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    noise = {"pilot": {"data": pilot(people), **settings}}
    with pytest.raises(ConfigError, match=message):
        reliability(Seen(), table, features=FEATURES, noise=noise, rows="frame", **quick)


def test_a_pilot_with_values_that_the_data_does_not_have(
    table: eh.Table, people: pd.DataFrame, quick: dict[str, Any]
) -> None:
    small = pilot(people)
    small.loc[small.index[0], "job_b"] = "pilot"
    with pytest.raises(DataError, match="`pilot` holds 'pilot' for 'job', which the data does not have"):
        reliability(
            Seen(),
            table,
            features=FEATURES,
            noise={"pilot": {"data": small, "suffixes": ["_a", "_b"]}},
            rows="frame",
            **quick,
        )
    with pytest.raises(DataError, match="`pilot` holds text for 'age', which holds numbers"):
        reliability(
            Seen(),
            table,
            features=FEATURES,
            rows="frame",
            **quick,
            noise={"pilot": {"data": pilot(people).astype(str), "suffixes": ["_a", "_b"]}},
        )
    with pytest.raises(DataError, match="`pilot` has nobody whom both raters rated in every feature"):
        reliability(
            Seen(),
            table,
            features=FEATURES,
            rows="frame",
            **quick,
            noise={"pilot": {"data": pilot(people).assign(age_a=None), "columns": {"age": ["age_a", "age_b"]}}},
        )
