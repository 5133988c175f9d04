"""Small counts of every audit are hidden, and a linear program cannot get them back from what was written."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import evenhand as eh
from evenhand.after.profiles.result import TABLES
from evenhand.after.records import EXTRAS
from evenhand.after.withholding import _without_small_rows
from evenhand.audits import REGISTRY
from evenhand.core.disclosure import revealed_counts
from evenhand.core.records import Record, declarations
from evenhand.errors import ConfigError
from evenhand.messages import Message, language
from evenhand.messages.disclosure import counts_in
from evenhand.stats.effort import aggregate_scores, effort_scores
from evenhand.table.roles import SMALL

LEAST = 10
RARE = ("Rarebird", "Scarcefish")
WIDTH = 0.25
Person = dict[str, Any]
Test = Callable[[Person], bool]


@cache
def people(seed: int = 3, rows: int = 1000) -> dict[str, list[Any]]:
    """Return people of five races, two of them rare, whom every audit can read."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["Black", "Other", "White", *RARE], rows, p=[0.33, 0.2, 0.445, 0.015, 0.01])
    sex, ability = rng.choice(["F", "M"], rows), rng.normal(0, 1, rows)
    outcome = (ability + rng.normal(0, 1, rows) > 0).astype(int)
    risk = 1 / (1 + np.exp(-(ability + rng.normal(0, 1.5, rows))))
    first = np.where(rng.random(rows) < 0.7, outcome, 1 - outcome)
    columns: dict[str, Any] = {
        "race": race,
        "sex": sex,
        "outcome": outcome,
        "risk": risk.round(6),
        "age": rng.integers(20, 70, rows),
        "income": (30 + 8 * ability + rng.normal(0, 4, rows)).round(3),
        **{f"y{at}": rng.uniform(20, 60, rows).round(3) for at in (1, 2, 3)},
        "a": first,
        "b": np.where(rng.random(rows) < 0.65, first, 1 - first),
        "label": np.where(risk > 0.5, "high", "low"),
        "critic": [f"critic {number % 30}" for number in range(rows)],
        "disagree": (rng.random(rows) < 0.4).astype(int),
        "hired": (risk > 0.5).astype(int),
        "right": np.where(outcome == 1, "high", "low"),
        "quarter": rng.choice(["Q1", "Q2", "Q3", "Q4"], rows, p=[0.355, 0.375, 0.15, 0.12]),
    }
    return {name: np.asarray(column).tolist() for name, column in columns.items()}


SETTINGS: dict[str, dict[str, Any]] = {
    "parity": {"metrics": ["selection_rate", "base_rate", "tpr", "fpr", "ppv", "accuracy"], "resamples": 100},
    "effort": {"trajectory": ["y1", "y2", "y3"], "unit": 20, "scale": 100, "width": WIDTH, "worst": 0},
    "disagreement": {"decision": "label", "critic": "critic", "disagree": "disagree", "resamples": 100},
    "reliability": {
        "model": "logistic",
        "features": ["age", "income"],
        "noise": {"features": {"age": 5, "income": 3}, "noise_levels": [0, 0.2]},
        "replicates": 2,
        "resamples": 100,
        "attribution": False,
    },
    "agreement": {"raters": ["a", "b"], "resamples": 200},
    "classes": {"decision": "label", "truth": "right", "order": ["low", "high"]},
    "paired": {"template": "critic", "answer": "hired"},
    "ranking": {"query": "critic", "size": 5},
    "wait": {"days": "income", "long": 45},
    "improvability": {"status_quo": "hired", "grouping": "race", "candidates": "b", "resamples": 4000},
}


def section(audit: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the section of one audit, as keyword arguments of `audit`."""
    return {audit: settings}


SIDE_BY_SIDE = ("race", "sex", ["race", "sex"])


@cache
def audited(
    audits: tuple[str, ...], crossed: bool = False, least: int | None = LEAST, seed: int = 3, **report: Any
) -> eh.Audit:
    groups = list(SIDE_BY_SIDE) if crossed else ["race", "sex"]
    table = eh.Table(people(seed), outcome="outcome", groups=groups, predictions={"m": "risk"}, favourable="selected")
    sections: dict[str, Any] = {name: dict(SETTINGS[name]) for name in audits}
    return eh.audit(table, **sections, report={"suppress_below": least, **report})


@cache
def persons(seed: int = 3) -> list[Person]:
    """Return everybody with all that is published about people."""
    data = people(seed)
    paths = np.column_stack([data[f"y{at}"] for at in (1, 2, 3)])
    effort = effort_scores(paths, np.ones(len(paths)), True, 20)
    assert aggregate_scores(paths, 100).shape == effort.shape
    rows = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
    for row, each in zip(rows, effort.tolist(), strict=True):
        row |= {"bin": int(each // WIDTH), "d": row["hired"], "long": row["income"] > SETTINGS["wait"]["long"]}
    return rows


def name_of(person: Person, grouping: str) -> str:
    return " × ".join(person[part] for part in grouping.split(" × "))


# What is published, as equations -------------------------------------------------------------------------------------


def of_group(records: list[dict[str, Any]], grouping: str | None, group: str | None) -> Test:
    """Return who is in a group; "(small groups)" are all whom the same table does not show."""
    if grouping is None:
        return lambda person: True
    shown = {record["group"] for record in records if record["grouping"] == grouping}
    if group == SMALL:
        return lambda person: name_of(person, grouping) not in shown
    return lambda person: name_of(person, grouping) == group


PARITY: dict[str, tuple[Test, Test]] = {
    "selection_rate": (lambda p: p["d"] == 1, lambda p: True),
    "base_rate": (lambda p: p["outcome"] == 1, lambda p: True),
    "tpr": (lambda p: p["d"] == 1, lambda p: p["outcome"] == 1),
    "fpr": (lambda p: p["d"] == 1, lambda p: p["outcome"] == 0),
    "ppv": (lambda p: p["outcome"] == 1, lambda p: p["d"] == 1),
    "accuracy": (lambda p: p["outcome"] == p["d"], lambda p: True),
}


def counts_of(audit: str, table: str, record: dict[str, Any]) -> Iterator[tuple[Test, float]]:
    """Yield who of a group a record counts, and how many they are."""
    n, value = record["n"], record.get("value")
    metric = record.get("metric")
    if audit == "parity" and table == "values":
        hit, counted = PARITY[str(metric)]
        yield counted, n
        yield (lambda p: hit(p) and counted(p)), n * (value or 0)
    elif audit == "effort" and table == "values" and metric == "mean_score":
        low = record["bin_low"]
        yield (lambda p: low is None or p["bin"] == round(low / WIDTH)), n
    elif table == "counts":
        yield (lambda p: (str(p["a"]), str(p["b"])) == (record["first"], record["second"])), n
    elif audit == "disagreement" and table == "values":
        yield from answers_of(record)
    elif audit == "improvability" and table == "values" and record["model"] == "status_quo":
        yield (lambda p: True), n
        yield (lambda p: p["hired"] == p["outcome"]), n * value
    elif audit == "classes" and table == "values":
        yield from classes_of(record)
    elif table == "long_waits":
        yield (lambda p: p["long"]), n
    elif audit == "ranking" and metric == "pairwise_accuracy":
        return  # of positive people in lists with a negative one
    elif audit in ("agreement", "reliability", "wait", "paired", "ranking") and table == "values":
        yield (lambda p: True), n


def classes_of(record: dict[str, Any]) -> Iterator[tuple[Test, float]]:
    label, n, value = record["label"], record["n"], record["value"] or 0
    counted: dict[str, Test] = {
        "class_rate": lambda p: True,
        "class_recall": lambda p: p["right"] == label,
        "class_precision": lambda p: p["label"] == label,
        "class_false_rate": lambda p: p["right"] != label,
    }
    hit: Test = (
        (lambda p: p["right"] == label) if record["metric"] == "class_precision" else lambda p: p["label"] == label
    )
    below = counted[record["metric"]]
    yield below, n
    yield both(hit, below), n * value


def answers_of(record: dict[str, Any]) -> Iterator[tuple[Test, float]]:
    label, n, value = record["label"], record["n"], record["value"]
    if record["metric"] == "calibration":
        yield (lambda p: p["label"] == label), n
        yield (lambda p: p["label"] == label and not p["disagree"]), n * value
    elif record["metric"] == "statistical_parity":
        yield (lambda p: p["label"] == label), n * value
    elif record["metric"] == "accuracy_equality":
        yield (lambda p: not p["disagree"]), n * value


def both(*tests: Test) -> Test:
    return lambda person: all(test(person) for test in tests)


def among(races: list[str]) -> Test:
    return lambda person: person["race"] in races


def in_quarter(quarter: str) -> Test:
    return lambda person: person["quarter"] == quarter


def equations(written: dict[str, Any]) -> Iterator[tuple[Test, float]]:
    """Walk `results.json` and yield every number of people in it, and of whom."""
    for grouping, sizes in written["data"]["groups"].items():
        records = [{"grouping": grouping, "group": group} for group in sizes]
        for group, n in sizes.items():
            yield of_group(records, grouping, group), n
    for audit, tables in written["audits"].items():
        for table, records in tables.items():
            if not isinstance(records, list) or not records or not isinstance(records[0], dict):
                continue
            for record in records:
                if "n" not in record or "group" not in record:
                    continue
                inside = of_group(records, record["grouping"], record["group"])
                if audit == "improvability" and record["grouping"] is None:  # of all groups that it compares
                    inside = among(tables["groups"])
                for counted, number in counts_of(audit, table, record):
                    yield both(inside, counted), number
    for extra in written["extras"]:
        for record in extra["tables"].get("periods", []):
            inside = of_group([record], record["grouping"], record["group"])
            hit, below = PARITY[record["metric"]]
            here = both(inside, below, in_quarter(record["period"]))
            yield here, record["n"]
            yield both(here, hit), record["n"] * (record["value"] or 0)


def attack(
    written: dict[str, Any], states: tuple[str, ...], asked: list[tuple[str, ...]], seed: int = 3
) -> list[tuple[Any, float]]:
    """Return every small count by group and by group and state, and how far apart its least and largest value are.

    Unknown are the people of every race and sex that occur, in every combination of states that occurs.
    """
    everybody = persons(seed)
    kinds = {tuple(person[state] for state in ("race", "sex", *states)) for person in everybody}
    groups = sorted({kind[:2] for kind in kinds})
    combined = sorted({kind[2:] for kind in kinds})
    unknown = [
        dict(zip(("race", "sex", *states), (*group, *state), strict=True)) for group in groups for state in combined
    ]
    counted = Counter(tuple(person[name] for name in ("race", "sex", *states)) for person in everybody)
    truth = np.array([counted[tuple(kind.values())] for kind in unknown], dtype=float)
    system: dict[tuple[bool, ...], float] = {}
    for test, number in equations(written):
        row = tuple(test(kind) for kind in unknown)
        assert np.array(row) @ truth == pytest.approx(number, abs=1e-6)
        system[row] = round(number)
    matrix, right = np.array(list(system), dtype=float), list(system.values())
    found = []
    for grouping in ("race", "sex", "race × sex"):
        for columns in asked:
            for place in sorted({(name_of(k, grouping), *(k[column] for column in columns)) for k in unknown}):
                wanted = np.array(
                    [(name_of(k, grouping), *(k[c] for c in columns)) == place for k in unknown], dtype=float
                )
                if 0 < wanted @ truth < LEAST:
                    ends: list[Any] = [linprog(sign * wanted, A_eq=matrix, b_eq=right) for sign in (1, -1)]
                    found.append(((grouping, *place), -ends[1].fun - ends[0].fun))
    return found


STATES: dict[str, tuple[str, ...]] = {
    "parity": ("outcome", "d"),
    "effort": ("bin",),
    "agreement": ("a", "b"),
    "disagreement": ("label", "disagree"),
    "reliability": (),
    "improvability": ("hired", "outcome"),
    "classes": ("label", "right"),
    "paired": (),
    "ranking": (),
    "wait": ("long",),  # of tests/plugin
}


SEEDS = [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (4, 5, 6))]
FEW = {4: 8, 5: 9, 6: 11}
"""Seeds in whose place those stand with a race of fewer than ten: what counts people alone has nothing small else."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("crossed", [False, True], ids=["side by side", "crossed"])
@pytest.mark.parametrize(
    "audit", [pytest.param(name, marks=[pytest.mark.slow] * (not STATES[name])) for name in REGISTRY]
)
def test_a_linear_program_cannot_narrow_a_hidden_count(audit: str, crossed: bool, seed: int) -> None:
    states = STATES[audit]
    seed = seed if states else FEW.get(seed, seed)
    written = json.loads(audited((audit,), crossed, seed=seed).to_json())
    assert not written["audits"][audit].get("spread")  # its ranges are finer than any bin
    published = ("race", "sex", "race × sex") if crossed else ("race", "sex")
    widths = attack(written, states, [(), *((states,) if states else ())], seed)
    asked = [(place, width) for place, width in widths if place[0] in published]
    assert asked
    assert min(width for _, width in asked) >= LEAST - 1e-6, min(asked, key=lambda pair: pair[1])


def test_audits_side_by_side_do_not_tell_what_each_hides() -> None:
    audits = ("parity", "agreement", "disagreement")
    written = json.loads(audited(audits).to_json())
    for audit in audits:
        others = {"outcome", "d", *STATES[audit]}
        states = tuple(sorted(others))
        one = {**written, "audits": {name: written["audits"][name] for name in {"parity", audit}}}
        widths = [pair for pair in attack(one, states, [(), STATES[audit]]) if pair[0][0] != "race × sex"]
        assert min(width for _, width in widths) >= LEAST - 1e-6


@pytest.mark.parametrize("audit", list(REGISTRY))
def test_without_the_rule_small_counts_are_told(audit: str) -> None:
    written = json.loads(audited((audit,), least=None).to_json())
    widths = attack(written, STATES[audit], [()])
    assert min(width for _, width in widths) == pytest.approx(0)


# What is written -----------------------------------------------------------------------------------------------------


def small_numbers(value: Any, where: str = "") -> Iterator[str]:
    """Walk what was written and yield every count of people that is small."""
    names = ("n", "n_reference", "critics", "critics_reference", "selected", "changed", "tied", "counted", "rows")
    if isinstance(value, dict) and value.keys() == {"id", "args", "text"}:
        if any(0 < number < LEAST for number in counts_in(Message.from_dict(value))):
            yield f"{where} = {value['text']}"
    elif isinstance(value, dict):
        for name, item in value.items():
            is_count = name in names and isinstance(item, int) and not isinstance(item, bool)
            if is_count and 0 < item < LEAST:
                yield f"{where}.{name} = {item}"
            yield from small_numbers(item, f"{where}.{name}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from small_numbers(item, f"{where}[{at}]")


@pytest.mark.parametrize("audit", list(REGISTRY))
def test_no_small_count_stands_in_results_json(audit: str) -> None:
    written = json.loads(audited((audit,)).to_json())
    assert not list(small_numbers({name: written[name] for name in ("data", "findings", "audits")}))
    assert list(small_numbers(json.loads(audited((audit,), least=None).to_json())["audits"]))


FORMATS = ("md", "xlsx", "csv", "card", "datasheet", "junit")


@pytest.mark.parametrize(
    ("audit", "formats"),
    [
        *((audit, FORMATS) for audit in REGISTRY),
        ("agreement", ("html",)),
        *(pytest.param(audit, ("html", "svg"), marks=pytest.mark.slow) for audit in REGISTRY),
    ],
)
def test_no_format_tells_of_a_hidden_group(audit: str, formats: tuple[str, ...], tmp_path: Path) -> None:
    """The names of hidden groups stand in the one sentence that says they are hidden, and nowhere else."""
    found = audited((audit,))
    notes = [note.text for note in found[audit].notes if RARE[0] in note.text]
    assert len(notes) == 1
    for name, path in found.save(tmp_path, formats).items():
        for text in texts(path):
            assert RARE[0] not in without_note(text, notes[0]), name


def without_note(text: str, note: str) -> str:
    """Return a text without the one sentence that names hidden groups, which results.json holds as data."""
    if not text.startswith("{"):
        return text.replace(note, "")
    written = json.loads(text)
    for audit in written.get("audits", {}).values():
        audit["notes"] = [other for other in audit["notes"] if other["text"] != note]
    return json.dumps(written)


def texts(path: Path) -> list[str]:
    content = path.read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return [content.decode("utf-8", errors="ignore")]
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        return [packed.read(name).decode("utf-8", errors="ignore") for name in packed.namelist()]


def test_it_says_how_much_is_withheld_and_by_what_rule() -> None:
    notes = " ".join(map(str, audited(("effort",))["effort"].notes))
    assert "Small counts are hidden (`suppress_below` 10)" in notes
    assert "records are withheld" in notes
    assert "fewer than 10 people" in notes


@pytest.mark.parametrize("audit", ["effort", "disagreement", "reliability", "agreement", "improvability"])
def test_what_is_withheld_is_named_in_german(audit: str) -> None:
    """A metric or a table has the name that `results.json` has; all other words are translated."""
    result = audited((audit,), crossed=True).results[audit]
    (note,) = [note for note in result.notes if note.id == "after.small_records_withheld"]
    parts = note.args["parts"]
    assert isinstance(parts, tuple)
    named = {*result.metrics, *result.record_types()}
    for part in parts:
        if isinstance(part, Message):
            assert language("de").translates(part)
            assert language("de").render(part) != part.text
        else:
            assert part in named or language("de").word("noun", str(part)) != part


def test_why_crossed_groupings_lose_whole_tables_is_said_in_one_sentence() -> None:
    """Side by side they keep bins and ratings; crossed, the reason is that tables add up, not that bins are few."""
    crossed, apart = (
        " ".join(map(str, audited(("agreement",), crossed)["agreement"].notes)) for crossed in (True, False)
    )
    words = (
        "Tables by race, sex and race × sex add up to each other, and some of their groups are hidden: so everything"
    )
    assert crossed.count(words) == 1
    assert "add up" not in apart
    calibration = "Calibration is withheld"
    assert f"{calibration}." in " ".join(map(str, audited(("parity",), True)["parity"].notes))


def test_a_threshold_on_what_is_withheld_says_so() -> None:
    table = eh.Table(people(), outcome="outcome", groups=["race", "sex"], predictions={"m": "risk"})
    limit = {"metric": "eagf", "min": 0.8, "grouping": "race"}
    narrow = {**SETTINGS["effort"], "width": 0.01}
    found = eh.audit(table, **section("effort", narrow), thresholds=[limit], report={"suppress_below": LEAST}).findings[
        0
    ]
    assert (found.verdict, found.value, found.n) == ("insufficient_evidence", None, 0)
    assert str(found.reason) == "Hidden: fewer than 10 people."


def test_few_critics_are_told_in_no_table_and_no_remark() -> None:
    data = {**people(), "critic": [f"critic {number % 5}" for number in range(1000)]}
    table = eh.Table(data, groups=["race", "sex"])
    result = eh.audit(table, **section("disagreement", SETTINGS["disagreement"]), report={"suppress_below": LEAST})[
        "disagreement"
    ]
    assert not result.rows("values")
    assert not result.rows("gaps")
    assert not any("5 critics" in note.text for note in result.notes)


# Beside the audits ---------------------------------------------------------------------------------------------------


def test_small_periods_are_in_none_and_cannot_be_worked_out() -> None:
    audit = audited(("parity",), period="quarter")
    written = json.loads(audit.to_json())
    (extra,) = written["extras"]
    assert {record["period"] for record in extra["tables"]["periods"]} == {"Q1", "Q2"}
    assert any("because too few people share theirs: Q3, Q4" in note["text"] for note in extra["notes"])
    widths = attack(written, ("outcome", "d", "quarter"), [("quarter", "d")])
    assert min(width for place, width in widths if place[0] != "race × sex") >= LEAST - 1e-6


def test_other_populations_are_reported_only_where_counts_by_both_columns_are_large() -> None:
    limits = [{"metric": "selection_rate", "max": 0.1}]
    table = eh.Table(people(), outcome="outcome", groups=["race", "sex"], predictions={"m": "risk"})
    settings = {"suppress_below": LEAST, "shift": 0.1, "population": {"sex": ["F"] * 50 + ["M"] * 50}}
    audit = eh.audit(table, **section("parity", SETTINGS["parity"]), thresholds=limits, report=settings)
    assert audit.extras[0].tables["shifts"]
    assert not any("withheld" in str(shift.shares) for shift in audit.extras[0].tables["shifts"])
    written = json.loads(audit.to_json())
    for result in written["audits"].values():
        result["notes"] = [note for note in result["notes"] if RARE[0] not in note["text"]]
    assert not any(name in json.dumps(written) for name in RARE)
    few = {"suppress_below": 32, "shift": 0.1}
    coarse = eh.audit(table, **section("parity", SETTINGS["parity"]), thresholds=limits, report=few)
    assert any("another column at once can be small" in str(finding.detail) for finding in coarse.findings)


def test_scoring_rates_of_a_profile_are_withheld() -> None:
    audit = audited(("parity",), profile="nyc-ll144-2023")
    assert not audit.profiles[0].tables["rates"]
    assert "after.small_scoring_rates" in {note.id for note in audit.profiles[0].notes}
    clauses = {row.asks: row for row in audit.profiles[0].tables["checklist"]}
    asked = clauses["Number of people, rates and impact ratios"]
    assert (asked.place, asked.where) == (None, "not in this report")
    assert asked.remark == "Scoring rates are withheld, because small counts are hidden."
    assert not any("Both ratios are shown" in row.remark for row in clauses.values())


def test_rates_of_inertia_by_hidden_groups_stay_everybodys_own() -> None:
    rates = {"Black": 0.4, "Other": 0.5, "White": 0.6, RARE[0]: 0.7, RARE[1]: 0.8}
    table = eh.Table(people(), groups=["race", "sex"], predictions={"m": "risk"})
    settings = {**SETTINGS["effort"], "inertia": rates, "inertia_by": "race"}
    plain = eh.effort(table, **settings)
    limit = {"metric": "eaif", "min": 0.5}
    audit = eh.audit(
        table, **section("effort", settings), thresholds=[limit], report={"suppress_below": LEAST, "shift": 0.1}
    )
    hidden = audit["effort"]
    assert "It would hold with other shares of race and sex" in str(audit.findings[0].detail)
    assert hidden.get("values", metric="eaif").value == plain.get("values", metric="eaif").value
    assert hidden.spec.model_dump()["inertia"] == plain.spec.model_dump()["inertia"]


# Refused -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("audit", "change", "match"),
    [
        ("improvability", {"grouping": "sex"}, "leaves fewer than two groups of 'sex'"),
        ("agreement", {"reference": {"race": RARE[0]}}, "is among the groups that `suppress_below` 10 hides"),
        (
            "parity",
            {"thresholds": [{"metric": "selection_rate", "max": 0.1, "grouping": "sex"}]},
            "is about 'sex', of which `suppress_below` 10 publishes nothing",
        ),
    ],
)
def test_what_an_audit_names_and_cannot_be_shown_is_refused(audit: str, change: dict[str, Any], match: str) -> None:
    data = people()
    sexes = ["F"] * 3 + ["M"] * (len(data["sex"]) - 3)
    table = eh.Table({**data, "sex": sexes}, outcome="outcome", groups=["race", "sex"], predictions={"m": "risk"})
    sections: dict[str, Any] = {audit: {**SETTINGS[audit], **change}}
    with pytest.raises(ConfigError, match=match):
        eh.audit(table, **sections, report={"suppress_below": LEAST})


def test_a_few_people_whom_an_audit_leaves_out_are_refused() -> None:
    data: dict[str, Any] = {**people(), "a": [None, None, *people()["a"][2:]]}
    table = eh.Table(data, groups=["race", "sex"], missing="drop")
    with pytest.raises(ConfigError, match=r"the agreement audit leaves out 2 rows \(missing rating\)"):
        eh.audit(table, **section("agreement", SETTINGS["agreement"]), report={"suppress_below": LEAST})


# Its parts -----------------------------------------------------------------------------------------------------------


def test_bins_are_withheld_until_their_sum_is_not_small() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        table = rng.integers(0, 30, (int(rng.integers(3, 9)), 4)).astype(np.float64)
        gone = _without_small_rows(table, LEAST)
        if gone is None or not gone.any():
            continue
        rest = table[gone].sum(axis=0)
        assert gone.sum() > 1
        assert not ((table[~gone] > 0) & (table[~gone] < LEAST)).any()
        assert not ((rest > 0) & (rest < LEAST)).any()


def test_the_counts_of_a_record_are_its_n_and_what_its_share_is_of_it() -> None:
    result = audited(("agreement",), least=None)["agreement"]
    record = next(value for value in result.rows("values", metric="agreement") if value.grouping is None)
    assert record.value is not None
    assert list(revealed_counts(record))[:3] == [
        record.n,
        round(record.n * record.value),
        record.n - round(record.n * record.value),
    ]


@pytest.mark.parametrize("audit", [name for name in REGISTRY if name != "wait"])
def test_every_column_of_our_own_audits_declares_what_it_reveals(audit: str) -> None:
    result = REGISTRY[audit].result
    undeclared = [
        (table, name)
        for table, kind in result.record_types().items()
        for name, declaration in declarations(kind).items()
        if declaration.reveals == "undeclared" and not kind.individual and name not in ("status", "reason", "sentence")
    ]
    assert not undeclared
    assert set(result.plain_fields()) == set(result.reveals)


@pytest.mark.parametrize(
    "kind", [*EXTRAS["over_time"].values(), *EXTRAS["population_shift"].values(), *TABLES.values()]
)
def test_every_column_beside_the_audits_declares_what_it_reveals(kind: type[Record]) -> None:
    assert not [name for name, declaration in declarations(kind).items() if declaration.reveals == "undeclared"]
