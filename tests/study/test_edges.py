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
from evenhand.core.sections import Figure
from evenhand.errors import ConfigError
from evenhand.study import StudyResult, analyze, read_responses

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


def found(*args: Any, **options: Any) -> StudyResult:
    """Analyse, and check that everything the result can show holds together."""
    result = analyze(read_responses(answers(*args, **options)), resamples=200)
    json.dumps(result.to_dict(), allow_nan=False)
    for table in result.tables.values():
        for one in table:
            assert one.value is not None or one.status != "ok" or "= 0" in one.term, one
            if getattr(one, "p_value", None) is not None:
                assert 0 <= one.p_value <= 1
    for number in (2, 3, 4, 5):
        result.paper_table(number)
    for part in result.section().parts:
        if isinstance(part, Figure):
            for chart in part.charts:
                to_svg(chart, part.title, part.description, name="x")
    return result


def statuses(result: StudyResult, table: str, method: str) -> set[str]:
    return {one.status for one in result.tables[table] if one.method == method}


def test_one_person_has_numbers_but_no_interval_by_people() -> None:
    result = found(1)
    assert statuses(result, "correlations", "participant_bootstrap") == {"no interval: too few people"}
    assert statuses(result, "comparisons", "participant_bootstrap") == {"no interval: too few people"}
    assert statuses(result, "regressions", "clustered") == {"no interval: too few people", "no test: too few people"}
    assert "Nothing could be tested by people; the published tests take answers for people." in result.notes
    assert "1 person, 12 answers" in result.findings[0].sentence
    assert list(result.weights) == ["a"]


def test_one_answer() -> None:
    result = found(1, 1)
    assert {one.value for one in result.correlations} == {None}
    assert result.weights == {}
    assert "undefined, because too few answers; 1 person, 1 answer." in result.findings[0].sentence


def test_people_of_one_answer() -> None:
    result = found(40, 1)
    assert result.weights["a"] == pytest.approx(0.6, abs=0.15)
    share = result.estimate("regressions", "share_between_people", method="random_intercept", target="overall")
    assert (share.value, share.status) == (None, "undefined: everybody gave one answer")


@pytest.mark.parametrize("name", ["overall", "trajectory", "aggregate"])
def test_an_answer_that_does_not_vary(name: str) -> None:
    result = found(10, change=lambda row, person, pair: row.update({name: 3}))
    assert result.weights == {}
    weight = next(one for one in result.findings if one.metric == "effort_weight")
    assert weight.claim.endswith(f"is undefined, because the {name} distance does not vary.")
    assert weight.value is None
    compared = result.estimate("comparisons", "trajectory - aggregate", method="meng", target="overall")
    assert compared.status == f"undefined: the {name} distance does not vary"


def test_all_answers_the_same() -> None:
    result = found(10, change=lambda row, person, pair: row.update(overall=3, trajectory=3, aggregate=3, risk=0.3))
    assert {one.value for one in (*result.correlations, *result.comparisons)} == {None}
    assert result.weights == {}


def test_distances_that_go_together_entirely() -> None:
    result = found(10, change=lambda row, person, pair: row.update(trajectory=row["aggregate"]))
    assert "go together entirely" in result.findings[-1].claim
    equal = result.estimate("comparisons", "trajectory - aggregate", method="participant_bootstrap", target="overall")
    assert (equal.value, equal.p_value) == (0.0, None)
    assert equal.status == "no interval: nothing is left to chance"


def test_a_perfect_answer_has_no_test() -> None:
    result = found(10, change=lambda row, person, pair: row.update(overall=row["trajectory"]))
    assert result.weights["a"] == pytest.approx(1.0)
    for method in ("hotelling", "williams", "meng", "steiger"):
        one = result.estimate("comparisons", "trajectory - aggregate", method=method, target="overall")
        assert (one.statistic, one.p_value, one.status) == (None, None, "no test: nothing is left to chance")


def test_a_condition_of_one_person_is_not_in_the_moderation_model() -> None:
    """Its clustered standard errors would be 0, and everything significant."""

    def alone(row: dict[str, Any], person: int, pair: int) -> None:
        row["condition"] = "b" if person == 0 else "a"

    result = found(10, change=alone)
    assert not [one for one in result.regressions if one.model == "moderation"]
    assert {one["reason"] for one in result.left_out} == {
        f"one person alone: not in the moderation model of the {target} distance" for target in ("overall", "output")
    }


def test_a_target_that_one_condition_was_not_asked() -> None:
    result = found(10, conditions="ab", change=lambda row, person, pair: row.update(risk=None) if person % 2 else None)
    assert {one.condition for one in result.correlations if one.target == "output"} == {"a"}
    assert {one.target for one in result.regressions if one.model == "moderation"} == {"overall"}


def test_limits_stay_where_a_number_can_be() -> None:
    result = found(2)
    for one in (*result.correlations, *result.comparisons):
        most = 2 if " - " in one.term else 1
        for limit in (one.low, one.high):
            assert limit is None or -most <= limit <= most


def test_no_predictions_no_truth_serum() -> None:
    assert found(10, change=lambda row, person, pair: row.update(predicted=None)).bonus == ()
    half = found(10, change=lambda row, person, pair: row.update(predicted=None) if person % 2 else None)
    assert [one.status for one in half.bonus].count(
        "not eligible: unfinished, or too few answers with a prediction"
    ) == 5
    assert "60 answers without a prediction took no part in the truth serum." in half.notes


def test_thresholds_for_what_is_not_there_are_refused() -> None:
    responses = read_responses(answers(4))
    limit = {"metric": "effort_weight", "min": 0.5}
    for place, value, message in (
        ("grouping", "income", "`grouping` of a threshold got 'income'; known names: 'a'"),
        ("stratum", "overal", "`stratum` of a threshold got 'overal'; did you mean 'overall'"),
        ("model", "m", "a study has no models"),
    ):
        with pytest.raises(ConfigError, match=message):
            analyze(responses, resamples=100, thresholds=[{**limit, place: value}])


def test_a_threshold_can_be_for_one_condition_and_target() -> None:
    responses = read_responses(answers(20, conditions="ab"))
    limit = {"metric": "correlation_difference", "min": -1, "grouping": "b", "stratum": "output"}
    judged = analyze(responses, resamples=100, thresholds=[limit]).findings
    assert [(one.grouping, one.stratum) for one in judged if one.threshold] == [("b", "output")]


def test_a_file_is_read(tmp_path: Any) -> None:
    responses = read_responses(answers(6))
    path = responses.save(tmp_path / "answers.csv")
    assert eh.study.analyze(path, resamples=100).weights == analyze(responses, resamples=100).weights


def test_a_bonus_needs_more_than_one_lucky_pair() -> None:
    responses = eh.study.simulate_responses(30, conditions=("income",), seed=2)
    lucky = eh.study.analyze(responses).bonus[0].participant
    columns = {name: list(values) for name, values in responses.to_columns().items()}
    rows = [at for at, who in enumerate(columns["participant"]) if who == lucky]
    for name, values in columns.items():
        columns[name] = [value for at, value in enumerate(values) if at not in rows[1:]]
    short = {one.participant: one for one in eh.study.analyze(eh.study.read_responses(columns)).bonus}[lucky]
    assert (short.n, short.bonus, short.rank) == (1, False, None)
    columns = {name: list(values) for name, values in responses.to_columns().items()}
    columns["finished"] = [float(who != lucky) for who in columns["participant"]]
    left = {one.participant: one for one in eh.study.analyze(eh.study.read_responses(columns)).bonus}[lucky]
    assert (left.n, left.bonus, left.rank) == (12, False, None)


def test_numbers_in_the_csv_read_back_as_the_same_numbers(tmp_path: Path) -> None:
    responses = eh.study.simulate_responses(3, seed=1)
    columns = {name: list(values) for name, values in responses.to_columns().items()}
    columns["risk_reference"] = [1 / 3] * len(columns["item"])
    path = eh.study.read_responses(columns).save(tmp_path / "answers.csv")
    assert set(eh.study.read_responses(path).numbers("risk_reference").tolist()) == {1 / 3}
