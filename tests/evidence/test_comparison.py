"""Two audits compared: the change of every gap with its interval, verdict flips first."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.proportion import (
    confint_proportions_2indep,
    proportion_confint,
)

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.cli.main import main
from evenhand.errors import ConfigError, DataError
from evenhand.evidence.comparison import Comparison, _order
from evenhand.evidence.pairing import Pairing, change_between, difference, size_change
from evenhand.run.plan import setting_changes
from evenhand.table.decided import DecidedRows, read_decided


def month(selected: int, *, people: int = 500, confidence: float = 0.95) -> eh.Audit:
    """Audit women and men of whom so many women, and 200 of 500 men, are hired."""
    hired = [1] * selected + [0] * (people - selected) + [1] * 200 + [0] * 300
    table = eh.Table({"sex": ["F"] * people + ["M"] * 500, "hired": hired}, groups="sex", predictions="hired")
    limits = [{"metric": "selection_rate", "max": 0.1}]
    return eh.audit(table, parity={"resamples": 100, "confidence": confidence}, thresholds=limits)


def test_with_wilson_limits_the_interval_is_newcombes() -> None:
    old, new = (
        (0.4, *proportion_confint(40, 100, method="wilson")),
        (0.6, *proportion_confint(90, 150, method="wilson")),
    )
    change, low, high, _ = difference(old, new, 0.95)
    assert change == pytest.approx(0.2)
    assert (low, high) == pytest.approx(confint_proportions_2indep(90, 150, 40, 100, method="newcomb"))


def test_a_number_is_not_changed_just_where_its_interval_covers_0() -> None:
    old, new = (0.4, 0.3, 0.5), (0.5, 0.41, 0.6)
    _, low, _, p_value = difference(old, new, 0.95)
    assert low is not None
    assert p_value is not None
    assert (low > 0) == (p_value < 0.05)
    edge = (0.4 + (0.09**2 + 0.1**2) ** 0.5, 0.31 + (0.09**2 + 0.1**2) ** 0.5, 0.8)
    assert difference(old, edge, 0.95)[3] == pytest.approx(0.05)


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9, 0.99])
@pytest.mark.parametrize("gaps", [(1.0, -1.0), (1.0, 1.0), (0.0, 1.0), (3.0, 0.0), (3.0, -3.0), (0.0, 0.0)])
@pytest.mark.parametrize("of_worst_pair", [True, False])
def test_the_change_of_a_size_allows_for_a_direction_that_is_not_known(
    gaps: tuple[float, float], correlation: float, of_worst_pair: bool
) -> None:
    """A gap of +1 that became -1 has not grown, although the errors of both hang together closely."""
    rng, truth = np.random.default_rng(0), abs(gaps[1]) - abs(gaps[0])
    drawn = rng.multivariate_normal(gaps, [[1, correlation], [correlation, 1]], 1500)
    covered, false = 0, 0
    for old, new in drawn:
        numbers = [(gap, gap - 1.96, gap + 1.96) for gap in (old, new)]
        if of_worst_pair:
            numbers = [(abs(gap), max(abs(gap) - 1.96, 0.0), abs(gap) + 1.96) for gap in (old, new)]
        change, low, high, p_value = size_change(
            "difference", numbers[0], numbers[1], 0.95, correlation * np.sign(old * new)
        )
        assert change is not None
        assert low is not None
        assert high is not None
        assert p_value is not None
        assert low <= change <= high
        assert (p_value < 0.05) == (low > 0 or high < 0) or abs(p_value - 0.05) < 1e-6
        covered += low <= truth <= high
        false += p_value < 0.05 and (truth == 0 or np.sign(change) != np.sign(truth))
    assert covered / 1500 > 0.93
    assert false / 1500 < 0.07


def test_the_change_of_a_ratio_is_that_of_its_distance_from_1() -> None:
    old, new = (0.8, 0.7, 0.9), (1 / 0.6, 1 / 0.7, 2.0)
    turned = size_change("ratio", old, new, 0.95)
    assert turned == pytest.approx(difference(old, (0.6, 0.5, 0.7), 0.95))
    assert size_change("ratio", new, old, 0.95)[:2] == pytest.approx((0.2, -(turned[2] or 0)))
    wide = size_change("ratio", (0.0, 0.0, 0.3), (0.5, None, None), 0.95)
    assert wide[0] == 0.5
    assert size_change("ratio", (0.5, 0.25, 0.75), (0.5, 0.25, 0.75), 0.95, 1.0) == (0.0, 0.0, 0.0, 1.0)


def test_a_gap_without_an_interval_is_compared_by_its_size_too() -> None:
    assert size_change("difference", (-0.3, None, None), (-0.1, -0.2, 0.0), 0.95) == pytest.approx(
        (-0.2, None, None, None)
    )
    assert size_change("difference", (-0.3, -0.4, -0.2), (-0.1, -0.2, 0.0), 0.95, None)[0] == pytest.approx(-0.2)
    assert size_change("difference", (-0.3, -0.4, -0.2), (None, None, None), 0.95) == (None, None, None, None)


def test_a_gap_that_grew_is_worse_and_its_verdict_flips_first() -> None:
    comparison = eh.compare(month(190), month(80))
    (flip,) = comparison.flips
    assert comparison.changes[0] == flip == comparison.worse[0]
    assert (flip.old_verdict, flip.new_verdict) == ("meets", "does_not_meet")
    assert flip.change == pytest.approx(0.22)
    assert "Verdict from “meets” to “does not meet”" in comparison.summary()
    assert len(comparison.to_frame()) == len(comparison.changes) + len(comparison.others)


def test_backwards_every_change_has_the_other_sign() -> None:
    forwards, backwards = eh.compare(month(190), month(80)), eh.compare(month(80), month(190))
    assert [change.direction for change in backwards.changes] == ["better"]
    for there, back in zip(forwards.changes, backwards.changes, strict=True):
        assert there.low is not None
        assert (back.change, back.high) == pytest.approx((-(there.change or 0), -there.low))


def test_chance_is_no_change() -> None:
    comparison = eh.compare(month(190), month(185))
    assert comparison.worse == ()
    assert comparison.summary().startswith("Of 1 finding compared: 0 worse, 0 better, 1 unclear.")


def test_unclear_changes_are_told_by_how_near_they_come_and_the_rest_counted() -> None:
    """A reader sees that a gap hardly moved, not only that something was unclear; of many, the ten nearest."""
    told = eh.compare(month(190), month(185)).summary().splitlines()
    assert told[1].endswith(": no clear change.")
    assert told[1].startswith("F1, hired, by sex: selection rate (gap, M against F) was 2.0 points before")
    (one,) = eh.compare(month(190), month(185)).changes
    changes = tuple(replace(one, title=f"m{number}", p_value=1 - number / 20) for number in range(13))
    lines = Comparison(changes, (), (), 0.95).summary().splitlines()
    assert [line.split(": ")[1].split(" ")[0] for line in lines[1:11]] == [f"m{12 - at}" for at in range(10)]
    assert lines[11] == "3 more findings without a clear change are in compare.md (--out)."
    assert (
        "3 more findings without a clear change are in the table below."
        in Comparison(changes, (), (), 0.95).to_markdown()
    )


def test_the_same_data_another_confidence_and_nothing_in_common_are_refused() -> None:
    with pytest.raises(ConfigError, match="both audits are of the same data"):
        eh.compare(month(190), month(190))
    with pytest.raises(ConfigError, match="different confidence \\(90%, 95%\\)"):
        eh.compare(month(190), month(180, confidence=0.9))


def test_what_differs_in_settings_is_told() -> None:
    told = eh.compare(month(190), month(180, people=600)).settings
    assert "Rows: 1,000 before, 1,100 now." in map(str, told)


def test_the_command_compares_folders_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    month(190).save(tmp_path / "old")
    month(80).save(tmp_path / "new")
    for order, code in ((("old", "new"), 1), (("new", "old"), 0)):
        with pytest.raises(SystemExit) as left:
            main(["compare", *(str(tmp_path / name) for name in order), "--check", "--out", str(tmp_path / "both")])
        assert left.value.code == code
    assert "better beyond chance" in capsys.readouterr().out.replace("\n", " ")
    written = json.loads((tmp_path / "both/compare.json").read_text(encoding="utf-8"))
    assert written["changes"][0]["direction"] == "better"
    assert (tmp_path / "both/compare.md").read_text(encoding="utf-8").startswith("# Two audits compared")


def three(beta: int, gamma: int) -> eh.Audit:
    """Audit three groups of 400, of whom 160 of the first and so many of the others are hired."""
    hired = [flag for number in (160, beta, gamma) for flag in [1] * number + [0] * (400 - number)]
    groups = [name for name in ("Alpha", "Beta", "Gamma") for _ in range(400)]
    table = eh.Table({"origin": groups, "hired": hired}, groups="origin", predictions="hired", favourable="selected")
    limits = [{"metric": "selection_rate", "min": 0.8}]
    return eh.audit(table, parity={"reference": "Alpha", "metrics": ["selection_rate"]}, thresholds=limits)


def test_a_worst_pair_that_became_another_is_named_with_both_and_the_pair_that_moved_is_told() -> None:
    comparison = eh.compare(three(48, 150), three(70, 16))
    change = next(change for change in comparison.changes if change.kind == "ratio")
    assert (change.old_group, change.group, change.reference) == ("Beta", "Gamma", "Alpha")
    told = change.message().text
    assert "was 0.300 (Beta against Alpha) before, 0.100 (Gamma against Alpha) now" in told
    assert "| Beta → Gamma | Alpha | Selection rate | ratio | 0.300 | 0.100 |" in comparison.to_markdown()
    (moved,) = (line for line in comparison.summary().splitlines() if line.startswith("Among the other gaps"))
    assert "(gap, Gamma against Alpha) was 2.5 points before, 36.0 points now; a change of +33.5 points" in moved
    assert moved.endswith("worse beyond chance.")
    first, second, *_ = comparison.summary().splitlines()
    assert first.startswith("Of 2 findings compared: ")
    assert second.startswith(f"Of {len(comparison.others)} other gaps: ")
    assert " 0 worse" not in second


def test_a_flip_by_chance_stands_below_a_clear_one_and_says_so() -> None:
    clear, chance = (eh.compare(month(190), month(selected)).changes[0] for selected in (80, 185))
    chance = replace(chance, old_verdict="meets", new_verdict="insufficient_evidence")
    assert (clear.direction, chance.direction) == ("worse", "unclear")
    first, second = sorted([chance, clear], key=_order)
    assert (first, second) == (clear, chance)
    lines = Comparison((first, second), (), (), 0.95).summary().splitlines()
    assert lines[1].startswith("Verdict from “meets” to “does not meet”. ")
    assert lines[2].startswith(
        "Verdict from “meets” to “insufficient evidence”, but the change itself is within chance. "
    )


def test_other_gaps_by_chance_claim_nothing_and_say_whose_they_are() -> None:
    comparison = eh.compare(month(190), month(185))
    assert comparison.others
    assert {change.direction for change in comparison.others} == {"unclear"}
    head = next(
        line for line in comparison.to_markdown().split("## Other gaps")[1].splitlines() if line.startswith("|")
    )
    assert "| Group | Compared with |" in head
    assert "better" not in comparison.to_markdown().split("## Other gaps")[1]


def test_two_models_in_one_file_are_not_taken_for_independent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "\n".join(f"{'FM'[i % 2]},{'1011010100'[i % 10]},{'1010011100'[i % 10]}" for i in range(400))
    (tmp_path / "d.csv").write_text(f"sex,first,second\n{rows}\n", encoding="utf-8")
    for name in ("first", "second"):
        data = f'[data]\nsource = "d.csv"\ngroups = ["sex"]\npredictions = {{ m = "{name}" }}\n'
        (tmp_path / f"{name}.toml").write_text(f"{data}[parity]\nresamples = 100\n", encoding="utf-8")
        eh.audit(tmp_path / f"{name}.toml").save(tmp_path / name)
    with pytest.raises(ConfigError, match=r"of the same file 'd.csv'.*give both tables with tables="):
        eh.compare(tmp_path / "first", tmp_path / "second")
    folders = [str(tmp_path / name) for name in ("first", "second")]
    settings = ["--old-settings", str(tmp_path / "first.toml"), "--new-settings", str(tmp_path / "second.toml")]
    for options, code in (([], 2), (settings, 0)):
        with pytest.raises(SystemExit) as left:
            main(["compare", *folders, *options])
        assert left.value.code == code
    told = capsys.readouterr()
    assert "tables=" not in told.err
    assert "--old-settings OLD.toml --new-settings NEW.toml" in " ".join(told.err.split())
    assert "400 people are in both audits" in told.out


def test_of_a_changed_threshold_only_what_differs_is_told() -> None:
    before = [{"metric": "selection_rate", "max": 0.1, "min": None}, {"metric": "tpr", "max": 0.2, "min": None}]
    after = [{"metric": "selection_rate", "max": 0.3, "min": None}, {"metric": "fpr", "max": None, "min": 0.8}]
    assert [change.text for change in setting_changes("[parity] thresholds", before, after)] == [
        "[parity] thresholds, selection_rate, max: 0.1 before, 0.3 now.",
        "[parity] thresholds: metric = 'tpr', max = 0.2 before, none now.",
        "[parity] thresholds: none before, metric = 'fpr', min = 0.8 now.",
    ]


# The same people ------------------------------------------------------------------------------------------------------


def decided(seed: int, *, people: int = 400, agree: float = 0.8, cost: float = 0.0) -> tuple[eh.Table, eh.Table]:
    """Return the same people under two models that agree about most of them; the second selects fewer women."""
    rng = np.random.default_rng(seed)
    sex, first = rng.choice(["F", "M"], people), rng.random(people) < 0.5
    second = np.where(rng.random(people) < agree, first, rng.random(people) < 0.5)
    second &= ~((sex == "F") & (rng.random(people) < cost))
    data = {"person": np.arange(people), "sex": sex, "y": (rng.random(people) < 0.4).astype(int)}
    tables = [
        eh.Table({**data, "d": d.astype(int)}, id="person", groups="sex", outcome="y", predictions={"m": "d"})
        for d in (first, second)
    ]
    return tables[0], tables[1]


def audits(tables: tuple[eh.Table, eh.Table]) -> tuple[eh.Audit, eh.Audit]:
    settings: dict[str, Any] = {"parity": {"metrics": ["selection_rate", "tpr", "accuracy"]}}
    old, new = (eh.audit(table, **settings) for table in tables)
    return old, new


def test_the_covariance_of_two_decisions_is_mcnemars() -> None:
    tables = decided(0)
    old, new = audits(tables)
    pairing = Pairing.of(old, new, tables, None)
    records = [audit["parity"].get("values", metric="selection_rate", group="F") for audit in (old, new)]
    psi = [
        side.influence(REGISTRY["parity"], record)
        for side, record in zip((pairing.old, pairing.new), records, strict=True)
    ]
    assert psi[0] is not None
    assert psi[1] is not None
    rows = [read_decided(table) for table in tables]
    women = np.flatnonzero(rows[0].groups.joint(["sex"])[0] == 0)
    first, second = (each.selected["m"][women] for each in rows)
    b, c, n = (first & ~second).sum(), (~first & second).sum(), len(women)
    assert float((psi[1] - psi[0]) @ (psi[1] - psi[0])) == pytest.approx((b + c - (b - c) ** 2 / n) / n**2)


def test_the_correlation_is_that_of_a_bootstrap_of_people() -> None:
    tables = decided(1, people=1500, cost=0.3)
    old, new = audits(tables)
    pairing, rows = Pairing.of(old, new, tables, None), [read_decided(table) for table in tables]
    times = np.random.default_rng(0).multinomial(1500, np.full(1500, 1 / 1500), 800)
    for metric, kind in itertools.product(["selection_rate", "tpr", "accuracy"], ["difference", "ratio"]):
        place: dict[str, Any] = {"metric": metric, "kind": kind, "against": "worst_pair"}
        gaps = [audit["parity"].get("gaps", **place) for audit in (old, new)]
        drawn = [_gaps(side, times, metric, kind, gap) for side, gap in zip(rows, gaps, strict=True)]
        assert pairing.correlation(old["parity"].descriptor, *gaps) == pytest.approx(np.corrcoef(drawn)[0, 1], abs=0.1)


def _gaps(rows: DecidedRows, times: Any, metric: str, kind: str, gap: Any) -> Any:
    codes, labels = rows.groups.joint(["sex"])
    everybody = np.ones(len(codes), dtype=np.bool_)
    hit, base = {
        "selection_rate": (rows.selected["m"], everybody),
        "tpr": (rows.selected["m"] & rows.positive, rows.positive),
        "accuracy": (rows.selected["m"] == rows.positive, everybody),
    }[metric]
    members = [codes == labels.index(group) for group in (gap.group, gap.reference)]
    p, q = ((times @ (hit & group)) / (times @ (base & group)) for group in members)
    return p - q if kind == "difference" else p / q


def test_the_same_people_give_a_shorter_interval_and_the_order_of_rows_does_not_matter() -> None:
    tables = decided(2, agree=0.95)
    old, new = audits(tables)
    paired = eh.compare(old, new, tables=tables)
    assert paired.shared == 400
    assert "400 people are in both audits" in paired.summary()
    turned = eh.Table(
        {name: np.asarray(values)[::-1].tolist() for name, values in tables[1].data.items()},
        id="person",
        groups="sex",
        outcome="y",
        predictions={"m": "d"},
    )
    assert eh.compare(old, new, tables=(tables[0], turned)).to_json() == paired.to_json()
    apart = eh.compare(old, new)
    for change, other in zip(paired.changes, apart.changes, strict=True):
        assert change.high is not None
        assert change.low is not None
        assert other.high is not None
        assert other.low is not None
        assert change.high - change.low < 0.8 * (other.high - other.low)


def test_people_who_are_in_one_audit_only_do_not_hang_together() -> None:
    first, second = decided(3)[0], decided(4)[1]
    other = eh.Table(
        {**second.data, "person": np.arange(400) + 399}, id="person", groups="sex", outcome="y", predictions={"m": "d"}
    )
    old, new = audits((first, other))
    paired, apart = eh.compare(old, new, tables=(first, other)), eh.compare(old, new)
    assert paired.shared == 1
    assert paired.changes[0].low == pytest.approx(apart.changes[0].low, abs=0.01)


def test_tables_that_are_not_those_of_the_audits_are_refused() -> None:
    tables = decided(5)
    old, new = audits(tables)
    with pytest.raises(ConfigError, match="the old table is not that of the old audit: selection_rate"):
        eh.compare(old, new, tables=(tables[1], tables[1]))
    with pytest.raises(ConfigError, match="it has 300 rows, the audit 400"):
        eh.compare(old, new, tables=(tables[0], decided(5, people=300)[1]))
    with pytest.raises(ConfigError, match="the key 'persn' is not in the data"):
        eh.compare(old, new, tables=tables, key="persn")
    with pytest.raises(DataError, match="the key 'sex' does not tell people apart"):
        eh.compare(old, new, tables=tables, key="sex")
    assert eh.compare(old, old, tables=(tables[0], tables[0])).worse == ()


def test_the_command_takes_the_data_of_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = decided(6, cost=0.4, agree=0.95)
    for name, table in zip(("old", "new"), tables, strict=True):
        columns = {key: np.asarray(values).tolist() for key, values in table.data.items()}
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
        (tmp_path / f"{name}.toml").write_text(
            f'[data]\nsource = "{name}.csv"\nid = "person"\ngroups = "sex"\noutcome = "y"\n'
            'predictions = { m = "d" }\n'
            '[parity]\nmetrics = "selection_rate"\n',
            encoding="utf-8",
        )
        eh.audit(tmp_path / f"{name}.toml").save(tmp_path / name)
    places = [f"--{name}-settings={tmp_path / name}.toml" for name in ("old", "new")]
    with pytest.raises(SystemExit) as left:
        main(["compare", str(tmp_path / "old"), str(tmp_path / "new"), "--check", *places])
    assert left.value.code == 1
    assert "400 people are in both audits" in capsys.readouterr().out.replace("\n", " ")


def people(seed: int, people: int = 300, worse: float = 0.0) -> eh.Table:
    """Return a table that every audit can read; where it is worse, group A is judged less reliably."""
    rng = np.random.default_rng(seed)
    group, base = rng.choice(["A", "B"], people, p=[0.4, 0.6]), rng.normal(3, 1, people)
    score = np.clip(0.5 + 0.1 * (base - 3) + rng.normal(0, 0.1, people), 0, 1)
    columns: dict[str, Any] = {f"income{year}": np.maximum(base + rng.normal(0, 0.5, people), 0) for year in range(4)}
    columns |= {
        "case": np.arange(people) + 1000 * seed,
        "group": group,
        "score": score,
        "other": np.clip(score + rng.normal(0, 0.2, people), 0, 1),
        "first": (score > 0.5).astype(int),
        "second": (score + rng.normal(0, 0.05 + worse * (group == "A"), people) > 0.5).astype(int),
        "label": rng.choice(["a", "b", "c"], people),
        "disagrees": (rng.random(people) < 0.2 + worse * (group == "A")).astype(int),
        "critic": rng.integers(0, 15, people),
    }
    return eh.Table(columns, groups="group", id="case", predictions=["score", "other"])


AUDITS: dict[str, Any] = {
    "agreement": {"raters": ["first", "second"]},
    "effort": {"trajectory": [f"income{year}" for year in range(4)], "unit": 1, "scale": 20},
    "disagreement": {"decision": "label", "disagree": "disagrees", "critic": "critic", "case": "case"},
    "reliability": {
        "model": {"rule": lambda rows: (rows[:, 0] - 2.5) / 2},
        "features": ["income0"],
        "noise": {"features": {"income0": 1}, "noise_levels": [0, 0.2]},
        "replicates": 2,
        "resamples": 100,
    },
    "improvability": {
        "status_quo": "first",
        "outcome": "second",
        "grouping": "group",
        "utility": "classification",
        "candidates": {"rule": {"column": "disagrees"}},
    },
}


@pytest.mark.parametrize("name", AUDITS)
def test_the_numbers_of_every_audit_are_compared(name: str) -> None:
    """Standard errors, degrees of freedom and the like differ in any two audits; they are no part of what is found."""
    section: dict[str, Any] = {name: AUDITS[name]}
    old, new = (eh.audit(people(seed), **section) for seed in (1, 2))
    comparison = eh.compare(old, new)
    told = [finding for finding in new[name].findings if finding.value is not None]
    elsewhere = [finding for finding in told if "bin_low" in finding.coordinates]  # the worst bin may be another one
    assert len(told) - len(elsewhere) <= len(comparison.changes) <= len(told)
    assert comparison.others
    assert not any(word in str(comparison) for word in ("stderr", "df ", "critics", "replicate_sd", "binding"))
    assert not any(line.startswith(",") for line in comparison.summary().splitlines())


def test_agreement_that_falls_is_worse_and_so_is_a_gap_that_grows() -> None:
    old, new = (
        eh.audit(people(seed, 1500, worse), agreement=AUDITS["agreement"]) for seed, worse in ((1, 0), (2, 0.4))
    )
    directions = {(change.metric, change.kind): change.direction for change in eh.compare(old, new).changes}
    assert directions["pabak", None] == directions["pabak", "difference"] == "worse"


def test_a_difference_between_models_keeps_its_sign_and_is_neither_worse_nor_better() -> None:
    first, second = people(1, 600), people(2, 600)
    settings: Any = {**AUDITS["improvability"], "candidates": {"rule": {"column": "second"}}, "outcome": "first"}
    other: Any = {"candidates": {"rule": {"column": "disagrees"}}, "status_quo": "second"}
    old = eh.audit(first, improvability=settings | {"status_quo": "disagrees"})  # the candidate is far better
    new = eh.audit(second, improvability=settings | other)
    comparison = eh.compare(old, new)
    assert "any “worse”, “better” or “changed” is false" in comparison.summary()
    (change,) = (c for c in comparison.others if c.metric == "classification" and c.group == "A")
    assert change.old is not None
    assert change.new is not None
    assert change.old > 0.3 > -0.3 > change.new
    assert change.change == pytest.approx(change.new - change.old)
    assert change.direction == "changed"


def test_the_change_of_numbers_that_answers_leave_open_covers_all_that_they_allow() -> None:
    """Two gaps that may each lie anywhere from 0 to 0.6 may have changed by up to 0.6."""
    number, ends = (0.3, 0.0, 0.6), (0.0, 0.6)
    assert change_between("difference", [number, number], [ends, ends], 0.95)[1:] == pytest.approx((-0.6, 0.6, 1.0))
    rng, missed, false = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        ranges = [(least, least + 0.2) for least in np.array([0.1, 0.35]) + rng.normal(0, 0.05, 2)]
        numbers = [((least + most) / 2, least - 1.96 * 0.05, most + 1.96 * 0.05) for least, most in ranges]
        change, low, high, p_value = change_between("difference", numbers, ranges, 0.95)
        assert change is not None
        assert low is not None
        assert high is not None
        assert p_value is not None
        assert low <= change <= high
        missed += not low <= 0.05 <= high  # from the top of the one to the bottom of the other
        false += p_value < 0.05 and change < 0
    assert missed / 1000 < 0.04
    assert false == 0


def test_a_verdict_that_is_lost_is_a_flip() -> None:
    comparison = eh.compare(month(190), month(1, people=3))
    (flip,) = comparison.flips
    assert (flip.old_verdict, flip.new_verdict, flip.change) == ("meets", "insufficient_evidence", None)
    assert "was 2.0 points before, undefined now." in comparison.summary()


def test_findings_keep_their_numbers_in_a_comparison_and_are_drawn(tmp_path: Path) -> None:
    old, new = month(190), month(120)
    comparison = eh.compare(old, new)
    numbers = {(f.metric, f.limit, f.number) for f in new.findings}
    for change in comparison.changes:
        assert change.number in {number for metric, _, number in numbers if metric == change.metric}
        assert change.old_number in {finding.number for finding in old.findings}
        assert change.message().text.startswith(f"{change.number}, ")
    assert "| F1 |" in comparison.to_markdown()
    assert all(change.number is None for change in comparison.others)
    assert not any("F" in str(change.message())[:1] for change in comparison.others)
    (path,) = (path for name, path in comparison.save(tmp_path).items() if name == "compare.svg")
    svg = path.read_text(encoding="utf-8")
    assert "![What changed](compare.svg)" in (tmp_path / "compare.md").read_text(encoding="utf-8")
    for change in comparison.changes:
        assert f" {change.number}, sex, " in svg
    assert comparison.plot().panels
    assert "<svg" in comparison._repr_html_()


def test_a_comparison_without_numbers_has_nothing_to_draw() -> None:
    empty = Comparison((), (), (), 0.95)
    with pytest.raises(ConfigError, match="there is nothing to draw: no finding has a number in both audits"):
        empty.plot()
    assert "<svg" not in empty._repr_html_()


def test_a_reference_group_that_changes_is_named() -> None:
    """Two groups of about the same size change places: no gap to the reference is in both audits."""

    def month(largest: int, reference: str | None = None) -> eh.Audit:
        groups = ["A"] * 200 + ["B"] * largest + ["C"] * 60
        data = {"g": groups, "hired": [number % 2 for number in range(len(groups))]}
        table = eh.Table(data, groups="g", predictions="hired", favourable="selected")
        return eh.audit(table, parity={"metrics": "selection_rate", "reference": reference})

    told = [note for note in eh.compare(month(190), month(210)).settings if note.id == "evidence.reference_changed"]
    assert [(note.args["grouping"], note.args["old"], note.args["new"]) for note in told] == [("g", ("A",), ("B",))]
    same = eh.compare(month(190, reference="A"), month(210, reference="A"))
    assert not any(note.id == "evidence.reference_changed" for note in same.settings)
