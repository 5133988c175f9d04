"""Live estimates: the same numbers as the analysis, and never an error however few answers there are."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import evenhand as eh
from evenhand.cli.study_data import _left_out
from evenhand.core.records import OK
from evenhand.study.live import audit_study, live_estimates
from evenhand.study.responses import Responses
from evenhand.study.schema import read_columns
from evenhand.study.server.dashboard import Estimate, first_answers
from evenhand.study.spec import StudySpec
from evenhand.study.template import study_template

CORRELATIONS = {"Overall with trajectory": "trajectory", "Overall with aggregate": "aggregate"}


@pytest.fixture(scope="module")
def effort() -> StudySpec:
    return StudySpec.parse(tomllib.loads(study_template("effort")), "study.toml")


@pytest.fixture(scope="module")
def answers() -> Responses:
    return eh.study.simulate_responses(60, seed=3)


def feedback_study(folder: Path, answers: str = '["agree", "disagree"]', labels: str = '["low", "high"]') -> StudySpec:
    names, rng = ("low", "mid", "high"), np.random.default_rng(5)
    known = [name for name in names if f'"{name}"' in labels]
    rows = [f"{i},{rng.choice(known)},{rng.choice(['A', 'B'])},{i},x,1" for i in range(120)]
    (folder / "cases.csv").write_text("\n".join(["case,label,race,age,charge,priors", *rows]), encoding="utf-8")
    text = (
        study_template("disagreement").replace('["low", "high"]', labels).replace("per_critic = 50", "per_critic = 20")
    )
    (folder / "study.toml").write_text(text.replace('["agree", "disagree"]', answers), encoding="utf-8")
    return eh.study.read_study(folder / "study.toml")


def simulated(spec: StudySpec, seed: int = 1) -> Responses:
    assert spec.disagreement is not None
    asked = spec.disagreement
    columns, _ = read_columns(spec.folder / asked.cases)
    return eh.study.simulate_feedback(
        columns,
        spec.assignment(),
        id=asked.id,
        decision=asked.decision,
        groups=asked.groups,
        labels=asked.labels,
        answers=asked.answers,
        critics={"groups": {"A": 0.4}, "careless": 0.2},
        seed=seed,
    )


def by_name(estimates: list[Estimate]) -> dict[tuple[str, str], Estimate]:
    return {(one.label, one.group): one for one in estimates}


class TestEffort:
    def test_correlations_are_spearmans(self, effort: StudySpec, answers: Responses) -> None:
        kept = eh.study.apply_exclusions(answers)
        for (label, condition), one in by_name(live_estimates(effort)(answers)).items():
            if label in CORRELATIONS:
                here = kept.condition_of_rows() == condition
                x, y = kept.numbers(CORRELATIONS[label])[here], kept.numbers("overall")[here]
                assert one.value == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
                assert one.answers == here.sum()
                assert one.n == len(set(kept.person[here]))

    def test_all_are_those_of_the_analysis(self, effort: StudySpec, answers: Responses) -> None:
        result = eh.study.analyze(answers, resamples=400)
        found = by_name(live_estimates(effort)(answers))
        for condition in ("income", "arrests"):
            place = {"condition": condition, "target": "overall", "method": "participant_bootstrap"}
            for label, factor in {**CORRELATIONS, "Weight of trajectory": None}.items():
                metric = "effort_weight" if factor is None else "rank_correlation"
                record = result.get("values", metric=metric, factor=factor, **place)
                one = found[label, condition]
                assert one.value == pytest.approx(record.value, abs=1e-12)
                assert one.low is not None
                assert one.low == pytest.approx(record.low)
                assert one.high == pytest.approx(record.high)

    def test_who_failed_the_checks_is_left_out(self, effort: StudySpec, answers: Responses) -> None:
        passed = dict(answers.people)
        passed["checks_passed"] = passed["checks_total"]
        everybody = Responses(kind="effort", people=passed, answers=answers.answers)
        count = {
            name: sum(one.n for one in live_estimates(effort)(who))
            for name, who in (("all", everybody), ("kept", answers))
        }
        assert count["all"] == 3 * 60
        assert count["kept"] == 3 * len(eh.study.apply_exclusions(answers).people["participant"])
        assert count["kept"] < count["all"]

    def test_the_order_of_people_does_not_matter(self, effort: StudySpec, answers: Responses) -> None:
        columns = {name: values.tolist() for name, values in answers.to_columns().items()}
        mixed = np.random.default_rng(0).permutation(len(columns["item"]))
        again = eh.study.read_responses({name: [values[at] for at in mixed] for name, values in columns.items()})
        one, two = (live_estimates(effort)(who) for who in (answers, again))
        assert [(a.label, a.group, a.status) for a in one] == [(a.label, a.group, a.status) for a in two]
        assert [a.value for a in one] == pytest.approx([a.value for a in two], abs=1e-12)

    @pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 8, 12, 20, 40])
    def test_few_answers_give_a_reason_not_an_error(self, effort: StudySpec, answers: Responses, number: int) -> None:
        order = np.random.default_rng(1).permutation(len(answers.person))
        estimates = live_estimates(effort)(first_answers(answers, order, number))
        assert len(estimates) == 6
        for one in estimates:
            assert (one.value is None) == (one.status.id == "core.undefined")
            assert (one.low is None) == (one.high is None)
            assert one.low is not None or one.status != OK
            assert one.value is None or (one.low is None or one.low <= one.value <= one.high)  # type: ignore[operator]

    def test_answers_all_alike_give_a_reason(self, effort: StudySpec, answers: Responses) -> None:
        alike = {**answers.answers, "overall": np.full(len(answers.person), 3.0)}
        estimates = live_estimates(effort)(Responses(kind="effort", people=answers.people, answers=alike))
        assert {one.status.text for one in estimates} == {"undefined: the overall distance does not vary"}


class TestFeedback:
    @pytest.mark.parametrize("labels", ['["low", "high"]', '["low", "mid", "high"]'])
    def test_gaps_are_those_of_the_audit(self, tmp_path: Path, labels: str) -> None:
        spec = feedback_study(tmp_path, labels=labels)
        responses = simulated(spec)
        kept = eh.study.apply_exclusions(responses)
        assert len(kept.person) < len(responses.person)
        columns, _ = read_columns(tmp_path / "cases.csv")
        told = {
            "item": kept.answers["item"],
            "who": kept.people["participant"][kept.person],
            "said": kept.answers["answer"],
        }
        assert spec.disagreement is not None
        result = eh.disagreement(
            eh.Table(columns, groups="race", id="case"),
            decision="label",
            critic="who",
            answer="said",
            case="item",
            answers={"data": told, "labels": spec.disagreement.labels},
            resamples=400,
        )
        wanted = {gap.metric: gap for gap in result.gaps if gap.same_as is None}
        found = {one.label.lower().replace(" ", "_"): one for one in live_estimates(spec)(responses)}
        assert found.keys() == wanted.keys()
        for metric, gap in wanted.items():
            one = found[metric]
            assert (one.value, one.lower, one.upper) == (gap.value, gap.lower, gap.upper)
            assert (one.low, one.high) == (gap.low, gap.high)
            assert (one.group, one.status) == ("race", OK)

    def test_the_report_says_whom_the_analysis_left_out(self, tmp_path: Path) -> None:
        spec = feedback_study(tmp_path)
        responses = simulated(spec)
        (rule,) = eh.study.apply_exclusions(responses).excluded
        assert rule.people
        made = audit_study(responses, spec)
        reason = f"failed_checks: people who failed 2 or more attention checks ({rule.rows} answers)"
        (left,) = [one for one in made["disagreement"].left_out if one.grouping is None]
        assert (left.n, left.reason.text) == (rule.people, reason)
        assert reason in made.to_html()
        assert list(_left_out(made)) == [
            f"Left out: {rule.people} people who failed 2 or more attention checks ({rule.rows} answers) "
            "(`failed_checks`)."
        ]

    def test_bounds_hold_the_gap_and_leave_some_of_it_open(self, tmp_path: Path) -> None:
        spec = feedback_study(tmp_path, labels='["low", "mid", "high"]')
        found = by_name(live_estimates(spec)(simulated(spec)))
        one = found["Equal opportunity", "race"]
        assert one.lower is not None
        assert one.upper is not None
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.lower < one.upper <= one.high

    def test_directions_narrow_the_bounds(self, tmp_path: Path) -> None:
        labels, words = '["low", "mid", "high"]', '["agree", "too_high", "too_low"]'
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        directed = feedback_study(tmp_path / "a", words, labels)
        plain = feedback_study(tmp_path / "b", labels=labels)
        responses = simulated(directed)
        said = responses.answers["answer"]
        without = Responses(
            kind="disagreement",
            people=responses.people,
            answers={**responses.answers, "answer": np.where(said == "agree", "agree", "disagree").astype(object)},
        )
        name = ("Equal opportunity", "race")
        narrow, wide = by_name(live_estimates(directed)(responses))[name], by_name(live_estimates(plain)(without))[name]
        assert narrow.upper is not None
        assert narrow.lower is not None
        assert wide.upper is not None
        assert wide.lower is not None
        assert narrow.upper - narrow.lower < wide.upper - wide.lower

    def test_a_mixture_of_disagreement_with_and_without_direction_counts_as_disagreement(self, tmp_path: Path) -> None:
        spec = feedback_study(tmp_path, '["agree", "disagree", "too_high", "too_low"]')
        found = live_estimates(spec)(simulated(spec))
        assert {one.status for one in found} == {OK}

    @pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 8, 13, 30, 60, 120])
    def test_few_answers_give_a_reason_not_an_error(self, tmp_path: Path, number: int) -> None:
        spec = feedback_study(tmp_path)
        responses = simulated(spec)
        order = np.random.default_rng(2).permutation(len(responses.person))
        estimates = live_estimates(spec)(first_answers(responses, order, number))
        assert estimates
        for one in estimates:
            assert (one.value is None) == (one.status.id == "core.undefined")
        if number == 0:
            assert {one.why.id for one in estimates} == {"responses.no_answers_yet"}
        if number == 120:
            assert {one.status for one in estimates} == {OK}

    def test_without_groups_there_is_nothing_to_compare(self, tmp_path: Path) -> None:
        feedback_study(tmp_path)
        text = (tmp_path / "study.toml").read_text().replace('groups = ["race"]', "groups = []")
        (tmp_path / "study.toml").write_text(text)
        spec = eh.study.read_study(tmp_path / "study.toml")
        assert live_estimates(spec)(first_answers(_any_feedback(), np.arange(2), 2)) == []


def _any_feedback() -> Responses:
    rows = {"participant": ["c1", "c2"], "item": ["1", "1"], "decision": ["low", "low"], "answer": ["agree", "agree"]}
    return eh.study.read_responses(rows)
