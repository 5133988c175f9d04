"""Would a verdict hold elsewhere: other shares of other groups among the people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.core.display import Figure
from evenhand.errors import ConfigError
from evenhand.report.config import make_config
from evenhand.report.elsewhere import require_extras, weighted_rates
from evenhand.report.formats import make_files

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


def test_weights_are_repetition() -> None:
    """With three women for each one, the gap by race is that of people of whom every woman stands there three times."""
    data = people(1000)
    women = np.array(data["sex"]) == "F"
    times = np.where(women, 3, 1)
    share = float(times[women].sum() / times.sum())
    repeated = {name: np.repeat(values, times).tolist() for name, values in data.items()}
    tried = judged(data, population={"sex": {"F": share, "M": 1 - share}}).extras[0].tables["shifts"]
    truth = {
        gap.kind: gap.value for gap in judged(repeated)["parity"].rows("gaps", grouping="race", against="worst_pair")
    }
    found = {row.kind: row.value for row in tried if row.grouping == "race"}
    assert found == {kind: pytest.approx(value) for kind, value in truth.items()}


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
    assert weighted_rates(hits, n, np.ones(2))[1] == pytest.approx([100.0, 140.0])
    weight = np.array([1.0, 3.0])
    assert (weighted_rates(hits, n, weight)[1] <= (n @ weight) ** 2 / (n @ weight**2) + 1e-9).all()


def test_every_verdict_has_its_line(tmp_path: Path) -> None:
    audit = judged(people(), shift=0.1, population={"sex": {"F": 0.95, "M": 0.05}})
    by_sex = [finding for finding in audit.findings if finding.grouping == "sex"]
    assert all("It would hold with other shares of race" in finding.detail for finding in by_sex)
    by_race = [finding for finding in audit.findings if finding.grouping == "race"]
    assert all("With the shares of sex in the population among the people" in f.detail for f in by_race)
    audit.save(tmp_path)
    assert eh.Audit.load(tmp_path).to_json() == audit.to_json()


def test_a_ratio_has_its_panel_with_the_limit_and_labels_keep_a_decimal() -> None:
    data = people(401)
    audit = judged(data, shift=0.1)
    figure = next(part for part in audit.sections()["elsewhere"].parts if isinstance(part, Figure))
    ratios = [panel for panel in figure.charts if panel.style == "number"]
    assert ratios
    assert all(row["limits"] == (0.8,) for panel in ratios for row in panel.rows)
    assert f"{100 * data['sex'].count('F') / 401:.1f}% here" in audit.to_json()
    assert any(name.startswith("elsewhere-1-") for name in make_files(audit, ["svg"]))


def test_extras_are_refused_before_anything_runs() -> None:
    table = eh.Table({**people(100), "w": [1.0, 2.0] * 50}, groups=["sex"], predictions="hired", weight="w")
    with pytest.raises(ConfigError, match=r"`shift` needs people who count alike.*\('w'\)"):
        eh.audit(table, parity={}, report={"shift": 0.1})
    config = make_config({"parity": {}, "report": {"shift": 0.1, "period": "race"}}, None, where="", allow_code=False)
    with pytest.raises(ConfigError, match=r"`period` and `shift` need the parity audit; add a section \[parity\]"):
        require_extras(config.model_copy(update={"audits": {}}), table)


def test_where_shares_cannot_matter_it_says_so() -> None:
    (first, *_) = judged(people(), ["sex"], shift=0.1).findings
    assert "Other shares of the groups cannot change it" in first.detail


@pytest.mark.parametrize(
    ("population", "match"),
    [
        ({"sx": {"F": 0.5, "M": 0.5}}, "did you mean 'sex'"),
        ({"sex": {"F": 0.5, "N": 0.5}}, "names 'N' of 'sex'"),
        ({"sex": {"F": 1.0}}, "has no share of 'M'"),
        ({"sex": {"F": 0.5, "M": 0.2}}, "add up to 1"),
    ],
)
def test_a_population_that_cannot_be_is_refused(population: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        judged(people(400), population=population)
