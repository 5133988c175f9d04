"""A translation is one file, and nothing that a finding can say is missing from it."""

from __future__ import annotations

import re
import string
from dataclasses import replace
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.core import findings as core
from evenhand.core.findings import CLAUSE, SENTENCES, Finding
from evenhand.errors import ConfigError
from evenhand.report import page
from evenhand.report.drift import SENTENCES as OVER_TIME
from evenhand.report.extras import EXTRAS
from evenhand.report.languages import LANGUAGES, language

OTHERS = [code for code in LANGUAGES if code != "en"]
_SAID = {"core": {**SENTENCES, "clause": CLAUSE}} | {
    name: import_module(f"evenhand.audits.{name}.findings").SENTENCES for name in REGISTRY
}
_SAID["over_time"] = OVER_TIME


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("audit", list(_SAID))
def test_every_sentence_of_a_finding_is_translated_with_the_same_placeholders(code: str, audit: str) -> None:
    spoken = language(code)
    for sentence_id, english in _SAID[audit].items():
        said = spoken.sentence(audit, sentence_id)
        assert said is not None, (audit, sentence_id)
        assert placeholders(said) == placeholders(english), (audit, sentence_id)


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("part", ["page", "verdicts", "tiles", "facts", "short", "reasons", "families", "notes"])
def test_every_text_of_the_front_page_is_translated_with_the_same_placeholders(code: str, part: str) -> None:
    english, said = language().words[part], language(code).words[part]
    assert list(said) == list(english)
    for key, text in english.items():
        assert placeholders(said[key]) == placeholders(text), key


@pytest.mark.parametrize("code", OTHERS)
def test_every_section_and_every_metric_that_is_told_has_a_title(code: str) -> None:
    words = language(code).words
    assert set(words["sections"]) == {*REGISTRY, *EXTRAS}
    for name in ("parity", "effort", "disagreement", "reliability"):
        metrics = import_module(f"evenhand.audits.{name}.metrics").METRICS
        told = {
            key for key, metric in metrics.items() if metric.headline or name in ("parity", "effort", "disagreement")
        }
        assert told <= set(words["titles"]), name


def test_german_writes_numbers_and_dates_its_own_way() -> None:
    german = language("de")
    assert german.number("1,234.5%") == "1.234,5\u00a0%"
    assert german.date("2026-11-16T09:00:00+00:00") == "16. November 2026"
    assert language().date("2026-11-16T09:00:00+00:00") == "16 November 2026"


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "audit": "parity",
        "model": "boosting",
        "grouping": "race",
        "group": "Black",
        "reference": "Asian",
        "metric": "selection_rate",
        "kind": "difference",
        "against": "worst_pair",
        "sentence_id": "some_groups_differ",
        "arguments": {
            "unit": "percent",
            "metric": "selection_rate",
            "model": "boosting",
            "selects": "selects",
            "people": "",
            "group": "Black",
            "reference": "Asian",
            "group_value": 0.445,
            "reference_value": 0.209,
        },
        "headline": "",
        "unit": "share",
        "value": 0.236,
        "low": 0.154,
        "high": 0.289,
        "n": 1177,
        "threshold": "at most 10 points",
        "limit": 0.1,
    }
    return Finding(**{**values, **changes})


def test_a_headline_in_german() -> None:
    german = language("de")
    alike = "; nicht alle Gruppen sind gleichgestellt (gemeinsamer Test)."
    assert german.headline(finding()) == (
        f"Nach race: boosting wählt 44,5\u00a0% von Black und 20,9\u00a0% von Asian aus{alike}"
    )
    assert german.headline(finding(arguments={**finding().arguments, "selects": "markiert"})) == (
        f"Nach race: boosting markiert 44,5\u00a0% von Black und 20,9\u00a0% von Asian{alike}"
    )
    parted = finding(arguments={**finding().arguments, "selects": "lehnt ab"})
    assert (
        german.headline(parted)
        == f"Nach race: boosting lehnt 44,5\u00a0% von Black und 20,9\u00a0% von Asian ab{alike}"
    )
    refused = replace(parted, metric="ppv")
    assert "Unter denen, die boosting ablehnt, ist der Ausgang positiv" in german.headline(refused)
    named = finding(arguments={**finding().arguments, "people": " Bewerber"})  # a word that no case may bend
    assert german.headline(named).startswith("Nach race, Bewerber: boosting wählt 44,5")
    assert german.limit(finding()) == "höchstens 10 Prozentpunkte"
    assert (german.amount(finding()), german.interval(finding())) == ("23,6 Prozentpunkte", "15,4 bis 28,9")


@pytest.mark.parametrize(
    ("value", "low", "high"), [(0.12, 0.05, 0.2), (0.1, 0.05, 0.2), (0.1000001, 0.0, 0.3), (0.1, None, None)]
)
def test_why_there_is_no_verdict_is_translated(value: float, low: float | None, high: float | None) -> None:
    from evenhand.audits.parity.metrics import METRICS
    from evenhand.audits.parity.result import ParityGap

    gap = ParityGap(metric="tpr", kind="difference", against="worst_pair", n=500, value=value, low=low, high=high)
    reason = core._sentence(core._undecided(gap, METRICS["tpr"], 0.1, "people"))
    said = language("de").reason(finding(reason=reason))
    assert said is not None, reason
    assert "people" not in said
    assert "limit" not in said


def test_a_saved_audit_is_told_in_german_and_still_belongs_together(tmp_path: Path) -> None:
    data = {"sex": ["F", "M"] * 100, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 20}
    table = eh.Table(data, groups="sex", predictions="hired")
    audit = eh.audit(table, thresholds=[{"metric": "selection_rate", "max": 0.1}], report={"language": "de"})
    html = audit.to_html()
    assert '<html lang="de">' in html
    assert '<h2 id="findings-title">Befunde</h2>' in html
    assert '<section id="parity" aria-labelledby="parity-title" lang="en">' in html
    with pytest.raises(ConfigError, match="there is no language 'fr'"):
        eh.audit(table, report={"language": "fr"})
    audit.save(tmp_path)
    assert eh.Audit.load(tmp_path).to_html() == html


def test_the_language_can_be_chosen_when_a_report_is_written_again(tmp_path: Path) -> None:
    from evenhand.cli.report import report

    data = {"sex": ["F", "M"] * 100, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 20}
    eh.audit(eh.Table(data, groups="sex", predictions="hired")).save(tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    report(tmp_path, language="de", quiet=True)
    assert '<html lang="de">' in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "results.json").read_bytes() == before
    assert eh.Audit.load(tmp_path).to_html().encode() == (tmp_path / "report.html").read_bytes()


ENGLISH = """
    about above and any are as at be because been before below between beyond but by candidate chance claims covers data
    decide did does each every for from gap groups has have held holds if interval is it its less lies limit like many
    means meet meets more most no not of on one only or out people row rows scores same than that the their them there
    these they this to too under value verdicts were which with would
"""
"""English words that German does not have, and that are no names of the data here."""


def front_page(html: str) -> str:
    """Return what the front page says: everything before the sections, without what is marked as English."""
    front = html.partition("</style>")[2].partition('<section id="parity"')[0]
    front = re.sub(r'<(p|span|dd|a)[^>]* lang="en"[^>]*>.*?</\1>', "", front, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " \n ", front))


def test_no_english_is_left_on_a_german_front_page(six_audits: eh.Audit) -> None:
    written = replace(six_audits, run={**six_audits.run, "language": "de"})
    sections = {name: replace(result.section(), parts=()) for name, result in list(written.results.items())[:1]}
    told = front_page(page.render(written, sections))
    assert "Verbesserbarkeit" in told
    assert "bilden eine Familie" in told
    assert "Punktwert über 0,5, schlecht für die Person" in told
    for line in filter(None, map(str.strip, told.splitlines())):
        words = set(re.findall(r"[a-zäöüß]+", line.casefold()))
        assert not words & set(ENGLISH.split()), line
    german = language("de")
    reasons = [finding for finding in six_audits.findings if finding.threshold and finding.reason]
    assert reasons
    assert [finding.reason for finding in reasons if german.reason(finding) is None] == []


def test_the_findings_of_a_study_are_told_in_german() -> None:
    from evenhand.study.analysis.findings import SENTENCES as OF_A_STUDY

    for sentence_id, english in OF_A_STUDY.items():
        said = language("de").sentence("study", sentence_id)
        assert said is not None
        assert placeholders(said) <= placeholders(english), sentence_id
