"""The improvability test on the authors' hold-out of 16,099 hospital patients, with their lasso as the candidate.

The paper's tables rest on the full file and on splits that were not published; its five lasso iterations have status
quo values of 6.33 to 6.88 (Black) and 5.13 to 5.28 (White), candidate values of 7.17 to 7.64 and 7.25 to 7.36, and p_f
of 0.016 to 0.056. The hold-out is one more such split. P-values were computed twice, independently, before this test.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.datasets import available, load_hospital
from evenhand.replication.improvability import BLACK, WHITE, Holdout, replicate_improvability
from evenhand.replication.improvability import holdout as read_holdout
from evenhand.stats.improvability import (
    Criteria,
    FairnessTest,
    Pair,
    SplitTest,
    bootstrap_values,
    check_counts,
    get_utility,
    largest_delta,
    merge_rows,
    select_top,
    worst_pair,
)

LOCAL = next(data.local_path for data in available() if data.name == "hospital_holdout")
pytestmark = [
    pytest.mark.replication,
    pytest.mark.skipif(
        not (Path(os.environ.get("EVENHAND_DATA") or "/nonexistent") / LOCAL).is_file(),
        reason="EVENHAND_DATA names no folder with the hospital hold-out",
    ),
]
CALIBRATION = get_utility("calibration")
CRITERIA = Criteria(CALIBRATION, (CALIBRATION,))


@pytest.fixture(scope="module")
def holdout() -> Holdout:
    return read_holdout()


def split(holdout: Holdout, kind: FairnessTest = "signed", *, studentised: bool = False) -> SplitTest:
    return holdout.split(kind, studentised=studentised)


def test_the_chapter_agrees_where_it_should(holdout: Holdout) -> None:
    found = replicate_improvability()
    assert [line.what for line in found.lines if not line.agrees] == [
        "linear: the gap of ten that is furthest off (iteration 1, candidate)",
        "largest margin, fairness",
    ]
    assert [claim.verdict for claim in found.claims] == ["holds", "holds", "does not hold", "holds"]
    assert len(found.figures) == 2


def test_values_of_both_algorithms(holdout: Holdout) -> None:
    assert holdout.status_quo.sum() == holdout.candidate.sum() == 483
    values = holdout.rows.values()[:, 0]
    assert values[BLACK].tolist() == pytest.approx([6.562, 7.493], abs=5e-4)
    assert values[WHITE].tolist() == pytest.approx([5.194, 7.458], abs=5e-4)
    unfairness = values[BLACK] - values[WHITE]
    assert unfairness.tolist() == pytest.approx([1.369, 0.035], abs=5e-4)
    assert check_counts(holdout.rows) == ()


def test_the_rows_are_83_cells(holdout: Holdout) -> None:
    assert len(merge_rows(holdout.rows)) + 1 == 83  # with the rest, which nobody selects


def test_accuracy_improves_for_both_groups(holdout: Holdout) -> None:
    black, white = split(holdout).components().accuracy
    assert black == pytest.approx(0.001, abs=0.0008)
    assert white < 0.0005


@pytest.mark.parametrize(("delta", "p"), [(0.0, 0.017), (0.4, 0.046), (0.5, 0.065)])
def test_the_signed_fairness_component(holdout: Holdout, delta: float, p: float) -> None:
    assert split(holdout).components(fairness=delta).fairness[0] == pytest.approx(p, abs=0.005)


@pytest.mark.parametrize(("delta", "p"), [(0.0, 0.074), (0.5, 0.048), (0.725, 0.024), (0.9, 0.011)])
def test_the_published_fairness_component_falls_as_more_is_claimed(holdout: Holdout, delta: float, p: float) -> None:
    assert split(holdout, "published").components(fairness=delta).fairness[0] == pytest.approx(p, abs=0.005)


def test_the_largest_delta_of_the_signed_test_and_none_of_the_published(holdout: Holdout) -> None:
    deltas = np.arange(1000) / 1000
    signed = split(holdout).curve("fairness", deltas)
    assert largest_delta(deltas, signed < 0.05) == pytest.approx(0.41, abs=0.02)
    published = split(holdout, "published").curve("fairness", deltas)
    assert np.isnan(largest_delta(deltas, published < 0.05))  # it rejects large margins and not the margin of 0
    assert published[-50] < 0.05 < published[0]


def test_the_sign_is_that_of_the_paper(holdout: Holdout) -> None:
    """On these rows Black patients are sicker among the selected, as in every iteration of table 1."""
    y = holdout.rows.terms[:, 0, 0, 0]
    assert worst_pair(holdout.rows.group, y, holdout.status_quo, utility=CALIBRATION, names=["Black", "White"]) == Pair(
        BLACK, WHITE
    )


def test_cells_and_rows_agree(holdout: Holdout) -> None:
    draws = bootstrap_values(
        holdout.rows, resamples=20_000, rng=np.random.default_rng(1), method="cells", studentised=True
    )
    cells, rows = SplitTest(draws=draws, criteria=CRITERIA, worst=[Pair(BLACK, WHITE)]), split(holdout)
    deltas = np.linspace(0, 0.9, 10)
    np.testing.assert_allclose(cells.curve("fairness", deltas), rows.curve("fairness", deltas), atol=0.016)
    studentised = SplitTest(draws=draws, criteria=CRITERIA, worst=[Pair(BLACK, WHITE)], studentised=True)
    np.testing.assert_allclose(studentised.curve("fairness", deltas), cells.curve("fairness", deltas), atol=0.01)


def test_decisions_may_be_held_fixed_although_the_cut_is_taken_on_the_test_rows(holdout: Holdout) -> None:
    """The spread of T for Black patients, with decisions fixed and with all resampled rows ranked again."""
    fixed = (holdout.draws.values[:, BLACK, 0, 1] - holdout.draws.values[:, BLACK, 0, 0]).std()
    rng = np.random.default_rng(3)
    n = len(holdout.rows)
    y = load_hospital("holdout", backend="polars")["gagne_sum_t"].to_numpy()
    black = holdout.rows.group == BLACK
    again = []
    for _ in range(1_500):
        drawn = rng.integers(n, size=n)
        values = []
        for score in holdout.scores:
            own = select_top(score[drawn], 0.03, rng).selected & black[drawn]
            values.append(y[drawn][own].mean())
        again.append(values[1] - values[0])
    assert np.std(again) == pytest.approx(fixed, rel=0.08)


def test_the_audit_gives_the_same_figures() -> None:
    """The whole hold-out tests the authors' lasso, which was fitted to other patients; the paper names the pair."""
    table = eh.Table(load_hospital("holdout", backend="polars"), id="row", groups="race")
    result = eh.improvability(
        table,
        status_quo="risk_score_t",
        outcome="gagne_sum_t",
        utility="calibration",
        capacity=0.03,
        candidates={"lasso": {"column": "gagne_sum_t_hat"}},
        test={
            "worst_pair": ("Black", "White"),
            "alpha": 0.05,
            "margins": [0, 0.4, 0.5, 0.725, 0.9],
        },
        resamples=40_000,
    )
    values = {(r.model, r.group): r.value for r in result.values}
    assert values["status_quo", "Black"] == pytest.approx(6.562, abs=5e-4)
    assert values["lasso", "White"] == pytest.approx(7.458, abs=5e-4)
    p = {(d.test, d.margin): d.p_median for d in result.rows("decisions", metric="improvable_fairness")}
    for delta, expected in ((0.0, 0.017), (0.4, 0.046), (0.5, 0.065)):
        assert p["signed", delta] == pytest.approx(expected, abs=0.006)
    for delta, expected in ((0.0, 0.074), (0.5, 0.048), (0.725, 0.024), (0.9, 0.011)):
        assert p["published", delta] == pytest.approx(expected, abs=0.006)
    largest = {margin.test: margin.value for margin in result.rows("margins", metric="improvable_fairness")}
    assert largest["signed"] == pytest.approx(0.41, abs=0.03)
    assert largest["published"] is None  # it rejects large margins and not the margin of 0
