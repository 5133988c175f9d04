"""What a public project carries agrees with the package: citation, recipe, workflows, forms, changelog."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh

yaml = pytest.importorskip("yaml", reason="the files are YAML")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONDA_NAMES = {"duckdb": "python-duckdb"}
"""Packages that conda-forge calls otherwise."""
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"@[0-9a-f]{40}$")
MENDED = {"fastapi": "0.133", "h11": "0.16", "jinja2": "3.1.6", "pyspark": "4.0.1", "starlette": "1.3.1"}
"""Releases before these have known faults that anybody can use from outside, or allow no mended Starlette."""


def text(path: str) -> str:
    """Return a file of the repository."""
    return (ROOT / path).read_text(encoding="utf-8")


def load(path: str) -> Any:
    """Return a YAML file of the repository."""
    return yaml.safe_load(text(path))


def conda(requirements: list[str]) -> set[str]:
    """Return requirements in the form and with the names of conda-forge."""
    parts = [re.fullmatch(r"([\w.-]+)(.*)", one) for one in requirements]
    return {f"{CONDA_NAMES.get(part[1], part[1])} {part[2]}" for part in parts if part}


def test_the_citation_names_this_version_and_the_four_papers() -> None:
    citation = load("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    assert str(citation["version"]) == eh.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert [author["name"] for author in citation["authors"]] == [one["name"] for one in PROJECT["project"]["authors"]]
    assert len(citation["references"]) == 4
    for paper in citation["references"]:
        assert {"type", "title", "authors", "year", "notes"} <= set(paper)
        for function in re.findall(r"`eh\.(\w+)`", paper["notes"]):
            assert function in eh.__all__


def test_the_readme_names_the_papers_as_the_citation_does() -> None:
    rows = [line for line in text("README.md").splitlines() if line.startswith("| *")]
    papers = load("CITATION.cff")["references"]
    assert len(rows) == len(papers)
    for row, paper in zip(rows, papers, strict=True):
        assert f"*{paper['title']}*" in row
        for author in paper["authors"]:
            assert author["family-names"] in row
        assert set(re.findall(r"`eh\.\w+`", paper["notes"])) == set(re.findall(r"`eh\.\w+`", row))
        for page in re.findall(r"\]\((docs/[^)]+)\)", row):
            assert (ROOT / page).exists()


def test_the_recipe_is_of_this_version_and_needs_what_the_package_needs() -> None:
    recipe, project = load("conda/recipe.yaml"), PROJECT["project"]
    assert recipe["context"]["version"] == eh.__version__
    python = f"python {project['requires-python']}"
    assert set(recipe["requirements"]["run"]) == {python, *conda(project["dependencies"])}
    assert set(recipe["requirements"]["host"]) == {python, "pip", *conda(PROJECT["build-system"]["requires"])}
    scripts = {f"{name} = {target}" for name, target in project["scripts"].items()}
    assert set(recipe["build"]["python"]["entry_points"]) == scripts
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_is_there_with_pinned_actions(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        assert re.search(r"@sha256:[0-9a-f]{64}$", job["container"])
        for step in job["steps"]:
            assert "uses" not in step or PINNED.search(step["uses"]), step["uses"]
            for command in step.get("run", "").splitlines():
                assert "${{" not in command, "an input could run code there"
                program, *arguments = command.split()
                assert (ROOT / program).exists() if program != "make" else arguments[0] in targets


def test_the_action_installs_tested_versions_with_pinned_actions() -> None:
    steps = load("action.yml")["runs"]["steps"]
    assert all(PINNED.search(step["uses"]) for step in steps if "uses" in step)
    (install,) = (step["run"] for step in steps if step.get("name") == "Install")
    assert '--constraint "${SOURCE}/constraints.txt"' in install


def test_no_lower_limit_admits_a_release_with_a_known_fault() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    asked = "\n".join((*PROJECT["project"]["dependencies"], *extras["study"], *extras["spark"]))
    lowest = dict(re.findall(r"^([\w.-]+)(?:\[\w+\])?>=([\d.]+)", asked, re.MULTILINE))
    assert {name: lowest[name] for name in MENDED} == MENDED


def test_every_push_runs_the_script_of_ci_and_every_night_a_bounded_search() -> None:
    push, night = load(".github/workflows/ci.yml"), load(".github/workflows/nightly.yml")
    assert {"push", "pull_request"} <= set(push[True])  # YAML reads `on` as true
    assert [step["run"] for step in push["jobs"]["run"]["steps"] if "run" in step] == [".ci/run"]
    assert "schedule" in night[True]
    commands = [step["run"] for job in night["jobs"].values() for step in job["steps"] if "run" in step]
    assert "make test-all" in commands
    assert any(re.match(r"make fuzz ARGS=.--cases ", command) for command in commands)


def test_read_the_docs_builds_as_make_does() -> None:
    commands = load(".readthedocs.yaml")["build"]["commands"]
    recipe = text("Makefile").split("\ndocs: ")[1].split("\n\n")[0]
    assert "docs/generate.py" in recipe
    assert "python docs/generate.py" in commands
    options = re.search(r"sphinx-build (.*) docs/_build/html", recipe)
    assert options is not None
    assert f"python -m sphinx {options[1]} $READTHEDOCS_OUTPUT/html" in commands


def test_the_changelog_has_this_version() -> None:
    changelog = text("CHANGELOG.md")
    assert re.search(rf"^## \[{re.escape(eh.__version__)}\] - ", changelog, re.MULTILINE)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", changelog, re.MULTILINE)) <= kinds


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_an_issue_form_is_complete(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    assert any(item.get("validations", {}).get("required") for item in form["body"])
    for item in form["body"]:
        assert item["type"] in {"markdown", "textarea", "input"}
        assert "id" in item or item["type"] == "markdown"


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", ".github/PULL_REQUEST_TEMPLATE.md"])
def test_a_page_for_contributors_names_what_exists(name: str) -> None:
    page = text(name)
    for path in re.findall(r"`((?:docs|benchmarks)/[\w./-]+|CHANGELOG\.md)`", page):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"`make (\w+)`", page):
        assert f"\n{target}: " in text("Makefile")


def test_the_speed_in_the_readme_is_what_was_recorded() -> None:
    recorded = {}
    for line in text("docs/benchmarks.md").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 9:
            audit, rows, cpu, _wall, memory, peer, peer_cpu, times, _memory = cells
            recorded[audit, rows, peer] = [cpu, memory, peer_cpu, times]
    section = text("README.md").split("\n## Speed\n")[1].split("\n## ")[0]
    claimed = [re.split(r" *\| *", line.strip("| ")) for line in section.splitlines() if line.startswith("|")][2:]
    assert claimed
    for audit, rows, cpu, memory, peer, peer_cpu, times in claimed:
        assert recorded[audit, rows, peer] == [cpu, memory, peer_cpu, times]
    aequitas = re.search(r"Aequitas computes .* in ([\d.]+) s", section.replace("\n", " "))
    assert aequitas is not None
    assert recorded["parity", "1,000,000", "aequitas"][2] == aequitas[1]


def test_the_example_of_the_readme_needs_no_extra(tmp_path: Path) -> None:
    code = text("README.md").split("```python\n")[1].split("```")[0]
    without = [f"sys.modules[{name!r}] = None" for name in ("pandas", "polars", "pyarrow", "sklearn")]
    script = "\n".join(["import sys", *without, code])
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
