"""Salaries, prices and grades: values equal those of peers, tests those of SciPy, and the laws hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import evenhand as eh
from evenhand.audits.parity import ParityResult
from evenhand.errors import EvenhandError

N = 400


def staff(seed: int = 1, n: int = N) -> pd.DataFrame:
    """Return people with a salary and what a model predicts."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m", "x"], n, p=[0.45, 0.45, 0.1])
    salary = np.round(rng.lognormal(10.5, 0.5, n) * np.where(sex == "m", 1.2, 1.0))
    predicted = np.round(0.8 * salary + rng.normal(8_000, 5_000, n))
    return pd.DataFrame({"sex": sex, "salary": salary, "predicted": predicted})


def table(data: Any, **roles: Any) -> eh.Table:
    roles = {"groups": "sex", "outcome": "salary", "outcome_kind": "number", "predictions": "predicted", **roles}
    return eh.Table(data, **{name: value for name, value in roles.items() if value is not None})


def value(result: ParityResult, metric: str, group: str) -> float:
    found = result.get("values", metric=metric, group=group, stratum=None).value
    assert found is not None
    return float(found)


ERRORS = ["mean", "median", "mean_outcome", "mean_error", "mae", "mse", "rmse", "within_tolerance"]


def test_values_equal_those_of_fairlearn_and_scikit_learn() -> None:
    from fairlearn.metrics import MetricFrame
    from sklearn.metrics import mean_absolute_error, mean_squared_error, root_mean_squared_error

    data = staff()
    result = eh.parity(table(data), metrics=ERRORS, tolerance=5_000)
    peers = {
        "mae": mean_absolute_error,
        "mse": mean_squared_error,
        "rmse": root_mean_squared_error,
        "mean": lambda _y, predicted: np.mean(predicted),
        "median": lambda _y, predicted: np.median(predicted),
        "mean_outcome": lambda y, _predicted: np.mean(y),
        "mean_error": lambda y, predicted: np.mean(predicted - y),
        "within_tolerance": lambda y, predicted: np.mean(np.abs(predicted - y) <= 5_000),
    }
    frame = MetricFrame(metrics=peers, y_true=data["salary"], y_pred=data["predicted"], sensitive_features=data["sex"])
    for metric in ERRORS:
        for group in ("f", "m", "x"):
            assert value(result, metric, group) == pytest.approx(frame.by_group.loc[group, metric])
        gap = result.get("gaps", metric=metric, kind="difference", against="worst_pair").value
        assert gap == pytest.approx(frame.difference()[metric])


def test_names_of_peers_are_accepted() -> None:
    result = eh.parity(table(staff()), metrics=["mean_absolute_error", "root_mean_squared_error_difference"])
    assert {record.metric for record in result.values} == {"mae", "rmse"}


def test_quantiles_are_those_of_numpy() -> None:
    data = staff()
    names = {"quantile_10": 0.1, "quantile_25": 0.25, "median": 0.5, "quantile_75": 0.75, "quantile_90": 0.9}
    result = eh.parity(table(data, predictions=None), metrics=list(names))
    for metric, q in names.items():
        people = data.loc[data["sex"] == "f", "salary"]
        assert value(result, metric, "f") == np.quantile(people, q, method="averaged_inverted_cdf")


def test_the_test_of_means_is_near_welch() -> None:
    data = staff().query("sex != 'x'")
    gap = eh.parity(table(data, predictions=None)).get("gaps", metric="mean", kind="difference", against="worst_pair")
    sides = [data.loc[data["sex"] == sex, "salary"] for sex in ("m", "f")]
    welch = stats.ttest_ind(*sides, equal_var=False)
    assert gap.p_value == pytest.approx(welch.pvalue, abs=0.002)
    limits = welch.confidence_interval(0.95)
    assert (gap.low, gap.high) == pytest.approx(tuple(limits), rel=0.05)


def test_p_values_belong_to_intervals() -> None:
    for seed in range(12):
        result = eh.parity(table(staff(seed, 90)), tolerance=5_000)
        for gap in result.gaps:
            if gap.p_value is None or gap.kind == "ratio" or gap.against == "worst_pair":
                continue
            low, high = (-np.inf if gap.low is None else gap.low), (np.inf if gap.high is None else gap.high)
            assert (gap.p_value < 0.05) == (low > 0 or high < 0), gap


def test_no_range_is_needed_and_none_matters() -> None:
    data = staff()
    numbers = {}
    for name, scale in (("small", 1e-6), ("plain", 1.0), ("large", 1e6)):
        result = eh.parity(table(data.assign(salary=data["salary"] * scale), predictions=None))
        gap = result.get("gaps", metric="mean", kind="difference", against="worst_pair")
        ends = [number / scale for number in (gap.value, gap.low, gap.high) if number is not None]
        numbers[name] = *ends, gap.p_value
    for name in ("small", "large"):  # other numbers are permuted in another order
        assert numbers[name] == pytest.approx(numbers["plain"], rel=0.02)


def told(result: ParityResult) -> list[str]:
    return [finding.text for finding in result.findings]


def test_the_order_of_rows_does_not_matter() -> None:
    data = staff()
    shuffled = data.sample(frac=1.0, random_state=4)
    first, second = (eh.parity(table(each), tolerance=5_000) for each in (data, shuffled))
    assert first.to_dict() == second.to_dict()


def test_names_of_groups_do_not_matter() -> None:
    data = staff()
    renamed = data.assign(sex=data["sex"].map({"f": "z", "m": "a", "x": "k"}))
    first, second = (eh.parity(table(each)) for each in (data, renamed))
    for metric in ("mean", "median", "mae"):
        gaps = [each.get("gaps", metric=metric, kind="difference", against="worst_pair") for each in (first, second)]
        assert gaps[0].p_value == gaps[1].p_value
        assert (gaps[0].low, gaps[0].high) == (gaps[1].low, gaps[1].high)


def test_weights_are_repetition_in_values() -> None:
    data = staff().assign(times=np.random.default_rng(2).integers(1, 4, N))
    repeated = data.loc[data.index.repeat(data["times"])]
    weighted = eh.parity(table(data, weight="times"), tolerance=5_000)
    plain = eh.parity(table(repeated), tolerance=5_000)
    for metric in (*ERRORS, "quantile_90"):
        if metric != "mse":
            assert value(weighted, metric, "f") == pytest.approx(value(plain, metric, "f")), metric


def test_a_count_is_repetition() -> None:
    data = staff().assign(times=np.random.default_rng(2).integers(1, 4, N))
    counted, repeated = (
        eh.parity(each) for each in (table(data, count="times"), table(data.loc[data.index.repeat(data["times"])]))
    )
    assert counted.values == repeated.values
    assert told(counted) == told(repeated)


def test_equal_weights_are_none() -> None:
    data = staff()
    weighted, plain = (eh.parity(each) for each in (table(data.assign(w=2.5), weight="w"), table(data)))
    for one, two in zip(weighted.values, plain.values, strict=True):
        assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high))


def test_missing_numbers_are_refused_or_dropped() -> None:
    data = staff()
    data.loc[[3, 7], "salary"] = np.nan
    data.loc[9, "predicted"] = np.nan
    with pytest.raises(EvenhandError, match="'salary' is missing in 2 rows of 400"):
        table(data)
    result = eh.parity(table(data, missing="drop"))
    assert value(result, "mae", "f") == pytest.approx(
        (data["predicted"] - data["salary"]).abs()[data["sex"] == "f"].mean()
    )
    assert sum(record.n for record in result.left_out if record.grouping is None) == 3


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_people_have_values_and_no_gap(n: int) -> None:
    data = pd.DataFrame({"sex": ["f"] * 20 + ["m"] * n, "salary": [*np.arange(20.0), *np.arange(30.0, 30.0 + n)]})
    result = eh.parity(table(data, predictions=None))
    assert value(result, "median", "m") == np.median(np.arange(30.0, 30.0 + n))
    assert not [gap for gap in result.gaps if gap.value is not None]


def test_people_who_are_all_alike() -> None:
    data = pd.DataFrame({"sex": ["f"] * 20 + ["m"] * 30, "salary": [10.0] * 20 + list(np.arange(30.0))})
    result = eh.parity(table(data, predictions=None))
    alike = result.get("values", metric="mean", group="f")
    assert (alike.value, alike.low, alike.high) == (10.0, None, None)
    gap = result.get("gaps", metric="mean", kind="difference", against="reference")
    assert gap.rests_on == "bounds"
    median = result.get("values", metric="median", group="f")
    assert (median.low, median.high) == (10.0, 10.0)


def test_one_person_who_is_most_of_the_variance_leaves_the_lead_to_the_median() -> None:
    data = staff(n=120)
    data.loc[5, "salary"] = 40_000_000.0
    result = eh.parity(table(data, predictions=None))
    leading = [finding.metric for finding in result.findings if finding.kind is not None]
    assert leading == ["median"]
    gap = result.get("gaps", metric="mean", kind="difference", against="worst_pair")
    assert gap.rests_on == "one person"
    assert "one person makes up more than half of the variance" in " ".join(note.text for note in result.notes)
    ordinary = eh.parity(table(staff(n=120), predictions=None))
    assert [finding.metric for finding in ordinary.findings if finding.kind is not None] == ["mean", "median"]


def test_a_regressor_is_audited_as_it_is() -> None:
    from sklearn.linear_model import LinearRegression

    data = staff()
    model = LinearRegression().fit(data[["predicted"]], data["salary"])
    predicted = eh.fitted(model, data[["predicted"]])
    own = eh.Table(data, groups="sex", outcome="salary", outcome_kind="number", predictions={"linear": predicted})
    arrays = eh.Table.from_arrays(
        y_true=data["salary"],
        y_pred={"linear": predicted},
        sensitive_features=data["sex"],
        outcome_kind="number",
    )
    for each in (own, arrays):
        expected = np.abs(predicted - data["salary"])[data["sex"] == "f"].mean()
        assert value(eh.parity(each), "mae", "f") == pytest.approx(expected)


def test_arrays_without_a_prediction_are_compared() -> None:
    data = staff()
    arrays = eh.Table.from_arrays(y_true=data["salary"], sensitive_features=data["sex"], outcome_kind="number")
    assert value(eh.parity(arrays), "median", "f") == data.loc[data["sex"] == "f", "salary"].median()


def test_models_fitted_here_need_two_outcomes(tmp_path: Path) -> None:
    staff().to_csv(tmp_path / "staff.csv", index=False)
    (tmp_path / "audit.toml").write_text(
        '[data]\nsource = "staff.csv"\noutcome = "salary"\noutcome_kind = "number"\ngroups = ["sex"]\n'
        '[models]\nfeatures = ["predicted"]\nfit = "logistic"\n[parity]\n'
    )
    with pytest.raises(EvenhandError, match="predict an outcome of two values, not a number"):
        eh.audit(tmp_path / "audit.toml")


def test_engines_agree(tmp_path: Path) -> None:
    data = staff()
    data.to_csv(tmp_path / "staff.csv", index=False)
    data.to_parquet(tmp_path / "staff.parquet")
    sources: list[Any] = [
        pl.from_pandas(data),
        pl.from_pandas(data).lazy(),
        pa.Table.from_pandas(data),
        duckdb.sql("select * from data"),
        {name: data[name].tolist() for name in data},
        tmp_path / "staff.csv",
        tmp_path / "staff.parquet",
    ]
    expected = eh.parity(table(data)).to_dict()
    for source in sources:
        found = eh.parity(table(source)).to_dict()
        assert {**found, "backend": None} == {**expected, "backend": None}, type(source)


def graded(n: int = 1_200) -> pd.DataFrame:
    """Return people whose salary depends on the grade alone, and grades that depend on sex."""
    rng = np.random.default_rng(9)
    sex = rng.choice(["f", "m"], n)
    grade = np.where(rng.random(n) < np.where(sex == "m", 0.7, 0.3), "II", "I")
    salary = np.where(grade == "II", 60.0, 40.0) + rng.gamma(2, 5, n)
    return pd.DataFrame({"sex": sex, "grade": grade, "salary": salary})


def test_means_are_standardised_over_strata() -> None:
    data = graded()
    result = eh.parity(table(data, predictions=None), within=["grade"], metrics=["mean", "median"])
    inside = data.query("grade == 'I' and sex == 'f'")["salary"]
    assert result.get("values", metric="mean", group="f", stratum="I").value == pytest.approx(inside.mean())
    shares = data["grade"].value_counts(normalize=True)
    means = data.groupby(["sex", "grade"])["salary"].mean()
    for sex in ("f", "m"):
        found = result.get("values", metric="mean", group=sex, stratum="(standardised)")
        assert found.value == pytest.approx(sum(shares[g] * means[sex, g] for g in ("I", "II")))
        assert (found.low or 0.0) < (found.value or 0.0) < (found.high or 0.0)
    pooled, standardised = (
        result.get("gaps", metric="mean", kind="difference", against="worst_pair", stratum=stratum)
        for stratum in (None, "(standardised)")
    )
    assert (pooled.p_value or 0.0) < 0.001
    assert (standardised.p_value or 0.0) > 0.05
    assert not result.rows("values", metric="median", stratum="(standardised)")


def test_the_standardised_test_is_near_that_of_the_regression_with_strata() -> None:
    from scipy.stats import norm

    data = graded().assign(salary=lambda people: people["salary"] + np.where(people["sex"] == "m", 1.2, 0.0))
    gap = eh.parity(table(data, predictions=None), within=["grade"], metrics=["mean"]).get(
        "gaps", metric="mean", kind="difference", against="worst_pair", stratum="(standardised)"
    )
    cells = data.groupby(["sex", "grade"])["salary"].agg(["mean", "var", "size"])
    share = data["grade"].value_counts(normalize=True)
    difference = sum(share[g] * (cells.loc[("m", g), "mean"] - cells.loc[("f", g), "mean"]) for g in share.index)
    of_mean = cells["var"] / cells["size"]
    error = np.sqrt(sum(share[g] ** 2 * of_mean[s, g] for g in share.index for s in "fm"))
    assert gap.value == pytest.approx(difference)
    assert gap.p_value == pytest.approx(2 * norm.sf(difference / error), abs=0.01)
    assert gap.low == pytest.approx(max(difference - 1.96 * error, 0.0), abs=0.05)
    assert gap.high == pytest.approx(difference + 1.96 * error, rel=0.05)


def test_calibration_compares_mean_prediction_and_mean_outcome() -> None:
    data = staff(n=3_000)
    result = eh.parity(table(data), bins=5)
    edges = np.quantile(data["predicted"], np.linspace(0, 1, 6))
    place = np.searchsorted(edges[1:-1], data["predicted"], side="right")
    for record in result.calibration:
        people = data[(place == np.searchsorted(edges, record.bin_low)) & (data["sex"] == record.group)]
        assert record.n == len(people)
        assert record.mean_score == pytest.approx(people["predicted"].mean())
        assert record.value == pytest.approx(people["salary"].mean())
        assert record.low is None or record.low <= (record.value or 0.0)
    assert len(result.calibration) == 15
    assert not eh.parity(table(data, predictions=None)).calibration


def test_a_limit_is_in_the_unit_of_the_number() -> None:
    limits = [
        {"metric": "mae", "max": 20_000.0},
        {"metric": "mean", "min": 0.99},
        {"metric": "median", "max": 1_000.0, "grouping": "sex"},
    ]
    result = eh.parity(table(staff(n=2_000)), thresholds=limits)
    verdicts = {finding.metric: finding.verdict for finding in result.findings if finding.threshold is not None}
    assert verdicts == {"mae": "meets", "mean": "does_not_meet", "median": "does_not_meet"}


def test_the_worse_off_follow_from_the_favourable_side() -> None:
    gaps = {
        side: eh.parity(table(staff(n=2_000), predictions=None, favourable=side)).get(
            "gaps", metric="mean", kind="difference", against="worst_pair"
        )
        for side in ("higher", "lower")
    }
    assert (gaps["higher"].worse_off, gaps["lower"].worse_off) == (gaps["higher"].reference, gaps["lower"].group)


def test_the_prediction_that_is_the_outcome_brings_a_warning() -> None:
    result = eh.parity(table(staff(), predictions={"copy": {"column": "salary", "kind": "number"}}))
    assert "table.is_outcome" in {note.id for note in result.notes}


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ({"outcome": "salary", "predictions": None, "outcome_kind": None}, "say outcome_kind='number'"),
        ({"outcome": None, "outcome_kind": None, "predictions": "salary"}, "say kind='number'"),
        ({"positive": 1}, "a numeric outcome has no `positive` value"),
        ({"favourable": "selected"}, "say 'higher' or 'lower'"),
        ({"outcome": None}, "`outcome_kind` is given, but no `outcome` column is named"),
        ({"predictions": "sex"}, "not numbers"),
        ({"predictions": {"a": {"column": "predicted", "kind": "score"}}}, "must both be numbers, or neither"),
        ({"percentile": {"of": 50}}, "a number selects nobody"),
    ],
)
def test_wrong_roles_are_refused_in_words(roles: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EvenhandError) as refused:
        table(staff(), **roles)
    assert sentence in str(refused.value)


def test_infinite_numbers_are_refused() -> None:
    data = staff()
    data.loc[3, "salary"] = np.inf
    with pytest.raises(EvenhandError, match="infinite or unusually large numbers in 1 row"):
        table(data)


def test_metrics_that_need_more_are_refused_in_words() -> None:
    for metric, needed in (("within_tolerance", "a tolerance"), ("tpr", "scores or decisions")):
        with pytest.raises(EvenhandError, match=needed):
            eh.parity(table(staff()), metrics=[metric])
    decisions = eh.Table({"sex": ["f", "m"] * 20, "hired": [0, 1] * 20}, groups="sex", predictions="hired")
    with pytest.raises(EvenhandError, match="needs numbers"):
        eh.parity(decisions, metrics=["median"])


@pytest.mark.parametrize("profile", ["ugesp-1978", "nyc-ll144-2023"])
def test_profiles_of_selections_say_why_they_have_no_table(profile: str) -> None:
    audit = eh.audit(table(staff()), parity={}, report={"profile": [profile]})
    notes = " ".join(note.text for note in audit.profiles[0].notes)
    assert "numbers select nobody" in notes
    assert "Being selected is taken" not in notes
    assert not audit.profiles[0].tables.get("rates")


def test_quantiles_are_withheld_with_small_counts() -> None:
    audit = eh.audit(table(staff()), parity={}, report={"suppress_below": 5})
    published = {record.metric for record in audit.results["parity"].rows("values") if record.value is not None}
    assert {"mean", "mae"} <= published
    assert not published & {"median", "quantile_10", "quantile_90"}
    assert "calibration" not in {name for name, rows in audit.results["parity"].tables.items() if rows}


def test_over_time_says_that_it_follows_rates() -> None:
    data = staff().assign(month=["2026-01", "2026-02"] * (N // 2))
    with pytest.raises(EvenhandError, match="follows rates over time"):
        eh.audit(table(data), parity={}, report={"period": "month"})


def test_two_models_of_the_same_people_are_compared_as_pairs() -> None:
    first = staff(n=2_000).assign(id=range(2_000))
    second = first.assign(predicted=first["predicted"] * 1.02)
    tables = table(first, id="id"), table(second, id="id")
    audits = [eh.audit(each, parity={}) for each in tables]
    alone, paired = eh.compare(*audits), eh.compare(*audits, tables=tables)
    for metric in ("mean", "mae"):
        changes = [next(c for c in each.changes if c.metric == metric) for each in (alone, paired)]
        widths = [(c.high or 0.0) - (c.low or 0.0) for c in changes]
        assert 0 < widths[1] < widths[0] / 2


def test_other_audits_say_why_not() -> None:
    numbers = table(staff())
    with pytest.raises(EvenhandError, match="holds numbers"):
        eh.effort(numbers.with_data(staff().assign(a=1.0, b=2.0, c=3.0)), trajectory=["a", "b", "c"], scale=10.0)
    with pytest.raises(EvenhandError, match=r"the outcome .salary. is a number"):
        eh.improvability(numbers, status_quo="predicted", features=["predicted"], grouping="sex")


def test_an_audit_of_numbers_of_which_more_is_good_is_saved_and_read_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    sex = rng.choice(["F", "M"], 400)
    pay = np.round(50_000 + 4_000 * (sex == "M") + rng.normal(0, 5_000, 400))
    predictions = {"pay": {"column": "pay", "kind": "number", "favourable": "higher"}}
    audit = eh.audit(eh.Table({"sex": sex, "pay": pay}, groups="sex", predictions=predictions), parity={})
    audit.save(tmp_path)
    again = eh.Audit.load(tmp_path)
    assert again.to_json() == audit.to_json()
    assert {finding.arguments.get("worse_off") for finding in again.findings} == {"F"}
