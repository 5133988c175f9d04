"""The hospital data: known figures of the published files, and the synthetic likeness against its exact truth."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from evenhand.datasets import available, hospital, load_hospital, make_patients, patients_truth
from evenhand.errors import ConfigError

LOCAL = {data.name: data.local_path for data in available()}
FOLDER = Path(os.environ.get("EVENHAND_DATA") or "/nonexistent")
HEAD = FOLDER / "obermeyer" / "head199_all_160_columns.csv.gz"

needs_holdout = pytest.mark.skipif(
    not (FOLDER / LOCAL["hospital_holdout"]).is_file(),
    reason="EVENHAND_DATA names no folder with the hospital hold-out",
)


@needs_holdout
def test_the_holdout_has_the_known_figures() -> None:
    table = load_hospital(backend="pandas")
    assert table.shape == (16_099, 11)
    assert table["race"].value_counts().to_dict() == {"White": 14_274, "Black": 1_825}
    assert table["risk_score_t"].nunique() == 1_232
    assert table["row"].is_unique
    assert not table.isna().any(axis=None)
    assert table["risk_score_t_percentile"].between(1, 100).all()
    means = table.groupby("race")["gagne_sum_t"].mean()
    assert means["White"] == pytest.approx(1.26, abs=0.05)  # the whole file: 1.26 and 2.06
    assert means["Black"] == pytest.approx(2.06, abs=0.10)


@pytest.mark.skipif(not HEAD.is_file(), reason="EVENHAND_DATA names no folder with the first rows of the hospital file")
def test_the_form_of_the_full_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hospital, "fetch", lambda _: HEAD)
    table = load_hospital("full", backend="polars")
    assert table.shape == (199, 160)
    assert table["race"].value_counts().sort("race").rows() == [("Black", 23), ("White", 176)]
    assert table["ldl_mean_t"].null_count() > 0
    assert table["gagne_sum_t"].dtype == pl.Int64
    assert table["cost_t"].dtype == pl.Float64
    assert "dem_age_band_75+_tm1" in table.columns
    with gzip.open(HEAD, "rt", encoding="utf-8") as file:
        plain = pd.read_csv(file)
    np.testing.assert_allclose(table["risk_score_t"].to_numpy(), plain["risk_score_t"].to_numpy(), rtol=1e-14)


def test_the_holdouts_columns_are_renamed_not_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "odd [folder] *" / "lasso.csv"
    path.parent.mkdir()
    names = "index,dem_race_black,risk_score_t,gagne_sum_t,cost_t,cost_avoidable_t,program_enrolled_t,log_cost_t_hat"
    names += ",gagne_sum_t_hat,log_cost_avoidable_t_hat,risk_score_t_percentile"
    path.write_text(f"{names}\n2,0,0.5,0,500.0,0.0,0,3.0,0.1,0.5,4\n5,1,4.5,3,900.0,1.0,1,3.9,2.4,2.1,69\n")
    monkeypatch.setattr(hospital, "fetch", lambda name: {"hospital_holdout": path}[name])
    table = load_hospital("holdout", backend="pandas")
    assert table["race"].tolist() == ["White", "Black"]
    assert table["row"].tolist() == [2, 5]
    assert table["gagne_sum_t_hat"].tolist() == [0.1, 2.4]
    assert table["log_cost_t_hat"].tolist() == [3.0, 3.9]


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ConfigError, match="`part` got 'hold-out'; did you mean 'holdout'"):
        load_hospital("hold-out")  # type: ignore[arg-type]


# The synthetic patients


@pytest.mark.parametrize("capacity", [0.03, 0.2])
def test_the_truth_is_what_a_large_table_estimates(capacity: float) -> None:
    table = make_patients(400_000, seed=1, backend="pandas")
    truth = patients_truth(capacity)
    for score, groups in truth.items():
        chosen = table[score] > table[score].quantile(1 - capacity)
        for group, exact in groups.items():
            own = table["race"].eq(group) if group != "all" else np.ones(len(table), dtype=bool)
            seen = table.loc[own & chosen, "illnesses"]
            assert own.mean() == pytest.approx(exact["share"], abs=0.003)
            assert table.loc[own, "illnesses"].mean() == pytest.approx(exact["illnesses"], abs=0.04)
            assert chosen[own].mean() == pytest.approx(exact["selection_rate"], abs=0.004)
            error = seen.std() / np.sqrt(len(seen))
            assert abs(seen.mean() - exact["illnesses_selected"]) < 4.5 * error


def test_the_truth_is_an_integral_over_need() -> None:
    """Against quadrature over need, where the closed form shifts a mean."""
    truth = patients_truth(0.05)
    black = hospital._RACES["Black"]
    for score, (noise, sees_access) in hospital._SCORES.items():
        sd = np.sqrt(1 + noise**2)
        rate = truth[score]["White"]["selection_rate"]
        cut = -norm.ppf(rate) * sd
        shift = black.access if sees_access else 0.0

        def mass(h: float, power: float, shift: float = shift, noise: float = noise, cut: float = cut) -> float:
            mean = np.exp(hospital._ILLNESS_LEVEL + hospital._ILLNESS_SLOPE * h)
            return float(mean**power * norm.cdf((h + shift - cut) / noise) * norm.pdf(h - black.need))

        among, selected = (quad(mass, -12, 12, args=(power,), epsabs=1e-12)[0] for power in (1.0, 0.0))
        assert truth[score]["Black"]["selection_rate"] == pytest.approx(selected, rel=1e-8)
        assert truth[score]["Black"]["illnesses_selected"] == pytest.approx(among / selected, rel=1e-8)


def test_the_candidate_is_an_improvement_in_truth() -> None:
    old, new = patients_truth()["risk_score"], patients_truth()["need_score"]
    values = {
        group: (old[group]["illnesses_selected"], new[group]["illnesses_selected"]) for group in ("Black", "White")
    }
    assert all(better > worse for worse, better in values.values())
    gap_old, gap_new = (abs(values["Black"][t] - values["White"][t]) for t in (0, 1))
    assert gap_new < 0.5 * gap_old
    assert old["all"]["selection_rate"] == pytest.approx(0.03)


def test_the_table_is_complete_and_repeatable() -> None:
    table = make_patients(500, seed=9, backend="pandas")
    assert not table.isna().any(axis=None)
    assert table["patient"].tolist() == list(range(1, 501))
    assert table["age"].between(18, 95).all()
    pd.testing.assert_frame_equal(table, make_patients(500, seed=9, backend="pandas"))
    assert not table.equals(make_patients(500, seed=10, backend="pandas"))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="`n` must be an integer of at least 1"):
        make_patients(0)
    with pytest.raises(ConfigError, match="`capacity` must be a share above 0 and below 1; got 1"):
        patients_truth(1)
