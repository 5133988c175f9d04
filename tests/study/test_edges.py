"""The analysis where numbers run out: one person, one answer, answers that do not vary. Sentences, never noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.charts import to_svg
from evenhand.core.display import Figure
from evenhand.errors import ConfigError
from evenhand.study import StudyResult, analyze, read_responses
from evenhand.study.analysis.result import StudyGap

Change = Callable[[dict[str, Any], int, int], None]


def answers(people: int, pairs: int = 12, conditions: str = "a", change: Change | None = None) -> dict[str, list[Any]]:
    """Return answers of people who weigh trajectory 0.6, changed one by one."""
    rng = np.random.default_rng(0)
    rows = []
    for person in range(people):
        for pair in range(pairs):
            t, a = (int(v) for v in rng.integers(1, 7, 2))
            row = {
                "participant": f"p{person}",
                "condition": conditions[person % len(conditions)],
                "item": str(pair // 4),
                "subject": "ABCD"[pair % 4],
                "trajectory": t,
                "aggregate": a,
                "overall": int(np.clip(round(0.6 * t + 0.4 * a + rng.normal() * 0.5), 1, 6)),
                "predicted": round(float(rng.random()), 2),
                "risk_reference": 0.3,
                "risk": round(float(rng.random()), 2),
            }
            if change is not None:
                change(row, person, pair)
            rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]}


def analysed(*args: Any, **options: Any) -> StudyResult:
    """Analyse, and check that everything the result can show holds together."""
    result = analyze(read_responses(answers(*args, **options)), resamples=200)
    json.dumps(result.to_dict(), allow_nan=False)
    for table in ("values", "gaps", "regressions", "bonus"):
        for record in result.rows(table):
            assert record.value is not None or record.status != "ok" or "= 0" in record.term, record
            if getattr(record, "p_value", None) is not None:
                assert 0 <= record.p_value <= 1
    for number in (2, 3, 4, 5):
        result.paper_table(number)
    for part in result.section().parts:
        if isinstance(part, Figure):
            for chart in part.charts:
                to_svg(chart, part.title, part.description, name="x")
    return result


def statuses(result: StudyResult, table: str, method: str, **where: Any) -> set[str]:
    return {str(record.status) for record in result.rows(table, method=method, **where)}


def comparison(result: StudyResult, method: str) -> StudyGap:
    """Return the difference of the two correlations with the overall distance."""
    gap: StudyGap = result.get("gaps", metric="rank_correlation", method=method, target="overall")
    return gap


def test_one_person_has_numbers_but_no_interval_by_people() -> None:
    result = analysed(1)
    assert statuses(result, "values", "participant_bootstrap") == {"no interval: too few people"}
    assert statuses(result, "gaps", "participant_bootstrap") == {"no interval: too few people"}
    assert statuses(result, "regressions", "clustered") == {"no interval: too few people", "no test: too few people"}
    assert "No test by people was possible; the published tests treat every answer as a separate person." in list(
        map(str, result.notes)
    )
    assert "1 person gave 12 answers." in str(result.findings[0].detail)
    assert result.findings[0].headline.text.endswith("; not tested.")
    assert list(result.weights) == ["a"]


def test_one_answer() -> None:
    result = analysed(1, 1)
    assert {record.value for record in result.values} == {None}
    assert result.weights == {}
    first = result.findings[0]
    assert first.headline.text.endswith("rank correlations with trajectory and aggregate cannot be compared.")
    assert (str(first.detail), str(first.reason)) == ("1 person gave 1 answer.", "Too few answers.")


def test_people_of_one_answer() -> None:
    result = analysed(40, 1)
    assert result.weights["a"] == pytest.approx(0.6, abs=0.15)
    share = result.get("regressions", metric="share_between_people", target="overall")
    assert (share.value, share.status.text) == (None, "undefined: everybody gave one answer")


@pytest.mark.parametrize("name", ["overall", "trajectory", "aggregate"])
def test_an_answer_that_does_not_vary(name: str) -> None:
    result = analysed(10, change=lambda row, person, pair: row.update({name: 3}))
    assert result.weights == {}
    weight = next(finding for finding in result.findings if finding.metric == "effort_weight")
    assert weight.headline.text.endswith("cannot be computed.")
    assert str(weight.reason) == f"The {name} distance does not vary."
    assert weight.value is None
    assert comparison(result, "meng").status.text == f"undefined: the {name} distance does not vary"


def test_all_answers_the_same() -> None:
    result = analysed(10, change=lambda row, person, pair: row.update(overall=3, trajectory=3, aggregate=3, risk=0.3))
    assert {record.value for record in (*result.rows("values"), *result.rows("gaps"))} == {None}
    assert result.weights == {}


def test_distances_that_go_together_entirely() -> None:
    result = analysed(10, change=lambda row, person, pair: row.update(trajectory=row["aggregate"]))
    assert "are perfectly rank-correlated" in str(result.findings[-1].reason)
    equal = comparison(result, "participant_bootstrap")
    assert (equal.value, equal.p_value) == (0.0, None)
    assert equal.status.text == "no interval: nothing is left to chance"


def test_a_perfect_answer_has_no_test() -> None:
    result = analysed(10, change=lambda row, person, pair: row.update(overall=row["trajectory"]))
    assert result.weights["a"] == pytest.approx(1.0)
    for method in ("hotelling", "williams", "meng", "steiger"):
        gap = comparison(result, method)
        assert (gap.statistic, gap.p_value, gap.status.text) == (None, None, "no test: nothing is left to chance")


def test_a_condition_of_one_person_is_not_in_the_moderation_model() -> None:
    """Its clustered standard errors would be 0, and everything significant."""

    def alone(row: dict[str, Any], person: int, pair: int) -> None:
        row["condition"] = "b" if person == 0 else "a"

    result = analysed(10, change=alone)
    assert not result.rows("regressions", regression="moderation")
    assert {record.reason.text for record in result.left_out} == {
        f"one person alone: not in the moderation model of the {target} distance" for target in ("overall", "output")
    }


def test_a_target_that_one_condition_was_not_asked() -> None:
    result = analysed(
        10, conditions="ab", change=lambda row, person, pair: row.update(risk=None) if person % 2 else None
    )
    assert {record.condition for record in result.rows("values", target="output")} == {"a"}
    assert {record.target for record in result.rows("regressions", regression="moderation")} == {"overall"}


def test_limits_stay_where_a_number_can_be() -> None:
    result = analysed(2)
    assert result.rows("values", metric="rank_correlation")
    for record in (*result.rows("values"), *result.rows("gaps")):
        most = 2 if isinstance(record, StudyGap) else 1
        for limit in (record.low, record.high):
            assert limit is None or -most <= limit <= most


def test_no_predictions_no_truth_serum() -> None:
    assert analysed(10, change=lambda row, person, pair: row.update(predicted=None)).bonus == ()
    half = analysed(10, change=lambda row, person, pair: row.update(predicted=None) if person % 2 else None)
    assert [record.status.text for record in half.bonus].count(
        "not eligible: unfinished, or too few answers with a prediction"
    ) == 5
    assert "60 answers without a prediction took no part in the truth serum." in list(map(str, half.notes))


def test_thresholds_for_what_is_not_there_are_refused() -> None:
    responses = read_responses(answers(4))
    limit = {"metric": "effort_weight", "min": 0.5}
    for change, message in (
        ({"condition": "income"}, "`condition` 'income' of a threshold is not known; known names: 'a'"),
        ({"target": "overal"}, "`target` 'overal' of a threshold is not known; .*'overall'"),
        ({"target": "output"}, "`target` 'output' of a threshold is not known; known names: 'overall'"),
        ({"model": "m"}, "has no `model`"),
        ({"grouping": "a"}, "has no `grouping`"),
        ({"group": "a"}, "has no `group`"),
        ({"audit": "parity"}, "has `audit` 'parity'"),
        ({"metric": "factor_share"}, "limits nothing"),
        ({"min": 1.5}, "must give min= above 0 and at most 1"),
        ({"metric": "correlation_difference", "min": 2.5}, "must give min= above -2 and at most 2"),
        ({"max": 0.5}, "exactly one of `min` and `max`"),
    ):
        with pytest.raises(ConfigError, match=message):
            analyze(responses, resamples=100, thresholds=[{**limit, **change}])


def test_a_threshold_can_be_for_one_condition_and_target() -> None:
    responses = read_responses(answers(20, conditions="ab"))
    limit = {"metric": "correlation_difference", "min": -1, "condition": "b", "target": "output"}
    findings = analyze(responses, resamples=100, thresholds=[limit]).findings
    (judged,) = [finding for finding in findings if finding.threshold]
    assert (judged.coordinates["condition"], judged.coordinates["target"]) == ("b", "output")
    assert judged.verdict == "meets"
    assert len(findings) == 6


def test_the_difference_is_judged_with_its_sign() -> None:
    """Where the aggregate counts for more, the difference is below 0: a maximum of 0 is met, a minimum of 0 is not."""

    def turned(row: dict[str, Any], person: int, pair: int) -> None:
        row["trajectory"], row["aggregate"] = row["aggregate"], row["trajectory"]

    responses = read_responses(answers(40, change=turned))
    verdicts = {}
    for side, limit in (("min", 0), ("max", 0), ("max", 0.1), ("min", -1.5)):
        threshold = {"metric": "correlation_difference", side: limit, "target": "overall"}
        judged = analyze(responses, resamples=100, thresholds=[threshold]).findings[0]
        assert judged.value is not None
        assert judged.value < 0
        verdicts[side, limit] = judged.verdict
    assert verdicts == {
        ("min", 0): "does_not_meet",
        ("max", 0): "meets",
        ("max", 0.1): "meets",
        ("min", -1.5): "meets",
    }


def test_what_these_data_lack_is_insufficient_evidence() -> None:
    """A target that a condition was not asked for, a condition in which nobody is left, and one that is too small."""

    def unasked(row: dict[str, Any], person: int, pair: int) -> None:
        row["risk"] = None if person % 2 else row["risk"]
        row["finished"] = float(row["condition"] != "b")

    responses = read_responses(answers(24, conditions="ab", change=unasked))

    def judged(exclusions: dict[str, Any] | None = None, **options: Any) -> Any:
        limit = {"metric": "correlation_difference", "min": -1, "condition": "b"}
        thresholds = [{**limit, **({"target": options.pop("target")} if "target" in options else {})}]
        result = analyze(responses, resamples=100, thresholds=thresholds, exclusions=exclusions or {}, **options)
        (finding,) = [finding for finding in result.findings if finding.threshold]
        assert finding.verdict == ("meets" if not finding.reason else "insufficient_evidence")
        return finding

    assert judged().verdict == "meets"
    assert judged(target="output").reason.text.startswith("Known names: 'overall'")
    assert "'b' in these data" in judged({"unfinished": True}).headline.text
    assert judged(min_count=13).reason.text == "There is no verdict about 12 people (minimum 13)."


def test_a_file_is_read(tmp_path: Any) -> None:
    responses = read_responses(answers(6))
    path = responses.save(tmp_path / "answers.csv")
    assert eh.study.analyze(path, resamples=100).weights == analyze(responses, resamples=100).weights


def test_a_bonus_needs_more_than_one_lucky_pair() -> None:
    responses = eh.study.simulate_responses(30, conditions=("income",), seed=2)
    lucky = eh.study.analyze(responses).bonus[0].participant
    columns = {name: list(values) for name, values in responses.to_columns().items()}
    rows = [row for row, who in enumerate(columns["participant"]) if who == lucky]
    for name, values in columns.items():
        columns[name] = [value for row, value in enumerate(values) if row not in rows[1:]]
    short = eh.study.analyze(eh.study.read_responses(columns)).get("bonus", participant=lucky)
    assert (short.pairs, short.bonus, short.rank) == (1, False, None)
    columns = {name: list(values) for name, values in responses.to_columns().items()}
    columns["finished"] = [float(who != lucky) for who in columns["participant"]]
    left = eh.study.analyze(eh.study.read_responses(columns)).get("bonus", participant=lucky)
    assert (left.pairs, left.bonus, left.rank) == (12, False, None)


def test_numbers_in_the_csv_read_back_as_the_same_numbers(tmp_path: Path) -> None:
    responses = eh.study.simulate_responses(3, seed=1)
    columns = {name: list(values) for name, values in responses.to_columns().items()}
    columns["risk_reference"] = [1 / 3] * len(columns["item"])
    path = eh.study.read_responses(columns).save(tmp_path / "answers.csv")
    assert set(eh.study.read_responses(path).numbers("risk_reference").tolist()) == {1 / 3}
