"""The tables of the effort paper's human study, from the figures it prints."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.correlation import hotelling_t, meng_z, steiger_z, two_sided_p, williams_t

pytestmark = pytest.mark.replication

# Table 2: Spearman correlations (n, aggregate-trajectory, then aggregate and trajectory with each target).
TABLE_2 = {
    ("CLUE", "input"): (900, 0.1670, 0.5022, 0.7056),
    ("CLUE", "output"): (900, 0.1670, 0.2089, 0.4218),
    ("SHED", "input"): (888, 0.4277, 0.6547, 0.7881),
    ("SHED", "output"): (888, 0.4277, 0.2507, 0.4986),
}
# Table 3: Hotelling's t and what the paper calls Steiger's Z; then Williams and Steiger from the same correlations.
TABLE_3 = {
    ("CLUE", "input"): (7.9758, 6.9077, 6.9714, 6.9146),
    ("CLUE", "output"): (5.5161, 5.3461, 5.4164, 5.3624),
    ("SHED", "input"): (7.3360, 6.5541, 6.6093, 6.5610),
    ("SHED", "output"): (7.9612, 7.6466, 7.8773, 7.6914),
}
# Table 4: intervals printed for the difference; they belong to aggregate minus trajectory.
TABLE_4 = {
    ("CLUE", "input"): (-0.2780, -0.1280),
    ("CLUE", "output"): (-0.3000, -0.1280),
    ("SHED", "input"): (-0.1950, -0.0730),
    ("SHED", "output"): (-0.3330, -0.1610),
}
# Table 5: coefficients of aggregate and trajectory with standard errors, R², adjusted R², F, n; Wald from footnotes.
TABLE_5 = {
    ("CLUE", "input"): (0.3580, 0.0179, 0.5454, 0.0171, 0.6580, 0.6573, 863.05, 900, 48.3438),
    ("CLUE", "output"): (0.0070, 0.0035, 0.0403, 0.0034, 0.1534, 0.1515, 81.27, 900, 39.4285),
    ("SHED", "input"): (0.3182, 0.0154, 0.6114, 0.0169, 0.7794, 0.7789, 1563.19, 888, 111.5533),
    ("SHED", "output"): (-0.0132, 0.0036, 0.0565, 0.0039, 0.1975, 0.1957, 108.88, 888, 116.2329),
}
CELLS = list(TABLE_2)


@pytest.mark.parametrize("cell", CELLS)
def test_table_3_follows_from_table_2(cell: tuple[str, str]) -> None:
    n, between, aggregate, trajectory = TABLE_2[cell]
    found = [test(trajectory, aggregate, between, n) for test in (hotelling_t, meng_z, williams_t, steiger_z)]
    np.testing.assert_allclose(found[:2], TABLE_3[cell][:2], atol=4e-3)
    np.testing.assert_allclose(found[2:], TABLE_3[cell][2:], atol=5e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_all_comparisons_stay_significant_after_bonferroni(cell: tuple[str, str]) -> None:
    n, between, aggregate, trajectory = TABLE_2[cell]
    assert 8 * two_sided_p(meng_z(trajectory, aggregate, between, n)) < 0.001
    assert 8 * two_sided_p(hotelling_t(trajectory, aggregate, between, n), n - 3) < 0.001


@pytest.mark.parametrize("cell", CELLS)
def test_table_4_prints_aggregate_minus_trajectory(cell: tuple[str, str]) -> None:
    _, _, aggregate, trajectory = TABLE_2[cell]
    low, high = TABLE_4[cell]
    assert low < aggregate - trajectory < high
    assert not low < trajectory - aggregate < high


@pytest.mark.parametrize("cell", CELLS)
def test_table_5_is_consistent_with_itself(cell: tuple[str, str]) -> None:
    *_, r2, adjusted, f, n, _ = TABLE_5[cell]
    assert (r2 / 2) / ((1 - r2) / (n - 3)) == pytest.approx(f, rel=8e-4)
    assert 1 - (1 - r2) * (n - 1) / (n - 3) == pytest.approx(adjusted, abs=2e-4)


@pytest.mark.parametrize("cell", CELLS)
def test_the_printed_wald_test_is_that_of_equal_coefficients(cell: tuple[str, str]) -> None:
    """a1 = a2 = 0, which the paper states, would give 2 F. For a1 = a2 the covariance follows from the two regressors.

    cov(a1, a2) = -r se1 se2 with r their Pearson correlation, which is near the Spearman correlation of table 2.
    Standard errors are printed to two digits in the output models, so only an interval follows there.
    """
    aggregate, se_a, trajectory, se_t, _, _, f, _, wald = TABLE_5[cell]
    between = TABLE_2[cell][1]
    assert 2 * f > 1.3 * wald

    def equal(r: float, add: float) -> float:
        a, t = se_a + add, se_t + add
        return float((trajectory - aggregate) ** 2 / (a**2 + t**2 + 2 * r * a * t))

    assert equal(between + 0.1, 5e-5) < wald < equal(between - 0.1, -5e-5)


@pytest.mark.parametrize(("condition", "printed"), [("SHED", 0.6577), ("CLUE", 0.6037)])
def test_the_weights_of_table_7_follow_from_table_5(condition: str, printed: float) -> None:
    aggregate, _, trajectory, *_ = TABLE_5[condition, "input"]
    assert trajectory / (trajectory + aggregate) == pytest.approx(printed, abs=5e-5)
