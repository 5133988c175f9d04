"""The files of an audit: a safe page, stable JSON, provenance."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ConfigError

HOSTILE = ["<script>alert(1)</script>", "=cmd()", 'Zoë 🙂 & "co"', "'; drop table x; --", "{{ 7 * 7 }}", "</svg><b>"]


def hostile_table() -> eh.Table:
    rng = np.random.default_rng(1)
    n = 1_200
    data = {
        "<img src=x>": rng.choice(HOSTILE, n).tolist(),
        "score": rng.random(n),
        "outcome": rng.integers(0, 2, n),
    }
    return eh.Table(data, outcome="outcome", groups="<img src=x>", predictions={"<b>m</b>": "score"})


@pytest.fixture(scope="module")
def hostile_page() -> str:
    audit = eh.audit(hostile_table(), parity={"resamples": 200}, thresholds=[{"metric": "tpr", "max": 0.1}])
    return audit.to_html()


def test_text_from_data_is_escaped_everywhere(hostile_page: str) -> None:
    assert "<script" not in hostile_page
    assert "<img" not in hostile_page
    assert "<b>" not in hostile_page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hostile_page
    assert "{{ 7 * 7 }}" in hostile_page


def test_the_page_is_self_contained_and_its_policy_forbids_the_rest(hostile_page: str) -> None:
    assert not re.search(r'(?:src|href)="(?!#|table-[a-z0-9-]+\.csv")', hostile_page)
    assert not re.search(r"url\((?!#)", hostile_page)
    assert not re.search(r'\son\w+="|\sstyle="|@import', hostile_page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', hostile_page)
    assert policy is not None
    directives = policy[1].replace("&#39;", "'")
    style = re.search(r"<style>(.*?)</style>", hostile_page, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert directives.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; script-src 'none'")


def test_every_chart_has_words_and_unique_identifiers(hostile_page: str) -> None:
    charts = re.findall(r'<svg role="img" aria-labelledby="(\S+) (\S+)"', hostile_page)
    assert charts
    forests = re.findall(r'<table class="forest panel">\n<caption>([^<]+)</caption>', hostile_page)
    assert len(forests) >= 4
    for title, text in charts:
        assert re.search(rf'<title id="{title}">[^<]+</title><desc id="{text}">[^<]+</desc>', hostile_page)
    identifiers = re.findall(r'\bid="([^"]+)"', hostile_page)
    assert len(identifiers) == len(set(identifiers))


def households_audit(**parity: Any) -> eh.Audit:
    table = eh.Table(
        eh.datasets.make_households(3_000, seed=2),
        outcome="missed_payment",
        groups=["race", "sex"],
        predictions={"xgboost": "risk_xgboost"},
    )
    settings: Any = {"resamples": 300, **parity}
    return eh.audit(table, parity=settings, report={"title": "Test", "system": "v1"})


def test_the_same_audit_gives_the_same_bytes(tmp_path: Path) -> None:
    files = [households_audit().save(tmp_path / name) for name in ("a", "b")]
    assert files[0]["results.json"].read_bytes() == files[1]["results.json"].read_bytes()
    pages = [re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "", f["report.html"].read_text()) for f in files]
    assert pages[0] == pages[1]


def test_results_json_is_plain_json_with_provenance(tmp_path: Path) -> None:
    files = households_audit().save(tmp_path)
    results = json.loads(files["results.json"].read_text(), parse_constant=pytest.fail)
    assert list(results) == ["evenhand", "schema", "config", "data", "plan", "findings", "audits", "profiles", "extras"]
    assert results["config"]["parity"]["seed"] == 0
    assert results["config"]["parity"]["confidence"] == 0.95
    assert results["data"]["rows"] == 3_000
    assert len(results["data"]["hash"]) == 64
    run = json.loads(files["run.json"].read_text())
    assert run["packages"]["numpy"] == np.__version__
    assert "started" not in results


def test_results_without_a_table_are_told_in_a_sentence(tmp_path: Path) -> None:
    data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
    eh.audit(eh.Table(data, groups="sex", predictions="hired"), parity={}).save(tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    del results["audits"]["parity"]["values"]
    (tmp_path / "results.json").write_text(json.dumps(results))
    run = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({name: value for name, value in run.items() if name != "sha256"}))
    with pytest.raises(
        ConfigError, match=r"are not whole \(.*values\), or of another version of evenhand; run the audit again"
    ):
        eh.Audit.load(tmp_path)


def test_a_file_is_identified_by_its_own_hash(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    eh.datasets.make_households(500, seed=2, backend="pandas").to_csv(path, index=False)
    audit = eh.audit(eh.Table(path, groups="sex", predictions={"m": "risk_xgboost"}), parity={"resamples": 100})
    expected = {
        "name": "people.csv",
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    assert audit.data["files"] == [expected]


def test_the_hash_follows_the_data_not_the_engine() -> None:
    import polars as pl

    frame = eh.datasets.make_households(500, seed=2, backend="pandas")

    def digest(data: Any) -> str:
        table = eh.Table(data, groups="sex", predictions={"m": "risk_xgboost"})
        return str(eh.audit(table, parity={"resamples": 100}).data["hash"])

    assert digest(frame) == digest(pl.from_pandas(frame))
    changed = frame.copy()
    changed.loc[0, "risk_xgboost"] += 1e-9
    assert digest(frame) != digest(changed)


def test_a_seed_given_to_the_run_overrides_the_config() -> None:
    table = eh.Table(eh.datasets.make_households(500), groups="sex", predictions={"m": "risk_xgboost"})
    assert eh.audit(table, seed=9, parity={"resamples": 100}).config.audits["parity"].seed == 9


def test_mistakes_in_sections_are_told(tmp_path: Path) -> None:
    table = eh.Table(eh.datasets.make_households(500), groups="sex", predictions={"m": "risk_xgboost"})
    with pytest.raises(ConfigError, match=r"no section \[partiy\].*did you mean 'parity'"):
        eh.audit(table, partiy={})
    with pytest.raises(ConfigError, match="did you mean 'resamples'"):
        eh.audit(table, parity={"resample": 100})  # type: ignore[typeddict-unknown-key]
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written to"):
        eh.audit(table, parity={"resamples": 100}).save(tmp_path / "file")


def test_findings_come_worst_first() -> None:
    table = eh.Table(
        eh.datasets.make_households(3_000), outcome="missed_payment", groups="race", predictions={"m": "risk_xgboost"}
    )
    limits = [{"metric": "tpr", "max": 0.9}, {"metric": "traditional_parity", "min": 0.9}]
    verdicts = [f.verdict for f in eh.audit(table, parity={"resamples": 100}, thresholds=limits).findings]
    assert verdicts[:2] == ["does_not_meet", "meets"]
    assert set(verdicts[2:]) == {"no_threshold"}


# Families -------------------------------------------------------------------------------------------------


def family_table() -> eh.Table:
    rng = np.random.default_rng(3)
    race, sex = rng.choice(["A", "B", "C"], 600), rng.choice(["F", "M"], 600)
    first = rng.random(600) < 0.3 + 0.3 * (race == "A")
    second = np.where(rng.random(600) < 0.75 + 0.2 * (sex == "F"), first, ~first)
    columns = {"race": race, "sex": sex, "a": first.astype(int), "b": second.astype(int)}
    return eh.Table({name: list(values) for name, values in columns.items()}, groups=["race", "sex"], predictions="a")


PARITY: Any = {"metrics": ["selection_rate"]}
RATERS: Any = {"raters": ["a", "b"], "resamples": 200}
LIMITS = [
    {"metric": "selection_rate", "max": 0.1, "kind": "difference"},
    {"metric": "selection_rate", "min": 0.8, "kind": "ratio"},
]


def test_one_audit_alone_is_a_run_of_its_own() -> None:
    table = family_table()
    alone, run = eh.parity(table, **PARITY, thresholds=LIMITS), eh.audit(table, parity=PARITY, thresholds=LIMITS)
    assert run["parity"].findings == alone.findings
    assert run["parity"].tables == alone.tables
    assert run.families == alone.families


def test_a_section_without_thresholds_changes_no_verdict_and_the_order_of_sections_nothing() -> None:
    table = family_table()
    alone = eh.audit(table, parity=PARITY, thresholds=LIMITS)
    both = eh.audit(table, parity=PARITY, agreement=RATERS, thresholds=LIMITS)
    other_way = eh.audit(table, agreement=RATERS, parity=PARITY, thresholds=LIMITS)
    in_both, in_one = ([f for f in audit.findings if f.threshold] for audit in (both, alone))
    assert [(f.verdict, f.value, f.low, f.high) for f in in_both] == [
        (f.verdict, f.value, f.low, f.high) for f in in_one
    ]
    assert {f.headline: f.p_adjusted for f in both.findings} == {f.headline: f.p_adjusted for f in other_way.findings}
    assert both["parity"].tables == other_way["parity"].tables


def test_the_report_says_what_its_families_are() -> None:
    audit = eh.audit(family_table(), parity=PARITY, agreement=RATERS, thresholds=LIMITS)
    told = [sentence.text for sentence in audit.families]
    assert any(
        sentence.startswith("The chance that any “does not meet” among the 4 verdicts of parity is wrong ")
        for sentence in told
    )
    assert all(sentence in audit.to_html() for sentence in told)
    assert {str(finding.verdict_family) for finding in audit.findings if finding.threshold} == {"4 verdicts of parity"}


def test_a_gap_has_one_adjusted_p_value() -> None:
    """The finding, the row of the table, and the row of its ratio agree, also on who is worse off."""
    people = {"Dept": [], "Gender": [], "Admit": []}  # type: dict[str, list[Any]]
    for dept, gender, admitted, refused in _BERKELEY:
        for column, value in (("Dept", dept), ("Gender", gender)):
            people[column] += [value] * (admitted + refused)
        people["Admit"] += [1] * admitted + [0] * refused
    table = eh.Table(people, groups="Gender", predictions={"m": {"column": "Admit", "favourable": "selected"}})
    run = eh.audit(table, parity={"within": "Dept"})
    for finding in run.findings:
        place = {name: getattr(finding, name) for name in ("model", "grouping", "stratum", "metric", "against")}
        rows = run.results["parity"].rows("gaps", **place)
        assert {row.kind for row in rows} == {"difference", "ratio"}
        assert {row.p_adjusted for row in rows} == {finding.p_adjusted}
        named = finding.arguments["worse_off"] if finding.significance == "directed" else None
        assert {row.worse_off for row in rows} == {named}
    assert any(finding.stratum == "(standardised)" and finding.arguments["worse_off"] for finding in run.findings)


_BERKELEY = [
    ("A", "Male", 512, 313),
    ("A", "Female", 89, 19),
    ("B", "Male", 353, 207),
    ("B", "Female", 17, 8),
    ("C", "Male", 120, 205),
    ("C", "Female", 202, 391),
    ("D", "Male", 138, 279),
    ("D", "Female", 131, 244),
    ("E", "Male", 53, 138),
    ("E", "Female", 94, 299),
    ("F", "Male", 22, 351),
    ("F", "Female", 24, 317),
]
"""Applicants to six departments of Berkeley in 1973: admitted and refused (Bickel, Hammel and O'Connell 1975)."""
