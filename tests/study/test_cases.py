"""Cases to critics: the numbers promised, coverage, and what cannot be done."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.errors import ConfigError, DataError
from evenhand.study import assign_cases


def cases(n: int = 1_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "case": [f"c{i}" for i in range(n)],
            "label": rng.choice(["low", "medium", "high"], n, p=[0.6, 0.3, 0.1]),
            "race": rng.choice(["White", "Black", "Other"], n, p=[0.5, 0.4, 0.1]),
            "sex": rng.choice(["F", "M"], n),
        }
    )


@pytest.mark.parametrize("design", ["subsets", "spread"])
def test_the_numbers_of_dressel_and_farid(design: Any) -> None:
    """1,000 defendants, 20 subsets of 50, 20 people a case: 400 critics."""
    data = cases()
    made = assign_cases(data, id="case", decision="label", groups="race", design=design, seed=1)
    assert len(made.critics) == 400
    assert all(len(seen) == len(set(seen)) == 50 for seen in made.critics)
    assert set(Counter(case for seen in made.critics for case in seen).values()) == {20}
    frame = made.to_frame("pandas").merge(data, on="case")
    assert len(frame) == 20_000
    for column, groups in (("race", 3), ("label", 3)):
        assert (frame.groupby("critic")[column].nunique() == groups).all()
    per_race = frame.groupby(["critic", "race"]).size().unstack()
    assert ((per_race.max() - per_race.min()) <= 1).all()
    expected = 20 if design == "subsets" else 400
    assert len({frozenset(seen) for seen in made.critics}) == expected
    assert len(set(made.subsets)) == expected


def test_coverage_is_what_the_design_says() -> None:
    data = cases()
    made = assign_cases(data, id="case", decision="label", groups=["race", "sex"], per_case=2)
    frame = made.to_frame("pandas").merge(data, on="case")
    frame["group"] = frame.race + " × " + frame.sex
    for record in made.coverage:
        column = "group" if record.what == "group" else "label"
        held = frame[frame[column] == record.name].groupby("critic").size().reindex(frame.critic.unique(), fill_value=0)
        assert (record.fewest, record.most) == (held.min(), held.max())
        assert record.cases == frame[frame[column] == record.name].case.nunique()


def test_what_does_not_fill_a_subset_is_left_out_evenly() -> None:
    made = assign_cases(cases(1_030), id="case", decision="label", groups="race", per_case=3)
    assert tuple(map(str, made.notes)) == ("30 cases of 1,030 were left out, evenly over groups and labels.",)
    assert len({case for seen in made.critics for case in seen}) == 1_000
    some = assign_cases(cases(), id="case", decision="label", groups="race", cases=420, per_critic=40, per_case=1)
    assert len(some.critics) == 10
    shares = {record.name: record.cases / 400 for record in some.coverage if record.what == "group"}
    assert shares["White"] == pytest.approx(0.5, abs=0.05)


def test_the_seed_decides() -> None:
    one, two, other = (
        assign_cases(cases(), id="case", decision="label", groups="race", seed=seed) for seed in (1, 1, 2)
    )
    assert one.critics == two.critics
    assert one.critics != other.critics
    orders = {seen for seen, subset in zip(one.critics, one.subsets, strict=True) if subset == 1}
    assert len(orders) == 20  # every critic has an order of their own


def test_a_rare_group_is_refused_or_allowed() -> None:
    data = cases()
    data.loc[data.index[:5], "race"] = "Rare"
    with pytest.raises(DataError, match="group 'Rare' has 5 cases, too few for 20 subsets"):
        assign_cases(data, id="case", decision="label", groups="race")
    made = assign_cases(data, id="case", decision="label", groups="race", cover=False)
    rare = next(record for record in made.coverage if record.name == "Rare")
    assert (rare.fewest, rare.most) == (0, 1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"decision": "lable"}, ConfigError, "did you mean 'label'"),
        ({"per_critic": 2_000}, ConfigError, "only 1,000 cases"),
        ({"cases": 2_000}, ConfigError, "asks for 2,000; there are 1,000"),
        ({"per_crtic": 5}, ConfigError, "did you mean 'per_critic'"),
        ({"id": "sex"}, DataError, "names a case more than once"),
    ],
)
def test_what_cannot_be_is_told(change: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        assign_cases(cases(), **{"id": "case", "decision": "label", "groups": "race", **change})


def test_gaps_are_told_and_missing_groups_are_a_group() -> None:
    data = cases()
    data.loc[data.index[:4], "label"] = None
    with pytest.raises(DataError, match="'label' of the cases is empty in 4 rows"):
        assign_cases(data, id="case", decision="label")
    data = cases()
    data.loc[data.index[:60], "race"] = None
    made = assign_cases(data, id="case", decision="label", groups="race")
    assert "(missing)" in {record.name for record in made.coverage}
