"""Small counts are hidden in all that is published, and a linear program cannot get them back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import evenhand as eh
from evenhand.errors import ConfigError
from evenhand.stats.disclosure import CountedPeople, hide_small_groups
from evenhand.table.roles import SMALL

LEAST = 10
STATES = [(y, d) for y in (0, 1) for d in (0, 1)]
METRICS = ["selection_rate", "base_rate", "tpr", "fpr", "ppv", "accuracy"]
ABOVE = {  # what a metric counts above and below its line, in states (outcome, decision)
    "selection_rate": ({(0, 1), (1, 1)}, set(STATES)),
    "base_rate": ({(1, 0), (1, 1)}, set(STATES)),
    "tpr": ({(1, 1)}, {(1, 0), (1, 1)}),
    "fpr": ({(0, 1)}, {(0, 0), (0, 1)}),
    "ppv": ({(1, 1)}, {(0, 1), (1, 1)}),
    "accuracy": ({(0, 0), (1, 1)}, set(STATES)),
}


def people(seed: int, rows: int = 600) -> dict[str, Any]:
    """Return people of five races and two sexes, some of them rare."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([6, 3, 2, 0.5, 0.3])
    return {
        "race": rng.choice(list("ABCDE"), rows, p=shares).tolist(),
        "sex": rng.choice(["F", "M"], rows, p=[0.45, 0.55]).tolist(),
        "y": (rng.random(rows) < 0.4).astype(int).tolist(),
        "d": (rng.random(rows) < 0.45).astype(int).tolist(),
    }


def audited(data: dict[str, Any], groups: Any, **report: Any) -> eh.Audit:
    table = eh.Table(data, outcome="y", groups=groups, predictions="d", favourable="selected")
    settings = {"suppress_below": LEAST, **report}
    return eh.audit(table, parity={"metrics": METRICS, "resamples": 100}, report=settings)


def attack(results: dict[str, Any], data: dict[str, Any], groups: list[Any]) -> dict[Any, tuple[int, float]]:
    """Return every small count that was asked for, with the width of what the published numbers allow for it.

    The reader knows which groups there are and which are behind "(small groups)": that is said. Unknown are the people
    of each race, sex, outcome and decision; every published value gives two equations, its n and its count.
    """
    cells = sorted({(r, s) for r, s in zip(data["race"], data["sex"], strict=True)})
    unknown = [(r, s, state) for r, s in cells for state in STATES]
    column: dict[str, Any] = {"race": lambda u: u[0], "sex": lambda u: u[1], "race × sex": lambda u: f"{u[0]} × {u[1]}"}
    values = results["audits"]["parity"]["values"]
    rows, right = [], []
    for value in values:
        shown = {v["group"] for v in values if v["grouping"] == value["grouping"]}

        def is_in(u: Any, value: Any = value, shown: Any = shown) -> bool:
            name = column[value["grouping"]](u)
            return name not in shown if value["group"] == SMALL else name == value["group"]

        above, below = ABOVE[value["metric"]]
        for states, number in ((below, value["n"]), (above, value["n"] * (value["value"] or 0))):
            rows.append([is_in(u) and u[2] in states for u in unknown])
            right.append(round(number))
    matrix = np.array(rows, dtype=float)
    counted = Counter(zip(data["race"], data["sex"], zip(data["y"], data["d"], strict=True), strict=True))
    truth = np.array([counted[u] for u in unknown])
    assert matrix @ truth == pytest.approx(np.array(right))
    widths: dict[Any, tuple[int, float]] = {}
    for name in ["race", "sex", "race × sex"][: len(groups)]:
        for group in sorted({column[name](u) for u in unknown}):
            for state in STATES:
                wanted: Any = np.array([column[name](u) == group and u[2] == state for u in unknown], dtype=np.float64)
                number = int(wanted @ truth)
                if 0 < number < LEAST:
                    ends: list[Any] = [linprog(sign * wanted, A_eq=matrix, b_eq=right).fun for sign in (1, -1)]
                    widths[name, group, state] = number, -ends[1] - ends[0]
    return widths


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 25))])
def test_a_linear_program_cannot_narrow_a_hidden_count(seed: int) -> None:
    data, groups = people(seed), ["race", "sex", ["race", "sex"]]
    results = json.loads(audited(data, groups).to_json())
    widths = attack(results, data, groups)
    assert widths
    assert min(width for _, width in widths.values()) >= LEAST - 1e-6


def test_without_the_rule_the_same_attack_finds_every_small_count() -> None:
    data, groups = people(0), ["race", "sex", ["race", "sex"]]
    results = json.loads(audited(data, groups, suppress_below=None).to_json())
    assert max(width for _, width in attack(results, data, groups).values()) == pytest.approx(0)


@pytest.mark.parametrize("seed", range(4))
def test_no_published_number_is_a_small_count(seed: int) -> None:
    """Of any table: n, and what a rate of n people counts."""
    audit = audited(people(seed, 400), ["race", "sex"], profile="ugesp-1978")
    written = json.loads(audit.to_json())["audits"]["parity"]
    for value in written["values"]:
        counted = round(value["n"] * (value["value"] or 0))
        for number in (value["n"], counted, value["n"] - counted):
            assert not 0 < number < LEAST, value
    for table in ("gaps", "left_out"):
        assert not any(0 < record["n"] < LEAST for record in written[table])
    impact = audit.profiles[0].tables["impact"]
    assert impact
    assert not any(0 < number < LEAST for row in impact for number in (row.n, row.selected))


def test_many_tables_are_safe_by_the_rule() -> None:
    """Counts of groups alone, hidden with at least one other: whoever is hidden may be anything from 0 to the rest."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        groups = int(rng.integers(3, 9))
        n = rng.integers(0, 40, groups)
        table = CountedPeople(n, (np.arange(groups),), (np.zeros(groups, dtype=np.int64),))
        (hidden,) = hide_small_groups(table, LEAST)
        if hidden is not None and hidden.any():
            assert hidden.sum() > 1
            assert n[hidden].sum() >= LEAST
        assert hidden is None or not ((n[~hidden] > 0) & (n[~hidden] < LEAST)).any()


def test_it_says_what_it_did_everywhere(tmp_path: Path) -> None:
    audit = audited(people(1), ["race", "sex"])
    hidden = [note.text for note in audit["parity"].notes if note.id == "after.small_groups_together"]
    assert "“(small groups)” and not compared" in hidden[0]
    paths = audit.save(tmp_path, ("html", "md"))
    assert "Small counts are hidden" in paths["report.html"].read_text(encoding="utf-8")
    assert "Small counts are hidden" in paths["report.md"].read_text(encoding="utf-8")
    assert eh.Audit.load(tmp_path).to_json() == audit.to_json()
    names: Any = audit["parity"].notes[1].args["groups"]
    for value in audit["parity"].rows("values"):
        assert value.group not in names


def test_the_sizes_of_groups_are_those_after_hiding() -> None:
    data = people(1)
    sizes = audited(data, ["race", "sex"]).data["groups"]
    assert SMALL in sizes["race"]
    in_full = Counter(data["race"])
    assert all(in_full[group] == n for group, n in sizes["race"].items() if group != SMALL)
    assert sum(sizes["race"].values()) == sum(sizes["sex"].values()) == 600
    assert min(sizes["race"].values()) >= LEAST


def test_a_missing_group_that_is_hidden_is_not_called_known(tmp_path: Path) -> None:
    data = people(1)
    data["sex"][:3] = [None] * 3
    paths = audited(data, ["race", "sex"]).save(tmp_path, ("html", "md"))
    for name in ("report.html", "report.md"):
        page = paths[name].read_text(encoding="utf-8").replace("&#39;", "'")
        assert "Every row of the data was used." in page
        assert "No one's group is missing" not in page


def test_row_order_changes_nothing_and_nothing_small_hides_nothing() -> None:
    data = people(2)
    turned = {name: values[::-1] for name, values in data.items()}
    assert audited(data, ["race"]).to_json() == audited(turned, ["race"]).to_json()
    large = {name: values * 60 for name, values in people(3, 300).items()}
    plain, hidden = audited(large, ["sex"], suppress_below=None), audited(large, ["sex"])
    assert plain["parity"].rows("gaps") == hidden["parity"].rows("gaps")


def test_score_bins_are_fewer_or_gone() -> None:
    rng = np.random.default_rng(5)
    score = rng.random(900)
    data = {**people(5, 900), "y": (rng.random(900) < score).astype(int).tolist(), "s": score.tolist()}
    table = eh.Table(data, outcome="y", groups="sex", predictions="s")
    result = eh.audit(table, parity={"metrics": METRICS}, report={"suppress_below": LEAST})["parity"]
    assert result.rows("calibration")
    assert all(record.n >= LEAST for record in result.rows("calibration"))
    assert "Calibration is shown in 4 score bins in place of 10." in map(str, result.notes)


@pytest.mark.parametrize(
    ("change", "report", "match"),
    [
        ({}, {"suppress_below": 400}, "leaves no grouping with two groups"),
        ({}, {"suppress_below": 1}, "suppress_below"),
    ],
)
def test_what_cannot_be_hidden_is_refused(change: dict[str, Any], report: dict[str, Any], match: str) -> None:
    table = eh.Table(people(0), outcome="y", groups=["race", "sex"], predictions="d")
    with pytest.raises(ConfigError, match=match):
        eh.audit(table, parity={}, **change, report={"suppress_below": LEAST, **report})


def test_a_few_dropped_rows_are_refused() -> None:
    data: dict[str, Any] = people(0)
    data["y"] = [None, None, *data["y"][2:]]
    table = eh.Table(data, outcome="y", groups="race", predictions="d", missing="drop")
    with pytest.raises(ConfigError, match="2 rows dropped"):
        eh.audit(table, parity={}, report={"suppress_below": LEAST})
