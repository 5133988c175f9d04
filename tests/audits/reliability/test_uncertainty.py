"""Gaps that are not there: pilots by group, exact shares in small cells, damage of a few people, many groupings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.reliability.findings import make_claims
from evenhand.audits.reliability.gaps import with_worse_off
from evenhand.audits.reliability.messages import say
from evenhand.audits.reliability.notes import outcome_notes
from evenhand.audits.reliability.result import ReliabilityGap
from evenhand.audits.reliability.spec import ReliabilitySpec
from evenhand.core.display import DisplayTable
from evenhand.core.estimates import Estimate
from evenhand.core.families import adjust_tables
from evenhand.core.findings import FindingMaker
from evenhand.stats.noise import Experiment, Flip, Linear, NoiseItem, replicate_seeds, simulate
from evenhand.stats.reliability import pilot_variance

from .conftest import curve, mean_gap, reliability

FAST: dict[str, Any] = {"replicates": 20, "resamples": 100, "attribution": False}
BOTH = ("pabak", "icc_spread")


def score(rows: Any) -> Any:
    return 1 / (1 + np.exp(-(rows[:, 0] * 1.5 + rows[:, 1] - 0.5)))


def two_alike(n: int = 800, seed: int = 0) -> pd.DataFrame:
    """Return two groups with the same features."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.integers(0, 2, n), "g": np.array(["p", "q"])[np.arange(n) % 2]}
    )


def rated_twice(people: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a pilot of both groups, about whom raters err alike."""
    a, b = rng.normal(size=people), rng.integers(0, 2, people)
    return {
        "a_1": a,
        "a_2": a + (rng.random(people) < 0.2) * rng.normal(size=people),
        "b_1": b,
        "b_2": np.where(rng.random(people) < 0.15, 1 - b, b),
        "g": np.array(["p", "q"])[np.arange(people) % 2],
    }


# A pilot by group -----------------------------------------------------------------------------------------


def learned_by_group(frame: pd.DataFrame, twice: dict[str, Any], *, resample: bool = True, **settings: Any) -> Any:
    noise = {"pilot": {"data": twice, "suffixes": ["_1", "_2"], "by": "g", "resample": resample}}
    asked = {"features": ["a", "b"], "noise": noise, "noise_levels": [1.0], "metrics": BOTH, **FAST}
    return reliability(score, eh.Table(frame, groups="g"), **asked | settings)


@pytest.mark.slow
def test_a_pilot_by_group_does_not_find_what_is_not_there() -> None:
    """Six of these had five findings while only people were resampled."""
    frame = two_alike(1_200)
    wrong = 0
    for seed in range(6):
        found = learned_by_group(frame, rated_twice(200, np.random.default_rng(seed)), replicates=30)
        wrong += any("mistakes hurt" in finding.text for finding in found.findings)
    assert wrong <= 1


@pytest.mark.slow
def test_the_standard_error_of_a_gap_holds_that_of_the_pilot() -> None:
    """Gaps of eight pilots vary as much as the standard errors say, within the error of a standard deviation."""
    frame, rng = two_alike(1_000), np.random.default_rng(1)
    gaps = [mean_gap(learned_by_group(frame, rated_twice(160, rng), replicates=30), "pabak") for _ in range(8)]
    between = np.std([gap.value for gap in gaps], ddof=1)
    told = np.sqrt(np.mean([gap.stderr**2 for gap in gaps]))
    assert 0.5 < told / between < 2.0
    assert all(gap.df < 200 for gap in gaps)


def test_without_resampling_a_pilot_by_group_has_no_verdict() -> None:
    pilot = rated_twice(200, np.random.default_rng(0))
    found = learned_by_group(two_alike(), pilot, resample=False)
    gap = mean_gap(found, "pabak")
    assert "`resample` is needed to allow for the error of the pilot" in gap.status.text
    assert (gap.low, gap.p_value) == (None, None)
    assert (
        "more replicates are needed"
        in mean_gap(learned_by_group(two_alike(), pilot, replicates=1), "pabak").status.text
    )
    assert not any("hurt" in finding.text for finding in found.findings)


def test_learned_apart_is_not_different() -> None:
    found = learned_by_group(two_alike(), rated_twice(200, np.random.default_rng(0)))
    notes = " ".join(map(str, found.notes))
    assert "mistakes were learned separately for p" in notes
    assert "Mistakes differ" not in notes
    assert "Mistakes were learned separately by g" in found.findings[0].text


def test_pilot_variance_takes_random_mistakes_off() -> None:
    rng = np.random.default_rng(0)
    renewed, fixed = rng.normal(0, 5, (50_000, 1)), rng.normal(0, 4, (50_000, 1))
    assert pilot_variance(renewed, fixed).value[0] == pytest.approx(9, abs=0.5)
    assert pilot_variance(renewed).value[0] == pytest.approx(25, abs=0.5)
    assert pilot_variance(fixed, renewed).value[0] == 0
    # R replicates of a normal variable have a variance with R - 1 degrees of freedom.
    assert pilot_variance(renewed[:31]).freedom(0, 0.0, 10.0) == pytest.approx(30 * (32 / 31) ** 2)
    assert np.isnan(pilot_variance(renewed[:1]).value).all()


# Exact shares ---------------------------------------------------------------------------------------------


def flips(sizes: tuple[int, ...], levels: list[float], **settings: Any) -> Experiment:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    features = np.zeros((len(groups), 1))
    model = Linear(np.array([2.0]), -1.0)
    return Experiment(
        features=features,
        predictors=(model,),
        items=(NoiseItem((0,), Flip()),),
        groups=groups,
        levels=np.array(levels),
        shares="exact",
        **settings,
    )


@pytest.mark.slow
@pytest.mark.parametrize("common", [True, False])
def test_exact_shares_are_right_on_average_in_small_cells(common: bool) -> None:
    """Of 20 people at 0.02 nobody was ever touched, of 30 one, which is 0.033."""
    done = simulate(
        flips((20, 30, 7), [0.02, 0.05, 0.5], common=common), replicate_seeds(4_000, np.random.default_rng(0))
    )
    touched = done.sums.second_ones[:, :, 0]
    wanted = np.array([0.02, 0.05, 0.5])[:, np.newaxis] * np.array([20, 30, 7])
    np.testing.assert_allclose(touched.mean(axis=0), wanted, atol=5 * 0.5 / np.sqrt(4_000))
    assert (np.abs(touched - wanted) < 1).all()
    if common:
        assert (np.diff(touched, axis=1) >= 0).all()


def test_whole_numbers_of_people_are_touched_exactly() -> None:
    done = simulate(flips((20, 30), [0.0, 0.1, 0.3, 1.0]), replicate_seeds(300, np.random.default_rng(0)))
    assert (done.sums.second_ones[:, :, 0] == np.array([[0, 0], [2, 3], [6, 9], [20, 30]])).all()


def test_exact_shares_find_no_gap_in_a_small_group() -> None:
    """100 people in five folds: at 0.02 nobody of them was touched, and mistakes hurt the others more."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=1_000), "w": rng.normal(size=1_000)})
    frame["g"], frame["y"] = np.where(frame.index < 100, "small", "big"), (frame.x + frame.w > 0).astype(int)
    found = reliability(
        "logistic",
        eh.Table(frame, groups="g", outcome="y"),
        features=["x", "w"],
        noise={"x": 1, "w": 1},
        shares="exact",
        noise_levels=[0.02],
        metrics=BOTH,
        **FAST | {"replicates": 50},
    )
    assert {record.value for record in curve(found, "mean_squared_error", "small")} != {0.0}
    assert not any("mistakes hurt" in finding.text for finding in found.findings)


@pytest.mark.parametrize("shares", ["bernoulli", "exact"])
@pytest.mark.parametrize("told", [{"p": 1}, {"p": 1, "q": 1}, {"p": {"noise": {"a": 1}}}])
def test_group_noise_that_says_nothing_changes_nothing(shares: str, told: dict[str, Any]) -> None:
    frame = two_alike(300)
    asked: dict[str, Any] = {
        "features": ["a", "b"],
        "noise": {"a": 1, "b": "flip"},
        "shares": shares,
        "noise_levels": [0.07, 0.3],
        **FAST,
    }
    plain, same = (
        reliability(score, eh.Table(frame, groups="g"), **asked, group_noise=given) for given in ({}, {"g": told})
    )
    assert same.values == plain.values
    assert same.gaps == plain.gaps


# Damage of a few people -----------------------------------------------------------------------------------


def on_the_threshold(few: int, small: int = 100) -> pd.DataFrame:
    """Return a small group of which few sit on the threshold, and others who are all somewhat near it."""
    x = np.concatenate([np.where(np.arange(small) < few, 1e-6, 9.0), np.full(600, 2.0)])
    z = np.random.default_rng(0).normal(size=len(x))
    return pd.DataFrame({"x": x, "z": z, "g": np.where(np.arange(len(x)) < small, "small", "big")})


def decided(frame: pd.DataFrame) -> Any:
    return reliability(
        lambda rows: (rows[:, 0] > 0) * 0.8 + 0.1 + 0.001 * np.tanh(rows[:, 1]),
        eh.Table(frame, groups="g"),
        features=["x", "z"],
        noise={"x": {"sd": 1.0, "whole": False}},
        noise_levels=[0.2, 0.3],
        metrics=BOTH,
        **FAST,
    )


def test_damage_of_a_few_people_makes_no_finding() -> None:
    """Two or three of 100 people carry all damage to decisions of their group."""
    found = decided(on_the_threshold(3))
    gap = mean_gap(found, "pabak")
    assert (gap.status.text, gap.worse_off) == ("ok", None)
    assert not any("hurt" in finding.headline.text for finding in found.findings)


def test_a_group_of_which_nobody_is_hurt_may_have_missed_some() -> None:
    found = decided(on_the_threshold(0))
    assert mean_gap(found, "pabak").rests_on == "bounds"
    assert "In one group, mistakes affect all sampled people equally; the sample may miss" in found.findings[0].text


# Parts of the gap -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"fresh": True}, {"shares": "exact"}, {"group_noise": {"g": {"p": 2}}}, {"replicates": 35}],
)
def test_parts_add_up_to_the_gap_that_is_shown(settings: dict[str, Any]) -> None:
    frame = two_alike(400)
    asked: dict[str, Any] = {
        "features": ["a", "b"],
        "noise": {"a": 1, "b": "flip"},
        "noise_levels": [0.0, 0.1, 0.2, 0.3],
        **FAST,
        "attribution": True,
        "metrics": ["pabak", "kappa"],
    }
    found = reliability(score, eh.Table(frame, groups="g"), **asked | settings)
    for name in ("pabak", "kappa"):
        parts = [record for record in found.attribution if record.metric == name]
        gap = found.get("gaps", metric=name, noise_level=parts[0].noise_level, against="reference")
        assert sum(record.value or 0.0 for record in parts) == pytest.approx(gap.value, abs=1e-12)
        clear = (gap.low or 0.0) > 0 or (gap.high or 0.0) < 0
        assert all((record.share is not None) == clear for record in parts)
    assert any(record.share is not None for record in found.attribution) == ("group_noise" in settings)


def test_the_table_of_parts_has_their_sum() -> None:
    found = reliability(
        score,
        eh.Table(two_alike(300), groups="g"),
        features=["a", "b"],
        noise={"a": 1, "b": "flip"},
        noise_levels=[0.3],
        metrics=BOTH,
        **FAST | {"attribution": True},
    )
    tables = [part for part in found.section().parts if isinstance(part, DisplayTable)]
    (table,) = (table for table in tables if table.caption == "What each feature adds to the gaps")
    feature = table.columns.index("Feature")
    assert [row[feature] for row in table.rows] == ["a", "b", "Sum"] * 2


# Families and words ---------------------------------------------------------------------------------------


def gap_record(**given: Any) -> ReliabilityGap:
    """Return a gap that is clearly below 0, but for what is given."""
    values: dict[str, Any] = {
        "model": "m",
        "setting": "given",
        "grouping": "g",
        "group": "p",
        "reference": "q",
        "against": "reference",
        "kind": "difference",
        "metric": "pabak",
        "n": 400,
        "stderr": 0.01,
        "df": 100.0,
        "p_value": 0.0001,
        "share_lower": 1.0,
        "replicate_sd": 0.01,
        "value": -0.05,
        "low": -0.07,
        "high": -0.03,
    }
    return ReliabilityGap(**values | given)


SPEC = ReliabilitySpec(model={"m": "logistic"}, features=("x",), noise={"x": 1})


def adjusted(gaps: Sequence[ReliabilityGap]) -> list[ReliabilityGap]:
    """Return gaps as a run of these alone has them."""
    return list(adjust_tables([[with_worse_off(gap) for gap in gaps]], [0.05])[0])


def test_all_groupings_and_models_are_one_family() -> None:
    eight = [gap_record(grouping=f"g{number}", model=model, p_value=0.01) for number in range(4) for model in "mn"]
    findings = FindingMaker(SPEC, say).findings(list(make_claims(list(map(Estimate, eight)), [], SPEC)))
    assert [finding.p_adjusted for finding in findings] == pytest.approx([0.08] * 8)


def test_groups_that_were_given_different_mistakes_are_told_so() -> None:
    asked: dict[str, Any] = {"features": ["a", "b"], "noise": {"a": 1, "b": "flip"}, "noise_levels": [0.2], **FAST}
    table = eh.Table(two_alike(), groups="g")
    more, never, same = (
        reliability(score, table, **asked, group_noise={"g": told}) for told in ({"p": 3}, {"p": 0}, {"p": 2, "q": 2})
    )
    hurt = next(finding for finding in more.findings if "mistakes hurt p more" in finding.headline.text)
    assert "By g, people were given different mistakes" in str(hurt.detail)
    for found in (more, never):
        assert all("By g, people were given different mistakes" in finding.text for finding in found.findings)
        assert all("a gap can come from that alone" in finding.text for finding in found.findings)
    assert any("by g, about p never" in note.text for note in never.notes)
    assert not any("different mistakes" in finding.text for finding in same.findings)


def test_metrics_disagree_only_where_both_sides_are_clear() -> None:
    lower, higher = gap_record(metric="kappa"), gap_record(value=0.05, low=0.03, high=0.07)
    unsure = replace(higher, p_value=0.4, low=-0.03)
    assert any("disagree" in note.text for note in outcome_notes([], adjusted([lower, higher]), SPEC))
    assert not any("disagree" in note.text for note in outcome_notes([], adjusted([lower, unsure]), SPEC))
    gaps = [*adjusted([lower, higher]), replace(lower, noise_level=0.1, p_value=None)]
    assert len(FindingMaker(SPEC, say).findings(list(make_claims(list(map(Estimate, gaps)), [], SPEC)))) == 1
