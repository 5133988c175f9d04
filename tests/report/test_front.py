"""The front page: order, who was compared, the small pictures."""

from __future__ import annotations

import csv
import io
import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.cli.console import out, print_summary
from evenhand.core.display import Figure
from evenhand.core.findings import Finding
from evenhand.core.thresholds import Verdict
from evenhand.messages import Message
from evenhand.messages.shared import say
from evenhand.report import front
from evenhand.report.formats import make_files
from evenhand.report.page import facts
from evenhand.report.wording import page_wording


def finding(verdict: Verdict = "does_not_meet", **columns: Any) -> Finding:
    values: dict[str, Any] = {
        "audit": "parity",
        "model": "logistic",
        "grouping": "race",
        "metric": "selection_rate",
        "kind": "difference",
        "against": "worst_pair",
        "headline": Message("By race, logistic selects 20.0% of A and 5.0% of B."),
        "unit": "share",
        "value": 0.15,
        "low": 0.12,
        "high": 0.18,
        "n": 500,
    }
    judged = {} if verdict == "no_threshold" else {"threshold": say("at_most_points", limit=10.0), "limit": 0.1}
    return Finding(**{**values, **judged, **columns}, verdict=verdict)


def test_broken_thresholds_come_first_and_the_clearest_of_them_before_the_others() -> None:
    far = finding(value=0.3, low=0.28, high=0.32)
    near = finding(value=0.12, low=0.101, high=0.14)
    undecided = finding("insufficient_evidence", value=0.1, low=0.05, high=0.15)
    met = finding("meets", value=0.02, low=0.01, high=0.03)
    unjudged = finding("no_threshold", p_value=0.2)
    sure = finding("no_threshold", p_value=0.001)
    expected = [far, near, undecided, met, sure, unjudged]
    for order in itertools.permutations(expected):
        assert front.rank(order) == expected


def test_distance_counts_in_widths_of_the_interval() -> None:
    wide = finding(value=0.5, low=0.2, high=0.8)  # 0.1 beyond the limit, a sixth of its width
    narrow = finding(value=0.13, low=0.12, high=0.14)  # 0.02 beyond it, its whole width
    assert front.rank([wide, narrow]) == [narrow, wide]


def test_a_gap_that_points_the_other_way_is_measured_from_the_limit_on_its_side() -> None:
    below = finding(value=-0.5, low=-0.52, high=-0.48, against="reference")
    above = finding(value=0.3, low=0.28, high=0.32, against="reference")
    assert front.rank([above, below]) == [below, above]


def test_what_has_no_number_comes_last_of_its_kind() -> None:
    unknown = finding("insufficient_evidence", value=None, low=None, high=None)
    known = finding("insufficient_evidence", value=0.1, low=0.05, high=0.15)
    assert front.rank([unknown, known]) == [known, unknown]


def test_findings_without_a_threshold_that_say_the_same_share_a_line() -> None:
    race = [finding("no_threshold", model=name, p_value=p) for name, p in (("a", 0.02), ("b", 0.01), ("c", 0.03))]
    sex = finding("no_threshold", grouping="sex", p_value=0.5)
    first, second = front.lines([*race, sex])
    assert first.finding.model == "b"
    assert [other.model for other in first.others] == ["a", "c"]
    assert len(first.others) == 2
    assert second.others == ()


@pytest.mark.parametrize("limits", [[], [{"metric": "selection_rate", "max": 0.1}]], ids=["measured", "judged"])
def test_terminal_page_and_files_tell_findings_in_one_order(
    limits: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranked, each with those like it behind it; the settings have another order."""
    rng = np.random.default_rng(3)
    data: dict[str, Any] = {name: rng.choice(["a", "b"], 400) for name in ("race", "sex")}
    data |= {f"m{at}": (rng.uniform(size=400) < 0.4 + 0.1 * at * (data["sex"] == "a")).astype(int) for at in range(3)}
    table = eh.Table(data, groups=["race", "sex"], predictions=["m0", "m1", "m2"])
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, thresholds=limits)
    told = [found.headline.text for found in audit.findings]
    assert sorted(told) == sorted(found.headline.text for found in audit["parity"].findings)
    assert told != [found.headline.text for found in audit["parity"].findings]
    files = make_files(audit, ["html", "md", "csv"])
    rows = csv.DictReader(io.StringIO(str(files["findings.csv"]), newline=""))
    assert [row["headline"] for row in rows] == told
    for name, start in (("report.html", 'id="findings-title"'), ("report.md", "## Findings")):
        places = [str(files[name]).partition(start)[2].index(headline) for headline in told]
        assert places == sorted(places)
    monkeypatch.setattr(out, "_width", 400)
    print_summary(audit)
    printed = capsys.readouterr().out
    places = [printed.index(alike[0].headline.text) for alike in front.in_order(audit.findings)]
    assert places == sorted(places)
    assert printed.count("2 more like it in the report.") == (0 if limits else 2)


def test_terminal_and_page_count_the_findings_without_a_threshold_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that say the same of three models stand in one line, and are three findings."""
    table = eh.Table({"sex": ["F", "M"] * 50, "hired": [1, 0] * 50}, groups="sex", predictions="hired")
    whole = eh.audit(table, parity={"metrics": "selection_rate", "resamples": 100})
    told = (finding(), *(finding("no_threshold", model=name) for name in "abc"))
    audit = replace(whole, results={"parity": replace(whole.results["parity"], findings=told)})
    assert len(front.lines(told[1:])) == 1
    assert "3 more findings without a threshold" in audit.to_html()
    print_summary(audit)
    assert "3 more findings have no threshold" in " ".join(capsys.readouterr().out.split())


def test_findings_of_other_strata_or_directions_have_lines_of_their_own() -> None:
    def worse(group: str) -> Message:
        return say("two_values_worse_off", clause="By sex, m selects", worse_off=group)

    pooled = finding("no_threshold", headline=worse("F"))
    within = finding("no_threshold", headline=worse("F"), stratum="(standardised)")
    reversed_ = finding("no_threshold", headline=worse("M"), model="other")
    assert [len(line.others) for line in front.lines([pooled, within, reversed_])] == [0, 0, 0]


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_breaks_no_word(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    data: dict[str, Any] = {"race": rng.choice(["American Indian", "Pacific Islander"], 400)}
    data |= {"long_name_of_a_model": rng.choice([0, 1], 400)}
    table = eh.Table(data, groups="race", predictions="long_name_of_a_model")
    audit = eh.audit(table, parity={}, thresholds=[{"metric": "selection_rate", "max": 0.1}])
    printed = []
    for columns in (width, 10_000):
        monkeypatch.setattr(out, "_width", columns)
        print_summary(audit)
        printed.append(capsys.readouterr().out)
    assert printed[0].split() == printed[1].split()
    assert max(len(line.rstrip()) for line in printed[0].splitlines()) <= width


def test_pictures_of_the_same_unit_share_an_axis_and_draw_the_limit_at_the_same_place() -> None:
    small, large = finding(), finding(value=0.6, low=0.5, high=0.7)
    limits = [
        re.search(r'class="limit" stroke="#1c2128" x1="([\d.]+)"', str(line.picture))
        for line in front.lines([small, large])
    ]
    assert limits[0] is not None
    assert limits[1] is not None
    assert limits[0][1] == limits[1][1]


def test_hostile_text_does_not_leave_the_title_of_a_picture() -> None:
    (line,) = front.lines([finding(threshold=Message("</title><script>alert(1)</script>"))])
    assert "<script>" not in line.picture


def test_who_was_compared_gives_each_group_its_size_and_names_the_missing() -> None:
    data = {"race": ["A"] * 60 + ["B"] * 30 + [None] * 10, "hired": [1, 0] * 50}
    audit = eh.audit(eh.Table(data, groups="race", predictions="hired"), parity={})
    (compared,) = front.groups_compared(audit)
    assert (compared.grouping, compared.sizes, compared.missing) == ("race", (("A", 60), ("B", 30)), 10)
    page = audit.to_html()
    assert "who was compared" in page
    assert 'not known <span class="n">10</span>' in page


def test_a_group_with_too_few_people_is_not_listed_as_compared() -> None:
    data = {"race": ["A"] * 60 + ["B"] * 30 + ["C"] * 9, "hired": [1, 0, 1] * 33}
    audit = eh.audit(eh.Table(data, groups="race", predictions="hired"), parity={})
    (compared,) = front.groups_compared(audit)
    assert front.missing_data_sentences([compared], audit.data, page_wording()) == [
        "No one's group is missing.",
        "Every row of the data was used.",
    ]
    assert compared.in_words(page_wording()) == "race: A 60 · B 30 · C 9 (too few to compare)"


def test_who_was_compared_counts_people_and_not_the_denominator_of_a_metric() -> None:
    data = {"race": ["A"] * 60 + ["B"] * 40, "hired": [1, 0] * 50, "y": [1, 0, 0, 0] * 25}
    table = eh.Table(data, groups="race", predictions="hired", outcome="y")
    audit = eh.audit(table, parity={"metrics": ["tpr"]})
    assert audit.data["groups"] == {"race": {"A": 60, "B": 40}}
    assert [item.sizes for item in front.groups_compared(audit)] == [(("A", 60), ("B", 40))]


def test_a_headline_keeps_to_25_words_where_groups_have_names_of_two() -> None:
    data = eh.datasets.make_households(5_000, seed=1, backend="pandas")
    table = eh.Table(
        data,
        outcome="missed_payment",
        groups=["race"],
        predictions={"logistic": {"column": "risk_logistic", "selected_word": "flags"}},
        people="households",
        favourable="not_selected",
    )
    (finding,) = eh.parity(table, metrics="tpr", resamples=100).findings
    assert finding.sentence_id == "some_groups_differ"
    assert "American Indian households" in finding.headline.text
    assert len(finding.headline.text.split()) <= 25


def test_the_figure_of_a_broken_limit_says_so_first() -> None:
    data = {"race": ["A"] * 200 + ["B"] * 200, "score": [0.51, 0.49] * 100 + [0.51, 0.1, 0.1, 0.1] * 50}
    table = eh.Table(
        data, groups="race", predictions={"m": {"column": "score", "threshold": 0.5}}, favourable="selected"
    )
    metrics = ["selection_rate", "mean_score"]
    limits = [{"metric": "selection_rate", "min": 0.8}]
    audit = eh.audit(table, parity={"metrics": metrics, "resamples": 100}, thresholds=limits)
    assert audit.findings[0].verdict == "does_not_meet"
    figures = [part for part in audit.sections()["parity"].parts if isinstance(part, Figure)]
    shows = next(figure.shows for figure in figures if figure.title == "Values by race")
    assert str(shows) == "By race, B is worse off in selection rate."


def test_the_figure_of_a_broken_limit_names_only_the_models_that_break_it() -> None:
    """The difference of the other model is established, and its limit open."""
    data = {
        "race": ["A"] * 400 + ["B"] * 400,
        "apart": [1] * 300 + [0] * 100 + [1] * 100 + [0] * 300,
        "near": [1] * 220 + [0] * 180 + [1] * 165 + [0] * 235,
    }
    table = eh.Table(data, groups="race", predictions=["apart", "near"], favourable="selected")
    limits = [{"metric": "selection_rate", "max": 0.1}]
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, thresholds=limits)
    assert {f.model: f.verdict for f in audit.findings if f.threshold} == {
        "apart": "does_not_meet",
        "near": "insufficient_evidence",
    }
    figures = [part for part in audit.sections()["parity"].parts if isinstance(part, Figure)]
    told = {figure.title: figure.statement for figure in figures}
    assert told["Values by race"] == "By race, B is worse off in selection rate under apart."


def test_an_open_limit_does_not_hide_an_established_difference_in_a_figure() -> None:
    data = {"race": ["A"] * 400 + ["B"] * 400, "near": [1] * 220 + [0] * 180 + [1] * 165 + [0] * 235}
    table = eh.Table(data, groups="race", predictions="near", favourable="selected")
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, thresholds=[{"metric": "selection_rate", "max": 0.1}])
    assert audit.findings[0].verdict == "insufficient_evidence"
    figures = [part for part in audit.sections()["parity"].parts if isinstance(part, Figure)]
    assert {figure.statement for figure in figures} == {"By race, B is worse off in selection rate."}


def test_the_head_says_that_rates_are_weighted(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"g": ["a", "b"] * 50, "d": [0, 1, 1, 0] * 25, "w": [1.0, 2.0, 1.5, 1.0] * 25}
    weighted, plain = (
        eh.audit(eh.Table(data, groups="g", predictions="d", weight=weight), parity={}) for weight in ("w", None)
    )
    assert ("Weighted by", "w") in facts(weighted, page_wording())
    assert "Weighted by" not in dict(facts(plain, page_wording()))
    print_summary(weighted)
    assert "100 people, weighted by w" in capsys.readouterr().out


def test_a_finding_in_the_table_of_others_keeps_its_people_and_whom_it_does_not_compare() -> None:
    rng = np.random.default_rng(13)
    data = {"g": ["A"] * 300 + ["B"] * 300 + ["C"] * 5, "y": rng.integers(0, 2, 605), "s": rng.random(605).round(3)}
    table = eh.Table(data, outcome="y", groups="g", predictions="s", favourable="selected")
    run = eh.audit(table, parity={}, thresholds=[{"metric": "selection_rate", "max": 0.3}])
    page = make_files(run, ["html"])["report.html"]
    text = page if isinstance(page, str) else page.decode()
    rows = re.findall(r'<tr id="(F\d+)">(.*?)</tr>', text)
    assert rows
    for number, row in rows:
        finding = next(finding for finding in run.findings if finding.number == number)
        assert f'<span class="beside">n = {finding.n:,}</span>' in row
        assert "Not compared: C (n = " in row
