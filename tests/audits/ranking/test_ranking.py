"""Rankings: numbers against counting by hand, ties, laws, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

import evenhand as eh
from evenhand.audits.ranking import RankingResult
from evenhand.audits.ranking.ranks import RankedRows
from evenhand.errors import EvenhandError
from evenhand.stats.types import FloatArray


def candidates(*, jobs: int = 40, advantage: float = 0.1, seed: int = 2, digits: int = 2) -> pd.DataFrame:
    """Return scored candidates for jobs; men score higher by the advantage, and scores have ties."""
    rng = np.random.default_rng(seed)
    rows = []
    for job in range(jobs):
        for _ in range(int(rng.integers(6, 30))):
            sex = str(rng.choice(["men", "women"], p=[0.6, 0.4]))
            fit = rng.random()
            score = min(
                max(round(float(0.7 * fit + 0.2 * rng.random() + advantage * (sex == "men")), digits), 0.0), 1.0
            )
            rows.append((f"job {job}", sex, score, int(fit > 0.6)))
    return pd.DataFrame(rows, columns=["job", "sex", "score", "good"])


def ranking(data: pd.DataFrame, roles: Any = None, **settings: Any) -> RankingResult:
    table = eh.Table(
        data, **{"groups": "sex", "outcome": "good", "predictions": "score", "favourable": "selected", **(roles or {})}
    )
    return eh.ranking(table, **{"query": "job", "size": 5, **settings})


def by_hand(data: pd.DataFrame, size: int) -> pd.DataFrame:
    """Return each row's place on the shortlist, without ties, and its exposure."""
    place = data.groupby("job")["score"].rank(ascending=False, method="first")
    length = data.groupby("job")["score"].transform("size")
    attention = 1 / np.log2(1 + place)
    mean = attention.groupby(data["job"]).transform("mean")
    return data.assign(listed=(place <= size).where(length > size), exposure=attention / mean)


def test_values_are_means_over_lists() -> None:
    data = candidates(digits=9)
    result, expected = ranking(data), by_hand(data, 5)
    for metric, column in (("shortlist_rate", "listed"), ("exposure", "exposure")):
        of_lists = expected.assign(value=expected[column].astype(float)).pivot_table("value", "job", "sex")
        for sex in ("men", "women"):
            assert result.get("values", metric=metric, group=sex).value == pytest.approx(of_lists[sex].mean())
        gap = result.get("gaps", metric=metric, against="worst_pair")
        assert gap.value == pytest.approx((of_lists["men"] - of_lists["women"]).mean())
        assert (gap.group, gap.worse_off, gap.lists) == ("men", "women", len(of_lists.dropna()))


def test_pairwise_accuracy_is_the_auc_of_a_groups_positives() -> None:
    data = candidates()
    expected = []
    for _, job in data.groupby("job"):
        women = job[(job["good"] == 1) & (job["sex"] == "women")]
        negative = job[job["good"] == 0]
        if len(women) and len(negative):
            both = pd.concat([women, negative])
            expected.append(roc_auc_score(both["good"], both["score"]))
    value = ranking(data).get("values", metric="pairwise_accuracy", group="women")
    assert value.lists == len(expected)
    assert value.value == pytest.approx(np.mean(expected))


def test_tied_candidates_share_places() -> None:
    score = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    ranked = RankedRows.build(np.zeros(5, dtype=np.int64), score, np.zeros(5, dtype=np.bool_))
    assert ranked.shortlisted(2).tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 0])
    attention = 1 / np.log2(1 + np.arange(1, 6))
    assert ranked.exposure()[1] == pytest.approx(attention[1:4].mean() / attention.mean())
    assert ranked.exposure().mean() == pytest.approx(1.0)


def test_every_list_fills_its_shortlist() -> None:
    data = candidates()
    ranked = RankedRows.build(pd.factorize(data["job"])[0], data["score"].to_numpy(), data["good"].to_numpy() == 1)
    for size in (1, 3, 5):
        listed = np.bincount(ranked.query, weights=ranked.shortlisted(size))
        assert listed[~np.isnan(listed)] == pytest.approx(size)


@pytest.mark.parametrize("transform", [lambda s: s**3, lambda s: 0.5 * s + 0.1, lambda s: rankdata(s) / len(s)])
def test_only_the_order_of_scores_matters(transform: Any) -> None:
    data = candidates()
    one, other = ranking(data), ranking(data.assign(score=transform(data["score"].to_numpy())))
    assert [v.value for v in one.values] == pytest.approx([v.value for v in other.values])


def test_names_and_order_of_rows_do_not_matter() -> None:
    data = candidates()
    renamed = data.sample(frac=1, random_state=1).replace({"sex": {"men": "a", "women": "z"}})
    old = ranking(data).get("gaps", metric="exposure", against="worst_pair")
    new = ranking(renamed).get("gaps", metric="exposure", against="worst_pair")
    assert (new.value, new.low, new.high, new.p_value) == pytest.approx((old.value, old.low, old.high, old.p_value))


def test_a_risk_list_turns_the_side_that_is_worse_off() -> None:
    result = ranking(candidates(), {"favourable": "not_selected"})
    assert result.get("gaps", metric="shortlist_rate", against="worst_pair").worse_off == "men"
    assert result.get("gaps", metric="pairwise_accuracy", against="worst_pair").worse_off is None


def test_shortlists_of_every_size_have_a_band() -> None:
    result = ranking(candidates())
    records = result.rows("shortlists", group="women")
    assert [record.k for record in records] == [1, 2, 3, 4, 5]
    of_five = result.get("values", metric="shortlist_rate", group="women")
    assert records[-1].value == pytest.approx(of_five.value)
    assert records[-1].low < of_five.low
    assert records[-1].high > of_five.high


def test_short_lists_say_nothing_of_who_is_shortlisted() -> None:
    data = candidates()
    short = data.groupby("job")["score"].transform("size") <= 10
    result = ranking(data, size=10)
    assert result.get("values", metric="shortlist_rate", group="(overall)").lists == data[~short]["job"].nunique()
    notes = {note.id: note for note in result.notes}
    assert notes["ranking.short_lists"].args["n"] == data[short]["job"].nunique()


def test_groups_that_share_few_lists_are_not_compared() -> None:
    data = candidates()
    few = data[(data["sex"] == "men") | data["job"].isin([f"job {job}" for job in range(7)])]
    gap = ranking(few).get("gaps", metric="exposure", against="reference")
    assert gap.value is not None
    assert gap.p_value is None
    assert gap.status.args["why"].id == "ranking.few_lists"


def shortlisted_by_loop(scores: FloatArray, size: int) -> FloatArray:
    order = np.argsort(-scores, kind="stable")
    listed = np.zeros(len(scores))
    listed[order[:size]] = 1.0
    return listed


def test_a_million_rows_are_ranked_in_one_pass() -> None:
    rng = np.random.default_rng(0)
    query, score = rng.integers(0, 50_000, 1_000_000), rng.random(1_000_000)
    ranked = RankedRows.build(query, score, score > 0.5)
    one = np.flatnonzero(ranked.query == 17)
    expected = shortlisted_by_loop(score[ranked.order[one]], 3)
    assert ranked.shortlisted(3)[one].tolist() == expected.tolist()


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"query": "jobs"}, "jobs.*did you mean 'job'"),
    ({}, {"query": "one"}, "`query` 'one' has one value"),
    ({}, {"size": 0}, "`size`"),
    ({}, {"metrics": ["exposures"]}, "there is no metric 'exposures'; did you mean 'exposure'"),
    ({"outcome": None}, {"metrics": ["pairwise_accuracy"]}, "'pairwise_accuracy' cannot be computed"),
    ({"groups": None}, {}, "name their columns as `groups`"),
    ({"predictions": {"hired": {"column": "good", "kind": "decision"}}}, {}, "needs a model's scores"),
    ({"weight": "score"}, {}, "gives every list the same weight"),
]


@pytest.mark.parametrize(("roles", "settings", "message"), WRONG)
def test_wrong_settings_are_answered_in_a_sentence(roles: Any, settings: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        ranking(candidates().assign(one="only", score=lambda d: d["score"].clip(0.01, 1)), roles, **settings)
