"""The reference is complete: nothing public is without its entry, and the help is what the commands print."""

from __future__ import annotations

import inspect
import json
import pkgutil
import re
import runpy
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import evenhand as eh
import evenhand.stats
from evenhand import errors
from evenhand.audits import REGISTRY
from evenhand.audits.parity.messages import say
from evenhand.audits.parity.metrics import ALL_METRICS, NAMED_GAPS
from evenhand.cli import console
from evenhand.cli.main import main
from evenhand.core.provenance import data_record
from evenhand.core.records import Gap, LeftOut, Record, Value
from evenhand.core.spec import settings_of
from evenhand.models.estimators import ESTIMATORS, Fit, ModelsSettings
from evenhand.run.config import DatasetSettings, ReportSettings
from evenhand.run.schema import result_types
from evenhand.study.analysis.descriptor import ANALYSIS
from evenhand.table import Prediction, Roles
from evenhand.table.engines import EngineSettings

DOCS = Path(__file__).parents[2] / "docs"
GENERATOR = runpy.run_path(str(DOCS / "generate.py"))


@cache
def part(name: str) -> str:
    """Return a generated part of the reference."""
    return str(GENERATOR["PARTS"][name]())


def reference(page: str) -> str:
    """Return a page of the reference with the generated parts that it includes."""
    text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
    return re.sub(r"```\{include\} (?:\.\./)+_generated/(\w+)\.md\n```", lambda match: part(match[1]), text)


def section(text: str, heading: str) -> str:
    """Return what stands below a heading, up to the next one of its level."""
    level = heading.partition(" ")[0]
    assert f"\n{heading}\n" in f"\n{text}", f"there is no heading {heading!r}"
    return re.split(rf"^{level} ", f"\n{text}".split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_every_generated_part_is_included() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    for name in GENERATOR["PARTS"]:
        assert f"_generated/{name}.md" in pages


@pytest.mark.parametrize("name", sorted(set(eh.__all__) - {"datasets", "models", "study", "testing", "__version__"}))
def test_public_names_are_in_the_reference(name: str) -> None:
    assert re.search(rf"^\.\. auto(class|function|exception):: evenhand\.{name}$", reference("api"), re.MULTILINE)


@pytest.mark.parametrize("name", eh.datasets.__all__)
def test_data_sets_are_in_the_reference(name: str) -> None:
    assert re.search(rf"^\.\. auto(class|function):: evenhand\.datasets\.{name}$", reference("api"), re.MULTILINE)


@pytest.mark.parametrize("name", sorted(set(eh.models.__all__) - {"ModelsSettings", "fitted"}))
def test_functions_of_models_are_in_the_reference(name: str) -> None:
    assert re.search(rf"^\.\. autofunction:: evenhand\.models\.{name}$", reference("api"), re.MULTILINE)


def test_estimators_are_on_their_page() -> None:
    text = (DOCS / "howto/fit-models.md").read_text(encoding="utf-8")
    for name, recipe in ESTIMATORS.items():
        assert re.search(rf"^\| `{name}` \| .*`{recipe.name}`", text, re.MULTILINE), name


def test_errors_are_in_the_reference() -> None:
    text = section(reference("api"), "## Errors")
    own = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
    ]
    assert own
    for name in own:
        assert re.search(rf"\b{name}\b", text), name


def test_kernels_are_in_the_reference() -> None:
    for module in pkgutil.iter_modules(evenhand.stats.__path__):
        assert f".. automodule:: evenhand.stats.{module.name}\n   :members:" in reference("api")


@pytest.mark.parametrize("name", ALL_METRICS)
def test_metrics_are_in_the_reference(name: str) -> None:
    metric = ALL_METRICS[name]
    text = section(reference("metrics"), f"### `{name}`")
    for fact in (metric.title, metric.formula, metric.better, say(metric.empty).text, metric.caveat, metric.reference):
        assert fact in text
    for need in metric.needs:
        assert need in text


@pytest.mark.parametrize("name", NAMED_GAPS)
def test_named_gaps_are_in_the_reference(name: str) -> None:
    metric, kind, _ = NAMED_GAPS[name]
    assert f"| `{name}` | [`{metric}`](#{metric}) | {kind} |" in reference("metrics")


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        (
            "## `[data]`",
            [
                "source",
                *DatasetSettings.model_fields,
                *EngineSettings.model_fields,
                *Roles.model_fields,
                *inspect.signature(eh.Table).parameters,
            ],
        ),
        ("## `[data.predictions.NAME]`", list(Prediction.model_fields)),
        ("## `[models]`", list(ModelsSettings.model_fields)),
        ("## `[models.fit.NAME]`", list(Fit.model_fields)),
        *((f"## `[{name}]`", list(settings_of(REGISTRY[name].spec))) for name in REGISTRY),
        (
            "## `[[thresholds]]`",
            [name for audit in (*REGISTRY.values(), ANALYSIS) for name in audit.spec.threshold_type().model_fields],
        ),
        ("## `[report]`", list(ReportSettings.model_fields)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_settings_are_in_the_reference(heading: str, names: list[str]) -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| \S[^|]*\|$", section(reference("settings"), heading), re.MULTILINE
    )
    assert set(names) - {"data", "table"} == set(rows)


@pytest.mark.parametrize("name", REGISTRY)
def test_a_spec_is_said_once(name: str) -> None:
    """Signature and docstring of the function are those of the spec."""
    function, spec = getattr(eh, name), REGISTRY[name].spec
    signature = inspect.signature(function)
    assert set(spec.model_fields) == set(signature.parameters) - {"table"}
    assert all(field.description for field in spec.model_fields.values())
    for setting, field in spec.model_fields.items():
        assert re.search(rf"^    {setting}\b", function.__doc__, re.MULTILINE), setting
        derived = signature.parameters[setting].kind is inspect.Parameter.KEYWORD_ONLY
        assert not derived or str(field.description).split()[0] in function.__doc__


@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "parity"])
def test_metrics_of_every_audit_are_in_the_reference(name: str) -> None:
    text = section(reference("metrics"), f"### {name.capitalize()}")
    for metric in GENERATOR["known_metrics"](name):
        assert f"| `{metric.name}` | {metric.title} |" in text


@pytest.mark.parametrize("name", REGISTRY)
def test_every_audit_has_its_api_page(name: str) -> None:
    assert f"reference/audits/{name}\n" in (DOCS / "index.md").read_text(encoding="utf-8")
    page = reference(f"audits/{name}")
    audit = REGISTRY[name]
    assert f".. autofunction:: evenhand.{name}\n" in section(page, "## Signature")
    settings = re.findall(r"^\| `(\w+)` \|", section(page, "## Settings"), re.MULTILINE)
    assert set(settings_of(audit.spec)) <= set(settings)
    for metric in GENERATOR["known_metrics"](name):
        assert f"| `{metric.name}` |" in section(page, "## Metrics")
    for kind, record in audit.result.record_types().items():
        columns = re.findall(r"^\| `(\w+)` \|", section(page, f"### `result.{kind}`"), re.MULTILINE)
        assert columns == list(record.columns())
    for chart in audit.charts:
        assert f'result.plot("{chart}")' in section(page, "## Charts")


COMMANDS: list[tuple[str, ...]] = GENERATOR["command_paths"]()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_in_the_reference_is_what_the_command_prints(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(GENERATOR["HELP_COLUMNS"]))
    monkeypatch.setattr("sys.argv", ["evenhand", *command, "--help"])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None, raising=False)  # or it is "python -m pytest"
    with pytest.raises(SystemExit):
        main()
    printed = GENERATOR["tidy"](capsys.readouterr().out)
    assert f"```text\n{printed}\n```" in section(reference("cli"), f"## `{' '.join(['evenhand', *command])}`")


def test_commands_were_found() -> None:
    assert {(), ("demo",), ("init",), ("audit",), ("data", "list"), ("data", "fetch")} <= set(COMMANDS)


def test_exit_codes_are_in_the_reference() -> None:
    codes = [value for name, value in vars(console).items() if name.isupper() and type(value) is int]
    assert len(codes) >= 6
    for code in codes:
        assert f"| {code} | " in reference("cli")


@pytest.mark.parametrize(("name", "result"), list(result_types()))
def test_tables_and_columns_of_the_results_are_in_the_reference(name: str, result: Any) -> None:
    page = reference("results-json")
    common: dict[str, type[Record]] = {"values": Value, "gaps": Gap, "left_out": LeftOut}
    assert f"\n## audits.{name}\n" in page
    for table, record in result.record_types().items():
        base = common[table].columns() if table in common else {}
        own = [column for column in record.columns() if column not in base]
        text = section(page, f"### {name}.{table}") if own else ""
        for column in own:
            assert f"| `{column}` |" in text, (table, column)
    for table, record in common.items():
        assert all(f"| `{column}` |" in section(page, f"## {table}") for column in record.columns())


def test_fields_of_the_data_are_in_the_reference() -> None:
    text = section(reference("results-json"), "## data")
    table = eh.Table({"g": ["a", "b"], "d": [0, 1]}, groups="g", predictions="d")
    for name in data_record(table):
        assert f"| `{name}` |" in text


def links(page: Path) -> set[Path]:
    """Return the pages that a page links to."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"\]\(([\w./-]+\.md)[)#]", text)
    named += [f"{name}.md" for name in re.findall(r"\{doc\}`(?:[^`<]*<)?([\w./-]+)>?`", text)]
    return {(page.parent / name).resolve() for name in named}


def test_every_guide_and_how_to_is_two_clicks_from_the_readme() -> None:
    first = links(DOCS.parent / "README.md")
    second = {page for path in first if path.exists() for page in links(path)}
    pages = {path.resolve() for folder in ("guide", "howto") for path in (DOCS / folder).glob("*.md")}
    assert not pages - first - second


def test_the_picture_of_a_report_is_small() -> None:
    assert "docs/pictures/report.png" in (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert (DOCS / "pictures/report.png").stat().st_size < 100_000


def test_what_r_and_stata_users_type_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their commands run, and the fields that they read are in results.json."""
    r, stata, reading = re.findall(
        r"```(?:r|stata)\n(.*?)```", (DOCS / "howto/from-r-and-stata.md").read_text(), re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    loans = pd.DataFrame({"race": [1, 2] * 40, "risk": [0.2, 0.4, 0.6, 0.8] * 20, "approved": [1, 0, 0, 1] * 20})
    loans = loans.assign(defaulted=[0, 0, 1, 1] * 20, repaid=[1, 1, 0, 0] * 20)
    named = {"race": {1: "Black", 2: "White"}}
    pytest.importorskip("pyreadstat").write_dta(loans, "loans.dta", variable_value_labels=named)
    in_r = re.findall(r'"([^"]+)"', r.split("system2(")[1].split("))")[0].replace("loans.rds", "loans.dta"))
    in_stata = re.findall(r"^shell (.*)$", stata, re.MULTILINE)[0].split()
    for command, *arguments in (in_r, in_stata):
        assert command == "evenhand"
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 0
        results = json.loads(Path("out/results.json").read_text())
        gaps = results["audits"]["parity"]["gaps"]
        assert {gap["group"] for gap in gaps} <= {"Black", "White"}
    named_in_r = re.findall(r"select = c\(([^)]*)\)", r)[0].split(", ") + re.findall(r"(\w+) ==", r.split("subset")[1])
    assert set(named_in_r) <= set(gaps[0])
    assert "headline" in results["findings"][0]
    stored: dict[str, list[Any]] = {}
    data = SimpleNamespace(
        setObsTotal=lambda n: stored.update(n=[n]),
        addVarStrL=lambda name: None,
        addVarDouble=lambda name: None,
        store=lambda name, rows, values: stored.update({name: values}),
    )
    monkeypatch.setitem(sys.modules, "sfi", SimpleNamespace(Data=data))
    exec(reading.split("python:\n")[1].removesuffix("end\n"), {})  # noqa: S102
    assert len(stored["metric"]) == len(stored["low"]) == stored["n"][0] > 0
