"""Legal profiles: the tables that a rule asks for, in its own numbers and words, with dates and no advice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import evenhand as eh
from evenhand.after.profiles import NO_ADVICE, PROFILES
from evenhand.after.profiles.checklists import NOT_HERE
from evenhand.cli.main import main
from evenhand.core.display import DisplayTable, Figure, Section
from evenhand.errors import ConfigError
from evenhand.report.formats import make_files
from evenhand.run.schema import results_schema
from evenhand.table import table as table_module

Columns = dict[str, list[Any]]

RULE = {
    "sex": {"Male": (92, 50, 54.3, 1.00), "Female": (76, 34, 44.7, 0.82)},
    "race": {
        "Hispanic or Latino": (28, 18, 64.2, 1.00),
        "White": (40, 15, 37.5, 0.58),
        "Black": (32, 16, 50.0, 0.78),
        "NHPI": (8, 5, 62.5, 0.97),
        "Asian": (24, 10, 41.7, 0.65),
    },
}
"""The example of the rule on scores: people, those above the median, scoring rate in per cent, impact ratio."""


def rule_data() -> Columns:
    """168 people with 84 above the median; the 36 whose race the example leaves out are 'Other', 20 of them above."""
    parts = {**RULE["race"], "Other": (36, 20, 0.0, 0.0)}
    people = [(race, at < above) for race, (n, above, _, _) in parts.items() for at in range(n)]
    people.sort(key=lambda person: not person[1])  # those above first: 50 of them are men
    sex = ["Male"] * 50 + ["Female"] * 34 + ["Male"] * 42 + ["Female"] * 42
    return {
        "sex": sex,
        "race": [race for race, _ in people],
        "score": [0.6 + at / 1000 if above else 0.5 - at / 1000 for at, (_, above) in enumerate(people)],
    }


def audited(data: Columns, profile: str | list[str], **roles: Any) -> eh.Audit:
    settings = {"groups": ["sex", "race"], "predictions": {"tool": "score"}, "favourable": "selected", **roles}
    return eh.audit(eh.Table(data, **settings), parity={"metrics": "selection_rate"}, report={"profile": profile})


def tables_of(section: Section) -> list[DisplayTable]:
    return [part for part in section.parts if isinstance(part, DisplayTable)]


def hiring(**extra: list[Any]) -> Columns:
    """80 White people of whom 48 are hired, and 40 Black people of whom 12 are."""
    return {
        "race": ["White"] * 80 + ["Black"] * 40,
        "hired": [1] * 48 + [0] * 32 + [1] * 12 + [0] * 28,
        **extra,
    }


def of_hiring(data: Columns | None = None, profile: Any = "ugesp-1978", **roles: Any) -> eh.Audit:
    table = eh.Table(data or hiring(), **{"groups": "race", "predictions": "hired", "favourable": "selected", **roles})
    return eh.audit(table, parity={"metrics": "selection_rate"}, report={"profile": profile})


@pytest.fixture(scope="module")
def everything() -> eh.Audit:
    data = hiring(sex=["F", "M"] * 60)
    data["race"][0] = None
    return of_hiring(data, list(PROFILES), groups=["sex", "race", ["sex", "race"]])


@pytest.fixture(scope="module")
def page(everything: eh.Audit) -> str:
    return everything.to_html()


# Local Law 144 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouping", ["sex", "race"])
def test_the_rules_own_example(grouping: str) -> None:
    rows = audited(rule_data(), "nyc-ll144-2023").profiles[0].tables["rates"]
    found = {row.group: row for row in rows if row.grouping == grouping}
    for group, (n, above, rate, ratio) in RULE[grouping].items():
        row = found[group]
        assert (row.kind, row.n, row.counted) == ("scoring", n, above)
        assert 100 * row.rate == pytest.approx(rate, abs=0.1)
        assert row.impact_ratio == pytest.approx(ratio, abs=0.01)


def test_the_median_is_that_of_all_and_equal_scores_are_not_above_it() -> None:
    data = {"sex": ["F"] * 4 + ["M"] * 4 + [None] * 3, "score": [1, 2, 2, 3, 2, 2, 3, 3, 0, 0, 0]}
    table = eh.Table(
        data, groups="sex", predictions={"tool": {"column": "score", "kind": "score", "range": [0, 3], "threshold": 1}}
    )
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, report={"profile": "nyc-ll144-2023"})
    women, men, unknown = audit.profiles[0].tables["rates"]
    assert (women.median, women.counted, men.counted) == (2.0, 1, 2)
    assert (women.impact_ratio, men.impact_ratio) == (0.5, 1.0)
    assert (unknown.group, unknown.n, unknown.rate, unknown.impact_ratio) == ("(missing)", 3, None, None)
    assert (men.score_low, men.score_median, men.score_high) == (2.0, 2.5, 3.0)


def test_a_category_under_two_per_cent_has_its_number_and_rate_and_both_ratios_are_shown() -> None:
    data = hiring()
    data["race"][-2:], data["hired"][-2:] = ["Asian"] * 2, [1] * 2
    found = {row.group: row for row in of_hiring(data, "nyc-ll144-2023").profiles[0].tables["rates"]}
    assert (found["Asian"].n, found["Asian"].rate, found["Asian"].large_ratio) == (2, 1.0, None)
    assert found["White"].impact_ratio == pytest.approx(0.6)
    assert found["White"].large_ratio == pytest.approx(1.0)
    assert found["Black"].large_ratio == pytest.approx(12 / 38 / 0.6)


def test_scores_of_a_long_table_are_counted_in_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = audited(rule_data(), "nyc-ll144-2023").profiles[0]
    monkeypatch.setattr(table_module, "EXACT_ROWS", 100)
    binned = audited(rule_data(), "nyc-ll144-2023").profiles[0]
    assert [row.counted for row in binned.tables["rates"]] == [row.counted for row in exact.tables["rates"]]


def test_high_scores_that_are_bad_for_the_person_are_named() -> None:
    notes = audited(rule_data(), "nyc-ll144-2023", favourable="not_selected").profiles[0].notes
    assert "after.high_scores_are_bad" in {note.id for note in notes}


# UGESP ----------------------------------------------------------------------------------------------------------------


def test_every_group_stands_beside_the_highest_rate() -> None:
    white, black = sorted(of_hiring().profiles[0].tables["impact"], key=lambda row: -row.n)
    assert (white.group, white.highest, white.below_four_fifths, white.p_value) == ("White", "White", False, None)
    assert (black.n, black.selected, black.rate, black.ratio) == (40, 12, pytest.approx(0.3), pytest.approx(0.5))
    assert black.below_four_fifths is True
    assert black.low < 0.5 < black.high
    assert (black.to_four_fifths, black.shortfall, black.flip_one) == (8, pytest.approx(8.0), "no")


def test_where_being_selected_is_bad_the_others_are_counted() -> None:
    rows = of_hiring(favourable="not_selected").profiles[0].tables["impact"]
    assert {row.group: (row.selected, row.highest) for row in rows} == {"White": (32, "Black"), "Black": (28, "Black")}


def test_the_tables_are_about_race_sex_and_ethnic_group_and_what_is_not_here_is_told() -> None:
    """Age and office are other laws' or nobody's; who means them says so."""
    data = hiring(age=["old", "young"] * 60, applicantSex=["F", "M"] * 60)
    groups = ["race", "applicantSex", "age", ["race", "applicantSex"], ["race", "age"]]

    def shown(named: Any = None, groups: Any = groups, profile: str = "ugesp-1978") -> tuple[set[str], str]:
        table = eh.Table(data, groups=groups, predictions={"screen": "hired"}, favourable="selected")
        about = {"profile": profile, "profile_groupings": named}
        made = eh.audit(table, parity={"metrics": "selection_rate"}, report=about).profiles[0]
        rows = made.tables["impact" if profile == "ugesp-1978" else "rates"]
        return {row.grouping for row in rows}, " ".join(map(str, made.notes))

    for profile in ("ugesp-1978", "nyc-ll144-2023"):
        told, notes = shown(profile=profile)
        assert told == {"race", "applicantSex", "race × applicantSex"}
        assert "Not included: age, race × age. The rule is about race" in notes
    told, notes = shown(["age"])
    assert told == {"age"}
    assert "which `profile_groupings` does not name." in notes
    assert shown(groups=["race"])[1] == ""
    told, notes = shown(groups=["age"])
    assert told == {"age"}
    assert notes.startswith("No grouping is called race, sex or ethnic group, so all groupings are included")
    with pytest.raises(
        ConfigError, match=r"`profile_groupings` names 'rcae', no grouping of the data; did you mean 'race'"
    ):
        shown("rcae")


@pytest.mark.parametrize("profile", ["ugesp-1978", "nyc-ll144-2023"])
def test_the_table_says_that_people_not_selected_are_counted(profile: str) -> None:
    audit = of_hiring(profile=profile, favourable="not_selected")
    section = audit.sections()[profile]
    columns = tables_of(section)[0].columns
    assert "Not selected" in columns
    assert "Selected" not in columns
    assert "Selection rate" not in columns
    assert "selection rates" not in str(tables_of(section)[0])
    assert any("Not being selected is the favourable decision of hired" in note.text for note in section.notes)
    assert "Selected" in tables_of(of_hiring(profile=profile).sections()[profile])[0].columns


def test_everybody_selected_is_undefined_where_that_is_bad() -> None:
    audit = of_hiring({"race": ["A", "B"] * 20, "hired": [1] * 40}, favourable="not_selected")
    assert {row.status.text for row in audit.profiles[0].tables["impact"]} == {"undefined: everybody was selected"}


def test_a_side_that_was_not_said_is_told() -> None:
    assert any(note.id == "after.favourable_unsaid" for note in of_hiring(favourable=None).profiles[0].notes)


def test_a_weighted_table_has_no_counts_and_says_so() -> None:
    audit = of_hiring(hiring(w=[1.0, 2.0] * 60), ["ugesp-1978", "nyc-ll144-2023"], weight="w")
    assert [profile.tables.get("impact", profile.tables.get("rates")) for profile in audit.profiles] == [(), ()]
    assert all("survey weights" in profile.notes[0].text for profile in audit.profiles)
    assert not any(row.place == "nyc-ll144-2023" for row in audit.profiles[1].tables["checklist"])


def test_small_groups_are_shown_and_never_the_highest() -> None:
    data = hiring()
    data["race"][-2:], data["hired"][-2:] = ["Asian"] * 2, [1] * 2
    rows = {row.group: row for row in of_hiring(data).profiles[0].tables["impact"]}
    assert rows["Black"].highest == "White"
    assert rows["Asian"].status.text == "small: fewer than 10 people, so never the comparison group"


def test_a_small_group_with_a_higher_rate_is_not_denied() -> None:
    data = hiring()
    data["race"][-2:], data["hired"][-2:] = ["Asian"] * 2, [1] * 2
    section = of_hiring(data).sections()["ugesp-1978"]
    table = tables_of(section)[0]
    assert isinstance(table, DisplayTable)
    assert "which has the highest rate of the groups with at least 10 people" in table.caption
    assert "highest rate" not in {cell for row in table.texts() for cell in row}


def test_hidden_groups_are_neither_called_unknown_nor_outdone() -> None:
    data = hiring()
    data["race"] += ["Asian"] * 7 + ["Native"] * 9
    data["hired"] += [1] * 16
    table = eh.Table(data, groups="race", predictions="hired", favourable="selected")
    profiles = ["ugesp-1978", "nyc-ll144-2023"]
    audit = eh.audit(table, parity={"metrics": "selection_rate"}, report={"profile": profiles, "suppress_below": 10})
    impact, rates = (tables_of(audit.sections()[name])[0] for name in profiles)
    assert isinstance(impact, DisplayTable)
    assert isinstance(rates, DisplayTable)
    assert impact.caption.endswith("which has the highest rate of the groups shown")
    last = rates.texts()[-1]
    assert (last[0], last[1]) == ("hidden, not counted", "16")


def test_nobody_selected_is_undefined() -> None:
    rows = of_hiring({"race": ["A", "B"] * 20, "hired": [0] * 40}).profiles[0].tables["impact"]
    assert {(row.ratio, row.below_four_fifths, row.status.text) for row in rows} == {
        (None, None, "undefined: nobody was selected")
    }


def test_values_that_labels_merge_are_named() -> None:
    data: Columns = {"race": ["a", "b", "c"] * 40, "hired": [1, 0, 1, 0] * 30}
    notes = of_hiring(data, labels={"race": {"a": "X", "b": "X", "c": "Y"}}).profiles[0].notes
    assert "after.labels_merge" in {note.id for note in notes}


# All of them ----------------------------------------------------------------------------------------------------------


def test_every_profile_has_its_date_its_sources_and_no_advice(everything: eh.Audit) -> None:
    for name, section in everything.sections().items():
        if name in PROFILES:
            words = " ".join(map(str, [section.question, *section.notes]))
            assert NO_ADVICE in words
            assert PROFILES[name].date in words
            assert PROFILES[name].sources[0] in words
            assert "Not checked: " in words
            assert section.parts


def test_an_indicator_is_never_called_a_violation(page: str) -> None:
    assert not re.search(r"violat|unlawful|illegal", page, re.IGNORECASE)


def test_local_law_144_has_no_threshold_of_four_fifths(everything: eh.Audit) -> None:
    (table, *_) = everything.sections()["nyc-ll144-2023"].parts
    assert not any("4/5" in column or "ndicator" in column for column in table.columns)  # type: ignore[union-attr]


def test_every_link_of_a_checklist_leads_somewhere(everything: eh.Audit, page: str) -> None:
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets <= set(re.findall(r'id="([^"]+)"', page))
    clauses = [row for profile in everything.profiles for row in profile.tables.get("checklist", ())]
    assert {row.place for row in clauses} >= {"parity", "provenance", "about", None}
    assert all((row.place is None) == (row.where == NOT_HERE) and row.remark for row in clauses)


def test_a_checklist_sees_what_the_audit_has(everything: eh.Audit) -> None:
    def where(audit: eh.Audit, asks: str) -> str:
        rows = (row for profile in audit.profiles for row in profile.tables["checklist"])
        return str(next(row.where for row in rows if asks in row.asks))

    (law,) = (profile for profile in everything.profiles if profile.name == "nyc-ll144-2023")
    assert [row.where for row in law.tables["checklist"] if "intersection" in row.asks] == ["This section"]
    one = of_hiring(profile=["nyc-ll144-2023", "nj-13-16-2025"])
    assert where(one, "intersection") == NOT_HERE
    assert where(one, "A disparity, shown by empirical evidence") == "Parity"
    assert where(one, "A search for less discriminatory alternatives") == NOT_HERE


def test_profiles_are_read_back_without_the_data(everything: eh.Audit, page: str, tmp_path: Path) -> None:
    everything.save(tmp_path, [])
    again = eh.Audit.load(tmp_path)
    assert again.to_html() == page
    assert again.to_json() == everything.to_json()


def test_results_with_profiles_fit_the_schema(everything: eh.Audit) -> None:
    written = json.loads(everything.to_json())
    jsonschema.Draft202012Validator(results_schema()).validate(written)
    assert [profile["name"] for profile in written["profiles"]] == list(PROFILES)


def test_every_format_has_the_profiles(everything: eh.Audit) -> None:
    files = make_files(everything, ["md", "csv"])
    text = str(files["report.md"])
    assert all(f"## {profile.title}" in text for profile in PROFILES.values())
    assert text.count("not legal advice") == len(PROFILES)
    assert {"ugesp-1978-impact.csv", "nyc-ll144-2023-rates.csv", "nist-ai-rmf-1.0-checklist.csv"} <= set(files)


def test_the_order_of_rows_does_not_matter() -> None:
    data = rule_data()
    turned = {name: values[::-1] for name, values in data.items()}
    names = ["ugesp-1978", "nyc-ll144-2023"]
    assert audited(turned, names).to_json() == audited(data, names).to_json()


def test_a_mistyped_profile_gets_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"there is no profile 'ugesp'; did you mean 'ugesp-1978'\?"):
        of_hiring(profile="ugesp")
    with pytest.raises(ConfigError, match="names 'ecoa-reg-b' twice"):
        of_hiring(profile=["ecoa-reg-b", "ecoa-reg-b"])


def test_a_profile_that_counts_needs_the_selection_rate() -> None:
    table = eh.Table(hiring(y=[0, 1] * 60), groups="race", predictions="hired", outcome="y")
    with pytest.raises(ConfigError, match="'ugesp-1978' counts who is selected"):
        eh.audit(table, parity={"metrics": "tpr"}, report={"profile": "ugesp-1978"})


def test_a_study_may_have_a_checklist_but_no_counts() -> None:
    responses = eh.study.simulate_responses(20, seed=1)
    audit = eh.audit(responses, study={"resamples": 100}, report={"profile": "nist-ai-rmf-1.0"})
    places = [row.place for row in audit.profiles[0].tables["checklist"]]
    assert "study" in places
    with pytest.raises(ConfigError, match="counts who is selected"):
        eh.audit(responses, study={"resamples": 100}, report={"profile": "ugesp-1978"})


def test_the_command_line_adds_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = hiring()
    lines = [f"{race},{hired}" for race, hired in zip(data["race"], data["hired"], strict=True)]
    Path("people.csv").write_text("\n".join(["race,hired", *lines]))
    options = ["--groups", "race", "--decisions", "hired", "--favourable", "selected", "--quiet"]
    with pytest.raises(SystemExit) as left:
        main(["audit", "people.csv", *options, "--profile", "ugesp-1978,nj-13-16-2025", "--profile", "ecoa-reg-b"])
    assert left.value.code == 0
    written = json.loads(Path("out/results.json").read_text())
    assert [profile["name"] for profile in written["profiles"]] == ["ugesp-1978", "nj-13-16-2025", "ecoa-reg-b"]
    Path("audit.toml").write_text(
        '[data]\nsource = "people.csv"\ngroups = ["race"]\npredictions = "hired"\n[parity]\n'
        '[report]\nprofile = ["ugesp-1979"]\n'
    )
    with pytest.raises(SystemExit) as left:
        main(["audit", "audit.toml"])
    assert left.value.code == 2
    assert "did you mean 'ugesp-1978'?" in capsys.readouterr().err


def test_four_fifths_are_drawn_as_bars_with_the_people_short_of_them() -> None:
    audit = audited({**hiring()}, "ugesp-1978", groups="race", predictions="hired")
    figure = next(part for part in audit.sections()["ugesp-1978"].parts if isinstance(part, Figure))
    (panel,) = figure.charts
    black, white = sorted(panel.rows, key=lambda row: row["label"])
    assert (white["label"], white["value"], white["short"]) == ("White", 0.6, None)
    assert (black["value"], black["limits"], black["short"]) == (0.3, (pytest.approx(0.48),), 8)
    assert panel.ends()[0] == 0
    assert str(figure.shows) == "1 of 1 groups is below four fifths of the highest rate."
