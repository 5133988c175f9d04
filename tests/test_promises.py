"""The promises that benchmarks measure: lines are kept, resumed and held against what was promised."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

import benchmarks.coverage.__main__ as command  # noqa: E402
from benchmarks import RESULTS, coverage, speed  # noqa: E402
from benchmarks.coverage._lines import Book, Line, hash_of, read, write  # noqa: E402
from benchmarks.coverage._page import page_part  # noqa: E402
from benchmarks.speed.__main__ import needs  # noqa: E402


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a room of the benchmarks as a user does."""
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_files_that_only_show_results_do_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "evenhand" / "audits"
    folder.mkdir(parents=True)
    for name in ("estimate.py", "section.py", "rates_chart.py"):
        (folder / name).write_text("x = 1\n")
    before = hash_of.__wrapped__("audits", tmp_path)
    (folder / "section.py").write_text("x = 2\n")
    (folder / "rates_chart.py").write_text("x = 2\n")
    assert hash_of.__wrapped__("audits", tmp_path) == before
    assert hash_of.__wrapped__("audits/section.py", tmp_path) != hash_of.__wrapped__("audits/estimate.py", tmp_path)
    (folder / "estimate.py").write_text("x = 2\n")
    assert hash_of.__wrapped__("audits", tmp_path) != before


def test_a_line_that_is_known_is_measured_again_only_when_the_code_changed(tmp_path: Path) -> None:
    calls = []

    def simulate(samples: int, rng: Any) -> Any:
        calls.append(samples)
        return rng.random(samples) < 0.96

    def go(rooms: str, **how: Any) -> Any:
        book = Book(tmp_path / "lines.json", rooms, **how)
        book.measure("interval of x", "n = 5", simulate, kind="interval", nominal=0.95, samples=400)
        return book.lines

    first, again, changed = go("errors.py"), go("errors.py"), go("settings.py")
    assert first == again
    assert calls == [400, 400]
    assert changed[0].observed == first[0].observed  # the seed is the line's own
    go("settings.py", anew=True)
    go("settings.py", only="n = 5")
    go("settings.py", only="n = 6")
    go("core", minutes=-1.0)
    assert len(calls) == 4
    assert len(read(tmp_path / "lines.json")) == 1


def test_a_promise_breaks_beyond_three_monte_carlo_errors() -> None:
    about: dict[str, Any] = {"what": "x", "population": "y", "samples": 10_000}
    assert Line(kind="interval", nominal=0.95, observed=0.944, **about).holds
    assert not Line(kind="interval", nominal=0.95, observed=0.943, **about).holds
    assert Line(kind="interval", nominal=0.95, allowed=0.94, observed=0.943, **about).holds
    assert Line(kind="test", nominal=0.05, observed=0.056, **about).holds
    assert not Line(kind="verdict", nominal=0.05, observed=0.057, **about).holds
    assert not Line(kind="test", nominal=0.05, observed=None, **about).holds
    assert Line(kind="power", observed=0.1, **about).holds


def test_comments_and_docstrings_do_not_count_as_code(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hash_of.__wrapped__("stats/bootstrap.py")
    text = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda self, **how: text(self, **how).replace("One random", "# A random"))
    assert hash_of.__wrapped__("stats/bootstrap.py") == whole
    monkeypatch.setattr(Path, "read_text", lambda self, **how: text(self, **how).replace("[seed, ", "[1 + seed, "))
    assert hash_of.__wrapped__("stats/bootstrap.py") != whole


def test_no_promise_breaks_in_the_small_version() -> None:
    ran = run("benchmarks.coverage", "--small")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_line_is_kept_for_new_code_only_where_both_codes_have_the_same_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, rooms = tmp_path / "src", "errors.py"
    (old / "evenhand").mkdir(parents=True)
    (old / "evenhand/errors.py").write_text("code = 'as it was'\n")
    about: dict[str, Any] = {"kind": "interval", "nominal": 0.95, "observed": 0.95, "samples": 400, "rooms": rooms}
    measured = hash_of(rooms, old)
    lines = [
        Line(what="the same", population="n = 5", code=measured, **about),
        Line(what="moved", population="n = 5", code=measured, **about),
        Line(what="of other code", population="n = 5", code="another hash", **about),
    ]
    write(lines, tmp_path / "lines.json")
    now = {" | ".join((line.what, line.population, line.kind)): [replace(line, asked=20, code="")] for line in lines}
    then = {name: [replace(one, observed=0.9) if "moved" in name else one] for name, (one,) in now.items()}
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "outcomes", lambda name, source: then if source == old else now)
    command.keep_unmoved("lines", old)
    kept = {line.what: line for line in read(tmp_path / "lines.json")}
    assert (kept["the same"].code, kept["the same"].repeated) == (hash_of(rooms), 20)
    assert kept["moved"] == lines[1]
    assert kept["of other code"] == lines[2]


def test_every_claim_of_coverage_names_code_that_exists_and_its_lines() -> None:
    for name in coverage.NAMES:
        claim = import_module(f"benchmarks.coverage.{name}")
        assert callable(claim.promises)
        assert hash_of(" ".join(claim.MEASURED))


def test_every_recorded_result_belongs_to_one_claim() -> None:
    assert not set(coverage.NAMES) & set(speed.NAMES), "their results would overwrite each other"
    recorded = {path.stem for path in RESULTS.glob("*.json")}
    assert set(coverage.NAMES) <= recorded <= {*coverage.NAMES, *speed.NAMES}


@pytest.mark.parametrize("room", ["coverage", "speed"])
def test_a_room_lists_its_claims_and_helps_with_a_misspelt_name(room: str) -> None:
    names = (coverage if room == "coverage" else speed).NAMES
    first, listed = next(iter(names)), run(f"benchmarks.{room}", "--list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(names)
    assert f"python -m benchmarks.{room}" in run(f"benchmarks.{room}", "--help").stdout
    misspelt = run(f"benchmarks.{room}", f"{first}s")
    assert misspelt.returncode == 1
    assert f"did you mean {first!r}?" in misspelt.stderr


def test_what_needs_a_graphics_card_runs_only_where_it_is_named() -> None:
    assert {name for name in speed.NAMES if "graphics card" in needs(name)} == {"effort_gpu", "pairs_gpu"}
    assert not needs("pairs")


def test_the_page_can_be_read_and_begins_with_the_worst() -> None:
    own = (ROOT / "docs/promises.md").read_text(encoding="utf-8")
    text = page_part()
    assert (own + text).count("\n") <= 400
    assert text.index("## The worst") < text.index("## Then and now") < text.index("## Intervals")
    beyond = [distance(row) for row in worst_rows(text)]
    assert beyond == sorted(beyond, reverse=True)


def distance(row: str) -> float:
    """Return how far a promise was observed from its nominal share."""
    nominal, observed = row.split(" | ")[2:4]
    return round(abs(float(nominal.split()[0]) - float(re.findall(r"\d\.\d+", observed)[0])), 2)


def worst_rows(text: str) -> list[str]:
    """Return the rows of the first table."""
    table = text[text.index("## The worst") : text.index("## Then and now")]
    return [line.removeprefix("| ") for line in table.splitlines() if line.startswith("| ")][2:]


def test_every_point_of_an_independent_check_has_a_line() -> None:
    with (RESULTS / "independent_check.csv").open(encoding="utf-8") as file:
        for _, what, _, name, words, population in list(csv.reader(file))[1:]:
            lines = read(RESULTS / f"{name}.json")
            assert any(words in line.what and population in line.population for line in lines), what
