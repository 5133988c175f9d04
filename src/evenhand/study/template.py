"""A `study.toml` to start from, for each kind of study, and made-up sets or cases to try it out with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.core.csv_text import write_csv
from evenhand.errors import ConfigError
from evenhand.study.responses import Responses
from evenhand.study.schema import Kind, kind_of, read_columns, save_text

if TYPE_CHECKING:
    from evenhand.study.spec import StudySpec

_COMMON = '''# A study for evenhand. Texts may be in several languages: title = {{ en = "...", de = "..." }}.
kind = "{kind}"
name = "{name}"
title = "{title}"
languages = ["en"]
consent = """
You are invited to take part in a study on fairness. It takes about {minutes} minutes. You may stop at any time.
Your answers are stored without your name. Tick the box below if you are at least 18 and want to take part."""
{instructions}debrief = "Thank you. Your answers were saved."
seed = 0
'''
INSTRUCTIONS: Mapping[Kind, str] = {
    "effort": """You will see pairs of people and how something about them developed over the years.
Look at each chart, then say how similar the two are. There are no right or wrong answers: we want your own view.""",
    "disagreement": """You will see cases and what a computer system decided on each.
Read each case, then say whether you agree. There are no right or wrong answers: we want your own view.""",
}

_EFFORT = """sets_per_person = 3

# One section a condition; the sets come from design_sets(...).save("income.json").
"""

_CONDITIONS = {
    "income": """[conditions.income]
instrument = "income.json"
feature = "annual income"
subject = "household"
subjects = "households"
outcome = "missing a credit card payment"
unit = "$"
desirable = true
""",
    "arrests": """[conditions.arrests]
instrument = "arrests.json"
feature = "number of arrests a year"
subject = "defendant"
subjects = "defendants"
outcome = "committing a violent crime if released"
desirable = false
""",
}
_OWN_CONDITION = """[conditions.{name}]
instrument = {instrument}
feature = "annual income"         # what the values are of
subject = "person"                # what one of the compared is called
subjects = "people"
outcome = "missing a payment"     # what the score is the risk of
desirable = true                  # false where more of the feature is worse
"""

_FEEDBACK = """
[disagreement]
cases = {cases}
id = {id}
decision = {decision}
labels = {labels}          # all labels the system can give, lowest first
groups = {groups}                 # every critic sees every group
shown = {shown}
answers = ["agree", "disagree"]   # add "too_high" and "too_low" where labels have an order

[disagreement.assignment]
per_critic = {per_critic}
per_case = 20
"""
CASES: Mapping[str, Any] = {
    "cases": "cases.csv",
    "id": "case",
    "decision": "label",
    "labels": ["low", "high"],
    "groups": ["race"],
    "shown": ["age", "charge", "priors"],
    "per_critic": 50,
}
"""Where the cases of the template are, and what their columns mean."""
_CASES, _FEWEST = 1_000, 300

_TAIL = """
[[attention]]
question = "To show that you read this, choose Blue."
choices = ["Red", "Blue", "Green"]
right = "Blue"
after = {checks[0]}                         # after which set or case it is asked

[[attention]]
question = "Which of these is not an animal?"
choices = ["Dog", "Chair", "Horse"]
right = "Chair"
after = {checks[1]}

[[attention]]
question = "Please choose the number seven."
choices = ["Five", "Six", "Seven"]
right = "Seven"
after = {checks[2]}

[payment]
amount = 8.45
currency = "USD"
minutes = 42
{bonuses}
# [recruitment]                   # where people come from and go to at the end
# id_parameter = "PROLIFIC_PID"   # what the recruiter's link calls the person
# completion_url = "https://app.prolific.com/submissions/complete?cc={{code}}"
# completion_code = "C1A2B3C4"    # by default one is made up
# quotas = {{ age = {{ "60 or older" = 40 }} }}   # how many may take part, by an answer of [about]
# filters = [{{ column = "Country of residence", values = ["United States"] }}]   # checked in the recruiter's export

# [about]                         # what people say of themselves, on a page after the consent
# text = "We ask this to see whether people of different ages judge differently."
# questions = [{{ name = "age", question = "How old are you?", choices = ["18 to 34", "35 to 59", "60 or older"] }}]

[analysis.exclusions]
failed_checks = 2                 # leave out who failed this many attention checks; false keeps them
"""

_BONUSES = """
[[payment.bonuses]]
by = "truth_serum"
amount = 5
share = 0.1

[[payment.bonuses]]
by = "reasons"
amount = 5
share = 0.1
"""


def study_template(
    kind: Kind,
    *,
    instructions: str = "",
    conditions: Mapping[str, str] | None = None,
    cases: Mapping[str, Any] | None = None,
    checks: tuple[int, int, int] = (1, 2, 3),
) -> str:
    """Return a commented `study.toml` that only lacks its sets or cases.

    Parameters
    ----------
    kind : 'effort' or 'disagreement'.
    instructions : what people read before the first item, without quotes; by default there is no such page.
    conditions : the file of the sets of each condition, by name; by default those of the paper.
    cases : what differs from the template's [disagreement]: `cases`, `id`, `decision`, `labels`, `groups`, `shown`.
    checks : after which items the attention checks come.

    Examples
    --------
    >>> import evenhand as eh
    >>> eh.study.study_template("disagreement").splitlines()[1]
    'kind = "disagreement"'
    """
    kind = kind_of(kind)
    title = "Who is alike?" if kind == "effort" else "Do you agree with these decisions?"
    name = "who-is-alike" if kind == "effort" else "do-you-agree"
    page = f'instructions = """\n{instructions}"""\n' if instructions else ""
    head = _COMMON.format(kind=kind, name=name, title=title, minutes=42, instructions=page)
    if kind == "effort":
        named = conditions or dict.fromkeys(_CONDITIONS, "")
        body = _EFFORT + "\n".join(starmap(_condition, named.items()))
    else:
        body = _FEEDBACK.format(**{name: _toml(value) for name, value in {**CASES, **(cases or {})}.items()})
    return head + body + _TAIL.format(bonuses=_BONUSES if kind == "effort" else "", checks=checks)


def spread_checks(items: int) -> tuple[int, int, int]:
    """Return after which items three attention checks come, so that no long stretch is without one.

    Examples
    --------
    >>> spread_checks(50), spread_checks(1)
    ((10, 25, 40), (1, 1, 1))
    """
    return max(1, items // 5), max(1, items // 2), max(1, 4 * items // 5)


def _condition(name: str, instrument: str) -> str:
    known = None if instrument else _CONDITIONS.get(name)
    return known or _OWN_CONDITION.format(name=_toml(name), instrument=_toml(instrument or f"{name}.json"))


def _toml(value: object) -> str:
    """Return a value as TOML; JSON's texts, numbers and lists are TOML's."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def write_made_up(folder: Path, kind: Kind) -> list[Path]:
    """Write the sets or cases that the template names, made of made-up people; return the files.

    They show how a study works. They are no real people, so that nothing follows from what is said about them.
    """
    return _made_up_sets(folder) if kind == "effort" else [_made_up_cases(folder / str(CASES["cases"]))]


def made_up_names(kind: Kind) -> Sequence[str]:
    """Return the names of the files that `write_made_up` writes."""
    return [f"{name}.json" for name in _CONDITIONS] if kind == "effort" else [str(CASES["cases"])]


_AUDIT = """# The answers of the study {name}, ready for: evenhand audit audit.toml
[report]
title = {title}
system = {system}

[data]
source = "cases.csv"
id = {id}
groups = {groups}

[disagreement]
decision = {decision}
critic = "critic"
case = "case"
answer = "answer"
{stakeholder}seed = {seed}
confidence = {confidence}

[disagreement.answers]
source = "answers.csv"
labels = {labels}
{ordered}"""


def save_audit(responses: Responses, study: StudySpec, folder: Path, by: str | None = None) -> list[Path]:
    """Write the cases, the answers with the kind of critic, and an `audit.toml` that audits them; return the files.

    Parameters
    ----------
    responses, study : the answers, and the disagreement study that they belong to.
    folder : where to write; it is made where there is none.
    by : the question of [about] that says the kind of critic; by default the study's own.
    """
    _, settings = study.for_audit(responses, by)
    asked = study.disagreement
    if asked is None:
        raise ConfigError("only a disagreement study has cases to audit.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            "the folder '{folder}' cannot be made: {why}.", folder=folder, why=error.strerror or error
        ) from None
    said, kind = settings["answers"], "stakeholder" in settings
    text = _AUDIT.format(
        name=study.name,
        title=_toml(study.words(study.title)),
        system=_toml(f"the study {study.name}"),
        id=_toml(asked.id),
        groups=_toml(list(asked.groups)),
        decision=_toml(asked.decision),
        stakeholder='stakeholder = "stakeholder"\n' if kind else "",
        seed=settings["seed"],
        confidence=settings["confidence"],
        labels=_toml(said["labels"]),
        ordered="ordered = true\n" if said["ordered"] else "",
    )
    columns, _ = read_columns(study.folder / asked.cases)
    cases = {name: columns[name] for name in (asked.id, asked.decision, *asked.groups)}
    answers = write_csv({name: list(values) for name, values in said["data"].items()})
    contents = {"audit.toml": text, "cases.csv": write_csv(cases), "answers.csv": answers}
    files = [save_text(folder / name, content) for name, content in contents.items()]
    files[-1].chmod(0o600)  # what people said, and of which kind they are: for nobody else on this machine
    return files


def _made_up_sets(folder: Path) -> list[Path]:
    from evenhand.datasets import make_defendants, make_households
    from evenhand.study.instrument import design_sets
    from evenhand.table import Table

    score = {"logistic": "risk_logistic"}
    households = Table(make_households(5_000, seed=1), id="household", groups="race", predictions=score)
    income = design_sets(households, [f"income_{year}" for year in range(2019, 2023)], sets=6, step=100, seed=1)
    defendants = Table(make_defendants(5_000, seed=1), id="defendant", groups="race", predictions=score)
    # Counts are coarse: one arrest more in the first year moves a slope a lot, and an acceleration not at all.
    counts = [f"arrests_year{year}" for year in range(1, 5)]
    arrests = design_sets(defendants, counts, sets=6, measure="acceleration", similar_aggregate=0.5, seed=1)
    return [income.save(folder / "income.json"), arrests.save(folder / "arrests.json")]


def _made_up_cases(path: Path) -> Path:
    from evenhand.datasets import make_defendants

    people, _ = read_columns(make_defendants(2_000, seed=2))
    # Every critic must see every group, so that only groups of some size are of use.
    sizes = Counter(people["race"])
    large = [sizes[race] >= _FEWEST for race in people["race"]]
    shown = {name: list(compress(values, large))[:_CASES] for name, values in people.items()}
    columns = {
        "case": [f"d{number:04d}" for number in shown["defendant"]],
        **{name: shown[name] for name in ("race", "sex", "age")},
        "charge": shown["charge_degree"],
        "priors": list(map(sum, zip(*(shown[f"arrests_year{year}"] for year in range(1, 5)), strict=True))),
        "label": ["high" if risk > 0.3 else "low" for risk in shown["risk_logistic"]],
    }
    return save_text(path, write_csv(columns))
