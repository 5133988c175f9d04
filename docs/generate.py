"""Write the parts of the reference that the code itself knows: `python docs/generate.py`.

Metrics, settings, records and the command line are read from the package, so that these pages cannot differ from it.
The parts go to docs/_generated/, and the pages of docs/reference/ (and promises.md) include them.
"""

from __future__ import annotations

import inspect
import json
import pkgutil
import re
import runpy
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.testing import CliRunner

import evenhand.stats
from evenhand import Prediction, Table
from evenhand.after.profiles.result import TABLES
from evenhand.after.records import EXTRAS
from evenhand.audits import REGISTRY
from evenhand.audits.parity.messages import say
from evenhand.audits.parity.metrics import BUILT_IN, NAMED_GAPS, ParityMetric
from evenhand.audits.parity.other_names import OTHER_NAMES
from evenhand.cli.main import app
from evenhand.core.findings import Finding
from evenhand.core.metrics import Metric
from evenhand.core.power import PowerSettings
from evenhand.core.records import Gap, LeftOut, Record, Value
from evenhand.core.spec import settings_of
from evenhand.core.thresholds import Threshold
from evenhand.models.estimators import Fit, ModelsSettings
from evenhand.run.config import DatasetSettings, ReportSettings
from evenhand.run.schema import result_types, results_schema
from evenhand.study import AnalysisSpec, CaseSettings, Critics, Exclusions, Respondents, SetSettings, SurveyMap
from evenhand.study.analysis.descriptor import ANALYSIS
from evenhand.study.flow.language import built_in
from evenhand.study.schema import COLUMNS as ANSWER_COLUMNS
from evenhand.study.settings import (
    About,
    AboutQuestion,
    AttentionCheck,
    Bonus,
    Condition,
    Disagreement,
    Filter,
    Payment,
    Questions,
    Rationales,
    Recruitment,
)
from evenhand.study.spec import StudySpec
from evenhand.table import Roles
from evenhand.table.engines import EngineSettings
from evenhand.table.roles import Scalar
from evenhand.table.sources import FileOptions

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the benchmarks

HELP_COLUMNS = 100
"""The width of the terminal that the help texts are printed for."""

_INTERVALS = {
    "rate": "Wilson",
    "mean": "Student's t on the logit scale",
    "rank": "Student's t on the logit scale with DeLong's standard error",
    "function": "MOVER from the limits of the rates or means that it is a function of",
    "number": "Student's t with Hall's correction for skewness",
    "quantile": "exact, from order statistics",
    "custom": "bootstrap of the cells",
}
_SOURCE_ROW = (
    "source",
    "text",
    "required",
    "Path of a CSV, Parquet or JSON file, or a glob; relative to the folder of the file. Not with `dataset`.",
)
_HISTORY_ROW = (
    "source",
    "text",
    "required",
    "Path of that table, seen from the folder of the file. In Python `data` takes a frame or a mapping too.",
)
# Where the code alone would mislead: the type, the default and the meaning that a reader needs; None keeps it.
_FRAME = ("a data frame or a mapping of columns", None, "In Python, in place of `source`.")
_AMENDED: dict[str, dict[str, tuple[str | None, str | None, str | None]]] = {
    "DatasetSettings": {"dataset": (None, "none", None)},
    "EngineSettings": {"engine": (None, "none: files of this machine, which DuckDB reads", None)},
    "ParitySpec": {"custom": ("table of functions", None, None)},
    "EffortSpec": {"robustness": ("true or false, or a table", "`false`", None)},
    "History": {"data": _FRAME},
    "Answers": {"data": _FRAME},
    "Fit": {"estimator": (None, "the model's name", "The estimator's short name.")},
    "ReliabilitySpec": {
        "model": ("text, a list of texts or a table", None, None),
        "noise": ("text, a list of texts or a table", None, None),
        "attribution": ("true or false, or a number", "`true`", None),
    },
    "Noise": {
        "group_noise": ("table of tables", None, None),
        "linked": ("table of texts or lists of texts", None, None),
        "derive": ("function", None, None),
    },
    "PilotTable": {"data": _FRAME},
    "ModelSource": {"model": ("function or object", None, None)},
    "GroupNoise": {"noise": ("table", None, None)},
    "FeatureNoise": {
        "values": ("list of values", None, None),
        "ordinal": ("true or false, or a list of values", "`false`", None),
    },
    "ImprovabilitySpec": {
        "status_quo": ("text or a table", None, None),
        "utility": ("text or code", "`'classification'`", None),
        "fairness_utility": ("text, a list of texts or code", None, None),
        "candidates": ("text, a list of texts or a table", "`['linear', 'lasso', 'random_forest']`", None),
    },
    "Test": {"train": (None, "2/3", None)},
    "StatusQuo": {"model": ("a fitted model", None, None)},
    "Candidate": {
        "rule": (None, "what the others say", None),
        "estimator": ("text or an estimator", None, None),
        "own": ("code", None, None),
        "family": ("list of candidates", None, None),
        "monotone": ("table of `1` or `-1`", None, None),
    },
    "AgreementSpec": {"categories": ("list of values", None, None)},
    "Exclusions": {"failed_checks": ("whole number, at least 1, or `false`", None, None)},
    "StudySpec": {
        "conditions": ("tables by name", None, None),
        "questions": ("table of texts", "see below", None),
        "attention": ("list of tables", None, None),
    },
}


_STUDY_TEXTS = (
    "Texts are plain: no HTML and no Markdown. An empty line parts paragraphs, and a line break stays a line break. In",
    "`consent`, `instructions` and `debrief`, `{minutes}`, `{amount}` and `{currency}` of `[payment]` are filled in.",
)
_STUDY_QUESTIONS = "The scale and the questions are there in German, Spanish and French too, unless you write your own."


def main(folder: Path | None = None) -> None:
    """Write every part."""
    target = folder or Path(__file__).parent / "_generated"
    target.mkdir(parents=True, exist_ok=True)
    for name, page in PARTS.items():
        (target / f"{name}.md").write_text(page(), encoding="utf-8")
    schema = json.dumps(results_schema(), indent=1, ensure_ascii=False)
    (target / "results.schema.json").write_text(f"{schema}\n", encoding="utf-8")
    notebooks = runpy.run_path(str(Path(__file__).parents[1] / "tools/notebooks.py"))
    notebooks["write_pages"](Path(__file__).parent / "notebooks")


# Metrics --------------------------------------------------------------------------------------------------


def metrics_part() -> str:
    """Return an overview of the metrics, and a section for each."""
    metrics = BUILT_IN.values()
    rows = [
        (f"[`{m.name}`](#{m.name})", m.title, _formula(m), _needs(m), _yes(m.default), _yes(m.headline))
        for m in metrics
    ]
    overview = table(("Name", "Title", "Formula", "Needs", "By default", "Finding"), rows)
    return "\n".join([overview, "", *(line for metric in metrics for line in _metric(metric))])


def _metric(metric: ParityMetric) -> Iterator[str]:
    yield f"### `{metric.name}`"
    yield ""
    same = metric.meaning == metric.title_in_sentence
    yield f"{metric.title}." if same else f"{metric.title}: the {metric.meaning}."
    yield ""
    facts = {
        "Formula": _formula(metric),
        "Better": f"{metric.better} is better" if metric.better != "neither" else "neither way is better",
        "Worse off": _worse_off(metric),
        "Needs": _needs(metric),
        "Interval": _INTERVALS[metric.method],
        "Undefined when": say(metric.empty).text,
        "Caveat": metric.caveat,
        "Reference": metric.reference,
    }
    yield from (f"- **{name}**: {text.removesuffix('.')}." for name, text in facts.items())
    yield ""


def other_metrics_part() -> str:
    """Return the metrics of the audits beside parity, one table for each audit."""
    lines: list[str] = []
    for name in REGISTRY:
        if name == "parity":
            continue
        lines += [f"### {name.capitalize()}", "", _metric_table(known_metrics(name)), ""]
    return "\n".join(lines)


def known_metrics(audit: str) -> Iterable[Metric]:
    """Return the rows of an audit's table of metrics."""
    rows: dict[str, Metric] = import_module(f"evenhand.audits.{audit}.metrics").METRICS
    return rows.values()


def _metric_table(metrics: Iterable[Metric]) -> str:
    rows = [
        (
            f"`{metric.name}`",
            metric.title,
            metric.formula,
            "; ".join(limit.in_words() for limit in metric.limits) or "none",
            _yes(metric.headline),
            " ".join(part for part in (metric.caveat, metric.reference and f"{metric.reference}.") if part),
        )
        for metric in metrics
    ]
    return table(("Metric", "Title", "Formula", "Thresholds", "Finding", "What it does not show; reference"), rows)


def _worse_off(metric: ParityMetric) -> str:
    """Say in which group people are worse off, by whether being selected, or a higher number, is good for them."""
    sides = {"good": metric.worse_value("selected"), "bad": metric.worse_value("not_selected")}
    if len(set(sides.values())) == 1:
        side = sides["good"]
        return f"the {side} group" if side else "the metric does not say"
    what = "being selected" if metric.of_number is None else "a higher number"
    said = [f"the {side} group where {what} is {kind}" for kind, side in sides.items() if side]
    return ", ".join(said)


def _formula(metric: ParityMetric) -> str:
    return f"`{metric.formula}`" if metric.ratio or metric.function else metric.formula


def _needs(metric: ParityMetric) -> str:
    return " and ".join(metric.needs) or "nothing more"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def named_gaps_part() -> str:
    """Return the gaps that have a name of their own."""
    words = {"worst_pair": "worst pair", "reference": "reference group", "overall": "everybody"}
    rows = [
        (f"`{name}`", f"[`{metric}`](#{metric})", kind, words[against])
        for name, (metric, kind, against) in NAMED_GAPS.items()
    ]
    return table(("Name", "Metric", "Kind", "Against"), rows)


def other_names_part() -> str:
    """Return what other packages call our metrics and gaps."""
    words = {"worst_pair": "of the worst pair", "reference": "to the reference group", None: ""}
    rows = [
        (
            f"`{name}`",
            other.package,
            " and ".join(f"`{metric}`" for metric in other.metrics),
            other.kind or "value",
            words[other.against],
        )
        for name, other in OTHER_NAMES.items()
        if not other.refused
    ]
    return table(("Name", "Package", "Here", "What of it", ""), rows)


# Settings -------------------------------------------------------------------------------------------------


def settings_part() -> str:
    """Return a table of settings for every section of `audit.toml`."""
    files = _rows(FileOptions, Table, only=inspect.signature(Table).parameters)
    shortcuts = [
        (name, *_like(Prediction, name))
        for name in ("threshold", "percentile", "capacity", "favourable", "selected_word")
    ]
    sections: dict[str, list[tuple[str, str, str, str]]] = {
        "`[data]`": [
            _SOURCE_ROW,
            *_rows(DatasetSettings),
            *_rows(EngineSettings),
            *_rows(Roles, Table),
            *shortcuts,
            *files,
        ],
        "`[data.predictions.NAME]`": _rows(Prediction),
        "`[models]`": _rows(ModelsSettings),
        "`[models.fit.NAME]`": _rows(Fit),
        **{title: rows for name in REGISTRY for title, rows in spec_sections(name)},
        "`[[thresholds]]`": threshold_rows(),
        "`[report]`": _rows(ReportSettings),
        "`[power]`": _rows(PowerSettings),
    }
    lines = []
    for title, rows in sections.items():
        shown = [(f"`{name}`", *rest) for name, *rest in rows]
        lines += [f"## {title}", "", table(("Setting", "Type", "Default", "Meaning"), shown), ""]
    return "\n".join(lines)


def threshold_rows() -> list[tuple[str, str, str, str]]:
    """Return the settings of a threshold: the common ones, then what single audits and studies add."""
    rows = _rows(Threshold)
    for audit in (*REGISTRY.values(), ANALYSIS):
        kind = audit.spec.threshold_type()
        own = _rows(kind, only={name: kind.model_fields[name] for name in kind.own_coordinates()})
        rows += [
            (name, held, default, f"{meaning.rstrip('.')} ({audit.name}).") for name, held, default, meaning in own
        ]
    return rows


def spec_sections(audit: str) -> Iterator[tuple[str, list[tuple[str, str, str, str]]]]:
    """Yield the section of an audit in `audit.toml`, then those of the settings inside it."""
    spec = REGISTRY[audit].spec
    yield f"`[{audit}]`", _rows(spec, only=settings_of(spec))
    seen: set[type[BaseModel]] = {spec.threshold_type()}
    yield from _nested_sections(audit, spec, seen)


def _nested_sections(
    path: str, model: type[BaseModel], seen: set[type[BaseModel]]
) -> Iterator[tuple[str, list[tuple[str, str, str, str]]]]:
    for name, field in model.model_fields.items():
        for inner, many in _models_in(field.annotation):
            if inner not in seen:
                seen.add(inner)
                place = f"{path}.{name}{'.NAME' if many else ''}"
                yield f"`[{place}]`", _rows(inner)
                yield from _nested_sections(place, inner, seen)


def _models_in(annotation: Any, many: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """Yield the settings that a type holds, and whether it holds several of them by name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, many
    for inner in typing.get_args(annotation):
        yield from _models_in(inner, many or typing.get_origin(annotation) is dict)


def _like(model: type[BaseModel], name: str) -> tuple[str, str, str]:
    kind, default, meaning = next(row[1:] for row in _rows(model) if row[0] == name)
    return kind, default, f"For every prediction that does not set it: {meaning[:1].lower()}{meaning[1:]}"


def _rows(
    model: type[BaseModel], elsewhere: type | None = None, only: Collection[str] | None = None
) -> list[tuple[str, str, str, str]]:
    """Return the settings of a model; where one has no description, the docstring of its class or of another has."""
    described = (parameters(elsewhere) if elsewhere else {}) | parameters(model)
    rows = []
    for name in model.model_fields if only is None else [name for name in only if name in model.model_fields]:
        field = model.model_fields[name]
        meaning = field.description or described.get(name)
        if not meaning:
            raise SystemExit(f"{model.__name__}.{name} has no description; give it one in the code.")
        kind, default, words = _AMENDED.get(model.__name__, {}).get(name, (None, None, None))
        rows.append((name, kind or _type(field), default or _default(field), _sentence(words or meaning)))
    return rows


def parameters(documented: type) -> dict[str, str]:
    """Return the descriptions in the Parameters section of a class; an entry may describe several names."""
    doc = inspect.cleandoc(documented.__doc__ or "")
    match = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    found: dict[str, str] = {}
    names: list[str] = []
    for line in (match[1] if match else "").splitlines():
        entry = re.match(r"^(\w+(?:, \w+)*)(?: : (.*))?$", line)
        if entry:
            names = entry[1].split(", ")
            together = ", ".join(f"`{name}`" for name in names) + ":" if len(names) > 1 else ""
            found |= dict.fromkeys(names, f"{together} {entry[2] or ''}".strip())
        elif line.strip():
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return found


def _sentence(text: str) -> str:
    text = " ".join(text.split()).replace("``", "`")
    text = text if text.partition(" ")[0].endswith(":") else f"{text[:1].upper()}{text[1:]}"
    return f"{text.removesuffix('.')}."


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, tuple | dict) and not value:
        return "empty"
    if isinstance(value, dict):
        return "`{ " + ", ".join(f"{key} = {item!r}" for key, item in value.items()) + " }`"
    if isinstance(value, tuple):
        return f"`{list(value)!r}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value!r}`" if isinstance(value, str) else f"`{value}`"


def _type(field: FieldInfo) -> str:
    words = _type_words(field.annotation)
    bounds = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    limits = [
        f"{word} {getattr(rule, name):,}"
        for rule in field.metadata
        for name, word in bounds.items()
        if hasattr(rule, name)
    ]
    return f"{words}, {' and '.join(limits)}" if limits else words


def _type_words(annotation: Any) -> str:
    """Return a type in words, as a user writes the value."""
    simple = {str: "text", bool: "true or false", int: "whole number", float: "number"}
    if annotation is Any:
        return "anything"
    if annotation in (Scalar, Scalar | None):
        return "a single value"
    if annotation in simple:
        return simple[annotation]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_words(inside[0])
    if origin is Literal:
        return " or ".join(f"`{value!r}`" for value in inside)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type_words(part) for part in inside if part is not type(None)))
    if origin is tuple:
        return (
            f"list of {_plural(_type_words(inside[0]))}"
            if inside[-1] is Ellipsis
            else f"list of {len(inside)} {_plural(_type_words(inside[0]))}"
        )
    if origin is dict:
        return "table" if inside[1] is Any else f"table of {_plural(_type_words(inside[1]))}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    return "function" if origin is Callable or "Callable" in str(annotation) else str(annotation)


def _plural(words: str) -> str:
    if words.startswith("`"):  # a choice of values
        return words
    parts = []
    for part in words.split(" or "):
        first, of, rest = part.partition(" of ")
        parts.append(f"{first}s{of}{rest}")
    return " or ".join(parts)


# Studies --------------------------------------------------------------------------------------------------


def study_part() -> str:
    """Return the settings of `study.toml` and of the functions of `eh.study`, and the columns of answers."""
    sections: dict[str, type[BaseModel]] = {
        "Top level of `study.toml`": StudySpec,
        "`[conditions.NAME]`": Condition,
        "`[disagreement]`": Disagreement,
        "`[disagreement.assignment]`, `assign_cases`": CaseSettings,
        "`[[attention]]`": AttentionCheck,
        "`[payment]`": Payment,
        "`[[payment.bonuses]]`": Bonus,
        "`[rationales]`": Rationales,
        "`[about]`": About,
        "`[[about.questions]]`": AboutQuestion,
        "`[recruitment]`": Recruitment,
        "`[[recruitment.filters]]`": Filter,
        "`[analysis]`, `analyze`": AnalysisSpec,
        "`[analysis.exclusions]`, `apply_exclusions`": Exclusions,
        "`design_sets`": SetSettings,
        "The column map of `read_survey`": SurveyMap,
        "`Respondents`": Respondents,
        "`Critics`": Critics,
    }
    lines = [*_STUDY_TEXTS, ""]
    for title, model in sections.items():
        shown = [(f"`{name}`", *rest) for name, *rest in _rows(model)]
        lines += [f"## {title}", "", table(("Setting", "Type", "Default", "Meaning"), shown), ""]
    wording = [(f"`{name}`", str(field.default)) for name, field in Questions.model_fields.items()]
    lines += ["## `[questions]`", "", _STUDY_QUESTIONS, "", table(("Question", "Wording by default"), wording), ""]
    words = [(f"`{key}`", text) for key, text in built_in("en").items()]
    lines += ["## `[interface.LANGUAGE]`", "", table(("Word of the pages", "In English"), words), ""]
    columns = [
        (
            f"`{c.name}`",
            c.kind or "both",
            "person" if c.level == "person" else "answer",
            c.type.replace("_", " or "),
            c.description,
        )
        for c in ANSWER_COLUMNS
    ]
    head = ("Column", "Kind of study", "One for each", "Type", "Meaning")
    return "\n".join([*lines, "## Columns of answers", "", table(head, columns), ""])


# Records --------------------------------------------------------------------------------------------------


def results_part() -> str:
    """Return the columns of every table of `results.json`, the common ones first."""
    common = {"values": Value, "gaps": Gap}
    lines = ["## findings", "", _columns(Finding), ""]
    for name, record in common.items():
        lines += [f"## {name}", "", inspect.cleandoc(record.__doc__ or ""), "", _columns(record), ""]
    lines += ["## left_out", "", _columns(LeftOut), ""]
    for audit, result in result_types():
        lines += [f"## audits.{audit}", "", f"{result.question}", ""]
        for name, record in result.record_types().items():
            if record in (Value, Gap, LeftOut):
                continue
            base = common.get(name)
            own = [column for column in record.columns() if base is None or column not in base.columns()]
            told = (
                f"After the columns of [`{name}`](#{name}) above:" if base else inspect.cleandoc(record.__doc__ or "")
            )
            personal = " About one person each: only with `individuals = true`." if record.individual else ""
            if own:
                lines += [f"### {audit}.{name}", "", f"{told}{personal}", "", _columns(record, own), ""]
        plain = ", ".join(f"`{name}`" for name in result.plain_fields())
        lines += [f"Beside the tables: `spec`, `notes`{f', {plain}' if plain else ''}.", ""]
    lines += ["## profiles", ""]
    for name, record in TABLES.items():
        lines += [f"### profiles.{name}", "", inspect.cleandoc(record.__doc__ or ""), "", _columns(record), ""]
    for name, tables in EXTRAS.items():
        lines += [f"## extras: {name}", ""]
        for table, record in tables.items():
            lines += [f"### {name}.{table}", "", inspect.cleandoc(record.__doc__ or ""), "", _columns(record), ""]
    return "\n".join(lines)


def _columns(record: type[Record], only: Collection[str] | None = None) -> str:
    hints = typing.get_type_hints(record)
    rows = [
        (f"`{item.name}`", _json_type(hints[item.name]), _sentence(record.columns()[item.name]))
        for item in fields(record)
        if only is None or item.name in only
    ]
    return table(("Column", "Type", "Meaning"), rows)


def _json_type(annotation: Any) -> str:
    """Return the type of a column in words; a missing value is null."""
    inside = [part for part in typing.get_args(annotation) if part is not type(None)]
    is_choice = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return " or ".join(map(_json_type, inside)) + ", or null" if is_choice else _type_words(annotation)


# Audits ---------------------------------------------------------------------------------------------------


def audit_part(name: str) -> str:
    """Return the API page of an audit: signature, settings, thresholds, metrics, result tables and charts."""
    audit = REGISTRY[name]
    result = audit.result
    lines = [audit.question, "", _further_reading(name), ""]
    lines += ["## Signature", "", "```{eval-rst}", f".. autofunction:: evenhand.{name}", "   :no-index:", "```", ""]
    lines += ["## Settings", "", f"The arguments above, as sections of `audit.toml`. {_SETTINGS_NOTES}", ""]
    for title, rows in spec_sections(name):
        lines += [f"### {title}", "", table(("Setting", "Type", "Default", "Meaning"), _coded(rows)), ""]
    lines += ["## Thresholds", "", _threshold_sentence(name), ""]
    lines += ["## Metrics", "", _metric_table(known_metrics(name)), ""]
    lines += [
        "## Result",
        "",
        f"`eh.{name}` returns a `{result.__name__}`, with `summary()`, `get`, `rows`, `to_frame`,",
    ]
    lines += ["`to_dict` and `plot` ({doc}`../api`). Each table is a tuple of records with these columns:", ""]
    for kind, record in result.record_types().items():
        personal = " About one person each: published only with `individuals = true`." if record.individual else ""
        about = inspect.cleandoc(record.__doc__ or "").partition("\n\n")[0]
        lines += [f"### `result.{kind}`", "", f"{about}{personal}", "", _columns(record), ""]
    plain = [f"`{field}`" for field in ("spec", "notes", *result.plain_fields())]
    lines += [f"Beside the tables: {', '.join(plain)}.", "", "## Charts", ""]
    charts = " ".join(f'`result.plot("{chart}")`' for chart in audit.charts).replace("` `", "`, `")
    return "\n".join([*lines, f"{charts}. Without a name, `result.plot()` shows the first.", ""])


_SETTINGS_NOTES = "{doc}`../settings` has those of the data, of models and of the report."


def _further_reading(name: str) -> str:
    """Return links to the guide, the notebook and the methods of an audit."""
    folder = Path(__file__).parent
    named = {"parity": "getting-started", "agreement": "reliability", "paired": "paired-tests", "ranking": "shortlists"}
    guide = named.get(name, name)
    candidates = (f"guide/{guide}", f"howto/{guide}", f"methods/{'reliability' if name == 'agreement' else name}")
    written = [page for page in candidates if (folder / f"{page}.md").is_file()]
    pages = (*written[:1], f"notebooks/{name}", *written[1:])
    return "See also " + ", ".join(f"{{doc}}`../../{page}`" for page in pages) + "."


def _threshold_sentence(name: str) -> str:
    """Return which settings of a threshold an audit knows beside the common ones."""
    own = [f"`{coordinate}`" for coordinate in REGISTRY[name].spec.threshold_type().own_coordinates()]
    common = f'`[[thresholds]]` with `audit = "{name}"` limits a metric'
    beside = f"; beside the settings of every threshold it has {' and '.join(own)}" if own else ""
    return f"{common}{beside}. {{doc}}`../settings` has the settings of every threshold."


def _coded(rows: Iterable[tuple[str, str, str, str]]) -> list[tuple[str, ...]]:
    return [(f"`{name}`", *rest) for name, *rest in rows]


# Command line ---------------------------------------------------------------------------------------------


def cli_part() -> str:
    """Return the help of every command, as the command prints it."""
    lines = []
    for path in command_paths():
        lines += [f"## `{' '.join(['evenhand', *path])}`", "", "```text", help_text(path), "```", ""]
    return "\n".join(lines)


def command_paths() -> list[tuple[str, ...]]:
    """Return every command as its words after `evenhand`, the bare command first."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))

    return list(walk(typer.main.get_command(app), ()))


def help_text(path: Iterable[str]) -> str:
    """Return what a command prints with --help, on a terminal of a fixed width and without colour."""
    result = CliRunner().invoke(app, [*path, "--help"], prog_name="evenhand", env={"COLUMNS": str(HELP_COLUMNS)})
    if result.exit_code:
        raise SystemExit(f"evenhand {' '.join(path)} --help failed: {result.output}")
    return tidy(result.output)


def tidy(text: str) -> str:
    """Return a help text without colours and the blanks at the ends of lines."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return "\n".join(line.rstrip() for line in plain.splitlines()).strip("\n")


# Statistics -----------------------------------------------------------------------------------------------


def stats_part() -> str:
    """Return a section for every module of kernels."""
    lines = []
    for name in stats_modules():
        lines += [f"### `{name}`", "", "```{eval-rst}", f".. automodule:: {name}", "   :members:", "```", ""]
    return "\n".join(lines)


def stats_modules() -> list[str]:
    """Return the modules of `evenhand.stats`, the common types last."""
    names = [f"evenhand.stats.{module.name}" for module in pkgutil.iter_modules(evenhand.stats.__path__)]
    return sorted(names, key=lambda name: (name.endswith(".types"), name))


# Promises -------------------------------------------------------------------------------------------------


def promises_part() -> str:
    """Return what the benchmarks observed of every promise."""
    from benchmarks.coverage._page import page_part

    return page_part()


# Tables ---------------------------------------------------------------------------------------------------


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


PARTS: dict[str, Callable[[], str]] = {
    "metrics": metrics_part,
    "other_metrics": other_metrics_part,
    "named_gaps": named_gaps_part,
    "other_names": other_names_part,
    "results": results_part,
    "settings": settings_part,
    "study": study_part,
    "cli": cli_part,
    "stats": stats_part,
    "promises": promises_part,
    **{f"audit_{name}": partial(audit_part, name) for name in REGISTRY},
}

if __name__ == "__main__":
    main()
