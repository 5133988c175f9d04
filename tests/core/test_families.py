"""Claims of a run hold together: Holm over findings, Holm over verdicts, the false discovery rate over tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.estimates import Estimate
from evenhand.core.families import ClaimCheck, Family, adjust_tables, check_claims, family_sentences
from evenhand.core.findings import Claim
from evenhand.core.records import Gap, Value
from evenhand.core.thresholds import Threshold
from evenhand.messages import Message, language
from evenhand.stats.multiplicity import adjusted_in_tables, adjusted_p

LIMIT = Threshold(metric="tpr", max=0.1, kind="difference", against="worst_pair", of="gap")


def gap(p: float | None = None, value: float = 0.2, low: float | None = 0.1, high: float | None = 0.3) -> Gap:
    return Gap(
        metric="tpr",
        kind="difference",
        against="worst_pair",
        group="a",
        reference="b",
        n=100,
        value=value,
        low=low,
        high=high,
        p_value=p,
        worse_off="b",
    )


def claim(record: Gap, limits: Callable[[float], Gap] | None = None, **more: Any) -> Claim:
    told = Estimate(record, limits)
    return Claim(estimates=(told,), sentence_id="two_values", arguments={}, headline=True, **more)


def judged(p_beyond: float, audit: str = "parity") -> ClaimCheck:
    """Return a question whose limits lie beyond the limit up to the confidence 1 - p_beyond, as nested ones do."""

    def at(confidence: float) -> Gap:
        return gap(low=0.11 if 1 - confidence >= p_beyond else 0.05)

    return ClaimCheck(audit, claim(at(0.95), at), LIMIT, 0.05)


def asked(p: float | None, audit: str = "parity") -> ClaimCheck:
    return ClaimCheck(audit, claim(gap(p)), None, 0.05)


def verdicts(questions: Sequence[ClaimCheck]) -> list[str]:
    return [said.verdict for said in check_claims(questions)]


P = st.floats(1e-6, 1)


@given(st.lists(P, min_size=1, max_size=8))
def test_does_not_meet_is_said_where_holm_over_all_verdicts_allows_it(p: list[float]) -> None:
    if any(abs(q * k - 0.05) < 1e-9 for q in p for k in range(1, 9)):
        return  # on the boundary rounding decides
    broken = [verdict == "does_not_meet" for verdict in verdicts([judged(q) for q in p])]
    assert broken == [bool(adjusted <= 0.05) for adjusted in adjusted_p(p)]


@given(st.lists(P, min_size=1, max_size=5), P, st.lists(P, max_size=4))
def test_what_is_added_to_a_run(p: list[float], more: float, others: list[float]) -> None:
    """Findings without a threshold change no verdict, and one more threshold can only take a "does not meet" away."""
    before = check_claims([judged(q) for q in p])
    assert check_claims([*(asked(q, "effort") for q in others), *(judged(q) for q in p)])[len(others) :] == before
    for old, new in zip(before, verdicts([*(judged(q) for q in p), judged(more)]), strict=False):
        assert new == old.verdict or (old.verdict, new) == ("does_not_meet", "not_confirmed")


@given(st.permutations([0.001, 0.004, 0.02, 0.3, None]))
def test_the_order_of_a_run_does_not_matter(p: list[float | None]) -> None:
    def said(order: Sequence[float | None]) -> dict[float | None, object]:
        both = check_claims([*(asked(q) for q in order), *(judged(q or 1.0) for q in order)])
        answers = [replace(one, record=gap()) for one in both]
        return dict(zip(order, zip(answers[: len(order)], answers[len(order) :], strict=True), strict=True))

    assert said(p) == said([0.001, 0.004, 0.02, 0.3, None])


def test_a_finding_is_clear_where_holm_over_all_tested_ones_allows_it() -> None:
    said = check_claims([asked(0.03), asked(None), asked(0.04, "effort"), judged(0.5)])
    assert [one.significance for one in said] == ["not_significant", "untested", "not_significant", None]
    assert [one.p_adjusted for one in said] == [pytest.approx(0.06), None, pytest.approx(0.06), None]
    assert said[0].family == said[2].family == Family(2, "tested_findings", ("parity", "effort"))
    assert said[0].family.message.text == "2 tested findings of parity and effort"
    assert [one.significance for one in check_claims([asked(0.01), asked(0.03)])] == ["directed", "directed"]


def test_findings_of_audits_with_different_levels_keep_the_strictest() -> None:
    looser = ClaimCheck("improvability", claim(gap(0.04)), None, 0.1)
    assert [one.significance for one in check_claims([looser])] == ["directed"]
    assert [one.significance for one in check_claims([looser, asked(0.9)])] == ["not_significant", "not_significant"]


def test_limits_at_one_level_break_a_limit_only_alone() -> None:
    alone = ClaimCheck("parity", claim(gap(low=0.11)), LIMIT, 0.05)
    assert verdicts([alone]) == ["does_not_meet"]
    assert verdicts([alone, judged(1.0)]) == ["not_confirmed", "insufficient_evidence"]
    assert verdicts([alone, judged(0.001)]) == ["does_not_meet", "does_not_meet"]  # Holm's last step


def test_what_cannot_be_judged_does_not_count() -> None:
    unknown = ClaimCheck("parity", claim(gap(low=None, high=None)), LIMIT, 0.05)
    withheld = ClaimCheck("parity", claim(gap(low=0.2), withheld=Message("too few")), LIMIT, 0.05)
    said = check_claims([unknown, withheld, judged(0.05)])
    assert [one.verdict for one in said] == ["insufficient_evidence", "insufficient_evidence", "does_not_meet"]
    assert said[2].verdict_family == Family(1, "verdicts", ("parity",))
    assert said[2].verdict_family.message.text == "1 verdict of parity"


def with_limit(p: float | None, value: float, **more: Any) -> ClaimCheck:
    return ClaimCheck("parity", claim(gap(p, value=value, low=value - 0.01, high=value + 0.01), **more), LIMIT, 0.05)


def test_a_limit_does_not_remove_the_claim_of_a_difference() -> None:
    met, also_met = check_claims([with_limit(0.001, 0.05), with_limit(0.6, 0.04)])
    assert (met.verdict, met.significance, met.p_adjusted) == ("meets", "directed", 0.002)
    assert (also_met.verdict, also_met.significance, also_met.p_adjusted) == ("meets", "not_significant", 0.6)
    assert met.family == Family(2, "tested_findings", ("parity",))
    assert met.verdict_family == Family(2, "verdicts", ("parity",))
    (untested,) = check_claims([with_limit(None, 0.05)])
    assert (untested.verdict, untested.significance) == ("meets", None)


def test_a_test_that_two_checks_state_counts_once() -> None:
    ratio = replace(gap(0.03), kind="ratio", value=0.5, low=0.4, high=0.6)
    both = [ClaimCheck("parity", claim(one, test_key="tpr by race"), LIMIT, 0.05) for one in (gap(0.03), ratio)]
    assert [(one.p_adjusted, one.family) for one in check_claims(both)] == [
        (0.03, Family(1, "tested_findings", ("parity",)))
    ] * 2


def of_several(p: float, named_to: float, pairs: int = 3) -> ClaimCheck:
    """Return a test of several groups, whose limits name a pair down to a level."""

    def at(confidence: float) -> Gap:
        return replace(gap(p), worse_off="b" if 1 - confidence >= named_to - 1e-12 else None)

    return ClaimCheck("parity", claim(at(0.95), at, pairs=pairs, named_by="limits"), None, 0.05)


def test_a_pair_is_named_at_limits_adjusted_for_all_tests() -> None:
    named, unnamed, two = check_claims([of_several(1e-6, 0.0166), of_several(1e-6, 0.03), asked(0.9)])
    assert (named.significance, unnamed.significance, two.significance) == (
        "directed",
        "significant",
        "not_significant",
    )
    closed = check_claims([of_several(1e-6, 0.0166), of_several(1e-6, 0.025), asked(1e-6)])
    assert [one.significance for one in closed] == ["directed"] * 3  # a test of two groups leaves its share
    assert [one.significance for one in check_claims([of_several(1e-6, 0.05)])] == ["directed"]


def test_a_test_of_several_groups_leaves_no_share_to_others() -> None:
    """Others of its pairs may be equal: 0.05 / 2 stays the level of each."""
    assert [q.significance for q in check_claims([of_several(1e-6, 1e-6), asked(0.03)])] == ["directed", "significant"]


def test_a_verdict_that_is_withheld_tests_nothing() -> None:
    withheld, tested = check_claims([with_limit(0.001, 0.05, withheld=Message("too few")), with_limit(0.03, 0.05)])
    assert (withheld.significance, withheld.p_adjusted) == (None, None)
    assert (tested.significance, tested.p_adjusted) == ("directed", 0.03)


def test_meets_is_held_for_each_alone() -> None:
    meeting = ClaimCheck("parity", claim(gap(value=0.01, low=0.0, high=0.09)), LIMIT, 0.05)
    assert set(verdicts([meeting] * 50)) == {"meets"}


def test_worse_off_is_said_by_the_false_discovery_rate_over_all_tables() -> None:
    tables = [[gap(0.001), gap(0.04)], [gap(0.04), gap(0.9), gap(None)], []]
    first, second, third = adjust_tables(tables, [0.05, 0.05, 0.05])
    expected = adjusted_in_tables([[0.001, 0.04], [0.04, 0.9], []])
    assert [row.p_adjusted for row in first] == pytest.approx(list(expected[0]))
    assert [row.worse_off for row in (*first, *second[:2])] == ["b", None, None, None]
    assert third == ()
    own = replace(gap(0.04), p_adjusted=0.01)
    assert adjust_tables([[own]], [0.05])[0] == (own,)  # an audit's own family


def test_a_gap_that_a_finding_states_is_no_part_of_the_tables() -> None:
    own = replace(gap(0.001), p_adjusted=0.3, worse_off=None)
    (row, other), _ = adjust_tables([[gap(0.001), gap(0.04)], [gap(0.04)]], [0.05, 0.05], [[own, None], [None]])
    assert row == own
    assert other.p_adjusted == pytest.approx(adjusted_in_tables([[0.04], [0.04]])[0][0])


def test_a_family_is_said_in_one_sentence() -> None:
    assert [said.text for said in family_sentences([], [gap(None)], [0.05])] == [
        "Of the groups marked worse off in tables but in no finding, at most 5% are expected to be marked wrongly "
        "(Benjamini and Bogomolov)."
    ]


@pytest.mark.parametrize(
    ("family", "said"),
    [
        (
            Family(1, "verdicts", ("parity",)),
            "There is 1 verdict of parity: the chance that a “does not meet” is wrong is at most 5%.",
        ),
        (
            Family(1, "tested_findings", ("parity",)),
            "There is 1 tested finding of parity: the chance that it claims a difference "
            "that is not there is at most 5%.",
        ),
    ],
)
def test_one_alone_is_not_called_a_family(family: Family, said: str) -> None:
    one = SimpleNamespace(family=family.message, verdict_family=None)
    (told,) = family_sentences([one], [], [0.05])  # type: ignore[list-item]
    assert told.text == said
    assert "5\u00a0%" in language("de").render(told)
    assert language("de").translates(told)


def test_a_family_of_none_is_not_told() -> None:
    none = SimpleNamespace(family=None, verdict_family=Family(0, "verdicts", ("parity",)).message)
    assert list(family_sentences([none], [], [0.05])) == []  # type: ignore[list-item]


def test_an_adjusted_p_value_at_the_level_is_clear() -> None:
    assert [said.significance for said in check_claims([asked(0.05)])] == ["directed"]
    assert [said.significance for said in check_claims([asked(0.0501), asked(None)])] == ["not_significant", "untested"]


def test_a_broken_limit_of_a_value_is_clear() -> None:
    limit = Threshold(metric="tpr", min=0.8, of="value")
    record = Value(metric="tpr", n=9, value=0.5, low=0.4, high=0.6)
    told = Claim(estimates=(Estimate(record),), sentence_id="value", arguments={}, headline=True)
    (said,) = check_claims([ClaimCheck("parity", told, limit, 0.05)])
    assert (said.verdict, said.significance) == ("does_not_meet", "significant")
