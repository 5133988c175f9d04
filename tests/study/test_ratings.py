"""Ratings of reasons: which reasons, how far two raters agree, and who is paid by the rule that the study declares."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import evenhand as eh
from evenhand.core.records import OK
from evenhand.errors import ConfigError
from evenhand.messages.shared import say as shared
from evenhand.study.messages import say
from evenhand.study.ratings import (
    RatedReasons,
    Rating,
    Reason,
    rating_columns,
    reason_scores,
    reasons_to_rate,
)
from evenhand.study.server.bonuses import bonus_list, bonus_problem
from evenhand.study.settings import Rationales
from evenhand.study.spec import StudySpec
from evenhand.study.store import BonusRow
from evenhand.study.template import study_template

RATERS = ("ann", "ben")


def made(scores: dict[str, list[tuple[Any, Any]]]) -> tuple[list[Reason], list[Rating]]:
    """Return reasons and ratings from both raters' points of each person's reasons; a text is why it is left out."""
    reasons, ratings = [], []
    for who, given in scores.items():
        for number, both in enumerate(given):
            reasons.append(Reason(f"{who}-{number}", who, f"case:{number}", (), "because"))
            for rater, points in zip(RATERS, both, strict=True):
                if points is not None:
                    left_out = points if isinstance(points, str) else None
                    score = None if isinstance(points, str) else points
                    ratings.append(Rating(who, f"case:{number}", rater, score, left_out))
    return reasons, ratings


def rated(reasons: list[Reason], ratings: list[Rating], raters: tuple[str, ...] = RATERS) -> RatedReasons:
    return RatedReasons(reasons, ratings, Rationales(raters=raters))


SCORES: dict[str, list[tuple[Any, Any]]] = {
    "p1": [(4, 3), (1, 2)],
    "p2": [(4, 4), (4, "vague")],
    "p3": [(3, 3), (3, 3), (2, 2)],
    "p4": [("vague", "vague")],
    "p5": [],
}


class TestScores:
    @pytest.mark.parametrize(
        ("of", "values"),
        [
            ("mean", {"p1": 2.5, "p2": 4.0, "p3": 8 / 3}),
            ("best", {"p1": 3.5, "p2": 4.0, "p3": 3.0}),
            ("total", {"p1": 5.0, "p2": 4.0, "p3": 8.0}),
        ],
    )
    def test_a_reason_counts_where_both_gave_points(self, of: Any, values: dict[str, float]) -> None:
        reasons, ratings = made(SCORES)
        found = reason_scores(reasons, ratings, RATERS, list(SCORES), of=of, share=0.2)
        assert {one.participant: one.value for one in found if one.value is not None} == pytest.approx(values)
        assert [one.participant for one in found if one.bonus] == [max(values, key=lambda who: values[who])]
        assert {one.participant for one in found if one.status != OK} == {"p4", "p5"}

    def test_the_share_is_of_all_who_finished_and_ties_are_paid_together(self) -> None:
        reasons, ratings = made({"p1": [(4, 4)], "p2": [(4, 4)], "p3": [(1, 1)]})
        finished = [f"p{number}" for number in range(1, 11)]
        found = reason_scores(reasons, ratings, RATERS, finished, share=0.1)
        assert [one.participant for one in found if one.bonus] == ["p1", "p2"]
        everybody = reason_scores(reasons, ratings, RATERS, finished, share=1.0)
        assert [one.participant for one in everybody if one.bonus] == ["p1", "p2", "p3"], "nobody without a reason"

    def test_order_and_the_names_of_raters_do_not_matter(self) -> None:
        reasons, ratings = made(SCORES)
        plain = reason_scores(reasons, ratings, RATERS, list(SCORES), share=0.4)
        swapped = [Rating(r.participant, r.step, {"ann": "ben", "ben": "ann"}[r.rater], r.score) for r in ratings]
        assert reason_scores(reasons[::-1], ratings[::-1], RATERS, list(SCORES)[::-1], share=0.4) == plain
        assert reason_scores(reasons, swapped, RATERS, list(SCORES), share=0.4) == plain

    def test_other_raters_and_unknown_reasons_count_for_nothing(self) -> None:
        reasons, ratings = made(SCORES)
        more = [*ratings, Rating("p1", "case:0", "cleo", 1), Rating("p9", "case:0", "ann", 4)]
        assert reason_scores(reasons, more, RATERS, list(SCORES)) == reason_scores(
            reasons, ratings, RATERS, list(SCORES)
        )
        assert rating_columns(reasons, more)["rater"].count("ann") == 8

    def test_nobody_and_nothing(self) -> None:
        assert reason_scores([], [], RATERS, []) == []
        one = reason_scores([], [], RATERS, ["p1"])
        assert (one[0].bonus, one[0].value, one[0].rank) == (False, None, None)


class TestAgreement:
    def test_it_is_the_agreement_audits_and_that_of_another_library(self) -> None:
        rng = np.random.default_rng(3)
        first = rng.integers(1, 5, 60)
        second = np.clip(first + rng.integers(-1, 2, 60), 1, 4)
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        reasons, ratings = made({f"p{n}": [pair] for n, pair in enumerate(pairs)})
        found = {(one.what, one.metric): one for one in rated(reasons, ratings).agreement}
        kappa = found["points", "weighted_kappa_quadratic"]
        assert kappa.value == pytest.approx(cohen_kappa_score(first, second, weights="quadratic"))
        long = {name: values for name, values in rating_columns(reasons, ratings).items() if name != "left_out"}
        audit = eh.agreement(
            eh.Table(long), item="reason", rater="rater", rating="rating", scale="ordinal", categories=(1, 2, 3, 4)
        )
        same = audit.get("values", metric="weighted_kappa_quadratic")
        assert (kappa.value, kappa.n) == pytest.approx((same.value, same.n))
        assert (kappa.low, kappa.high) != (None, None)

    def test_what_is_left_out_is_compared_too_and_not_counted_as_points(self) -> None:
        rows = [(1, 2), (4, 4), ("vague", "vague"), ("vague", 3), (3, 3), (2, 2)] * 3
        reasons, ratings = made({f"p{n}": [pair] for n, pair in enumerate(rows)})
        found = {(one.what, one.metric): one for one in rated(reasons, ratings).agreement}
        assert found["points", "alpha"].n == 12
        left = found["left out", "agreement"]
        assert left.n == 18
        assert left.value == pytest.approx(5 / 6)

    def test_nothing_to_compare_is_undefined_with_its_reason(self) -> None:
        reasons, ratings = made({"p1": [(4, None)], "p2": [(None, 2)]})
        points, out = rated(reasons, ratings).agreement
        assert (points.value, str(points.status)) == (None, "undefined: no reason was rated by both yet")
        assert out.value is None
        reasons, ratings = made({"p1": [(4, 4)], "p2": [(4, 4)]})
        assert rated(reasons, ratings).agreement[0].status == shared("undefined", why=say("raters_gave_the_same"))


class TestReasons:
    def test_only_of_who_finished_and_of_the_first_items(self) -> None:
        rows = {
            "participant": ["p1", "p1", "p2"],
            "finished": [1, 1, 0],
            "item": ["7", "8", "7"],
            "position": [2, 1, 1],
            "decision": ["high"] * 3,
            "answer": ["agree", "disagree", "agree"],
            "reason": ["one", "two", "three"],
        }
        responses = eh.study.read_responses(rows)
        assert [(one.step, one.text) for one in reasons_to_rate(responses)] == [("case:7", "one"), ("case:8", "two")]
        assert [one.text for one in reasons_to_rate(responses, first=1)] == ["two"]
        shown = dict(reasons_to_rate(responses)[0].about)
        assert shown == {"Case": "7", "Decision": "high", "Answer": "agree"}

    def test_the_id_is_that_of_the_sheet_for_coding(self) -> None:
        rows = {"participant": ["p1"], "item": ["7"], "decision": ["high"], "answer": ["agree"], "reason": ["x"]}
        responses = eh.study.read_responses(rows)
        assert [one.id for one in reasons_to_rate(responses)] == eh.study.rationale_sheet(responses)["id"]


def study(**bonus: Any) -> StudySpec:
    held = tomllib.loads(study_template("disagreement"))
    held["payment"]["bonuses"] = [{"by": "reasons", "amount": 5, "share": 0.5, **bonus}]
    return StudySpec.parse({**held, "rationales": {"raters": list(RATERS)}}, "study.toml")


class TestBonus:
    @pytest.fixture
    def responses(self) -> eh.study.Responses:
        rows = {
            "participant": ["p1", "p2"],
            "finished": [1, 1],
            "item": ["0", "0"],
            "decision": ["high", "high"],
            "answer": ["agree", "disagree"],
            "reason": ["one", "two"],
        }
        return eh.study.read_responses(rows)

    def test_the_list_follows_from_the_ratings(self, responses: eh.study.Responses) -> None:
        rows = [BonusRow(f"5f{n}", f"p{n}", "", datetime(2026, 1, n, tzinfo=UTC)) for n in (1, 2)]
        _, ratings = made({"p1": [(1, 2)], "p2": [(4, 3)]})
        paid = bonus_list(responses, rows, study(), ratings)
        assert paid == {
            "recruitment_id": ["5f2"],
            "participant": ["p2"],
            "amount": [5.0],
            "currency": ["USD"],
            "reason": ["reasons"],
        }
        assert bonus_list(responses, rows, study(), ratings[:-1])["participant"] == [], "not before all are rated"

    def test_what_keeps_it_from_being_paid_is_said(self, responses: eh.study.Responses) -> None:
        reasons = reasons_to_rate(responses)
        _, ratings = made({"p1": [(1, 2)], "p2": [(4, 3)]})
        bonus = study(least_agreement=0.9).payment.bonuses[0]
        assert bonus_problem(bonus, rated(reasons, ratings, ())) == (
            "`raters` of [rationales] names nobody who rates the reasons"
        )
        assert bonus_problem(bonus, rated(reasons, ratings[:-1])) == ("1 reason is not rated by both raters yet, of 2")
        assert "quadratically weighted kappa is 0.600, and" in str(bonus_problem(bonus, rated(reasons, ratings)))
        lax = study(least_agreement=0.5).payment.bonuses[0]
        assert bonus_problem(lax, rated(reasons, ratings)) is None
        assert rated(reasons, ratings).by_both == 2

    @pytest.mark.parametrize(
        ("section", "said"),
        [
            ({"rationales": {"raters": ["ann"]}}, "must be two different names"),
            ({"rationales": {"raters": ["ann", "ann"]}}, "must be two different names"),
            ({"rationales": {"scale": ["bad", "good"]}}, "scale"),
            ({"rationales": {"leave_out": ["vague", "vague"]}}, "names one twice"),
        ],
    )
    def test_settings_that_make_no_sense_are_refused(self, section: dict[str, Any], said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            StudySpec.parse({**tomllib.loads(study_template("effort")), **section}, "study.toml")

    def test_a_rule_for_reasons_belongs_to_reasons(self) -> None:
        held = tomllib.loads(study_template("effort"))
        held["payment"]["bonuses"][0]["of"] = "best"
        with pytest.raises(ConfigError, match="belong to a bonus by 'reasons'"):
            StudySpec.parse(held, "study.toml")
