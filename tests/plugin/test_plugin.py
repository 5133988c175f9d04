"""An audit in a package of its own: everything that reads audits works with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.cli.main import main
from evenhand.errors import ConfigError, EvenhandError
from evenhand.evidence.power import plan_power
from evenhand.messages import Catalogue
from evenhand.report.formats import FORMATS, make_files
from evenhand.run.schema import results_schema

ROOT = Path(__file__).parents[2]


def patients(seed: int = 0, longer: float = 4.0, people: int = 400) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    ward, sex = rng.choice(["north", "south"], people), rng.choice(["F", "M"], people)
    days = rng.gamma(4, 3, people) + longer * (ward == "south")
    columns = {
        "id": np.arange(people),
        "ward": ward,
        "sex": sex,
        "days": days.round(2),
        "hired": rng.integers(0, 2, people),
    }
    return {name: np.asarray(column).tolist() for name, column in columns.items()}


def table(**how: Any) -> eh.Table:
    return eh.Table(patients(**how), id="id", groups=["ward", "sex"], predictions="hired")


LIMIT = {"audit": "wait", "metric": "mean_wait", "max": 2, "grouping": "ward"}


def audited(**how: Any) -> eh.Audit:
    return eh.audit(table(**how), wait={"days": "days"}, thresholds=[LIMIT])


def test_it_is_found_where_its_package_is_installed(installed: Path) -> None:
    assert list(REGISTRY)[-1] == "wait"
    assert REGISTRY["wait"].question.startswith("Do some groups wait longer")


def test_it_is_not_there_without_its_package() -> None:
    assert "wait" not in REGISTRY
    with pytest.raises(ConfigError, match=r"there is no section \[wait\]"):
        audited()


def test_it_runs_by_its_name_and_is_judged(installed: Path) -> None:
    (finding,) = [finding for finding in audited().findings if finding.threshold is not None]
    assert (finding.audit, finding.verdict, finding.group) == ("wait", "does_not_meet", "south")
    assert finding.headline.text.startswith("By ward: south waited ")


def test_its_thresholds_have_its_own_coordinates(installed: Path) -> None:
    found = eh.audit(table(), wait={"days": "days", "ward": "A"}, thresholds=[{**LIMIT, "ward": "A"}])
    assert found.findings[0].verdict == "does_not_meet"
    lacking = eh.audit(table(), wait={"days": "days", "ward": "A"}, thresholds=[{**LIMIT, "ward": "B"}])
    assert lacking.findings[0].verdict == "insufficient_evidence"
    with pytest.raises(ConfigError, match="did you mean 'ward'"):
        eh.audit(table(), wait={"days": "days"}, thresholds=[{**LIMIT, "wrad": "A"}])
    with pytest.raises(ConfigError, match="there is no such setting"):
        eh.audit(table(), parity={}, thresholds=[{"metric": "selection_rate", "max": 0.1, "ward": "A"}])


def test_every_format_of_the_report_has_it(installed: Path, tmp_path: Path) -> None:
    formats = [name for name in FORMATS if name != "pdf"]
    files = audited().save(tmp_path, formats)
    assert "Do some groups wait longer than others" in files["report.html"].read_text(encoding="utf-8")
    loaded = eh.Audit.load(tmp_path)
    assert loaded.to_json() == files["results.json"].read_text(encoding="utf-8")
    assert loaded.to_html() == files["report.html"].read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(results_schema()).validate(json.loads(loaded.to_json()))


def test_a_german_report_marks_its_sentences_as_english(installed: Path) -> None:
    told = audited()
    german = replace(told, run={**told.run, "language": "de"})
    page = german.to_html()
    (finding,) = [finding for finding in told.findings if finding.threshold is not None]
    assert f'<p class="headline" lang="en">{finding.headline.text}' in page
    assert '<p class="lead">Do some groups wait longer than others' in page  # in a section that is English as a whole
    assert '<span class="verdict does_not_meet">Nicht eingehalten</span>' in page
    assert '<section id="answer" aria-labelledby="answer-title" lang="en">' in page
    markdown = str(make_files(german, ["md"])["report.md"])
    assert finding.headline.text in markdown
    assert "**Nicht eingehalten** (höchstens 2)" in markdown


def test_two_audits_are_compared(installed: Path) -> None:
    comparison = eh.compare(audited(seed=1, longer=1.0), audited(seed=2, longer=9.0))
    assert comparison.changes[0].direction == "worse"
    assert comparison.changes[0].coordinates == "ward everywhere"
    tables = table(seed=1, longer=1.0), table(seed=1, longer=9.0)
    old, new = (eh.audit(one, wait={"days": "days"}, thresholds=[LIMIT]) for one in tables)
    by_person = eh.compare(old, new, tables=tables, key="id")
    assert by_person.changes[0].low is None  # it does not say what each person adds to the error


def test_what_it_cannot_do_is_one_sentence(installed: Path, tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    write_csv(path)
    toml = tmp_path / "audit.toml"
    toml.write_text(TOML.replace("[report]", "[report]\nshift = 0.1"), encoding="utf-8")
    (finding,) = [finding for finding in eh.audit(toml).findings if finding.threshold is not None]
    assert "this audit cannot compute its numbers with other shares" in str(finding.detail)
    (line,) = plan_power(toml, 1000, pilot=path)
    assert str(line.how) == "the wait audit does not say what a plan could show"
    with pytest.raises(ConfigError, match="`period` needs the parity audit"):
        eh.audit(table(), wait={"days": "days"}, report={"period": "sex"})
    with pytest.raises(ConfigError, match="which the parity audit does with the metric 'selection_rate'"):
        eh.audit(table(), wait={"days": "days"}, report={"profile": "ugesp-1978"})
    nist = eh.audit(table(), wait={"days": "days"}, report={"profile": "nist-ai-rmf-1.0"})
    assert "Waiting" in {clause.where for clause in nist.profiles[0].tables["checklist"]}


TOML = """\
[data]
source = "patients.csv"
id = "id"
groups = ["ward", "sex"]
predictions = "hired"
[wait]
days = "days"
[[thresholds]]
metric = "mean_wait"
max = 2
grouping = "ward"
[report]
"""


def write_csv(path: Path) -> None:
    columns = patients()
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_the_command_line_runs_it(installed: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "patients.csv")
    (tmp_path / "audit.toml").write_text(TOML, encoding="utf-8")
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as left:
        main(["audit", str(tmp_path / "audit.toml"), "--out", str(out), "--check"])
    assert left.value.code == 1  # the limit is broken
    assert (
        "south waited"
        in json.loads((out / "results.json").read_text(encoding="utf-8"))["findings"][0]["headline"]["text"]
    )


def test_naming_it_imports_no_kernel(installed: Path) -> None:
    code = (
        "import sys; from evenhand.audits import REGISTRY; list(REGISTRY); print('evenhand_wait.audit' in sys.modules)"
    )
    path = os.pathsep.join([str(installed), str(ROOT / "src")])
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "False"


def broken_package(folder: Path, name: str, lines: str, target: str) -> None:
    (folder / f"{name}.py").write_text(lines, encoding="utf-8")
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[evenhand.audits]\n{target}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("lines", "target", "words"),
    [
        ("import no_such_module_anywhere\n", "odd = odd_audit:AUDIT", "'odd'.*cannot be imported.*ModuleNotFoundError"),
        ("AUDIT = 3\n", "odd = odd_audit:AUDIT", "'odd'.*is no AuditDescriptor of that name"),
        ("x = 1\n", "odd = odd_audit:AUDIT", "'odd'.*cannot be imported.*AttributeError"),
        ("AUDIT = 3\n", "parity = odd_audit:AUDIT", "the audit 'parity' is installed twice"),
    ],
)
def test_a_broken_package_is_named_and_breaks_no_other(
    lines: str, target: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_package(tmp_path, "odd_audit", lines, target)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_audit", raising=False)
    name = target.split()[0]
    sections: dict[str, Any] = {name: {}}
    assert name not in list(REGISTRY)
    assert "effort" in list(REGISTRY)
    with pytest.raises(EvenhandError, match=words):
        REGISTRY[name]
    with pytest.raises(EvenhandError, match=words):
        eh.audit(table(), **sections)
    assert REGISTRY["agreement"].title == "Agreement"


def test_it_obeys_the_laws_of_all_audits(installed: Path) -> None:
    """The laws run in a process of its own, where the package is installed when they are collected."""
    path = os.pathsep.join([str(installed), str(ROOT / "src")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "wait",
        "tests/audits/test_common.py",
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_an_audit_without_charts_says_so(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(REGISTRY["wait"]), "charts", {})
    with pytest.raises(ConfigError, match="the wait audit has no charts"):
        audited().plot()


def test_a_catalogue_cannot_take_the_name_of_another(installed: Path) -> None:
    """Its sentences would replace ours in every report."""
    with pytest.raises(ValueError, match=r"names its catalogue 'core', as 'evenhand.messages' does"):
        Catalogue("core", "evenhand_wait", {"ok": "fine"})


def test_what_cannot_be_compared_is_one_sentence(installed: Path, tmp_path: Path) -> None:
    audit = audited()
    with pytest.raises(ConfigError, match=r"compare\(\) takes audits, or the folders .*; got a WaitResult"):
        eh.compare(audit["wait"], audit["wait"])  # type: ignore[arg-type]
    audit.save(tmp_path)
    with pytest.raises(ConfigError, match="same data"):
        eh.compare(tmp_path / "results.json", tmp_path)
