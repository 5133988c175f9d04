"""Classes: numbers against scikit-learn and SciPy, laws, small groups, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu
from sklearn.metrics import precision_recall_fscore_support

import evenhand as eh
from evenhand.audits.classes import ClassesResult
from evenhand.audits.classes.estimate import DominancePair
from evenhand.errors import EvenhandError
from evenhand.stats.two_rates import compare_rates

ORDER = ["reject", "invite", "hire"]


def applicants(*, people: int = 600, gap: float = 0.4, groups: int = 2, seed: int = 1) -> pd.DataFrame:
    """Return applicants in three classes, decided and right; the first group is decided better."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, people)
    fit = rng.normal(0.0, 1.0, people)
    names = np.array(["men", "women", "others", "unknown"])
    classes = np.array(ORDER)
    decided = np.digitize(fit + gap * (group == 0) + rng.normal(0.0, 0.4, people), [-0.2, 0.9])
    return pd.DataFrame(
        {"sex": names[group], "answer": classes[decided], "right": classes[np.digitize(fit, [-0.2, 0.9])]}
    )


def classes(data: pd.DataFrame, roles: Any = None, **settings: Any) -> ClassesResult:
    table = eh.Table(data, **{"groups": "sex", **(roles or {})})
    return eh.classes(table, **{"decision": "answer", "truth": "right", "order": ORDER, **settings})


def test_shares_equal_those_of_scikit_learn() -> None:
    data = applicants()
    result = classes(data)
    for sex, group in data.groupby("sex"):
        precision, recall, *_ = precision_recall_fscore_support(group["right"], group["answer"], labels=ORDER)
        for label, own_precision, own_recall in zip(ORDER, precision, recall, strict=True):
            found = {
                metric: result.get("values", metric=metric, group=sex, label=label).value
                for metric in ("class_rate", "class_recall", "class_precision", "class_false_rate")
            }
            others = group[group["right"] != label]
            assert found["class_rate"] == pytest.approx((group["answer"] == label).mean())
            assert found["class_precision"] == pytest.approx(own_precision)
            assert found["class_recall"] == pytest.approx(own_recall)
            assert found["class_false_rate"] == pytest.approx((others["answer"] == label).mean())


def test_gaps_are_the_exact_comparison_of_rates_that_parity_makes() -> None:
    data = applicants()
    gap = classes(data).get("gaps", metric="class_rate", label="hire", against="worst_pair")
    decisions = eh.Table(data, groups="sex", predictions={"m": {"column": "answer", "selected": "hire"}})
    parity = eh.parity(decisions, metrics=["selection_rate"]).get("gaps", against="worst_pair", kind="difference")
    assert (gap.value, gap.low, gap.high, gap.p_value) == pytest.approx(
        (parity.value, parity.low, parity.high, parity.p_value)
    )


def test_dominance_is_cliffs_delta() -> None:
    data = applicants()
    place = data["answer"].map({name: index for index, name in enumerate(ORDER)})
    men, women = place[data["sex"] == "men"], place[data["sex"] == "women"]
    delta = 2 * mannwhitneyu(men, women).statistic / (len(men) * len(women)) - 1
    gap = classes(data).get("gaps", metric="dominance", against="worst_pair")
    assert (gap.group, gap.worse_off, gap.label) == ("men", "women", None)
    assert gap.value == pytest.approx(delta)
    assert gap.p_value == pytest.approx(mannwhitneyu(men, women).pvalue, rel=0.3)


def test_dominance_excludes_zero_exactly_where_its_p_value_is_small() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        first, second = rng.multinomial(25, [0.3, 0.4, 0.3]), rng.multinomial(40, [0.45, 0.35, 0.2])
        pair = DominancePair(first, second)
        low, high = pair.limits(0.9)
        assert (low > 0 or high < 0) == (pair.p_value < 0.1)
        mirrored = DominancePair(second, first)
        assert mirrored.limits(0.9) == pytest.approx((-high, -low))


def test_classes_that_do_not_overlap_have_an_interval_up_to_1() -> None:
    data = pd.DataFrame({"sex": ["m"] * 30 + ["f"] * 30, "answer": ["hire"] * 30 + ["reject"] * 30})
    gap = classes(data, truth=None).get("gaps", metric="dominance", against="worst_pair")
    assert (gap.value, gap.high) == (1.0, 1.0)
    assert 0.5 < gap.low < 1.0


def test_two_classes_are_one_question_from_both_sides() -> None:
    data = applicants().replace({"answer": {"invite": "hire"}, "right": {"invite": "hire"}})
    result = classes(data, order=["reject", "hire"])
    hire, reject = (
        result.get("gaps", metric="class_rate", label=one, against="worst_pair") for one in ("hire", "reject")
    )
    assert hire.value == pytest.approx(reject.value)
    assert hire.p_value == pytest.approx(reject.p_value)
    assert (hire.worse_off, reject.worse_off) == ("women", "women")


def test_joint_limits_hold_for_all_classes_and_groups_together() -> None:
    result = classes(applicants(groups=3))
    gap = result.get("gaps", metric="class_rate", label="hire", against="reference", group="women")
    yes = {
        sex: round(result.get("values", metric="class_rate", label="hire", group=sex).value or 0)
        for sex in (gap.group, gap.reference)
    }
    assert len(yes) == 2
    assert gap.joint_low < gap.low
    value = result.get("values", metric="class_rate", label="hire", group="women")
    assert value.joint_low < value.low
    people = {sex: result.get("values", metric="class_rate", label="hire", group=sex) for sex in yes}
    counted = [(round((record.value or 0) * record.n), record.n) for record in people.values()]
    low, high = compare_rates(*counted[0], *counted[1]).limits(1 - 0.05 / (3 * 2))
    assert (gap.joint_low, gap.joint_high) == pytest.approx((float(low), float(high)))


def test_names_and_order_of_rows_do_not_matter() -> None:
    data = applicants(groups=3)
    renamed = data.sample(frac=1, random_state=2).replace({"sex": {"men": "z", "women": "a", "others": "k"}})
    for metric in ("class_recall", "dominance"):
        old, new = (classes(one).rows("gaps", metric=metric, against="worst_pair")[-1] for one in (data, renamed))
        assert (new.value, new.low, new.high, new.p_value) == pytest.approx((old.value, old.low, old.high, old.p_value))


def test_without_an_order_nobody_is_worse_off() -> None:
    result = classes(applicants(), order=None)
    assert {gap.worse_off for gap in result.gaps} == {None}
    assert not result.rows("gaps", metric="dominance")
    assert "classes.no_order" in {note.id for note in result.notes}


def test_a_threshold_may_name_a_class() -> None:
    result = classes(
        applicants(gap=0.0, people=4_000), thresholds=[{"metric": "class_rate", "max": 0.1, "label": "hire"}]
    )
    judged = [finding for finding in result.findings if finding.limit is not None]
    assert [(finding.coordinates["label"], finding.verdict) for finding in judged] == [("hire", "meets")]


def test_rows_without_a_class_are_refused_or_left_out() -> None:
    data = applicants()
    data.loc[:2, "right"] = None
    with pytest.raises(EvenhandError, match="a class is missing in 3 rows"):
        classes(data)
    assert classes(data, {"missing": "drop"}).left_out[0].n == 3


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"decision": "answers"}, "`decision` is 'answers', which .*did you mean 'answer'"),
    ({}, {"order": ["reject", "hire"]}, "the class 'invite' is not in `order`"),
    ({}, {"order": ["reject"]}, "`order` must be two or more different classes"),
    ({}, {"metrics": ["class_rates"]}, "there is no metric 'class_rates'; did you mean 'class_rate'"),
    ({}, {"truth": None, "metrics": ["class_recall"]}, "'class_recall' needs `truth` or `order`"),
    ({"groups": None}, {}, "name their columns as `groups`"),
    ({"weight": "w"}, {}, "counts people; leave the survey weight 'w' out"),
]


@pytest.mark.parametrize(("roles", "settings", "message"), WRONG)
def test_wrong_settings_are_answered_in_a_sentence(roles: Any, settings: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        classes(applicants().assign(w=1.0), roles, **settings)
