"""Every sentence of every catalogue is translated, and a page says in English only what is marked as English."""

from __future__ import annotations

import re
import string
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.audits import REGISTRY
from evenhand.core import findings as core
from evenhand.core.estimates import Estimate
from evenhand.core.families import ClaimCheck, ClaimOutcome
from evenhand.core.findings import Finding
from evenhand.core.thresholds import Threshold
from evenhand.errors import ConfigError
from evenhand.messages import LANGUAGES, Argument, Catalogue, Message
from evenhand.messages.catalogue import catalogues, fields
from evenhand.messages.shared import say as shared
from evenhand.report import page
from evenhand.report.wording import page_wording

OTHERS = [code for code in LANGUAGES if code != "en"]
ROOT = Path(eh.__file__).parent
for _path in sorted(ROOT.rglob("messages.py")):
    import_module(".".join(["evenhand", *_path.relative_to(ROOT).with_suffix("").parts]))
OURS = {known.name: known for known in catalogues() if known.package.partition(".")[0] == "evenhand"}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("name", list(OURS))
def test_every_sentence_is_translated_with_the_same_placeholders(code: str, name: str) -> None:
    catalogue = OURS[name]
    for key, english in catalogue.sentences.items():
        said = catalogue.translated(code, key)
        assert said is not None, (name, key)
        assert type(said) is type(english), (name, key)
        assert {field.name for field in fields(said)} == {field.name for field in fields(english)}, (name, key)


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("name", list(OURS))
def test_every_word_of_a_catalogue_is_translated(code: str, name: str) -> None:
    catalogue: Catalogue = OURS[name]
    translations = catalogue.translations(code)
    assert translations is not None
    for kind, words in catalogue.words.items():
        for word in words:
            assert translations.pgettext(kind, word), (name, kind, word)


@pytest.mark.parametrize("audit", list(REGISTRY))
def test_every_section_and_every_metric_that_is_told_has_a_title(audit: str) -> None:
    words = OURS[audit].words
    assert {REGISTRY[audit].title, REGISTRY[audit].question} <= set(words["section"])
    assert {metric.title_in_sentence for metric in REGISTRY[audit].metrics.values()} <= set(words["metric"])


def test_german_writes_numbers_and_dates_its_own_way() -> None:
    german = page_wording("de")
    assert german.number("1,234.5%") == "1.234,5\u00a0%"
    assert german.date("2026-11-16T09:00:00+00:00") == "16. November 2026"
    assert page_wording().date("2026-11-16T09:00:00+00:00") == "16 November 2026"


def test_a_language_that_is_not_there_is_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="there is no language 'dee'; did you mean 'de'"):
        page_wording("dee")


def finding(arguments: Mapping[str, Argument] | None = None, **changes: Any) -> Finding:
    from evenhand.audits.parity.messages import say

    told: dict[str, Argument] = {
        "unit": "percent",
        "metric": "selection_rate",
        "grouping": "race",
        "model": "boosting",
        "selects": "selects",
        "people": "",
        "group": "Black",
        "reference": "Asian",
        "group_value": 0.445,
        "reference_value": 0.209,
        "where": shared("model_place", model="boosting", place=shared("by", grouping="race")),
        "place": shared("by", grouping="race"),
        "title": "selection rate",
        **(arguments or {}),
    }
    clause = say(f"clause_{told['metric']}", **told)
    values: dict[str, Any] = {
        "audit": "parity",
        "model": "boosting",
        "grouping": "race",
        "group": "Black",
        "reference": "Asian",
        "metric": "selection_rate",
        "kind": "difference",
        "against": "worst_pair",
        "headline": shared("some_groups_differ", clause=clause),
        "unit": "share",
        "value": 0.236,
        "low": 0.154,
        "high": 0.289,
        "n": 1177,
        "threshold": shared("at_most_points", limit=10.0),
        "limit": 0.1,
    }
    return Finding(**{**values, **changes})


def test_a_headline_in_german() -> None:
    german = page_wording("de")
    alike = "; Gruppen unterscheiden sich, welche, ist offen."
    assert german.headline(finding()) == (
        f"Nach race: boosting wählt 44,5\u00a0% von Black und 20,9\u00a0% von Asian aus{alike}"
    )
    assert german.headline(finding({"selects": "markiert"})) == (
        f"Nach race: boosting markiert 44,5\u00a0% von Black und 20,9\u00a0% von Asian{alike}"
    )
    assert (
        german.headline(finding({"selects": "lehnt ab"}))
        == f"Nach race: boosting lehnt 44,5\u00a0% von Black und 20,9\u00a0% von Asian ab{alike}"
    )
    called = shared("called", people="Bewerber")
    assert german.headline(finding({"selects": "lehnt ab", "people": called})) == (
        f"Nach race, Bewerber: boosting lehnt 44,5\u00a0% von Black und 20,9\u00a0% von Asian ab{alike}"
    )
    refused = finding({"selects": "lehnt ab", "metric": "ppv"})
    assert "Unter denen, die boosting ablehnt, ist der Ausgang positiv" in german.headline(refused)
    assert german.limit(finding()) == "höchstens 10 Prozentpunkte"
    assert (german.amount(finding()), german.interval(finding())) == ("23,6 Prozentpunkte", "15,4 bis 28,9")


@pytest.mark.parametrize(
    ("value", "low", "high"), [(0.12, 0.05, 0.2), (0.1, 0.05, 0.2), (0.1000001, 0.0, 0.3), (0.1, None, None)]
)
def test_why_there_is_no_verdict_is_translated(value: float, low: float | None, high: float | None) -> None:
    from evenhand.audits.parity.metrics import METRICS
    from evenhand.audits.parity.result import ParityGap

    gap = ParityGap(metric="tpr", kind="difference", against="worst_pair", n=500, value=value, low=low, high=high)
    limit = Threshold(metric="tpr", max=0.1, of="gap", kind="difference", against="worst_pair")
    check = ClaimCheck("parity", core.Claim(estimates=(Estimate(gap),), sentence_id="", arguments={}), limit, 0.05)
    why = core._undecided(gap, METRICS["tpr"], check, ClaimOutcome(gap), "people")
    reason = shared("sentence", text=why)
    german = page_wording("de")
    assert german.translates(reason)
    assert "people" not in german.message(reason)
    assert "limit" not in german.message(reason)


def test_what_is_not_translated_in_one_part_is_told_in_english_as_a_whole() -> None:
    mixed = shared("undefined", why=Message("the moon was full"))
    german = page_wording("de")
    assert not german.translates(mixed)
    assert german.message(mixed) == "undefined: the moon was full"


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
    assert "behauptet, den es nicht gibt" in told
    assert "der Punktwert liegt über 0,5; das ist schlecht für die Person" in told
    for line in filter(None, map(str.strip, told.splitlines())):
        words = set(re.findall(r"[a-zäöüß]+", line.casefold()))
        assert not words & set(ENGLISH.split()), line
    german = page_wording("de")
    reasons = [finding for finding in six_audits.findings if finding.threshold and finding.reason]
    assert reasons
    for layer in ("headline", "detail", "reason", "threshold"):
        english = [getattr(finding, layer) for finding in six_audits.findings]
        assert [message.text for message in english if not german.translates(message)] == []


def test_every_finding_of_a_study_is_translated() -> None:
    from evenhand.study import analyze, simulate_responses

    german = page_wording("de")
    findings = analyze(simulate_responses(60, conditions={"arrests": {}}, seed=3), resamples=100).findings
    assert findings
    for finding in findings:
        sentences = (finding.headline, finding.detail, finding.reason)
        assert [str(said) for said in sentences if isinstance(said, Message) and not german.translates(said)] == []


def test_a_saved_audit_is_translated_in_a_new_process(tmp_path: Path) -> None:
    """No audit has run there, so that its catalogue is loaded with its results."""
    data = {"sex": ["F", "M"] * 50, "hired": [1, 0, 1, 1, 0, 1, 0, 1, 0, 0] * 10}
    limits = [{"metric": "selection_rate", "max": 0.1}]
    report = {"language": "de"}
    eh.audit(eh.Table(data, groups="sex", predictions="hired"), thresholds=limits, report=report).save(tmp_path)
    program = "import evenhand, sys; print(evenhand.Audit.load(sys.argv[1]).to_html())"
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "<strong>Möglicherweise.</strong>" in done.stdout or "<strong>Ja.</strong>" in done.stdout
