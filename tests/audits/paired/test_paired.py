"""Paired tests: numbers against counting by hand, laws, refusals, placebos, and bad input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from statsmodels.stats.contingency_tables import mcnemar

import evenhand as eh
from evenhand.audits.paired import PairedResult
from evenhand.errors import EvenhandError

SETTINGS: dict[str, Any] = {"template": "cv", "answer": "answer", "positive": "invite", "favourable": "higher"}


def answers(
    *, templates: int = 30, groups: Sequence[str] = ("White", "Black"), repetitions: int = 2, seed: int = 1
) -> pd.DataFrame:
    """Return answers to CVs: the second group is invited less often, templates differ, and a few are refused."""
    rng = np.random.default_rng(seed)
    rows = []
    for cv in range(templates):
        ease = rng.normal(0.5, 1.0)
        for position, group in enumerate(groups):
            for repetition in range(repetitions):
                invited = rng.random() < 1 / (1 + np.exp(-(ease - 1.2 * (position == 1))))
                rating = round(float(50 + 10 * ease - 4 * (position == 1) + rng.normal()), 2)
                rows.append((f"cv {cv}", group, f"{group} {repetition % 2}", "invite" if invited else "reject", rating))
    return pd.DataFrame(rows, columns=["cv", "race", "name", "answer", "rating"])


def paired(data: Any, **settings: Any) -> PairedResult:
    return eh.paired(eh.Table(data, groups="race"), **{**SETTINGS, **settings})


def test_values_and_gaps_are_means_over_templates() -> None:
    data = answers()
    result = paired(data)
    by_template = data.assign(passed=data["answer"] == "invite").pivot_table("passed", "cv", "race")
    differences = by_template["White"] - by_template["Black"]
    assert result.get("values", group="White").value == pytest.approx(by_template["White"].mean())
    gap = result.get("gaps", against="worst_pair")
    assert (gap.group, gap.reference, gap.worse_off, gap.templates) == ("White", "Black", "Black", 30)
    assert gap.value == pytest.approx(differences.mean())
    assert gap.n == len(data)


def test_one_repetition_is_mcnemars_exact_test() -> None:
    data = answers(repetitions=1, templates=60)
    wide = (data.set_index(["cv", "race"])["answer"] == "invite").unstack()
    table = pd.crosstab(wide["White"], wide["Black"])
    gap = paired(data).get("gaps", against="worst_pair")
    assert gap.p_value == pytest.approx(mcnemar(table, exact=True).pvalue, rel=1e-9)
    assert (gap.template_sd, gap.replicate_sd, gap.template_share) == (None, None, None)


def test_ratings_agree_with_students_paired_test() -> None:
    data = answers(repetitions=1, templates=200)
    gap = paired(data, answer="rating", positive=None).get("gaps", against="worst_pair")
    wide = data.pivot_table("rating", "cv", "race")
    theirs = ttest_rel(wide["White"], wide["Black"])
    limits = theirs.confidence_interval(0.95)
    assert gap.metric == "mean_answer"
    assert gap.value == pytest.approx((wide["White"] - wide["Black"]).mean())
    assert (gap.low, gap.high) == pytest.approx((limits.low, limits.high), rel=1e-9)


def test_variance_is_split_into_templates_and_repetitions() -> None:
    rng = np.random.default_rng(2)
    cv = np.repeat(np.arange(400), 8)
    race = np.tile(np.repeat(["White", "Black"], 4), 400)
    effect = np.repeat(rng.normal(1.0, 3.0, 400), 8) * (race == "White")
    data = pd.DataFrame({"cv": cv, "race": race, "answer": effect + rng.normal(0, 2.0, 3_200)})
    gap = paired(data, positive=None).get("gaps", against="worst_pair")
    assert gap.template_sd == pytest.approx(3.0, rel=0.1)
    assert gap.replicate_sd == pytest.approx(2.0, rel=0.1)
    assert gap.template_share == pytest.approx(9 / (9 + 2 * 4 / 4), abs=0.05)


def test_names_and_order_of_rows_do_not_matter() -> None:
    data = answers(groups=("White", "Black", "Asian"))
    renamed = data.sample(frac=1, random_state=3).replace({"race": {"White": "a", "Black": "z", "Asian": "m"}})
    one, other = paired(data), paired(renamed.rename(columns={"cv": "prompt"}), template="prompt")
    old, new = one.get("gaps", against="worst_pair"), other.get("gaps", against="worst_pair")
    assert (new.value, new.low, new.high, new.p_value) == pytest.approx((old.value, old.low, old.high, old.p_value))


def test_the_worst_pair_allows_for_all_pairs() -> None:
    result = paired(answers(groups=("White", "Black", "Asian")))
    p_values = []
    for first, second in (("White", "Black"), ("White", "Asian"), ("Asian", "Black")):
        two = answers(groups=("White", "Black", "Asian"))
        two = two[two["race"].isin([first, second])]
        p_values.append(paired(two).get("gaps", against="worst_pair").p_value)
    assert result.get("gaps", against="worst_pair").p_value == pytest.approx(min(1.0, 3 * min(p_values)))


def test_refusals_are_an_outcome_of_their_own() -> None:
    data = answers()
    refused = (np.arange(len(data)) % 3 == 0) & (data["race"] == "Black")
    data.loc[refused, "answer"] = "cannot help"
    result = paired(data, refused=["cannot help"])
    assert result.get("values", group="Black", metric="refusal_rate").value == pytest.approx(refused.sum() / 60)
    assert result.get("values", group="White", metric="refusal_rate").value == 0.0
    assert result.get("gaps", against="worst_pair", metric="refusal_rate").worse_off is None
    assert result.get("values", group="Black", metric="pass_rate").n == 60 - refused.sum()


def test_missing_answers_are_refused_dropped_or_refusals() -> None:
    data = answers()
    data.loc[:4, "answer"] = None
    with pytest.raises(EvenhandError, match="the answer is missing in 5 rows"):
        paired(data)
    assert paired(data, missing="drop").left_out[0].n == 5
    assert paired(data, missing="refusal").get("values", group="(overall)", metric="refusal_rate").value > 0


def test_a_placebo_that_changes_nothing_is_a_note_and_one_that_does_is_a_caution() -> None:
    data = answers(templates=60)
    held = paired(data, placebo=["name"])
    assert [record.placebo for record in held.placebos] == ["name", "name"]
    assert "paired.placebo_held" in {note.id for note in held.notes}
    data.loc[data["name"].str.endswith("1"), "answer"] = "reject"
    failed = paired(data, placebo=["name"])
    worst = max(failed.placebos, key=lambda record: abs(record.value or 0))
    assert worst.p_adjusted is not None
    assert worst.p_adjusted < 0.001
    finding = failed.findings[0]
    assert finding.detail is not None
    assert "name should change nothing, but it does" in finding.text


def test_groups_with_few_templates_are_shown_and_not_compared() -> None:
    data = answers()
    few = data[(data["race"] == "White") | data["cv"].isin([f"cv {n}" for n in range(9)])]
    gap = paired(few).get("gaps", against="reference")
    assert gap.value is not None
    assert gap.low is None
    assert gap.status.args["why"].id == "paired.few_templates"


def test_thresholds_are_judged() -> None:
    broken = paired(answers(templates=200), thresholds=[{"metric": "pass_rate", "max": 0.02}])
    assert broken.findings[0].verdict == "does_not_meet"
    met = paired(answers(templates=400), thresholds=[{"metric": "pass_rate", "max": 0.5}])
    assert met.findings[0].verdict == "meets"


def test_it_runs_from_audit_toml_and_makes_a_report(tmp_path: Any) -> None:
    answers().to_csv(tmp_path / "answers.csv", index=False)
    (tmp_path / "audit.toml").write_text(
        '[data]\nsource = "answers.csv"\ngroups = ["race"]\n\n[paired]\ntemplate = "cv"\nanswer = "answer"\n'
        'positive = "invite"\nplacebo = ["name"]\n'
    )
    audit = eh.audit(tmp_path / "audit.toml")
    audit.save(tmp_path / "out")
    page = (tmp_path / "out/report.html").read_text()
    assert "Differences within templates, by race" in page
    again = eh.Audit.load(tmp_path / "out")["paired"].get("gaps", against="worst_pair")
    assert again.value == pytest.approx(audit["paired"].get("gaps", against="worst_pair").value)


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"template": "cvs"}, "`template` is 'cvs', which .*did you mean 'cv'"),
    ({}, {"positive": "invited"}, "`positive` is 'invited', which nobody answered"),
    ({}, {"positive": None}, "the answers are words .*name the one that passes as `positive`"),
    ({}, {"refused": ["no"]}, "`refused` names 'no', which is no answer in these data"),
    ({}, {"metrics": ["pass_rates"]}, "there is no metric 'pass_rates'; did you mean 'pass_rate'"),
    ({}, {"metrics": ["mean_answer"]}, "the metric 'mean_answer' does not apply to these answers"),
    ({}, {"answer": "cv"}, "template, answer, placebo"),
    ({"weight": "rating"}, {}, "paired tests give every template the same weight"),
    ({"groups": None}, {}, "name the column of the person's group as `groups`"),
]


@pytest.mark.parametrize(("roles", "settings", "message"), WRONG)
def test_wrong_settings_are_answered_in_a_sentence(roles: Any, settings: Any, message: str) -> None:
    with pytest.raises(EvenhandError, match=message):
        eh.paired(eh.Table(answers(), **{"groups": "race", **roles}), **{**SETTINGS, **settings})
