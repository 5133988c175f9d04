"""Who is asked and who was recruited: the settings, the form about people, the recruiter's export, audits by kind."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.study.flow.about import about_view, read_about
from evenhand.study.flow.design import load_design
from evenhand.study.spec import StudySpec
from evenhand.study.template import save_audit, study_template

KIND = {
    "name": "kind",
    "question": {"en": "Who are you?", "de": "Wer sind Sie?"},
    "choices": [{"en": "patient", "de": "Patient"}, {"en": "surgeon", "de": "Chirurg"}],
}
ENGLISH = {"name": "kind", "question": "Who are you?", "choices": ["patient", "surgeon"]}
AGE = {"name": "age", "question": {"en": "How old are you?", "de": "Wie alt sind Sie?"}, "range": [18, 99]}
EXPORT = {
    "Participant id": ["5f1", "5f2", "5f3", "5f4", "5f9"],
    "Country of residence": ["United States", "Canada", "CONSENT_REVOKED", "united states", "France"],
    "Fluent languages": ["English, Spanish", "English", "English", "Thai; Lao", "French"],
    "Approval rate": ["99.5", "100", "99", "98.9", "100"],
}
FILTERS = [
    {"column": "Country of residence", "values": ["United States"]},
    {"column": "Fluent languages", "values": ["English"]},
    {"column": "Approval rate", "least": 99},
]
PEOPLE = [("5f1", "p1"), ("5f2", "p2"), ("5f3", "p3"), ("5f4", "p4"), ("5f7", "p7"), (None, "p8")]


def spec_with(about: dict[str, Any], kind: Any = "effort", **changes: Any) -> StudySpec:
    held = tomllib.loads(study_template(kind))
    for name, values in changes.items():
        held[name] = {**held.get(name, {}), **values}
    return StudySpec.parse({**held, "about": about}, "study.toml")


class TestSettings:
    @pytest.mark.parametrize(
        ("question", "said"),
        [
            ({"name": "kind", "question": "?"}, "needs `choices` or `range`, and not both"),
            ({"name": "kind", "question": "?", "choices": ["a", "b"], "range": [1, 2]}, "and not both"),
            ({"name": "kind", "question": "?", "choices": ["a"]}, "must be two or more; got one"),
            ({"name": "age", "question": "?", "range": [99, 18]}, "must rise from 0 or more"),
            ({"name": "reason", "question": "?", "choices": ["a", "b"]}, "is called as a column of the answers"),
            ({"name": "Kind", "question": "?", "choices": ["a", "b"]}, "small letters a to z"),
            ({"name": "kind", "question": "?", "choices": ["a", "a"]}, "names one twice"),
            ({"name": "kind", "question": "?", "choices": ["a", "prefer not to say"]}, "names one twice, or 'prefer"),
        ],
    )
    def test_a_question_that_makes_no_sense_is_refused(self, question: dict[str, Any], said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            spec_with({"questions": [question]})

    def test_quotas_and_the_kind_of_critic_name_questions_and_choices(self) -> None:
        asked = {"questions": [{"name": "kind", "question": "?", "choices": ["patient", "surgeon"]}]}
        with pytest.raises(ConfigError, match=r"`quotas` in \[recruitment\] got 'knid', .* did you mean 'kind'"):
            spec_with(asked, recruitment={"quotas": {"knid": {"patient": 3}}})
        with pytest.raises(ConfigError, match="got 'pateint'; did you mean 'patient'"):
            spec_with(asked, recruitment={"quotas": {"kind": {"pateint": 3}}})
        with pytest.raises(ConfigError, match=r"`stakeholder` in \[disagreement\] got 'knid'"):
            spec_with(asked, "disagreement", disagreement={"stakeholder": "knid"})
        number = {"questions": [{"name": "age", "question": "How old are you?", "range": [18, 99]}]}
        with pytest.raises(ConfigError, match=r"`quotas` in \[recruitment\] needs a question with `choices`"):
            spec_with(number, recruitment={"quotas": {"age": {"20": 3}}})
        quotas = {"kind": {"patient": 3, "prefer not to say": 1}}
        assert spec_with(asked, recruitment={"quotas": quotas}).recruitment.quotas == quotas

    def test_a_choice_in_one_language_only_is_refused(self) -> None:
        held = tomllib.loads(study_template("effort")) | {"languages": ["en", "de"]}
        held["about"] = {"questions": [{**AGE, "question": "How old?"}]}
        with pytest.raises(ConfigError, match=r"about.questions.1.question` lacks de"):
            StudySpec.parse(held, "study.toml")

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"column": "Age"}, "needs `values`, or `least` and `most`"),
            ({"column": "Age", "values": ["1"], "least": 2}, "and not both"),
            ({"column": "Age", "least": 3, "most": 2}, "is above `most`"),
        ],
    )
    def test_a_filter_that_makes_no_sense_is_refused(self, given: dict[str, Any], said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            eh.study.check_recruits(EXPORT, PEOPLE, {"filters": [given]})


@pytest.fixture(scope="module")
def spec() -> StudySpec:
    return spec_with({"consent": "You may store this.", "questions": [ENGLISH, {**AGE, "question": "?"}]})


class TestForm:
    def test_what_is_stored_is_the_choice_in_the_first_language(self) -> None:
        held = {**tomllib.loads(study_template("effort")), "languages": ["en", "de"]}
        texts = ("title", "consent", "debrief")
        held |= {name: {"en": "x", "de": "y"} for name in texts}
        held["conditions"] = {
            name: {
                key: {"en": text, "de": text} if key in ("feature", "subject", "subjects", "outcome") else text
                for key, text in one.items()
            }
            for name, one in held["conditions"].items()
        }
        held["attention"] = []
        spec = StudySpec.parse({**held, "about": {"questions": [KIND]}}, "study.toml")
        assert about_view(spec, "de").questions[0].choices == (
            ("patient", "Patient"),
            ("surgeon", "Chirurg"),
            ("prefer not to say", "Das möchte ich nicht sagen"),
        )
        assert read_about(spec, {"about_kind": ["surgeon"]}, "de") == ({"kind": "surgeon"}, {})
        assert read_about(spec, {"about_kind": ["Chirurg"]}, "de")[1]

    @pytest.mark.parametrize(
        ("fields", "wrong"),
        [
            ({}, {"about_kind", "about_age"}),
            ({"about_kind": ["queen"], "about_age": ["17"]}, {"about_kind", "about_age"}),
            ({"about_kind": ["patient"], "about_age": ["4e1"]}, {"about_age"}),
            ({"about_kind": ["patient"], "about_age": ["\u0664\u0664"]}, {"about_age"}),
            ({"about_kind": ["patient"], "about_age": ["44"]}, {"about_consent"}),
            ({"about_kind": ["patient"], "about_age": ["9" * 5000]}, {"about_age"}),
            ({"about_kind": ["patient"], "about_age": ["17"], "about_age_unsaid": ["yes"]}, {"about_age"}),
        ],
    )
    def test_what_lacks_is_said(self, spec: StudySpec, fields: dict[str, list[str]], wrong: set[str]) -> None:
        assert set(read_about(spec, fields, "en")[1]) == wrong

    def test_nothing_is_told_without_the_consent_and_need_not_be(self, spec: StudySpec) -> None:
        unsaid = {"about_kind": ["prefer not to say"], "about_age": [""], "about_age_unsaid": ["yes"]}
        assert read_about(spec, unsaid, "en") == ({"kind": "prefer not to say", "age": "prefer not to say"}, {})
        told = {"about_kind": ["patient"], "about_age": [" 044 "], "about_consent": ["yes"]}
        assert read_about(spec, told, "en") == ({"kind": "patient", "age": "44"}, {})

    def test_who_may_not_skip_is_not_offered_it(self) -> None:
        spec = spec_with({"questions": [{**ENGLISH, "may_skip": False}]})
        assert [value for value, _ in about_view(spec, "en").questions[0].choices] == ["patient", "surgeon"]
        assert read_about(spec, {"about_kind": ["prefer not to say"]}, "en")[1]


class TestRecruiterExport:
    def test_says_who_breaks_what_and_who_is_missing(self) -> None:
        found = eh.study.check_recruits(EXPORT, PEOPLE, {"filters": FILTERS})
        assert found.people("meets") == ("5f1",)
        assert found.people("breaks") == ("5f2", "5f4")
        assert found.people("unknown") == ("5f3",)
        broken = [(one.participant, one.column, one.value) for one in found.records if one.status == "breaks"]
        assert broken == [
            ("p2", "Country of residence", "Canada"),
            ("p4", "Fluent languages", "Thai; Lao"),
            ("p4", "Approval rate", "98.9"),
        ]
        assert (found.unmatched, found.absent, found.without_id) == (("5f7",), ("5f9",), ("p8",))
        assert not found.unchecked

    def test_the_order_of_rows_and_of_people_does_not_matter(self) -> None:
        order = np.random.default_rng(1).permutation(5)
        mixed = {name: [values[row] for row in order] for name, values in EXPORT.items()}
        found = eh.study.check_recruits(mixed, PEOPLE[::-1], {"filters": FILTERS})
        assert found == eh.study.check_recruits(EXPORT, PEOPLE, {"filters": FILTERS})

    def test_a_column_that_is_not_there_is_told_and_the_rest_is_checked(self) -> None:
        missing = [*FILTERS, {"column": "Aproval rate", "least": 99}]
        found = eh.study.check_recruits(EXPORT, PEOPLE, {"filters": missing})
        assert found.unchecked == ("the export has no column 'Aproval rate'; did you mean 'Approval rate'?",)
        assert found.people("breaks") == ("5f2", "5f4")
        with pytest.raises(DataError, match="has no column 'Participant id' with the ids"):
            eh.study.check_recruits({"id": ["5f1"]}, PEOPLE, {"filters": FILTERS})

    def test_of_several_rows_of_one_person_the_worst_counts(self) -> None:
        twice = {name: [*values, values[0]] for name, values in EXPORT.items()}
        twice["Approval rate"][-1] = "12"
        found = eh.study.check_recruits(twice, PEOPLE, {"filters": FILTERS})
        assert found.repeated == ("5f1",)
        assert "5f1" in found.people("breaks")

    def test_it_reads_a_file_as_it_was_downloaded(self, tmp_path: Path) -> None:
        path = tmp_path / "prolific.csv"
        lines = [",".join(f'"{cell}"' for cell in row) for row in zip(*EXPORT.values(), strict=True)]
        path.write_text("\ufeff" + ",".join(EXPORT) + "\r\n" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
        found = eh.study.check_recruits(path, PEOPLE, {"filters": FILTERS})
        assert found == eh.study.check_recruits(EXPORT, PEOPLE, {"filters": FILTERS})


def critics_study(folder: Path) -> StudySpec:
    """Write a study of 60 cases that asks for the kind of critic."""
    rows = [f"{i},{'high' if i % 2 else 'low'},{'ab'[i % 3 == 0]},{20 + i},x,{i % 4}" for i in range(60)]
    (folder / "cases.csv").write_text("\n".join(["case,label,race,age,charge,priors", *rows]), encoding="utf-8")
    text = study_template("disagreement").replace("\n[disagreement]\n", '\n[disagreement]\nstakeholder = "kind"\n')
    about = '[about]\nquestions = [{ name = "kind", question = "Who are you?", choices = ["patient", "surgeon"] }]\n'
    (folder / "study.toml").write_text(text.replace("[payment]", f"{about}\n[payment]"), encoding="utf-8")
    return eh.study.read_study(folder / "study.toml")


def critics_answers() -> dict[str, list[Any]]:
    """Return an export: surgeons agree with everything, patients disagree with what was decided on group a."""
    rows: list[tuple[Any, ...]] = []
    for number in range(24):
        kind = ("patient", "surgeon", "prefer not to say")[number % 3]
        for case in range(0, 60, 1 + number % 2):
            against = kind == "patient" and case % 3
            label = "high" if case % 2 else "low"
            rows.append((f"p{number:02d}", 1, 3, 3, kind, str(case), label, "disagree" if against else "agree"))
    names = ("participant", "finished", "checks_passed", "checks_total", "kind", "item", "decision", "answer")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    for name, value in zip(names, ("silent", 0, 0, 0, "patient", None, None, None), strict=True):
        columns[name].append(value)  # who came and answered nothing
    return columns


def without_draws(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records without what is drawn: draws follow the contents of all columns, and files hold them as text."""
    kept = (
        "model",
        "grouping",
        "group",
        "reference",
        "metric",
        "kind",
        "against",
        "n",
        "value",
        "label",
        "stakeholder",
    )
    return [{name: value for name, value in record.items() if name in kept} for record in records]


class TestAuditByKind:
    def test_an_export_is_audited_by_kind_of_critic_in_one_step(self, tmp_path: Path) -> None:
        study = critics_study(tmp_path)
        eh.study.read_responses(critics_answers()).save(tmp_path / "responses.csv")
        table, settings = study.for_audit(eh.study.read_responses(tmp_path / "responses.csv"))
        result = eh.disagreement(table, **settings, resamples=100)
        rates = {
            one.stakeholder: one.value
            for one in result.rows("values", metric="calibration", group="a", label="low")
            if one.stakeholder is not None
        }
        assert rates == {"patient": 0.0, "surgeon": 1.0, "prefer not to say": 1.0}, "how often they agree"

    def test_it_is_what_a_join_by_hand_gives(self, tmp_path: Path) -> None:
        study, held = critics_study(tmp_path), critics_answers()
        table, settings = study.for_audit(eh.study.read_responses(held))
        said = {name: values[:-1] for name, values in held.items()}
        cases = eh.Table(tmp_path / "cases.csv", id="case", groups=["race"])
        by_hand = eh.disagreement(
            cases,
            decision="label",
            critic="participant",
            answer="answer",
            case="item",
            stakeholder="kind",
            answers={"data": said, "labels": ["low", "high"]},
            resamples=100,
        )
        values = eh.disagreement(table, **settings, resamples=100).to_dict()
        for name in ("gaps", "values"):
            assert without_draws(values[name]) == without_draws(by_hand.to_dict()[name])

    def test_the_folder_for_evenhand_audit_gives_the_same(self, tmp_path: Path) -> None:
        study, responses = critics_study(tmp_path), eh.study.read_responses(critics_answers())
        files = save_audit(responses, study, tmp_path / "audit")
        assert files[-1].stat().st_mode & 0o077 == 0
        with pytest.raises(ConfigError, match="cannot be made: "):
            save_audit(responses, study, files[0] / "folder")
        table, settings = study.for_audit(responses)
        found = eh.audit(files[0]).results["disagreement"].to_dict()
        direct = eh.disagreement(table, **settings).to_dict()
        assert found["stakeholders"] == direct["stakeholders"]
        for name in ("gaps", "values"):
            assert without_draws(found[name]) == without_draws(direct[name])

    def test_another_question_can_be_asked_for_and_an_unknown_one_is_refused(self, tmp_path: Path) -> None:
        study, held = critics_study(tmp_path), critics_answers()
        held["sex"] = ["f" if who[-1] in "13579" else "m" for who in held["participant"]]
        responses = eh.study.read_responses(held)
        _, settings = study.for_audit(responses, by="sex")
        assert set(settings["answers"]["data"]["stakeholder"]) == {"f", "m"}
        with pytest.raises(ConfigError, match="nothing of the kind of critic 'sexx'; did you mean 'sex'"):
            study.for_audit(responses, by="sexx")

    def test_the_kind_does_not_decide_what_people_are_asked(self, tmp_path: Path) -> None:
        study = critics_study(tmp_path)
        before = load_design(study).fingerprint
        path = tmp_path / "study.toml"
        path.write_text(path.read_text("utf-8").replace('stakeholder = "kind"\n', ""), encoding="utf-8")
        assert load_design(eh.study.read_study(path)).fingerprint == before
        path.write_text(path.read_text("utf-8").replace("Who are you?", "What are you?"), encoding="utf-8")
        assert load_design(eh.study.read_study(path)).fingerprint != before
