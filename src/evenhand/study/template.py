"""A template `study.toml` for each kind of study, and made-up sets or cases to try it out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from evenhand.core.csv_text import write_csv
from evenhand.errors import ConfigError
from evenhand.study.responses import Responses
from evenhand.study.schema import Kind, kind_of, read_columns, save_text

if TYPE_CHECKING:
    from evenhand.study.spec import StudySpec

INSTRUCTIONS: Mapping[Kind, str] = {
    "effort": """You will see pairs of people and how something about them developed over the years.
Look at each chart, then say how similar the two are. There are no right or wrong answers: we want your own view.""",
    "disagreement": """You will see cases and what a computer system decided on each.
Read each case, then say whether you agree. There are no right or wrong answers: we want your own view.""",
}

CASES: Mapping[str, Any] = {
    "cases": "cases.csv",
    "id": "case",
    "decision": "label",
    "labels": ["low", "high"],
    "groups": ["race"],
    "shown": ["age", "charge", "priors"],
    "per_critic": 50,
}
"""The file of the template's cases, and the roles of its columns."""
_CASES, _FEWEST = 1_000, 300

_CONDITIONS = ("income", "arrests")
"""The conditions of the effort paper."""
_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("evenhand.study"),
    autoescape=False,  # noqa: S701 it is TOML
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
# JSON texts, numbers and lists are also valid TOML.
_TEMPLATES.filters["toml"] = lambda value: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def study_template(
    kind: Kind,
    *,
    instructions: str = "",
    conditions: Mapping[str, str] | None = None,
    cases: Mapping[str, Any] | None = None,
    checks: tuple[int, int, int] = (1, 2, 3),
) -> str:
    """Return a commented `study.toml` that is complete except for the files of its sets or cases.

    Parameters
    ----------
    kind : 'effort' or 'disagreement'.
    instructions : text shown before the first item, without quotes; by default the page is omitted.
    conditions : the file of sets by name of the condition; by default the conditions of the paper.
    cases : overrides of the template's [disagreement]: `cases`, `id`, `decision`, `labels`, `groups`, `shown`.
    checks : the numbers of the items that the attention checks follow.

    Examples
    --------
    >>> import evenhand as eh
    >>> eh.study.study_template("disagreement").splitlines()[1]
    'kind = "disagreement"'
    """
    kind = kind_of(kind)
    return _TEMPLATES.get_template("study.toml.jinja").render(
        kind=kind,
        instructions=instructions,
        conditions=conditions or dict.fromkeys(_CONDITIONS, ""),
        cases={**CASES, **(cases or {})},
        checks=checks,
    )


def spread_checks(items: int) -> tuple[int, int, int]:
    """Return the numbers of the items that three evenly spread attention checks follow.

    Examples
    --------
    >>> spread_checks(50), spread_checks(1)
    ((10, 25, 40), (1, 1, 1))
    """
    return max(1, items // 5), max(1, items // 2), max(1, 4 * items // 5)


def write_made_up(folder: Path, kind: Kind) -> list[Path]:
    """Write the template's sets or cases, made up of fictitious people; return the files.

    They demonstrate a study. Because the people are not real, no conclusions can be drawn from answers about them.
    """
    return _made_up_sets(folder) if kind == "effort" else [_made_up_cases(folder / str(CASES["cases"]))]


def made_up_names(kind: Kind) -> Sequence[str]:
    """Return the names of the files written by `write_made_up`."""
    return [f"{name}.json" for name in _CONDITIONS] if kind == "effort" else [str(CASES["cases"])]


def save_audit(responses: Responses, study: StudySpec, folder: Path, by: str | None = None) -> list[Path]:
    """Write the cases, the answers with kinds of critics, and an `audit.toml` for them; return the files.

    Parameters
    ----------
    responses, study : the answers, and their disagreement study.
    folder : the folder to write to; created if missing.
    by : the question of [about] that defines the kind of critic; by default the study's setting.
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
    text = _TEMPLATES.get_template("audit.toml.jinja").render(
        name=study.name,
        title=study.words(study.title),
        id=asked.id,
        groups=asked.groups,
        **{"stakeholder": None, **settings},
    )
    columns, _ = read_columns(study.folder / asked.cases)
    cases = {name: columns[name] for name in (asked.id, asked.decision, *asked.groups)}
    answers = write_csv({name: list(values) for name, values in settings["answers"]["data"].items()})
    contents = {"audit.toml": text, "cases.csv": write_csv(cases), "answers.csv": answers}
    files = [save_text(folder / name, content) for name, content in contents.items()]
    files[-1].chmod(0o600)  # answers with kinds of critics: readable only by the owner
    return files


def _made_up_sets(folder: Path) -> list[Path]:
    from evenhand.datasets import make_defendants, make_households
    from evenhand.study.instrument import design_sets
    from evenhand.table import Table

    score = {"logistic": "risk_logistic"}
    households = Table(make_households(5_000, seed=1), id="household", groups="race", predictions=score)
    income = design_sets(households, [f"income_{year}" for year in range(2019, 2023)], sets=6, step=100, seed=1)
    defendants = Table(make_defendants(5_000, seed=1), id="defendant", groups="race", predictions=score)
    # Counts are coarse: one more arrest in the first year changes the slope considerably, but not the acceleration.
    counts = [f"arrests_year{year}" for year in range(1, 5)]
    arrests = design_sets(defendants, counts, sets=6, measure="acceleration", similar_aggregate=0.5, seed=1)
    return [income.save(folder / "income.json"), arrests.save(folder / "arrests.json")]


def _made_up_cases(path: Path) -> Path:
    from evenhand.datasets import make_defendants

    people, _ = read_columns(make_defendants(2_000, seed=2))
    # Every critic must see every group, so only large groups are useful.
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
