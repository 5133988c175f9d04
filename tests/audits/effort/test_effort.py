"""The effort audit: the paper's formulas by brute force, its tables, and bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.effort import EffortResult, EffortSpec, effort, person_scores
from evenhand.audits.effort.gather import gather
from evenhand.core.display import Figure
from evenhand.errors import ConfigError, DataError
from evenhand.stats.effort import aggregate_scores, effort_scores

YEARS = [f"income_{year}" for year in range(2019, 2023)]
RATES = {"White": 13, "Asian": 14, "Pacific Islander": 25, "American Indian": 36, "Black": 39, "Hispanic": 33}
MODELS = ("xgboost", "logistic")
OPTIONS: dict[str, Any] = {"trajectory": YEARS, "inertia": RATES, "unit": 10_000, "scale": 200_000}


@pytest.fixture(scope="module")
def households() -> pd.DataFrame:
    frame: pd.DataFrame = eh.datasets.make_households(300, seed=3, backend="pandas")
    return frame


def make_table(data: Any, **roles: Any) -> eh.Table:
    predictions = {name: f"risk_{name}" for name in MODELS}
    return eh.Table(data, id="household", groups=["race", "sex"], predictions=predictions, **roles)


@pytest.fixture(scope="module")
def result(households: pd.DataFrame) -> EffortResult:
    return effort(make_table(households), weights=[0.5, 0.6577], **OPTIONS)


def by_hand(data: pd.DataFrame) -> tuple[Any, Any]:
    values = data[YEARS].to_numpy(float)
    inertia = data.race.map(RATES).to_numpy() / max(RATES.values())
    return effort_scores(values, inertia, unit=10_000), aggregate_scores(values, 200_000)


def efforts(data: pd.DataFrame, **change: Any) -> Any:
    return np.sort(gather(make_table(data), EffortSpec(**{**OPTIONS, **change})).effort)


@pytest.mark.parametrize("weight", [0.5, 0.6577])
def test_individual_fairness_equals_all_pairs_by_hand(
    households: pd.DataFrame, result: EffortResult, weight: float
) -> None:
    e, s = by_hand(households)
    i, j = np.triu_indices(len(households), 1)
    distance = np.sqrt(weight * (e[i] - e[j]) ** 2 + (1 - weight) * (s[i] - s[j]) ** 2)
    for model in MODELS:
        m = households[f"risk_{model}"].to_numpy()
        excess = np.maximum(0, np.abs(m[i] - m[j]) - distance)
        record = result.get("values", metric="eaif", model=model, weight=weight)
        assert record.value == pytest.approx(1 - excess.mean(), abs=1e-12)
        assert record.violated == pytest.approx((excess > 0).mean(), abs=1e-12)
        assert record.pairs == len(i)
        worst = result.rows("pairs", model=model, weight=weight)[0]
        assert worst.value == pytest.approx(excess.max(), abs=1e-12)
        matrix = np.zeros((len(e), len(e)))
        matrix[i, j] = matrix[j, i] = excess
        person = result.rows("people", model=model, weight=weight)[0]
        assert person.value == pytest.approx(1 - (matrix.sum(axis=1) / (len(e) - 1)).max(), abs=1e-12)


def test_bins_equal_a_plain_group_by(households: pd.DataFrame, result: EffortResult) -> None:
    e, _ = by_hand(households)
    frame = households.assign(bin=np.floor(np.round(e / 0.1, 9)).astype(int))
    for record in result.rows("gaps", metric="eagf"):
        part = frame if record.bin_low is None else frame[frame.bin == round(record.bin_low * 10)]
        means = part.groupby(record.grouping)[f"risk_{record.model}"].agg(["mean", "size"]).query("size >= 10")["mean"]
        if len(means) < 2:
            assert record.value is None
            assert record.status.text.startswith("undefined: fewer than two groups")
        else:
            assert record.value == pytest.approx(means.min() / means.max(), abs=1e-12)
            assert (record.group, record.reference) == (means.idxmin(), means.idxmax())
    assert sum(r.n for r in result.rows("values", metric="mean_score", model="xgboost", grouping="sex")) == 2 * 300


def test_traditional_parity_is_that_of_the_parity_audit(households: pd.DataFrame, result: EffortResult) -> None:
    parity = eh.parity(make_table(households), metrics="mean_score", resamples=100)
    for record in result.rows("gaps", metric="eagf", bin_low=None):
        gap = parity.get("gaps", name="traditional_parity", model=record.model, grouping=record.grouping)
        assert record.value == pytest.approx(gap.value, abs=1e-9)  # parity has the permutation's interval
        assert (record.group, record.reference) == (gap.group, gap.reference)


def test_rows_in_any_order_and_library_give_the_same_numbers(households: pd.DataFrame, result: EffortResult) -> None:
    import polars as pl

    for other in (households.sample(frac=1, random_state=0), pl.from_pandas(households), households.to_dict("list")):
        assert effort(make_table(other), weights=[0.5, 0.6577], **OPTIONS).to_dict() == result.to_dict()


def test_differences_are_paired_and_their_sign_is_told(result: EffortResult) -> None:
    values = {r.model: r.at_least_spread for r in result.rows("values", metric="eaif", weight=0.5)}
    record = result.get("gaps", against="model", model="xgboost", model_reference="logistic", weight=0.5)
    assert record.value == pytest.approx(values["xgboost"] - values["logistic"])
    finding = next(f for f in result.findings if f.kind == "difference")
    assert finding.headline.text.startswith("At equal spread of scores, xgboost ")
    assert (finding.model, finding.model_reference, finding.against) == ("xgboost", "logistic", "model")
    assert (finding.value or 0) > 0


def test_thresholds_become_verdicts(households: pd.DataFrame) -> None:
    limits = [
        {"audit": "effort", "metric": "eaif", "min": 0.5},
        {"audit": "effort", "metric": "eagf", "min": 0.99},
    ]
    findings = effort(make_table(households), thresholds=limits, **OPTIONS).findings
    assert {f.verdict for f in findings if f.metric == "eaif" and f.kind is None} == {"meets"}
    assert "meets" not in {f.verdict for f in findings if f.metric == "eagf"}
    with pytest.raises(ConfigError, match="did you mean 'eaif'"):
        effort(make_table(households), thresholds=[{"audit": "effort", "metric": "eaiff", "min": 0.5}], **OPTIONS)


def test_effort_and_aggregate_can_be_written_back(households: pd.DataFrame) -> None:
    columns = person_scores(make_table(households), **OPTIONS).set_index("id")
    e, s = by_hand(households)
    expected = pd.DataFrame({"effort": e, "aggregate": s}, index=households.household.astype(str))
    pd.testing.assert_frame_equal(columns.loc[expected.index], expected, check_names=False, atol=1e-15)
    with pytest.raises(ConfigError, match="name the table's `id` column"):
        person_scores(eh.Table(households, groups="race", predictions="risk_xgboost"), **OPTIONS)


def test_only_two_time_steps_enter_and_it_is_said(households: pd.DataFrame, result: EffortResult) -> None:
    assert any(
        "Only two of the 4 time steps enter effort: income_2020 and income_2022" in note.text for note in result.notes
    )
    changed = households.assign(income_2021=households.income_2021 * 7)
    np.testing.assert_array_equal(efforts(changed), efforts(households))


def test_published_rates_refuse_a_group_they_do_not_have(households: pd.DataFrame) -> None:
    with pytest.raises(DataError, match=r"`inertia` has no rate for 'Hispanic' of column 'race'"):
        effort(make_table(households), **{**OPTIONS, "inertia": "nces-2012"})
    known = households[households.race != "Hispanic"]
    assert efforts(known, inertia="nces-2012").max() <= 1


def test_missing_years_are_an_error_or_dropped_and_counted(households: pd.DataFrame) -> None:
    gaps = households.assign(income_2021=households.income_2021.astype(float))
    gaps.loc[gaps.index[:4], "income_2021"] = np.nan
    with pytest.raises(DataError, match=r"missing in 4 rows of 300 \('income_2021' in 4\)"):
        effort(make_table(gaps), **OPTIONS)
    dropped = effort(make_table(gaps, missing="drop"), **OPTIONS)
    assert dropped.rows("values", metric="eaif")[0].n == 296
    assert dropped.left_out[0].n == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trajectory": YEARS[:2]}, "at least 3 time steps"),
        ({"trajectory": [*YEARS, "icnome_2020"]}, "did you mean 'income_2020'"),
        ({"trajectory": [*YEARS, "race"]}, "must hold numbers"),
        ({"inertia": {**RATES, "White": 0}}, "'White' must be above 0"),
        ({"inertia": "nces-2013"}, "did you mean"),
        ({"inertia_by": "sxe"}, "did you mean 'sex'"),
        ({"weights": [1.5]}, "between 0 and 1"),
        ({"times": [1, 2, 2, 3]}, "4 rising time stamps"),
        ({"resamples": 1000}, "unexpected keyword|no such setting"),
    ],
)
def test_wrong_settings_are_told(households: pd.DataFrame, change: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        effort(make_table(households), **{**OPTIONS, **change})


def test_one_person_and_decisions_are_refused(households: pd.DataFrame) -> None:
    flagged = households.assign(flag=(households.risk_xgboost > 0.5).astype(int))
    with pytest.raises(ConfigError, match="compares scores; model 'm' has decisions only"):
        effort(eh.Table(flagged, groups="sex", predictions={"m": "flag"}), **OPTIONS)


def test_equal_efforts_and_two_people() -> None:
    data = {"g": ["a", "b"], "m": [0.2, 0.9], "x": [1.0, 1.0], "y": [1.0, 1.0], "z": [1.0, 1.0]}
    result = effort(eh.Table(data, groups="g", predictions="m"), trajectory=["x", "y", "z"])
    assert result.values[0].value == pytest.approx(1 - 0.7)
    assert result.values[0].status.text == "no interval: too few people"
    assert "effort.all_equal" in {note.id for note in result.notes}


def test_the_section_of_a_report(result: EffortResult) -> None:
    section = result.section()
    assert [part.title for part in section.parts if isinstance(part, Figure)] == [
        "Individual fairness",
        "Parity among people of similar effort",
        "How effort is spread",
    ]
    shown = replace(result, spec=result.spec.model_copy(update={"individuals": True})).section()
    assert [part.title for part in shown.parts if isinstance(part, Figure)][-1] == "The least fair pairs"
    for chart in ("parity", "weights", "spread", "pairs"):
        assert result.plot(chart).to_svg(name="x")


def small(**change: Any) -> dict[str, Any]:
    """Return columns of six people, with some replaced."""
    people = {
        "g": ["a", "b"] * 3,
        "m": [0.1, 0.3, 0.5, 0.2, 0.9, 0.4],
        "x": [1.0] * 6,
        "y": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0],
        "z": [2.0, 2.0, 2.0, 3.0, 3.0, 3.0],
        "i": [1.0] * 6,
    }
    return {**people, **change}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"z": [np.inf, *[1.0] * 5]}, "trajectory column 'z' holds infinite values"),
        ({"z": [-np.inf, *[1.0] * 5]}, "trajectory column 'z' holds infinite values"),
        ({"i": [0.0, *[1.0] * 5]}, "inertia column 'i' must be above 0 and finite; it holds 0"),
        ({"i": [-2.0, *[1.0] * 5]}, "it holds -2"),
        ({"i": [np.inf, *[1.0] * 5]}, "it holds inf"),
        ({"i": [np.nan, *[1.0] * 5]}, r"missing in 1 row of 6 \(the inertia\)"),
        ({"m": [1.2, *[0.5] * 5]}, "1.2"),
        ({"m": [-0.1, *[0.5] * 5]}, "-0.1"),
    ],
)
def test_impossible_numbers_are_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        effort(eh.Table(small(**change), groups="g", predictions="m"), trajectory=["x", "y", "z"], inertia="i")


def test_one_person_is_refused() -> None:
    alone = {name: values[:1] for name, values in small().items()}
    with pytest.raises(DataError, match="compares pairs of people; only 1 person left"):
        effort(eh.Table(alone, predictions="m"), trajectory=["x", "y", "z"])


def test_negative_values_are_allowed_and_told() -> None:
    table = eh.Table(small(x=[-5.0, *[1.0] * 5]), groups="g", predictions="m")
    notes = effort(table, trajectory=["x", "y", "z"]).notes
    assert any("1 person has a negative value" in note.text for note in notes)


def test_a_person_on_a_bin_edge_belongs_above_it() -> None:
    # 0.6 sigmoid(0) = 0.3, and 0.3 / 0.1 is below 3 in binary
    table = eh.Table(small(y=[2.0] * 6, z=[2.0] * 6, i=[0.6] * 6), groups="g", predictions="m")
    bins = effort(table, trajectory=["x", "y", "z"], inertia="i", min_count=2).rows("gaps", metric="eagf")
    assert [(r.bin_low, r.bin_high, r.n) for r in bins] == [(None, None, 6), (0.3, 0.4, 6)]


def test_the_curve_over_weights_goes_through_the_audits_own_values(result: EffortResult) -> None:
    for model in MODELS:
        curve = {r.weight: r.value for r in result.curve if r.model == model}
        own = result.get("values", metric="eaif", model=model, weight=0.5).value
        assert list(curve) == [k / 10 for k in range(11)]
        assert curve[0.5] == own


def test_trajectories_of_the_worst_pairs_are_kept(households: pd.DataFrame, result: EffortResult) -> None:
    people = households.assign(id=households.household.astype(str)).set_index("id")
    assert {r.id for r in result.trajectories} == {name for pair in result.pairs for name in (pair.id_a, pair.id_b)}
    for record in result.trajectories:
        assert record.value == people.loc[record.id, record.step]


def test_the_hash_follows_the_trajectories(households: pd.DataFrame) -> None:
    def hashed(data: pd.DataFrame) -> str:
        table = make_table(data)
        gather(table, EffortSpec(**OPTIONS))
        return table.digest()

    assert hashed(households.assign(income_2019=households.income_2019 + 1)) != hashed(households)


def test_the_device_stands_in_the_run_and_not_in_the_results() -> None:
    table = eh.Table(eh.datasets.make_households(60, seed=1), predictions={"m": "risk_xgboost"})
    incomes = [f"income_{year}" for year in range(2019, 2023)]
    years: dict[str, Any] = {"trajectory": incomes, "unit": 10_000, "scale": 200_000}
    settings: list[Any] = [{**years, "device": device} for device in ("cpu", "auto")]
    plain, asked = (eh.audit(table, effort=each) for each in settings)
    assert plain.run["device"] == "cpu"
    assert asked.run["device"].startswith(("cpu", "cuda: "))
    assert "device" not in asked.to_dict()["config"]["effort"]
