"""Would a verdict hold in another population: other shares of other groups among the people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.after.extras import require_extras
from evenhand.core.display import Figure
from evenhand.core.findings import SHORT_VERDICTS
from evenhand.errors import ConfigError
from evenhand.report.formats import make_files
from evenhand.run.config import make_config
from evenhand.stats.weighted import Moments, Weighted, gap_to_everybody, largest_gap

LIMITS = [{"metric": "selection_rate", "max": 0.1}, {"metric": "selection_rate", "min": 0.8}]


def people(rows: int = 4000) -> dict[str, Any]:
    """Return people of race A with more men, who are selected more often: the gap by race is one of sex."""
    rng = np.random.default_rng(1)
    race = rng.choice(["A", "B"], rows)
    sex = np.where(rng.random(rows) < np.where(race == "A", 0.3, 0.7), "F", "M")
    hired = (rng.random(rows) < np.where(sex == "F", 0.3, 0.6)).astype(int)
    return {"race": race.tolist(), "sex": sex.tolist(), "hired": hired.tolist()}


def judged(data: dict[str, Any], groups: Any = ("race", "sex"), **report: Any) -> eh.Audit:
    table = eh.Table(data, groups=list(groups), predictions="hired", favourable="selected")
    return eh.audit(table, parity={"metrics": "selection_rate"}, thresholds=LIMITS, report=report)


def tripled(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return people of whom every woman stands there three times, and the shares of sex among them."""
    women = np.array(data["sex"]) == "F"
    times = np.where(women, 3, 1)
    share = float(times[women].sum() / times.sum())
    repeated = {name: np.repeat(values, times).tolist() for name, values in data.items()}
    return repeated, {"sex": {"F": share, "M": 1 - share}}


def test_weights_are_repetition() -> None:
    """With three women for each one, the gap by race is that of people of whom every woman stands there three times."""
    data = people(1000)
    repeated, population = tripled(data)
    tried = judged(data, population=population).extras[0].tables["shifts"]
    truth = {
        gap.kind: gap.value for gap in judged(repeated)["parity"].rows("gaps", grouping="race", against="worst_pair")
    }
    found = {row.kind: row.value for row in tried if row.grouping == "race"}
    assert found == {kind: pytest.approx(value) for kind, value in truth.items()}


KINDS: list[tuple[str, dict[str, Any]]] = [
    ("against everybody", {"metric": "selection_rate", "against": "overall", "max": 0.1, "grouping": "race"}),
    ("ratio to everybody", {"metric": "selection_rate", "against": "overall", "min": 0.8, "grouping": "race"}),
    ("everybody by its own column", {"metric": "selection_rate", "against": "overall", "max": 0.1, "grouping": "sex"}),
    ("reference", {"metric": "selection_rate", "against": "reference", "min": 0.8, "grouping": "race"}),
    ("mean score", {"metric": "mean_score", "max": 0.1, "grouping": "race"}),
    ("ratio of mean scores", {"metric": "mean_score", "min": 0.8, "grouping": "race"}),
    ("Brier score", {"metric": "brier", "max": 0.1, "grouping": "race"}),
    ("true positives", {"metric": "tpr", "max": 0.1, "grouping": "race"}),
    ("one stratum", {"metric": "selection_rate", "max": 0.1, "grouping": "race", "stratum": "MA"}),
    ("a stratum's mean score", {"metric": "mean_score", "max": 0.1, "grouping": "race", "stratum": "BA"}),
]


def scored(data: dict[str, Any], limit: dict[str, Any], **report: Any) -> eh.Audit:
    table = eh.Table(data, groups=["race", "sex"], outcome="hired", predictions="score", threshold=0.4)
    within = "degree" if "stratum" in limit else None
    settings: Any = {
        "metrics": [limit["metric"]],
        "reference": {"race": "A"},
        **({"within": within} if within else {}),
        "resamples": 100,
    }
    return eh.audit(table, parity=settings, thresholds=[limit], report=report)


def with_scores(data: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    rows = len(data["sex"])
    score = np.clip(
        0.25 * np.array(data["hired"]) + 0.2 * (np.array(data["sex"]) == "M") + rng.random(rows) * 0.5, 0, 1
    )
    return {**data, "score": score.tolist(), "degree": rng.choice(["BA", "MA"], rows).tolist()}


@pytest.mark.parametrize("limit", [limit for _, limit in KINDS], ids=[name for name, _ in KINDS])
def test_every_kind_of_verdict_is_that_of_repeated_people(limit: dict[str, Any]) -> None:
    data = with_scores(people(900))
    repeated, population = tripled(data)
    tried = scored(data, limit, population=population).extras[0].tables["shifts"]
    there = {(f.group, f.kind): f for f in scored(repeated, limit).findings if f.limit is not None}
    assert tried
    for row in tried:
        worst = row.against == "worst_pair"
        finding = next(f for (group, kind), f in there.items() if kind == row.kind and (worst or group == row.group))
        size = (
            abs(finding.value or 0) if row.kind == "difference" else min(finding.value or 0, 1 / (finding.value or 1))
        )
        assert row.value == pytest.approx(size)
        assert row.low is not None
        assert row.low <= row.value <= row.high


def households(rows: int = 300) -> tuple[dict[str, Any], Any]:
    made: Any = eh.datasets.make_households(rows, seed=3, backend="pandas")
    years = [f"income_{year}" for year in range(2019, 2023)]
    columns = {name: made[name].tolist() for name in ["race", "sex", "risk_xgboost", *years]}
    return columns, {"trajectory": years, "unit": 10_000, "scale": 200_000, "width": 0.5, "worst": 0}


EFFORT = [{"metric": "eaif", "min": 0.9, "weight": 0.5}, {"metric": "eagf", "min": 0.8, "grouping": "race"}]


def test_effort_among_others_is_that_of_people_with_survey_weights() -> None:
    data, settings = households()
    women = np.array(data["sex"]) == data["sex"][0]
    weight = np.where(women, 3.0, 1.0)
    share = float(weight[women].sum() / weight.sum())
    names = data["sex"][0], next(sex for sex in data["sex"] if sex != data["sex"][0])
    population = {"sex": dict(zip(names, (share, 1 - share), strict=True))}
    roles: Any = {"groups": ["race", "sex"], "predictions": {"m": "risk_xgboost"}}
    settings |= {"weights": [0.5]}
    audit = eh.audit(eh.Table(data, **roles), effort=settings, thresholds=EFFORT, report={"population": population})
    weighted = eh.effort(eh.Table({**data, "w": weight.tolist()}, **roles, weight="w"), **settings)
    tried = {row.metric: row for row in audit.extras[0].tables["shifts"]}
    assert tried["eaif"].value == pytest.approx(weighted.get("values", metric="eaif").value)
    bins = [gap for gap in weighted.rows("gaps", metric="eagf", grouping="race") if gap.bin_low is not None]
    assert tried["eagf"].value == pytest.approx(min(gap.value for gap in bins if gap.value is not None))
    assert all("among the people" in str(finding.detail) for finding in audit.findings if finding.limit is not None)
    assert "population_shift" in audit.sections()


def test_a_population_may_be_a_table_whose_shares_vary() -> None:
    data = people(2000)
    few = {"sex": ["F"] * 60 + ["M"] * 40}
    exact = judged(data, population={"sex": {"F": 0.6, "M": 0.4}}).extras[0]
    for population in (few, pd.DataFrame(few)):
        sampled = judged(data, population=population)
        many = judged(data, population={"sex": few["sex"] * 500}).extras[0]
        rows = zip(exact.tables["shifts"], sampled.extras[0].tables["shifts"], many.tables["shifts"], strict=True)
        for known, here, certain in rows:
            assert here.value == pytest.approx(known.value)
            assert here.high - here.low > known.high - known.low
            assert (certain.low, certain.high) == pytest.approx((known.low, known.high), abs=1e-3)
        assert "treated as a sample of it" in " ".join(map(str, sampled.extras[0].notes))
        assert sampled.config.as_dict()["report"]["population"] == "a table in memory"


def test_the_table_of_a_population_is_found_beside_audit_toml(tmp_path: Path) -> None:
    rows = ["race,sex,hired", *(",".join(map(str, row)) for row in zip(*people(400).values(), strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "census.csv").write_text("sex\n" + "F\n" * 300 + "M\n" * 100, encoding="utf-8")
    (tmp_path / "audit.toml").write_text(
        '[data]\nsource = "data.csv"\ngroups = ["race", "sex"]\npredictions = "hired"\n[parity]\n'
        'metrics = ["selection_rate"]\n[[thresholds]]\nmetric = "selection_rate"\nmax = 0.1\n'
        '[report]\npopulation = "census.csv"\n',
        encoding="utf-8",
    )
    audit = eh.audit(tmp_path / "audit.toml")
    assert audit.extras[0].settings["population"] == {"sex": {"F": 0.75, "M": 0.25}}
    audit.save(tmp_path / "out")
    assert eh.Audit.load(tmp_path / "out").to_json() == audit.to_json()


def test_the_delta_method_is_the_spread_over_many_samples_of_a_population() -> None:
    """Of one fixed table of people: the standard deviation that sampled shares add, by brute force."""
    rng = np.random.default_rng(0)
    hits, n = np.array([[40.0, 30.0, 5.0], [20.0, 50.0, 30.0]]), np.array([[60.0, 90.0, 20.0], [80.0, 70.0, 60.0]])
    sums, shares, people_there = Moments(n, hits, hits), np.array([0.5, 0.3, 0.2]), 400
    factor = 1 / (n.sum(axis=0) / n.sum())
    spread = (np.diag(shares) - np.outer(shares, shares)) / people_there * np.outer(factor, factor)
    values = Weighted.from_sums(sums, shares * factor, None, spread)
    drawn = [
        Weighted.from_sums(sums, rng.multinomial(people_there, shares) / people_there * factor).value
        for _ in range(4000)
    ]
    gap = np.std([one - other for one, other in drawn])
    assert values.share_margin(values.slope[:1] - values.slope[1:], 0.95)[0] / 1.959964 == pytest.approx(gap, rel=0.05)


def test_a_group_that_is_everybody_has_no_gap_and_limits_hold_the_value() -> None:
    hits, n = np.array([[30.0, 20.0], [10.0, 45.0]]), np.array([[80.0, 60.0], [70.0, 90.0]])
    sums = Moments(n, hits, hits)
    for kind in ("difference", "ratio"):
        for values in (Weighted.from_sums(sums.against_others(0), np.array([2.0, 0.5])),):
            value, low, high = gap_to_everybody(values, kind, 0.95)
            assert low <= value <= high
    alike = Weighted.from_sums(Moments(n, n / 4, n / 4).against_others(0), np.array([2.0, 0.5]))
    assert gap_to_everybody(alike, "difference", 0.95)[0] == pytest.approx(0)
    assert gap_to_everybody(alike, "ratio", 0.95)[0] == pytest.approx(1)


def test_verdicts_that_cannot_be_judged_again_say_why() -> None:
    data = with_scores(people(400))
    data |= {"other": [int(x > 0.5) for x in data["score"]]}
    table = eh.Table(data, outcome="hired", groups=["race", "sex"], predictions={"m": "score"})
    limits = [{"metric": "auc", "max": 0.1}, {"metric": "kappa", "max": 0.3}]
    audit = eh.audit(
        table,
        parity={"metrics": ["auc"]},
        agreement={"raters": ["hired", "other"]},
        thresholds=limits,
        report={"shift": 0.1},
    )
    lines = [str(finding.detail) for finding in audit.findings if finding.limit is not None]
    assert all("cannot be computed: " in line for line in lines)
    assert any("agreement beyond chance depends on all ratings" in line for line in lines)
    assert any("auc is no mean over people" in line for line in lines)


def test_the_shares_as_they_are_change_nothing() -> None:
    data = people()
    share = data["sex"].count("F") / len(data["sex"])
    audit = judged(data, population={"sex": {"F": share, "M": 1 - share}})
    plain = {gap.kind: gap.value for gap in audit["parity"].rows("gaps", grouping="race", against="worst_pair")}
    for row in audit.extras[0].tables["shifts"]:
        assert row.holds
        assert row.value == pytest.approx(plain[row.kind])


def test_the_effective_size_is_the_smaller_one_and_that_of_equal_weights_is_n() -> None:
    hits, n = np.array([[5.0, 40.0], [20.0, 30.0]]), np.array([[50.0, 50.0], [80.0, 60.0]])
    sums = Moments(n, hits, hits)
    assert Weighted.from_sums(sums, np.ones(2)).size == pytest.approx([100.0, 140.0])
    weight = np.array([1.0, 3.0])
    assert (Weighted.from_sums(sums, weight).size <= (n @ weight) ** 2 / (n @ weight**2) + 1e-9).all()
    low, high = largest_gap(Weighted.from_sums(sums, weight), "difference", 0.95)[1:]
    assert 0 <= low < high


def test_every_verdict_has_its_line(tmp_path: Path) -> None:
    audit = judged(people(), shift=0.1, population={"sex": {"F": 0.95, "M": 0.05}})
    by_sex = [finding for finding in audit.findings if finding.grouping == "sex"]
    words = {True: "The evidence would stay insufficient with", False: "It would hold with"}
    for finding in by_sex:
        assert f"{words[finding.verdict == 'insufficient_evidence']} other shares of race" in str(finding.detail)
    by_race = [finding for finding in audit.findings if finding.grouping == "race"]
    assert all("With the shares of sex in the population among the people" in str(f.detail) for f in by_race)
    audit.save(tmp_path)
    assert eh.Audit.load(tmp_path).to_json() == audit.to_json()


def test_a_ratio_has_its_panel_with_the_limit_and_labels_keep_a_decimal() -> None:
    data = people(401)
    audit = judged(data, shift=0.1)
    figure = next(part for part in audit.sections()["population_shift"].parts if isinstance(part, Figure))
    ratios = [panel for panel in figure.charts if panel.style == "number"]
    assert ratios
    assert all(row["limits"] == (0.8,) for panel in ratios for row in panel.rows)
    assert f"{100 * data['sex'].count('F') / 401:.1f}% here" in audit.to_json()
    assert any(name.startswith("population_shift-1-") for name in make_files(audit, ["svg"]))
    assert figure.shows
    assert audit.to_html().count(str(figure.shows)) == 1


def test_extras_are_refused_before_anything_runs() -> None:
    table = eh.Table({**people(100), "w": [1.0, 2.0] * 50}, groups=["sex"], predictions="hired", weight="w")
    with pytest.raises(ConfigError, match=r"`shift` needs people who count alike.*\('w'\)"):
        eh.audit(table, parity={}, report={"shift": 0.1})
    config = make_config({"parity": {}, "report": {"shift": 0.1, "period": "race"}}, None, where="", allow_code=False)
    with pytest.raises(ConfigError, match=r"`period` needs the parity audit; add a section \[parity\]"):
        require_extras(config.model_copy(update={"audits": {}}), table)


def test_where_shares_cannot_matter_it_says_so() -> None:
    (first, *_) = judged(people(), ["sex"], shift=0.1).findings
    assert "Other shares of the groups cannot change it" in str(first.detail)


@pytest.mark.parametrize(
    ("population", "match"),
    [
        ({"sx": {"F": 0.5, "M": 0.5}}, "did you mean 'sex'"),
        ({"sex": {"F": 0.5, "N": 0.5}}, "names 'N' of 'sex'"),
        ({"sex": {"F": 1.0}}, "has no share of 'M'"),
        ({"sex": {"F": 0.5, "M": 0.2}}, "add up to 1"),
        ({"sx": ["F", "M"]}, r"none of the group columns \(race, sex\)"),
        ({"sex": ["F", "N"]}, "names 'N' of 'sex'"),
        (3, "shares by column and group, or a table; got 3"),
    ],
)
def test_a_population_that_cannot_be_is_refused(population: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        judged(people(400), population=population)


def test_evidence_that_stays_insufficient_is_not_called_a_limit_that_holds() -> None:
    data = {"race": ["A", "A", "B", "B"] * 25, "sex": ["F", "M"] * 50, "hired": [1, 0, 0, 1, 1] * 20}
    audit = judged(data, shift=0.1)
    undecided = [finding for finding in audit.findings if finding.verdict == "insufficient_evidence"]
    assert undecided
    assert not any("It would hold" in str(finding.detail) for finding in undecided)
    assert any("The evidence would stay insufficient with other shares" in str(finding.detail) for finding in undecided)


def test_a_line_never_says_that_a_verdict_would_become_what_it_is() -> None:
    rng = np.random.default_rng(5)
    verdicts: set[str] = set()
    for rows in range(300, 420, 10):
        race, sex = rng.choice(["A", "B", "C"], rows), rng.choice(["F", "M"], rows)
        hired = (rng.random(rows) < np.where(race == "A", 0.5, 0.25) + np.where(sex == "F", 0.1, 0.0)).astype(int)
        data = {"race": race.tolist(), "sex": sex.tolist(), "hired": hired.tolist()}
        for finding in judged(data, shift=0.2).findings:
            told = SHORT_VERDICTS[finding.verdict].lower()
            assert f"be: {told}" not in str(finding.detail)
            # one of several is judged by itself elsewhere
            assert "it would be: does not meet" not in str(finding.detail)
            if "would cover the limit even without adjustment" in str(finding.detail):
                assert str(finding.reason).startswith("Taken alone, this is beyond the limit")
            kinds = ("even without adjustment", "without adjustment for other verdicts would be: does not")
            verdicts.update(name for name in kinds if name in str(finding.detail))
    assert len(verdicts) == 2
