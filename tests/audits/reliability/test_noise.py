"""How mistakes and models can be told to the audit: one object for each, a mapping, a name; and what a record keeps."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability import Noise, ReliabilityResult, ReliabilitySpec, Scoring
from evenhand.errors import ConfigError

FEATURES = ["age", "priors", "sex", "pilot"]
BASE: dict[str, Any] = {"model": "logistic", "features": FEATURES}


def noise_of(noise: Any, **settings: Any) -> Noise:
    return ReliabilitySpec.parse({**BASE, "noise": noise, **settings}, "here").noise


def test_mistakes_can_be_told_in_many_ways() -> None:
    by_feature = {"age": 5, "sex": "flip"}
    told = Noise(features=by_feature)
    for noise in (by_feature, {"features": by_feature}, told, told.model_dump(mode="json")):
        assert noise_of(noise) == told
    named = Noise(published=["raez-2024/all/5"])
    for with_wording_for in ("raez-2024/all/5", ["raez-2024/all/5"], {"published": "raez-2024/all/5"}, named):
        assert noise_of(with_wording_for) == named
    assert noise_of({"features": by_feature, "noise_levels": [0.1]}).noise_levels == (0.1,)
    assert [setting.name for setting in noise_of(["raez-2024/all/5", "raez-2024/all/1"]).settings] == [
        "raez-2024/all/5",
        "raez-2024/all/1",
    ]


def test_a_feature_called_like_a_setting_stands_under_features() -> None:
    assert noise_of({"features": {"pilot": 2}}).features["pilot"].sd == 2
    assert noise_of({"fixed": 2}, features=["fixed"]).features["fixed"].sd == 2
    wrong: list[tuple[Any, str]] = [
        (
            {"pilot": 2},
            r"a mapping with 'pilot' holds the settings of Noise; write features as \{'features': \{'pilot'",
        ),
        ({"pilot": 2, "age": 5}, "holds the settings of Noise, and 'age' is none; write features as"),
        ({"age": 5, "noise_levels": [0.1]}, "to set Noise's `noise_levels`, write the features under `features`"),
        ({"features": {"age": 5}, "published": "raez-2024/all/5"}, "exactly one of `features`, `published`, `pilot`"),
        ({"features": {}, "noise_levels": [0.1]}, "exactly one of `features`, `published`, `pilot`; got none"),
        ({"features": {"age": 5}, "derive": "module:name"}, "`noise.derive` in here: must be a function"),
        ([], "exactly one of"),
        (7, "`noise` must be a Noise"),
    ]
    for noise, message in wrong:
        with pytest.raises(ConfigError, match=message):
            noise_of(noise)


def test_models_and_rows_are_one_object(table: eh.Table) -> None:
    asked: dict[str, Any] = {"features": ["age", "priors"], "noise": {"age": 3}, "replicates": 2, "resamples": 100}

    def share(rows: Any) -> Any:
        return rows[:, 1] / 10

    for scoring in ({"threshold": 0.2, "rows": "array"}, Scoring(threshold=0.2, rows="array")):
        assert eh.reliability(share, table, **asked, scoring=scoring).models[0].threshold == 0.2
    with pytest.raises(ConfigError, match=r"`scoring.treshold` in .*no such setting; did you mean 'threshold'"):
        eh.reliability(share, table, **asked, scoring={"treshold": 0.2})
    with pytest.raises(ConfigError, match="there is no such setting"):
        eh.reliability(share, table, **asked, threshold=0.2)  # type: ignore[call-arg]


def rebuilt(result: ReliabilityResult) -> ReliabilityResult:
    findings = [finding.to_dict() for finding in result.findings]
    return ReliabilityResult.from_dict(json.loads(json.dumps(result.to_dict())), json.loads(json.dumps(findings)))


def test_a_result_holds_names_of_code_and_no_rows_of_a_pilot(people: pd.DataFrame) -> None:
    """Functions and frames stay with the caller: a result with a lambda can be pickled and written."""
    rng = np.random.default_rng(0)
    pilot = pd.DataFrame({"age_a": people.age[:80], "age_b": people.age[:80] + rng.integers(-3, 4, 80)})
    common: dict[str, Any] = {"replicates": 2, "resamples": 100, "attribution": False}
    table = eh.Table(people, groups="group")
    hooked = eh.reliability(
        lambda rows: rows[:, 0] / 80 + rows[:, 2] / 10,
        table,
        features=["age", "sex", "sex_member", "member"],
        noise={
            "features": {"age": 3, "sex": "flip"},
            "noise_levels": [0.2],
            "derive": lambda columns: {"sex_member": columns["sex"] * columns["member"]},
        },
        **common,
    )
    learned = eh.reliability(
        {"model": lambda rows: rows[:, 0] / 80},
        table,
        features=["age"],
        noise={"pilot": {"data": pilot, "suffixes": ["_a", "_b"]}, "noise_levels": [0.5]},
        **common,
    )
    for result in (hooked, learned):
        for copy in (pickle.loads(pickle.dumps(result)), rebuilt(result)):  # noqa: S301
            assert copy.gaps == result.gaps
            assert copy.values == result.values
            assert copy.summary() == result.summary()
            assert copy.to_dict() == result.to_dict()
    spec = pickle.loads(pickle.dumps(hooked)).spec  # noqa: S301
    assert spec.noise.derive.endswith("<lambda>")
    assert spec.model["model"].model.endswith("<lambda>")
    held = rebuilt(learned).to_dict()["spec"]["noise"]["pilot"]["data"]
    assert held in ("pandas.DataFrame", "pandas.core.frame.DataFrame")  # as pandas 3 and pandas 2 call it


def test_a_grouping_with_one_group_has_gaps_that_say_why(people: pd.DataFrame) -> None:
    people["place"] = np.where(people.index < 5, "there", "here")
    result = eh.reliability(
        lambda rows: rows[:, 0] / 80,
        eh.Table(people, groups=["group", "place"]),
        features=["age"],
        noise={"features": {"age": 9}, "noise_levels": [0.2]},
        metrics="pabak",
        replicates=2,
        resamples=100,
        thresholds=[{"metric": "pabak", "max": 0.5}],
    )
    nothing = result.rows("gaps", grouping="place")
    assert [(gap.against, gap.group, gap.value) for gap in nothing] == [
        ("reference", None, None),
        ("worst_pair", None, None),
    ]
    by_grouping = {finding.grouping: finding.verdict for finding in result.findings}
    assert by_grouping["place"] == "insufficient_evidence"  # never silence
    assert len(result.findings) == 2
