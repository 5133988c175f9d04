"""The answer on the front page: six questions, answered by rule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.audits.agreement.messages import say as say_agreement
from evenhand.report.answer import MOST_SENTENCES, Answer, _size, answer
from evenhand.report.cautions import cautions, widest_gap
from evenhand.report.front import picture_with_axis
from evenhand.report.reversals import reversal_of
from evenhand.report.spans import span_of
from evenhand.report.wording import page_wording

BERKELEY = {
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}
"""Admitted and rejected men, admitted and rejected women, by department (Bickel, Hammel and O'Connell 1975)."""


def two_groups(first: int, second: int, n: int = 100, **names: Any) -> eh.Table:
    """Return a table in which so many of n people of each of two groups are selected."""
    data = {
        "group": [names.get("a", "A")] * n + [names.get("b", "B")] * n,
        "hired": [1] * first + [0] * (n - first) + [1] * second + [0] * (n - second),
    }
    settings = {name: value for name, value in names.items() if name not in "ab"}
    return eh.Table(data, groups="group", predictions={"screen": {"column": "hired", **settings}})


def audited(table: eh.Table, **sections: Any) -> eh.Audit:
    return eh.audit(table, **{"parity": {"metrics": "selection_rate"}, **sections})


def told(table: eh.Table, *limits: dict[str, Any], **report: Any) -> Answer:
    return answer(audited(table, thresholds=list(limits), report=report))


def lines(given: Answer, question: str) -> str:
    return " ".join(next(row.lines for row in given.rows if row.question == question))


def test_a_limit_that_is_not_met_is_a_problem_in_natural_frequencies() -> None:
    given = told(two_groups(60, 30), {"metric": "selection_rate", "max": 0.1})
    assert (given.certainty, given.word) == ("yes", "Yes")
    assert given.sentences[0] == (
        "By group, of 100 in each group, screen selects: A 60, B 30. The measured gap is 30.0 points; the limit is "
        "at most 10 points. (F1)"
    )
    assert lines(given, "How big?") == "A and B are 30.0 points apart."
    assert "whole interval is beyond the limit" in lines(given, "How sure?")
    assert lines(given, "What next?").startswith("Find out why the limit is not met, and decide")
    assert "improvability" in lines(given, "What next?")


def test_a_lenient_limit_does_not_hide_a_difference() -> None:
    given = told(two_groups(60, 30), {"metric": "selection_rate", "max": 0.5})
    assert given.certainty == "differs"
    assert given.sentences[0].endswith("A 60, B 30. The limit, at most 50 points, is met. (F1)")


def test_a_difference_without_a_limit_is_no_verdict_and_asks_for_a_limit() -> None:
    given = told(two_groups(60, 30))
    assert given.word == "Groups differ"
    assert "set it as a limit" in lines(given, "What next?")


def test_a_number_beyond_the_limit_is_possibly_a_problem_and_one_within_it_cannot_be_told() -> None:
    beyond = told(two_groups(56, 44), {"metric": "selection_rate", "max": 0.1})
    assert beyond.certainty == "possibly"
    assert beyond.sentences[0].endswith(
        "The measured gap, 12.0 points, is beyond the limit, at most 10 points, but the data are too few to be "
        "sure. (F1)"
    )
    within = told(two_groups(54, 48), {"metric": "selection_rate", "max": 0.1})
    assert within.certainty == "cannot_tell"
    assert "cannot be told" in within.sentences[0]


def test_a_limit_that_may_be_broken_comes_before_a_difference_without_a_limit() -> None:
    data = {
        "group": ["A"] * 400 + ["B"] * 400,
        "limited": [1] * 220 + [0] * 180 + [1] * 165 + [0] * 235,
        "free": [1] * 300 + [0] * 100 + [1] * 100 + [0] * 300,
    }
    table = eh.Table(data, groups="group", predictions=["limited", "free"])
    given = told(table, {"metric": "selection_rate", "max": 0.1, "model": "limited"})
    assert given.certainty == "possibly"
    assert "limited selects" in given.sentences[0]
    assert "free selects" in given.sentences[1]
    assert "improvability" in lines(given, "What next?")


def test_who_is_worst_off_and_whether_it_was_compared_over_time_is_said() -> None:
    given = told(two_groups(60, 30, favourable="not_selected"), {"metric": "selection_rate", "max": 0.1})
    assert lines(given, "For whom?") == "“screen selects” is bad for the person. Worst off: A."
    assert lines(given, "Since when?") == "Not examined: no periods were compared."
    assert "Worst off" not in str(told(two_groups(60, 30)).rows)


def test_the_interval_of_the_answer_has_an_axis() -> None:
    audit = audited(two_groups(60, 30), thresholds=[{"metric": "selection_rate", "max": 0.1}])
    drawn = picture_with_axis(audit.findings[0], page_wording("de"))
    texts = re.findall(r">([^<>]+)</text>", drawn)
    assert texts[:2] == ["Grenze 10", "0"]
    assert float(texts[2].replace(",", ".")) > 30


def test_nothing_found_says_how_large_a_difference_could_have_been_missed() -> None:
    given = told(two_groups(500, 503, 1000), {"metric": "selection_rate", "max": 0.1})
    assert given.certainty == "not_shown"
    assert given.sentences[0] == "The limit is met, and no difference between groups is established."
    assert "By group, of 1,000 in each group, screen selects: B 503, A 500" in given.sentences[1]
    assert "4.0 points" in given.sentences[1]


def test_what_could_have_been_missed_is_the_largest_of_all_gaps_in_shares() -> None:
    """Not that of the first finding: the sentence, its groups and the rows below are about one gap."""
    rng = np.random.default_rng(11)
    score = rng.beta(2, 3, 2_000).round(4)
    data = {"sex": rng.choice(["F", "M"], 2_000), "score": score, "y": (rng.random(2_000) < score).astype(int)}
    run = audited(eh.Table(data, outcome="y", groups="sex", predictions="score", favourable="selected"), parity={})
    shares = [finding for finding in run.findings if finding.unit == "share"]
    assert {finding.metric for finding in shares} == {"selection_rate", "tpr", "fpr"}
    widest = widest_gap(run.findings)
    assert widest is not None
    assert widest.of == 3
    assert widest.most == max(finding.high or 0.0 for finding in shares)
    given = answer(run)
    assert f"{100 * widest.most:.1f} points" in given.sentences[1]
    assert given.sentences[1].endswith(f"({widest.finding.number}).")
    assert next(row for row in given.rows if row.key == "how_sure").finding == widest.finding


def test_few_people_are_counted_as_people_and_nobody_only_where_nobody_is() -> None:
    table = eh.Table(
        {"group": ["A"] * 18 + ["B"] * 1000, "hired": [1] * 5 + [0] * 13 + [1] * 997 + [0] * 3},
        groups="group",
        predictions={"screen": {"column": "hired", "favourable": "selected"}},
    )
    (sentence,) = answer(audited(table, parity={"metrics": "selection_rate"})).sentences
    assert "A 278 (5 of 18)" in sentence
    assert "B 997" in sentence  # of 100 it would be 100


def test_a_finding_on_agreement_says_that_it_is_not_correctness() -> None:
    rng = np.random.default_rng(1)
    old = np.arange(600) % 3 == 0
    first = rng.random(600) < np.where(old, 0.10, 0.45)
    second = first ^ (rng.random(600) < 0.08)
    table = eh.Table(
        {"age": np.where(old, "old", "young"), "a": first.astype(int), "b": second.astype(int)}, groups="age"
    )
    run = eh.audit(table, agreement={"raters": ["a", "b"]})
    assert [finding.metric for finding in run.findings if finding.significance == "directed"] == ["kappa"]
    told_first = " ".join(answer(run).sentences)
    for caution in cautions(run, next(f for f in run.findings if f.metric == "kappa"), page_wording()):
        assert told_first.count(caution) == 1
    german = page_wording("de")
    assert german.message(say_agreement("caution")) in " ".join(answer(run, german).sentences)


def test_a_verdict_says_what_its_limits_hold_on() -> None:
    """One person in forty has a score near 1: few of the smaller group carry the variance."""
    rng = np.random.default_rng(3)
    score = np.concatenate([np.where(np.arange(3_000) % 40 == 0, 0.9, 0.02), np.where(np.arange(60) < 2, 0.9, 0.5)])
    score = (score + 0.01 * rng.random(3_060)).round(4)
    table = eh.Table(
        {"group": ["A"] * 3_000 + ["B"] * 60, "score": score},
        groups="group",
        predictions={"m": {"column": "score", "favourable": "not_selected"}},
    )
    run = audited(table, parity={"metrics": "mean_score", "thresholds": [{"metric": "mean_score", "max": 0.05}]})
    (gap,) = run.results["parity"].rows("gaps", kind="difference", against="worst_pair")
    (finding,) = run.findings
    assert (gap.rests_on, finding.verdict) == ("few people", "does_not_meet")
    assert finding.reason is not None
    assert finding.reason.id == "parity.rests_on_few_people"
    assert "few_people" not in repr(finding.detail)
    assert page_wording().message(finding.reason) in answer(run).sentences[0]


def test_nothing_compared_is_not_the_same_as_nothing_found() -> None:
    data = {"group": ["A"] * 100 + ["B"] * 3, "hired": [1, 0] * 51 + [1]}
    given = told(eh.Table(data, groups="group", predictions="hired"))
    assert given.certainty == "cannot_tell"
    assert given.sentences == ("Nothing could be compared.",)


def test_a_reversal_comes_first_and_is_told_once() -> None:
    table = people_in_departments(**BERKELEY)
    given = answer(audited(table, parity={"metrics": "selection_rate", "within": "department"}))
    assert given.word == "It depends on department"
    assert given.sentences == (
        "By sex, of 100 in each group, admitted selects: M 45, F 30; with the same mix of department: F 43, M 39. The "
        "difference points the other way once groups are compared within department. Most of the difference within "
        "department comes from department A alone: without department A, 0.1 points are left.",
    )
    assert "within department" in lines(given, "What next?")
    assert lines(given, "How big?").endswith("Within department: 4.3 points the other way.")
    assert re.search(
        r"Within department: interval 0\.[56] to 7\.9 the other way, also established\.$", lines(given, "How sure?")
    )
    drawn = next(row.groups for row in given.rows if row.groups is not None)
    assert drawn.series == ("overall", "within department")
    assert len(drawn.rows) == 4


def people_in_departments(**counts: tuple[int, int, int, int]) -> eh.Table:
    """Return people of departments: men who are admitted and refused, then women."""
    rows = [
        (sex, department, admitted)
        for department, of in counts.items()
        for (sex, admitted), n in zip((("M", 1), ("M", 0), ("F", 1), ("F", 0)), of, strict=True)
        for _ in range(n)
    ]
    sex, department, admitted = zip(*rows, strict=True)
    return eh.Table({"sex": sex, "department": department, "admitted": admitted}, groups="sex", predictions="admitted")


@pytest.mark.parametrize(
    ("departments", "key"),
    [
        (BERKELEY, "mostly"),
        ({"A": (400, 400, 90, 10), "B": (40, 160, 130, 670), "C": (40, 160, 70, 330)}, "by_one"),
        ({"A": (300, 300, 70, 30), "B": (40, 160, 240, 560), "C": (40, 160, 130, 270)}, "stands"),
    ],
)
def test_a_reversal_says_what_is_left_without_one_stratum(departments: Any, key: str) -> None:
    run = audited(people_in_departments(**departments), parity={"metrics": "selection_rate", "within": "department"})
    found = reversal_of(run, page_wording())
    assert found is not None
    left = {}
    for out in departments:
        kept = [np.array(of, dtype=float) for name, of in departments.items() if name != out]
        share = np.array([of.sum() for of in kept]) / sum(of.sum() for of in kept)
        left[out] = sum(s * (of[2] / of[2:].sum() - of[0] / of[:2].sum()) for s, of in zip(share, kept, strict=True))
    name = min(left, key=lambda each: left[each])
    assert (left[name] > abs(found.adjusted or 0.0) / 2, left[name] >= 0) == {
        "stands": (True, True),
        "mostly": (False, True),
        "by_one": (False, False),
    }[key]
    amount = f"{100 * abs(left[name]):.1f} points"
    words = {"factor": "department", "stratum": name, "amount": amount}
    assert found.sentence.endswith(page_wording().say(f"reversed_{key}", "answer", **words))


def test_a_gap_that_has_grown_is_a_problem_with_a_date() -> None:
    rng = np.random.default_rng(4)
    month, sex = np.repeat(np.arange(1, 13), 500), np.tile(["F", "M"], 3000)
    hired = (rng.uniform(size=6000) < 0.5 - 0.35 * ((sex == "F") & (month > 8))).astype(int)
    table = eh.Table({"month": month, "sex": sex, "hired": hired}, groups="sex", predictions="hired")
    given = told(table, period="month")
    assert given.certainty == "yes"
    assert re.fullmatch(
        r"Since month = 9 hired selects F [\d.]+ points less often than M; before, [\d.]+ points (less|more) often\.",
        given.sentences[0],
    )
    assert lines(given, "Since when?") == "Since month = 9, and shown with the data of that period."
    assert "95% interval" in lines(given, "How sure?")
    assert lines(given, "What next?").startswith("Look at what changed in month = 9.")


def test_an_indicator_of_a_rule_is_possibly_a_problem() -> None:
    given = told(two_groups(12, 8, 40, favourable="selected"), profile=["ugesp-1978"])
    assert given.certainty == "possibly"
    assert given.sentences[0] == "UGESP (1978): 1 of 1 groups is flagged, B by group at 0.667 of the rate of A."
    assert lines(given, "What the rules ask") == given.sentences[0]


def test_shares_are_counted_among_so_many_that_the_groups_can_be_told_apart() -> None:
    given = told(two_groups(430, 404, 10_000))
    assert "of 1,000 in each group, screen selects: A 43, B 40" in given.sentences[-1]
    assert "of 100 in each group" in told(two_groups(20, 60)).sentences[0]


def test_the_largest_group_and_all_groups_are_shown_beside_the_worst_pair() -> None:
    data = {
        "race": ["A"] * 100 + ["B"] * 400 + ["C"] * 100 + ["D"] * 5,
        "hired": [1] * 80 + [0] * 20 + [1] * 200 + [0] * 200 + [1] * 20 + [0] * 80 + [1, 0, 1, 0, 1],
    }
    run = audited(eh.Table(data, groups="race", predictions="hired"))
    assert [finding.sentence_id for finding in run.findings] == ["two_values_differ"]  # nothing says who is worse off
    given = answer(run)
    assert given.sentences[0].endswith("A 80, B 50 (the largest group), C 20. (F1)")
    drawn = next(row.groups for row in given.rows if row.groups is not None)
    assert [(row["label"], row["small"]) for row in drawn.rows] == [
        ("A", False),
        ("D", True),
        ("B", False),
        ("C", False),
    ]
    assert drawn.zero == pytest.approx(303 / 605)


def test_people_of_unknown_group_are_named() -> None:
    data = {"race": ["A"] * 50 + ["B"] * 50 + [None] * 60, "hired": [1, 0] * 80}
    given = told(eh.Table(data, groups="race", predictions="hired"))
    assert lines(given, "For whom?") == "Not known, and in no comparison: race of 38% of people."
    assert "Find the missing values of race" in lines(given, "What next?")


def test_decisions_come_before_scores_and_there_are_few_sentences() -> None:
    rng = np.random.default_rng(1)
    group = np.repeat(["A", "B", "C"], 300)
    score = np.clip(rng.normal(0.3 + 0.2 * (group == "A"), 0.2), 0, 1)
    table = eh.Table(
        {"g": group, "m": score, "k": score / 2, "y": score > 0.4}, groups="g", outcome="y", predictions=["m", "k"]
    )
    limits = [{"metric": "mean_score", "kind": "ratio", "min": 0.8}, {"metric": "selection_rate", "max": 0.1}]
    given = answer(eh.audit(table, parity={}, thresholds=limits))
    assert "m selects: A" in given.sentences[0]
    assert len(given.sentences) <= MOST_SENTENCES


def test_a_saved_answer_is_the_same_and_a_german_one_is_german(tmp_path: Path) -> None:
    limits = [{"metric": "selection_rate", "max": 0.1}]
    audit = audited(two_groups(60, 30), thresholds=limits, report={"profile": ["ugesp-1978"]})
    audit.save(tmp_path)
    saved = answer(eh.Audit.load(tmp_path))
    assert saved.text == answer(audit).text
    assert [(row.question, row.lines) for row in saved.rows] == [
        (row.question, row.lines) for row in answer(audit).rows
    ]
    german = answer(audit, page_wording("de"))
    assert german.text.startswith(
        "Ja. Nach group, wie viele von je 100 screen auswählt: A 60, B 30. Der gemessene Abstand ist 30,0 "
        "Prozentpunkte; die Grenze ist höchstens 10 Prozentpunkte."
    )
    english = {line for row in saved.rows for line in row.lines}
    assert not english & {line for row in german.rows for line in row.lines}


def test_numbers_are_german_in_a_german_answer() -> None:
    page = audited(two_groups(5_000, 4_995, 10_000), report={"language": "de"}).to_html()
    front = page[page.index('id="answer"') : page.index('id="findings"')]
    assert "A 5.000, B 4.995" in front
    assert "10.000" in front
    assert ">Intervall<" in front
    assert not re.search(r">\d+\.\d+%", front)


def test_hostile_names_stay_text() -> None:
    audit = audited(two_groups(60, 30, a="<script>alert(1)</script>", b="{model}"))
    assert "{model} 30" in answer(audit).sentences[0]
    assert "<script>" not in audit.to_html()


def test_an_alternative_that_is_shown_says_how_sure_for_whom_and_what_to_ask() -> None:
    rng = np.random.default_rng(0)
    group, y = np.arange(3_000) % 2, rng.integers(0, 2, 3_000)
    old = np.where(rng.random(3_000) < 0.55 + 0.3 * group, y, 1 - y)
    new = np.where(rng.random(3_000) < 0.93, y, 1 - y)
    table = eh.Table({"g": np.where(group, "b", "a"), "y": y, "old": old, "new": new}, groups="g")
    settings: Any = {"status_quo": "old", "outcome": "y", "candidates": "new", "resamples": 300}
    given = answer(eh.audit(table, improvability=settings, thresholds=[{"metric": "improvable_fairness", "max": 0.0}]))
    assert re.match(
        r"Under the status quo b and a are [\d.]+ points apart, with new [\d.]+\.", lines(given, "How big?")
    )
    assert re.search(r"The improvement is at least [\d.]+%, with 90% confidence\.", lines(given, "How sure?"))
    assert lines(given, "For whom?") == "Decided rightly less often: a."
    drawn = next(row.groups for row in given.rows if row.groups is not None)
    assert drawn.series == ("status quo", "new")
    assert lines(given, "What next?").startswith("Ask why new is not used in place of the status quo. (F1)")


@pytest.mark.parametrize(("better", "certainty"), [(True, "yes"), (False, "not_shown")])
def test_a_fairer_alternative_without_a_limit_is_a_problem_only_if_it_is_shown(better: bool, certainty: str) -> None:
    rng = np.random.default_rng(0)
    group, y = np.arange(2_000) % 2, rng.integers(0, 2, 2_000)
    old = np.where(rng.random(2_000) < 0.55 + 0.3 * group, y, 1 - y)
    new = np.where(rng.random(2_000) < (0.93 if better else 0.5), y, 1 - y)
    table = eh.Table({"g": np.where(group, "b", "a"), "y": y, "old": old, "new": new}, groups="g")
    settings: Any = {"status_quo": "old", "outcome": "y", "candidates": "new", "resamples": 300}
    given = answer(eh.audit(table, improvability=settings))
    assert given.certainty == certainty
    assert ("new is fairer" if better else "It is not shown that new is fairer") in given.sentences[0]
    assert ("%, a 5" in given.sentences[0]) == better
    assert given.sentences[0].startswith("Under the status quo, right decisions by g (outcome: y): b 8") == better
    assert "Nothing could be compared" not in given.text


def test_other_limits_that_are_not_met_are_counted() -> None:
    data = {"group": ["A"] * 200 + ["B"] * 200, "one": [1] * 150 + [0] * 250, "two": [1] * 120 + [0] * 280}
    table = eh.Table(data, groups="group", predictions=["one", "two"])
    given = told(table, {"metric": "selection_rate", "max": 0.1})
    assert given.sentences[0].endswith("(F1) Another limit is not met: two, selection rate, by group (F2).")


def test_an_open_limit_does_not_hide_an_established_difference() -> None:
    given = told(two_groups(560, 440, 1_000), {"metric": "selection_rate", "max": 0.1})
    assert given.certainty == "possibly"
    assert "That groups differ at all is established." in given.sentences[0]


def test_a_change_is_not_mixed_with_the_numbers_of_all_periods() -> None:
    rng = np.random.default_rng(4)
    month, sex = np.repeat(np.arange(1, 13), 500), np.tile(["F", "M"], 3000)
    hired = (rng.uniform(size=6000) < 0.5 - 0.35 * ((sex == "F") & (month > 8))).astype(int)
    table = eh.Table({"month": month, "sex": sex, "hired": hired}, groups="sex", predictions="hired")
    given = told(table, {"metric": "selection_rate", "max": 0.1}, period="month")
    rows = {row.question: row for row in given.rows}
    size = lines(given, "How big?")
    assert re.match(r"[\d.]+ points since month = 9\. In that time: M [\d.]+%, F [\d.]+%\. Before: M ", size)
    gap, higher, lower = map(float, re.findall(r"(\d+\.\d)(?: points|%)", size)[:3])
    assert gap == pytest.approx(higher - lower, abs=0.11)
    assert rows["How sure?"].finding is None
    drawn = rows["For whom?"].groups
    assert rows["For whom?"].lines == ()
    assert drawn is not None
    assert drawn.series == ("before", "since month = 9")
    shown = {(row["label"], row["series"]): 100 * row["value"] for row in drawn.rows}
    assert shown["M", "since month = 9"] == pytest.approx(higher, abs=0.05)
    assert shown["F", "since month = 9"] == pytest.approx(lower, abs=0.05)


def test_a_change_that_is_over_is_not_said_to_last() -> None:
    rng = np.random.default_rng(8)
    month, sex = rng.integers(1, 13, 6_000), rng.choice(["F", "M"], 6_000)
    hired = (rng.random(6_000) < np.where((month == 6) & (sex == "F"), 0.1, 0.4)).astype(int)
    named = [f"2026-{each:02d}" for each in month]
    table = eh.Table({"month": named, "sex": sex, "hired": hired}, groups="sex", predictions="hired")
    run = audited(table, report={"period": "month"})
    (drift,) = run.extras[0].tables["drifts"]
    assert (drift.changed_from, drift.changed_to) == ("2026-06", "2026-06")
    span = span_of(run, drift, page_wording())
    other = month != 6
    gaps, weights = [], []
    for each in sorted(set(month[other])):
        f, m = (hired[(month == each) & (sex == group)] for group in "FM")
        gaps.append(f.mean() - m.mean())
        weights.append(f.size * m.size / (f.size + m.size))
    assert span.is_over
    assert span.others == pytest.approx(np.average(gaps, weights=weights))
    given = answer(run)
    assert lines(given, "Since when?") == page_wording().say("change_over", "answer", period="June 2026")
    assert not any(line.startswith("Since") for row in given.rows for line in row.lines)
    assert not given.sentences[0].startswith("Since")
    assert f"{100 * abs(drift.since):.1f} points" in given.sentences[0]


def test_nobody_is_called_worst_off_where_that_is_not_established() -> None:
    given = answer(audited(two_groups(40, 52), parity={"metrics": "selection_rate", "thresholds": [LIMIT]}))
    assert not any("Worst off" in line for row in given.rows for line in row.lines)


LIMIT = {"metric": "selection_rate", "max": 0.1}


def test_a_reversal_says_of_how_many_people_it_is() -> None:
    """Only men applied to the third department: it is in the values of all, and in none within departments."""
    departments = {"A": (100, 200, 160, 240), "B": (300, 150, 60, 25), "C": (180, 20, 0, 0)}
    found = reversal_of(audited(people_in_departments(**departments), parity={"within": "department"}), page_wording())
    assert found is not None
    assert "1,235 of 1,435 people" in found.sentence


def test_the_next_audit_is_named_in_the_language_of_the_page() -> None:
    run = audited(two_groups(20, 60))
    question = REGISTRY["improvability"].question
    assert question in lines(answer(run), "What next?")
    german = answer(run, page_wording("de"))
    assert not any(question in line for row in german.rows for line in row.lines)


def test_where_the_pair_is_open_the_front_page_says_so_and_an_established_pair_leads() -> None:
    """A small group has the largest gap: that some groups differ is established, but not that it does."""
    sizes, chosen = (2_000, 2_000, 20), (1_000, 800, 13)
    hired = [int(at < k) for n, k in zip(sizes, chosen, strict=True) for at in range(n)]
    data: dict[str, list[Any]] = {
        "group": [name for name, n in zip("ABC", sizes, strict=True) for _ in range(n)],
        "hired": hired,
        "sex": ["F" if (at * 7) % 20 < (8 if chosen else 11) else "M" for at, chosen in enumerate(hired)],
    }
    roles: dict[str, Any] = {"predictions": {"screen": {"column": "hired", "favourable": "selected"}}}
    alone = audited(eh.Table(data, groups="group", **roles))
    (finding,) = alone.findings
    assert (finding.group, finding.reference, finding.significance) == ("C", "B", "significant")
    open_pair = page_wording().say("pair_open", "answer")
    assert open_pair in answer(alone).sentences[0]
    assert lines(answer(alone), "How sure?").endswith(page_wording().say("sure_some_alone", "answer"))
    both = audited(eh.Table(data, groups=["group", "sex"], **roles))
    by_sex = next(finding for finding in both.findings if finding.grouping == "sex")
    by_group = next(finding for finding in both.findings if finding.grouping == "group")
    assert (by_sex.significance, by_group.significance) == ("directed", "significant")
    given = answer(both)
    assert given.sentences[0].startswith("By sex")
    assert open_pair not in given.sentences[0]
    others = page_wording().say("more_different", "answer", n=1, findings=(by_group.number,))
    assert given.sentences[0].endswith(others)


def test_a_metric_that_measures_agreement_alone_leads_before_kappa() -> None:
    rng = np.random.default_rng(10)
    group, base = rng.choice(["p", "q"], 500), rng.integers(1, 6, 500)
    raters = {
        name: np.clip(base + rng.integers(-1, 2, 500) * (rng.random(500) < np.where(group == "q", 0.6, 0.2)), 1, 5)
        for name in ("r0", "r1", "r2")
    }
    run = eh.audit(eh.Table({"g": group, **raters}, groups="g"), agreement={"raters": list(raters), "scale": "ordinal"})
    established = [finding.metric for finding in run.findings if finding.significance == "directed"]
    assert {"bennett_s", "conger_kappa"} <= set(established)
    first = next(finding for finding in run.findings if finding.metric == "bennett_s")
    assert answer(run).sentences[0].startswith(page_wording().headline(first).rstrip("."))


def test_bounds_are_beyond_a_limit_only_as_a_whole() -> None:
    """The middle of 0 to 85 points is no measured gap."""
    kidneys = eh.datasets.make_kidney_offers(200, 60, seed=1)
    settings: Any = {"decision": "quality", "critic": "critic", "case": "offer", "disagree": "disagrees"}
    settings |= {"answers": {"labels": [1, 2, 3, 4]}, "resamples": 100}
    limits: Any = [{"audit": "disagreement", "metric": "equal_opportunity", "max": 0.1}]
    run = eh.audit(eh.Table(kidneys, groups="donor_age"), disagreement=settings, thresholds=limits)
    finding = next(finding for finding in run.findings if finding.threshold is not None)
    assert finding.lower is not None
    assert finding.value is not None
    assert finding.lower < 0.1 < finding.value
    wording = page_wording()
    words = {"values": wording.headline(finding).rstrip("."), "limit": wording.limit(finding)}
    assert any(sentence.startswith(wording.say("open", "answer", **words)) for sentence in answer(run).sentences)
    assert _size(finding, wording) == wording.say("gap_within", "answer", amount=wording.amount(finding))
