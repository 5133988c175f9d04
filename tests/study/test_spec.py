"""`study.toml`: the templates, every rule, languages, and the JSON Schema."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import evenhand as eh
from evenhand.errors import ConfigError, DataError
from evenhand.study import StudySpec, read_study, study_schema, study_template
from evenhand.study.flow.language import LANGUAGES, built_in, built_in_questions
from evenhand.study.schema import KINDS, SCALE
from evenhand.study.settings import Questions
from evenhand.study.spec import texts_of

OWN_WORDS = ("feature", "subject", "subjects", "outcome")


def effort() -> dict[str, Any]:
    return tomllib.loads(study_template("effort"))


def feedback() -> dict[str, Any]:
    return tomllib.loads(study_template("disagreement"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_is_a_valid_study(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(study_template(kind), encoding="utf-8")
    spec = read_study(path)
    assert spec.kind == kind
    assert len(spec.attention) == 3
    assert spec.analysis.exclusions.failed_checks == 2
    jsonschema.validate(tomllib.loads(study_template(kind)), study_schema())


def test_the_template_pays_what_the_paper_paid() -> None:
    spec = StudySpec.parse(effort(), "study.toml")
    assert spec.payment.hourly == pytest.approx(12.07, abs=0.01)
    assert [(bonus.by, bonus.amount, bonus.share) for bonus in spec.payment.bonuses] == [
        ("truth_serum", 5, 0.1),
        ("reasons", 5, 0.1),
    ]
    assert len(spec.scale) == 6


def change(path: str, value: Any) -> Callable[[Any], None]:
    def apply(raw: Any) -> None:
        *outer, last = path.split(".")
        for part in outer:
            raw = raw[int(part)] if isinstance(raw, list) else raw[part]
        if value is ...:
            del raw[last]
        else:
            raw[last] = value

    return apply


@pytest.mark.parametrize(
    ("make", "apply", "message"),
    [
        (
            effort,
            change("kind", "efort"),
            "`kind` in study.toml: must be 'effort' or 'disagreement'; got 'efort'",
        ),
        (effort, change("consent", ...), "`consent` in study.toml: it is required"),
        (effort, change("conditions", {}), "needs at least one condition"),
        (effort, change("conditions.income.feautre", "x"), "did you mean 'feature'"),
        (effort, change("conditions.income.instrument", ...), "`conditions.income.instrument` .* it is required"),
        (
            effort,
            change("disagreement", feedback()["disagreement"]),
            r"\[disagreement\] belongs to a study of kind 'disagreement'",
        ),
        (feedback, change("disagreement", ...), r"needs \[disagreement\] with its cases"),
        (feedback, change("conditions", effort()["conditions"]), r"\[conditions\] belong to a study of kind 'effort'"),
        (feedback, change("disagreement.answers", ["agree", "to_high"]), "did you mean 'too_high'"),
        (feedback, change("disagreement.answers", ["disagree"]), "must hold 'agree'"),
        (feedback, change("disagreement.labels", ["low", "low"]), "names a label twice"),
        (feedback, change("disagreement.assignment.per_critic", 0), "greater than or equal to 1"),
        (effort, change("scale", ["a", "b", "c"]), "even number of points"),
        (
            effort,
            change("attention.0.right", "Purple"),
            r"`right` of attention check 1 must be one of the choices \('Red'",
        ),
        (effort, change("attention.1.right", 4), "`right` of attention check 2 .* or its number from 1; got 4"),
        (effort, change("attention.1.right", 0), "or its number from 1; got 0"),
        (
            effort,
            change("attention.0.choices", ["Red", "Blue", "Red"]),
            "`choices` of attention check 1 names one twice",
        ),
        (effort, change("attention.0.choices", {"en": ["Red"]}), "`attention.0.choices` .* must be a list of choices"),
        (
            effort,
            change("attention.0.choices", [5, 6]),
            "`attention.0.choices.0` .* must be a text in quotes, .* got 5",
        ),
        (effort, change("attention.2.after", 9), "`after` of attention check 3 is 9, but people see 3 sets"),
        (feedback, change("attention.2.after", 51), "`after` of attention check 3 is 51, but people see 50 cases"),
        (effort, change("analysis.exclusions.failed_checks", 4), "but there are only 3 attention checks"),
        (effort, change("payment.currency", "dollars"), "`payment.currency` .* must be three letters such as USD; got"),
        (effort, change("payment.minutes", 0), "`payment.minutes`"),
        (effort, change("name", "Who is alike?"), "`name` .* must have only small letters a to z, digits and hyphens"),
        (effort, change("languages", ["english"]), "`languages.0` .* must be the short code of a language, such as en"),
        (effort, change("recruitment", {"completion_url": "http://x.test/{code}"}), "must start with https://"),
        (effort, change("recruitment", {"id_parameter": "the id"}), "must have only letters, digits, dots"),
        (effort, change("recruitment", {"completion_code": "A B"}), "must have 4 to 64 letters, digits and hyphens"),
        (effort, change("recruitment", {"completion_url": "https://x.test/?cc=ABCD"}), "`completion_code` is not set"),
        (
            effort,
            change("consent", "For {amout} {currency}."),
            "`consent` has a placeholder {amout}; did you mean 'amount'",
        ),
        (
            effort,
            change("debrief", "See {reference}."),
            "`debrief` has a placeholder {reference}; known names: 'minutes'",
        ),
        (effort, change("title", 7), "`title` in study.toml: it must be a text in quotes, or one for each language"),
        (effort, change("languages", ["en", "en"]), "names one twice"),
        (effort, change("questions", {"overall": "Alike: {refernce}?"}), "did you mean 'reference'"),
        (effort, change("title", {"en": "A", "de": "B"}), "`title` has a text in 'de'"),
        (effort, change("languages", ["en", "de"]), "`title` lacks de; `consent` lacks de"),
        (effort, change("analysis.alhpa", 0.1), "did you mean 'alpha'"),
    ],
)
def test_what_is_wrong_is_told(make: Any, apply: Any, message: str) -> None:
    raw = deepcopy(make())
    apply(raw)
    with pytest.raises(ConfigError, match=message):
        StudySpec.parse(raw, "study.toml")


def translated(raw: dict[str, Any]) -> dict[str, Any]:
    """Give every text a German twin."""

    def both(text: str) -> dict[str, str]:
        return {"en": text, "de": f"de: {text}"}

    for name in ("title", "consent", "debrief"):
        raw[name] = both(raw[name])
    for condition in raw["conditions"].values():
        for name in ("feature", "subject", "subjects", "outcome", "unit"):
            if name in condition:
                condition[name] = both(condition[name])
    for check in raw["attention"]:
        check["question"] = both(check["question"])
    raw["questions"] = {name: both(str(text)) for name, text in texts_of(Questions()) if name != "feedback"}
    raw["scale"] = [both(str(point)) for point in range(6)]
    return {**raw, "languages": ["en", "de"]}


def test_several_languages() -> None:
    spec = StudySpec.parse(translated(effort()), "study.toml")
    assert spec.words(spec.title, "de") == "de: Who is alike?"
    assert spec.words(spec.title, "fr") == "Who is alike?"
    assert spec.words("plain") == "plain"
    jsonschema.validate(translated(effort()), study_schema())
    lacking = translated(effort())
    del lacking["questions"]["overall"]["de"]
    with pytest.raises(ConfigError, match=r"`questions\.overall` lacks de\.$"):
        StudySpec.parse(lacking, "study.toml")


def test_english_wording_is_not_taken_for_another_language() -> None:
    raw = {**feedback(), "languages": ["it"], "interface": {"it": dict(built_in("en"))}}
    with pytest.raises(
        ConfigError, match=r"as in { it = '...' }: `questions\.reason` lacks it; `questions\.feedback` "
    ):
        StudySpec.parse(raw, "study.toml")
    raw["questions"] = {"reason": "Perché?", "feedback": "Il sistema ha deciso: {decision}. È d'accordo?"}
    assert StudySpec.parse(raw, "study.toml").languages == ("it",)


def test_all_that_a_new_language_lacks_is_told_at_once_and_only_what_is_ones_own() -> None:
    raw = {**effort(), "languages": ["en", "de"]}
    with pytest.raises(ConfigError) as told:
        StudySpec.parse(raw, "study.toml")
    lacking = re.findall(r"`([\w.]+)` lacks de", str(told.value))
    own = [f"conditions.{name}.{key}" for name in ("income", "arrests") for key in OWN_WORDS]
    assert lacking == ["title", "consent", "debrief", *own, *(f"attention.{number}.question" for number in (1, 2, 3))]
    with pytest.raises(ConfigError, match=r"`title` lacks it[\s\S]*\nthe pages have no words in 'it'"):
        StudySpec.parse({**raw, "languages": ["en", "it"]}, "study.toml")


def test_the_questions_of_the_settings_speak_four_languages() -> None:
    raw = translated(effort())
    del raw["questions"], raw["scale"]
    raw["conditions"]["income"]["unit"] = "$"
    spec = StudySpec.parse(raw, "study.toml")
    assert spec.words(spec.questions.overall, "de") == "Wie ähnlich sind sich {reference} und {subject} insgesamt?"
    assert spec.words(spec.scale[5], "de") == "Sehr verschieden"
    assert spec.words(spec.scale[5], "en") == "Very different"
    assert spec.words(spec.conditions["income"].unit, "de") == "$"
    english = {f"questions.{name}": str(text) for name, text in texts_of(Questions())}
    english |= {f"scale.{point}": text for point, text in enumerate(SCALE, 1)}
    for language in LANGUAGES[1:]:
        words = built_in_questions(language)
        assert set(words) == set(english)
        assert len(set(words.values())) == len(words)
        for name, text in english.items():
            assert sorted(re.findall(r"{\w+}", words[name])) == sorted(re.findall(r"{\w+}", text)), (language, name)


def test_choices_are_translated_and_stored_in_the_first_language() -> None:
    raw = translated(effort())
    raw["attention"][0] |= {"choices": [{"en": "Red", "de": "Rot"}, {"en": "Blue", "de": "Blau"}, "7"], "right": 2}
    spec = StudySpec.parse(raw, "study.toml")
    jsonschema.validate(raw, study_schema())
    check = spec.attention[0]
    assert (check.offered("de"), check.right_choice("en")) == (("Rot", "Blau", "7"), "Blue")
    raw["attention"][0]["right"] = "Blau"
    with pytest.raises(ConfigError, match=r"must be one of the choices \('Red', 'Blue', '7'\) or its number"):
        StudySpec.parse(raw, "study.toml")
    del raw["attention"][0]["choices"][0]["de"]
    with pytest.raises(ConfigError, match=r"`attention\.1\.choices\.1` lacks de\.$"):
        StudySpec.parse(raw, "study.toml")


def test_a_link_with_its_own_code_or_a_place_for_it_is_fine() -> None:
    for recruitment in (
        {"completion_url": "https://x.test/?cc={code}"},
        {"completion_url": "https://x.test/?cc=ABCD", "completion_code": "ABCD"},
    ):
        assert StudySpec.parse({**effort(), "recruitment": recruitment}, "study.toml").recruitment.completion_url


def test_the_schema_refuses_what_the_study_refuses() -> None:
    jsonschema.Draft202012Validator.check_schema(study_schema())
    wrong = (
        change("kind", "efort"),
        change("payment.minutes", "long"),
        change("colour", "red"),
        change("name", "No blanks"),
        change("payment.currency", "dollars"),
    )
    for apply in wrong:
        raw = effort()
        apply(raw)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(raw, study_schema())


def test_wrong_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        read_study(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        read_study(tmp_path)
    (tmp_path / "bad.toml").write_text("kind = ")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        read_study(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes('title = "Ähnlich?"'.encode("latin-1"))
    with pytest.raises(ConfigError, match="is not in UTF-8; save it as UTF-8"):
        read_study(tmp_path / "latin.toml")


def write_effort(folder: Path, sets: int = 3, **roles: Any) -> StudySpec:
    """Write an effort study of one condition with its sets beside it, and read it."""
    given = {"predictions": {"m": "risk_logistic"}, **roles}
    table = eh.Table(eh.datasets.make_households(800, seed=1), id="household", groups="race", **given)
    made = eh.study.design_sets(table, [f"income_{year}" for year in range(2019, 2023)], sets=sets, step=100)
    made.save(folder / "income.json")
    text = study_template("effort")
    start, end = text.index("[conditions.arrests]"), text.index("[[attention]]")
    (folder / "study.toml").write_text(text[:start] + text[end:], encoding="utf-8")
    return read_study(folder / "study.toml")


def test_the_sets_are_found_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = write_effort(tmp_path)
    monkeypatch.chdir("/")
    assert [len(one.sets) for one in spec.instruments().values()] == [3]
    (tmp_path / "income.json").unlink()
    with pytest.raises(DataError, match=r"income.json' could not be read"):
        spec.instruments()


def test_an_instrument_must_suffice(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds 2 sets, but `sets_per_person` is 3; design more sets"):
        write_effort(tmp_path, sets=2).instruments()
    with pytest.raises(ConfigError, match=r"holds no score to show for K; give the table of design_sets\(\)"):
        write_effort(tmp_path, predictions={}).instruments()
    with pytest.raises(ConfigError, match="only a disagreement study deals out cases"):
        write_effort(tmp_path).assignment()


CASES = {
    "case": list(range(100)),
    "label": ["low", "high"] * 50,
    "race": ["a"] * 60 + ["b"] * 40,
    "age": [30] * 100,
    "charge": ["x"] * 100,
    "priors": [1] * 100,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, None),
        ({"age": None}, "`shown` in \\[disagreement\\] got 'age'"),
        ({"label": ["low", "middle"] * 50}, "`labels` in \\[disagreement\\] lacks 'middle'"),
    ],
)
def test_cases_are_dealt_out_from_the_file(change: dict[str, Any], message: str | None, tmp_path: Path) -> None:
    columns = {name: values for name, values in {**CASES, **change}.items() if values is not None}
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "cases.csv").write_text("\n".join(rows), encoding="utf-8")
    text = (
        study_template("disagreement")
        .replace("per_critic = 50", "per_critic = 20")
        .replace("per_case = 20", "per_case = 3")
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    spec = read_study(tmp_path / "study.toml")
    if message is None:
        dealt = spec.assignment()
        assert (len(dealt.critics), {len(seen) for seen in dealt.critics}) == (15, {20})
    else:
        with pytest.raises(ConfigError, match=message):
            spec.assignment()


def test_the_bonus_has_one_share() -> None:
    raw = effort()
    raw["payment"]["bonuses"][0]["share"] = 0.2
    spec = StudySpec.parse(raw, "study.toml")
    assert spec.analysis.bonus_share == 0.2
    result = spec.analyze(eh.study.simulate_responses(40, seed=1))
    assert sum(one.bonus for one in result.bonus) == 8
    raw["analysis"]["bonus_share"] = 0.1
    with pytest.raises(ConfigError, match=r"pays the truth serum to a share of 0.2, but `bonus_share` in \[analysis\]"):
        StudySpec.parse(raw, "study.toml")
