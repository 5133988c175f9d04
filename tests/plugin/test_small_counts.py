"""Small counts of an audit that somebody else wrote: what it does not declare is published nowhere."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import evenhand as eh
from evenhand.messages import Message
from evenhand.messages.disclosure import counts_in

LEAST = 10
FORMATS = ("html", "md", "xlsx", "csv", "card", "datasheet", "junit")


@pytest.fixture(scope="module")
def attacks() -> Iterator[ModuleType]:
    """Return the tests of small counts of all other audits, whose people and whose linear program are used here."""
    path = Path(__file__).parents[1] / "after" / "test_withholding.py"
    spec = importlib.util.spec_from_file_location("attacks_on_small_counts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def audited(attacks: ModuleType, long: float | None = None, least: int | None = LEAST, **how: Any) -> eh.Audit:
    groups = how.pop("groups", ["race", "sex"])
    table = eh.Table(attacks.people(), outcome="outcome", groups=groups, predictions={"m": "risk"})
    settings = {**attacks.SETTINGS["wait"], **({} if long is None else {"long": long})}
    return eh.audit(table, wait=settings, report={"suppress_below": least}, **how)


FEW = 54.5
"""So many days that fewer people than `LEAST` waited longer."""


def few(attacks: ModuleType) -> int:
    number: int = sum(days > FEW for days in attacks.people()["income"])
    assert 0 < number < LEAST
    return number


@pytest.mark.parametrize("crossed", [False, True], ids=["side by side", "crossed"])
@pytest.mark.parametrize("long", [41, 43, 45])
def test_a_linear_program_cannot_narrow_a_hidden_count(
    installed: Path, attacks: ModuleType, long: float, crossed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(attacks.SETTINGS["wait"], "long", long)
    attacks.persons.cache_clear()
    groups = list(attacks.SIDE_BY_SIDE) if crossed else ["race", "sex"]
    written = json.loads(audited(attacks, groups=groups).to_json())
    published = ("race", "sex", "race × sex") if crossed else ("race", "sex")
    widths = attacks.attack(written, ("long",), [(), ("long",)])
    asked = [(place, width) for place, width in widths if place[0] in published]
    assert asked
    assert min(width for _, width in asked) >= LEAST - 1e-6, min(asked, key=lambda pair: pair[1])
    attacks.persons.cache_clear()


def test_without_the_rule_the_same_attack_finds_them(installed: Path, attacks: ModuleType) -> None:
    written = json.loads(audited(attacks, least=None).to_json())
    assert min(width for _, width in attacks.attack(written, ("long",), [(), ("long",)])) == pytest.approx(0)


def test_what_it_does_not_declare_is_withheld(installed: Path, attacks: ModuleType) -> None:
    plain: Any = audited(attacks, FEW, None)["wait"]
    hidden: Any = audited(attacks, FEW)["wait"]
    assert plain.rows("quantiles")
    assert not hidden.rows("quantiles")  # numbers of nobody says how many
    assert not hidden.rows("long_waits")  # counts that are small
    assert plain.slow == few(attacks)
    assert (hidden.slow, hidden.slowest) == (None, ())
    for value in hidden.rows("values"):
        assert value.longest is None
        assert value.status.id == "core.withheld"
    said = [note.id for note in hidden.notes]
    assert "wait.long_waits" in [note.id for note in plain.notes]
    assert "wait.long_waits" not in said
    assert "after.small_notes_withheld" in said
    told = next(note for note in hidden.notes if note.id == "after.small_columns_withheld")
    assert set(told.args["columns"]) - {"median"} == {"longest", "slow", "slowest"}
    assert all("waited longer" not in str(finding.detail) for finding in hidden.findings)


@pytest.mark.parametrize("unit", ["amount", "share"])
def test_a_metric_that_does_not_declare_its_values_is_withheld(
    installed: Path, attacks: ModuleType, unit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `amount` may be a count, and a share of more than 1 is none."""
    metrics = importlib.import_module("evenhand_wait.metrics").METRICS
    monkeypatch.setitem(metrics, "mean_wait", replace(metrics["mean_wait"], unit=unit, reveals=None))
    audit = audited(attacks, thresholds=[{"metric": "mean_wait", "max": 0.5}])
    hidden: Any = audit["wait"]
    published = [record for record in (*hidden.rows("values"), *hidden.rows("gaps")) if record.value is not None]
    assert all(unit == "share" and abs(record.value) <= 1 for record in published)
    assert audit.findings
    for finding in audit.findings:
        if finding.value is None:
            assert (finding.low, finding.high) == (None, None)
            assert finding.verdict in ("insufficient_evidence", "no_threshold")
        else:
            assert unit == "share"
            assert abs(finding.value) <= 1


def test_what_it_declares_is_published(installed: Path, attacks: ModuleType) -> None:
    hidden: Any = audited(attacks, 41)["wait"]
    assert hidden.unit == "days"
    assert {record.grouping for record in hidden.rows("ranks")} == {"race", "sex"}
    assert "wait.measured" in [note.id for note in hidden.notes]
    assert "wait.long_waits" in [note.id for note in hidden.notes]  # the table holds that count
    counted = hidden.rows("long_waits", grouping="sex")
    assert counted
    for record in counted:
        assert record.n >= LEAST
        assert record.mean is not None
        assert record.median is None
    assert all(value.ward == "everywhere" for value in hidden.rows("values"))


def test_a_column_that_cannot_be_null_takes_its_records_along(
    installed: Path, attacks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.core import records

    declared = records.declarations

    def without_ward(kind: type[records.Record]) -> Any:
        undeclared = records.Declaration("undeclared", "n", False)
        return {name: undeclared if name == "ward" else each for name, each in declared(kind).items()}

    monkeypatch.setattr("evenhand.core.disclosure.declarations", without_ward)
    hidden = audited(attacks, 41)["wait"]
    assert not hidden.rows("values")
    assert not hidden.rows("gaps")
    assert not any(finding.value is not None for finding in hidden.findings)


def published_texts(files: dict[str, Path]) -> Iterator[tuple[str, str]]:
    for name, path in files.items():
        content = path.read_bytes()
        if not zipfile.is_zipfile(io.BytesIO(content)):
            yield name, content.decode("utf-8", errors="ignore")
            continue
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for inner in packed.namelist():
                yield f"{name}/{inner}", packed.read(inner).decode("utf-8", errors="ignore")


def test_no_format_holds_what_is_withheld(installed: Path, attacks: ModuleType, tmp_path: Path) -> None:
    found = audited(attacks, FEW)
    longest = max(attacks.people()["income"])
    secrets = ("waited longer than", f"{longest:g}", f"{longest:.3f}", f"{longest:.1f}")
    for name, text in published_texts(found.save(tmp_path, FORMATS)):
        for secret in secrets:
            assert secret not in text, (name, secret)
    plain = audited(attacks, FEW, None).save(tmp_path / "plain", FORMATS)
    assert any("waited longer than" in text for _, text in published_texts(plain))


def walk(value: Any) -> Iterator[Message]:
    if isinstance(value, dict) and value.keys() == {"id", "args", "text"}:
        yield Message.from_dict(value)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from walk(item)


def test_no_small_count_stands_in_results_json(installed: Path, attacks: ModuleType) -> None:
    for long in (FEW, 45):
        written = json.loads(audited(attacks, long).to_json())
        assert not list(attacks.small_numbers({name: written[name] for name in ("data", "findings", "audits")}))
        for message in walk(written):
            assert not any(0 < number < LEAST for number in counts_in(message)), message
    assert few(attacks) in [
        number for message in walk(json.loads(audited(attacks, FEW, None).to_json())) for number in counts_in(message)
    ]


def test_csv_holds_only_published_counts(installed: Path, attacks: ModuleType, tmp_path: Path) -> None:
    for name, text in published_texts(audited(attacks, FEW).save(tmp_path, ("csv",))):
        if not name.endswith(".csv"):
            continue
        rows = list(csv.DictReader(io.StringIO(text)))
        assert not any(0 < float(row["n"]) < LEAST for row in rows if row.get("n"))
