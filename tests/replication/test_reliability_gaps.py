"""Räz (2024) on the COMPAS data: the published curves number for number, and which of the paper's claims hold.

Tolerances are four standard deviations between replicates (new folds, models and mistakes), as computed independently.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.datasets.registry import DATA_VARIABLE
from evenhand.replication.authors_run import (
    BINARY,
    NUMERIC,
    SETTINGS,
    AuthorSetting,
    authors_split,
    defendants,
    positions,
    published_curves,
    replay,
)
from evenhand.replication.reliability import SPLITS, experiment, mean_gap, over_people, runs, sure_levels
from evenhand.stats.noise import attribute, fixed_products, replicate_seeds, simulate
from evenhand.stats.reliability import curves, metric_values, share_lower

pytestmark = [
    pytest.mark.slow,
    pytest.mark.replication,
    pytest.mark.skipif(not published_curves(), reason="EVENHAND_DATA names no folder with the COMPAS files"),
]


def mean_share(name: str, statistic: str) -> float:
    """Return the share of levels at which White people are lower, the mean over splits."""
    values = runs(name)[statistic][:, 1:]
    return float((values[..., 1] < values[..., 0]).mean())


# The published numbers


def test_the_people_of_the_paper() -> None:
    assert len(defendants().features) == 6167
    assert defendants().white.sum() == 2100


@pytest.mark.parametrize("setting", SETTINGS, ids="-".join)
def test_the_published_curves_are_replayed(setting: AuthorSetting) -> None:
    """With sd (not variance) 1, 5 and 10, independent masks and seed 0: all ten files, 310 rows of 10 values."""
    printed = published_curves()[setting]
    for statistic, values in replay(setting).items():
        assert printed[statistic].shape == (31, 2)
        np.testing.assert_allclose(values, printed[statistic], atol=1e-9, rtol=0)


def test_the_files_of_the_authors_repository_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stacked = published_curves()
    folder = tmp_path / "compas" / "results"
    folder.mkdir(parents=True)
    named = {("all", "5", "N"): "all features_var=5", ("cat", "", "N"): "feature_set=cat_var=None"}
    for setting, start in named.items():
        columns = {
            f"group_{group}_{name}": values[:, group] for name, values in stacked[setting].items() for group in (0, 1)
        }
        rows = [
            f"{level / 100},{','.join(repr(float(column[level])) for column in columns.values())}"
            for level in range(31)
        ]
        text = "\n".join([f",{','.join(columns)}", *rows])
        (folder / f"{start}_grouped=Y_num-min=N.csv").write_text(text)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    read = published_curves.__wrapped__()
    assert set(read) == set(named)
    for setting in named:
        np.testing.assert_array_equal(read[setting]["PABAK"], stacked[setting]["PABAK"])


REVERSAL = [
    (("all", "1", "N"), (0.001, 0.044), (-0.0066, 0.0162), (0.038, 0.069)),
    (("cat", "", "N"), (0.009, 0.062), (-0.004, 0.019), None),
    (("all", "5", "N"), (-0.027, -0.001), (-0.029, -0.015), None),
    (("all", "10", "N"), (-0.034, -0.013), (-0.043, -0.034), None),
]


@pytest.mark.parametrize(("setting", "kappa", "icc", "pabak"), REVERSAL, ids=["1", "categorical", "5", "10"])
def test_the_signs_change_when_sex_race_follows_sex(setting: AuthorSetting, kappa: Any, icc: Any, pabak: Any) -> None:
    """The author's models and random numbers; only sex-race is recomputed as sex times race."""
    for statistic_name, expected in (("kappa", kappa), ("ICC_2", icc), ("PABAK", pabak)):
        if expected is not None:
            gaps = [np.diff(replay(setting, follow)[statistic_name][1:], axis=1).mean() for follow in (False, True)]
            np.testing.assert_allclose(gaps, expected, atol=6e-4)
    if setting == ("all", "1", "N"):
        lower = [(np.diff(replay(setting, follow)["ICC_2"][1:], axis=1) < 0).sum() for follow in (False, True)]
        assert lower == [28, 0]


def test_the_reversal_is_no_accident_of_the_people() -> None:
    found = over_people("raez-2024/all/1", follow=True)
    assert found["kappa"].z > 5
    assert found["pabak"].z > 9
    assert found["icc_a1"].z > 10
    assert sure_levels(found["icc_a1"]) == 30


def test_the_product_that_is_held_fixed_is_found() -> None:
    found = fixed_products(defendants().features, positions(*NUMERIC, *BINARY))
    assert [tuple(product) for product in found] == [
        (*positions("sex-race"), *positions("sex"), *positions("race"), 1.0)
    ]


# What other runs give

TEXT_1 = {
    5: [(0.9436, 0.0037), (0.9452, 0.0079), (0.9443, 0.0037), (0.9593, 0.0059), (0.9896, 0.0004), (0.9875, 0.0006)],
    10: [(0.8986, 0.0054), (0.8961, 0.0105), (0.8999, 0.0053), (0.9229, 0.0079), (0.9793, 0.0007), (0.9752, 0.0011)],
    20: [(0.8144, 0.0093), (0.8173, 0.0099), (0.8174, 0.0090), (0.8659, 0.0067), (0.9577, 0.0010), (0.9505, 0.0014)],
    30: [(0.7433, 0.0067), (0.7506, 0.0117), (0.7484, 0.0066), (0.8188, 0.0081), (0.9359, 0.0012), (0.9254, 0.0024)],
}


@pytest.mark.parametrize("level", TEXT_1)
def test_levels_of_the_papers_reading(level: int) -> None:
    expected = iter(TEXT_1[level])
    error = np.sqrt(1 / SPLITS + 1 / 20)  # of the difference of two means
    for statistic_name in ("kappa", "pabak", "icc_a1"):
        for group in (0, 1):
            value, sd = next(expected)
            found = runs("raez-2024-text/all/1")[statistic_name][:, level, group].mean()
            assert found == pytest.approx(value, abs=4 * sd * error + 5e-5)


def test_levels_of_the_codes_reading() -> None:
    expected = {"kappa": (0.430, 0.390), "pabak": (0.436, 0.494), "icc_a1": (0.486, 0.432)}
    for statistic_name, values in expected.items():
        found = runs("raez-2024/all/10")[statistic_name][:, 30]
        error = found.std(axis=0, ddof=1) * np.sqrt(1 / SPLITS + 1 / 20)
        assert (np.abs(found.mean(axis=0) - values) < 4 * error + 5e-4).all()


GAPS = [  # setting, statistic, gap averaged over levels
    ("raez-2024-text/all/1", "kappa", 0.0024),
    ("raez-2024-text/all/1", "pabak", 0.0381),
    ("raez-2024-text/all/1", "icc_a1", -0.0058),
    ("raez-2024/all/10", "kappa", -0.0342),
    ("raez-2024/all/10", "pabak", 0.0367),
    ("raez-2024/all/10", "icc_a1", -0.0469),
    ("raez-2024/minima/1", "pabak", 0.033),
    ("raez-2024/minima/5", "pabak", 0.019),
    ("raez-2024/minima/10", "pabak", 0.007),
    ("raez-2024-text/minima/1", "pabak", 0.032),
    ("raez-2024-text/minima/5", "pabak", 0.029),
    ("raez-2024-text/minima/10", "pabak", 0.027),
    ("raez-2024-text/numeric/1", "kappa", -0.0068),
    ("raez-2024-text/numeric/1", "pabak", 0.0084),
    ("raez-2024-text/numeric/5", "pabak", 0.0146),
    ("raez-2024-text/numeric/10", "pabak", 0.0169),
    ("raez-2024/numeric/1", "pabak", 0.0083),
    ("raez-2024/numeric/5", "pabak", 0.0183),
    ("raez-2024/numeric/10", "pabak", 0.0145),
    ("raez-2024/categorical", "kappa", 0.0080),
    ("raez-2024/categorical", "pabak", 0.034),
    ("raez-2024-text/all/1", "icc_spread", 0.0026),
    ("raez-2024-text/all/10", "icc_spread", 0.0056),
    ("raez-2024/minima/10", "icc_spread", -0.036),
    ("raez-2024/numeric/10", "icc_spread", 0.0),
]


@pytest.mark.parametrize(("name", "statistic_name", "expected"), GAPS)
def test_gaps_averaged_over_levels(name: str, statistic_name: str, expected: float) -> None:
    values = runs(name)[statistic_name][:, 1:]
    gaps = (values[..., 1] - values[..., 0]).mean(axis=1)
    error = gaps.std(ddof=1) * np.sqrt(1 / SPLITS + 1 / 20)
    assert gaps.mean() == pytest.approx(expected, abs=4 * error + 6e-4)


# The claims of the paper, one by one


@pytest.mark.parametrize("reading", ["raez-2024", "raez-2024-text"])
@pytest.mark.parametrize("size", [1, 5, 10])
def test_pabak_is_lower_for_group_0_in_both_readings(reading: str, size: int) -> None:
    assert mean_share(f"{reading}/all/{size}", "pabak") < 0.1
    assert over_people(f"{reading}/all/{size}")["pabak"].z > 4


@pytest.mark.parametrize("reading", ["raez-2024", "raez-2024-text"])
@pytest.mark.parametrize("size", [1, 5, 10])
def test_icc_is_lower_for_group_1_as_it_was_run(reading: str, size: int) -> None:
    assert mean_share(f"{reading}/all/{size}", "icc_a1") > 0.95
    assert over_people(f"{reading}/all/{size}")["icc_a1"].z < -3


def test_kappa_has_no_gap_with_small_errors() -> None:
    assert mean_share("raez-2024-text/all/1", "kappa") == pytest.approx(0.45, abs=0.15)
    assert abs(over_people("raez-2024-text/all/1")["kappa"].z) < 1.5


def test_kappa_is_lower_for_group_1_only_when_the_size_is_a_standard_deviation() -> None:
    five, ten = (over_people(f"raez-2024/all/{size}")["kappa"] for size in (5, 10))
    text_five, text_ten = (over_people(f"raez-2024-text/all/{size}")["kappa"] for size in (5, 10))
    assert five.z < -2
    assert ten.z < -4
    assert sure_levels(five) >= 1
    assert sure_levels(ten) >= 12
    assert abs(text_five.z) < 2
    assert abs(text_ten.z) < 3
    assert sure_levels(text_five) + sure_levels(text_ten) <= 2


def test_prevalence_and_not_bias_explains_kappa_against_pabak() -> None:
    parts = [runs("raez-2024-text/all/1")[name][:, 1:].mean(axis=(0, 1)) for name in ("prevalence_part", "bias_part")]
    np.testing.assert_allclose(parts[0], [0.0027, 0.0382], atol=8e-4)
    np.testing.assert_allclose(parts[1], [-0.0003, -0.0001], atol=1e-4)
    rare = [runs("raez-2024/minima/10")[name][:, 1:, 0].mean() for name in ("prevalence_part", "bias_part")]
    np.testing.assert_allclose(rare, [0.0013, -0.0006], atol=4e-4)


def test_minima_make_results_slightly_more_reliable() -> None:
    expected = {1: (0.743, 0.763), 5: (0.673, 0.716), 10: (0.623, 0.683)}
    for size, values in expected.items():
        free, limited = (runs(f"raez-2024-text/{name}/{size}")["kappa"][:, 30, 0].mean() for name in ("all", "minima"))
        assert limited > free
        np.testing.assert_allclose([free, limited], values, atol=4 * 0.012 * np.sqrt(1 / SPLITS + 1 / 20))


def test_minima_close_the_pabak_gap_only_when_the_size_is_a_standard_deviation() -> None:
    closing = [mean_gap(f"raez-2024/minima/{size}", "pabak") for size in (1, 5, 10)]
    assert closing[0] > 1.3 * closing[1] > 2 * closing[2]
    assert abs(over_people("raez-2024/minima/10")["pabak"].z) < 2
    assert mean_gap("raez-2024-text/minima/10", "pabak") > 0.02
    assert over_people("raez-2024-text/minima/10")["pabak"].z > 3


def test_numeric_errors_alone_have_opposite_signs_and_pabak_does_not_shrink() -> None:
    kappa = [mean_gap(f"raez-2024-text/numeric/{size}", "kappa") for size in (1, 5, 10)]
    pabak = [mean_gap(f"raez-2024-text/numeric/{size}", "pabak") for size in (1, 5, 10)]
    assert 0 > kappa[0] > kappa[1] > kappa[2]
    assert 0 < pabak[0] < pabak[1] < pabak[2] + 0.002
    as_run = [mean_gap(f"raez-2024/numeric/{size}", "pabak") for size in (1, 5, 10)]
    assert as_run[1] > 1.5 * as_run[0]
    printed = [np.diff(replay(("num", size, "N"))["PABAK"][1:], axis=1).mean() for size in ("1", "5", "10")]
    np.testing.assert_allclose(printed, [0.0075, 0.0183, 0.0105], atol=6e-5)


def test_categorical_errors_alone_show_no_kappa_gap_and_no_larger_pabak_gap() -> None:
    found = over_people("raez-2024/categorical")["kappa"]
    assert 0 < found.z < 2
    assert sure_levels(found) == 0
    assert mean_share("raez-2024/categorical", "kappa") < 0.4
    alone = mean_gap("raez-2024/categorical", "pabak")
    assert all(alone < mean_gap(f"raez-2024-text/all/{size}", "pabak") for size in (1, 5, 10))


def test_mean_scores_differ_and_the_difference_shrinks() -> None:
    small, large = (
        -np.diff(runs(name)["mean_second"].mean(axis=0), axis=1).ravel()
        for name in ("raez-2024-text/all/1", "raez-2024/all/10")
    )
    np.testing.assert_allclose([small[0], small[30], large[30]], [0.098, 0.091, 0.074], atol=0.004)


def test_the_icc_gap_is_one_of_spread() -> None:
    found = runs("raez-2024-text/all/1")
    np.testing.assert_allclose(found["variance_first"][:, 0].mean(axis=0), [0.0387, 0.0303], atol=3e-4)
    np.testing.assert_allclose(found["mean_squared_error"][:, 30].mean(axis=0), [0.00504, 0.00462], atol=1.2e-4)
    for name in ("raez-2024-text/all/1", "raez-2024/all/10"):
        assert mean_gap(name, "icc_a1") < 0 < mean_gap(name, "icc_spread")
    values = found["icc_spread"].mean(axis=0)[1:]
    assert share_lower(values[:, 1] - values[:, 0]) <= 1 / 30  # at p = 0.01 the gap is smaller than its spread
    assert share_lower(values[1:, 1] - values[1:, 0]) == 0


# Beyond the paper


def test_two_noisy_raters_have_larger_gaps_and_no_bias() -> None:
    trial = experiment("raez-2024-text/all/1", authors_split(), raters=2)
    done = simulate(trial, replicate_seeds(40, np.random.default_rng(1)))
    gap = {name: np.diff(curves(trial, done, name).mean[1:], axis=1).mean() for name in ("kappa", "pabak", "icc_a1")}
    assert gap["pabak"] == pytest.approx(0.054, abs=0.006)
    assert gap["icc_a1"] == pytest.approx(-0.010, abs=0.001)
    assert gap["kappa"] == pytest.approx(-0.001, abs=0.006)
    np.testing.assert_allclose(curves(trial, done, "bias_index").mean[30], 0.0, atol=0.004)
    one = experiment("raez-2024-text/all/1", authors_split())
    alone = curves(one, simulate(one, replicate_seeds(40, np.random.default_rng(1))), "bias_index").mean[30]
    np.testing.assert_allclose(alone, [-0.059, -0.026], atol=0.004)


def test_sex_makes_two_thirds_of_the_pabak_gap() -> None:
    trial = experiment("raez-2024-text/all/1", authors_split(), levels=np.array([0.2]))
    seeds = replicate_seeds(60, np.random.default_rng(5))
    found = attribute(trial, seeds, {"pabak": lambda sums: metric_values("pabak", sums)})["pabak"]
    assert found.exact
    gap = dict(zip((*NUMERIC, *BINARY), np.diff(found.values.mean(axis=0), axis=1).ravel(), strict=True))
    assert sum(gap.values()) == pytest.approx(0.048, abs=0.006)
    assert gap["sex"] == pytest.approx(0.032, abs=0.003)
    assert gap["sex"] / sum(gap.values()) == pytest.approx(0.67, abs=0.06)
    large = experiment("raez-2024/all/10", authors_split(), levels=np.array([0.2]))
    icc = attribute(large, seeds, {"icc_a1": lambda sums: metric_values("icc_a1", sums)})["icc_a1"]
    parts = dict(zip((*NUMERIC, *BINARY), np.diff(icc.values.mean(axis=0), axis=1).ravel(), strict=True))
    assert parts["juv_other_count"] == pytest.approx(-0.028, abs=0.006)
    assert parts["priors_count"] == pytest.approx(-0.018, abs=0.004)
    assert parts["juv_fel_count"] == pytest.approx(-0.008, abs=0.003)


def test_common_random_numbers_are_a_trade() -> None:
    """Differences of levels gain; the mean over levels of one replicate varies 14 to 16 times as much."""
    spread = {}
    for common in (True, False):
        trial = experiment("raez-2024/all/1", authors_split(), common=common)
        values = curves(trial, simulate(trial, replicate_seeds(60, np.random.default_rng(2))), "kappa").values
        gap = values[..., 1] - values[..., 0]
        spread[common] = (gap[:, 1:].mean(axis=1).var(), (gap[:, 30] - gap[:, 20]).std())
    assert 6 < spread[True][0] / spread[False][0] < 30
    assert spread[True][1] < 0.85 * spread[False][1]
