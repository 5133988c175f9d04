"""The synthetic kidney offers: their shape, their story, and the known truth that they sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import multivariate_normal

from evenhand.datasets import kidney_offers_truth, kidneys, make_kidney_offers
from evenhand.errors import ConfigError
from evenhand.stats.feedback import Feedback, FeedbackMetric, rates

GROUPS = {
    "donor_race": ["White", "Black", "Hispanic", "Asian"],
    "donor_age": ["18-39", "40-59", "60+"],
    "patient_race": ["White", "Black", "Hispanic", "Asian"],
    "patient_sex": ["Female", "Male"],
    "stakeholder": ["Patient", "Donor", "Family", "Surgeon"],
}
COLUMNS = [
    "offer",
    "donor_race",
    "donor_age",
    "patient_race",
    "patient_sex",
    "quality",
    "critic",
    "stakeholder",
    "disagrees",
    "answer",
    "critic_quality",
]


BY_CLASS: tuple[FeedbackMetric, ...] = (
    "statistical_parity",
    "calibration",
    "equal_opportunity",
    "predictive_equality",
    "overall_misclassification",
)


@pytest.fixture(scope="module")
def large() -> Any:
    """So many offers and critics that groups of them differ from the truth by little."""
    return make_kidney_offers(100_000, 20_000, seed=1, cases_per_critic=20, backend="pandas")


def test_columns_and_values() -> None:
    table = make_kidney_offers(500, 120, backend="pandas")
    assert list(table.columns) == COLUMNS
    assert len(table) == 120 * 25
    assert not table.isna().to_numpy().any()
    for column, names in GROUPS.items():
        assert set(table[column]) == set(names)
    assert set(table["quality"]) == set(table["critic_quality"]) == {1, 2, 3, 4}
    assert set(table["disagrees"]) == {0, 1}


def test_each_critic_sees_a_case_once_and_each_case_about_as_many_critics() -> None:
    table = make_kidney_offers(90, 40, cases_per_critic=20, backend="pandas")
    assert not table.duplicated(["critic", "offer"]).any()
    assert (table.groupby("critic").size() == 20).all()
    seen = table.groupby("offer").size()
    assert len(seen) == 90
    assert seen.max() - seen.min() <= 1


def test_answers_follow_from_the_two_classes(large: Any) -> None:
    above = large["quality"] > large["critic_quality"]
    below = large["quality"] < large["critic_quality"]
    assert ((large["answer"] == "too_high") == above).all()
    assert ((large["answer"] == "too_low") == below).all()
    assert ((large["disagrees"] == 1) == (above | below)).all()


def test_what_belongs_to_the_offer_and_what_to_the_critic(large: Any) -> None:
    by_offer = large.groupby("offer")[["donor_race", "donor_age", "patient_race", "patient_sex", "quality"]]
    assert (by_offer.nunique() == 1).to_numpy().all()
    assert (large.groupby("critic")["stakeholder"].nunique() == 1).all()


@pytest.mark.parametrize("stakeholder", ["all", *GROUPS["stakeholder"]])
def test_the_truth_is_what_large_tables_show(large: Any, stakeholder: str) -> None:
    """All six notions by every grouping, within four standard errors of the cases' number."""
    truth = kidney_offers_truth()[stakeholder]
    rows = large if stakeholder == "all" else large[large["stakeholder"] == stakeholder]
    for grouping in ("donor_race", "donor_age", "patient_race", "patient_sex"):
        for group, part in rows.groupby(grouping):
            joint = pd.crosstab(part["quality"], part["critic_quality"]).to_numpy()
            smallest = part.drop_duplicates("offer").groupby("quality").size().min()
            slack = 4 * 0.5 / np.sqrt(smallest) + 0.01  # and a little for the natures of the critics
            for notion in BY_CLASS:
                found = rates(joint, Feedback(4, "label"), notion).lower
                expected = [truth[grouping][group][f"{notion}_{k}"] for k in range(1, 5)]
                np.testing.assert_allclose(found, expected, atol=slack, err_msg=f"{grouping} {group} {notion}")
            accuracy = float((part["quality"] == part["critic_quality"]).mean())
            assert accuracy == pytest.approx(truth[grouping][group]["accuracy_equality"], abs=slack)


def test_the_truth_by_another_integral() -> None:
    """Both views are jointly normal in a cell: rectangles of a bivariate normal, added up over the cells."""
    cells = kidneys._cells()
    who = kidneys._STAKEHOLDERS["Family"]
    kind = list(kidneys._STAKEHOLDERS).index("Family")
    views = 1.0 + kidneys._SYSTEM_NOISE**2, 1.0 + who.noise**2 + kidneys._NATURE_SD**2 + kidneys._IMPRESSION_SD**2
    covariance = [[views[0], 1.0], [1.0, views[1]]]
    same = total = 0.0
    for cell in np.flatnonzero(cells.codes[0] == 1):  # Black donors
        bias = float(kidneys._bias(np.array([cell]), np.array([kind]))[0])
        mean = [cells.quality[cell] - cells.marked_down[cell], cells.quality[cell] + bias]
        top = multivariate_normal(mean, covariance).cdf([9.0, 9.0], lower_limit=[kidneys._CUTS[-1]] * 2)
        same += cells.share[cell] * float(top)
        one_view = multivariate_normal(mean[1], views[1])
        total += cells.share[cell] * (1.0 - float(one_view.cdf(kidneys._CUTS[-1])))
    found = kidney_offers_truth()["Family"]["donor_race"]["Black"]["equal_opportunity_4"]
    assert found == pytest.approx(same / total, abs=1e-5)


def test_the_truth_is_coherent() -> None:
    truth = kidney_offers_truth()
    assert set(truth) == {*GROUPS["stakeholder"], "all"}
    for groupings in truth.values():
        assert set(groupings) == {"overall", "donor_race", "donor_age", "patient_race", "patient_sex"}
        for groups in groupings.values():
            assert sum(figures["share"] for figures in groups.values()) == pytest.approx(1.0, abs=1e-12)
            for figures in groups.values():
                assert sum(figures[f"statistical_parity_{k}"] for k in range(1, 5)) == pytest.approx(1.0)
                for k in range(1, 5):
                    both = figures[f"equal_opportunity_{k}"] + figures[f"overall_misclassification_{k}"]
                    assert both == pytest.approx(1.0)


def test_the_story() -> None:
    """The system marks Black donors' kidneys down; patients object, surgeons hardly do."""
    truth = kidney_offers_truth()
    gaps = {
        who: truth[who]["donor_race"]["White"]["equal_opportunity_4"]
        - truth[who]["donor_race"]["Black"]["equal_opportunity_4"]
        for who in GROUPS["stakeholder"]
    }
    assert gaps["Surgeon"] < 0.1 < 0.2 < min(gaps["Patient"], gaps["Family"]) < gaps["Donor"]
    agreed = {who: truth[who]["overall"]["all"]["accuracy_equality"] for who in GROUPS["stakeholder"]}
    assert max(agreed, key=lambda who: agreed[who]) == "Surgeon"


def test_seeds_and_backends() -> None:
    table = make_kidney_offers(60, 20, seed=4, backend="polars")
    assert isinstance(table, pl.DataFrame)
    again, other = (make_kidney_offers(60, 20, seed=seed, backend="polars") for seed in (4, 5))
    assert isinstance(again, pl.DataFrame)
    assert isinstance(other, pl.DataFrame)
    assert table.equals(again)
    assert not table.equals(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_cases": 0}, "`n_cases` must be an integer of at least 1; got 0"),
        ({"n_critics": 2.5}, "`n_critics` must be an integer of at least 1; got 2.5"),
        ({"seed": -1}, "`seed` must be an integer of at least 0; got -1"),
        ({"cases_per_critic": 0}, "`cases_per_critic` must be an integer of at least 1"),
        ({"n_cases": 10}, "`cases_per_critic` must be at most the 10 of `n_cases`; got 25"),
    ],
)
def test_bad_numbers_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_kidney_offers(**options)
